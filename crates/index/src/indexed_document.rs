//! An indexed document: the catalog record and the full-text entry of one file, made from its bytes alone.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};
use sidenote_attachments::{Readable, TextKind};
use sidenote_base::clock::{StatedTime, Timestamp};
use sidenote_bm25::{AnalyzedNote, Analyzer, IndexedText};
use sidenote_catalog::{
    CreationSource, Details, FileKind, FileRow, Inactive, LinkGroup, LinkPosition, LinkRole, Record, Stat,
    TimeSources, path_id,
};
use sidenote_language::language::{Language, detect};
use sidenote_links::dialect_evidence::LinkEvidence;
use sidenote_markdown::attachment::{self, Place};
use sidenote_markdown::canvas;
use sidenote_markdown::decode::decode_whole;
use sidenote_markdown::frontmatter::Frontmatter;
use sidenote_markdown::line::Lines;
use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::name_date::day_in_name;
use sidenote_markdown::note::{Note, Piece, PieceKind, Separator};
use sidenote_markdown::note_names::{own_id, property_text, title_of};
use sidenote_markdown::passage::{Passage, each_embedded_text, passages, push_pieces};
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::relation::{Relation, RelationRules, relations};
use sidenote_markdown::span::Span;
use sidenote_markdown::tag_conversion::unconverted_names;
use sidenote_vectors::passage_key;
use unicode_normalization::{IsNormalized, is_nfc_quick};

/// About how many bytes at the beginning of a note tell its language. They are more words than are looked at.
const LANGUAGE_SAMPLE: usize = 1 << 13;

/// The pieces that are indexed as the body, and those that are indexed as code.
const BODY: &[PieceKind] = &[PieceKind::Prose, PieceKind::Heading];
const CODE: &[PieceKind] = &[PieceKind::Code, PieceKind::Math];

/// What the index stores of one file.
#[derive(Debug, Clone)]
pub struct IndexedDocument {
    /// The catalog record. The number of the file in it is 0.
    pub record: Record,
    /// The full-text entry; attachments have none.
    pub entry: Option<AnalyzedNote>,
}

/// A parsed note, canvas or text of an attachment: its decoded text and its structure.
#[derive(Debug, Clone)]
pub struct ParsedNote {
    /// The decoded text. Offsets in it are those of the file.
    pub text: String,
    /// The structure of the text.
    pub note: Note,
    /// The title.
    pub title: String,
    /// The text of a canvas with its JSON escapes replaced by text of the same length. Pieces are cut from it.
    unescaped: Option<String>,
    /// Whether this is the text of an attachment.
    pub is_attachment: bool,
    /// The starts of the lines, computed on first use.
    lines: OnceLock<Lines>,
    /// The passages, cut on first use.
    passages: OnceLock<Vec<Passage>>,
    /// The language, detected on first use.
    language: OnceLock<Option<Language>>,
}

