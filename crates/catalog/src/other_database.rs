//! Reads a table of a SQLite database that another program wrote. Nothing is written to the database.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value, json};
use sidenote_base::error::{Error, Result};

use crate::{check, has_log, kind_of, open_immutable};

/// The bytes with which a SQLite database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The rows of a table, and what else the database holds.
#[derive(Debug, Clone, Default)]
pub struct TableRows {
    /// The rows in the order in which they were inserted, each by the names of its columns. A column without a value is
    /// absent; of binary data the length alone is given.
    pub rows: Vec<Map<String, Value>>,
    /// The other tables that have rows, with the number of their rows.
    pub others: Vec<(String, i64)>,
}

/// Returns whether a file with this beginning is a SQLite database.
pub fn is_database(beginning: &[u8]) -> bool {
    beginning.starts_with(MAGIC)
}

/// Reads a table of the database of another program.
///
/// # Errors
/// `Invalid` if the database has no such table; `Corrupt` if it is damaged; `Conflict` if another process keeps it locked;
/// `Io` if it cannot be read.
pub fn read_table(path: &Path, table: &str) -> Result<TableRows> {
    let failed = |error: rusqlite::Error| {
        let message = format!("{} cannot be read as a SQLite database: {error}", path.display());
        Error::new(kind_of(&error), message).with_hint("close the program that uses it, and try again")
    };
    check::refuse_irregular(path)?;
    // Without a log nothing is created beside the database.
    let db = if has_log(path) {
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    } else {
        open_immutable(path)
    };
    let db = db.map_err(failed)?;
    check::harden(&db)?;
    db.execute_batch("PRAGMA query_only = 1; PRAGMA busy_timeout = 5000;").map_err(failed)?;
    let tables = ordinary_tables(&db).map_err(failed)?;
    if !tables.iter().any(|name| name == table) {
        return Err(Error::invalid(format!("{} has no table {table}", path.display()))
            .with_hint("give a database with memories, or an export as JSON or CSV"));
    }
    let rows = rows_of(&db, table).map_err(failed)?;
    let mut others = Vec::new();
    for name in tables.into_iter().filter(|name| name != table) {
        let count: i64 = db
            .query_row(&format!("SELECT count(*) FROM {}", quoted(&name)), [], |row| row.get(0))
            .map_err(failed)?;
        others.extend((count > 0).then_some((name, count)));
    }
    Ok(TableRows { rows, others })
}

/// Lists the tables, without those of SQLite itself, virtual ones and the tables in which these keep their data.
fn ordinary_tables(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select =
        db.prepare("SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
    let all = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let all = all.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    let is_virtual = |sql: &str| sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL");
    let virtual_names: Vec<String> =
        all.iter().filter(|(_, sql)| is_virtual(sql)).map(|(name, _)| format!("{name}_")).collect();
    let is_ordinary = |(name, sql): &(String, String)| {
        !is_virtual(sql)
            && !name.starts_with("sqlite_")
            && !virtual_names.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    Ok(all.into_iter().filter(is_ordinary).map(|(name, _)| name).collect())
}

fn rows_of(db: &Connection, table: &str) -> rusqlite::Result<Vec<Map<String, Value>>> {
    let mut select = db.prepare(&format!("SELECT * FROM {}", quoted(table)))?;
    let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
    let read = |row: &Row<'_>| {
        let mut values = Map::new();
        for (at, column) in columns.iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null => continue,
                ValueRef::Integer(number) => Value::from(number),
                ValueRef::Real(number) => Value::from(number),
                text @ ValueRef::Text(_) => Value::from(text.as_str()?),
                ValueRef::Blob(bytes) => json!({ "bytes": bytes.len() }),
            };
            values.insert(column.clone(), value);
        }
        Ok(values)
    };
    select.query_map([], read)?.collect()
}

/// Returns a name as an identifier of SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
