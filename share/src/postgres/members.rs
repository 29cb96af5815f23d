//! The tables of rights: roles of persons and groups in vaults, and who is blocked; and what is recorded of them.

use postgres::Transaction;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::Type;
use uuid::Uuid;

use super::tables::add_deeds;
use super::{Database, SET_VAULT, failed};
use sidenote_foundation::clock::Timestamp;
use sidenote_foundation::error::{Error, Result};
use sidenote_foundation::journal::event::Event;
use sidenote_foundation::vault::failpoint;

/// The rights of a person in a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    /// The name of the highest role that the person has; `None` without one, or without the vault.
    pub(crate) role: Option<String>,
    /// Whether the person, or a group of the person, is blocked in all vaults.
    pub(crate) is_blocked: bool,
}

/// The roles in a vault.
#[derive(Debug)]
pub(crate) struct StoredRoles {
    /// The name of the vault.
    pub(crate) vault: String,
    /// Names of persons or groups, each with the name of the role.
    pub(crate) roles: Vec<(String, String)>,
}

impl Database {
    /// Reads the names of all vaults, each with the roles in it, and the names that are blocked, in one state. The connection
    /// must have a role that owns the tables.
    pub(crate) fn list_roles(&self) -> Result<(Vec<StoredRoles>, Vec<String>)> {
        self.read(None, |transaction| {
            failpoint();
            let read = |error| failed("list the vaults", error);
            let vaults = transaction
                .query_typed("select id, name from sidenote.vault order by name", &[])
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
                found.push(StoredRoles { vault: vault.get(1), roles });
            }
            let blocked = transaction
                .query_typed(
                    "select who from (
                        select distinct on (b.who) b.who, b.is_blocked from sidenote.block b order by b.who, b.id desc
                    ) newest where is_blocked and who !~ '^forgotten#[0-9]+$' order by who",
                    &[],
                )
                .map_err(read)?;
            Ok((found, blocked.iter().map(|row| row.get(0)).collect()))
        })
    }

    /// Reads the rights that a person has in a vault under one of some names, in one statement.
    pub(crate) fn rights(&self, vault: &str, names: &[String]) -> Result<Rights> {
        let (client, rights) = self.with_client(|client| {
            failpoint();
            // The function sets the vault for row-level security; the statement is a transaction of its own.
            let asked = client.query_typed_one(
                "select role, is_blocked from sidenote.rights_of($1, $2)",
                &[(&vault, Type::TEXT), (&names, Type::TEXT_ARRAY)],
            );
            let row = asked.map_err(|error| failed("read the rights of a person", error))?;
            Ok(Rights { role: row.get(0), is_blocked: row.get(1) })
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

    /// Blocks a name in all vaults, or ends that, and records it with an event. Returns whether it was blocked before.
    pub(crate) fn set_blocked(&self, who: &str, blocked: bool, event: &mut Event) -> Result<bool> {
        self.write(Some(Uuid::nil()), |transaction| {
            let before = is_blocked(transaction, who)?;
            let line = line_of(transaction, event)?;
            transaction
                .execute_typed(
                    "insert into sidenote.block (who, is_blocked, line) values ($1, $2, $3)",
                    &[(&who, Type::TEXT), (&blocked, Type::BOOL), (&line, Type::TEXT)],
                )
                .map_err(|error| failed("store the block", error))?;
            Ok(before)
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

fn is_blocked(transaction: &mut Transaction<'_>, who: &str) -> Result<bool> {
    failpoint();
    let row = transaction.query_typed_opt(
        "select is_blocked from sidenote.block where who = $1 order by id desc limit 1",
        &[(&who, Type::TEXT)],
    );
    Ok(row.map_err(|error| failed("read the block", error))?.is_some_and(|row| row.get(0)))
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
