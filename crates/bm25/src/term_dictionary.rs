//! The term dictionary of a bulk load: it assigns an id to each distinct term. The hashes of terms are computed once,
//! where notes are analyzed.

use std::hash::BuildHasher as _;
use std::sync::LazyLock;

use hashbrown::{DefaultHashBuilder, HashTable};
use sidenote_language::short_word::{MAX_SHORT, packed};
use sidenote_sets::interner::ByteStrings;

/// The id of a term: its number in the order of first occurrence.
pub(super) type TermId = u32;

/// The seed of all hashes of terms in this process. It is random, so that no text can be made of terms that collide.
static SEED: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Computes the hashes of terms, which are the same on all threads.
#[derive(Debug)]
pub(super) struct TermHasher(DefaultHashBuilder);

impl Default for TermHasher {
    fn default() -> Self {
        Self(SEED.clone())
    }
}

impl TermHasher {
    /// Returns the hash of a term.
    pub(super) fn of(&self, term: &[u8]) -> u32 {
        if term.len() <= MAX_SHORT { self.of_packed(packed(term)) } else { upper(self.0.hash_one(term)) }
    }

    /// Returns the hash of a term of at most [`MAX_SHORT`] bytes by its [packed] bytes.
    #[inline]
    pub(super) fn of_packed(&self, term: u128) -> u32 {
        upper(self.0.hash_one(term))
    }
}

fn upper(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Returns the hash of a term for a hash table, which takes the position from the lowest bits and a tag from the highest.
#[inline]
pub(super) fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// The distinct terms of a bulk load.
#[derive(Debug, Default)]
pub(super) struct TermDictionary {
    terms: ByteStrings,
    /// The ids with the hashes, by term.
    table: HashTable<(u32, TermId)>,
}

impl TermDictionary {
    /// Counts the terms.
    fn len(&self) -> usize {
        self.terms.count()
    }

    /// Returns the bytes that the terms and their offsets take.
    pub(super) fn bytes(&self) -> usize {
        self.terms.size()
    }

    /// Replaces `ids` with the ids of these terms, in order. Each comes with its hash. A new term gets the next id.
    pub(super) fn collect_ids<'t>(
        &mut self,
        terms: impl Iterator<Item = (&'t [u8], u32)>,
        ids: &mut Vec<TermId>,
    ) {
        ids.clear();
        ids.extend(terms.map(|(term, hash)| self.id_of(term, hash)));
    }

    fn id_of(&mut self, term: &[u8], hash: u32) -> TermId {
        let Self { terms, table } = self;
        let is_same = |&(known, id): &(u32, TermId)| known == hash && terms.get(id) == term;
        if let Some(&(_, id)) = table.find(spread(hash), is_same) {
            return id;
        }
        let id = terms.push(term);
        table.insert_unique(spread(hash), (hash, id), |&(hash, _)| spread(hash));
        id
    }

    /// Sorts the terms by their bytes.
    pub(super) fn into_sorted(self) -> SortedTerms {
        let unsorted = &self.terms;
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
        (0..self.terms.count() as TermId).map(|rank| self.terms.get(rank))
    }
}
