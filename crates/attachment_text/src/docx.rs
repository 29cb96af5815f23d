//! Text documents of Word.

use std::collections::{BTreeMap, BTreeSet};

use crate::package::Package;
use crate::properties::{self, Date};
use crate::writer::Writer;
use crate::xml::{self, Element, Node};
use crate::{AttachmentText, PlaceKind, Unreadable};

/// Reads a text document.
pub(crate) fn read(bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    let mut package = Package::open(bytes)?;
    let main = package.main_part("word/document.xml")?;
    let document = package.need(&main)?;
    let headings = package.read("word/styles.xml")?.map(|styles| headings(&styles)).unwrap_or_default();
    let mut notes = BTreeMap::new();
    for part in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(bytes) = package.read(part)? {
            read_notes(&bytes, &mut notes);
        }
    }
    let mut body = Body { writer: Writer::new(PlaceKind::Chapter), headings, notes, ..Body::new() };
    body.read(&document);
    body.writer.paragraph();
    let mut seen = BTreeSet::new();
    for relation in package.relations(&main)? {
        if matches!(relation.kind.as_str(), "header" | "footer")
            && let Some(bytes) = package.read(&relation.target)?
        {
            let text = plain(&bytes);
            if !text.is_empty() && seen.insert(text.clone()) {
                body.writer.push(&text);
                body.writer.paragraph();
            }
        }
    }
    let stated = package
        .read("docProps/core.xml")?
        .map(|core| properties::read(&core, Date::Modified))
        .unwrap_or_default();
    Ok(AttachmentText { places: body.writer.finish()?, ..stated })
}

/// Returns the ids of the styles that are headings: those whose name says so or that have a level of the outline.
fn headings(styles: &[u8]) -> BTreeSet<String> {
    let mut headings = BTreeSet::new();
    let mut style = String::new();
    xml::walk(styles, |node| {
        if let Node::Start(element) = node {
            match element.name() {
                "style" => style = element.attribute("styleId").unwrap_or_default(),
                "name" => {
                    let name = element.attribute("val").unwrap_or_default().to_lowercase();
                    if name.starts_with("heading") || name == "title" {
                        headings.insert(style.clone());
                    }
                }
                // Level 9 is that of the text.
                "outlineLvl" if element.attribute("val").as_deref() != Some("9") => {
                    headings.insert(style.clone());
                }
                _ => {}
            }
        }
        true
    });
    headings
}

/// Reads foot- or endnotes by their ids.
fn read_notes(bytes: &[u8], notes: &mut BTreeMap<String, String>) {
    let mut id = String::new();
    let mut text = String::new();
    let mut in_text = false;
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => match element.name() {
                name @ ("footnote" | "endnote") => {
                    id = format!("{name}{}", element.attribute("id").unwrap_or_default());
                    text.clear();
                }
                name => in_text = name == "t",
            },
            Node::Text(part) if in_text => text.push_str(&part),
            Node::Text(_) => {}
            Node::End(name) => match name.as_str() {
                "footnote" | "endnote" if !text.trim().is_empty() => {
                    notes.insert(std::mem::take(&mut id), text.trim().to_owned());
                }
                "p" => text.push(' '),
                _ => in_text = false,
            },
        }
        true
    });
}

/// Returns the text of a part without headings.
fn plain(bytes: &[u8]) -> String {
    let mut body = Body::new();
    body.read(bytes);
    let places = body.writer.finish().unwrap_or_default();
    places.into_iter().map(|place| place.text).collect::<Vec<_>>().join("\n\n")
}

/// The body of a document as it is read.
struct Body {
    writer: Writer,
    headings: BTreeSet<String>,
    notes: BTreeMap<String, String>,
    /// The notes of the paragraph.
    due: Vec<String>,
    paragraph: String,
    is_heading: bool,
    in_text: bool,
    /// How many tables the text stands in.
    tables: usize,
    /// How many parts that repeat others the text stands in.
    skipped: usize,
}

impl Body {
    fn new() -> Self {
        Self {
            writer: Writer::new(PlaceKind::Chapter),
            headings: BTreeSet::new(),
            notes: BTreeMap::new(),
            due: Vec::new(),
            paragraph: String::new(),
            is_heading: false,
            in_text: false,
            tables: 0,
            skipped: 0,
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        xml::walk(bytes, |node| {
            match node {
                Node::Start(element) => self.start(&element),
                Node::Text(text) if self.in_text && self.skipped == 0 => self.paragraph.push_str(&text),
                Node::Text(_) => {}
                Node::End(name) => self.end(&name),
            }
            !self.writer.is_full()
        });
        self.end_paragraph();
    }

    fn start(&mut self, element: &Element<'_>) {
        match element.name() {
            "t" => self.in_text = true,
            // A text box in a paragraph has paragraphs of its own.
            "p" => self.end_paragraph(),
            "tab" | "ptab" => self.paragraph.push('\t'),
            "br" | "cr" => self.paragraph.push('\n'),
            "noBreakHyphen" => self.paragraph.push('-'),
            "pStyle" => {
                self.is_heading =
                    element.attribute("val").is_some_and(|style| self.headings.contains(&style));
            }
            "outlineLvl" if element.attribute("val").as_deref() != Some("9") => self.is_heading = true,
            "footnoteReference" | "endnoteReference" => {
                let kind = element.name().trim_end_matches("Reference");
                let id = format!("{kind}{}", element.attribute("id").unwrap_or_default());
                self.due.extend(self.notes.remove(&id));
            }
            "tbl" => {
                self.end_paragraph();
                self.tables += 1;
            }
            "tc" => self.writer.cell(),
            "Fallback" => self.skipped += 1,
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" => self.end_paragraph(),
            "tr" if self.tables > 0 => self.writer.line(),
            "tbl" => {
                self.tables = self.tables.saturating_sub(1);
                self.writer.paragraph();
            }
            "Fallback" => self.skipped = self.skipped.saturating_sub(1),
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.paragraph);
        let text = text.trim();
        let is_heading = std::mem::take(&mut self.is_heading) && self.tables == 0;
        if text.is_empty() {
            return;
        }
        if is_heading {
            self.writer.begin(Some(text.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        if self.tables > 0 {
            self.writer.push_collapsed(text);
            self.writer.push(" ");
            return;
        }
        self.writer.push(text);
        self.writer.paragraph();
        for note in std::mem::take(&mut self.due) {
            self.writer.push(&note);
            self.writer.paragraph();
        }
    }
}
