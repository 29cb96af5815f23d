//! Owns the form in which a note's terms reach the full-text index: analysed once, by the thread that read the note.
//!
//! A list of terms is one string with a line feed behind each; terms are made of letters, digits and signs, never of
//! control characters.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::vocabulary::{INCOMPLETE, one_line};
use crate::index::bm25::{Analysed, Entry};
use crate::text::terms::{Stem, TermKind, Terms};

/// Ends a term.
const END: u8 = b'\n';

/// Analyses notes one after another, remembering stems.
#[derive(Debug, Default)]
pub struct Analysis {
    stem: Stem,
}

impl Analysis {
    /// Analyses what is to be indexed of one note.
    pub fn of(&mut self, entry: &Entry) -> Analysed {
        let mut analysed = Analysed {
            file: entry.file,
            path: entry.path.clone(),
            title: self.stemmed(&entry.title),
            headings: self.stemmed(&entry.headings),
            meta: self.stemmed(&entry.meta),
            ..Analysed::default()
        };
        let (mut name, mut words, mut inflected) =
            (TermList::default(), TermList::default(), TermList::default());
        let (mut code, mut rest) = (TermList::default(), TermList::default());
        each(&entry.title, |text, _| name.push(text));
        let mut incomplete = entry.incomplete;
        incomplete |= each(&entry.code, |text, _| code.push(text));
        incomplete |= each(&entry.rest, |text, _| rest.push(text));
        words.text.reserve(entry.body.len() + entry.body.len() / 8);
        incomplete |= each(&entry.body, |text, kind| {
            words.push(text);
            let stem = self.stem_of(text, kind);
            if stem != text {
                inflected.push(stem);
            }
        });
        if incomplete {
            rest.push(INCOMPLETE);
        }
        let mut keys = TermList::default();
        entry.keys.iter().for_each(|key| keys.push(&one_line(key)));
        (analysed.rest, analysed.keys) = (rest.text, keys.text);
        (analysed.name, analysed.words) = (name.text, words.text);
        (analysed.inflected, analysed.code) = (inflected.text, code.text);
        analysed
    }

    fn stemmed(&mut self, text: &str) -> String {
        let mut list = TermList::default();
        each(text, |text, kind| list.push(self.stem_of(text, kind)));
        list.text
    }

    fn stem_of<'a>(&'a mut self, text: &'a str, kind: TermKind) -> &'a str {
        if kind == TermKind::Whole { text } else { self.stem.of(text) }
    }
}

/// Visits every term of a text; says whether a part of the text is in none of them.
fn each(text: &str, mut visit: impl FnMut(&str, TermKind)) -> bool {
    let mut terms = Terms::new(text);
    while terms.advance() {
        let term = terms.term();
        visit(&term.text, term.kind);
    }
    terms.left_out()
}

#[derive(Default)]
struct TermList {
    text: String,
}

impl TermList {
    fn push(&mut self, term: &str) {
        self.text.push_str(term);
        self.text.push(char::from(END));
    }
}

/// Hands a list of terms to tantivy.
#[derive(Clone)]
pub(super) struct Listed;

pub(super) struct ListedStream<'a> {
    text: &'a str,
    at: usize,
    token: Token,
}

impl Tokenizer for Listed {
    type TokenStream<'a> = ListedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> ListedStream<'a> {
        ListedStream { text, at: 0, token: Token { position: 0, ..Token::default() } }
    }
}

impl TokenStream for ListedStream<'_> {
    fn advance(&mut self) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = memchr::memchr(END, rest).unwrap_or(rest.len());
        let Some(term) = self.text.get(self.at..self.at + length).filter(|term| !term.is_empty()) else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(term);
        self.at += length + 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
