//! The index: everything that is derived from the files. It can be deleted and made again. There is one way into it,
//! [`Index::sync`], and no other.
//!
//! The process that holds the lock has a thread that writes the index. All readers use immutable snapshots.

mod open;
mod writer;
mod active_model;
pub mod attachment_document;
pub mod attachments;
mod checksums;
mod diff;
mod directory;
mod disk_file;
mod dump;
pub mod health;
pub mod file_table;
mod wait_limit;
pub mod validity;
mod mean_vector;
pub mod follow;
pub mod indexed_document;
mod read_only;
mod recent_vectors;
mod service_vectors;
pub mod shared_vectors;
mod writer_thread;

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sidenote_attachments::AttachmentTexts;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform;
use sidenote_bm25::{Bm25, Bm25Snapshot};
use sidenote_catalog::{CatalogReader, Hash, ReadTransaction, ReaderPool};
use sidenote_embed::Embed;
use sidenote_embed::model_selection::{PreviousModels, model_key};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::RelationRules;
use sidenote_sets::file_set::FileSet;
use sidenote_vault::Vault;
use sidenote_vectors::Vectors;
use writer::Writer;

use crate::active_model::{ActiveModel, ActiveModelResolver, completed_model};
pub use crate::diff::{Drift, SyncReport};
pub use crate::directory::Holder;
use crate::directory::{
    Identity, default_index_folder, folder_size, holder, identity_of, refuse_links, take_lock,
    vault_index_folder,
};
use crate::file_table::FileTable;
use crate::follow::FollowState;
use crate::open::{Opened, Readers, can_pass, open_to_read, open_to_write};
use crate::recent_vectors::UrgentEmbedding;
use crate::validity::ValidityTable;
pub use crate::wait_limit::WaitLimit;
use crate::writer_thread::WriterThread;

/// How often a process that waits for its own changes checks whether the files are still as it wrote them.
const RECHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a process waits for an index that another process creates.
const CREATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The files that a sync compares with the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncScope {
    /// The whole vault.
    All,
    /// These files and paths only.
    Only {
        /// Files.
        files: Vec<NotePath>,
        /// Paths of files, or of folders with all indexed files in them.
        paths: Vec<String>,
    },
    /// These attachments, with the texts that are known of them.
    Attachments(Vec<NotePath>),
}

impl SyncScope {
    /// Creates a scope of single files.
    pub fn only(files: Vec<NotePath>) -> Self {
        Self::Only { files, paths: Vec::new() }
    }
}

/// A phase of indexing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Listing the files.
    Scan,
    /// Reading, parsing and indexing. Progress is counted in files.
    Parse,
    /// Committing the batch to the disk.
    Commit,
    /// Reading attachments. Progress is counted in files.
    Read,
    /// Merging the full text of many new files.
    Merge,
    /// Embedding. Progress is counted in passages.
    Embed,
    /// Building the vector graph.
    Graph,
}

/// A callback for progress: the phase, the number of items done, and the number of all items.
pub type Progress = dyn Fn(Phase, usize, usize) + Send + Sync;

/// How many vectors an index got, and from where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedReport {
    /// The number of passages that were embedded.
    pub embedded: usize,
    /// The number of passages whose vector was shared by another vault of the user.
    pub reused: usize,
}

impl EmbedReport {
    /// Returns the number of new vectors.
    pub fn count(self) -> usize {
        self.embedded + self.reused
    }

    fn add(&mut self, more: Self) {
        self.embedded += more.embedded;
        self.reused += more.reused;
    }
}