impl ParsedNote {
    /// Parses a note, a canvas or the text of an attachment in the form of [`attachment`]; never fails. Owned bytes are not
    /// copied.
    pub fn new<'b>(path: &NotePath, bytes: impl Into<Cow<'b, [u8]>>) -> Self {
        let (text, problem) = decode_whole(bytes.into());
        let kind = FileKind::of(path);
        let (mut note, unescaped) = match kind {
            FileKind::Canvas => (canvas::parse(&text), Some(canvas::searchable(&text).into_owned())),
            FileKind::Note => (Note::parse(&text), None),
            FileKind::Attachment => (attachment::parse(&text, piece_kind(path)), None),
        };
        note.problems.extend(problem);
        let is_attachment = kind == FileKind::Attachment;
        let title = if is_attachment { path.name().to_owned() } else { title_of(path, &note) };
        let (lines, passages, language) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { lines, passages, language, text, note, title, unescaped, is_attachment }
    }

    /// Returns the text that pieces and passages are cut from: that of the file, or of a canvas the one without
    /// escapes.
    pub fn prose(&self) -> &str {
        self.unescaped.as_deref().unwrap_or(&self.text)
    }

    /// Returns whether this is a canvas, whose text is JSON.
    pub fn is_canvas(&self) -> bool {
        self.unescaped.is_some()
    }

    /// Returns the language of the note; `None` if it is English or cannot be told.
    pub fn language(&self) -> Option<Language> {
        *self.language.get_or_init(|| {
            let mut sample = String::new();
            let mut length = 0;
            let is_first = |piece: &&Piece| {
                let before = length;
                length += piece.span.len();
                before < LANGUAGE_SAMPLE
            };
            push_pieces(self.prose(), self.body_pieces().take_while(is_first), &mut sample);
            detect(if sample.trim().is_empty() { &self.title } else { &sample })
        })
    }

    /// Returns the pieces that are indexed as the body.
    fn body_pieces(&self) -> impl Iterator<Item = &Piece> {
        // The numbers of pages and slides are no words of an attachment.
        let is_label = |piece: &&Piece| self.is_attachment && piece.kind == PieceKind::Heading;
        self.note
            .pieces
            .iter()
            .filter(|piece| BODY.contains(&piece.kind))
            .filter(move |piece| !is_label(piece))
    }

    /// Returns the place in which the first of some lines that has text lies. See [`ParsedNote::place_at`].
    pub fn place_of(&self, (first, _): (usize, usize)) -> Option<Place> {
        self.place_at(self.lines().start(first))
    }

    /// Returns the place in which an offset lies, if this is the text of an attachment that has places.
    pub fn place_at(&self, offset: usize) -> Option<Place> {
        Some(()).filter(|()| self.is_attachment).and_then(|()| attachment::place_at(&self.note, offset))
    }

    /// Appends the text that is indexed as the body.
    fn push_body(&self, body: &mut String) {
        push_pieces(self.prose(), self.body_pieces(), body);
        if let Some(summary) = property_text(&self.note, "summary") {
            body.push('\n');
            body.push_str(&summary);
        }
    }

    /// Returns the passages of the note.
    pub fn passages(&self) -> &[Passage] {
        self.passages.get_or_init(|| passages(self.prose(), &self.note))
    }

    /// Returns the text that a model embeds for each passage, in order. A `summary` property is the last one, as a
    /// passage of its own.
    pub fn embedded_texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        self.each_embedded_text(|text| texts.push(text.to_owned()));
        texts
    }

    /// Visits the texts that [`ParsedNote::embedded_texts`] returns.
    pub(crate) fn each_embedded_text(&self, mut visit: impl FnMut(&str)) {
        each_embedded_text(self.prose(), &self.note, &self.title, &mut visit);
        let summary = property_text(&self.note, "summary");
        summary.filter(|summary| !summary.trim().is_empty()).iter().for_each(|summary| visit(summary));
    }

    /// Returns the first and last line of a span, counted from 1.
    pub fn lines_of(&self, span: Span) -> (usize, usize) {
        (self.lines().of(span.start), self.lines().of(span.end.max(span.start + 1) - 1))
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::new(&self.text))
    }

    /// Returns the span of the lines from `first` to `last`, counted from 1, with their line ends. Returns `None`
    /// if there are no such lines.
    pub fn lines_span(&self, first: usize, last: usize) -> Option<Span> {
        let count = self.lines_of(Span::new(0, self.text.len())).1;
        (first >= 1 && first <= last && first <= count).then(|| {
            Span::new(
                self.lines().start(first),
                self.lines().start(last.saturating_add(1)).min(self.text.len()),
            )
        })
    }

    /// Returns the headings above a passage, joined by ` > `.
    pub fn heading_path_of(&self, passage: &Passage) -> String {
        let headings = passage.trail.iter().filter_map(|&at| self.note.headings.get(at));
        headings.map(|heading| heading.text.as_str()).collect::<Vec<_>>().join(" > ")
    }
}

/// Returns the kind of the lines of an attachment.
fn piece_kind(path: &NotePath) -> PieceKind {
    match Readable::of(path.name()) {
        Some(Readable::Text(TextKind::Code)) => PieceKind::Code,
        _ => PieceKind::Prose,
    }
}

fn first_time(note: &Note, names: &[&str]) -> Option<StatedTime> {
    names.iter().find_map(|name| property_text(note, name).and_then(|text| StatedTime::parse(&text)))
}

pub(crate) fn is_local(time: &StatedTime) -> bool {
    matches!(time, StatedTime::Local(_))
}

