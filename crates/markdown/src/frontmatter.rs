//! The parser of frontmatter (docs/spec/obsidian.md 5): the properties with their spans, and the tags, aliases and
//! links among them.
//!
//! It never fails. A block that cannot be parsed has an error and no properties. `edit` plans changes.

pub mod edit;
pub mod link;
mod list;
mod scalar;
mod yaml;
mod simple;

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::{Map, Value};

pub use self::scalar::{encode_in, encode_scalar};
use crate::escapes::{QuoteStyle, UnquotedString};
use crate::line::line_at;
use crate::link::Link;
use crate::path;
use crate::span::Span;
use crate::tag::{Tag, tag_name};

/// The YAML block at the top of a note.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Frontmatter {
    /// The block from its opening line to the end of its closing line, both line ends included.
    pub span: Span,
    /// The YAML between the two lines.
    pub yaml_span: Span,
    /// The properties in order; empty if there is an error.
    pub properties: Vec<Property>,
    /// Whether the whole mapping is in flow style (braces), so that edits must be refused.
    pub flow: bool,
    /// The reason why the YAML cannot be parsed, with the line of the file. Properties must not be edited then.
    pub error: Option<String>,
    /// The legal tags in `tags`, in order. The span of a tag is without quotes.
    pub tags: Vec<Tag>,
    /// The aliases, in order.
    pub aliases: Vec<String>,
    /// The property values that are one link each (docs/spec/obsidian.md 2.7), in order.
    pub links: Vec<Link>,
}

/// One entry of the block's mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The key as written, without quotes.
    pub key: String,
    /// The key's bytes, quotes included.
    pub key_span: Span,
    /// The value by the YAML 1.2 core schema; infinities and not-a-number are strings.
    pub value: Value,
    /// The value's bytes with quotes and brackets; an empty span after the colon if there is no value.
    pub value_span: Span,
    /// The style of the value.
    pub style: Style,
    /// The type inferred from key and value (docs/spec/obsidian.md 5.3).
    pub kind: PropertyType,
    /// The entry: key through value and the comment on the value's last line, without the line end.
    pub span: Span,
    /// The scalars of the value, in order.
    pub scalars: Vec<Scalar>,
    /// Whether an anchor, an alias, a merge key or a YAML tag is part of the entry, so that edits must be refused.
    pub shared: bool,
}

/// One scalar in the value of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// The path of the scalar, such as `title`, `list.0` or `a.b`.
    pub path: String,
    /// The bytes with quotes or block header; empty if the value is missing.
    pub span: Span,
    /// The style.
    pub style: Style,
}

/// The style of a YAML node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// A scalar without quotes, or a missing value.
    Plain,
    /// A scalar in single quotes.
    Single,
    /// A scalar in double quotes.
    Double,
    /// A block scalar that keeps its line ends (`|`).
    Literal,
    /// A block scalar that folds its lines (`>`).
    Folded,
    /// A reference to an anchor (`*name`).
    Alias,
    /// A list with one item per line.
    BlockList,
    /// A list in square brackets.
    FlowList,
    /// A mapping with one key per line.
    BlockMap,
    /// A mapping in braces.
    FlowMap,
}

/// The types of properties that Obsidian knows (docs/spec/obsidian.md 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PropertyType {
    /// One line of text, and every value of no other type.
    Text,
    /// A list.
    List,
    /// A number.
    Number,
    /// True or false.
    Checkbox,
    /// `YYYY-MM-DD`.
    Date,
    /// `YYYY-MM-DDTHH:mm`, with or without seconds.
    Datetime,
    /// The tags of the note.
    Tags,
    /// The aliases of the note.
    Aliases,
}

impl PropertyType {
    /// Parses the name of a widget in `types.json` (docs/spec/obsidian.md 1.2).
    pub fn from_widget(name: &str) -> Option<Self> {
        Some(match name {
            "text" => Self::Text,
            "multitext" => Self::List,
            "number" => Self::Number,
            "checkbox" => Self::Checkbox,
            "date" => Self::Date,
            "datetime" => Self::Datetime,
            "tags" => Self::Tags,
            "aliases" => Self::Aliases,
            _ => return None,
        })
    }

