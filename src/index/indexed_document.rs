//! Owns what we index of one file: its catalog record and its full-text entry, made from its bytes alone.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};
use unicode_normalization::{IsNormalized, is_nfc_quick};

use crate::clock::Timestamp;
use crate::index::bm25::{AnalyzedNote, Analyzer, IndexedText};
use crate::index::catalog::{
    Details, FileKind, FileRow, Inactive, LinkGroup, LinkPosition, Record, Stat, path_id,
};
use crate::index::vectors::passage_key;
use crate::text::canvas;
use crate::text::decode::decode_whole;
use crate::text::frontmatter::Frontmatter;
use crate::text::line::Lines;
use crate::text::link::LinkForm;
use crate::text::note::{Note, Piece, PieceKind};
use crate::text::note_names::{own_id, property_text, title_of};
use crate::text::passage::{Passage, each_embedded_text, passages, push_pieces};
use crate::text::path::{NotePath, key};
use crate::text::span::Span;
use crate::text::tag_conversion::unconverted_names;

/// A file's bytes, read and understood.
#[derive(Debug, Clone)]
pub struct Document {
    /// What goes into the catalog; the file's number is still 0.
    pub record: Record,
    /// What goes into the full-text index; nothing for attachments.
    pub entry: Option<AnalyzedNote>,
}

/// A note as everything above the index reads it: decoded text and what it says.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The text; offsets are those of the file.
    pub text: String,
    /// What it says.
    pub note: Note,
    /// Its title.
    pub title: String,
    /// A canvas without its JSON escapes, of the same length; pieces are cut from it.
    unescaped: Option<String>,
    /// Found when asked for.
    lines: OnceLock<Lines>,
}

impl Reading {
    /// Reads a note or canvas; never fails. Bytes that are given away are not copied.
    pub fn new<'b>(path: &NotePath, bytes: impl Into<Cow<'b, [u8]>>) -> Self {
        let (text, problem) = decode_whole(bytes.into());
        let (mut note, unescaped) = if path.is_canvas() {
            (canvas::parse(&text), Some(canvas::searchable(&text).into_owned()))
        } else {
            (Note::parse(&text), None)
        };
        note.problems.extend(problem);
        let title = title_of(path, &note);
        Self { lines: OnceLock::new(), text, note, title, unescaped }
    }

    /// Gives the text that pieces and passages are cut from: the file's, but for a canvas without escapes.
    pub fn prose(&self) -> &str {
        self.unescaped.as_deref().unwrap_or(&self.text)
    }

    /// Says whether it is a canvas, whose text is JSON around that of its cards.
    pub fn is_canvas(&self) -> bool {
        self.unescaped.is_some()
    }

    /// Cuts the note into passages.
    pub fn passages(&self) -> Vec<Passage> {
        passages(self.prose(), &self.note)
    }

    /// Gives what a model embeds of each passage, in order; a `summary` comes last, as a passage of its own.
    pub fn embedded_texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.each_embedded_text(|text| texts.push(text.to_owned()));
        texts
    }

    /// Visits what [`Reading::embedded_texts`] gives.
    fn each_embedded_text(&self, mut visit: impl FnMut(&str)) {
        each_embedded_text(self.prose(), &self.note, &self.title, &mut visit);
        let summary = property_text(&self.note, "summary");
        summary.filter(|summary| !summary.trim().is_empty()).iter().for_each(|summary| visit(summary));
    }

    /// Gives the first and last line of a span, counted from 1.
    pub fn lines_of(&self, span: Span) -> (usize, usize) {
        (self.lines().of(span.start), self.lines().of(span.end.max(span.start + 1) - 1))
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::new(&self.text))
    }

    /// Gives the bytes of the lines from `first` to `last`, counted from 1, line ends included; `None` where there are
    /// no such lines.
    pub fn lines_span(&self, first: usize, last: usize) -> Option<Span> {
        let count = self.lines_of(Span::new(0, self.text.len())).1;
        (first >= 1 && first <= last && first <= count).then(|| {
            Span::new(
                self.lines().start(first),
                self.lines().start(last.saturating_add(1)).min(self.text.len()),
            )
        })
    }

    /// Joins the headings above a passage with ` > `.
    pub fn trail_of(&self, passage: &Passage) -> String {
        let headings = passage.trail.iter().filter_map(|&at| self.note.headings.get(at));
        headings.map(|heading| heading.text.as_str()).collect::<Vec<_>>().join(" > ")
    }
}

