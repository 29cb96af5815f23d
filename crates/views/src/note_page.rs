//! One note or file as a page shows it: rendered text, outline, properties and weight.
//!
//! The HTML is not sanitized yet. Whoever serves it does that, by [`NotePage::each_html`].

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileKind, FileRow};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::commonmark::{
    EmbedHtml, LinkPages, LinkTarget, escape_attribute, escape_text, heading_ids, html,
};
use sidenote_markdown::frontmatter::kind_of;
use sidenote_markdown::link::{Link, LinkContext};
use sidenote_markdown::media_type::{is_text, media_type};
use sidenote_markdown::note::Note;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::Source;
use sidenote_query::memory_weights::{Memory, MemoryWeights};
use sidenote_query::read::Reads;

use crate::Views;
use crate::page_links::{EmbedRoom, PageLinks, raw_address, search_address, web_address};

/// Returns the outline of an attachment: its places.
fn places(reading: &ParsedNote) -> Vec<OutlineItem> {
    let items = reading.note.headings.iter().map(|heading| {
        let place = reading.place_at(heading.span.start);
        let id = place.map(|place| format!("{}={}", place.kind, place.number)).unwrap_or_default();
        OutlineItem { level: 1, text: heading.text.clone(), line: heading.line, id }
    });
    items.collect()
}

/// Returns the text of an attachment as HTML: a heading for each place, and its paragraphs.
fn document_html(reading: &ParsedNote, outline: &[OutlineItem]) -> String {
    let mut html = String::new();
    for (at, item) in outline.iter().enumerate() {
        let (id, label) = (escape_attribute(&item.id), escape_text(&item.text));
        html.push_str(&format!("<h2 id=\"{id}\" data-line=\"{}\">{label}</h2>\n", item.line));
        let span = reading.note.section_span(&reading.text, at);
        let text = span.map_or("", |span| span.of(&reading.text));
        let (_, text) = text.split_once('\n').unwrap_or_default();
        for paragraph in
            text.split("\n\n").map(|text| text.trim_matches('\n')).filter(|text| !text.trim().is_empty())
        {
            html.push_str(&format!("<p>{}</p>\n", escape_text(paragraph).replace('\n', "<br>\n")));
        }
    }
    html
}

/// Returns a link that downloads a file.
fn download(raw: &str, name: &str) -> String {
    format!("<p><a class=\"download\" href=\"{raw}\" download=\"{name}\">{name}</a></p>")
}

/// The largest text file, in bytes, that is shown as text although it is not a note.
const MOST_TEXT: usize = 1_000_000;

/// A heading of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutlineItem {
    /// The level, 1 to 6.
    pub level: u8,
    /// The source text of the heading.
    pub text: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The id of the heading in the HTML.
    pub id: String,
}

/// A property of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PropertyView {
    /// The key as written.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The name of its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The value as HTML, with its links.
    pub html: String,
}

/// A node of a canvas.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanvasNode {
    /// The fields of the node that are numbers or short texts: `id`, `type`, `x`, `y`, `width`, `height`, `color`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
    /// The label of a group.
    pub label: Option<String>,
    /// What the card shows, as HTML.
    pub html: String,
}

/// A canvas for a drawing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanvasView {
    /// The nodes.
    pub nodes: Vec<CanvasNode>,
    /// The edges, with the fields `id`, `fromNode`, `fromSide`, `toNode`, `toSide`, `color` and `label`.
    pub edges: Vec<Map<String, Value>>,
}

