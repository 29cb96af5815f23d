//! Owns the question whether two texts say the same: exactly, or so nearly that only the lexical guard can tell.
//!
//! Texts that a model finds alike are often updates or opposites of each other: another date, a number, a "not". Those
//! words are what the guard compares (spec/memory.md, Duplicates).

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

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
struct Telling {
    /// Numbers, dates and times, in their order.
    numbers: Vec<String>,
    /// Words that deny, and names of times.
    words: Vec<String>,
    /// Code spans.
    code: BTreeSet<String>,
    /// What stands on either side of an arrow.
    directions: Vec<String>,
}

impl Telling {
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
                    parts.filter(|part| NEGATIONS.contains(part) || TIMES.contains(part)).map(str::to_owned),
                );
            }
        }
        telling.words.sort_unstable();
        telling
    }
}

/// Says whether two texts that a model finds alike agree in what tells updates and opposites apart: numbers, dates,
/// times, negations, code spans, directions.
pub fn agree(one: &str, other: &str) -> bool {
    Telling::of(one) == Telling::of(other)
}
