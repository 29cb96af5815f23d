//! Reading the tables of one vault: its head, its files, its contents and its journal; and creating a vault.

use std::collections::HashMap;

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::Type;
use postgres::{GenericClient, Transaction};
use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_journal::event::Event;
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::copy::SharedPath;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::{Database, SET_VAULT, failed};
use crate::quota::{QuotaSetting, QuotaSettings, Usage};

/// How many contents are asked for at once. They arrive one by one.
const CONTENTS: usize = 1_000;

/// The state of a vault in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The number of changes.
    pub(crate) generation: i64,
    /// A random number that is another one after the vault was restored.
    pub(crate) origin: Uuid,
    /// The id of the event at the generation that was asked about.
    pub(crate) event: Option<String>,
    /// Whether the event that was asked about is there.
    pub(crate) has_pending: bool,
    /// The number of the last deed.
    pub(crate) deeds: i64,
    pub(crate) facts: VaultFacts,
}

/// What the database says of a vault besides its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VaultFacts {
    /// The name that it has now.
    pub(crate) name: String,
    /// How much its files are.
    pub(crate) usage: Usage,
    /// What is set for its quotas.
    pub(crate) quotas: QuotaSettings,
}

/// Reads how much a vault holds and what is set for its quotas from five columns of a row, the first of which is at `at`.
pub(super) fn usage_of(row: &postgres::Row, at: usize) -> (Usage, QuotaSettings) {
    let used = |at| row.get::<_, i64>(at).unsigned_abs();
    let set = |at| QuotaSetting::of_stored(row.get(at));
    let usage = Usage { bytes: used(at), notes: used(at + 1) };
    (usage, QuotaSettings { bytes: set(at + 2), notes: set(at + 3), changes: set(at + 4) })
}

/// A file of a vault in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// The path.
    pub(crate) path: SharedPath,
    /// The hash of its bytes; `None` if it was removed.
    pub(crate) hash: Option<ContentHash>,
}

/// A line of the journal in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JournalLine {
    /// The generation of a change, or the number of a deed.
    pub(crate) position: i64,
    /// The id of the event.
    pub(crate) id: String,
    /// The event in JSON.
    pub(crate) line: String,
}

/// When a vault was deleted, and how long it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Deletion {
    /// When it was deleted.
    pub deleted_at: Timestamp,
    /// From when on `sidenote team clean` removes it for good.
    pub removable_at: Timestamp,
}

/// Reads a deletion from two columns, of milliseconds since 1970.
pub(super) fn deletion_of(row: &postgres::Row, at: usize) -> Option<Deletion> {
    let time = |at| row.get::<_, Option<i64>>(at).map(Timestamp::from_millis);
    Some(Deletion { deleted_at: time(at)?, removable_at: time(at + 1)? })
}

/// Reads the state of a vault. `known` is the generation whose event is asked for, and `pending` the id of an event that may
/// be there.
pub(crate) fn head(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    known: i64,
    pending: Option<&str>,
) -> Result<Head> {
    failpoint();
    let asked = transaction.query_typed_opt(
        "select v.head, v.origin,
            (select e.id from sidenote.event e where e.vault = v.id and e.gen = $2 limit 1),
            coalesce((select max(d.seq) from sidenote.deed d where d.vault = v.id), 0),
            exists (select from sidenote.event e where e.vault = v.id and e.id = $3),
            v.deleted_at is not null, v.name, v.bytes, v.notes, v.max_bytes, v.max_notes, v.max_changes
        from sidenote.vault v where v.id = $1",
        &[(&vault, Type::UUID), (&known, Type::INT8), (&pending, Type::TEXT)],
    );
    let row = asked.map_err(|error| failed("read the head of the vault", error))?.ok_or_else(gone)?;
    if row.get(5) {
        return Err(deleted(row.get(6)));
    }
    let (usage, quotas) = usage_of(&row, 7);
    Ok(Head {
        generation: row.get(0),
        origin: row.get(1),
        event: row.get(2),
        deeds: row.get(3),
        has_pending: row.get(4),
        facts: VaultFacts { name: row.get(6), usage, quotas },
    })
}

/// Returns the error for a vault that is not in the database.
pub(crate) fn gone() -> Error {
    Error::not_found("the vault is not in the database any more")
}