/// A note, canvas or other file as a page shows it.
#[derive(Debug, Clone, Serialize)]
pub struct NotePage {
    /// Vault path.
    pub path: String,
    /// The note's id.
    pub id: String,
    /// The title.
    pub title: String,
    /// BLAKE3 of the file, in hex; empty for a file that is not read.
    pub hash: String,
    /// `note`, `canvas` or `attachment`.
    pub kind: &'static str,
    /// When the note was created.
    pub created: Timestamp,
    /// When the note was last changed.
    pub updated: Timestamp,
    /// The length in bytes.
    pub size: u64,
    /// The rendered text.
    pub html: String,
    /// The source text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The headings.
    pub outline: Vec<OutlineItem>,
    /// The properties.
    pub properties: Vec<PropertyView>,
    /// Why the properties could not be read.
    pub frontmatter_error: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// Other names.
    pub aliases: Vec<String>,
    /// The nodes and edges of a canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canvas: Option<CanvasView>,
    /// The note as a memory; none for other files.
    pub memory: Option<Memory>,
    /// What could not be read, or is not shown as it is in the file.
    pub notices: Vec<String>,
}

impl NotePage {
    /// Visits every piece of HTML.
    pub fn each_html(&mut self, mut visit: impl FnMut(&mut String)) {
        visit(&mut self.html);
        self.properties.iter_mut().for_each(|property| visit(&mut property.html));
        let nodes = self.canvas.iter_mut().flat_map(|canvas| &mut canvas.nodes);
        nodes.for_each(|node| visit(&mut node.html));
    }
}

