//! Notes as a knowledge graph: a note is an entity, the items below its heading `Observations` are what is known of it, and its
//! typed links are relations. `plan` changes the graph; this file reads it.

mod plan;
mod stated;

use std::collections::{BTreeSet, HashMap, HashSet};

use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileRow, Filter, Inactive};
use sidenote_links::resolve::FileNames;
use sidenote_markdown::list_section;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::Core;
use sidenote_open_vault::catalog_overlay::{GROUP, View};
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::redaction::Cleaned;
use sidenote_open_vault::source::Source;
use sidenote_query::Searches;
use sidenote_query::memory_weights::MemoryWeights;
use sidenote_query::search::SearchRequest;

use crate::Recalls;
use crate::knowledge_graph::stated::relations_of;

/// The heading of the observations of an entity.
const OBSERVATIONS: &str = "Observations";
/// The heading of the relations of an entity.
const RELATIONS: &str = "Relations";
/// The type of an entity whose note has none.
const NOTE: &str = "note";
/// The most entities of one reply: more would fill the context of a model.
pub const MAX_ENTITIES: usize = 2_000;
/// The number of found entities that are ranked. A reader of a longer list looks for all, not for the best.
const RANKED: usize = 200;

/// An entity of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entity {
    /// The name, which is the title of its note.
    pub name: String,
    /// The type.
    pub kind: String,
    /// What is known of it.
    pub observations: Vec<String>,
}

/// A relation of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Relation {
    /// The name of the entity that it leads from.
    pub from: String,
    /// The name of the entity that it leads to. There need not be one.
    pub to: String,
    /// The type.
    pub kind: String,
}

/// Texts of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTexts {
    /// The name of the entity.
    pub name: String,
    /// The texts.
    pub texts: Vec<String>,
}

/// A part of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// The entities.
    pub entities: Vec<Entity>,
    /// The relations.
    pub relations: Vec<Relation>,
    /// The number of entities that are left out because there are more than [`MAX_ENTITIES`].
    pub left_out: usize,
}

/// What a change of the graph did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed<T> {
    /// What was new.
    pub new: Vec<T>,
    /// Notices for the caller.
    pub notices: Vec<String>,
}

/// A graph to bring into the vault.
#[derive(Debug, Clone, Default)]
pub struct IncomingGraph {
    /// The entities. What a known one lacks is added to it.
    pub entities: Vec<Entity>,
    /// The relations.
    pub relations: Vec<Relation>,
}

/// What was brought into the vault, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BroughtGraph {
    /// The paths of the new notes.
    pub notes: Vec<String>,
    /// The number of observations that were added to notes that were there before.
    pub observations: usize,
    /// The number of new relations.
    pub relations: usize,
    /// What was removed from the texts.
    pub cleaned: Cleaned,
    /// Notices for the caller.
    pub notices: Vec<String>,
}

/// Reads and changes the knowledge graph of a vault.
#[derive(Debug, Clone, Copy)]
pub struct KnowledgeGraph<'a> {
    core: &'a Core,
}

/// The rows of all entities in the order of their creation, and their names.
struct EntityRows {
    rows: Vec<FileRow>,
    titles: HashMap<NotePath, String>,
}

impl EntityRows {
    /// Returns the name of the entity of a file.
    fn name_of(&self, path: &NotePath) -> String {
        self.titles.get(path).cloned().unwrap_or_else(|| path.stem().to_owned())
    }
}

