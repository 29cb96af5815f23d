//! Converts the text of a note to terms with their counts per field. The thread that read the note does this once.
//! tantivy's writer receives the terms as a list: each term, its count less one, and a line feed. Terms consist of
//! letters, digits and signs, so the counts are written in control characters.

use std::hash::BuildHasher as _;
use std::mem;

use hashbrown::{DefaultHashBuilder, HashTable};
use tantivy::schema::document::{Document, ReferenceValue, ReferenceValueLeaf};
use tantivy::schema::{Field, Value};
use tantivy::tokenizer::{MAX_TOKEN_LEN, Token, TokenStream, Tokenizer};

use super::Fields;
use crate::index::bm25::IndexedText;
use crate::index::bm25::substring_candidates::{INCOMPLETE, as_term};
use crate::index::file_set::FileId;
use crate::text::terms::Terms;

/// The byte that ends a term.
const TERM_END: u8 = b'\n';
/// The digit 0 of a count. The sixteen digits are consecutive control characters; the lowest digit comes first.
const ZERO: u8 = 0x10;
/// The base of counts.
const RADIX: u8 = 0x10;

/// The largest capacity of the hash table that is kept for the next note.
const MAX_KEPT_CAPACITY: usize = 1 << 15;

/// The numbers of the fields in counts and field sets.
const TITLE: usize = 0;
const HEADINGS: usize = 1;
const WORDS: usize = 2;
const CODE: usize = 3;
const META: usize = 4;
const PLACE: usize = 5;
const REST: usize = 6;
const KEYS: usize = 7;
/// The number of fields with terms.
pub(super) const FIELDS: usize = 8;

impl Fields {
    /// Returns the fields with terms, in the order of their numbers.
    pub(super) fn with_terms(&self) -> [Field; FIELDS] {
        let Self { title, headings, words, code, meta, path, rest, keys, .. } = *self;
        [title, headings, words, code, meta, path, rest, keys]
    }
}

/// Converts notes to terms, one after another, and reuses its buffers.
#[derive(Debug, Default)]
pub struct Analyzer {
    terms: TermCounts,
    texts: IndexedText,
}

impl Analyzer {
    /// Converts one note to terms. `collect` fills in the texts of the note, which are empty before.
    pub fn analyze(&mut self, collect: impl FnOnce(&mut IndexedText)) -> AnalyzedNote {
        let Self { terms, texts } = self;
        // The analysis of the previous note may have panicked halfway.
        terms.clear();
        texts.clear();
        collect(texts);
        for (field, text) in [(TITLE, &texts.title), (HEADINGS, &texts.headings), (PLACE, &texts.path)] {
            terms.add_all(text, field);
        }
        let keys = texts.keys.iter().map(|key| as_term(key));
        keys.filter(|key| key.len() <= MAX_TOKEN_LEN).for_each(|key| terms.add(&key, KEYS));
        let mut incomplete = texts.incomplete;
        for (field, text) in [(WORDS, &texts.body), (CODE, &texts.code), (META, &texts.meta)] {
            incomplete |= terms.add_all(text, field);
        }
        incomplete |= terms.add_rest(&texts.rest);
        if incomplete {
            terms.add(INCOMPLETE, REST);
        }
        terms.finish()
    }
}

/// The distinct terms of one note with their counts, in the order of their first occurrence.
#[derive(Debug, Default)]
struct TermCounts {
    /// All terms, concatenated.
    text: String,
    entries: Vec<TermEntry>,
    /// The positions in `entries`, by term.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The tokenizer, which is reused from text to text.
    tokenizer: Terms<'static>,
}

/// A distinct term: its span in the concatenated terms, and its count in each field.
#[derive(Debug)]
struct TermEntry {
    start: u32,
    end: u32,
    counts: [u32; FIELDS],
}

/// Returns the bytes of the term of an entry.
fn term_bytes<'t>(text: &'t str, entries: &[TermEntry], at: u32) -> &'t [u8] {
    let span = entries.get(at as usize).map(|entry| entry.start as usize..entry.end as usize);
    span.and_then(|span| text.as_bytes().get(span)).unwrap_or_default()
}