fn first_time(note: &Note, names: &[&str]) -> Option<Timestamp> {
    names.iter().find_map(|name| property_text(note, name).and_then(|text| Timestamp::parse(&text)))
}

impl Document {
    /// Describes a file that is only ever a link target.
    pub fn attachment(path: &NotePath, stat: Stat, racy: bool, excluded: bool) -> Self {
        let changed = Timestamp::from_nanos(stat.mtime_ns);
        Self {
            record: Record {
                row: FileRow {
                    id: 0,
                    path: path.clone(),
                    kind: FileKind::Attachment,
                    size: stat.size,
                    hash: None,
                    excluded,
                    note_id: String::new(),
                    title: path.name().to_owned(),
                    created: changed,
                    updated: changed,
                    written: changed,
                    category: None,
                    note_type: None,
                    inactive: Inactive::default(),
                    unindexed: None,
                },
                stat,
                racy,
                aliases: Vec::new(),
                tags: Vec::new(),
                properties: Map::new(),
                problems: String::new(),
                links: Vec::new(),
                passages: Vec::new(),
                sections: Vec::new(),
            },
            entry: None,
        }
    }

    /// Describes a note whose bytes could not be read, and why.
    ///
    /// With `again`, the next sync tries once more.
    pub fn unreadable(path: &NotePath, stat: Stat, again: bool, excluded: bool, why: &str) -> Self {
        let mut document = Self::attachment(path, stat, again, excluded);
        document.record.row.kind = FileKind::of(path);
        document.record.row.title = path.stem().to_owned();
        document.record.row.note_id = path_id(path);
        let problem = serde_json::json!([{ "code": "unreadable", "message": why, "span": null }]);
        document.record.problems = problem.to_string();
        document
    }

    /// Says whether the file is of an encoding that is not read.
    pub fn is_skipped(&self) -> bool {
        self.record.problems.contains("\"utf-16\"")
    }

    /// Reads a note or canvas of `bytes` with their hash.
    pub fn of_note(
        path: &NotePath,
        bytes: Vec<u8>,
        stat: Stat,
        racy: bool,
        excluded: bool,
        analyzer: &mut Analyzer,
    ) -> Self {
        let (mut document, reading) = Self::described(path, bytes, stat, racy, excluded);
        let record = &mut document.record;
        let note = &reading.note;
        record.problems = serde_json::to_string(&note.problems).unwrap_or_else(|_| "[]".to_owned());
        record.links = link_groups(note);
        if record.row.kind == FileKind::Note {
            record.sections = note.sections(&reading.text);
        }
        if !excluded {
            reading.each_embedded_text(|text| record.passages.push(passage_key(text)));
            let record = &document.record;
            document.entry = Some(analyzer.analyze(|texts| collect_texts(path, &reading, record, texts)));
        }
        document
    }

    /// Makes the row of a note or canvas that the catalog does not hold as it is; the file's number is 0.
    pub fn row_of(path: &NotePath, bytes: Vec<u8>, stat: Stat, excluded: bool) -> FileRow {
        let Record { mut row, tags, properties, .. } =
            Self::described(path, bytes, stat, false, excluded).0.record;
        let tags = tags.into_iter().map(|(tag, _)| tag).collect();
        row.unindexed = Some(Arc::new(Details { tags, properties }));
        row
    }

    /// Reads what a note or canvas says of itself: everything of its record but links, passages and sections.
    fn described(path: &NotePath, bytes: Vec<u8>, stat: Stat, racy: bool, excluded: bool) -> (Self, Reading) {
        let hash = *blake3::hash(&bytes).as_bytes();
        let reading = Reading::new(path, bytes);
        let mut document = Self::attachment(path, stat, racy, excluded);
        let note = &reading.note;
        let record = &mut document.record;
        record.row.kind = FileKind::of(path);
        record.row.hash = Some(hash);
        record.row.title.clone_from(&reading.title);
        record.row.note_id = own_id(note).unwrap_or_else(|| path_id(path));
        let changed = record.row.updated;
        record.row.created = first_time(note, &["created_at", "created", "date"]).unwrap_or(changed);
        record.row.updated = first_time(note, &["updated_at", "updated", "modified"]).unwrap_or(changed);
        record.row.category = property_text(note, "category");
        record.row.note_type = property_text(note, "type");
        let says = |name: &str, word: &str| {
            property_text(note, name).is_some_and(|text| text.eq_ignore_ascii_case(word))
        };
        let is_pinned = says("pinned", "true");
        record.row.inactive = Inactive {
            archived: says("tier", "archive") && !is_pinned,
            forgotten: says("forgotten", "true"),
        };
        record.aliases = note.frontmatter.as_ref().map_or_else(Vec::new, |front| front.aliases.clone());
        record.tags = count_tags(note);
        record.properties = note
            .frontmatter
            .iter()
            .flat_map(Frontmatter::flat)
            .map(|(name, value)| (name, value.clone()))
            .collect();
        (document, reading)
    }
}

