//! One folder of the vault: the folders in it, each with its number of notes, and a part of its notes.

use std::collections::BTreeMap;

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileId, FileKind, Filter};
use sidenote_markdown::path::key;
use sidenote_open_vault::lookup::Lookup;

use crate::Views;

/// The notes of a reply, unless another number is asked for.
const NOTES: usize = 200;
/// The most notes of a reply.
const MOST_NOTES: usize = 1_000;

/// A folder in another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subfolder {
    /// The path from the root of the vault.
    pub path: String,
    /// The number of notes and canvases in it and below it.
    pub notes: usize,
    /// Whether it has folders.
    pub has_folders: bool,
}

/// A note in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderNote {
    /// The path from the root of the vault.
    pub path: String,
    /// The title.
    pub title: String,
}

/// What a folder has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderView {
    /// The path from the root of the vault; empty for the root.
    pub path: String,
    /// The folders in it that have a file.
    pub folders: Vec<Subfolder>,
    /// A part of the notes and canvases in it, by name.
    pub notes: Vec<FolderNote>,
    /// The number of notes and canvases in it, without those below.
    pub own: usize,
    /// The number of notes and canvases in it and below it.
    pub total: usize,
}

/// The templates of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Templates {
    /// The folder that Obsidian's settings name; empty for none.
    pub folder: String,
    /// The notes in it and below it.
    pub templates: Vec<FolderNote>,
}

/// What is counted of a folder.
#[derive(Default)]
struct Counted {
    notes: usize,
    has_folders: bool,
}

impl Views<'_> {
    /// Lists a folder: all folders in it, and of its notes at most `limit` after the first `skip`.
    ///
    /// # Errors
    /// `NotFound` if the vault has no file in such a folder; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn folder(&self, path: &str, skip: usize, limit: Option<usize>) -> Result<FolderView> {
        let filter = Filter { folder: Some(path.to_owned()), ..Filter::default() };
        let path = Lookup::of(self.core).with_canonical_folder(&filter)?.folder.unwrap_or_default();
        let start = if path.is_empty() { 0 } else { path.len() + 1 };
        let mut folders: BTreeMap<String, Counted> = BTreeMap::new();
        let (mut own, mut total, mut is_there): (Vec<(String, FileId)>, usize, bool) =
            (Vec::new(), 0, path.is_empty());
        let catalog = self.core.index.catalog();
        catalog.paths().each_below(&path, |file, id, kind| {
            is_there = true;
            let inside = file.get(start..).unwrap_or_default();
            let is_shown = kind != FileKind::Attachment;
            total += usize::from(is_shown);
            match inside.split_once('/') {
                Some((name, rest)) => {
                    if !folders.contains_key(name) {
                        folders.insert(name.to_owned(), Counted::default());
                    }
                    if let Some(counted) = folders.get_mut(name) {
                        counted.notes += usize::from(is_shown);
                        counted.has_folders |= rest.contains('/');
                    }
                }
                None if is_shown => own.push((key(inside), id)),
                None => {}
            }
        })?;
        if !is_there {
            return Err(Error::not_found(format!("the vault has no folder {path:?} with a file in it")));
        }
        own.sort_unstable();
        let limit = limit.unwrap_or(NOTES).min(MOST_NOTES);
        let shown: Vec<FileId> = own.iter().skip(skip).take(limit).map(|(_, id)| *id).collect();
        let rows = catalog.rows(&shown)?;
        let mut named: Vec<(String, Subfolder)> = folders
            .into_iter()
            .map(|(name, counted)| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                let folder = Subfolder { path, notes: counted.notes, has_folders: counted.has_folders };
                (key(&name), folder)
            })
            .collect();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(FolderView {
            folders: named.into_iter().map(|(_, folder)| folder).collect(),
            notes: rows
                .into_iter()
                .map(|row| FolderNote { path: row.path.as_str().to_owned(), title: row.title })
                .collect(),
            own: own.len(),
            total,
            path,
        })
    }

    /// Lists the templates from which a note can be made.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn templates(&self) -> Result<Templates> {
        let folder = self.core.vault.settings().templates.folder.trim_matches('/').to_owned();
        let mut templates = Vec::new();
        if !folder.is_empty() {
            let catalog = self.core.index.catalog();
            let mut found = Vec::new();
            catalog.paths().each_below(&folder, |_, id, kind| {
                if kind == FileKind::Note && found.len() < MOST_NOTES {
                    found.push(id);
                }
            })?;
            let rows = catalog.rows(&found)?.into_iter();
            templates =
                rows.map(|row| FolderNote { path: row.path.as_str().to_owned(), title: row.title }).collect();
        }
        Ok(Templates { folder, templates })
    }
}
