//! Reads the relations of a note, by type and by distance.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileId, FileRow};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::graphemes::shortened;
use sidenote_markdown::relation::{RelationEnd, relation_key};
use sidenote_open_vault::lookup::Lookup;
use sidenote_search::typed_relations::{TypedRelation, TypedRelations};

use crate::read::Reads;

/// The most relations of one reply.
const MAX_RELATIONS: usize = 10_000;
/// The most characters of the text that states a relation.
const MAX_EVIDENCE: usize = 300;

/// A relation between two notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelationItem {
    /// The path of the note that it leads from.
    pub from: String,
    /// The name of the type, or of the relation where the settings have no type for it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The path of the note that it leads to.
    pub to: String,
    /// Whether it was inferred from the words around a link.
    pub inferred: bool,
    /// The path of the note that states it.
    pub stated_in: String,
    /// The line of the link that states it, counted from 1.
    pub line: usize,
    /// The line, property or sentence that states it.
    pub evidence: String,
    /// The number of relations from the note that was asked for to the farther end of this one.
    pub distance: usize,
}

/// The relations of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelationsReply {
    /// The path of the note.
    pub path: String,
    /// The relations, the nearest first.
    pub relations: Vec<RelationItem>,
    /// Whether there are more than the largest number of relations.
    pub truncated: bool,
}

/// A request for the relations of a note.
#[derive(Debug, Clone, Default)]
pub struct RelationsRequest {
    /// The note: path, id, title, alias, file name or link.
    pub note: String,
    /// Only relations that this name means, such as `works_at` or `employer`.
    pub kind: Option<String>,
    /// The largest distance; 1 if not given.
    pub depth: Option<usize>,
}

impl Reads<'_> {
    /// Lists the relations from a note and to it, and those of the notes at their other ends up to a distance.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Invalid` if a type has no letters;
    /// `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn relations(&self, request: &RelationsRequest) -> Result<RelationsReply> {
        let start = Lookup::of(self.core).find(&request.note)?;
        let catalog = self.core.index.catalog();
        let rules = &self.core.state.relation_rules;
        let kinds: Option<Vec<String>> = match &request.kind {
            Some(name) if relation_key(name).is_empty() => {
                return Err(Error::invalid(format!("{name:?} is no type of relations"))
                    .with_hint("give a name such as works_at"));
            }
            Some(name) => {
                Some(rules.meant_by(&relation_key(name)).into_iter().map(|(kind, _)| kind).collect())
            }
            None => None,
        };
        let relations = TypedRelations::new(&catalog, rules);
        let mut known = HashSet::from([start.id]);
        let mut seen = HashSet::new();
        let mut truncated = false;
        let (mut ring, mut found): (_, Vec<(TypedRelation, usize)>) = (vec![start.id], Vec::new());
        for distance in 1..=request.depth.unwrap_or(1) {
            let mut next = Vec::new();
            for file in ring {
                for relation in relations.of(file)? {
                    let is_wanted = kinds.as_ref().is_none_or(|kinds| kinds.contains(&relation.kind));
                    let is_new =
                        is_wanted && seen.insert((relation.subject, relation.kind.clone(), relation.object));
                    truncated |= is_new && found.len() >= MAX_RELATIONS;
                    if is_new && found.len() < MAX_RELATIONS {
                        let ends = [RelationEnd::Subject, RelationEnd::Object].map(|end| relation.at(end));
                        next.extend(ends.into_iter().filter(|end| known.insert(*end)));
                        found.push((relation, distance));
                    }
                }
            }
            ring = next;
        }
        let files: HashSet<FileId> =
            found.iter().flat_map(|(one, _)| [one.subject, one.object, one.stated.source]).collect();
        let rows = catalog.rows(&files.into_iter().collect::<Vec<_>>())?;
        drop(catalog);
        let rows: HashMap<FileId, FileRow> = rows.into_iter().map(|row| (row.id, row)).collect();
        let path = |file: FileId| rows.get(&file).map(|row| row.path.as_str().to_owned()).unwrap_or_default();
        let mut readings: HashMap<FileId, Option<ParsedNote>> = HashMap::new();
        let mut items = Vec::with_capacity(found.len());
        for (relation, distance) in &found {
            let reading = self.reading(&mut readings, relation.stated.source)?;
            let evidence =
                reading.map(|reading| relation.stated.evidence.of(&reading.text)).unwrap_or_default();
            let evidence = evidence.split_whitespace().collect::<Vec<_>>().join(" ");
            // A value of a property says little without its name.
            let is_value =
                !relation.stated.is_inferred && evidence.starts_with('[') && evidence.ends_with([']', ')']);
            let evidence = if is_value { format!("{}: {evidence}", relation.stated.kind) } else { evidence };
            items.push(RelationItem {
                from: path(relation.subject),
                kind: relation.kind.clone(),
                to: path(relation.object),
                inferred: relation.stated.is_inferred,
                stated_in: path(relation.stated.source),
                line: relation.stated.line,
                evidence: shortened(&evidence, MAX_EVIDENCE),
                distance: *distance,
            });
        }
        let order =
            |item: &RelationItem| (item.distance, item.kind.clone(), item.from.clone(), item.to.clone());
        items.sort_by_key(order);
        Ok(RelationsReply { path: start.path.as_str().to_owned(), relations: items, truncated })
    }
}
