//! Owns the query language: what a person types, parsed to words to rank by and conditions that must hold.
//!
//! Words rank, `"phrases"` must occur, `-word` and `-"phrase"` must not.

use std::collections::HashSet;

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
/// More words than this rank nothing better; a query can be a pasted page.
const MOST_WORDS: usize = 400;

impl Query {
    /// Takes a text as words alone: no sign in it has a meaning.
    pub fn plain(text: &str) -> Self {
        let mut query = Self { meaning: text.trim().to_owned(), ..Self::default() };
        query.add_words(&terms(text), &mut HashSet::new(), &mut Stem::brief());
        query.drop_stop_words();
        query
    }

    /// Parses what was typed; anything is a query.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let (mut known, mut stem) = (HashSet::new(), Stem::brief());
        for part in parts(text) {
            let found = terms(part.text);
            if part.quoted || part.negated {
                let clauses = clauses(&found, part.quoted, &mut stem);
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
            query.add_words(&found, &mut known, &mut stem);
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

    /// Takes the words that are not `known` yet.
    fn add_words(&mut self, found: &[Term], known: &mut HashSet<String>, stem: &mut Stem) {
        for (at, term) in found.iter().enumerate() {
            if term.kind == TermKind::Tail
                || self.words.len() >= MOST_WORDS
                || !known.insert(term.text.clone())
            {
                continue;
            }
            self.words.push(word(term, is_sign_name(found.get(at..).unwrap_or(&[])), stem));
        }
    }
}

/// Says whether terms begin with a name whose signs tell it apart, such as `c++` before its only part `c`.
fn is_sign_name(found: &[Term]) -> bool {
    let parts = found.iter().skip(1).take_while(|term| term.kind == TermKind::Part).count();
    parts >= 1
        && found.first().is_some_and(|term| term.kind == TermKind::Whole && term.text.ends_with(['+', '#']))
}

fn word(term: &Term, is_sign_name: bool, stem: &mut Stem) -> Word {
    let whole = term.kind == TermKind::Whole;
    Word {
        exact: term.text.clone(),
        stem: if whole { term.text.clone() } else { stem.of(&term.text).to_owned() },
        weight: if whole && !is_sign_name { WHOLE_WEIGHT } else { 1.0 },
        prefix: term.kind == TermKind::Gram && term.text.chars().count() == 1,
        required: !whole || is_sign_name,
    }
}

fn clauses(found: &[Term], quoted: bool, stem: &mut Stem) -> Vec<Clause> {
    if let ([first, _], true) = (found, is_sign_name(found)) {
        return vec![Clause::Word(word(first, true, stem))];
    }
    let in_row: Vec<&Term> =
        found.iter().filter(|term| !matches!(term.kind, TermKind::Whole | TermKind::Tail)).collect();
    match in_row.as_slice() {
        [] => Vec::new(),
        [only] if !quoted => vec![Clause::Word(word(only, false, stem))],
        _ => vec![Clause::Phrase(in_row.iter().map(|term| (term.position, term.text.clone())).collect())],
    }
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
