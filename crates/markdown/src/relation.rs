//! Relations between notes: what a note says of its links, in properties, fields and lists, or in the words around them
//! (docs/spec/recall.md 4). Read only; nothing is written.

mod context;
mod inference;
mod phrase;
mod rule_stems;
mod rules;
mod sentence;
mod stated;

use std::collections::HashSet;

use crate::note::Note;
pub use crate::relation::context::{LinkContext, link_contexts};
pub use crate::relation::phrase::{Phrase, RelationEnd, phrase_end};
pub use crate::relation::rule_stems::{NameStems, PhraseStems, RuleStems};
pub use crate::relation::rules::RelationRules;
use crate::span::Span;

/// The most relations of one note.
const MAX_RELATIONS: usize = 10_000;

/// A relation that a note states, from a subject to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The subject as an index in [`Note::links`]; `None` is the note itself.
    pub subject: Option<usize>,
    /// The type: as written, in the form of [`relation_key`], or the name of a type of the rules if it is inferred.
    pub kind: String,
    /// The object as an index in [`Note::links`].
    pub object: usize,
    /// Whether it was inferred from prose.
    pub is_inferred: bool,
    /// The line of the link, counted from 1.
    pub line: usize,
    /// The line, property or sentence that states it.
    pub evidence: Span,
}

/// Lists the relations that a note states: first those of properties, fields, lists and headings, then those inferred from
/// sentences. Each is listed once. `names` are the title, the file name and the aliases of the note.
pub fn relations(text: &str, note: &Note, names: &[&str], rules: &RelationRules) -> Vec<Relation> {
    if note.links.is_empty() {
        return Vec::new();
    }
    let mut found = stated::stated(text, note, rules);
    if rules.infers() {
        found.extend(inference::inferred(text, note, names, rules));
    }
    let linked = |at: usize| note.links.get(at).map(|link| (&link.path, link.form.syntax()));
    let mut seen = HashSet::new();
    found.retain(|one| seen.insert((one.subject.map(linked), one.kind.clone(), linked(one.object))));
    found.truncate(MAX_RELATIONS);
    found
}

/// Returns the form in which names of relations are compared: lower case, with `_` between words. `Works at`, `works-at`
/// and `worksAt` are `works_at`.
pub fn relation_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    let mut is_after_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            if !key.is_empty() && !key.ends_with('_') {
                key.push('_');
            }
            is_after_lower = false;
            continue;
        }
        if c.is_uppercase() && is_after_lower {
            key.push('_');
        }
        is_after_lower = c.is_lowercase();
        key.extend(c.to_lowercase());
    }
    key.truncate(key.trim_end_matches('_').len());
    key
}
