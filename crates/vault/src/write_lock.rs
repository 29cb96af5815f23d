//! The write lock of a vault, and the records folder that holds it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};
use sidenote_markdown::line_list::with_lines;

use crate::authority::{ChangeLock, ReadyChange, authority_of};
use crate::dir::{Dir, symlink_error};
use crate::git_files::{RECORDS_IGNORES, STATE_IGNORES};
use crate::transaction_records::PENDING;
use crate::write_queue::Served;
use crate::{STATE_DIR, Vault};

/// How long a lock of a folder of sidenote's state other than the records is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The exclusive right to write in a vault. Dropping it releases the lock.
#[derive(Debug)]
pub struct WriteLock {
    /// The right to change the vault, which its authority gave. It ends before the lock is released.
    change_lock: Mutex<Box<dyn ChangeLock>>,
    records: PathBuf,
    pub(crate) folder: Dir,
    #[expect(dead_code, reason = "it holds the lock")]
    file: LockedFile,
    #[expect(dead_code, reason = "the next thread is served when it is dropped, after the file is unlocked")]
    place: Served,
}

/// The locked file. Dropping it releases the lock.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just starting may hold it open a moment longer.
        if let Err(error) = platform::unlock(&self.0) {
            tracing::debug!("the write lock could not be released before its file is closed: {error}");
        }
    }
}

impl WriteLock {
    /// Returns the records folder that the lock guards.
    pub fn records(&self) -> &Path {
        &self.records
    }