impl IndexedDocument {
    /// Creates the document of an attachment whose text is not known. It can only be the target of links.
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
                    time_sources: TimeSources::default(),
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
                relations: Vec::new(),
                tasks: Vec::new(),
                passages: Vec::new(),
                sections: Vec::new(),
                names_parts: false,
                waits: false,
            },
            entry: None,
        }
    }

    /// Creates the document of a note whose bytes could not be read. If `again` is set, the next sync tries again.
    pub fn unreadable(path: &NotePath, stat: Stat, again: bool, excluded: bool, why: &str) -> Self {
        let mut document = Self::attachment(path, stat, again, excluded);
        document.record.row.kind = FileKind::of(path);
        document.record.row.title = path.stem().to_owned();
        document.record.row.note_id = path_id(path);
        let problem = serde_json::json!([{ "code": "unreadable", "message": why, "span": null }]);
        document.record.problems = problem.to_string();
        document
    }

    /// Returns whether the file has an encoding that is not supported.
    pub(crate) fn is_skipped(&self) -> bool {
        self.record.problems.contains("\"utf-16\"")
    }

    /// Creates the document of a note or canvas from its bytes.
    pub(crate) fn from_note(
        path: &NotePath,
        bytes: Vec<u8>,
        stat: Stat,
        racy: bool,
        excluded: bool,
        analyzer: &mut Analyzer,
        rules: &RelationRules,
    ) -> Self {
        let (mut document, reading) = Self::parse_record(path, bytes, stat, racy, excluded);
        let record = &mut document.record;
        let note = &reading.note;
        record.problems = serde_json::to_string(&note.problems).unwrap_or_else(|_| "[]".to_owned());
        let (links, groups) = link_groups(note);
        record.links = links;
        let names_part = |link: &Link| !link.is_external() && !link.looked_up_subpath().is_empty();
        record.names_parts = note.links.iter().any(names_part);
        record.relations = relation_records(path, &reading, rules, &groups);
        if record.row.kind == FileKind::Note {
            record.sections = note.sections(&reading.text);
            record.tasks.clone_from(&note.tasks);
        }
        if !excluded {
            reading.each_embedded_text(|text| record.passages.push(passage_key(text)));
            let record = &document.record;
            document.entry = Some(analyzer.analyze(|texts| collect_texts(path, &reading, record, texts)));
        }
        document
    }

    /// Creates the row of a note or canvas that the catalog lacks or has in an older version. The number of the
    /// file is 0.
    pub fn row_of(path: &NotePath, bytes: Vec<u8>, stat: Stat, excluded: bool) -> FileRow {
        let Record { mut row, tags, properties, .. } =
            Self::parse_record(path, bytes, stat, false, excluded).0.record;
        let tags = tags.into_iter().map(|(tag, _)| tag).collect();
        row.unindexed = Some(Arc::new(Details { tags, properties }));
        row
    }

    /// Creates the document of a note or canvas without its links, passages, sections and full-text entry. Returns
    /// the parsed note, too.
    fn parse_record(
        path: &NotePath,
        bytes: Vec<u8>,
        stat: Stat,
        racy: bool,
        excluded: bool,
    ) -> (Self, ParsedNote) {
        let hash = *blake3::hash(&bytes).as_bytes();
        let reading = ParsedNote::new(path, bytes);
        let mut document = Self::attachment(path, stat, racy, excluded);
        let note = &reading.note;
        let record = &mut document.record;
        record.row.kind = FileKind::of(path);
        record.row.hash = Some(hash);
        record.row.title.clone_from(&reading.title);
        record.row.note_id = own_id(note).unwrap_or_else(|| path_id(path));
        let changed = record.row.updated;
        let created = first_time(note, &["created_at", "created", "date"]);
        // A note that exists already was not created on a later day, whatever its name says.
        let of_name = day_in_name(path).filter(|day| created.is_none() && *day <= changed);
        record.row.created = created.map(StatedTime::instant).or(of_name).unwrap_or(changed);
        let updated = first_time(note, &["updated_at", "updated", "modified"]);
        record.row.updated = updated.map_or(changed, StatedTime::instant);
        record.row.time_sources = TimeSources {
            created: match (created, of_name) {
                (Some(_), _) => CreationSource::Property,
                (None, Some(_)) => CreationSource::Name,
                (None, None) => CreationSource::File,
            },
            is_created_local: created.as_ref().map_or(of_name.is_some(), is_local),
            is_updated_local: updated.as_ref().is_some_and(is_local),
        };
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

/// Counts the tags of a note. Names under `tags` that Obsidian does not accept as tags are counted, too, so that
/// they are found.
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

/// Lists the relations that a note states, whose ends are groups of links. `groups` has the group of each link.
fn relation_records(
    path: &NotePath,
    reading: &ParsedNote,
    rules: &RelationRules,
    groups: &[usize],
) -> Vec<Relation> {
    if reading.is_canvas() || reading.is_attachment {
        return Vec::new();
    }
    let aliases = reading.note.frontmatter.iter().flat_map(|front| &front.aliases).map(String::as_str);
    let names: Vec<&str> = [reading.title.as_str(), path.stem()].into_iter().chain(aliases).collect();
    let group = |link: usize| groups.get(link).copied();
    let found = relations(&reading.text, &reading.note, &names, rules).into_iter();
    let record = |relation: Relation| {
        let subject = match relation.subject {
            Some(link) => Some(group(link)?),
            None => None,
        };
        Some(Relation { subject, object: group(relation.object)?, ..relation })
    };
    found.filter_map(record).collect()
}

/// Groups links by their text, and returns the index of the group of each link, too. Mentions without a link are groups without a position, so that a rename finds the
/// note.
fn link_groups(note: &Note) -> (Vec<LinkGroup>, Vec<usize>) {
    let mut groups: Vec<LinkGroup> = Vec::new();
    let mut group_of = Vec::with_capacity(note.links.len());
    let mut known: HashMap<(&str, LinkSyntax), usize> = HashMap::new();
    for (ord, link) in note.links.iter().enumerate() {
        // `[[## text]]` is a typing aid of an editor and links to nothing (docs/spec/obsidian.md 2.2).
        let is_aid = link.path.is_empty() && link.subpath.starts_with("##");
        let linkpath = if is_aid { &link.subpath } else { &link.path };
        let syntax = link.form.syntax();
        let at = *known.entry((linkpath, syntax)).or_insert_with(|| {
            groups.push(LinkGroup {
                syntax,
                linkpath: linkpath.clone(),
                target: None,
                evidence: LinkEvidence::default(),
                positions: Vec::new(),
            });
            groups.len() - 1
        });
        group_of.push(at);
        groups[at].positions.push(LinkPosition { ord, line: link.line, role: LinkRole::of(link) });
    }
    for link in note.mentions.iter().map(|mention| &mention.link).filter(|link| !link.path.is_empty()) {
        let syntax = link.form.syntax();
        known.entry((&link.path, syntax)).or_insert_with(|| {
            groups.push(LinkGroup {
                syntax,
                linkpath: link.path.clone(),
                target: None,
                evidence: LinkEvidence::default(),
                positions: Vec::new(),
            });
            groups.len() - 1
        });
    }
    (groups, group_of)
}

/// Collects the text of each field of a note into an empty entry.
pub(crate) fn collect_texts(path: &NotePath, reading: &ParsedNote, record: &Record, entry: &mut IndexedText) {
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
        let named = reading.place_at(heading.span.start).map(|place| place.name.unwrap_or_default());
        entry.headings.push_str(named.as_deref().unwrap_or(&heading.text));
        entry.headings.push('\n');
    }
    let is = |kinds: &'static [PieceKind]| move |piece: &&Piece| kinds.contains(&piece.kind);
    let push = |kinds: &'static [PieceKind], out: &mut String| {
        push_pieces(reading.prose(), note.pieces.iter().filter(is(kinds)), out);
    };
    entry.body.reserve(reading.prose().len());
    reading.push_body(&mut entry.body);
    entry.language = reading.language();
    push(CODE, &mut entry.code);
    entry.path.push_str(path.as_str());
    for (tag, _) in &record.tags {
        entry.meta.push_str(tag);
        entry.meta.push('\n');
    }
    let mut listed = HashSet::new();
    for (name, value) in &record.properties {
        let name = key(name);
        if !matches!(name.as_str(), "id" | "tags" | "title" | "summary" | "aliases") {
            push_value(value, &mut entry.meta, &mut listed);
        }
        entry.keys.push(name);
    }
    for piece in note.pieces.iter().filter(is(&[PieceKind::Url])) {
        entry.meta.push_str(piece.span.of(reading.prose()));
        entry.meta.push('\n');
    }
    push_remaining(path, reading, &record.properties, &listed, entry);
}

