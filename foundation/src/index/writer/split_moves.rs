//! Moves by other programs of which the watch tells in two batches: first where a file is gone and later where it is new,
//! or the other way round. The content shows that it is the same file.

use std::collections::HashMap;

use crate::error::Result;
use crate::index::catalog::{CatalogReader, Hash, IndexedFile};
use crate::index::diff::ChangedFile;
use crate::text::path::NotePath;

/// The most files that are remembered of each kind. A batch with more is none of a watch, and shows whole moves.
const MAX_REMEMBERED: usize = 1000;

/// What recent batches removed and added, by which a later one sees the other end of a move.
#[derive(Debug, Default)]
pub(crate) struct SplitMoves {
    removed: Contents,
    added: Contents,
}

/// The hashes of files, each with the paths of those that had the content, the earliest first.
#[derive(Debug, Default)]
struct Contents {
    paths: HashMap<Hash, Vec<NotePath>>,
    count: usize,
}

impl Contents {
    /// Takes out the files with a content.
    fn take(&mut self, hash: &Hash) -> Vec<NotePath> {
        let taken = self.paths.remove(hash).unwrap_or_default();
        self.count -= taken.len();
        taken
    }

    fn add(&mut self, files: Vec<(Hash, NotePath)>) {
        if self.count + files.len() > MAX_REMEMBERED {
            *self = Self::default();
        }
        self.count += files.len();
        for (hash, path) in files {
            self.paths.entry(hash).or_default().push(path);
        }
    }
}

impl SplitMoves {
    /// Lists the hashes of the files that a batch removes, before it does.
    pub(super) fn removed_by_batch(
        catalog: &CatalogReader,
        removed: &[IndexedFile],
    ) -> Result<Vec<(Hash, NotePath)>> {
        let mut found = Vec::new();
        for file in removed.iter().take(MAX_REMEMBERED) {
            found.extend(catalog.hash_of(file.id)?.map(|hash| (hash, file.path.clone())));
        }
        Ok(found)
    }

    /// Returns the moves of which a batch that was written shows one end and an earlier batch the other, as pairs of the old
    /// and the new path. Where several files may be the other end, none is. What has no other end yet is remembered.
    pub(super) fn complete(
        &mut self,
        catalog: &CatalogReader,
        changed: &[ChangedFile],
        removed: Vec<(Hash, NotePath)>,
    ) -> Result<Vec<(NotePath, NotePath)>> {
        let mut moves = Vec::new();
        let mut added = Vec::new();
        let remembers_added = changed.len() <= MAX_REMEMBERED;
        let looked_up = if remembers_added || self.removed.count > 0 { changed } else { &[] };
        for file in looked_up.iter().filter(|file| file.is_new) {
            let place = &file.stat.path;
            let Some(hash) = hash_at(catalog, place)? else { continue };
            match &self.removed.take(&hash)[..] {
                [from] if from != place => moves.push((from.clone(), place.clone())),
                _ if remembers_added => added.push((hash, place.clone())),
                _ => {}
            }
        }
        let mut unpaired = Vec::new();
        for (hash, from) in removed {
            let mut later = self.added.take(&hash);
            if let Some(at) = later.iter().position(|place| *place == from) {
                // A file that was there before another one is no copy of it.
                let earlier = later.drain(..=at).filter(|place| *place != from);
                self.added.add(earlier.map(|place| (hash, place)).collect());
            }
            let mut there = Vec::new();
            for place in later {
                // A new file may have been edited since, moved on, or removed.
                if hash_at(catalog, &place)? == Some(hash) {
                    there.push(place);
                }
            }
            match <[NotePath; 1]>::try_from(there) {
                Ok([place]) => moves.push((from, place)),
                Err(_) => unpaired.push((hash, from)),
            }
        }
        self.added.add(added);
        self.removed.add(unpaired);
        Ok(moves)
    }
}

fn hash_at(catalog: &CatalogReader, path: &NotePath) -> Result<Option<Hash>> {
    Ok(catalog.row_at(path.as_str())?.and_then(|row| row.hash))
}
