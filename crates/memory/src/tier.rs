//! The tiers of memories: HOT, WARM, COLD and ARCHIVE.

use serde::{Deserialize, Serialize};

/// The tier of a memory, from the most to the least accessible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Tier {
    /// New memories.
    Hot,
    /// Memories in regular use, and pinned ones.
    Warm,
    /// All other memories.
    Cold,
    /// Archived memories.
    Archive,
}

impl Tier {
    /// All tiers, from the most to the least accessible.
    pub const ALL: [Self; 4] = [Self::Hot, Self::Warm, Self::Cold, Self::Archive];

    /// Parses the name of a tier in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name().eq_ignore_ascii_case(text.trim()))
    }

    /// Returns the name in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hot => "HOT",
            Self::Warm => "WARM",
            Self::Cold => "COLD",
            Self::Archive => "ARCHIVE",
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
