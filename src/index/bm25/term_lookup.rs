//! Owns how a term of the note at hand is found again. Every word of every note is looked up here, so nothing is hashed or
//! compared byte by byte but terms that are long, and forgetting a note costs nothing.

use std::hash::BuildHasher as _;

use hashbrown::DefaultHashBuilder;

/// A term of so many bytes at most is told from others by its first eight bytes, its last, and its length.
const SHORT: usize = 16;
/// Slots at first; a power of two.
const SLOTS: usize = 1 << 9;
/// More slots than this, which a very large note needed, are given back.
const MANY_SLOTS: usize = 1 << 16;

/// Finds the place of a term among those that were met.
#[derive(Debug)]
pub(super) struct Places {
    slots: Vec<Slot>,
    /// The number of terms that were met.
    met: usize,
    /// The mark of slots in use: a slot with another mark is free.
    mark: u32,
    hasher: DefaultHashBuilder,
    /// What keys are mixed with, so that nobody can write a text whose words all meet in one slot.
    seeds: Key,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: Key,
    place: u32,
    mark: u32,
}

/// What a term is looked for by: a short one's first and last bytes, or the hash of a long one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
}

impl Default for Places {
    fn default() -> Self {
        let hasher = DefaultHashBuilder::default();
        let seeds = Key { first: hasher.hash_one(1), last: hasher.hash_one(2) };
        Self { slots: vec![Slot::default(); SLOTS], met: 0, mark: 1, hasher, seeds }
    }
}

impl Places {
    /// Forgets every term.
    pub(super) fn clear(&mut self) {
        self.met = 0;
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 || self.slots.len() > MANY_SLOTS {
            self.slots = vec![Slot::default(); SLOTS];
            self.mark = 1;
        }
    }

    /// Gives the place of a term: the number of terms that were met before it. `written` gives the term at a place.
    pub(super) fn of<'t>(&mut self, term: &[u8], written: impl Fn(u32) -> &'t [u8]) -> u32 {
        let key = Key::of(term, &self.hasher);
        let is_term = |slot: &Slot| {
            slot.key == key && {
                let known = written(slot.place);
                known.len() == term.len() && (term.len() <= SHORT || known == term)
            }
        };
        let mut at = self.slot_of(&key);
        while let Some(slot) = self.slots.get(at).filter(|slot| slot.mark == self.mark) {
            if is_term(slot) {
                return slot.place;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        let place = self.met as u32;
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { key, place, mark: self.mark };
        }
        self.met += 1;
        if self.met * 2 > self.slots.len() {
            self.grow();
        }
        place
    }

    fn slot_of(&self, key: &Key) -> usize {
        let product = u128::from(key.first ^ self.seeds.first) * u128::from(key.last ^ self.seeds.last);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.slots.len() - 1)
    }

    /// Doubles the slots: half of them are always free, so that a term is found near its slot.
    fn grow(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 2];
        let before = std::mem::replace(&mut self.slots, larger);
        for slot in before.into_iter().filter(|slot| slot.mark == self.mark) {
            let mut at = self.slot_of(&slot.key);
            while self.slots[at].mark == self.mark {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = slot;
        }
    }
}

impl Key {
    fn of(term: &[u8], hasher: &DefaultHashBuilder) -> Self {
        if let (8..=SHORT, Some(&first), Some(&last)) = (term.len(), term.first_chunk(), term.last_chunk()) {
            return Self { first: u64::from_le_bytes(first), last: u64::from_le_bytes(last) };
        }
        if let (..8, Some(&first), Some(&last)) = (term.len(), term.first_chunk(), term.last_chunk()) {
            return Self { first: u32::from_le_bytes(first).into(), last: u32::from_le_bytes(last).into() };
        }
        match *term {
            [one] => Self { first: one.into(), last: 0 },
            [one, two] => Self { first: one.into(), last: two.into() },
            [one, two, three] => Self { first: u16::from_le_bytes([one, two]).into(), last: three.into() },
            _ => Self { first: hasher.hash_one(term), last: 0 },
        }
    }
}
