//! Removing contents that no file has and no change of the last days names.

use std::collections::HashSet;

use postgres::Transaction;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::Type;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_journal::event::Event;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::members::line_of;
use super::row_lock::lock_row;
use super::tables::add_deeds;
use super::{Database, failed};

/// How many contents are removed in one statement.
const REMOVED_AT_ONCE: usize = 5_000;

/// Contents of a vault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) count: usize,
    pub(crate) bytes: u64,
}

impl Database {
    /// Removes the contents of a vault that no file has now and no event since a time names, and records that. With `dry_run`,
    /// they are only counted.
    pub(crate) fn clean(
        &self,
        vault: Uuid,
        since: Timestamp,
        dry_run: bool,
        event: &mut Event,
    ) -> Result<Contents> {
        let count = |transaction: &mut Transaction<'_>| unneeded(transaction, vault, since);
        let sum = |found: &[(Vec<u8>, u64)]| Contents {
            count: found.len(),
            bytes: found.iter().map(|(_, bytes)| bytes).sum(),
        };
        if dry_run {
            return self.read(Some(vault), |transaction| Ok(sum(&count(transaction)?)));
        }
        self.write(Some(vault), |transaction| {
            // A change that is being committed may name a content that no file has until then.
            lock_row(transaction, vault)?;
            let found = count(transaction)?;
            for group in found.chunks(REMOVED_AT_ONCE) {
                let keys: Vec<&[u8]> = group.iter().map(|(hash, _)| hash.as_slice()).collect();
                failpoint();
                transaction
                    .execute_typed(
                        "delete from sidenote.blob where vault = $1 and hash = any($2)",
                        &[(&vault, Type::UUID), (&keys, Type::BYTEA_ARRAY)],
                    )
                    .map_err(|error| failed("remove contents", error))?;
            }
            let removed = sum(&found);
            if removed.count > 0 {
                event.more.insert("contents".to_owned(), removed.count.into());
                let line = line_of(transaction, event)?;
                add_deeds(transaction, vault, std::slice::from_ref(&event.id), &[line])?;
            }
            Ok(removed)
        })
    }
}

/// Lists the hashes and sizes of the contents that nothing needs.
fn unneeded(transaction: &mut Transaction<'_>, vault: Uuid, since: Timestamp) -> Result<Vec<(Vec<u8>, u64)>> {
    let read = |error| failed("read the journal", error);
    failpoint();
    let mut named: HashSet<[u8; 32]> = HashSet::new();
    let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 2] =
        [(&vault, Type::UUID), (&since.millis(), Type::INT8)];
    let mut lines = transaction
        .query_typed_raw(
            "select line from sidenote.event where vault = $1 and at >= to_timestamp($2::bigint / 1000.0)",
            parameters,
        )
        .map_err(read)?;
    while let Some(row) = lines.next().map_err(read)? {
        let event: Event = serde_json::from_str(row.get(0)).map_err(|error| {
            Error::corrupt("the database has an event that cannot be read").with_source(error)
        })?;
        let hashes = event.files.iter().flat_map(|file| [file.before, file.after]).flatten();
        named.extend(hashes.map(|hash| hash.to_bytes()));
    }
    drop(lines);
    failpoint();
    let rows = transaction
        .query_typed(
            "select hash, octet_length(bytes)::bigint from sidenote.blob b where b.vault = $1
            and not exists (select from sidenote.file f where f.vault = $1 and f.hash = b.hash) order by hash",
            &[(&vault, Type::UUID)],
        )
        .map_err(|error| failed("list contents", error))?;
    let found = rows.iter().map(|row| (row.get::<_, Vec<u8>>(0), row.get::<_, i64>(1).unsigned_abs()));
    Ok(found
        .filter(|(hash, _)| !<[u8; 32]>::try_from(hash.as_slice()).is_ok_and(|hash| named.contains(&hash)))
        .collect())
}
