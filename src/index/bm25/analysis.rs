//! Owns the form in which a note's terms reach the full-text index: analysed once, by the thread that read the note.
//!
//! A list of terms is one string. A character below U+0020 moves the position on by its code less one, and a term
//! follows where no such character does; terms are made of letters, digits and signs, never of control characters.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::index::bm25::{Analysed, Entry};
use crate::text::terms::{Stem, TermKind, Terms};

/// Codes from this on are part of a term.
const FIRST_OF_TERM: u8 = 0x20;
/// The farthest that one character moves the position.
const FARTHEST: usize = FIRST_OF_TERM as usize - 2;

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
        let (mut name, mut words, mut inflected, mut code) =
            (TermList::default(), TermList::default(), TermList::default(), TermList::default());
        each(&entry.title, |text, _, position| name.push(text, position));
        each(&entry.code, |text, _, position| code.push(text, position));
        words.text.reserve(entry.body.len() + entry.body.len() / 8);
        each(&entry.body, |text, kind, position| {
            words.push(text, position);
            let stem = self.stem_of(text, kind);
            if stem != text {
                inflected.push(stem, position);
            }
        });
        (analysed.name, analysed.words) = (name.text, words.text);
        (analysed.inflected, analysed.code) = (inflected.text, code.text);
        analysed
    }

    fn stemmed(&mut self, text: &str) -> String {
        let mut list = TermList::default();
        each(text, |text, kind, position| list.push(self.stem_of(text, kind), position));
        list.text
    }

    fn stem_of<'a>(&'a mut self, text: &'a str, kind: TermKind) -> &'a str {
        if kind == TermKind::Whole { text } else { self.stem.of(text) }
    }
}

fn each(text: &str, mut visit: impl FnMut(&str, TermKind, usize)) {
    let mut terms = Terms::new(text);
    while terms.advance() {
        let term = terms.term();
        visit(&term.text, term.kind, term.position);
    }
}

#[derive(Default)]
struct TermList {
    text: String,
    position: usize,
}

impl TermList {
    fn push(&mut self, term: &str, position: usize) {
        // Positions never run backwards; a term that shares one has a step of nothing.
        let mut step = position.saturating_sub(self.position);
        self.position = position;
        loop {
            let part = step.min(FARTHEST);
            self.text.push(char::from(u8::try_from(part + 1).unwrap_or(1)));
            step -= part;
            if step == 0 {
                break;
            }
        }
        self.text.push_str(term);
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
        let bytes = self.text.as_bytes();
        while let Some(&code) = bytes.get(self.at).filter(|code| **code < FIRST_OF_TERM) {
            self.token.position += usize::from(code).saturating_sub(1);
            self.at += 1;
        }
        let rest = bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|code| *code < FIRST_OF_TERM).unwrap_or(rest.len());
        let Some(term) = self.text.get(self.at..self.at + length).filter(|term| !term.is_empty()) else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(term);
        self.at += length;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
