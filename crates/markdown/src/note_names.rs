//! The names of a note: its title, its id, and all names that find it.

use serde_json::Value;

use crate::note::Note;
use crate::path::{NotePath, key};

/// Returns the text of a property: a string, or a number or boolean in JSON notation.
pub fn property_text(note: &Note, name: &str) -> Option<String> {
    match &note.frontmatter.as_ref()?.get(name)?.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Returns the title of a note: its property `title` if it is not blank, or else the level-one heading at its start if
/// it is not empty, or else its file name.
pub fn title_of(path: &NotePath, note: &Note) -> String {
    let opening = note.headings.first().filter(|heading| heading.level == 1);
    property_text(note, "title")
        .filter(|title| !title.trim().is_empty())
        .or_else(|| opening.map(|heading| heading.text.clone()).filter(|text| !text.is_empty()))
        .unwrap_or_else(|| path.stem().to_owned())
}

/// Returns the property `id` of a note, if it is not empty.
pub fn own_id(note: &Note) -> Option<String> {
    property_text(note, "id").filter(|id| !id.is_empty())
}

/// Returns whether a note has a name, given as its [`key`]: its title, an alias, or its file name without extension.
pub fn is_named(path: &NotePath, note: &Note, wanted: &str) -> bool {
    let aliases = note.frontmatter.iter().flat_map(|front| &front.aliases);
    aliases
        .map(String::as_str)
        .chain([title_of(path, note).as_str(), path.stem()])
        .any(|name| key(name) == wanted)
}
