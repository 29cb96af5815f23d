//! The link graph of the vault in columns, and the positions of its nodes, which are kept in the index folder.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_catalog::{FileId, FileKind, FileRow, LinkRole, RelationQueries};
use sidenote_open_vault::lookup::Lookup;
use sidenote_query::memory_weights::MemoryWeights;
use sidenote_query::search::SearchRequest;

use crate::{NamedColumn, Views};

/// The file of the positions in the index folder.
const POSITIONS: &str = "graph-positions.json";
/// The longest file of positions that is read, in bytes.
const MOST_POSITIONS: u64 = 64_000_000;
/// The kinds of edges after those of links: a relation that is stated, and one that is inferred.
const STATED: u8 = 3;
const INFERRED: u8 = 4;
/// The largest distance around a note.
const MOST_DEPTH: usize = 4;

/// The link graph in columns. A node is an index: the first are files, the others are link texts without a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VaultGraph {
    /// The generation of the index.
    pub generation: i64,
    /// The numbers of the files, which stay the same until the index is deleted.
    pub ids: Vec<FileId>,
    /// The paths of the files.
    pub paths: Vec<String>,
    /// The titles; empty where the title is the file name without its extension.
    pub titles: Vec<String>,
    /// The top folders.
    pub folders: NamedColumn,
    /// The types; empty for none.
    pub types: NamedColumn,
    /// The tiers.
    pub tiers: NamedColumn,
    /// The tags.
    pub tags: TagColumn,
    /// 0 for a note, 1 for a canvas, 2 for another file.
    pub kinds: Vec<u8>,
    /// The importance; 0 for a file that is not a note.
    pub importance: Vec<f64>,
    /// The number of files that link to each.
    #[serde(rename = "in")]
    pub incoming: Vec<usize>,
    /// The number of files that each links to.
    #[serde(rename = "out")]
    pub outgoing: Vec<usize>,
    /// The link texts without a target.
    pub unresolved: Vec<String>,
    /// The edges.
    pub edges: EdgeColumns,
    /// The types of relations.
    pub relations: Vec<String>,
    /// The nodes that meet the query or filter, if there is one.
    pub matched: Option<Vec<usize>>,
}

/// The tags of nodes, each node with a list of indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TagColumn {
    /// The distinct tags.
    pub names: Vec<String>,
    /// For each node the indexes of its tags.
    pub of: Vec<Vec<usize>>,
}

/// The edges of the graph in columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EdgeColumns {
    /// The nodes that the edges lead from.
    pub from: Vec<usize>,
    /// The nodes that they lead to.
    pub to: Vec<usize>,
    /// 0 for a link, 1 for an embed, 2 for a link in a property, 3 for a relation, 4 for an inferred one.
    pub kind: Vec<u8>,
    /// The index of the type of a relation; -1 for others.
    pub relation: Vec<i64>,
}

/// The positions of nodes: first those of files, then those of link texts without a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphPositions {
    /// The numbers of the files.
    pub ids: Vec<FileId>,
    /// The link texts.
    #[serde(default)]
    pub names: Vec<String>,
    /// The horizontal coordinates.
    pub x: Vec<f64>,
    /// The vertical coordinates.
    pub y: Vec<f64>,
}

/// The files that meet a filter of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphMatches {
    /// The generation of the index.
    pub generation: i64,
    /// The numbers of the files.
    pub ids: Vec<FileId>,
    /// Whether there are more.
    pub more: bool,
}

/// An edge: the two nodes, its kind, and the index of its relation.
type Edge = (usize, usize, u8, i64);

/// The links of the whole vault, by file.
struct AllLinks {
    /// The links and relations between files.
    between: Vec<(FileId, FileId, u8, i64)>,
    /// The links without a target: the source, the index of the link text, and the kind.
    dangling: Vec<(FileId, usize, u8)>,
    unresolved: Vec<String>,
    relations: Vec<String>,
}

