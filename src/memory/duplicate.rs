//! Owns the question whether two texts say the same: exactly, or so nearly that only the lexical guard can tell.
//!
//! Texts that a model finds alike are often updates or opposites of each other, or one says more: another date, a number,
//! a "not", a clause at the end. Those words are what the guard compares (spec/memory.md, Duplicates).

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::text::terms::{CachedStemmer, TermKind, is_stop_word, terms};

/// Gives the SHA-256 of a text with line feeds alone at its line ends and no white space around it, in hex.
pub fn digest(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Sha256::digest(text.trim().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Words that turn a sentence round.
const NEGATIONS: &[&str] = &[
    "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "cant", "dont",
    "doesnt", "didnt", "isnt", "arent", "wasnt", "werent", "wont", "wouldnt", "shouldnt", "couldnt", "hasnt",
    "havent", "hadnt", "stop", "stopped", "except", "unless", "instead",
];

/// Words that turn what is into what may be, or will.
const MODALS: &[&str] =
    &["will", "would", "shall", "should", "can", "could", "must", "might", "used", "former", "formerly"];

/// Stems of words that say how far a thing has come, which is what an update changes.
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

/// Names of times that an update changes.
const TIMES: &[&str] = &[
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
    "may",
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
    "am",
    "pm",
];

/// Signs whose order around names is the point, as in `HND→KIX`.
const ARROWS: &[&str] = &["→", "->", "=>", "⇒", "←", "<-"];

/// What must agree in two texts that say the same.
#[derive(Debug, PartialEq, Eq, Default)]
struct CriticalTokens {
    /// Numbers, dates and times, in their order.
    numbers: Vec<String>,
    /// Words that deny or turn into what may be, and names of times.
    words: Vec<String>,
    /// Code spans.
    code: BTreeSet<String>,
    /// What stands on either side of an arrow.
    directions: Vec<String>,
    /// How far things have come.
    stages: BTreeSet<String>,
}

/// What a text says in words, apart from the most common ones.
#[derive(Debug, Default)]
struct ContentWords {
    /// The stems of all words.
    words: BTreeSet<String>,
    /// Those with a capital letter, in their order.
    names: Vec<String>,
}

impl ContentWords {
    fn of(text: &str) -> Self {
        let mut saying = Self::default();
        let mut stem = CachedStemmer::brief();
        for term in terms(text) {
            // Compounds count by their parts, however they are joined.
            let is_whole = matches!(term.kind, TermKind::Whole | TermKind::Tail);
            if is_whole || is_stop_word(&term.text) {
                continue;
            }
            // What goes on is not what was done.
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

    /// Gives the names that another text has as well, in their order.
    fn shared(&self, other: &Self) -> Vec<&String> {
        self.names.iter().filter(|name| other.names.contains(name)).collect()
    }
}

impl CriticalTokens {
    fn of(text: &str) -> Self {
        let mut telling = Self::default();
        let mut prose = String::with_capacity(text.len());
        for (at, part) in text.split('`').enumerate() {
            // Backticks come in pairs; what stands between them is code.
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
        for word in lower
            .split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | ':' | ',' | '/' | '-' | '+' | '%'))
        {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '+' && c != '%');
            if word.contains(|c: char| c.is_numeric()) {
                telling.numbers.push(word.trim_matches(['-', '.', ',', ':']).to_owned());
            } else {
                let parts = word.split(|c: char| !c.is_alphanumeric());
                telling.words.extend(
                    parts
                        .filter(|part| {
                            NEGATIONS.contains(part) || TIMES.contains(part) || MODALS.contains(part)
                        })
                        .map(str::to_owned),
                );
            }
        }
        telling.words.sort_unstable();
        let mut stem = CachedStemmer::brief();
        for term in terms(&prose) {
            let word = stem.of(&term.text);
            if STAGES.contains(&word) {
                telling.stages.insert(word.to_owned());
            }
        }
        telling
    }
}

/// Says whether a new text, which a model finds like a known one, says nothing else: they agree in what tells updates and
/// opposites apart, which is numbers, dates, times, negations, stages, code spans and directions, the new one has no word
/// of weight that the known one lacks, and the names that both have stand in the same order.
pub fn agree(known: &str, new: &str) -> bool {
    if CriticalTokens::of(known) != CriticalTokens::of(new) {
        return false;
    }
    let (known, new) = (ContentWords::of(known), ContentWords::of(new));
    new.words.is_subset(&known.words) && known.shared(&new) == new.shared(&known)
}
