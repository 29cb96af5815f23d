//! The term dictionary of a bulk load: it assigns an id to each distinct term.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The id of a term: its number in the order of first occurrence.
pub(super) type TermId = u32;

/// The distinct terms of a bulk load.
#[derive(Debug, Default)]
pub(super) struct TermDictionary {
    terms: TermList,
    /// The ids, by term.
    table: HashTable<TermId>,
    hasher: DefaultHashBuilder,
}

/// Terms, concatenated in one buffer.
#[derive(Debug, Default)]
struct TermList {
    text: Vec<u8>,
    /// The end of each term in `text`.
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

    /// Returns the bytes that the terms and their offsets take.
    pub(super) fn bytes(&self) -> usize {
        self.terms.text.len() + size_of_val(self.terms.ends.as_slice())
    }

    /// Replaces `ids` with the ids of these terms, in order. A new term gets the next id.
    pub(super) fn collect_ids<'t>(&mut self, terms: impl Iterator<Item = &'t [u8]>, ids: &mut Vec<TermId>) {
        ids.clear();
        ids.extend(terms.map(|term| self.id_of(term)));
    }

    fn id_of(&mut self, term: &[u8]) -> TermId {
        let Self { terms, table, hasher } = self;
        let hash = hasher.hash_one(term);
        if let Some(&id) = table.find(hash, |&id| terms.get(id) == term) {
            return id;
        }
        let id = terms.push(term);
        table.insert_unique(hash, id, |&id| hasher.hash_one(terms.get(id)));
        id
    }

    /// Sorts the terms by their bytes.
    pub(super) fn into_sorted(self) -> SortedTerms {
        // The sort key has the first twelve bytes of the term above its id. Comparing it as one number distinguishes
        // most terms.
        let sort_key = |id| {
            let mut key = [0; 16];
            let term = self.terms.get(id);
            key.iter_mut().zip(term.iter().take(16 - 4)).for_each(|(key, &byte)| *key = byte);
            u128::from_be_bytes(key) | u128::from(id)
        };
        let mut order: Vec<u128> = (0..self.len() as TermId).map(sort_key).collect();
        order.sort_unstable_by(|one, other| {
            let all = || self.terms.get(*one as TermId).cmp(self.terms.get(*other as TermId));
            (one >> 32).cmp(&(other >> 32)).then_with(all)
        });
        // Every field iterates over all terms, so they are copied in sorted order.
        let mut terms = TermList {
            text: Vec::with_capacity(self.terms.text.len()),
            ends: Vec::with_capacity(self.len()),
        };
        let mut ranks = vec![0; self.len()];
        for key in order {
            let rank = terms.push(self.terms.get(key as TermId));
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
    terms: TermList,
    /// The rank of each term in this order, by id.
    pub(super) ranks: Vec<u32>,
}

impl SortedTerms {
    /// Iterates over the terms in order.
    pub(super) fn terms(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.terms.ends.len() as TermId).map(|rank| self.terms.get(rank))
    }
}
