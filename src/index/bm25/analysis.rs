//! Owns the form in which a note's terms reach the full-text index: analysed once, by the thread that read the note.
//!
//! A list of terms is one string: each term once, then how often it comes again where it does, then a line feed. Terms
//! are made of letters, digits and signs, so counts are written in control characters. The full-text index
//! finds a term that it has just been told far sooner than one that it was told some hundred words ago.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::vocabulary::{INCOMPLETE, as_term};
use crate::index::bm25::{Analysed, Entry};
use crate::text::terms::Terms;

/// Ends a term.
const END: u8 = b'\n';
/// The digits of a count are these sixteen control characters, from zero on; the lowest digit comes first.
const ZERO: u8 = 0x10;
const DIGITS: u8 = 0x10;

/// Analyses notes one after another, in the same space.
#[derive(Debug, Default)]
pub struct Analysis {
    terms: TermCounts,
}

impl Analysis {
    /// Analyses what is to be indexed of one note.
    pub fn of(&mut self, entry: &Entry) -> Analysed {
        let terms = &mut self.terms;
        // A note before may have been given up in the middle.
        terms.clear();
        let mut alone = |text: &str| {
            terms.add_all(text, WORDS);
            terms.take(WORDS)
        };
        let (title, headings, place) = (alone(&entry.title), alone(&entry.headings), alone(&entry.place));
        entry.keys.iter().for_each(|key| terms.add(&as_term(key), REST));
        let keys = terms.take(REST);
        let mut incomplete = entry.incomplete;
        for (field, text) in [(WORDS, &entry.body), (CODE, &entry.code), (META, &entry.meta)] {
            incomplete |= terms.add_all(text, field);
        }
        let (words, code, meta) = (terms.list(WORDS), terms.list(CODE), terms.list(META));
        incomplete |= terms.add_rest(&entry.rest);
        if incomplete {
            terms.add(INCOMPLETE, REST);
        }
        let rest = terms.take(REST);
        Analysed { file: entry.file, title, headings, words, code, meta, place, rest, keys }
    }
}

/// The fields of a note that are counted together, for `rest` has only what the others have not.
const WORDS: usize = 0;
const CODE: usize = 1;
const META: usize = 2;
const REST: usize = 3;
const FIELDS: usize = 4;

/// The terms of one note, each once, in the order in which they were met.
#[derive(Debug, Default)]
struct TermCounts {
    /// All terms, one behind the other.
    text: String,
    met: Vec<Met>,
    /// Finds a term in `met`.
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct Met {
    start: u32,
    end: u32,
    counts: [u32; FIELDS],
    hash: u64,
}

impl TermCounts {
    /// Adds every term of a text to a field; says whether a part of the text is in none of them.
    fn add_all(&mut self, text: &str, field: usize) -> bool {
        let mut terms = Terms::new(text);
        while let Some(term) = terms.next_text() {
            self.add(term, field);
        }
        terms.left_out()
    }

    /// Adds every run of letters of a text that no field has yet to `rest`, once; says whether one is beyond reason.
    fn add_rest(&mut self, text: &str) -> bool {
        let mut runs = Terms::runs(text);
        while let Some(run) = runs.next_text() {
            let met = self.meet(run);
            if met.counts == [0; FIELDS] {
                met.counts[REST] = 1;
            }
        }
        runs.left_out()
    }

    fn add(&mut self, term: &str, field: usize) {
        self.meet(term).counts[field] += 1;
    }

    fn meet(&mut self, term: &str) -> &mut Met {
        let hash = self.hasher.hash_one(term);
        let Self { text, met, places, .. } = self;
        let is_term = |&place: &u32| {
            let met = met.get(place as usize).filter(|met| met.hash == hash);
            met.and_then(|met| text.get(met.start as usize..met.end as usize)) == Some(term)
        };
        let place = places.find(hash, is_term).copied().unwrap_or_else(|| {
            let (place, start) = (met.len() as u32, text.len() as u32);
            text.push_str(term);
            met.push(Met { start, end: text.len() as u32, counts: [0; FIELDS], hash });
            places.insert_unique(hash, place, |&place| met[place as usize].hash);
            place
        });
        &mut met[place as usize]
    }

    /// Writes down the terms of a field with their counts.
    fn list(&self, field: usize) -> String {
        let held = || self.met.iter().filter(|met| met.counts[field] > 0);
        let mut list = String::with_capacity(held().map(|met| (met.end - met.start) as usize + 2).sum());
        for met in held() {
            list.push_str(self.text.get(met.start as usize..met.end as usize).unwrap_or(""));
            let mut again = met.counts[field] - 1;
            while again > 0 {
                list.push(char::from(ZERO + (again % u32::from(DIGITS)) as u8));
                again /= u32::from(DIGITS);
            }
            list.push(char::from(END));
        }
        list
    }

    /// Writes down the terms of a field, and forgets all.
    fn take(&mut self, field: usize) -> String {
        let list = self.list(field);
        self.clear();
        list
    }

    fn clear(&mut self) {
        self.text.clear();
        self.met.clear();
        self.places.clear();
    }
}

/// Hands a list of terms to tantivy.
#[derive(Clone)]
pub(super) struct Listed;

pub(super) struct ListedStream<'a> {
    text: &'a str,
    at: usize,
    /// How often the term at hand comes yet.
    left: u32,
    token: Token,
}

impl Tokenizer for Listed {
    type TokenStream<'a> = ListedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> ListedStream<'a> {
        ListedStream { text, at: 0, left: 0, token: Token { position: 0, ..Token::default() } }
    }
}

impl TokenStream for ListedStream<'_> {
    fn advance(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = memchr::memchr(END, rest).unwrap_or(rest.len());
        let line = rest.get(..length).unwrap_or_default();
        let digits = line.iter().rev().take_while(|&byte| (ZERO..ZERO + DIGITS).contains(byte)).count();
        let (term, digits) = line.split_at(length - digits);
        let Some(term) = self.text.get(self.at..self.at + term.len()).filter(|term| !term.is_empty()) else {
            return false;
        };
        let add = |left: u32, digit: &u8| {
            left.saturating_mul(u32::from(DIGITS)).saturating_add(u32::from(digit - ZERO))
        };
        self.left = digits.iter().rev().fold(0, add);
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
