//! An OAuth 2.1 authorization server for one or a few people: it tells clients where to log in, asks the person at a page,
//! and issues tokens that count for one vault. It knows no framework of HTTP, opens no connection and reads no note.
//!
//! It follows the authorization of MCP 2026-07-28: RFC 8414, 9728, 7591, 7636, 8707, 9207, 7009, 8252, and client id metadata
//! documents. Tokens are stored as hashes. What a stranger can send changes nothing but the log, and takes bounded memory.

mod audit;
mod authorize;
mod client;
mod code;
mod documents;
mod logins;
mod message;
mod metadata;
mod page;
mod passphrase;
mod redirect_uri;
mod registration;
mod scope;
mod slowdown;
mod state;
mod ticket;
mod token;
mod token_endpoint;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use url::Url;

pub use crate::audit::AuditEntry;
use crate::audit::AuditLog;
pub use crate::client::MAX_DOCUMENT;
use crate::code::Codes;
use crate::documents::ClientDocuments;
pub use crate::documents::FetchDocument;
pub use crate::logins::{GrantInfo, Logins, RevokeReply};
pub use crate::message::{Reply, Request};
pub use crate::metadata::{AUTHORIZATION_METADATA, RESOURCE_METADATA};
pub use crate::scope::Scopes;
use crate::slowdown::{Quota, Slowdown};
use crate::state::{Grant, StateFile};
use crate::ticket::{Decided, Ticket, TicketKey};
use crate::token::TokenHash;

/// The largest body of a request in bytes.
pub const MAX_BODY: usize = 64 << 10;

/// Returns the current time.
pub type TimeSource = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// An endpoint for which tokens are issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its address, such as `https://notes.example/mcp`.
    pub address: String,
    /// The name of its vault, which the page of consent shows.
    pub vault: String,
    /// What the vault is known by, whatever its address and its name are: tokens count for it alone.
    pub identity: String,
}

/// Says what an endpoint lets a client do by the rules of its owner: called with the address of the endpoint and the name of the
/// client. `None` if no rule limits it.
pub type DescribeRule = Box<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// The settings of the server.
pub struct Options {
    /// The origin of the server, as clients reach it, such as `https://notes.example`.
    pub issuer: String,
    /// The endpoints, which are below the issuer.
    pub resources: Vec<Resource>,
    /// The most that a client may do.
    pub most: Scopes,
    /// The folder with the grants and the audit log, which is the user's own.
    pub folder: PathBuf,
    /// Tells the time.
    pub now: TimeSource,
    /// How documents of clients are fetched.
    pub fetch: FetchDocument,
    /// Says on the page of consent what a rule lets a client do.
    pub rule: DescribeRule,
}

/// The holder of a token that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The id of the grant.
    pub grant: String,
    /// The id of the client.
    pub client_id: String,
    /// The name that the client gives itself.
    pub client_name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When the token expires.
    pub expires: Timestamp,
}

/// The authorization server.
pub struct AuthorizationServer {
    issuer: String,
    resources: Vec<Resource>,
    most: Scopes,
    now: TimeSource,
    state: StateFile,
    audit: AuditLog,
    key: TicketKey,
    /// Says what a rule lets a client do.
    rule: DescribeRule,
    documents: ClientDocuments,
    codes: Mutex<Codes>,
    decided: Mutex<Decided>,
    slowdown: Mutex<Slowdown>,
    registrations: Mutex<Quota>,
    /// Those of programs on this machine, so that strangers elsewhere cannot use them up.
    local_registrations: Mutex<Quota>,
    /// Held while a passphrase is hashed.
    hashing: Mutex<()>,
}

impl AuthorizationServer {
    /// Creates the server.
    ///
    /// # Errors
    /// `Invalid` if the issuer is no origin with `https`, or with `http` on this machine; `Internal` if the system has no
    /// random numbers.
    pub fn new(options: Options) -> Result<Self> {
        let state = StateFile::new(options.folder.clone());
        Ok(Self {
            issuer: origin(&options.issuer)?,
            resources: options.resources,
            most: options.most,
            now: options.now,
            state,
            audit: AuditLog::new(options.folder),
            key: TicketKey::new()?,
            rule: options.rule,
            documents: ClientDocuments::new(options.fetch),
            codes: Mutex::default(),
            decided: Mutex::default(),
            slowdown: Mutex::default(),
            registrations: Mutex::new(registration::quota()),
            local_registrations: Mutex::new(registration::quota()),
            hashing: Mutex::default(),
        })
    }

