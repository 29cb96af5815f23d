//! The row lock of a vault: a transaction that holds it from the plan of a change to the commit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::types::{ToSql, Type};
use postgres::{Client, GenericClient, Transaction};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_journal::event::Event;
use sidenote_markdown::edit::{ContentHash, FileLocation};
use sidenote_markdown::path::is_below;
use sidenote_vault::apply_result::{Applied, CommittedFile};
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::listener::notify;
use super::tables::{deleted, gone, store_event, usage_of};
use super::{Database, failed};
use crate::quota::{Difference, Quota, QuotaSettings, Quotas, Usage, WINDOW, too_much, too_often};

/// After this time without a statement, the database ends a transaction, so that a server that was cut off does not keep the
/// lock.
const CUT_OFF: &str = "10s";
/// The interval of a statement that keeps the lock while a long plan is made.
const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// The most bytes of contents that are sent in one statement, unless one alone is longer.
pub(super) const MAX_SENT: usize = 8 << 20;
/// How long an operator waits for the lock.
const OPERATOR_WAITS: &str = "30s";
/// How long to wait for the end of a transaction whose answer was lost.
const LOST_ANSWER: &str = "20s";

/// A transaction that holds the row lock of a vault. Dropping it without a commit rolls it back.
pub(crate) struct RowLock {
    database: Arc<Database>,
    vault: Uuid,
    /// The generation when the lock was taken, and until the commit.
    pub(crate) head: i64,
    /// How much the vault held then.
    usage: Usage,
    quotas: Quotas,
    /// The connection, until the transaction has ended.
    client: Arc<Mutex<Option<Client>>>,
    /// Ends the thread that keeps the lock, when it is dropped.
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
                    tracing::debug!("a row lock was not rolled back before its connection closed: {error}")
                }
            }
        }
    }
}

