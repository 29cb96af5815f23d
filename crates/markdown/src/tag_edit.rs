//! Edits of tags, in the body and in the properties of a note.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

use serde_json::Value;

use crate::body_edit::{apply_to_text, mismatch};
use crate::edit::{Edit, single_edit};
use crate::frontmatter::edit::Refusal;
use crate::frontmatter::{Property, Style, edit, encode_scalar};
use crate::note::Note;
use crate::span::Span;
use crate::tag::tag_name;
use crate::{canvas, frontmatter, path};

/// Renames a tag in the body and in `tags`, and with it the prefix of its nested tags. Each occurrence keeps its `#` or
/// the lack of one.
///
/// # Errors
/// Refuses a new name that is not a legal tag (`invalid-tag`), and frontmatter tags in a style that cannot be edited
/// (`yaml-style`).
pub fn rename_tag(text: &str, note: &Note, old: &str, new: &str) -> Result<Vec<Edit>, Refusal> {
    rename_tag_in((text, note), old, new, Note::parse)
}

/// Renames a tag in the texts of a canvas, as [`rename_tag`] does in a note.
///
/// # Errors
/// Refuses a new name that is not a legal tag (`invalid-tag`), and tags with escaped characters (`reparse-mismatch`).
pub fn rename_canvas_tag(text: &str, canvas: &Note, old: &str, new: &str) -> Result<Vec<Edit>, Refusal> {
    rename_tag_in((text, canvas), old, new, canvas::parse)
}

fn rename_tag_in(
    (text, note): (&str, &Note),
    old: &str,
    new: &str,
    parse: impl Fn(&str) -> Note,
) -> Result<Vec<Edit>, Refusal> {
    let (asked, new) = (old.trim(), legal(new)?);
    let old: Vec<String> = parts(asked.trim_start_matches('#')).map(|(_, part)| path::key(part)).collect();
    let mut edits = Vec::new();
    // The new values of the `tags` property, and whether each was renamed.
    let mut listed: Vec<(String, bool)> = Vec::new();
    for property in tag_properties(note) {
        for value in values_of(property) {
            let Some(value_text) = text_of(value) else { continue };
            listed.extend(match (renamed_value(&value_text, asked, &old, new), tag_name(&value_text)) {
                (Some((_, name)), _) => Some((name, true)),
                (None, name) => name.map(|name| (name.to_owned(), false)),
            });
        }
        rename_in_property(text, property, asked, &old, new, &mut edits)?;
    }
    let inline = || note.tags.iter().filter(|tag| !tag.in_frontmatter);
    for tag in inline() {
        if let Some((span, _)) = renamed(&tag.name, &old, new) {
            let start = tag.span.start + '#'.len_utf8();
            edits.push(Edit::replace(Span::new(start + span.start, start + span.end), new));
        }
    }
    edits.retain(|edit| edit.span.of(text) != edit.text);
    let mut changed = apply_to_text(text, &edits)?;
    let twice: HashSet<String> = listed
        .iter()
        .filter(|(name, is_renamed)| {
            let is_there = |(other, is_new): &(String, bool)| !is_new && path::key(other) == path::key(name);
            *is_renamed && listed.iter().any(is_there)
        })
        .map(|(name, _)| path::key(name))
        .collect();
    if !twice.is_empty() {
        let once = |seen: &mut HashSet<String>, name: &str| {
            let name = path::key(name);
            !twice.contains(&name) || seen.insert(name)
        };
        let seen = RefCell::new(HashSet::new());
        let goes = |item: &Value| {
            item.as_str().and_then(tag_name).is_some_and(|name| !once(&mut seen.borrow_mut(), name))
        };
        let removal = edit::remove_items(&changed, "tags", goes)?;
        changed = apply_to_text(&changed, &removal)?;
        edits = single_edit(text, &changed).into_iter().collect();
        let mut seen = HashSet::new();
        listed.retain(|(name, _)| once(&mut seen, name));
    }
    let inline =
        inline().map(|tag| renamed(&tag.name, &old, new).map_or_else(|| tag.name.clone(), |(_, name)| name));
    let found = parse(&changed);
    let wanted = listed.into_iter().map(|(name, _)| name).chain(inline);
    if !found.tags.iter().map(|tag| tag.name.clone()).eq(wanted) || found.links.len() != note.links.len() {
        return Err(mismatch("other tags are read"));
    }
    Ok(edits)
}

