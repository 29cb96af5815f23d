//! Arguments as clients send them, converted to what the schema of a tool asks for wherever they can mean only one thing:
//! numbers as text, lists as JSON text, single values for lists, other spellings of a word, `""` and `null` for what is not
//! given. What can mean several things, or nothing, stays as it is, and the tool says what it expects.

use serde_json::{Map, Number, Value};
use sidenote_markdown::path::typed_path;
use sidenote_store::nearest;

/// The key of a schema of our own that says that an empty text has a meaning of its own.
const EMPTY_COUNTS: &str = "x-empty-counts";
/// The key of a schema of our own that says that commas separate the items of a list, because no item can contain one.
const COMMA_LIST: &str = "x-comma-list";
/// The key of a schema of our own that says that a text can be JSON, so that other values are given as their JSON.
const JSON_TEXT: &str = "x-json-text";
/// The key of a schema of our own that says that a text is a folder or a path from the root of the vault.
const PLACE: &str = "x-place";
/// The key of a schema of our own that says that an object may have any property, with any value.
const OPEN_OBJECT: &str = "x-open-object";
/// The largest integer of which a floating-point number of 64 bits has all digits.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Pairs of an alias of an argument and its name.
pub(super) type Aliases = [(&'static str, &'static str)];

/// Converts arguments to the types of a schema of an object, and gives those with an alias their names. Arguments that are not
/// given are removed, and others than those of the schema stay as they are.
pub(super) fn normalize(
    schema: &Map<String, Value>,
    aliases: &[&Aliases],
    arguments: &mut Map<String, Value>,
) {
    if is_set(schema, OPEN_OBJECT) {
        return;
    }
    aliases.iter().for_each(|aliases| rename_aliases(schema, aliases, arguments));
    arguments.retain(|_, value| !value.is_null());
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, field) in fields {
        let (Some(value), Some(field)) = (arguments.get_mut(name), field.as_object()) else { continue };
        if is_absent(field, value) && !is_required(schema, name) {
            arguments.remove(name);
        } else {
            convert(field, aliases, value);
        }
    }
}

/// Gives arguments with an alias the names of a schema.
pub(super) fn rename_aliases(
    schema: &Map<String, Value>,
    aliases: &Aliases,
    arguments: &mut Map<String, Value>,
) {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return };
    for (alias, name) in aliases {
        if fields.contains_key(*name)
            && !fields.contains_key(*alias)
            && !arguments.contains_key(*name)
            && let Some(value) = arguments.remove(*alias)
        {
            arguments.insert((*name).to_owned(), value);
        }
    }
}

/// An argument that a schema does not have.
#[derive(Debug)]
pub(super) struct UnknownArgument {
    /// Its name, with the path to it.
    pub(super) place: String,
    /// The names that the schema has there.
    pub(super) known: Vec<String>,
}

impl UnknownArgument {
    /// Returns a question with the nearest known name, or an empty text if none is near.
    pub(super) fn suggestion(&self) -> String {
        let name = self.place.rsplit('.').next().unwrap_or_default();
        nearest(name, self.known.iter().map(String::as_str))
    }
}

/// Returns the arguments that a schema does not have.
pub(super) fn unknown_arguments(
    schema: &Map<String, Value>,
    arguments: &Map<String, Value>,
) -> Vec<UnknownArgument> {
    let fields = schema.get("properties").and_then(Value::as_object).filter(|_| !is_set(schema, OPEN_OBJECT));
    let Some(fields) = fields else { return Vec::new() };
    let mut unknown = Vec::new();
    for (name, value) in arguments {
        let Some(field) = fields.get(name) else {
            unknown.push(UnknownArgument { place: name.clone(), known: fields.keys().cloned().collect() });
            continue;
        };
        let mut add = |schema: Option<&Value>, value: &Value, place: String| {
            let Some((schema, value)) = schema.and_then(Value::as_object).zip(value.as_object()) else {
                return;
            };
            let inner = unknown_arguments(schema, value).into_iter();
            unknown.extend(
                inner.map(|inner| UnknownArgument { place: format!("{place}.{}", inner.place), ..inner }),
            );
        };
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    add(field.get("items"), item, format!("{name}[{at}]"));
                }
            }
            value => add(Some(field), value, name.clone()),
        }
    }
    unknown
}

