//! The tiers of memories: HOT, WARM, COLD and ARCHIVE.

use serde::{Deserialize, Serialize};

/// How near at hand a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Tier {
    /// New.
    Hot,
    /// In use, or pinned.
    Warm,
    /// Neither.
    Cold,
    /// Put away.
    Archive,
}

impl Tier {
    /// All of them, the nearest first.
    pub const ALL: [Self; 4] = [Self::Hot, Self::Warm, Self::Cold, Self::Archive];

    /// Reads a name in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name().eq_ignore_ascii_case(text.trim()))
    }

    /// Gives the name, in capitals.
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
