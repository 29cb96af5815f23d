//! Candidate selection: the files that can match a condition, determined from the index before any file is read.
//!
//! For each node two sets are computed: the files that match for certain, and those that may match. The files in
//! the second set only have to be read.

use std::collections::{HashMap, HashSet};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_bm25::Extent;
use sidenote_catalog::{CatalogReader, FileEntry};
use sidenote_index::Snapshot;
use sidenote_index::file_table::{FileTable, PathPart};
use sidenote_markdown::path::key;
use sidenote_sets::file_set::FileSet;

use crate::metadata_filter::MetadataFilter;
use crate::predicate::{name_matches, tag_matches};
use crate::query_parser::{Field, QueryNode};
use crate::text_match::{Haystack, QueryTerm, QueryTermKind};

/// The files that match metadata filters which only the catalog can decide, looked up once per query.
pub type MetadataMatches = HashMap<MetadataFilter, FileSet>;

/// A lower and an upper bound of the set of files that match a condition.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// The files that match for certain.
    pub certain: FileSet,
    /// The files that may match, those that match for certain included.
    pub possible: FileSet,
}

impl Bounds {
    fn exactly(files: FileSet) -> Self {
        Self { certain: files.clone(), possible: files }
    }
}

/// Selects candidates in one state of the index.
pub struct CandidateSelector<'a> {
    snapshot: &'a Snapshot,
    catalog: &'a CatalogReader,
    table: &'a FileTable,
    known: &'a MetadataMatches,
    all: FileSet,
    bases: FileSet,
}

impl<'a> CandidateSelector<'a> {
    /// Creates a selector for one state of the index. `known` contains the files of the links and states that the
    /// condition names.
    pub fn new(
        snapshot: &'a Snapshot,
        catalog: &'a CatalogReader,
        table: &'a FileTable,
        known: &'a MetadataMatches,
    ) -> Self {
        Self { snapshot, catalog, table, known, all: table.texts().clone(), bases: table.bases().clone() }
    }

