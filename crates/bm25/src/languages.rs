//! The languages of the notes, and the terms by which words are found in any inflection of a language but English.
//!
//! For a note whose language has a stemmer, the field `stems` holds the language of the note, and the stem of each word
//! with the field of the note in which the word occurs. A word of a query is looked up there by its stem in that
//! language. The words of all other notes are found by their English stems.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lru::LruCache;
use sidenote_base::error::Result;
use sidenote_language::language::{Language, LanguageStemmer};
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

use super::statistics::{SegmentTerms, count_documents};
use super::{Bm25Snapshot, DocSet, Fields, Word, failed};

/// The first letter of a term that says the language of a note.
const LANGUAGE: char = 'l';
/// The first letter of a term that says which stem a word has that is written without its diacritics.
const BARE: char = 'u';
/// The first letter of a term of a stem.
const STEM: char = 's';
/// The first letter of a term of a stem from its last letter to its first, by which the compounds that end alike are found.
const REVERSED: char = 'r';
/// What ends a stem or a word in these terms. No term of a text contains this character.
pub(super) const END: char = '\u{1}';

/// How much more frequent a stop word is in its language than in others: it is one word in a hundred there, and seldom more
/// than one in several thousand elsewhere, as a name or a word of another meaning.
const STOP_WORD_RATIO: f64 = 50.0;

/// How many more stop words than of another language tell a language.
const LEAST_MORE: usize = 2;

/// The most words of a query whose compounds are looked for. A longer one is a pasted text, which has words enough of its own.
const MAX_WORDS: usize = 16;

/// The fields whose words have stems, each with the last letter of the terms of its stems.
const STEMMED: [(StemmedField, char); 4] = [
    (StemmedField::Title, 't'),
    (StemmedField::Headings, 'h'),
    (StemmedField::Body, 'b'),
    (StemmedField::Meta, 'm'),
];

/// A field whose words have stems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StemmedField {
    Title,
    Headings,
    Body,
    Meta,
}

impl StemmedField {
    /// Returns the last letter of the terms of its stems.
    pub(super) fn letter(self) -> char {
        STEMMED.iter().find(|(field, _)| *field == self).map_or('b', |(_, letter)| *letter)
    }

    /// Returns the field by the last letter of a term.
    pub(super) fn of_letter(letter: &str) -> Option<Self> {
        STEMMED.iter().find(|(_, known)| letter.chars().eq([*known])).map(|(field, _)| *field)
    }

    /// Returns whether the compounds of words are found in the field.
    pub(super) fn has_compounds(self) -> bool {
        matches!(self, Self::Title | Self::Body)
    }

    /// Returns the field whose words they are.
    pub(super) fn of(field: Field, fields: &Fields) -> Option<Self> {
        let Fields { title, headings, words, meta, .. } = *fields;
        let all = [(title, Self::Title), (headings, Self::Headings), (words, Self::Body), (meta, Self::Meta)];
        all.into_iter().find(|(known, _)| *known == field).map(|(_, found)| found)
    }
}

/// Returns the term that says the language of a note.
pub(super) fn language_term(language: Language) -> String {
    format!("{LANGUAGE}{}", language.code())
}

/// Returns the beginning of the terms of stems in a language.
pub(super) fn stem_key(language: Language) -> String {
    format!("{STEM}{}", language.code())
}

/// Returns the beginning of the terms of reversed stems in a language.
pub(super) fn reversed_key(language: Language) -> String {
    format!("{REVERSED}{}", language.code())
}

/// Writes the term of a stem of a word in a field.
pub(super) fn write_stem_term(field: StemmedField, language: Language, stem: &str, term: &mut String) {
    term.clear();
    term.push(STEM);
    term.push_str(language.code());
    term.push_str(stem);
    term.push(END);
    term.push(field.letter());
}

/// Writes the term of a reversed stem of a word in a field.
pub(super) fn write_reversed_term(field: StemmedField, language: Language, stem: &str, term: &mut String) {
    term.clear();
    term.push(REVERSED);
    term.push_str(language.code());
    term.extend(stem.chars().rev());
    term.push(END);
    term.push(field.letter());
}

