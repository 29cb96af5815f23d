//! The parser of `.canvas` files (docs/spec/obsidian.md 2.9): references, tags and text of the nodes, with their spans
//! inside the JSON strings.
//!
//! Pieces are spans of [`searchable`], not of the JSON itself. Invalid JSON becomes a problem of the note.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::escapes::{QuoteStyle, UnquotedString, escaped};
use crate::link::{Escape, HostEscape, Link, LinkContext, LinkForm};
use crate::note::{Note, ParseProblem, Piece, PieceKind, Separator};
use crate::span::Span;
use crate::tag::Tag;

type JsonObject<'a> = HashMap<String, &'a RawValue>;

/// Parses a canvas. The `pieces` are spans of the result of [`searchable`], all other spans refer to `text`.
pub fn parse(text: &str) -> Note {
    let json = text.trim_start_matches('\u{FEFF}');
    let mut reader = CanvasReader { text, note: Note::default(), counted: 0, line: 1 };
    reader.note.body_start = text.len() - json.len();
    // Obsidian creates a new canvas as an empty file.
    if json.trim().is_empty() {
        return reader.note;
    }
    match serde_json::from_str::<&RawValue>(json) {
        Ok(whole) => reader.canvas(whole),
        Err(error) => {
            reader.note.mentions = crate::reference_search::in_broken_canvas(text);
            reader.note.problems.push(ParseProblem {
                code: "json-unparsable",
                message: format!("the canvas is not valid JSON: {error}"),
                span: None,
            });
        }
    }
    reader.note
}

/// Returns the text that the pieces of a canvas refer to: the JSON with each escape replaced by spaces and its
/// character, so that all offsets stay the same.
pub fn searchable(json: &str) -> Cow<'_, str> {
    let mut plain = String::new();
    let mut rest = json;
    while let Some(run) = rest.find('\\') {
        let (before, tail) = rest.split_at(run);
        plain.push_str(before);
        let (c, len) = escaped(tail, QuoteStyle::Json).unwrap_or(('\\', 1));
        plain.extend(std::iter::repeat_n(' ', len - c.len_utf8()));
        plain.push(c);
        rest = tail.get(len..).unwrap_or("");
    }
    if plain.is_empty() {
        return Cow::Borrowed(json);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Returns the Markdown of a canvas's text nodes, in order.
pub fn texts(json: &str) -> Vec<String> {
    let json = json.trim_start_matches('\u{FEFF}');
    let Ok(whole) = serde_json::from_str::<&RawValue>(json) else { return Vec::new() };
    let reader = CanvasReader { text: json, note: Note::default(), counted: 0, line: 1 };
    let nodes = list(&object(whole), "nodes").into_iter().map(object);
    let is_text = |node: &JsonObject<'_>| reader.string(node, "type").is_some_and(|kind| kind.text == "text");
    nodes.filter(is_text).filter_map(|node| Some(reader.string(&node, "text")?.text)).collect()
}

/// Returns what the card at an offset of the JSON shows: the line of its text there, or the path of its file. `None` if
/// there is no such card.
pub fn shown_at(json: &str, offset: usize) -> Option<String> {
    let start = json.len() - json.trim_start_matches('\u{FEFF}').len();
    let whole = serde_json::from_str::<&RawValue>(json.get(start..)?).ok()?;
    let reader = CanvasReader { text: json, note: Note::default(), counted: 0, line: 1 };
    let holds = |string: &UnquotedString, span: Span| {
        let raw = string.raw(span);
        raw.start <= offset && offset < raw.end
    };
    list(&object(whole), "nodes").into_iter().map(object).find_map(|node| {
        ["text", "file", "background"].iter().find_map(|field| {
            let string = reader.string(&node, field)?;
            let mut end = 0;
            string.text.split_inclusive('\n').find_map(|line| {
                let span = Span::new(end, end + line.len());
                end = span.end;
                holds(&string, span).then(|| line.trim().to_owned())
            })
        })
    })
}

struct CanvasReader<'t> {
    text: &'t str,
    note: Note,
    /// The offset up to which lines were counted.
    counted: usize,
    /// The line at that offset.
    line: usize,
}

