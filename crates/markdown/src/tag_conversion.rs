//! Conversion of tags that Obsidian does not read, such as `node.js`, to legal tags and back.
//!
//! If a tag was converted, the property `original_tags` lists all tags of the note in their original form.

use std::collections::HashSet;

use serde_json::Value;

use crate::frontmatter::Frontmatter;
use crate::path::key;
use crate::tag::{is_tag_char, tag_name};

/// The property with the original tags of a note, if not all of them are tags to Obsidian.
pub const ORIGINALS: &str = "original_tags";

/// Characters that distinguish tags, and the words that replace them: `c++` and `c#` are not `c`.
const WORDS: &[(char, &str)] = &[('+', "plus"), ('#', "sharp"), ('&', "and")];

/// The tags of a note in the form of its frontmatter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredTags {
    /// The property `tags`: distinct tags that Obsidian reads.
    pub tags: Vec<String>,
    /// The property `original_tags`: all tags in their original form; empty if `tags` has the same.
    pub originals: Vec<String>,
}

impl StoredTags {
    /// Converts tags from a request. Blank ones are ignored.
    pub fn of<T: AsRef<str>>(given: &[T]) -> Self {
        let mut originals: Vec<String> = Vec::with_capacity(given.len());
        let mut tags: Vec<String> = Vec::with_capacity(given.len());
        let (mut known, mut held) = (HashSet::new(), HashSet::new());
        for text in given.iter().map(AsRef::as_ref).filter(|text| !text.trim().is_empty()) {
            if known.insert(text) {
                originals.push(text.to_owned());
            }
            tags.extend(sanitize(text).filter(|tag| held.insert(key(tag))));
        }
        if tags == originals {
            originals.clear();
        }
        Self { tags, originals }
    }

    /// Lists the converted tags with their new forms. The new form is `None` if no part of the tag can be in a tag.
    pub fn converted(&self) -> impl Iterator<Item = (&str, Option<String>)> {
        let both = self.originals.iter().map(|given| (given.as_str(), sanitize(given)));
        both.filter(|(given, tag)| tag.as_deref() != Some(given.trim().trim_start_matches('#')))
    }
}

/// Converts a text to a tag that Obsidian reads. Characters that a tag cannot contain become hyphens, and digits alone
/// get a `_`. Returns `None` if nothing is left.
pub fn sanitize(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(name) = tag_name(text) {
        return Some(name.to_owned());
    }
    let mut parts: Vec<String> = vec![String::new()];
    for sign in text.trim_start_matches('#').chars() {
        if is_tag_char(sign) {
            if let Some(last) = parts.last_mut() {
                last.push(sign);
            }
        } else {
            let word = WORDS.iter().find(|(known, _)| *known == sign).map(|(_, word)| (*word).to_owned());
            parts.extend(word);
            parts.push(String::new());
        }
    }
    parts.retain(|part| !part.is_empty());
    let joined = parts.join("-");
    let is_name = joined.chars().any(|sign| sign != '-' && sign != '/');
    let numbered = || format!("_{joined}");
    tag_name(&joined)
        .map(str::to_owned)
        .or_else(|| tag_name(&numbered()).map(str::to_owned))
        .filter(|_| is_name)
}

/// Lists the names in frontmatter that find a note although they are not tags to Obsidian: the values of `tags` as
/// written, and the original forms of converted tags.
pub fn unconverted_names(front: &Frontmatter) -> Vec<String> {
    let (tags, originals) = (front.get("tags"), front.get(ORIGINALS));
    let is_read = |value: &Value| value.as_str().and_then(tag_name).is_some();
    if originals.is_none() && tags.is_none_or(|property| items(&property.value).iter().all(is_read)) {
        return Vec::new();
    }
    let mut held: HashSet<String> = front.tags.iter().map(|tag| key(&tag.name)).collect();
    let mut found = Vec::new();
    for text in tags.into_iter().flat_map(|property| texts(&property.value)) {
        if tag_name(&text).is_none() && held.insert(key(&text)) {
            found.push(text);
        }
    }
    for original in current_originals(&held, originals.map(|property| &property.value)) {
        let name = original.trim().trim_start_matches('#');
        if !name.is_empty() && held.insert(key(name)) {
            found.push(name.to_owned());
        }
    }
    found
}

/// Lists the tags of a note in their original form and order. `names` are all tags that find the note, and `tags` and
/// `originals` are the values of these properties.
pub fn in_original_form(names: Vec<String>, tags: Option<&Value>, originals: Option<&Value>) -> Vec<String> {
    if names.len() < 2 && originals.is_none() {
        return names;
    }
    let held: HashSet<String> = names.iter().map(|name| key(name)).collect();
    let mut given = current_originals(&held, originals);
    let mut covered: HashSet<String> = HashSet::new();
    for original in &given {
        covered.insert(key(original.trim().trim_start_matches('#')));
        covered.extend(sanitize(original).map(|tag| key(&tag)));
    }
    let written = tags.into_iter().flat_map(texts).map(|text| match tag_name(&text) {
        Some(name) => name.to_owned(),
        None => text,
    });
    for name in written.filter(|name| held.contains(&key(name))).chain(names.iter().cloned()) {
        if covered.insert(key(&name)) {
            given.push(name);
        }
    }
    given
}

/// Lists the original forms whose tags the note still has.
fn current_originals(held: &HashSet<String>, originals: Option<&Value>) -> Vec<String> {
    let texts = originals.into_iter().flat_map(items).filter_map(Value::as_str).map(str::to_owned);
    texts.filter(|text| sanitize(text).is_none_or(|tag| held.contains(&key(&tag)))).collect()
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        value => std::slice::from_ref(value),
    }
}

/// Lists the values of a `tags` property as trimmed texts. A text with a comma or a space is not a tag
/// (docs/spec/obsidian.md 5.4).
fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    match value {
        Value::Array(items) => items.iter().filter_map(text).collect(),
        value => text(value).filter(|text| !text.contains([',', ' ', '\t', '\n'])).into_iter().collect(),
    }
}
