//! Owns the form in which a note's terms reach the full-text index: analysed once, by the thread that read the note, each
//! term once with how often it comes in each field. tantivy's writer takes lists: a term, then how often it comes again,
//! then a line feed. Terms are made of letters, digits and signs, so counts are written in control characters.

use std::hash::BuildHasher as _;
use std::mem;

use hashbrown::{DefaultHashBuilder, HashTable};
use tantivy::schema::document::{Document, ReferenceValue, ReferenceValueLeaf};
use tantivy::schema::{Field, Value};
use tantivy::tokenizer::{MAX_TOKEN_LEN, Token, TokenStream, Tokenizer};

use super::Fields;
use crate::index::bm25::Entry;
use crate::index::bm25::substring_candidates::{INCOMPLETE, as_term};
use crate::index::file_set::FileId;
use crate::text::terms::Terms;

/// Ends a term.
const END: u8 = b'\n';
/// The digits of a count are these sixteen control characters, from zero on; the lowest digit comes first.
const ZERO: u8 = 0x10;
const DIGITS: u8 = 0x10;

/// The capacity above which the table of a note's terms is not kept for the next note.
const LARGE_TABLE: usize = 1 << 15;

/// The fields of a note whose terms are listed, as they are counted.
const TITLE: usize = 0;
const HEADINGS: usize = 1;
const WORDS: usize = 2;
const CODE: usize = 3;
const META: usize = 4;
const PLACE: usize = 5;
const REST: usize = 6;
const KEYS: usize = 7;
/// How many they are.
pub(super) const FIELDS: usize = 8;

impl Fields {
    /// Gives the fields whose terms are listed, in the order in which they are counted.
    pub(super) fn listed(&self) -> [Field; FIELDS] {
        let Self { title, headings, words, code, meta, place, rest, keys, .. } = *self;
        [title, headings, words, code, meta, place, rest, keys]
    }
}

/// Analyses notes one after another, in the same space.
#[derive(Debug, Default)]
pub struct Analysis {
    terms: TermCounts,
    entry: Entry,
}

impl Analysis {
    /// Analyses what is to be indexed of one note, which `gather` puts into an entry that is empty.
    pub fn of(&mut self, gather: impl FnOnce(&mut Entry)) -> Analysed {
        let Self { terms, entry } = self;
        // A note before may have been given up in the middle.
        terms.clear();
        entry.clear();
        gather(entry);
        for (field, text) in [(TITLE, &entry.title), (HEADINGS, &entry.headings), (PLACE, &entry.place)] {
            terms.add_all(text, field);
        }
        let keys = entry.keys.iter().map(|key| as_term(key));
        keys.filter(|key| key.len() <= MAX_TOKEN_LEN).for_each(|key| terms.add(&key, KEYS));
        let mut incomplete = entry.incomplete;
        for (field, text) in [(WORDS, &entry.body), (CODE, &entry.code), (META, &entry.meta)] {
            incomplete |= terms.add_all(text, field);
        }
        incomplete |= terms.add_rest(&entry.rest);
        if incomplete {
            terms.add(INCOMPLETE, REST);
        }
        terms.take()
    }
}

/// The terms of one note, each once, in the order in which they were met.
#[derive(Debug, Default)]
struct TermCounts {
    /// All terms, one behind the other.
    text: String,
    met: Vec<Met>,
    /// Finds a term in `met`.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Cuts one text after another.
    walk: Terms<'static>,
}

#[derive(Debug)]
struct Met {
    start: u32,
    end: u32,
    counts: [u32; FIELDS],
}

/// Returns the bytes of a term that was met.
fn written<'t>(text: &'t str, met: &[Met], at: u32) -> &'t [u8] {
    let span = met.get(at as usize).map(|met| met.start as usize..met.end as usize);
    span.and_then(|span| text.as_bytes().get(span)).unwrap_or_default()
}

impl TermCounts {
    /// Adds every term of a text to a field; says whether a part of the text is in none of them.
    fn add_all(&mut self, text: &str, field: usize) -> bool {
        let mut terms = mem::take(&mut self.walk).over(text);
        while let Some(term) = terms.next_text() {
            self.add(term, field);
        }
        let left_out = terms.left_out();
        self.walk = terms.over("");
        left_out
    }

    /// Adds every run of letters of a text that no field of the file's content has yet to `rest`, once; says whether one
    /// is beyond reason.
    fn add_rest(&mut self, text: &str) -> bool {
        let mut runs = mem::take(&mut self.walk).over(text).in_runs();
        while let Some(run) = runs.next_text() {
            let counts = &mut self.meet(run).counts;
            if [WORDS, CODE, META, REST].iter().all(|&field| counts[field] == 0) {
                counts[REST] = 1;
            }
        }
        let left_out = runs.left_out();
        self.walk = runs.over("");
        left_out
    }

    fn add(&mut self, term: &str, field: usize) {
        self.meet(term).counts[field] += 1;
    }