impl Views<'_> {
    /// Returns the graph of the whole vault. With a request, the nodes that meet it are marked. Its query is a filter:
    /// a condition in which every word must occur and `#name` is a tag.
    ///
    /// # Errors
    /// `Invalid` for an invalid query or filter; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn graph(&self, request: Option<&SearchRequest>) -> Result<VaultGraph> {
        let links = self.links_of(None)?;
        let mut graph = self.graph_of(&links, None)?;
        if let Some(request) = request {
            let request = SearchRequest { is_filter: true, ..request.clone() };
            let matching = self.matching(&request, &*self.core.index.snapshot()?)?.files;
            let nodes = graph.ids.iter().enumerate();
            graph.matched = Some(nodes.filter(|(_, id)| matching.contains(**id)).map(|(at, _)| at).collect());
        }
        Ok(graph)
    }

    /// Returns the files of the graph that meet a request, as the filter of [`Views::graph`], without the graph.
    ///
    /// # Errors
    /// Those of [`Views::graph`]; `Invalid` without a query.
    #[tracing::instrument(skip_all)]
    pub fn graph_matches(&self, request: &SearchRequest) -> Result<GraphMatches> {
        if request.query.trim().is_empty() {
            return Err(Error::invalid("the filter of the graph is empty").with_hint("give a query"));
        }
        let request = SearchRequest { is_filter: true, ..request.clone() };
        let snapshot = self.core.index.snapshot()?;
        let matching = self.matching(&request, &snapshot)?;
        let mut ids: Vec<FileId> = matching.files.iter().collect();
        ids.sort_unstable();
        Ok(GraphMatches { generation: snapshot.generation, ids, more: matching.more })
    }

    /// Returns the graph of the notes within a distance of one note, which is the first node.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn graph_around(&self, name: &str, depth: usize) -> Result<VaultGraph> {
        let start = Lookup::of(self.core).find(name)?.id;
        let (mut known, mut order) = (HashSet::from([start]), vec![start]);
        let mut ring = vec![start];
        for _ in 0..depth.clamp(1, MOST_DEPTH) {
            let mut next = Vec::new();
            let mut add = |file: FileId| {
                if known.insert(file) {
                    next.push(file);
                }
            };
            let catalog = self.core.index.catalog();
            catalog
                .links()
                .each_edge(Some(&ring), |from, to, _| [from, to].into_iter().for_each(&mut add))?;
            for relation in RelationQueries::of_catalog(&catalog).of(&ring)? {
                [relation.subject, relation.object].into_iter().for_each(&mut add);
            }
            next.sort_unstable();
            order.extend(&next);
            ring = next;
        }
        self.graph_of(&self.links_of(Some(&order))?, Some(&order))
    }

    /// Reads all links and relations, or those from or to some files.
    fn links_of(&self, files: Option<&[FileId]>) -> Result<AllLinks> {
        let catalog = self.core.index.catalog();
        let mut between = Vec::new();
        let kind_of = |role: LinkRole| match role {
            LinkRole::Link => 0,
            LinkRole::Embed => 1,
            LinkRole::Property => 2,
        };
        catalog.links().each_edge(files, |from, to, role| {
            if from != to {
                between.push((from, to, kind_of(role), -1));
            }
        })?;
        let mut kinds: BTreeMap<String, i64> = BTreeMap::new();
        let relations = RelationQueries::of_catalog(&catalog);
        let stated = files.map_or_else(|| relations.all(), |files| relations.of(files))?;
        for relation in &stated {
            kinds.entry(relation.kind.clone()).or_default();
        }
        let relations: Vec<String> = kinds.keys().cloned().collect();
        kinds.values_mut().zip(0..).for_each(|(number, at)| *number = at);
        for relation in stated {
            let number = kinds.get(&relation.kind).copied().unwrap_or(-1);
            let kind = if relation.is_inferred { INFERRED } else { STATED };
            between.push((relation.subject, relation.object, kind, number));
        }
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let (mut unresolved, mut dangling) = (Vec::new(), Vec::new());
        for link in catalog.links().unresolved(files)? {
            let at = *numbers.entry(link.linkpath.to_lowercase()).or_insert_with(|| {
                unresolved.push(link.linkpath.clone());
                unresolved.len() - 1
            });
            dangling.push((link.source, at, kind_of(link.position.role)));
        }
        between.sort_unstable();
        between.dedup();
        dangling.sort_unstable();
        dangling.dedup();
        Ok(AllLinks { between, dangling, unresolved, relations })
    }

    /// Makes the columns of the whole vault, or of the files `only`, in that order.
    fn graph_of(&self, links: &AllLinks, only: Option<&[FileId]>) -> Result<VaultGraph> {
        let generation = self.core.index.generation()?;
        let linked: HashSet<FileId> = links.between.iter().map(|(_, to, ..)| *to).collect();
        let mut entries: Vec<FileRow> = {
            let catalog = self.core.index.catalog();
            match only {
                None => catalog.files_after("", usize::MAX >> 1)?,
                Some(only) => catalog.rows(only)?,
            }
        };
        if only.is_none() {
            entries.retain(|entry| entry.kind != FileKind::Attachment || linked.contains(&entry.id));
            entries.sort_unstable_by_key(|entry| entry.id);
        }
        let nodes: HashMap<FileId, usize> =
            entries.iter().enumerate().map(|(at, entry)| (entry.id, at)).collect();
        let (edges, unresolved) = edges_of(links, &nodes, entries.len(), only.is_some());
        let mut graph = self.columns(&entries)?;
        graph.generation = generation;
        let (mut incoming, mut outgoing) = (vec![0; entries.len()], vec![0; entries.len()]);
        let is_counted = |edge: &&Edge| edge.2 < STATED && edge.1 < entries.len();
        let mut pairs: Vec<(usize, usize)> =
            edges.iter().filter(is_counted).map(|(from, to, ..)| (*from, *to)).collect();
        pairs.dedup();
        for (from, to) in pairs {
            outgoing.get_mut(from).into_iter().for_each(|count| *count += 1);
            incoming.get_mut(to).into_iter().for_each(|count| *count += 1);
        }
        (graph.incoming, graph.outgoing, graph.unresolved) = (incoming, outgoing, unresolved);
        graph.relations.clone_from(&links.relations);
        for (from, to, kind, relation) in edges {
            graph.edges.from.push(from);
            graph.edges.to.push(to);
            graph.edges.kind.push(kind);
            graph.edges.relation.push(relation);
        }
        Ok(graph)
    }

    /// Makes the columns of the files.
    fn columns(&self, entries: &[FileRow]) -> Result<VaultGraph> {
        let weighed = MemoryWeights::of(self.core).weigh_all(entries, self.core.clock.now())?;
        let top = |entry: &'_ FileRow| entry.path.folder().split('/').next().unwrap_or("").to_owned();
        let folders: Vec<String> = entries.iter().map(top).collect();
        let kinds: Vec<String> =
            entries.iter().map(|entry| entry.note_type.as_deref().unwrap_or("").to_lowercase()).collect();
        let mut graph = VaultGraph {
            folders: NamedColumn::new(folders.iter().map(String::as_str)),
            types: NamedColumn::new(kinds.iter().map(String::as_str)),
            tiers: NamedColumn::of_tiers(weighed.iter().map(|weighed| weighed.state.tier)),
            ..VaultGraph::default()
        };
        let mut known: HashMap<String, usize> = HashMap::new();
        for (entry, weighed) in entries.iter().zip(&weighed) {
            graph.ids.push(entry.id);
            graph.paths.push(entry.path.as_str().to_owned());
            let is_named = entry.title == entry.path.stem() || entry.title == entry.path.name();
            graph.titles.push(if is_named { String::new() } else { entry.title.clone() });
            graph.kinds.push(match entry.kind {
                FileKind::Note => 0,
                FileKind::Canvas => 1,
                FileKind::Attachment => 2,
            });
            let is_note = entry.kind == FileKind::Note;
            graph.importance.push(if is_note { weighed.state.importance } else { 0.0 });
            let own = weighed.said.tags.iter().map(|tag| {
                *known.entry(tag.to_lowercase()).or_insert_with(|| {
                    graph.tags.names.push(tag.clone());
                    graph.tags.names.len() - 1
                })
            });
            let own = own.collect();
            graph.tags.of.push(own);
        }
        Ok(graph)
    }

    /// Returns the stored positions of nodes. What cannot be read is as if there were none.
    ///
    /// # Errors
    /// `Io` if the file is there and cannot be read.
    pub fn graph_positions(&self) -> Result<GraphPositions> {
        let path = self.core.index.folder().join(POSITIONS);
        match safe_open::read_in_place(&path, MOST_POSITIONS) {
            Ok(bytes) => Ok(serde_json::from_slice::<GraphPositions>(&bytes)
                .ok()
                .filter(GraphPositions::is_valid)
                .unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(GraphPositions::default()),
            Err(error) => Err(safe_open::failed("read", &path, error)),
        }
    }

    /// Stores the positions of nodes in the index folder.
    ///
    /// # Errors
    /// `Invalid` if the lists differ in length or a number is not finite; `Io` if the folder cannot be written.
    pub fn set_graph_positions(&self, positions: &GraphPositions) -> Result<()> {
        if !positions.is_valid() {
            return Err(Error::invalid("the positions of the graph are not as many as its nodes").with_hint(
                "give ids, names, x and y; x and y have a finite number for each id and then for each name",
            ));
        }
        let path = self.core.index.folder().join(POSITIONS);
        let text = serde_json::to_vec(positions)
            .map_err(|error| Error::internal("positions cannot be written as JSON").with_source(error))?;
        AtomicFile::new(&path)
            .mode(0o600)
            .write_bytes(&text)
            .map_err(|error| Error::io("write", &path, error))
    }
}

