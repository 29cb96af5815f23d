//! The database: connections, transactions for one vault, and errors. The only user of `postgres`, `rustls` and
//! `tokio-postgres-rustls`.
//!
//! No statement is built from text, and none runs on a vault's rows before the vault is set for row-level security.

pub(crate) mod forget;
pub(crate) mod import;
pub(crate) mod members;
pub(crate) mod schema;
pub(crate) mod tables;
pub(crate) mod turn;

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::types::Type;
use postgres::{Client, IsolationLevel, NoTls, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use sidenote_foundation::error::{Error, ErrorKind, Result};
use sidenote_foundation::vault::failpoint;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the network may be silent before a connection counts as cut off.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections that are kept for the next request.
const MAX_IDLE: usize = 16;

/// A transaction, as callers outside of this module pass it on.
pub(crate) type Reading<'a> = Transaction<'a>;

/// A database with vaults.
pub struct Database {
    config: postgres::Config,
    /// The TLS connector; `None` for a socket or a loopback address.
    tls: Option<MakeRustlsConnect>,
    idle: Mutex<Vec<Client>>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration may hold a password.
        f.debug_struct("Database").field("hosts", &self.config.get_hosts()).finish_non_exhaustive()
    }
}

impl Database {
    /// Reads the address of a database. Nothing is connected yet.
    ///
    /// # Errors
    /// `Invalid` if the address cannot be parsed.
    pub fn new(address: &str) -> Result<Self> {
        let mut config: postgres::Config = address.parse().map_err(|error: postgres::Error| {
            Error::invalid("the address of the database is not valid").with_source(error).with_hint(
                "write it as postgres://USER@HOST/NAME, or postgres:///NAME?host=/FOLDER for a socket",
            )
        })?;
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(NETWORK_TIMEOUT)
            .keepalives_idle(NETWORK_TIMEOUT);
        config.application_name("sidenote");
        let is_remote = |host: &Host| matches!(host, Host::Tcp(name) if !is_loopback(name));
        let tls = if !config.get_hosts().iter().any(is_remote) && config.get_ssl_mode() != SslMode::Require {
            None
        } else {
            config.ssl_mode(SslMode::Require);
            Some(MakeRustlsConnect::with_webpki_roots())
        };
        Ok(Self { config, tls, idle: Mutex::default() })
    }

    /// Connects, or takes a connection that is free.
    pub(crate) fn client(&self) -> Result<Client> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(client) if client.is_closed() => {}
                Some(client) => return Ok(client),
                None => return self.connect(),
            }
        }
    }

    fn connect(&self) -> Result<Client> {
        failpoint();
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        };
        connected.map_err(|error| failed("be reached", error))
    }

    /// Keeps a connection for the next request. It must be in no transaction.
    pub(crate) fn put_back(&self, client: Client) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !client.is_closed() && idle.len() < MAX_IDLE {
            idle.push(client);
        }
    }

    /// Reads in one consistent state of a vault. A connection that was lost meanwhile is made anew once, which is safe
    /// because nothing is written.
    pub(crate) fn read<T>(
        &self,
        vault: Option<Uuid>,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut is_first = true;
        loop {
            let mut client = self.client()?;
            let done = in_transaction(&mut client, vault, true, &mut work);
            let is_lost = client.is_closed();
            self.put_back(client);
            match done {
                Err(_) if is_lost && is_first => is_first = false,
                done => return done,
            }
        }
    }

    /// Writes in one transaction.
    pub(crate) fn write<T>(
        &self,
        vault: Option<Uuid>,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut client = self.client()?;
        let done = in_transaction(&mut client, vault, false, &mut work);
        self.put_back(client);
        done
    }
}

/// Says whether a name means this machine.
fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

fn in_transaction<T>(
    client: &mut Client,
    vault: Option<Uuid>,
    only_reads: bool,
    work: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
) -> Result<T> {
    failpoint();
    let level = if only_reads { IsolationLevel::RepeatableRead } else { IsolationLevel::ReadCommitted };
    let begun = client.build_transaction().isolation_level(level).read_only(only_reads).start();
    let mut transaction = begun.map_err(|error| failed("begin", error))?;
    if let Some(vault) = vault {
        transaction
            .query_typed(SET_VAULT, &[(&vault.to_string(), Type::TEXT)])
            .map_err(|error| failed("select the vault", error))?;
    }
    let done = work(&mut transaction)?;
    failpoint();
    transaction.commit().map_err(|error| failed("commit", error))?;
    Ok(done)
}

/// Sets the vault for row-level security until the end of the transaction.
pub(crate) const SET_VAULT: &str = "select set_config('sidenote.vault', $1, true)";

/// Converts an error of the database. `doing` completes "the database cannot …".
pub(crate) fn failed(doing: &str, error: postgres::Error) -> Error {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return Error::new(ErrorKind::Conflict, "another server is changing this vault")
            .with_hint("try again when it has finished");
    }
    if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        return Error::new(ErrorKind::Io, format!("the role of the connection may not {doing}"))
            .with_hints(
                "connect as a role that owns the tables: --database ADDRESS, as for `sidenote team init`",
                "tell the user",
            )
            .with_source(error);
    }
    let said = match error.as_db_error() {
        Some(told) => told.message().to_owned(),
        None => error.to_string(),
    };
    Error::new(ErrorKind::Io, format!("the database cannot {doing}: {said}"))
        .with_hints(
            "see whether PostgreSQL runs and can be reached",
            "try again; if it fails again, tell the user",
        )
        .with_source(error)
}
