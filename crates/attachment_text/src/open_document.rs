//! Texts, spreadsheets and presentations of OpenDocument.

use crate::package::Package;
use crate::properties::{self, Date};
use crate::writer::Writer;
use crate::xml::{self, Element, Node};
use crate::{AttachmentText, PlaceKind, Unreadable};

/// How many spaces one element stands for, at most: columns of plain text are aligned by some dozens.
const MAX_SPACES: usize = 100;

/// Reads a document whose places are of one kind.
pub(crate) fn read(bytes: &[u8], kind: PlaceKind) -> Result<AttachmentText, Unreadable> {
    let mut package = Package::open(bytes)?;
    if let Some(manifest) = package.read("META-INF/manifest.xml")?
        && is_encrypted(&manifest)
    {
        return Err(Unreadable::Encrypted);
    }
    let content = package.need("content.xml")?;
    let mut body = Body {
        kind,
        writer: Writer::new(kind),
        paragraph: String::new(),
        paragraphs: 0,
        in_note: false,
        in_title: false,
        title: None,
        cell_date: None,
        cells: 0,
        skipped: 0,
    };
    xml::walk(&content, |node| {
        match node {
            Node::Start(element) => body.start(&element),
            Node::Text(text) if body.paragraphs > 0 && body.skipped == 0 => {
                // White space is one space, as in HTML; more of it has elements of its own.
                let lead = if text.starts_with(char::is_whitespace) { " " } else { "" };
                let trail =
                    if text.ends_with(char::is_whitespace) && !text.trim().is_empty() { " " } else { "" };
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                body.paragraph.push_str(&format!("{lead}{words}{trail}"));
            }
            Node::Text(_) => {}
            Node::End(name) => body.end(&name),
        }
        !body.writer.is_full()
    });
    let stated =
        package.read("meta.xml")?.map(|meta| properties::read(&meta, Date::Modified)).unwrap_or_default();
    Ok(AttachmentText { places: body.writer.finish()?, ..stated })
}

fn is_encrypted(manifest: &[u8]) -> bool {
    let mut encrypted = false;
    xml::walk(manifest, |node| {
        encrypted |= matches!(node, Node::Start(element) if element.name() == "encryption-data");
        !encrypted
    });
    encrypted
}

struct Body {
    kind: PlaceKind,
    writer: Writer,
    paragraph: String,
    /// How many paragraphs the text stands in: a note in a paragraph has its own.
    paragraphs: usize,
    in_note: bool,
    in_title: bool,
    title: Option<String>,
    /// The date that a cell stands for.
    cell_date: Option<String>,
    cells: usize,
    /// How many elements that are not shown the text stands in.
    skipped: usize,
}

impl Body {
    fn start(&mut self, element: &Element<'_>) {
        match element.name() {
            "tracked-changes" | "annotation" | "note-citation" | "forms" | "sequence-decls" => {
                self.skipped += 1
            }
            "p" | "h" => self.paragraphs += 1,
            "s" => {
                let count = element.attribute("c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
                self.paragraph.push_str(&" ".repeat(count.min(MAX_SPACES)));
            }
            "tab" => self.paragraph.push('\t'),
            "line-break" => self.paragraph.push('\n'),
            "note-body" => {
                self.in_note = true;
                self.paragraph.push(' ');
            }
            "table" if self.kind == PlaceKind::Sheet && self.cells == 0 => {
                self.title = element.attribute("name");
            }
            "table-cell" | "covered-table-cell" => {
                self.cells += 1;
                self.cell_date = element.attribute("date-value");
                self.writer.cell();
            }
            "page" => self.title = None,
            "frame" => self.in_title = element.attribute("class").as_deref() == Some("title"),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "tracked-changes" | "annotation" | "note-citation" | "forms" | "sequence-decls" => {
                self.skipped = self.skipped.saturating_sub(1);
            }
            "note-body" => self.in_note = false,
            "p" | "h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                self.end_paragraph(name == "h");
            }
            "table-cell" | "covered-table-cell" => self.cells = self.cells.saturating_sub(1),
            "table-row" => self.writer.line(),
            "table" if self.kind == PlaceKind::Sheet && self.cells == 0 => {
                let name = self.title.take();
                self.writer.end_as(name);
            }
            "table" => self.writer.paragraph(),
            "frame" => self.in_title = false,
            "page" if self.kind == PlaceKind::Slide => {
                let name = self.title.take();
                self.writer.end_as(name);
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self, is_heading: bool) {
        if self.in_note {
            // A note stands within the paragraph that it belongs to.
            return self.paragraph.push(' ');
        }
        let text = std::mem::take(&mut self.paragraph);
        let text = text.trim();
        if text.is_empty() || self.skipped > 0 {
            return;
        }
        let words = || text.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.cells > 0 {
            let shown = self.cell_date.take().unwrap_or_else(words);
            self.writer.push(&shown);
            return self.writer.push(" ");
        }
        if is_heading && self.kind == PlaceKind::Chapter {
            self.writer.begin(Some(words()));
        }
        if self.in_title && self.title.is_none() {
            self.title = Some(words());
        }
        self.writer.push(text);
        self.writer.paragraph();
    }
}