    /// Returns the name of the type as replies print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::List => "list",
            Self::Number => "number",
            Self::Checkbox => "checkbox",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Tags => "tags",
            Self::Aliases => "aliases",
        }
    }
}

/// Determines the type of a property by its reserved name, then by the vault's declaration, then by its value
/// (docs/spec/obsidian.md 1.2, 5.3).
pub fn kind_of(key: &str, value: &Value, declared: Option<PropertyType>) -> PropertyType {
    let reserved = [
        ("tags", PropertyType::Tags),
        ("aliases", PropertyType::Aliases),
        ("cssclasses", PropertyType::List),
    ];
    let name = if key.is_ascii() { Cow::Borrowed(key.trim()) } else { Cow::Owned(path::key(key)) };
    if let Some((_, kind)) = reserved.into_iter().find(|(reserved, _)| name.eq_ignore_ascii_case(reserved)) {
        return kind;
    }
    declared.unwrap_or_else(|| match value {
        Value::Bool(_) => PropertyType::Checkbox,
        Value::Number(_) => PropertyType::Number,
        Value::Array(_) => PropertyType::List,
        Value::String(text) if has_shape(text, "0000-00-00") => PropertyType::Date,
        Value::String(text)
            if has_shape(text, "0000-00-00T00:00") || has_shape(text, "0000-00-00T00:00:00") =>
        {
            PropertyType::Datetime
        }
        _ => PropertyType::Text,
    })
}

/// Returns whether `text` matches `shape`, in which `0` matches any digit.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(b, s)| if s == b'0' { b.is_ascii_digit() } else { b == s })
}

/// Parses the frontmatter of a note, and returns it with the offset of the body.
pub fn read(text: &str) -> (Option<Frontmatter>, usize) {
    let start = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let Some((yaml_span, end)) = delimit(text, start) else {
        return (None, start);
    };
    let span = Span::new(start, end);
    let mut frontmatter = Frontmatter { span, yaml_span, ..Frontmatter::default() };
    let yaml = yaml_span.of(text);
    match simple::read(yaml, yaml_span.start).map_or_else(|| yaml::read(yaml, yaml_span.start), Ok) {
        Ok(block) => {
            frontmatter.tags = tags(text, &block.properties);
            frontmatter.aliases = aliases(&block.properties);
            frontmatter.properties = block.properties;
            frontmatter.links = block.links;
            frontmatter.flow = block.flow;
        }
        Err(error) => frontmatter.error = Some(error),
    }
    (Some(frontmatter), end)
}

/// Finds the YAML between the delimiters and the end of the closing line (docs/spec/obsidian.md 5.1).
fn delimit(text: &str, start: usize) -> Option<(Span, usize)> {
    let is_delimiter =
        |line: &str| line.strip_prefix("---").is_some_and(|tail| tail.trim_matches([' ', '\t']).is_empty());
    let (first, yaml) = line_at(text, start);
    let mut at = is_delimiter(first).then_some(yaml)?;
    while at < text.len() {
        let (line, next) = line_at(text, at);
        if is_delimiter(line) {
            return Some((Span::new(yaml, at), next));
        }
        at = next;
    }
    None
}

impl Frontmatter {
    /// Finds a property by its name, ignoring case.
    pub fn get(&self, key: &str) -> Option<&Property> {
        let is_key = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let key = if is_key { Cow::Borrowed(key) } else { Cow::Owned(path::key(key)) };
        self.properties.iter().find(|property| path::has_key(&property.key, &key))
    }

    /// Returns all properties as one JSON object, in order.
    pub fn values(&self) -> Map<String, Value> {
        self.properties.iter().map(|property| (property.key.clone(), property.value.clone())).collect()
    }