impl<'t> CanvasReader<'t> {
    /// Reads the nodes, then the edges. Values that do not match the JSON Canvas format are skipped.
    fn canvas(&mut self, whole: &'t RawValue) {
        let canvas = object(whole);
        for node in list(&canvas, "nodes") {
            let node = object(node);
            match self.string(&node, "type").map(|kind| kind.text).as_deref() {
                Some("text") => self.markdown(&node),
                Some("file") => self.file(&node, "file", LinkForm::CanvasFile),
                Some("group") => {
                    self.label(&node, "label", PieceKind::Prose);
                    self.file(&node, "background", LinkForm::CanvasGroup);
                }
                Some("link") => self.label(&node, "url", PieceKind::Url),
                _ => {}
            }
        }
        for edge in list(&canvas, "edges") {
            self.label(&object(edge), "label", PieceKind::Prose);
        }
    }

    /// Reads the Markdown of a text node: its links, tags and pieces.
    fn markdown(&mut self, node: &JsonObject<'t>) {
        let Some(string) = self.string(node, "text") else {
            return;
        };
        let inner = Note::parse(&string.text);
        let line = self.line_of(string.raw(Span::default()).start);
        for link in inner.links.into_iter().filter(|link| link.place != LinkContext::Property) {
            let escape = Escape { host: HostEscape::Json, ..link.escape };
            let form = link.form.in_canvas();
            self.note.links.push(Link { form, escape, line, ..link.in_file(&string) });
        }
        for tag in inner.tags.into_iter().filter(|tag| !tag.in_frontmatter) {
            let span = string.raw(tag.span);
            self.note.tags.push(Tag { span, ..tag });
        }
        for (at, piece) in inner.pieces.into_iter().enumerate() {
            self.piece(&string, if at == 0 { Piece { separator: Separator::Block, ..piece } } else { piece });
        }
    }

    /// Reads a field with the full vault path of a file, and its subpath field.
    fn file(&mut self, node: &JsonObject<'t>, field: &str, form: LinkForm) {
        let Some(path) = self.string(node, field).filter(|path| !path.text.is_empty()) else {
            return;
        };
        let span = path.raw(Span::new(0, path.text.len()));
        let subpath = if form == LinkForm::CanvasFile { self.string(node, "subpath") } else { None };
        let subpath_span = subpath
            .as_ref()
            .map_or(Span::new(span.end, span.end), |subpath| subpath.raw(Span::new(0, subpath.text.len())));
        let line = self.line_of(span.start);
        self.note.links.push(Link {
            span,
            dest_span: span,
            path_span: span,
            subpath_span,
            alias_span: None,
            form,
            escape: Escape { host: HostEscape::Json, ..Escape::default() },
            place: LinkContext::Canvas,
            display: Some(path.text.clone()),
            path: path.text,
            subpath: subpath.map_or(String::new(), |subpath| subpath.text),
            embed: true,
            size: None,
            key: None,
            line,
            in_comment: false,
        });
    }

    /// Adds a plain text field as a piece.
    fn label(&mut self, item: &JsonObject<'t>, field: &str, kind: PieceKind) {
        if let Some(string) = self.string(item, field) {
            let span = Span::new(0, string.text.len());
            self.piece(&string, Piece { kind, span, separator: Separator::Block });
        }
    }

    /// Splits a piece of a string at its escapes.
    fn piece(&mut self, string: &UnquotedString, piece: Piece) {
        for (at, span) in string.runs(piece.span).into_iter().enumerate() {
            let separator = if at == 0 { piece.separator } else { Separator::None };
            self.note.pieces.push(Piece { span, separator, ..piece });
        }
    }

    /// Decodes the string in a field; `None` if there is none.
    fn string(&self, item: &JsonObject<'t>, field: &str) -> Option<UnquotedString> {
        let raw = item.get(field)?.get();
        let body = raw.strip_prefix('"')?.strip_suffix('"')?;
        // The raw value is a slice of the text, so the addresses give its offset.
        let at = body.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        UnquotedString::read(body, at, QuoteStyle::Json)
    }

    /// Counts lines up to an offset. Offsets mostly increase.
    fn line_of(&mut self, offset: usize) -> usize {
        if offset < self.counted {
            (self.counted, self.line) = (0, 1);
        }
        let between = Span::new(self.counted, offset).of(self.text);
        self.line += between.bytes().filter(|&b| b == b'\n').count();
        self.counted = offset;
        self.line
    }
}

fn object(value: &RawValue) -> JsonObject<'_> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

fn list<'a>(object: &JsonObject<'a>, field: &str) -> Vec<&'a RawValue> {
    object.get(field).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}
