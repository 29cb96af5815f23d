//! What the server keeps in the user's data folder: the hash of the passphrase, the registered clients and the grants with
//! the hashes of their tokens. Several processes may use it: each change is made under a lock, on what the file has then.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::file_lock::lock_within;
use sidenote_base::{platform, safe_open};

use crate::client::Client;
use crate::passphrase::PassphraseHash;
use crate::scope::Scopes;
use crate::token::TokenHash;

/// The name of the file, and of the one that is locked while it is changed.
const FILE: &str = "state.json";
const LOCK: &str = "state.lock";
/// The largest file in bytes: some hundred grants.
const MAX_FILE: u64 = 16 << 20;
/// How long another process may take to change the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The clients without a grant that are kept. Beyond that, the one that registered first is forgotten: registration is open.
const MAX_UNUSED_CLIENTS: usize = 200;

/// An access token of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccessToken {
    pub(crate) hash: TokenHash,
    pub(crate) expires: Timestamp,
}

/// A refresh token that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsedToken {
    pub(crate) hash: TokenHash,
    /// When it was used first.
    pub(crate) used: Timestamp,
}

/// The refreshes in an hour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refreshes {
    /// The number of the hour.
    pub(crate) hour: i64,
    pub(crate) count: u32,
}

/// What a person has granted to a client: the tokens that were issued from one authorization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) id: String,
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    /// The redirect target, as a person reads it.
    pub(crate) redirect: String,
    pub(crate) scopes: Scopes,
    /// The address of the endpoint for which the tokens count.
    pub(crate) resource: String,
    /// What the vault of the endpoint was known by.
    pub(crate) vault: String,
    pub(crate) granted: Timestamp,
    /// When tokens were issued last.
    pub(crate) renewed: Timestamp,
    /// The authorization code, so that its reuse is noticed.
    pub(crate) code: TokenHash,
    pub(crate) access: Vec<AccessToken>,
    /// The secret that all refresh tokens of the grant begin with, so that any of them is known, however old.
    pub(crate) family: TokenHash,
    /// The refresh token that counts.
    pub(crate) refresh: TokenHash,
    /// The one before it.
    pub(crate) previous: Option<UsedToken>,
    /// The refreshes of the current hour.
    pub(crate) refreshes: Refreshes,
    /// When the refresh token expires.
    pub(crate) expires: Timestamp,
}

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) passphrase: Option<PassphraseHash>,
    /// Changes when the owner sets a passphrase or takes access back. Tickets and codes count only while it is the same.
    #[serde(default)]
    pub(crate) generation: String,
    #[serde(default)]
    pub(crate) clients: Vec<Client>,
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
}

impl State {
    /// Adds a registered client, and forgets the first of too many that nobody granted anything.
    pub(crate) fn add_client(&mut self, client: Client) {
        self.clients.push(client);
        let is_unused = |client: &Client| !self.grants.iter().any(|grant| grant.client_id == client.id);
        let mut beyond =
            self.clients.iter().filter(|client| is_unused(client)).count().saturating_sub(MAX_UNUSED_CLIENTS);
        let grants = std::mem::take(&mut self.grants);
        self.clients.retain(|client| {
            let is_forgotten = beyond > 0 && !grants.iter().any(|grant| grant.client_id == client.id);
            beyond -= usize::from(is_forgotten);
            !is_forgotten
        });
        self.grants = grants;
    }

    /// Removes the grants of which `is_meant` is true, and returns them.
    pub(crate) fn end(&mut self, is_meant: impl Fn(&Grant) -> bool) -> Vec<Grant> {
        let (ended, kept) = std::mem::take(&mut self.grants).into_iter().partition(is_meant);
        self.grants = kept;
        ended
    }

    /// Removes grants and access tokens that have expired.
    pub(crate) fn prune(&mut self, now: Timestamp) {
        self.grants.retain(|grant| grant.expires > now);
        for grant in &mut self.grants {
            grant.access.retain(|token| token.expires > now);
        }
    }
}

/// A version of the file: its id, length and time of change.
type Version = ((u64, u64), u64, i64);

/// The file with the state.
#[derive(Debug)]
pub(crate) struct StateFile {
    folder: PathBuf,
    /// What was read last, and of which version of the file.
    cache: Mutex<Option<(Version, Arc<State>)>>,
}

impl StateFile {
    /// Names the state in a folder, which is created with it.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, cache: Mutex::default() }
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the state. The file is read only if it has changed.
    ///
    /// # Errors
    /// `Invalid` if other users can read the file; `Corrupt` if it is damaged; `Io` if it cannot be read.
    pub(crate) fn read(&self) -> Result<Arc<State>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join(FILE);
        let version = version_of(&path)?;
        if let (Some(version), Some((cached, state))) = (&version, &*cache)
            && version == cached
        {
            return Ok(Arc::clone(state));
        }
        let state = Arc::new(read_file(&path)?);
        // A file that changed while it was read is read again the next time.
        *cache = version.map(|version| (version, Arc::clone(&state)));
        Ok(state)
    }

    /// Changes the state: `change` gets what the file has, and the file is written if it returns `Ok`.
    ///
    /// # Errors
    /// The errors of [`StateFile::read`]; `Conflict` if another process does not release the lock; `Io` if the file cannot
    /// be written.
    pub(crate) fn change<T>(&self, now: Timestamp, change: impl FnOnce(&mut State) -> T) -> Result<T> {
        platform::make_private_dir(&self.folder).map_err(|error| Error::io("create", &self.folder, error))?;
        let _lock = self.lock()?;
        let path = self.folder.join(FILE);
        let before = read_file(&path)?;
        let mut state = before.clone();
        state.prune(now);
        let result = change(&mut state);
        if state == before {
            return Ok(result);
        }
        let failed = |error| Error::io("write", &path, error);
        // Under the lock this process alone writes, so the temporary file has one name, and replaces what a crash left.
        let text = serde_json::to_vec(&state)
            .map_err(|error| Error::internal("cannot write the grants as JSON").with_source(error))?;
        AtomicFile::new(&path).single_writer().mode(0o600).sync().write(failed, |file| {
            // An existing file may have had other permissions.
            platform::restrict_to_user(file).map_err(failed)?;
            std::io::Write::write_all(file, &text).map_err(failed)
        })?;
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(result)
    }

    fn lock(&self) -> Result<File> {
        let path = self.folder.join(LOCK);
        lock_within(&path, LOCK_TIMEOUT)
    }
}

fn version_of(path: &Path) -> Result<Option<Version>> {
    match platform::metadata(path) {
        Ok(found) => Ok(Some((found.id(), found.size, found.changed_ns().max(found.modified_ns())))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

fn read_file(path: &Path) -> Result<State> {
    let failed = |error| Error::io("read the grants in", path, error);
    match platform::is_private(path) {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::invalid(format!("other users can read the grants in {}", path.display()))
                .with_hint(format!("run: chmod 600 {}", path.display())));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::default()),
        Err(error) => return Err(failed(error)),
    }
    let bytes = safe_open::read_in_place(path, MAX_FILE).map_err(failed)?;
    // The cause is left out, because it may quote the file.
    serde_json::from_slice(&bytes).map_err(|_| {
        Error::corrupt(format!("the grants in {} are damaged", path.display()))
            .with_hint("remove the file, set the passphrase again, and connect the clients anew")
    })
}
