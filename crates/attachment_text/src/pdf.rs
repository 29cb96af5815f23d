//! Text of PDF files: hayro reads objects and fonts, [`content`] what a page shows, and [`layout`] puts it into reading
//! order.

mod content;
mod font_program;
mod fonts;
mod layout;
mod metadata;

use hayro_syntax::object::Dict;
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::{AttachmentText, MAX_TEXT, Place, PlaceKind, Unreadable};

/// The share of a page above which an image makes it a scan, if it has no text. Scanners keep a small margin.
const SCAN_SHARE: f64 = 0.5;

/// How many pages are read. The longest books have some 10,000.
const MAX_PAGES: usize = 100_000;

/// Reads a PDF file.
pub(crate) fn read(bytes: &[u8]) -> Result<AttachmentText, Unreadable> {
    // Some files have a few bytes of a mail or of a server before their header.
    if !bytes.windows(5).take(1024).any(|window| window == b"%PDF-") {
        return Err(Unreadable::Damaged("the file does not begin as a PDF file".to_owned()));
    }
    let pdf = Pdf::new(bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(
            DecryptionError::UnsupportedAlgorithm | DecryptionError::PasswordProtected,
        ) => Unreadable::Encrypted,
        LoadPdfError::Decryption(_) => {
            Unreadable::Damaged("the encryption of the file is damaged".to_owned())
        }
        LoadPdfError::Invalid => {
            Unreadable::Damaged("the file has no table of its objects or no pages".to_owned())
        }
    })?;
    let xref = pdf.xref();
    let catalog = xref.get::<Dict<'_>>(xref.root_id());
    let mut text = metadata::read(&pdf, catalog.as_ref());
    let mut fonts = fonts::Fonts::new();
    let layers = content::HiddenLayers::of(catalog.as_ref());
    let mut length = 0;
    for (index, page) in pdf.pages().iter().take(MAX_PAGES).enumerate() {
        let shown = content::shown(page, &mut fonts, &layers);
        let page_text = layout::text(shown.glyphs);
        length += page_text.len();
        if length > MAX_TEXT {
            return Err(Unreadable::TooLong(MAX_TEXT));
        }
        let is_scan = page_text.is_empty() && shown.image_share > SCAN_SHARE;
        text.places.push(Place {
            kind: PlaceKind::Page,
            number: index + 1,
            name: None,
            text: page_text,
            is_scan,
        });
    }
    Ok(text)
}

/// Decodes a text string of PDF: UTF-16 or UTF-8 by its byte order mark, else the encoding of PDF documents.
fn text_string(bytes: &[u8]) -> String {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|&byte| of_pdf_doc_encoding(byte)).collect(),
    };
    without_language_escapes(&text)
}

/// Takes out the escapes that name the language of what follows: ESC, two or four letters, ESC.
fn without_language_escapes(text: &str) -> String {
    text.split('\u{1b}')
        .enumerate()
        .filter(|(index, part)| index % 2 == 0 || part.len() > 4)
        .map(|(_, part)| part)
        .collect()
}

fn of_pdf_doc_encoding(byte: u8) -> char {
    const ACCENTS: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const SIGNS: [char; 33] = [
        '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ',
        'ﬂ', 'Ł', 'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{fffd}', '€',
    ];
    match byte {
        0x18..=0x1f => ACCENTS[usize::from(byte - 0x18)],
        0x80..=0xa0 => SIGNS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
pub(crate) mod tests;
