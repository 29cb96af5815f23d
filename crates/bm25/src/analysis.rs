//! Converts the text of a note to terms with their counts per field. The thread that read the note does this once.
//! tantivy's writer receives the terms as a list: each term, its count less one, and a line feed. Terms consist of
//! letters, digits and signs, so the counts are written in control characters.

use std::borrow::Cow;
use std::mem;

use hashbrown::HashTable;
use sidenote_language::folding::fold_into;
use sidenote_language::language::{Language, LanguageStemmer, LanguageStemmers, typed_form};
use sidenote_language::short_word::{MAX_SHORT, ShortWord, packed};
use sidenote_language::terms::{TermKind, Terms};
use sidenote_sets::file_set::FileId;
use tantivy::schema::document::{Document, ReferenceValue, ReferenceValueLeaf};
use tantivy::schema::{Field, Value};
use tantivy::tokenizer::{MAX_TOKEN_LEN, Token, TokenStream, Tokenizer};

use super::Fields;
use super::compounds::may_be_compound;
use super::languages::{StemmedField, language_term, write_bare_term, write_reversed_term, write_stem_term};
use crate::IndexedText;
use crate::substring_candidates::{INCOMPLETE, as_term};
use crate::term_dictionary::{TermHasher, spread};

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
const STEMS: usize = 8;
/// The fields that together hold the whole content of a file.
const CONTENT: [usize; 4] = [WORDS, CODE, META, REST];
/// The number of fields with terms.
pub(super) const FIELDS: usize = 9;

impl Fields {
    /// Returns the fields with terms, in the order of their numbers.
    pub(super) fn with_terms(&self) -> [Field; FIELDS] {
        let Self { title, headings, words, code, meta, path, rest, keys, stems, .. } = *self;
        [title, headings, words, code, meta, path, rest, keys, stems]
    }
}

/// Converts notes to terms, one after another, and reuses its buffers.
#[derive(Debug, Default)]
pub struct Analyzer {
    terms: TermCounts,
    texts: IndexedText,
    /// The stemmers of the languages of the notes so far.
    stemmers: LanguageStemmers,
}

impl Analyzer {
    /// Converts one note to terms. `collect` fills in the texts of the note, which are empty before.
    pub fn analyze(&mut self, collect: impl FnOnce(&mut IndexedText)) -> AnalyzedNote {
        let Self { terms, texts, stemmers } = self;
        // The analysis of the previous note may have panicked halfway.
        terms.clear();
        texts.clear();
        collect(texts);
        terms.has_omissions = texts.incomplete;
        let keys = texts.keys.iter().map(|key| as_term(key));
        keys.filter(|key| key.len() <= MAX_TOKEN_LEN).for_each(|key| terms.add(&key, KEYS));
        for (field, text) in [(WORDS, &texts.body), (CODE, &texts.code), (META, &texts.meta)] {
            terms.add_all(text, field);
        }
        terms.add_rest(&texts.rest);
        terms.add_inner_runs();
        let is_incomplete = terms.has_omissions;
        for (field, text) in [(TITLE, &texts.title), (HEADINGS, &texts.headings), (PLACE, &texts.path)] {
            terms.add_all(text, field);
        }
        if let Some(language) = texts.language {
            terms.add(&language_term(language), STEMS);
            if let Some(stemmer) = stemmers.of(language) {
                let stemmed = [
                    (&texts.title, StemmedField::Title),
                    (&texts.headings, StemmedField::Headings),
                    (&texts.body, StemmedField::Body),
                    (&texts.meta, StemmedField::Meta),
                    (&texts.path, StemmedField::Meta),
                ];
                stemmed.into_iter().for_each(|(text, field)| terms.add_stems(text, field, language, stemmer));
            }
        }
        if is_incomplete {
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
    hasher: TermHasher,
    /// The tokenizer, which is reused from text to text.
    tokenizer: Terms<'static>,
    /// Whether a part of the texts so far was left out.
    has_omissions: bool,
    /// The runs of letters and digits of the texts so far that are no terms, each followed by a line feed.
    inner_runs: String,
}

/// A distinct term: its first bytes, its span in the concatenated terms, its hash, and its count in each field.
#[derive(Debug)]
struct TermEntry {
    /// The bytes as [`packed`] returns them. They are halved, because a number of this size would be aligned to it.
    first: [u64; 2],
    start: u32,
    end: u32,
    hash: u32,
    counts: [u32; FIELDS],
}

/// A term that is looked up.
#[derive(Clone, Copy)]
struct TermKey<'t> {
    /// The bytes as [`packed`] returns them.
    first: u128,
    length: usize,
    /// All bytes of a term that is longer than [`MAX_SHORT`].
    long: &'t [u8],
    hash: u32,
}

impl TermEntry {
    /// Says whether this is the entry of a term. `text` are the concatenated terms.
    #[inline]
    fn is_of(&self, key: &TermKey<'_>, text: &str) -> bool {
        let [low, high] = self.first;
        let is_same_start = low == key.first as u64 && high == (key.first >> 64) as u64;
        is_same_start
            && (self.end - self.start) as usize == key.length
            && (key.length <= MAX_SHORT
                || text.as_bytes().get(self.start as usize..self.end as usize) == Some(key.long))
    }
}

impl TermCounts {
    /// Adds every term of a text to a field.
    fn add_all(&mut self, text: &str, field: usize) {
        let mut terms = mem::take(&mut self.tokenizer).over(text);
        loop {
            while let Some(word) = terms.next_short() {
                self.short_entry(word).counts[field] += 1;
            }
            let Some(term) = terms.next_text() else { break };
            self.add(term, field);
        }
        if CONTENT.contains(&field) {
            self.keep_inner_runs(&terms);
        }
        self.has_omissions |= terms.has_omissions();
        self.tokenizer = terms.over("");
    }

