//! What the properties of a note say of it as a memory.

use sidenote_base::clock::Timestamp;

/// The properties of a note that determine its state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryProperties {
    /// The property `importance`.
    pub importance: Option<f64>,
    /// Whether the property `importance` is not a number.
    pub is_garbled: bool,
    /// Whether the note has `pinned: true`.
    pub pinned: bool,
    /// Whether the note has `tier: archive`.
    pub archived: bool,
    /// Whether the note has `forgotten: true`.
    pub forgotten: bool,
    /// The property `superseded_by`.
    pub superseded_by: Option<String>,
    /// The property `usefulness`.
    pub usefulness: i64,
    /// The tags of the note, without `#`.
    pub tags: Vec<String>,
    /// The time of creation, or the earliest time at which the note is known to have existed.
    pub created: Timestamp,
    /// Whether the note was copied to the vault, so that it may be older than that time.
    pub is_copied: bool,
}

impl MemoryProperties {
    /// Says whether the importance of the note is fixed.
    pub fn is_protected(&self) -> bool {
        let protects = |tag: &String| PROTECTED_TAGS.iter().any(|name| tag.eq_ignore_ascii_case(name));
        self.pinned || self.tags.iter().any(protects)
    }
}

/// Tags that protect a note from decay and eviction.
pub(crate) const PROTECTED_TAGS: &[&str] = &["core", "identity", "pinned"];
