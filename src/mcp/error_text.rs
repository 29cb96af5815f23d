//! Error messages for agents: arguments of the wrong form described in terms of JSON, and hints that name only the tools
//! that are served.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::mcp::reply_limit;
use crate::text::control::plain_lines;

/// A sentence that says what is wrong has so many characters at most.
const LONGEST_ERROR: usize = 1_000;

/// The names of the tools of a server.
#[derive(Debug, Default)]
pub(super) struct Served(BTreeSet<&'static str>);

impl Served {
    /// Says whether the server has a tool.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.0.contains(tool)
    }
}

impl FromIterator<&'static str> for Served {
    fn from_iter<I: IntoIterator<Item = &'static str>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

/// Returns the message and hint of an error for an agent whose server has the tools that `is_served` accepts.
pub(super) fn sentence(error: &Error, is_served: impl Fn(&str) -> bool) -> String {
    let mut told = error.to_string();
    // The message can quote an argument of any length.
    if reply_limit::cut(&mut told, LONGEST_ERROR) {
        told.push('…');
    }
    match error.wording().map(|hint| hint.for_agent(is_served)).filter(|hint| !hint.is_empty()) {
        Some(hint) => format!("{told}. {hint}"),
        None => told,
    }
}

/// Replaces control characters in an error reply, because it can quote what the caller gave.
pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain_lines(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Tells which argument does not have the form that a schema asks for, and which it is; nothing where all have it.
pub(super) fn mismatch(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Option<String> {
    in_object("", schema, arguments)
}

fn in_object(place: &str, schema: &Map<String, Value>, given: &Map<String, Value>) -> Option<String> {
    let at = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required.filter_map(Value::as_str).find(|name| !given.contains_key(*name));
    if let Some(name) = missing {
        return Some(format!("{} is missing", at(name)));
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").and_then(Value::as_object);
    given.iter().find_map(|(name, value)| {
        let field = fields.and_then(|fields| fields.get(name)).and_then(Value::as_object).or(others)?;
        in_value(&at(name), field, value)
    })
}

fn in_value(place: &str, schema: &Map<String, Value>, value: &Value) -> Option<String> {
    for form in ["anyOf", "oneOf"] {
        let Some(Value::Array(shapes)) = schema.get(form) else { continue };
        let shapes: Vec<&Map<String, Value>> = shapes.iter().filter_map(Value::as_object).collect();
        if shapes.iter().any(|shape| in_value(place, shape, value).is_none()) {
            return None;
        }
        let takes: Vec<String> = shapes.iter().map(|shape| taken(shape)).collect();
        return Some(format!("{place} is {}; it takes {}", shown(value), takes.join(" or ")));
    }
    if !fits(schema, value) {
        // A field that need not be there is as good as null.
        return (!value.is_null())
            .then(|| format!("{place} is {}; it takes {}", shown(value), taken(schema)));
    }
    match value {
        Value::Object(fields) => in_object(place, schema, fields),
        Value::Array(items) => {
            let item = schema.get("items").and_then(Value::as_object)?;
            items.iter().enumerate().find_map(|(at, value)| in_value(&format!("{place}[{at}]"), item, value))
        }
        _ => None,
    }
}

/// Says whether a value is of the type, or one of the words, that a schema names.
fn fits(schema: &Map<String, Value>, value: &Value) -> bool {
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
        // All of ours count something.
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    })
}

/// Says what a schema takes.
fn taken(schema: &Map<String, Value>) -> String {
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
        "string" => "a text",
        "integer" => "a whole number from 0",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        _ => "something else",
    }
    .to_owned()
}

/// Shows a value in a sentence.
fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    match value {
        Value::String(text) => {
            let short: String = text.chars().take(MOST).collect();
            let rest = if short.len() < text.len() { "…" } else { "" };
            format!("\"{short}{rest}\"")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}
