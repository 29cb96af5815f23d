//! The files in the trash of the vault: which they are, who deleted them and when, their texts, and which of them a query
//! matches.

use std::io;
use std::sync::{Arc, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::safe_open;
use sidenote_links::rewrite::parse;
use sidenote_markdown::decode::decode;
use sidenote_markdown::frontmatter::Frontmatter;
use sidenote_markdown::note_names::title_of;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::deletions::{Deletion, KnownDeletions};
use sidenote_open_vault::source::body_of;
use sidenote_search::metadata_filter::MetadataFilter;
use sidenote_search::predicate::{Content, Evaluator, FileData};
use sidenote_search::query::Query;

use crate::Views;
use crate::activity::agent_of;

/// The folder of the trash.
const TRASH: &str = ".trash/";

/// A file in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrashedFile {
    /// Its path in the trash, as `restore` takes it.
    pub path: String,
    /// The path that it had.
    pub was: String,
    /// Its title.
    pub title: String,
    /// When it was deleted.
    pub at: Timestamp,
    /// Who deleted it: the client, or `cli` for a person.
    pub agent: String,
    /// The id of the operation.
    pub operation: String,
}

/// The text of a file in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrashedText {
    /// Its path in the trash.
    pub path: String,
    /// Its text without properties; none for a file that is not text.
    pub text: Option<String>,
}

/// The deleted files that a query matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrashMatches {
    /// The number of files.
    pub total: usize,
    /// The first of them, the last deleted one first.
    pub files: Vec<TrashedFile>,
}

/// A file in the trash, as a condition is evaluated on it. What only the index knows of a note, such as its links and uses,
/// is not known of it.
struct TrashedNote<'a> {
    path: &'a NotePath,
    properties: Map<String, Value>,
    tags: Vec<String>,
    content: Content,
}

impl FileData for TrashedNote<'_> {
    fn path(&self) -> &NotePath {
        self.path
    }

    fn properties(&self) -> Result<&Map<String, Value>> {
        Ok(&self.properties)
    }

    fn tags(&self) -> Result<&[String]> {
        Ok(&self.tags)
    }

    fn content(&self) -> Option<&Content> {
        Some(&self.content)
    }

    fn matches_filter(&self, _: &MetadataFilter) -> Result<bool> {
        Ok(false)
    }
}

impl<'a> TrashedNote<'a> {
    fn new(path: &'a NotePath, bytes: &[u8]) -> Self {
        let note = parse(path, &decode(bytes).text);
        let flat = note.frontmatter.iter().flat_map(Frontmatter::flat);
        Self {
            path,
            properties: flat.map(|(name, value)| (name, value.clone())).collect(),
            tags: note.tags.iter().map(|tag| tag.name.clone()).collect(),
            content: Content::new(path, bytes),
        }
    }
}

/// Describes a file. A note has the title that its text gives, if that is known, or else its name.
fn described(deletion: &Deletion, text: Option<&[u8]>) -> TrashedFile {
    let Deletion { at, agent, operation, place, was } = deletion.clone();
    let title = text
        .filter(|_| was.is_note())
        .map_or_else(|| was.stem().to_owned(), |bytes| title_of(&was, &parse(&was, &decode(bytes).text)));
    TrashedFile { path: place, was: was.as_str().to_owned(), title, at, agent, operation }
}

impl Views<'_> {
    /// Lists the files that were moved to the trash and are there, the last one first.
    pub(super) fn trash(&self) -> Result<Vec<TrashedFile>> {
        let trashed = |deletion: &Deletion| {
            let bytes = deletion.was.is_note().then(|| self.read_trash(&deletion.place).ok()).flatten();
            described(deletion, bytes.as_deref())
        };
        Ok(self.deletions()?.iter().map(trashed).collect())
    }

    /// Finds the files in the trash that meet a query, of which every word must occur, at most `limit` of them.
    ///
    /// # Errors
    /// `Invalid` if the query is malformed; `Io` if the journal or the trash cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn trash_matches(&self, query: &str, limit: usize) -> Result<TrashMatches> {
        let mut matches = TrashMatches { total: 0, files: Vec::new() };
        let Some(condition) = Query::filter_at(query, self.core.clock.now())?.condition else {
            return Ok(matches);
        };
        for deletion in self.deletions()?.iter() {
            self.core.check_cancelled()?;
            // Only notes and canvases have a text. One that is removed from the trash meanwhile does not match.
            let has_text = deletion.was.is_note() || deletion.was.is_canvas();
            let bytes = if has_text { self.read_trash(&deletion.place) } else { Ok(Vec::new()) };
            let Ok(bytes) = bytes else { continue };
            if Evaluator::new(&TrashedNote::new(&deletion.was, &bytes)).matches(&condition)? {
                matches.total += 1;
                if matches.files.len() < limit {
                    matches.files.push(described(deletion, Some(&bytes)));
                }
            }
        }
        Ok(matches)
    }

    /// Lists where the files in the trash come from, the last deleted one first.
    pub(super) fn deletions(&self) -> Result<Arc<[Deletion]>> {
        let mut known = self.core.state.deletions.lock().unwrap_or_else(PoisonError::into_inner);
        KnownDeletions::refreshed(&mut known, &self.core.vault, &self.core.journal(), agent_of)
    }

    fn read_trash(&self, path: &str) -> Result<Vec<u8>> {
        let vault = &self.core.vault;
        let inner = path.strip_prefix(TRASH).and_then(NotePath::from_disk);
        let opened =
            inner.ok_or_else(|| io::ErrorKind::NotFound.into()).and_then(|inner| vault.open_trashed(&inner));
        opened
            .and_then(|file| safe_open::read_open(file, vault.max_file_size()))
            .map_err(|error| Error::io("read", vault.root().join(path), error))
    }

    /// Returns the text of a file in the trash, given by its path there.
    ///
    /// # Errors
    /// `Invalid` if the path is none of the trash; `NotFound` if there is no such file; `Io` if it cannot be read.
    pub fn trashed_text(&self, path: &str) -> Result<TrashedText> {
        let inner = path.strip_prefix(TRASH).ok_or_else(|| {
            Error::invalid(format!("{path:?} is not in the trash"))
                .with_hint("give the path as the list of deleted notes shows it")
        })?;
        let named = NotePath::parse(inner)?;
        let bytes = self.read_trash(&format!("{TRASH}{named}")).map_err(|error| {
            let is_gone = self.core.vault.open_trashed(&named).is_err();
            let gone = || Error::new(ErrorKind::NotFound, format!("the trash has no file {path:?}"));
            if is_gone { gone() } else { error }
        })?;
        let is_text = named.is_note() || named.is_canvas();
        Ok(TrashedText { path: path.to_owned(), text: is_text.then(|| body_of(&bytes)) })
    }
}
