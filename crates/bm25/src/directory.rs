//! A tantivy directory that writes files completely and in order, but does not sync them to the disk.
//!
//! A batch creates about thirty small files; syncing each would take longer than the rest of the batch. The damage of a
//! power loss is detected at the next start: without a seal every checksum is verified, and the index is rebuilt from
//! the notes if one differs. The seal itself is synced.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sidenote_base::atomic_file::{AtomicFile, remove_if_there};
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// A directory that reads through memory maps, and writes without syncing.
#[derive(Debug, Clone)]
pub(super) struct UnsyncedDirectory {
    mmap: MmapDirectory,
    folder: PathBuf,
}

impl UnsyncedDirectory {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// Returns `OpenDirectoryError` if there is none at `folder`.
    pub(super) fn open(folder: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { mmap: MmapDirectory::open(folder)?, folder: folder.to_owned() })
    }
}

impl Directory for UnsyncedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.mmap.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.mmap.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.mmap.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let disk = self.folder.join(path);
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let create = || OpenOptions::new().write(true).create_new(true).open(&disk);
        let file = match create() {
            // A batch that was killed before its commit left the file, and is repeated with the same names. No commit
            // refers to the file.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_if_there(&disk).map_err(io::Error::other).and_then(|()| create())
            }
            opened => opened,
        };
        let file = file.map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(BufWriter::new(Box::new(UnsyncedFile(file))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.mmap.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        AtomicFile::new(&self.folder.join(path)).single_writer().write_bytes(data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.mmap.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.mmap.watch(watch_callback)
    }
}

/// A file that is not synced when it is closed.
struct UnsyncedFile(File);

impl Write for UnsyncedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TerminatingWrite for UnsyncedFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.flush()
    }
}
