//! Compares a merged text with the texts that it was made of: every number, date and name of the sources must be in the
//! result, or it is listed as left out (docs/spec/agents.md 4).

use std::collections::BTreeSet;

use sidenote_language::folding::is_unspaced;

/// Signs that may stand inside a number, date, time or version.
const INNER: [char; 8] = ['.', ',', ':', '/', '-', '+', '%', '_'];

/// Lists the numbers, dates and names of the sources that a result has not, in the order of the sources, each once. A
/// name is a word with a capital letter that does not begin a sentence, or one with a capital letter or a digit inside.
/// Signs around a word and the ends `'s` do not count. A number in a result must be the same one: `14` is not in `140`.
pub fn left_out(sources: &[&str], result: &str) -> Vec<String> {
    let kept: BTreeSet<String> = words(result).map(|(word, _)| folded(word)).collect();
    let mut seen = BTreeSet::new();
    let mut missing = Vec::new();
    for source in sources {
        for (word, begins) in words(source) {
            let key = folded(word);
            if is_fact(word, begins) && !kept.contains(&key) && seen.insert(key) {
                missing.push(word.to_owned());
            }
        }
    }
    missing
}

/// Returns the words of a text, each with whether it begins a sentence.
fn words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut begins = true;
    text.split_inclusive(|c: char| !is_part(c)).filter_map(move |piece| {
        let end = piece.chars().next_back().filter(|c| !is_part(*c));
        let body = piece.trim_end_matches(|c: char| !is_part(c));
        let word = trimmed(body);
        let first = begins;
        if !word.is_empty() {
            begins = false;
        }
        // A sentence ends with its sign, a line with its break.
        if body.ends_with(['.', ':'])
            || matches!(end, Some('!' | '?' | '\n' | '。' | '！' | '？' | '"' | '#' | '*'))
        {
            begins = true;
        }
        (!word.is_empty()).then_some((word, first))
    })
}

/// Returns whether a character may be part of a word. A script without spaces has numbers amid its letters.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c) || INNER.contains(&c) || matches!(c, '\'' | '’')
}

/// Removes the signs around a word and the ending of the genitive.
fn trimmed(word: &str) -> &str {
    let is_sign = |c: char| !c.is_alphanumeric() && c != '%';
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '+');
    let word = word.trim_end_matches(is_sign);
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
    // A sign before a word belongs to a number alone.
    match word.chars().find(|c| c.is_alphanumeric()) {
        Some(first) if first.is_numeric() => word,
        _ => word.trim_start_matches(['-', '+']),
    }
}

/// Returns whether a word is a number, a date or a name.
fn is_fact(word: &str, begins_sentence: bool) -> bool {
    if word.chars().any(char::is_numeric) {
        return true;
    }
    let mut letters = word.chars();
    let is_first_capital = letters.next().is_some_and(char::is_uppercase);
    let has_inner_capital = letters.clone().any(char::is_uppercase);
    has_inner_capital && word.chars().count() > 1
        || is_first_capital && !begins_sentence && letters.next().is_some()
}

fn folded(word: &str) -> String {
    word.to_lowercase()
}
