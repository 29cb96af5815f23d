//! Owns the index: derived from the files, disposable, never wrong. One way in: [`Index::sync`].
//!
//! A thread owns the write side while this process holds the lock; everybody reads immutable snapshots.

pub mod bm25;
pub mod catalog;
pub mod embed;
mod leb128;
mod open;
pub mod vectors;
mod writer;
mod active_model;
mod bitset;
mod checksums;
mod diff;
mod directory;
mod disk_file;
pub mod file_set;
pub mod file_table;
pub mod follow;
pub mod indexed_document;
mod read_only;
mod recent_vectors;
mod writer_thread;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::index::active_model::{Served, Serving, named};
use crate::index::bm25::{Bm25, Bm25Snapshot};
use crate::index::catalog::{CatalogReader, Hash, ReadTransaction, ReaderPool};
use crate::index::embed::Embed;
use crate::index::embed::model_selection::{PreviousModels, model_key};
use crate::index::file_set::FileSet;
use crate::index::file_table::FileTable;
use crate::index::follow::Following;
use crate::index::open::{Opened, Sides, can_pass, open_to_read, open_to_write};
use crate::index::recent_vectors::Urgent;
use crate::index::vectors::Vectors;
use crate::index::writer_thread::WriterThread;
use crate::platform;
use crate::text::path::NotePath;
use crate::vault::Vault;

pub use crate::index::diff::{Drift, SyncReport};
pub use crate::index::directory::Holder;
use crate::index::directory::{
    Identity, folder_size, holder, identity_of, kept_folder, own_folder, refuse_links, take_lock,
};
use writer::Writer;

/// How often a process that waits for its change looks whether the files are still as it left them.
const LOOK: Duration = Duration::from_millis(100);
/// How long a process waits for an index that another one makes.
const FIRST: Duration = Duration::from_secs(5);

/// Which files a sync looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncScope {
    /// The whole vault.
    All,
    /// These places, whatever happened to them.
    Only {
        /// Files.
        files: Vec<NotePath>,
        /// Paths of files, or of folders with all that is known to be in them.
        places: Vec<String>,
    },
}

impl SyncScope {
    /// Names single files.
    pub fn only(files: Vec<NotePath>) -> Self {
        Self::Only { files, places: Vec::new() }
    }
}

/// The part of the work that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Listing files.
    Scan,
    /// Reading, parsing and indexing; counted in files.
    Parse,
    /// Making it durable.
    Commit,
    /// Embedding; counted in passages.
    Embed,
    /// Building the vector graph.
    Graph,
}

/// Hears of progress: the phase, how much is done, and of how much.
pub type Progress = dyn Fn(Phase, usize, usize) + Send + Sync;

/// How to open an index.
#[derive(Clone, Default)]
pub struct Options {
    /// The index folder; `.sidenote/index` in the vault where not given.
    pub folder: Option<PathBuf>,
    /// Start from nothing; vectors are kept.
    pub rebuild: bool,
    /// Never take the lock: read what is there.
    pub read_only: bool,
    /// Fill in missing vectors while nothing else is to be done.
    pub fill: bool,
    /// What this process does, for whoever finds the lock held: a word or two, never an argument.
    pub verb: String,
    /// The model, if any.
    pub embedder: Option<Arc<dyn Embed>>,
    /// Where the model is found whose vectors serve until those of `embedder` are all there.
    pub earlier: PreviousModels,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("folder", &self.folder)
            .field("rebuild", &self.rebuild)
            .finish_non_exhaustive()
    }
}

/// One state of everything that answers.
#[derive(Debug)]
pub struct Snapshot {
    /// The full text.
    pub bm25: Bm25Snapshot,
    /// The vectors.
    pub vectors: Arc<Vectors>,
    /// The batch that made it.
    pub generation: i64,
    /// Passages that wait for their vector.
    pub pending: usize,
    /// The model that the vectors are of, and that embeds what is compared with them.
    pub model: Option<Arc<dyn Embed>>,
    /// Whether that is an earlier model, whose vectors serve until all of the new one's are there.
    pub is_former: bool,
    /// The connections to the catalog of this state.
    catalog: Arc<ReaderPool>,
    /// The entries of all visible files; read when a query first needs them.
    file_table: OnceLock<Arc<FileTable>>,
}

