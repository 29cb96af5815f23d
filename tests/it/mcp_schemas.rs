//! Tests that the schemas of all tools are such that every client takes them: they are checked by models of what OpenAI's
//! strict mode, Gemini's function declarations, converters such as that of ADK, and editors such as Cursor refuse.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::mcp_client::Client;
use crate::support::TestVault;

/// All toolsets.
pub(crate) const SETS: [&str; 10] =
    ["notes", "more", "connector", "mem", "longterm", "vector", "tiered", "rulebook", "graph", "memories"];

type Check = fn(&str, &Value) -> Result<(), String>;

/// The models, each with the name of the client.
const MODELS: [(&str, Check); 4] =
    [("openai", openai), ("gemini", gemini), ("adk", adk), ("cursor", editors)];

fn object<'v>(schema: &'v Value, place: &str) -> Result<&'v Map<String, Value>, String> {
    schema.as_object().ok_or_else(|| format!("{place} is {schema}, no object"))
}

/// Calls `check` with the schema of an object, its properties and the items of its lists, and the place and depth of each.
#[expect(clippy::type_complexity, reason = "a check of one place of a schema")]
fn each(
    schema: &Value,
    place: &str,
    depth: usize,
    check: &mut dyn FnMut(&Map<String, Value>, &str, usize) -> Result<(), String>,
) -> Result<(), String> {
    let fields = object(schema, place)?;
    check(fields, place, depth)?;
    for (name, field) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        each(field, &format!("{place}.{name}"), depth + 1, check)?;
    }
    match fields.get("items") {
        Some(items) => each(items, &format!("{place}[]"), depth + 1, check),
        None => Ok(()),
    }
}

fn refuse(is_wrong: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_wrong { Err(what()) } else { Ok(()) }
}

fn is_name(text: &str, most: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=most).contains(&text.len())
        && text.chars().all(fits)
        && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// Strict mode: the converter closes every object and requires all its properties, so an object without properties can hold
/// nothing, and one with other properties is refused.
fn openai(tool: &str, schema: &Value) -> Result<(), String> {
    const KEYS: [&str; 10] = [
        "type",
        "description",
        "enum",
        "properties",
        "required",
        "items",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
    ];
    refuse(!is_name(tool, 64), || format!("the name {tool:?}"))?;
    let (mut properties, mut words) = (0, 0);
    each(schema, "arguments", 0, &mut |fields, place, depth| {
        refuse(depth > 5, || format!("{place} nests {depth} levels deep"))?;
        let unknown = fields.keys().find(|key| !KEYS.contains(&key.as_str()));
        refuse(unknown.is_some(), || format!("{place} has {}", unknown.map_or("", String::as_str)))?;
        let kind = fields.get("type").and_then(Value::as_str);
        refuse(kind.is_none(), || format!("{place} has no type"))?;
        let inner = fields.get("properties").and_then(Value::as_object);
        refuse(kind == Some("object") && inner.is_none(), || format!("{place} has no properties"))?;
        refuse(depth > 0 && inner.is_some_and(Map::is_empty), || format!("{place} can hold nothing"))?;
        properties += inner.map_or(0, Map::len);
        words += fields.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        Ok(())
    })?;
    refuse(properties > 100, || format!("{properties} properties"))?;
    refuse(words > 500, || format!("{words} words of enumerations"))
}

/// Function declarations, a part of OpenAPI 3.0: one type each, objects with properties, lists with items, words that are
/// texts. A tool without arguments is declared without parameters.
fn gemini(tool: &str, schema: &Value) -> Result<(), String> {
    const KEYS: [&str; 12] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "properties",
        "required",
        "minItems",
        "minimum",
        "maximum",
    ];
    const KINDS: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
    refuse(!is_name(tool, 63), || format!("the name {tool:?}"))?;
    each(schema, "parameters", 0, &mut |fields, place, depth| {
        let unknown = fields.keys().find(|key| !KEYS.contains(&key.as_str()));
        refuse(unknown.is_some(), || {
            format!("{place}: unknown name {}", unknown.map_or("", String::as_str))
        })?;
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        refuse(!KINDS.contains(&kind), || format!("{place}.type: {:?}", fields.get("type")))?;
        let properties = fields.get("properties").and_then(Value::as_object);
        let is_empty = properties.is_none_or(Map::is_empty) && depth > 0;
        refuse(kind == "object" && is_empty, || format!("{place}.properties: should be non-empty"))?;
        refuse(kind != "object" && properties.is_some(), || format!("{place}.properties: only for objects"))?;
        refuse(kind == "array" && !fields.contains_key("items"), || format!("{place}.items: missing field"))?;
        refuse(kind != "array" && fields.contains_key("items"), || format!("{place}.items: only for lists"))?;
        for word in fields.get("enum").and_then(Value::as_array).into_iter().flatten() {
            let is_word = word.as_str().is_some_and(|word| !word.is_empty()) && kind == "string";
            refuse(!is_word, || format!("{place}.enum: {word}"))?;
        }
        for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
            let is_known =
                name.as_str().is_some_and(|name| properties.is_some_and(|all| all.contains_key(name)));
            refuse(!is_known, || format!("{place}.required: property {name} is not defined"))?;
        }
        Ok(())
    })
}

