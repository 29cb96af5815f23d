//! Finds the compounds of a word in the languages that write them as one word: `Datenbank` finds *Datenbankverbindung*.
//!
//! There is no dictionary. If a term begins or ends with the word, the rest of the term must be long enough to be a
//! part of a compound. Next to a short word, the rest must also be a word of the vault itself (Koehn & Knight 2003).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use sidenote_base::error::Result;
use sidenote_language::language::{Language, LanguageStemmer};
use tantivy::postings::TermInfo;
use tantivy::schema::Field;

use super::languages::{Compounds, END, StemmedField, WordStems, reversed_key, stem_key, write_stem_term};
use super::statistics::count_documents;
use super::stem_expansion::Expansion;
use super::{Bm25Snapshot, Word};

/// The fewest letters of a word whose compounds are found, and of the rest of a compound.
const MIN_PART: usize = 4;
/// The fewest letters of a word beside which the rest need not be a word of the vault.
pub const MIN_SAFE_WORD: usize = 6;
/// The most compounds of a word at one of their ends.
const MAX_COMPOUNDS: usize = 256;
/// A first part of a compound, long enough for every ending of the last part to be removed.
const ANY_PART: &str = "dadadad";
/// The linking elements between the parts of a compound in German and related languages.
pub const LINKING_ELEMENTS: [&str; 7] = ["", "s", "es", "n", "en", "e", "er"];