    /// Answers a request. It may block: it reads and writes files, hashes passphrases and fetches documents.
    ///
    /// # Errors
    /// An error that the person who runs the server has to see; the client is told no more than that it failed.
    pub fn handle(&self, request: &Request<'_>) -> Result<Reply> {
        if request.body.len() > MAX_BODY || request.query.len() > MAX_BODY {
            return Ok(Reply::error(413, "invalid_request", "the request is too large"));
        }
        match request.path {
            "/authorize" => self.authorize(request),
            "/token" => self.token(request),
            "/register" => self.register(request),
            "/revoke" => self.revoke(request),
            _ => Ok(self.metadata(request)),
        }
    }

    /// Returns the address of the metadata of an endpoint at this path.
    pub fn metadata_address(&self, path: &str) -> String {
        format!("{}{RESOURCE_METADATA}{path}", self.issuer)
    }

    /// Returns the origin of the server, as clients reach it.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the scopes that clients are to ask for.
    pub fn most(&self) -> Scopes {
        self.most
    }

    /// Finds the holder of an access token for the endpoint at a path. Returns `None` if the token does not count there.
    ///
    /// # Errors
    /// An error if the grants cannot be read.
    pub fn check(&self, token: &str, path: &str) -> Result<Option<Holder>> {
        let (hash, now) = (TokenHash::of(token), self.now());
        let resource = format!("{}{path}", self.issuer);
        let state = self.state.read()?;
        let found = state.grants.iter().find_map(|grant| {
            let access = grant.access.iter().find(|access| access.hash == hash)?;
            let counts = access.expires > now && grant.resource == resource && self.serves(grant);
            counts.then_some((grant, access.expires))
        });
        Ok(found.map(|(grant, expires)| Holder {
            grant: grant.id.clone(),
            client_id: grant.client_id.clone(),
            client_name: grant.client_name.clone(),
            scopes: grant.scopes.min(self.most),
            expires,
        }))
    }

    /// Returns whether a grant was not revoked.
    ///
    /// # Errors
    /// An error if the grants cannot be read.
    pub fn is_granted(&self, grant: &str) -> Result<bool> {
        Ok(self.state.read()?.grants.iter().any(|known| known.id == grant))
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns whether the vault of a grant is still the one at its endpoint.
    fn serves(&self, grant: &Grant) -> bool {
        let is_it = |known: &Resource| known.address == grant.resource && known.identity == grant.vault;
        self.resources.iter().any(is_it)
    }

    /// Returns the endpoint that a request names, or the only one.
    fn resource(&self, given: Option<&str>) -> Option<&str> {
        let addresses = self.resources.iter().map(|resource| resource.address.as_str());
        match (given, self.resources.as_slice()) {
            (Some(given), _) => addresses.into_iter().find(|address| self.is_resource(given, address)),
            (None, [only]) => Some(&only.address),
            (None, _) => None,
        }
    }

    /// Returns whether a client means an endpoint. A slash at the end is no other endpoint.
    fn is_resource(&self, given: &str, address: &str) -> bool {
        given.strip_suffix('/').unwrap_or(given) == address
    }

    fn codes(&self) -> MutexGuard<'_, Codes> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slowdown(&self) -> MutexGuard<'_, Slowdown> {
        self.slowdown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the line of the audit log about a grant.
    fn entry(&self, event: &str, grant: &Grant, address: Option<IpAddr>) -> AuditEntry {
        AuditEntry {
            address: address.map(|address| address.to_string()),
            ..logins::entry(self.now(), event, grant)
        }
    }

    /// Notes in the audit log what a person decided.
    fn note(&self, ticket: &Ticket, event: &str, address: IpAddr) {
        let entry = AuditEntry {
            address: Some(address.to_string()),
            client_id: Some(ticket.client_id.clone()),
            client: Some(ticket.client_name.clone()),
            scope: Some(ticket.scopes.text().to_owned()),
            resource: Some(ticket.resource.clone()),
            ..AuditEntry::new(self.now(), event)
        };
        // Whoever is asked without the right passphrase may be anybody.
        match event {
            "consented" => self.audit.add(&entry),
            _ => self.audit.add_of_stranger(entry, address),
        }
    }
}

/// Reads the public address of a server: an origin, with `https` unless it is this machine.
///
/// # Errors
/// `Invalid` if it is none.
pub fn origin(text: &str) -> Result<String> {
    let invalid = || {
        Error::invalid(format!("{text:?} is no public address of a server"))
            .with_hint("write it with https and without a path: https://notes.example")
    };
    let url = Url::parse(text).map_err(|_| invalid())?;
    let is_origin = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && url.host().is_some();
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && redirect_uri::is_loopback(&url);
    if is_origin && is_safe { Ok(url.origin().ascii_serialization()) } else { Err(invalid()) }
}