    /// Returns the bounds of the notes, canvases and bases that match a condition.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn bounds(&self, node: &QueryNode) -> Result<Bounds> {
        self.bounds_of(node, false)
    }

    /// Returns the attachments whose name or path matches the condition.
    pub fn attachments(&self, node: &QueryNode) -> FileSet {
        let names = |node: &QueryNode| matches!(node, QueryNode::Text(Field::FileName | Field::Path, _));
        if !node.any(&names) {
            return FileSet::default();
        }
        let others = self.table.entries().iter().filter(|entry| !entry.is_text());
        others
            .filter(|entry| match_attachment(node, entry).is_some_and(|by_name| by_name))
            .map(|entry| entry.id)
            .collect()
    }

    fn bounds_of(&self, node: &QueryNode, in_unit: bool) -> Result<Bounds> {
        Ok(match node {
            QueryNode::All(nodes) => {
                let mut bounds = Bounds::exactly(self.all.clone());
                for node in nodes {
                    let next = self.bounds_of(node, in_unit)?;
                    bounds = Bounds {
                        certain: bounds.certain.and(&next.certain),
                        possible: bounds.possible.and(&next.possible),
                    };
                }
                bounds
            }
            QueryNode::Any(nodes) => {
                let mut bounds = Bounds::default();
                for node in nodes {
                    let next = self.bounds_of(node, in_unit)?;
                    bounds = Bounds {
                        certain: bounds.certain.or(&next.certain),
                        possible: bounds.possible.or(&next.possible),
                    };
                }
                bounds
            }
            QueryNode::Not(node) => {
                let bounds = self.bounds_of(node, in_unit)?;
                Bounds {
                    certain: self.all.without(&bounds.possible),
                    possible: self.all.without(&bounds.certain),
                }
            }
            // Whether a single unit matches the whole condition shows only in the file.
            QueryNode::Within(_, node) => {
                Bounds { certain: FileSet::default(), possible: self.bounds_of(node, true)?.possible }
            }
            QueryNode::Text(Field::Anywhere, term) if !in_unit => {
                let named = self.by_path(PathPart::Stem, term);
                let possible = self.may_contain(term)?.or(&named.possible);
                Bounds { possible, ..named }
            }
            QueryNode::Text(Field::Anywhere | Field::Content, term) => {
                Bounds { certain: FileSet::default(), possible: self.may_contain(term)? }
            }
            QueryNode::Text(Field::FileName, term) => self.by_path(PathPart::Name, term),
            QueryNode::Text(Field::Path, term) => self.by_path(PathPart::Whole, term),
            QueryNode::Text(Field::Tag, term) => {
                let tagged = self.with_tag(term)?;
                let certain = if in_unit { FileSet::default() } else { tagged.clone() };
                Bounds { certain, possible: tagged }
            }
            QueryNode::Text(Field::PropertyName | Field::PropertyValue, _)
            | QueryNode::Null
            | QueryNode::Compare(..) => Bounds::default(),
            QueryNode::Property(name, value) => self.with_property(name, value.as_deref())?,
            QueryNode::Metadata(MetadataFilter::Tier(_)) => {
                Bounds { certain: FileSet::default(), possible: self.all.clone() }
            }
            QueryNode::Metadata(filter) => Bounds::exactly(self.by_metadata(filter)),
        })
    }

    /// Returns the files whose text may contain a term.
    fn may_contain(&self, term: &QueryTerm) -> Result<FileSet> {
        let extent = match term.kind {
            QueryTermKind::Phrase => Extent::WholeWords,
            QueryTermKind::Word | QueryTermKind::Regex(_) => Extent::Anywhere,
        };
        self.may_hold(term, extent)
    }

    fn may_hold(&self, term: &QueryTerm, extent: Extent) -> Result<FileSet> {
        let mut found = None;
        let texts: &[String] = match &term.kind {
            QueryTermKind::Regex(pattern) => pattern.required_literals(),
            _ => std::slice::from_ref(&term.text),
        };
        for text in texts {
            if let Some(files) = self.snapshot.bm25.may_contain(text, extent)? {
                found = Some(match found {
                    None => files,
                    Some(found) => FileSet::and(&files, &found),
                });
            }
        }
        Ok(found.map_or_else(|| self.all.clone(), |found| found.or(&self.bases).and(&self.all)))
    }

    fn by_path(&self, part: PathPart, term: &QueryTerm) -> Bounds {
        if let Some(needle) = term.caseless() {
            return Bounds::exactly(self.table.holding(needle, part));
        }
        let (mut certain, mut possible) = (Vec::new(), Vec::new());
        for entry in self.table.entries().iter().filter(|entry| entry.is_text()) {
            match term.is_in_name(&Haystack::new(part.of(&entry.path))) {
                Ok(true) => {
                    certain.push(entry.id);
                    possible.push(entry.id);
                }
                Ok(false) => {}
                // The evaluator reports that a regular expression reached its step limit.
                Err(_) => possible.push(entry.id),
            }
        }
        Bounds { certain: certain.into_iter().collect(), possible: possible.into_iter().collect() }
    }

    fn with_tag(&self, term: &QueryTerm) -> Result<FileSet> {
        let files = if matches!(term.kind, QueryTermKind::Regex(_)) {
            let names: HashSet<String> = self.catalog.tags()?.into_iter().map(|(name, _)| name).collect();
            let names = names.iter().filter(|name| tag_matches(name, term).unwrap_or(true));
            let mut files = Vec::new();
            for name in names {
                files.extend(self.catalog.tagged(&key(name), false)?);
            }
            files
        } else {
            let wanted = key(term.text.trim_start_matches('#').trim_end_matches('/'));
            if wanted.is_empty() { Vec::new() } else { self.catalog.tagged(&wanted, true)? }
        };
        Ok(files.into_iter().collect::<FileSet>().and(&self.all))
    }

    fn with_property(&self, name: &QueryNode, value: Option<&QueryNode>) -> Result<Bounds> {
        let names = self.catalog.properties().names()?;
        let keys: HashSet<String> = names
            .iter()
            .filter(|name_here| name_matches(name, name_here).unwrap_or(true))
            .map(|name| key(name))
            .collect();
        let keys: Vec<String> = keys.into_iter().collect();
        let having = self.snapshot.bm25.with_property(&keys)?.and(&self.all);
        Ok(match value {
            // The index folds the case of names, so a case-sensitive condition has to be verified.
            None if !matches_case(name) => Bounds::exactly(having),
            None => Bounds { certain: FileSet::default(), possible: having },
            Some(value) => {
                let possible = match self.with_value(value)? {
                    Some(files) => having.and(&files),
                    None => having,
                };
                Bounds { certain: FileSet::default(), possible }
            }
        })
    }

    /// Returns an upper bound of the files that contain a value, or `None` if the index cannot tell.
    fn with_value(&self, value: &QueryNode) -> Result<Option<FileSet>> {
        Ok(match value {
            QueryNode::All(nodes) => {
                let mut found: Option<FileSet> = None;
                for node in nodes {
                    if let Some(files) = self.with_value(node)? {
                        found = Some(match found {
                            None => files,
                            Some(found) => found.and(&files),
                        });
                    }
                }
                found
            }
            QueryNode::Any(nodes) => {
                let mut found = FileSet::default();
                for node in nodes {
                    match self.with_value(node)? {
                        Some(files) => found = found.or(&files),
                        None => return Ok(None),
                    }
                }
                Some(found)
            }
            // In the file, a value can be written in another form.
            QueryNode::Text(_, term) => Some(self.may_hold(term, Extent::Anywhere)?),
            _ => None,
        })
    }

    fn by_metadata(&self, filter: &MetadataFilter) -> FileSet {
        if let Some(files) = self.known.get(filter) {
            return files.and(&self.all);
        }
        let entries = self.table.entries().iter().filter(|entry| entry.is_text());
        entries.filter(|entry| entry_matches(filter, entry)).map(|entry| entry.id).collect()
    }
}