    /// Keeps the runs of letters and digits of a text that are no terms.
    fn keep_inner_runs(&mut self, terms: &Terms<'_>) {
        for run in terms.inner_runs() {
            fold_into(run, &mut self.inner_runs);
            self.inner_runs.push('\n');
        }
    }

    /// Adds the kept runs to `rest`, unless another content field has them.
    fn add_inner_runs(&mut self) {
        let runs = mem::take(&mut self.inner_runs);
        for run in runs.lines().filter(|run| !run.is_empty()) {
            add_to_rest(&mut self.entry(run).counts);
        }
    }

    /// Adds the stems of all terms of a text in its language. That of an identifier is found as if it were written as a word.
    fn add_stems(
        &mut self,
        text: &str,
        field: StemmedField,
        language: Language,
        stemmer: &mut LanguageStemmer,
    ) {
        let mut terms = mem::take(&mut self.tokenizer).over(text);
        let (mut stem_term, mut bare_term) = (String::new(), String::new());
        while terms.advance() {
            let term = terms.term();
            let typed = match term.kind {
                TermKind::Word | TermKind::Part => {
                    typed_form(text.get(term.start..term.end).unwrap_or_default())
                }
                _ => Cow::Borrowed(&*term.text),
            };
            let stem = stemmer.of(&typed);
            write_stem_term(field, language, stem, &mut stem_term);
            self.add(&stem_term, STEMS);
            if may_be_compound(stem, field, language) {
                write_reversed_term(field, language, stem, &mut stem_term);
                self.add(&stem_term, STEMS);
            }
            if *typed != term.text {
                let stem = stemmer.of(&typed).to_owned();
                if stemmer.of(&term.text) != stem {
                    write_bare_term(language, &term.text, &stem, &mut bare_term);
                    self.entry(&bare_term).counts[STEMS] = 1;
                }
            }
        }
        self.tokenizer = terms.over("");
    }

    /// Adds each run of letters of a text that is in no other content field to `rest`, once.
    fn add_rest(&mut self, text: &str) {
        let mut runs = mem::take(&mut self.tokenizer).over(text).in_runs();
        loop {
            while let Some(run) = runs.next_short() {
                add_to_rest(&mut self.short_entry(run).counts);
            }
            let Some(run) = runs.next_text() else { break };
            add_to_rest(&mut self.entry(run).counts);
        }
        self.keep_inner_runs(&runs);
        self.has_omissions |= runs.has_omissions();
        self.tokenizer = runs.over("");
    }