    /// Lists all values in order. Nested mappings are flattened to names such as `a.b` (docs/spec/obsidian.md 5.3).
    pub fn flat(&self) -> impl Iterator<Item = (String, &Value)> {
        let mut open: Vec<(String, &Value)> =
            self.properties.iter().rev().map(|property| (property.key.clone(), &property.value)).collect();
        std::iter::from_fn(move || {
            loop {
                let (key, value) = open.pop()?;
                match value {
                    Value::Object(map) if !map.is_empty() => {
                        open.extend(map.iter().rev().map(|(name, value)| (format!("{key}.{name}"), value)));
                    }
                    _ => return Some((key, value)),
                }
            }
        })
    }
}

impl Style {
    /// Returns the escaping of a scalar and the length of its quotes. Returns `None` if its lines are folded or it is
    /// missing.
    fn quote(self) -> Option<(QuoteStyle, usize)> {
        match self {
            Self::Plain => Some((QuoteStyle::None, 0)),
            Self::Single => Some((QuoteStyle::Single, 1)),
            Self::Double => Some((QuoteStyle::Double, 1)),
            _ => None,
        }
    }
}

impl Scalar {
    /// Decodes the scalar with a map to the offsets of the file, given the file's text. Returns `None` if it spans
    /// several lines or refers to an anchor.
    pub fn unquote(&self, text: &str) -> Option<UnquotedString> {
        let (quote, margin) = self.style.quote()?;
        let body = Span::new(self.span.start + margin, self.span.end.checked_sub(margin)?);
        UnquotedString::read(body.of(text), body.start, quote)
    }
}

fn named<'p>(properties: &'p [Property], key: &str) -> impl Iterator<Item = &'p Property> {
    properties.iter().filter(move |property| path::has_key(&property.key, key))
}

/// Lists the strings that Obsidian reads from a property, a list of strings or one string, with their paths.
fn texts(property: &Property) -> impl Iterator<Item = (String, &Value)> {
    let key = &property.key;
    let (one, many) = match &property.value {
        Value::Array(items) => (None, items.as_slice()),
        value => (Some((key.clone(), value)), [].as_slice()),
    };
    one.into_iter().chain(many.iter().enumerate().map(move |(at, item)| (format!("{key}.{at}"), item)))
}

/// Collects the legal tags (docs/spec/obsidian.md 5.4): strings only, each with or without its `#`.
fn tags(text: &str, properties: &[Property]) -> Vec<Tag> {
    let mut tags = Vec::new();
    for property in named(properties, "tags") {
        let places: HashMap<&str, &Scalar> =
            property.scalars.iter().map(|scalar| (scalar.path.as_str(), scalar)).collect();
        for (place, value) in texts(property) {
            let Some(written) = value.as_str() else { continue };
            let Some(name) = tag_name(written) else { continue };
            // A value from a YAML alias has no scalar of its own; the span of the alias is used.
            let scalar = places.get(place.as_str()).or_else(|| places.get(property.key.as_str()));
            let whole = scalar.map_or(property.span, |scalar| scalar.span);
            let exact = scalar
                .and_then(|scalar| scalar.unquote(text))
                .filter(|unquoted| unquoted.text == written)
                .map(|unquoted| {
                    let end = written.find(name).unwrap_or(0) + name.len();
                    let start = written.len() - written.trim_start().len();
                    unquoted.raw(Span::new(start, end))
                });
            tags.push(Tag { name: name.to_owned(), span: exact.unwrap_or(whole), in_frontmatter: true });
        }
    }
    tags
}

/// Collects the aliases (docs/spec/obsidian.md 5.4). Null, blank and nested values are ignored.
fn aliases(properties: &[Property]) -> Vec<String> {
    named(properties, "aliases")
        .flat_map(texts)
        .filter_map(|(_, value)| match value {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        })
        .filter(|alias| !alias.is_empty())
        .collect()
}
