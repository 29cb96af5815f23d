//! The term dictionary of a load: each distinct term has a number, and is found by its bytes.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The number of a term, in the order in which the terms were met.
pub(super) type TermId = u32;

/// The distinct terms of a load.
#[derive(Debug, Default)]
pub(super) struct TermDictionary {
    terms: TermList,
    /// Finds a term by its bytes.
    table: HashTable<TermId>,
    hasher: DefaultHashBuilder,
}

/// Terms in one buffer.
#[derive(Debug, Default)]
struct TermList {
    text: Vec<u8>,
    /// Where each term ends.
    ends: Vec<u32>,
}

impl TermList {
    fn get(&self, id: TermId) -> &[u8] {
        let end = self.ends.get(id as usize).map_or(0, |&end| end as usize);
        let start = (id as usize).checked_sub(1).and_then(|before| self.ends.get(before));
        self.text.get(start.map_or(0, |&start| start as usize)..end).unwrap_or_default()
    }

    fn push(&mut self, term: &[u8]) -> TermId {
        let id = self.ends.len() as TermId;
        self.text.extend_from_slice(term);
        self.ends.push(self.text.len() as u32);
        id
    }
}

impl TermDictionary {
    /// Counts the terms.
    fn len(&self) -> usize {
        self.terms.ends.len()
    }

    /// Counts the bytes of the terms and their offsets.
    pub(super) fn bytes(&self) -> usize {
        self.terms.text.len() + size_of_val(self.terms.ends.as_slice())
    }

    /// Puts the numbers of these terms into `ids`, in order. A new term gets the next number.
    pub(super) fn number<'t>(&mut self, terms: impl Iterator<Item = &'t [u8]>, ids: &mut Vec<TermId>) {
        ids.clear();
        ids.extend(terms.map(|term| self.number_of(term)));
    }

    fn number_of(&mut self, term: &[u8]) -> TermId {
        let Self { terms, table, hasher } = self;
        let hash = hasher.hash_one(term);
        if let Some(&id) = table.find(hash, |&id| terms.get(id) == term) {
            return id;
        }
        let id = terms.push(term);
        table.insert_unique(hash, id, |&id| hasher.hash_one(terms.get(id)));
        id
    }

    /// Sorts all terms by their bytes.
    pub(super) fn in_order(self) -> SortedTerms {
        // The first twelve bytes are compared as one number, above that of the term, and distinguish most terms.
        let opening = |id| {
            let mut opening = [0; 16];
            let term = self.terms.get(id);
            opening.iter_mut().zip(term.iter().take(16 - 4)).for_each(|(byte, &of_term)| *byte = of_term);
            u128::from_be_bytes(opening) | u128::from(id)
        };
        let mut order: Vec<u128> = (0..self.len() as TermId).map(opening).collect();
        order.sort_unstable_by(|one, other| {
            let all = || self.terms.get(*one as TermId).cmp(self.terms.get(*other as TermId));
            (one >> 32).cmp(&(other >> 32)).then_with(all)
        });
        // Each field walks over all terms, so they are copied in this order.
        let mut terms = TermList {
            text: Vec::with_capacity(self.terms.text.len()),
            ends: Vec::with_capacity(self.len()),
        };
        let mut ranks = vec![0; self.len()];
        for key in order {
            let rank = terms.push(self.terms.get(key as TermId));
            if let Some(of_term) = ranks.get_mut(key as TermId as usize) {
                *of_term = rank;
            }
        }
        SortedTerms { terms, ranks }
    }
}

/// All terms in the order of their bytes.
#[derive(Debug)]
pub(super) struct SortedTerms {
    terms: TermList,
    /// The rank of each term in this order, by its number.
    pub(super) ranks: Vec<u32>,
}

impl SortedTerms {
    /// Iterates over the terms in order.
    pub(super) fn terms(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.terms.ends.len() as TermId).map(|rank| self.terms.get(rank))
    }
}
