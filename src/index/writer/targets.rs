//! Link targets of a batch: the files that links resolve to, by path.

use hashbrown::HashMap;

use crate::index::catalog::{FileId, LinkGroup};
use crate::text::path::{NotePath, key};
use crate::text::resolve::{FileNames, name_keys};

/// The files that links can resolve to.
pub(super) struct Targets {
    names: FileNames,
    ids: HashMap<String, FileId>,
}

impl Targets {
    /// Creates the table of these files.
    pub(super) fn new<'a>(table: impl Iterator<Item = (&'a NotePath, FileId)>) -> Self {
        let (files, _) = table.size_hint();
        let mut targets = Self { names: FileNames::with_capacity(files), ids: HashMap::with_capacity(files) };
        for (path, id) in table {
            targets.names.insert(path);
            targets.ids.insert(path.as_str().to_owned(), id);
        }
        targets
    }

    /// Returns the target of a link in the file `source`, whose number is `id`.
    pub(super) fn find(&self, id: FileId, source: &NotePath, link: &LinkGroup) -> Option<FileId> {
        let path = if link.linkpath.is_empty() {
            return Some(id);
        } else if link.exact {
            self.names.resolve_exact(&link.linkpath)?.path
        } else {
            self.names.resolve(&link.linkpath, source)?.path
        };
        self.ids.get(path.as_str()).copied()
    }
}

/// Returns the keys of the file names that a link can mean.
pub(super) fn link_names(link: &LinkGroup) -> Vec<String> {
    if link.exact {
        vec![key(link.linkpath.rsplit('/').next().unwrap_or(""))]
    } else {
        name_keys(&link.linkpath)
    }
}