/// Counts the tags of a note, and with them the names under `tags` that are no tags to Obsidian: those are found, too.
fn count_tags(note: &Note) -> Vec<(String, usize)> {
    let mut order: Vec<(String, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let unread: Vec<String> = note.frontmatter.as_ref().map_or_else(Vec::new, unconverted_names);
    for name in note.tags.iter().map(|tag| &tag.name).chain(&unread) {
        let at = *places.entry(key(name)).or_insert_with(|| {
            order.push((name.clone(), 0));
            order.len() - 1
        });
        if let Some((_, count)) = order.get_mut(at) {
            *count += 1;
        }
    }
    order
}

/// Gathers links by their text. What a note mentions without a link stands among them without a place, so that a rename
/// finds the note.
fn link_groups(note: &Note) -> Vec<LinkGroup> {
    let mut groups: Vec<LinkGroup> = Vec::new();
    let mut known: HashMap<(&str, bool), usize> = HashMap::new();
    for (ord, link) in note.links.iter().enumerate() {
        // `[[## text]]` is an editor's typing aid and means nothing (spec/obsidian.md 2.2).
        let is_aid = link.path.is_empty() && link.subpath.starts_with("##");
        let linkpath = if is_aid { &link.subpath } else { &link.path };
        let exact = matches!(link.form, LinkForm::CanvasFile | LinkForm::CanvasGroup);
        let at = *known.entry((linkpath, exact)).or_insert_with(|| {
            groups.push(LinkGroup { exact, linkpath: linkpath.clone(), target: None, positions: Vec::new() });
            groups.len() - 1
        });
        groups[at].positions.push(LinkPosition { ord, line: link.line });
    }
    for link in note.mentions.iter().map(|mention| &mention.link).filter(|link| !link.path.is_empty()) {
        let exact = link.form == LinkForm::CanvasFile;
        known.entry((&link.path, exact)).or_insert_with(|| {
            groups.push(LinkGroup {
                exact,
                linkpath: link.path.clone(),
                target: None,
                positions: Vec::new(),
            });
            groups.len() - 1
        });
    }
    groups
}

/// Gathers what is to be indexed of a note, in an entry that is empty.
fn collect_texts(path: &NotePath, reading: &Reading, record: &Record, entry: &mut IndexedText) {
    let note = &reading.note;
    entry.title.push_str(&reading.title);
    let mut known = HashSet::new();
    known.insert(key(&reading.title));
    for name in record.aliases.iter().map(String::as_str).chain([path.stem()]) {
        if known.insert(key(name)) {
            entry.title.push('\n');
            entry.title.push_str(name);
        }
    }
    for heading in &note.headings {
        entry.headings.push_str(&heading.text);
        entry.headings.push('\n');
    }
    let is = |kinds: &'static [PieceKind]| move |piece: &&Piece| kinds.contains(&piece.kind);
    let push = |kinds: &'static [PieceKind], out: &mut String| {
        push_pieces(reading.prose(), note.pieces.iter().filter(is(kinds)), out);
    };
    entry.body.reserve(reading.prose().len());
    push(&[PieceKind::Prose, PieceKind::Heading], &mut entry.body);
    if let Some(summary) = property_text(note, "summary") {
        entry.body.push('\n');
        entry.body.push_str(&summary);
    }
    push(&[PieceKind::Code, PieceKind::Math], &mut entry.code);
    entry.path.push_str(path.as_str());
    for (tag, _) in &record.tags {
        entry.meta.push_str(tag);
        entry.meta.push('\n');
    }
    let mut told = HashSet::new();
    for (name, value) in &record.properties {
        let name = key(name);
        if !matches!(name.as_str(), "id" | "tags" | "title" | "summary" | "aliases") {
            push_value(value, &mut entry.meta, &mut told);
        }
        entry.keys.push(name);
    }
    for piece in note.pieces.iter().filter(is(&[PieceKind::Url])) {
        entry.meta.push_str(piece.span.of(reading.prose()));
        entry.meta.push('\n');
    }
    push_rest(path, reading, &record.properties, &told, entry);
}

