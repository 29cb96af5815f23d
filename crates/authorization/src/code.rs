//! Authorization codes: they count once, for a minute, and live in memory alone.

use std::collections::HashMap;

use sidenote_base::clock::Timestamp;

use crate::scope::Scopes;
use crate::ticket::Ticket;
use crate::token::TokenHash;

/// The time in milliseconds for which a code counts.
const LIFETIME: i64 = 60_000;

/// What a code stands for.
#[derive(Debug, Clone)]
pub(crate) struct Code {
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect_uri: String,
    pub(crate) challenge: String,
    pub(crate) scopes: Scopes,
    pub(crate) resource: String,
    /// The generation of the state in which its ticket was made.
    pub(crate) generation: String,
    expires: Timestamp,
}

impl Code {
    /// Makes what the code of a ticket stands for.
    pub(crate) fn of(ticket: Ticket, now: Timestamp) -> Self {
        Self {
            client_id: ticket.client_id,
            client_name: ticket.client_name,
            redirect_uri: ticket.redirect_uri,
            challenge: ticket.challenge,
            scopes: ticket.scopes,
            resource: ticket.resource,
            generation: ticket.generation,
            expires: Timestamp::from_millis(now.millis() + LIFETIME),
        }
    }
}

/// The codes of the last minute. Each was made after the passphrase was right, so they are few.
#[derive(Debug, Default)]
pub(crate) struct Codes(HashMap<TokenHash, Entry>);

/// A code, until it expires. Once it is used, only the time is kept, so that its reuse is noticed.
#[derive(Debug)]
struct Entry {
    code: Option<Code>,
    expires: Timestamp,
}

impl Codes {
    /// Adds a code.
    pub(crate) fn add(&mut self, code: &str, stands_for: Code, now: Timestamp) {
        self.0.retain(|_, entry| entry.expires > now);
        let expires = stands_for.expires;
        self.0.insert(TokenHash::of(code), Entry { code: Some(stands_for), expires });
    }

    /// Returns whether this is a code of the last minute, used or not.
    pub(crate) fn knows(&self, code: &TokenHash) -> bool {
        self.0.contains_key(code)
    }

    /// Takes a code, which counts no more, whatever comes of it. Returns `None` if it does not count.
    pub(crate) fn take(&mut self, code: &TokenHash, now: Timestamp) -> Option<Code> {
        self.0.get_mut(code)?.code.take().filter(|code| code.expires > now)
    }
}
