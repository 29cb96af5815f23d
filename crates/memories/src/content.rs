//! Reads the text and properties of memories, and what the toolsets of other memory servers show of them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sidenote_base::error::Result;
use sidenote_catalog::{Filter, Kinds};
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::path::key;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::Source;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::Memories;

/// The text and properties of a memory.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryContent {
    /// The text without frontmatter, trimmed.
    pub text: String,
    /// The properties in the frontmatter.
    pub properties: Map<String, Value>,
}

impl MemoryContent {
    /// Returns a property by its name, ignoring case.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|(own, _)| key(own) == name).map(|(_, value)| value)
    }
}

impl Memories<'_> {
    /// Reads the text and properties of a memory.
    ///
    /// # Errors
    /// `NotFound` if the note no longer exists; `Io` if it cannot be read.
    pub fn content(&self, memory: &Memory) -> Result<MemoryContent> {
        let source = Source::unplaced(memory.row.path.clone(), &Lookup::of(self.core).bytes_of(&memory.row)?);
        let front = source.note.frontmatter.as_ref();
        let properties = front.map(|front| front.values()).unwrap_or_default();
        Ok(MemoryContent { text: source.body().to_owned(), properties })
    }

    /// Records uses of memories, all in one event. A failure is only logged.
    pub fn record_uses<'a>(&self, memories: impl Iterator<Item = &'a Memory>, by: &str) {
        MemoryWeights::of(self.core).note_use(memories.map(|memory| &memory.row), by);
    }

    /// Returns whether memory is enabled by the settings and by the file of the other program.
    pub fn is_memory_enabled(&self) -> bool {
        self.core.config.memory.enabled && !self.core.vault.is_memory_disabled()
    }

    /// Counts the sessions in the journal.
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

    /// Counts the notes by which the full text differs from the catalog, and all notes of the catalog.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn missing(&self) -> Result<(usize, usize)> {
        let filter = Filter { kinds: Kinds::Searched, ..Filter::default() };
        let wanted = self.core.index.catalog().select_ids(&filter)?.len();
        let held = usize::try_from(self.core.index.snapshot()?.bm25.documents()).unwrap_or(usize::MAX);
        Ok((wanted.abs_diff(held), wanted))
    }
}
