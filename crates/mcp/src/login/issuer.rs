//! An identity provider: its metadata, its public keys, and when they are read again.
//!
//! Keys come from the metadata of a configured provider alone, never from an address or a key that a token names.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_http_client::{fetch_document, is_secure};

use super::refusal::Refusal;

/// The largest document of a provider, in bytes.
const MAX_DOCUMENT: u64 = 1 << 20;
/// The time in which a document must arrive.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// The shortest time between two readings while there are no keys, so that people can log in again as soon as the provider is back.
const AWAY_RETRY: Duration = Duration::from_secs(1);

/// When the keys of a provider are read.
#[derive(Debug, Clone, Copy)]
pub struct KeyTimes {
    /// The time after which keys are read again.
    pub refresh: Duration,
    /// The shortest time between two readings, whatever tokens name.
    pub retry: Duration,
    /// The time for which keys count while they cannot be read again.
    pub hold: Duration,
}

impl Default for KeyTimes {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(600),
            retry: Duration::from_secs(60),
            hold: Duration::from_secs(86_400),
        }
    }
}

/// A public key with what it may be used for.
#[derive(Debug, Clone)]
struct PublicKey {
    key: DecodingKey,
    /// The curve, for the families that have several.
    curve: Option<EllipticCurve>,
    /// The only algorithm that the provider uses the key with, if it says so.
    algorithm: Option<String>,
}

impl PublicKey {
    /// Reads a key of a key set. Returns `None` for one that verifies no signatures of tokens.
    fn of(jwk: &Jwk) -> Option<(String, Self)> {
        let common = &jwk.common;
        let is_for_signatures =
            common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
        let curve = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => None,
            AlgorithmParameters::EllipticCurve(key) => Some(key.curve.clone()),
            AlgorithmParameters::OctetKeyPair(key) => Some(key.curve.clone()),
            // A shared secret is no public key.
            _ => return None,
        };
        let id = common.key_id.clone().filter(|_| is_for_signatures)?;
        let key = DecodingKey::from_jwk(jwk).ok()?;
        let algorithm = common.key_algorithm.as_ref().map(ToString::to_string);
        Some((id, Self { key, curve, algorithm }))
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let curve = match algorithm {
            Algorithm::ES256 => Some(EllipticCurve::P256),
            Algorithm::ES384 => Some(EllipticCurve::P384),
            Algorithm::EdDSA => Some(EllipticCurve::Ed25519),
            _ => None,
        };
        let is_named = |name: &String| *name == format!("{algorithm:?}");
        self.key.family() == algorithm.family()
            && self.key.family() != AlgorithmFamily::Hmac
            && self.curve == curve
            && self.algorithm.as_ref().is_none_or(is_named)
    }
}

/// The keys of a provider by their ids.
type KeySet = HashMap<String, Vec<PublicKey>>;

/// The keys that were read last.
#[derive(Debug, Default)]
struct Keys {
    set: KeySet,
    read_at: Option<Instant>,
    /// The time of the last attempt, also of one that failed.
    tried_at: Option<Instant>,
    /// Whether the last attempt failed, which was logged when that began.
    is_away: bool,
}

/// An identity provider that the operator trusts.
#[derive(Debug)]
pub(super) struct Issuer {
    /// The identifier, as tokens have it.
    pub(super) name: String,
    times: KeyTimes,
    keys: Mutex<Keys>,
    /// Held while the keys are read, so that one request reads them for all.
    reading: tokio::sync::Mutex<()>,
}