impl TermCounts {
    /// Adds every term of a text to a field, and returns whether a part of the text was left out.
    fn add_all(&mut self, text: &str, field: usize) -> bool {
        let mut terms = mem::take(&mut self.tokenizer).over(text);
        while let Some(term) = terms.next_text() {
            self.add(term, field);
        }
        let has_omissions = terms.has_omissions();
        self.tokenizer = terms.over("");
        has_omissions
    }

    /// Adds each run of letters of a text that is in no other content field to `rest`, once. Returns whether a part of
    /// the text was left out.
    fn add_rest(&mut self, text: &str) -> bool {
        let mut runs = mem::take(&mut self.tokenizer).over(text).in_runs();
        while let Some(run) = runs.next_text() {
            let counts = &mut self.entry(run).counts;
            if [WORDS, CODE, META, REST].iter().all(|&field| counts[field] == 0) {
                counts[REST] = 1;
            }
        }
        let has_omissions = runs.has_omissions();
        self.tokenizer = runs.over("");
        has_omissions
    }

    fn add(&mut self, term: &str, field: usize) {
        self.entry(term).counts[field] += 1;
    }

    /// Returns the entry of a term, which is new if the term is.
    fn entry(&mut self, term: &str) -> &mut TermEntry {
        let Self { text, entries, table, hasher, .. } = self;
        let hash = hasher.hash_one(term.as_bytes());
        let known = table.find(hash, |&at| term_bytes(text, entries, at) == term.as_bytes()).copied();
        let at = known.unwrap_or_else(|| {
            let (at, start) = (entries.len() as u32, text.len() as u32);
            text.push_str(term);
            entries.push(TermEntry { start, end: text.len() as u32, counts: [0; FIELDS] });
            table.insert_unique(hash, at, |&at| hasher.hash_one(term_bytes(text, entries, at)));
            at
        });
        &mut entries[at as usize]
    }

    /// Returns the terms with their counts, and clears them.
    fn finish(&mut self) -> AnalyzedNote {
        let mut terms = Vec::with_capacity(self.entries.len());
        // Few terms occur in a second field.
        let mut counts = Vec::with_capacity(self.entries.len() + self.entries.len() / 4);
        for entry in &self.entries {
            let mut fields = 0;
            for (field, &count) in entry.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                fields |= 1 << field;
                counts.push(count);
            }
            terms.push((entry.end, fields));
        }
        let note = AnalyzedNote { file: 0, text: self.text.clone(), terms, counts };
        self.clear();
        note
    }

    fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        // Clearing a table takes time in proportion to its capacity, so the table of a very large note is dropped.
        if self.table.capacity() > MAX_KEPT_CAPACITY {
            self.table = HashTable::new();
        }
        self.table.clear();
    }
}

/// The terms of one note with their counts, as [`Analyzer`] makes them.
#[derive(Debug, Clone, Default)]
pub struct AnalyzedNote {
    /// The id of the note's file.
    pub file: FileId,
    /// All terms, concatenated.
    text: String,
    /// The end of each term in `text`, and the set of its fields, one bit for each.
    terms: Vec<(u32, u8)>,
    /// The count of each term in each of its fields, in the order of the terms and then of the fields.
    counts: Vec<u32>,
}

impl AnalyzedNote {
    /// Iterates over the distinct terms.
    pub(super) fn terms(&self) -> impl Iterator<Item = &str> + Clone {
        let starts = std::iter::once(0).chain(self.terms.iter().map(|(end, _)| *end));
        let ends = self.terms.iter().map(|(end, _)| *end);
        starts.zip(ends).map(|(start, end)| self.text.get(start as usize..end as usize).unwrap_or(""))
    }

    /// Returns the total length of the terms in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Iterates over the terms, and gives for each the fields that contain it with the count in each.
    pub(super) fn counts(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, u32)>> {
        let mut counts = self.counts.as_slice();
        self.terms.iter().map(move |&(_, fields)| {
            let (term_counts, rest) = counts.split_at(counts.len().min(fields.count_ones() as usize));
            counts = rest;
            (0..FIELDS).filter(move |field| fields >> field & 1 == 1).zip(term_counts.iter().copied())
        })
    }

