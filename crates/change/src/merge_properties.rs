//! Merges properties of two sources: lists are merged, and a remark names every value that is lost.

use std::collections::HashSet;

use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::edit::{Remark, apply};
use sidenote_markdown::frontmatter;
use sidenote_markdown::frontmatter::{Property, PropertyType, edit, kind_of};
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::tag::tag_name;
use sidenote_markdown::tag_conversion::ORIGINALS;

/// The property of a note that lists the notes which were merged into it by a consolidation.
pub(crate) const MERGED_FROM: &str = "merged_from";

/// Properties that are lists in every note.
const LISTS: &[&str] = &["tags", "aliases", "cssclasses", ORIGINALS, MERGED_FROM];

/// Properties with the creation time: the earlier one is kept.
pub(crate) const MADE: &[&str] = &["created_at", "created", "date"];

/// Properties with the modification time: the later one is kept.
const CHANGED: &[&str] = &["updated_at", "updated", "modified", "last_reviewed"];

/// The property with the weight of a memory: the greater one is kept.
const IMPORTANCE: &str = "importance";

/// Properties of which sidenote reads a single value.
const SINGLE: &[&str] = &[
    "id",
    "title",
    "category",
    "type",
    "importance",
    "tier",
    "pinned",
    "forgotten",
    "superseded_by",
    "usefulness",
    "summary",
    "source",
    "session",
];

/// Returns whether a property is a list in every note.
fn is_list(name: &str) -> bool {
    LISTS.contains(&key(name).as_str())
}

/// Returns whether a value is empty.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns the value of a property of a text.
pub(super) fn value_of(text: &str, name: &str) -> Option<Value> {
    let (block, _) = frontmatter::read(text);
    block?.get(name).map(|property| property.value.clone())
}

/// Lists the items of one value that another one lacks. Tags are compared without case.
fn lacking(name: &str, held: &Value, coming: &Value) -> Vec<Value> {
    let is_tags = key(name) == "tags";
    let same = |value: &Value| match value {
        Value::String(text) if is_tags => key(tag_name(text).unwrap_or(text.trim())),
        value => value.to_string(),
    };
    let mut known: HashSet<String> = items(held).iter().map(same).collect();
    items(coming).iter().filter(|item| !item.is_null() && known.insert(same(item))).cloned().collect()
}

fn items(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(items) => items,
        value => std::slice::from_ref(value),
    }
}

/// A text with properties that are being merged, and the remarks about it.
pub(crate) struct PropertyMerge<'a> {
    /// The path of the note.
    pub(crate) path: &'a NotePath,
    /// The text of the note.
    pub(crate) text: String,
    /// Remarks about values that were changed or lost.
    pub(crate) remarks: Vec<Remark>,
}

impl<'a> PropertyMerge<'a> {
    /// Starts with a text.
    pub(crate) fn of(path: &'a NotePath, text: String) -> Self {
        Self { path, text, remarks: Vec::new() }
    }

    fn change(
        &mut self,
        edits: std::result::Result<Vec<sidenote_markdown::edit::Edit>, edit::Refusal>,
    ) -> Result<()> {
        let edits = edits.map_err(|refusal| Error::invalid(format!("{}: {}", self.path, refusal.message)))?;
        self.text = String::from_utf8(apply(self.text.as_bytes(), &edits)?)
            .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
        Ok(())
    }

    fn edit_memory(&mut self, code: &str, message: String) {
        let code = code.to_owned();
        self.remarks.push(Remark { code, path: self.path.clone(), line: 1, column: 1, message });
    }

