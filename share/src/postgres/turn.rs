//! The turn of a change: a transaction that holds the vault's row lock from the plan to the commit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::types::{ToSql, Type};
use postgres::{Client, GenericClient, Transaction};
use uuid::Uuid;

use super::listener::notify;
use super::tables::{gone, store_event};
use super::{Database, failed};
use sidenote_foundation::error::{Error, ErrorKind, Result};
use sidenote_foundation::journal::event::Event;
use sidenote_foundation::text::edit::ContentHash;
use sidenote_foundation::text::path::is_below;
use sidenote_foundation::vault::apply_result::Applied;
use sidenote_foundation::vault::failpoint;

/// After this time without a statement, the database ends a transaction, so that a server that was cut off does not keep the
/// turn.
const CUT_OFF: &str = "10s";
/// The interval of a statement that keeps the turn while a long plan is made.
const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// The most bytes of contents that are sent in one statement, unless one alone is longer.
pub(super) const MAX_SENT: usize = 8 << 20;
/// How long an operator waits for the turn.
const OPERATOR_WAITS: &str = "30s";
/// How long to wait for the end of a transaction whose answer was lost.
const LOST_ANSWER: &str = "20s";

/// A transaction that holds the row lock of a vault. Dropping it without a commit rolls it back.
pub(crate) struct RowLock {
    database: Arc<Database>,
    vault: Uuid,
    /// The generation when the lock was taken, and until the commit.
    pub(crate) head: i64,
    /// The connection, until the transaction has ended.
    client: Arc<Mutex<Option<Client>>>,
    /// Ends the thread that keeps the turn, when it is dropped.
    keeper: Option<Sender<()>>,
}

impl fmt::Debug for RowLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowLock")
            .field("vault", &self.vault)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl Drop for RowLock {
    fn drop(&mut self) {
        self.keeper = None;
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut client) = client {
            match client.batch_execute("rollback") {
                Ok(()) => self.database.put_back(client),
                // Closing the connection rolls back, too.
                Err(error) => {
                    tracing::debug!("a turn was not rolled back before its connection closed: {error}")
                }
            }
        }
    }
}

