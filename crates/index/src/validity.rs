//! The validity table: the periods in which notes are valid and the notes that supersede them, held in memory for one
//! generation of the index. It holds the notes that have one of [`PROPERTIES`], and the notes that replace them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_bm25::Bm25Snapshot;
use sidenote_catalog::{CatalogReader, FileId, FileKind, FileRow, ValidAt};
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_markdown::frontmatter::link::parse_property;
use sidenote_markdown::path::key;
use sidenote_memory::validity::{ValidityPeriod, end_of};

/// The properties that say when a note is valid.
pub(crate) const PROPERTIES: [&str; 3] = ["superseded_by", "valid_from", "valid_until"];

/// A note of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DatedNote {
    period: ValidityPeriod,
    /// The note that supersedes it.
    replacement: Option<FileId>,
}

/// The validity table of one generation of the index.
#[derive(Debug, Clone, Default)]
pub struct ValidityTable {
    notes: HashMap<FileId, DatedNote>,
}

impl ValidityTable {
    /// Reads the table. It takes no time if no note has one of the properties.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn read(bm25: &Bm25Snapshot, catalog: &CatalogReader) -> Result<Self> {
        let dated = bm25.with_property(&PROPERTIES.map(str::to_owned))?;
        if dated.is_empty() {
            return Ok(Self::default());
        }
        let ids: Vec<FileId> = dated.iter().collect();
        let mut properties = catalog.properties().of(&ids)?;
        let dialects = Arc::new(catalog.links().dialects()?);
        let mut notes = HashMap::new();
        let mut replacements = Vec::new();
        for row in catalog.rows(&ids)? {
            let said = properties.remove(&row.id).unwrap_or_default();
            let texts = texts_of(&said, "superseded_by");
            let mut replacement = None;
            for text in texts.iter().filter(|_| row.kind == FileKind::Note) {
                let names = FileNames::default().with_dialects(Arc::clone(&dialects));
                replacement = replacement.or(note_named(catalog, names, text, &row)?);
            }
            replacements.extend(replacement);
            let first = |name| texts_of(&said, name).into_iter().next();
            let period = ValidityPeriod {
                created: row.created,
                from: first("valid_from").and_then(|text| Timestamp::parse(&text)),
                until: first("valid_until").and_then(|text| end_of(&text)),
            };
            notes.insert(row.id, DatedNote { period, replacement });
        }
        replacements.retain(|file| !notes.contains_key(file));
        for row in catalog.rows(&replacements)? {
            let period = ValidityPeriod { created: row.created, from: None, until: None };
            notes.insert(row.id, DatedNote { period, replacement: None });
        }
        let mut table = Self { notes };
        table.drop_cycles();
        Ok(table)
    }

    /// Notes that supersede each other in a circle do not supersede anything.
    fn drop_cycles(&mut self) {
        let mut checked: HashSet<FileId> = HashSet::new();
        for start in self.notes.keys().copied().collect::<Vec<_>>() {
            let mut walk: Vec<FileId> = Vec::new();
            let mut on_walk: HashSet<FileId> = HashSet::new();
            let mut next = Some(start);
            while let Some(file) = next.filter(|file| !checked.contains(file)) {
                if !on_walk.insert(file) {
                    let circle = walk.iter().skip_while(|member| **member != file);
                    for member in circle {
                        self.notes.entry(*member).and_modify(|note| note.replacement = None);
                    }
                    break;
                }
                walk.push(file);
                next = self.replacement_of(file);
            }
            checked.extend(walk);
        }
    }

    fn replacement_of(&self, file: FileId) -> Option<FileId> {
        self.notes.get(&file)?.replacement
    }

    /// Returns whether no note has one of the properties.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Lists the notes that supersede a note at `now`, the oldest first. A note whose `valid_from` lies ahead does not
    /// count yet.
    pub fn replacements(&self, file: FileId, now: Timestamp) -> Vec<FileId> {
        let chain = std::iter::successors(self.replacement_of(file), |file| self.replacement_of(*file));
        chain.filter(|file| self.notes.get(file).is_some_and(|note| note.period.replaces_at(now))).collect()
    }

    /// Returns the newest note that supersedes a note at `now`.
    pub fn newest_replacement(&self, file: FileId, now: Timestamp) -> Option<FileId> {
        self.replacements(file, now).pop()
    }

    /// Returns the `valid_from` of a note if it lies ahead, and the end of its validity if that has passed.
    pub fn outside_period(&self, file: FileId, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let Some(DatedNote { period, .. }) = self.notes.get(&file) else { return (None, None) };
        (period.from.filter(|from| *from > now), period.until.filter(|until| *until <= now))
    }

    /// Returns which notes are valid at an instant: those that have begun and not ended, unless a note that has begun
    /// supersedes them. A note begins with its `valid_from`, or else with its creation.
    pub fn valid_at(&self, at: Timestamp) -> ValidAt {
        let is_superseded = |file| {
            let mut chain =
                std::iter::successors(self.replacement_of(file), |file| self.replacement_of(*file));
            chain.any(|file| self.notes.get(&file).is_some_and(|newer| newer.period.start() <= at))
        };
        let (mut valid, mut invalid) = (Vec::new(), Vec::new());
        for (&file, note) in &self.notes {
            let holds = note.period.contains(at) && !is_superseded(file);
            if holds { &mut valid } else { &mut invalid }.push(file);
        }
        valid.sort_unstable();
        invalid.sort_unstable();
        ValidAt { at, valid: Arc::new(valid), invalid: Arc::new(invalid) }
    }
}

/// Returns the strings of a property, whose name ignores case. `[[Note]]` without quotes is a list in a list.
fn texts_of(properties: &Map<String, Value>, name: &str) -> Vec<String> {
    fn add(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Number(number) => texts.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| add(item, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    properties.iter().filter(|(own, _)| key(own) == name).for_each(|(_, value)| add(value, &mut texts));
    texts
}

/// Returns whether a note counts: one that is excluded or forgotten replaces nothing.
fn is_note(row: &FileRow) -> bool {
    row.kind == FileKind::Note && !row.excluded && !row.inactive.forgotten
}

/// Finds the note that a property of another note names: by a link, or by its file name, title, alias or id if that is
/// the name of one note only.
fn note_named(
    catalog: &CatalogReader,
    mut names: FileNames,
    text: &str,
    source: &FileRow,
) -> Result<Option<FileId>> {
    let link = parse_property(text);
    let linkpath = link.as_ref().map_or_else(|| text.trim(), |link| link.path.as_str());
    if linkpath.is_empty() {
        return Ok(None);
    }
    catalog.paths().named(&name_keys(linkpath))?.iter().for_each(|(path, _)| names.insert(path));
    let found = match &link {
        Some(link) => names.follow(link, &source.path),
        None => names.resolve(linkpath, &source.path),
    };
    let row = match found {
        Some(found) => catalog.row_at(found.path.as_str())?,
        None => {
            let mut rows = catalog.names().best_matches(linkpath)?;
            rows.pop().filter(|_| rows.is_empty())
        }
    };
    Ok(row.filter(|row| is_note(row) && row.id != source.id).map(|row| row.id))
}
