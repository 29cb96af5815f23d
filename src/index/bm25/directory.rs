//! Owns how full text reaches the disk: written whole and in order, but never waited for.
//!
//! A batch makes some thirty small files, and waiting for the disk after each would take longer than all the rest of
//! the batch. What a loss of power leaves behind is found at the next start: without a seal every checksum is compared
//! and the index is made again from the notes where one differs, and the seal itself waits for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use crate::atomic_file::AtomicFile;
use crate::index::vectors::remove_if_there;

/// A folder that is read through memory maps and written without waiting for the disk.
#[derive(Debug, Clone)]
pub(super) struct UnsyncedDirectory {
    reading: MmapDirectory,
    folder: PathBuf,
}

impl UnsyncedDirectory {
    /// Opens a folder that is there.
    pub(super) fn open(folder: &Path) -> Result<Self, OpenDirectoryError> {
        Ok(Self { reading: MmapDirectory::open(folder)?, folder: folder.to_owned() })
    }
}

impl Directory for UnsyncedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.reading.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.reading.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.reading.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let disk = self.folder.join(path);
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let create = || OpenOptions::new().write(true).create_new(true).open(&disk);
        let file = match create() {
            // A batch that was killed before its commit left it, and is done again with the same names. Nobody reads
            // what no commit names.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_if_there(&disk).map_err(io::Error::other).and_then(|()| create())
            }
            opened => opened,
        };
        let file = file.map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(BufWriter::new(Box::new(Written(file))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.reading.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        AtomicFile::new(&self.folder.join(path)).single_writer().write_bytes(data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.reading.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.reading.watch(watch_callback)
    }
}

/// A file that is whole once it is written.
struct Written(File);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TerminatingWrite for Written {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.flush()
    }
}