/// The options of [`Index::open`].
#[derive(Clone, Default)]
pub struct Options {
    /// The index folder; `.sidenote/index` in the vault if not given.
    pub folder: Option<PathBuf>,
    /// Whether the index is rebuilt from the files. Vectors are kept.
    pub rebuild: bool,
    /// Whether the full text is merged at the end of a load, so that searches look each word up in fewer places. A server would
    /// let changes wait for that.
    pub merge_loads: bool,
    /// Whether the index is only read, and the lock is never taken.
    pub read_only: bool,
    /// Whether missing vectors are made in the background.
    pub fill: bool,
    /// The command that this process runs, without its arguments. It is shown to a process that finds the lock held.
    pub verb: String,
    /// The configured model, if there is one.
    pub embedder: Option<Arc<dyn Embed>>,
    /// The folder of the vectors that all vaults of the user share; none to share none.
    pub shared_vectors: Option<PathBuf>,
    /// Reads the texts of attachments; without it they are not read.
    pub attachments: Option<Arc<AttachmentTexts>>,
    /// Finds the previous model, whose vectors are used until those of `embedder` are complete.
    pub earlier: PreviousModels,
    /// The rules by which relations are found. The index is rebuilt if it was made by others.
    pub relations: Arc<RelationRules>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("folder", &self.folder)
            .field("rebuild", &self.rebuild)
            .field("merge_loads", &self.merge_loads)
            .finish_non_exhaustive()
    }
}

/// An unchanging view of the index that a search reads.
#[derive(Debug)]
pub struct Snapshot {
    /// The full text.
    pub bm25: Bm25Snapshot,
    /// The vectors.
    pub vectors: Arc<Vectors>,
    /// The generation of the index.
    pub generation: i64,
    /// The number of passages without a vector.
    pub pending: usize,
    /// The model that the vectors belong to. It embeds the queries, too.
    pub model: Option<Arc<dyn Embed>>,
    /// Whether this is the previous model, whose vectors are used until those of the configured model are complete.
    pub is_former: bool,
    /// The connections to the catalog of this state.
    catalog: Arc<ReaderPool>,
    /// The file table, which is read when a query first needs it.
    file_table: OnceLock<Arc<FileTable>>,
    /// The validity table, which is read when a query first needs it.
    validity: OnceLock<Arc<ValidityTable>>,
    /// The mean of its vectors, which is computed when a query first needs it.
    mean_vector: OnceLock<Arc<mean_vector::MeanVector>>,
}

impl Snapshot {
    /// Returns the share of the passages that have a vector, 0 to 1.
    pub fn embedded_share(&self) -> f32 {
        let vectors = self.vectors.len();
        vectors as f32 / (vectors + self.pending).max(1) as f32
    }

    /// Begins a read transaction on the catalog of this snapshot. The transaction sees the newest commit of that
    /// catalog.
    pub fn catalog(&self) -> ReadTransaction {
        self.catalog.read()
    }
}

struct IndexState {
    folder: PathBuf,
    bm25: RwLock<Arc<Bm25>>,
    catalog: RwLock<Arc<ReaderPool>>,
    identity: Arc<Identity>,
    models: ActiveModelResolver,
    snapshot: RwLock<Arc<Snapshot>>,
    /// The moves of files that were found and not yet taken.
    moves: Mutex<Vec<(NotePath, NotePath)>>,
    /// Called after each sync that changed something.
    listener: Mutex<Option<Listener>>,
    /// The number of the batch that is being indexed, if it is a large one, which takes seconds; else 0.
    large_batch: AtomicU64,
    /// The number of large batches.
    large_batches: AtomicU64,
}

type Listener = Box<dyn FnMut(&SyncReport) + Send>;

impl IndexState {
    fn observed_moves(&self) -> MutexGuard<'_, Vec<(NotePath, NotePath)>> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the batch in progress is large.
    fn begin_large_batch(&self) {
        if self.large_batch.load(Ordering::SeqCst) == 0 {
            self.large_batch.store(self.large_batches.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
    }

    fn notify(&self, report: &SyncReport) {
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            listener(report);
        }
    }

    fn pool(&self) -> Arc<ReaderPool> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_pool(&self, pool: Arc<ReaderPool>) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = pool;
    }

    /// Returns whether the index folder contains another index than the open one, or none.
    pub(crate) fn is_displaced(&self) -> bool {
        self.identity.is_displaced()
    }

    /// Opens the catalog again after the writer of this process replaced its file.
    fn reopen(&self) -> Result<()> {
        self.set_pool(ReaderPool::open(&self.folder.join("catalog.db"))?);
        Ok(())
    }

    /// Switches to another index in the same folder.
    fn adopt(&self, readers: Readers) -> Result<()> {
        *self.bm25.write().unwrap_or_else(PoisonError::into_inner) = readers.bm25;
        self.identity.adopt(readers.identity);
        self.set_pool(readers.catalog);
        self.publish()
    }

    fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes a new snapshot. Vectors are read again only if there are new ones.
    fn publish(&self) -> Result<()> {
        let old = self.current();
        let pool = self.pool();
        let completed = completed_model(&pool.read())?;
        let active = self.models.resolve(completed);
        let is_same = active.key() == old.model.as_ref().map(|model| model_key(model.model()));
        let is_current = active.folder.as_ref().is_none_or(|folder| old.vectors.is_current(folder));
        let vectors = if is_same && is_current { Arc::clone(&old.vectors) } else { Arc::new(active.open()?) };
        vectors.prepare_as(&old.vectors);
        let bm25 = Arc::clone(&self.bm25.read().unwrap_or_else(PoisonError::into_inner));
        let snapshot = take_snapshot(&bm25, pool, vectors, active)?;
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        Ok(())
    }
}

fn take_snapshot(
    bm25: &Bm25,
    catalog: Arc<ReaderPool>,
    vectors: Arc<Vectors>,
    active: ActiveModel,
) -> Result<Snapshot> {
    // The generation is read before the full text is opened. A generation that is too old is corrected by the next
    // check; one that is too new would hide a commit.
    let transaction = catalog.read();
    let generation = transaction.generation()?;
    let pending = usize::try_from(transaction.meta("pending")?.unwrap_or(0)).unwrap_or(0);
    drop(transaction);
    Ok(Snapshot {
        bm25: bm25.reload()?,
        vectors,
        generation,
        pending,
        model: active.model,
        is_former: active.is_former,
        catalog,
        file_table: OnceLock::new(),
        validity: OnceLock::new(),
        mean_vector: OnceLock::new(),
    })
}

enum Job {
    Sync { scope: SyncScope, expected: usize, progress: Arc<Progress>, reply: Sender<Result<SyncReport>> },
    Embed(Arc<Progress>, Sender<Result<EmbedReport>>),
    Urgent(UrgentEmbedding),
    Stop,
}

/// An open index.
// size: what other crates ask of the index: opening, sync, snapshots, vectors and its end.
pub struct Index {
    shared: Arc<IndexState>,
    vault: Arc<Vault>,
    options: Options,
    /// The write side, if this process holds the lock.
    write_side: RwLock<Option<WriteSide>>,
    stop: Arc<AtomicBool>,
    urgent: Arc<AtomicBool>,
    /// The generation in which the recently changed files were found to lack no vectors.
    recent_complete_at: AtomicI64,
    notices: Vec<String>,
    following: FollowState,
}

/// The write side: its thread and the lock of the index.
struct WriteSide {
    jobs: Sender<Job>,
    worker: JoinHandle<()>,
    /// Is disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
    lock: File,
}

impl WriteSide {
    /// Ends the write side like [`WriteSide::end`], unless that takes longer than `limit`. Returns whether it was ended.
    fn end_within(self, limit: Duration) -> bool {
        drop(self.jobs.send(Job::Stop));
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(limit);
        if ended == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        self.end();
        true
    }

