//! Owns narrowing: which files a query can be about, told by the index before any file is read.
//!
//! Each node gets two bounds: the files that hold it for sure, and those that may. What lies between is read.

use std::collections::{HashMap, HashSet};

use crate::clock::Timestamp;
use crate::error::Result;
use crate::index::Snapshot;
use crate::index::catalog::{CatalogReader, FileEntry};
use crate::index::file_set::FileSet;
use crate::index::file_table::{FileTable, PathPart};
use crate::search::predicate::{has_tag, is_named};
use crate::search::query_parser::{Node, Own, Place};
use crate::search::text_match::{Haystack, Term, TermKind};
use crate::text::path::key;

/// Files by links and states, which the catalog tells; looked up once a query.
pub type Known = HashMap<Own, FileSet>;

/// Two bounds of the set of files that a query asks for.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// These hold it.
    pub sure: FileSet,
    /// No others hold it.
    pub maybe: FileSet,
}

impl Bounds {
    fn exactly(files: FileSet) -> Self {
        Self { sure: files.clone(), maybe: files }
    }
}

/// What the index knows.
pub struct Selector<'a> {
    snapshot: &'a Snapshot,
    catalog: &'a CatalogReader,
    table: &'a FileTable,
    known: &'a Known,
    all: FileSet,
    bases: FileSet,
}

impl<'a> Selector<'a> {
    /// Looks at one state of the index.
    pub fn new(
        snapshot: &'a Snapshot,
        catalog: &'a CatalogReader,
        table: &'a FileTable,
        known: &'a Known,
    ) -> Self {
        Self { snapshot, catalog, table, known, all: table.texts().clone(), bases: table.bases().clone() }
    }

    /// Bounds the notes, canvases and bases that a query asks for.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn bounds(&self, node: &Node) -> Result<Bounds> {
        self.of(node, false)
    }

    /// Lists the attachments that a query asks for: those that their name or path brings in.
    pub fn attachments(&self, node: &Node) -> FileSet {
        let names = |node: &Node| matches!(node, Node::Text(Place::Name | Place::Path, _));
        if !node.has(&names) {
            return FileSet::default();
        }
        let others = self.table.entries().iter().filter(|entry| !entry.is_text());
        others
            .filter(|entry| brought_in(node, entry).is_some_and(|by_name| by_name))
            .map(|entry| entry.id)
            .collect()
    }

    fn of(&self, node: &Node, inside: bool) -> Result<Bounds> {
        Ok(match node {
            Node::All(nodes) => {
                let mut bounds = Bounds::exactly(self.all.clone());
                for node in nodes {
                    let next = self.of(node, inside)?;
                    bounds =
                        Bounds { sure: bounds.sure.and(&next.sure), maybe: bounds.maybe.and(&next.maybe) };
                }
                bounds
            }
            Node::Any(nodes) => {
                let mut bounds = Bounds::default();
                for node in nodes {
                    let next = self.of(node, inside)?;
                    bounds = Bounds { sure: bounds.sure.or(&next.sure), maybe: bounds.maybe.or(&next.maybe) };
                }
                bounds
            }
            Node::Not(node) => {
                let bounds = self.of(node, inside)?;
                Bounds { sure: self.all.without(&bounds.maybe), maybe: self.all.without(&bounds.sure) }
            }
            // Whether one part holds all of it is to be seen in the file.
            Node::Within(_, node) => Bounds { sure: FileSet::default(), maybe: self.of(node, true)?.maybe },
            Node::Text(Place::Anywhere, term) if !inside => {
                let named = self.by_path(PathPart::Stem, term);
                let maybe = self.may_hold(term)?.or(&named.maybe);
                Bounds { maybe, ..named }
            }
            Node::Text(Place::Anywhere | Place::Content, term) => {
                Bounds { sure: FileSet::default(), maybe: self.may_hold(term)? }
            }
            Node::Text(Place::Name, term) => self.by_path(PathPart::Name, term),
            Node::Text(Place::Path, term) => self.by_path(PathPart::Whole, term),
            Node::Text(Place::Tag, term) => {
                let tagged = self.tagged(term)?;
                let sure = if inside { FileSet::default() } else { tagged.clone() };
                Bounds { sure, maybe: tagged }
            }
            Node::Text(Place::Key | Place::Value, _) | Node::Null | Node::Compare(..) => Bounds::default(),
            Node::Property(name, value) => self.with_property(name, value.as_deref())?,
            Node::Own(Own::Tier(_)) => Bounds { sure: FileSet::default(), maybe: self.all.clone() },
            Node::Own(own) => Bounds::exactly(self.own(own)),
        })
    }

    fn may_hold(&self, term: &Term) -> Result<FileSet> {
        let mut found = None;
        let texts: &[String] = match &term.kind {
            TermKind::Regex(pattern) => pattern.needed(),
            _ => std::slice::from_ref(&term.text),
        };
        for text in texts {
            if let Some(files) = self.snapshot.bm25.may_contain(text)? {
                found = Some(match found {
                    None => files,
                    Some(found) => FileSet::and(&files, &found),
                });
            }
        }
        Ok(found.map_or_else(|| self.all.clone(), |found| found.or(&self.bases).and(&self.all)))
    }

    fn by_path(&self, part: PathPart, term: &Term) -> Bounds {
        if let Some(needle) = term.caseless() {
            return Bounds::exactly(self.table.holding(needle, part));
        }
        let (mut sure, mut maybe) = (Vec::new(), Vec::new());
        for entry in self.table.entries().iter().filter(|entry| entry.is_text()) {
            match term.is_in_name(&Haystack::new(part.of(&entry.path))) {
                Ok(true) => {
                    sure.push(entry.id);
                    maybe.push(entry.id);
                }
                Ok(false) => {}
                // The judge tells that a pattern gave up.
                Err(_) => maybe.push(entry.id),
            }
        }
        Bounds { sure: sure.into_iter().collect(), maybe: maybe.into_iter().collect() }
    }

    fn tagged(&self, term: &Term) -> Result<FileSet> {
        let files = if matches!(term.kind, TermKind::Regex(_)) {
            let names: HashSet<String> = self.catalog.tags()?.into_iter().map(|(name, _)| name).collect();
            let names = names.iter().filter(|name| has_tag(name, term).unwrap_or(true));
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

    fn with_property(&self, name: &Node, value: Option<&Node>) -> Result<Bounds> {
        let names = self.catalog.properties().names()?;
        let keys: HashSet<String> = names
            .iter()
            .filter(|name_here| is_named(name, name_here).unwrap_or(true))
            .map(|name| key(name))
            .collect();
        let keys: Vec<String> = keys.into_iter().collect();
        let having = self.snapshot.bm25.with_property(&keys)?.and(&self.all);
        Ok(match value {
            // Names are compared by their exact letters there, so a case that matters is looked at again.
            None if !has_case(name) => Bounds::exactly(having),
            None => Bounds { sure: FileSet::default(), maybe: having },
            Some(value) => {
                let maybe = match self.value_maybe(value)? {
                    Some(files) => having.and(&files),
                    None => having,
                };
                Bounds { sure: FileSet::default(), maybe }
            }
        })
    }

    /// Bounds the files that hold a value somewhere; nothing where the index cannot tell.
    fn value_maybe(&self, value: &Node) -> Result<Option<FileSet>> {
        Ok(match value {
            Node::All(nodes) => {
                let mut found: Option<FileSet> = None;
                for node in nodes {
                    if let Some(files) = self.value_maybe(node)? {
                        found = Some(match found {
                            None => files,
                            Some(found) => found.and(&files),
                        });
                    }
                }
                found
            }
            Node::Any(nodes) => {
                let mut found = FileSet::default();
                for node in nodes {
                    match self.value_maybe(node)? {
                        Some(files) => found = found.or(&files),
                        None => return Ok(None),
                    }
                }
                Some(found)
            }
            Node::Text(_, term) => Some(self.may_hold(term)?),
            _ => None,
        })
    }

    fn own(&self, own: &Own) -> FileSet {
        if let Some(files) = self.known.get(own) {
            return files.and(&self.all);
        }
        let entries = self.table.entries().iter().filter(|entry| entry.is_text());
        entries.filter(|entry| fits(own, entry)).map(|entry| entry.id).collect()
    }
}

/// Says whether a moment lies in a period: from the first bound on, and before the second.
pub fn is_within(at: Timestamp, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
    from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to)
}

