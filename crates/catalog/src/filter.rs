//! Filters that select the notes of a list or a search, and their SQL conditions.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::types::Value as Sql;
use sidenote_base::clock::Timestamp;
use sidenote_markdown::path::key;

use crate::rows::{CreationSource, FileId, Inactive, TimeSources};

/// The most tags that are looked up for each file, which is fastest where most files have them. More tags are one value, because
/// SQLite limits the depth of a condition.
const TAGS_LOOKED_UP: usize = 16;

/// The notes that are valid at an instant. A note that is in neither list is valid from its creation on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidAt {
    /// The instant.
    pub at: Timestamp,
    /// Notes that are valid.
    pub valid: Arc<Vec<FileId>>,
    /// Notes that are not valid.
    pub invalid: Arc<Vec<FileId>>,
}

/// The kinds of files that a filter selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kinds {
    /// Notes alone.
    #[default]
    Notes,
    /// Notes and canvases.
    NotesAndCanvases,
    /// All that is searched: notes, canvases, and attachments whose text was read.
    Searched,
}

impl Kinds {
    /// Returns the condition in SQL.
    fn condition(self) -> &'static str {
        match self {
            Self::Notes => "f.kind = 0",
            Self::NotesAndCanvases => "f.kind < 2",
            Self::Searched => "(f.kind < 2 OR f.hash IS NOT NULL)",
        }
    }
}

/// A filter that selects notes. A note must meet all conditions that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The folder that contains the note at any depth.
    pub folder: Option<String>,
    /// Tags that the note must have, each itself or a nested tag below it.
    pub tags: Vec<String>,
    /// The `type` property, ignoring case.
    pub note_type: Option<String>,
    /// The `category` property, ignoring case.
    pub category: Option<String>,
    /// The earliest time of creation.
    pub created_after: Option<Timestamp>,
    /// The time before which the note was created.
    pub created_before: Option<Timestamp>,
    /// The earliest time of the last change.
    pub updated_after: Option<Timestamp>,
    /// The time before which the note was last changed.
    pub updated_before: Option<Timestamp>,
    /// The instant at which the note must be valid ([`ValidityTable::valid_at`](sidenote_index::validity::ValidityTable::valid_at)).
    pub valid: Option<ValidAt>,
    /// The kinds of files that are selected.
    pub kinds: Kinds,
    /// The inactive states whose notes are not selected.
    pub hidden: Inactive,
}

impl Filter {
    /// Returns whether the filter selects every active note.
    pub fn is_unrestricted(&self) -> bool {
        let Self { kinds, hidden, .. } = *self;
        *self == Self { kinds, hidden, ..Self::default() }
    }

    /// The column of the time of creation, and the bit of its local form.
    const CREATED: (&str, i64) = ("f.created", TimeSources::CREATED_LOCAL);
    /// The column of the time of the last change, and the bit of its local form.
    const UPDATED: (&str, i64) = ("f.updated", TimeSources::UPDATED_LOCAL);

    /// Returns the condition in SQL, with the values of its parameters.
    pub(super) fn condition(&self) -> (String, Vec<Sql>) {
        let mut parts = vec!["NOT f.excluded".to_owned()];
        let mut values: Vec<Sql> = Vec::new();
        parts.push(self.kinds.condition().to_owned());
        if self.hidden != Inactive::default() {
            parts.push(format!("(f.put_away & {}) = 0", self.hidden.code()));
        }
        let mut add = |part: &str, value: Sql| {
            values.push(value);
            parts.push(part.replace('?', &format!("?{}", values.len())));
        };
        let folder = self.folder.as_deref().map(|folder| folder.trim_matches('/'));
        if let Some(folder) = folder.filter(|folder| !folder.is_empty()) {
            add("f.path > ? || '/' AND f.path < ? || '0'", Sql::Text(folder.to_owned()));
        }
        let tags: BTreeSet<String> = self.tags.iter().map(|tag| key(tag.trim_start_matches('#'))).collect();
        if tags.len() <= TAGS_LOOKED_UP {
            for tag in tags {
                add(
                    "EXISTS (SELECT 1 FROM tags t WHERE t.file = f.id AND (t.key = ? OR (t.key > ? || '/' AND t.key < ? || '0')))",
                    Sql::Text(tag),
                );
            }
        } else {
            add(
                "f.id IN (SELECT t.file FROM json_each(?) w
                    JOIN tags t ON t.key >= w.value AND t.key < w.value || '0' AND (t.key = w.value OR t.key > w.value || '/')
                    GROUP BY t.file HAVING count(DISTINCT w.value) = json_array_length(?))",
                Sql::Text(serde_json::json!(tags).to_string()),
            );
        }
        if let Some(note_type) = &self.note_type {
            add("lower(f.type) = lower(?)", Sql::Text(note_type.clone()));
        }
        if let Some(category) = &self.category {
            add("lower(f.category) = lower(?)", Sql::Text(category.clone()));
        }
        for (time, order, bound) in [
            (Self::CREATED, ">=", self.created_after),
            (Self::CREATED, "<", self.created_before),
            (Self::UPDATED, ">=", self.updated_after),
            (Self::UPDATED, "<", self.updated_before),
        ] {
            if let Some(bound) = bound {
                add(&compared(time, order, bound), Sql::Integer(bound.millis()));
            }
        }
        if self.created_after.is_some() {
            // A copied note can be older than its file.
            add(
                &format!("f.times & {} <> ?", TimeSources::SOURCE),
                Sql::Integer(CreationSource::Copy.code()),
            );
        }
        if let Some(ValidAt { at, valid, invalid }) = &self.valid {
            let (source, copy) = (TimeSources::SOURCE, CreationSource::Copy.code());
            let created = compared(Self::CREATED, "<=", *at).replace('?', &at.millis().to_string());
            let created = format!("{created} OR f.times & {source} = {copy}");
            let listed = |files: &[FileId]| Sql::Text(serde_json::json!(files).to_string());
            add(&format!("({created} OR f.id IN (SELECT value FROM json_each(?)))"), listed(valid));
            add("f.id NOT IN (SELECT value FROM json_each(?))", listed(invalid));
        }
        (parts.join(" AND "), values)
    }
}

/// Returns the comparison of a time with a bound, whose milliseconds are the parameter. A time without an offset is compared
/// with what a local clock shows.
fn compared((column, local): (&str, i64), order: &str, bound: Timestamp) -> String {
    let wall = bound.wall_millis();
    format!(
        "CASE WHEN f.times & {local} THEN {column} {order} {wall} ELSE ifnull({column}, f.mtime / 1000000) {order} ? END"
    )
}
