//! Reads a memory from a record of an import (docs/spec/memory.md, Imports).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::path::NotePath;
use sidenote_memories::note_from_memory::{IncomingMemory, LONGEST_ID};
use sidenote_memory::state::{MAX_IMPORTANCE, MIN_IMPORTANCE, importance_of_share};

/// The end of the year 9999, in milliseconds.
const LATEST: f64 = 253_402_300_800_000.0;

/// The fewest digits of seconds since 1970 as a text: a text with fewer is a date that was written in another form.
const LEAST_DIGITS: usize = 9;

const CONTENT: &[&str] = &["content", "text"];
const KIND: &[&str] = &["type", "memory_type", "memoryType"];
const CREATED: &[&str] = &["created_at", "createdAt", "timestamp"];
const UPDATED: &[&str] = &["updated_at", "updatedAt"];
const PINNED: &[&str] = &["pinned"];
const FORGOTTEN: &[&str] = &["forgotten", "do_not_inject", "doNotInject"];
const SUPERSEDED: &[&str] = &["superseded_by", "supersededBy"];
const IMPORTANCE: &[&str] = &["importance"];
const USEFULNESS: &[&str] = &["usefulness"];
const METADATA: &[&str] = &["metadata"];
const TAGS: &[&str] = &["tags"];

/// Texts that become properties: the names in records, and that of the property, which is the first.
const PLAIN: &[&[&str]] =
    &[&["source"], &["category"], &["session", "session_id", "sessionId"], &["project"], &["summary"]];

/// More names that are read. Of `tier`, archive alone is read, since the others are computed.
const OTHER: &[&str] = &["id", "title", "path", "properties", "frontmatter", "tier"];

/// What `superseded_by` says of a memory that was deleted, in servers that keep it.
const DELETED: &str = "DELETED";

/// The properties of an import that have a field of their own in [`IncomingMemory`].
const OWN_FIELDS: [&str; 6] = ["id", "title", "tags", "type", "created_at", "importance"];

/// A memory of an import.
#[derive(Debug)]
pub(super) struct ImportedMemory {
    pub(super) memory: IncomingMemory,
    /// The importance that the other program had for it at last, in our scale.
    pub(super) importance: Option<f64>,
}

/// Reads the memories of an import, and collects what is left out.
#[derive(Debug, Default)]
pub(super) struct MemoryReader {
    /// Whether the importances go from 0 to 1.
    is_share: bool,
    /// The keys that are not read, with the number of memories that have a value of each.
    pub(super) left_out: BTreeMap<String, usize>,
    /// The memories whose importance is beyond the scale.
    pub(super) notices: Vec<String>,
}

impl MemoryReader {
    /// Creates the reader of these records. Their importances go from 0 to 1 if one is less than 1 and none is more, or if
    /// they have a key of a server with that scale.
    pub(super) fn of(records: &[Value]) -> Self {
        let importances: Vec<f64> =
            records.iter().filter_map(|record| number(first(record, IMPORTANCE)?)).collect();
        let is_share = records.iter().any(|record| record.get("do_not_inject").is_some())
            || importances.iter().any(|number| *number < MIN_IMPORTANCE);
        let is_share = is_share && importances.iter().all(|number| *number <= 1.0);
        Self { is_share, ..Self::default() }
    }

    /// Reads a memory. `number` is its place in the import, from 1.
    ///
    /// # Errors
    /// `Invalid` for an object without text, and for a value of the wrong type.
    pub(super) fn read(&mut self, record: &Value, number: usize) -> Result<ImportedMemory> {
        let content = text(record, CONTENT).ok_or_else(|| Error::invalid("it has no text `content`"))?;
        let properties = first(record, &["properties"]).and_then(Value::as_object);
        // Only an export of ours has both; the note is restored as it was.
        let path = text(record, &["path"]).filter(|_| properties.is_some());
        let path = path.and_then(|path| NotePath::parse(&path).ok()).filter(NotePath::is_note);
        let is_valid_id = |id: &String| !id.trim().is_empty() && id.len() <= LONGEST_ID && !id.contains('\n');
        let importance = self.importance(record, number)?;
        self.note_left_out(record);
        let memory = IncomingMemory {
            id: text(record, &["id"]).filter(is_valid_id),
            title: text(record, &["title"]).filter(|title| !title.trim().is_empty()),
            kind: text(record, KIND).filter(|kind| !kind.trim().is_empty()),
            tags: tags(record)?,
            importance,
            created: time(record, CREATED)?,
            properties: match (&path, properties) {
                (Some(_), Some(properties)) => properties.clone(),
                _ => properties_of_other_programs(record, properties)?,
            },
            frontmatter: text(record, &["frontmatter"]).filter(|_| path.is_some()),
            path,
            content,
        };
        Ok(ImportedMemory { memory, importance })
    }

    /// Reads the importance in our scale.
    fn importance(&mut self, record: &Value, number: usize) -> Result<Option<f64>> {
        let Some(value) = first(record, IMPORTANCE) else { return Ok(None) };
        let given = self::number(value)
            .ok_or_else(|| Error::invalid(format!("its importance {value} is not a number")))?;
        if self.is_share {
            return Ok(Some(importance_of_share(given.max(0.0))));
        }
        let within = given.clamp(MIN_IMPORTANCE, MAX_IMPORTANCE);
        if (within - given).abs() > f64::EPSILON {
            self.notices.push(format!("the importance {given} of memory {number} becomes {within}"));
        }
        Ok(Some(within))
    }

