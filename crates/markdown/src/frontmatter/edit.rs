//! Edits of properties with the smallest diff (docs/spec/obsidian.md 5.6).
//!
//! Each result is parsed again and checked before it is returned: only the property may differ. The text must be
//! identical to the file's bytes; the caller refuses files that are not UTF-8.

use serde_json::Value;

use super::scalar::{format_key, format_value};
use super::{Frontmatter, Property, Style, list, named, read};
use crate::edit::{Edit, Remark, apply};
use crate::escapes::{QuoteStyle, UnquotedString};
use crate::line::{Lines, line_at};
use crate::path;
use crate::path::NotePath;
use crate::span::Span;

/// The reason why an edit was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A refusal code (docs/spec/obsidian.md 4.7) or another code for programs.
    pub code: &'static str,
    /// The message for the user.
    pub message: String,
    /// The offset of the byte that it refers to.
    pub at: usize,
}

impl Refusal {
    /// Creates a refusal for the byte at `at`.
    pub fn new(code: &'static str, at: usize, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), at }
    }

    /// Converts the refusal to a remark for a file with this text.
    pub fn remark(&self, path: NotePath, text: &str) -> Remark {
        let lines = Lines::new(text);
        let line = lines.of(self.at);
        let column = 1 + self.at.saturating_sub(lines.start(line));
        Remark { code: self.code.to_owned(), path, line, column, message: self.message.clone() }
    }
}

/// Sets a property. A new property is added before the closing line, and a new block at the top of the note.
///
/// A scalar keeps its quotes if the new value can be in them, and a list keeps its style and the bytes of unchanged
/// items. A list that replaces another value is written with one item per line. A mapping and an empty list are written
/// in brackets. Strings are quoted if they need it; dates of the two formats that Obsidian writes do not. There are no
/// edits if the property has this value already.
///
/// # Errors
/// Refuses the cases of docs/spec/obsidian.md 5.6, and entries with anchors, aliases or tags.
pub fn set(text: &str, key: &str, value: &Value) -> Result<Vec<Edit>, Refusal> {
    let Some(block) = open(text)? else {
        return create(text, key, value);
    };
    match find(&block, key)? {
        None => insert(text, &block, key, value),
        Some(property) if same(&property.value, value) => Ok(Vec::new()),
        Some(property) => {
            editable(property)?;
            let edits = replace(text, property, value)?;
            verified(text, &block, edits, with(&block, property, value))
        }
    }
}

/// Removes a property with all its lines. Comments above it stay. There are no edits if the property does not exist.
///
/// # Errors
/// Refuses the cases of docs/spec/obsidian.md 5.6, and entries with anchors, aliases or tags.
pub fn unset(text: &str, key: &str) -> Result<Vec<Edit>, Refusal> {
    let Some(block) = open(text)? else {
        return Ok(Vec::new());
    };
    let Some(property) = find(&block, key)? else {
        return Ok(Vec::new());
    };
    editable(property)?;
    let start = list::line_start(text, property.key_span.start);
    let indent = Span::new(start, property.key_span.start).of(text);
    let (tail, end) = line_at(text, property.span.end);
    if !indent.trim().is_empty() || !tail.trim().is_empty() {
        return Err(style(property, "shares its lines with another value"));
    }
    let mut expected = values(&block);
    expected.retain(|(name, _)| *name != property.key);
    verified(text, &block, vec![Edit::remove(Span::new(start, end))], expected)
}

/// Adds items to the end of a list. A single value becomes the first item of a new list, and null an empty list; a
/// missing property is created. Items are added even if the list already contains them.
///
/// # Errors
/// Refuses mappings and text of several lines, and what [`set`] refuses.
pub fn add(text: &str, key: &str, items: &[Value]) -> Result<Vec<Edit>, Refusal> {
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let whole = Value::Array(items.to_vec());
    let Some(block) = open(text)? else {
        return create(text, key, &whole);
    };
    let Some(property) = find(&block, key)? else {
        return insert(text, &block, key, &whole);
    };
    editable(property)?;
    let mut list = match &property.value {
        Value::Array(old) => old.clone(),
        Value::Null => Vec::new(),
        Value::Object(_) => return Err(style(property, "is a mapping, not a list")),
        value => vec![value.clone()],
    };
    let is_single = list.len() == 1 && !property.value.is_array();
    list.extend_from_slice(items);
    let new = Value::Array(list);
    let edits =
        if is_single { extend_single(text, property, items)? } else { replace(text, property, &new)? };
    verified(text, &block, edits, with(&block, property, &new))
}

