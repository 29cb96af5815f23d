//! What a plan is made from: the vault as it is on disk this moment, found through the catalog.
//!
//! Where another process keeps the index, what it has not seen yet is laid over the catalog, so that a backlink typed
//! a second ago counts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::index::Drift;
use crate::index::catalog::{Catalog, FileKind, path_id};
use crate::parallel;
use crate::text::decode::decode;
use crate::text::edit::{ContentHash, Remark};
use crate::text::frontmatter;
use crate::text::note::Note;
use crate::text::path::{NotePath, key};
use crate::text::resolve::{FileNames, name_keys};
use crate::text::rewrite::parse;

/// Of very many files so many are looked at between two looks whether the call was cancelled.
pub(super) const GROUP: usize = 256;

/// A note or canvas as it is on disk.
pub(super) struct Source {
    pub(super) path: NotePath,
    pub(super) text: String,
    pub(super) note: Note,
    pub(super) hash: ContentHash,
    /// Whether every byte of it is understood; where not, nothing in it is rewritten.
    pub(super) is_utf8: bool,
    /// Whether a symbolic link leads to it; nothing is written through one.
    is_linked: bool,
}

impl Source {
    fn new(path: NotePath, bytes: &[u8], is_linked: bool) -> Self {
        let decoded = decode(bytes);
        let is_utf8 = decoded.problem.is_none();
        let text = decoded.text.into_owned();
        Self { note: parse(&path, &text), hash: ContentHash::of(bytes), path, text, is_utf8, is_linked }
    }

    /// Reads a note that lies in no place of the vault.
    pub(super) fn unplaced(path: NotePath, bytes: &[u8]) -> Self {
        Self::new(path, bytes, false)
    }

    /// Says whether the note answers to a name, given as its key: file name, title, alias or id.
    pub(super) fn answers(&self, wanted: &str) -> bool {
        let front = self.note.frontmatter.as_ref();
        let title = front.and_then(|front| front.get("title")).and_then(|title| title.value.as_str());
        let opening = self.note.headings.first().filter(|heading| heading.level == 1);
        let title = title.or(opening.map(|heading| heading.text.as_str()));
        let aliases = front.into_iter().flat_map(|front| front.aliases.iter().map(String::as_str));
        key(&self.id()) == wanted
            || title.into_iter().chain(aliases).chain([self.path.stem()]).any(|name| key(name) == wanted)
    }

    /// Gives the note's id: its own, else the one that its path makes.
    pub(super) fn id(&self) -> String {
        self.own_id().unwrap_or_else(|| path_id(&self.path))
    }

    /// Gives the id that the note says it has.
    pub(super) fn own_id(&self) -> Option<String> {
        let own = self.note.frontmatter.as_ref().and_then(|front| front.get("id"));
        let own = own.and_then(|property| match &property.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        own.filter(|id| !id.is_empty())
    }

    /// Gives the text without its frontmatter, and without white space around it.
    pub(super) fn body(&self) -> &str {
        without_frontmatter(&self.text)
    }

    /// Makes a remark about the byte at `at`, which is in this line.
    pub(super) fn remark(&self, code: &str, line: usize, at: usize, message: String) -> Remark {
        let before = self.text.get(..at).unwrap_or("");
        let column = 1 + at - before.rfind('\n').map_or(0, |end| end + 1).min(at);
        Remark { code: code.to_owned(), path: self.path.clone(), line, column, message }
    }

    /// Says why nothing in the file is rewritten, where that is so.
    pub(super) fn refusal(&self) -> Option<Remark> {
        let (code, message) = if !self.is_utf8 {
            ("invalid-utf8", "the file is not UTF-8, so it was left as it is")
        } else if self.is_linked {
            ("symlink", "a symbolic link leads to the file, so it was left as it is")
        } else {
            return None;
        };
        let (code, message) = (code.to_owned(), message.to_owned());
        Some(Remark { code, path: self.path.clone(), line: 1, column: 1, message })
    }
}

fn without_frontmatter(text: &str) -> &str {
    text.get(frontmatter::read(text).1..).unwrap_or("").trim()
}

/// Gives the text of a note without its frontmatter, and without white space around it.
pub(super) fn body_of(bytes: &[u8]) -> String {
    without_frontmatter(&decode(bytes).text).to_owned()
}

/// The vault as a plan sees it.
pub(super) struct View<'a> {
    store: &'a Store,
    drift: Drift,
    gone: HashSet<NotePath>,
    /// Folders that were asked about, and whether a symbolic link leads to each.
    linked: Mutex<HashMap<String, bool>>,
}