/// Writes the term that says which stem a word has that is written without its diacritics.
pub(super) fn write_bare_term(language: Language, folded: &str, stem: &str, term: &mut String) {
    term.clear();
    term.push(BARE);
    term.push_str(folded);
    term.push(END);
    term.push_str(language.code());
    term.push_str(stem);
}

/// The languages of the notes in one snapshot.
#[derive(Debug, Default)]
pub struct NoteLanguages {
    /// How many notes are in each language but English.
    found: BTreeMap<Language, u64>,
    /// How many notes are in English, or in a language that cannot be told.
    english: u64,
    /// The documents of each segment in each language with stems.
    stemmed: Vec<BTreeMap<Language, Arc<DocSet>>>,
}

impl NoteLanguages {
    /// Returns whether all notes are in English, or in a language that cannot be told.
    pub fn is_english(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the languages of the notes but English.
    fn found(&self) -> impl Iterator<Item = Language> + '_ {
        self.found.keys().copied()
    }

    /// Returns whether a folded word is a stop word of English or of another language of the notes.
    pub fn have_stop_word(&self, folded: &str) -> bool {
        self.found().chain([Language::ENGLISH]).any(|language| language.has_stop_word(folded))
    }

    /// Returns whether a language of the notes has compounds.
    pub(crate) fn has_compounds(&self) -> bool {
        self.with_compounds().next().is_some()
    }

    /// Returns whether compounds are searched for the words of a query with this number of words.
    pub fn counts_compounds(&self, words: usize) -> bool {
        words <= MAX_WORDS && self.has_compounds()
    }

    /// Returns the languages of the notes that have compounds.
    pub(super) fn with_compounds(&self) -> impl Iterator<Item = Language> + '_ {
        self.found().filter(|language| language.has_compounds())
    }

    /// Returns the documents of a segment that are in any of some languages, one bit for each; `None` if there are none.
    pub(super) fn documents_in(&self, segment: usize, languages: u64) -> Option<Arc<DocSet>> {
        let is_among = |(language, docs): (&Language, &Arc<DocSet>)| {
            (languages & language.bit() != 0).then(|| Arc::clone(docs))
        };
        let all = self.stemmed.get(segment)?.iter().filter_map(is_among);
        all.reduce(|one, other| Arc::new(DocSet(one.0.combine(&other.0, |one, other| one | other))))
    }

    /// Returns whether some notes of a segment are in a language with stems.
    pub(super) fn has_stems(&self, segment: usize) -> bool {
        self.stemmed.get(segment).is_some_and(|languages| !languages.is_empty())
    }

    /// Returns the language that the stop words of a query tell: there are two more of them than of any other language of the
    /// notes, English included.
    pub fn told_by(&self, stop_words: impl Fn(Language) -> usize) -> Option<Language> {
        let all = self.found().chain([Language::ENGLISH]).map(|language| (stop_words(language), language));
        let mut all: Vec<(usize, Language)> = all.collect();
        all.sort_unstable_by_key(|(count, _)| Reverse(*count));
        let [(most, language), (next, _), ..] = all.as_slice() else { return None };
        (*most >= next + LEAST_MORE).then_some(*language)
    }

    /// Returns the likeliest language of a query, by how many of its words are stop words of each language of the notes, and by
    /// how many notes are in it. English is a language of every vault. Where most notes are in English, one word tells no other
    /// language: it may be a word of English, too (`war`, `man`, `hat`).
    pub fn of_query(&self, stop_words: impl Fn(Language) -> usize) -> Language {
        let counts = self.found.iter().map(|(&language, &notes)| (language, notes));
        let log_likelihood = |(language, notes): &(Language, u64)| {
            (*notes as f64).ln() + STOP_WORD_RATIO.ln() * stop_words(*language) as f64
        };
        let all = counts.chain([(Language::ENGLISH, self.english + 1)]);
        let best = all.max_by(|one, other| log_likelihood(one).total_cmp(&log_likelihood(other)));
        let is_told = |(language, notes): &(Language, u64)| {
            *notes > self.english || stop_words(*language) >= stop_words(Language::ENGLISH) + LEAST_MORE
        };
        best.filter(is_told).map_or(Language::ENGLISH, |(language, _)| language)
    }
}

