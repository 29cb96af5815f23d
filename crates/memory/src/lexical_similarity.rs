//! Lexical similarity of a text and a query, for vaults without an embedding model.

use std::collections::BTreeMap;

use sidenote_language::terms::{CachedStemmer, TermKind, is_stop_word, terms};

/// Counts the stems of a text. Stop words count only if there are no other words.
fn stems(text: &str) -> BTreeMap<String, f64> {
    let mut stem = CachedStemmer::with_small_cache();
    let mut count = |with_stop_words: bool| {
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for term in terms(text) {
            // A compound counts by its parts, whatever joins them.
            let is_whole = matches!(term.kind, TermKind::Whole | TermKind::LastCharacter);
            if !is_whole && (with_stop_words || !is_stop_word(&term.text)) {
                *counts.entry(stem.of(&term.text).to_owned()).or_default() += 1.0;
            }
        }
        counts
    };
    let counts = count(false);
    if counts.is_empty() { count(true) } else { counts }
}

/// Returns the share of a query's words that occur in a text, from 0 to 1. Other words in the text reduce it to half at
/// the lowest.
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
