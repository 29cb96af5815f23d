//! The term dictionary of a bulk load: it assigns an id to each distinct term.

use crate::index::interner::{ByteStrings, Interner};

/// The id of a term: its number in the order of first occurrence.
pub(super) type TermId = u32;

/// The distinct terms of a bulk load.
#[derive(Debug, Default)]
pub(super) struct TermDictionary(Interner);

impl TermDictionary {
    /// Counts the terms.
    fn len(&self) -> usize {
        self.0.strings().len()
    }

    /// Returns the bytes that the terms and their offsets take.
    pub(super) fn bytes(&self) -> usize {
        self.0.strings().size()
    }

    /// Replaces `ids` with the ids of these terms, in order. A new term gets the next id.
    pub(super) fn collect_ids<'t>(&mut self, terms: impl Iterator<Item = &'t [u8]>, ids: &mut Vec<TermId>) {
        ids.clear();
        ids.extend(terms.map(|term| self.0.number_of(term)));
    }

    /// Sorts the terms by their bytes.
    pub(super) fn into_sorted(self) -> SortedTerms {
        let unsorted = self.0.strings();
        // The sort key has the first twelve bytes of the term above its id. Comparing it as one number distinguishes
        // most terms.
        let sort_key = |id| {
            let mut key = [0; 16];
            let term = unsorted.get(id);
            key.iter_mut().zip(term.iter().take(16 - 4)).for_each(|(key, &byte)| *key = byte);
            u128::from_be_bytes(key) | u128::from(id)
        };
        let mut order: Vec<u128> = (0..self.len() as TermId).map(sort_key).collect();
        order.sort_unstable_by(|one, other| {
            let all = || unsorted.get(*one as TermId).cmp(unsorted.get(*other as TermId));
            (one >> 32).cmp(&(other >> 32)).then_with(all)
        });
        // Every field iterates over all terms, so they are copied in sorted order.
        let mut terms = ByteStrings::with_capacity_of(unsorted);
        let mut ranks = vec![0; self.len()];
        for key in order {
            let rank = terms.push(unsorted.get(key as TermId));
            if let Some(slot) = ranks.get_mut(key as TermId as usize) {
                *slot = rank;
            }
        }
        SortedTerms { terms, ranks }
    }
}

/// The terms, sorted by their bytes.
#[derive(Debug)]
pub(super) struct SortedTerms {
    terms: ByteStrings,
    /// The rank of each term in this order, by id.
    pub(super) ranks: Vec<u32>,
}

impl SortedTerms {
    /// Iterates over the terms in order.
    pub(super) fn terms(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.terms.len() as TermId).map(|rank| self.terms.get(rank))
    }
}
