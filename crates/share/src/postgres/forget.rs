//! Replacing a person by a number in all journals, as the owner of the tables.

use postgres::Transaction;
use postgres::types::Type;
use sidenote_base::error::{Error, Result};
use sidenote_journal::event::Event;
use sidenote_vault::failpoint;
use uuid::Uuid;

use super::listener::notify;
use super::members::{hash_of, is_blocked, line_of};
use super::{Database, SET_VAULT, failed};

/// How often a person was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The number by which the person is replaced.
    pub(crate) number: i64,
    /// The number of vaults.
    pub(crate) vaults: usize,
    /// The number of events in them, and of blocks.
    pub(crate) events: usize,
    /// The number of roles.
    pub(crate) roles: usize,
    /// Whether the person is blocked, and stays so.
    pub(crate) is_blocked: bool,
}

/// The statements for the events of one kind: finding those that may name a person, and replacing one.
struct Statements {
    find: &'static str,
    replace: &'static str,
}

const EVENTS: Statements = Statements {
    find: "select gen, id, line from sidenote.event
        where vault = $1 and (position($2 in line) > 0 or position($3 in line) > 0)",
    replace: "update sidenote.event set line = $4, issuer = $4::jsonb -> 'caller' ->> 'issuer',
        subject = $4::jsonb -> 'caller' ->> 'subject' where vault = $1 and gen = $2 and id = $3",
};
const DEEDS: Statements = Statements {
    find: "select seq, id, line from sidenote.deed
        where vault = $1 and (position($2 in line) > 0 or position($3 in line) > 0)",
    replace: "update sidenote.deed set line = $4 where vault = $1 and seq = $2 and id = $3",
};

impl Database {
    /// Replaces a person in the events of all vaults, and removes the roles. `rewrite` changes an event that names the
    /// person, given the number, and returns whether it does. With `dry_run`, the events are only counted. Copies are
    /// made again afterwards, because the vaults get another origin.
    pub(crate) fn forget(
        &self,
        who: &str,
        subject: &str,
        dry_run: bool,
        rewrite: &dyn Fn(&mut Event, i64) -> bool,
        record: &mut Event,
    ) -> Result<Found> {
        let needles = [json_text(who)?, json_text(subject)?];
        self.write(Some(Uuid::nil()), |transaction| {
            let read = |error| failed("read the journals", error);
            let number = "select coalesce(max(substr(who, 11)::bigint), 0) + 1 from sidenote.block
                where who ~ '^forgotten#[0-9]+$'";
            let number: i64 = transaction.query_typed_one(number, &[]).map_err(read)?.get(0);
            let mut found = Found { number, ..Found::default() };
            let vaults = transaction.query_typed("select id from sidenote.vault order by id", &[]);
            for vault in vaults.map_err(read)? {
                let vault: Uuid = vault.get(0);
                transaction.query_typed(SET_VAULT, &[(&vault.to_string(), Type::TEXT)]).map_err(read)?;
                let mut events = 0;
                for statements in [EVENTS, DEEDS] {
                    events += replace(transaction, vault, &statements, &needles, dry_run, &|event| {
                        rewrite(event, number)
                    })?;
                }
                let roles = remove_roles(transaction, vault, who, dry_run)?;
                found.events += events;
                found.roles += roles;
                found.vaults += usize::from(events + roles > 0);
                if events > 0 && !dry_run {
                    let origin = Uuid::new_v4();
                    let renew = |error| failed("renew the vault", error);
                    let renewed = transaction.query_typed_one(
                        "update sidenote.vault set origin = $2 where id = $1 returning head",
                        &[(&vault, Type::UUID), (&origin, Type::UUID)],
                    );
                    let head: i64 = renewed.map_err(renew)?.get(0);
                    // Servers have the person in their copies until they learn of it.
                    notify(transaction, vault, head).map_err(renew)?;
                }
            }
            found.is_blocked = is_blocked(transaction, who)?;
            // A block goes on by the hash of the person, and has the number as its name.
            let stored = if found.is_blocked { hash_of(who) } else { format!("forgotten#{number}") };
            found.events +=
                replace_blocks(transaction, who, &stored, dry_run, &|event| rewrite(event, number))?;
            if !dry_run {
                record.more.insert("who".to_owned(), format!("forgotten#{number}").into());
                let line = line_of(transaction, record)?;
                transaction
                    .execute_typed(
                        "insert into sidenote.block (who, is_blocked, line) values ('forgotten#' || $1, true, $2)",
                        &[(&number.to_string(), Type::TEXT), (&line, Type::TEXT)],
                    )
                    .map_err(|error| failed("record that", error))?;
            }
            Ok(found)
        })
    }
}

