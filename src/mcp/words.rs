//! Owns the words in which mistakes are told to agents: arguments of the wrong form in terms of JSON, and tools where a
//! person is told of commands.

use serde_json::{Map, Value};

/// What a sentence for a person says of commands, what one for an agent says where our own tools are served, and what
/// where they are not.
const COMMANDS: [(&str, &str, &str); 18] = [
    ("; `sidenote list` shows them", "; list_notes and search_notes show them", ""),
    ("`sidenote inspect NOTE` shows a note's", "read_note gives a note's", "leave it out"),
    ("`sidenote history` lists what was done", "read_session with the action audit lists what was done", ""),
    (", as `sidenote history` shows it", ", as read_session with the action audit shows it", ""),
    (
        "`sidenote memory list --forgotten` shows what is",
        "search_notes with include: [\"forgotten\"] shows what is",
        "",
    ),
    ("`sidenote handoff store` keeps one", "session with the action handoff_store keeps one", ""),
    ("`sidenote backups` lists them; or give the path of one", "ask the user which one is meant", ""),
    ("; `sidenote index` embeds", "", ""),
    ("`sidenote tags` lists them", "list_notes with what: \"tags\" lists them", ""),
    ("`sidenote properties` lists them", "list_notes with what: \"properties\" lists them", ""),
    (
        "`sidenote memory search` finds what is near",
        "search_notes finds what is near",
        "a search finds what is near",
    ),
    ("is followed with --partial-properties", "was left as it is", "was left as it is"),
    ("; `sidenote model use minilm` sets one", "", ""),
    ("choose another text, or --force", "choose another text", "choose another text"),
    ("choose another id, or --force", "choose another id", "choose another id"),
    (" (--allow-duplicate)", " (allow_duplicate: true)", ""),
    (
        "start sidenote without --read-only to change notes",
        "the user started this server with --read-only",
        "the user started this server with --read-only",
    ),
    ("--limit shows more", "limit shows more", "limit shows more"),
];

/// Says to an agent what is said to a person: with the names of tools instead of commands.
pub(super) fn for_agents(text: &str, is_ours: bool) -> String {
    let mut text = text.to_owned();
    for (command, ours, others) in COMMANDS {
        if text.contains(command) {
            text = text.replace(command, if is_ours { ours } else { others });
        }
    }
    // What only a person can run.
    for (command, asked) in
        [("run: sidenote ", "ask the user to run: sidenote "), ("`sidenote ", "the user's `sidenote ")]
    {
        if text.contains(command) && !text.contains(asked) {
            text = text.replace(command, asked);
        }
    }
    text
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
