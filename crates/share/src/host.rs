//! The open vaults of a server: each with its copy, its index and its store, and one embedder for all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_config::{Config, VAULT_FILE};
use sidenote_store::{EarlierSettings, Open, Store};
use uuid::Uuid;

use crate::authority::{SharedVault, VaultLimits};
use crate::cache_lock::CacheLock;
use crate::copy::{VaultCopy, copy_origin};
use crate::members::Members;
use crate::postgres::Database;
use crate::postgres::listener::Listener;
use crate::postgres::tables::VaultFacts;
use crate::quota::{Quota, Quotas};
use crate::settings::TeamSettings;

/// A vault that is open, or about to be opened.
#[derive(Debug, Default)]
struct HostedVault {
    /// Empty until it was opened.
    opened: Mutex<Option<(SharedVault, Store)>>,
}

impl HostedVault {
    fn opened(&self) -> MutexGuard<'_, Option<(SharedVault, Store)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is open, or `None` while somebody opens or closes it.
    fn try_opened(&self) -> Option<MutexGuard<'_, Option<(SharedVault, Store)>>> {
        match self.opened.try_lock() {
            Ok(opened) => Some(opened),
            // Whoever panicked holds it no more.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The vaults of this process by id: a name may become another one.
#[derive(Debug, Default)]
struct Hosted {
    open: BTreeMap<Uuid, Arc<HostedVault>>,
    /// Vaults that are not served any more. Calls of them may still be running.
    closing: BTreeMap<Uuid, Arc<HostedVault>>,
    /// The vaults by the names under which they were asked for.
    names: BTreeMap<String, Uuid>,
}

/// The vaults that are open in this process.
#[derive(Debug)]
pub struct Host {
    database: Arc<Database>,
    members: Members,
    settings: TeamSettings,
    /// The options with which every store is opened.
    open: Open,
    hosted: Mutex<Hosted>,
    /// Whether an operator has renamed, deleted or removed a vault since that was last asked about.
    has_news: AtomicBool,
    /// Dropped last, when no copy is open any more.
    _cache_lock: CacheLock,
}

impl Host {
    /// Connects to the database of a team.
    ///
    /// # Errors
    /// `Conflict` if another server has the cache; `Invalid` if the settings or the role of the connection are; `Io` if the
    /// database cannot be reached, or the cache not be written.
    pub fn new(settings: TeamSettings, open: Open) -> Result<Self> {
        let database = Arc::new(Database::new(settings.database()?)?);
        let cache_lock = CacheLock::take(settings.cache()?)?;
        database.check_role()?;
        database.log_outages();
        let members = Members::new(Arc::clone(&database), Duration::from_secs(settings.stale_s));
        Ok(Self {
            database,
            members,
            settings,
            open,
            hosted: Mutex::default(),
            has_news: AtomicBool::new(false),
            _cache_lock: cache_lock,
        })
    }

    fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.hosted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the store of a vault, and opens it if it is not open. No other vault waits for that.
    ///
    /// # Errors
    /// `NotFound` if the database has no such vault; the errors of [`SharedVault::open`] and [`Store::open`].
    pub fn store(&self, name: &str) -> Result<Store> {
        let id = self.database.vault_id(name)?;
        let vault = {
            let mut hosted = self.hosted();
            // Two stores of one copy would conflict.
            let closing = hosted.closing.remove(&id);
            hosted.names.insert(name.to_owned(), id);
            Arc::clone(hosted.open.entry(id).or_insert_with(|| closing.unwrap_or_default()))
        };
        let mut opened = vault.opened();
        if let Some((_, store)) = opened.as_ref() {
            return Ok(store.clone());
        }
        match self.open(name) {
            Ok((shared, store)) => {
                *opened = Some((shared, store.clone()));
                Ok(store)
            }
            Err(error) => {
                drop(opened);
                self.forget_unopened(id, &vault);
                Err(error)
            }
        }
    }

    /// Keeps nothing of a vault that is not open, unless somebody else is about to open it. Two hold it otherwise: this call, and
    /// the list.
    fn forget_unopened(&self, id: Uuid, vault: &Arc<HostedVault>) {
        let is_open = |own: &Arc<HostedVault>| own.try_opened().is_none_or(|opened| opened.is_some());
        let mut hosted = self.hosted();
        let Hosted { open, closing, names } = &mut *hosted;
        open.retain(|own, held| {
            *own != id || !Arc::ptr_eq(held, vault) || Arc::strong_count(held) > 2 || is_open(held)
        });
        names.retain(|_, own| open.contains_key(own) || closing.contains_key(own));
    }

    fn open(&self, name: &str) -> Result<(SharedVault, Store)> {
        let limits = VaultLimits {
            lock_time: Duration::from_secs(self.settings.lock_s),
            max_file: self.settings.max_file(),
            stale_time: Duration::from_secs(self.settings.stale_s),
            quotas: self.settings.quotas(),
        };
        let vault = SharedVault::open(&self.database, name, self.settings.cache()?, limits)?;
        let store = Store::open(Open {
            vault: Some(vault.root()),
            authority: Some(Arc::new(vault.clone())),
            earlier_settings: self.earlier_settings(&vault)?,
            ..self.open.clone()
        })?;
        store.index().refresh()?;
        Ok((vault, store))
    }

    /// Returns the last readable settings of a vault whose present settings cannot be read, so that the vault is served
    /// and can be repaired. Without any, it is served as one without settings of its own.
    fn earlier_settings(&self, vault: &SharedVault) -> Result<Option<EarlierSettings>> {
        let root = vault.root();
        let problem = match Config::load(&root, &self.open.flags) {
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Invalid => error,
            Err(error) => return Err(error),
        };
        let is_readable = |text: &str| Config::load_with(&root, text, &self.open.flags).is_ok();
        if !is_readable("") {
            // It is not the vault whose settings are wrong.
            return Err(problem);
        }
        // Paths of this server are no business of a vault's members.
        let why = problem.to_string().replace(&format!("{}/", root.display()), "");
        let earlier = vault.earlier_file(VAULT_FILE, &mut |bytes| {
            std::str::from_utf8(bytes).ok().filter(|text| is_readable(text)).map(str::to_owned)
        })?;
        let served = match &earlier {
            Some(_) => "the last settings that can be read",
            None => "the settings of the server alone",
        };
        let notice =
            format!("{why}; the vault is served with {served}. Repair {VAULT_FILE}, and restart the server");
        Ok(Some(EarlierSettings { text: earlier.unwrap_or_default(), notice }))
    }

    /// Counts the open vaults whose settings cannot be read, so that earlier ones are used.
    pub fn with_earlier_settings(&self) -> usize {
        self.opened_vaults().iter().filter(|(_, store)| store.has_earlier_settings()).count()
    }

    /// Begins the copy of a closed vault again if the vault has another origin than the copy, because it was restored
    /// or a person in it forgotten. Otherwise the old copy could stay for a long time, until the vault is opened. A
    /// request for the vault waits meanwhile.
    pub(crate) fn begin_outdated_anew(&self, id: Uuid) -> Result<()> {
        let folder = self.settings.cache()?.join(id.to_string());
        let Some(origin) = copy_origin(&folder)? else { return Ok(()) };
        let Some((_, present, _)) = self.database.look_at(id)? else { return Ok(()) };
        if origin == present {
            return Ok(());
        }
        let vault = {
            let mut hosted = self.hosted();
            if hosted.closing.contains_key(&id) {
                // It is still in use, and is brought up to the database.
                return Ok(());
            }
            Arc::clone(hosted.open.entry(id).or_default())
        };
        let opened = vault.opened();
        let begun = match opened.as_ref() {
            Some(_) => Ok(()),
            None => VaultCopy::open(&folder, self.settings.max_file()).and_then(|mut copy| copy.begin_anew()),
        };
        drop(opened);
        self.forget_unopened(id, &vault);
        begun
    }

    /// Records that an operator has changed a vault itself, for example its name, and removes the copy of one that is
    /// not in the database any more. Returns whether that is done: an open vault is closed first.
    pub(crate) fn look_after(&self, id: Uuid) -> Result<bool> {
        self.has_news.store(true, Ordering::Relaxed);
        if self.database.look_at(id)?.is_some() {
            return Ok(true);
        }
        let hosted = self.hosted();
        if hosted.open.contains_key(&id) || hosted.closing.contains_key(&id) {
            return Ok(false);
        }
        // Nobody can ask for the vault any more, so nobody opens it meanwhile.
        drop(hosted);
        let folder = self.settings.cache()?.join(id.to_string());
        #[expect(clippy::disallowed_methods, reason = "the folder of a copy belongs to this server")]
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &folder, error))
            }
            _ => Ok(true),
        }
    }

    /// Returns whether an operator has renamed, deleted or removed a vault since this was last asked.
    pub fn take_news(&self) -> bool {
        self.has_news.swap(false, Ordering::Relaxed)
    }

    /// Returns whether a vault had one of some names before it had this one.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub fn was_named(&self, name: &str, former: &[String]) -> Result<bool> {
        let Some(found) = self.database.find_vault(name)? else { return Ok(false) };
        for former in former {
            if self.database.find_vault(former)?.is_some_and(|other| other.id == found.id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does [`Self::begin_outdated_anew`] for all copies in the cache, some of which may be of an earlier run, and removes those of
    /// vaults that were removed.
    ///
    /// # Errors
    /// `Io` if the cache cannot be read or written, or the database not be reached.
    pub(crate) fn begin_all_outdated_anew(&self) -> Result<()> {
        let cache = self.settings.cache()?;
        let failed = |error| Error::io("list", cache, error);
        for entry in std::fs::read_dir(cache).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
                self.begin_outdated_anew(id)?;
                self.look_after(id)?;
            }
        }
        Ok(())
    }

    /// Takes back a vault that is not served any more. It is closed once nobody uses it and its uses of memories are
    /// written ([`Self::tend`]).
    pub fn close(&self, name: &str) {
        let mut hosted = self.hosted();
        let Some(id) = hosted.names.remove(name) else { return };
        // It may be served under another name, too.
        if hosted.names.values().any(|other| *other == id) {
            return;
        }
        if let Some(vault) = hosted.open.remove(&id) {
            hosted.closing.insert(id, vault);
        }
    }

    /// Returns who has which role.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Asks the database whether it can be reached.
    ///
    /// # Errors
    /// `Io` if it cannot.
    pub fn check(&self) -> Result<()> {
        self.database.check_role()
    }

    /// Returns whether the database could not be reached when that was last tried, which was logged then.
    pub fn is_away(&self) -> bool {
        self.database.is_away()
    }

    /// Listens for commits of all vaults of the database.
    pub(crate) fn listen(&self) -> Result<Listener> {
        self.database.listen()
    }

    /// Returns the vaults that are open, also those that are not served any more. One that is just being opened is left out: it
    /// is brought up to the database then.
    pub(crate) fn opened_vaults(&self) -> Vec<(SharedVault, Store)> {
        // The list is locked meanwhile. A store that was taken of a vault after the vault was closed would be a second one of
        // its copy when the vault is opened again.
        let hosted = self.hosted();
        let vaults = hosted.open.values().chain(hosted.closing.values());
        vaults.filter_map(|vault| vault.try_opened()?.clone()).collect()
    }

    /// Writes the uses of memories that wait in all open vaults, and closes those that are not served and not used any more.
    /// A failure is logged, and the uses wait on.
    pub fn tend(&self) {
        let (open, closing): (Vec<_>, Vec<_>) = {
            let hosted = self.hosted();
            (hosted.open.values().cloned().collect(), hosted.closing.keys().copied().collect())
        };
        for vault in open {
            let shared = vault.opened().as_ref().map(|(shared, _)| shared.clone());
            if let Some(shared) = shared {
                self.write_deeds(&shared);
            }
        }
        for id in closing {
            let Some(vault) = self.hosted().closing.get(&id).cloned() else { continue };
            // The database may not answer for a while. No other vault waits for that.
            let mut opened = vault.opened();
            let is_done = match opened.as_ref() {
                Some((shared, store)) => self.write_deeds(shared) && !store.is_used_elsewhere(),
                None => true,
            };
            if is_done {
                // A request for the vault meanwhile waits until its store is gone, and then opens it again.
                drop(opened.take());
                drop(opened);
                let mut hosted = self.hosted();
                // It may have been asked for, and taken back again, or somebody may be about to open it: the list and this call
                // hold it otherwise.
                let is_empty =
                    |own: &Arc<HostedVault>| own.try_opened().is_some_and(|opened| opened.is_none());
                if hosted.closing.get(&id).is_some_and(|own| {
                    Arc::ptr_eq(own, &vault) && Arc::strong_count(own) == 2 && is_empty(own)
                }) {
                    hosted.closing.remove(&id);
                }
            }
        }
    }

    /// Returns whether no uses wait any more.
    fn write_deeds(&self, vault: &SharedVault) -> bool {
        let written = vault.write_deeds(true);
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            // The vault was removed for good, and its uses with it.
            vault.forget_deeds();
            return true;
        }
        if let Err(error) = &written {
            self.log_failure(&format!("uses of memories are not stored yet, and will be: {error}"));
        }
        written.is_ok()
    }

    /// Logs a failure: as a warning, unless the database cannot be reached, which was logged once for all.
    pub(crate) fn log_failure(&self, text: &str) {
        if self.database.is_away() { tracing::debug!("{text}") } else { tracing::warn!("{text}") }
    }

    /// Returns lines for Prometheus: vaults, the database, and how long changes wait for their turn.
    pub fn metrics(&self) -> String {
        let turns = &self.database.turns;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64;
        let values = [
            ("sidenote_vaults_closing", "gauge", self.closing() as f64),
            ("sidenote_vaults_earlier_settings", "gauge", self.with_earlier_settings() as f64),
            ("sidenote_database_up", "gauge", f64::from(u8::from(!self.is_away()))),
            ("sidenote_database_idle_connections", "gauge", self.database.idle_connections() as f64),
            ("sidenote_turns_total", "counter", count(&turns.given)),
            ("sidenote_turns_missed_total", "counter", count(&turns.missed)),
            ("sidenote_turn_wait_seconds_total", "counter", count(&turns.waited) / 1e6),
            ("sidenote_conflicts_total", "counter", count(&turns.conflicts)),
        ];
        let mut text: String = values
            .iter()
            .map(|(name, kind, value)| format!("# TYPE {name} {kind}\n{name} {value}\n"))
            .collect();
        text.push_str("# TYPE sidenote_quota_refusals_total counter\n");
        for quota in Quota::ALL {
            let refused = turns.over_quota(quota).load(Ordering::Relaxed);
            text += &format!("sidenote_quota_refusals_total{{quota=\"{}\"}} {refused}\n", quota.name());
        }
        text + &self.sizes()
    }

    /// Returns lines for Prometheus about how much each open vault holds, and the limits that count for it.
    fn sizes(&self) -> String {
        let vaults: Vec<(VaultFacts, Quotas)> = self
            .opened_vaults()
            .iter()
            .filter_map(|(vault, _)| Some((vault.facts()?, vault.quotas())))
            .collect();
        let mut text = String::new();
        let mut add = |name: &str, value: &dyn Fn(&VaultFacts, &Quotas) -> Option<u64>| {
            text += &format!("# TYPE {name} gauge\n");
            for (facts, quotas) in &vaults {
                if let Some(value) = value(facts, quotas) {
                    text += &format!("{name}{{vault=\"{}\"}} {value}\n", facts.name);
                }
            }
        };
        add("sidenote_vault_bytes", &|facts, _| Some(facts.usage.bytes));
        add("sidenote_vault_bytes_quota", &|_, quotas| quotas.bytes);
        add("sidenote_vault_notes", &|facts, _| Some(facts.usage.notes));
        add("sidenote_vault_notes_quota", &|_, quotas| quotas.notes);
        text
    }

    /// Returns the number of vaults that are open and not served any more.
    pub fn closing(&self) -> usize {
        self.hosted().closing.len()
    }
}
