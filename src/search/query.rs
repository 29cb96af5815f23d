//! Owns what a query is once it is understood: words to rank by, a text to embed, and what a note must hold.
//!
//! Words alone rank, and need not all occur. Any sign of Obsidian's language makes the whole query a condition
//! (spec/search.md, Language); its words still rank.

use std::collections::HashSet;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::index::bm25::Word;
use crate::search::query_parser;
use crate::search::query_parser::Node;
use crate::text::terms::{CachedStemmer, Term, TermKind, is_stop_word, terms};

/// A query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Words to rank by; those of phrases included.
    pub words: Vec<Word>,
    /// What a note must hold, where the query says so.
    pub asks: Option<Node>,
    /// What a model embeds: the query's own words, without operators and what must not occur.
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
        query.add_words(&terms(text), &mut HashSet::new(), &mut CachedStemmer::brief());
        query.drop_stop_words();
        query
    }

    /// Parses what was typed, as [`Query::parse_at`], where no date is counted from now.
    ///
    /// # Errors
    /// As [`Query::parse_at`].
    pub fn parse(text: &str, all: bool) -> Result<Self> {
        Self::parse_at(text, all, Timestamp::default())
    }

    /// Parses what was typed. With `all`, words alone are a condition as well: each must occur. Dates such as `7d` are
    /// counted from `now`.
    ///
    /// # Errors
    /// `Invalid` with the place of the mistake and a valid form.
    pub fn parse_at(text: &str, all: bool, now: Timestamp) -> Result<Self> {
        let Some(node) = query_parser::parse(text, now)? else { return Ok(Self::default()) };
        if node.is_plain() && !all {
            return Ok(Self::plain(text));
        }
        let mut wanted = String::new();
        node.each_wanted(&mut |term| {
            wanted.push_str(&term.text);
            wanted.push(' ');
        });
        Ok(Self { asks: Some(node.arranged()), ..Self::plain(&wanted) })
    }

    /// Leaves stop words out, unless there is nothing else: a question of stop words deserves an answer by them.
    fn drop_stop_words(&mut self) {
        if self.words.iter().any(|word| !is_stop_word(&word.exact)) {
            self.words.retain(|word| !is_stop_word(&word.exact));
        }
    }

    /// Says whether there is nothing to rank or match by.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.asks.is_none()
    }

    /// Takes the words that are not `known` yet.
    fn add_words(&mut self, found: &[Term], known: &mut HashSet<String>, stem: &mut CachedStemmer) {
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

fn word(term: &Term, is_sign_name: bool, stem: &mut CachedStemmer) -> Word {
    let whole = term.kind == TermKind::Whole;
    Word {
        exact: term.text.clone(),
        stem: if whole { term.text.clone() } else { stem.of(&term.text).to_owned() },
        weight: if whole && !is_sign_name { WHOLE_WEIGHT } else { 1.0 },
        prefix: term.kind == TermKind::Gram && term.text.chars().count() == 1,
        single: !whole || is_sign_name,
    }
}
