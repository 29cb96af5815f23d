//! The files by which git knows a vault: `.gitignore` and `.gitattributes`. Lines are added to them, and none is replaced.

use std::io::{self, Write as _};

use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_markdown::line_list::{missing_lines, with_lines};

use crate::Vault;
use crate::dir::{Dir, copy_metadata, split_path};

/// The largest file of git that is read, in bytes.
const MAX_GIT_FILE: u64 = 1 << 20;

/// The lines of the `.gitignore` in the state folder: what no other clone can use.
pub const STATE_IGNORES: [&str; 3] = ["index/", "backups/", "local/"];
/// The lines of the `.gitignore` in the records folder.
pub const RECORDS_IGNORES: [&str; 4] = ["lock", "pending/", "undo/", "conflicts/"];

/// The files of git in a vault.
#[derive(Debug, Clone, Copy)]
pub struct GitFiles<'v> {
    vault: &'v Vault,
}

impl<'v> GitFiles<'v> {
    /// Returns the files of git in a vault.
    pub fn of(vault: &'v Vault) -> Self {
        Self { vault }
    }

    /// Reads a file of git. A missing file is empty.
    ///
    /// # Errors
    /// `Invalid` if a symbolic link is on the way; `Io` if the file cannot be read or is not UTF-8.
    pub fn read(&self, inner: &str) -> Result<String> {
        let path = self.vault.root().join(inner);
        let bytes = match safe_open::read(self.vault.root(), inner, MAX_GIT_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(safe_open::failed("read", &path, error)),
        };
        String::from_utf8(bytes)
            .map_err(|error| Error::invalid(format!("{} is not UTF-8", path.display())).with_source(error))
    }

    /// Appends the lines that a file of git lacks. A missing file is created; its folder must exist.
    ///
    /// # Errors
    /// The errors of [`GitFiles::read`], and `Io` if the file cannot be written.
    pub fn add_lines(&self, inner: &str, lines: &[&str]) -> Result<()> {
        self.vault.refuse_read_only()?;
        let text = self.read(inner)?;
        let missing = missing_lines(&text, lines);
        if missing.is_empty() {
            return Ok(());
        }
        let (folder, name) = split_path(inner);
        let path = self.vault.root().join(inner);
        let failed = |error| safe_open::failed("write", &path, error);
        let mut parts = folder.split('/').filter(|part| !part.is_empty());
        let root = Dir::open(self.vault.root()).map_err(failed)?;
        let folder = parts.try_fold(root, |folder, part| folder.open_dir(part)).map_err(failed)?;
        let replaced = match folder.read_with_metadata(name) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let temporary = format!("{name}.{}.tmp", std::process::id());
        let write = || {
            let mut file = folder.create(&temporary, 0o666)?;
            file.write_all(with_lines(&text, &missing).as_bytes())?;
            if let Some(replaced) = &replaced {
                copy_metadata(&file, replaced)?;
            }
            file.sync_data()?;
            folder.rename_replace(&temporary, &folder, name)
        };
        write().map_err(|error| {
            if let Err(error) = folder.remove(&temporary) {
                tracing::debug!("{temporary} could not be removed: {error}");
            }
            failed(error)
        })
    }
}
