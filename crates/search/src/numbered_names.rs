//! Names with a number, such as `iOS 17`, which some notes write as one word and others as two. Each form of a query finds
//! both.

use sidenote_base::error::Result;
use sidenote_bm25::{Bm25Snapshot, WHOLE_TERM_WEIGHT, Word};
use sidenote_language::terms::{Term, TermKind};

/// The fewest letters of a name that is split from its number. A single one, as in `v2` or `h264`, is none.
const MIN_LETTERS: usize = 2;
/// The most digits of such a number. More are an identifier.
const MAX_DIGITS: usize = 4;

/// Returns each word of a query with the number that follows it after a space, as one word.
pub(super) fn joined(terms: &[Term]) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut before: Option<&Term> = None;
    for term in terms.iter().filter(|term| matches!(term.kind, TermKind::Word | TermKind::Whole)) {
        if let Some(name) = before.filter(|name| is_name(&name.text) && name.end + 1 == term.start)
            && is_number(&term.text)
        {
            found.push(number_form(format!("{}{}", name.text, term.text), WHOLE_TERM_WEIGHT));
        }
        before = Some(term);
    }
    found
}

/// Returns the name and the number in a word such as `ios17`, if notes have both.
///
/// # Errors
/// Returns `Corrupt` or `Io` if the index cannot be read.
pub(super) fn split(word: &Word, bm25: &Bm25Snapshot) -> Result<Option<[Word; 2]>> {
    let letters = word.exact.trim_end_matches(|c: char| c.is_ascii_digit());
    let (name, number) = word.exact.split_at(letters.len());
    if word.prefix || !is_name(name) || !is_number(number) {
        return Ok(None);
    }
    // The number says little without the name.
    let name = number_form(name.to_owned(), word.weight * WHOLE_TERM_WEIGHT);
    let number = number_form(number.to_owned(), name.weight * WHOLE_TERM_WEIGHT);
    let are_known = !bm25.is_out_of_vocabulary(&name)? && !bm25.is_out_of_vocabulary(&number)?;
    Ok(are_known.then_some([name, number]))
}

fn number_form(text: String, weight: f32) -> Word {
    Word {
        stem: text.clone(),
        typed: Some(text.clone()),
        exact: text,
        weight,
        prefix: false,
        single: false,
        compounds: None,
    }
}

fn is_name(text: &str) -> bool {
    text.chars().count() >= MIN_LETTERS && text.chars().all(char::is_alphabetic)
}

fn is_number(text: &str) -> bool {
    (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
