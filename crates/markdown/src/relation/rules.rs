//! The rules by which relations are found: the types of the settings, ready for lookup.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use hashbrown::HashMap;
use sidenote_config::RelationConfig;
use sidenote_language::terms::CachedStemmer;

use crate::relation::phrase::{Phrase, RelationEnd};
use crate::relation::relation_key;
use crate::relation::rule_stems::{NameStems, RuleStems};

/// The types of relations, and how they are recognised.
#[derive(Debug, Clone, Default)]
pub struct RelationRules {
    types: BTreeMap<String, RelationConfig>,
    infers: bool,
    words: OnceLock<RuleWords>,
    stems: OnceLock<RuleStems>,
}

/// The words of the types, for lookup. They are prepared on first use, because most commands need none.
#[derive(Debug, Clone, Default)]
struct RuleWords {
    /// The phrases by their first word, the longest first.
    phrases: HashMap<String, Vec<Phrase>>,
    /// The types that a name means, each with the end whose notes use it.
    names: HashMap<String, Vec<(String, RelationEnd)>>,
}

impl RuleWords {
    fn of(types: &BTreeMap<String, RelationConfig>) -> Self {
        let mut rules = Self::default();
        for (name, kind) in types {
            let (subject, object) = (RelationEnd::Subject, RelationEnd::Object);
            for (phrases, before, is_role, is_asked) in [
                (&kind.forward, subject, false, false),
                (&kind.roles, subject, true, false),
                (&kind.reverse, object, false, false),
                (&kind.reverse_roles, object, true, false),
                (&kind.asked, subject, false, true),
            ] {
                for phrase in phrases {
                    let words: Vec<String> = phrase.split_whitespace().map(str::to_lowercase).collect();
                    let Some(first) = words.first().cloned() else { continue };
                    let phrase = Phrase { words, kind: name.clone(), before, is_role, is_asked };
                    rules.phrases.entry(first).or_default().push(phrase);
                }
            }
            let own = kind.names.iter().chain([name]).map(|name| (name, RelationEnd::Subject));
            let inverse = Some(&kind.inverse).filter(|inverse| !inverse.is_empty() && *inverse != name);
            let inverse = kind.inverse_names.iter().chain(inverse).map(|name| (name, RelationEnd::Object));
            for (used, end) in own.chain(inverse) {
                let meant = rules.names.entry(relation_key(used)).or_default();
                if !meant.contains(&(name.clone(), end)) {
                    meant.push((name.clone(), end));
                }
            }
        }
        for phrases in rules.phrases.values_mut() {
            phrases.sort_by(|a, b| b.words.len().cmp(&a.words.len()).then(a.words.cmp(&b.words)));
        }
        rules
    }
}

impl RelationRules {
    /// Creates the rules of the types of the settings.
    pub fn new(types: &BTreeMap<String, RelationConfig>, infers: bool) -> Self {
        Self { types: types.clone(), infers, ..Self::default() }
    }

    fn words(&self) -> &RuleWords {
        self.words.get_or_init(|| RuleWords::of(&self.types))
    }

    /// Returns whether relations are inferred from prose.
    pub(crate) fn infers(&self) -> bool {
        self.infers
    }

    /// Returns a number that differs for rules that find other relations in the same text.
    pub fn fingerprint(&self) -> i64 {
        let text = format!("{:?} {}", self.types, self.infers);
        blake3::hash(text.as_bytes()).as_bytes().first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    /// Returns a type by its name.
    pub fn get(&self, kind: &str) -> Option<&RelationConfig> {
        self.types.get(kind)
    }

    /// Lists the types.
    pub fn types(&self) -> impl Iterator<Item = (&String, &RelationConfig)> {
        self.types.iter()
    }

    /// Lists the phrases of statements that begin with a word, the longest first.
    pub fn phrases(&self, first: &str) -> impl Iterator<Item = &Phrase> {
        self.words().phrases.get(first).into_iter().flatten().filter(|phrase| !phrase.is_asked)
    }

    /// Lists all phrases, those of questions included.
    pub fn all_phrases(&self) -> impl Iterator<Item = &Phrase> {
        self.words().phrases.values().flatten()
    }

    /// Returns all phrases and names with the stems of their words. They are made when they are first needed.
    pub fn stems(&self) -> &RuleStems {
        self.stems.get_or_init(|| {
            let (mut stem, mut stems) = (CachedStemmer::with_small_cache(), RuleStems::default());
            self.all_phrases().for_each(|phrase| stems.add_phrase(phrase, &mut stem));
            for kind in self.types.keys() {
                let names = self.names_of(kind);
                stems
                    .names
                    .extend(names.iter().map(|(name, end)| NameStems::new(kind, name, *end, &mut stem)));
            }
            stems
        })
    }

    /// Returns whether a name, as [`relation_key`] writes it, is one of a type.
    pub fn has_name(&self, key: &str) -> bool {
        self.words().names.contains_key(key)
    }

    /// Returns the types that a name means, each with the end whose notes use it: `employer` is used in a note of the
    /// subject of `works_at`, and `employees` in one of its object. A name of no type means itself, in a note of the
    /// subject.
    pub fn meant_by(&self, key: &str) -> Vec<(String, RelationEnd)> {
        match self.words().names.get(key) {
            Some(meant) => meant.clone(),
            None => vec![(key.to_owned(), RelationEnd::Subject)],
        }
    }

    /// Lists the names under which relations of a type can be stored, each with the end whose notes use it.
    pub fn names_of(&self, kind: &str) -> Vec<(String, RelationEnd)> {
        if !self.types.contains_key(kind) {
            return vec![(kind.to_owned(), RelationEnd::Subject)];
        }
        let named = self.words().names.iter().flat_map(|(key, meant)| {
            meant.iter().filter(|(name, _)| name == kind).map(move |(_, end)| (key.clone(), *end))
        });
        let mut names: Vec<(String, RelationEnd)> = named.collect();
        names.sort();
        names
    }
}
