//! Logins in the user's data folder: one file for each vault, which no other user can read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::file_lock::lock_within;
use sidenote_base::{platform, safe_open};
use sidenote_config as config;
use sidenote_config::Secret;

/// The name of the folder below that of the user's data.
const FOLDER: &str = "logins";
/// The largest file in bytes.
const MAX_FILE: u64 = 256 << 10;
/// How long another process may take to renew a token.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// The milliseconds before its expiry at which a token is renewed. Some providers issue tokens for a minute.
const RENEWAL_MARGIN: i64 = 20_000;

/// The login of a person at one vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLogin {
    /// The address of the vault.
    pub address: String,
    /// The identity provider.
    pub issuer: String,
    /// The id that this program has at the provider.
    pub client_id: String,
    /// The scopes that were granted, with blanks in between.
    pub scope: String,
    /// The address at which tokens are renewed.
    pub token_endpoint: String,
    /// The address at which tokens are revoked, if the provider has one.
    pub revocation_endpoint: Option<String>,
    /// The token that requests carry.
    #[serde(serialize_with = "reveal")]
    pub access_token: Secret,
    /// The token for which the provider gives a new access token; empty if there is none.
    #[serde(serialize_with = "reveal")]
    pub refresh_token: Secret,
    /// The time at which the access token expires, if the provider says it.
    pub expires: Option<Timestamp>,
}

fn reveal<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.reveal())
}

impl StoredLogin {
    /// Says whether the access token has expired, or is about to.
    pub(super) fn is_expiring(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires.millis() - now.millis() <= RENEWAL_MARGIN)
    }

    /// Says whether the access token has expired.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The logins of a user.
#[derive(Debug, Clone)]
pub struct LoginStore {
    folder: PathBuf,
}

impl LoginStore {
    /// Names the logins in a folder, which is created with the first one.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Names the logins of the user of this process.
    ///
    /// # Errors
    /// `NotFound` if the user has no home folder.
    pub fn of_user() -> Result<Self> {
        let data = config::data_folder();
        let data = data.ok_or_else(|| Error::not_found("there is no folder for the data of this user"))?;
        Ok(Self::new(data.join(FOLDER)))
    }

    /// Returns the file of a vault. Its name is a hash, since addresses may differ by case alone.
    pub fn file(&self, address: &str) -> PathBuf {
        let hash = Sha256::digest(address);
        let name: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name + ".json")
    }

    /// Finds the login at a vault.
    ///
    /// # Errors
    /// `Invalid` if other users can read the file; `Corrupt` if it is damaged; `Io` if it cannot be read.
    pub fn find(&self, address: &str) -> Result<Option<StoredLogin>> {
        let found = read(&self.file(address))?;
        Ok(found.filter(|login| login.address == address))
    }

    /// Lists all logins, by address.
    ///
    /// # Errors
    /// The errors of [`LoginStore::find`].
    pub fn list(&self) -> Result<Vec<StoredLogin>> {
        let failed = |error| Error::io("read", &self.folder, error);
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut logins = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                logins.extend(read(&path)?);
            }
        }
        logins.sort_unstable_by(|one, other| one.address.cmp(&other.address));
        Ok(logins)
    }

    /// Stores a login, in place of an earlier one at the same vault.
    ///
    /// # Errors
    /// `Io` if it cannot be written.
    pub fn store(&self, login: &StoredLogin) -> Result<()> {
        let path = self.file(&login.address);
        let failed = |error| Error::io("write", &path, error);
        self.create_folder()?;
        let text = serde_json::to_vec_pretty(login)
            .map_err(|error| Error::internal("cannot write a login as JSON").with_source(error))?;
        AtomicFile::new(&path).mode(0o600).sync().write(failed, |file| {
            // An existing file may have had other permissions.
            platform::restrict_to_user(file).map_err(failed)?;
            std::io::Write::write_all(file, &text).map_err(failed)
        })
    }

    /// Removes the login at a vault. Returns whether there was one.
    ///
    /// # Errors
    /// `Io` if it cannot be removed.
    pub fn remove(&self, address: &str) -> Result<bool> {
        let path = self.file(address);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let removed = platform::Dir::open(&self.folder).and_then(|folder| folder.remove_file(name));
        match removed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("remove", &path, error)),
        }
    }

    /// Waits for the lock of a login, which one process holds while it renews or replaces it. It is released with the file.
    ///
    /// # Errors
    /// `Conflict` if another process does not release it; `Io` if the lock file cannot be written.
    pub(super) fn lock(&self, address: &str) -> Result<File> {
        self.create_folder()?;
        let path = self.file(address).with_extension("lock");
        lock_within(&path, LOCK_TIMEOUT)
    }

    fn create_folder(&self) -> Result<()> {
        platform::make_private_dir(&self.folder).map_err(|error| Error::io("create", &self.folder, error))
    }
}

fn read(path: &Path) -> Result<Option<StoredLogin>> {
    let failed = |error| Error::io("read the login in", path, error);
    match platform::is_private(path) {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::invalid(format!("other users can read the login in {}", path.display()))
                .with_hint(format!("run: chmod 600 {}", path.display())));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let bytes = match safe_open::read_in_place(path, MAX_FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(failed)?,
    };
    // The cause is left out, because it may quote the file.
    serde_json::from_slice(&bytes).map(Some).map_err(|_| {
        Error::corrupt(format!("the login in {} is damaged", path.display()))
            .with_hint("remove the file, and run `sidenote login URL`")
    })
}
