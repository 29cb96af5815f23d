//! Out-of-vocabulary words: a query word that no note contains is replaced by another spelling, or by the parts of
//! the compound, that notes do contain.
//!
//! This needs no dictionary, because the words of the vault say what a compound can consist of (Koehn & Knight
//! 2003).

use sidenote_base::error::Result;
use sidenote_bm25::compounds::LINKING_ELEMENTS;
use sidenote_bm25::{Bm25Snapshot, Word};
use sidenote_language::terms::CachedStemmer;

use crate::numbered_names;
use crate::query::Query;

/// The minimum length of a word that is split, in characters.
const MIN_WORD: usize = 8;
/// The maximum length of a word that is split, in characters. Longer words are data, and splitting them takes long.
const MAX_WORD: usize = 48;
/// The minimum length of a part, in characters. Shorter parts match by chance.
const MIN_PART: usize = 4;
/// The two-letter spellings of umlauts and ligatures, and the letter that folding makes of each.
const DIGRAPHS: [(&str, &str); 3] = [("ae", "a"), ("oe", "o"), ("ue", "u")];

/// Replaces words that no note contains by the nearest words of the vault, and adds the other forms of names with a number.
/// Returns `None` if nothing changes. The parts of a compound share the weight of the word.
///
/// # Errors
/// `Corrupt` if the full-text index cannot be read.
pub fn replace_unknown(query: &Query, bm25: &Bm25Snapshot) -> Result<Option<Vec<Word>>> {
    bm25.look_up(&query.words)?;
    let languages = bm25.languages()?;
    let first = replaced(query, bm25, query.words.len())?;
    let words = first.as_ref().map_or(query.words.len(), Vec::len);
    // With the parts of a word, there may be too many words for compounds to count.
    if languages.counts_compounds(words) == languages.counts_compounds(query.words.len()) {
        return Ok(first);
    }
    replaced(query, bm25, words)
}

/// Replaces words of a query. `words` is the number of words that the query has then.
fn replaced(query: &Query, bm25: &Bm25Snapshot, words: usize) -> Result<Option<Vec<Word>>> {
    let stem = CachedStemmer::with_small_cache();
    let mut replacer = Replacer { bm25, words, stem };
    let mut replaced = Vec::new();
    let mut others = Vec::new();
    for word in &query.joined {
        others.extend((!bm25.is_out_of_vocabulary(word)?).then(|| word.clone()));
    }
    let mut is_changed = false;
    for word in &query.words {
        others.extend(numbered_names::split(word, bm25)?.into_iter().flatten());
        let parts = replacer.replacements(word)?;
        is_changed |= !parts.is_empty();
        let weight = word.weight / parts.len().max(1) as f32;
        if parts.is_empty() {
            replaced.push(word.clone());
        }
        replaced.extend(parts.into_iter().map(|part| Word { weight, ..part }));
    }
    for other in others {
        if replaced.iter().all(|word| word.exact != other.exact) {
            replaced.push(other);
            is_changed = true;
        }
    }
    Ok(is_changed.then_some(replaced))
}

struct Replacer<'a> {
    bm25: &'a Bm25Snapshot,
    /// How many words the query has, with those that replace others.
    words: usize,
    stem: CachedStemmer,
}

impl Replacer<'_> {
    /// Returns the words that replace a word; none if a note contains it, or if no replacement is found.
    fn replacements(&mut self, word: &Word) -> Result<Vec<Word>> {
        let is_plain = word.single && !word.prefix && word.exact.chars().all(char::is_alphabetic);
        let is_known = !is_plain
            || !self.bm25.is_out_of_vocabulary(word)?
            || self.bm25.is_part_of_compound(word, self.words)?;
        if is_known {
            return Ok(Vec::new());
        }
        if let Some(spelling) = self.other_spelling(word)? {
            return Ok(vec![spelling]);
        }
        let length = word.exact.chars().count();
        if !(MIN_WORD..=MAX_WORD).contains(&length) {
            return Ok(Vec::new());
        }
        let found = match self.split(&word.exact, 2)? {
            Some(found) => Some(found),
            None => self.split(&word.exact, 3)?,
        };
        Ok(found.map_or_else(Vec::new, |(_, parts)| parts))
    }

    fn other_spelling(&mut self, word: &Word) -> Result<Option<Word>> {
        let folded =
            DIGRAPHS.iter().fold(word.exact.clone(), |text, (digraph, letter)| text.replace(digraph, letter));
        if folded == word.exact { Ok(None) } else { Ok(self.known_word(&folded)?.map(|(_, word)| word)) }
    }

    /// Splits a word into at most `most` parts that the vault contains. Returns the parts that occur in the most
    /// notes, with the sum of the logarithms of their document frequencies.
    fn split(&mut self, text: &str, most: usize) -> Result<Option<(f32, Vec<Word>)>> {
        let mut best: Option<(f32, Vec<Word>)> = None;
        for (at, _) in text.char_indices().skip(MIN_PART) {
            let (head, tail) = text.split_at(at);
            if tail.chars().count() < MIN_PART {
                break;
            }
            let Some((head_score, head)) = self.first_part(head)? else { continue };
            let behind = match self.known_word(tail)? {
                Some((score, word)) => Some((score, vec![word])),
                None if most > 2 => self.split(tail, most - 1)?,
                None => None,
            };
            if let Some((tail_score, tail)) = behind {
                let score = head_score + tail_score;
                if best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, std::iter::once(head).chain(tail).collect()));
                }
            }
        }
        Ok(best)
    }

    /// Looks up the first part of a compound, with or without a linking element at its end.
    fn first_part(&mut self, text: &str) -> Result<Option<(f32, Word)>> {
        for linking in LINKING_ELEMENTS {
            let bare = text.strip_suffix(linking).filter(|bare| bare.chars().count() >= MIN_PART);
            if let Some(found) = bare.map(|bare| self.known_word(bare)).transpose()?.flatten() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn known_word(&mut self, text: &str) -> Result<Option<(f32, Word)>> {
        let word = Word {
            exact: text.to_owned(),
            typed: None,
            stem: self.stem.of(text).to_owned(),
            weight: 1.0,
            prefix: false,
            single: false,
            compounds: None,
        };
        // By stems of several languages, too many parts would be known by chance. A known part ranks in any inflection.
        let count = self.bm25.document_frequency(&word)?;
        Ok((count > 0).then(|| ((count as f32).ln(), Word { typed: Some(text.to_owned()), ..word })))
    }
}
