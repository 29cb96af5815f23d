//! The pool of catalog connections for reading, so that readers do not wait for each other.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sidenote_base::error::Result;

use crate::CatalogReader;

/// The most connections of a pool. Further readers wait until one is returned.
const MAX_CONNECTIONS: usize = 8;

/// The connections to one catalog file. They are opened when needed and stay open.
#[derive(Debug)]
pub struct ReaderPool {
    path: PathBuf,
    connections: Mutex<Connections>,
    /// Signalled when a connection is returned.
    returned: Condvar,
}

#[derive(Debug)]
struct Connections {
    idle: Vec<CatalogReader>,
    /// The number of open connections: idle ones and those in use.
    open: usize,
}

impl ReaderPool {
    /// Creates the pool of the catalog at `path` from its first connection.
    pub fn new(path: &Path, first: CatalogReader) -> Arc<Self> {
        let connections = Mutex::new(Connections { idle: vec![first], open: 1 });
        Arc::new(Self { path: path.to_owned(), connections, returned: Condvar::new() })
    }

    /// Opens the catalog at `path`, and creates its pool.
    ///
    /// # Errors
    /// Returns the errors of [`CatalogReader::open`].
    pub fn open(path: &Path) -> Result<Arc<Self>> {
        Ok(Self::new(path, CatalogReader::open(path)?))
    }

    /// Begins a read transaction. It waits while all connections are in use, so a thread must not hold two.
    pub fn read(self: &Arc<Self>) -> ReadTransaction {
        let reader = self.acquire();
        if let Err(error) = reader.begin() {
            tracing::debug!("the catalog is read without a transaction: {error}");
        }
        ReadTransaction { pool: Arc::clone(self), reader: Some(reader) }
    }

    /// Begins a read transaction for a caller that may have one already. It never waits: where all connections are in use, one
    /// more is opened, which is closed when the transaction ends.
    ///
    /// # Errors
    /// Returns the errors of [`CatalogReader::open`].
    pub fn read_nested(self: &Arc<Self>) -> Result<ReadTransaction> {
        let mut connections = self.lock();
        let idle = connections.idle.pop();
        connections.open += usize::from(idle.is_none());
        drop(connections);
        let opened = idle.map_or_else(|| CatalogReader::open(&self.path), Ok);
        let reader = opened.inspect_err(|_| self.lock().open -= 1)?;
        if let Err(error) = reader.begin() {
            tracing::debug!("the catalog is read without a transaction: {error}");
        }
        Ok(ReadTransaction { pool: Arc::clone(self), reader: Some(reader) })
    }

    /// Takes an idle connection out of the pool, opens one, or waits for one.
    fn acquire(&self) -> CatalogReader {
        let mut connections = self.lock();
        loop {
            if let Some(reader) = connections.idle.pop() {
                return reader;
            }
            if connections.open < MAX_CONNECTIONS {
                connections.open += 1;
                drop(connections);
                match CatalogReader::open(&self.path) {
                    Ok(reader) => return reader,
                    Err(error) => tracing::debug!("the catalog is read through fewer connections: {error}"),
                }
                connections = self.lock();
                connections.open -= 1;
            }
            // The first connection is never closed, so one is returned sooner or later.
            if connections.idle.is_empty() {
                connections = self.returned.wait(connections).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Returns a connection to the pool, which closes it if it has too many.
    fn release(&self, reader: CatalogReader) {
        let mut connections = self.lock();
        if connections.open > MAX_CONNECTIONS {
            connections.open -= 1;
            return;
        }
        connections.idle.push(reader);
        drop(connections);
        self.returned.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A read transaction on the catalog. All its queries see the same state. It holds a connection of the pool, and the
/// write-ahead log cannot be emptied meanwhile, so it should not outlive slow work.
#[derive(Debug)]
pub struct ReadTransaction {
    pool: Arc<ReaderPool>,
    /// The connection, until the transaction is dropped.
    reader: Option<CatalogReader>,
}

impl Deref for ReadTransaction {
    type Target = CatalogReader;

    fn deref(&self) -> &CatalogReader {
        self.reader.as_ref().expect("a transaction has its connection until it is dropped")
    }
}

impl Drop for ReadTransaction {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            if let Err(error) = reader.end() {
                tracing::debug!("a read transaction cannot be ended: {error}");
            }
            self.pool.release(reader);
        }
    }
}
