//! Whether a prompt names a note: by its whole title or alias, or by a distinctive part of a proper name, such as a surname.

use crate::text::terms::{CachedStemmer, TermKind, is_stop_word, terms};

/// The place in the frequency list from which on a word is seldom. Titles of commoner words are part of ordinary sentences.
const SELDOM: usize = 1_500;
/// The place in the frequency list from which on a capitalised word can be a part of a proper name.
const CAN_BE_NAME: usize = 5_000;
/// The least length of a part of a proper name, in characters.
const MIN_PART: usize = 4;
/// The most words of a proper name.
const MAX_NAME_WORDS: usize = 5;

/// A word of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptWord {
    /// The folded text, without a possessive ending.
    pub text: String,
    /// Whether it begins with a capital letter and begins no sentence.
    pub is_capitalised: bool,
    /// The place of the word in a list of words by how often English texts have them, the commonest first; `None` for a
    /// word that is not in the list, such as most surnames and words with a mistake.
    pub rank: Option<usize>,
}

impl PromptWord {
    /// Says whether the word alone can name a note as a part of its proper name.
    pub fn is_distinctive(&self) -> bool {
        let is_word = self.text.chars().any(char::is_alphabetic) && !is_stop_word(&self.text);
        let is_seldom = self.rank.is_none_or(|rank| self.is_capitalised && rank >= CAN_BE_NAME);
        is_word && self.text.chars().count() >= MIN_PART && is_seldom
    }
}

/// Splits a text into its words. `rank` is the place of a word in a frequency list.
pub fn prompt_words(text: &str, rank: &dyn Fn(&str) -> Option<usize>) -> Vec<PromptWord> {
    let mut words = Vec::new();
    let mut end = 0;
    for term in terms(text) {
        if matches!(term.kind, TermKind::Whole | TermKind::LastCharacter) {
            continue;
        }
        let before = text.get(end..term.start).unwrap_or("");
        let begins_sentence = words.is_empty() || before.contains(['.', '!', '?', ':', ';', '\n', '"', '(']);
        let spelled = text.get(term.start..term.end).unwrap_or("");
        let is_possessive = before.ends_with(['\'', '’']) && term.text == "s";
        end = term.end;
        if is_possessive {
            continue;
        }
        let text =
            ["'s", "’s"].iter().find_map(|ending| term.text.strip_suffix(ending)).unwrap_or(&term.text);
        words.push(PromptWord {
            text: text.to_owned(),
            is_capitalised: !begins_sentence && spelled.starts_with(char::is_uppercase),
            rank: rank(text),
        });
    }
    words
}

/// How a prompt names a note, the surest way first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mention {
    /// By a whole name.
    Whole,
    /// By a distinctive word of a proper name.
    Part(String),
}

/// Returns how the words of a prompt name a note that has `name`: a title, an alias or a file name.
pub fn mention_of(
    words: &[PromptWord],
    name: &str,
    rank: &dyn Fn(&str) -> Option<usize>,
    stem: &mut CachedStemmer,
) -> Option<Mention> {
    let parts = prompt_words(name, rank);
    let stems = |words: &[PromptWord], stem: &mut CachedStemmer| -> Vec<String> {
        words.iter().map(|word| stem.of(&word.text).to_owned()).collect()
    };
    let (said, wanted) = (stems(words, stem), stems(&parts, stem));
    if wanted.is_empty() {
        return None;
    }
    let is_seldom =
        |word: &PromptWord| !is_stop_word(&word.text) && word.rank.is_none_or(|rank| rank >= SELDOM);
    let whole = said.windows(wanted.len()).position(|window| window == wanted);
    if let Some(at) = whole {
        let is_name = match parts.as_slice() {
            [only] => only.rank.is_none() || words.get(at).is_some_and(PromptWord::is_distinctive),
            several => several.iter().any(is_seldom),
        };
        if is_name {
            return Some(Mention::Whole);
        }
    }
    if !is_proper_name(name) {
        return None;
    }
    let named = words.iter().zip(&said).find(|(word, stem)| word.is_distinctive() && wanted.contains(stem));
    named.map(|(word, _)| Mention::Part(word.text.clone()))
}

/// Says whether a name is a proper name: several words that all begin with a capital letter.
fn is_proper_name(name: &str) -> bool {
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_particle =
        |word: &str| matches!(word, "de" | "da" | "del" | "van" | "von" | "der" | "of" | "the" | "&" | "and");
    (2..=MAX_NAME_WORDS).contains(&words.len())
        && words.iter().all(|word| word.starts_with(char::is_uppercase) || is_particle(word))
}