/// Adds tags to the `tags` property, except those that it already has in any case.
///
/// # Errors
/// Refuses names that are not legal tags (`invalid-tag`), and what [`edit::add`] refuses.
pub fn add_tags(text: &str, tags: &[&str]) -> Result<Vec<Edit>, Refusal> {
    let (block, _) = frontmatter::read(text);
    let mut held: Vec<String> =
        block.iter().flat_map(|block| &block.tags).map(|tag| path::key(&tag.name)).collect();
    let mut items = Vec::new();
    for tag in tags {
        let name = legal(tag)?;
        let key = path::key(name);
        if !held.contains(&key) {
            held.push(key);
            items.push(Value::from(name));
        }
    }
    edit::add(text, "tags", &items)
}

/// Removes tags from the `tags` property in any case. Their nested tags stay.
///
/// # Errors
/// Refuses what [`edit::remove_items`] refuses.
pub fn remove_tags(text: &str, tags: &[&str]) -> Result<Vec<Edit>, Refusal> {
    let name = |text: &str| path::key(tag_name(text).unwrap_or(text.trim()));
    let removed: Vec<String> = tags.iter().map(|tag| name(tag)).collect();
    let goes = |item: &Value| text_of(item).is_some_and(|value_text| removed.contains(&name(&value_text)));
    edit::remove_items(text, "tags", goes)
}

/// Returns the name of a legal tag.
fn legal(tag: &str) -> Result<&str, Refusal> {
    tag_name(tag).ok_or_else(|| {
        let message = format!(
            "{tag:?} is not a legal tag: a tag has letters, digits, `_`, `-` and `/`, and not digits alone"
        );
        Refusal::new("invalid-tag", 0, message)
    })
}

/// Lists the parts of a nested tag that are not empty, with their offsets.
fn parts(name: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    name.split('/')
        .map(move |part| {
            let start = at;
            at += part.len() + 1;
            (start, part)
        })
        .filter(|(_, part)| !part.is_empty())
}

/// Finds the bytes of a tag's name that are the tag `old`, and the name with `new` in their place.
fn renamed(name: &str, old: &[String], new: &str) -> Option<(Span, String)> {
    let start = parts(name).next()?.0;
    let mut end = None;
    let mut own = parts(name);
    for wanted in old {
        let (at, part) = own.next()?;
        end = (path::key(part) == *wanted).then_some(at + part.len());
        end?;
    }
    let end = end?;
    let (head, tail) = (name.get(..start)?, name.get(end..)?);
    Some((Span::new(start, end), format!("{head}{new}{tail}")))
}

fn tag_properties(note: &Note) -> impl Iterator<Item = &Property> {
    let properties = note.frontmatter.iter().flat_map(|block| &block.properties);
    properties.filter(|property| path::key(&property.key) == "tags")
}

fn values_of(property: &Property) -> &[Value] {
    match &property.value {
        Value::Array(items) => items,
        value => std::slice::from_ref(value),
    }
}

/// Returns the text of a value of `tags`: a number is a text, too.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// Returns the renamed value of `tags`, as written and as a tag; `None` if it keeps its name. A value that Obsidian
/// does not read as a tag is renamed as a whole.
fn renamed_value(value_text: &str, asked: &str, old: &[String], new: &str) -> Option<(String, String)> {
    let Some(name) = tag_name(value_text) else {
        let is_asked = path::key(value_text.trim()) == path::key(asked) && !asked.is_empty();
        return is_asked.then(|| (new.to_owned(), new.to_owned()));
    };
    let (span, renamed) = renamed(name, old, new)?;
    let lead = value_text.len() - value_text.trim_start().len();
    let start = lead + usize::from(value_text.trim_start().starts_with('#'));
    let (head, tail) = (value_text.get(..start + span.start)?, value_text.get(start + span.end..)?);
    Some((format!("{head}{new}{tail}"), renamed))
}

fn rename_in_property(
    text: &str,
    property: &Property,
    asked: &str,
    old: &[String],
    new: &str,
    edits: &mut Vec<Edit>,
) -> Result<(), Refusal> {
    for (index, value) in values_of(property).iter().enumerate() {
        let Some(value_text) = text_of(value) else { continue };
        let Some((whole, _)) = renamed_value(&value_text, asked, old, new) else { continue };
        let place = if property.value.is_array() {
            format!("{}.{index}", property.key)
        } else {
            property.key.clone()
        };
        let scalar = property.scalars.iter().find(|scalar| scalar.path == place && !property.shared);
        let read = scalar.and_then(|scalar| scalar.unquote(text)).filter(|read| read.text == value_text);
        let (Some(scalar), Some(_)) = (scalar, read) else {
            let message = format!(
                "the tag {value_text:?} is written in a style that cannot be edited, and was left unchanged"
            );
            return Err(Refusal::new("yaml-style", property.value_span.start, message));
        };
        let written = encode_scalar(&whole, scalar.style).or_else(|| encode_scalar(&whole, Style::Double));
        edits.extend(written.map(|written| Edit::replace(scalar.span, written)));
    }
    Ok(())
}
