//! Owns filters: which notes a list or a search is about, as a condition in SQL.

use rusqlite::types::Value as Sql;

use crate::clock::Timestamp;
use crate::index::catalog::rows::PutAway;
use crate::text::path::key;

/// Which notes a list or a search is about; conditions add up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Below this folder.
    pub folder: Option<String>,
    /// With each of these tags or one below it.
    pub tags: Vec<String>,
    /// With this `type`.
    pub note_type: Option<String>,
    /// With this `category`.
    pub category: Option<String>,
    /// Made at or after.
    pub created_after: Option<Timestamp>,
    /// Made before.
    pub created_before: Option<Timestamp>,
    /// Changed at or after.
    pub updated_after: Option<Timestamp>,
    /// Changed before.
    pub updated_before: Option<Timestamp>,
    /// Canvases as well as notes.
    pub with_canvases: bool,
    /// What is put away so does not pass.
    pub hidden: PutAway,
}

impl Filter {
    /// Says whether it lets every note pass that is not put away.
    pub fn is_open(&self) -> bool {
        let Self { with_canvases, hidden, .. } = *self;
        *self == Self { with_canvases, hidden, ..Self::default() }
    }

    pub(super) fn condition(&self) -> (String, Vec<Sql>) {
        let mut parts = vec!["NOT f.excluded".to_owned()];
        let mut values: Vec<Sql> = Vec::new();
        parts.push(if self.with_canvases { "f.kind < 2" } else { "f.kind = 0" }.to_owned());
        if self.hidden != PutAway::default() {
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
        for tag in &self.tags {
            let tag = key(tag.trim_start_matches('#'));
            add(
                "EXISTS (SELECT 1 FROM tags t WHERE t.file = f.id AND (t.key = ? OR (t.key > ? || '/' AND t.key < ? || '0')))",
                Sql::Text(tag),
            );
        }
        if let Some(note_type) = &self.note_type {
            add("lower(f.type) = lower(?)", Sql::Text(note_type.clone()));
        }
        if let Some(category) = &self.category {
            add("lower(f.category) = lower(?)", Sql::Text(category.clone()));
        }
        for (part, bound) in [
            ("ifnull(f.created, f.mtime / 1000000) >= ?", self.created_after),
            ("ifnull(f.created, f.mtime / 1000000) < ?", self.created_before),
            ("ifnull(f.updated, f.mtime / 1000000) >= ?", self.updated_after),
            ("ifnull(f.updated, f.mtime / 1000000) < ?", self.updated_before),
        ] {
            if let Some(bound) = bound {
                add(part, Sql::Integer(bound.millis()));
            }
        }
        (parts.join(" AND "), values)
    }
}
