//! The names of vaults: finding one by its name or a former one, renaming, deleting for a while and for good; and their quotas.

use postgres::types::{ToSql, Type};
use postgres::{GenericClient, Transaction};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_journal::event::Event;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::listener::notify_of_vault;
use super::members::line_of;
use super::row_lock::lock_row;
use super::tables::{Deletion, add_deeds, deleted, deletion_of, gone, usage_of};
use super::{Database, SET_VAULT, failed};
use crate::quota::{QuotaSettings, Usage};

/// The tables of a vault, in an order in which its rows can be removed.
const REMOVALS: [&str; 8] = [
    "delete from sidenote.former_name where vault = $1",
    "delete from sidenote.member where vault = $1",
    "delete from sidenote.vector where vault = $1",
    "delete from sidenote.deed where vault = $1",
    "delete from sidenote.event where vault = $1",
    "delete from sidenote.file where vault = $1",
    "delete from sidenote.blob where vault = $1",
    "delete from sidenote.vault where id = $1",
];

/// A vault that was found by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundVault {
    pub(crate) id: Uuid,
    /// The name that it has now.
    pub(crate) name: String,
    pub(crate) deleted: Option<Deletion>,
}

/// Finds a vault by a name that it has or had.
fn find(client: &mut impl GenericClient, name: &str) -> Result<Option<FoundVault>> {
    let read = |error| failed("find the vault", error);
    failpoint();
    let row =
        client.query_typed_one("select sidenote.find_vault($1)", &[(&name, Type::TEXT)]).map_err(read)?;
    let Some(id) = row.get::<_, Option<Uuid>>(0) else { return Ok(None) };
    let row = client
        .query_typed_opt(
            "select name, (extract(epoch from deleted_at) * 1000)::bigint,
                (extract(epoch from removable_at) * 1000)::bigint
            from sidenote.vault where id = $1",
            &[(&id, Type::UUID)],
        )
        .map_err(read)?;
    Ok(row.map(|row| FoundVault { id, name: row.get(0), deleted: deletion_of(&row, 1) }))
}

/// Returns why a name cannot be given to a vault, if a vault has it or had it.
fn taken(found: &FoundVault, name: &str) -> Error {
    let text = match (&found.deleted, found.name == name) {
        (_, false) => format!(
            "{name:?} is the former name of the vault {}, and still leads its clients to it",
            found.name
        ),
        (Some(_), true) => format!("the vault {name:?} was deleted, and can still be brought back"),
        (None, true) => format!("there is a vault {name:?} already"),
    };
    Error::new(ErrorKind::Exists, text).with_hint("choose another name")
}

/// Stores the row of a new vault.
pub(super) fn insert_vault(client: &mut impl GenericClient, id: Uuid, name: &str, head: i64) -> Result<()> {
    let create = |error| failed("create the vault", error);
    if let Some(found) = find(client, name)? {
        return Err(taken(&found, name));
    }
    client.query_typed(SET_VAULT, &[(&id.to_string(), Type::TEXT)]).map_err(create)?;
    failpoint();
    let inserted = client.execute_typed(
        "insert into sidenote.vault (id, name, head, origin) values ($1, $2, $3, $4) on conflict do nothing",
        &[(&id, Type::UUID), (&name, Type::TEXT), (&head, Type::INT8), (&Uuid::new_v4(), Type::UUID)],
    );
    match inserted.map_err(create)? {
        1 => Ok(()),
        _ => Err(Error::new(ErrorKind::Exists, format!("there is a vault {name:?} already"))
            .with_hint("choose another name")),
    }
}

fn no_vault(name: &str) -> Error {
    Error::not_found(format!("there is no vault {name:?} in the database"))
        .with_hints("create it with `sidenote team create`", "ask the user for the name of the vault")
}

/// Records in a vault what an operator did to it, and has servers look at it again.
fn record(transaction: &mut Transaction<'_>, vault: Uuid, event: &mut Event) -> Result<()> {
    let line = line_of(transaction, event)?;
    add_deeds(transaction, vault, std::slice::from_ref(&event.id), &[line])?;
    failpoint();
    notify_of_vault(transaction, vault).map_err(|error| failed("tell the servers", error))
}