/// Removes every item of a list that has this value. A single value that has it becomes an empty list. There are no
/// edits if there is none.
///
/// # Errors
/// Refuses what [`set`] refuses.
pub fn remove_item(text: &str, key: &str, value: &Value) -> Result<Vec<Edit>, Refusal> {
    remove_items(text, key, |item| same(item, value))
}

/// Removes every item of a list for which `goes` returns true, like [`remove_item`].
///
/// # Errors
/// Refuses what [`set`] refuses.
pub fn remove_items(text: &str, key: &str, goes: impl Fn(&Value) -> bool) -> Result<Vec<Edit>, Refusal> {
    let Some(block) = open(text)? else {
        return Ok(Vec::new());
    };
    let Some(property) = find(&block, key)? else {
        return Ok(Vec::new());
    };
    let kept: Vec<Value> = match &property.value {
        Value::Array(items) => {
            let kept: Vec<Value> = items.iter().filter(|item| !goes(item)).cloned().collect();
            if kept.len() == items.len() {
                return Ok(Vec::new());
            }
            kept
        }
        Value::Null | Value::Object(_) => return Ok(Vec::new()),
        value if goes(value) => Vec::new(),
        _ => return Ok(Vec::new()),
    };
    editable(property)?;
    let new = Value::Array(kept);
    let edits = replace(text, property, &new)?;
    verified(text, &block, edits, with(&block, property, &new))
}

/// Renames a property. The new name can differ from the old one only in case.
///
/// # Errors
/// Refuses a missing old name (`not-found`) and an existing new one (`target-exists`), and what [`set`] refuses.
pub fn rename(text: &str, old: &str, new: &str) -> Result<Vec<Edit>, Refusal> {
    legal(new)?;
    let block = open(text)?.unwrap_or_default();
    let Some(property) = find(&block, old)? else {
        let message = format!("the property {old:?} does not exist");
        return Err(Refusal::new("not-found", block.span.start, message));
    };
    if property.key == new {
        return Ok(Vec::new());
    }
    let taken = named(&block.properties, &path::key(new)).find(|other| other.key != property.key);
    if let Some(taken) = taken {
        let message = format!("the property {:?} already exists", taken.key);
        return Err(Refusal::new("target-exists", taken.key_span.start, message));
    }
    editable(property)?;
    let style_of = match property.key_span.of(text).bytes().next() {
        Some(b'"') => Style::Double,
        Some(b'\'') => Style::Single,
        _ => Style::Plain,
    };
    let (quote, margin) = style_of.quote().unwrap_or((QuoteStyle::None, 0));
    let body = Span::new(property.key_span.start + margin, property.key_span.end.saturating_sub(margin));
    let unquoted = UnquotedString::read(body.of(text), body.start, quote);
    if unquoted.is_none_or(|unquoted| unquoted.text != property.key) {
        return Err(style(property, "has a key that is not a simple name"));
    }
    let renamed = |(name, value)| (if name == property.key { new.to_owned() } else { name }, value);
    let expected = values(&block).into_iter().map(renamed).collect();
    let edit = Edit::replace(property.key_span, format_key(new, style_of, false));
    verified(text, &block, vec![edit], expected)
}

/// Returns the line ending that new lines of a file get: that of its first line, or a line feed.
///
/// A carriage return alone ends lines only where the file has no line feed at all.
pub fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        None if text.contains('\r') => "\r",
        _ => "\n",
    }
}

/// Returns whether two values are equal. Numbers are compared by value, whatever their representation.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            // Integers above 2^53 can differ although their floats are equal.
            let whole = |n: &serde_json::Number| n.as_i64().map(i128::from).or(n.as_u64().map(i128::from));
            match (whole(x), whole(y)) {
                (Some(x), Some(y)) => x == y,
                _ => x.as_f64() == y.as_f64(),
            }
        }
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(name, x)| y.get(name).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

// What may be edited.

