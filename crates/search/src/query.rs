//! A parsed query: the words to rank by, the text to embed, and the condition that a note must match.
//!
//! Plain words rank, and a note need not contain all of them. Any syntax of Obsidian's search language makes the
//! whole query a condition (docs/spec/search.md, Language); its words still rank.

use std::collections::HashSet;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_bm25::{Bm25Snapshot, WHOLE_TERM_WEIGHT, Word};
use sidenote_language::language::{Language, typed_form};
use sidenote_language::terms::{CachedStemmer, Term, TermKind, is_stop_word, terms};

use crate::query_parser::QueryNode;
use crate::{numbered_names, query_parser};

/// A parsed query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The words to rank by, including those of phrases.
    pub words: Vec<Word>,
    /// The words with those that are too common to rank by in some language.
    pub all_words: Vec<Word>,
    /// The language of the query, where it is known and not English.
    pub language: Option<Language>,
    /// Names with a number that are two words of the query, such as `iOS 17`, as one word.
    pub joined: Vec<Word>,
    /// The condition that a note must match, if the query has one.
    pub condition: Option<QueryNode>,
    /// The text of the query without operators and negated terms.
    pub text: String,
    /// The prompt that the words of the query were taken from, if they were.
    pub prompt: Option<String>,
}

/// The maximum number of words. A query can be a pasted page, and more words do not improve the ranking.
const MAX_WORDS: usize = 400;

impl Query {
    /// Creates a query of plain words. No character has a special meaning.
    pub fn plain(text: &str) -> Self {
        let mut query = Self { text: text.trim().to_owned(), ..Self::default() };
        let found = terms(text);
        query.add_words(text, &found, &mut HashSet::new(), &mut CachedStemmer::with_small_cache());
        query.joined = numbered_names::joined(&found);
        query.all_words.clone_from(&query.words);
        query.drop_stop_words(is_stop_word);
        query
    }

    /// Parses a query like [`Query::parse_at`], with dates such as `7d` counted from 1970.
    ///
    /// # Errors
    /// `Invalid` if the query is malformed or exceeds a limit; the message marks the position, and the hint gives a
    /// valid form.
    pub fn parse(text: &str, all: bool) -> Result<Self> {
        Self::parse_at(text, all, Timestamp::default())
    }

    /// Parses a query. If `all` is set, plain words are a condition, too: a note must contain each of them. Dates
    /// such as `7d` are counted from `now`.
    ///
    /// # Errors
    /// `Invalid` if the query is malformed or exceeds a limit; the message marks the position, and the hint gives a
    /// valid form.
    pub fn parse_at(text: &str, all: bool, now: Timestamp) -> Result<Self> {
        let Some(node) = query_parser::parse(text, now)? else { return Ok(Self::default()) };
        if node.is_plain() && !all {
            return Ok(Self::plain(text));
        }
        let mut wanted = String::new();
        node.each_ranking_term(&mut |term| {
            wanted.push_str(&term.text);
            wanted.push(' ');
        });
        Ok(Self { condition: Some(node.sorted_by_cost()), ..Self::plain(&wanted) })
    }

    /// Parses a query as a filter: every word is a condition, and one that begins with `#` is a tag. Dates such as `7d` are
    /// counted from `now`.
    ///
    /// # Errors
    /// Those of [`Query::parse_at`].
    pub fn filter_at(text: &str, now: Timestamp) -> Result<Self> {
        let query = Self::parse_at(text, true, now)?;
        Ok(Self { condition: query.condition.map(QueryNode::with_hashes_as_tags), ..query })
    }

    /// Removes stop words, unless the query consists of stop words only.
    fn drop_stop_words(&mut self, is_stop_word: impl Fn(&str) -> bool) {
        if self.words.iter().any(|word| !is_stop_word(&word.exact)) {
            self.words.retain(|word| !is_stop_word(&word.exact));
        }
    }

    /// Adapts the query to the languages of the notes: words that are too common to rank by are those of its language.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the index cannot be read.
    pub fn in_languages_of(&mut self, bm25: &Bm25Snapshot) -> Result<()> {
        let languages = bm25.languages()?;
        if languages.is_english() {
            self.words.iter_mut().chain(&mut self.all_words).for_each(|word| word.typed = None);
            return Ok(());
        }
        let common = |language: Language| {
            self.all_words.iter().filter(|word| language.has_stop_word(&word.exact)).count()
        };
        self.language = Some(languages.of_query(common)).filter(|&language| language != Language::ENGLISH);
        let told = languages.told_by(common).filter(|&language| language != Language::ENGLISH);
        if let Some(language) = told {
            self.words.clone_from(&self.all_words);
            self.drop_stop_words(|word| language.has_stop_word(word));
        }
        if languages.counts_compounds(self.words.len()) {
            for word in &mut self.words {
                word.compounds = bm25.compounds_of_short(word)?;
            }
        }
        Ok(())
    }

    /// Sets the prompt that the words were taken from. A model embeds it in place of them.
    #[must_use]
    pub fn with_prompt(self, prompt: &str) -> Self {
        Self { prompt: Some(prompt.to_owned()), ..self }
    }

    /// Returns the text that a model embeds: the prompt, or the text of the query.
    pub fn text_to_embed(&self) -> &str {
        self.prompt.as_ref().unwrap_or(&self.text)
    }

    /// Returns a word of the query as it was typed, with its capitals and diacritics.
    pub fn as_typed<'q>(&'q self, word: &'q Word) -> &'q str {
        let found = terms(&self.text).into_iter().find(|term| term.text == word.exact);
        found.and_then(|term| self.text.get(term.start..term.end)).unwrap_or(&word.exact)
    }

    /// Returns whether the query has neither words nor a condition.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.condition.is_none()
    }

    /// Adds the words that are not in `seen` yet.
    fn add_words(
        &mut self,
        text: &str,
        found: &[Term],
        seen: &mut HashSet<String>,
        stem: &mut CachedStemmer,
    ) {
        for (at, term) in found.iter().enumerate() {
            if term.kind == TermKind::LastCharacter
                || self.words.len() >= MAX_WORDS
                || !seen.insert(term.text.clone())
            {
                continue;
            }
            let raw = text.get(term.start..term.end).unwrap_or_default();
            self.words.push(word(term, raw, is_symbol_name(found.get(at..).unwrap_or(&[])), stem));
        }
    }
}

/// Returns whether terms begin with a name that ends in a symbol, such as `c++`, followed by its parts.
fn is_symbol_name(found: &[Term]) -> bool {
    let parts = found.iter().skip(1).take_while(|term| term.kind == TermKind::Part).count();
    parts >= 1
        && found.first().is_some_and(|term| term.kind == TermKind::Whole && term.text.ends_with(['+', '#']))
}

fn word(term: &Term, raw: &str, is_symbol_name: bool, stem: &mut CachedStemmer) -> Word {
    let whole = term.kind == TermKind::Whole;
    let is_inflected = matches!(term.kind, TermKind::Word | TermKind::Part);
    Word {
        exact: term.text.clone(),
        typed: is_inflected.then(|| typed_form(raw).into_owned()),
        stem: if whole { term.text.clone() } else { stem.of(&term.text).to_owned() },
        weight: if whole && !is_symbol_name { WHOLE_TERM_WEIGHT } else { 1.0 },
        prefix: term.kind == TermKind::Bigram && term.text.chars().count() == 1,
        single: !whole || is_symbol_name,
        compounds: None,
    }
}
