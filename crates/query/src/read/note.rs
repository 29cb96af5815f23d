//! Reads a note: the whole text, a section, a block or lines, or everything that the parser finds in it.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_attachments::{Readable, decode_text};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileId, FileKind, FileRow, LinkRow};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::link::Link;
use sidenote_markdown::media_type::media_type;
use sidenote_markdown::note::{Block, Heading, Note, ParseProblem, Task};
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::span::Span;
use sidenote_markdown::subpath::SubpathTarget;
use sidenote_markdown::tag_conversion;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::parts::part;

use crate::read::Reads;

/// The part of a note to read.
#[derive(Debug, Clone, Default)]
pub struct ReadRequest {
    /// The note, by any of its names.
    pub note: String,
    /// A heading (nested headings joined by `#`), or `^block`.
    pub section: Option<String>,
    /// First and last line, counted from 1.
    pub lines: Option<(usize, usize)>,
}

/// A note or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadReply {
    /// Vault path.
    pub path: String,
    /// The note's id.
    pub id: String,
    /// The note's title.
    pub title: String,
    /// BLAKE3 of the whole file, in hex: the `etag` that edits compare.
    pub hash: String,
    /// First and last line of the text, counted from 1.
    pub lines: (usize, usize),
    /// The source text; bytes that are no UTF-8 stand as U+FFFD.
    pub text: String,
    /// Notices about parts that the text does not show as they are in the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// Returns the part of a span that lies in some lines, or the span if none are asked for.
///
/// # Errors
/// `Invalid` if the text has no such lines, or the span is elsewhere.
pub(super) fn within_lines(
    path: &NotePath,
    reading: &ParsedNote,
    span: Span,
    lines: Option<(usize, usize)>,
) -> Result<Span> {
    let Some((first, last)) = lines else { return Ok(span) };
    let whole = Span::new(0, reading.text.len());
    let asked = reading
        .lines_span(first, last)
        .ok_or_else(|| past_the_end(path.as_str(), reading.lines_of(whole).1, first, last))?;
    if asked.start >= span.end.max(span.start + 1) || asked.end <= span.start && !span.is_empty() {
        let (from, to) = reading.lines_of(span);
        return Err(Error::invalid(format!(
            "that section of {path} is lines {from} to {to}, and line {first} is not in it"
        )));
    }
    Ok(Span::new(span.start.max(asked.start), span.end.min(asked.end)))
}

/// A property as written in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectProperty {
    /// The key as written.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Its type's name.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Key through value.
    pub span: Span,
}

/// A link of a note, with its parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectLink {
    /// The construct as written.
    pub original: String,
    /// Its bytes.
    pub span: Span,
    /// The bytes of its destination.
    pub dest_span: Span,
    /// The form's name.
    pub form: &'static str,
    /// Decoded path part.
    pub path: String,
    /// Decoded subpath with its `#`.
    pub subpath: String,
    /// Shown text.
    pub display: Option<String>,
    /// Whether it embeds.
    pub embed: bool,
    /// Width and height of an image.
    pub size: Option<(u32, Option<u32>)>,
    /// The property that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Line, counted from 1.
    pub line: usize,
    /// The vault path that it means.
    pub resolved: Option<String>,
}

/// Everything that the parser finds in a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectReply {
    /// Vault path.
    pub path: String,
    /// The note's id.
    pub id: String,
    /// BLAKE3 of the file, in hex.
    pub hash: String,
    /// The note's title.
    pub title: String,
    /// Property values; nothing where there is no frontmatter or it is invalid.
    pub frontmatter: Option<Map<String, Value>>,
    /// Why the frontmatter could not be read.
    pub frontmatter_error: Option<String>,
    /// Properties with their bytes.
    pub properties: Vec<InspectProperty>,
    /// Tag names, one for each occurrence, those of the frontmatter first.
    pub tags: Vec<String>,
    /// Other names.
    pub aliases: Vec<String>,
    /// The headings.
    pub headings: Vec<Heading>,
    /// Blocks with an id.
    pub blocks: Vec<Block>,
    /// Checkboxes.
    pub tasks: Vec<Task>,
    /// The links.
    pub links: Vec<InspectLink>,
    /// The passages that are embedded.
    pub passages: Vec<InspectPassage>,
    /// What could not be read.
    pub problems: Vec<ParseProblem>,
}

/// A passage of a note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectPassage {
    /// From its first to its last searchable byte.
    pub span: Span,
    /// First and last line, counted from 1.
    pub lines: (usize, usize),
    /// Headings above it.
    pub heading: String,
}

