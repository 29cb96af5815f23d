//! The text of attachments: bytes of a PDF, Office, EPUB or HTML file in, its text out, with the page, slide, sheet or
//! chapter in which each part stands.
//!
//! A file may be hostile: callers run [`read`] in a process whose memory, time and output are limited.

mod docx;
mod epub;
mod html;
mod open_document;
mod package;
mod pdf;
mod pptx;
mod properties;
#[cfg(test)]
mod tests;
mod writer;
mod xlsx;
mod xml;

use serde::{Deserialize, Serialize};

/// A format whose text can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A PDF file.
    Pdf,
    /// A text document of Word.
    Docx,
    /// A presentation of PowerPoint.
    Pptx,
    /// A spreadsheet of Excel.
    Xlsx,
    /// A text document of OpenDocument.
    Odt,
    /// A spreadsheet of OpenDocument.
    Ods,
    /// A presentation of OpenDocument.
    Odp,
    /// A book in EPUB.
    Epub,
    /// A web page.
    Html,
}

impl Format {
    /// Returns the format of a file by the extension of its name; `None` if its text cannot be read.
    pub fn of(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "pdf" => Self::Pdf,
            "docx" => Self::Docx,
            "pptx" => Self::Pptx,
            "xlsx" => Self::Xlsx,
            "odt" => Self::Odt,
            "ods" => Self::Ods,
            "odp" => Self::Odp,
            "epub" => Self::Epub,
            "html" | "htm" | "xhtml" => Self::Html,
            _ => return None,
        })
    }
}

impl Format {
    /// The formats and their names.
    const NAMES: [(Self, &str); 9] = [
        (Self::Pdf, "pdf"),
        (Self::Docx, "docx"),
        (Self::Pptx, "pptx"),
        (Self::Xlsx, "xlsx"),
        (Self::Odt, "odt"),
        (Self::Ods, "ods"),
        (Self::Odp, "odp"),
        (Self::Epub, "epub"),
        (Self::Html, "html"),
    ];

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(format, _)| *format == self).map_or("", |(_, name)| name)
    }

    /// Returns the format with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(format, _)| *format)
    }
}

/// What a place in an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceKind {
    /// A page of a PDF file.
    Page,
    /// A slide of a presentation.
    Slide,
    /// A sheet of a spreadsheet.
    Sheet,
    /// A chapter of a book, or a part of a document below a heading.
    Chapter,
}

/// A part of an attachment, by which a person finds a text in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What it is.
    pub kind: PlaceKind,
    /// Its number among all places of the file, from 1.
    pub number: usize,
    /// The name of a sheet, the title of a slide, or the heading of a chapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text, in reading order. Paragraphs are divided by an empty line.
    pub text: String,
    /// Whether a page shows an image and has no text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_scan: bool,
}

/// The text of an attachment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentText {
    /// The title that the file states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The authors that the file states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// When the file says it was created, as a date or time of ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// When the file says it was last changed, as a date or time of ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The parts of the file, in order.
    pub places: Vec<Place>,
}

/// Why a file has no text that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "detail")]
pub enum Unreadable {
    /// The file is not of the format that its name states, or is damaged. The text says what is wrong.
    Damaged(String),
    /// A password protects the file.
    Encrypted,
    /// The file has more text than is read. The number is the limit in bytes.
    TooLong(usize),
}

/// How many bytes of text one file may have: ten times a book of 1,500 pages. More is data, of which nobody searches a
/// sentence.
pub const MAX_TEXT: usize = 32 << 20;

/// Reads the text of a file.
///
/// # Errors
///
/// Fails if the file is damaged, needs a password or has more text than [`MAX_TEXT`].
pub fn read(format: Format, bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    let reading = || match format {
        Format::Pdf => pdf::read(bytes),
        Format::Docx => docx::read(bytes),
        Format::Pptx => pptx::read(bytes),
        Format::Xlsx => xlsx::read(bytes),
        Format::Odt => open_document::read(bytes, PlaceKind::Chapter),
        Format::Ods => open_document::read(bytes, PlaceKind::Sheet),
        Format::Odp => open_document::read(bytes, PlaceKind::Slide),
        Format::Epub => epub::read(bytes),
        Format::Html => html::read(bytes),
    };
    // Parsers of others may still have an assertion that a hostile file breaks.
    std::panic::catch_unwind(reading)
        .unwrap_or_else(|_| Err(Unreadable::Damaged("the parser failed".to_owned())))
}