/// Says whether a file passes one of our filters, as far as the file table tells.
fn fits(own: &Own, entry: &FileEntry) -> bool {
    match own {
        Own::Type(name) => entry.note_type.as_ref() == Some(name),
        Own::Category(name) => entry.category.as_ref() == Some(name),
        Own::Created(from, to) => is_within(entry.created, *from, *to),
        Own::Updated(from, to) => is_within(entry.updated, *from, *to),
        Own::Tier(_) | Own::LinksTo(_) | Own::LinkedFrom(_) | Own::Orphan | Own::Pinned => false,
    }
}

fn has_case(node: &Node) -> bool {
    node.has(&|node| matches!(node, Node::Text(_, term) if term.match_case))
}

/// Says that a name or path brings an attachment in, where it does.
fn named(term: &Term, name: &str) -> Option<bool> {
    term.is_in_name(&Haystack::new(name)).unwrap_or(false).then_some(true)
}

/// Judges an attachment by its name: nothing where it does not fit, else whether its name or path brings it in.
fn brought_in(node: &Node, entry: &FileEntry) -> Option<bool> {
    match node {
        Node::All(nodes) => {
            let mut by_name = false;
            for node in nodes {
                by_name |= brought_in(node, entry)?;
            }
            Some(by_name)
        }
        Node::Any(nodes) => {
            nodes.iter().filter_map(|node| brought_in(node, entry)).reduce(|one, other| one || other)
        }
        Node::Not(node) => brought_in(node, entry).is_none().then_some(false),
        Node::Text(Place::Name, term) => named(term, entry.path.name()),
        Node::Text(Place::Path, term) => named(term, entry.path.as_str()),
        Node::Own(own @ (Own::Created(..) | Own::Updated(..))) => fits(own, entry).then_some(false),
        _ => None,
    }
}
