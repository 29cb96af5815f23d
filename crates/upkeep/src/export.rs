//! Exports memories for other programs.

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_markdown::frontmatter;
use sidenote_open_vault::source::Source;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::Upkeep;

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One object: `export_timestamp`, `memories`, `total_memories`.
    Json,
    /// One object for each line.
    Jsonl,
    /// A table with a header; tags are joined by `;`.
    Csv,
}

/// A memory in the form of an export.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    id: String,
    path: String,
    title: String,
    content: String,
    #[serde(rename = "type")]
    kind: String,
    tags: Vec<String>,
    importance: f64,
    created_at: String,
    updated_at: String,
    tier: String,
    uses: usize,
    last_use: Option<String>,
    usefulness: i64,
    pinned: bool,
    forgotten: bool,
    properties: Map<String, Value>,
    /// The frontmatter as written in the note, with its delimiters.
    frontmatter: String,
    /// The same under the names that the toolset `longterm` uses.
    #[serde(flatten)]
    longterm: LongtermKeys,
}

/// What the memory server with the tools of `longterm` has in its exports, beside what has the same name here.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct LongtermKeys {
    memory_type: String,
    created_at: String,
    updated_at: String,
    metadata: Map<String, Value>,
}

/// A row of a table.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    id: String,
    path: String,
    title: String,
    #[serde(rename = "type")]
    kind: String,
    tags: String,
    importance: String,
    created_at: String,
    updated_at: String,
    tier: String,
    uses: String,
    last_use: String,
    usefulness: String,
    pinned: String,
    forgotten: String,
    properties: String,
    frontmatter: String,
    content: String,
}

/// Characters at the beginning of a cell that make a spreadsheet read it as a formula.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// Prefixes a cell that a spreadsheet would read as a formula with an apostrophe.
fn guarded(cell: String) -> String {
    if is_formula(&cell) { format!("'{cell}") } else { cell }
}

/// Returns the text of a cell before [`guarded`].
pub(crate) fn unguarded(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|cell| is_formula(cell)).unwrap_or(cell)
}

/// Returns whether a cell, without leading apostrophes, begins like a formula.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULA)
}

/// The result of an export.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExportReply {
    /// The number of exported notes.
    pub exported: usize,
    /// The notes that cannot be read and are not exported.
    pub left_out: Vec<String>,
}

impl Upkeep<'_> {
    pub(crate) fn record(&self, memory: &Memory) -> Result<Record> {
        let source = Source::unplaced(memory.row.path.clone(), &self.core.read_bytes(&memory.row.path)?);
        let front = source.note.frontmatter.as_ref();
        let begin = frontmatter::read(&source.text).1;
        let properties = front.map(|front| front.values()).unwrap_or_default();
        let metadata = properties.get("metadata").and_then(Value::as_object);
        let longterm = LongtermKeys {
            memory_type: memory.kind.clone(),
            created_at: memory.created.millis_rfc3339(),
            updated_at: memory.updated.millis_rfc3339(),
            metadata: metadata.cloned().unwrap_or_default(),
        };
        Ok(Record {
            id: memory.id.clone(),
            path: memory.path.clone(),
            title: memory.title.clone(),
            content: source.text.get(begin..).unwrap_or("").to_owned(),
            frontmatter: source.text.get(..begin).unwrap_or("").to_owned(),
            kind: memory.kind.clone(),
            tags: memory.tags.clone(),
            importance: memory.state.importance,
            created_at: memory.created.exact_rfc3339(),
            updated_at: memory.updated.exact_rfc3339(),
            tier: memory.state.tier.to_string(),
            uses: memory.state.uses,
            last_use: memory.state.last_use.map(Timestamp::exact_rfc3339),
            usefulness: memory.state.usefulness,
            pinned: memory.state.pinned,
            forgotten: memory.state.forgotten,
            properties,
            longterm,
        })
    }

    /// Exports all notes with their state as memories.
    ///
    /// # Errors
    /// `Io` if the answer cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn export(&self, form: Form, out: &mut dyn Write) -> Result<ExportReply> {
        let now = self.core.clock.now();
        let memories = MemoryWeights::of(self.core).all_memories(now)?;
        let failed = |error| Error::io("write", "the export", error);
        let unserial = |error| Error::internal("a memory cannot be written").with_source(error);
        let mut left_out = Vec::new();
        let mut count = 0;
        let mut table = csv::Writer::from_writer(Vec::new());
        if form == Form::Json {
            write!(out, "{{\"export_timestamp\":\"{}\",\"memories\":[", now.millis_rfc3339())
                .map_err(failed)?;
        }
        for memory in &memories {
            let record = match self.record(memory) {
                Ok(record) => record,
                // The note was removed since it was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    tracing::debug!("{error}");
                    left_out.push(memory.path.clone());
                    continue;
                }
            };
            match form {
                Form::Json => {
                    out.write_all(if count == 0 { b"\n" } else { b",\n" }).map_err(failed)?;
                    serde_json::to_writer(&mut *out, &record).map_err(unserial)?;
                }
                Form::Jsonl => {
                    serde_json::to_writer(&mut *out, &record).map_err(unserial)?;
                    out.write_all(b"\n").map_err(failed)?;
                }
                Form::Csv => {
                    table
                        .serialize(Row::of(record))
                        .map_err(|error| Error::internal("a memory cannot be written").with_source(error))?;
                    let bytes = table.into_inner().map_err(|error| {
                        Error::internal("a memory cannot be written").with_source(error.into_error())
                    })?;
                    out.write_all(&bytes).map_err(failed)?;
                    table = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
                }
            }
            count += 1;
        }
        if form == Form::Json {
            writeln!(out, "\n],\"total_memories\":{count}}}").map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        Ok(ExportReply { exported: count, left_out })
    }
}

impl Row {
    fn of(record: Record) -> Self {
        Self {
            id: guarded(record.id),
            path: guarded(record.path),
            title: guarded(record.title),
            kind: guarded(record.kind),
            tags: guarded(record.tags.join(";")),
            importance: record.importance.to_string(),
            created_at: record.created_at,
            updated_at: record.updated_at,
            tier: record.tier,
            uses: record.uses.to_string(),
            last_use: record.last_use.unwrap_or_default(),
            usefulness: record.usefulness.to_string(),
            pinned: record.pinned.to_string(),
            forgotten: record.forgotten.to_string(),
            properties: Value::Object(record.properties).to_string(),
            frontmatter: guarded(record.frontmatter),
            content: guarded(record.content),
        }
    }
}
