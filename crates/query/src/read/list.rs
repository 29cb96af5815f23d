//! Lists notes, tags and properties.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::wording::Wording;
use sidenote_catalog::{FileId, FileRow, Filter};
use sidenote_markdown::path::key;
use sidenote_markdown::tag::tag_name;
use sidenote_open_vault::lookup::Lookup;

use crate::memory_weights::MemoryWeights;
use crate::read::Reads;
use crate::validity::valid_as_of;

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// By path.
    #[default]
    Path,
    /// By title, ignoring case.
    Title,
    /// By creation time, the newest first.
    Created,
    /// By modification time, the newest first.
    Updated,
}

/// The selection of a list of notes.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// The filter of notes.
    pub filter: Filter,
    /// The instant at which a note must be valid.
    pub as_of: Option<Timestamp>,
    /// A property that a note must have.
    pub property: Option<PropertyCondition>,
    /// The order.
    pub sort: SortBy,
    /// The number of notes to skip.
    pub skip: usize,
    /// The largest number of notes.
    pub limit: Option<usize>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The notes of this page, in order.
    pub notes: Vec<NoteItem>,
    /// The number of notes in the whole list.
    pub total: usize,
}

/// A note in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteItem {
    /// Vault path.
    pub path: String,
    /// The note's id.
    pub id: String,
    /// The note's title.
    pub title: String,
    /// When the note was created.
    pub created: Timestamp,
    /// When the note was last changed.
    pub updated: Timestamp,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its `type`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub note_type: Option<String>,
    /// Its `category`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// A note with some of its properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldsItem {
    /// Vault path.
    pub path: String,
    /// The note's title.
    pub title: String,
    /// The requested properties that the note has, under the requested names.
    pub fields: Map<String, Value>,
}

/// A tag with its number of notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TagItem {
    /// The tag without `#`.
    pub tag: String,
    /// The number of notes with exactly this tag.
    pub notes: usize,
}

/// The condition that a note has a property, or that it has one value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyCondition {
    /// The name of the property.
    pub name: String,
    /// The value, if a certain one is required.
    pub value: Option<String>,
    /// The name with its colon, and the value behind `=`: what the condition may mean instead.
    whole: Option<(String, Option<String>)>,
}

impl PropertyCondition {
    /// Parses `NAME`, `NAME=VALUE` or `NAME:VALUE`, with or without spaces, quotes around the value and the brackets of a query.
    ///
    /// # Errors
    /// `Invalid` for an empty name, and for a comparison such as `rating>4`, which only a query can express.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        // A value can have either sign, so that the first one ends the name.
        let (name, value) = match bare.split_once(['=', ':']) {
            Some((name, value)) => (name, Some(value.trim_start_matches('=').trim())),
            None => (bare, None),
        };
        let quoted = |value: &str, quote: char| -> Option<String> {
            Some(value.strip_prefix(quote)?.strip_suffix(quote)?.to_owned())
        };
        let unquoted = |value: &str| {
            quoted(value, '"').or_else(|| quoted(value, '\'')).unwrap_or_else(|| value.to_owned())
        };
        let value = value.map(unquoted);
        let name = name.trim();
        let compared = value.as_deref().is_some_and(|value| value.starts_with(['<', '>']));
        if !name.is_empty() && !name.contains(['<', '>', '!']) && !compared {
            // A name can have a colon, too.
            let whole = match bare.split_once('=') {
                Some((name, value)) => (name.trim(), Some(unquoted(value.trim_start_matches('=').trim()))),
                None => (bare, None),
            };
            let whole = Some(whole).filter(|(whole, _)| *whole != name);
            let whole = whole.map(|(name, value)| (name.to_owned(), value));
            return Ok(Self { name: name.to_owned(), value, whole });
        }
        let name = name.split(['<', '>', '!']).next().unwrap_or_default().trim();
        let name = if name.is_empty() { "rating" } else { name };
        Err(Error::invalid(format!("the property condition {text:?} is neither KEY nor KEY=VALUE"))
            .with_hint(
                Wording::new(format!("to compare values, use a query: sidenote search '[{name}:>4]'"), "")
                    .with_tool(
                        "search_notes",
                        format!("to compare values, give search_notes the query [{name}:>4]"),
                    ),
            ))
    }

    /// Returns whether properties have the name and, if given, the value. A list has the value of each of its items.
    pub(super) fn is_met_by(&self, properties: &Map<String, Value>) -> bool {
        let is_met = |wanted: &str, value: &Option<String>| {
            let wanted = key(wanted);
            properties.iter().any(|(name, held)| {
                key(name) == wanted && value.as_deref().is_none_or(|value| holds(held, value))
            })
        };
        is_met(&self.name, &self.value)
            || self.whole.as_ref().is_some_and(|(name, value)| is_met(name, value))
    }
}

