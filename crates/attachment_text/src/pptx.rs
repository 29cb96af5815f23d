//! Presentations of PowerPoint.

use crate::package::{Package, by_id};
use crate::properties::{self, Date};
use crate::writer::Writer;
use crate::xml::{self, Node};
use crate::{AttachmentText, PlaceKind, Unreadable};

/// Reads a presentation: a place for each slide, in the order in which they are shown.
pub(crate) fn read(bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    let mut package = Package::open(bytes)?;
    let presentation = package.need("ppt/presentation.xml")?;
    let parts = by_id(package.relations("ppt/presentation.xml")?);
    let mut slides = Vec::new();
    xml::walk(&presentation, |node| {
        if let Node::Start(element) = node
            && element.name() == "sldId"
            && let Some(part) = element.prefixed("r:id").and_then(|id| parts.get(&id))
        {
            slides.push(part.clone());
        }
        true
    });
    let mut writer = Writer::new(PlaceKind::Slide);
    for slide in slides {
        if writer.is_full() {
            break;
        }
        let title = package.read(&slide)?.and_then(|bytes| write(&bytes, &mut writer, false));
        for relation in package.relations(&slide)? {
            if relation.kind == "notesSlide"
                && let Some(bytes) = package.read(&relation.target)?
            {
                write(&bytes, &mut writer, true);
            }
        }
        writer.end_as(title);
    }
    let stated = package
        .read("docProps/core.xml")?
        .map(|core| properties::read(&core, Date::Modified))
        .unwrap_or_default();
    Ok(AttachmentText { places: writer.finish()?, ..stated })
}

/// Writes the text of a slide, or of its notes, and returns its title.
fn write(bytes: &[u8], writer: &mut Writer, is_notes: bool) -> Option<String> {
    let mut title: Option<String> = None;
    let mut role = String::new();
    let mut paragraph = String::new();
    let (mut in_text, mut in_table, mut skipped) = (false, false, 0_usize);
    xml::walk(bytes, |node| {
        match node {
            Node::Start(element) => match element.name() {
                "sp" => role.clear(),
                "ph" => role = element.attribute("type").unwrap_or_else(|| "body".to_owned()),
                "t" => in_text = true,
                "br" => paragraph.push('\n'),
                "tbl" => in_table = true,
                "tc" => writer.cell(),
                "Fallback" => skipped += 1,
                _ => {}
            },
            Node::Text(text) if in_text && skipped == 0 => paragraph.push_str(&text),
            Node::Text(_) => {}
            Node::End(name) => match name.as_str() {
                "t" => in_text = false,
                "p" => {
                    let text = std::mem::take(&mut paragraph);
                    let text = text.trim();
                    // The page of notes repeats the number and the date of the slide.
                    let is_extra = matches!(role.as_str(), "sldNum" | "dt" | "ftr" | "hdr" | "sldImg");
                    if text.is_empty() || is_extra || (is_notes && role != "body") {
                        return true;
                    }
                    if in_table {
                        writer.push_collapsed(text);
                        writer.push(" ");
                        return true;
                    }
                    if matches!(role.as_str(), "title" | "ctrTitle") {
                        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                        title = Some(title.take().map_or(words.clone(), |first| format!("{first} {words}")));
                    }
                    writer.push(text);
                    writer.line();
                }
                "tr" => writer.line(),
                "tbl" => {
                    in_table = false;
                    writer.paragraph();
                }
                // What follows, such as a table, has no role of a placeholder.
                "sp" => {
                    role.clear();
                    writer.paragraph();
                }
                "Fallback" => skipped = skipped.saturating_sub(1),
                _ => {}
            },
        }
        !writer.is_full()
    });
    writer.paragraph();
    title
}