/// Converters read the one type of each property; what has none is dropped, and of several types the first one is kept.
fn adk(_: &str, schema: &Value) -> Result<(), String> {
    each(schema, "schema", 0, &mut |fields, place, _| {
        refuse(!fields.get("type").is_some_and(Value::is_string), || format!("{place} has not one type"))?;
        let union =
            ["anyOf", "oneOf", "allOf", "$ref", "const"].iter().find(|key| fields.contains_key(**key));
        refuse(union.is_some(), || format!("{place} has {}", union.unwrap_or(&"")))
    })
}

/// The name of the server and the tool together have at most 60 characters, and names of properties 64.
fn editors(tool: &str, schema: &Value) -> Result<(), String> {
    let full = format!("sidenote:{tool}");
    refuse(full.len() > 60, || format!("the name {full:?}"))?;
    each(schema, "schema", 0, &mut |fields, place, _| {
        let names = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        let long = names.map(|(name, _)| name).find(|name| !is_name(name, 64));
        refuse(long.is_some(), || format!("{place} has the property {:?}", long.map_or("", String::as_str)))
    })
}

/// Lists the tools of some toolsets.
pub(crate) fn listed(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({}))["tools"].as_array().unwrap().clone()
}

#[test]
fn every_client_takes_the_schema_of_every_tool() {
    let vault = TestVault::new(&[]);
    let mut client = Client::start(&vault, &["--toolset", &SETS.join(",")]);
    let tools = listed(&mut client);
    client.finish();
    let mut names = BTreeSet::new();
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name}");
        let description = tool["description"].as_str().unwrap();
        assert!((10..=1_024).contains(&description.chars().count()), "{name}: {description}");
        for (client, check) in MODELS {
            assert_eq!(check(name, &tool["inputSchema"]), Ok(()), "{client}: {name}");
        }
    }
    assert_eq!(names.len(), 89);
    // Some clients show 40 tools.
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    assert!(listed(&mut client).len() <= 40);
    client.finish();
}

#[test]
fn the_models_of_clients_refuse_what_the_clients_refuse() {
    let object = |name: &str, field: Value| json!({ "type": "object", "properties": { name: field } });
    let cases = [
        ("x", object("value", json!({})), "openai gemini adk"),
        ("x", object("value", json!(true)), "openai gemini adk cursor"),
        ("x", object("value", json!({ "type": ["string", "null"] })), "openai gemini adk"),
        ("x", object("map", json!({ "type": "object" })), "openai gemini"),
        ("x", object("map", json!({ "type": "object", "properties": {} })), "openai gemini"),
        (
            "x",
            object("map", json!({ "type": "object", "additionalProperties": { "type": "string" } })),
            "openai gemini",
        ),
        ("x", object("list", json!({ "type": "array" })), "gemini"),
        ("x", object("one", json!({ "anyOf": [{ "type": "string" }] })), "openai gemini adk"),
        ("x", object("word", json!({ "type": "string", "enum": ["a", ""] })), "gemini"),
        ("x", object("date", json!({ "type": "string", "default": "x" })), "openai gemini"),
        ("x", object(&"long".repeat(20), json!({ "type": "string" })), "cursor"),
        ("x", json!({ "type": "object", "properties": {}, "required": ["a"] }), "gemini"),
        ("no dots.here", json!({ "type": "object", "properties": {} }), "openai gemini"),
        ("x", json!({ "type": "object", "properties": {} }), ""),
    ];
    let mut refused = 0;
    for (name, schema, expected) in cases {
        let by: Vec<&str> = MODELS
            .iter()
            .filter(|(_, check)| check(name, &schema).is_err())
            .map(|(client, _)| *client)
            .collect();
        assert_eq!(by.join(" "), expected, "{schema}");
        refused += by.len();
    }
    assert_eq!(refused, 27);
}
