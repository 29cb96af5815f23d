//! What a note says it is: its property `type`, and the links in its property `categories`.

use serde_json::Value;

/// The properties whose links say what a note is.
pub const KIND_PROPERTIES: [&str; 3] = ["type", "category", "categories"];

/// Lists the kinds that a note states, in lower case. `property` returns a property by its name.
///
/// A value of `type` is a kind as text or as a link, such as `meeting` or `[[Meetings]]`. A value of `category` or
/// `categories` is one as a link alone: as text it says what the note is about.
pub fn note_kinds<'a>(property: impl Fn(&str) -> Option<&'a Value>) -> Vec<String> {
    let mut kinds = Vec::new();
    for name in KIND_PROPERTIES {
        let values = match property(name) {
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => &[],
        };
        for text in values.iter().filter_map(Value::as_str) {
            let kind = wikilink_path(text).map(linked_kind);
            let kind = kind.or_else(|| (name == "type").then(|| text.trim().to_lowercase()));
            kinds.extend(kind.filter(|kind| !kind.is_empty()));
        }
    }
    kinds
}

/// Returns whether a kind, in lower case, is one of the wanted ones, in the singular or the plural.
pub fn is_kind_of(kind: &str, wanted: &[String]) -> bool {
    let is_wanted = |name: &str| wanted.iter().any(|one| one == name);
    is_wanted(kind)
        || match kind.strip_suffix("ies") {
            Some(stem) => is_wanted(&format!("{stem}y")),
            None => kind.strip_suffix('s').is_some_and(is_wanted),
        }
}

/// Returns the kind that a link to this path names, in lower case: `meetings` for `Categories/Meetings`.
pub fn linked_kind(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name).trim().to_lowercase()
}

/// Returns the path of a wikilink, if the text is one: `Categories/Meetings` of `[[Categories/Meetings|all]]`.
fn wikilink_path(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("[[")?.strip_suffix("]]")?;
    inside.split(['|', '#']).next()
}
