//! What a search leaves out by default: archived and forgotten notes, each with the operation that made it so, and the
//! files in the trash.

use std::collections::HashMap;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{FileRow, Inactive};
use sidenote_journal::event::Event;
use sidenote_journal::path_before_folders;
use sidenote_journal::reader::ReadOrder;
use sidenote_links::rewrite::parse;
use sidenote_markdown::decode::decode;
use sidenote_markdown::edit::{FileLocation, apply};
use sidenote_memory::memory_properties::MemoryProperties;
use sidenote_open_vault::note_columns::Creation;
use sidenote_query::memory_weights::{Memory, MemoryWeights, said};
use sidenote_vault::undo_log::{FileUndo, UndoLog};

use crate::Views;
use crate::activity::agent_of;
use crate::trash::TrashedFile;

/// What is found by no search unless asked for.
#[derive(Debug, Clone, Serialize)]
pub struct InactiveNotes {
    /// Archived notes.
    pub archived: Vec<InactiveNote>,
    /// Forgotten notes.
    pub forgotten: Vec<InactiveNote>,
    /// The files in the trash.
    pub trash: Vec<TrashedFile>,
}

/// How many notes are found by no search unless asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InactiveCounts {
    /// Archived notes.
    pub archived: usize,
    /// Forgotten notes.
    pub forgotten: usize,
    /// The files in the trash.
    pub trash: usize,
}

/// An archived or forgotten note.
#[derive(Debug, Clone, Serialize)]
pub struct InactiveNote {
    /// The note.
    #[serde(flatten)]
    pub memory: Memory,
    /// The operation that archived or forgot it; none where another program did, or where its before-images are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<InactiveSince>,
    /// The time of the file where no operation is known: the note was archived or forgotten then or before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
}

/// The operation that archived or forgot a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InactiveSince {
    /// When it was.
    pub at: Timestamp,
    /// Who did it: the client, or `cli` for a person.
    pub agent: String,
    /// The id of the operation.
    pub operation: String,
}

/// Whether a note was inactive before and after a change; none where the text is not known.
struct States {
    before: Option<bool>,
    after: Option<bool>,
}

impl Views<'_> {
    /// Lists archived and forgotten notes, and the files in the trash. Notes that Obsidian's settings exclude are not
    /// memories, and are left out, as in [`Memories::memory_stats`](crate::Memories::memory_stats).
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read; `Io` if the journal or the trash cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn inactive(&self) -> Result<InactiveNotes> {
        let rows = self.inactive_rows(Inactive { archived: true, forgotten: true })?;
        let memories = MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?;
        let since = self.inactive_since(&memories)?;
        let notes = memories.into_iter().zip(since).map(|(memory, since)| {
            let latest = since.is_none().then_some(memory.row.written);
            InactiveNote { memory, since, latest }
        });
        let (forgotten, archived) = notes.partition(|note| note.memory.state.forgotten);
        Ok(InactiveNotes { archived, forgotten, trash: self.trash()? })
    }

    /// Counts what [`Views::inactive`] lists, without looking for the operations.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read; `Io` if the journal or the trash cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn inactive_counts(&self) -> Result<InactiveCounts> {
        let count = |states| Ok::<_, Error>(self.inactive_rows(states)?.len());
        let all = count(Inactive { archived: true, forgotten: true })?;
        let forgotten = count(Inactive { archived: false, forgotten: true })?;
        Ok(InactiveCounts { archived: all - forgotten, forgotten, trash: self.deletions()?.len() })
    }

    fn inactive_rows(&self, states: Inactive) -> Result<Vec<FileRow>> {
        let catalog = self.core.index.catalog();
        let mut rows = catalog.rows(&catalog.inactive_files(states)?)?;
        rows.retain(|row| !row.excluded);
        Ok(rows)
    }

    /// Finds the operations that archived or forgot notes: of each note the last one before which it was neither.
    fn inactive_since(&self, memories: &[Memory]) -> Result<Vec<Option<InactiveSince>>> {
        let mut found: Vec<Option<InactiveSince>> = vec![None; memories.len()];
        // The names that the notes had, as the journal is read from its end.
        let mut places: HashMap<FileLocation, usize> =
            memories.iter().enumerate().map(|(at, memory)| (location(memory), at)).collect();
        if places.is_empty() {
            return Ok(found);
        }
        let log = UndoLog::open(&self.core.vault.records())?;
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            self.core.check_cancelled()?;
            let event = event?;
            let mut files = None;
            // The names before the event, which no other file of it had afterwards.
            let mut earlier: Vec<(FileLocation, usize)> = Vec::new();
            for touched in event.files.iter().filter(|file| file.after.is_some() || file.to.is_some()) {
                let Some(at) = places.remove(touched.end()) else { continue };
                let Some(memory) = memories.get(at) else { continue };
                // A large file that only moved has no hashes.
                if touched.before == touched.after {
                    earlier.push((touched.path.clone(), at));
                    continue;
                }
                // An operation whose before-images are gone says nothing, and nothing before it can be told.
                let files = files.get_or_insert_with(|| files_of(&log, &event));
                let Some(file) = files.iter().find(|file| file.to.as_ref() == Some(touched.end())) else {
                    continue;
                };
                match self.states(file, memory) {
                    States { before: Some(true), .. } => earlier.push((touched.path.clone(), at)),
                    States { before: Some(false), after: Some(true) } => {
                        if let Some(place) = found.get_mut(at) {
                            *place = Some(since(&event));
                        }
                    }
                    // Something else changed the note after the operation.
                    _ => {}
                }
            }
            if !event.folders.is_empty() {
                places = places
                    .into_iter()
                    .map(|(place, at)| (path_before_folders(&event, &place).unwrap_or(place), at))
                    .collect();
            }
            places.extend(earlier);
            if places.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// Reads from the before-image of a change whether the note was inactive in the way that it is now.
    fn states(&self, file: &FileUndo, memory: &Memory) -> States {
        let is_inactive = |bytes: &[u8]| {
            let said = said_in(bytes, memory);
            if memory.state.forgotten { said.forgotten } else { said.archived && !said.pinned }
        };
        let Some(image) = &file.image else {
            return States { before: None, after: None };
        };
        let after = apply(image, &file.patch).ok().map(|after| is_inactive(&after));
        States { before: Some(is_inactive(image)), after }
    }
}

/// Returns the before-images of an operation; none if they were removed.
fn files_of(log: &UndoLog, event: &Event) -> Vec<FileUndo> {
    match log.record(&event.id) {
        Ok(record) => record.files,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!("what {} changed cannot be read: {error}", event.id);
            }
            Vec::new()
        }
    }
}

fn location(memory: &Memory) -> FileLocation {
    FileLocation::Vault(memory.row.path.clone())
}

/// Reads what the properties of a text say of a memory.
fn said_in(bytes: &[u8], memory: &Memory) -> MemoryProperties {
    let note = parse(&memory.row.path, &decode(bytes).text);
    let properties = note.frontmatter.map(|front| front.values()).unwrap_or_default();
    said(&properties, Vec::new(), Creation { at: memory.said.created, is_copied: memory.said.is_copied })
}

fn since(event: &Event) -> InactiveSince {
    InactiveSince { at: event.at, agent: agent_of(event).to_owned(), operation: event.id.clone() }
}