    /// Has the vault's authority commit a change.
    ///
    /// # Errors
    /// The errors of [`ChangeLock::commit`].
    pub(crate) fn commit(&self, change: &ReadyChange<'_>) -> Result<()> {
        self.change_lock.lock().unwrap_or_else(PoisonError::into_inner).commit(change)
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

    /// Takes the write lock and the lock of the vault's authority, and waits if somebody else has them, as long as
    /// the [authority](crate::authority::Authority::wait_limit) says. The threads of this process take it in the order
    /// in which they asked. A new records folder gets a `.gitignore` and `.gitattributes`.
    ///
    /// # Errors
    /// `Conflict` naming the holder if it keeps the lock; `Invalid` if the records folder is after a symbolic link;
    /// `Io` if it cannot be written. The errors of [`lock_changes`](crate::authority::Authority::lock_changes) and
    /// [`outage`](crate::authority::Authority::outage) of the authority.
    pub fn lock(&self, records: &Path) -> Result<WriteLock> {
        self.lock_with_timeout(records, authority_of(self).wait_limit())
    }

    /// Takes the write lock and the lock of the vault's authority, and waits at most `timeout` for both together.
    ///
    /// # Errors
    /// The errors of [`Vault::lock`].
    pub fn lock_with_timeout(&self, records: &Path, timeout: Duration) -> Result<WriteLock> {
        let folder = self.create_records_dir(records)?;
        let authority = authority_of(self);
        let asked = Instant::now();
        let left = || timeout.saturating_sub(asked.elapsed());
        let Some(place) = self.write_queue.wait(timeout) else {
            if let Some(outage) = authority.outage() {
                return Err(outage);
            }
            let failed = |error| safe_open::failed("take the write lock", &records.join("lock"), error);
            return Err(lock_held_error(&mut folder.open_or_create("lock").map_err(failed)?));
        };
        let file = LockedFile(wait_for_lock(&folder, records, left())?);
        let change_lock = Mutex::new(authority.lock_changes(left())?);
        Ok(WriteLock { change_lock, records: records.to_owned(), folder, file, place })
    }

    /// Creates the records folder if it is missing. Inside the vault, no symbolic link is followed on the way.
    pub fn create_records_dir(&self, records: &Path) -> Result<Dir> {
        let folder = create_state_dir(self, records)?;
        let failed = |error| Error::io("make", records, error);
        folder.create_missing(".gitignore", &with_lines("", &RECORDS_IGNORES)).map_err(failed)?;
        // Other git files are written only into sidenote's own folder.
        let is_own = records.file_name().is_some_and(|name| name == "records")
            && records.parent().and_then(Path::file_name).is_some_and(|name| name == STATE_DIR);
        if let Some(state) = records.parent().filter(|_| is_own && records.starts_with(self.root())) {
            let state = create_state_dir(self, state)?;
            state.create_missing(".gitignore", &with_lines("", &STATE_IGNORES)).map_err(failed)?;
            state.create_missing(".gitattributes", "records/*.jsonl merge=union\n").map_err(failed)?;
        }
        Ok(folder)
    }
}

/// Returns the number of threads of this process that have the write lock of a vault or wait for it.
pub fn writers_of(vault: &Vault) -> usize {
    vault.write_queue.len()
}

/// Creates the default records folder, and what git must know of it, if they are missing.
///
/// # Errors
/// `Io` if the folder or a file in it cannot be written.
pub fn create_records(vault: &Vault) -> Result<()> {
    vault.create_records_dir(&vault.records()).map(drop)
}

/// Returns the folder for what belongs to this working copy alone.
pub fn local_folder(vault: &Vault) -> PathBuf {
    vault.root().join(STATE_DIR).join("local")
}

/// Creates the local folder of a vault if it is missing, and returns its path. What is in it belongs to this working copy
/// alone.
///
/// # Errors
/// `Invalid` if it is after a symbolic link; `Io` if it cannot be written.
pub fn create_local(vault: &Vault) -> Result<PathBuf> {
    let local = local_folder(vault);
    create_local_dir(vault, &local)?;
    Ok(local)
}

/// Creates the local folder if it is missing. Git ignores it as a whole.
pub fn create_local_dir(vault: &Vault, local: &Path) -> Result<Dir> {
    let folder = create_state_dir(vault, local)?;
    folder
        .create_missing(".gitignore", "# Belongs to this working copy alone.\n*\n")
        .map_err(|error| Error::io("write", local.join(".gitignore"), error))?;
    Ok(folder)
}

/// Creates a folder of sidenote's state if it is missing. Inside the vault, no symbolic link is followed on the way.
fn create_state_dir(vault: &Vault, path: &Path) -> Result<Dir> {
    vault.refuse_read_only()?;
    vault.refuse_unmounted()?;
    let failed = |error| Error::io("make", path, error);
    let inner = path.strip_prefix(vault.root()).ok();
    let Some(inner) = inner.and_then(platform::slash_path).filter(|inner| !inner.is_empty()) else {
        create_external_dir(path).map_err(failed)?;
        return Dir::open(path).map_err(failed);
    };
    let mut folder = Dir::open(vault.root()).map_err(failed)?;
    for name in inner.split('/') {
        folder = match folder.open_or_create_dir(name) {
            Ok(child) => child,
            Err(_) if matches!(folder.entry(name), Ok(Some(entry)) if entry.is_symlink()) => {
                return Err(symlink_error(&format!("{name} in {inner}")));
            }
            Err(error) => return Err(failed(error)),
        };
    }
    Ok(folder)
}

/// Takes the lock of a folder of sidenote's state, and waits some seconds if another process holds it.
///
/// # Errors
/// `Conflict` naming the holder if it keeps the lock; `Io` if the lock cannot be written.
pub fn lock_folder(folder: &Dir, path: &Path) -> Result<File> {
    wait_for_lock(folder, path, LOCK_TIMEOUT)
}

/// Takes the lock file in a folder, and writes the process id into it. Waits at most `timeout` if another process holds
/// the lock.
fn wait_for_lock(folder: &Dir, path: &Path, timeout: Duration) -> Result<File> {
    let failed = |error| safe_open::failed("take the write lock", &path.join("lock"), error);
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
    Ok(file)
}

/// Creates a folder of sidenote's state outside the vault.
#[expect(clippy::disallowed_methods, reason = "the records folder is outside the vault")]
fn create_external_dir(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
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