/// A property with its type and number of notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PropertyItem {
    /// The name as first met.
    pub property: String,
    /// The type that the vault declares, or that of most values.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of notes.
    pub notes: usize,
}

impl Reads<'_> {
    /// Lists notes, a page at a time.
    #[tracing::instrument(skip_all)]
    pub fn list(&self, request: &ListRequest) -> Result<Page> {
        let filter = Lookup::of(self.core).with_canonical_folder(&request.filter)?;
        let filter = valid_as_of(self.core, filter, request.as_of)?;
        let rows = self.selected(&filter, request)?;
        let total = rows.len();
        let catalog = self.core.index.catalog();
        let page = rows.into_iter().skip(request.skip).take(request.limit.unwrap_or(usize::MAX));
        let notes = page.map(|row| Ok(note_item(catalog.tags_of(row.id)?, row))).collect::<Result<_>>()?;
        Ok(Page { notes, total })
    }

    /// Selects the notes of a list, in order.
    fn selected(&self, filter: &Filter, request: &ListRequest) -> Result<Vec<FileRow>> {
        let catalog = self.core.index.catalog();
        let mut rows = catalog.select(filter)?;
        if let Some(property) = &request.property {
            let mut holding: HashSet<FileId> = HashSet::new();
            catalog.properties().each(|file, map| {
                if property.is_met_by(&map) {
                    holding.insert(file);
                }
            })?;
            rows.retain(|row| holding.contains(&row.id));
        }
        drop(catalog);
        if matches!(request.sort, SortBy::Created | SortBy::Updated) {
            MemoryWeights::of(self.core).sort_by_creation(&mut rows, true, |row| row)?;
        }
        match request.sort {
            SortBy::Path | SortBy::Created => {}
            SortBy::Title => rows.sort_by_cached_key(|row| (row.title.to_lowercase(), row.path.clone())),
            SortBy::Updated => rows.sort_by_key(|row| std::cmp::Reverse(row.updated)),
        }
        Ok(rows)
    }

    /// Lists notes with requested properties, a page at a time, and counts all of them.
    ///
    /// Names of properties ignore case. `tags`, `created` and `updated` are returned even if a note has no such
    /// property.
    #[tracing::instrument(skip_all)]
    pub fn fields(&self, request: &ListRequest, fields: &[String]) -> Result<(Vec<FieldsItem>, usize)> {
        let filter = Lookup::of(self.core).with_canonical_folder(&request.filter)?;
        let filter = valid_as_of(self.core, filter, request.as_of)?;
        let rows = self.selected(&filter, request)?;
        let catalog = self.core.index.catalog();
        let total = rows.len();
        let page: Vec<FileRow> =
            rows.into_iter().skip(request.skip).take(request.limit.unwrap_or(usize::MAX)).collect();
        let ids: Vec<FileId> = page.iter().map(|row| row.id).collect();
        let mut properties = catalog.properties().of(&ids)?;
        let mut items = Vec::with_capacity(page.len());
        for row in page {
            let held = properties.remove(&row.id).unwrap_or_default();
            let note = note_item(catalog.tags_of(row.id)?, row);
            let mut values = Map::new();
            for field in fields {
                let wanted = key(field);
                let own = held.iter().find(|(name, _)| key(name) == wanted).map(|(_, value)| value.clone());
                let value = own.or_else(|| match wanted.as_str() {
                    "tags" if !note.tags.is_empty() => Some(Value::from(note.tags.clone())),
                    "created" => Some(Value::from(note.created.local_rfc3339())),
                    "updated" => Some(Value::from(note.updated.local_rfc3339())),
                    _ => None,
                });
                values.extend(value.map(|value| (field.clone(), value)));
            }
            items.push(FieldsItem { path: note.path, title: note.title, fields: values });
        }
        Ok((items, total))
    }

    /// Chooses notes at random. The same seed chooses the same notes.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn random(&self, filter: &Filter, limit: usize, seed: Option<u64>) -> Result<Vec<NoteItem>> {
        let seed =
            seed.map_or_else(|| *uuid::Uuid::new_v4().as_bytes(), |seed| u128::from(seed).to_le_bytes());
        let filter = Lookup::of(self.core).with_canonical_folder(filter)?;
        let catalog = self.core.index.catalog();
        let mut rows = catalog.select(&filter)?;
        // The hashes of a seed and the paths give a random order in which every order is equally likely.
        rows.sort_by_cached_key(|row| {
            *blake3::Hasher::new().update(&seed).update(row.path.as_str().as_bytes()).finalize().as_bytes()
        });
        rows.truncate(limit);
        rows.into_iter().map(|row| Ok(note_item(catalog.tags_of(row.id)?, row))).collect()
    }

    /// Lists all tags with their number of notes, the most frequent first. Values of `tags` that are no tags to Obsidian are
    /// left out.
    #[tracing::instrument(skip_all)]
    pub fn tags(&self) -> Result<Vec<TagItem>> {
        let mut tags = self.core.index.catalog().tags()?;
        tags.retain(|(tag, _)| tag_name(tag) == Some(tag.as_str()));
        Ok(tags.into_iter().map(|(tag, notes)| TagItem { tag, notes }).collect())
    }

    /// Lists all properties with their types and numbers of notes, the most frequent first.
    #[tracing::instrument(skip_all)]
    pub fn properties(&self) -> Result<Vec<PropertyItem>> {
        // By key: the spellings of the name and the types of its values, each with its number of notes.
        type Counts<T> = BTreeMap<T, usize>;
        let mut found: BTreeMap<String, (Counts<String>, Counts<&'static str>)> = BTreeMap::new();
        self.core.index.catalog().properties().each(|_, map| {
            for (name, value) in map {
                let (names, kinds) = found.entry(key(&name)).or_default();
                let kind = sidenote_markdown::frontmatter::kind_of(&name, &value, None).name();
                *kinds.entry(kind).or_default() += 1;
                *names.entry(name).or_default() += 1;
            }
        })?;
        let settings = self.core.vault.settings();
        let mut items: Vec<PropertyItem> = found
            .into_values()
            .map(|(names, kinds)| {
                let notes = names.values().sum();
                // Of equally frequent spellings, the first in alphabetical order is used.
                let property = names.into_iter().rev().max_by_key(|(_, count)| *count).unwrap_or_default().0;
                let usual = kinds.iter().max_by_key(|(_, count)| **count).map_or("text", |(kind, _)| kind);
                let kind =
                    settings.declared_type(&property).map_or(usual, |declared| declared.name()).to_owned();
                PropertyItem { property, kind, notes }
            })
            .collect();
        items.sort_by(|a, b| b.notes.cmp(&a.notes).then_with(|| key(&a.property).cmp(&key(&b.property))));
        Ok(items)
    }
}

pub(super) fn note_item(tags: Vec<String>, row: FileRow) -> NoteItem {
    NoteItem {
        path: row.path.as_str().to_owned(),
        id: row.note_id,
        title: row.title,
        created: row.created,
        updated: row.updated,
        tags,
        note_type: row.note_type,
        category: row.category,
    }
}

fn holds(held: &Value, value: &str) -> bool {
    match held {
        Value::Array(items) => items.iter().any(|item| holds(item, value)),
        Value::String(text) => text.to_lowercase() == value.to_lowercase(),
        Value::Bool(flag) => value.eq_ignore_ascii_case(if *flag { "true" } else { "false" }),
        Value::Number(number) => number.to_string() == value,
        Value::Null => value.eq_ignore_ascii_case("null"),
        Value::Object(_) => false,
    }
}