impl Reads<'_> {
    /// Reads a note or a part of it from the current file.
    ///
    /// # Errors
    /// `NotFound` for a note, section or block that is not there; `Exists` for an ambiguous name.
    #[tracing::instrument(skip_all)]
    pub fn read(&self, request: &ReadRequest) -> Result<ReadReply> {
        let (row, named) = Lookup::of(self.core).find_with_part(&request.note)?;
        if row.kind == FileKind::Attachment
            && let Some(reply) = self.read_document(&row, request, named.as_ref().map(|named| named.text))?
        {
            return Ok(reply);
        }
        let mut bytes = self.core.read_bytes(&row.path)?;
        if let Some(Readable::Text(_)) = Readable::of(row.path.name()) {
            bytes = decode_text(bytes).map_err(|why| Error::invalid(format!("{}: {why}", row.path)))?;
        }
        if row.kind == FileKind::Attachment && (bytes.contains(&0) || std::str::from_utf8(&bytes).is_err()) {
            let (path, kind, size) = (&row.path, media_type(row.path.as_str()), bytes.len());
            return Err(Error::invalid(format!("{path} ({kind}, {size} bytes) is not text")));
        }
        let reading = ParsedNote::new(&row.path, &bytes);
        if let Some(text) = utf16_text(&reading, &bytes) {
            return whole_utf16(row, &bytes, text, request);
        }
        let whole = Span::new(0, reading.text.len());
        let found = match (request.section.as_deref(), named) {
            (Some(section), _) => Some(part(&reading.note, &row.path, section)?),
            // A link means the first part with its name.
            (None, Some(named)) => match reading.note.subpath(named.text).filter(|_| named.is_link) {
                Some(first) => Some(first),
                None => Some(part(&reading.note, &row.path, named.text)?),
            },
            (None, None) => None,
        };
        let span = found.and_then(|part| part_span(&reading, part)).unwrap_or(whole);
        let span = within_lines(&row.path, &reading, span, request.lines)?;
        let is_lossy = reading.note.problems.iter().any(|problem| problem.code == "invalid-utf8");
        // Offsets count the bytes of the file, also where they were replaced.
        let text = match bytes.get(span.start..span.end).filter(|_| is_lossy) {
            Some(part) => String::from_utf8_lossy(part).into_owned(),
            None => span.of(&reading.text).to_owned(),
        };
        let notices = is_lossy.then(|| {
            format!(
                "{} holds bytes that are no UTF-8; they are shown as \u{FFFD}, and it is never rewritten",
                row.path
            )
        });
        Ok(ReadReply {
            path: row.path.as_str().to_owned(),
            id: row.note_id,
            title: reading.title.clone(),
            hash: blake3::hash(&bytes).to_hex().to_string(),
            lines: reading.lines_of(span),
            text,
            notices: notices.into_iter().collect(),
        })
    }

    /// Returns everything that the parser finds in a note or canvas.
    ///
    /// # Errors
    /// `NotFound` if there is no such note; `Exists` if several notes have the name.
    #[tracing::instrument(skip_all)]
    pub fn inspect(&self, name: &str) -> Result<InspectReply> {
        let row = Lookup::of(self.core).find(name)?;
        let bytes = self.core.read_bytes(&row.path)?;
        let reading = ParsedNote::new(&row.path, &bytes);
        let note = &reading.note;
        let settings = self.core.vault.settings();
        let resolved = self.resolved_links(&row, note)?;
        let links = note.links.iter().enumerate().map(|(at, link)| InspectLink {
            original: link.span.of(&reading.text).to_owned(),
            span: link.span,
            dest_span: link.dest_span,
            form: link.form.name(),
            path: link.path.clone(),
            subpath: link.subpath.clone(),
            display: link.display.clone(),
            embed: link.embed,
            size: link.size,
            key: link.key.clone(),
            line: link.line,
            resolved: resolved.get(at).cloned().flatten(),
        });
        let properties = note.frontmatter.iter().flat_map(|front| &front.properties).map(|property| {
            let declared = settings.declared_type(&property.key);
            InspectProperty {
                key: property.key.clone(),
                value: property.value.clone(),
                kind: sidenote_markdown::frontmatter::kind_of(&property.key, &property.value, declared)
                    .name(),
                span: property.span,
            }
        });
        let passages = reading.passages();
        Ok(InspectReply {
            path: row.path.as_str().to_owned(),
            id: row.note_id,
            hash: blake3::hash(&bytes).to_hex().to_string(),
            title: reading.title.clone(),
            frontmatter: note
                .frontmatter
                .as_ref()
                .filter(|front| front.error.is_none() && !front.properties.is_empty())
                .map(|front| front.values()),
            frontmatter_error: note.frontmatter.as_ref().and_then(|front| front.error.clone()),
            properties: properties.collect(),
            tags: tags_once(note),
            aliases: note.frontmatter.as_ref().map_or_else(Vec::new, |front| front.aliases.clone()),
            headings: note.headings.clone(),
            blocks: note.blocks.clone(),
            tasks: note.tasks.clone(),
            links: links.collect(),
            passages: passages
                .iter()
                .map(|passage| InspectPassage {
                    span: passage.span,
                    lines: reading.lines_of(passage.span),
                    heading: reading.heading_path_of(passage),
                })
                .collect(),
            problems: note.problems.clone(),
        })
    }

    /// Returns the path of the target of each link of a note, or none if the note changed since it was indexed.
    pub fn resolved_links(&self, row: &FileRow, note: &Note) -> Result<Vec<Option<String>>> {
        let catalog = self.core.index.catalog();
        let stored = catalog.links().outgoing(row.id)?;
        let mut ids: Vec<FileId> = stored.iter().filter_map(|link| link.target).collect();
        ids.sort_unstable();
        ids.dedup();
        let paths: HashMap<FileId, String> =
            catalog.rows(&ids)?.into_iter().map(|row| (row.id, row.path.as_str().to_owned())).collect();
        let meant = |(link, row): (&Link, &LinkRow)| {
            row.target.filter(|_| row.linkpath == link.path).and_then(|target| paths.get(&target).cloned())
        };
        Ok(note.links.iter().zip(&stored).map(meant).collect())
    }
}

