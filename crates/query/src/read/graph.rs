//! Reads the link graph: links in both directions, broken links, orphans and shortest paths.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_catalog::{FileId, LinkRow};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_links::dialect::{LinkDialects, LinkPlace, split_query};
use sidenote_links::link_part::{LinkPart, NoteParts};
use sidenote_markdown::canvas;
use sidenote_markdown::link::LinkSyntax;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::lookup::Lookup;

use crate::read::Reads;
use crate::read::list::{NoteItem, note_item};

/// A link in a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkItem {
    /// The source text of the link.
    pub original: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The name of the link form.
    pub form: &'static str,
    /// Whether it embeds.
    pub embed: bool,
    /// The path of its target. A link that is followed as a path can lead to a folder, or out of the vault.
    pub resolved: Option<String>,
    /// Whether the target lacks the heading or block that it names.
    pub broken_subpath: bool,
}

/// A link in another note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backlink {
    /// The path of that note.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The text of that line, trimmed; on a canvas, the line of the card's text or the path of its file.
    pub text: String,
}

/// The links of a note in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinksReply {
    /// Vault path.
    pub path: String,
    /// The links with a target.
    pub outgoing: Vec<LinkItem>,
    /// The links without a target.
    pub unresolved: Vec<LinkItem>,
    /// The links of other notes to this one.
    pub backlinks: Vec<Backlink>,
}

/// A path and a line, counted from 1.
pub type LineRef = (String, usize);

/// A link text without a target, and where it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnresolvedItem {
    /// The path part of the link in its first spelling; spellings that differ only in case count as one.
    pub link: String,
    /// The path and line of each link.
    pub places: Vec<LineRef>,
}

/// The shortest path of links between two notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathReply {
    /// The paths of the notes, from the first to the second; empty if no path connects them.
    pub path: Vec<String>,
    /// The number of links.
    pub distance: Option<usize>,
}

