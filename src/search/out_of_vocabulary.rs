//! Owns what becomes of a query's words that no note holds: another spelling, or parts, that some note does hold.
//!
//! Needs no dictionary: the vault's own words tell what a compound may consist of (Koehn & Knight 2003).

use crate::error::Result;
use crate::index::bm25::{Bm25Snapshot, Word};
use crate::text::terms::CachedStemmer;

/// Shorter words are not cut.
const SHORTEST_WORD: usize = 8;
/// Longer words are data, and cutting them would take long.
const LONGEST_WORD: usize = 48;
/// Shorter parts are met by chance.
const SHORTEST_PART: usize = 4;
/// What German and its neighbours put between the parts of a compound.
const JOINTS: [&str; 7] = ["", "s", "es", "n", "en", "e", "er"];
/// Spellings of umlauts and ligatures without the letter, and what folding makes of the letter.
const DIGRAPHS: [(&str, &str); 3] = [("ae", "a"), ("oe", "o"), ("ue", "u")];

/// Replaces words that no note holds by what comes nearest to them in the vault; `None` where there is nothing to
/// replace. The parts of a compound count as one word together.
///
/// # Errors
/// Whatever the index reports.
pub fn heard(words: &[Word], bm25: &Bm25Snapshot) -> Result<Option<Vec<Word>>> {
    let mut search = Search { bm25, stem: CachedStemmer::brief() };
    let mut heard = Vec::new();
    let mut is_changed = false;
    for word in words {
        let parts = search.instead_of(word)?;
        is_changed |= !parts.is_empty();
        let weight = word.weight / parts.len().max(1) as f32;
        if parts.is_empty() {
            heard.push(word.clone());
        }
        heard.extend(parts.into_iter().map(|part| Word { weight, ..part }));
    }
    Ok(is_changed.then_some(heard))
}

struct Search<'a> {
    bm25: &'a Bm25Snapshot,
    stem: CachedStemmer,
}

impl Search<'_> {
    /// Gives the words to search instead of one; nothing where it is held, or where nothing comes near.
    fn instead_of(&mut self, word: &Word) -> Result<Vec<Word>> {
        let is_plain = word.single && !word.prefix && word.exact.chars().all(char::is_alphabetic);
        if !is_plain || !self.bm25.is_out_of_vocabulary(word)? {
            return Ok(Vec::new());
        }
        if let Some(spelling) = self.other_spelling(word)? {
            return Ok(vec![spelling]);
        }
        let length = word.exact.chars().count();
        if !(SHORTEST_WORD..=LONGEST_WORD).contains(&length) {
            return Ok(Vec::new());
        }
        let found = match self.cut(&word.exact, 2)? {
            Some(found) => Some(found),
            None => self.cut(&word.exact, 3)?,
        };
        Ok(found.map_or_else(Vec::new, |(_, parts)| parts))
    }

    fn other_spelling(&mut self, word: &Word) -> Result<Option<Word>> {
        let folded =
            DIGRAPHS.iter().fold(word.exact.clone(), |text, (digraph, letter)| text.replace(digraph, letter));
        if folded == word.exact { Ok(None) } else { Ok(self.held(&folded)?.map(|(_, word)| word)) }
    }

    /// Cuts a word into so many parts that the vault holds, or fewer; gives the parts that occur most, with the sum of
    /// the logarithms of how many notes hold them.
    fn cut(&mut self, text: &str, most: usize) -> Result<Option<(f32, Vec<Word>)>> {
        let mut best: Option<(f32, Vec<Word>)> = None;
        for (at, _) in text.char_indices().skip(SHORTEST_PART) {
            let (head, tail) = text.split_at(at);
            if tail.chars().count() < SHORTEST_PART {
                break;
            }
            let Some((head_score, head)) = self.head(head)? else { continue };
            let behind = match self.held(tail)? {
                Some((score, word)) => Some((score, vec![word])),
                None if most > 2 => self.cut(tail, most - 1)?,
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

    /// Looks for the first part of a compound, with or without the joint at its end.
    fn head(&mut self, text: &str) -> Result<Option<(f32, Word)>> {
        for joint in JOINTS {
            let bare = text.strip_suffix(joint).filter(|bare| bare.chars().count() >= SHORTEST_PART);
            if let Some(found) = bare.map(|bare| self.held(bare)).transpose()?.flatten() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn held(&mut self, text: &str) -> Result<Option<(f32, Word)>> {
        let word = Word {
            exact: text.to_owned(),
            stem: self.stem.of(text).to_owned(),
            weight: 1.0,
            prefix: false,
            single: false,
        };
        let count = self.bm25.document_frequency(&word)?;
        Ok((count > 0).then(|| ((count as f32).ln(), word)))
    }
}
