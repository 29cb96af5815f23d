//! The write lock of a vault, and the records folder that holds it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::platform;
use crate::vault::dir::{Dir, split_path, symlink_error};
use crate::vault::transaction_records::PENDING;
use crate::vault::{STATE_DIR, Vault};

/// How long [`Vault::lock`] waits for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The exclusive right to write in a vault. Dropping it releases the lock.
#[derive(Debug)]
pub struct WriteLock {
    file: File,
    records: PathBuf,
    pub(crate) folder: Dir,
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just starting may hold it open a moment longer.
        if let Err(error) = platform::unlock(&self.file) {
            tracing::debug!("the write lock could not be released before its file is closed: {error}");
        }
    }
}

impl WriteLock {
    /// Returns the records folder that the lock guards.
    pub fn records(&self) -> &Path {
        &self.records
    }
}

impl Vault {
    /// Returns the default records folder.
    pub fn records(&self) -> PathBuf {
        self.root().join(STATE_DIR).join("records")
    }

    /// Says whether a transaction may be unfinished, without taking the lock.
    pub fn has_pending_transactions(&self, records: &Path) -> bool {
        let pending =
            self.open_records(records).ok().flatten().and_then(|folder| folder.open_dir(PENDING).ok());
        pending.is_some_and(|pending| pending.names().is_ok_and(|names| !names.is_empty()))
    }

    /// Takes the write lock, and waits some seconds if another process holds it. A new records folder gets a
    /// `.gitignore` and `.gitattributes`.
    ///
    /// # Errors
    /// `Conflict` naming the holder if it keeps the lock; `Invalid` if the records folder is after a symbolic link;
    /// `Io` if it cannot be written.
    pub fn lock(&self, records: &Path) -> Result<WriteLock> {
        self.lock_with_timeout(records, LOCK_TIMEOUT)
    }

    /// Takes the write lock, and waits at most `timeout`.
    ///
    /// # Errors
    /// The errors of [`Vault::lock`].
    pub fn lock_with_timeout(&self, records: &Path, timeout: Duration) -> Result<WriteLock> {
        let failed = |error| Error::io("take the write lock in", records, error);
        let folder = self.create_records_dir(records)?;
        let mut file = folder.open_or_create("lock").map_err(failed)?;
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_millis(1);
        loop {
            if platform::try_lock(&file).map_err(failed)? {
                break;
            }
            if waited >= timeout {
                return Err(lock_held_error(&mut file));
            }
            std::thread::sleep(pause);
            waited += pause;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        file.set_len(0).map_err(failed)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
        Ok(WriteLock { file, records: records.to_owned(), folder })
    }

    /// Creates the records folder if it is missing. Inside the vault, no symbolic link is followed on the way.
    pub(crate) fn create_records_dir(&self, records: &Path) -> Result<Dir> {
        self.refuse_read_only()?;
        let failed = |error| Error::io("make", records, error);
        let inner = records.strip_prefix(self.root()).ok();
        let Some(inner) = inner.and_then(platform::slash_path).filter(|inner| !inner.is_empty()) else {
            create_external_dir(records).map_err(failed)?;
            let folder = Dir::open(records).map_err(failed)?;
            write_git_files(None, &folder).map_err(failed)?;
            return Ok(folder);
        };
        let mut folder = Dir::open(self.root()).map_err(failed)?;
        let mut above = None;
        for name in inner.split('/') {
            let child = match folder.open_or_create_dir(name) {
                Ok(child) => child,
                Err(_) if matches!(folder.entry(name), Ok(Some(entry)) if entry.is_symlink()) => {
                    return Err(symlink_error(&format!("{name} in {inner}")));
                }
                Err(error) => return Err(failed(error)),
            };
            above = Some((name, std::mem::replace(&mut folder, child)));
            if name == STATE_DIR {
                above = None;
            }
        }
        // Git files are written only into sidenote's own folder.
        let state = inner.strip_suffix("/records").filter(|path| split_path(path).1 == STATE_DIR);
        write_git_files(state.and(above.as_ref()).map(|(_, state)| state), &folder).map_err(failed)?;
        Ok(folder)
    }
}

/// Creates a records folder outside the vault.
#[expect(clippy::disallowed_methods, reason = "the records folder is outside the vault")]
fn create_external_dir(records: &Path) -> io::Result<()> {
    std::fs::create_dir_all(records)
}

/// Writes the git files: which of sidenote's files stay on this machine, and how journals are merged.
fn write_git_files(state: Option<&Dir>, records: &Dir) -> io::Result<()> {
    let mut texts = vec![(records, ".gitignore", "lock\npending/\nundo/\n")];
    if let Some(state) = state {
        texts.push((state, ".gitignore", "index/\nbackups/\n"));
        texts.push((state, ".gitattributes", "records/*.jsonl merge=union\n"));
    }
    for (folder, name, text) in texts {
        if folder.entry(name)?.is_none() {
            match folder.create(name, 0o666) {
                Ok(mut file) => file.write_all(text.as_bytes())?,
                // Another process created it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn lock_held_error(file: &mut File) -> Error {
    let mut text = String::new();
    let holder = match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    Error::new(ErrorKind::Conflict, format!("{holder} holds the write lock of this vault"))
        .with_hint("try again when it has finished")
}