/// Lists the tags of a note, each in its first spelling. Names that Obsidian does not accept as tags come last.
fn tags_once(note: &Note) -> Vec<String> {
    let unread = note.frontmatter.as_ref().map_or_else(Vec::new, tag_conversion::unconverted_names);
    let mut known = HashSet::new();
    let names = note.tags.iter().map(|tag| tag.name.clone()).chain(unread);
    names.filter(|name| known.insert(key(name))).collect()
}

/// Decodes a file in UTF-16, which is not indexed. Returns `None` for any other file.
fn utf16_text(reading: &ParsedNote, bytes: &[u8]) -> Option<String> {
    reading.note.problems.iter().find(|problem| problem.code == "utf-16")?;
    // Without a byte order mark, the zero byte of an ASCII letter shows the byte order.
    let is_big = bytes.starts_with(&[0xFE, 0xFF]) || bytes.first() == Some(&0);
    let unit = |pair: &[u8]| match pair {
        [first, second] if is_big => u16::from_be_bytes([*first, *second]),
        [first, second] => u16::from_le_bytes([*first, *second]),
        _ => u16::from(b' '),
    };
    let units: Vec<u16> = bytes.chunks_exact(2).map(unit).collect();
    Some(String::from_utf16_lossy(&units).trim_start_matches('\u{FEFF}').to_owned())
}

/// Returns a file in UTF-16, or lines of it.
fn whole_utf16(row: FileRow, bytes: &[u8], text: String, request: &ReadRequest) -> Result<ReadReply> {
    let path = row.path.as_str().to_owned();
    if request.section.is_some() {
        return Err(Error::invalid(format!("{path} is UTF-16, so its sections are not known"))
            .with_hint("save it as UTF-8"));
    }
    let count = text.lines().count().max(1);
    let (first, last) = request.lines.unwrap_or((1, count));
    if first < 1 || first > last || first > count {
        return Err(past_the_end(&path, count, first, last));
    }
    Ok(ReadReply {
        notices: vec![format!("{path} is UTF-16; it is shown as UTF-8, and is not searched or rewritten")],
        id: row.note_id,
        title: row.title,
        hash: blake3::hash(bytes).to_hex().to_string(),
        lines: (first, last.min(count)),
        text: text.split_inclusive('\n').skip(first - 1).take(last - first + 1).collect(),
        path,
    })
}

fn past_the_end(path: &str, count: usize, first: usize, last: usize) -> Error {
    if first > last {
        return Error::invalid(format!("line {first} comes after line {last}"));
    }
    let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
    Error::invalid(format!("{path} has {lines}, so there is no line {first}"))
}

/// Returns the span of a part: the section of a heading, a block or a footnote.
fn part_span(reading: &ParsedNote, part: SubpathTarget) -> Option<Span> {
    match part {
        SubpathTarget::Heading(at) => reading.note.section_span(&reading.text, at),
        SubpathTarget::Block(at) => reading.note.blocks.get(at).map(|block| block.span),
        SubpathTarget::Footnote(at) => reading.note.footnotes.get(at).map(|footnote| footnote.span),
    }
}