impl Snapshot {
    /// Begins a read transaction on the catalog that belongs to this state. It sees the newest commit of that catalog.
    pub fn catalog(&self) -> ReadTransaction {
        self.catalog.read()
    }
}

struct IndexState {
    folder: PathBuf,
    bm25: RwLock<Arc<Bm25>>,
    catalog: RwLock<Arc<ReaderPool>>,
    identity: Arc<Identity>,
    serving: Serving,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Moves that were seen, and that nobody has asked for yet.
    moves: Mutex<Vec<(NotePath, NotePath)>>,
    /// Who hears of every sync that changed something.
    hearer: Mutex<Option<Hearer>>,
}

type Hearer = Box<dyn FnMut(&SyncReport) + Send>;

impl IndexState {
    fn seen(&self) -> MutexGuard<'_, Vec<(NotePath, NotePath)>> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, report: &SyncReport) {
        if let Some(hearer) = self.hearer.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            hearer(report);
        }
    }

    fn pool(&self) -> Arc<ReaderPool> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_pool(&self, pool: Arc<ReaderPool>) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = pool;
    }

    fn catalog(&self) -> ReadTransaction {
        self.pool().read()
    }

    /// Says whether the open index is not the one that stands in its folder: another one does, or none.
    pub(super) fn is_displaced(&self) -> bool {
        self.identity.is_displaced()
    }

    /// Opens the catalog that our own writer put in the place of the one before.
    fn reopen(&self) -> Result<()> {
        self.set_pool(ReaderPool::open(&self.folder.join("catalog.db"))?);
        Ok(())
    }

    /// Goes over to another index in the same folder.
    fn adopt(&self, sides: Sides) -> Result<()> {
        *self.bm25.write().unwrap_or_else(PoisonError::into_inner) = sides.bm25;
        self.identity.adopt(sides.identity);
        self.set_pool(sides.catalog);
        self.publish()
    }

    fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a new snapshot; vectors are read again only where there are new ones.
    fn publish(&self) -> Result<()> {
        let old = self.current();
        let pool = self.pool();
        let named = named(&pool.read())?;
        let served = self.serving.now(named);
        let is_same = served.key() == old.model.as_ref().map(|model| model_key(model.model()));
        let is_current = served.folder.as_ref().is_none_or(|folder| old.vectors.is_current(folder));
        let vectors = if is_same && is_current { Arc::clone(&old.vectors) } else { Arc::new(served.open()?) };
        let bm25 = Arc::clone(&self.bm25.read().unwrap_or_else(PoisonError::into_inner));
        let snapshot = take_snapshot(&bm25, pool, vectors, served)?;
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        Ok(())
    }
}

fn take_snapshot(
    bm25: &Bm25,
    catalog: Arc<ReaderPool>,
    vectors: Arc<Vectors>,
    served: Served,
) -> Result<Snapshot> {
    // The generation is read before the full text is opened: if it is too old, the next look publishes again; if it were
    // too new, a commit in between would stay hidden.
    let transaction = catalog.read();
    let generation = transaction.generation()?;
    let pending = usize::try_from(transaction.meta("pending")?.unwrap_or(0)).unwrap_or(0);
    drop(transaction);
    Ok(Snapshot {
        bm25: bm25.reload()?,
        vectors,
        generation,
        pending,
        model: served.model,
        is_former: served.is_former,
        catalog,
        file_table: OnceLock::new(),
    })
}

enum Job {
    Sync(SyncScope, Arc<Progress>, Sender<Result<SyncReport>>),
    Embed(Arc<Progress>, Sender<Result<usize>>),
    Urgent(Urgent),
    Stop,
}

