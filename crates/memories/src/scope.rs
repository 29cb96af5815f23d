//! Limits what the toolsets of other memory servers see, and finds memories by their ids.

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{FileRow, Filter, path_id};
use sidenote_change::naming::slug;
use sidenote_config::{Layout, ToolsetScope};
use sidenote_markdown::path::key;
use sidenote_open_vault::lookup::Lookup;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::Recalls;

impl Recalls<'_> {
    /// Restricts a filter to the notes that the toolsets of other servers see.
    pub fn scoped(&self, mut filter: Filter) -> Filter {
        let folder = self.core.config.memory.folder.trim_matches('/');
        // In the layout `memories` the vault is the folder of memories.
        let is_narrow = self.core.config.memory.scope == ToolsetScope::Memories
            && self.core.config.vault.layout != Layout::Memories
            && !folder.is_empty();
        if is_narrow && filter.folder.is_none() {
            filter.folder = Some(folder.to_owned());
        }
        filter
    }

    /// Returns whether the toolsets of other servers see a note.
    pub(super) fn is_in_scope(&self, row: &FileRow) -> bool {
        let Some(folder) = self.scoped(Filter::default()).folder else { return true };
        row.path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Finds the memory with an id. Other names of a note are not considered.
    ///
    /// # Errors
    /// `Exists` if several notes have the id.
    pub fn memory_by_id(&self, id: &str) -> Result<Option<Memory>> {
        let mut rows = Lookup::of(self.core).rows_with_id(id.trim())?;
        rows.retain(|row| self.is_in_scope(row));
        if rows.len() > 1 {
            let paths: Vec<&str> = rows.iter().take(8).map(|row| row.path.as_str()).collect();
            return Err(Error::new(ErrorKind::Exists, format!("{} notes have the id {id}", rows.len()))
                .with_hint(format!("change the id in all but one of {}", paths.join(", "))));
        }
        rows.iter().for_each(|row| Lookup::of(self.core).remember_resolved(row));
        Ok(MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?.pop())
    }

    /// Finds the memory with a UUID, as in [`crate::MemoryText::uuid`].
    ///
    /// # Errors
    /// `Exists` if several notes have the id.
    pub fn memory_by_uuid(&self, uuid: &str) -> Result<Option<Memory>> {
        if let Some(memory) = self.memory_by_id(uuid)? {
            return Ok(Some(memory));
        }
        let wanted = uuid.to_ascii_lowercase();
        let row = self.core.index.catalog().names().with_path_id(&wanted)?;
        let rows = Lookup::of(self.core)
            .with_unindexed(row.into_iter().collect(), |source| path_id(&source.path) == wanted)?;
        // A note with a UUID in its frontmatter has no other one.
        let is_meant = |row: &FileRow| self.is_in_scope(row) && !is_uuid(&row.note_id);
        let rows: Vec<FileRow> = rows.into_iter().filter(is_meant).collect();
        rows.iter().for_each(|row| Lookup::of(self.core).remember_resolved(row));
        Ok(MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?.pop())
    }

    /// Finds the memories with an id, a title or the slug of a title, the newest first.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn memories_by_name(&self, name: &str) -> Result<Vec<Memory>> {
        let name = name.trim();
        if let Some(memory) = self.memory_by_id(name)? {
            return Ok(vec![memory]);
        }
        let rows = self.core.index.catalog().select(&self.scoped(Filter::default()))?;
        let mut rows = Lookup::of(self.core).with_unindexed(rows, |_| true)?;
        rows.retain(|row| row.path.is_note() && !row.excluded && self.is_in_scope(row));
        let wanted = key(name);
        let slugged = slug(name).ok();
        let is_slug = |row: &FileRow| {
            let is = |text: &str| slug(text).is_ok_and(|slug| Some(slug) == slugged);
            let with_category = row.category.as_ref().map(|category| format!("{category} {}", row.title));
            is(&row.title)
                || is(row.path.stem())
                || with_category.is_some_and(|text| is(&text))
                || slug_in_name(row).is_some_and(|part| Some(part) == slugged)
        };
        let ways: [&dyn Fn(&FileRow) -> bool; 3] =
            [&|row| key(&row.title) == wanted, &|row| key(row.path.stem()) == wanted, &is_slug];
        let mut found: Vec<FileRow> = Vec::new();
        for way in ways {
            if found.is_empty() {
                found = rows.iter().filter(|row| way(row)).cloned().collect();
            }
        }
        if found.is_empty() {
            // The name may also be an alias or a path.
            let is_seen = |row: &FileRow| row.path.is_note() && !row.excluded && self.is_in_scope(row);
            found.extend(Lookup::of(self.core).find(name).ok().filter(is_seen));
        }
        MemoryWeights::of(self.core).sort_by_creation(&mut found, true, |row| row)?;
        MemoryWeights::of(self.core).weigh(found, self.core.clock.now())
    }
}

/// Returns the slug in a file name of the form `{category}-{slug}-{id}` or `{category}|{slug}|{id}`, which stays when the title
/// in the frontmatter changes.
fn slug_in_name(row: &FileRow) -> Option<String> {
    let stem = row.path.stem();
    if let [_, part, id] = stem.split('|').collect::<Vec<_>>().as_slice() {
        return is_uuid(id).then(|| (*part).to_owned());
    }
    let named = slug(stem.strip_suffix(row.note_id.as_str())?).ok()?;
    let category = row.category.as_deref().and_then(|category| slug(category).ok());
    let without =
        category.and_then(|category| named.strip_prefix(&format!("{category}-")).map(str::to_owned));
    Some(without.unwrap_or(named))
}

pub(super) fn is_uuid(id: &str) -> bool {
    id.len() == 36 && uuid::Uuid::try_parse(id).is_ok()
}
