//! The authority of a copy: the database gives the right to change it, commits changes and keeps the journal.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_journal::event::Event;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::path::NotePath;
use sidenote_vault::authority::{
    Authority, ChangeLock, ReadyChange, RecordedEvent, SharedChanges, SharedContents, SharedPosition,
    StoredVector, VectorStore,
};
use sidenote_vault::copy::SharedPath;
use uuid::Uuid;

use crate::copy::VaultCopy;
use crate::postgres::Database;
use crate::postgres::row_lock::RowLock;
use crate::postgres::tables::{self, VaultFacts};
use crate::quota::Quotas;

/// How long uses of memories wait for others, to be written together.
const BATCH: Duration = Duration::from_secs(1);
/// How long catching up waits for a change of this server to be carried out.
const LANDING_LIMIT: Duration = Duration::from_secs(30);

/// A vault of the database with its copy on this server. Clones share both.
#[derive(Debug, Clone)]
pub struct SharedVault {
    database: Arc<Database>,
    id: Uuid,
    copy: Arc<Mutex<VaultCopy>>,
    waiting: Arc<Mutex<Waiting>>,
    landing: Arc<Landing>,
    contact: Arc<Mutex<Contact>>,
    limits: VaultLimits,
}

/// What the settings limit for a vault.
#[derive(Debug, Clone, Copy)]
pub struct VaultLimits {
    /// How long a change waits for its turn.
    pub lock_time: Duration,
    /// The largest file in bytes.
    pub max_file: u64,
    /// How long reads go on while the database cannot be reached.
    pub stale_time: Duration,
    /// The quotas, where none are set for the vault.
    pub quotas: Quotas,
}

/// When the database was last reached.
#[derive(Debug)]
struct Contact {
    last: Instant,
    is_lost: bool,
}

/// Whether a change that is committed is being carried out in the copy. Catching up waits for its end, for both write the
/// same files.
#[derive(Debug, Default)]
struct Landing {
    is_going_on: Mutex<bool>,
    ended: Condvar,
}

impl Landing {
    fn set(&self, is_going_on: bool) {
        *self.is_going_on.lock().unwrap_or_else(PoisonError::into_inner) = is_going_on;
        self.ended.notify_all();
    }

