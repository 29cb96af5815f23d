//! The body as the Markdown parser gets it: byte for byte as long as the text, with a few markers replaced.

use std::borrow::Cow;

use memchr::memmem;

use crate::line::Lines;
use crate::span::Span;

/// The body of a note for the parser.
pub(super) struct ParserInput<'t> {
    /// The text, with each byte at its place.
    pub(super) body: Cow<'t, str>,
    /// The offset in the note of the first marker that is nested too deeply.
    pub(super) too_deep: Option<usize>,
}

/// Prepares the body of a note that begins at `body_start` for the parser.
pub(super) fn parser_input<'t>(text: &'t str, body_start: usize, lines: &Lines) -> ParserInput<'t> {
    let (too_deep, mut body) = match flattened(text, body_start, lines) {
        Some((at, flat)) => (Some(at), Cow::Owned(flat)),
        None => (None, Cow::Borrowed(text.get(body_start..).unwrap_or(""))),
    };
    if let Some(changed) = with_admonitions(&body) {
        body = Cow::Owned(changed);
    }
    ParserInput { body, too_deep }
}

/// The markers of admonitions, details and tabs, as MkDocs and its extensions have them.
const ADMONITIONS: [&str; 4] = ["!!! ", "??? ", "???+ ", "=== \""];
/// The columns by which their content is indented.
const INDENT: usize = 4;

/// Replaces the markers of admonitions, details and tabs by those of list items, whose content has the same
/// indentation. Otherwise CommonMark would read the content as code without links. Returns `None` if there are no such
/// markers.
fn with_admonitions(body: &str) -> Option<String> {
    // Few notes have any.
    if !ADMONITIONS.iter().any(|marker| memmem::find(body.as_bytes(), marker.as_bytes()).is_some()) {
        return None;
    }
    let mut bytes = Vec::new();
    // The place and length of the last marker, with its column.
    let mut open: Option<(Span, usize)> = None;
    let mut start = 0;
    for line in body.split_inclusive('\n') {
        let content = line.trim_start_matches([' ', '\t']);
        let at = start + line.len() - content.len();
        start += line.len();
        if content.trim().is_empty() {
            continue;
        }
        let column = line.bytes().take_while(u8::is_ascii_whitespace).fold(0, |column, byte| match byte {
            b'\t' => column + INDENT - column % INDENT,
            _ => column + 1,
        });
        if let Some((marker, _)) = open.filter(|(_, outer)| column >= outer + INDENT) {
            if bytes.is_empty() {
                bytes = body.as_bytes().to_vec();
            }
            // A longer marker leaves a letter, so that the content of the item is in the same column.
            bytes.get_mut(marker.start..marker.end)?.copy_from_slice(b"-   x".get(..marker.len())?);
        }
        open = marker_len(content).map(|len| (Span::new(at, at + len), column));
    }
    if bytes.is_empty() { None } else { String::from_utf8(bytes).ok() }
}

/// Returns the number of bytes to replace if an admonition, details or a tab begins here.
fn marker_len(line: &str) -> Option<usize> {
    let marker = ADMONITIONS.iter().find(|marker| line.starts_with(**marker))?;
    if marker.ends_with('"') {
        return Some(INDENT);
    }
    // What follows is the kind, such as `note`.
    let kind = line.get(marker.len()..)?;
    kind.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(marker.len())
}

/// The column in bytes from which on lists, quotes and footnotes are not recognized.
pub(super) const DEEPEST: usize = 256;

/// Replaces the markers of blocks that are nested too deeply, byte for byte. Returns the offset of the first such
/// marker and the new text.
///
/// The parser visits all open containers at each line, so deep nesting would take quadratic time.
fn flattened(text: &str, body_start: usize, lines: &Lines) -> Option<(usize, String)> {
    let mut first = None;
    let mut bytes = Vec::new();
    let long = lines.spans(text.len()).filter(|line| line.len() > DEEPEST && line.end > body_start);
    for line in long {
        let mut start = line.start.max(body_start);
        // A lone carriage return ends a line for the parser.
        for line in Span::new(start, line.end).of(text).split_inclusive('\r') {
            if let Some(excess) = excess_marker(line) {
                if first.is_none() {
                    bytes = text.get(body_start..)?.as_bytes().to_vec();
                }
                *bytes.get_mut(start - body_start + excess)? = b'x';
                first.get_or_insert(start + excess);
            }
            start += line.len();
        }
    }
    Some((first?, String::from_utf8(bytes).ok()?))
}

/// Finds the first marker of a list, quote or footnote beyond [`DEEPEST`] among the markers that open `line`.
fn excess_marker(line: &str) -> Option<usize> {
    let signs = line.trim_end().as_bytes();
    let ruled = |sign: u8| signs.iter().all(|&byte| byte == sign || matches!(byte, b' ' | b'\t'));
    if signs.len() <= DEEPEST || ruled(b'-') || ruled(b'*') {
        return None;
    }
    let mut at = 0;
    loop {
        let (begins, len) = match *signs.get(at)? {
            b' ' | b'\t' | b'0'..=b'9' => (false, 1),
            b'>' => (true, 1),
            b'-' | b'*' | b'+' | b'.' | b')' => (signs.get(at + 1).is_none_or(u8::is_ascii_whitespace), 1),
            b'[' if signs.get(at + 1) == Some(&b'^') => (true, 2 + line.get(at..)?.find("]:")?),
            _ => return None,
        };
        if begins && at >= DEEPEST {
            return Some(at);
        }
        at += len;
    }
}
