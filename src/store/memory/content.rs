//! Reads the text of memories whole, with what the toolsets of other memory servers show of them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::Result;
use crate::index::catalog::Filter;
use crate::journal::reader::ReadOrder;
use crate::store::lookup::Lookup;
use crate::store::memory::Memories;
use crate::store::memory_weights::{Memory, MemoryWeights};
use crate::store::source::Source;
use crate::text::path::key;

/// What a memory says, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryContent {
    /// Its text, without frontmatter and white space around it.
    pub text: String,
    /// Its frontmatter.
    pub properties: Map<String, Value>,
}

impl MemoryContent {
    /// Gives a property by its name, in any case.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|(own, _)| key(own) == name).map(|(_, value)| value)
    }
}

impl Memory {
    /// Gives the importance that its frontmatter says, whatever became of it since.
    pub fn given_importance(&self) -> Option<f64> {
        self.said.importance
    }

    /// Lists the days on which it was used, oldest first, as `2026-11-21`.
    pub fn use_days(&self) -> Vec<String> {
        let day = |at: crate::clock::Timestamp| at.rfc3339().chars().take(10).collect();
        let days: BTreeSet<String> = self.usage.uses().map(day).collect();
        days.into_iter().collect()
    }
}

impl Memories<'_> {
    /// Reads a memory whole.
    ///
    /// # Errors
    /// `NotFound` if the note no longer exists; `Io` if it cannot be read.
    pub fn content(&self, memory: &Memory) -> Result<MemoryContent> {
        let source = Source::unplaced(memory.row.path.clone(), &Lookup::of(self.core).bytes_of(&memory.row)?);
        let front = source.note.frontmatter.as_ref();
        let properties = front.map(|front| front.values()).unwrap_or_default();
        Ok(MemoryContent { text: source.body().to_owned(), properties })
    }

    /// Writes down that memories were used, all at once; a failure is logged and harms nobody.
    pub fn used_all<'a>(&self, memories: impl Iterator<Item = &'a Memory>, by: &str) {
        MemoryWeights::of(self.core).note_use(memories.map(|memory| &memory.row), by);
    }

    /// Says whether settings, and the file by which another program says so, leave memory on.
    pub fn is_memory_enabled(&self) -> bool {
        self.core.config.memory.enabled && !self.core.vault.is_memory_disabled()
    }

    /// Counts the sessions that the journal tells of.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn sessions(&self) -> Result<usize> {
        let mut found = BTreeSet::new();
        for event in self.core.journal().events(ReadOrder::OldestFirst)? {
            found.extend(event?.more.get("session").and_then(Value::as_str).map(str::to_owned));
        }
        Ok(found.len())
    }

    /// Counts the notes that the full text lacks, or holds although they are gone, with all that it should hold.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn missing(&self) -> Result<(usize, usize)> {
        let filter = Filter { with_canvases: true, ..Filter::default() };
        let wanted = self.core.index.catalog().select_ids(&filter)?.len();
        let held = usize::try_from(self.core.index.snapshot()?.bm25.documents()).unwrap_or(usize::MAX);
        Ok((wanted.abs_diff(held), wanted))
    }
}
