//! Reads the records of an import: JSON, lines of JSON, a table, or the database of another memory server.

use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::other_database::read_table;

use super::ImportSource;
use crate::export::unguarded;

/// The table in which the memory servers with a SQLite database keep their memories.
const TABLE: &str = "memories";

/// The records of an import, and notices of what is not among them.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) records: Vec<Value>,
    pub(super) notices: Vec<String>,
}

/// Reads the records of an import.
///
/// # Errors
/// `Invalid` for a text of another form; the errors of [`read_table`] for a database.
pub(super) fn records_of(source: ImportSource<'_>) -> Result<Records> {
    match source {
        ImportSource::Text(text) => Ok(Records { records: parse(text)?, notices: Vec::new() }),
        ImportSource::Database(path) => {
            let found = read_table(path, TABLE)?;
            let notice = |(table, rows)| format!("the table {table} with its {rows} rows is not imported");
            Ok(Records {
                records: found.rows.into_iter().map(Value::Object).collect(),
                notices: found.others.into_iter().map(notice).collect(),
            })
        }
    }
}

/// Parses a text in any of its formats.
fn parse(text: &str) -> Result<Vec<Value>> {
    let text = text.trim_start_matches('\u{feff}').trim();
    match text.chars().next() {
        None => Err(wrong("empty")),
        Some('[') => serde_json::from_str(text).map_err(|error| wrong("no sound JSON").with_source(error)),
        Some('{') => match serde_json::from_str::<Value>(text) {
            Ok(mut whole) => match whole.get_mut("memories").map(Value::take) {
                Some(Value::Array(memories)) => Ok(memories),
                _ => Ok(vec![whole]),
            },
            Err(_) => {
                let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
                let read = |(at, line): (usize, &str)| {
                    serde_json::from_str(line).map_err(|error| {
                        wrong(&format!("invalid JSON in line {}", at + 1)).with_source(error)
                    })
                };
                lines.map(read).collect()
            }
        },
        Some(_) => parse_table(text),
    }
}

/// Parses a table. Its cells are texts, which are read as the values of their columns like those of other records.
fn parse_table(text: &str) -> Result<Vec<Value>> {
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let head = table.headers().map_err(|error| wrong("no table").with_source(error))?.clone();
    if !head.iter().any(|name| matches!(name, "content" | "text")) {
        return Err(wrong("neither JSON nor a table with a column content"));
    }
    let row = |row: csv::Result<csv::StringRecord>| {
        let row = row.map_err(|error| wrong("no sound table").with_source(error))?;
        let cells = head
            .iter()
            .zip(row.iter())
            .filter(|(name, cell)| !cell.is_empty() || matches!(*name, "content" | "frontmatter"));
        let value = |name: &str, cell: &str| match name {
            "properties" => serde_json::from_str(cell).unwrap_or_else(|_| Value::from(cell)),
            _ => Value::from(unguarded(cell)),
        };
        Ok(cells.map(|(name, cell)| (name.to_owned(), value(name, cell))).collect::<Map<_, _>>().into())
    };
    table.records().map(row).collect()
}

/// Returns the error for a text of another form.
fn wrong(what: &str) -> Error {
    Error::invalid(format!("the import is {what}")).with_hint(
        "give an export of sidenote, a JSON array of objects with content, one such object a line, a table with a column content, or the SQLite database of another memory server",
    )
}
