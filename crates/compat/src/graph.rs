//! The toolset `graph` (docs/spec/toolsets.md): the tools of the reference memory server of the Model Context Protocol.
//! Its tool names, arguments and replies; the service `knowledge_graph` of the store does the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sidenote_base::error::Result;
use sidenote_mcp::ToolsetResource;
use sidenote_mcp::tool::{Answer, Effect, Tool, to_json};
use sidenote_store::{Entity, EntityTexts, Graph, GraphRelation, MAX_ENTITIES, Store};

/// The whole graph as a resource.
pub(crate) const RESOURCE: ToolsetResource = ToolsetResource {
    uri: "memory://knowledge-graph",
    name: "knowledge-graph",
    title: "Knowledge Graph",
    description: "The full knowledge graph with all entities and relations",
    media_type: "application/json",
    tool: "read_graph",
    text: |store| Ok(format!("{:#}", to_json(&GraphShape::from(store.knowledge_graph().read()?))?)),
};

const NAME: &str = "The name of the entity";
const TYPE: &str = "The type of the entity";
const OBSERVATIONS: &str = "An array of observation contents associated with the entity";
const FROM: &str = "The name of the entity where the relation starts";
const TO: &str = "The name of the entity where the relation ends";
const RELATION_TYPE: &str = "The type of the relation";

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EntityShape {
    #[schemars(description = NAME)]
    name: String,
    #[schemars(description = TYPE)]
    entity_type: String,
    #[schemars(description = OBSERVATIONS)]
    observations: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RelationShape {
    #[schemars(description = FROM)]
    from: String,
    #[schemars(description = TO)]
    to: String,
    #[schemars(description = RELATION_TYPE)]
    relation_type: String,
}

#[derive(Debug, Serialize)]
struct GraphShape {
    entities: Vec<EntityShape>,
    relations: Vec<RelationShape>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct EntitiesInput {
    entities: Vec<EntityShape>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RelationsInput {
    relations: Vec<RelationShape>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RemovedRelationsInput {
    #[schemars(description = "An array of relations to delete")]
    relations: Vec<RelationShape>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AddedShape {
    #[schemars(description = "The name of the entity to add the observations to")]
    entity_name: String,
    #[schemars(description = "An array of observation contents to add")]
    contents: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AddedInput {
    observations: Vec<AddedShape>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RemovedShape {
    #[schemars(description = "The name of the entity containing the observations")]
    entity_name: String,
    #[schemars(description = "An array of observations to delete")]
    observations: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RemovedInput {
    deletions: Vec<RemovedShape>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EntityNamesInput {
    #[schemars(description = "An array of entity names to delete")]
    entity_names: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

#[derive(Debug, Deserialize, JsonSchema)]
struct QueryInput {
    #[schemars(
        description = "The search query to match against entity names, types, and observation content",
        extend("x-empty-counts" = true)
    )]
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NamesInput {
    #[schemars(description = "An array of entity names to retrieve")]
    names: Vec<String>,
}

impl From<EntityShape> for Entity {
    fn from(shape: EntityShape) -> Self {
        Self { name: shape.name, kind: shape.entity_type, observations: shape.observations }
    }
}

impl From<Entity> for EntityShape {
    fn from(entity: Entity) -> Self {
        Self { name: entity.name, entity_type: entity.kind, observations: entity.observations }
    }
}

impl From<RelationShape> for GraphRelation {
    fn from(shape: RelationShape) -> Self {
        Self { from: shape.from, to: shape.to, kind: shape.relation_type }
    }
}

impl From<GraphRelation> for RelationShape {
    fn from(relation: GraphRelation) -> Self {
        Self { from: relation.from, to: relation.to, relation_type: relation.kind }
    }
}

impl From<Graph> for GraphShape {
    fn from(graph: Graph) -> Self {
        Self {
            entities: graph.entities.into_iter().map(EntityShape::from).collect(),
            relations: graph.relations.into_iter().map(RelationShape::from).collect(),
        }
    }
}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    let deleted = || schema(json!({ "success": { "type": "boolean" }, "message": { "type": "string" } }));
    let writing = vec![
        Tool::new(
            "create_entities",
            Effect::Additive,
            "Create multiple new entities in the knowledge graph",
            r#"{"entities": [{"name": "Anna", "entityType": "person", "observations": ["drinks tea"]}]}"#,
            create_entities,
        )
        .described_as("Create Entities")
        .with_output_schema(schema(json!({ "entities": entity_list() }))),
        Tool::new(
            "create_relations",
            Effect::Additive,
            "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
            r#"{"relations": [{"from": "Anna", "to": "Boat club", "relationType": "rows for"}]}"#,
            create_relations,
        )
        .described_as("Create Relations")
        .with_output_schema(schema(json!({ "relations": relation_list() }))),
        Tool::new(
            "add_observations",
            Effect::Additive,
            "Add new observations to existing entities in the knowledge graph",
            r#"{"observations": [{"entityName": "Anna", "contents": ["rows at dawn"]}]}"#,
            add_observations,
        )
        .described_as("Add Observations")
        .with_output_schema(schema(json!({ "results": result_list() }))),
        Tool::new(
            "delete_entities",
            Effect::IdempotentDestructive,
            "Delete multiple entities and their associated relations from the knowledge graph",
            r#"{"entityNames": ["Anna"]}"#,
            delete_entities,
        )
        .described_as("Delete Entities")
        .with_output_schema(deleted()),
        Tool::new(
            "delete_observations",
            Effect::IdempotentDestructive,
            "Delete specific observations from entities in the knowledge graph",
            r#"{"deletions": [{"entityName": "Anna", "observations": ["drinks tea"]}]}"#,
            delete_observations,
        )
        .described_as("Delete Observations")
        .with_output_schema(deleted()),
        Tool::new(
            "delete_relations",
            Effect::IdempotentDestructive,
            "Delete multiple relations from the knowledge graph",
            r#"{"relations": [{"from": "Anna", "to": "Boat club", "relationType": "rows for"}]}"#,
            delete_relations,
        )
        .described_as("Delete Relations")
        .with_output_schema(deleted()),
    ];
    writing.into_iter().chain(reading_tools()).collect()
}

/// Returns the tools that change nothing.
fn reading_tools() -> Vec<Tool> {
    let graph = || schema(json!({ "entities": entity_list(), "relations": relation_list() }));
    vec![
        Tool::new("read_graph", Effect::ReadOnly, "Read the entire knowledge graph", "{}", read_graph)
            .described_as("Read Graph")
            .with_output_schema(graph()),
        Tool::new(
            "search_nodes",
            Effect::ReadOnly,
            "Search for nodes in the knowledge graph based on a query",
            r#"{"query": "tea"}"#,
            search_nodes,
        )
        .described_as("Search Nodes")
        .with_output_schema(graph()),
        Tool::new(
            "open_nodes",
            Effect::ReadOnly,
            "Open specific nodes in the knowledge graph by their names",
            r#"{"names": ["Anna", "Boat club"]}"#,
            open_nodes,
        )
        .described_as("Open Nodes")
        .with_output_schema(graph()),
    ]
}

/// Returns the schema of an object that has these properties and no others.
fn object(properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let required = json!(names);
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn schema(properties: Value) -> Map<String, Value> {
    match object(properties) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn entity_list() -> Value {
    let entity = object(json!({
        "name": { "type": "string", "description": NAME },
        "entityType": { "type": "string", "description": TYPE },
        "observations": { "type": "array", "items": { "type": "string" }, "description": OBSERVATIONS },
    }));
    json!({ "type": "array", "items": entity })
}

fn relation_list() -> Value {
    let relation = object(json!({
        "from": { "type": "string", "description": FROM },
        "to": { "type": "string", "description": TO },
        "relationType": { "type": "string", "description": RELATION_TYPE },
    }));
    json!({ "type": "array", "items": relation })
}

fn result_list() -> Value {
    let result = object(json!({
        "entityName": { "type": "string" },
        "addedObservations": { "type": "array", "items": { "type": "string" } },
    }));
    json!({ "type": "array", "items": result })
}

/// Answers with a list as text, and with the same under a name as structured data.
fn list_answer(name: &str, list: &Value, notices: Vec<String>) -> Result<Answer> {
    let structured = Value::Object(Map::from_iter([(name.to_owned(), list.clone())]));
    Ok(Answer::pretty_json(list)?.with_structured(&structured)?.whole().with_notices(notices))
}

fn done(message: &str) -> Result<Answer> {
    Answer::text(message).with_structured(&json!({ "success": true, "message": message }))
}

fn graph_answer(graph: Graph) -> Result<Answer> {
    let left_out = graph.left_out;
    let graph = GraphShape::from(graph);
    let answer = Answer::pretty_json(&graph)?.with_structured(&graph)?.whole();
    let notice = format!(
        "{left_out} entities are left out, because a reply has at most {MAX_ENTITIES}; search_nodes finds the others"
    );
    Ok(if left_out == 0 { answer } else { answer.with_notices([notice]) })
}

fn create_entities(store: &Store, input: EntitiesInput) -> Result<Answer> {
    let entities = input.entities.into_iter().map(Entity::from).collect();
    let made = store.knowledge_graph().create_entities(entities)?;
    let new: Vec<EntityShape> = made.new.into_iter().map(EntityShape::from).collect();
    list_answer("entities", &to_json(&new)?, made.notices)
}

fn create_relations(store: &Store, input: RelationsInput) -> Result<Answer> {
    let relations = input.relations.into_iter().map(GraphRelation::from).collect();
    let made = store.knowledge_graph().create_relations(relations)?;
    let new: Vec<RelationShape> = made.new.into_iter().map(RelationShape::from).collect();
    list_answer("relations", &to_json(&new)?, made.notices)
}

fn add_observations(store: &Store, input: AddedInput) -> Result<Answer> {
    let added = input.observations.into_iter();
    let added = added.map(|one| EntityTexts { name: one.entity_name, texts: one.contents }).collect();
    let made = store.knowledge_graph().add_observations(added)?;
    let results: Vec<Value> = made
        .new
        .into_iter()
        .map(|one| json!({ "entityName": one.name, "addedObservations": one.texts }))
        .collect();
    list_answer("results", &Value::from(results), made.notices)
}

fn delete_entities(store: &Store, input: EntityNamesInput) -> Result<Answer> {
    store.knowledge_graph().delete_entities(&input.entity_names)?;
    done("Entities deleted successfully")
}

fn delete_observations(store: &Store, input: RemovedInput) -> Result<Answer> {
    let removed = input.deletions.into_iter();
    let removed: Vec<EntityTexts> =
        removed.map(|one| EntityTexts { name: one.entity_name, texts: one.observations }).collect();
    store.knowledge_graph().delete_observations(&removed)?;
    done("Observations deleted successfully")
}

fn delete_relations(store: &Store, input: RemovedRelationsInput) -> Result<Answer> {
    let removed: Vec<GraphRelation> = input.relations.into_iter().map(GraphRelation::from).collect();
    let notices = store.knowledge_graph().delete_relations(&removed)?;
    Ok(done("Relations deleted successfully")?.with_notices(notices))
}

fn read_graph(store: &Store, _: NoInput) -> Result<Answer> {
    graph_answer(store.knowledge_graph().read()?)
}

fn search_nodes(store: &Store, input: QueryInput) -> Result<Answer> {
    graph_answer(store.knowledge_graph().search(&input.query)?)
}

fn open_nodes(store: &Store, input: NamesInput) -> Result<Answer> {
    graph_answer(store.knowledge_graph().open(&input.names)?)
}
