//! Explains an empty result: names the folder, tag or property of a filter that does not exist.

use crate::read::Reads;
use sidenote_foundation::error::{Error, Result};
use sidenote_foundation::index::catalog::Filter;
use sidenote_foundation::search::path_glob;
use sidenote_foundation::text::path::{NotePath, key};
use sidenote_foundation::vault::symlinks::as_spelled_on_disk;

/// The largest number of edits between a name and an existing one that is suggested for it.
const SLIP: usize = 2;

impl Reads<'_> {
    /// Returns a sentence for each part of a filter that no note has: tags, type, category, a property, a path.
    ///
    /// # Errors
    /// `Invalid` for an invalid glob.
    pub fn absent(&self, filter: &Filter, property: Option<&str>, path: Option<&str>) -> Result<Vec<String>> {
        let catalog = self.core.index.catalog();
        let has_none = |only: Filter| -> Result<bool> { Ok(catalog.select_ids(&only)?.is_empty()) };
        let mut told = Vec::new();
        let with = Filter { with_canvases: true, ..Filter::default() };
        for tag in &filter.tags {
            if has_none(Filter { tags: vec![tag.clone()], ..with.clone() })? {
                let known = catalog.tags()?;
                let near = nearest(tag.trim_start_matches('#'), known.iter().map(|(tag, _)| tag.as_str()));
                told.push(format!("no note has the tag {tag:?}{near}"));
            }
        }
        if let Some(kind) = &filter.note_type
            && has_none(Filter { note_type: Some(kind.clone()), ..with.clone() })?
        {
            told.push(format!("no note has the type {kind:?}"));
        }
        if let Some(category) = &filter.category
            && has_none(Filter { category: Some(category.clone()), ..with.clone() })?
        {
            told.push(format!("no note has the category {category:?}"));
        }
        if let Some(path) = path {
            let glob = path_glob(path)?;
            if !catalog.paths().all()?.iter().any(|(path, _)| glob.is_match(path.as_str())) {
                told.push(format!("no path matches {path:?}"));
            }
        }
        drop(catalog);
        if let Some(property) = property {
            let known = self.properties()?;
            if !known.iter().any(|known| key(&known.property) == key(property)) {
                let near = nearest(property, known.iter().map(|known| known.property.as_str()));
                told.push(format!("no note has the property {property:?}{near}"));
            }
        }
        Ok(told)
    }

    /// Returns an error for a folder that does not exist, so that an empty list means an empty folder.
    ///
    /// # Errors
    /// `NotFound` if there is no such folder, with a similar name if there is one; `Invalid` for an invalid path.
    pub fn refuse_missing_folder(&self, folder: &str) -> Result<()> {
        let wanted = folder.trim_matches('/');
        if wanted.is_empty() {
            return Ok(());
        }
        let path = as_spelled_on_disk(&self.core.vault, &NotePath::parse(wanted)?);
        if self.core.vault.disk_path(&path).is_dir() {
            return Ok(());
        }
        let paths = self.core.index.catalog().paths().all()?;
        let mut folders: Vec<&str> = paths.iter().flat_map(|(path, _)| above(path.folder())).collect();
        folders.sort_unstable();
        folders.dedup();
        let near = nearest(wanted, folders.into_iter());
        let error = Error::not_found(format!("there is no folder {wanted:?} in the vault"));
        let hint = near.strip_prefix("; ").unwrap_or("a folder is a path from the vault's root");
        Err(error.with_hint(hint))
    }
}

/// Lists a folder and its parents.
fn above(folder: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(folder).filter(|folder| !folder.is_empty());
    std::iter::from_fn(move || {
        let here = rest?;
        rest = here.rfind('/').and_then(|slash| here.get(..slash));
        Some(here)
    })
}

/// Returns a suggestion with the nearest name, or `None` if no name is near enough.
fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    let wanted = key(wanted);
    let distance = |name: &str| strsim::osa_distance(&wanted, &key(name));
    let most = SLIP.min(wanted.chars().count() / 2);
    let near = known.map(|name| (distance(name), name)).filter(|(distance, _)| *distance <= most).min();
    near.map(|(_, name)| format!("; did you mean {name:?}?")).unwrap_or_default()
}
