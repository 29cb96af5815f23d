//! The part of an event that exists for the reader of a fenced vault.

use std::collections::HashMap;

use serde_json::Value;
use sidenote_markdown::edit::FileLocation;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;

use crate::event::{Event, OP_CONSOLIDATE, TouchedFile};

/// Takes out of events what does not exist for the reader of a fenced vault.
#[derive(Debug)]
pub(crate) struct VisibleEvents {
    vault: Vault,
    /// Whether a location exists for the reader, once it was asked.
    known: HashMap<FileLocation, bool>,
}

impl VisibleEvents {
    pub(crate) fn new(vault: &Vault) -> Self {
        Self { vault: vault.clone(), known: HashMap::new() }
    }

    /// Returns what an event says of files that exist for the reader. Returns `None` for an event that is about other files
    /// only.
    pub(crate) fn part_of(&mut self, mut event: Event) -> Option<Event> {
        let is_about_files = !event.files.is_empty() || !event.folders.is_empty();
        event.files =
            std::mem::take(&mut event.files).into_iter().filter_map(|file| self.file(file)).collect();
        event.folders.retain(|folder| {
            self.vault.may_hold(folder.from.as_str()) && self.vault.may_hold(folder.to.as_str())
        });
        if is_about_files && event.files.is_empty() && event.folders.is_empty() {
            return None;
        }
        if self.vault.is_fenced_by_path()
            && let Some(Value::Array(notes)) = event.more.get_mut("notes")
        {
            let before = notes.len();
            notes.retain(|note| {
                let path = note.get("path").and_then(Value::as_str).and_then(NotePath::from_disk);
                path.is_none_or(|path| self.exists(&FileLocation::Vault(path)))
            });
            if notes.is_empty() && before > 0 {
                return None;
            }
        }
        // How much there is to consolidate counts notes outside of the fence.
        if event.op == OP_CONSOLIDATE {
            return None;
        }
        // Why a call was refused can name any path.
        event.more.remove("reason");
        Some(event)
    }

    /// Returns what the reader may know of a file: one that came from outside the fence is new, and one that left is gone.
    fn file(&mut self, mut file: TouchedFile) -> Option<TouchedFile> {
        let Some(to) = file.to.clone() else { return self.exists(&file.path).then_some(file) };
        match (self.exists(&file.path), self.exists(&to)) {
            (true, true) => Some(file),
            (false, true) => {
                file.path = to;
                (file.to, file.before) = (None, None);
                Some(file)
            }
            // It left the fence.
            (true, false) if self.is_outside(&to) => {
                (file.to, file.after) = (None, None);
                Some(file)
            }
            // The file itself says that it does not exist, whatever it was called before.
            (true, false) => {
                self.known.insert(file.path, false);
                None
            }
            (false, false) => None,
        }
    }

    /// Returns whether the path alone says that a file does not exist for the reader.
    fn is_outside(&self, place: &FileLocation) -> bool {
        match place {
            FileLocation::Vault(path) | FileLocation::Trash(path) => !self.vault.may_show(path),
            FileLocation::Settings(_) => false,
        }
    }

    fn exists(&mut self, place: &FileLocation) -> bool {
        if let Some(known) = self.known.get(place) {
            return *known;
        }
        let exists = match place {
            FileLocation::Vault(path) => self.vault.may_show(path) && !self.vault.withholds(path),
            FileLocation::Trash(path) => self.vault.may_show_trashed(path),
            FileLocation::Settings(_) => true,
        };
        self.known.insert(place.clone(), exists);
        exists
    }
}