/// Returns the error for a vault that was deleted and can still be brought back.
pub(crate) fn deleted(name: &str) -> Error {
    Error::not_found(format!("the vault {name} was deleted")).with_hints(
        "bring it back with `sidenote team undelete`, which `sidenote team list --deleted` says until when",
        "tell the user, who can ask the operator of the service to bring it back",
    )
}

/// Lists the files that changed after a generation. After generation 0, these are all files that exist.
pub(crate) fn files(transaction: &mut Transaction<'_>, vault: Uuid, after: i64) -> Result<Vec<FileEntry>> {
    failpoint();
    let asked = transaction.query_typed(
        "select path, hash from sidenote.file
        where vault = $1 and gen > $2 and ($2 > 0 or hash is not null)",
        &[(&vault, Type::UUID), (&after, Type::INT8)],
    );
    let rows = asked.map_err(|error| failed("list the files of the vault", error))?;
    rows.iter().map(|row| entry(row.get(0), row.get(1))).collect()
}

fn entry(path: &str, hash: Option<&[u8]>) -> Result<FileEntry> {
    let path = SharedPath::parse(path).ok_or_else(|| {
        Error::corrupt(format!("the database has the file {path:?}, which is none of a vault"))
    })?;
    let hash = hash.map(hash_of).transpose()?;
    Ok(FileEntry { path, hash })
}

fn hash_of(bytes: &[u8]) -> Result<ContentHash> {
    bytes
        .try_into()
        .map(ContentHash::from_bytes)
        .map_err(|_| Error::corrupt("the database has a hash that is not 32 bytes long"))
}

/// Reads the hashes of some files that exist.
pub(crate) fn hashes(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    paths: &[String],
) -> Result<HashMap<String, ContentHash>> {
    failpoint();
    let asked = transaction.query_typed(
        "select path, hash from sidenote.file where vault = $1 and path = any($2) and hash is not null",
        &[(&vault, Type::UUID), (&paths, Type::TEXT_ARRAY)],
    );
    let rows = asked.map_err(|error| failed("read the files of the vault", error))?;
    rows.iter().map(|row| Ok((row.get(0), hash_of(row.get(1))?))).collect()
}

/// Reads contents by their hashes, which differ, and passes each to `take` as it arrives. Returns how many are missing.
pub(crate) fn find_contents(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    wanted: &[ContentHash],
    mut take: impl FnMut(ContentHash, &[u8]) -> Result<()>,
) -> Result<usize> {
    each_content(transaction, vault, wanted, |hash, bytes| match bytes {
        Some(bytes) => take(hash, bytes),
        None => Err(Error::corrupt(format!("the database has other bytes for the hash {hash}"))),
    })
}

/// Reads contents as [`find_contents`] does, and goes on past damaged ones, which are passed on as `None`.
pub(crate) fn each_content(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    wanted: &[ContentHash],
    mut take: impl FnMut(ContentHash, Option<&[u8]>) -> Result<()>,
) -> Result<usize> {
    let read = |error| failed("read contents", error);
    let mut missing = 0;
    for wanted in wanted.chunks(CONTENTS) {
        failpoint();
        let keys: Vec<Vec<u8>> = wanted.iter().map(|hash| hash.to_bytes().to_vec()).collect();
        let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 2] =
            [(&vault, Type::UUID), (&keys, Type::BYTEA_ARRAY)];
        let mut rows = transaction
            .query_typed_raw(
                "select hash, bytes from sidenote.blob where vault = $1 and hash = any($2)",
                parameters,
            )
            .map_err(read)?;
        let mut found = 0;
        while let Some(row) = rows.next().map_err(read)? {
            let (hash, bytes): (&[u8], &[u8]) = (row.get(0), row.get(1));
            let hash = hash_of(hash)?;
            found += 1;
            take(hash, Some(bytes).filter(|bytes| ContentHash::of(bytes) == hash))?;
        }
        missing += wanted.len() - found;
    }
    Ok(missing)
}

/// Reads contents as [`find_contents`] does, all of which must be there.
pub(crate) fn contents(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    wanted: &[ContentHash],
    take: impl FnMut(ContentHash, &[u8]) -> Result<()>,
) -> Result<()> {
    match find_contents(transaction, vault, wanted, take)? {
        0 => Ok(()),
        missing => Err(Error::corrupt(format!("the database lacks {missing} contents"))),
    }
}

