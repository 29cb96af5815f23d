//! Finds unresolved conflicts of a synchronisation or a merge: conflict copies, and notes with conflict markers of git
//! (docs/spec/git.md 4).

use std::collections::HashMap;

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_catalog::{FileKind, FileRow, Filter, Kinds};
use sidenote_links::conflict_copy::{ConflictName, SyncProgram, conflict_names};
use sidenote_links::merge::first_conflict;
use sidenote_markdown::decode::decode;
use sidenote_markdown::line::Lines;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::sync::IndexSync;

use crate::Upkeep;
use crate::compared_text::ComparedText;

/// A file that a synchronisation program made of a note that two devices changed.
#[derive(Debug, Clone, Serialize)]
pub struct ConflictCopy {
    /// The path of the copy.
    pub copy: NotePath,
    /// The path of the note that it is a copy of.
    pub note: NotePath,
    /// Whether the note is there.
    pub exists: bool,
    /// The program that made the copy.
    pub program: SyncProgram,
}

/// A note with conflict markers of git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkedNote {
    /// The path of the note.
    pub path: NotePath,
    /// The line of the first marker, counted from 1.
    pub line: usize,
}

/// What is undecided in a vault.
#[derive(Debug, Clone, Serialize)]
pub struct ConflictsReply {
    /// The conflict copies, by path.
    pub copies: Vec<ConflictCopy>,
    /// The notes with conflict markers, by path.
    pub marked: Vec<MarkedNote>,
}

impl ConflictCopy {
    /// Returns a sentence about the copy for a person.
    pub(crate) fn describe(&self) -> String {
        let Self { note, program, .. } = self;
        let state = if self.exists { "" } else { ", which is not there" };
        format!("{program} made this copy of {note}{state}, because two devices changed it")
    }
}

/// The search for conflict copies among the files of a vault. `F` gives what a file is compared by; a file that cannot be read
/// is not evidence.
pub(crate) struct ConflictCopies<'a, F> {
    paths: HashMap<String, &'a NotePath>,
    compared: F,
}

impl<'a, F: Fn(&NotePath) -> Option<ComparedText> + Sync> ConflictCopies<'a, F> {
    /// Prepares a search among these notes and canvases.
    pub(crate) fn of(files: impl IntoIterator<Item = &'a NotePath>, compared: F) -> Self {
        Self { paths: files.into_iter().map(|path| (key(path.as_str()), path)).collect(), compared }
    }

    /// Finds the conflict copies, by path.
    pub(crate) fn find(&self) -> Vec<ConflictCopy> {
        let paths: Vec<&NotePath> = self.paths.values().copied().collect();
        let found = parallel::map(&paths, 16, || (), |(), path| self.copy_at(path));
        let mut copies: Vec<ConflictCopy> = found.into_iter().flatten().collect();
        copies.sort_by(|one, other| one.copy.cmp(&other.copy));
        copies
    }

    /// Returns what a file is a copy of, if it is one.
    pub(crate) fn copy_at(&self, path: &NotePath) -> Option<ConflictCopy> {
        let are_alike =
            |one: &NotePath, other: &NotePath| match ((self.compared)(one), (self.compared)(other)) {
                (Some(one), Some(other)) => one.is_alike(&other),
                _ => false,
            };
        let found = conflict_names(path).into_iter().find_map(|ConflictName { program, original }| {
            let note = self.paths.get(&key(original.as_str())).copied();
            match note {
                Some(note) if !program.needs_evidence() || are_alike(path, note) => {
                    Some((note.clone(), true, program))
                }
                None if !program.needs_evidence() => Some((original, false, program)),
                _ => None,
            }
        });
        found.map(|(note, exists, program)| ConflictCopy { copy: path.clone(), note, exists, program })
    }
}

impl Upkeep<'_> {
    /// Lists the conflict copies of a vault, and its notes with conflict markers of git.
    ///
    /// # Errors
    /// `Io` if the vault cannot be listed.
    pub fn conflicts(&self) -> Result<ConflictsReply> {
        IndexSync::of(self.core).refresh()?;
        let rows = self
            .core
            .index
            .catalog()
            .select(&Filter { kinds: Kinds::NotesAndCanvases, ..Filter::default() })?;
        let paths = rows.iter().map(|row| &row.path);
        let copies = ConflictCopies::of(paths, |path| ComparedText::read(&self.core.vault, path)).find();
        let mark = |row: &FileRow| {
            // A note that cannot be read has no markers; `check` reports it.
            let bytes = self.core.vault.read(&row.path).ok()?;
            let decoded = decode(&bytes);
            let line = Lines::new(&decoded.text).of(first_conflict(&decoded.text)?.start);
            Some(MarkedNote { path: row.path.clone(), line })
        };
        let notes: Vec<&FileRow> = rows.iter().filter(|row| row.kind == FileKind::Note).collect();
        let marked = parallel::map(&notes, 16, || (), |(), row: &&FileRow| mark(row));
        let mut marked: Vec<MarkedNote> = marked.into_iter().flatten().collect();
        marked.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(ConflictsReply { copies, marked })
    }
}
