//! What facets and tiers need of each note, held in memory for one generation of the index: a vault of 50,000 notes is
//! counted in milliseconds.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use crate::core::Core;
use crate::memory_weights::{MemoryWeights, own_id, said};
use sidenote_foundation::clock::Timestamp;
use sidenote_foundation::error::{Error, Result};
use sidenote_foundation::index::Snapshot;
use sidenote_foundation::index::catalog::{FileId, Filter};
use sidenote_foundation::index::file_set::FileSet;
use sidenote_foundation::journal::projection::Projection;
use sidenote_foundation::memory::state::{MemoryProperties, tier_at};
use sidenote_foundation::memory::tier::Tier;

/// Distinct values, each with a number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    values: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, value: &str) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = number_of(self.values.len());
        self.values.push(value.to_owned());
        self.numbers.insert(value.to_owned(), number);
        number
    }

    /// Returns the value with a number.
    pub(crate) fn get(&self, number: u32) -> &str {
        self.values.get(number as usize).map_or("", String::as_str)
    }
}

/// One note.
#[derive(Debug)]
pub(crate) struct NoteEntry {
    pub(crate) id: FileId,
    /// The number of its folder.
    pub(crate) folder: u32,
    /// The number of its type in lower case, if it has one.
    pub(crate) kind: Option<u32>,
    /// The year in which it was created.
    pub(crate) year: i16,
    created: Timestamp,
    is_archived: bool,
    is_pinned: bool,
    path: Box<str>,
    own_id: Option<Box<str>>,
    /// Where the numbers of its tags are in [`NoteColumns::tag_numbers`].
    tags: Range<u32>,
}

/// The notes of one generation.
#[derive(Debug)]
pub(crate) struct NoteColumns {
    generation: i64,
    entries: Vec<NoteEntry>,
    /// The paths of the folders.
    pub(crate) folders: Names,
    /// The types in lower case.
    pub(crate) kinds: Names,
    /// The tags, in the spelling that came first.
    pub(crate) tags: Vec<String>,
    tag_numbers: Vec<u32>,
}

impl NoteColumns {
    fn read(core: &Core, snapshot: &Snapshot) -> Result<Self> {
        let now = core.clock.now();
        let catalog = snapshot.catalog();
        let rows = catalog.select(&Filter::default())?;
        let mut tags_of = catalog.all_tags()?;
        let mut marked: HashMap<FileId, MemoryProperties> = HashMap::new();
        catalog.properties().each(|file, map| {
            let said = said(&map, Vec::new(), now);
            if said.archived || said.pinned {
                marked.insert(file, said);
            }
        })?;
        drop(catalog);
        let (mut folders, mut kinds, mut tags) = (Names::default(), Names::default(), Names::default());
        let (mut spellings, mut tag_numbers) = (Vec::new(), Vec::new());
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let tags_start = number_of(tag_numbers.len());
            for tag in tags_of.remove(&row.id).unwrap_or_default() {
                let number = tags.number(&tag.to_lowercase());
                if number as usize == spellings.len() {
                    spellings.push(tag);
                }
                tag_numbers.push(number);
            }
            let marks = marked.get(&row.id);
            entries.push(NoteEntry {
                id: row.id,
                folder: folders.number(row.path.folder()),
                kind: row.note_type.as_deref().map(|kind| kinds.number(&kind.to_lowercase())),
                year: row.created.rfc3339().get(..4).and_then(|year| year.parse().ok()).unwrap_or_default(),
                // A time in the future is replaced by the time of the file, or by now.
                created: if row.created > now { row.written.min(now) } else { row.created },
                is_archived: marks.is_some_and(|said| said.archived),
                is_pinned: marks.is_some_and(|said| said.pinned),
                own_id: own_id(&row).map(Into::into),
                path: row.path.as_str().into(),
                tags: tags_start..number_of(tag_numbers.len()),
            });
        }
        let generation = snapshot.generation;
        Ok(Self { generation, entries, folders, kinds, tags: spellings, tag_numbers })
    }

    /// Returns all notes, ordered by path.
    pub(crate) fn all(&self) -> impl Iterator<Item = &NoteEntry> {
        self.entries.iter()
    }

    /// Returns the numbers of the tags of a note.
    pub(crate) fn tags_of(&self, note: &NoteEntry) -> &[u32] {
        self.tag_numbers.get(note.tags.start as usize..note.tags.end as usize).unwrap_or_default()
    }
}

fn number_of(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns the columns of a snapshot, which are read when they are first needed.
pub(crate) fn note_columns(core: &Core, snapshot: &Snapshot) -> Result<Arc<NoteColumns>> {
    let mut held = core.state.note_columns.lock().unwrap_or_else(PoisonError::into_inner);
    match held.as_ref().filter(|columns| columns.generation == snapshot.generation) {
        Some(columns) => Ok(Arc::clone(columns)),
        None => Ok(Arc::clone(held.insert(Arc::new(NoteColumns::read(core, snapshot)?)))),
    }
}

/// Returns the tier of each of some notes, in their order.
pub(crate) fn tiers_of<'n>(core: &Core, notes: impl Iterator<Item = &'n NoteEntry>) -> Result<Vec<Tier>> {
    let now = core.clock.now();
    let thresholds = MemoryWeights::of(core).thresholds();
    let projection = core.projection()?;
    let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
        return Err(Error::internal("the projection was not read"));
    };
    let tier = |note: &NoteEntry| {
        let usage = ledger.usage(note.own_id.as_deref(), &note.path);
        let said = MemoryProperties {
            created: note.created,
            archived: note.is_archived,
            pinned: note.is_pinned,
            ..MemoryProperties::default()
        };
        tier_at(&thresholds, &said, &usage, now)
    };
    Ok(notes.map(tier).collect())
}

/// Returns the notes of a tier.
pub(crate) fn files_in_tier(core: &Core, snapshot: &Snapshot, tier: Tier) -> Result<FileSet> {
    let columns = note_columns(core, snapshot)?;
    let tiers = tiers_of(core, columns.all())?;
    Ok(columns.all().zip(tiers).filter(|(_, own)| *own == tier).map(|(note, _)| note.id).collect())
}
