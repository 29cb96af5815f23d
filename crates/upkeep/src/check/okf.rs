//! The rules of the Open Knowledge Format for the files of a bundle (docs/spec/memory.md, Open Knowledge Format).

use serde_json::Value;
use sidenote_markdown::decode::decode;
use sidenote_markdown::frontmatter;
use sidenote_markdown::note::Note;
use sidenote_markdown::path::NotePath;

use crate::check::problem::Problem;

/// The code of these problems.
pub(super) const CODE: &str = "okf";
/// The file that lists the contents of a folder.
const INDEX: &str = "index.md";
/// The file with the history of a folder.
const LOG: &str = "log.md";
/// The one property that the list of the outermost folder may have.
const VERSION: &str = "okf_version";

/// Returns what keeps a note from being a file of a bundle whose outermost folder is the vault.
pub(super) fn problem_of(path: &NotePath, bytes: &[u8]) -> Option<Problem> {
    let decoded = decode(bytes);
    let said = match path.name() {
        INDEX => index_problem(path, &decoded.text),
        LOG => log_problem(&decoded.text),
        _ => concept_problem(&decoded.text),
    };
    said.map(|message| Problem::of_file(path, CODE, message))
}

fn concept_problem(text: &str) -> Option<String> {
    let Some(block) = frontmatter::read(text).0 else {
        return Some("it has no frontmatter, so it is no concept of a bundle".to_owned());
    };
    if block.error.is_some() {
        return Some("its frontmatter cannot be read".to_owned());
    }
    let kind =
        block.properties.iter().find(|property| property.key == "type").map(|property| &property.value);
    match kind {
        Some(Value::String(kind)) if !kind.trim().is_empty() => None,
        Some(Value::String(_) | Value::Null) => Some("its property `type` is empty".to_owned()),
        Some(_) => Some("its property `type` is no text".to_owned()),
        None => Some("it has no property `type`".to_owned()),
    }
}

fn index_problem(path: &NotePath, text: &str) -> Option<String> {
    let block = frontmatter::read(text).0?;
    let is_version = |block: &frontmatter::Frontmatter| {
        block.error.is_none() && block.properties.iter().all(|property| property.key == VERSION)
    };
    if !path.folder().is_empty() {
        return Some("a list of a folder has no frontmatter".to_owned());
    }
    (!is_version(&block)).then(|| format!("its frontmatter may have {VERSION} alone"))
}

/// Headings of the second level are the dates, the newest first.
fn log_problem(text: &str) -> Option<String> {
    let note = Note::parse(text);
    let mut last: Option<String> = None;
    for heading in note.headings.iter().filter(|heading| heading.level == 2) {
        let date: String = heading.text.chars().take("2026-01-01".len()).collect();
        if !is_date(&date) {
            return Some(format!("its heading {:?} is no date as 2026-01-31", heading.text));
        }
        if last.as_ref().is_some_and(|last| *last < date) {
            return Some(format!("its entry of {date} is below an older one"));
        }
        last = Some(date);
    }
    None
}

fn is_date(text: &str) -> bool {
    let is_digit =
        |at: usize, byte: u8| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(|(at, byte)| is_digit(at, byte))
}
