//! Duplicate detection: the hash of exact duplicates, and the lexical guard for near duplicates.
//!
//! Texts that a model finds similar are often updates or opposites of each other, or one says more: another date, a
//! number, a "not", an added clause. The guard compares those words (docs/spec/memory.md, Duplicates).

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use sidenote_language::folding::is_unspaced;
use sidenote_language::terms::{CachedStemmer, TermKind, is_stop_word, terms};
use sidenote_language::word_lists::{Languages, List, Reading};

/// Returns the SHA-256 of a trimmed text with LF line ends, in hex.
pub fn digest(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Sha256::digest(text.trim().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Words of negation.
const NEGATIONS: &[&str] = &[
    "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "cant", "dont",
    "doesnt", "didnt", "isnt", "arent", "wasnt", "werent", "wont", "wouldnt", "shouldnt", "couldnt", "hasnt",
    "havent", "hadnt", "stop", "stopped", "except", "unless", "instead",
];

/// Words of modality, which turn a fact into a possibility or a plan.
const MODALS: &[&str] =
    &["will", "would", "shall", "should", "can", "could", "must", "might", "used", "former", "formerly"];

/// Stems of words for the stage of a task, which an update changes.
const STAGES: &[&str] = &[
    "abandon",
    "accept",
    "activ",
    "approv",
    "archiv",
    "block",
    "cancel",
    "close",
    "complet",
    "confirm",
    "declin",
    "defer",
    "deprec",
    "disabl",
    "done",
    "draft",
    "enabl",
    "fail",
    "final",
    "finalis",
    "finish",
    "fix",
    "inact",
    "ongo",
    "open",
    "paus",
    "pend",
    "postpon",
    "propos",
    "provision",
    "reject",
    "releas",
    "replac",
    "resolv",
    "resum",
    "ship",
    "suspend",
    "tentat",
    "unconfirm",
    "wip",
];

/// Names of times of English, without those that also mean something else.
pub(crate) const TIMES: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "today",
    "tomorrow",
    "yesterday",
    "morning",
    "noon",
    "afternoon",
    "evening",
    "night",
];

/// Names of times that also mean something else.
const DOUBTFUL_TIMES: &[&str] = &["may", "am", "pm"];

/// Arrow signs, around which the order of names matters, as in `HND→KIX`.
const ARROWS: &[&str] = &["→", "->", "=>", "⇒", "←", "<-"];

/// The words and numbers that must agree in two texts that say the same.
#[derive(Debug, PartialEq, Eq, Default)]
struct CriticalTokens {
    /// The numbers, dates and times in order.
    numbers: Vec<String>,
    /// The words of negation and modality, and the names of times.
    words: Vec<String>,
    /// The code spans.
    code: BTreeSet<String>,
    /// The words on both sides of each arrow.
    directions: Vec<String>,
    /// The stages.
    stages: BTreeSet<String>,
}

/// The words of a text without the most common ones of English. Those of other languages count, because their lists have words
/// that tell two texts apart, such as those for *before* and *after*, or *only* and *too*.
#[derive(Debug, Default)]
struct ContentWords {
    /// The stems of all words.
    words: BTreeSet<String>,
    /// The words with a capital letter, in order.
    names: Vec<String>,
}

impl ContentWords {
    fn of(text: &str) -> Self {
        let mut saying = Self::default();
        let mut stem = CachedStemmer::with_small_cache();
        for term in terms(text) {
            // A compound counts by its parts, whatever joins them.
            let is_whole = matches!(term.kind, TermKind::Whole | TermKind::LastCharacter);
            if is_whole || is_stop_word(&term.text) {
                continue;
            }
            // A continuous form is not a finished stage.
            let word = if term.text.ends_with("ing") { &term.text } else { stem.of(&term.text) };
            let is_name =
                text.get(term.start..).and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase);
            if is_name && !saying.names.iter().any(|name| name == word) {
                saying.names.push(word.to_owned());
            }
            saying.words.insert(word.to_owned());
        }
        saying
    }

    /// Returns the names that occur in both texts, in order.
    fn shared(&self, other: &Self) -> Vec<&String> {
        self.names.iter().filter(|name| other.names.contains(name)).collect()
    }
}

impl CriticalTokens {
    fn of(text: &str, languages: Languages) -> Self {
        let mut telling = Self::default();
        let mut prose = String::with_capacity(text.len());
        for (at, part) in text.split('`').enumerate() {
            // The text between a pair of backticks is code.
            if at % 2 == 1 && !part.is_empty() {
                telling.code.insert(part.to_owned());
                prose.push(' ');
            } else {
                prose.push_str(part);
            }
        }
        for arrow in ARROWS {
            for (at, _) in prose.match_indices(arrow) {
                let before = prose.get(..at).unwrap_or("").split_whitespace().next_back().unwrap_or("");
                let after =
                    prose.get(at + arrow.len()..).unwrap_or("").split_whitespace().next().unwrap_or("");
                telling.directions.push(format!("{} {}", before.to_lowercase(), after.to_lowercase()));
            }
        }
        let lower = prose.to_lowercase().replace(['\'', '’'], "");
        let is_inner = |c: char| {
            c.is_alphanumeric() && !is_unspaced(c) || matches!(c, '.' | ':' | ',' | '/' | '-' | '+' | '%')
        };
        for word in lower.split(|c: char| !is_inner(c)) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '+' && c != '%');
            if word.contains(|c: char| c.is_numeric()) {
                telling.numbers.push(word.trim_matches(['-', '.', ',', ':']).to_owned());
            } else {
                let parts = word.split(|c: char| !c.is_alphanumeric());
                telling.words.extend(
                    parts
                        .filter(|part| {
                            [NEGATIONS, TIMES, DOUBTFUL_TIMES, MODALS].iter().any(|list| list.contains(part))
                        })
                        .map(str::to_owned),
                );
            }
        }
        let reading = Reading::in_languages(&prose, languages);
        for list in [List::Negations, List::Times, List::Modals] {
            telling.words.extend(reading.values(list).into_iter().map(str::to_owned));
        }
        telling.words.sort_unstable();
        telling.stages.extend(reading.values(List::Stages).into_iter().map(str::to_owned));
        let mut stem = CachedStemmer::with_small_cache();
        for term in terms(&prose) {
            let word = stem.of(&term.text);
            if STAGES.contains(&word) {
                telling.stages.insert(word.to_owned());
            }
        }
        telling
    }
}

/// Says whether two texts agree in numbers, dates, times, negations, modality, stages and code spans, in whatever order.
pub fn same_facts(one: &str, other: &str) -> bool {
    // A short text may not tell its language, but the other one.
    let languages = Languages::of(one) | Languages::of(other);
    let tokens = |text: &str| {
        let mut tokens = CriticalTokens::of(text, languages);
        tokens.numbers.sort_unstable();
        tokens.directions.sort_unstable();
        tokens
    };
    tokens(one) == tokens(other)
}

/// Says whether a new text that a model finds similar to a known one is a duplicate of it. Both must agree in numbers,
/// dates, times, negations, stages, code spans and directions; the new text may have no other content word; and the
/// names in both must be in the same order.
pub fn agree(known: &str, new: &str) -> bool {
    // A short text may not tell its language, but the other one.
    let languages = Languages::of(known) | Languages::of(new);
    if CriticalTokens::of(known, languages) != CriticalTokens::of(new, languages) {
        return false;
    }
    let (known, new) = (ContentWords::of(known), ContentWords::of(new));
    new.words.is_subset(&known.words) && known.shared(&new) == new.shared(&known)
}