/// An open index.
pub struct Index {
    shared: Arc<IndexState>,
    vault: Arc<Vault>,
    options: Options,
    /// What only the process has that holds the lock.
    writing: RwLock<Option<Writing>>,
    stop: Arc<AtomicBool>,
    urgent: Arc<AtomicBool>,
    /// The batch after which the newest files were found to lack no vector.
    recent: AtomicI64,
    notices: Vec<String>,
    following: Following,
}

/// The write side: its thread, and the lock that it lives by.
struct Writing {
    jobs: Sender<Job>,
    worker: JoinHandle<()>,
    lock: File,
}

impl Writing {
    /// Ends the thread, which seals the index; then the lock is given back.
    fn end(self) {
        // A thread that is gone already needs no telling.
        drop(self.jobs.send(Job::Stop));
        if self.worker.join().is_err() {
            tracing::error!("the index thread panicked; the next command checks the index");
        }
        if let Err(error) = self.lock.set_len(0) {
            tracing::debug!("the index lock keeps the name of this process: {error}");
        }
        // Closing alone would not do where a process that is being started holds the file for a moment longer.
        if let Err(error) = platform::unlock(&self.lock) {
            tracing::debug!("the index lock goes with its file: {error}");
        }
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a vault, taking its lock where that is free.
    ///
    /// Damage is repaired here, before anything is answered: [`Index::notices`] says what was found.
    ///
    /// # Errors
    /// `Io` where the folder cannot be written and no index is there to read; `NotFound` where the process that holds
    /// the lock does not make one.
    pub fn open(vault: Arc<Vault>, options: Options) -> Result<Self> {
        match Self::open_in_place(Arc::clone(&vault), options.clone()) {
            Err(error) if error.kind() == ErrorKind::Io && !options.read_only => {
                Self::open_unwritten(vault, options, error)
            }
            opened => opened,
        }
    }

    fn open_in_place(vault: Arc<Vault>, mut options: Options) -> Result<Self> {
        let folder = match &options.folder {
            Some(folder) => folder.clone(),
            // A vault that is not to be written to is searched with the index that another process keeps in it.
            None if vault.is_read_only() && holder(&kept_folder(vault.root())).is_some() => {
                options.read_only = true;
                kept_folder(vault.root())
            }
            None => own_folder(vault.root(), vault.is_read_only())?,
        };
        refuse_links(vault.root(), &folder)?;
        let serving = Serving::new(&folder, options.embedder.clone(), options.earlier.clone());
        let identity = Arc::new(Identity::new(&folder));
        let end = Instant::now() + FIRST;
        let mut is_told = false;
        let lock = loop {
            if !options.read_only
                && let Some(lock) = take_lock(vault.root(), &folder, &options.verb)?
            {
                break lock;
            }
            let before = identity_of(&folder);
            match open_to_read(&folder) {
                Ok(sides) => {
                    return Self::assemble(vault, options, folder, identity, serving, sides, Vec::new());
                }
                Err(error)
                    if !options.read_only && Instant::now() < end && can_pass(&error, &folder, before) =>
                {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::debug!("the index cannot be opened yet, and is tried again: {error}");
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error),
            }
        };
        let opened = open_to_write(&vault, &options, &folder, &identity, &serving)?;
        let Opened { writer, sides, notices } = opened;
        let index = Self::assemble(vault, options, folder, identity, serving, sides, notices)?;
        let writing = index.start(writer, lock)?;
        *index.writing.write().unwrap_or_else(PoisonError::into_inner) = Some(writing);
        Ok(index)
    }

    /// Starts the thread that owns the write side.
    fn start(&self, writer: Writer, lock: File) -> Result<Writing> {
        let (jobs, receiver) = channel();
        let worker = WriterThread {
            writer,
            shared: Arc::clone(&self.shared),
            embedder: self.options.embedder.clone(),
            fill: self.options.fill,
            stop: Arc::clone(&self.stop),
            urgent: Arc::clone(&self.urgent),
        };
        let worker = std::thread::Builder::new()
            .name("sidenote-index".to_owned())
            .spawn(move || worker.run(&receiver))
            .map_err(|error| Error::internal("cannot start the index thread").with_source(error))?;
        Ok(Writing { jobs, worker, lock })
    }

    /// Becomes the process that writes the index, where no other is any more; says whether it is now.
    ///
    /// # Errors
    /// `Io` where the index cannot be opened.
    pub fn promote(&self) -> Result<bool> {
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
        let mut writing = self.writing.write().unwrap_or_else(PoisonError::into_inner);
        if writing.is_some() && !self.shared.is_displaced() {
            return Ok(true);
        }
        if let Some(displaced) = writing.take() {
            tracing::warn!("{} was replaced; it is opened again", self.shared.folder.display());
            displaced.end();
        }
        let Some((lock, opened)) = self.reopen_to_write()? else { return Ok(false) };
        for notice in &opened.notices {
            tracing::warn!("{notice}");
        }
        self.shared.adopt(opened.sides)?;
        *writing = Some(self.start(opened.writer, lock)?);
        Ok(true)
    }

    fn assemble(
        vault: Arc<Vault>,
        options: Options,
        folder: PathBuf,
        identity: Arc<Identity>,
        serving: Serving,
        sides: Sides,
        notices: Vec<String>,
    ) -> Result<Self> {
        let Sides { catalog, bm25, identity: open } = sides;
        identity.adopt(open);
        let served = serving.now(named(&catalog.read())?);
        let snapshot = take_snapshot(&bm25, Arc::clone(&catalog), Arc::new(served.open()?), served)?;
        Ok(Self {
            shared: Arc::new(IndexState {
                identity,
                folder,
                bm25: RwLock::new(bm25),
                catalog: RwLock::new(catalog),
                serving,
                snapshot: RwLock::new(Arc::new(snapshot)),
                moves: Mutex::default(),
                hearer: Mutex::default(),
            }),
            vault,
            options,
            writing: RwLock::new(None),
            stop: Arc::new(AtomicBool::new(false)),
            urgent: Arc::new(AtomicBool::new(false)),
            recent: AtomicI64::new(-1),
            notices,
            following: Following::default(),
        })
    }

    /// Brings the index in line with the files and waits until the result is visible to [`Index::snapshot`].
    ///
    /// # Errors
    /// `Conflict` where another process holds the lock.
    pub fn sync(&self, changes: SyncScope, progress: Arc<Progress>) -> Result<SyncReport> {
        let job = |changes, progress| |reply| Job::Sync(changes, progress, reply);
        let done = match self.ask(None, job(changes.clone(), Arc::clone(&progress))) {
            Err(error) if error.kind() == ErrorKind::Corrupt && self.start_anew(&error)? => {
                self.ask(None, job(changes, progress))
            }
            done => done,
        };
        done.map(Option::unwrap_or_default)
    }

    /// Opens the index anew, without what it held, where a sync met damage that no check had found.
    fn start_anew(&self, damage: &Error) -> Result<bool> {
        if !self.is_writer() || self.shared.is_displaced() {
            return Ok(false);
        }
        tracing::warn!("{}; the index is rebuilt from the notes", damage.message());
        directory::wipe(&self.shared.folder)?;
        self.promote()
    }

    /// Lists the files that differ from the index right now, without changing anything.
    pub fn drift(&self, vault: &Vault) -> Result<Drift> {
        diff::drift(vault, &self.catalog())
    }

    /// Embeds every passage that waits, on all cores, and waits for it; gives the number of vectors made.
    ///
    /// # Errors
    /// `Conflict` where another process holds the lock; the embedder's own.
    pub fn embed_all(&self, progress: Arc<Progress>) -> Result<usize> {
        self.ask(None, |reply| Job::Embed(progress, reply)).map(Option::unwrap_or_default)
    }

    /// Says whether a vault has an index, in `folder` or where it is by default.
    ///
    /// # Errors
    /// `Invalid` where its place is a symbolic link.
    pub fn is_there(vault: &Vault, folder: Option<&Path>) -> Result<bool> {
        let folder = folder
            .map_or_else(|| own_folder(vault.root(), vault.is_read_only()), |folder| Ok(folder.to_owned()))?;
        Ok(folder.join("catalog.db").exists())
    }

    /// Hands a job to the thread that writes; `None` where it takes longer than `limit`.
    fn ask<T>(
        &self,
        limit: Option<Duration>,
        job: impl FnOnce(Sender<Result<T>>) -> Job,
    ) -> Result<Option<T>> {
        let lost = || Error::internal("the index thread stopped; its message stands above");
        let (sender, receiver) = channel();
        // The lock is not held while the answer is waited for: others want to look whether this process writes.
        let writing = self.writing.read().unwrap_or_else(PoisonError::into_inner);
        let jobs = writing.as_ref().map(|writing| writing.jobs.clone());
        drop(writing);
        let Some(jobs) = jobs else {
            let holder =
                self.holder().map_or_else(String::new, |holder| format!(" (process {})", holder.pid));
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("another sidenote{holder} is writing the index"),
            )
            .with_hint("searching goes on beside it; try again when it is done"));
        };
        jobs.send(job(sender)).map_err(|_| lost())?;
        // Filling in vectors gives way at its next passage; the thread clears this before it looks for jobs.
        self.urgent.store(true, Ordering::SeqCst);
        match limit {
            None => receiver.recv().map_err(|_| lost())?.map(Some),
            Some(limit) => match receiver.recv_timeout(limit) {
                Ok(done) => done.map(Some),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(lost()),
            },
        }
    }

    /// As [`Index::sync`], but waits no longer than `limit`: `None` where the work goes on behind the scenes.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn sync_within(
        &self,
        changes: SyncScope,
        progress: Arc<Progress>,
        limit: Duration,
    ) -> Result<Option<SyncReport>> {
        self.ask(Some(limit), |reply| Job::Sync(changes, progress, reply))
    }

    /// Waits until the index of another process shows these files with these bytes, or without them; says whether it
    /// does. Where that process ends, this one takes over.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn wait_for(&self, files: &[(NotePath, Option<Hash>)], patience: Duration) -> Result<bool> {
        let end = Instant::now() + patience;
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
            if Instant::now() >= looked + LOOK {
                looked = Instant::now();
                // What somebody else changed since will never be shown as it was.
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

    /// Asks a sync or embedding under way to stop at the next file or passage.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Says whether another index, or none, stands where this one was opened: [`Index::promote`] opens that.
    pub fn is_displaced(&self) -> bool {
        self.shared.is_displaced()
    }

    /// Says whether this process writes the index.
    pub fn is_writer(&self) -> bool {
        self.writing.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Says whether missing vectors are filled in by themselves.
    pub fn is_filling(&self) -> bool {
        self.options.fill && self.is_writer()
    }

    /// Says who holds the lock, as far as it told.
    pub fn holder(&self) -> Option<Holder> {
        holder(&self.shared.folder)
    }

    /// Gives the newest snapshot; a process that does not write looks again at what the writer did.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        if !self.is_writer() {
            self.refresh()?;
            let newest = self.catalog().generation()?;
            let current = self.shared.current();
            let model = current.model.as_ref();
            let folder = model.map(|model| self.shared.serving.folder_of(model.model()));
            if newest != current.generation
                || folder.is_some_and(|folder| !current.vectors.is_current(&folder))
            {
                self.shared.publish()?;
            }
        }
        Ok(self.shared.current())
    }

    /// Goes over to the index that stands in the folder, where this process reads and another made it anew.
    fn refresh(&self) -> Result<()> {
        if self.is_writer() || !self.shared.is_displaced() {
            return Ok(());
        }
        match open_to_read(&self.shared.folder) {
            // It is being made this moment, and holds nothing yet; the old one answers so long.
            Ok(sides) if sides.catalog.read().generation()? == 0 && self.shared.current().generation > 0 => {
                Ok(())
            }
            Ok(sides) => self.shared.adopt(sides),
            Err(error) => {
                tracing::debug!("the index cannot be opened again yet: {error}");
                Ok(())
            }
        }
    }

    /// Gives the number of batches that the index shows, a new index in the folder included.
    ///
    /// # Errors
    /// `Corrupt` where it cannot be read.
    pub fn generation(&self) -> Result<i64> {
        self.refresh()?;
        self.catalog().generation()
    }

    /// Returns the file table of a snapshot.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn file_table(&self, snapshot: &Snapshot) -> Result<Arc<FileTable>> {
        if let Some(table) = snapshot.file_table.get() {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(FileTable::new(snapshot.catalog().file_entries()?));
        Ok(Arc::clone(snapshot.file_table.get_or_init(|| table)))
    }

    /// Begins a read transaction on the catalog. A thread must not hold two at a time.
    pub fn catalog(&self) -> ReadTransaction {
        self.shared.catalog()
    }

    /// Gives the moves of files that were seen since this was asked last.
    pub fn take_moves(&self) -> Vec<(NotePath, NotePath)> {
        std::mem::take(&mut self.shared.seen())
    }

    /// Tells `hearer` of every sync of this process that changes something, whoever asked for it.
    pub fn on_change(&self, hearer: impl FnMut(&SyncReport) + Send + 'static) {
        *self.shared.hearer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hearer));
    }

    /// Gives the model, if one is set.
    pub fn embedder(&self) -> Option<&Arc<dyn Embed>> {
        self.options.embedder.as_ref()
    }

    /// Tells what opening found and mended, one sentence each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Gives the folder.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Adds up the bytes of the index files: (all, those of vectors).
    pub fn size_on_disk(&self) -> Result<(u64, u64)> {
        Ok((folder_size(&self.shared.folder)?, folder_size(&self.shared.folder.join("vectors"))?))
    }

    /// Describes the whole index, one line for each fact, sorted: equal indexes give equal lines.
    pub fn dump(&self) -> Result<Vec<String>> {
        let snapshot = self.snapshot()?;
        let digests = snapshot.bm25.digests()?;
        let catalog = self.catalog();
        let paths: HashMap<i64, String> =
            catalog.paths().all()?.into_iter().map(|(path, id)| (id, path.as_str().to_owned())).collect();
        let name = |id: i64| paths.get(&id).cloned().unwrap_or_else(|| format!("#{id}"));
        let mut lines = Vec::new();
        let ids: Vec<i64> = paths.keys().copied().collect();
        for row in catalog.rows(&ids)? {
            let path = row.path.as_str();
            let hash =
                row.hash.map_or_else(String::new, |hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
            let tags = catalog.tags_of(row.id)?.join(",");
            let (properties, problems) = catalog.properties().with_problems(row.id)?.unwrap_or_default();
            lines.push(format!(
                "file {path} {hash} {} {} {tags} {} {problems}",
                row.note_id,
                row.title,
                serde_json::Value::Object(properties)
            ));
            if let Some(sections) = catalog.sections_of(row.id)? {
                lines.push(format!("sections {path} {sections:?}"));
            }
            for link in catalog.links().outgoing(row.id)? {
                let target = link.target.map_or_else(|| "-".to_owned(), name);
                lines.push(format!(
                    "link {path}:{} #{} {} -> {target}",
                    link.position.line, link.position.ord, link.linkpath
                ));
            }
            for passage in catalog.passages().of(row.id)? {
                lines.push(format!("passage {path} {passage:016x}"));
            }
        }
        lines.extend(digests.iter().map(|(file, digest)| format!("terms {} {digest:016x}", name(*file))));
        lines.sort_unstable();
        Ok(lines)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.urgent.store(true, Ordering::Relaxed);
        let writing = self.writing.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writing) = writing {
            writing.end();
        }
    }
}

/// A progress that nobody watches.
pub fn silent() -> Arc<Progress> {
    Arc::new(|_, _, _| {})
}

/// Gathers the keys of every passage of the given files: what a filtered vector search may find.
pub fn passages_of(catalog: &CatalogReader, files: &FileSet) -> Result<HashSet<i64>> {
    let mut keys = HashSet::new();
    catalog.passages().each(|passage, file| {
        if files.contains(file) {
            keys.insert(passage);
        }
    })?;
    Ok(keys)
}