impl RowLock {
    /// Waits at most `patience` for the row lock of a vault.
    pub(crate) fn take(database: &Arc<Database>, vault: Uuid, patience: Duration) -> Result<Self> {
        let patience = format!("{}ms", patience.as_millis().max(1));
        let started = Instant::now();
        let taken = database.with_client(|client| begin(client, vault, &patience));
        let count = if taken.is_ok() { &database.turns.given } else { &database.turns.missed };
        count.fetch_add(1, Ordering::Relaxed);
        let waited = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        database.turns.waited.fetch_add(waited, Ordering::Relaxed);
        let (client, head) = taken?;
        let client = Arc::new(Mutex::new(Some(client)));
        let (keeper, dropped) = channel::<()>();
        let kept = Arc::clone(&client);
        let keep = move || {
            while dropped.recv_timeout(KEEP_ALIVE) == Err(RecvTimeoutError::Timeout) {
                let mut client = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(client) = client.as_mut() else { break };
                if let Err(error) = client.batch_execute("select 1") {
                    // The commit fails, and says so.
                    tracing::debug!("a turn cannot be kept: {error}");
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("sidenote-turn".to_owned())
            .spawn(keep)
            .map_err(|error| Error::internal("no thread can be started").with_source(error))?;
        Ok(Self { database: Arc::clone(database), vault, head, client, keeper: Some(keeper) })
    }

    /// Commits a change: files, contents, event and head are one transaction.
    ///
    /// # Errors
    /// `Conflict` if a file in the database is not as the change expects it, which names the file; `Io` if the change
    /// cannot be committed.
    pub(crate) fn commit(
        &mut self,
        applied: &Applied,
        contents: &[Option<&[u8]>],
        event: &Event,
    ) -> Result<()> {
        self.keeper = None;
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut open) = client.take() else {
            return Err(Error::internal("a turn was used for a second change"));
        };
        let written = write_change(&mut open, self.vault, self.head, applied, contents, event);
        if let Err(error) = written {
            if error.kind() == ErrorKind::Conflict {
                self.database.turns.conflicts.fetch_add(1, Ordering::Relaxed);
            }
            if open.batch_execute("rollback").is_ok() {
                self.database.put_back(open);
            }
            return Err(error);
        }
        failpoint();
        let answer = open.batch_execute("commit");
        failpoint();
        match answer {
            Ok(()) => {
                self.database.put_back(open);
                Ok(())
            }
            Err(error) => {
                drop(open);
                self.ask_after_lost_answer(&event.id, failed("commit the change", error))
            }
        }
    }

    /// Asks over a new connection whether a commit whose answer was lost was carried out. The row lock is taken first: the
    /// transaction that had it has ended then.
    fn ask_after_lost_answer(&self, event: &str, lost: Error) -> Result<()> {
        // Connections that are free were most likely lost with it.
        self.database.forget_idle();
        let mut client = self.database.client()?;
        begin(&mut client, self.vault, LOST_ANSWER)?;
        let found = client.query_typed_opt(
            "select from sidenote.event where vault = $1 and id = $2",
            &[(&self.vault, Type::UUID), (&event, Type::TEXT)],
        );
        let is_there =
            found.map_err(|error| failed("tell whether the change was committed", error))?.is_some();
        client.batch_execute("rollback").map_err(|error| failed("end a transaction", error))?;
        self.database.put_back(client);
        if is_there { Ok(()) } else { Err(lost) }
    }
}

/// Begins a transaction and takes the row lock. Returns the head. Where it fails, the transaction is rolled back.
fn begin(client: &mut Client, vault: Uuid, patience: &str) -> Result<i64> {
    failpoint();
    client.batch_execute("begin").map_err(|error| failed("begin a change of the vault", error))?;
    let locked = take_row(client, vault, patience, Some(CUT_OFF));
    if locked.is_err()
        && let Err(error) = client.batch_execute("rollback")
    {
        tracing::debug!("a transaction was not rolled back before its connection closed: {error}");
    }
    locked
}

/// Takes the row lock of a vault in a transaction of an operator. Returns the head.
pub(super) fn lock_row(transaction: &mut Transaction<'_>, vault: Uuid) -> Result<i64> {
    take_row(transaction, vault, OPERATOR_WAITS, None)
}

/// Takes the row lock of a vault, and waits at most `patience`. With `cut_off`, the database ends the transaction after this
/// time without a statement. Returns the head.
fn take_row(
    client: &mut impl GenericClient,
    vault: Uuid,
    patience: &str,
    cut_off: Option<&str>,
) -> Result<i64> {
    let waits = |error| failed("lock the vault for a change", error);
    failpoint();
    client
        .query_typed(
            "select set_config('sidenote.vault', $1, true), set_config('lock_timeout', $2, true),
            set_config('idle_in_transaction_session_timeout',
                coalesce($3, current_setting('idle_in_transaction_session_timeout')), true)",
            &[(&vault.to_string(), Type::TEXT), (&patience, Type::TEXT), (&cut_off, Type::TEXT)],
        )
        .map_err(waits)?;
    failpoint();
    let row = client
        .query_typed_opt(
            "select head from sidenote.vault where id = $1 for no key update",
            &[(&vault, Type::UUID)],
        )
        .map_err(waits)?;
    Ok(row.ok_or_else(gone)?.get(0))
}

/// Writes a change in the transaction, without the commit.
fn write_change(
    client: &mut Client,
    vault: Uuid,
    head: i64,
    applied: &Applied,
    contents: &[Option<&[u8]>],
    event: &Event,
) -> Result<()> {
    let generation = head + 1;
    let rows = rows_of(client, vault, applied)?;
    send_contents(client, vault, applied, contents)?;
    store_rows(client, vault, generation, rows.iter().map(|(path, hash)| (path.as_str(), *hash)))?;
    let write = |error| failed("store the change", error);
    store_event(client, vault, generation, event)?;
    failpoint();
    notify(client, vault, generation).map_err(write)?;
    failpoint();
    let moved = client
        .execute_typed(
            "update sidenote.vault set head = $2 where id = $1 and head = $2 - 1",
            &[(&vault, Type::UUID), (&generation, Type::INT8)],
        )
        .map_err(write)?;
    if moved == 1 { Ok(()) } else { Err(Error::internal("the head of the vault moved during a turn")) }
}

/// Writes the rows of files that change with a generation: the path of each, and its hash, or `None` if it is removed.
pub(super) fn store_rows<'r>(
    client: &mut impl GenericClient,
    vault: Uuid,
    generation: i64,
    rows: impl Iterator<Item = (&'r str, Option<ContentHash>)>,
) -> Result<()> {
    let (paths, hashes): (Vec<&str>, Vec<Option<Vec<u8>>>) =
        rows.map(|(path, hash)| (path, hash.map(|hash| hash.to_bytes().to_vec()))).unzip();
    failpoint();
    client
        .execute_typed(
            "insert into sidenote.file (vault, path, hash, gen)
            select $1, path, hash, $4 from unnest($2, $3) as new (path, hash)
            on conflict (vault, path) do update set hash = excluded.hash, gen = excluded.gen",
            &[
                (&vault, Type::UUID),
                (&paths, Type::TEXT_ARRAY),
                (&hashes, Type::BYTEA_ARRAY),
                (&generation, Type::INT8),
            ],
        )
        .map(drop)
        .map_err(|error| failed("store the change", error))
}

/// Compares a change with the files in the database, and returns the new row of each path: its hash, or `None` if it is
/// removed.
fn rows_of(
    client: &mut Client,
    vault: Uuid,
    applied: &Applied,
) -> Result<BTreeMap<String, Option<ContentHash>>> {
    let mut asked: Vec<String> = Vec::new();
    for file in &applied.files {
        asked.extend(file.from.iter().chain(&file.to).map(ToString::to_string));
    }
    let prefixes: Vec<String> = applied.folders.iter().map(|folder| format!("{}/", folder.from)).collect();
    failpoint();
    let found = client
        .query_typed(
            // Both parts use the primary key. Paths are compared byte by byte, and `0` comes after `/`.
            "select path, hash from sidenote.file where vault = $1 and hash is not null and path = any($2)
            union select f.path, f.hash from unnest($3) as moved (prefix) join sidenote.file f
            on f.vault = $1 and f.hash is not null
            and f.path >= moved.prefix and f.path < left(moved.prefix, -1) || '0'",
            &[(&vault, Type::UUID), (&asked, Type::TEXT_ARRAY), (&prefixes, Type::TEXT_ARRAY)],
        )
        .map_err(|error| failed("compare the files", error))?;
    let mut present: HashMap<String, ContentHash> = HashMap::new();
    for row in &found {
        let hash: [u8; 32] = row
            .get::<_, &[u8]>(1)
            .try_into()
            .map_err(|_| Error::corrupt("the database has a hash that is not 32 bytes long"))?;
        present.insert(row.get(0), ContentHash::from_bytes(hash));
    }
    let mut rows: BTreeMap<String, Option<ContentHash>> = BTreeMap::new();
    let own: HashSet<String> =
        applied.files.iter().filter_map(|file| Some(file.from.as_ref()?.to_string())).collect();
    // What lies in a folder moves with it, unless the change says more of the file.
    for (path, hash) in &present {
        let folder = applied.folders.iter().find(|folder| is_below(path, folder.from.as_str()));
        if let Some(folder) = folder.filter(|_| !own.contains(path)) {
            let rest = path.get(folder.from.as_str().len()..).unwrap_or_default();
            rows.entry(path.clone()).or_insert(None);
            rows.insert(format!("{}{rest}", folder.to), Some(*hash));
        }
    }
    for file in &applied.files {
        let before = match &file.from {
            Some(from) => {
                let from = from.to_string();
                let present = present.get(&from).copied();
                if present.is_none() || file.before.is_some_and(|before| Some(before) != present) {
                    return Err(conflict(&from));
                }
                rows.entry(from).or_insert(None);
                present
            }
            None => None,
        };
        if let Some(to) = &file.to {
            let to = to.to_string();
            let is_leaving =
                own.contains(&to) || applied.folders.iter().any(|folder| is_below(&to, folder.from.as_str()));
            if present.contains_key(&to) && !is_leaving {
                return Err(conflict(&to));
            }
            rows.insert(to, file.after.or(before));
        }
    }
    Ok(rows)
}

/// Returns the error for a file whose bytes in the copy are not those of the database. The path is the source, by which the
/// copy is put right.
fn conflict(path: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!(
            "{path} in this server's copy is not as the team has it (changed-on-disk); nothing was written"
        ),
    )
    .with_hint("try again; the copy is put right first")
}

/// Sends the new contents that the database does not have, some megabytes at a time.
fn send_contents(
    client: &mut Client,
    vault: Uuid,
    applied: &Applied,
    contents: &[Option<&[u8]>],
) -> Result<()> {
    let mut new: BTreeMap<[u8; 32], &[u8]> = BTreeMap::new();
    for (file, bytes) in applied.files.iter().zip(contents) {
        if let (Some(after), Some(bytes)) = (file.after, bytes) {
            new.insert(after.to_bytes(), bytes);
        }
    }
    let mut group: (Vec<&[u8]>, Vec<&[u8]>, usize) = Default::default();
    for (at, (hash, bytes)) in new.iter().enumerate() {
        group.0.push(hash.as_slice());
        group.1.push(bytes);
        group.2 += bytes.len();
        if group.2 >= MAX_SENT || at + 1 == new.len() {
            send(client, vault, &group.0, &group.1)?;
            group = Default::default();
        }
    }
    Ok(())
}

/// Stores contents under their hashes. Those that are there stay.
pub(crate) fn send(
    client: &mut impl GenericClient,
    vault: Uuid,
    hashes: &[&[u8]],
    bytes: &[&[u8]],
) -> Result<()> {
    failpoint();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&vault, Type::UUID), (&hashes, Type::BYTEA_ARRAY), (&bytes, Type::BYTEA_ARRAY)];
    client
        .execute_typed(
            "insert into sidenote.blob (vault, hash, bytes) select $1, hash, bytes
            from unnest($2, $3) as new (hash, bytes) on conflict do nothing",
            &parameters,
        )
        .map(drop)
        .map_err(|error| failed("store contents", error))
}
