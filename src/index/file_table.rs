//! Owns the roster: the few facts about every visible file by which queries are narrowed, held in memory for one
//! generation of the index.

use crate::clock::Timestamp;
use crate::index::bm25::FileSet;
use crate::index::catalog::{FileId, FileKind, PutAway};
use crate::text::path::{NotePath, caseless};
use crate::text::span::Span;

/// What is known of one file without reading it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The file's number.
    pub id: FileId,
    /// Its path.
    pub path: NotePath,
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

    /// Says whether it is a base, whose text is in no index.
    pub fn is_base(&self) -> bool {
        self.path.extension().eq_ignore_ascii_case("base")
    }
}

/// What of a path is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPart {
    /// All of it.
    Whole,
    /// The name of the file.
    Name,
    /// The name without extension.
    Stem,
}

impl PathPart {
    /// Cuts it out of a path.
    pub fn of(self, path: &NotePath) -> &str {
        match self {
            Self::Whole => path.as_str(),
            Self::Name => path.name(),
            Self::Stem => path.stem(),
        }
    }
}

/// The place of one file's path among all of them.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    name: u32,
    stem_end: u32,
    end: u32,
}

impl Place {
    fn of(self, part: PathPart) -> Span {
        let (start, end) = match part {
            PathPart::Whole => (self.start, self.end),
            PathPart::Name => (self.name, self.end),
            PathPart::Stem => (self.name, self.stem_end),
        };
        Span::new(start as usize, end as usize)
    }
}

/// Every visible file, ordered by name and then by path, as Obsidian lists what it finds.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    entries: Vec<Entry>,
    /// The paths of all entries behind one another, in the form in which case does not count: a name is looked for in
    /// all of them at once.
    paths: String,
    places: Vec<Place>,
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
        let (mut paths, mut places) = (String::new(), Vec::with_capacity(entries.len()));
        let at = |paths: &String| u32::try_from(paths.len()).unwrap_or(u32::MAX);
        for entry in &entries {
            let start = at(&paths);
            paths.push_str(&caseless(entry.path.as_str()));
            let end = at(&paths);
            // Names do not melt into what is around them: a slash or a dot composes with nothing.
            let name = end.saturating_sub(caseless(entry.path.name()).len() as u32);
            places.push(Place {
                start,
                name,
                stem_end: name + caseless(entry.path.stem()).len() as u32,
                end,
            });
            paths.push('\n');
        }
        let texts = entries.iter().filter(|entry| entry.is_text());
        let bases = texts.clone().filter(|entry| entry.is_base());
        let (texts, bases) = (texts.map(|entry| entry.id).collect(), bases.map(|entry| entry.id).collect());
        Self { entries, paths, places, texts, bases }
    }

    /// Finds the files that words look into whose path holds `needle`, in the form in which case does not count, in
    /// this part of it.
    pub fn holding(&self, needle: &str, part: PathPart) -> FileSet {
        if needle.is_empty() {
            return self.texts.clone();
        }
        let mut found = Vec::new();
        let (mut from, mut at) = (0, 0);
        let finder = memchr::memmem::Finder::new(needle);
        while let Some(ahead) = self.paths.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let start = from + ahead;
            // Both go forward only, so that all of it is one walk.
            while self.places.get(at).is_some_and(|place| place.end as usize <= start) {
                at += 1;
            }
            let (Some(place), Some(entry)) = (self.places.get(at), self.entries.get(at)) else { break };
            let span = place.of(part);
            if start < span.start {
                from = span.start;
                continue;
            }
            if start + needle.len() <= span.end && entry.is_text() {
                found.push(entry.id);
            }
            from = place.end as usize;
        }
        found.into_iter().collect()
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
