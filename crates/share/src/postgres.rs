//! The database: connections, transactions for one vault, and errors. The only user of `postgres`, `rustls` and
//! `tokio-postgres-rustls`.
//!
//! No statement is built from text, and none runs on a vault's rows before the vault is set for row-level security.

mod failure;
pub(crate) mod clean;
pub(crate) mod forget;
pub(crate) mod import;
pub(crate) mod listener;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod restore;
pub(crate) mod schema;
pub(crate) mod tables;
mod tls;
pub(crate) mod row_lock;
mod vectors;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::types::Type;
use postgres::{Client, IsolationLevel, NoTls, Transaction};
use sidenote_base::error::{Error, Result};
use sidenote_http_client::is_loopback_name;
use sidenote_vault::failpoint;
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

pub(crate) use self::failure::failed;
use self::failure::{Outage, unreachable};
use crate::quota::Quota;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the network may be silent before a connection counts as cut off.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(10);
/// The port of PostgreSQL where the address names none.
const DEFAULT_PORT: u16 = 5432;
/// The most connections that are kept for the next request.
const MAX_IDLE: usize = 16;

/// A transaction, as callers outside of this module pass it on.
pub(crate) type Reading<'a> = Transaction<'a>;

/// A database with vaults.
// size: the connections here, and what is asked of the tables in a file for each topic.
pub struct Database {
    config: postgres::Config,
    /// The TLS connector; `None` for a socket or a loopback address.
    tls: Option<MakeRustlsConnect>,
    idle: Mutex<Vec<Client>>,
    /// Whether outages are logged, as a server does.
    logs_outages: AtomicBool,
    /// Why the last attempt to connect has failed, if it has.
    outage: Mutex<Option<Outage>>,
    pub(crate) turns: TurnCounts,
}

/// What is counted of the turns of changes since the process was started.
#[derive(Debug, Default)]
pub(crate) struct TurnCounts {
    /// The turns that were given.
    pub(crate) given: AtomicU64,
    /// The turns that were not given in time.
    pub(crate) missed: AtomicU64,
    /// The microseconds that both were waited for.
    pub(crate) waited: AtomicU64,
    /// The changes that were refused because a file was not as they expected it.
    pub(crate) conflicts: AtomicU64,
    /// The changes that were refused because they would have exceeded a quota, in the order of [`Quota::ALL`].
    over_quota: [AtomicU64; Quota::ALL.len()],
}

impl TurnCounts {
    /// Returns the number of changes that would have exceeded a quota.
    pub(crate) fn over_quota(&self, quota: Quota) -> &AtomicU64 {
        let [bytes, notes, changes] = &self.over_quota;
        match quota {
            Quota::Bytes => bytes,
            Quota::Notes => notes,
            Quota::Changes => changes,
        }
    }
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
    /// `Invalid` if the address cannot be parsed, or if its file of certificates has none; `NotFound` or `Io` if that file
    /// cannot be read.
    pub fn new(address: &str) -> Result<Self> {
        check_encoding(address)?;
        let (address, roots) = tls::split_address(address);
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
        let is_remote = |host: &Host| matches!(host, Host::Tcp(name) if !is_loopback_name(name));
        let leaves_machine = config.get_hosts().iter().any(is_remote)
            || config.get_hostaddrs().iter().any(|ip| !ip.is_loopback());
        let tls = if !leaves_machine && config.get_ssl_mode() != SslMode::Require {
            None
        } else {
            config.ssl_mode(SslMode::Require);
            Some(tls::connector(roots.as_deref())?)
        };
        Ok(Self {
            config,
            tls,
            idle: Mutex::default(),
            logs_outages: AtomicBool::new(false),
            outage: Mutex::default(),
            turns: TurnCounts::default(),
        })
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

    pub(super) fn connect(&self) -> Result<Client> {
        failpoint();
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        };
        let connected = connected.map_err(|error| unreachable(&self.place(), error));
        self.note_contact(connected.as_ref().err());
        connected
    }

    /// Has every outage logged from now on: a line when it begins, and one when it has ended.
    pub(crate) fn log_outages(&self) {
        self.logs_outages.store(true, Ordering::Relaxed);
    }

