//! Writes properties and tags into the text of a planned note.

use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::edit::{Edit, Remark, apply};
use sidenote_markdown::frontmatter::edit::{Refusal, set, unset};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::tag_conversion::{ORIGINALS, StoredTags};

pub(crate) type Properties = Vec<(String, Value)>;

/// Returns the property with the original tags, if a tag is stored in another form.
pub fn originals(tags: &StoredTags) -> Option<(String, Value)> {
    let is_needed = !tags.originals.is_empty();
    is_needed.then(|| (ORIGINALS.to_owned(), Value::from(tags.originals.clone())))
}

/// Returns remarks about tags that are stored in another form.
pub(super) fn converted(path: &NotePath, stored: &StoredTags) -> Vec<Remark> {
    let remark = |(given, tag): (&str, Option<String>)| Remark {
        code: "tag-converted".to_owned(),
        path: path.clone(),
        line: 1,
        column: 1,
        message: match tag {
            Some(tag) => format!(
                "Obsidian does not read the tag {given:?}; it is stored as {tag:?}, and as given in {ORIGINALS}"
            ),
            None => format!("Obsidian does not read the tag {given:?}; it is stored in {ORIGINALS} alone"),
        },
    };
    stored.converted().map(remark).collect()
}

/// Writes properties into the frontmatter of a text.
pub fn with_properties(mut text: String, path: &NotePath, properties: Properties) -> Result<String> {
    for (name, value) in properties {
        let edits = set(&text, &name, &value)
            .map_err(|refusal| Error::invalid(format!("{path}: {}", refusal.message)))?;
        text = String::from_utf8(apply(text.as_bytes(), &edits)?)
            .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))?;
    }
    Ok(text)
}

/// Sets the title of a text. The property is left out if the file name is the same.
pub(super) fn titled(mut text: String, path: &NotePath, title: &str) -> Result<String> {
    let value = if path.stem() == title { Value::Null } else { Value::from(title) };
    put(&mut text, path, "title", &value)?;
    Ok(text)
}

/// Sets a property of a text, or removes it if the value is null.
pub(crate) fn put(text: &mut String, path: &NotePath, name: &str, value: &Value) -> Result<()> {
    let edits = if value.is_null() { unset(text, name) } else { set(text, name, value) };
    let refused = |refusal: Refusal| Error::invalid(refusal.remark(path.clone(), text).to_string());
    *text = applied(text, &edits.map_err(refused)?)?;
    Ok(())
}

pub(crate) fn applied(text: &str, edits: &[Edit]) -> Result<String> {
    String::from_utf8(apply(text.as_bytes(), edits)?)
        .map_err(|error| Error::internal("an edit produced invalid UTF-8").with_source(error))
}
