//! The settings of relations: the types of relations, and the words by which they are recognised.

use std::collections::BTreeMap;

use serde::Deserialize;
use sidenote_base::error::{Error, Result};

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
    /// Whether those after "with" are subjects, too, as in "founded it with Jane".
    pub with: bool,
}

/// Refuses types whose names or phrases cannot be found in a text.
pub(super) fn checked(types: BTreeMap<String, RelationConfig>) -> Result<BTreeMap<String, RelationConfig>> {
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
