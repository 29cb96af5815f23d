//! Notifications of commits: the committing transaction sends one, and each server listens on a connection of its own.
//!
//! Nothing depends on their arrival. A pooler between server and database may swallow them.

use std::fmt;
use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::Type;
use postgres::{Client, GenericClient};
use sidenote_base::error::Result;
use uuid::Uuid;

use super::{Database, failed};

/// The channel of all vaults of a database.
const LISTEN: &str = "listen sidenote_commit";
/// The value in place of the generation, if an operator changed the vault itself.
const OF_VAULT: &str = "vault";
const NOTIFY: &str = "select pg_notify('sidenote_commit', $1)";

/// A commit of a vault that somebody made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) vault: Uuid,
    /// The generation of the vault after the commit; `None` if an operator changed the vault itself, such as its name.
    pub(crate) generation: Option<i64>,
}

/// Has the transaction tell all servers of its commit. Nothing is sent if it is rolled back.
pub(super) fn notify(
    client: &mut impl GenericClient,
    vault: Uuid,
    generation: i64,
) -> Result<(), postgres::Error> {
    client.query_typed(NOTIFY, &[(&format!("{vault} {generation}"), Type::TEXT)]).map(drop)
}

/// Has the transaction tell all servers that an operator changed the vault itself, such as its name.
pub(super) fn notify_of_vault(client: &mut impl GenericClient, vault: Uuid) -> Result<(), postgres::Error> {
    client.query_typed(NOTIFY, &[(&format!("{vault} {OF_VAULT}"), Type::TEXT)]).map(drop)
}

/// A connection that receives notifications of commits.
pub(crate) struct Listener(Client);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Database {
    /// Listens for commits from now on, on a connection of its own.
    pub(crate) fn listen(&self) -> Result<Listener> {
        let mut client = self.connect()?;
        client.batch_execute(LISTEN).map_err(|error| failed("tell of commits", error))?;
        Ok(Listener(client))
    }
}

impl Listener {
    /// Waits at most `wait_limit` for a commit, and returns it with those that came meanwhile.
    ///
    /// # Errors
    /// `Io` if the connection is lost.
    pub(crate) fn wait(&mut self, wait_limit: Duration) -> Result<Vec<Commit>> {
        let lost = |error| failed("tell of commits", error);
        let first = self.0.notifications().timeout_iter(wait_limit).next().map_err(lost)?;
        let Some(first) = first else {
            // A connection that was closed says so to the next statement.
            if self.0.is_closed() {
                self.0.batch_execute("select 1").map_err(lost)?;
            }
            return Ok(Vec::new());
        };
        let mut heard: Vec<Commit> = parse(first.payload()).into_iter().collect();
        let mut notifications = self.0.notifications();
        let mut more = notifications.iter();
        while let Some(next) = more.next().map_err(lost)? {
            heard.extend(parse(next.payload()));
        }
        Ok(heard)
    }
}

/// Reads what [`notify`] and [`notify_of_vault`] send. What somebody else sent on the channel is `None`.
fn parse(payload: &str) -> Option<Commit> {
    let (vault, generation) = payload.split_once(' ')?;
    let generation = if generation == OF_VAULT { None } else { Some(generation.parse().ok()?) };
    Some(Commit { vault: vault.parse().ok()?, generation })
}
