//! The fast path for simple frontmatter: one `key: value` per line, and lists with one item per line.
//!
//! The result equals that of the YAML parser, and there is no result for other YAML. The YAML parser would take a third
//! of the parsing time of a note.

use std::mem;

use hashbrown::HashSet;
use serde_json::Value;

use crate::frontmatter::yaml::{YamlBlock, core, link_of};
use crate::frontmatter::{Property, PropertyType, Scalar, Style, kind_of};
use crate::link::Link;
use crate::span::Span;

/// The maximum length of a key. Longer keys are left to the YAML parser, which limits the total size of paths.
const LONGEST_KEY: usize = 48;

/// Parses the mapping in `yaml`, which starts at `at` in the file. Returns `None` if it is not simple.
pub(super) fn read(yaml: &str, at: usize) -> Option<YamlBlock> {
    let mut reader = SimpleParser { yaml, at, ..SimpleParser::default() };
    let mut start = 0;
    for raw in yaml.split_inclusive('\n') {
        let line = raw.strip_suffix('\n')?;
        reader.line(line.strip_suffix('\r').unwrap_or(line).trim_end_matches(' '), at + start)?;
        start += raw.len();
    }
    reader.close();
    (!reader.block.properties.is_empty()).then_some(reader.block)
}

#[derive(Default)]
struct SimpleParser<'y> {
    yaml: &'y str,
    at: usize,
    /// The number of lines read so far.
    lines: usize,
    keys: HashSet<&'y str>,
    /// The property whose list can continue.
    open: Option<Property>,
    /// The column of the items of that list, if it has any.
    indent: Option<usize>,
    block: YamlBlock,
}

impl<'y> SimpleParser<'y> {
    /// Parses a line without its end, which starts at `here` in the file.
    fn line(&mut self, line: &'y str, here: usize) -> Option<()> {
        self.lines += 1;
        if line.is_empty() {
            return Some(());
        }
        if !is_simple_line(line) {
            return None;
        }
        let bare = line.trim_start_matches(' ');
        match bare.strip_prefix("- ") {
            Some(item) => self.item(item, here + line.len(), line.len() - bare.len()),
            None => self.entry(line, here),
        }
    }

    fn entry(&mut self, line: &'y str, here: usize) -> Option<()> {
        let (key, rest) = line.split_at(key_end(line)?);
        if !self.keys.insert(key) {
            return None;
        }
        self.close();
        let key_span = Span::new(here, here + key.len());
        let written = rest.get(1..)?.trim_start_matches(' ');
        // The span of a missing value is after the colon.
        let end = if written.is_empty() { key_span.end + 1 } else { here + line.len() };
        let mut property = Property {
            key: key.to_owned(),
            key_span,
            value: Value::Null,
            value_span: Span::new(end - written.len(), end),
            style: Style::Plain,
            kind: PropertyType::Text,
            span: Span::new(here, end),
            scalars: Vec::with_capacity(1),
            shared: false,
        };
        (property.value, property.style) =
            self.scalar(written, end, key.to_owned(), &mut property.scalars)?;
        self.open = Some(property);
        Some(())
    }

    /// Parses an item of a list that ends at `end` in the file and whose dash is in column `indent`.
    fn item(&mut self, item: &str, end: usize, indent: usize) -> Option<()> {
        let mut property = self.open.take()?;
        if *self.indent.get_or_insert(indent) != indent {
            return None;
        }
        let written = item.trim_start_matches(' ');
        let mut items = match mem::take(&mut property.value) {
            Value::Array(items) => items,
            Value::Null if property.value_span.is_empty() => {
                let dash = end - item.len() - "- ".len();
                property.value_span.start = dash;
                property.style = Style::BlockList;
                property.scalars.clear();
                Vec::new()
            }
            _ => return None,
        };
        let path = format!("{}.{}", property.key, items.len());
        items.push(self.scalar(written, end, path, &mut property.scalars)?.0);
        property.value = Value::Array(items);
        (property.value_span.end, property.span.end) = (end, end);
        self.open = Some(property);
        Some(())
    }

    /// Parses a scalar that ends at `end` in the file, and records it and the link in it.
    fn scalar(
        &mut self,
        written: &str,
        end: usize,
        path: String,
        scalars: &mut Vec<Scalar>,
    ) -> Option<(Value, Style)> {
        let (simple_scalar, style) = simple_scalar(written)?;
        let span = Span::new(end - written.len(), end);
        // The line with the three dashes precedes the first line.
        if let Some(link) = link_of(simple_scalar, span, style, self.yaml, self.at) {
            self.block.links.push(Link { key: Some(path.clone()), line: self.lines + 1, ..link });
        }
        scalars.push(Scalar { path, span, style });
        let value = if style == Style::Plain { core(simple_scalar) } else { None };
        Some((value.unwrap_or_else(|| Value::String(simple_scalar.to_owned())), style))
    }

    /// Adds the last property to the block.
    fn close(&mut self) {
        self.indent = None;
        if let Some(mut property) = self.open.take() {
            property.kind = kind_of(&property.key, &property.value, None);
            self.block.properties.push(property);
        }
    }
}

/// Returns whether a line is independent of other lines: it contains no tabs, no other line ends, and no characters
/// that are not printable.
fn is_simple_line(line: &str) -> bool {
    let is_simple_line = |c: char| match c {
        ' '..='~' => true,
        '\u{2028}' | '\u{2029}' | '\u{FEFF}' => false,
        _ => c >= '\u{A0}' && !matches!(u32::from(c) & 0xFFFF, 0xFFFE | 0xFFFF),
    };
    if line.is_ascii() {
        line.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    } else {
        line.chars().all(is_simple_line)
    }
}

/// Finds the colon after the key at the beginning of a line.
fn key_end(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let end =
        memchr::memchr_iter(b':', bytes).find(|&at| bytes.get(at + 1).is_none_or(|&next| next == b' '))?;
    let key = bytes.get(..end)?;
    let is_fine =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':');
    let is_key = key.len() <= LONGEST_KEY
        && key.first().is_some_and(u8::is_ascii_alphabetic)
        && key.iter().all(|byte| is_fine(byte) || *byte == b' ')
        && !key.ends_with(b" ");
    is_key.then_some(end)
}

/// Returns the text and the style of a scalar on one line without escapes. Returns `None` for any other scalar.
fn simple_scalar(written: &str) -> Option<(&str, Style)> {
    let quoted = |sign: char| written.strip_prefix(sign)?.strip_suffix(sign);
    let bytes = written.as_bytes();
    match bytes.first() {
        Some(b'\'') => quoted('\'')
            .filter(|simple_scalar| !simple_scalar.contains('\''))
            .map(|simple_scalar| (simple_scalar, Style::Single)),
        Some(b'"') => quoted('"')
            .filter(|simple_scalar| !simple_scalar.contains(['"', '\\']))
            .map(|simple_scalar| (simple_scalar, Style::Double)),
        Some(b'-' | b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|') => {
            None
        }
        Some(b'>' | b'%' | b'@' | b'`') => None,
        _ => {
            let is_open = |at: usize| match bytes.get(at) {
                Some(b':') => bytes.get(at + 1).is_none_or(|&next| next == b' '),
                _ => at > 0 && bytes.get(at - 1) == Some(&b' '),
            };
            let is_plain = !memchr::memchr2_iter(b':', b'#', bytes).any(is_open);
            is_plain.then_some((written, Style::Plain))
        }
    }
}
