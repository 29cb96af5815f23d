//! Subpaths: the heading, block or footnote that a subpath names in a note.
//!
//! [`SubpathTable`] indexes the parts of a note once, so that resolving many links takes linear time.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use crate::note::{Note, heading_key};

/// The part of a note that a subpath names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubpathTarget {
    /// The heading with this index.
    Heading(usize),
    /// The block with this index.
    Block(usize),
    /// The footnote with this index.
    Footnote(usize),
}

/// The number of heading levels, which limits the segments of a subpath.
const LEVELS: usize = 6;

/// A chain of nested headings, outermost first, as numbers of keys.
type Chain = Vec<u32>;

/// The parts of one note, by name.
#[derive(Debug)]
pub struct SubpathTable<'n> {
    note: &'n Note,
    blocks: OnceCell<HashMap<String, usize>>,
    footnotes: OnceCell<HashMap<String, usize>>,
    headings: OnceCell<HeadingTable>,
    /// For each length from 1 on, the first heading of each chain, by chain.
    chains: [OnceCell<HashMap<Chain, usize>>; LEVELS],
    work: Cell<usize>,
}

#[derive(Debug)]
struct HeadingTable {
    /// The number of each key of a heading.
    numbers: HashMap<String, u32>,
    /// The number of each heading's key, and the index of its parent.
    list: Vec<(u32, Option<usize>)>,
}

impl<'n> SubpathTable<'n> {
    /// Creates an index of a note. Its tables are built on first use.
    pub fn new(note: &'n Note) -> Self {
        Self {
            note,
            blocks: OnceCell::new(),
            footnotes: OnceCell::new(),
            headings: OnceCell::new(),
            chains: Default::default(),
            work: Cell::new(0),
        }
    }

    /// Returns the number of steps so far. Tests check that it grows linearly.
    pub fn work(&self) -> usize {
        self.work.get()
    }

    fn count(&self, steps: usize) {
        self.work.set(self.work.get() + steps);
    }

    /// Resolves a subpath: a block (`#^id`), a footnote (`#[^id]`) or a heading, each segment below the one
    /// before (docs/spec/obsidian.md 3.6, 3.7). The first part with a name counts.
    pub fn find(&self, subpath: &str) -> Option<SubpathTarget> {
        self.count(1);
        let parts: Vec<&str> = subpath.split('#').map(str::trim).filter(|part| !part.is_empty()).collect();
        let last = parts.last()?;
        if let Some(id) = last.strip_prefix('^') {
            return self.blocks().get(&id.to_ascii_lowercase()).copied().map(SubpathTarget::Block);
        }
        if let Some(id) = last.strip_prefix("[^").and_then(|rest| rest.strip_suffix(']')) {
            return self.footnotes().get(&id.to_lowercase()).copied().map(SubpathTarget::Footnote);
        }
        let keys: Vec<String> = parts.iter().map(|part| heading_key(part)).collect();
        // The level increases with each segment and there are six levels, so a longer chain cannot match.
        if keys.len() > LEVELS || keys.iter().any(String::is_empty) {
            return None;
        }
        let numbers = &self.headings().numbers;
        let chain = keys.iter().map(|key| numbers.get(key).copied()).collect::<Option<Chain>>()?;
        self.chains(chain.len()).get(&chain).copied().map(SubpathTarget::Heading)
    }

    fn blocks(&self) -> &HashMap<String, usize> {
        let ids = self.note.blocks.iter().map(|block| block.id.to_ascii_lowercase());
        self.blocks.get_or_init(|| self.first_of(ids))
    }

    fn footnotes(&self) -> &HashMap<String, usize> {
        let ids = self.note.footnotes.iter().map(|note| note.id.to_lowercase());
        self.footnotes.get_or_init(|| self.first_of(ids))
    }

    fn first_of(&self, ids: impl Iterator<Item = String>) -> HashMap<String, usize> {
        let mut first = HashMap::new();
        for (at, id) in ids.enumerate() {
            self.count(1);
            first.entry(id).or_insert(at);
        }
        first
    }

    fn headings(&self) -> &HeadingTable {
        self.headings.get_or_init(|| {
            let mut headings =
                HeadingTable { numbers: HashMap::new(), list: Vec::with_capacity(self.note.headings.len()) };
            let mut around: Vec<(u8, usize)> = Vec::new();
            for (at, heading) in self.note.headings.iter().enumerate() {
                self.count(1);
                around.retain(|&(level, _)| level < heading.level);
                let next = u32::try_from(headings.numbers.len()).unwrap_or(u32::MAX);
                let number = *headings.numbers.entry(heading_key(&heading.text)).or_insert(next);
                headings.list.push((number, around.last().map(|&(_, outer)| outer)));
                around.push((heading.level, at));
            }
            headings
        })
    }

    /// Returns the first heading of every chain of `length` headings.
    fn chains(&self, length: usize) -> &HashMap<Chain, usize> {
        static NONE: std::sync::OnceLock<HashMap<Chain, usize>> = std::sync::OnceLock::new();
        let Some(chains) = length.checked_sub(1).and_then(|at| self.chains.get(at)) else {
            return NONE.get_or_init(HashMap::new);
        };
        chains.get_or_init(|| {
            let list = &self.headings().list;
            let mut first = HashMap::new();
            for (at, &(number, mut outer)) in list.iter().enumerate() {
                // The parents of this heading, the outermost first, and every subset of them.
                let mut around = Vec::with_capacity(LEVELS);
                while let Some(&(number, next)) = outer.and_then(|outer| list.get(outer)) {
                    around.insert(0, number);
                    outer = next;
                }
                for choice in 0_u32..1 << around.len() {
                    self.count(1);
                    if choice.count_ones() as usize + 1 == length {
                        let chosen = around.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
                        let chain = chosen.map(|(_, &number)| number).chain([number]).collect();
                        first.entry(chain).or_insert(at);
                    }
                }
            }
            first
        })
    }
}

impl Note {
    /// Resolves a subpath: a block (`#^id`), a footnote (`#[^id]`) or a heading, each segment below the one
    /// before (docs/spec/obsidian.md 3.6, 3.7). Use [`SubpathTable`] for many links.
    pub fn subpath(&self, subpath: &str) -> Option<SubpathTarget> {
        SubpathTable::new(self).find(subpath)
    }
}