fn json_text(text: &str) -> Result<String> {
    serde_json::to_string(text)
        .map_err(|error| Error::internal("a text cannot be serialized").with_source(error))
}

/// Rewrites a line. Returns `None` if it does not name the person.
fn rewritten(line: &str, rewrite: &dyn Fn(&mut Event) -> bool) -> Result<Option<String>> {
    let mut event: Event = serde_json::from_str(line).map_err(|error| {
        Error::corrupt("the database has an event that cannot be read").with_source(error)
    })?;
    if !rewrite(&mut event) {
        return Ok(None);
    }
    let line = serde_json::to_string(&event)
        .map_err(|error| Error::internal("an event cannot be serialized").with_source(error))?;
    Ok(Some(line))
}

/// Rewrites the events of one kind of a vault, and returns their number.
fn replace(
    transaction: &mut Transaction<'_>,
    vault: Uuid,
    statements: &Statements,
    needles: &[String; 2],
    dry_run: bool,
    rewrite: &dyn Fn(&mut Event) -> bool,
) -> Result<usize> {
    let change = |error| failed("change the journal", error);
    failpoint();
    let [who, subject] = needles;
    let rows = transaction
        .query_typed(statements.find, &[(&vault, Type::UUID), (who, Type::TEXT), (subject, Type::TEXT)]);
    let mut count = 0;
    for row in rows.map_err(change)? {
        let (position, id, line): (i64, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let Some(line) = rewritten(line, rewrite)? else { continue };
        count += 1;
        if !dry_run {
            transaction
                .execute_typed(
                    statements.replace,
                    &[(&vault, Type::UUID), (&position, Type::INT8), (&id, Type::TEXT), (&line, Type::TEXT)],
                )
                .map_err(change)?;
        }
    }
    Ok(count)
}

fn remove_roles(transaction: &mut Transaction<'_>, vault: Uuid, who: &str, dry_run: bool) -> Result<usize> {
    let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 2] =
        [(&vault, Type::UUID), (&who, Type::TEXT)];
    failpoint();
    if dry_run {
        let found = transaction
            .query_typed("select from sidenote.member where vault = $1 and who = $2", &parameters)
            .map_err(|error| failed("read the roles", error))?;
        return Ok(found.len());
    }
    let removed =
        transaction.execute_typed("delete from sidenote.member where vault = $1 and who = $2", &parameters);
    let removed = removed.map_err(|error| failed("remove the roles", error))?;
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}

/// Replaces a person by `stored` in the record of blocks.
fn replace_blocks(
    transaction: &mut Transaction<'_>,
    who: &str,
    stored: &str,
    dry_run: bool,
    rewrite: &dyn Fn(&mut Event) -> bool,
) -> Result<usize> {
    let change = |error| failed("change the blocks", error);
    failpoint();
    let rows = transaction
        .query_typed("select id, line from sidenote.block where who = $1", &[(&who, Type::TEXT)])
        .map_err(change)?;
    for row in &rows {
        let (id, line): (i64, &str) = (row.get(0), row.get(1));
        let Some(line) = rewritten(line, rewrite)?.filter(|_| !dry_run) else { continue };
        transaction
            .execute_typed(
                "update sidenote.block set who = $3, line = $2 where id = $1",
                &[(&id, Type::INT8), (&line, Type::TEXT), (&stored, Type::TEXT)],
            )
            .map_err(change)?;
    }
    Ok(rows.len())
}
