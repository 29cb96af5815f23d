//! A folder for the temporary files of a call of git.
#![expect(clippy::disallowed_methods, reason = "git reads and writes files in a folder of their own")]

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use uuid::Uuid;

/// The most bytes of a file that are read.
const READ_LIMIT: u64 = 64_000;

/// A folder for temporary files, which is removed when this is dropped.
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder.
    pub(super) fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("sidenote-git-{}", Uuid::new_v4()));
        std::fs::create_dir(&path).map_err(|error| Error::io("make", &path, error))?;
        Ok(Self(path))
    }

    /// Creates a file.
    pub(super) fn create(&self, name: &str) -> Result<(PathBuf, File)> {
        let path = self.0.join(name);
        let file =
            safe_open::open_or_create(&path, 0o600).map_err(|error| Error::io("write", &path, error))?;
        Ok((path, file))
    }

    /// Creates a file with bytes, to be read from its beginning.
    pub(super) fn input(&self, name: &str, bytes: &[u8]) -> Result<File> {
        let (path, mut file) = self.create(name)?;
        file.write_all(bytes)
            .and_then(|()| file.rewind())
            .map_err(|error| Error::io("write", &path, error))?;
        Ok(file)
    }

    /// Creates a file with bytes.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let (path, mut file) = self.create(name)?;
        file.write_all(bytes).map_err(|error| Error::io("write", &path, error))?;
        Ok(path)
    }
}

/// Reads the first part of an open file, as text. The file may have been removed meanwhile.
pub(super) fn read_start(path: &Path, mut file: File) -> Result<String> {
    let failed = |error| Error::io("read", path, error);
    let mut bytes = Vec::new();
    file.rewind().map_err(failed)?;
    file.take(READ_LIMIT).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!("{} could not be removed: {error}", self.0.display());
        }
    }
}