fn is_set(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// Returns whether a value stands for an argument that is not given: an empty text, or spaces where no text is expected.
fn is_absent(schema: &Map<String, Value>, value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    let is_free_text = kind_of(schema) == "string" && !schema.contains_key("enum");
    let text = if is_free_text { text } else { text.trim() };
    text.is_empty() && !is_set(schema, EMPTY_COUNTS)
}

fn kind_of(schema: &Map<String, Value>) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn convert(schema: &Map<String, Value>, aliases: &[&Aliases], value: &mut Value) {
    let converted = match kind_of(schema) {
        "string" => match schema.get("enum").and_then(Value::as_array) {
            Some(words) => to_word(words, value),
            None => to_text(schema, value),
        },
        "integer" => to_number(value).and_then(|number| whole(&number)).map(Value::Number),
        "number" => to_number(value).map(Value::Number),
        "boolean" => to_boolean(value),
        "array" => to_list(schema, value),
        "object" => to_object(value),
        _ => None,
    };
    if let Some(converted) = converted {
        *value = converted;
    }
    let items = schema.get("items").and_then(Value::as_object);
    match value {
        Value::Array(list) => {
            let Some(item) = items else { return };
            list.retain(|value| !value.is_null() && !is_absent(item, value));
            list.iter_mut().for_each(|value| convert(item, aliases, value));
        }
        Value::Object(fields) if kind_of(schema) == "object" => normalize(schema, aliases, fields),
        _ => {}
    }
}

/// Returns the only word of a list that a text names, whatever its case and separators, the order of its parts, and the `s` of
/// a plural.
fn to_word(words: &[Value], value: &Value) -> Option<Value> {
    let is_separator = |c: char| matches!(c, '_' | '-') || c.is_whitespace();
    let joined = |text: &str| text.replace(is_separator, "");
    let in_order = |text: &str| -> Vec<String> {
        let parts = text.split(is_separator).filter(|part| !part.is_empty());
        let mut parts: Vec<String> = parts.map(|part| part.trim_end_matches('s').to_owned()).collect();
        parts.sort_unstable();
        parts
    };
    let single = match value {
        Value::Array(items) => match items.as_slice() {
            [one] => one,
            _ => return None,
        },
        value => value,
    };
    let wanted = single.as_str()?.to_lowercase();
    let only = |is_meant: &dyn Fn(&str) -> bool| {
        let mut found =
            words.iter().filter(|word| word.as_str().is_some_and(|word| is_meant(&word.to_lowercase())));
        found.next().filter(|_| found.next().is_none()).cloned()
    };
    only(&|word| joined(word) == joined(&wanted))
        .or_else(|| only(&|word| in_order(word) == in_order(&wanted)))
}

fn to_text(schema: &Map<String, Value>, value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if is_set(schema, PLACE) => {
            let place = typed_path(text);
            // A slash at the end says that a folder is meant.
            let slash = if text.ends_with(['/', '\\']) || place.is_empty() { "/" } else { "" };
            Some(Value::from(format!("{place}{slash}")))
        }
        Value::Number(_) | Value::Bool(_) => Some(Value::from(value.to_string())),
        Value::Array(_) | Value::Object(_) if is_set(schema, JSON_TEXT) => {
            Some(Value::from(value.to_string()))
        }
        Value::Array(items) => match items.as_slice() {
            [Value::String(only)] => Some(Value::from(only.as_str())),
            _ => None,
        },
        Value::Null | Value::String(_) | Value::Object(_) => None,
    }
}

fn to_number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => {
            let text = text.trim();
            let integer = text.parse::<i64>().map(Number::from).ok();
            integer.or_else(|| {
                text.parse().ok().filter(|number: &f64| number.is_finite()).and_then(Number::from_f64)
            })
        }
        _ => None,
    }
}

/// Returns a number as an integer if it is one, such as `2.0`.
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= LARGEST_EXACT)?;
    #[expect(clippy::cast_possible_truncation, reason = "the number is whole and within the bounds")]
    let integer = float as i64;
    Some(Number::from(integer))
}

fn to_boolean(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.trim().to_lowercase(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    match text.as_str() {
        "true" | "yes" | "1" => Some(Value::Bool(true)),
        "false" | "no" | "0" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn to_list(schema: &Map<String, Value>, value: &Value) -> Option<Value> {
    let items = schema.get("items").and_then(Value::as_object);
    let is_of_objects = items.is_some_and(|items| kind_of(items) == "object");
    let is_split = is_set(schema, COMMA_LIST) || items.is_some_and(|items| items.contains_key("enum"));
    match value {
        Value::Array(list)
            if is_split && list.iter().any(|item| item.as_str().is_some_and(|text| text.contains(','))) =>
        {
            let split = |item: &Value| match item {
                Value::String(text) => split_at_commas(text),
                other => vec![other.clone()],
            };
            Some(list.iter().flat_map(split).collect())
        }
        Value::String(text) => {
            // The name of a note can begin with a bracket, so only a list of what the schema asks for counts.
            let fits = |item: &Value| if is_of_objects { item.is_object() } else { item.is_string() };
            match serde_json::from_str::<Value>(text.trim()) {
                Ok(Value::Array(list)) if list.iter().all(fits) => Some(Value::Array(list)),
                Ok(Value::Object(one)) if is_of_objects => Some(Value::Array(vec![Value::Object(one)])),
                _ if is_of_objects => None,
                _ if is_split => Some(Value::Array(split_at_commas(text))),
                _ => Some(Value::Array(vec![value.clone()])),
            }
        }
        Value::Object(_) if is_of_objects => Some(Value::Array(vec![value.clone()])),
        Value::Number(_) | Value::Bool(_) if !is_of_objects => Some(Value::Array(vec![value.clone()])),
        _ => None,
    }
}

/// Splits a text such as `a, b` or `['a', 'b']` into its items.
fn split_at_commas(text: &str) -> Vec<Value> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let items = inner.split(',').map(|item| item.trim().trim_matches(['"', '\'']).trim());
    items.filter(|item| !item.is_empty()).map(Value::from).collect()
}

fn to_object(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object),
        _ => None,
    }
}
