//! Imports the file of the reference memory server of the Model Context Protocol: an entity or a relation a line, as JSON.

use serde::{Deserialize, Serialize};
use sidenote_base::error::Result;
use sidenote_memories::knowledge_graph::{Entity, IncomingGraph, KnowledgeGraph, Relation};

use crate::Upkeep;

/// The number of lines that are named one by one when they cannot be read.
const NAMED: usize = 20;

/// The result of an import of a graph, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GraphImportReply {
    /// The number of entities in the file.
    pub entities: usize,
    /// The number of relations in the file.
    pub relations: usize,
    /// The paths of the new notes.
    pub imported: Vec<String>,
    /// The number of observations that were added to notes that were there before.
    pub added_observations: usize,
    /// The number of new relations.
    pub added_relations: usize,
    /// The number of lines that could not be read.
    pub skipped: usize,
    /// The number of secrets that were removed.
    pub redacted: usize,
    /// Notices for the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A line of the file.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    #[serde(rename_all = "camelCase")]
    Entity { name: String, entity_type: String, observations: Vec<String> },
    #[serde(rename_all = "camelCase")]
    Relation { from: String, to: String, relation_type: String },
}

impl Upkeep<'_> {
    /// Imports a graph as one operation. What is there already is not changed, and what it lacks is added. Lines that cannot be
    /// read are named and skipped.
    ///
    /// # Errors
    /// Those of [`KnowledgeGraph::bring`]. Nothing is written then.
    #[tracing::instrument(skip_all)]
    pub fn import_graph(&self, text: &str, dry_run: bool) -> Result<GraphImportReply> {
        let mut reply = GraphImportReply::default();
        let mut graph = IncomingGraph::default();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (at, line) in lines {
            match serde_json::from_str(line) {
                Ok(Line::Entity { name, .. }) if name.trim().is_empty() => {
                    skip(&mut reply, at, "the entity has no name");
                }
                Ok(Line::Entity { name, entity_type, observations }) => {
                    graph.entities.push(Entity { name, kind: entity_type, observations });
                }
                Ok(Line::Relation { from, .. }) if from.trim().is_empty() => {
                    skip(&mut reply, at, "the relation leads from nothing");
                }
                Ok(Line::Relation { from, to, relation_type }) => {
                    graph.relations.push(Relation { from, to, kind: relation_type });
                }
                Err(error) => skip(&mut reply, at, &error.to_string()),
            }
        }
        if reply.skipped > NAMED {
            reply.notices.push(format!("{} more lines are skipped", reply.skipped - NAMED));
        }
        (reply.entities, reply.relations) = (graph.entities.len(), graph.relations.len());
        let brought = KnowledgeGraph::of(self.core).bring(graph, dry_run)?;
        reply.imported = brought.notes;
        (reply.added_observations, reply.added_relations) = (brought.observations, brought.relations);
        reply.redacted = brought.cleaned.keys;
        reply.notices.extend(brought.notices);
        Ok(reply)
    }
}

/// Counts a line that cannot be read, and names it.
fn skip(reply: &mut GraphImportReply, at: usize, why: &str) {
    reply.skipped += 1;
    if reply.skipped <= NAMED {
        reply.notices.push(format!("line {} is skipped: {why}", at + 1));
    }
}