    /// Builds the term list of each field.
    fn term_lists(&self) -> [String; FIELDS] {
        let mut lists: [String; FIELDS] = Default::default();
        for (term, counts) in self.terms().zip(self.counts()) {
            for (field, count) in counts {
                let list = &mut lists[field];
                list.push_str(term);
                let mut repeats = count - 1;
                while repeats > 0 {
                    list.push(char::from(ZERO + (repeats % u32::from(RADIX)) as u8));
                    repeats /= u32::from(RADIX);
                }
                list.push(char::from(TERM_END));
            }
        }
        lists
    }
}

/// A document for tantivy's writer: the id of a file, and a term list for each field.
#[derive(Debug)]
pub(super) struct TermListDocument {
    id: (Field, u64),
    lists: Vec<(Field, String)>,
}

impl TermListDocument {
    /// Creates the document of a note.
    pub(super) fn new(note: &AnalyzedNote, fields: &Fields) -> Self {
        let lists = fields.with_terms().into_iter().zip(note.term_lists());
        let lists = lists.filter(|(_, list)| !list.is_empty()).collect();
        Self { id: (fields.file, note.file as u64), lists }
    }

    /// Creates a document that has an id and no terms.
    pub(super) fn of_id(file: FileId, fields: &Fields) -> Self {
        Self { id: (fields.file, file as u64), lists: Vec::new() }
    }
}

impl Document for TermListDocument {
    type Value<'a> = TermListValue<'a>;
    type FieldsValuesIter<'a> = std::vec::IntoIter<(Field, TermListValue<'a>)>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        let lists = self.lists.iter().map(|(field, list)| (*field, TermListValue::List(list)));
        let id = (self.id.0, TermListValue::Id(self.id.1));
        std::iter::once(id).chain(lists).collect::<Vec<_>>().into_iter()
    }
}

/// A value of a [`TermListDocument`].
#[derive(Debug, Clone, Copy)]
pub(super) enum TermListValue<'a> {
    /// The id of the note's file.
    Id(u64),
    /// A term list.
    List(&'a str),
}

impl<'a> Value<'a> for TermListValue<'a> {
    type ArrayIter = std::iter::Empty<Self>;
    type ObjectIter = std::iter::Empty<(&'a str, Self)>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        ReferenceValue::Leaf(match *self {
            Self::Id(id) => ReferenceValueLeaf::U64(id),
            Self::List(list) => ReferenceValueLeaf::Str(list),
        })
    }
}

/// The tokenizer that splits a term list into terms.
#[derive(Clone)]
pub(super) struct TermListTokenizer;

/// The stream of the terms of a term list.
pub(super) struct TermListStream<'a> {
    text: &'a str,
    at: usize,
    /// How many more times the current term is emitted.
    repeats: u32,
    token: Token,
}

impl Tokenizer for TermListTokenizer {
    type TokenStream<'a> = TermListStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermListStream<'a> {
        TermListStream { text, at: 0, repeats: 0, token: Token { position: 0, ..Token::default() } }
    }
}

impl TokenStream for TermListStream<'_> {
    fn advance(&mut self) -> bool {
        if self.repeats > 0 {
            self.repeats -= 1;
            return true;
        }
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = memchr::memchr(TERM_END, rest).unwrap_or(rest.len());
        let line = rest.get(..length).unwrap_or_default();
        let digits = line.iter().rev().take_while(|&byte| (ZERO..ZERO + RADIX).contains(byte)).count();
        let (term, digits) = line.split_at(length - digits);
        let Some(term) = self.text.get(self.at..self.at + term.len()).filter(|term| !term.is_empty()) else {
            return false;
        };
        let add = |left: u32, digit: &u8| {
            left.saturating_mul(u32::from(RADIX)).saturating_add(u32::from(digit - ZERO))
        };
        self.repeats = digits.iter().rev().fold(0, add);
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
