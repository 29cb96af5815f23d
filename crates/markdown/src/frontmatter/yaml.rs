//! The conversion of YAML to properties. The only user of the YAML parser.
//!
//! It reads the event stream with an explicit stack, so that no input causes recursion, and limits the expansion of
//! aliases. Spans are offsets in the file.

use std::mem;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, Tag};
use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Number, Value};

use super::{Property, Scalar, Style, kind_of};
use crate::escapes::{QuoteStyle, UnquotedString};
use crate::frontmatter::link::parse_property;
use crate::link::{Escape, HostEscape, Link};
use crate::span::Span;

/// The maximum depth of collections, including those of aliases. JSON readers stop at 128.
const MAX_DEPTH: usize = 100;

/// The maximum size of anchored nodes and their copies, relative to the text, in bytes and nodes.
const MAX_EXPANSION: usize = 1 << 18;

/// The result of parsing a block of YAML.
#[derive(Debug, Default, PartialEq)]
pub(super) struct YamlBlock {
    pub(super) properties: Vec<Property>,
    pub(super) links: Vec<Link>,
    /// Whether the outermost mapping is written in braces.
    pub(super) flow: bool,
}

/// Parses the mapping in `yaml`, which starts at `at` in the file.
///
/// # Errors
/// Returns a sentence that starts with the line in the file.
pub(super) fn read(yaml: &str, at: usize) -> Result<YamlBlock, String> {
    // A byte that is not UTF-8 was decoded as U+001A, which YAML forbids. One such byte must not make the whole block
    // invalid.
    let patched = yaml.contains('\u{1A}').then(|| yaml.replace('\u{1A}', "_"));
    let yaml = patched.as_deref().unwrap_or(yaml);
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut reader = YamlReader { yaml, at, budget: MAX_EXPANSION + yaml.len(), ..YamlReader::default() };
    for event in Parser::new_from_str_with_options(yaml, options) {
        // The opening line of the block is not part of the YAML, so its line numbers are one less than those of the
        // file.
        let (event, span) = event.map_err(|error| {
            let mut message = error.to_string();
            message.truncate(message.rfind(" at char ").unwrap_or(message.len()));
            format!("line {}: {message}", error.marker().line() + 1)
        })?;
        let line = span.start.line() + 1;
        let range = span.byte_range().unwrap_or_default();
        let token = Token { span: Span::new(at + range.start, at + range.end), line };
        reader.handle(event, token).map_err(|message| format!("line {line}: {message}"))?;
    }
    Ok(reader.block)
}

/// The position of an event in the file.
#[derive(Debug, Clone, Copy)]
struct Token {
    span: Span,
    line: usize,
}

/// A finished node.
#[derive(Debug, Clone)]
struct YamlNode {
    value: Value,
    span: Span,
    style: Style,
    /// The depth of nested collections, including the node itself.
    depth: usize,
    /// The size of the node in bytes and nodes.
    weight: usize,
    /// The name of the node as a key.
    name: String,
}

/// An unfinished collection.
#[derive(Debug)]
struct Frame {
    items: Items,
    start: usize,
    style: Style,
    anchor: usize,
    depth: usize,
    weight: usize,
    /// The length of the path of the collection itself.
    path: usize,
}

#[derive(Debug)]
enum Items {
    List(Vec<Value>),
    Map {
        map: Map<String, Value>,
        /// The keys from a merge, which an explicit key can replace.
        merged: HashSet<String>,
        /// The key of the next value.
        key: Option<YamlKey>,
    },
}

#[derive(Debug)]
struct YamlKey {
    name: String,
    span: Span,
    is_merge: bool,
}