impl Views<'_> {
    /// Renders a note, canvas or other file.
    ///
    /// # Errors
    /// `NotFound` if no file has the name; `Exists` if several have it; `Io` if it cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn note(&self, name: &str) -> Result<NotePage> {
        let row = Lookup::of(self.core).find(name)?;
        if row.kind == FileKind::Attachment {
            return self.attachment(row);
        }
        let bytes = self.core.read_bytes(&row.path)?;
        let (hash, parsed) = (blake3::hash(&bytes), ParsedNote::new(&row.path, bytes));
        let targets = Reads::of(self.core).resolved_links(&row, &parsed.note)?;
        self.page_of(row, hash, parsed, targets)
    }

    /// Renders a note as it would be with another source, which is not written.
    ///
    /// # Errors
    /// `NotFound` if no file has the name; `Exists` if several have it; `Invalid` if it is no note.
    #[tracing::instrument(skip_all)]
    pub fn preview(&self, name: &str, source: &str) -> Result<NotePage> {
        let row = Lookup::of(self.core).find(name)?;
        if row.kind != FileKind::Note {
            return Err(Error::invalid(format!("{} is not a Markdown note", row.path)));
        }
        // The index does not know the links of this text, so they are looked up as a plan does it.
        let view = View::for_edits(self.core)?;
        let unsaved = Source::unplaced(row.path.clone(), source.as_bytes());
        let names = view.names(std::slice::from_ref(&unsaved), BTreeSet::new())?.table();
        let parsed = ParsedNote::new(&row.path, source.as_bytes());
        let target = |link: &Link| names.follow(link, &row.path).map(|found| found.path.to_string());
        let targets = parsed.note.links.iter().map(target).collect();
        self.page_of(row, blake3::hash(source.as_bytes()), parsed, targets)
    }

    /// Renders a note or canvas whose links lead to these files.
    fn page_of(
        &self,
        row: FileRow,
        hash: blake3::Hash,
        parsed: ParsedNote,
        targets: Vec<Option<String>>,
    ) -> Result<NotePage> {
        let hash = hash.to_hex().to_string();
        let room = EmbedRoom::default();
        let links = PageLinks::of(self.core, row.path.clone(), targets, vec![row.path.clone()], &room);
        let note = &parsed.note;
        let canvas = parsed.is_canvas().then(|| canvas_of(&parsed, &links));
        let html = match &canvas {
            Some(canvas) => {
                canvas.nodes.iter().map(|node| format!("<div class=\"card\">{}</div>\n", node.html)).collect()
            }
            None => html(&parsed.text, note, None, &links),
        };
        let outline = note.headings.iter().zip(heading_ids(note)).map(|(heading, id)| OutlineItem {
            level: heading.level,
            text: heading.text.clone(),
            line: heading.line,
            id,
        });
        let properties = self.properties(note, &links);
        let memory = match row.kind {
            FileKind::Note => {
                MemoryWeights::of(self.core).weigh(vec![row.clone()], self.core.clock.now())?.pop()
            }
            _ => None,
        };
        let mut seen = std::collections::HashSet::new();
        let tags = note.tags.iter().map(|tag| tag.name.clone()).filter(|tag| seen.insert(tag.to_lowercase()));
        Ok(NotePage {
            path: row.path.as_str().to_owned(),
            id: row.note_id,
            title: parsed.title.clone(),
            hash,
            kind: if canvas.is_some() { "canvas" } else { "note" },
            created: memory.as_ref().map_or(row.created, |memory| memory.created),
            updated: row.updated,
            size: parsed.text.len() as u64,
            html,
            outline: outline.collect(),
            properties,
            frontmatter_error: note.frontmatter.as_ref().and_then(|front| front.error.clone()),
            tags: tags.collect(),
            aliases: note.frontmatter.as_ref().map_or_else(Vec::new, |front| front.aliases.clone()),
            canvas,
            memory,
            notices: note.problems.iter().map(|problem| problem.message.clone()).collect(),
            text: Some(parsed.text),
        })
    }

    /// Shows a file that is not a note: as what it is, or as a link to its bytes.
    fn attachment(&self, row: FileRow) -> Result<NotePage> {
        let path = row.path.as_str();
        let (kind, raw) = (media_type(path), escape_attribute(&raw_address(path)));
        let name = escape_attribute(row.path.name());
        let mut notices = Vec::new();
        let mut outline = Vec::new();
        // The browser shows a PDF file itself.
        let is_pdf = kind == "application/pdf";
        let document = match Reads::of(self.core).document(&row) {
            _ if is_pdf => None,
            Ok(document) => document.map(|document| {
                notices.extend(document.problem);
                outline = places(&document.reading);
                document_html(&document.reading, &outline)
            }),
            Err(error) => {
                notices.push(error.to_string());
                Some(download(&raw, &name))
            }
        };
        let html = match kind.split('/').next().unwrap_or("") {
            _ if let Some(html) = document => html,
            "image" => format!("<img src=\"{raw}\" alt=\"{name}\">"),
            "audio" => format!("<audio controls src=\"{raw}\"></audio>"),
            "video" => format!("<video controls src=\"{raw}\"></video>"),
            _ if is_pdf => {
                format!("<iframe class=\"pdf\" src=\"{raw}\" title=\"{name}\"></iframe>")
            }
            _ if is_text(kind) || row.path.extension().eq_ignore_ascii_case("base") => {
                let bytes = self.core.read_bytes(&row.path)?;
                let text =
                    String::from_utf8_lossy(bytes.get(..bytes.len().min(MOST_TEXT)).unwrap_or_default());
                if bytes.len() > MOST_TEXT {
                    notices.push(format!("only the first {MOST_TEXT} bytes are shown"));
                }
                format!("<pre><code>{}</code></pre>", escape_text(&text))
            }
            _ => download(&raw, &name),
        };
        Ok(NotePage {
            path: path.to_owned(),
            id: String::new(),
            title: row.path.name().to_owned(),
            hash: String::new(),
            kind: "attachment",
            created: row.created,
            updated: row.updated,
            size: row.size,
            html,
            text: None,
            outline,
            properties: Vec::new(),
            frontmatter_error: None,
            tags: Vec::new(),
            aliases: Vec::new(),
            canvas: None,
            memory: None,
            notices,
        })
    }

    fn properties(&self, note: &Note, links: &PageLinks<'_>) -> Vec<PropertyView> {
        let settings = self.core.vault.settings();
        let properties = note.frontmatter.iter().flat_map(|front| &front.properties);
        let view = properties.map(|property| PropertyView {
            key: property.key.clone(),
            value: property.value.clone(),
            kind: kind_of(&property.key, &property.value, settings.declared_type(&property.key)).name(),
            html: value_html(note, links, &property.key, &property.value),
        });
        view.collect()
    }
}

