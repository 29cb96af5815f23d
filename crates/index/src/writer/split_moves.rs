//! Moves by other programs that the watch reports in two batches: first the path where a file is gone and later the one
//! where it is new, or the other way round. A file that moved keeps its content and its time of modification, which a
//! copy or a new note from the same template does not.

use std::collections::HashMap;

use sidenote_base::clock::wall_nanos;
use sidenote_base::error::Result;
use sidenote_catalog::{CatalogReader, Hash, IndexedFile};
use sidenote_markdown::path::NotePath;

use crate::diff::ChangedFile;

/// The most files that are remembered of each kind. A batch with more is none of a watch, and shows whole moves.
const MAX_REMEMBERED: usize = 1000;
/// The time in nanoseconds between the two ends of a move: a new file, and the removal of another one. The watch
/// reports both within a second; a copy whose original is removed later has not moved.
const MAX_APART_NS: i64 = 10_000_000_000;

/// What recent batches removed and added, by which a later one sees the other end of a move.
#[derive(Debug, Default)]
pub(crate) struct SplitMoves {
    removed: Files,
    added: Files,
}

/// A file as it was when it was removed or added. Times are in nanoseconds since 1970.
#[derive(Debug, Clone)]
pub(super) struct SeenFile {
    hash: Hash,
    path: NotePath,
    modified: i64,
    changed: i64,
}

impl SeenFile {
    /// Returns whether this can be the other one at another place. Some file systems and programs keep whole seconds.
    fn is_same(&self, other: &Self) -> bool {
        const SECOND: i64 = 1_000_000_000;
        let is_whole = self.modified % SECOND == 0 || other.modified % SECOND == 0;
        self.path != other.path
            && (self.modified == other.modified
                || is_whole && self.modified.div_euclid(SECOND) == other.modified.div_euclid(SECOND))
    }
}

/// Files by the hash of their content, in the order in which they were seen.
#[derive(Debug, Default)]
struct Files {
    by_hash: HashMap<Hash, Vec<SeenFile>>,
    count: usize,
}

impl Files {
    /// Takes out the only file that `is_wanted`; nothing if there are several.
    fn take(
        &mut self,
        hash: &Hash,
        is_wanted: impl Fn(&SeenFile) -> Result<bool>,
    ) -> Result<Option<SeenFile>> {
        let Some(files) = self.by_hash.get_mut(hash) else { return Ok(None) };
        let mut wanted = Vec::new();
        for (at, file) in files.iter().enumerate() {
            if is_wanted(file)? {
                wanted.push(at);
            }
        }
        let [only] = wanted[..] else { return Ok(None) };
        self.count -= 1;
        Ok(Some(files.remove(only)))
    }

    /// Forgets a file. Those with its content that were there before it are no copies of it, and are forgotten, too.
    fn forget_up_to(&mut self, hash: &Hash, path: &NotePath) {
        if let Some(files) = self.by_hash.get_mut(hash)
            && let Some(at) = files.iter().position(|file| file.path == *path)
        {
            self.count -= at + 1;
            files.drain(..=at);
        }
    }

    fn add(&mut self, files: Vec<SeenFile>) {
        if self.count + files.len() > MAX_REMEMBERED {
            *self = Self::default();
        }
        self.count += files.len();
        for file in files {
            self.by_hash.entry(file.hash).or_default().push(file);
        }
    }
}

impl SplitMoves {
    /// Lists the files that a batch removes, before it does.
    pub(super) fn removed_by_batch(
        catalog: &CatalogReader,
        removed: &[IndexedFile],
    ) -> Result<Vec<SeenFile>> {
        let mut found = Vec::new();
        for file in removed.iter().take(MAX_REMEMBERED) {
            let (modified, changed) = (file.stat.mtime_ns, file.stat.ctime_ns);
            let seen = |hash| SeenFile { hash, path: file.path.clone(), modified, changed };
            found.extend(catalog.hash_of(file.id)?.map(seen));
        }
        Ok(found)
    }

    /// Returns the moves with one end in a batch that was written and the other end in an earlier batch, as pairs of
    /// the old and the new path. If several files may be the other end, there is no move. An end without another one is
    /// remembered.
    pub(super) fn complete(
        &mut self,
        catalog: &CatalogReader,
        changed: &[ChangedFile],
        removed: Vec<SeenFile>,
    ) -> Result<Vec<(NotePath, NotePath)>> {
        let mut moves = Vec::new();
        let mut added = Vec::new();
        let remembers_added = changed.len() <= MAX_REMEMBERED;
        let looked_up = if remembers_added || self.removed.count > 0 { changed } else { &[] };
        for file in looked_up.iter().filter(|file| file.is_new) {
            let (path, stat) = (file.stat.path.clone(), &file.stat);
            let Some(hash) = hash_at(catalog, &path)? else { continue };
            let new = SeenFile { hash, path, modified: stat.mtime_ns, changed: stat.ctime_ns };
            match self.removed.take(&hash, |old| Ok(old.is_same(&new)))? {
                Some(old) => moves.push((old.path, new.path)),
                None if remembers_added => added.push(new),
                None => {}
            }
        }
        let mut unpaired = Vec::new();
        let now = wall_nanos();
        for old in removed {
            self.added.forget_up_to(&old.hash, &old.path);
            let is_other_end = |new: &SeenFile| {
                // A new file may have been edited since, moved on, or removed.
                let is_recent = now.saturating_sub(new.changed) <= MAX_APART_NS;
                Ok(is_recent && new.is_same(&old) && hash_at(catalog, &new.path)? == Some(old.hash))
            };
            match self.added.take(&old.hash, is_other_end)? {
                Some(new) => moves.push((old.path, new.path)),
                None => unpaired.push(old),
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