/// Gathers what no other field holds as it stands, so that every run of letters in the file is in some term. `told` are
/// the values of properties that are in `meta`.
fn push_rest(
    path: &NotePath,
    reading: &Reading,
    properties: &Map<String, Value>,
    told: &HashSet<Cow<'_, str>>,
    entry: &mut IndexedText,
) {
    // Half-width sound marks melt with the letter before them when terms are folded.
    let is_plain = reading.text.is_ascii() || reading.text.bytes().all(|byte| byte < COMBINING);
    entry.incomplete = !is_plain
        && (is_nfc_quick(reading.text.chars()) != IsNormalized::Yes
            || reading.text.contains(['\u{FF9E}', '\u{FF9F}']));
    if path.is_canvas() {
        for text in canvas::texts(&reading.text) {
            entry.rest.push_str(&text);
            entry.rest.push('\n');
        }
        return;
    }
    let note = &reading.note;
    let mut at = 0;
    let mut gap = |from: usize, to: usize| {
        let between = reading.text.get(from..to).unwrap_or("");
        if between.bytes().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
            entry.rest.push_str(between);
            entry.rest.push('\n');
        }
    };
    let is_told = |span: &Span| {
        let value = span.of(&reading.text);
        let quoted = ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
        told.contains(quoted.unwrap_or(value)) && stands_apart(&reading.text, *span)
    };
    let values = note.frontmatter.iter().flat_map(|front| &front.properties).flat_map(|value| &value.scalars);
    let held = |piece: &&Piece| match piece.kind {
        PieceKind::Prose | PieceKind::Heading | PieceKind::Code | PieceKind::Math => true,
        // It stands in `meta` by itself.
        PieceKind::Url => stands_apart(&reading.text, piece.span),
        PieceKind::Comment => false,
    };
    let pieces = note.pieces.iter().filter(held).map(|piece| piece.span);
    for span in values.map(|scalar| scalar.span).filter(is_told).chain(pieces) {
        gap(at, span.start);
        at = at.max(span.end);
    }
    gap(at, reading.text.len());
    // The word beside such an address is cut from it.
    for piece in note.pieces.iter().filter(|piece| piece.kind == PieceKind::Url && !held(piece)) {
        let before = reading.text.get(..piece.span.start).unwrap_or("");
        let behind = reading.text.get(piece.span.end..).unwrap_or("");
        let from = before.trim_end_matches(char::is_alphanumeric).len();
        gap(from, reading.text.len() - behind.trim_start_matches(char::is_alphanumeric).len());
    }
    let Some(front) = &note.frontmatter else { return };
    // Looking for each value costs values times bytes.
    let raw = Some(front.span.of(&reading.text)).filter(|raw| raw.len() <= SHORT_FRONTMATTER);
    properties.values().for_each(|value| push_unlike(value, raw, told, &mut entry.rest));
}

/// The first byte of U+0300, the first character that can be a part of another.
const COMBINING: u8 = 0xCC;

/// Up to so many bytes of frontmatter are looked through for each of its values.
const SHORT_FRONTMATTER: usize = 4_096;

/// Appends what a value says, for an escape or a number may stand in the file in another form than it is asked for; but
/// not what was `told` already or stands in `raw` as it is.
fn push_unlike(value: &Value, raw: Option<&str>, told: &HashSet<Cow<'_, str>>, out: &mut String) {
    if let Value::Array(items) = value {
        return items.iter().for_each(|item| push_unlike(item, raw, told, out));
    }
    let Some(said) = said(value).filter(|said| !told.contains(said.as_ref())) else { return };
    if !raw.is_some_and(|raw| raw.contains(said.as_ref())) {
        out.push_str(&said);
        out.push('\n');
    }
}

/// Appends what a value says, each item on a line, and notes that it is told.
fn push_value<'a>(value: &'a Value, out: &mut String, told: &mut HashSet<Cow<'a, str>>) {
    let items = if let Value::Array(items) = value { items } else { std::slice::from_ref(value) };
    for said in items.iter().filter_map(said) {
        out.push_str(&said);
        out.push('\n');
        told.insert(said);
    }
}

/// Gives the text of a value that is a text or a number.
fn said(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// Says whether neither end of a span is inside a word.
fn stands_apart(text: &str, span: Span) -> bool {
    let is_open = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let before = text.get(..span.start).and_then(|before| before.chars().next_back());
    let behind = text.get(span.end..).and_then(|behind| behind.chars().next());
    is_open(before) && is_open(behind)
}
