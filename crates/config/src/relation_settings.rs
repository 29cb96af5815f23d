//! The types of relations, and the words by which they are recognised: the built-in ones, and what the settings add to them.

use std::collections::BTreeMap;

use serde::Deserialize;
use sidenote_base::error::{Error, Result};
use toml::{Table, Value};

/// The built-in types.
const BUILT_IN: &str = include_str!("../languages/relations.toml");
/// The sign before a phrase or name that is not to be in a list.
const WITHOUT: char = '-';

/// A type of relations between two notes, such as `works_at`. A relation leads from its subject to its object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelationConfig {
    /// The name of the relation from the object to the subject; empty if there is none.
    pub inverse: String,
    /// Phrases between the subject and the object, such as "works at". A `*` matches one to four words.
    pub forward: Vec<String>,
    /// Phrases between the object and the subject, such as "founded by".
    pub reverse: Vec<String>,
    /// Phrases like `forward` that need no verb, because they name what the subject is: "founder of", "formerly at".
    pub roles: Vec<String>,
    /// Phrases like `reverse` that name what the object is, such as "subsidiary of".
    pub reverse_roles: Vec<String>,
    /// Phrases between the subject and the object that mean the relation only in questions, such as "set up".
    pub asked: Vec<String>,
    /// Names of properties, fields and headings in a note of the subject, such as `employer`.
    pub names: Vec<String>,
    /// Names of properties, fields and headings in a note of the object, such as `employees`.
    pub inverse_names: Vec<String>,
    /// What the subject may be, if it states a kind (see [`note_kinds`](crate::note_kinds)); empty if anything.
    pub subjects: Vec<String>,
    /// What the stated kind or the folder of the object may be; empty if anything. A relation that is inferred or whose
    /// name means several types needs one of them; another one, no other type.
    pub objects: Vec<String>,
    /// Names by which a note that is neither end, such as one about a deal, names the object.
    pub via: Vec<String>,
    /// Another type: two notes that are its subjects with the same object have this relation, too.
    pub shared: String,
}

/// Returns the built-in types with what the settings add to them and take out.
pub(super) fn with_built_in(settings: &BTreeMap<String, Table>) -> Result<BTreeMap<String, RelationConfig>> {
    let unfit = |error| Error::internal("the built-in relations cannot be read").with_source(error);
    let mut types: BTreeMap<String, Table> = toml::from_str(BUILT_IN).map_err(unfit)?;
    for (name, setting) in settings {
        let known = types.entry(name.clone()).or_default();
        for (field, value) in setting {
            let built_in = known.remove(field).unwrap_or_else(|| Value::Array(Vec::new()));
            let changed = match (built_in, value) {
                (Value::Array(mut list), Value::Array(changes)) => {
                    change(&mut list, changes).map_err(|text| not_there(name, field, text))?;
                    Value::Array(list)
                }
                _ => value.clone(),
            };
            known.insert(field.clone(), changed);
        }
    }
    let read = |(name, fields): (String, Table)| match fields.try_into() {
        Ok(kind) => Ok((name, kind)),
        Err(error) => Err(Error::invalid(format!("relations.{name} is not valid")).with_source(error)),
    };
    checked(types.into_iter().map(read).collect::<Result<_>>()?)
}

/// Adds the fields of a type to those of a lower layer. A list goes on with the changes of this layer; anything else is replaced.
pub(super) fn add(known: &mut Table, setting: &Table) {
    for (field, value) in setting {
        match (known.get_mut(field), value) {
            (Some(Value::Array(changes)), Value::Array(more)) => changes.extend(more.iter().cloned()),
            _ => {
                known.insert(field.clone(), value.clone());
            }
        }
    }
}

/// Makes the changes of the settings to a list, in their order: an entry is added, and one behind the sign is taken out.
///
/// # Errors
/// What is to be taken out and is not in the list.
fn change<'a>(list: &mut Vec<Value>, changes: &'a [Value]) -> std::result::Result<(), &'a str> {
    for change in changes {
        match change.as_str().and_then(|text| text.strip_prefix(WITHOUT)) {
            Some(out) => {
                let wanted = out.trim().to_lowercase();
                let is_wanted = |one: &Value| one.as_str().is_some_and(|text| text.to_lowercase() == wanted);
                let at = list.iter().position(is_wanted).ok_or(out)?;
                list.remove(at);
            }
            None if list.contains(change) => {}
            None => list.push(change.clone()),
        }
    }
    Ok(())
}

fn not_there(name: &str, field: &str, text: &str) -> Error {
    Error::invalid(format!("relations.{name}.{field} takes out {text:?}, which is not in the list"))
        .with_hint("the built-in lists are in crates/config/languages/relations.toml of the source")
}

/// Refuses types whose names or phrases cannot be found in a text.
fn checked(types: BTreeMap<String, RelationConfig>) -> Result<BTreeMap<String, RelationConfig>> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_lowercase() || c.is_numeric() || c == '_');
    for (name, kind) in &types {
        if !is_name(name) || !(kind.inverse.is_empty() || is_name(&kind.inverse)) {
            return Err(Error::invalid(format!(
                "relations.{name} or its inverse {:?} is no name",
                kind.inverse
            ))
            .with_hint("use lower case, digits and _, such as works_at"));
        }
        let lists = [&kind.forward, &kind.roles, &kind.reverse, &kind.reverse_roles, &kind.asked];
        let phrases = lists.into_iter().flatten();
        let is_phrase =
            |phrase: &str| phrase.split(' ').next().is_some_and(|word| !word.is_empty() && word != "*");
        if let Some(phrase) = phrases.into_iter().find(|phrase| !is_phrase(phrase) || phrase.ends_with('*')) {
            return Err(Error::invalid(format!("relations.{name} has the phrase {phrase:?}"))
                .with_hint("begin and end it with a word"));
        }
        let shared = types.get(&kind.shared);
        if !kind.shared.is_empty() && shared.is_none_or(|shared| !shared.shared.is_empty()) {
            return Err(Error::invalid(format!(
                "relations.{name} shares {:?}, which is no type or shares another one itself",
                kind.shared
            ))
            .with_hint("name a type of [relations] that shares none"));
        }
    }
    Ok(types)
}
