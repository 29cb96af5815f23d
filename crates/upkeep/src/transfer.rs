//! Exports memories for other programs and imports them.

use std::collections::HashSet;
use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::Filter;
use sidenote_change::Changes;
use sidenote_change::free_names::FreeNames;
use sidenote_markdown::frontmatter;
use sidenote_markdown::path::NotePath;
use sidenote_memories::MemoryWrites;
use sidenote_memories::note_from_memory::{IncomingMemory, LONGEST_ID};
use sidenote_memory::duplicate::digest;
use sidenote_memory::state::{MAX_IMPORTANCE, MIN_IMPORTANCE};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::redaction::Cleaned;
use sidenote_open_vault::source::{Source, body_of};
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::Upkeep;

/// The number of notes that are created by one operation.
const BATCH: usize = 500;

/// The end of the year 9999, in milliseconds.
const LATEST: f64 = 253_402_300_800_000.0;

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
#[derive(Debug, Clone, Serialize, Deserialize)]
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
fn unguarded(cell: &str) -> &str {
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

/// The result of an import, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportReply {
    /// The paths of the new notes.
    pub imported: Vec<String>,
    /// The number of memories that exist already.
    pub skipped: usize,
    /// The number of secrets that were removed.
    pub redacted: usize,
    /// Notices for the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Upkeep<'_> {
    pub(crate) fn record(&self, memory: &Memory) -> Result<Record> {
        let source = Source::unplaced(memory.row.path.clone(), &self.core.read_bytes(&memory.row.path)?);
        let front = source.note.frontmatter.as_ref();
        let begin = frontmatter::read(&source.text).1;
        Ok(Record {
            id: memory.id.clone(),
            path: memory.path.clone(),
            title: memory.title.clone(),
            content: source.text.get(begin..).unwrap_or("").to_owned(),
            frontmatter: source.text.get(..begin).unwrap_or("").to_owned(),
            kind: memory.kind.clone(),
            tags: memory.tags.clone(),
            importance: memory.state.importance,
            created_at: memory.created.rfc3339(),
            updated_at: memory.updated.rfc3339(),
            tier: memory.state.tier.to_string(),
            uses: memory.state.uses,
            last_use: memory.state.last_use.map(Timestamp::rfc3339),
            usefulness: memory.state.usefulness,
            pinned: memory.state.pinned,
            forgotten: memory.state.forgotten,
            properties: front.map(|front| front.values()).unwrap_or_default(),
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
            write!(out, "{{\"export_timestamp\":\"{}\",\"memories\":[", now.rfc3339()).map_err(failed)?;
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

    /// Imports memories: an export in any format, an array of objects, or one object for each line. Memories that exist
    /// already are skipped. If one memory cannot be parsed, none is imported.
    ///
    /// # Errors
    /// `Invalid`, naming the memory, if one cannot be parsed. Nothing is written then.
    #[tracing::instrument(skip_all)]
    pub fn import(&self, text: &str, dry_run: bool, told: &dyn Fn(usize, usize)) -> Result<ImportReply> {
        let records = parse(text)?;
        let total = records.len();
        let mut incoming = Vec::with_capacity(total);
        for (at, record) in records.iter().enumerate() {
            let wrong = |error: Error| Error::invalid(format!("memory {}: {error}", at + 1));
            incoming.push(read(record).map_err(wrong)?);
        }
        IndexSync::of(self.core).refresh()?;
        let mut reply = ImportReply::default();
        let mut known = self.known_texts(&mut reply.notices)?;
        let now = self.core.clock.now();
        let view = View::new(self.core)?;
        let mut names = FreeNames::without_captures(&self.core.vault, &view);
        let mut made = Vec::new();
        let mut cleaned = Cleaned::default();
        // All notes are made before the first is written, so that an error changes nothing.
        for (at, mut memory) in incoming.into_iter().enumerate() {
            let in_place = |error: Error| Error::new(error.kind(), format!("memory {}: {error}", at + 1));
            cleaned += MemoryWrites::of(self.core).clean_incoming_memory(&mut memory);
            if self.has(&memory, &mut known).map_err(in_place)? {
                reply.skipped += 1;
                continue;
            }
            let former = memory.path.clone();
            let note = MemoryWrites::of(self.core).new_note(memory, &mut names, now);
            let (path, bytes) =
                note.map_err(|error| Error::invalid(format!("memory {}: {error}", at + 1)))?;
            if let Some(former) = former.filter(|former| *former != path) {
                reply
                    .notices
                    .push(format!("{former} is imported as {path}: another file has its path, or its name"));
            }
            made.push((path, bytes));
        }
        reply.redacted = cleaned.keys;
        reply.notices.extend(cleaned.notices());
        let total = made.len();
        for batch in made.chunks(BATCH) {
            if !dry_run {
                let change = Changes::of(self.core)
                    .apply_planned(
                        |_| MemoryWrites::of(self.core).plan_notes(&View::new(self.core)?, "import", batch),
                        false,
                    )
                    .map_err(|error| {
                        let done = reply.imported.len();
                        Error::new(
                            error.kind(),
                            format!("{done} of {total} notes were imported before this error: {error}"),
                        )
                    })?;
                reply.notices.extend(change.notices);
            }
            reply.imported.extend(batch.iter().map(|(path, _)| path.to_string()));
            told(reply.imported.len(), total);
        }
        Ok(reply)
    }

    /// Returns whether the vault has a memory already. Adds the text of a new one to `known`.
    ///
    /// # Errors
    /// `Io` or `Invalid` if a note cannot be read: its memory could be imported twice.
    fn has(&self, memory: &IncomingMemory, known: &mut HashSet<String>) -> Result<bool> {
        if let Some(path) = &memory.path {
            return self.holds(path, memory);
        }
        if memory.content.trim().is_empty() {
            return Ok(true);
        }
        if let Some(id) = &memory.id
            && self.is_same(id, &memory.content)?
        {
            return Ok(true);
        }
        Ok(!known.insert(digest(&memory.content)))
    }

    /// Reads a note. Returns `None` if there is none.
    ///
    /// # Errors
    /// `Io` or `Invalid` if a note cannot be read: its memory could be imported twice.
    fn bytes_of(&self, path: &NotePath) -> Result<Option<Vec<u8>>> {
        match self.core.read_bytes(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a note at the path has the same bytes.
    fn holds(&self, path: &NotePath, memory: &IncomingMemory) -> Result<bool> {
        let whole = format!("{}{}", memory.frontmatter.as_deref().unwrap_or(""), memory.content);
        Ok(self.bytes_of(path)?.is_some_and(|bytes| {
            bytes == whole.as_bytes()
                || (memory.frontmatter.is_none() && digest(&body_of(&bytes)) == digest(&memory.content))
        }))
    }

    /// Returns whether the note with an id has the same text.
    fn is_same(&self, id: &str, content: &str) -> Result<bool> {
        let row = match Lookup::of(self.core).find(id) {
            Ok(row) if row.note_id == id => row,
            Ok(_) => return Ok(false),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Exists) =>
            {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        Ok(self.bytes_of(&row.path)?.is_some_and(|bytes| digest(&body_of(&bytes)) == digest(content)))
    }

    /// Collects the texts of memories, so that none is imported twice. `notices` names memories that cannot be read.
    fn known_texts(&self, notices: &mut Vec<String>) -> Result<HashSet<String>> {
        let rows = self.core.index.catalog().select(&Filter::default())?;
        // Notes that differ from the index are included.
        let memories = MemoryWeights::of(self.core)
            .weigh(Lookup::of(self.core).with_unindexed(rows, |_| true)?, self.core.clock.now())?;
        let own = memories.into_iter().filter(|memory| MemoryWeights::of(self.core).is_own(memory));
        let mut known = HashSet::new();
        for memory in own {
            match self.bytes_of(&memory.row.path) {
                Ok(bytes) => known.extend(bytes.map(|bytes| digest(&body_of(&bytes)))),
                Err(error) => {
                    notices.push(format!("{error}; a memory with the same text may be imported twice"))
                }
            }
        }
        Ok(known)
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

/// Parses an import in any of its formats.
fn parse(text: &str) -> Result<Vec<Value>> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let wrong = |what: &str| {
        Error::invalid(format!("the import is {what}")).with_hint(
            "give an export of sidenote, a JSON array of objects with content, one such object a line, or a table with a column content",
        )
    };
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
        Some(_) => {
            let mut table = csv::Reader::from_reader(text.as_bytes());
            let head = table.headers().map_err(|error| wrong("no table").with_source(error))?.clone();
            if !head.iter().any(|name| name == "content") {
                return Err(wrong("neither JSON nor a table with a column content"));
            }
            let row = |row: csv::Result<csv::StringRecord>| {
                let row = row.map_err(|error| wrong("no sound table").with_source(error))?;
                let cells = head
                    .iter()
                    .zip(row.iter())
                    .filter(|(name, cell)| !cell.is_empty() || matches!(*name, "content" | "frontmatter"));
                let value = |name: &str, cell: &str| match name {
                    "title" | "content" | "frontmatter" | "id" | "path" | "type" | "tags" => {
                        Value::from(unguarded(cell))
                    }
                    "properties" => serde_json::from_str(cell).unwrap_or_else(|_| Value::from(cell)),
                    "importance" => cell.parse::<f64>().map_or_else(|_| Value::from(cell), Value::from),
                    _ => Value::from(cell),
                };
                Ok(cells
                    .map(|(name, cell)| (name.to_owned(), value(name, cell)))
                    .collect::<Map<_, _>>()
                    .into())
            };
            table.records().map(row).collect()
        }
    }
}

/// The properties of an import that have a field of their own in [`IncomingMemory`].
const OWN_FIELDS: [&str; 6] = ["id", "title", "tags", "type", "created_at", "importance"];

/// Reads a memory from an object of an import.
///
/// # Errors
/// `Invalid` for an object without text, and for tags, an importance or a time of the wrong type.
fn read(record: &Value) -> Result<IncomingMemory> {
    let content =
        text(record, &["content", "text"]).ok_or_else(|| Error::invalid("it has no text `content`"))?;
    let properties = record.get("properties").and_then(Value::as_object);
    // Only an export of ours has both; the note is restored as it was.
    let path = text(record, &["path"]).filter(|_| properties.is_some());
    let path = path.and_then(|path| NotePath::parse(&path).ok()).filter(NotePath::is_note);
    let is_valid_id = |id: &String| !id.trim().is_empty() && id.len() <= LONGEST_ID && !id.contains('\n');
    Ok(IncomingMemory {
        id: text(record, &["id"]).filter(is_valid_id),
        title: text(record, &["title"]).filter(|title| !title.trim().is_empty()),
        kind: text(record, &["type", "memory_type", "memoryType"]).filter(|kind| !kind.trim().is_empty()),
        tags: read_tags(record)?,
        importance: read_importance(record)?,
        created: read_creation_time(record)?,
        properties: match (&path, properties) {
            (Some(_), Some(properties)) => properties.clone(),
            _ => properties_of_other_programs(record, properties),
        },
        frontmatter: text(record, &["frontmatter"]).filter(|_| path.is_some()),
        path,
        content,
    })
}

/// Returns the first of the named fields that is present, if it is a text.
fn text(record: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| record.get(*name)?.as_str()).map(str::to_owned)
}

/// Reads the tags: a list, or a text with commas or semicolons between the tags.
fn read_tags(record: &Value) -> Result<Vec<String>> {
    let tag = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let tags: Vec<String> = match record.get("tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(tags)) => tags.split([',', ';']).map(str::to_owned).collect(),
        Some(Value::Array(tags)) => tags.iter().filter_map(tag).collect(),
        Some(_) => return Err(Error::invalid("its `tags` are not a list")),
    };
    let tags = tags.iter().map(|tag| tag.trim().trim_start_matches('#').to_owned());
    Ok(tags.filter(|tag| !tag.is_empty()).collect())
}

/// Reads the importance and limits it to the range of importances.
fn read_importance(record: &Value) -> Result<Option<f64>> {
    let Some(value) = record.get("importance").filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_f64().filter(|number| number.is_finite());
    let number = number.ok_or_else(|| Error::invalid(format!("its importance {value} is not a number")))?;
    Ok(Some(number.clamp(MIN_IMPORTANCE, MAX_IMPORTANCE)))
}

/// Reads the time of creation: a date as text, or seconds or milliseconds since 1970.
fn read_creation_time(record: &Value) -> Result<Option<Timestamp>> {
    let wrong = |value: &Value| Error::invalid(format!("its time {value} is not a time"));
    let time = ["created_at", "createdAt", "timestamp"].iter().find_map(|name| record.get(*name));
    match time {
        None | Some(Value::Null) => Ok(None),
        Some(value @ Value::String(text)) => Timestamp::parse(text).map(Some).ok_or_else(|| wrong(value)),
        Some(value @ Value::Number(number)) => {
            // Seconds where they cannot be milliseconds of a time since 1973.
            let number = number.as_f64().unwrap_or(f64::NAN);
            let millis = if number < 1e11 { number * 1000.0 } else { number };
            let time = (0.0..LATEST).contains(&millis).then(|| Timestamp::from_millis(millis as i64));
            time.map(Some).ok_or_else(|| wrong(value))
        }
        Some(value) => Err(wrong(value)),
    }
}

/// Collects the properties of a memory that does not come from an export of ours: those of the object, its metadata,
/// and what it says of pinned, forgotten, archived and useful memories.
fn properties_of_other_programs(record: &Value, own: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut properties = own.cloned().unwrap_or_default();
    properties.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
    if own.is_none() {
        // The metadata of other programs stays together, in one property.
        let metadata = record.get("metadata");
        let metadata = metadata.filter(|value| value.as_object().is_some_and(|map| !map.is_empty()));
        properties.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata.clone())));
        let updated = text(record, &["updated_at", "updatedAt"]);
        let updated = updated.filter(|text| Timestamp::parse(text).is_some());
        properties.extend(updated.map(|updated| ("updated_at".to_owned(), Value::from(updated))));
    }
    for name in ["pinned", "forgotten"] {
        let is_set = match record.get(name) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => text == "true",
            _ => false,
        };
        if is_set && !properties.contains_key(name) {
            properties.insert(name.to_owned(), Value::Bool(true));
        }
    }
    if text(record, &["tier"]).is_some_and(|tier| tier.eq_ignore_ascii_case("archive")) {
        properties.insert("tier".to_owned(), Value::from("archive"));
    }
    let usefulness = record.get("usefulness").filter(|value| value.as_i64().is_some_and(|votes| votes != 0));
    if let Some(usefulness) = usefulness {
        properties.entry("usefulness".to_owned()).or_insert_with(|| usefulness.clone());
    }
    properties
}
