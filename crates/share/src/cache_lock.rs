//! The lock of the folder with the copies of a server: two servers must not write the same copies.

use std::fs::File;
use std::path::Path;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};

/// The name of the locked file in the folder.
const LOCK: &str = "server.lock";

/// The lock of a folder, which ends when this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct CacheLock {
    _file: File,
}

impl CacheLock {
    /// Takes the lock of a folder, which is created if it is missing.
    ///
    /// # Errors
    /// `Conflict` if another server has it; `Io` if the folder cannot be written.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let hint = "team.cache must be a folder that the user of the server may write";
        #[expect(clippy::disallowed_methods, reason = "the folder of the copies belongs to this server")]
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::io("make the folder of the copies", folder, error).with_hint(hint))?;
        let path = folder.join(LOCK);
        let file = safe_open::open_or_create(&path, 0o600)
            .map_err(|error| safe_open::failed("write", &path, error).with_hint(hint))?;
        if !platform::try_lock(&file).map_err(|error| Error::io("lock", &path, error))? {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("another server uses the folder {} for its copies", folder.display()),
            )
            .with_hint("give each server a folder of its own in team.cache, or stop the other one"));
        }
        Ok(Self { _file: file })
    }
}
