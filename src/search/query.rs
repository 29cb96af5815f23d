//! Owns the query language: what a person types, parsed to words to rank by and conditions that must hold.
//!
//! Words rank, `"phrases"` must occur, `-word` and `-"phrase"` must not.

use crate::index::bm25::{Clause, Word};
use crate::text::terms::{Stem, Term, TermKind, is_stop_word, terms};

/// A parsed query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Words to rank by; those of phrases included.
    pub words: Vec<Word>,
    /// Conditions that must hold.
    pub must: Vec<Clause>,
    /// Conditions that must not hold.
    pub must_not: Vec<Clause>,
    /// What a model embeds: the query without its negations and quotes.
    pub meaning: String,
}

/// Weight of a whole identifier beside its parts: it is the stronger evidence, and its parts still count.
const WHOLE_WEIGHT: f32 = 0.5;

impl Query {
    /// Takes a text as words alone: no sign in it has a meaning.
    pub fn plain(text: &str) -> Self {
        let mut query = Self { meaning: text.trim().to_owned(), ..Self::default() };
        query.add_words(&terms(text), &Stem::default());
        query.drop_stop_words();
        query
    }

    /// Parses what was typed; anything is a query.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let stem = Stem::default();
        for part in parts(text) {
            let found = terms(part.text);
            if part.quoted || part.negated {
                let clauses = clauses(&found, part.quoted, &stem);
                if part.negated {
                    query.must_not.extend(clauses);
                    continue;
                }
                query.must.extend(clauses);
            }
            if !query.meaning.is_empty() {
                query.meaning.push(' ');
            }
            query.meaning.push_str(part.text);
            query.add_words(&found, &stem);
        }
        query.drop_stop_words();
        query
    }

    /// Leaves stop words out, unless there is nothing else: a question of stop words deserves an answer by them.
    fn drop_stop_words(&mut self) {
        if self.words.iter().any(|word| !is_stop_word(&word.exact)) {
            self.words.retain(|word| !is_stop_word(&word.exact));
        }
    }

    /// Says whether there is nothing to rank or match by.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.must.is_empty()
    }

    fn add_words(&mut self, found: &[Term], stem: &Stem) {
        for term in found {
            if self.words.iter().any(|word| word.exact == term.text) {
                continue;
            }
            let group = self.words.len();
            self.words.push(word(term, stem, group));
        }
    }
}

fn word(term: &Term, stem: &Stem, group: usize) -> Word {
    let whole = term.kind == TermKind::Whole;
    Word {
        exact: term.text.clone(),
        stem: if whole { term.text.clone() } else { stem.of(&term.text).into_owned() },
        weight: if whole { WHOLE_WEIGHT } else { 1.0 },
        prefix: term.kind == TermKind::Gram && term.text.chars().count() == 1,
        group,
    }
}

fn clauses(found: &[Term], quoted: bool, stem: &Stem) -> Vec<Clause> {
    let in_row: Vec<(usize, String)> = found
        .iter()
        .filter(|term| term.kind != TermKind::Whole)
        .map(|term| (term.position, term.text.clone()))
        .collect();
    if in_row.is_empty() {
        return Vec::new();
    }
    if quoted || in_row.len() > 1 {
        return vec![Clause::Phrase(in_row)];
    }
    found.iter().take(1).map(|term| Clause::Word(word(term, stem, 0))).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    text: &'a str,
    quoted: bool,
    negated: bool,
}

/// Splits a query at quotes and white space; an unclosed quote runs to the end.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let after_minus =
            rest.strip_prefix('-').filter(|after| !after.starts_with([' ', '-']) && !after.is_empty());
        let negated = after_minus.is_some();
        let start = after_minus.unwrap_or(rest);
        let (piece, quoted, behind) = if let Some(inner) = start.strip_prefix('"') {
            let end = inner.find('"').unwrap_or(inner.len());
            (&inner[..end], true, inner.get(end + 1..).unwrap_or(""))
        } else {
            let end = start.find(char::is_whitespace).unwrap_or(start.len());
            (&start[..end], false, &start[end..])
        };
        if !piece.is_empty() {
            parts.push(Part { text: piece, quoted, negated });
        }
        rest = behind.trim_start();
    }
    parts
}