impl<'a> View<'a> {
    /// Looks at the vault: brings the index in line where this process may, else remembers what it lacks.
    pub(super) fn new(store: &'a Store) -> Result<Self> {
        let drift = if store.index.promote()? {
            store.catch_up()?;
            Drift::default()
        } else {
            store.index.drift(&store.vault)?
        };
        store.set_unseen(Some(&drift));
        store.set_behind(drift.len());
        let gone = drift.removed.iter().cloned().collect();
        Ok(Self { store, drift, gone, linked: Mutex::default() })
    }

    fn catalog(&self) -> MutexGuard<'a, Catalog> {
        self.store.index.catalog()
    }

    /// Asks the catalog about each of many names, in groups, between which a cancelled call ends. A search needs the
    /// catalog too, so that very many are asked for in one of our own.
    fn ask_catalog<N, T>(
        &self,
        names: &[N],
        mut ask: impl FnMut(&Catalog, &[N]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        if names.len() <= GROUP {
            return ask(&self.catalog(), names);
        }
        let catalog = self.store.index.second_catalog()?;
        let mut found = Vec::new();
        for group in names.chunks(GROUP) {
            self.store.go_on()?;
            found.extend(ask(&catalog, group)?);
        }
        Ok(found)
    }

    /// Says whether a file is there.
    pub(super) fn holds(&self, path: &NotePath) -> Result<bool> {
        Ok(self.drift.added.contains(path)
            || (!self.gone.contains(path) && self.catalog().row_at(path.as_str())?.is_some()))
    }

    /// Finds a note by any of its names, also where the index does not know it yet. One that this call found at a path,
    /// and that somebody moved since, is followed.
    pub(super) fn find(&self, name: &str) -> Result<NotePath> {
        let found = self.store.find(name).and_then(|row| match self.is_on_disk(&row.path) {
            true => Ok(row.path),
            false => Err(Error::not_found(format!("{} is gone", row.path))),
        });
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound => self.store.followed(name)?.ok_or(error),
            found => found,
        }
    }

    fn is_on_disk(&self, path: &NotePath) -> bool {
        self.store.vault.disk_path(path).symlink_metadata().is_ok()
    }

    /// Says whether a file that the index knows, or lacks, was not removed since.
    pub(super) fn is_there(&self, path: &NotePath) -> bool {
        !self.gone.contains(path)
    }

    /// Lists the files that the index does not hold as they are now.
    pub(super) fn unindexed(&self) -> impl Iterator<Item = NotePath> {
        self.drift.added.iter().chain(&self.drift.changed).cloned()
    }

    /// Lists the files below a folder.
    pub(super) fn below(&self, folder: &NotePath) -> Result<Vec<NotePath>> {
        let prefix = format!("{folder}/");
        let known = self.catalog().paths_below(folder.as_str())?;
        let known = known.into_iter().filter(|path| !self.gone.contains(path));
        let added = self.drift.added.iter().filter(|path| path.as_str().starts_with(&prefix)).cloned();
        Ok(known.chain(added).collect())
    }

    /// Lists the files whose name has one of these keys.
    fn named(&self, keys: &BTreeSet<String>) -> Result<Vec<NotePath>> {
        let wanted: Vec<String> = keys.iter().cloned().collect();
        let known = self.ask_catalog(&wanted, |catalog, names| catalog.paths_named(names))?;
        let known = known.into_iter().map(|(path, _)| path).filter(|path| !self.gone.contains(path));
        let added = self.drift.added.iter().filter(|path| keys.contains(&key(path.name()))).cloned();
        Ok(known.chain(added).collect())
    }

    /// Lists the notes and canvases whose links could be concerned when these files move: those that link to one of
    /// them, and those whose links a new name could capture.
    pub(super) fn concerned(
        &self,
        moved: &[NotePath],
        new_names: &BTreeSet<String>,
    ) -> Result<BTreeSet<NotePath>> {
        let linking = |catalog: &Catalog, moved: &[NotePath]| {
            Ok(catalog.sources_of(moved)?.into_iter().collect::<Vec<_>>())
        };
        let naming = |catalog: &Catalog, names: &[String]| {
            Ok(catalog.links_naming(names)?.into_iter().map(|(_, path, _)| path).collect::<Vec<_>>())
        };
        let new_names: Vec<String> = new_names.iter().cloned().collect();
        let mut sources: BTreeSet<NotePath> = self.ask_catalog(moved, linking)?.into_iter().collect();
        sources.extend(self.ask_catalog(&new_names, naming)?);
        sources.retain(|path| !self.gone.contains(path));
        sources.extend(self.drift.added.iter().chain(&self.drift.changed).cloned());
        sources.extend(moved.iter().cloned());
        sources.retain(|path| FileKind::of(path) != FileKind::Attachment);
        Ok(sources)
    }

    /// Reads one note or canvas.
    pub(super) fn source(&self, path: &NotePath) -> Result<Source> {
        Ok(Source::new(path.clone(), &self.store.read_bytes(path)?, self.is_linked(path)))
    }

    /// Says whether a symbolic link leads to a file.
    fn is_linked(&self, path: &NotePath) -> bool {
        let disk = self.store.vault.disk_path(path);
        let known = |linked: &HashMap<String, bool>| linked.get(path.folder()).copied();
        let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = known(&linked).unwrap_or_else(|| {
            let folder = disk.parent().unwrap_or(&disk);
            // A folder that is reached through a link is one outside of the vault.
            let is_linked =
                !self.store.vault.follows_outside() && folder.canonicalize().is_ok_and(|real| real != folder);
            linked.insert(path.folder().to_owned(), is_linked);
            is_linked
        });
        drop(linked);
        folder || std::fs::symlink_metadata(&disk).is_ok_and(|found| found.is_symlink())
    }

    /// Reads notes and canvases on all cores; those that went away or are too large to be read are left out.
    pub(super) fn sources(&self, paths: impl IntoIterator<Item = NotePath>) -> Result<Vec<Source>> {
        let paths: Vec<NotePath> = paths.into_iter().collect();
        let read = |(): &mut (), path: &NotePath| match self.store.vault.read(path) {
            Ok(bytes) => Ok(Some(Source::new(path.clone(), &bytes, self.is_linked(path)))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {
                tracing::warn!("{error}; its links are left as they are");
                Ok(None)
            }
            Err(error) => Err(error),
        };
        let mut sources = Vec::with_capacity(paths.len());
        for group in paths.chunks(GROUP) {
            let read = parallel::map(group, 16, || (), read).into_iter().filter_map(Result::transpose);
            sources.extend(read.collect::<Result<Vec<_>>>()?);
            self.go_on_after(group.len())?;
        }
        Ok(sources)
    }

    /// Ends the plan of a cancelled call behind a whole group; a plan of less is soon made.
    pub(super) fn go_on_after(&self, group: usize) -> Result<()> {
        if group < GROUP { Ok(()) } else { self.store.go_on() }
    }

    /// Gathers every file that a link of these sources, or a file of these names, could be confused with.
    pub(super) fn names(&self, sources: &[Source], mut keys: BTreeSet<String>) -> Result<Vec<NotePath>> {
        for note in sources.iter().map(|source| &source.note) {
            let mentioned = note.mentions.iter().map(|mention| &mention.link);
            keys.extend(note.links.iter().chain(mentioned).flat_map(|link| name_keys(&link.path)));
        }
        self.named(&keys)
    }
}

/// Makes the table of these files.
pub(super) fn table<'a>(paths: impl Iterator<Item = &'a NotePath>) -> FileNames {
    let mut names = FileNames::default();
    paths.for_each(|path| names.insert(path));
    names
}
