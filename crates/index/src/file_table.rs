//! The file table: the entry of every visible file, held in memory for one generation of the index. Queries narrow their
//! candidates by it without reading the catalog.

use sidenote_catalog::FileEntry;
use sidenote_markdown::path::{NotePath, fold_case};
use sidenote_markdown::span::Span;
use sidenote_sets::file_set::FileSet;

/// The part of a path that a query matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPart {
    /// The whole path.
    Whole,
    /// The file name.
    Name,
    /// The file name without its extension.
    Stem,
}

impl PathPart {
    /// Returns this part of a path.
    pub fn of(self, path: &NotePath) -> &str {
        match self {
            Self::Whole => path.as_str(),
            Self::Name => path.name(),
            Self::Stem => path.stem(),
        }
    }
}

/// The byte offsets of one file's path in [`FileTable::paths`].
#[derive(Debug, Clone, Copy)]
struct PathSpans {
    start: u32,
    name: u32,
    stem_end: u32,
    end: u32,
}

impl PathSpans {
    fn of(self, part: PathPart) -> Span {
        let (start, end) = match part {
            PathPart::Whole => (self.start, self.end),
            PathPart::Name => (self.name, self.end),
            PathPart::Stem => (self.name, self.stem_end),
        };
        Span::new(start as usize, end as usize)
    }
}

/// The entries of all visible files, ordered by name and then by path, as Obsidian lists its results.
#[derive(Debug, Clone, Default)]
pub struct FileTable {
    entries: Vec<FileEntry>,
    /// The case-folded paths of all entries, one per line, so that one substring search covers all of them.
    paths: String,
    spans: Vec<PathSpans>,
    texts: FileSet,
    bases: FileSet,
}

impl FileTable {
    /// Builds the table from entries in any order.
    pub fn new(entries: Vec<FileEntry>) -> Self {
        let mut keyed: Vec<(String, FileEntry)> =
            entries.into_iter().map(|entry| (entry.path.name().to_lowercase(), entry)).collect();
        keyed.sort_by(|(left, one), (right, other)| {
            left.cmp(right).then_with(|| one.path.as_str().cmp(other.path.as_str()))
        });
        let entries: Vec<FileEntry> = keyed.into_iter().map(|(_, entry)| entry).collect();
        let (mut paths, mut spans) = (String::new(), Vec::with_capacity(entries.len()));
        let at = |paths: &String| u32::try_from(paths.len()).unwrap_or(u32::MAX);
        for entry in &entries {
            let start = at(&paths);
            paths.push_str(&fold_case(entry.path.as_str()));
            let end = at(&paths);
            // A slash or a dot composes with no other character, so folding a name alone gives the same bytes.
            let name = end.saturating_sub(fold_case(entry.path.name()).len() as u32);
            spans.push(PathSpans {
                start,
                name,
                stem_end: name + fold_case(entry.path.stem()).len() as u32,
                end,
            });
            paths.push('\n');
        }
        let texts = entries.iter().filter(|entry| entry.is_text());
        let bases = texts.clone().filter(|entry| entry.is_base());
        let (texts, bases) = (texts.map(|entry| entry.id).collect(), bases.map(|entry| entry.id).collect());
        Self { entries, paths, spans, texts, bases }
    }

    /// Finds the text files whose path contains `needle`, which is case-folded, within the given part of the path.
    pub fn holding(&self, needle: &str, part: PathPart) -> FileSet {
        if needle.is_empty() {
            return self.texts.clone();
        }
        let mut found = Vec::new();
        let (mut from, mut at) = (0, 0);
        let finder = memchr::memmem::Finder::new(needle);
        while let Some(ahead) = self.paths.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let start = from + ahead;
            // Both cursors only move forward, so the search takes one pass.
            while self.spans.get(at).is_some_and(|spans| spans.end as usize <= start) {
                at += 1;
            }
            let (Some(spans), Some(entry)) = (self.spans.get(at), self.entries.get(at)) else { break };
            let span = spans.of(part);
            if start < span.start {
                from = span.start;
                continue;
            }
            if start + needle.len() <= span.end && entry.is_text() {
                found.push(entry.id);
            }
            from = spans.end as usize;
        }
        found.into_iter().collect()
    }

    /// Returns the text files: notes, canvases and bases.
    pub fn texts(&self) -> &FileSet {
        &self.texts
    }

    /// Returns the bases.
    pub fn bases(&self) -> &FileSet {
        &self.bases
    }

    /// Returns all entries, ordered by name.
    pub fn entries(&self) -> &[FileEntry] {
        &self.entries
    }
}