impl Bm25Snapshot {
    /// Returns the compounds of a word in a field, cached. There are none where no note is in a language with compounds.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub(super) fn expand_compounds(&self, field: Field, word: &Word) -> Result<Arc<Expansion>> {
        let typed = word.typed.as_deref().unwrap_or_default();
        let key = (field, format!("{}{COMPOUND_MARK}{typed}", word.exact));
        self.cached_expansion(key, || find_compounds(self, field, word))
    }

    /// Returns the stems of the compounds of a short word. There are none for a longer word, whose compounds are found
    /// by their letters.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn compounds_of_short(&self, word: &Word) -> Result<Option<Arc<HashSet<String>>>> {
        if word.exact.chars().count() >= MIN_SAFE_WORD {
            return Ok(None);
        }
        Ok(Some(Arc::clone(&compounds(self, word, &*self.word_stems(word)?)?.stems)))
    }

    /// Returns whether a longer word of a note begins or ends with a word, in a language with compounds. Whether it is a
    /// compound of the word is not known.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the index cannot be read.
    pub fn is_in_longer_word(&self, word: &Word) -> Result<bool> {
        let stems = self.word_stems(word)?;
        for language in self.languages()?.with_compounds() {
            for (part, end) in parts(language, word, &stems) {
                if !rests(self, language, &part, end)?.is_empty() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Returns the forms that a word has at the beginning and at the end of the stems of its compounds in a language.
fn parts(language: Language, word: &Word, stems: &WordStems) -> Vec<(String, End)> {
    let typed = word.typed.as_deref().unwrap_or_default();
    if typed.is_empty() || !word.exact.chars().all(char::is_alphabetic) {
        return Vec::new();
    }
    let firsts: BTreeSet<&str> =
        stems.stems_in(language).map(String::as_str).filter(|own| is_long(own)).collect();
    let as_last = language.stemmer().and_then(|mut stemmer| stem_as_last(&mut stemmer, typed));
    let mut lasts = firsts.clone();
    lasts.extend(as_last.as_deref().filter(|last| is_long(last)));
    let firsts = firsts.into_iter().map(|part| (part.to_owned(), End::First));
    firsts.chain(lasts.into_iter().map(|part| (part.to_owned(), End::Last))).collect()
}

fn find_compounds(snapshot: &Bm25Snapshot, field: Field, word: &Word) -> Result<Expansion> {
    let part = StemmedField::of(field, &snapshot.fields);
    let stems = snapshot.word_stems(word)?;
    let found = &compounds(snapshot, word, &stems)?.terms;
    let mut expansion = Expansion { terms: Vec::new(), stemmed_in: Vec::new(), documents: 0 };
    for (segment, found) in snapshot.searcher.segment_readers().iter().zip(found) {
        let in_field = found.iter().filter(|(of, _)| Some(*of) == part);
        let terms: Vec<_> = in_field.map(|(_, info)| (snapshot.fields.stems, info.clone())).collect();
        expansion.documents += count_documents(segment, &terms)?;
        expansion.terms.push(terms);
    }
    Ok(expansion)
}

/// Returns the compounds of a word with its stems, which are found once.
fn compounds<'s>(snapshot: &Bm25Snapshot, word: &Word, stems: &'s WordStems) -> Result<&'s Compounds> {
    if let Some(found) = stems.compounds.get() {
        return Ok(found);
    }
    let found = all_compounds(snapshot, word, stems)?;
    // Another thread may have found the same.
    Ok(stems.compounds.get_or_init(|| found))
}

/// Finds the compounds of a word in all languages that have some.
fn all_compounds(snapshot: &Bm25Snapshot, word: &Word, stems: &WordStems) -> Result<Compounds> {
    let mut all = HashSet::new();
    let mut terms = vec![Vec::new(); snapshot.searcher.segment_readers().len()];
    let is_safe = word.exact.chars().count() >= MIN_SAFE_WORD;
    for language in snapshot.languages()?.with_compounds() {
        // An inflection of the word is not a compound.
        let mut listed: HashSet<String> = stems.stems_in(language).cloned().collect();
        for (part, end) in parts(language, word, stems) {
            for (rest, found) in rests(snapshot, language, &part, end)?.into_iter().take(MAX_COMPOUNDS) {
                let (rest, compound) = match end {
                    End::First => (rest.clone(), format!("{part}{rest}")),
                    End::Last => {
                        let rest: String = rest.chars().rev().collect();
                        let compound = format!("{rest}{part}");
                        (rest, compound)
                    }
                };
                if !listed.contains(&compound) && (is_safe || is_part(snapshot, language, &rest)?) {
                    listed.insert(compound);
                    for (at, field, info) in found {
                        terms.get_mut(at).into_iter().for_each(|terms| terms.push((field, info.clone())));
                    }
                }
            }
        }
        all.extend(listed);
    }
    Ok(Compounds { terms, stems: Arc::new(all) })
}

/// Where a word is in a compound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// A term of a compound: the index of its segment, and its field.
type FoundTerm = (usize, StemmedField, TermInfo);

/// Finds what stands beside a part at one end of the stems of live notes: the first in order, whatever segments they are in,
/// with the terms of each. Before a last part, it is reversed.
fn rests(
    snapshot: &Bm25Snapshot,
    language: Language,
    part: &str,
    end: End,
) -> Result<BTreeMap<String, Vec<FoundTerm>>> {
    let prefix = match end {
        End::First => format!("{}{part}", stem_key(language)),
        End::Last => format!("{}{}", reversed_key(language), part.chars().rev().collect::<String>()),
    };
    let stems = snapshot.fields.stems;
    let mut rests: BTreeMap<String, Vec<FoundTerm>> = BTreeMap::new();
    for (at, segment) in snapshot.searcher.segment_readers().iter().enumerate() {
        let mut count = 0;
        snapshot.dictionaries.for_each_with_prefix(at, segment, stems, &prefix, |term, values| {
            let parted = term.strip_prefix(&prefix).and_then(|rest| rest.split_once(END));
            let Some((rest, letter)) = parted.filter(|(rest, _)| is_long(rest)) else { return Ok(true) };
            let field = StemmedField::of_letter(letter).filter(|field| field.has_compounds());
            let Some(field) = field else { return Ok(true) };
            let info = values.term_info()?;
            if count_documents(segment, &[(stems, info.clone())])? > 0 {
                let found = rests.entry(rest.to_owned()).or_default();
                count += usize::from(found.last().is_none_or(|(last, ..)| *last != at));
                found.push((at, field, info));
            }
            Ok(count <= MAX_COMPOUNDS)
        })?;
    }
    Ok(rests)
}

/// Returns whether a stem of a field may be that of a compound, which is listed in both directions.
pub(super) fn may_be_compound(stem: &str, field: StemmedField, language: Language) -> bool {
    language.has_compounds() && field.has_compounds() && stem.chars().nth(2 * MIN_PART - 1).is_some()
}

/// Returns whether a part of a compound is long enough.
pub fn is_long(part: &str) -> bool {
    part.chars().nth(MIN_PART - 1).is_some()
}

/// Returns the form that a word has at the end of the stems of its compounds. A stemmer removes more endings from a
/// long word than from a short one: the stem of `Rechnung` is `rechnung`, and that of `Wasserrechnung` is
/// `wasserrechn`.
pub fn stem_as_last(stemmer: &mut LanguageStemmer, typed: &str) -> Option<String> {
    stemmer.of(&format!("{ANY_PART}{typed}")).strip_prefix(ANY_PART).map(str::to_owned)
}

/// Returns whether the rest of a compound is a word of the vault, with or without a linking element at either end.
fn is_part(snapshot: &Bm25Snapshot, language: Language, rest: &str) -> Result<bool> {
    let mut term = String::new();
    for linking in LINKING_ELEMENTS {
        let behind = rest.strip_prefix(linking).filter(|_| !linking.is_empty());
        for bare in [rest.strip_suffix(linking), behind].into_iter().flatten().filter(|bare| is_long(bare)) {
            write_stem_term(StemmedField::Body, language, bare, &mut term);
            for at in 0..snapshot.searcher.segment_readers().len() {
                if is_known(snapshot, at, snapshot.fields.stems, &term)?
                    || is_known(snapshot, at, snapshot.fields.words, bare)?
                {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Returns whether a live note of a segment contains a term of a field.
fn is_known(snapshot: &Bm25Snapshot, at: usize, field: Field, term: &str) -> Result<bool> {
    let Some(segment) = snapshot.searcher.segment_readers().get(at) else { return Ok(false) };
    let info = snapshot.dictionaries.find(at, segment, field, term)?;
    Ok(info.map_or(Ok(0), |info| count_documents(segment, &[(field, info)]))? > 0)
}

/// What separates the two forms of a word in the cache key of its compounds. No term contains this character.
const COMPOUND_MARK: char = '\u{3}';
