//! The tables of rights: roles of persons and groups in vaults, and who is blocked; and what is recorded of them.

use postgres::Transaction;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::Type;
use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_journal::event::Event;
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::tables::{Deletion, add_deeds, deletion_of, usage_of};
use super::{Database, SET_VAULT, failed};
use crate::quota::QuotaSettings;

/// The rights of a person in a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    /// The name of the highest role that the person has; `None` without one, or without the vault.
    pub(crate) role: Option<String>,
    /// Whether the person, or a group of the person, is blocked in all vaults.
    pub(crate) is_blocked: bool,
    /// The name that the vault has now.
    pub(crate) name: Option<String>,
    /// Whether the vault was deleted.
    pub(crate) is_deleted: bool,
}

/// The roles in a vault.
#[derive(Debug)]
pub(crate) struct StoredRoles {
    /// The name of the vault.
    pub(crate) vault: String,
    /// Names of persons or groups, each with the name of the role.
    pub(crate) roles: Vec<(String, String)>,
    pub(crate) size: VaultSize,
    pub(crate) quotas: QuotaSettings,
    pub(crate) deletion: Option<Deletion>,
}

/// How much a vault has in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VaultSize {
    /// The number of files.
    pub files: u64,
    /// The number of notes among them.
    pub notes: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The size in bytes of all contents, also of earlier versions.
    pub stored: u64,
}

