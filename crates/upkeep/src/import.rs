//! Imports memories as notes.

mod chat;
mod chatgpt;
mod claude;
mod claude_code;
mod export_files;
pub mod graph;
pub mod imported_notes;
mod json_items;
mod mem0;
mod memory;
mod note_sources;
mod okf;
mod records;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Serialize;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::Filter;
use sidenote_change::Changes;
use sidenote_change::free_names::FreeNames;
use sidenote_markdown::path::NotePath;
use sidenote_memories::note_from_memory::IncomingMemory;
use sidenote_memories::{Maintenance, MemoryWrites};
use sidenote_memory::duplicate::digest;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::redaction::Cleaned;
use sidenote_open_vault::source::body_of;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::MemoryWeights;

use self::memory::{ImportedMemory, MemoryReader};
use self::records::records_of;
use crate::Upkeep;

/// What memories are imported from.
#[derive(Debug, Clone, Copy)]
pub enum ImportSource<'a> {
    /// The text of an export.
    Text(&'a str),
    /// The SQLite database of another memory server, by its path. It is only read.
    Database(&'a Path),
}

/// The result of an import, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportReply {
    /// The number of memories in the import.
    pub total: usize,
    /// The paths of the new notes.
    pub imported: Vec<String>,
    /// How many of the new notes are forgotten: kept, and neither searched nor recalled.
    pub forgotten: usize,
    /// The number of memories that are not imported, because they exist already or have no text.
    pub skipped: usize,
    /// The keys of the memories that are not imported, and how many memories have each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, usize>,
    /// The number of secrets that were removed.
    pub redacted: usize,
    /// Notices for the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A note that is ready to be written.
struct NewNote {
    path: NotePath,
    bytes: Vec<u8>,
    /// The importance that the memory had at last.
    importance: Option<f64>,
}

impl Upkeep<'_> {
    /// Imports memories: an export in any format, an array of objects, one object for each line, or the database of
    /// another memory server. Memories that exist already are skipped. If one memory cannot be parsed, none is imported.
    ///
    /// # Errors
    /// `Invalid`, naming the memory, if one cannot be parsed; the errors of reading a database. Nothing is written then.
    #[tracing::instrument(skip_all)]
    pub fn import(
        &self,
        source: ImportSource<'_>,
        dry_run: bool,
        told: &dyn Fn(usize, usize),
    ) -> Result<ImportReply> {
        let found = records_of(source)?;
        let mut reader = MemoryReader::of(&found.records);
        let numbered = found.records.iter().enumerate();
        let incoming = numbered
            .map(|(at, record)| reader.read(record, at + 1).map_err(|error| in_memory(at, &error)))
            .collect::<Result<Vec<_>>>()?;
        let mut reply =
            ImportReply { total: incoming.len(), notices: found.notices, ..ImportReply::default() };
        reply.notices.append(&mut reader.notices);
        reply.left_out = reader.left_out;
        IndexSync::of(self.core).refresh()?;
        let made = self.new_notes(incoming, &mut reply)?;
        if !dry_run && !made.is_empty() {
            self.write(&made, &mut reply)?;
        }
        reply.imported.extend(made.iter().map(|note| note.path.to_string()));
        told(made.len(), made.len());
        Ok(reply)
    }

    /// Makes the notes of an import. All of them are made before the first is written, so that an error changes nothing.
    fn new_notes(&self, incoming: Vec<ImportedMemory>, reply: &mut ImportReply) -> Result<Vec<NewNote>> {
        let mut known = self.known_texts(&mut reply.notices)?;
        let now = self.core.clock.now();
        let view = View::new(self.core)?;
        let mut names = FreeNames::without_captures(&self.core.vault, &view);
        let mut made = Vec::new();
        let mut cleaned = Cleaned::default();
        let mut empty = 0;
        for (at, ImportedMemory { mut memory, importance }) in incoming.into_iter().enumerate() {
            cleaned += MemoryWrites::of(self.core).clean_incoming_memory(&mut memory);
            let is_empty = memory.path.is_none() && memory.content.trim().is_empty();
            empty += usize::from(is_empty);
            if is_empty || self.has(&memory, &mut known).map_err(|error| in_memory(at, &error))? {
                reply.skipped += 1;
                continue;
            }
            let former = memory.path.clone();
            reply.forgotten +=
                usize::from(memory.properties.get("forgotten").is_some_and(|flag| flag == true));
            let note = MemoryWrites::of(self.core).new_note(memory, &mut names, now);
            let (path, bytes) =
                note.map_err(|error| Error::invalid(format!("memory {}: {error}", at + 1)))?;
            if let Some(former) = former.filter(|former| *former != path) {
                reply
                    .notices
                    .push(format!("{former} is imported as {path}: another file has its path, or its name"));
            }
            made.push(NewNote { path, bytes, importance });
        }
        if empty > 0 {
            reply.notices.push(format!("{empty} of the skipped memories have no text"));
        }
        reply.redacted = cleaned.keys;
        reply.notices.extend(cleaned.notices());
        Ok(made)
    }

    /// Writes notes as one operation, and records the importance that they had, which otherwise would decay again from
    /// their creation.
    fn write(&self, made: &[NewNote], reply: &mut ImportReply) -> Result<()> {
        let notes: Vec<_> = made.iter().map(|note| (note.path.clone(), note.bytes.clone())).collect();
        let plan =
            |_: Option<&_>| MemoryWrites::of(self.core).plan_notes(&View::new(self.core)?, "import", &notes);
        let change = Changes::of(self.core).apply_planned(plan, false)?;
        reply.notices.extend(change.notices);
        let had = made.iter().filter_map(|note| Some((&note.path, note.importance?)));
        Maintenance::of(self.core).note_imported(had, self.core.clock.now())
    }

    /// Returns whether the vault has a memory already. Adds the text of a new one to `known`.
    ///
    /// # Errors
    /// `Io` or `Invalid` if a note cannot be read: its memory could be imported twice.
    fn has(&self, memory: &IncomingMemory, known: &mut HashSet<String>) -> Result<bool> {
        if let Some(path) = &memory.path {
            return self.holds(path, memory);
        }
        if let Some(id) = &memory.id
            && self.is_same(id, &memory.content)?
        {
            return Ok(true);
        }
        Ok(!known.insert(digest(&memory.content)))
    }

    /// Reads a note. Returns `None` if there is none.
    ///
    /// # Errors
    /// `Io` or `Invalid` if a note cannot be read: its memory could be imported twice.
    fn bytes_of(&self, path: &NotePath) -> Result<Option<Vec<u8>>> {
        match self.core.read_bytes(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a note at the path has the same bytes.
    fn holds(&self, path: &NotePath, memory: &IncomingMemory) -> Result<bool> {
        let whole = format!("{}{}", memory.frontmatter.as_deref().unwrap_or(""), memory.content);
        Ok(self.bytes_of(path)?.is_some_and(|bytes| {
            bytes == whole.as_bytes()
                || (memory.frontmatter.is_none() && digest(&body_of(&bytes)) == digest(&memory.content))
        }))
    }

    /// Returns whether the note with an id has the same text.
    fn is_same(&self, id: &str, content: &str) -> Result<bool> {
        let row = match Lookup::of(self.core).find(id) {
            Ok(row) if row.note_id == id => row,
            Ok(_) => return Ok(false),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Exists) =>
            {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        Ok(self.bytes_of(&row.path)?.is_some_and(|bytes| digest(&body_of(&bytes)) == digest(content)))
    }

    /// Collects the texts of memories, so that none is imported twice. `notices` names memories that cannot be read.
    fn known_texts(&self, notices: &mut Vec<String>) -> Result<HashSet<String>> {
        let rows = self.core.index.catalog().select(&Filter::default())?;
        // Notes that differ from the index are included.
        let memories = MemoryWeights::of(self.core)
            .weigh(Lookup::of(self.core).with_unindexed(rows, |_| true)?, self.core.clock.now())?;
        let own = memories.into_iter().filter(|memory| MemoryWeights::of(self.core).is_own(memory));
        let mut known = HashSet::new();
        for memory in own {
            match self.bytes_of(&memory.row.path) {
                Ok(bytes) => known.extend(bytes.map(|bytes| digest(&body_of(&bytes)))),
                Err(error) => {
                    notices.push(format!("{error}; a memory with the same text may be imported twice"))
                }
            }
        }
        Ok(known)
    }
}

/// Returns an error that names the memory to which it belongs, by its place in the import from 0.
fn in_memory(at: usize, error: &Error) -> Error {
    Error::new(error.kind(), format!("memory {}: {error}", at + 1))
}
