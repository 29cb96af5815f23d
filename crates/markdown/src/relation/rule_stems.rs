//! The phrases and names of the rules by the stems of their words, with which the words of a question are compared.

use sidenote_language::terms::CachedStemmer;

use crate::relation::phrase::{Phrase, RelationEnd};

/// A phrase of the rules with its stems.
#[derive(Debug, Clone)]
pub struct PhraseStems {
    /// The phrase.
    pub phrase: Phrase,
    /// The stems of its words, in their order.
    pub stems: Vec<String>,
}

/// A name of a type of relations with its stems.
#[derive(Debug, Clone)]
pub struct NameStems {
    /// The type.
    pub kind: String,
    /// The name, its words joined by `_`.
    pub name: String,
    /// The end of the relation whose notes use the name.
    pub end: RelationEnd,
    /// The stems of its words, in their order.
    pub stems: Vec<String>,
}

impl NameStems {
    /// Takes the stems of the words of a name.
    pub fn new(kind: &str, name: &str, end: RelationEnd, stem: &mut CachedStemmer) -> Self {
        let stems = name.split('_').map(|word| stem.of(word).to_owned()).collect();
        Self { kind: kind.to_owned(), name: name.to_owned(), end, stems }
    }
}

/// All phrases and names of the rules, with their stems.
#[derive(Debug, Clone, Default)]
pub struct RuleStems {
    /// The phrases, those of questions included.
    pub phrases: Vec<PhraseStems>,
    /// The names of the types, sorted by type and name.
    pub names: Vec<NameStems>,
}

impl RuleStems {
    pub(super) fn add_phrase(&mut self, phrase: &Phrase, stem: &mut CachedStemmer) {
        let stems = phrase.words.iter().map(|word| stem.of(word).to_owned()).collect();
        self.phrases.push(PhraseStems { phrase: phrase.clone(), stems });
    }

    /// Returns whether a name means a type.
    pub fn has_name(&self, kind: &str, name: &str) -> bool {
        self.names.iter().any(|known| known.kind == kind && known.name == name)
    }
}