impl<'a> KnowledgeGraph<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }

    /// Lists the notes that are entities.
    fn rows(&self) -> Result<EntityRows> {
        let hidden = Inactive { archived: true, forgotten: true };
        let filter = Recalls { core: self.core }.scoped(Filter { hidden, ..Filter::default() });
        let rows = self.core.index.catalog().select(&filter)?;
        let mut rows = Lookup::of(self.core).with_unindexed(rows, |_| true)?;
        let recalls = Recalls { core: self.core };
        rows.retain(|row| {
            let is_active = !row.inactive.archived && !row.inactive.forgotten;
            row.path.is_note() && !row.excluded && is_active && recalls.is_in_scope(row)
        });
        MemoryWeights::of(self.core).sort_by_creation(&mut rows, false, |row| row)?;
        let titles = rows.iter().map(|row| (row.path.clone(), row.title.clone())).collect();
        Ok(EntityRows { rows, titles })
    }

    /// Reads the whole graph, up to [`MAX_ENTITIES`].
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the notes or the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn read(&self) -> Result<Graph> {
        let view = View::new(self.core)?;
        let all = self.rows()?;
        let left_out = all.rows.len().saturating_sub(MAX_ENTITIES);
        let shown = all.rows.get(..all.rows.len() - left_out).unwrap_or_default();
        let sources = view.sources(shown.iter().map(|row| row.path.clone()))?;
        let names = view.names(&sources, BTreeSet::new())?.table();
        let entities = entities_of(shown, &sources);
        let relations = sources.iter().flat_map(|source| self.relations(&all, &names, source)).collect();
        Ok(Graph { entities, relations, left_out })
    }

    /// Returns the entities whose name, type or observations contain a text, ignoring case, the best first, and the
    /// relations with an end among them.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the notes or the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn search(&self, query: &str) -> Result<Graph> {
        let wanted = query.to_lowercase();
        let says = |text: &str| text.to_lowercase().contains(&wanted);
        self.select(
            |entity| {
                says(&entity.name) || says(&entity.kind) || entity.observations.iter().any(|text| says(text))
            },
            |_| true,
            |found| self.ranked(query, found),
        )
    }

    /// Returns the entities with some names, and the relations with an end among them.
    ///
    /// # Errors
    /// `Io` or `Corrupt` if the notes or the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn open(&self, names: &[String]) -> Result<Graph> {
        let names: HashSet<&str> = names.iter().map(|name| name.trim()).collect();
        self.select(|_| true, |row| names.contains(row.title.as_str()), |_| Ok(()))
    }

    /// Returns the entities that match, and the relations with an end among them. A note whose row does not fit is not read.
    fn select(
        &self,
        matches: impl Fn(&Entity) -> bool,
        fits: impl Fn(&FileRow) -> bool,
        order: impl FnOnce(&mut Vec<FileRow>) -> Result<()>,
    ) -> Result<Graph> {
        let view = View::new(self.core)?;
        let all = self.rows()?;
        let mut found: Vec<FileRow> = Vec::new();
        let rows: Vec<&FileRow> = all.rows.iter().filter(|row| fits(row)).collect();
        for group in rows.chunks(GROUP) {
            let sources = view.sources(group.iter().map(|row| row.path.clone()))?;
            let by_path: HashMap<&NotePath, &Source> =
                sources.iter().map(|source| (&source.path, source)).collect();
            let is_meant = |row: &&&FileRow| {
                by_path.get(&row.path).is_some_and(|source| matches(&entity_of(row, source)))
            };
            found.extend(group.iter().filter(is_meant).map(|row| (*row).clone()));
        }
        order(&mut found)?;
        let left_out = found.len().saturating_sub(MAX_ENTITIES);
        found.truncate(MAX_ENTITIES);
        let paths: Vec<NotePath> = found.iter().map(|row| row.path.clone()).collect();
        let among: HashSet<&NotePath> = paths.iter().collect();
        let mut sources = view.sources(paths.iter().cloned())?;
        let entities = entities_of(&found, &sources);
        let linking = view.concerned(&paths, &BTreeSet::new())?;
        let linking =
            linking.into_iter().filter(|path| !among.contains(path) && all.titles.contains_key(path));
        sources.extend(view.sources(linking)?);
        let place: HashMap<&NotePath, usize> =
            all.rows.iter().enumerate().map(|(at, row)| (&row.path, at)).collect();
        sources.sort_by_key(|source| place.get(&source.path).copied());
        let names = view.names(&sources, BTreeSet::new())?.table();
        let shown: HashSet<&str> = entities.iter().map(|entity| entity.name.as_str()).collect();
        let relations = sources.iter().flat_map(|source| self.relations(&all, &names, source));
        let relations = relations
            .filter(|one| shown.contains(one.from.as_str()) || shown.contains(one.to.as_str()))
            .collect();
        MemoryWeights::of(self.core).note_use(found.iter().take(RANKED), "graph");
        Ok(Graph { entities, relations, left_out })
    }

    /// Orders found entities as a search ranks them. Those that it does not find stay behind, in the order of their creation.
    fn ranked(&self, query: &str, found: &mut [FileRow]) -> Result<()> {
        if query.trim().is_empty() || found.len() < 2 {
            return Ok(());
        }
        let request = SearchRequest {
            notes_only: true,
            query: query.to_owned(),
            plain: true,
            limit: Some(RANKED),
            no_sync: true,
            ..SearchRequest::default()
        };
        let results = Searches::of(self.core).search(&request)?.results;
        let ranks: HashMap<&str, usize> =
            results.iter().enumerate().map(|(at, result)| (result.path.as_str(), at)).collect();
        found.sort_by_key(|row| ranks.get(row.path.as_str()).copied().unwrap_or(usize::MAX));
        Ok(())
    }

    /// Lists the relations from the entity of a note.
    fn relations(&self, all: &EntityRows, names: &FileNames, source: &Source) -> Vec<Relation> {
        let stated = relations_of(source, names, &self.core.state.relation_rules, |path| all.name_of(path));
        let from = all.name_of(&source.path);
        stated.into_iter().map(|one| Relation { from: from.clone(), to: one.to, kind: one.kind }).collect()
    }
}

/// Lists the entities of rows whose notes were read, in the order of the rows.
fn entities_of(rows: &[FileRow], sources: &[Source]) -> Vec<Entity> {
    let sources: HashMap<&NotePath, &Source> = sources.iter().map(|source| (&source.path, source)).collect();
    rows.iter().filter_map(|row| Some(entity_of(row, sources.get(&row.path)?))).collect()
}

fn entity_of(row: &FileRow, source: &Source) -> Entity {
    Entity {
        name: row.title.clone(),
        kind: row.note_type.clone().unwrap_or_else(|| NOTE.to_owned()),
        observations: observations_of(&source.text),
    }
}

/// Lists the observations in the text of a note.
fn observations_of(text: &str) -> Vec<String> {
    let sections = list_section::sections(text, OBSERVATIONS);
    sections.into_iter().flat_map(|section| section.items).map(|item| item.text).collect()
}

/// Returns the error for an entity that does not exist, in the words of the memory server that has the same tools.
fn no_entity(name: &str) -> Error {
    Error::not_found(format!("Entity with name {name} not found"))
}
