//! Error messages for agents: arguments of the wrong form described in terms of JSON, and hints that name only the tools
//! that are served.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sidenote_base::error::Error;
use sidenote_language::graphemes::shortened;
use sidenote_markdown::control::plain_lines;

use crate::reply_limit;

/// The longest error message, in characters.
const MAX_MESSAGE: usize = 1_000;

/// The names of the tools that a server offers.
#[derive(Debug, Clone, Default)]
pub struct ServedTools(BTreeSet<&'static str>);

impl ServedTools {
    /// Returns whether the server offers a tool.
    pub fn has(&self, tool: &str) -> bool {
        self.0.contains(tool)
    }
}

impl FromIterator<&'static str> for ServedTools {
    fn from_iter<I: IntoIterator<Item = &'static str>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

/// Returns the message and hint of an error for an agent. The hint names only tools that `is_served` accepts.
pub fn message_for_agent(error: &Error, is_served: impl Fn(&str) -> bool) -> String {
    let mut message = error.to_string();
    // The message can quote an argument of any length.
    if reply_limit::truncate(&mut message, MAX_MESSAGE) {
        message.push('…');
    }
    match error.wording().map(|hint| hint.for_agent(is_served)).filter(|hint| !hint.is_empty()) {
        // A suggestion ends with a question.
        Some(hint) if message.ends_with('?') => format!("{message} {hint}"),
        Some(hint) => format!("{message}. {hint}"),
        None => message,
    }
}

/// Leaves a folder out of a text, so that its files are named by their paths in it.
pub fn without_root(text: &str, root: &str) -> String {
    text.replace(&format!("{root}/"), "").replace(root, "the vault")
}

/// Replaces control characters in an error reply, because it can quote what the caller gave.
pub fn replace_controls(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain_lines(text),
        Value::Array(items) => items.iter_mut().for_each(replace_controls),
        Value::Object(fields) => fields.values_mut().for_each(replace_controls),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Describes the first argument that does not match a schema, and what the schema expects. Returns `None` if all match.
pub fn schema_mismatch(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Option<String> {
    object_mismatch("", schema, arguments)
}

fn object_mismatch(field: &str, schema: &Map<String, Value>, given: &Map<String, Value>) -> Option<String> {
    let at = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required.filter_map(Value::as_str).find(|name| !given.contains_key(*name));
    if let Some(name) = missing {
        return Some(format!("{} is missing", at(name)));
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").and_then(Value::as_object);
    given.iter().find_map(|(name, value)| {
        let schema = fields.and_then(|fields| fields.get(name)).and_then(Value::as_object).or(others)?;
        value_mismatch(&at(name), schema, value)
    })
}

fn value_mismatch(field: &str, schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let mismatch =
        |expected: &str| Some(format!("{field} is {}; expected {expected}", describe_value(value)));
    for form in ["anyOf", "oneOf"] {
        let Some(Value::Array(shapes)) = schema.get(form) else { continue };
        let shapes: Vec<&Map<String, Value>> = shapes.iter().filter_map(Value::as_object).collect();
        if shapes.iter().any(|shape| value_mismatch(field, shape, value).is_none()) {
            return None;
        }
        let expected: Vec<String> = shapes.iter().map(|shape| describe_schema(shape)).collect();
        return mismatch(&expected.join(" or "));
    }
    if !matches_schema(schema, value) {
        // An optional field may be null.
        return if value.is_null() { None } else { mismatch(&describe_schema(schema)) };
    }
    match value {
        Value::Object(fields) => object_mismatch(field, schema, fields),
        Value::Array(items) => {
            let item = schema.get("items").and_then(Value::as_object)?;
            let mut items = items.iter().enumerate();
            items.find_map(|(at, value)| value_mismatch(&format!("{field}[{at}]"), item, value))
        }
        _ => None,
    }
}

/// Returns whether a value has the type, or is one of the words, that a schema names.
fn matches_schema(schema: &Map<String, Value>, value: &Value) -> bool {
    if let Some(Value::Array(words)) = schema.get("enum") {
        let text = value.as_str();
        return words.iter().any(|word| {
            word == value
                || word.as_str().zip(text).is_some_and(|(word, text)| word.eq_ignore_ascii_case(text))
        });
    }
    if let Some(only) = schema.get("const") {
        return only == value;
    }
    let kinds = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return true,
    };
    kinds.into_iter().any(|kind| match kind {
        "string" => value.is_string(),
        // All integers in our schemas are counts.
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    })
}

/// Describes the values that a schema accepts.
fn describe_schema(schema: &Map<String, Value>) -> String {
    if let Some(Value::Array(words)) = schema.get("enum") {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return words.join(", ");
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        _ => "",
    };
    match kind {
        "string" => "a string",
        "integer" => "a non-negative integer",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        _ => "another type",
    }
    .to_owned()
}

/// Describes a value in a message: short values as they are, containers by their type.
fn describe_value(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    match value {
        Value::String(text) => {
            format!("\"{}\"", shortened(text, MAX_CHARS))
        }
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}