/// Collects the text that no other field holds unchanged, so that every run of letters in the file is in some term, and is
/// a term of its own if no letter adjoins it. `listed` are the values of properties that are in `meta`.
fn push_remaining(
    path: &NotePath,
    reading: &ParsedNote,
    properties: &Map<String, Value>,
    listed: &HashSet<Cow<'_, str>>,
    entry: &mut IndexedText,
) {
    // Half-width sound marks combine with the letter before them when terms are folded.
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
    let is_listed = |span: &Span| {
        let value = span.of(&reading.text);
        let quoted = ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
        listed.contains(quoted.unwrap_or(value)) && is_at_word_boundaries(&reading.text, *span)
    };
    let values = note.frontmatter.iter().flat_map(|front| &front.properties).flat_map(|value| &value.scalars);
    let held = |piece: &&Piece| match piece.kind {
        PieceKind::Heading => !reading.is_attachment,
        PieceKind::Prose | PieceKind::Code | PieceKind::Math => true,
        // It is in `meta` as it stands.
        PieceKind::Url => is_at_word_boundaries(&reading.text, piece.span),
        PieceKind::Comment => false,
    };
    let pieces = note.pieces.iter().filter(held).map(|piece| piece.span);
    for span in values.map(|scalar| scalar.span).filter(is_listed).chain(pieces) {
        gap(at, span.start);
        at = at.max(span.end);
    }
    gap(at, reading.text.len());
    // The word next to such an address is not part of the prose pieces.
    for piece in note.pieces.iter().filter(|piece| piece.kind == PieceKind::Url && !held(piece)) {
        let before = reading.text.get(..piece.span.start).unwrap_or("");
        let behind = reading.text.get(piece.span.end..).unwrap_or("");
        let from = before.trim_end_matches(char::is_alphanumeric).len();
        gap(from, reading.text.len() - behind.trim_start_matches(char::is_alphanumeric).len());
    }
    // Pieces that only markup divides are one word in the other fields.
    for kinds in [BODY, CODE] {
        let pieces = note.pieces.iter().filter(|piece| kinds.contains(&piece.kind));
        for (before, piece) in pieces.clone().zip(pieces.skip(1)) {
            if piece.separator != Separator::None || before.span.end >= piece.span.start {
                continue;
            }
            let (left, right) = (before.span.of(&reading.text), piece.span.of(&reading.text));
            let left = left.len() - left.trim_end_matches(char::is_alphanumeric).len();
            let right = right.len() - right.trim_start_matches(char::is_alphanumeric).len();
            if left > 0 && right > 0 {
                gap(before.span.end - left, before.span.end);
                gap(piece.span.start, piece.span.start + right);
            }
        }
    }
    let Some(front) = &note.frontmatter else { return };
    // Searching for each value takes time proportional to values times bytes.
    let raw = Some(front.span.of(&reading.text)).filter(|raw| raw.len() <= MAX_SEARCHED_FRONTMATTER);
    properties.values().for_each(|value| push_unlisted(value, raw, listed, &mut entry.rest));
}