/// Renders the value of a property, whose links are those with its key.
fn value_html(note: &Note, links: &PageLinks<'_>, key: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(items) => {
            let item = |(at, item): (usize, &Value)| {
                let is_tag = key.eq_ignore_ascii_case("tags") || key.eq_ignore_ascii_case("tag");
                let shown = match item.as_str().filter(|_| is_tag) {
                    Some(tag) => tag_html(tag),
                    None => value_html(note, links, &format!("{key}.{at}"), item),
                };
                format!("<li>{shown}</li>")
            };
            format!("<ul>{}</ul>", items.iter().enumerate().map(item).collect::<String>())
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let shown = value_html(note, links, &format!("{key}.{name}"), value);
                format!("<li><code>{}</code> {shown}</li>", escape_text(name))
            };
            format!("<ul>{}</ul>", fields.iter().map(field).collect::<String>())
        }
        Value::String(text) => text_html(note, links, key, text),
        other => escape_text(&other.to_string()),
    }
}

fn tag_html(tag: &str) -> String {
    let tag = tag.trim_start_matches('#');
    let address = escape_attribute(&search_address(&format!("tag:#{tag}")));
    format!(
        "<a class=\"tag\" href=\"{address}\" data-tag=\"{}\">#{}</a>",
        escape_attribute(tag),
        escape_text(tag)
    )
}

fn text_html(note: &Note, links: &PageLinks<'_>, key: &str, text: &str) -> String {
    let found = note.links.iter().enumerate().find(|(_, link)| link.key.as_deref() == Some(key));
    if let Some((number, link)) = found {
        let shown = escape_text(link.display.as_deref().unwrap_or(text));
        let written = format!("{}{}", link.path, link.subpath);
        return link_html(&links.target(number, link), &written, &shown);
    }
    match web_address(text).filter(|_| !text.contains(char::is_whitespace)) {
        Some(address) => format!(
            "<a class=\"external\" href=\"{}\" rel=\"noopener noreferrer\" target=\"_blank\">{}</a>",
            escape_attribute(&address),
            escape_text(text)
        ),
        None => escape_text(text),
    }
}

/// The fields of a node that are given as they are.
const NODE_FIELDS: [&str; 7] = ["id", "type", "x", "y", "width", "height", "color"];
/// The fields of an edge that are given as they are.
const EDGE_FIELDS: [&str; 7] = ["id", "fromNode", "fromSide", "toNode", "toSide", "color", "label"];

/// Reads a canvas for a drawing, in the order in which it is read: from the top to the bottom, from left to right.
fn canvas_of(parsed: &ParsedNote, links: &PageLinks<'_>) -> CanvasView {
    let whole: Value = serde_json::from_str(parsed.text.trim_start_matches('\u{FEFF}')).unwrap_or_default();
    let list = |name: &str| whole.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let kept = |from: &Value, names: &[&str]| -> Map<String, Value> {
        let is_plain =
            |value: &Value| value.is_number() || value.as_str().is_some_and(|text| text.len() < 1_000);
        let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), from.get(*name)?.clone())));
        fields.filter(|(_, value)| is_plain(value)).collect()
    };
    // The links of the canvas are those of its nodes, in the order of the file.
    let mut number = 0;
    let mut nodes: Vec<CanvasNode> = list("nodes")
        .iter()
        .map(|node| CanvasNode {
            fields: kept(node, &NODE_FIELDS),
            label: node.get("label").and_then(Value::as_str).map(str::to_owned),
            html: card_html(node, &parsed.note, links, &mut number),
        })
        .collect();
    let place = |node: &CanvasNode, name: &str| node.fields.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    nodes.sort_by(|a, b| {
        place(a, "y").total_cmp(&place(b, "y")).then(place(a, "x").total_cmp(&place(b, "x")))
    });
    let edges = list("edges").iter().map(|edge| kept(edge, &EDGE_FIELDS)).collect();
    CanvasView { nodes, edges }
}