impl Database {
    /// Returns the id of the vault with a name.
    ///
    /// # Errors
    /// `NotFound` if there is none, or if it has another name now or was deleted, which the error says; `Io` if the database cannot
    /// be reached.
    pub fn vault_id(&self, name: &str) -> Result<Uuid> {
        match self.find_vault(name)?.ok_or_else(|| no_vault(name))? {
            FoundVault { deleted: Some(_), name, .. } => Err(deleted(&name)),
            found if found.name != name => {
                Err(Error::not_found(format!("the vault {name} is called {} now", found.name))
                    .with_hint("use that name"))
            }
            found => Ok(found.id),
        }
    }

    /// Returns the vault that has or had a name, if there is one.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub(crate) fn find_vault(&self, name: &str) -> Result<Option<FoundVault>> {
        self.read(None, |transaction| find(transaction, name))
    }

    /// Checks that a new vault can have a name.
    ///
    /// # Errors
    /// `Exists` if a vault has it, or had it and still exists; `Io` if the database cannot be reached.
    pub(crate) fn check_free(&self, name: &str) -> Result<()> {
        self.find_vault(name)?.map_or(Ok(()), |found| Err(taken(&found, name)))
    }

    /// Creates a vault without files.
    ///
    /// # Errors
    /// `Exists` if there is one with this name; `Io` if the database cannot be reached.
    pub(crate) fn create_vault(&self, name: &str) -> Result<Uuid> {
        let id = Uuid::new_v4();
        self.write(Some(id), |transaction| insert_vault(transaction, id, name, 0))?;
        Ok(id)
    }

    /// Gives a vault another name, and records that. Its former name leads to it from then on.
    pub(crate) fn rename_vault(&self, id: Uuid, from: &str, to: &str, event: &mut Event) -> Result<()> {
        self.write(Some(id), |transaction| {
            let rename = |error| failed("rename the vault", error);
            if let Some(found) = find(transaction, to)?
                && (found.id != id || found.name == to)
            {
                return Err(taken(&found, to));
            }
            // Changes that have begun end first. Events wait for each other before they wait for the row.
            lock_row(transaction, id)?;
            record(transaction, id, event)?;
            let parameters: [(&(dyn ToSql + Sync), Type); 3] =
                [(&id, Type::UUID), (&from, Type::TEXT), (&to, Type::TEXT)];
            let [vault, from, to] = parameters.clone();
            failpoint();
            let renamed = transaction.execute_typed(
                "update sidenote.vault set name = $3 where id = $1 and name = $2 and deleted_at is null",
                &parameters,
            );
            if renamed.map_err(rename)? != 1 {
                return Err(Error::new(ErrorKind::Conflict, "the vault was renamed or deleted meanwhile"));
            }
            failpoint();
            // A name that it had once may be its name again.
            transaction
                .execute_typed(
                    "delete from sidenote.former_name where vault = $1 and name = $2",
                    &[vault.clone(), to],
                )
                .map_err(rename)?;
            failpoint();
            transaction
                .execute_typed(
                    "insert into sidenote.former_name (name, vault) values ($2, $1)",
                    &[vault, from],
                )
                .map(drop)
                .map_err(rename)
        })
    }

    /// Deletes a vault for as long as it is not removed for good, which may be done from a time on; or brings it back, without a
    /// time.
    pub(crate) fn set_deleted(&self, id: Uuid, deletion: Option<Deletion>, event: &mut Event) -> Result<()> {
        self.write(Some(id), |transaction| {
            lock_row(transaction, id)?;
            let deleted_at = deletion.map(|deletion| deletion.deleted_at.millis());
            let removable_at = deletion.map(|deletion| deletion.removable_at.millis());
            failpoint();
            transaction
                .execute_typed(
                    "update sidenote.vault set deleted_at = to_timestamp($2::bigint / 1000.0),
                        removable_at = to_timestamp($3::bigint / 1000.0) where id = $1",
                    &[(&id, Type::UUID), (&deleted_at, Type::INT8), (&removable_at, Type::INT8)],
                )
                .map_err(|error| failed("delete the vault", error))?;
            record(transaction, id, event)
        })
    }

    /// Counts the contents of a vault and their size in bytes.
    pub(crate) fn stored(&self, id: Uuid) -> Result<(usize, u64)> {
        self.read(Some(id), |transaction| {
            let row = transaction
                .query_typed_one(
                    "select count(*), coalesce(sum(octet_length(bytes)), 0)::bigint from sidenote.blob where vault = $1",
                    &[(&id, Type::UUID)],
                )
                .map_err(|error| failed("measure the vault", error))?;
            let number = |at| row.get::<_, i64>(at).unsigned_abs();
            Ok((usize::try_from(number(0)).unwrap_or(usize::MAX), number(1)))
        })
    }

    /// Removes a vault for good, with its history, rights and former names. With `due`, only if it is deleted and its
    /// time is over at that instant, because another operator may have brought it back meanwhile. Returns whether it
    /// was removed.
    pub(crate) fn remove_vault(&self, id: Uuid, due: Option<Timestamp>) -> Result<bool> {
        let due = due.map(Timestamp::millis);
        self.write(Some(id), |transaction| {
            lock_row(transaction, id)?;
            failpoint();
            // No event of a server comes in between.
            let found = transaction
                .query_typed(
                    "select from sidenote.vault where id = $1 and ($2::bigint is null
                        or deleted_at is not null and removable_at <= to_timestamp($2::bigint / 1000.0)) for update",
                    &[(&id, Type::UUID), (&due, Type::INT8)],
                )
                .map_err(|error| failed("lock the vault", error))?;
            if found.is_empty() {
                return Ok(false);
            }
            for statement in REMOVALS {
                failpoint();
                transaction
                    .execute_typed(statement, &[(&id, Type::UUID)])
                    .map_err(|error| failed("remove the vault", error))?;
            }
            failpoint();
            notify_of_vault(transaction, id).map_err(|error| failed("tell the servers", error))?;
            Ok(true)
        })
    }

    /// Lists the vaults that were deleted and not removed yet. The connection must have a role that owns the tables.
    pub(crate) fn deleted_vaults(&self) -> Result<Vec<FoundVault>> {
        self.read(None, |transaction| {
            failpoint();
            let rows = transaction
                .query_typed(
                    "select id, name, (extract(epoch from deleted_at) * 1000)::bigint,
                        (extract(epoch from removable_at) * 1000)::bigint
                    from sidenote.vault where deleted_at is not null order by name",
                    &[],
                )
                .map_err(|error| failed("list the vaults", error))?;
            let found = |row| FoundVault {
                id: postgres::Row::get(row, 0),
                name: row.get(1),
                deleted: deletion_of(row, 2),
            };
            Ok(rows.iter().map(found).collect())
        })
    }

    /// Returns the name, the origin and whether it was deleted of a vault, if it exists.
    ///
    /// # Errors
    /// `Io` if the database cannot be reached.
    pub(crate) fn look_at(&self, id: Uuid) -> Result<Option<(String, Uuid, bool)>> {
        self.read(Some(id), |transaction| {
            failpoint();
            let row = transaction
                .query_typed_opt(
                    "select name, origin, deleted_at is not null from sidenote.vault where id = $1",
                    &[(&id, Type::UUID)],
                )
                .map_err(|error| failed("find the vault", error))?;
            Ok(row.map(|row| (row.get(0), row.get(1), row.get(2))))
        })
    }

    /// Returns how much a vault holds, and what is set for its quotas.
    pub(crate) fn quotas_of(&self, id: Uuid) -> Result<(Usage, QuotaSettings)> {
        self.read(Some(id), |transaction| read_quotas(transaction, id))
    }

    /// Sets the quotas of a vault, and records that.
    pub(crate) fn set_quotas(&self, id: Uuid, quotas: QuotaSettings, event: &mut Event) -> Result<()> {
        self.write(Some(id), |transaction| {
            failpoint();
            transaction
                .execute_typed(
                    "update sidenote.vault set max_bytes = $2, max_notes = $3, max_changes = $4 where id = $1",
                    &[
                        (&id, Type::UUID),
                        (&quotas.bytes.to_stored(), Type::INT8),
                        (&quotas.notes.to_stored(), Type::INT8),
                        (&quotas.changes.to_stored(), Type::INT8),
                    ],
                )
                .map_err(|error| failed("set the quotas", error))?;
            record(transaction, id, event)
        })
    }
}

fn read_quotas(transaction: &mut Transaction<'_>, id: Uuid) -> Result<(Usage, QuotaSettings)> {
    failpoint();
    let row = transaction
        .query_typed_opt(
            "select bytes, notes, max_bytes, max_notes, max_changes from sidenote.vault where id = $1",
            &[(&id, Type::UUID)],
        )
        .map_err(|error| failed("read the quotas", error))?;
    Ok(usage_of(&row.ok_or_else(gone)?, 0))
}