/// The first byte of U+0300, the first combining character.
const COMBINING: u8 = 0xCC;

/// The maximum length of frontmatter in bytes that is searched for each of its values.
const MAX_SEARCHED_FRONTMATTER: usize = 4_096;

/// Appends the text of a value unless it is `listed` already or `raw` contains it. An escaped string or a number
/// may be written in the file in another form than in a query.
fn push_unlisted(value: &Value, raw: Option<&str>, listed: &HashSet<Cow<'_, str>>, out: &mut String) {
    if let Value::Array(items) = value {
        return items.iter().for_each(|item| push_unlisted(item, raw, listed, out));
    }
    let Some(text) = scalar_text(value).filter(|text| !listed.contains(text.as_ref())) else { return };
    if !raw.is_some_and(|raw| raw.contains(text.as_ref())) {
        out.push_str(&text);
        out.push('\n');
    }
}

/// Appends the text of a value, each item on a line, and adds it to `listed`.
fn push_value<'a>(value: &'a Value, out: &mut String, listed: &mut HashSet<Cow<'a, str>>) {
    let items = if let Value::Array(items) = value { items } else { std::slice::from_ref(value) };
    for text in items.iter().filter_map(scalar_text) {
        out.push_str(&text);
        out.push('\n');
        listed.insert(text);
    }
}

/// Returns the text of a value that is a string or a number.
fn scalar_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// Returns whether neither end of a span is inside a word.
fn is_at_word_boundaries(text: &str, span: Span) -> bool {
    let is_open = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let before = text.get(..span.start).and_then(|before| before.chars().next_back());
    let behind = text.get(span.end..).and_then(|behind| behind.chars().next());
    is_open(before) && is_open(behind)
}
