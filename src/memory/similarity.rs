//! Owns the question how well a text answers a query by its words alone, where no model says it by meaning.

use std::collections::BTreeMap;

use crate::text::terms::{CachedStemmer, TermKind, is_stop_word, terms};

/// Counts the stems of a text; stop words only where it has nothing else.
fn stems(text: &str) -> BTreeMap<String, f64> {
    let mut stem = CachedStemmer::brief();
    let mut count = |with_stop_words: bool| {
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for term in terms(text) {
            // Compounds count by their parts, however they are joined.
            let is_whole = matches!(term.kind, TermKind::Whole | TermKind::Tail);
            if !is_whole && (with_stop_words || !is_stop_word(&term.text)) {
                *counts.entry(stem.of(&term.text).to_owned()).or_default() += 1.0;
            }
        }
        counts
    };
    let counts = count(false);
    if counts.is_empty() { count(true) } else { counts }
}

/// Gives the part of a query's words that a text has, lowered to as little as half by what else it says: from 0, where
/// they have no word in common, to 1, where they have all, as often.
pub fn likeness(query: &str, text: &str) -> f64 {
    let (asked, said) = (stems(query), stems(text));
    if asked.is_empty() {
        return if query.trim() == text.trim() { 1.0 } else { 0.0 };
    }
    let square = |counts: &BTreeMap<String, f64>| counts.values().map(|count| count * count).sum::<f64>();
    let (mut met, mut product) = (0.0, 0.0);
    for (word, count) in &asked {
        if let Some(other) = said.get(word) {
            met += 1.0;
            product += count * other;
        }
    }
    let length = (square(&asked) * square(&said)).sqrt();
    let cosine = if length > 0.0 { product / length } else { 0.0 };
    met / asked.len() as f64 * (1.0 + cosine) / 2.0
}
