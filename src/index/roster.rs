//! Owns the roster: the few facts about every visible file by which queries are narrowed, held in memory for one
//! generation of the index.

use crate::clock::Timestamp;
use crate::index::bm25::FileSet;
use crate::index::catalog::{FileId, FileKind, PutAway};
use crate::text::path::NotePath;

/// What is known of one file without reading it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: NotePath,
    /// The path in the form in which case does not count.
    pub caseless_path: String,
    /// Where the name begins in it.
    pub name_start: usize,
    /// The same of the name without extension.
    pub caseless_stem: String,
    /// What it is.
    pub kind: FileKind,
    /// Its `type`, in lower case.
    pub note_type: Option<String>,
    /// Its `category`, in lower case.
    pub category: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// Whether it is out of search.
    pub put_away: PutAway,
}

impl Entry {
    /// Says whether words look into its content: notes, canvases and bases (spec/obsidian.md 8.2).
    pub fn is_text(&self) -> bool {
        self.kind != FileKind::Attachment || self.is_base()
    }

    /// Gives the name in the form in which case does not count.
    pub fn caseless_name(&self) -> &str {
        self.caseless_path.get(self.name_start..).unwrap_or(&self.caseless_path)
    }

    /// Says whether it is a base, whose text is in no index.
    pub fn is_base(&self) -> bool {
        self.path.extension().eq_ignore_ascii_case("base")
    }
}

/// Every visible file, ordered by name and then by path, as Obsidian lists what it finds.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    entries: Vec<Entry>,
    texts: FileSet,
    bases: FileSet,
}

impl Roster {
    /// Puts files in order.
    pub fn new(entries: Vec<Entry>) -> Self {
        let mut keyed: Vec<(String, Entry)> =
            entries.into_iter().map(|entry| (entry.path.name().to_lowercase(), entry)).collect();
        keyed.sort_by(|(left, one), (right, other)| {
            left.cmp(right).then_with(|| one.path.as_str().cmp(other.path.as_str()))
        });
        let entries: Vec<Entry> = keyed.into_iter().map(|(_, entry)| entry).collect();
        let texts = entries.iter().filter(|entry| entry.is_text());
        let bases = texts.clone().filter(|entry| entry.is_base());
        let (texts, bases) = (texts.map(|entry| entry.id).collect(), bases.map(|entry| entry.id).collect());
        Self { entries, texts, bases }
    }

    /// Gives the files that words look into.
    pub fn texts(&self) -> &FileSet {
        &self.texts
    }

    /// Gives the bases among them.
    pub fn bases(&self) -> &FileSet {
        &self.bases
    }

    /// Lists the files, by name.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