impl Reads<'_> {
    /// Returns the links of a note in both directions.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn links(&self, name: &str) -> Result<LinksReply> {
        let row = Lookup::of(self.core).find(name)?;
        let (from, to) = {
            let catalog = self.core.index.catalog();
            (catalog.links().outgoing(row.id)?, catalog.links().incoming(row.id)?)
        };
        let mut readings: HashMap<FileId, Option<ParsedNote>> = HashMap::new();
        let mut outgoing: Vec<LinkItem> = Vec::new();
        let mut unresolved = Vec::new();
        // The links to a heading or block, by target: their positions in the list, and their subpaths.
        let mut named: BTreeMap<FileId, Vec<(usize, LinkPart<'static>)>> = BTreeMap::new();
        let (path, dialects) = (row.path.clone(), self.core.index.catalog().links().dialects()?);
        let unit = dialects.unit_of(&path);
        for row in from {
            let Some((original, link)) = self.reading(&mut readings, row.source)?.and_then(|reading| {
                let link =
                    reading.note.links.get(row.position.ord).filter(|link| link.path == row.linkpath)?;
                Some((link.span.of(&reading.text).to_owned(), link.clone()))
            }) else {
                // The note changed since it was indexed, so the subpath is not checked.
                continue;
            };
            let target = match row.target {
                Some(target) => self.core.index.catalog().rows(&[target])?.pop(),
                None => None,
            };
            if let Some(target) = target.as_ref().filter(|target| target.path.is_note())
                && let Some(part) = LinkPart::of(&link, unit)
            {
                named.entry(target.id).or_default().push((outgoing.len(), part.into_owned()));
            }
            let resolved = match target {
                Some(target) => Some(target.path.as_str().to_owned()),
                None => self.place_beyond_files(&dialects, &path, &link.path, link.form.syntax())?,
            };
            let item = LinkItem {
                original,
                line: link.line,
                form: link.form.name(),
                embed: link.embed,
                resolved,
                broken_subpath: false,
            };
            if item.resolved.is_some() { outgoing.push(item) } else { unresolved.push(item) }
        }
        for (target, links) in named {
            let Some(reading) = self.reading(&mut readings, target)? else { continue };
            let mut parts = NoteParts::new(&reading.text, &reading.note);
            for (at, part) in links {
                if let Some(item) = outgoing.get_mut(at) {
                    item.broken_subpath = !parts.has(&part);
                }
            }
        }
        let mut backlinks = Vec::new();
        for link in to {
            backlinks.extend(self.backlink(&mut readings, &link)?);
        }
        Ok(LinksReply { path: row.path.as_str().to_owned(), outgoing, unresolved, backlinks })
    }

    fn backlink(
        &self,
        readings: &mut HashMap<FileId, Option<ParsedNote>>,
        link: &LinkRow,
    ) -> Result<Option<Backlink>> {
        let Some(source) = self.core.index.catalog().rows(&[link.source])?.pop() else {
            return Ok(None);
        };
        let text = self.reading(readings, link.source)?.and_then(|reading| {
            if source.path.is_canvas() {
                let held = reading.note.links.get(link.position.ord)?;
                return canvas::shown_at(&reading.text, held.span.start);
            }
            reading
                .lines_span(link.position.line, link.position.line)
                .map(|span| span.of(&reading.text).trim().to_owned())
        });
        Ok(Some(Backlink {
            path: source.path.as_str().to_owned(),
            line: link.position.line,
            text: text.unwrap_or_default(),
        }))
    }

    /// Reads a note once for each request. Returns `None` if it was removed.
    pub(super) fn reading<'a>(
        &self,
        readings: &'a mut HashMap<FileId, Option<ParsedNote>>,
        id: FileId,
    ) -> Result<Option<&'a ParsedNote>> {
        let reading = match readings.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let row = self.core.index.catalog().rows(&[id])?.pop();
                place.insert(row.map(|row| self.read_if_there(&row.path)).transpose()?.flatten())
            }
        };
        Ok(reading.as_ref())
    }

    fn read_if_there(&self, path: &NotePath) -> Result<Option<ParsedNote>> {
        match self.core.read_bytes(path) {
            Ok(bytes) => Ok(Some(ParsedNote::new(path, &bytes))),
            Err(error) => {
                self.core.warn_unless_gone(&error);
                Ok(None)
            }
        }
    }

    /// Returns the paths that a note links to, and the links of other notes to it as (path, line), from the index
    /// alone.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn neighbours(&self, name: &str) -> Result<(Vec<String>, Vec<LineRef>)> {
        let row = Lookup::of(self.core).find(name)?;
        let catalog = self.core.index.catalog();
        let path_of = |id: FileId| -> Result<Option<String>> {
            Ok(catalog.rows(&[id])?.pop().map(|row| row.path.as_str().to_owned()))
        };
        let mut outgoing = Vec::new();
        for link in catalog.links().outgoing(row.id)? {
            outgoing.extend(link.target.map(path_of).transpose()?.flatten());
        }
        outgoing.sort();
        outgoing.dedup();
        let mut backlinks = Vec::new();
        for link in catalog.links().incoming(row.id)? {
            backlinks.extend(path_of(link.source)?.map(|path| (path, link.position.line)));
        }
        Ok((outgoing, backlinks))
    }

    /// Returns the place that a link without a file leads to, if it leads to a folder or out of the vault.
    fn place_beyond_files(
        &self,
        dialects: &LinkDialects,
        source: &NotePath,
        linkpath: &str,
        syntax: LinkSyntax,
    ) -> Result<Option<String>> {
        let unit = dialects.unit_of(source);
        if syntax != LinkSyntax::Markdown || !unit.can_lead_beyond() {
            return Ok(None);
        }
        let catalog = self.core.index.catalog();
        let has_folder = |folder: &str| catalog.paths().has_folder(folder);
        let leads = unit.leads_beyond_files(linkpath, source, has_folder)?;
        Ok(leads.then(|| match unit.place_of(split_query(linkpath).0, source) {
            LinkPlace::Inside(place) if !linkpath.starts_with('/') => format!("{place}/"),
            LinkPlace::Inside(_) => linkpath.to_owned(),
            LinkPlace::Elsewhere(place) => place,
        }))
    }

    /// Lists link texts without a target.
    #[tracing::instrument(skip_all)]
    pub fn unresolved(&self) -> Result<Vec<UnresolvedItem>> {
        let catalog = self.core.index.catalog();
        let links = catalog.links().unresolved(None)?;
        let mut ids: Vec<FileId> = links.iter().map(|link| link.source).collect();
        ids.sort_unstable();
        ids.dedup();
        let paths: HashMap<FileId, String> =
            catalog.rows(&ids)?.into_iter().map(|row| (row.id, row.path.as_str().to_owned())).collect();
        drop(catalog);
        // The catalog does not define the order of the texts of a note.
        let mut placed: Vec<(&String, LinkRow)> =
            links.into_iter().filter_map(|link| Some((paths.get(&link.source)?, link))).collect();
        placed.sort_by_key(|(path, link)| (*path, link.position.ord));
        let mut items: BTreeMap<String, UnresolvedItem> = BTreeMap::new();
        for (path, link) in placed {
            let item = items
                .entry(link.linkpath.to_lowercase())
                .or_insert_with(|| UnresolvedItem { link: link.linkpath.clone(), places: Vec::new() });
            item.places.push((path.clone(), link.position.line));
        }
        Ok(items.into_values().collect())
    }

    /// Lists notes without links in either direction.
    #[tracing::instrument(skip_all)]
    pub fn orphans(&self) -> Result<Vec<NoteItem>> {
        let catalog = self.core.index.catalog();
        catalog
            .links()
            .orphans()?
            .into_iter()
            .map(|row| Ok(note_item(catalog.tags_of(row.id)?, row)))
            .collect()
    }

    /// Lists the notes within a distance of some links in either direction, the nearest first, each with its distance.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn around(&self, name: &str, depth: usize) -> Result<Vec<(String, usize)>> {
        let start = Lookup::of(self.core).find(name)?;
        let catalog = self.core.index.catalog();
        let mut known = HashSet::from([start.id]);
        let mut ring = vec![start.id];
        let mut found = Vec::new();
        for distance in 1..=depth {
            let mut next = Vec::new();
            for id in ring {
                next.extend(catalog.links().neighbours(id)?.into_iter().filter(|other| known.insert(*other)));
            }
            let mut paths: Vec<String> =
                catalog.rows(&next)?.into_iter().map(|row| row.path.as_str().to_owned()).collect();
            paths.sort();
            found.extend(paths.into_iter().map(|path| (path, distance)));
            ring = next;
        }
        Ok(found)
    }

    /// Finds the shortest path of links between two notes, in either direction.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn path(&self, from: &str, to: &str) -> Result<PathReply> {
        let (start, goal) = (Lookup::of(self.core).find(from)?, Lookup::of(self.core).find(to)?);
        let catalog = self.core.index.catalog();
        // The path is built from its end; of several shortest paths, the first one by name is used.
        let mut distance: HashMap<FileId, usize> = HashMap::from([(goal.id, 0)]);
        let mut queue = VecDeque::from([(goal.id, 0)]);
        while let Some((at, steps)) = queue.pop_front() {
            if at == start.id {
                break;
            }
            for next in catalog.links().neighbours(at)? {
                distance.entry(next).or_insert_with(|| {
                    queue.push_back((next, steps + 1));
                    steps + 1
                });
            }
        }
        let Some(&steps) = distance.get(&start.id) else {
            return Ok(PathReply { path: Vec::new(), distance: None });
        };
        let mut chain = vec![start.id];
        for left in (0..steps).rev() {
            let Some(&at) = chain.last() else { break };
            let mut nearer = catalog.links().neighbours(at)?;
            nearer.retain(|next| distance.get(next) == Some(&left));
            chain.extend(
                catalog.paths().sorted_by_path(&nearer)?.into_iter().find(|next| nearer.contains(next)),
            );
        }
        let path: Vec<String> =
            catalog.rows(&chain)?.into_iter().map(|row| row.path.as_str().to_owned()).collect();
        Ok(PathReply { distance: Some(path.len().saturating_sub(1)), path })
    }
}