#[derive(Debug, Default)]
struct YamlReader<'y> {
    yaml: &'y str,
    at: usize,
    frames: Vec<Frame>,
    /// The number of innermost frames that are part of a key.
    in_key: usize,
    /// The path of the next node, such as `list.0`.
    path: String,
    anchors: HashMap<usize, YamlNode>,
    budget: usize,
    /// The end of the last token.
    end: usize,
    documents: usize,
    /// The scalars of the current entry.
    scalars: Vec<Scalar>,
    /// Whether the current entry contains an anchor, an alias or a tag.
    shared: bool,
    /// The index of each key of the outermost mapping among the properties.
    places: HashMap<String, usize>,
    block: YamlBlock,
}

impl YamlReader<'_> {
    /// Processes one event of the parser.
    fn handle(&mut self, event: Event<'_>, token: Token) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("a second YAML document starts here".to_owned());
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.shared |= anchor > 0 || tag.is_some();
                let node = self.scalar(&text, style, tag.as_deref(), token)?;
                self.finish(node, anchor)?;
            }
            Event::Alias(id) => {
                let weight = self.anchors.get(&id).map_or(0, |node| node.weight);
                self.spend(weight)?;
                let Some(node) = self.anchors.get(&id).cloned() else {
                    return Err("an alias refers to the node that it is part of".to_owned());
                };
                self.shared = true;
                self.record(token.span, Style::Alias)?;
                self.finish(YamlNode { span: token.span, style: Style::Alias, ..node }, 0)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                let (style, start) = match style {
                    StructureStyle::Flow => (Style::FlowList, token.span.start),
                    // The parser reports the offset after the first dash of a list that is not indented.
                    StructureStyle::Block => {
                        (Style::BlockList, self.ahead(b":", b"-").unwrap_or(token.span.start))
                    }
                };
                self.shared |= anchor > 0 || tag.is_some();
                self.open(Items::List(Vec::new()), style, anchor, start);
            }
            Event::MappingStart(style, anchor, tag) => {
                let flow = style == StructureStyle::Flow;
                self.block.flow |= flow && self.frames.is_empty();
                self.shared |= anchor > 0 || tag.is_some();
                let items = Items::Map { map: Map::new(), merged: HashSet::new(), key: None };
                let style = if flow { Style::FlowMap } else { Style::BlockMap };
                self.open(items, style, anchor, token.span.start);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(token)?,
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, items: Items, style: Style, anchor: usize, start: usize) {
        self.in_key += usize::from(self.is_key_next());
        self.frames.push(Frame { items, start, style, anchor, depth: 0, weight: 1, path: self.path.len() });
        self.step();
    }

    fn close(&mut self, token: Token) -> Result<(), String> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        self.path.truncate(frame.path);
        if matches!(frame.style, Style::FlowList | Style::FlowMap) {
            self.end = token.span.end;
        }
        let span = Span::new(frame.start, self.end.max(frame.start));
        // The name of a key that is a collection is its source.
        let name = if self.in_key == 1 { self.source(span).to_owned() } else { String::new() };
        self.in_key = self.in_key.saturating_sub(1);
        let value = match frame.items {
            Items::List(items) => Value::Array(items),
            Items::Map { map, .. } => Value::Object(map),
        };
        let Frame { style, weight, depth, anchor, .. } = frame;
        self.finish(YamlNode { value, span, style, depth: depth + 1, weight, name }, anchor)
    }

    /// Reads a scalar. A value is recorded, with the link in it.
    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        token: Token,
    ) -> Result<YamlNode, String> {
        let (style, span) = match style {
            ScalarStyle::Plain if token.span.is_empty() => {
                (Style::Plain, self.missing_value_span(token.span.start))
            }
            ScalarStyle::Plain => (Style::Plain, token.span),
            ScalarStyle::SingleQuoted => (Style::Single, token.span),
            ScalarStyle::DoubleQuoted => (Style::Double, token.span),
            ScalarStyle::Literal => (Style::Literal, self.block_scalar(token.span)),
            ScalarStyle::Folded => (Style::Folded, self.block_scalar(token.span)),
        };
        // The parser reports a missing node as `~`.
        let text = if style == Style::Plain && span.is_empty() { "" } else { text };
        self.record(span, style)?;
        if !self.is_key_next()
            && let Some(link) = link_of(text, span, style, self.yaml, self.at)
        {
            self.block.links.push(Link { key: Some(self.path.clone()), line: token.line, ..link });
        }
        let value = resolve(text, style, tag);
        Ok(YamlNode { value, span, style, depth: 0, weight: text.len() + 1, name: text.to_owned() })
    }

    /// Adds a finished node to its collection.
    fn finish(&mut self, node: YamlNode, anchor: usize) -> Result<(), String> {
        if self.frames.len() + node.depth > MAX_DEPTH {
            return Err(format!("collections nest more than {MAX_DEPTH} deep"));
        }
        self.end = self.end.max(node.span.end);
        if anchor > 0 {
            self.spend(node.weight)?;
            self.anchors.insert(anchor, node.clone());
        }
        let is_top = self.frames.len() == 1;
        let Some(parent) = self.frames.last_mut() else {
            return match node.value {
                Value::Object(_) => Ok(()),
                _ => Err("the block is not a mapping of keys to values".to_owned()),
            };
        };
        parent.depth = parent.depth.max(node.depth);
        parent.weight += node.weight;
        match &mut parent.items {
            Items::List(items) => items.push(node.value),
            Items::Map { map, merged, key: key @ None } => {
                if map.contains_key(&node.name) && !merged.contains(&node.name) {
                    return Err(format!("the key {:?} occurs twice", node.name));
                }
                let is_merge = node.style == Style::Plain && node.name == "<<";
                *key = Some(YamlKey { name: node.name, span: node.span, is_merge });
            }
            Items::Map { map, merged, key: slot } => {
                let Some(key) = slot.take() else { return Ok(()) };
                let entries = entries(&key, node.value, map, merged);
                if is_top {
                    map.extend(entries.iter().map(|(name, _)| (name.clone(), Value::Null)));
                    self.properties(key, entries, node.span, node.style);
                } else {
                    map.extend(entries);
                }
            }
        }
        self.step();
        Ok(())
    }

    /// Adds a property for each entry of a key of the outermost mapping: one, or several for a merge.
    fn properties(&mut self, key: YamlKey, entries: Vec<(String, Value)>, value_span: Span, style: Style) {
        let scalars = mem::take(&mut self.scalars);
        let shared = mem::take(&mut self.shared) || key.is_merge;
        let span = Span::new(key.span.start, self.comment_end());
        for (name, value) in entries {
            let kind = kind_of(&name, &value, None);
            // Merged entries have no scalars of their own here.
            let scalars = if name == key.name { scalars.clone() } else { Vec::new() };
            let place = *self.places.entry(name.clone()).or_insert(self.block.properties.len());
            let key_span = key.span;
            let property =
                Property { key: name, key_span, value, value_span, style, kind, span, scalars, shared };
            match self.block.properties.get_mut(place) {
                Some(replaced) => *replaced = property,
                None => self.block.properties.push(property),
            }
        }
    }

    fn is_key_next(&self) -> bool {
        self.in_key > 0
            || self.frames.last().is_some_and(|frame| matches!(frame.items, Items::Map { key: None, .. }))
    }

    /// Updates the path for the next node.
    fn step(&mut self) {
        let Some(frame) = self.frames.last() else { return };
        self.path.truncate(frame.path);
        let dot = if self.path.is_empty() { "" } else { "." };
        match &frame.items {
            Items::List(items) => self.path.push_str(&format!("{dot}{}", items.len())),
            Items::Map { key: Some(key), .. } => self.path.extend([dot, &key.name]),
            Items::Map { key: None, .. } => {}
        }
    }

    /// Records a scalar that is a value.
    fn record(&mut self, span: Span, style: Style) -> Result<(), String> {
        if self.is_key_next() {
            return Ok(());
        }
        // Long keys with many scalars would make the paths grow with the square of the text.
        self.spend(self.path.len().saturating_sub(64))?;
        self.scalars.push(Scalar { path: self.path.clone(), span, style });
        Ok(())
    }

    fn spend(&mut self, weight: usize) -> Result<(), String> {
        self.budget = self
            .budget
            .checked_sub(weight)
            .ok_or_else(|| "aliases or long keys expand to far more than the text".to_owned())?;
        Ok(())
    }

    fn source(&self, span: Span) -> &str {
        source(self.yaml, self.at, span)
    }

    /// Searches after the last token, past white space, comments, anchors, tags and the signs in `skip`, for one of the
    /// signs in `wanted`.
    fn ahead(&self, skip: &[u8], wanted: &[u8]) -> Option<usize> {
        let from = self.end.max(self.at);
        let rest = self.yaml.as_bytes().get(from - self.at..)?;
        let mut bytes = rest.iter().enumerate();
        while let Some((at, b)) = bytes.next() {
            match b {
                b if wanted.contains(b) => return Some(from + at),
                b'#' => _ = bytes.find(|(_, b)| matches!(b, b'\n' | b'\r')),
                b'&' | b'!' => _ = bytes.find(|(_, b)| b.is_ascii_whitespace()),
                b if b.is_ascii_whitespace() || skip.contains(b) => {}
                _ => return None,
            }
        }
        None
    }

    /// Returns the span of a missing value: after the colon of its key, if there is one.
    fn missing_value_span(&self, reported: usize) -> Span {
        let has_key =
            self.frames.last().is_some_and(|frame| matches!(frame.items, Items::Map { key: Some(_), .. }));
        let colon = if has_key { self.ahead(b"", b":") } else { None };
        let at = reported.max(colon.map_or(0, |colon| colon + 1));
        Span::new(at, at)
    }

    /// Extends the span of a block scalar's content to its header, and removes the blank lines after it.
    fn block_scalar(&self, content: Span) -> Span {
        let start = self.ahead(b":-?", b"|>").unwrap_or(content.start).min(content.start);
        let whole = self.source(Span::new(start, content.end));
        let mut kept = whole;
        loop {
            let line = kept.rfind(['\n', '\r']).map_or(0, |end| end + 1);
            let (before, last) = kept.split_at(line);
            if line == 0 || !last.trim_matches([' ', '\t']).is_empty() {
                break;
            }
            kept = before.strip_suffix("\r\n").unwrap_or(&before[..line - 1]);
        }
        Span::new(start, start + kept.len())
    }

    /// Finds the end of the comment on the line where the last token ended, or that token's end.
    fn comment_end(&self) -> usize {
        let rest = self.source(Span::new(self.end, self.at + self.yaml.len()));
        let comment = rest.trim_start_matches([' ', '\t']);
        if comment.len() == rest.len() || !comment.starts_with('#') {
            return self.end;
        }
        let line = rest.split(['\n', '\r']).next().unwrap_or(rest);
        self.end + line.trim_end().len()
    }
}