impl Bm25Snapshot {
    /// Returns the languages of the notes.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn languages(&self) -> Result<&NoteLanguages> {
        if let Some(languages) = self.languages.get() {
            return Ok(languages);
        }
        let found = NoteLanguages::of(self)?;
        // Another thread may have found the same.
        Ok(self.languages.get_or_init(|| found))
    }

    /// Returns the stems of a word in the languages of the notes, cached.
    pub(super) fn word_stems(&self, word: &Word) -> Result<Arc<WordStems>> {
        let cache = || self.word_stems.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (word.exact.clone(), word.typed.clone());
        if let Some(stems) = cache().get(&key) {
            return Ok(Arc::clone(stems));
        }
        let stems = Arc::new(WordStems::of(self, word)?);
        cache().put(key, Arc::clone(&stems));
        Ok(stems)
    }
}

impl NoteLanguages {
    fn of(snapshot: &Bm25Snapshot) -> Result<Self> {
        let (stems, prefix) = (snapshot.fields.stems, LANGUAGE.to_string());
        let segments = snapshot.searcher.segment_readers();
        let mut found: BTreeMap<Language, u64> = BTreeMap::new();
        let mut stemmed = vec![BTreeMap::new(); segments.len()];
        for ((at, segment), in_segment) in segments.iter().enumerate().zip(&mut stemmed) {
            let mut terms: Vec<(Language, TermInfo)> = Vec::new();
            snapshot.dictionaries.for_each_with_prefix(at, segment, stems, &prefix, |term, values| {
                let language = term.strip_prefix(LANGUAGE).and_then(Language::of_code);
                if let Some(language) = language {
                    terms.push((language, values.term_info()?));
                }
                Ok(true)
            })?;
            for (language, info) in terms {
                *found.entry(language).or_default() += count_documents(segment, &[(stems, info.clone())])?;
                if language.stemmer().is_some() {
                    let inverted = segment.inverted_index(stems).map_err(failed("read"))?;
                    let mut docs = DocSet::new(segment.max_doc());
                    docs.add(&inverted, &info)?;
                    in_segment.insert(language, Arc::new(docs));
                }
            }
        }
        found.retain(|_, notes| *notes > 0);
        let english = snapshot.documents.saturating_sub(found.values().sum());
        Ok(Self { found, english, stemmed })
    }
}

/// A cache of the stems of the words of queries in one snapshot.
pub(super) struct WordStemsCache(Mutex<LruCache<WordForms, Arc<WordStems>>>);

/// A word in folded form, and with its diacritics.
type WordForms = (String, Option<String>);

impl Default for WordStemsCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CACHE_SIZE)))
    }
}

/// A word of a query in the languages of the notes.
#[derive(Debug, Default)]
pub(super) struct WordStems {
    /// Its stems in each language with a stemmer: of the word as it is written, without its diacritics, and with those that
    /// notes write. What is written like a stem is one. What has no inflections, such as an identifier, has none.
    by_language: BTreeMap<Language, BTreeSet<String>>,
    /// The terms of the stems in each segment.
    terms: Vec<Vec<(Language, StemmedField, TermInfo)>>,
    /// Its compounds, found when they are first asked for.
    pub(super) compounds: OnceLock<Compounds>,
}

/// The compounds of a word.
#[derive(Debug)]
pub(super) struct Compounds {
    /// Their terms in each segment.
    pub(super) terms: Vec<Vec<(StemmedField, TermInfo)>>,
    /// Their stems, and those of the word.
    pub(super) stems: Arc<HashSet<String>>,
}

