//! Finds notes by path, id, title, alias or link, even if the index is behind the files.
//!
//! A reply about a change is made from the files on disk, never from the index.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_base::wording::Wording;
use sidenote_catalog::{FileKind, FileRow, Filter, Hash, path_id};
use sidenote_index::Drift;
use sidenote_markdown::path::{NotePath, key, typed_folder};
use sidenote_vault::apply_result::Applied;
use sidenote_vault::authority::authority_of;

use crate::Core;
use crate::source::Source;
use crate::unindexed::UnindexedFiles;

impl Lookup<'_> {
    /// Returns the name in a wikilink, without alias and heading; other names as they are.
    pub fn bare_name(name: &str) -> &str {
        let inner = link_body(name).map(|body| body.split(['|', '#']).next().unwrap_or(body).trim());
        inner.unwrap_or(name.trim()).trim_start_matches("./")
    }

    /// Finds the note with a path, id, title, alias or file name, or the target of a `[[wikilink]]`.
    ///
    /// # Errors
    /// `NotFound`, with similar names, if no note has the name; `Exists`, with their paths, if several notes have it; `Io` if
    /// the vault has to be compared with the index and cannot be listed.
    pub fn find(&self, name: &str) -> Result<FileRow> {
        // A title can have the signs with which the parts of a link begin.
        if let Some(body) = link_body(name).filter(|body| body.contains(['#', '|'])) {
            match self.find_plain(body, false) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                found => return found,
            }
        }
        self.find_plain(name, false)
    }

    /// Finds the note that a name means, and the part of it that the name ends with, as in `Note#Heading`. A title may have
    /// a `#`, so the longest name that a note has counts.
    ///
    /// # Errors
    /// As [`Lookup::find`].
    pub fn find_with_part<'n>(&self, name: &'n str) -> Result<(FileRow, Option<NamedPart<'n>>)> {
        let (body, is_link) = match link_body(name) {
            Some(body) => (body, true),
            None => (name.trim(), false),
        };
        // A path from a listing is taken as it is: it can have brackets, signs and spaces at its ends.
        for path in [name, body] {
            if let Some(row) = self.row_at(path)? {
                return Ok((row, None));
            }
        }
        let undisplayed = body.split('|').next().filter(|_| is_link);
        let mut last = None;
        for text in [Some(body), undisplayed].into_iter().flatten() {
            // What a link shows is not a part of the note.
            let is_part = |at: &usize| *at > 0 && !(is_link && text.get(*at..).unwrap_or("").contains('|'));
            let ends = text.rmatch_indices('#').map(|(at, _)| at).filter(is_part);
            for end in std::iter::once(text.len()).chain(ends) {
                let (note, part) = text.split_at_checked(end).unwrap_or((text, ""));
                match self.find_plain(note.trim(), true) {
                    Ok(row) => {
                        let part = (!part.is_empty()).then_some(NamedPart { text: part, is_link });
                        return Ok((row, part));
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => last = Some(error),
                    Err(error) => return Err(error),
                }
            }
        }
        Err(last.unwrap_or_else(|| not_found(name, &[])))
    }

    /// Finds a note like [`Lookup::find`]. With `is_whole`, what follows a `#` is part of the name, and not of the note.
    fn find_plain(&self, name: &str, is_whole: bool) -> Result<FileRow> {
        let found = self.find_known(name, is_whole);
        // What is known of the files is as old as the large batch that is being indexed.
        let is_current = self.core.index.follower().large_batch().is_none()
            || found.as_ref().is_ok_and(|row| self.still_has_name(row, name));
        if is_current {
            return found;
        }
        self.compare_again()?;
        self.find_known(name, is_whole)
    }

    /// Returns whether the file of a row is on the disk and has a name. Of a name in another form, such as the end of a path, it
    /// says no.
    fn still_has_name(&self, row: &FileRow, name: &str) -> bool {
        let wanted = Self::bare_name(name);
        let settings = self.core.vault.settings();
        let path = row.path.as_str();
        let stem = path.strip_suffix(".md");
        if path == name || path == wanted || stem == Some(name) || stem == Some(wanted) {
            return self.core.index.row_on_disk(&row.path, &settings).is_ok_and(|row| row.is_some());
        }
        let bytes = self.core.read_bytes(&row.path);
        bytes.is_ok_and(|bytes| Source::unplaced(row.path.clone(), &bytes).answers(&key(wanted)))
    }

    /// Finds a note like [`Lookup::find`] in the index, and in the files that were last known to differ from it.
    fn find_known(&self, name: &str, is_whole: bool) -> Result<FileRow> {
        let wanted = Self::bare_name(name);
        // A path from a listing is taken as it is: file names can begin and end with spaces and brackets.
        let names = (name != wanted).then_some(name).into_iter().chain([wanted]);
        for path in names.flat_map(|name| [name.to_owned(), format!("{name}.md")]) {
            if let Some(row) = self.row_at(&path)? {
                self.remember_resolved(&row);
                return Ok(row);
            }
        }
        // A folder that is a symbolic link to another one means that one.
        let mut refused = None;
        for path in [wanted.to_owned(), format!("{wanted}.md")] {
            let Some(given) = NotePath::parse(&path).ok().filter(|path| !path.folder().is_empty()) else {
                continue;
            };
            match self.core.vault.canonical_path(&given) {
                Ok(settled) if settled == given => {}
                Ok(settled) => {
                    if let Some(row) = self.row_at(settled.as_str())? {
                        self.remember_resolved(&row);
                        return Ok(row);
                    }
                }
                Err(error) => refused = Some(error),
            }
        }
        let catalog = self.core.index.catalog();
        let mut rows = catalog.names().best_matches(wanted)?;
        if rows.is_empty() && !(is_whole && wanted.contains('#')) {
            rows = catalog.names().resolve_link(wanted)?;
        }
        drop(catalog);
        let folded = key(wanted);
        let mut rows = self.with_unindexed(rows, |source| source.answers(&folded))?;
        match rows.len() {
            1 => {
                let row = rows.pop().ok_or_else(|| Error::internal("a row is missing"))?;
                self.remember_resolved(&row);
                Ok(row)
            }
            0 => match refused {
                Some(refused) => Err(refused),
                None => Err(not_found(name, &self.similar_names(wanted)?)),
            },
            _ => {
                let paths: Vec<&str> = rows.iter().take(8).map(|row| row.path.as_str()).collect();
                Err(Error::new(ErrorKind::Exists, format!("{name:?} names {} notes", rows.len()))
                    .with_hint(format!("give one path: {}", paths.join(", "))))
            }
        }
    }

    /// Gives the folder of a filter the form of the paths of its notes: as [`typed_folder`] normalizes it, in the case of the
    /// only folder that differs in case alone, and without symbolic links.
    ///
    /// # Errors
    /// `Invalid` if a symbolic link on the way must not be followed; `Io` if the folder cannot be read.
    pub fn with_canonical_folder(&self, filter: &Filter) -> Result<Filter> {
        let mut filter = filter.clone();
        // A folder that another program made can have a backslash in its name.
        let is_there = |folder: &str| {
            NotePath::from_disk(folder).is_some_and(|folder| self.core.vault.has_folder(folder.as_str()))
        };
        let typed = |folder: &str| if is_there(folder) { folder.to_owned() } else { typed_folder(folder) };
        let typed = filter.folder.as_deref().map(typed);
        filter.folder = typed.filter(|folder| !folder.is_empty());
        if let Some(folder) = &filter.folder
            && let Some(inside) = NotePath::from_disk(&format!("{folder}/x"))
        {
            let canonical = self.core.vault.canonical_path(&inside)?.folder().to_owned();
            filter.folder = Some(self.spelled_folder(canonical)?);
        }
        Ok(filter)
    }

    /// Returns the only folder of notes that differs from a folder in case alone, or the folder itself.
    fn spelled_folder(&self, folder: String) -> Result<String> {
        let here = NotePath::from_disk(&folder);
        if here.is_none_or(|here| self.core.vault.has_folder(here.as_str())) {
            return Ok(folder);
        }
        let wanted = key(&folder);
        let depth = folder.split('/').count();
        let paths = self.core.index.catalog().paths().all()?;
        let beginnings = paths.iter().filter_map(|(path, _)| {
            let end = path.as_str().match_indices('/').nth(depth - 1)?.0;
            path.as_str().get(..end)
        });
        let spelled: BTreeSet<&str> = beginnings.filter(|known| key(known) == wanted).collect();
        Ok(match spelled.first() {
            Some(only) if spelled.len() == 1 => (*only).to_owned(),
            _ => folder,
        })
    }

    /// Stores the difference between the files and the index, and returns it. `None` means that they agree.
    pub(super) fn set_unindexed(&self, drift: Option<&Drift>) -> Arc<UnindexedFiles> {
        let mut unindexed = self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner);
        match drift.filter(|drift| !drift.is_empty()) {
            Some(drift) => *unindexed = Arc::new(UnindexedFiles::of(drift)),
            None if unindexed.is_empty() => {}
            None => *unindexed = Arc::default(),
        }
        Arc::clone(&unindexed)
    }

    /// Returns the files that this call has found newer than the index.
    pub fn unindexed_files(&self) -> Arc<UnindexedFiles> {
        Arc::clone(&self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the files of an operation: each with its hash, or `None` if it was removed.
    pub fn add_unindexed(&self, files: &[(NotePath, Option<Hash>)]) {
        let mut unindexed = self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut more = UnindexedFiles { there: unindexed.there.clone(), gone: unindexed.gone.clone() };
        for (path, hash) in files {
            let (to, from) = match hash {
                Some(_) => (&mut more.there, &mut more.gone),
                None => (&mut more.gone, &mut more.there),
            };
            from.remove(path);
            to.insert(path.clone());
        }
        *unindexed = Arc::new(more);
    }

    /// Looks which files differ from the index, and stores that.
    pub(super) fn compare_again(&self) -> Result<()> {
        let before = self.unindexed_files();
        let drift = self.core.index.drift(&self.core.vault)?;
        self.set_unindexed_since(&before, &drift);
        Ok(())
    }

    /// Stores the difference between the files and the index that a scan found, and the files of operations that were made
    /// since: what is known now, and was not `before` the scan.
    fn set_unindexed_since(&self, before: &UnindexedFiles, drift: &Drift) {
        let mut unindexed = self.core.state.unindexed_files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = UnindexedFiles::of(drift);
        for path in unindexed.there.difference(&before.there) {
            all.gone.remove(path);
            all.there.insert(path.clone());
        }
        for path in unindexed.gone.difference(&before.gone) {
            all.there.remove(path);
            all.gone.insert(path.clone());
        }
        *unindexed = Arc::new(all);
    }

    /// Stores the number of files that the index is behind.
    pub(super) fn set_behind(&self, files: usize) {
        self.core.call.behind.store(files, Ordering::Relaxed);
    }

    /// Returns the number of files that the index was behind at the last check of this call.
    pub fn behind(&self) -> usize {
        self.core.call.behind.load(Ordering::Relaxed)
    }

    /// Returns whether another process writes the index.
    pub fn is_index_written_elsewhere(&self) -> bool {
        self.core.index.holder().is_some()
    }

    /// Returns whether the vault is a copy that could not be compared with the database of its team at the last check.
    pub fn is_cut_off(&self) -> bool {
        authority_of(&self.core.vault).is_cut_off()
    }

    /// Returns the row of the file at a path: from the index, or from the disk if the index is behind.
    pub fn row_at(&self, path: &str) -> Result<Option<FileRow>> {
        let unindexed = self.unindexed_files();
        match NotePath::from_disk(path).filter(|path| unindexed.covers(path)) {
            Some(path) => self.core.index.row_on_disk(&path, &self.core.vault.settings()),
            None => self.core.index.catalog().row_at(path),
        }
    }

    /// Replaces the rows of files that differ from the index by those of matching files on disk.
    pub fn with_unindexed(
        &self,
        mut rows: Vec<FileRow>,
        answers: impl Fn(&Source) -> bool + Sync,
    ) -> Result<Vec<FileRow>> {
        let unindexed = self.unindexed_files();
        if unindexed.is_empty() {
            return Ok(rows);
        }
        rows.retain(|row| !unindexed.covers(&row.path));
        let settings = self.core.vault.settings();
        for path in self.unindexed_where(&answers)? {
            rows.extend(self.core.index.row_on_disk(&path, &settings)?);
        }
        rows.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(rows)
    }

    /// Lists the notes that differ from the index and match. Notes that cannot be read do not match.
    fn unindexed_where(&self, answers: &(impl Fn(&Source) -> bool + Sync)) -> Result<Vec<NotePath>> {
        let unindexed = self.unindexed_files();
        let paths: Vec<&NotePath> = unindexed.notes().collect();
        let read = |(): &mut (), path: &&NotePath| match self.core.vault.read(path) {
            Ok(bytes) => Ok(answers(&Source::unplaced((*path).clone(), &bytes)).then(|| (*path).clone())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Ok(None),
            Err(error) => Err(error),
        };
        parallel::map(&paths, 16, || (), read).into_iter().filter_map(Result::transpose).collect()
    }

    /// Finds the notes with an id, even if the index is behind.
    pub fn rows_with_id(&self, id: &str) -> Result<Vec<FileRow>> {
        let wanted = key(id);
        let rows = self.core.index.catalog().names().with_id(id)?;
        self.with_unindexed(rows, |source| key(&source.id()) == wanted)
    }

    /// Remembers to which note a name was resolved, for later uses of its path in this call.
    pub fn remember_resolved(&self, row: &FileRow) {
        let mut resolved = self.core.call.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        resolved.insert(row.path.clone(), row.note_id.clone());
    }

    /// Returns the current path of a note that this call found at a path, if it was moved since.
    pub(super) fn current_path_of(&self, path: &str) -> Result<Option<NotePath>> {
        let Some(path) = NotePath::from_disk(path) else { return Ok(None) };
        let resolved = self.core.call.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = resolved.get(&path).cloned() else { return Ok(None) };
        drop(resolved);
        if id != path_id(&path)
            && let [row] = self.rows_with_id(&id)?.as_slice()
        {
            return Ok(Some(row.path.clone()));
        }
        self.core.journal().current_path(&path)
    }

    /// Reads the rows of the notes that an operation left, while the write lock is held.
    pub fn rows_of(&self, applied: &Applied) -> Vec<FileRow> {
        let is_small = applied.files.len() <= TOUCHED;
        let files = applied.files.iter().filter(|file| is_small || file.from.is_none());
        let paths = files.filter_map(|file| file.to.as_ref()?.in_vault());
        let settings = self.core.vault.settings();
        let look = |path: &NotePath| match self.core.index.row_on_disk(path, &settings) {
            Ok(row) => row,
            Err(error) => {
                tracing::debug!("{path} cannot be read after the change: {error}");
                None
            }
        };
        paths.filter(|path| FileKind::of(path) == FileKind::Note).take(MADE).filter_map(look).collect()
    }

    /// Reads the note of a row that this call found. A note that was moved since is read at its new path.
    pub fn bytes_of(&self, row: &FileRow) -> Result<Vec<u8>> {
        match self.core.read_bytes(&row.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.current_path_of(row.path.as_str())? {
                    Some(path) => self.core.read_bytes(&path),
                    None => Err(error),
                }
            }
            read => read,
        }
    }
}

/// The part of a note that a name ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPart<'n> {
    /// The part, with the sign before it.
    pub text: &'n str,
    /// Whether the name is a link, which means the first part with a name.
    pub is_link: bool,
}

/// Returns what is between the brackets of a wikilink or embed.
fn link_body(name: &str) -> Option<&str> {
    let link = name.trim();
    let body = link.strip_prefix("![[").or_else(|| link.strip_prefix("[["))?;
    body.strip_suffix("]]")
}

/// The largest number of names that are suggested for an unknown one.
pub(crate) const SUGGESTED: usize = 5;

/// The largest number of created notes whose rows are read after an operation.
const MADE: usize = 100;

/// The largest number of changed notes whose rows are read after an operation. If it changed more, none is read.
const TOUCHED: usize = 4;

/// Finds notes by their names and reads them, even if the index is behind the files.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Lookup<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}

pub(crate) fn not_found(name: &str, similar: &[String]) -> Error {
    let error = Error::not_found(format!("no note is named {name:?}"));
    if similar.is_empty() {
        error.with_hint(
            Wording::new(
                "a note is named by its path, id, title, alias or file name; `sidenote list` shows them",
                "a note is named by its path, id, title, alias or file name",
            )
            .with_tool("list_notes", "list_notes shows them"),
        )
    } else {
        error.with_hint(format!("did you mean {}?", similar.join(", ")))
    }
}
