//! Phrases of the rules, and how they are found in the words of a note or a question.

use sidenote_language::relation_words::relation_words;

/// The maximum number of words that a `*` matches.
const MAX_WILD: usize = 4;

/// An end of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RelationEnd {
    /// From which it leads.
    Subject,
    /// To which it leads.
    Object,
}

impl RelationEnd {
    /// Returns the other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Subject => Self::Object,
            Self::Object => Self::Subject,
        }
    }
}

/// A phrase that states a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// Its words in lower case. `*` matches one to four words.
    pub words: Vec<String>,
    /// The name of the type.
    pub kind: String,
    /// The end of the relation that precedes it.
    pub before: RelationEnd,
    /// Whether it names a role, as "founder of" does, and is not a verb.
    pub is_role: bool,
    /// Whether it means the relation only in questions.
    pub is_asked: bool,
}

impl Phrase {
    /// Returns the words without the prepositions at the end, which "works here" and "where does Jane work" leave out.
    pub fn head(&self) -> &[String] {
        let is_last = |word: &String| {
            !relation_words().prepositions.contains(word.as_str())
                || relation_words().particles.contains(word.as_str())
        };
        let length = self.words.iter().rposition(is_last).map_or(0, |at| at + 1);
        self.words.get(..length).unwrap_or_default()
    }
}

/// Returns the end of a phrase that begins at `at` in a list of words. `is_word` says whether there is a word at a place, and
/// `is_same` whether it is this word of the phrase.
pub fn phrase_end(
    phrase: &[String],
    at: usize,
    is_word: &impl Fn(usize) -> bool,
    is_same: &impl Fn(usize, &str) -> bool,
) -> Option<usize> {
    let Some((first, rest)) = phrase.split_first() else { return Some(at) };
    if first == "*" {
        let mut ends = (at + 1..=at + MAX_WILD).take_while(|end| is_word(end - 1));
        return ends.find_map(|end| phrase_end(rest, end, is_word, is_same));
    }
    if is_word(at) && is_same(at, first) { phrase_end(rest, at + 1, is_word, is_same) } else { None }
}