/// Parses the frontmatter. Returns `None` if there is none.
///
/// # Errors
/// Refuses frontmatter that cannot be edited.
fn open(text: &str) -> Result<Option<Frontmatter>, Refusal> {
    let (Some(block), _) = read(text) else {
        return Ok(None);
    };
    let at = block.yaml_span.start;
    match &block.error {
        Some(error) => {
            Err(Refusal::new("yaml-unparsable", at, format!("the frontmatter cannot be read: {error}")))
        }
        None if block.flow => {
            let message = "the frontmatter is written in braces (flow style), and was left unchanged";
            Err(Refusal::new("yaml-style", at, message))
        }
        None => Ok(Some(block)),
    }
}

/// Finds a property by its name, ignoring case. The exact spelling is preferred.
fn find<'b>(block: &'b Frontmatter, key: &str) -> Result<Option<&'b Property>, Refusal> {
    let wanted = path::key(key);
    let mut found = named(&block.properties, &wanted);
    let (first, second) = (found.next(), found.next());
    let exact = named(&block.properties, &wanted).find(|property| property.key == key);
    match (first, second, exact) {
        (_, _, Some(exact)) => Ok(Some(exact)),
        (Some(first), Some(second), None) => {
            let message = format!("{:?} and {:?} are both {key:?}", first.key, second.key);
            Err(Refusal::new("yaml-style", second.key_span.start, message))
        }
        (first, ..) => Ok(first),
    }
}

fn editable(property: &Property) -> Result<(), Refusal> {
    if property.shared {
        return Err(style(property, "uses an anchor, an alias, a merge or a YAML tag"));
    }
    Ok(())
}

fn style(property: &Property, reason: &str) -> Refusal {
    let message = format!("the property {:?} {reason}, and was left unchanged", property.key);
    Refusal::new("yaml-style", property.span.start, message)
}

/// Checks the name of a new property.
fn legal(key: &str) -> Result<(), Refusal> {
    if path::key(key).is_empty() || key.contains(char::is_control) {
        return Err(Refusal::new("invalid-key", 0, format!("{key:?} is not a valid name for a property")));
    }
    Ok(())
}

// Plans.

/// Formats an entry with its line ends. `indent` is the text before the key.
fn entry(key: &str, value: &Value, indent: &str, line_end: &str) -> String {
    let key = format_key(key, Style::Plain, false);
    match value {
        Value::Null => format!("{indent}{key}:{line_end}"),
        Value::Array(items) if !items.is_empty() => {
            let items = list::lines(&format!("{indent}  "), " ", items, line_end);
            format!("{indent}{key}:{line_end}{items}")
        }
        value => format!("{indent}{key}: {}{line_end}", format_value(value, Style::Plain, false)),
    }
}

/// Plans frontmatter for a file that has none.
fn create(text: &str, key: &str, value: &Value) -> Result<Vec<Edit>, Refusal> {
    legal(key)?;
    let (_, start) = read(text);
    let end = line_end(text);
    let edit = Edit::insert(start, format!("---{end}{}---{end}", entry(key, value, "", end)));
    let none = Frontmatter { span: Span::new(start, start), ..Frontmatter::default() };
    verified(text, &none, vec![edit], vec![(key.to_owned(), value.clone())])
}

/// Plans an entry before the closing line.
fn insert(text: &str, block: &Frontmatter, key: &str, value: &Value) -> Result<Vec<Edit>, Refusal> {
    legal(key)?;
    // All keys of a mapping have the same indentation.
    let first = block.properties.first().map(|first| first.key_span.start);
    let indent = first.map_or("", |first| Span::new(list::line_start(text, first), first).of(text));
    let indent = if indent.trim().is_empty() { indent } else { "" };
    let edit = Edit::insert(block.yaml_span.end, entry(key, value, indent, line_end(text)));
    let mut expected = values(block);
    expected.push((key.to_owned(), value.clone()));
    verified(text, block, vec![edit], expected)
}

