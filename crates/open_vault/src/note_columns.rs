//! The values of each note that facets and tiers need, held in memory for one generation of the index, so that a vault
//! of 50,000 notes is counted in milliseconds.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sidenote_base::clock::Timestamp;
use sidenote_catalog::{CreationSource, FileId, FileRow};
use sidenote_memory::memory_properties::MemoryProperties;

/// Distinct values, each with a number.
#[derive(Debug, Default)]
pub struct Names {
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
    pub fn get(&self, number: u32) -> &str {
        self.values.get(number as usize).map_or("", String::as_str)
    }
}

/// One note.
#[derive(Debug)]
pub struct NoteEntry {
    /// The number of the file in the index.
    pub id: FileId,
    /// The number of its folder.
    pub folder: u32,
    /// The number of its type in lower case, if it has one.
    pub kind: Option<u32>,
    /// The year in which it was created; `None` for a copied note, which may be older than its file.
    pub year: Option<i16>,
    created: Creation,
    is_archived: bool,
    is_pinned: bool,
    path: Box<str>,
    own_id: Option<Box<str>>,
    /// Where the numbers of its tags are in [`NoteColumns::tag_numbers`].
    tags: Range<u32>,
}

/// The notes of one generation.
#[derive(Debug)]
pub struct NoteColumns {
    generation: i64,
    entries: Vec<NoteEntry>,
    /// The paths of the folders.
    pub folders: Names,
    /// The types in lower case.
    pub kinds: Names,
    /// The tags, in the spelling that came first.
    pub tags: Vec<String>,
    tag_numbers: Vec<u32>,
}

/// When a note was created, for its tier and its importance.
#[derive(Debug, Clone, Copy)]
pub struct Creation {
    /// The time.
    pub at: Timestamp,
    /// Whether the note was copied to the vault, so that it may be older.
    pub is_copied: bool,
}

impl Creation {
    /// Returns when the note of a row was created. A time in the future is replaced by the time of the file, or by now.
    pub fn of(row: &FileRow, now: Timestamp) -> Self {
        let at = if row.created > now { row.written.min(now) } else { row.created };
        Self { at, is_copied: row.time_sources.created == CreationSource::Copy }
    }
}

impl NoteEntry {
    /// Returns the path, and the id that the note itself has.
    pub fn names(&self) -> (&str, Option<&str>) {
        (&self.path, self.own_id.as_deref())
    }

    /// Returns what decides about the tier, besides the uses.
    pub fn tier_properties(&self) -> MemoryProperties {
        MemoryProperties {
            created: self.created.at,
            is_copied: self.created.is_copied,
            archived: self.is_archived,
            pinned: self.is_pinned,
            ..MemoryProperties::default()
        }
    }
}

impl NoteColumns {
    /// Makes the columns of all notes, ordered by path. `own_id` returns the id that a note itself has; `pinned` and
    /// `archived` are the notes that say so.
    pub fn new(
        generation: i64,
        rows: Vec<FileRow>,
        mut tags_of: HashMap<FileId, Vec<String>>,
        (archived, pinned): (&HashSet<FileId>, &HashSet<FileId>),
        own_id: impl Fn(&FileRow) -> Option<&str>,
        now: Timestamp,
    ) -> Self {
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
            entries.push(NoteEntry {
                id: row.id,
                folder: folders.number(row.path.folder()),
                kind: row.note_type.as_deref().map(|kind| kinds.number(&kind.to_lowercase())),
                year: (!Creation::of(&row, now).is_copied).then(|| row.created.date().year()),
                created: Creation::of(&row, now),
                is_archived: archived.contains(&row.id),
                is_pinned: pinned.contains(&row.id),
                own_id: own_id(&row).map(Into::into),
                path: row.path.as_str().into(),
                tags: tags_start..number_of(tag_numbers.len()),
            });
        }
        Self { generation, entries, folders, kinds, tags: spellings, tag_numbers }
    }

    /// Returns the generation of the index.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Returns all notes, ordered by path.
    pub fn all(&self) -> impl Iterator<Item = &NoteEntry> {
        self.entries.iter()
    }

    /// Returns the numbers of the tags of a note.
    pub fn tags_of(&self, note: &NoteEntry) -> &[u32] {
        self.tag_numbers.get(note.tags.start as usize..note.tags.end as usize).unwrap_or_default()
    }
}

fn number_of(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