/// Returns whether a time lies in a period, which includes its start and excludes its end.
pub fn is_in_period(at: Timestamp, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
    from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to)
}

/// Returns whether a file matches a metadata filter, if the file table can decide that.
fn entry_matches(filter: &MetadataFilter, entry: &FileEntry) -> bool {
    match filter {
        MetadataFilter::Type(name) => entry.note_type.as_ref() == Some(name),
        MetadataFilter::Category(name) => entry.category.as_ref() == Some(name),
        MetadataFilter::Created(from, to) => entry.created_source.admits(entry.created, *from, *to),
        MetadataFilter::Updated(from, to) => is_in_period(entry.updated, *from, *to),
        MetadataFilter::Tier(_)
        | MetadataFilter::LinksTo(_)
        | MetadataFilter::LinkedFrom(_)
        | MetadataFilter::Relation(..)
        | MetadataFilter::Orphan
        | MetadataFilter::Pinned => false,
    }
}

fn matches_case(node: &QueryNode) -> bool {
    node.any(&|node| matches!(node, QueryNode::Text(_, term) if term.match_case))
}

/// Returns `Some(true)` if a name or path contains the term, otherwise `None`.
fn match_name(term: &QueryTerm, name: &str) -> Option<bool> {
    term.is_in_name(&Haystack::new(name)).unwrap_or(false).then_some(true)
}

/// Evaluates a condition on the name of an attachment. Returns `None` if it does not match, otherwise whether a
/// term on the name or path is what matched.
fn match_attachment(node: &QueryNode, entry: &FileEntry) -> Option<bool> {
    match node {
        QueryNode::All(nodes) => {
            let mut by_name = false;
            for node in nodes {
                by_name |= match_attachment(node, entry)?;
            }
            Some(by_name)
        }
        QueryNode::Any(nodes) => {
            nodes.iter().filter_map(|node| match_attachment(node, entry)).reduce(|one, other| one || other)
        }
        QueryNode::Not(node) => match_attachment(node, entry).is_none().then_some(false),
        QueryNode::Text(Field::FileName, term) => match_name(term, entry.path.name()),
        QueryNode::Text(Field::Path, term) => match_name(term, entry.path.as_str()),
        QueryNode::Metadata(filter @ (MetadataFilter::Created(..) | MetadataFilter::Updated(..))) => {
            entry_matches(filter, entry).then_some(false)
        }
        _ => None,
    }
}