impl GraphPositions {
    fn is_valid(&self) -> bool {
        let finite = |list: &[f64]| list.iter().all(|number| number.is_finite());
        self.ids.len() + self.names.len() == self.x.len()
            && self.x.len() == self.y.len()
            && finite(&self.x)
            && finite(&self.y)
    }
}

/// Returns the edges between nodes, in order, and the link texts that are nodes. Of a part of the vault, only those link
/// texts are nodes that it uses.
fn edges_of(
    links: &AllLinks,
    nodes: &HashMap<FileId, usize>,
    files: usize,
    is_part: bool,
) -> (Vec<Edge>, Vec<String>) {
    let mut edges: Vec<Edge> = Vec::with_capacity(links.between.len());
    for (from, to, kind, relation) in &links.between {
        if let (Some(from), Some(to)) = (nodes.get(from), nodes.get(to)) {
            edges.push((*from, *to, *kind, *relation));
        }
    }
    let mut unresolved = if is_part { Vec::new() } else { links.unresolved.clone() };
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for (source, text, kind) in &links.dangling {
        let Some(from) = nodes.get(source) else { continue };
        let number = match is_part {
            false => *text,
            true => *numbers.entry(*text).or_insert_with(|| {
                unresolved.push(links.unresolved.get(*text).cloned().unwrap_or_default());
                unresolved.len() - 1
            }),
        };
        edges.push((*from, files + number, *kind, -1));
    }
    edges.sort_unstable();
    (edges, unresolved)
}