    /// Returns the number of connections that wait for a request.
    pub(crate) fn idle_connections(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether the database could not be reached when that was last tried.
    pub(crate) fn is_away(&self) -> bool {
        self.last_outage().is_some()
    }

    /// Returns why the database could not be reached when that was last tried, if so.
    pub(crate) fn outage(&self) -> Option<Error> {
        self.last_outage().as_ref().map(Outage::error)
    }

    fn last_outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_contact(&self, error: Option<&Error>) {
        let was_away = std::mem::replace(&mut *self.last_outage(), error.map(Outage::of)).is_some();
        if !self.logs_outages.load(Ordering::Relaxed) {
            return;
        }
        match error {
            Some(error) if !was_away => {
                let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                tracing::warn!(
                    "{error}; changes fail, and reads are answered from the copies for a while{hint}"
                );
            }
            None if was_away => tracing::warn!("the database can be reached again"),
            _ => {}
        }
    }

    /// Says where the database should be, for an operator.
    fn place(&self) -> String {
        let ports = self.config.get_ports();
        let place = |(at, host): (usize, &Host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
            // Only some systems have the other kind of host, a folder with a socket.
            let shown = format!("{host:?}");
            let name = shown.split('"').nth(1).unwrap_or_default();
            if matches!(host, Host::Tcp(_)) {
                format!("{name} port {port}")
            } else {
                format!("the socket {name}/.s.PGSQL.{port}")
            }
        };
        let places: Vec<String> = self.config.get_hosts().iter().enumerate().map(place).collect();
        places.join(" or ")
    }

    /// Keeps a connection for the next request. It must be in no transaction.
    pub(crate) fn put_back(&self, client: Client) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !client.is_closed() && idle.len() < MAX_IDLE {
            idle.push(client);
        }
    }

    /// Reads in one consistent state of a vault. A connection that was lost meanwhile is made again once, which is safe
    /// because nothing is written.
    pub(crate) fn read<T>(
        &self,
        vault: Option<Uuid>,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let (client, done) = self.with_client(|client| in_transaction(client, vault, true, &mut work))?;
        self.put_back(client);
        Ok(done)
    }

    /// Does something on a connection, and returns the connection with the result. If the connection is lost meanwhile,
    /// `work` is repeated on a new one, so it must not have written anything permanently by then.
    pub(crate) fn with_client<T>(
        &self,
        mut work: impl FnMut(&mut Client) -> Result<T>,
    ) -> Result<(Client, T)> {
        let mut is_first = true;
        loop {
            let mut client = self.client()?;
            match work(&mut client) {
                Ok(done) => {
                    self.note_contact(None);
                    return Ok((client, done));
                }
                Err(_) if client.is_closed() && std::mem::take(&mut is_first) => self.forget_idle(),
                Err(error) => {
                    self.put_back(client);
                    return Err(error);
                }
            }
        }
    }

    /// Closes the connections that are free: where one is lost, the others are most likely, too.
    pub(crate) fn forget_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Writes in one transaction.
    pub(crate) fn write<T>(
        &self,
        vault: Option<Uuid>,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut client = self.client()?;
        let done = in_transaction(&mut client, vault, false, &mut work);
        let is_lost = client.is_closed();
        self.put_back(client);
        match &done {
            Ok(_) => self.note_contact(None),
            Err(_) if is_lost => self.look_again(),
            Err(_) => {}
        }
        done
    }

    /// Finds out, after a connection was lost, whether the database is away.
    fn look_again(&self) {
        self.forget_idle();
        // A failure is noted by the attempt itself, and the caller has an error already.
        if let Ok(client) = self.connect() {
            self.put_back(client);
        }
    }
}

/// Checks that the user and the password of an address are percent-encoded where they must be. Otherwise the driver
/// would read a part of them as a host, and name it in errors.
fn check_encoding(address: &str) -> Result<()> {
    let Some((_, rest)) = address.split_once("://") else { return Ok(()) };
    let place = rest.split('?').next().unwrap_or_default();
    let (user, host) = place.rsplit_once('@').unwrap_or(("", place));
    // Without a host, what looks like a port is a password that has a question mark.
    let is_cut = host.rsplit_once(':').is_some_and(|(_, port)| {
        let port = port.split('/').next().unwrap_or_default();
        !host.starts_with('[') && !port.chars().all(|digit| digit.is_ascii_digit() || digit == ',')
    });
    let is_wrong = user.contains(['@', '/', '#']) || host.contains('#') || rest.len() > place.len() && is_cut;
    if !is_wrong {
        return Ok(());
    }
    Err(Error::invalid("the user or the password in the address of the database is not percent-encoded").with_hint(
        "write %2F for /, %23 for #, %3F for ?, %40 for @, %3A for : and %25 for %; or leave the password out, and set PGPASSWORD",
    ))
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
