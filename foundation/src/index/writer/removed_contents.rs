//! The contents of removed files, by which a later batch sees where another program moved one. The watch can tell of the
//! two ends of a move apart from each other.

use std::collections::HashMap;

use crate::error::Result;
use crate::index::catalog::{CatalogReader, Hash, IndexedFile};
use crate::index::diff::ChangedFile;
use crate::text::path::NotePath;

/// The most removed files that are remembered.
const MAX_REMEMBERED: usize = 1000;

/// The hashes of removed files, each with its last path. It is `None` where several files had the content.
#[derive(Debug, Default)]
pub(crate) struct RemovedContents {
    paths: HashMap<Hash, Option<NotePath>>,
}

impl RemovedContents {
    /// Lists the hashes of the files that a batch removes, before it does.
    pub(super) fn of_batch(
        catalog: &CatalogReader,
        removed: &[IndexedFile],
    ) -> Result<Vec<(Hash, NotePath)>> {
        let mut found = Vec::new();
        for file in removed.iter().take(MAX_REMEMBERED) {
            found.extend(catalog.hash_of(file.id)?.map(|hash| (hash, file.path.clone())));
        }
        Ok(found)
    }

    /// Returns where removed files went: a new file of this batch has the content of one that an earlier batch removed.
    pub(super) fn moves(
        &mut self,
        catalog: &CatalogReader,
        changed: &[ChangedFile],
    ) -> Result<Vec<(NotePath, NotePath)>> {
        let mut moves = Vec::new();
        if self.paths.is_empty() {
            return Ok(moves);
        }
        for file in changed.iter().filter(|file| file.is_new) {
            let hash = catalog.row_at(file.stat.path.as_str())?.and_then(|row| row.hash);
            let from = hash.and_then(|hash| self.paths.remove(&hash)).flatten();
            moves.extend(
                from.filter(|from| *from != file.stat.path).map(|from| (from, file.stat.path.clone())),
            );
        }
        Ok(moves)
    }

    /// Remembers the files that a batch removed.
    pub(super) fn add(&mut self, removed: Vec<(Hash, NotePath)>) {
        if self.paths.len() + removed.len() > MAX_REMEMBERED {
            self.paths.clear();
        }
        for (hash, path) in removed {
            self.paths.entry(hash).and_modify(|known| *known = None).or_insert(Some(path));
        }
    }
}
