//! The open vaults of a server: each with its copy, its index and its store, and one embedder for all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::authority::SharedVault;
use crate::postgres::Database;
use crate::settings::TeamSettings;
use sidenote_foundation::error::Result;
use sidenote_store::{Open, Store};

/// The vaults that are open in this process.
#[derive(Debug)]
pub struct Host {
    database: Arc<Database>,
    settings: TeamSettings,
    /// The options with which every store is opened.
    open: Open,
    stores: Mutex<BTreeMap<String, (SharedVault, Store)>>,
}

impl Host {
    /// Connects to the database of a team.
    ///
    /// # Errors
    /// `Invalid` if the settings or the role of the connection are; `Io` if the database cannot be reached.
    pub fn new(settings: TeamSettings, open: Open) -> Result<Self> {
        let database = Arc::new(Database::new(settings.database.reveal())?);
        database.check_role()?;
        Ok(Self { database, settings, open, stores: Mutex::default() })
    }

    /// Returns the store of a vault, and opens it if it is not open.
    ///
    /// # Errors
    /// `NotFound` if the database has no such vault; the errors of [`SharedVault::open`] and [`Store::open`].
    pub fn store(&self, name: &str) -> Result<Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, store)) = stores.get(name) {
            return Ok(store.clone());
        }
        let lock_time = Duration::from_secs(self.settings.lock_s);
        let vault = SharedVault::open(
            &self.database,
            name,
            &self.settings.cache,
            lock_time,
            self.settings.max_file(),
        )?;
        let store = Store::open(Open {
            vault: Some(vault.root()),
            authority: Some(Arc::new(vault.clone())),
            ..self.open.clone()
        })?;
        store.index().refresh()?;
        stores.insert(name.to_owned(), (vault, store.clone()));
        Ok(store)
    }

    /// Writes the uses of memories that wait in all open vaults. A failure is logged, and the uses wait on.
    pub fn write_deeds(&self) {
        let vaults: Vec<SharedVault> = {
            let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            stores.values().map(|(vault, _)| vault.clone()).collect()
        };
        for vault in vaults {
            if let Err(error) = vault.write_deeds(true) {
                tracing::warn!("uses of memories are not stored yet: {error}");
            }
        }
    }
}