/// Plans a new value of an entry.
fn replace(text: &str, property: &Property, value: &Value) -> Result<Vec<Edit>, Refusal> {
    let end = line_end(text);
    let unclear = || style(property, "is written in a style that cannot be edited safely");
    let start = property.value_span;
    match (property.style, value) {
        (Style::BlockList | Style::FlowList, Value::Array(items)) => {
            list::change(text, property, items, end).ok_or_else(unclear)
        }
        (_, Value::Array(items)) if !items.is_empty() => {
            let colon = list::colon(text, property).ok_or_else(unclear)?;
            let (_, next) = line_at(text, property.span.end);
            let lines = list::lines(&item_indent(text, property), " ", items, end);
            let mut edits = clear(text, property, colon);
            edits.push(Edit::insert(next, lines));
            Ok(edits)
        }
        (Style::BlockList | Style::BlockMap, _) => {
            let colon = list::colon(text, property).ok_or_else(unclear)?;
            let mut edits = clear(text, property, colon);
            edits.push(Edit::insert(colon, format!(" {}", format_value(value, Style::Plain, false))));
            Ok(edits)
        }
        (Style::Plain, _) if start.is_empty() => {
            let colon = list::colon(text, property).ok_or_else(unclear)?;
            let formatted = format_value(value, Style::Plain, false);
            let (tail, _) = line_at(text, colon);
            // An existing space after the colon is enough.
            let blank = tail.starts_with(' ') && tail.trim().is_empty();
            Ok(vec![if blank {
                Edit::insert(colon + 1, formatted)
            } else {
                Edit::insert(colon, format!(" {formatted}"))
            }])
        }
        (style, _) => Ok(vec![Edit::replace(start, format_value(value, style, false))]),
    }
}

/// Plans the removal of an entry's value. A comment on the line of the colon is kept.
fn clear(text: &str, property: &Property, colon: usize) -> Vec<Edit> {
    match property.style {
        Style::BlockList | Style::BlockMap => {
            let (_, from) = line_at(text, colon);
            let (_, to) = line_at(text, property.span.end);
            vec![Edit::remove(Span::new(from, to))]
        }
        _ if property.value_span.is_empty() => Vec::new(),
        _ => vec![Edit::remove(Span::new(colon, property.value_span.end))],
    }
}

/// Plans a list with one item per line from a single value, which keeps its bytes and its comment.
fn extend_single(text: &str, property: &Property, items: &[Value]) -> Result<Vec<Edit>, Refusal> {
    let several = property.value_span.of(text).contains(['\n', '\r']);
    let colon = list::colon(text, property).filter(|_| !several && property.style.quote().is_some());
    let Some(colon) = colon else {
        return Err(style(property, "is text of several lines"));
    };
    let (indent, end) = (item_indent(text, property), line_end(text));
    let (_, next) = line_at(text, property.span.end);
    let gap = Span::new(colon, property.value_span.start);
    let lines = list::lines(&indent, " ", items, end);
    Ok(vec![Edit::replace(gap, format!("{end}{indent}- ")), Edit::insert(next, lines)])
}

/// Returns the indentation of a new list under a key: two spaces more than that of the key.
fn item_indent(text: &str, property: &Property) -> String {
    let line = Span::new(list::line_start(text, property.key_span.start), property.key_span.start);
    format!("{}  ", line.of(text))
}

// Checks.

fn values(block: &Frontmatter) -> Vec<(String, Value)> {
    block.properties.iter().map(|property| (property.key.clone(), property.value.clone())).collect()
}

/// Returns the values of a block, with another value of one property.
fn with(block: &Frontmatter, property: &Property, value: &Value) -> Vec<(String, Value)> {
    let changed = |(name, old)| if name == property.key { (name, value.clone()) } else { (name, old) };
    values(block).into_iter().map(changed).collect()
}

/// Applies the edits in memory, and returns them if the parsed result is as expected.
pub(super) fn verified(
    text: &str,
    block: &Frontmatter,
    edits: Vec<Edit>,
    expected: Vec<(String, Value)>,
) -> Result<Vec<Edit>, Refusal> {
    let mismatch = |reason: &str| {
        let message = format!(
            "the edited frontmatter would not be read as requested ({reason}), so the edit was refused"
        );
        Refusal::new("reparse-mismatch", block.span.start, message)
    };
    let changed = apply(text.as_bytes(), &edits).map_err(|error| mismatch(error.message()))?;
    let changed = String::from_utf8(changed).map_err(|_| mismatch("a character is cut"))?;
    let (Some(after), body) = read(&changed) else {
        return Err(mismatch("no frontmatter is left"));
    };
    if let Some(error) = &after.error {
        return Err(mismatch(error));
    }
    if changed.get(body..) != text.get(block.span.end..) {
        return Err(mismatch("the body changes"));
    }
    let found = after.properties.iter().map(|property| (&property.key, &property.value));
    let equal = after.properties.len() == expected.len()
        && found.zip(&expected).all(|(found, wanted)| *found.0 == wanted.0 && same(found.1, &wanted.1));
    if !equal {
        return Err(mismatch("other values are read"));
    }
    Ok(edits)
}