impl Issuer {
    pub(super) fn new(name: String, times: KeyTimes) -> Self {
        Self { name, times, keys: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a key that is known, and the age of the keys.
    fn known(&self, id: &str, algorithm: Algorithm) -> Option<(DecodingKey, Duration)> {
        let keys = self.keys();
        let age = keys.read_at?.elapsed();
        if age > self.times.hold {
            return None;
        }
        let found = keys.set.get(id)?.iter().find(|key| key.fits(algorithm))?;
        Some((found.key.clone(), age))
    }

    /// Returns whether there are keys that count. They are read if not, unless that was tried a moment ago.
    pub(super) async fn has_keys(&self) -> bool {
        let are_known = || self.keys().read_at.is_some_and(|at| at.elapsed() <= self.times.hold);
        if !are_known() {
            let _reading = self.reading.lock().await;
            if !are_known() {
                self.read_again().await;
            }
        }
        are_known()
    }

    /// Finds the key with an id for an algorithm. The keys are read if they are old or have no such id, but not more often
    /// than the times allow.
    pub(super) async fn find(&self, id: &str, algorithm: Algorithm) -> Result<DecodingKey, Refusal> {
        match self.known(id, algorithm) {
            Some((key, age)) if age <= self.times.refresh => return Ok(key),
            Some((key, _)) => {
                // Nobody waits for what is known.
                let Ok(_reading) = self.reading.try_lock() else { return Ok(key) };
                self.read_again().await;
            }
            None => {
                let _reading = self.reading.lock().await;
                if self.known(id, algorithm).is_none() {
                    self.read_again().await;
                }
            }
        }
        match self.known(id, algorithm) {
            Some((key, _)) => Ok(key),
            None if self.keys().read_at.is_none_or(|at| at.elapsed() > self.times.hold) => {
                Err(Refusal::NoKeys)
            }
            None => Err(Refusal::UnknownKey),
        }
    }

    /// Returns the time after which the keys are read again for a key that is not known.
    pub(super) fn next_reading(&self) -> Duration {
        let keys = self.keys();
        let retry = self.retry(&keys);
        retry.saturating_sub(keys.tried_at.map_or(retry, |at| at.elapsed()))
    }

    /// Returns the shortest time between two readings. Without keys that count, nobody can log in, and nothing is gained by a long
    /// one.
    fn retry(&self, keys: &Keys) -> Duration {
        let has_keys = keys.read_at.is_some_and(|at| at.elapsed() <= self.times.hold);
        if has_keys { self.times.retry } else { self.times.retry.min(AWAY_RETRY) }
    }

    /// Reads the keys, unless that was tried a moment ago. When failures begin and end
    /// is logged; the keys stay as they are.
    async fn read_again(&self) {
        {
            let keys = self.keys();
            if keys.tried_at.is_some_and(|at| at.elapsed() < self.retry(&keys)) {
                return;
            }
        }
        let name = self.name.clone();
        let read = tokio::task::spawn_blocking(move || read_keys(&name)).await;
        let read =
            read.unwrap_or_else(|error| Err(Error::internal("the reading of keys ended").with_source(error)));
        let mut keys = self.keys();
        let now = Instant::now();
        keys.tried_at = Some(now);
        match read {
            Ok(set) => {
                (keys.set, keys.read_at) = (set, Some(now));
                if std::mem::take(&mut keys.is_away) {
                    tracing::warn!("the keys of {} can be read again", self.name);
                }
            }
            Err(error) if std::mem::replace(&mut keys.is_away, true) => {
                tracing::debug!("the keys of {} cannot be read: {error}", self.name);
            }
            Err(error) => {
                let effect = match keys.read_at {
                    Some(at) if at.elapsed() < self.times.hold => {
                        let left = self.times.hold.saturating_sub(at.elapsed()).as_secs() / 60;
                        format!(
                            "tokens are checked with the keys that were read before, for {left} more minutes"
                        )
                    }
                    _ => "nobody can log in".to_owned(),
                };
                tracing::warn!(
                    "the keys of {} cannot be read, so {effect}; see whether the provider runs and this machine can reach it: {error}",
                    self.name
                );
            }
        }
    }
}

/// The fields that are read of the metadata of a provider (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Reads the keys of a provider, which its metadata names.
fn read_keys(issuer: &str) -> Result<KeySet> {
    let mut metadata = None;
    for address in metadata_addresses(issuer) {
        match fetch_document(&address, MAX_DOCUMENT, FETCH_TIMEOUT) {
            Ok(document) => {
                metadata = Some((address, document));
                break;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let Some((address, document)) = metadata else {
        return Err(Error::not_found(format!("{issuer} has no metadata")));
    };
    let metadata: Metadata = parse(&address, &document)?;
    if metadata.issuer != issuer {
        return Err(Error::invalid(format!("{address} is the metadata of another issuer")));
    }
    if !is_secure(&metadata.jwks_uri) {
        return Err(Error::invalid(format!("{address} names keys at an address without https")));
    }
    /// The list of keys. A key that is not understood does not spoil the others.
    #[derive(Deserialize)]
    struct Document {
        keys: Vec<Value>,
    }
    let document = fetch_document(&metadata.jwks_uri, MAX_DOCUMENT, FETCH_TIMEOUT)?;
    let document: Document = parse(&metadata.jwks_uri, &document)?;
    let mut set = KeySet::new();
    for key in document.keys {
        let known = serde_json::from_value::<Jwk>(key).ok().and_then(|jwk| PublicKey::of(&jwk));
        if let Some((id, key)) = known {
            set.entry(id).or_default().push(key);
        }
    }
    if set.is_empty() {
        return Err(Error::invalid(format!("{} has no key that verifies tokens", metadata.jwks_uri)));
    }
    Ok(set)
}

fn parse<T: for<'d> Deserialize<'d>>(address: &str, document: &[u8]) -> Result<T> {
    serde_json::from_slice(document)
        .map_err(|error| Error::invalid(format!("{address} is not what it should be")).with_source(error))
}

/// Lists the addresses at which a provider may have its metadata: that of OpenID Connect, and that of RFC 8414.
fn metadata_addresses(issuer: &str) -> [String; 2] {
    let base = issuer.trim_end_matches('/');
    let host_end = base.find("://").map_or(0, |at| at + 3);
    let path = base.get(host_end..).and_then(|rest| rest.find('/')).map_or(base.len(), |at| host_end + at);
    let (origin, path) = base.split_at(path);
    [
        format!("{base}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
    ]
}