    /// Sets a property, whatever its former value.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        let edits = edit::set(&self.text, name, value);
        self.change(edits)
    }

    /// Sets a requested property: list items are added to an existing list. Another value replaces the former one, and
    /// a remark names that.
    pub(crate) fn ask(&mut self, name: &str, value: &Value) -> Result<()> {
        let Some(held) = value_of(&self.text, name).filter(|held| !is_blank(held)) else {
            return self.set(name, value);
        };
        if is_list(name) || held.is_array() && value.is_array() {
            return self.add(name, &held, value);
        }
        if held != *value {
            self.edit_memory("property-replaced", format!("{name} is {value}; the text said {held}"));
        }
        self.set(name, value)
    }

    /// Sets a property unless the text has it.
    pub(super) fn offer(&mut self, name: &str, value: &Value) -> Result<()> {
        match value_of(&self.text, name) {
            Some(held) if !is_blank(&held) => Ok(()),
            _ => self.set(name, value),
        }
    }

    fn add(&mut self, name: &str, held: &Value, coming: &Value) -> Result<()> {
        let new = lacking(name, held, coming);
        let edits = if new.is_empty() { Ok(Vec::new()) } else { edit::add(&self.text, name, &new) };
        self.change(edits)
    }

    /// Merges a property of another note. Lists are merged, and two texts become a list. Of other values that differ,
    /// the new one is kept under a name of its own.
    pub(crate) fn merge(
        &mut self,
        from: &NotePath,
        coming: &Property,
        declared: Option<PropertyType>,
    ) -> Result<()> {
        let (name, value) = (coming.key.as_str(), &coming.value);
        let held = match value_of(&self.text, name) {
            None => return self.set(name, value),
            Some(held) if is_blank(&held) && !is_blank(value) => return self.set(name, value),
            Some(held) if held == *value || is_blank(value) => return Ok(()),
            Some(held) => held,
        };
        let name_key = key(name);
        let path = self.path.clone();
        if is_list(name) || held.is_array() && value.is_array() {
            return self.add(name, &held, value);
        }
        if name_key == "id" {
            self.edit_memory(
                "property-conflict",
                format!("{path} keeps its id; the id {value} of {from} is removed"),
            );
            return Ok(());
        }
        if name_key == IMPORTANCE
            && let (Some(one), Some(other)) = (held.as_f64(), value.as_f64())
        {
            let (kept, gone) = if other > one { (value, &held) } else { (&held, value) };
            self.edit_memory("property-conflict", format!("{name} is {kept}; {gone} is removed"));
            let kept = kept.clone();
            return self.set(name, &kept);
        }
        let (is_made, is_changed) = (MADE.contains(&name_key.as_str()), CHANGED.contains(&name_key.as_str()));
        if let Some(is_later) = later(&held, value).filter(|_| is_made || is_changed) {
            let (kept, gone) = if is_later == is_changed { (value, &held) } else { (&held, value) };
            self.edit_memory("property-conflict", format!("{name} is {kept}; {gone} is removed"));
            let kept = kept.clone();
            return self.set(name, &kept);
        }
        let is_text = |value: &Value| {
            !value.is_object() && kind_of(name, value, declared) == PropertyType::Text || value.is_array()
        };
        let may_list = declared.is_none_or(|kind| kind == PropertyType::List)
            && !SINGLE.contains(&name_key.as_str())
            && !is_made
            && !is_changed;
        if may_list && is_text(&held) && is_text(value) {
            self.edit_memory(
                "property-united",
                format!("{name} is a list now, of {held} and the {value} of {from}"),
            );
            let edits = if lacking(name, &held, value).is_empty() {
                Ok(Vec::new())
            } else {
                edit::add(&self.text, name, &lacking(name, &held, value))
            };
            return self.change(edits);
        }
        let mut own = format!("merged_{name}");
        let mut number = 1;
        while value_of(&self.text, &own).is_some_and(|held| held != *value) {
            number += 1;
            own = format!("merged_{name}_{number}");
        }
        self.edit_memory(
            "property-conflict",
            format!("{name} stays {held}; the {value} of {from} is kept as {own}"),
        );
        self.set(&own, value)
    }
}

/// Returns whether the second of two times is later, or `None` if one of them is not a time.
fn later(one: &Value, other: &Value) -> Option<bool> {
    let time = |value: &Value| sidenote_base::clock::Timestamp::parse(value.as_str()?);
    Some(time(other)? > time(one)?)
}