/// Returns the link that a value consists of (docs/spec/obsidian.md 2.7), without its key and line. `span` is the span
/// of the value in the file, and `at` the offset of `yaml` in the file.
pub(super) fn link_of(text: &str, span: Span, style: Style, yaml: &str, at: usize) -> Option<Link> {
    if !text.trim_start().starts_with(['[', '!']) {
        return None;
    }
    let link = parse_property(text)?;
    if matches!(style, Style::Literal | Style::Folded)
        && let Some(link) = link_of_block(text, span, yaml, at)
    {
        return Some(link);
    }
    let quoted = style.quote().and_then(|(quote, margin)| {
        let body = Span::new(span.start + margin, span.end.saturating_sub(margin));
        let unquoted = UnquotedString::read(source(yaml, at, body), body.start, quote)?;
        (unquoted.text == text).then_some((unquoted, quote))
    });
    Some(match quoted {
        Some((unquoted, quote)) => {
            let host =
                if quote == QuoteStyle::Single { HostEscape::YamlSingle } else { HostEscape::YamlDouble };
            Link { escape: Escape { host, ..link.escape }, ..link.in_file(&unquoted) }
        }
        // A link is never a plain scalar, so this host marks a value whose bytes must not be replaced.
        None => {
            let nowhere = Span::new(span.end, span.end);
            let escape = Escape { host: HostEscape::YamlPlain, ..link.escape };
            Link {
                span,
                dest_span: span,
                path_span: span,
                subpath_span: nowhere,
                alias_span: None,
                escape,
                ..link
            }
        }
    })
}