    /// Stops the thread, which writes the seal, and then releases the lock.
    fn end(self) {
        // Sending fails only if the thread has ended already.
        drop(self.jobs.send(Job::Stop));
        if self.worker.join().is_err() {
            tracing::error!("the index thread panicked; the next command checks the index");
        }
        if let Err(error) = self.lock.set_len(0) {
            tracing::debug!("cannot clear the lock file of the index: {error}");
        }
        // Closing the file is not enough, because a process that is being started may hold the file for a moment
        // longer.
        if let Err(error) = platform::unlock(&self.lock) {
            tracing::debug!("cannot release the lock of the index before closing it: {error}");
        }
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a vault, and takes its lock if no other process holds it.
    ///
    /// Damage is repaired before the first query: [`Index::notices`] says what was found.
    ///
    /// # Errors
    /// `Io` if the folder cannot be written and contains no index; `NotFound` if the process that holds the lock
    /// creates no index in time; `Invalid` if a symbolic link leads to the folder, or if it contains foreign files.
    pub fn open(vault: Arc<Vault>, options: Options) -> Result<Self> {
        match Self::open_in_place(Arc::clone(&vault), options.clone()) {
            Err(error) if error.kind() == ErrorKind::Io && !options.read_only => {
                Self::open_without_writing(vault, options, error)
            }
            opened => opened,
        }
    }

    fn open_in_place(vault: Arc<Vault>, mut options: Options) -> Result<Self> {
        let folder = match &options.folder {
            Some(folder) => folder.clone(),
            // A read-only vault is searched with the index that another process maintains in it.
            None if vault.is_read_only() && holder(&vault_index_folder(vault.root())).is_some() => {
                options.read_only = true;
                vault_index_folder(vault.root())
            }
            None => default_index_folder(vault.root(), vault.is_read_only())?,
        };
        refuse_links(vault.root(), &folder)?;
        let models = ActiveModelResolver::new(&folder, options.embedder.clone(), options.earlier.clone());
        let identity = Arc::new(Identity::new(&folder));
        let end = Instant::now() + CREATION_TIMEOUT;
        let mut is_logged = false;
        let lock = loop {
            if !options.read_only
                && let Some(lock) = take_lock(vault.root(), &folder, &options.verb)?
            {
                break lock;
            }
            let before = identity_of(&folder);
            match open_to_read(&folder) {
                Ok(readers) => {
                    return Self::assemble(vault, options, folder, identity, models, readers, Vec::new());
                }
                Err(error)
                    if !options.read_only && Instant::now() < end && can_pass(&error, &folder, before) =>
                {
                    if !std::mem::replace(&mut is_logged, true) {
                        tracing::debug!("the index cannot be opened yet, and is tried again: {error}");
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error),
            }
        };
        let opened = open_to_write(&vault, &options, &folder, &identity, &models)?;
        let Opened { writer, readers, notices } = opened;
        let index = Self::assemble(vault, options, folder, identity, models, readers, notices)?;
        let write_side = index.start(writer, lock)?;
        *index.write_side.write().unwrap_or_else(PoisonError::into_inner) = Some(write_side);
        Ok(index)
    }

    /// Starts the thread that writes the index.
    fn start(&self, writer: Writer, lock: File) -> Result<WriteSide> {
        let (jobs, receiver) = channel();
        let (end, ended) = channel();
        let worker = WriterThread {
            writer,
            shared: Arc::clone(&self.shared),
            embedder: self.options.embedder.clone(),
            fill: self.options.fill,
            merge_loads: self.options.merge_loads,
            stop: Arc::clone(&self.stop),
            urgent: Arc::clone(&self.urgent),
        };
        let worker = std::thread::Builder::new()
            .name("sidenote-index".to_owned())
            .spawn(move || {
                worker.run(&receiver);
                drop(end);
            })
            .map_err(|error| Error::internal("cannot start the index thread").with_source(error))?;
        Ok(WriteSide { jobs, worker, ended: Mutex::new(ended), lock })
    }

    /// Takes the lock and becomes the process that writes the index, if no other process does. Returns whether this
    /// process writes it now.
    ///
    /// # Errors
    /// `NotFound` if the vault is not mounted any more; `Io` if it is gone or the index cannot be opened; `Corrupt` if it cannot
    /// be repaired.
    pub fn promote(&self) -> Result<bool> {
        self.vault.refuse_unmounted()?;
        if self.options.read_only || self.stop.load(Ordering::Relaxed) {
            return Ok(self.is_writer());
        }
        if self.is_writer() && !self.shared.is_displaced() {
            return Ok(true);
        }
        if !self.vault.root().is_dir() {
            let gone = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(Error::io("find", self.vault.root(), gone));
        }
        let mut write_side = self.write_side.write().unwrap_or_else(PoisonError::into_inner);
        if write_side.is_some() && !self.shared.is_displaced() {
            return Ok(true);
        }
        if let Some(displaced) = write_side.take() {
            tracing::warn!("another process replaced {}; it is opened again", self.shared.folder.display());
            displaced.end();
        }
        let Some((lock, opened)) = self.reopen_to_write()? else { return Ok(false) };
        for notice in &opened.notices {
            tracing::warn!("{notice}");
        }
        self.shared.adopt(opened.readers)?;
        *write_side = Some(self.start(opened.writer, lock)?);
        Ok(true)
    }

    fn assemble(
        vault: Arc<Vault>,
        options: Options,
        folder: PathBuf,
        identity: Arc<Identity>,
        models: ActiveModelResolver,
        readers: Readers,
        notices: Vec<String>,
    ) -> Result<Self> {
        let Readers { catalog, bm25, identity: open } = readers;
        identity.adopt(open);
        let active = models.resolve(completed_model(&catalog.read())?);
        let snapshot = take_snapshot(&bm25, Arc::clone(&catalog), Arc::new(active.open()?), active)?;
        Ok(Self {
            shared: Arc::new(IndexState {
                identity,
                folder,
                bm25: RwLock::new(bm25),
                catalog: RwLock::new(catalog),
                models,
                snapshot: RwLock::new(Arc::new(snapshot)),
                moves: Mutex::default(),
                listener: Mutex::default(),
                large_batch: AtomicU64::new(0),
                large_batches: AtomicU64::new(0),
            }),
            vault,
            options,
            write_side: RwLock::new(None),
            stop: Arc::new(AtomicBool::new(false)),
            urgent: Arc::new(AtomicBool::new(false)),
            recent_complete_at: AtomicI64::new(-1),
            notices,
            following: FollowState::default(),
        })
    }

    /// Updates the index from the files in a scope, and waits until [`Index::snapshot`] shows the result.
    ///
    /// # Errors
    /// `Conflict` if another process holds the lock, or if the sync was stopped; `Io` if the vault cannot be listed
    /// or the index cannot be written; `Corrupt` if the index is damaged and cannot be rebuilt.
    pub fn sync(&self, scope: SyncScope, progress: Arc<Progress>) -> Result<SyncReport> {
        self.sync_within(scope, 0, progress, WaitLimit::ENDLESS).map(Option::unwrap_or_default)
    }

    /// Deletes the index and opens it again, after a sync found damage that no check had found. Returns whether it
    /// did.
    fn rebuild_after_damage(&self, damage: &Error) -> Result<bool> {
        if !self.is_writer() || self.shared.is_displaced() {
            return Ok(false);
        }
        tracing::warn!("{}; the index is rebuilt from the notes", damage.message());
        directory::wipe(&self.shared.folder)?;
        self.promote()
    }

    /// Returns the files that differ from the index now, without changing anything.
    pub fn drift(&self, vault: &Vault) -> Result<Drift> {
        diff::drift(vault, &self.catalog())
    }

    /// Embeds all passages without a vector on all cores, and waits for it. Vectors that another vault of the user shares
    /// are not made again.
    ///
    /// # Errors
    /// `Conflict` if another process holds the lock; the errors of the embedder.
    pub fn embed_all(&self, progress: Arc<Progress>) -> Result<EmbedReport> {
        self.submit(WaitLimit::ENDLESS, |reply| Job::Embed(progress, reply)).map(Option::unwrap_or_default)
    }

    /// Ends the write side for good: stops its work, writes the seal and releases the lock. Returns whether that was done within
    /// `limit`. If not, the thread goes on, and the next process checks the index if this one ends meanwhile.
    pub fn close(&self, limit: Duration) -> bool {
        self.take_write_side().is_none_or(|write_side| write_side.end_within(limit))
    }

    /// Stops the work of the writer thread, and takes the write side from the index, which gets no other one.
    fn take_write_side(&self) -> Option<WriteSide> {
        self.stop.store(true, Ordering::Relaxed);
        self.urgent.store(true, Ordering::Relaxed);
        self.follower().end_requests();
        self.write_side.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether a vault has an index in `folder`, or in the default folder.
    ///
    /// # Errors
    /// `Invalid` if the folder is a symbolic link.
    pub fn is_there(vault: &Vault, folder: Option<&Path>) -> Result<bool> {
        let folder = folder.map_or_else(
            || default_index_folder(vault.root(), vault.is_read_only()),
            |folder| Ok(folder.to_owned()),
        )?;
        Ok(folder.join("catalog.db").exists())
    }

    /// Sends a job to the writer thread and waits for its result. Returns `None` when the time limit ends before.
    fn submit<T>(
        &self,
        wait_limit: WaitLimit,
        job: impl FnOnce(Sender<Result<T>>) -> Job,
    ) -> Result<Option<T>> {
        let lost = || Error::internal("the index thread stopped; see the error above");
        let (sender, receiver) = channel();
        // The lock is released before waiting, because other threads check whether this process writes the index.
        let write_side = self.write_side.read().unwrap_or_else(PoisonError::into_inner);
        let jobs = write_side.as_ref().map(|write_side| write_side.jobs.clone());
        drop(write_side);
        let Some(jobs) = jobs else {
            let holder =
                self.holder().map_or_else(String::new, |holder| format!(" (process {})", holder.pid));
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("another sidenote{holder} is writing the index"),
            )
            .with_hint("searches still work; try again when it has finished"));
        };
        jobs.send(job(sender)).map_err(|_| lost())?;
        // Background embedding stops at its next passage. The writer thread clears this flag before it receives
        // jobs.
        self.urgent.store(true, Ordering::SeqCst);
        let done = wait_limit.wait_for(
            || self.follower().large_batch().is_some(),
            |limit| match receiver.recv_timeout(limit) {
                Ok(done) => Some(done),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err(lost())),
            },
        );
        done.transpose()
    }