    /// Waits for the end, up to a limit. Returns whether it has ended.
    fn wait(&self) -> bool {
        let going_on = self.is_going_on.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(going_on, LANDING_LIMIT, |is_going_on| *is_going_on);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_going_on(&self) -> bool {
        *self.is_going_on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deeds that are not written yet.
#[derive(Debug, Default)]
struct Waiting {
    deeds: Vec<RecordedEvent>,
    since: Option<Instant>,
}

impl SharedVault {
    /// Opens the copy of a vault in a folder, and brings it up to the database.
    ///
    /// # Errors
    /// `NotFound` if the vault is not in the database; `Io` if the database cannot be reached or the folder not be
    /// written.
    pub fn open(database: &Arc<Database>, name: &str, folder: &Path, limits: VaultLimits) -> Result<Self> {
        let id = database.vault_id(name)?;
        // Names can be given again, ids cannot.
        let copy = VaultCopy::open(&folder.join(id.to_string()), limits.max_file)?;
        let shared = Self {
            database: Arc::clone(database),
            id,
            copy: Arc::new(Mutex::new(copy)),
            waiting: Arc::default(),
            landing: Arc::default(),
            contact: Arc::new(Mutex::new(Contact { last: Instant::now(), is_lost: false })),
            limits,
        };
        shared.compare()?;
        Ok(shared)
    }

    /// Returns the folder of the copy.
    pub fn root(&self) -> std::path::PathBuf {
        self.copy().root().to_owned()
    }

    /// Returns the id of the vault.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Returns what the database said of the vault when it was last asked.
    pub(crate) fn facts(&self) -> Option<VaultFacts> {
        self.copy().facts().cloned()
    }

    /// Returns the quotas of the vault that are known.
    pub(crate) fn quotas(&self) -> Quotas {
        self.facts().map_or(self.limits.quotas, |facts| facts.quotas.or(self.limits.quotas))
    }

    /// Returns the generation that the copy has.
    pub fn generation(&self) -> i64 {
        self.copy().generation()
    }

    /// Looks for an earlier content of a file, the newest first, and returns the first result of `choose`. The copy's
    /// journal lists the contents, and the database has those that were not cleaned up.
    pub(crate) fn earlier_file<T>(
        &self,
        path: &str,
        choose: &mut dyn FnMut(&[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let hashes = self.copy().earlier_hashes(path)?;
        for hash in hashes {
            let mut chosen = None;
            self.database.read(Some(self.id), |transaction| {
                tables::find_contents(transaction, self.id, &[hash], |_, bytes| {
                    chosen = choose(bytes);
                    Ok(())
                })
            })?;
            if chosen.is_some() {
                return Ok(chosen);
            }
        }
        Ok(None)
    }

    fn copy(&self) -> MutexGuard<'_, VaultCopy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contact(&self) -> MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the copy up to the database, and returns the files that this changed.
    fn compare(&self) -> Result<Vec<NotePath>> {
        loop {
            if !self.landing.wait() {
                return Err(Error::new(ErrorKind::Conflict, "a change of this vault takes very long")
                    .with_hint("try again"));
            }
            let mut copy = self.copy();
            // A change that begins now waits for the copy.
            if !self.landing.is_going_on() {
                return copy.catch_up(&self.database, self.id);
            }
        }
    }

    /// Forgets the deeds that wait, because the vault is not in the database any more.
    pub(crate) fn forget_deeds(&self) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Waiting::default();
    }

    /// Writes the deeds that wait, if they have waited long enough or `now` is set.
    ///
    /// # Errors
    /// `NotFound` if the vault is not in the database any more; `Io` if it cannot be reached. The deeds wait on.
    pub(crate) fn write_deeds(&self, now: bool) -> Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now || waiting.since.is_some_and(|since| since.elapsed() >= BATCH);
        if waiting.deeds.is_empty() || !is_due {
            return Ok(());
        }
        let ids: Vec<String> = waiting.deeds.iter().map(|deed| deed.id.clone()).collect();
        let lines: Vec<String> = waiting.deeds.iter().map(|deed| deed.line.clone()).collect();
        self.database
            .write(Some(self.id), |transaction| tables::add_deeds(transaction, self.id, &ids, &lines))?;
        waiting.deeds.clear();
        waiting.since = None;
        Ok(())
    }
}

impl Authority for SharedVault {
    fn is_shared(&self) -> bool {
        true
    }

    fn catch_up(&self) -> Result<Option<Vec<NotePath>>> {
        let caught_up = self.write_deeds(false).and_then(|()| self.compare());
        let mut contact = self.contact();
        match caught_up {
            // Without the database, what is here is answered for a while.
            Err(error)
                if error.kind() == ErrorKind::Io && contact.last.elapsed() < self.limits.stale_time =>
            {
                if !contact.is_lost && !self.database.is_away() {
                    tracing::warn!("reads are answered from the copy: {error}");
                }
                contact.is_lost = true;
                Ok(Some(Vec::new()))
            }
            Err(error) => Err(error),
            Ok(changed) => {
                *contact = Contact { last: Instant::now(), is_lost: false };
                Ok(Some(changed))
            }
        }
    }

    fn distrust(&self, path: &NotePath) {
        if let Some(path) = SharedPath::parse(path.as_str()) {
            self.copy().distrust(path);
        }
    }

    fn is_cut_off(&self) -> bool {
        self.contact().is_lost
    }

    fn shared_contents(&self) -> Option<&dyn SharedContents> {
        Some(self)
    }

    fn shared_vectors(&self) -> Option<&dyn VectorStore> {
        Some(self)
    }

    fn wait_limit(&self) -> Duration {
        self.limits.lock_time
    }

    fn outage(&self) -> Option<Error> {
        self.database.outage()
    }

    fn lock_changes(&self, wait_limit: Duration) -> Result<Box<dyn ChangeLock>> {
        let lock = RowLock::take(&self.database, self.id, wait_limit, self.limits.quotas)?;
        Ok(Box::new(SharedChangeLock { vault: self.clone(), lock }))
    }

    fn record(&self, events: &mut dyn Iterator<Item = Result<RecordedEvent>>, durable: bool) -> Result<()> {
        let new = events.collect::<Result<Vec<RecordedEvent>>>()?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.deeds.extend(new);
        waiting.since.get_or_insert_with(Instant::now);
        drop(waiting);
        self.write_deeds(durable)
    }
}

impl SharedContents for SharedVault {
    fn changes(&self, since: Option<&SharedPosition>) -> Result<SharedChanges> {
        self.database.read(Some(self.id), |transaction| {
            let known = since.map_or(0, |since| since.generation);
            let then = tables::head(transaction, self.id, known, None)?;
            let origin = then.origin.to_string();
            let leads_here = since.is_some_and(|since| {
                since.origin == origin && known <= then.generation && since.event == then.event
            });
            let from = if leads_here { known } else { 0 };
            let event = if known == then.generation {
                then.event
            } else {
                tables::head(transaction, self.id, then.generation, None)?.event
            };
            let files = if from == then.generation && from > 0 {
                Vec::new()
            } else {
                tables::files(transaction, self.id, from)?
            };
            Ok(SharedChanges {
                position: SharedPosition { origin, generation: then.generation, event },
                is_full: from == 0,
                files: files.into_iter().map(|file| (file.path, file.hash)).collect(),
            })
        })
    }

    fn hashes(&self, paths: &[SharedPath]) -> Result<HashMap<SharedPath, ContentHash>> {
        let names: Vec<String> = paths.iter().map(|path| path.as_str().to_owned()).collect();
        let found =
            self.database.read(Some(self.id), |transaction| tables::hashes(transaction, self.id, &names))?;
        Ok(paths.iter().filter_map(|path| Some((path.clone(), *found.get(path.as_str())?))).collect())
    }

    fn content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>> {
        self.database.read(Some(self.id), |transaction| tables::present_content(transaction, self.id, hash))
    }

    fn earlier_content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>> {
        self.database.read(Some(self.id), |transaction| {
            let mut found = None;
            tables::find_contents(transaction, self.id, &[hash], |_, bytes| {
                found = Some(bytes.to_vec());
                Ok(())
            })?;
            Ok(found)
        })
    }

    fn max_file(&self) -> u64 {
        self.limits.max_file
    }
}

impl VectorStore for SharedVault {
    fn find(&self, model: i64, keys: &[i64]) -> Result<Vec<StoredVector>> {
        // Nobody waits for a database that is away, since the vectors can be made.
        if self.database.is_away() {
            return Ok(Vec::new());
        }
        self.database.vectors(self.id, model, keys)
    }

    fn store(&self, model: i64, vectors: &[StoredVector]) -> Result<()> {
        if self.database.is_away() {
            return Ok(());
        }
        self.database.add_vectors(self.id, model, vectors)
    }
}

/// The lock of a change, with the vault whose copy it changes.
#[derive(Debug)]
struct SharedChangeLock {
    vault: SharedVault,
    lock: RowLock,
}

impl ChangeLock for SharedChangeLock {
    fn commit(&mut self, change: &ReadyChange<'_>) -> Result<()> {
        let applied = change.applied();
        for (file, bytes) in applied.files.iter().zip(change.contents()) {
            let is_too_large = bytes.is_some_and(|bytes| bytes.len() as u64 > self.vault.limits.max_file);
            if let Some(to) = file.to.as_ref().filter(|_| is_too_large) {
                return Err(Error::invalid(format!(
                    "{to} would be larger than {} MB, which this team does not store",
                    self.vault.limits.max_file / 1_000_000
                )));
            }
        }
        if self.vault.copy().generation() != self.lock.head {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the copy of this server is not what the change was planned on",
            )
            .with_hint("try again"));
        }
        self.vault.landing.set(true);
        self.vault.copy().expect(&applied.id).inspect_err(|_| self.vault.landing.set(false))?;
        let committed = self.lock.commit(&applied, change.contents(), &Event::of(&applied));
        if let Err(error) = &committed {
            let mut copy = self.vault.copy();
            copy.give_up();
            if error.kind() == ErrorKind::Conflict {
                for place in applied.files.iter().flat_map(|file| file.from.iter().chain(&file.to)) {
                    copy.distrust(SharedPath::from(place));
                }
            }
            self.vault.landing.set(false);
        }
        committed
    }
}

impl Drop for SharedChangeLock {
    fn drop(&mut self) {
        self.vault.landing.set(false);
    }
}
