//! Where the tokens of requests come from: a file of the operator, or a login, whose tokens are renewed before they expire.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sidenote_base::clock::{Clock, Timestamp};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};
use sidenote_config::Secret;
use sidenote_http_client::Http;

use crate::address::VaultAddress;
use crate::oauth::endpoints;
use crate::oauth::stored_login::{LoginStore, StoredLogin};

/// The largest token file in bytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;

/// Where the tokens of requests come from.
#[derive(Debug, Clone)]
pub enum TokenSource {
    /// There is no token.
    None,
    /// A file with a token, which another program may replace.
    File(PathBuf),
    /// The login of the user.
    Stored(Arc<StoredTokens>),
}

/// The tokens of a login.
#[derive(Debug)]
pub struct StoredTokens {
    store: LoginStore,
    address: VaultAddress,
    clock: Clock,
    login: Mutex<CurrentLogin>,
}

/// The login as it is now.
#[derive(Debug)]
struct CurrentLogin {
    login: StoredLogin,
    /// The refresh token that the file still has, if the file could not be written after a renewal. It may count no more.
    replaced: Option<Secret>,
}

impl TokenSource {
    /// Takes the tokens of the login at a vault; [`TokenSource::None`] without a login.
    ///
    /// # Errors
    /// The errors of [`LoginStore::find`].
    pub fn of_login(store: LoginStore, address: &VaultAddress, clock: Clock) -> Result<Self> {
        Ok(match store.find(address.url())? {
            None => Self::None,
            Some(login) => Self::Stored(Arc::new(StoredTokens {
                store,
                address: address.clone(),
                clock,
                login: Mutex::new(CurrentLogin { login, replaced: None }),
            })),
        })
    }

    /// Returns the token for a request, which is renewed if it is about to expire; empty for none.
    ///
    /// # Errors
    /// `Invalid` if the login has ended, or if others can read the file; `Io` if the token has expired and the provider cannot
    /// be reached, or if the file cannot be read.
    pub fn current(&self) -> Result<Secret> {
        match self {
            Self::None => Ok(Secret::default()),
            Self::File(path) => read_token(path),
            Self::Stored(tokens) => tokens.get(None),
        }
    }

    /// Returns a new token in place of one that the service does not accept; `None` if there is no other one.
    ///
    /// # Errors
    /// The errors of [`TokenSource::current`].
    pub fn renewed(&self, refused: &Secret) -> Result<Option<Secret>> {
        let token = match self {
            Self::None => return Ok(None),
            Self::File(path) => read_token(path)?,
            Self::Stored(tokens) => tokens.get(Some(refused))?,
        };
        Ok(Some(token).filter(|token| token != refused))
    }
}

/// Reads a token from a file that only its owner can read.
fn read_token(path: &Path) -> Result<Secret> {
    let failed = |error| Error::io("read the token in", path, error);
    if !platform::is_private(path).map_err(failed)? {
        return Err(Error::invalid(format!("other users can read the token in {}", path.display()))
            .with_hint(format!("run: chmod 600 {}", path.display())));
    }
    let bytes = safe_open::read_in_place(path, MAX_TOKEN_FILE).map_err(failed)?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} holds no token", path.display())))?;
    Ok(Secret::from(text))
}

impl StoredTokens {
    /// Returns the access token, which is renewed if it is about to expire or is the one that was refused.
    fn get(&self, refused: Option<&Secret>) -> Result<Secret> {
        let mut current = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        let CurrentLogin { login, replaced } = &mut *current;
        let now = self.clock.now();
        let is_good = |login: &StoredLogin| !login.is_expiring(now) && refused != Some(&login.access_token);
        if is_good(login) {
            return Ok(login.access_token.clone());
        }
        // A refresh token may count once only, so one process renews for all.
        let _lock = self.store.lock(self.address.url())?;
        let stored = self.store.find(self.address.url())?.ok_or_else(|| self.ended("was removed"))?;
        if replaced.as_ref() != Some(&stored.refresh_token) {
            (*login, *replaced) = (stored, None);
        }
        // Without a refresh token, the service decides whether the access token still counts.
        if is_good(login) || login.refresh_token.is_empty() {
            return Ok(login.access_token.clone());
        }
        match self.renew(login, now) {
            Ok(renewed) => {
                // The old refresh token may count no more, so the new one is used even if the file cannot be written.
                let old = std::mem::replace(login, renewed).refresh_token;
                let stored = self.store.store(login);
                if stored.is_ok() {
                    *replaced = None;
                }
                if let Err(error) = stored {
                    replaced.get_or_insert(old);
                    tracing::warn!(
                        "the renewed login cannot be stored; run `sidenote login {}` when this process has ended: {error}",
                        self.address.url()
                    );
                }
            }
            Err(error) if error.kind() == ErrorKind::Io && refused.is_none() && !login.is_expired(now) => {
                tracing::debug!("the token is not renewed yet: {error}");
            }
            Err(error) if error.kind() == ErrorKind::Invalid => {
                return Err(self.ended("has ended").with_source(error));
            }
            Err(error) => return Err(error),
        }
        Ok(login.access_token.clone())
    }

    /// Asks the provider for new tokens, which are not stored yet.
    fn renew(&self, login: &StoredLogin, now: Timestamp) -> Result<StoredLogin> {
        let (token, client) = (&login.refresh_token, &login.client_id);
        let resource = self.address.resource();
        let tokens = endpoints::refresh(&Http::default(), &login.token_endpoint, token, client, &resource)?;
        let mut renewed = login.clone();
        renewed.access_token = tokens.access;
        // A provider that gives no new refresh token lets the old one count on.
        if !tokens.refresh.is_empty() {
            renewed.refresh_token = tokens.refresh;
        }
        renewed.expires = expiry(now, tokens.seconds);
        renewed.scope = tokens.scope.unwrap_or(renewed.scope);
        Ok(renewed)
    }

    fn ended(&self, how: &str) -> Error {
        Error::invalid(format!("your login at {} {how}", self.address.host()))
            .with_hint(format!("run `sidenote login {}`", self.address.url()))
    }
}

/// Returns the time at which a token expires that counts for some seconds.
pub(super) fn expiry(now: Timestamp, seconds: Option<i64>) -> Option<Timestamp> {
    let millis = seconds?.clamp(0, 10 * 365 * 86_400) * 1000;
    Some(Timestamp::from_millis(now.millis() + millis))
}