    /// Updates the index like [`Index::sync`]. Returns `None` if the time limit ended and the work continues in the
    /// background. The caller knows that at least `expected` files changed: if they make a large batch, the call does
    /// not wait until a scan shows it.
    ///
    /// # Errors
    /// `Conflict` if another process holds the lock, or if the sync was stopped; `Io` if the vault cannot be listed
    /// or the index cannot be written; `Corrupt` if the index is damaged and cannot be rebuilt.
    pub fn sync_within(
        &self,
        scope: SyncScope,
        expected: usize,
        progress: Arc<Progress>,
        wait_limit: WaitLimit,
    ) -> Result<Option<SyncReport>> {
        let job = |scope, progress| move |reply| Job::Sync { scope, expected, progress, reply };
        match self.submit(wait_limit, job(scope.clone(), Arc::clone(&progress))) {
            Err(error) if error.kind() == ErrorKind::Corrupt && self.rebuild_after_damage(&error)? => {
                self.submit(wait_limit, job(scope, progress))
            }
            done => done,
        }
    }

    /// Waits until the index of another process contains these files with these hashes, or lacks the files without
    /// one. Returns whether it does. If that process ends, this one takes over.
    ///
    /// # Errors
    /// `Io` if the index cannot be opened or written; `Corrupt` if it cannot be read.
    pub fn wait_for(&self, files: &[(NotePath, Option<Hash>)], wait_limit: Duration) -> Result<bool> {
        let end = Instant::now() + wait_limit;
        let mut looked = Instant::now();
        let mut left: Vec<&(NotePath, Option<Hash>)> = files.iter().collect();
        loop {
            if self.promote()? {
                self.sync(SyncScope::only(left.iter().map(|(path, _)| path.clone()).collect()), silent())?;
                return Ok(true);
            }
            self.refresh()?;
            let catalog = self.catalog();
            let mut waiting = Vec::with_capacity(left.len());
            for file in left {
                let row = catalog.row_at(file.0.as_str())?;
                if row.and_then(|row| row.hash) != file.1 {
                    waiting.push(file);
                }
            }
            drop(catalog);
            left = waiting;
            if Instant::now() >= looked + RECHECK_INTERVAL {
                looked = Instant::now();
                // The index will never show a version that somebody else has changed since.
                let is_mine = |path: &NotePath, hash: &Option<Hash>| {
                    let now = self.vault.read(path).ok().map(|bytes| *blake3::hash(&bytes).as_bytes());
                    now == *hash
                };
                left.retain(|(path, hash)| is_mine(path, hash));
            }
            if left.is_empty() {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns a flag that stops a running sync or embedding at the next file or passage.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns whether the index folder contains another index than the open one, or none. [`Index::promote`] opens
    /// the other one.
    pub(crate) fn is_displaced(&self) -> bool {
        self.shared.is_displaced()
    }

    /// Returns whether this process writes the index.
    pub fn is_writer(&self) -> bool {
        self.write_side.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the process that holds the lock, if it is known.
    pub fn holder(&self) -> Option<Holder> {
        holder(&self.shared.folder)
    }

    /// Returns the newest snapshot. A process that does not write checks for commits of the process that does.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        if !self.is_writer() {
            self.refresh()?;
            let newest = self.catalog().generation()?;
            let current = self.shared.current();
            let model = current.model.as_ref();
            let folder = model.map(|model| self.shared.models.folder_of(model.model()));
            if newest != current.generation
                || folder.is_some_and(|folder| !current.vectors.is_current(&folder))
            {
                self.shared.publish()?;
            }
        }
        Ok(self.shared.current())
    }

    /// Opens the index in the folder again if this process only reads and another process replaced it.
    fn refresh(&self) -> Result<()> {
        if self.is_writer() || !self.shared.is_displaced() {
            return Ok(());
        }
        match open_to_read(&self.shared.folder) {
            // A new index that contains nothing yet does not replace the old one.
            Ok(readers)
                if readers.catalog.read().generation()? == 0 && self.shared.current().generation > 0 =>
            {
                Ok(())
            }
            Ok(readers) => self.shared.adopt(readers),
            Err(error) => {
                tracing::debug!("the index cannot be opened again yet: {error}");
                Ok(())
            }
        }
    }

    /// Returns the generation of the index in the folder.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn generation(&self) -> Result<i64> {
        self.refresh()?;
        self.catalog().generation()
    }

    /// Returns the file table of a snapshot.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn file_table(&self, snapshot: &Snapshot) -> Result<Arc<FileTable>> {
        if let Some(table) = snapshot.file_table.get() {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(FileTable::new(snapshot.catalog().file_entries()?));
        Ok(Arc::clone(snapshot.file_table.get_or_init(|| table)))
    }

    /// Returns the validity table of a snapshot. The caller must not hold a read transaction.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn validity(&self, snapshot: &Snapshot) -> Result<Arc<ValidityTable>> {
        if let Some(table) = snapshot.validity.get() {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(ValidityTable::read(&snapshot.bm25, &snapshot.catalog())?);
        Ok(Arc::clone(snapshot.validity.get_or_init(|| table)))
    }

    /// Begins a read transaction on the catalog. A thread must not hold two at a time, except by [`Self::nested_catalog`].
    pub fn catalog(&self) -> ReadTransaction {
        self.shared.pool().read()
    }

    /// Begins a read transaction on the catalog for a caller that may have one already.
    pub fn nested_catalog(&self) -> Result<ReadTransaction> {
        self.shared.pool().read_nested()
    }

    /// Returns the moves of files that were found since the last call.
    pub fn take_moves(&self) -> Vec<(NotePath, NotePath)> {
        std::mem::take(&mut self.shared.observed_moves())
    }

    /// Sets a callback for every sync of this process that changes something.
    pub fn on_change(&self, listener: impl FnMut(&SyncReport) + Send + 'static) {
        *self.shared.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(listener));
    }

    /// Returns the configured model, if there is one.
    pub fn embedder(&self) -> Option<&Arc<dyn Embed>> {
        self.options.embedder.as_ref()
    }

    /// Returns what opening the index found and repaired, one sentence each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the index folder.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Returns the size of all index files and that of the vector files, in bytes.
    pub fn size_on_disk(&self) -> Result<(u64, u64)> {
        Ok((folder_size(&self.shared.folder)?, folder_size(&self.shared.folder.join("vectors"))?))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        if let Some(write_side) = self.take_write_side() {
            write_side.end();
        }
    }
}

/// Returns a progress callback that does nothing.
pub fn silent() -> Arc<Progress> {
    Arc::new(|_, _, _| {})
}

/// Returns the keys of all passages of these files. A filtered vector search is limited to them.
pub fn passages_of(catalog: &CatalogReader, files: &FileSet) -> Result<HashSet<i64>> {
    let mut keys = HashSet::new();
    catalog.passages().each(|passage, file| {
        if files.contains(file) {
            keys.insert(passage);
        }
    })?;
    Ok(keys)
}
