//! Atomic replacement of a file: write a temporary file next to it, then rename it over the target.
//!
//! Notes are not written this way. `vault/apply` changes them in transactions.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::safe_open;

/// A replacement of one file, which readers see whole or not at all.
#[derive(Debug, Clone)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    mode: u32,
    keeps_permissions: bool,
    syncs: bool,
}

impl AtomicFile {
    /// Prepares a replacement of `path`. The temporary file is named after the process, so that two processes can
    /// replace one file at the same time.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            temporary: path.with_extension(format!("{}.tmp", std::process::id())),
            mode: 0o666,
            keeps_permissions: false,
            syncs: false,
        }
    }

    /// Gives the temporary file the extension `.tmp`, for a folder in which only one process writes. What a crash leaves
    /// is then overwritten by the next replacement.
    #[must_use]
    pub fn single_writer(mut self) -> Self {
        self.temporary = self.path.with_extension("tmp");
        self
    }

    /// Sets the permissions of a new file, which the process's umask restricts. An existing file keeps its own.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self.keeps_permissions = true;
        self
    }

    /// Flushes the new content to the disk before the rename.
    #[must_use]
    pub fn sync(mut self) -> Self {
        self.syncs = true;
        self
    }

    /// Writes the new content with `write`, and renames it over the target. On an error the target is unchanged and the
    /// temporary file is removed.
    ///
    /// # Errors
    /// The errors of `write`, and system errors converted by `failed`.
    pub fn write<T, E>(
        &self,
        failed: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut File) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut file = self.create().map_err(&failed)?;
        let written = write(&mut file).and_then(|written| {
            if self.syncs {
                file.sync_all().map_err(&failed)?;
            }
            drop(file);
            #[expect(clippy::disallowed_methods, reason = "this file is where a file is replaced")]
            std::fs::rename(&self.temporary, &self.path).map_err(&failed)?;
            Ok(written)
        });
        written.inspect_err(|_| self.remove_temporary())
    }

    /// Replaces the file with `bytes`.
    ///
    /// # Errors
    /// System errors.
    pub fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.write(|error| error, |file| io::Write::write_all(file, bytes))
    }

    fn create(&self) -> io::Result<File> {
        let file = safe_open::open_or_create(&self.temporary, self.mode)?;
        file.set_len(0)?;
        if self.keeps_permissions
            && let Ok(found) = std::fs::metadata(&self.path)
        {
            file.set_permissions(found.permissions())?;
        }
        Ok(file)
    }

    fn remove_temporary(&self) {
        #[expect(clippy::disallowed_methods, reason = "this file is where a file is replaced")]
        if let Err(error) = std::fs::remove_file(&self.temporary) {
            tracing::debug!("{} could not be removed: {error}", self.temporary.display());
        }
    }
}

/// Replaces a file of the sidecar, which has one writer at a time.
///
/// # Errors
/// `Io` if it cannot be written.
pub fn replace_own(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = AtomicFile::new(path).single_writer().write_bytes(bytes);
    written.map_err(|error| safe_open::failed("write", path, error))
}

/// Removes a file of the sidecar, or a folder in its place, if it is there.
///
/// # Errors
/// `Io` if it cannot be removed.
pub fn remove_if_there(path: &Path) -> Result<()> {
    // A folder in the place of a file of the index is removed, too.
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
    let removed = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        _ => std::fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}