impl Database {
    /// Reads all vaults, or those that were deleted, each with the roles in it, and the names that are blocked, in one state. The
    /// connection must have a role that owns the tables.
    pub(crate) fn list_roles(&self, deleted: bool) -> Result<(Vec<StoredRoles>, Vec<String>)> {
        self.read(None, |transaction| {
            failpoint();
            let read = |error| failed("list the vaults", error);
            let vaults = transaction
                .query_typed(
                    "select id, name, bytes, notes, max_bytes, max_notes, max_changes,
                        (extract(epoch from deleted_at) * 1000)::bigint,
                        (extract(epoch from removable_at) * 1000)::bigint
                    from sidenote.vault where (deleted_at is not null) = $1 order by name",
                    &[(&deleted, Type::BOOL)],
                )
                .map_err(read)?;
            let mut found = Vec::new();
            for vault in vaults {
                let id: Uuid = vault.get(0);
                transaction.query_typed(SET_VAULT, &[(&id.to_string(), Type::TEXT)]).map_err(read)?;
                let roles = transaction
                    .query_typed(
                        "select who, role from sidenote.member where vault = $1 order by who collate \"C\"",
                        &[(&id, Type::UUID)],
                    )
                    .map_err(read)?;
                let roles = roles.iter().map(|row| (row.get(0), row.get(1))).collect();
                let size = transaction
                    .query_typed_one(
                        "select (select count(*) from sidenote.file where vault = $1 and hash is not null),
                            coalesce(sum(octet_length(bytes)), 0)::bigint from sidenote.blob where vault = $1",
                        &[(&id, Type::UUID)],
                    )
                    .map_err(read)?;
                let number = |at| size.get::<_, i64>(at).unsigned_abs();
                let (usage, quotas) = usage_of(&vault, 2);
                let size = VaultSize {
                    files: number(0),
                    notes: usage.notes,
                    bytes: usage.bytes,
                    stored: number(1),
                };
                let deletion = deletion_of(&vault, 7);
                found.push(StoredRoles { vault: vault.get(1), roles, size, quotas, deletion });
            }
            let blocked = transaction
                .query_typed(
                    // A forgotten person who is blocked is shown by the number.
                    "select coalesce(line::jsonb ->> 'who', who) as who from (
                        select distinct on (b.who) b.who, b.is_blocked, b.line from sidenote.block b
                        order by b.who, b.id desc
                    ) newest where is_blocked and who !~ '^forgotten#[0-9]+$' order by 1",
                    &[],
                )
                .map_err(read)?;
            Ok((found, blocked.iter().map(|row| row.get(0)).collect()))
        })
    }

    /// Reads the rights that a person has in a vault under one of some names, in one statement.
    pub(crate) fn rights(&self, vault: &str, names: &[String]) -> Result<Rights> {
        // A forgotten person is blocked by the hash of the name.
        let names: Vec<String> =
            names.iter().cloned().chain(names.iter().map(|name| hash_of(name))).collect();
        let (client, rights) = self.with_client(|client| {
            failpoint();
            // The function sets the vault for row-level security; the statement is a transaction of its own.
            let asked = client.query_typed_one(
                "select role, is_blocked, present_name, coalesce(is_deleted, false)
                from sidenote.rights_of($1, $2)",
                &[(&vault, Type::TEXT), (&names, Type::TEXT_ARRAY)],
            );
            let row = asked.map_err(|error| failed("read the rights of a person", error))?;
            Ok(Rights { role: row.get(0), is_blocked: row.get(1), name: row.get(2), is_deleted: row.get(3) })
        })?;
        self.put_back(client);
        Ok(rights)
    }

    /// Returns the role that is stored for a name in a vault, and whether the name is blocked.
    pub(crate) fn stored_role(&self, vault: Uuid, who: &str) -> Result<Option<String>> {
        self.read(Some(vault), |transaction| role_of(transaction, vault, who))
    }

    /// Stores or removes the role of a name in a vault, and records that with an event. Returns the role before.
    pub(crate) fn set_role(
        &self,
        vault: Uuid,
        who: &str,
        role: Option<&str>,
        event: &mut Event,
    ) -> Result<Option<String>> {
        self.write(Some(vault), |transaction| {
            let before = role_of(transaction, vault, who)?;
            let store = |error| failed("store the role", error);
            let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 2] =
                [(&vault, Type::UUID), (&who, Type::TEXT)];
            match role {
                Some(role) => transaction.execute_typed(
                    "insert into sidenote.member (vault, who, role) values ($1, $2, $3)
                    on conflict (vault, who) do update set role = excluded.role",
                    &[parameters[0].clone(), parameters[1].clone(), (&role, Type::TEXT)],
                ),
                None => transaction
                    .execute_typed("delete from sidenote.member where vault = $1 and who = $2", &parameters),
            }
            .map_err(store)?;
            let line = line_of(transaction, event)?;
            add_deeds(transaction, vault, std::slice::from_ref(&event.id), &[line])?;
            Ok(before)
        })
    }

    /// Returns whether a name is blocked, as the newest row says.
    pub(crate) fn is_blocked(&self, who: &str) -> Result<bool> {
        self.read(Some(Uuid::nil()), |transaction| is_blocked(transaction, who))
    }

    /// Blocks a name in all vaults, or ends that, and records it with an event. Returns whether it was blocked before. The block
    /// of a person who was forgotten ends under the number, so that nothing names the person.
    pub(crate) fn set_blocked(&self, who: &str, blocked: bool, event: &mut Event) -> Result<bool> {
        self.write(Some(Uuid::nil()), |transaction| {
            let by_hash = newest_block(transaction, &hash_of(who))?.filter(|block| block.is_blocked);
            let by_name = newest_block(transaction, who)?.is_some_and(|block| block.is_blocked);
            if let Some(number) = by_hash.as_ref().filter(|_| !blocked).and_then(|block| block.shown.clone())
            {
                event.more.insert("who".to_owned(), number.into());
                store_block(transaction, &hash_of(who), false, event)?;
            }
            if blocked || by_name || by_hash.is_none() {
                event.more.insert("who".to_owned(), who.into());
                store_block(transaction, who, blocked, event)?;
            }
            Ok(by_name || by_hash.is_some())
        })
    }

    /// Passes the lines of all events of a vault that name a person to `take`, and those of all blocks. With a time, events whose
    /// ids begin with an earlier one are not read; an id never has an earlier time than its event.
    pub(crate) fn audit_lines(
        &self,
        vault: Uuid,
        since: Option<Timestamp>,
        mut take: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let oldest = since.map_or_else(String::new, |since| format!("{:012x}", since.millis().max(0)));
        self.read(Some(vault), |transaction| {
            let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 2] =
                [(&vault, Type::UUID), (&oldest, Type::TEXT)];
            for (statement, used) in [
                ("select line from sidenote.event where vault = $1 and id >= $2 order by gen, id", 2),
                (
                    // Uses of memories that name nobody are many; what an operator did names the role of the database.
                    "select line from sidenote.deed where vault = $1 and id >= $2
                    and (position('\"caller\":' in line) > 0 or position('\"operator\":' in line) > 0) order by seq",
                    2,
                ),
                ("select line from sidenote.block where $1::uuid is not null order by id", 1),
            ] {
                failpoint();
                let read = |error| failed("read the journal", error);
                let used = parameters.iter().take(used).cloned();
                let mut rows = transaction.query_typed_raw(statement, used).map_err(read)?;
                while let Some(row) = rows.next().map_err(read)? {
                    take(row.get(0))?;
                }
            }
            Ok(())
        })
    }
}