impl WordStems {
    fn of(snapshot: &Bm25Snapshot, word: &Word) -> Result<Self> {
        let languages = snapshot.languages()?;
        let mut found = Self::default();
        let Some(typed) = word.typed.as_ref().filter(|_| !languages.is_english()) else { return Ok(found) };
        let bare = stems_of_bare(snapshot, &word.exact)?;
        for language in languages.found() {
            let Some(mut stemmer) = language.stemmer() else { continue };
            let stems = found.by_language.entry(language).or_default();
            stems.insert(word.exact.clone());
            stems.extend(bare.iter().filter(|(of, _)| *of == language).map(|(_, stem)| stem.clone()));
            for form in [typed, &word.exact] {
                stems.insert(stemmer.of(form).to_owned());
            }
        }
        let field = snapshot.fields.stems;
        for (at, segment) in snapshot.searcher.segment_readers().iter().enumerate() {
            let mut terms = Vec::new();
            for (&language, stems) in &found.by_language {
                for stem in stems {
                    let prefix = format!("{}{stem}{END}", stem_key(language));
                    snapshot.dictionaries.for_each_with_prefix(
                        at,
                        segment,
                        field,
                        &prefix,
                        |term, info| {
                            let letter = term.strip_prefix(&prefix).unwrap_or_default();
                            if let Some(part) = StemmedField::of_letter(letter) {
                                terms.push((language, part, info.term_info()?));
                            }
                            Ok(true)
                        },
                    )?;
                }
            }
            found.terms.push(terms);
        }
        Ok(found)
    }

    /// Returns the stems in a language.
    pub(super) fn stems_in(&self, language: Language) -> impl Iterator<Item = &String> {
        self.by_language.get(&language).into_iter().flatten()
    }

    /// Returns the terms of the stems in a field of a segment, and the languages whose notes have them, in whatever segment.
    pub(super) fn terms(
        &self,
        segment: usize,
        field: Field,
        fields: &Fields,
    ) -> (SegmentTerms, Vec<Language>) {
        let part = StemmedField::of(field, fields);
        let is_of_part = |(_, of, _): &&(Language, StemmedField, TermInfo)| Some(*of) == part;
        let all = self.terms.iter().flatten().filter(is_of_part);
        let languages: BTreeSet<Language> = all.map(|(language, ..)| *language).collect();
        let in_segment = self.terms.get(segment).into_iter().flatten().filter(is_of_part);
        let terms = in_segment.map(|(.., info)| (fields.stems, info.clone())).collect();
        (terms, languages.into_iter().collect())
    }

    /// Returns those of some languages, one bit for each, in which a term has one of the stems: in notes in these languages, it
    /// counts by that stem.
    pub(super) fn languages_of(
        &self,
        snapshot: &Bm25Snapshot,
        stemmers: &mut [(Language, LanguageStemmer)],
        term: &str,
    ) -> Result<u64> {
        let (mut set, mut bare) = (0, None);
        for (language, stemmer) in stemmers {
            let Some(stems) = self.by_language.get(language) else { continue };
            let mut is_same = stems.contains(stemmer.of(term));
            if !is_same {
                let bare = match &bare {
                    Some(bare) => bare,
                    None => bare.insert(stems_of_bare(snapshot, term)?),
                };
                is_same = bare.iter().any(|(of, stem)| of == language && stems.contains(stem));
            }
            set |= if is_same { language.bit() } else { 0 };
        }
        Ok(set)
    }
}

/// Returns the stems, each with its language, of the words that live notes write with diacritics, by the word without them.
fn stems_of_bare(snapshot: &Bm25Snapshot, folded: &str) -> Result<BTreeSet<(Language, String)>> {
    let field = snapshot.fields.stems;
    let mut stems = BTreeSet::new();
    let prefix = format!("{BARE}{folded}{END}");
    for (at, segment) in snapshot.searcher.segment_readers().iter().enumerate() {
        snapshot.dictionaries.for_each_with_prefix(at, segment, field, &prefix, |term, values| {
            let said = term.strip_prefix(&prefix).and_then(|said| said.split_at_checked(CODE_LENGTH));
            if let Some((code, stem)) = said
                && let Some(language) = Language::of_code(code)
                && count_documents(segment, &[(field, values.term_info()?)])? > 0
            {
                stems.insert((language, stem.to_owned()));
            }
            Ok(true)
        })?;
    }
    Ok(stems)
}

/// The length of the code of a language.
const CODE_LENGTH: usize = 2;
/// The number of words whose stems are cached per snapshot.
const CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(2048).expect("not zero");
