//! Memory types: the decay of each type, and the classification of texts without a type.

use std::collections::BTreeMap;

use sidenote_config::TypeConfig;
use sidenote_language::terms::CachedStemmer;
use sidenote_language::word_lists::{List, Reading};

/// The decay parameters of one memory type.
pub type MemoryType = TypeConfig;

/// The name of the type for memories without a known type.
pub const GENERAL: &str = "general";

/// The parameters of [`GENERAL`] if the settings do not define it.
const FALLBACK: MemoryType =
    MemoryType { half_life_days: 60.0, floor: 1.0, protected: false, hot_hours: None, warm_days: None };

/// All memory types by name, and the classes by which texts are classified.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryTypes {
    known: BTreeMap<String, MemoryType>,
    /// Types with their words and phrases, in the order in which they are tried.
    classes: Vec<(String, Vec<String>)>,
}

impl MemoryTypes {
    /// Creates the table. Each class is a list of the type's name and its words.
    pub fn new(known: BTreeMap<String, MemoryType>, classes: &[Vec<String>]) -> Self {
        let mut stemmer = CachedStemmer::with_small_cache();
        let classes = classes.iter().filter_map(|class| {
            let (name, words) = class.split_first()?;
            Some((name.clone(), words.iter().map(|word| stemmed(word, &mut stemmer)).collect()))
        });
        Self { known, classes: classes.collect() }
    }

    /// Returns a type, in any case of its letters; an unknown name gives [`GENERAL`].
    pub fn get(&self, name: &str) -> MemoryType {
        let lower = name.to_lowercase();
        let in_any_case = || {
            let mut named = self.known.iter();
            named
                .find(|(own, _)| own.len() == lower.len() && own.to_lowercase() == lower)
                .map(|(_, kind)| kind)
        };
        let known = self.known.get(name).or_else(|| self.known.get(&lower)).or_else(in_any_case);
        known.or_else(|| self.known.get(GENERAL)).copied().unwrap_or(FALLBACK)
    }

    /// Lists the names of the known types.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Classifies a text: returns the first type one of whose words or phrases occurs in it, as whole words in any case
    /// and any inflection: `decided` is `decide` (docs/spec/memory.md, Types). A type has the words of the settings,
    /// and those of the word lists in the languages of the text.
    pub fn classify(&self, text: &str) -> &str {
        let stems = stemmed(text, &mut CachedStemmer::with_small_cache());
        let listed = Reading::of(text).values(List::Types);
        let has = |(name, words): &&(String, Vec<String>)| {
            words.iter().any(|word| stems.contains(word.as_str())) || listed.contains(&name.as_str())
        };
        self.classes.iter().find(has).map_or(GENERAL, |(name, _)| name)
    }
}

/// Returns the stems of the words of a text in lower case, with one space around each.
fn stemmed(text: &str, stemmer: &mut CachedStemmer) -> String {
    let mut stems = String::from(" ");
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        stems.push_str(stemmer.of(&word.to_lowercase()));
        stems.push(' ');
    }
    stems
}