fn role_of(transaction: &mut Transaction<'_>, vault: Uuid, who: &str) -> Result<Option<String>> {
    failpoint();
    let row = transaction.query_typed_opt(
        "select role from sidenote.member where vault = $1 and who = $2",
        &[(&vault, Type::UUID), (&who, Type::TEXT)],
    );
    Ok(row.map_err(|error| failed("read the role", error))?.map(|row| row.get(0)))
}

/// Returns the name under which the block of a forgotten person is stored. It can be compared with the token of a
/// person, and does not reveal the person.
pub(super) fn hash_of(who: &str) -> String {
    format!("hash:{}", ContentHash::of(format!("sidenote, a blocked person: {who}").as_bytes()))
}

/// Returns whether a name is blocked, or the hash of it.
pub(super) fn is_blocked(transaction: &mut Transaction<'_>, who: &str) -> Result<bool> {
    let mut is_blocked = false;
    for name in [who, &hash_of(who)] {
        is_blocked |= newest_block(transaction, name)?.is_some_and(|block| block.is_blocked);
    }
    Ok(is_blocked)
}

/// The newest row of a name in the table of blocks.
struct Block {
    is_blocked: bool,
    /// Whom the record names.
    shown: Option<String>,
}

fn newest_block(transaction: &mut Transaction<'_>, name: &str) -> Result<Option<Block>> {
    failpoint();
    let row = transaction.query_typed_opt(
        "select is_blocked, line::jsonb ->> 'who' from sidenote.block where who = $1 order by id desc limit 1",
        &[(&name, Type::TEXT)],
    );
    let row = row.map_err(|error| failed("read the block", error))?;
    Ok(row.map(|row| Block { is_blocked: row.get(0), shown: row.get(1) }))
}

fn store_block(
    transaction: &mut Transaction<'_>,
    name: &str,
    blocked: bool,
    event: &mut Event,
) -> Result<()> {
    let line = line_of(transaction, event)?;
    let stored = transaction.execute_typed(
        "insert into sidenote.block (who, is_blocked, line) values ($1, $2, $3)",
        &[(&name, Type::TEXT), (&blocked, Type::BOOL), (&line, Type::TEXT)],
    );
    stored.map(drop).map_err(|error| failed("store the block", error))
}

/// Notes the role of the connection in an event as the one who did it.
pub(super) fn name_operator(transaction: &mut Transaction<'_>, event: &mut Event) -> Result<()> {
    let row = transaction.query_typed_one("select session_user::text", &[]);
    let row = row.map_err(|error| failed("tell its role", error))?;
    event.more.insert("operator".to_owned(), row.get::<_, String>(0).into());
    Ok(())
}

/// Serializes an event, after the role of the connection was noted in it as the one who did it.
pub(super) fn line_of(transaction: &mut Transaction<'_>, event: &mut Event) -> Result<String> {
    name_operator(transaction, event)?;
    serde_json::to_string(event)
        .map_err(|error| Error::internal("an event cannot be serialized").with_source(error))
}