/// Returns the link that a block scalar consists of, if it is written on one line, where nothing is escaped.
fn link_of_block(text: &str, span: Span, yaml: &str, at: usize) -> Option<Link> {
    let raw = source(yaml, at, span);
    let (header, body) = raw.split_once('\n')?;
    let written = body.trim();
    if written != text.trim() {
        return None;
    }
    let start = span.start + header.len() + 1 + (body.len() - body.trim_start().len());
    let string = UnquotedString::read(written, start, QuoteStyle::None)?;
    Some(parse_property(&string.text)?.in_file(&string))
}

/// Returns the bytes of a span of the file in `yaml`, which starts at `at` in the file.
fn source(yaml: &str, at: usize, span: Span) -> &str {
    Span::new(span.start.saturating_sub(at), span.end.saturating_sub(at)).of(yaml)
}

/// Returns the entries that a key and its value add to a mapping: one, or those of a merge that the mapping does not
/// have yet.
fn entries(
    key: &YamlKey,
    value: Value,
    map: &Map<String, Value>,
    merged: &mut HashSet<String>,
) -> Vec<(String, Value)> {
    let sources = match value {
        Value::Object(source) if key.is_merge => vec![source],
        Value::Array(items) if key.is_merge && items.iter().all(Value::is_object) => {
            let object = |item| {
                if let Value::Object(source) = item { Some(source) } else { None }
            };
            items.into_iter().filter_map(object).collect()
        }
        value => {
            merged.remove(&key.name);
            return vec![(key.name.clone(), value)];
        }
    };
    let new = |(name, _): &(String, Value)| !map.contains_key(name) && merged.insert(name.clone());
    sources.into_iter().flatten().filter(new).collect()
}