    /// Counts the keys of a record that have a value and are not read.
    fn note_left_out(&mut self, record: &Value) {
        let read = [
            CONTENT, KIND, CREATED, UPDATED, PINNED, FORGOTTEN, SUPERSEDED, IMPORTANCE, USEFULNESS, METADATA,
            TAGS, OTHER,
        ];
        let is_read = |name: &str| read.iter().chain(PLAIN).any(|names| names.contains(&name));
        let is_empty = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => matches!(text.as_str(), "" | "[]" | "{}" | "0" | "false"),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Bool(true) => false,
        };
        for (name, value) in record.as_object().into_iter().flatten() {
            if !is_read(name) && !is_empty(value) {
                *self.left_out.entry(name.clone()).or_default() += 1;
            }
        }
    }
}

/// Returns the value of the first of these keys that has one.
fn first<'a>(record: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().filter_map(|name| record.get(*name)).find(|value| !value.is_null())
}

/// Returns the value of the first of these keys that has one, if it is a text.
fn text(record: &Value, names: &[&str]) -> Option<String> {
    first(record, names)?.as_str().map(str::to_owned)
}

/// Returns a number, also one that is written as a text.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    number.filter(|number: &f64| number.is_finite())
}

/// Reads the tags: a list, a list in the form of JSON, or a text with commas or semicolons between the tags.
fn tags(record: &Value) -> Result<Vec<String>> {
    let tag = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let of_list = |list: &[Value]| list.iter().filter_map(tag).collect();
    let tags: Vec<String> = match first(record, TAGS) {
        None => Vec::new(),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => of_list(&list),
            _ => text.split([',', ';']).map(str::to_owned).collect(),
        },
        Some(Value::Array(list)) => of_list(list),
        Some(_) => return Err(Error::invalid("its `tags` are not a list")),
    };
    let tags = tags.iter().map(|tag| tag.trim().trim_start_matches('#').to_owned());
    Ok(tags.filter(|tag| !tag.is_empty()).collect())
}

/// Reads a time: a date as text, or seconds or milliseconds since 1970 as a number or text.
fn time(record: &Value, names: &[&str]) -> Result<Option<Timestamp>> {
    let Some(value) = first(record, names) else { return Ok(None) };
    let wrong = || Error::invalid(format!("its time {value} is not a time"));
    if let Some(time) = value.as_str().and_then(Timestamp::parse) {
        return Ok(Some(time));
    }
    let is_date =
        value.as_str().is_some_and(|text| text.bytes().take_while(u8::is_ascii_digit).count() < LEAST_DIGITS);
    let number = number(value).filter(|_| !is_date).ok_or_else(wrong)?;
    // Seconds where they cannot be milliseconds of a time since 1973.
    let millis = if number < 1e11 { number * 1000.0 } else { number };
    let time = (0.0..LATEST).contains(&millis).then(|| Timestamp::from_millis(millis as i64));
    time.map(Some).ok_or_else(wrong)
}

/// Reads a flag: a truth, a number or either as a text. Any of the keys sets it.
fn flag(record: &Value, names: &[&str]) -> Result<bool> {
    let mut is_set = false;
    for name in names {
        let Some(value) = first(record, &[name]) else { continue };
        is_set |= match value {
            Value::Bool(flag) => *flag,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) if matches!(text.trim().to_ascii_lowercase().as_str(), "true" | "1") => true,
            Value::String(text)
                if matches!(text.trim().to_ascii_lowercase().as_str(), "" | "false" | "0") =>
            {
                false
            }
            _ => return Err(Error::invalid(format!("its `{name}` {value} is neither true nor false"))),
        };
    }
    Ok(is_set)
}

/// Reads the metadata, which is kept in one property: an object, or one as JSON text.
fn metadata(record: &Value) -> Option<Value> {
    let value = first(record, METADATA)?;
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    };
    Some(parsed.unwrap_or_else(|| value.clone())).filter(|value| !is_empty(value))
}

/// Collects the properties of a memory that does not come from an export of ours: those of the object, its metadata,
/// and what it says of pinned, forgotten, superseded, archived and useful memories.
fn properties_of_other_programs(
    record: &Value,
    own: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>> {
    let mut properties = own.cloned().unwrap_or_default();
    properties.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
    let is_pinned = flag(record, PINNED)?;
    let superseded = text(record, SUPERSEDED).filter(|other| !other.trim().is_empty());
    let is_deleted = superseded.as_deref() == Some(DELETED);
    let is_forgotten = flag(record, FORGOTTEN)? || is_deleted;
    let is_archived = text(record, &["tier"]).is_some_and(|tier| tier.eq_ignore_ascii_case("archive"));
    let updated = time(record, UPDATED)?;
    let votes = first(record, USEFULNESS).map(|value| {
        number(value).ok_or_else(|| Error::invalid(format!("its usefulness {value} is not a number")))
    });
    // Votes are whole; a server that counts them in floating point writes 2.0.
    let votes = votes.transpose()?.map(|votes| votes.round() as i64).filter(|votes| *votes != 0);
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|_| !properties.contains_key(name)) {
            properties.insert(name.to_owned(), value);
        }
    };
    if own.is_none() {
        add("metadata", metadata(record));
        add("updated_at", updated.map(|updated| Value::from(updated.exact_rfc3339())));
        for names in PLAIN {
            let value = text(record, names).filter(|text| !text.trim().is_empty());
            add(names.first().copied().unwrap_or_default(), value.map(Value::from));
        }
    }
    add("pinned", is_pinned.then_some(Value::Bool(true)));
    add("forgotten", is_forgotten.then_some(Value::Bool(true)));
    add("superseded_by", superseded.filter(|_| !is_deleted).map(Value::from));
    add("tier", is_archived.then(|| Value::from("archive")));
    add("usefulness", votes.map(Value::from));
    Ok(properties)
}
