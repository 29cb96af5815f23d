//! What a PDF file says about itself, in its information dictionary and in XMP.

use hayro_syntax::Pdf;
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{DateTime, Dict, Stream};

use super::text_string;
use crate::AttachmentText;
use crate::properties::{self, Date};

/// Reads title, authors and dates; XMP, which is the newer form, counts where it states something.
pub(super) fn read(pdf: &Pdf, catalog: Option<&Dict<'_>>) -> AttachmentText {
    let info = pdf.metadata();
    let string = |bytes: &Option<Box<[u8]>>| {
        bytes
            .as_deref()
            .map(|bytes| text_string(bytes).trim_matches(['\0', ' ', '\n', '\r', '\t']).to_owned())
            .filter(|s| !s.is_empty())
    };
    let packet = catalog.and_then(|catalog| catalog.get::<Stream<'_>>(keys::METADATA));
    let packet = packet.and_then(|stream| stream.decoded_data().ok());
    let stated = packet.map(|packet| properties::read(&packet, Date::Modified)).unwrap_or_default();
    let authors = string(&info.author).map(|author| vec![author]).unwrap_or_default();
    AttachmentText {
        title: stated.title.or_else(|| string(&info.title)),
        authors: if stated.authors.is_empty() { authors } else { stated.authors },
        created: stated.created.or_else(|| info.creation_date.as_ref().and_then(iso)),
        modified: stated.modified.or_else(|| info.modification_date.as_ref().and_then(iso)),
        places: Vec::new(),
    }
}

/// Writes a date as ISO 8601; `None` if it is none.
fn iso(date: &DateTime) -> Option<String> {
    let DateTime { year, month, day, hour, minute, second, utc_offset_hour, utc_offset_minute } = *date;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let zone = if utc_offset_hour == 0 && utc_offset_minute == 0 {
        "Z".to_owned()
    } else {
        let sign = if utc_offset_hour < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", utc_offset_hour.unsigned_abs(), utc_offset_minute)
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"))
}
