//! Owns the numbering of terms: each term that was met has a number, and is found by its bytes.
//!
//! The terms of a note are looked for together. Each step is done for all of them before the next one begins, so that
//! the memory where they stand is fetched for many at a time.

use std::hash::BuildHasher as _;

use hashbrown::DefaultHashBuilder;

/// The number of a term.
pub(super) type TermId = u32;

/// Places of the table at first; a power of two.
const PLACES: usize = 1 << 16;
/// The bytes before those of a term: its number and its length.
const HEAD: usize = 6;

/// A place in the table: a part of a term's hash, and where the term is written, counted from 1; 0 where it is free.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u32,
    at: u32,
}

/// A term that is looked for, and what stands at its place in the table.
#[derive(Debug, Clone, Copy)]
struct Sought {
    hash: u64,
    slot: Slot,
    head: (TermId, usize),
}

/// All terms that were met.
#[derive(Debug)]
pub(super) struct Words {
    /// Each term with its head before it.
    text: Vec<u8>,
    /// Where each term is written.
    starts: Vec<u32>,
    slots: Vec<Slot>,
    hasher: DefaultHashBuilder,
    sought: Vec<Sought>,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            starts: Vec::new(),
            slots: vec![Slot::default(); PLACES],
            hasher: DefaultHashBuilder::default(),
            sought: Vec::new(),
        }
    }
}

impl Words {
    /// Counts the terms.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Counts the bytes that the terms take up, with their heads.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Gives a term.
    fn get(&self, id: TermId) -> &[u8] {
        self.starts
            .get(id as usize)
            .map_or(&[], |&start| self.written(start as usize, self.head(start as usize).1))
    }

    /// Reads number and length of the term that is written at `start`.
    fn head(&self, start: usize) -> (TermId, usize) {
        match self.text.get(start..start + HEAD) {
            Some(&[a, b, c, d, low, high]) => {
                (u32::from_le_bytes([a, b, c, d]), usize::from(u16::from_le_bytes([low, high])))
            }
            _ => (0, 0),
        }
    }

    fn written(&self, start: usize, length: usize) -> &[u8] {
        self.text.get(start + HEAD..start + HEAD + length).unwrap_or_default()
    }

    /// Puts the numbers of these terms in `ids`, in order; a new one gets a number. None is longer than tantivy takes
    /// terms, which two bytes can count.
    pub(super) fn number<'t>(
        &mut self,
        terms: impl Iterator<Item = &'t [u8]> + Clone,
        ids: &mut Vec<TermId>,
    ) {
        let mut sought = std::mem::take(&mut self.sought);
        sought.clear();
        let unknown = |term| Sought { hash: self.hasher.hash_one(term), slot: Slot::default(), head: (0, 0) };
        sought.extend(terms.clone().map(unknown));
        while (self.len() + sought.len()) * 2 > self.slots.len() {
            self.grow();
        }
        for one in &mut sought {
            one.slot = self.slots[self.place(one.hash)];
        }
        for one in sought.iter_mut().filter(|one| one.slot.at > 0) {
            one.head = self.head(one.slot.at as usize - 1);
        }
        ids.clear();
        for (term, one) in terms.zip(&sought) {
            ids.push(match self.is_written(term, one.hash, one.slot, one.head) {
                true => one.head.0,
                false => self.find_or_add(term, one.hash),
            });
        }
        self.sought = sought;
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Says whether this is the term that a place of the table stands for.
    fn is_written(&self, term: &[u8], hash: u64, slot: Slot, head: (TermId, usize)) -> bool {
        slot.at > 0
            && slot.hash == part_of(hash)
            && head.1 == term.len()
            && self.written(slot.at as usize - 1, head.1) == term
    }

    fn find_or_add(&mut self, term: &[u8], hash: u64) -> TermId {
        let mut place = self.place(hash);
        loop {
            let slot = self.slots[place];
            if slot.at == 0 {
                break;
            }
            let head = self.head(slot.at as usize - 1);
            if self.is_written(term, hash, slot, head) {
                return head.0;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
        let (id, start) = (self.len() as TermId, self.text.len());
        self.text.extend_from_slice(&id.to_le_bytes());
        self.text.extend_from_slice(&(term.len() as u16).to_le_bytes());
        self.text.extend_from_slice(term);
        self.starts.push(start as u32);
        self.slots[place] = Slot { hash: part_of(hash), at: start as u32 + 1 };
        id
    }

    /// Doubles the table: half of it is always free, so that a term is found near its place.
    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let mut slots = vec![Slot::default(); size];
        for (id, &start) in self.starts.iter().enumerate() {
            let hash = self.hasher.hash_one(self.get(id as TermId));
            let mut place = hash as usize & (size - 1);
            while slots[place].at > 0 {
                place = (place + 1) & (size - 1);
            }
            slots[place] = Slot { hash: part_of(hash), at: start + 1 };
        }
        self.slots = slots;
    }

    /// Brings all terms into the order of their bytes.
    pub(super) fn in_order(self) -> Ordered {
        // The first twelve bytes are compared as one number, above that of the term, and tell most terms apart.
        let opening = |id| {
            let mut opening = [0; 16];
            let term = self.get(id);
            opening.iter_mut().zip(term.iter().take(16 - 4)).for_each(|(byte, &of_term)| *byte = of_term);
            u128::from_be_bytes(opening) | u128::from(id)
        };
        let mut order: Vec<u128> = (0..self.len() as TermId).map(opening).collect();
        order.sort_unstable_by(|one, other| {
            let all = || self.get(*one as TermId).cmp(self.get(*other as TermId));
            (one >> 32).cmp(&(other >> 32)).then_with(all)
        });
        // Each field walks over all of them, so they are copied to stand in a row.
        let mut ordered = Ordered {
            text: Vec::with_capacity(self.bytes() - self.len() * HEAD),
            ends: Vec::with_capacity(self.len()),
            ranks: vec![0; self.len()],
        };
        for (rank, key) in (0..).zip(order) {
            ordered.text.extend_from_slice(self.get(key as TermId));
            ordered.ends.push(ordered.text.len() as u32);
            if let Some(of_term) = ordered.ranks.get_mut(key as TermId as usize) {
                *of_term = rank;
            }
        }
        ordered
    }
}

/// All terms in the order of their bytes.
#[derive(Debug)]
pub(super) struct Ordered {
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
    /// The place of each term, by its number.
    pub(super) ranks: Vec<u32>,
}

impl Ordered {
    /// Gives them in turn.
    pub(super) fn terms(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let from = std::mem::replace(&mut start, end as usize);
            self.text.get(from..start).unwrap_or_default()
        })
    }
}

/// The part of a hash that does not say where in the table its term stands.
fn part_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}