impl RowLock {
    /// Waits at most `wait_limit` for the row lock of a vault. `quotas` count where none are set for the vault.
    pub(crate) fn take(
        database: &Arc<Database>,
        vault: Uuid,
        wait_limit: Duration,
        quotas: Quotas,
    ) -> Result<Self> {
        let wait_limit = format!("{}ms", wait_limit.as_millis().max(1));
        let started = Instant::now();
        let taken = database.with_client(|client| begin(client, vault, &wait_limit));
        let count = if taken.is_ok() { &database.turns.given } else { &database.turns.missed };
        count.fetch_add(1, Ordering::Relaxed);
        let waited = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        database.turns.waited.fetch_add(waited, Ordering::Relaxed);
        let (client, row) = taken?;
        let client = Arc::new(Mutex::new(Some(client)));
        let (keeper, dropped) = channel::<()>();
        let kept = Arc::clone(&client);
        let keep = move || {
            while dropped.recv_timeout(KEEP_ALIVE) == Err(RecvTimeoutError::Timeout) {
                let mut client = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(client) = client.as_mut() else { break };
                if let Err(error) = client.batch_execute("select 1") {
                    // The commit fails, and says so.
                    tracing::debug!("a row lock cannot be kept: {error}");
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("sidenote-lock".to_owned())
            .spawn(keep)
            .map_err(|error| Error::internal("no thread can be started").with_source(error))?;
        Ok(Self {
            database: Arc::clone(database),
            vault,
            head: row.head,
            usage: row.usage,
            quotas: row.quotas.or(quotas),
            client,
            keeper: Some(keeper),
        })
    }

    /// Commits a change: files, contents, event and head are one transaction.
    ///
    /// # Errors
    /// `Conflict` if a file in the database is not as the change expects it, which names the file; `Quota` if the change would
    /// exceed a quota of the vault; `Io` if it cannot be committed.
    pub(crate) fn commit(
        &mut self,
        applied: &Applied,
        contents: &[Option<&[u8]>],
        event: &Event,
    ) -> Result<()> {
        self.keeper = None;
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut open) = client.take() else {
            return Err(Error::internal("a row lock was used for a second change"));
        };
        let written = self.write_change(&mut open, applied, contents, event);
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

    /// Writes a change in the transaction, without the commit.
    fn write_change(
        &self,
        client: &mut Client,
        applied: &Applied,
        contents: &[Option<&[u8]>],
        event: &Event,
    ) -> Result<()> {
        let (vault, generation) = (self.vault, self.head + 1);
        let rows = rows_of(client, vault, applied)?;
        let rows: Vec<Row<'_>> = rows.iter().map(|(path, hash)| (path.as_str(), *hash)).collect();
        let sizes = applied.files.iter().zip(contents);
        let sizes = sizes.filter_map(|(file, bytes)| Some((file.after?, bytes.as_ref()?.len()))).collect();
        let difference = difference(client, vault, &rows, &sizes)?;
        self.refuse_over_quota(client, applied, event, difference)?;
        send_contents(client, vault, applied, contents)?;
        store_rows(client, vault, generation, &rows)?;
        let write = |error| failed("store the change", error);
        store_event(client, vault, generation, event)?;
        failpoint();
        notify(client, vault, generation).map_err(write)?;
        failpoint();
        let moved = client
            .execute_typed(
                "update sidenote.vault set head = $2, bytes = bytes + $3, notes = notes + $4
                where id = $1 and head = $2 - 1",
                &[
                    (&vault, Type::UUID),
                    (&generation, Type::INT8),
                    (&difference.bytes, Type::INT8),
                    (&difference.notes, Type::INT8),
                ],
            )
            .map_err(write)?;
        if moved == 1 { Ok(()) } else { Err(Error::internal("the head of the vault moved during a turn")) }
    }

    /// Refuses a change that would exceed a quota. Every change of a person passes here, in the transaction that numbers it.
    fn refuse_over_quota(
        &self,
        client: &mut Client,
        applied: &Applied,
        event: &Event,
        difference: Difference,
    ) -> Result<()> {
        let count = |quota| self.database.turns.over_quota(quota).fetch_add(1, Ordering::Relaxed);
        if let Some(quota) = self.quotas.exceeded(self.usage, difference) {
            count(quota);
            let limit = self.quotas.limit(quota).unwrap_or(u64::MAX);
            return Err(too_much(quota, limit, self.usage, difference));
        }
        let Some(limit) = self.quotas.changes.filter(|_| !only_removes(applied)) else { return Ok(()) };
        match wait_for_change(client, self.vault, event, limit)? {
            None => Ok(()),
            Some(wait) => {
                count(Quota::Changes);
                Err(too_often(limit, wait))
            }
        }
    }

    /// Asks over a new connection whether a commit whose answer was lost was carried out. The row lock is taken first,
    /// so that the transaction that had it has ended.
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

/// The row of a vault under the lock.
struct LockedRow {
    head: i64,
    usage: Usage,
    quotas: QuotaSettings,
    /// The name of a vault that was deleted.
    deleted: Option<String>,
}

/// Begins a transaction and takes the row lock. Where it fails, the transaction is rolled back.
fn begin(client: &mut Client, vault: Uuid, wait_limit: &str) -> Result<LockedRow> {
    failpoint();
    client.batch_execute("begin").map_err(|error| failed("begin a change of the vault", error))?;
    let locked = take_row(client, vault, wait_limit, Some(CUT_OFF));
    let locked =
        locked.and_then(|row| row.deleted.as_deref().map_or(Ok(()), |name| Err(deleted(name))).map(|()| row));
    if locked.is_err()
        && let Err(error) = client.batch_execute("rollback")
    {
        tracing::debug!("a transaction was not rolled back before its connection closed: {error}");
    }
    locked
}

/// Takes the row lock of a vault in a transaction of an operator. Returns the head.
pub(super) fn lock_row(transaction: &mut Transaction<'_>, vault: Uuid) -> Result<i64> {
    Ok(take_row(transaction, vault, OPERATOR_WAITS, None)?.head)
}

/// Takes the row lock of a vault, and waits at most `wait_limit`. With `cut_off`, the database ends the transaction after this
/// time without a statement.
fn take_row(
    client: &mut impl GenericClient,
    vault: Uuid,
    wait_limit: &str,
    cut_off: Option<&str>,
) -> Result<LockedRow> {
    let waits = |error| failed("lock the vault for a change", error);
    failpoint();
    client
        .query_typed(
            "select set_config('sidenote.vault', $1, true), set_config('lock_timeout', $2, true),
            set_config('idle_in_transaction_session_timeout',
                coalesce($3, current_setting('idle_in_transaction_session_timeout')), true)",
            &[(&vault.to_string(), Type::TEXT), (&wait_limit, Type::TEXT), (&cut_off, Type::TEXT)],
        )
        .map_err(waits)?;
    failpoint();
    let row = client
        .query_typed_opt(
            "select head, bytes, notes, max_bytes, max_notes, max_changes,
                case when deleted_at is not null then name end
            from sidenote.vault where id = $1 for no key update",
            &[(&vault, Type::UUID)],
        )
        .map_err(waits)?;
    let row = row.ok_or_else(gone)?;
    let (usage, quotas) = usage_of(&row, 1);
    Ok(LockedRow { head: row.get(0), usage, quotas, deleted: row.get(6) })
}

/// Returns whether a change removes files, or moves them to the trash, and does nothing else.
fn only_removes(applied: &Applied) -> bool {
    let is_removal = |file: &CommittedFile| matches!(file.to, None | Some(FileLocation::Trash(_)));
    applied.folders.is_empty() && applied.files.iter().all(is_removal)
}

/// Returns how long a person has to wait until another change is within the quota; `None` if it is now. No more events are read
/// than the quota allows.
fn wait_for_change(client: &mut Client, vault: Uuid, event: &Event, limit: u64) -> Result<Option<Duration>> {
    let caller = |name: &str| event.more.get("caller")?.get(name)?.as_str();
    let (issuer, subject) = (caller("issuer").unwrap_or_default(), caller("subject").unwrap_or_default());
    let now = event.at.millis();
    let window = i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    failpoint();
    let row = client
        .query_typed_one(
            "select count(*), (extract(epoch from min(at)) * 1000)::bigint from (
                select at from sidenote.event
                where vault = $1 and coalesce(issuer, '') = $2 and coalesce(subject, '') = $3
                and at > to_timestamp($4::bigint / 1000.0) order by at desc limit $5
            ) newest",
            &[
                (&vault, Type::UUID),
                (&issuer, Type::TEXT),
                (&subject, Type::TEXT),
                (&now.saturating_sub(window), Type::INT8),
                (&limit, Type::INT8),
            ],
        )
        .map_err(|error| failed("count the changes of a person", error))?;
    if row.get::<_, i64>(0) < limit {
        return Ok(None);
    }
    let oldest = row.get::<_, Option<i64>>(1).unwrap_or(now);
    let wait = oldest.saturating_add(window).saturating_sub(now).clamp(0, window);
    // A part of a second is waited for as a whole one.
    Ok(Some(Duration::from_secs(wait.unsigned_abs().div_ceil(1_000))))
}

/// The row of a file that a change writes: its path, and its hash, or `None` if it is removed.
pub(super) type Row<'r> = (&'r str, Option<ContentHash>);

fn columns<'r>(rows: &[Row<'r>]) -> (Vec<&'r str>, Vec<Option<Vec<u8>>>) {
    rows.iter().map(|(path, hash)| (*path, hash.map(|hash| hash.to_bytes().to_vec()))).unzip()
}

