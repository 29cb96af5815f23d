//! The records folder: the names in it, and reading and removing the records of one transaction.

use std::io;

use crate::vault::dir::Dir;
use crate::vault::manifest::Manifest;

/// The folder of transactions that are not closed.
pub(crate) const PENDING: &str = "pending";
/// The folder of before-images of closed ones.
pub(crate) const UNDO: &str = "undo";
/// The folder of planned contents whose file somebody else changed.
pub(crate) const CONFLICTS: &str = "conflicts";
/// The manifest of a transaction that may be undone, or that the journal knows.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The manifest of a transaction that has to be finished, or that the journal does not know yet.
pub(crate) const COMMITTED: &str = "committed.json";
/// The before-images of a transaction, one after another.
pub(crate) const IMAGES: &str = "images";

/// How many bytes a manifest may have.
const MAX_MANIFEST: u64 = 1 << 30;

/// Reads a manifest; `None` where it is missing, torn, or not of ours.
pub(crate) fn read_manifest(folder: &Dir, name: &str, id: &str) -> io::Result<Option<Manifest>> {
    match folder.read_at_most(name, MAX_MANIFEST) {
        Ok(bytes) => Ok(Manifest::parse(&bytes, id)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the records of a transaction, the manifest last.
pub(crate) fn remove_transaction(parent: &Dir, id: &str) -> io::Result<()> {
    let folder = parent.open_dir(id)?;
    let mut names = folder.names()?;
    names.sort_by_key(|name| name == MANIFEST || name == COMMITTED);
    for name in names.iter().filter_map(|name| name.to_str()) {
        folder.remove(name)?;
    }
    parent.remove_dir(id)
}
