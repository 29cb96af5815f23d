//! Finds a part of a note by its name: a heading, a block or a footnote. Readers and writers use it alike.

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_links::part_name::{clear_name, parts_named};
use sidenote_markdown::note::Note;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::subpath::SubpathTarget;

/// The largest number of parts that an error lists.
const LISTED: usize = 12;

/// Finds the part of a note with a name.
///
/// # Errors
/// `NotFound`, with the headings of the note, if no part has the name; `Exists`, with a name of each that is clear, if
/// several have it.
pub fn part(note: &Note, path: &NotePath, name: &str) -> Result<SubpathTarget> {
    match parts_named(note, name).as_slice() {
        [part] => Ok(*part),
        [] => Err(no_part(note, path, name)),
        several => {
            let clear = several.iter().take(LISTED).map(|part| match part {
                SubpathTarget::Heading(at) => clear_name(note, *at),
                SubpathTarget::Block(at) => {
                    let line = note.blocks.get(*at).map_or(0, |block| block.lines.0);
                    format!("the block of line {line}")
                }
                SubpathTarget::Footnote(_) => String::new(),
            });
            let clear: Vec<String> = clear.collect();
            let what = if matches!(several, [SubpathTarget::Heading(_), ..]) { "headings" } else { "blocks" };
            let hint = if what == "headings" {
                format!("give one of: {}", clear.join(" / "))
            } else {
                format!("give each its own id first: {}", clear.join(" / "))
            };
            Err(Error::new(ErrorKind::Exists, format!("{path} has {} {what} {name:?}", several.len()))
                .with_hint(hint))
        }
    }
}

/// Finds the heading of a note with a name.
///
/// # Errors
/// Those of [`part`]; `Invalid` if the name is that of a block or footnote, which have no section.
pub fn heading(note: &Note, path: &NotePath, name: &str) -> Result<usize> {
    match part(note, path, name)? {
        SubpathTarget::Heading(at) => Ok(at),
        SubpathTarget::Block(_) | SubpathTarget::Footnote(_) => {
            Err(Error::invalid(format!("{name:?} of {path} is no heading, and has no section"))
                .with_hint("give a heading, or replace the text itself"))
        }
    }
}

fn no_part(note: &Note, path: &NotePath, name: &str) -> Error {
    let headings: Vec<&str> =
        note.headings.iter().take(LISTED).map(|heading| heading.text.as_str()).collect();
    let error = Error::not_found(format!("{path} has no section {name:?}"));
    if headings.is_empty() {
        error.with_hint("the note has no headings")
    } else {
        error.with_hint(format!("its headings are: {}", headings.join(" / ")))
    }
}