/// Returns by how much rows make the files of a vault more, before they are written. `sizes` has the sizes of contents that may not
/// be stored yet.
pub(super) fn difference(
    client: &mut impl GenericClient,
    vault: Uuid,
    rows: &[Row<'_>],
    sizes: &HashMap<ContentHash, usize>,
) -> Result<Difference> {
    let (paths, hashes) = columns(rows);
    let size = |(_, hash): &Row<'_>| hash.and_then(|hash| i64::try_from(*sizes.get(&hash)?).ok());
    let sizes: Vec<Option<i64>> = rows.iter().map(size).collect();
    failpoint();
    let row = client
        .query_typed_one(
            "select coalesce(sum(
                    coalesce(new.size, octet_length(next.bytes), 0) - coalesce(octet_length(now.bytes), 0)
                ), 0)::bigint,
                coalesce(sum((new.hash is not null)::int - (f.hash is not null)::int)
                    filter (where sidenote.is_note(new.path)), 0)::bigint
            from unnest($2, $3, $4) as new (path, hash, size)
            left join sidenote.file f on f.vault = $1 and f.path = new.path
            left join sidenote.blob now on now.vault = $1 and now.hash = f.hash
            left join sidenote.blob next on next.vault = $1 and next.hash = new.hash and new.size is null",
            &[
                (&vault, Type::UUID),
                (&paths, Type::TEXT_ARRAY),
                (&hashes, Type::BYTEA_ARRAY),
                (&sizes, Type::INT8_ARRAY),
            ],
        )
        .map_err(|error| failed("measure the change", error))?;
    Ok(Difference { bytes: row.get(0), notes: row.get(1) })
}

/// Writes the rows of files that change with a generation.
pub(super) fn store_rows(
    client: &mut impl GenericClient,
    vault: Uuid,
    generation: i64,
    rows: &[Row<'_>],
) -> Result<()> {
    let (paths, hashes) = columns(rows);
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