/// Shows a card: its text, or a link to what it is about. `number` is that of its first link in the canvas, and becomes that
/// of the first link behind it.
fn card_html(node: &Value, canvas: &Note, links: &PageLinks<'_>, number: &mut usize) -> String {
    let field = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or("");
    match field("type") {
        "text" => {
            let note = Note::parse(field("text"));
            let mut numbers = Vec::new();
            for link in &note.links {
                // A canvas has no properties, so links in those of a card are none.
                let is_link = link.place != LinkContext::Property;
                numbers.push(is_link.then_some(*number));
                *number += usize::from(is_link);
            }
            html(field("text"), &note, None, &CardLinks { links, numbers })
        }
        "file" if !field("file").is_empty() => {
            *number += 1;
            file_card_html(*number - 1, field("file"), canvas, links)
        }
        "link" => match web_address(field("url")) {
            Some(address) => format!(
                "<a class=\"external\" href=\"{}\" rel=\"noopener noreferrer\" target=\"_blank\">{}</a>",
                escape_attribute(&address),
                escape_text(&address)
            ),
            None => escape_text(field("url")),
        },
        _ => {
            *number += usize::from(field("type") == "group" && !field("background").is_empty());
            escape_text(field("label"))
        }
    }
}

/// Shows the card of a file: an image, or a link to the file.
fn file_card_html(number: usize, written: &str, canvas: &Note, links: &PageLinks<'_>) -> String {
    let name = written.rsplit('/').next().unwrap_or("");
    let target = canvas.links.get(number).map_or(LinkTarget::Nowhere, |link| links.target(number, link));
    match target {
        LinkTarget::File { path, .. } if media_type(&path).starts_with("image/") => format!(
            "<img src=\"{}\" alt=\"{}\" loading=\"lazy\">",
            escape_attribute(&raw_address(&path)),
            escape_attribute(name)
        ),
        target => link_html(&target, written, &escape_text(name)),
    }
}

/// Returns a link as HTML, around what is shown of it.
fn link_html(target: &LinkTarget, written: &str, shown: &str) -> String {
    match target {
        LinkTarget::File { address, path } => format!(
            "<a class=\"internal\" href=\"{}\" data-path=\"{}\">{shown}</a>",
            escape_attribute(address),
            escape_attribute(path)
        ),
        LinkTarget::Nowhere => {
            format!(
                "<a class=\"internal unresolved\" data-link=\"{}\">{shown}</a>",
                escape_attribute(written)
            )
        }
    }
}

/// The links of a card, each with its number among those of the canvas.
struct CardLinks<'a> {
    links: &'a PageLinks<'a>,
    numbers: Vec<Option<usize>>,
}

impl CardLinks<'_> {
    fn number(&self, number: usize) -> Option<usize> {
        self.numbers.get(number).copied().flatten()
    }
}

impl LinkPages for CardLinks<'_> {
    fn target(&self, number: usize, link: &Link) -> LinkTarget {
        self.number(number).map_or(LinkTarget::Nowhere, |number| self.links.target(number, link))
    }

    fn embed(&self, number: usize, link: &Link) -> EmbedHtml {
        match self.number(number) {
            Some(number) => self.links.embed(number, link),
            None => EmbedHtml { html: String::new(), is_block: false },
        }
    }

    fn tag_address(&self, tag: &str) -> String {
        self.links.tag_address(tag)
    }

    fn web_address(&self, url: &str) -> Option<String> {
        self.links.web_address(url)
    }

    fn has_ids(&self) -> bool {
        false
    }
}
