//! Tickets: authorization requests that were checked, which the page of consent sends back. The server signs them with a key
//! of its process, and stores none, so that requests of strangers take no memory. A ticket that was decided counts no more.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use crate::scope::Scopes;
use crate::token::{TokenHash, is_same, random_bytes};

/// The time in milliseconds that the person has to decide.
const LIFETIME: i64 = 10 * 60_000;
/// The decided tickets that are remembered. Strangers can deny their own, so the oldest is forgotten beyond that: it could only
/// be denied again, or allowed with the passphrase.
const MAX_DECIDED: usize = 4096;

/// An authorization request that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
    pub(crate) challenge: String,
    pub(crate) scopes: Scopes,
    pub(crate) resource: String,
    /// The cookie of the browser for which it was made, so that no other page can send it.
    pub(crate) browser: TokenHash,
    pub(crate) expires: Timestamp,
    /// The generation of the state in which it was made.
    pub(crate) generation: String,
}

/// Returns when a ticket that is made now expires.
pub(crate) fn expiry(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.millis() + LIFETIME)
}

/// The key with which this process signs tickets.
pub(crate) struct TicketKey([u8; 32]);

impl std::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TicketKey")
    }
}

impl TicketKey {
    /// Makes a key.
    ///
    /// # Errors
    /// `Internal` if the system has no random numbers.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(random_bytes()?))
    }

    /// Signs a ticket.
    ///
    /// # Errors
    /// `Internal` if it cannot be written as JSON.
    pub(crate) fn seal(&self, ticket: &Ticket) -> Result<String> {
        let json = serde_json::to_vec(ticket)
            .map_err(|error| Error::internal("cannot write a ticket as JSON").with_source(error))?;
        let text = URL_SAFE_NO_PAD.encode(json);
        let mac = blake3::keyed_hash(&self.0, text.as_bytes());
        Ok(format!("{text}.{}", mac.to_hex()))
    }

    /// Reads a ticket of this process, for the browser with this cookie. Returns `None` for any other, and for one that has
    /// expired.
    pub(crate) fn open(&self, sealed: &str, cookie: &str, now: Timestamp) -> Option<Ticket> {
        let (text, mac) = sealed.split_once('.')?;
        if !is_same(blake3::keyed_hash(&self.0, text.as_bytes()).to_hex().as_bytes(), mac.as_bytes()) {
            return None;
        }
        let ticket: Ticket = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        (ticket.expires > now && ticket.browser == TokenHash::of(cookie)).then_some(ticket)
    }
}

/// The tickets that were decided, until they expire.
#[derive(Debug, Default)]
pub(crate) struct Decided(VecDeque<(TokenHash, Timestamp)>);

impl Decided {
    /// Returns whether a sealed ticket was decided.
    pub(crate) fn has(&self, sealed: &TokenHash) -> bool {
        self.0.iter().any(|(known, _)| known == sealed)
    }

    /// Adds a sealed ticket. Returns whether it was not decided before.
    pub(crate) fn add(&mut self, sealed: TokenHash, expires: Timestamp, now: Timestamp) -> bool {
        self.0.retain(|(_, expires)| *expires > now);
        if self.has(&sealed) {
            return false;
        }
        if self.0.len() >= MAX_DECIDED {
            self.0.pop_front();
        }
        self.0.push_back((sealed, expires));
        true
    }
}
