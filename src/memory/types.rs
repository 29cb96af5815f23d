//! Owns the types of memories: how fast each fades, how far, and which type a text without one has.

use std::collections::BTreeMap;

use crate::config::TypeConfig;

/// How memories of one type fade.
pub type MemoryType = TypeConfig;

/// The type of whatever has no known type.
pub const GENERAL: &str = "general";

/// What stands for [`GENERAL`] where the settings leave it out.
const FALLBACK: MemoryType = MemoryType { half_life_days: 60.0, floor: 1.0, protected: false };

/// All types, by name, and how to tell a type from a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryTypes {
    known: BTreeMap<String, MemoryType>,
    /// Types with the words and phrases that tell of them, in the order in which they are tried.
    classes: Vec<(String, Vec<String>)>,
}

impl MemoryTypes {
    /// Makes a table; each class begins with its type's name, and its words follow.
    pub fn new(known: BTreeMap<String, MemoryType>, classes: &[Vec<String>]) -> Self {
        let classes = classes.iter().filter_map(|class| {
            let (name, words) = class.split_first()?;
            Some((name.clone(), words.iter().map(|word| folded(word)).collect()))
        });
        Self { known, classes: classes.collect() }
    }

    /// Gives a type; an unknown one behaves as `general`.
    pub fn get(&self, name: &str) -> MemoryType {
        let known = self.known.get(name).or_else(|| self.known.get(&name.to_lowercase()));
        known.or_else(|| self.known.get(GENERAL)).copied().unwrap_or(FALLBACK)
    }

    /// Lists the known types.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    /// Tells the type of a text by its words: the first class that has one of them, whole and in any case (spec/memory.md,
    /// Types).
    pub fn classify(&self, text: &str) -> &str {
        let text = folded(text);
        let has = |words: &Vec<String>| words.iter().any(|word| text.contains(word.as_str()));
        self.classes.iter().find(|(_, words)| has(words)).map_or(GENERAL, |(name, _)| name)
    }
}

/// Gives the words of a text in lower case, with one space around each.
fn folded(text: &str) -> String {
    let mut folded = String::from(" ");
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        folded.push_str(&word.to_lowercase());
        folded.push(' ');
    }
    folded
}
