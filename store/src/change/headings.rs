//! Finds a heading of a note by its name.

use crate::source::Source;
use sidenote_foundation::error::{Error, Result};
use sidenote_foundation::text::rewrite::heading_linktext;
use sidenote_foundation::text::subpath::SubpathTarget;

pub(crate) fn heading(source: &Source, name: &str) -> Result<usize> {
    let wanted = name.trim_start_matches('#').trim();
    let exact = source.note.headings.iter().position(|heading| heading.text == wanted);
    let by_key = || match source.note.subpath(&format!("#{}", heading_linktext(wanted))) {
        Some(SubpathTarget::Heading(at)) => Some(at),
        _ => None,
    };
    exact.or_else(by_key).ok_or_else(|| {
        let there: Vec<&str> =
            source.note.headings.iter().take(12).map(|heading| heading.text.as_str()).collect();
        let hint = if there.is_empty() { "the note has no headings".to_owned() } else { there.join(" / ") };
        Error::not_found(format!("{} has no heading {name:?}", source.path)).with_hint(hint)
    })
}