/// Reads the content with a hash, if a file of the vault has it now.
pub(crate) fn present_content(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    hash: ContentHash,
) -> Result<Option<Vec<u8>>> {
    failpoint();
    let key = hash.to_bytes();
    let row = transaction.query_typed_opt(
        "select bytes from sidenote.blob b where b.vault = $1 and b.hash = $2
        and exists (select from sidenote.file f where f.vault = $1 and f.hash = $2)",
        &[(&vault, Type::UUID), (&key.as_slice(), Type::BYTEA)],
    );
    let row = row.map_err(|error| failed("read contents", error))?;
    let Some(row) = row else { return Ok(None) };
    let bytes: Vec<u8> = row.get(0);
    if ContentHash::of(&bytes) != hash {
        return Err(Error::corrupt(format!("the database has other bytes for the hash {hash}")));
    }
    Ok(Some(bytes))
}

/// Lists the events of changes after a generation, in order.
pub(crate) fn events(transaction: &mut Transaction<'_>, vault: Uuid, after: i64) -> Result<Vec<JournalLine>> {
    failpoint();
    let asked = transaction.query_typed(
        "select gen, id, line from sidenote.event where vault = $1 and gen > $2 order by gen, id",
        &[(&vault, Type::UUID), (&after, Type::INT8)],
    );
    lines(asked)
}

/// Lists the deeds after a number, in order.
pub(crate) fn deeds(transaction: &mut Transaction<'_>, vault: Uuid, after: i64) -> Result<Vec<JournalLine>> {
    failpoint();
    let asked = transaction.query_typed(
        "select seq, id, line from sidenote.deed where vault = $1 and seq > $2 order by seq",
        &[(&vault, Type::UUID), (&after, Type::INT8)],
    );
    lines(asked)
}

fn lines(asked: Result<Vec<postgres::Row>, postgres::Error>) -> Result<Vec<JournalLine>> {
    let rows = asked.map_err(|error| failed("read the journal", error))?;
    let line = |row: &postgres::Row| JournalLine { position: row.get(0), id: row.get(1), line: row.get(2) };
    Ok(rows.iter().map(line).collect())
}

/// Stores the event of a change with its generation.
pub(super) fn store_event(
    client: &mut impl GenericClient,
    vault: Uuid,
    generation: i64,
    event: &Event,
) -> Result<()> {
    let line = serde_json::to_string(event)
        .map_err(|error| Error::internal("an event cannot be serialized").with_source(error))?;
    let client_name = event.more.get("client").and_then(|name| name.as_str());
    let caller = |name: &str| event.more.get("caller")?.get(name)?.as_str();
    let (issuer, subject) = (caller("issuer"), caller("subject"));
    failpoint();
    client
        .execute_typed(
            "insert into sidenote.event (vault, gen, id, at, issuer, subject, client, op, line)
            values ($1, $2, $3, to_timestamp($4::bigint / 1000.0), $5, $6, $7, $8, $9)",
            &[
                (&vault, Type::UUID),
                (&generation, Type::INT8),
                (&event.id, Type::TEXT),
                (&event.at.millis(), Type::INT8),
                (&issuer, Type::TEXT),
                (&subject, Type::TEXT),
                (&client_name, Type::TEXT),
                (&event.op, Type::TEXT),
                (&line, Type::TEXT),
            ],
        )
        .map(drop)
        .map_err(|error| failed("store the change", error))
}

/// Appends deeds. Their order is that of the commits: readers ask for what is after the last one that they have.
pub(crate) fn add_deeds(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    ids: &[String],
    lines: &[String],
) -> Result<()> {
    let write = |error| failed("store events", error);
    failpoint();
    // Not the lock of the vault's row: the server itself may hold that for a change.
    transaction
        .query_typed(
            "select pg_advisory_xact_lock(hashtextextended('sidenote deeds ' || $1::text, 0))",
            &[(&vault, Type::UUID)],
        )
        .map_err(write)?;
    failpoint();
    transaction
        .execute_typed(
            "insert into sidenote.deed (vault, seq, id, line)
            select $1, (select coalesce(max(seq), 0) from sidenote.deed where vault = $1) + n, id, line
            from unnest($2, $3) with ordinality as new (id, line, n)",
            &[(&vault, Type::UUID), (&ids, Type::TEXT_ARRAY), (&lines, Type::TEXT_ARRAY)],
        )
        .map(drop)
        // An event has no other reference than its vault.
        .map_err(|error| match error.code() {
            Some(&SqlState::FOREIGN_KEY_VIOLATION) => gone(),
            _ => write(error),
        })
}