    fn add(&mut self, term: &str, field: usize) {
        self.entry(term).counts[field] += 1;
    }

    /// Returns the entry of a term, which is new if the term is.
    fn entry(&mut self, term: &str) -> &mut TermEntry {
        let bytes = term.as_bytes();
        let key = TermKey {
            first: packed(bytes),
            length: bytes.len(),
            long: if bytes.len() > MAX_SHORT { bytes } else { &[] },
            hash: self.hasher.of(bytes),
        };
        self.entry_of(&key, |text| text.push_str(term))
    }

    /// Returns the entry of a short word, which is new if the word is.
    #[inline]
    fn short_entry(&mut self, word: ShortWord) -> &mut TermEntry {
        let (first, length, hash) = (word.folded, word.length, self.hasher.of_packed(word.folded));
        self.entry_of(&TermKey { first, length, long: &[], hash }, |text| {
            let bytes = first.to_le_bytes();
            text.extend(bytes.iter().take(length).map(|&byte| char::from(byte)));
        })
    }

    /// Returns the entry of a term. `push` appends the term to a text if it is new.
    #[inline]
    fn entry_of(&mut self, key: &TermKey<'_>, push: impl FnOnce(&mut String)) -> &mut TermEntry {
        let Self { text, entries, table, .. } = self;
        let is_same = |&at: &u32| entries.get(at as usize).is_some_and(|entry| entry.is_of(key, text));
        let known = table.find(spread(key.hash), is_same).copied();
        let at = known.unwrap_or_else(|| {
            let (at, start) = (entries.len() as u32, text.len() as u32);
            push(text);
            let first = [key.first as u64, (key.first >> 64) as u64];
            let end = text.len() as u32;
            entries.push(TermEntry { first, start, end, hash: key.hash, counts: [0; FIELDS] });
            table.insert_unique(spread(key.hash), at, |&at| {
                spread(entries.get(at as usize).map_or(0, |entry| entry.hash))
            });
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
            terms.push(AnalyzedTerm { end: entry.end, hash: entry.hash, fields });
        }
        let note = AnalyzedNote { file: 0, text: self.text.clone(), terms, counts };
        self.clear();
        note
    }

    fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.has_omissions = false;
        self.inner_runs.clear();
        // Clearing a table takes time in proportion to its capacity, so the table of a very large note is dropped.
        if self.table.capacity() > MAX_KEPT_CAPACITY {
            self.table = HashTable::new();
        }
        self.table.clear();
    }
}

/// Adds a term to `rest` unless it is in a field with content.
fn add_to_rest(counts: &mut [u32; FIELDS]) {
    if CONTENT.iter().all(|&field| counts[field] == 0) {
        counts[REST] = 1;
    }
}

/// The terms of one note with their counts, as [`Analyzer`] makes them.
#[derive(Debug, Clone, Default)]
pub struct AnalyzedNote {
    /// The id of the note's file.
    pub file: FileId,
    /// All terms, concatenated.
    text: String,
    terms: Vec<AnalyzedTerm>,
    /// The count of each term in each of its fields, in the order of the terms and then of the fields.
    counts: Vec<u32>,
}

/// A term of an [`AnalyzedNote`].
#[derive(Debug, Clone, Copy)]
struct AnalyzedTerm {
    /// Its end in the concatenated terms.
    end: u32,
    /// Its hash, as [`TermHasher`] computes it.
    hash: u32,
    /// The set of its fields, one bit for each.
    fields: u16,
}

impl AnalyzedNote {
    /// Iterates over the distinct terms.
    pub(super) fn terms(&self) -> impl Iterator<Item = &str> + Clone {
        let mut start = 0;
        self.terms.iter().map(move |term| {
            let from = mem::replace(&mut start, term.end as usize);
            self.text.get(from..start).unwrap_or("")
        })
    }

    /// Iterates over the hashes of the terms.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u32> {
        self.terms.iter().map(|term| term.hash)
    }

    /// Returns the total length of the terms in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Iterates over the terms, and gives for each the fields that contain it with the count in each.
    pub(super) fn counts(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, u32)>> {
        let mut counts = self.counts.as_slice();
        self.terms.iter().map(move |&AnalyzedTerm { fields, .. }| {
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
