//! Misspelled names: whether a name that was typed may mean one that exists. Pure.

use sidenote_language::folding::folded;
use sidenote_markdown::path::key;

/// The largest number of edits between a name and an existing one that is suggested for it.
const MAX_EDITS: usize = 2;

/// A name that was typed, in the form in which it is compared.
#[derive(Debug, Clone)]
pub struct TypedName {
    folded: String,
    /// The largest number of edits by which it is misspelled: no more than half of a short name is wrong.
    most: usize,
}

impl TypedName {
    /// Prepares a name for comparison without regard to case and diacritics.
    pub fn new(typed: &str) -> Self {
        let folded = folded(&key(typed));
        let most = MAX_EDITS.min(folded.chars().count() / 2);
        Self { folded, most }
    }

    /// Returns whether a name contains the one that was typed.
    pub fn is_in(&self, name: &str) -> bool {
        !self.folded.is_empty() && folded(&key(name)).contains(&self.folded)
    }

    /// Returns the number of edits by which the typed name differs from a name; `None` if they are too many for a mistake.
    pub fn edits_to(&self, name: &str) -> Option<usize> {
        let name = folded(&key(name));
        if self.folded.chars().count().abs_diff(name.chars().count()) > self.most {
            return None;
        }
        Some(strsim::osa_distance(&self.folded, &name)).filter(|edits| *edits <= self.most)
    }
}
