//! The common versions of notes and the conflict copies that `sync` made of them, in `.sidenote/local/bases/`. `sync`
//! knows the common version for certain when it makes a copy, so it need not be looked for in histories.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::path::NotePath;

use crate::dir::Dir;
use crate::write_lock::{create_local_dir, local_folder};
use crate::{STATE_DIR, Vault};

/// The folder, in the local folder of the vault.
const FOLDER: &str = "bases";
/// The most bytes of the path that precedes a version.
const MAX_PATH: u64 = 8_192;

/// Returns the name of the file with the common version of a copy. A line with the copy's path precedes the bytes.
fn name_of(copy: &str) -> String {
    ContentHash::of(copy.as_bytes()).to_string()
}

fn path_of(vault: &Vault) -> PathBuf {
    local_folder(vault).join(FOLDER)
}

/// Opens the folder without following a symbolic link; `None` if there is none.
fn open(vault: &Vault) -> Result<Option<Dir>> {
    match safe_open::folder(vault.root(), &Path::new(STATE_DIR).join("local").join(FOLDER)) {
        Ok(folder) => Ok(Some(folder.into())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(safe_open::failed("open", &path_of(vault), error)),
    }
}

/// Stores the common version of a note and the conflict copy that is about to be made of it.
///
/// # Errors
/// `Invalid` if the folder is a symbolic link; `Io` if it cannot be written.
pub fn store(vault: &Vault, copy: &str, bytes: &[u8]) -> Result<()> {
    let local = create_local_dir(vault, &local_folder(vault))?;
    let name = name_of(copy);
    let write = || {
        let folder = local.open_or_create_dir(FOLDER)?;
        if folder.entry(&name)?.is_some() {
            folder.remove(&name)?;
        }
        let mut file = folder.create(&name, 0o600)?;
        file.write_all(&[copy.as_bytes(), b"\n", bytes].concat())?;
        file.sync_data()?;
        folder.sync()
    };
    write()
        .map_err(|error| Error::io("write the common version of a conflict copy in", path_of(vault), error))
}

/// Returns the common version of a note and its conflict copy, if `sync` made the copy here.
///
/// # Errors
/// `Io` if it cannot be read.
pub fn find(vault: &Vault, copy: &NotePath) -> Result<Option<Vec<u8>>> {
    let Some(folder) = open(vault)? else { return Ok(None) };
    let name = name_of(copy.as_str());
    let bytes = match folder.read_at_most(&name, vault.max_file_size().saturating_add(MAX_PATH)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(safe_open::failed("read", &path_of(vault).join(name), error)),
    };
    // A file that a killed process has not written whole has no line with the path, or is no version that merges.
    let version = bytes.strip_prefix(copy.as_str().as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"));
    Ok(version.map(<[u8]>::to_vec))
}

/// Removes the common versions of copies that are gone.
///
/// # Errors
/// `Io` if the folder cannot be read or written.
pub fn remove_unused(vault: &Vault) -> Result<()> {
    let Some(folder) = open(vault)? else { return Ok(()) };
    let failed = |error| Error::io("tidy up", path_of(vault), error);
    for name in folder.names().map_err(failed)? {
        let Some(name) = name.to_str() else { continue };
        let bytes =
            folder.read_at_most(name, vault.max_file_size().saturating_add(MAX_PATH)).unwrap_or_default();
        let copy = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let copy = std::str::from_utf8(copy).ok().and_then(NotePath::from_disk);
        let is_used = copy.is_some_and(|copy| vault.disk_path(&copy).symlink_metadata().is_ok());
        if !is_used {
            folder.remove(name).map_err(failed)?;
        }
    }
    Ok(())
}
