//! Finds the notes that a query quotes: most of its words stand in one place of the note, in the order of the query
//! (docs/dev/queries.md, Quotations).

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use sidenote_base::parallel;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_language::terms::{Initials, TermKind, Terms};

use crate::SearchHit;
use crate::query::Query;
use crate::reader::SearchReader;
use crate::updated_fact::newer_before_older;
use crate::validity_order::level;

/// The number of the best hits that are read. Whoever pastes a sentence has most of its words right, so that its note is near
/// the top.
pub const BEST: usize = 10;
/// The least number of different pairs of adjacent words. Shorter queries are names and questions, whose words stand together
/// in many notes.
const MIN_PAIRS: usize = 6;
/// The most pairs, which are one bit each. The beginning of a longer text tells where it stands.
const MAX_PAIRS: usize = 128;
/// The least share of the pairs that a quoted place has. Hyphens, line breaks and marks of footnotes part some words.
const MIN_SHARE: f32 = 0.6;
/// The score of a note that has all pairs. It is that of a note that the query names.
const WHOLE_SCORE: f32 = 1.5;

/// The pairs of adjacent words of a query.
pub(crate) struct WordPairs {
    /// A number for each word.
    words: HashMap<String, u32>,
    /// A bit for each pair.
    pairs: HashMap<(u32, u32), u128>,
    initials: Initials,
}

/// A place of a note that a query quotes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quotation {
    /// The index of the passage, which has the greatest part of the quoted words.
    pub(crate) passage: usize,
    /// The share of the pairs of the query that stand there.
    pub(crate) share: f32,
}

impl WordPairs {
    /// Returns the pairs of a text; `None` if it has too few to be told from a question.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (mut words, mut pairs) = (HashMap::new(), HashMap::new());
        let mut walk = Terms::new(text);
        let mut before = None;
        while walk.advance() && pairs.len() < MAX_PAIRS {
            let term = walk.term();
            if !is_in_sequence(term.kind) {
                continue;
            }
            let next = u32::try_from(words.len()).unwrap_or(u32::MAX);
            let word = *words.entry(term.text.clone()).or_insert(next);
            if let Some(before) = before.replace(word) {
                let bit = 1 << pairs.len();
                pairs.entry((before, word)).or_insert(bit);
            }
        }
        let initials = Initials::of(words.keys().map(String::as_str));
        (pairs.len() >= MIN_PAIRS).then_some(Self { words, pairs, initials })
    }

    /// Returns the place of a note that has the most pairs, if the query quotes it. A quoted sentence may go on in the next
    /// passage.
    pub(crate) fn quoted_in(&self, reading: &ParsedNote) -> Option<Quotation> {
        self.quoted_among(reading.passages().iter().map(|passage| passage.text.as_str()))
    }

    fn quoted_among<'t>(&self, passages: impl Iterator<Item = &'t str>) -> Option<Quotation> {
        let mut best: Option<Quotation> = None;
        let mut last_bits = 0u128;
        for (at, text) in passages.enumerate() {
            let bits = self.bits(text);
            let share = (bits | last_bits).count_ones() as f32 / self.pairs.len() as f32;
            if share >= MIN_SHARE && best.is_none_or(|best| share > best.share) {
                let is_here = bits.count_ones() >= last_bits.count_ones();
                best = Some(Quotation { passage: if is_here { at } else { at - 1 }, share });
            }
            last_bits = bits;
        }
        best
    }

    /// Returns the pairs of a passage.
    fn bits(&self, text: &str) -> u128 {
        let (mut bits, mut before) = (0, None);
        let mut walk = Terms::new(text);
        while walk.advance_to(&self.initials) {
            let term = walk.term();
            let word = self.words.get(&term.text).filter(|_| is_in_sequence(term.kind));
            let Some(&word) = word else { continue };
            if let Some((place, before)) = before
                && place + 1 == term.position
            {
                bits |= self.pairs.get(&(before, word)).copied().unwrap_or(0);
            }
            before = Some((term.position, word));
        }
        bits
    }
}

/// Returns whether a term is one of the sequence: a whole identifier stands beside its parts, and the last character beside the
/// last pair of characters.
fn is_in_sequence(kind: TermKind) -> bool {
    !matches!(kind, TermKind::Whole | TermKind::LastCharacter)
}

/// Returns whether a query is long enough to quote a note. A condition says itself what a note must have, and the words of a
/// prompt were taken out of their order.
pub fn may_quote(query: &Query) -> bool {
    pairs_of(query).is_some()
}

fn pairs_of(query: &Query) -> Option<WordPairs> {
    let is_text = query.condition.is_none() && query.prompt.is_none();
    is_text.then(|| WordPairs::of(&query.text)).flatten()
}

/// Raises the notes that the query quotes among the first hits, by the share of its words that they have in order.
pub(super) fn put_quoted_first(query: &Query, reader: &dyn SearchReader, hits: &mut [SearchHit]) {
    let Some(pairs) = pairs_of(query) else { return };
    let best = hits.get_mut(..BEST.min(hits.len())).unwrap_or_default();
    let quoted = parallel::map_largest_first(
        best,
        |hit| hit.row.size,
        || (),
        |(), hit| pairs.quoted_in(&*reader.searched_file(&hit.row)?),
    );
    for (hit, quoted) in best.iter_mut().zip(quoted) {
        let Some(quoted) = quoted else { continue };
        hit.quoted = Some(quoted.passage);
        hit.components.from_quotation = Some(WHOLE_SCORE * quoted.share);
        hit.score = hit.components.total();
    }
    if best.iter().all(|hit| hit.quoted.is_none()) {
        return;
    }
    best.sort_by(|one, other| other.score.total_cmp(&one.score));
    // A question may have the words of an outdated fact.
    newer_before_older(best, |hit| Some(hit.row.id), |hit| hit.updated_by);
    level(best, |hit| (&mut hit.score, &mut hit.components));
}