/// Resolves a scalar by the YAML 1.2 core schema (docs/spec/obsidian.md 5.2).
fn resolve(text: &str, style: Style, tag: Option<&Tag>) -> Value {
    let string = || Value::String(text.to_owned());
    match tag {
        None if style == Style::Plain => core(text).unwrap_or_else(string),
        None => string(),
        Some(tag) => match (tag.core_suffix(), core(text)) {
            (Some("null"), Some(value @ Value::Null)) => value,
            (Some("bool"), Some(value @ Value::Bool(_))) => value,
            (Some("int" | "float"), Some(value @ Value::Number(_))) => value,
            _ => string(),
        },
    }
}

/// Parses a plain scalar that is not a string. Returns `None` if it is one.
pub(super) fn core(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    let radix = |digits: &str, radix: u32| {
        let fine = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        let float = || {
            digits.chars().fold(0.0, |n, c| n * f64::from(radix) + f64::from(c.to_digit(radix).unwrap_or(0)))
        };
        fine.then(|| u64::from_str_radix(digits, radix).map_or_else(|_| number(float()), |n| Some(n.into())))
            .flatten()
    };
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let fine = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    if !fine {
        return None;
    }
    let float = || text.parse().ok().and_then(number);
    text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok().or_else(float)
}

/// Converts a float to a JSON number, as an integer if the value is one, as JavaScript prints it. Returns `None` if
/// JSON cannot represent it.
fn number(float: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() < EXACT {
        return Some(Value::from(float as i64));
    }
    Number::from_f64(float).map(Value::Number)
}