    fn meet(&mut self, term: &str) -> &mut Met {
        let Self { text, met, table, hasher, .. } = self;
        let hash = hasher.hash_one(term.as_bytes());
        let known = table.find(hash, |&at| written(text, met, at) == term.as_bytes()).copied();
        let at = known.unwrap_or_else(|| {
            let (at, start) = (met.len() as u32, text.len() as u32);
            text.push_str(term);
            met.push(Met { start, end: text.len() as u32, counts: [0; FIELDS] });
            table.insert_unique(hash, at, |&at| hasher.hash_one(written(text, met, at)));
            at
        });
        &mut met[at as usize]
    }

    /// Gives the terms with their counts, and forgets them.
    fn take(&mut self) -> Analysed {
        let mut terms = Vec::with_capacity(self.met.len());
        // Few terms stand in a second field.
        let mut counts = Vec::with_capacity(self.met.len() + self.met.len() / 4);
        for met in &self.met {
            let mut fields = 0;
            for (field, &count) in met.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                fields |= 1 << field;
                counts.push(count);
            }
            terms.push((met.end, fields));
        }
        let note = Analysed { file: 0, text: self.text.clone(), terms, counts };
        self.clear();
        note
    }

    fn clear(&mut self) {
        self.text.clear();
        self.met.clear();
        // Clearing takes as long as the table is large, so one that a very large note needed is dropped.
        if self.table.capacity() > LARGE_TABLE {
            self.table = HashTable::new();
        }
        self.table.clear();
    }
}

/// What is to be indexed of one note as terms; made by [`Analysis`].
#[derive(Debug, Clone, Default)]
pub struct Analysed {
    /// The note's number.
    pub file: FileId,
    /// All terms, one behind the other.
    text: String,
    /// Where each ends, and the set of fields that it stands in: a bit for each.
    terms: Vec<(u32, u8)>,
    /// How often each comes in each of its fields, in order.
    counts: Vec<u32>,
}

impl Analysed {
    /// Gives each term once.
    pub(super) fn terms(&self) -> impl Iterator<Item = &str> + Clone {
        let starts = std::iter::once(0).chain(self.terms.iter().map(|(end, _)| *end));
        let ends = self.terms.iter().map(|(end, _)| *end);
        starts.zip(ends).map(|(start, end)| self.text.get(start as usize..end as usize).unwrap_or(""))
    }

    /// Counts the bytes of its terms.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Gives for each term the fields that it stands in, with how often it comes there.
    pub(super) fn counts(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, u32)>> {
        let mut counts = self.counts.as_slice();
        self.terms.iter().map(move |&(_, fields)| {
            let (of_term, rest) = counts.split_at(counts.len().min(fields.count_ones() as usize));
            counts = rest;
            (0..FIELDS).filter(move |field| fields >> field & 1 == 1).zip(of_term.iter().copied())
        })
    }

    /// Writes down the terms of each field with their counts.
    fn lists(&self) -> [String; FIELDS] {
        let mut lists: [String; FIELDS] = Default::default();
        for (term, counts) in self.terms().zip(self.counts()) {
            for (field, count) in counts {
                let list = &mut lists[field];
                list.push_str(term);
                let mut again = count - 1;
                while again > 0 {
                    list.push(char::from(ZERO + (again % u32::from(DIGITS)) as u8));
                    again /= u32::from(DIGITS);
                }
                list.push(char::from(END));
            }
        }
        lists
    }
}

/// A note as tantivy takes it: lists of terms that are not copied once more.
#[derive(Debug)]
pub(super) struct Listing {
    number: (Field, u64),
    lists: Vec<(Field, String)>,
}

impl Listing {
    /// Brings the terms of each field into a list.
    pub(super) fn new(note: &Analysed, fields: &Fields) -> Self {
        let lists = fields.listed().into_iter().zip(note.lists());
        let lists = lists.filter(|(_, list)| !list.is_empty()).collect();
        Self { number: (fields.file, note.file as u64), lists }
    }

    /// Has the number of a note alone.
    pub(super) fn of_number(file: FileId, fields: &Fields) -> Self {
        Self { number: (fields.file, file as u64), lists: Vec::new() }
    }
}

impl Document for Listing {
    type Value<'a> = ListedValue<'a>;
    type FieldsValuesIter<'a> = std::vec::IntoIter<(Field, ListedValue<'a>)>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        let lists = self.lists.iter().map(|(field, list)| (*field, ListedValue::List(list)));
        let number = (self.number.0, ListedValue::Number(self.number.1));
        std::iter::once(number).chain(lists).collect::<Vec<_>>().into_iter()
    }
}

/// A value of a [`Listing`].
#[derive(Debug, Clone, Copy)]
pub(super) enum ListedValue<'a> {
    /// The note's number.
    Number(u64),
    /// A list of terms.
    List(&'a str),
}

impl<'a> Value<'a> for ListedValue<'a> {
    type ArrayIter = std::iter::Empty<Self>;
    type ObjectIter = std::iter::Empty<(&'a str, Self)>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        ReferenceValue::Leaf(match *self {
            Self::Number(number) => ReferenceValueLeaf::U64(number),
            Self::List(list) => ReferenceValueLeaf::Str(list),
        })
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
