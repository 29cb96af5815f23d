//! The words by which sentences and questions about relations are read. They are data
//! (`crates/language/languages/relation_words.toml`).

use std::sync::LazyLock;

use hashbrown::HashSet;
use serde::Deserialize;

/// A list of words in lower case.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Words(HashSet<String>);

impl From<Vec<String>> for Words {
    fn from(words: Vec<String>) -> Self {
        Self(words.into_iter().collect())
    }
}

impl Words {
    /// Returns whether a word is in the list.
    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// Returns whether a word, or it and the next one, are in the list.
    pub fn contains_start(&self, word: &str, next: &str) -> bool {
        self.contains(word) || self.0.iter().any(|known| known.split_once(' ') == Some((word, next)))
    }
}

/// The lists.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationWords {
    /// Words between a subject and a verb that leave the statement true.
    pub auxiliaries: Words,
    /// Auxiliaries that a role of the past follows: "was director of".
    pub past_auxiliaries: Words,
    /// Verbs between a subject and what it is.
    pub copulas: Words,
    /// Words before a noun: articles and possessives.
    pub articles: Words,
    /// Words that say whose something is.
    pub possessives: Words,
    /// Titles before the name of a person.
    pub titles: Words,
    /// Words of roles that look like forms of verbs.
    pub ranks: Words,
    /// Words that make a role none, or one of the past or the future.
    pub no_role: Words,
    /// Words that make a statement untrue or uncertain, anywhere before it.
    pub doubts: Words,
    /// First words of sentences that state nothing.
    pub conditions: Words,
    /// Pronouns for a subject that was named before.
    pub third_person: Words,
    /// Pronouns for who writes.
    pub first_person: Words,
    /// Pronouns for what stands before them.
    pub relatives: Words,
    /// What a note about something calls it.
    pub generic_subjects: Words,
    /// What a text calls itself.
    pub texts: Words,
    /// Verbs in the past that do not end in "ed".
    pub irregular: Words,
    /// Words before a full stop that ends no sentence.
    pub abbreviations: Words,
    /// Words by which a sentence says that something is planned, wanted or offered, did not happen, or is another
    /// thing.
    pub unrealised: Words,
    /// Words that lead from a phrase to a link, and make no subject of the link behind them.
    pub prepositions: Words,
    /// Prepositions that belong to the verb, as in "took over" and "worked before".
    pub particles: Words,
    /// Forms of "to be" that make a participle passive.
    pub passive: Words,
    /// Words of questions for a time, a way or a reason, or for what is not so.
    pub otherwise: Words,
    /// Words that ask for notes.
    pub asking: Words,
    /// Stems of words that any note can be called by.
    pub any_note: Words,
    /// Words of questions that narrow nothing, besides stop words.
    pub question_words: Words,
    /// Words by which a sentence or the heading above it says that something has ended.
    pub ended: Words,
    /// Words by which a question asks for what was.
    pub asks_past: Words,
    /// Words by which a question asks for what is.
    pub asks_present: Words,
    /// Words in names of relations that tell no type from another.
    pub generic: Words,
}

static WORDS: LazyLock<RelationWords> = LazyLock::new(|| {
    toml::from_str(include_str!("../languages/relation_words.toml")).unwrap_or_else(|why| {
        tracing::error!("the words of relations cannot be read: {why}");
        RelationWords::default()
    })
});

/// Returns the lists.
pub fn relation_words() -> &'static RelationWords {
    &WORDS
}

#[cfg(test)]
mod tests {
    use super::{RelationWords, relation_words};

    #[test]
    fn the_file_of_words_can_be_read() {
        toml::from_str::<RelationWords>(include_str!("../languages/relation_words.toml")).unwrap();
        assert!(relation_words().asking.contains("who"));
    }
}
