//! The files in the trash of the vault: which they are, who deleted them and when, and their texts.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use crate::source::body_of;
use crate::view::Views;
use crate::view::activity::agent_of;
use sidenote_foundation::clock::Timestamp;
use sidenote_foundation::error::{Error, ErrorKind, Result};
use sidenote_foundation::journal::event::Event;
use sidenote_foundation::journal::reader::ReadOrder;
use sidenote_foundation::safe_open;
use sidenote_foundation::text::decode::decode;
use sidenote_foundation::text::edit::FileLocation;
use sidenote_foundation::text::note_names::title_of;
use sidenote_foundation::text::path::NotePath;
use sidenote_foundation::text::rewrite::parse;

/// The most files of the trash that are listed.
const MOST_TRASH: usize = 1_000;
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
    /// Its text without properties; none for a file that is no text.
    pub text: Option<String>,
}

impl Views<'_> {
    /// Lists the files that were moved to the trash and are there, the last one first.
    pub(super) fn trash(&self) -> Result<Vec<TrashedFile>> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let is_there = |place: &str| safe_open::open(self.core.vault.root(), place).is_ok();
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            for file in &event.files {
                let FileLocation::Trash(former) = file.end() else { continue };
                let place = file.end().to_string();
                if seen.insert(place.clone()) && is_there(&place) {
                    let was = file.path.in_vault().unwrap_or(former);
                    found.push(self.trashed(&event, place, was));
                }
            }
            if found.len() >= MOST_TRASH {
                break;
            }
        }
        found.truncate(MOST_TRASH);
        Ok(found)
    }

    fn trashed(&self, event: &Event, path: String, was: &NotePath) -> TrashedFile {
        let bytes = was.is_note().then(|| self.read_trash(&path).ok()).flatten();
        let title = bytes
            .map_or_else(|| was.stem().to_owned(), |bytes| title_of(was, &parse(was, &decode(&bytes).text)));
        TrashedFile {
            path,
            was: was.as_str().to_owned(),
            title,
            at: event.at,
            agent: agent_of(event).to_owned(),
            operation: event.id.clone(),
        }
    }

    fn read_trash(&self, path: &str) -> Result<Vec<u8>> {
        let root = self.core.vault.root();
        safe_open::read(root, Path::new(path), self.core.vault.max_file_size())
            .map_err(|error| Error::io("read", root.join(path), error))
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
            let is_gone = safe_open::open(self.core.vault.root(), format!("{TRASH}{named}")).is_err();
            let gone = || Error::new(ErrorKind::NotFound, format!("the trash has no file {path:?}"));
            if is_gone { gone() } else { error }
        })?;
        let is_text = named.is_note() || named.is_canvas();
        Ok(TrashedText { path: path.to_owned(), text: is_text.then(|| body_of(&bytes)) })
    }
}