impl Database {
    /// Lists the names of all vaults that are not deleted. The connection must have a role that owns the tables.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub(crate) fn vault_names(&self) -> Result<Vec<String>> {
        self.read(None, |transaction| {
            let rows = transaction
                .query_typed("select name from sidenote.vault where deleted_at is null order by name", &[])
                .map_err(|error| failed("list the vaults", error))?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    /// Compares all contents of a vault with their hashes, and all generations with the head. Returns one sentence for each
    /// thing that is wrong, and the number of files.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub fn check_vault(&self, vault: Uuid) -> Result<(Vec<String>, usize)> {
        self.read(Some(vault), |transaction| {
            let mut problems = Vec::new();
            let Head { generation: head, facts: VaultFacts { usage, .. }, .. } =
                head(transaction, vault, 0, None)?;
            let events = events(transaction, vault, 0)?;
            for (expected, event) in (1..).zip(&events) {
                if event.position != expected {
                    problems.push(format!(
                        "generation {expected} has no event, or generation {} has two",
                        event.position
                    ));
                    break;
                }
            }
            let last = events.last().map_or(0, |event| event.position);
            if last != head {
                problems.push(format!("the head is {head}, and the last event is of generation {last}"));
            }
            let row = transaction
                .query_typed_one(
                    "select count(*) from sidenote.file where vault = $1 and gen > $2",
                    &[(&vault, Type::UUID), (&head, Type::INT8)],
                )
                .map_err(|error| failed("count files", error))?;
            if row.get::<_, i64>(0) > 0 {
                problems.push(format!("{} files are newer than the head", row.get::<_, i64>(0)));
            }
            let files = files(transaction, vault, 0)?;
            problems.extend(wrong_sums(transaction, vault, usage)?);
            let mut wanted: Vec<ContentHash> = files.iter().filter_map(|file| file.hash).collect();
            wanted.sort_unstable_by_key(|hash| hash.to_bytes());
            wanted.dedup();
            for hash in &wanted {
                if let Err(error) = contents(transaction, vault, std::slice::from_ref(hash), |_, _| Ok(())) {
                    if error.kind() != ErrorKind::Corrupt {
                        return Err(error);
                    }
                    let damaged = files.iter().filter(|file| file.hash == Some(*hash));
                    problems
                        .extend(damaged.map(|file| format!("{}: {}", file.path.as_str(), error.message())));
                }
            }
            Ok((problems, files.len()))
        })
    }
}

/// Compares the sums by which quotas are checked with the files, and says if they differ.
fn wrong_sums(transaction: &mut Transaction<'_>, vault: Uuid, kept: Usage) -> Result<Option<String>> {
    failpoint();
    let row = transaction
        .query_typed_one(
            "select coalesce(sum(octet_length(b.bytes)), 0)::bigint, count(*) filter (where sidenote.is_note(f.path))
            from sidenote.file f join sidenote.blob b on b.vault = f.vault and b.hash = f.hash
            where f.vault = $1",
            &[(&vault, Type::UUID)],
        )
        .map_err(|error| failed("measure the files", error))?;
    let sum = |at| row.get::<_, i64>(at).unsigned_abs();
    let present = Usage { bytes: sum(0), notes: sum(1) };
    Ok((kept != present).then(|| {
        format!(
            "the sums for quotas are {} bytes and {} notes, and the files are {} bytes and {} notes",
            kept.bytes, kept.notes, present.bytes, present.notes
        )
    }))
}

/// Selects the vault in a transaction that was begun by hand.
pub(crate) fn set_vault(client: &mut postgres::Client, vault: Uuid) -> Result<()> {
    let set = client.query_typed(SET_VAULT, &[(&vault.to_string(), Type::TEXT)]);
    set.map(drop).map_err(|error| failed("select the vault", error))
}
