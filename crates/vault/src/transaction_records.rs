//! The records folder: the names in it, and reading and removing the records of one transaction.

use std::io;

use crate::dir::Dir;
use crate::manifest::Manifest;

/// The folder of unfinished transactions.
pub(crate) const PENDING: &str = "pending";
/// The folder of the undo log.
pub(crate) const UNDO: &str = "undo";
/// The folder of new contents that could not be written because another program had changed the file.
pub(crate) const CONFLICTS: &str = "conflicts";
/// The manifest of a transaction that is not committed (in [`PENDING`]) or recorded in the journal (in [`UNDO`]).
pub(crate) const MANIFEST: &str = "manifest.json";
/// The manifest of a transaction that is committed (in [`PENDING`]) or not yet in the journal (in [`UNDO`]).
pub(crate) const COMMITTED: &str = "committed.json";
/// The concatenated before-images of a transaction.
pub(crate) const IMAGES: &str = "images";

/// The maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = 1 << 30;

/// Reads a manifest; `None` if it is missing, incomplete or invalid.
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
