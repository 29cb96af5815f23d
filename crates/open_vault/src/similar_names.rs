//! Names of notes that may be meant by one that no note has.

use std::collections::BTreeSet;

use sidenote_base::error::Result;
use sidenote_links::misspelled_name::TypedName;

use crate::lookup::{Lookup, SUGGESTED};

impl Lookup<'_> {
    /// Lists the file names, titles and aliases of notes that an unknown name may mean, whatever their accents: those that contain
    /// it, the shortest first, or else those that differ from it in few letters.
    pub(crate) fn similar_names(&self, wanted: &str) -> Result<Vec<String>> {
        // A folder may be mistaken, too.
        let wanted = wanted.rsplit('/').next().unwrap_or(wanted);
        let wanted = TypedName::new(wanted.strip_suffix(".md").unwrap_or(wanted));
        let (mut holding, mut near) = (BTreeSet::new(), BTreeSet::new());
        self.core.index.catalog().names().each(|name| {
            if wanted.is_in(name) {
                holding.insert((name.chars().count(), name.to_owned()));
            } else if let Some(edits) = wanted.edits_to(name) {
                near.insert((edits, name.to_owned()));
            }
        })?;
        let similar = if holding.is_empty() { near } else { holding };
        Ok(similar.into_iter().take(SUGGESTED).map(|(_, name)| name).collect())
    }
}
