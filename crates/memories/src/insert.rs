//! Inserts memories, optionally unless another note has the same text.

use serde_json::{Map, Value};
use sidenote_base::error::{Error, Result};
use sidenote_change::Changes;
use sidenote_change::free_names::FreeNames;
use sidenote_change::naming::{UNNAMED, title_of};
use sidenote_markdown::path::NotePath;
use sidenote_memory::state::check_importance;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::Memory;

use crate::note_from_memory::IncomingMemory;
use crate::save::Comparison;
use crate::{Memories, MemoryWrites};

/// A memory to insert.
#[derive(Debug, Clone, Default)]
pub struct InsertRequest {
    /// The text.
    pub text: String,
    /// The title. Without it, the first heading of the text or its first words.
    pub title: Option<String>,
    /// The type. Without it, the words of the text determine it.
    pub kind: Option<String>,
    /// The tags, in their original form.
    pub tags: Vec<String>,
    /// The importance, from 1 to 10.
    pub importance: Option<f64>,
    /// Other properties, in order.
    pub properties: Map<String, Value>,
}

/// The result of an insertion that depends on other notes.
#[derive(Debug, Clone)]
pub enum InsertOutcome {
    /// The memory was inserted.
    Inserted(Box<Memory>),
    /// A note with the same text exists, with its similarity: 1 for exactly the same text.
    Duplicate(Box<Memory>, f32),
}

impl MemoryWrites<'_> {
    /// Inserts memories, each as a new note in the folder of memories: either all of them or none. Private passages and
    /// secrets are removed.
    ///
    /// # Errors
    /// `Invalid` for an empty text, or an importance out of range.
    #[tracing::instrument(skip_all)]
    pub fn insert(&self, requests: &[InsertRequest]) -> Result<Vec<Memory>> {
        let incoming = requests.iter().map(|request| self.incoming(request)).collect::<Result<Vec<_>>>()?;
        IndexSync::of(self.core).refresh()?;
        self.insert_all(incoming, |_| Ok(()))
    }

    /// Inserts a memory, unless a note that is not forgotten has the same or nearly the same text.
    ///
    /// # Errors
    /// `Invalid` for an empty text, or an importance out of range.
    #[tracing::instrument(skip_all)]
    pub fn insert_unless_similar(&self, request: &InsertRequest) -> Result<InsertOutcome> {
        let incoming = self.incoming(request)?;
        IndexSync::of(self.core).refresh()?;
        let text = incoming.content.clone();
        let mut comparison = self.compare(&text)?;
        let known = |comparison: &Comparison| match (&comparison.same, &comparison.near) {
            (Some(same), _) => Some((same.path.as_str().to_owned(), 1.0)),
            (None, Some(near)) => Some((near.path.clone(), near.cosine)),
            (None, None) => None,
        };
        if let Some((path, cosine)) = known(&comparison) {
            return Ok(InsertOutcome::Duplicate(Box::new(Memories::of(self.core).memory(&path)?), cosine));
        }
        self.insert_one(incoming, || {
            self.update_comparison(&mut comparison, &text)?;
            match known(&comparison) {
                Some((path, cosine)) => Ok(Some((Memories::of(self.core).memory(&path)?, cosine))),
                None => Ok(None),
            }
        })
    }

    /// Inserts a memory, unless a note that is not forgotten has exactly the same text.
    ///
    /// # Errors
    /// `Invalid` for an empty text, or an importance out of range.
    #[tracing::instrument(skip_all)]
    pub fn insert_unless_duplicate(&self, request: &InsertRequest) -> Result<InsertOutcome> {
        let incoming = self.incoming(request)?;
        IndexSync::of(self.core).refresh()?;
        let text = incoming.content.clone();
        self.insert_one(incoming, || Ok(self.duplicate_of(&text, None)?.map(|memory| (memory, 1.0))))
    }

    /// Inserts a memory, unless `known` returns a note with its text. `known` is called under the write lock.
    fn insert_one(
        &self,
        incoming: IncomingMemory,
        known: impl FnOnce() -> Result<Option<(Memory, f32)>>,
    ) -> Result<InsertOutcome> {
        let mut held = None;
        let made = self.insert_all(vec![incoming], |incoming| {
            held = known()?;
            if held.is_some() {
                incoming.clear();
            }
            Ok(())
        })?;
        match (held, made.into_iter().next()) {
            (Some((memory, likeness)), _) => Ok(InsertOutcome::Duplicate(Box::new(memory), likeness)),
            (None, Some(memory)) => Ok(InsertOutcome::Inserted(Box::new(memory))),
            (None, None) => Err(Error::internal("the new note is missing")),
        }
    }

    /// Removes private passages and secrets from a memory, and checks it.
    fn incoming(&self, request: &InsertRequest) -> Result<IncomingMemory> {
        check_importance(request.importance)?;
        let mut memory = IncomingMemory {
            title: request.title.clone(),
            content: request.text.clone(),
            kind: request.kind.clone(),
            tags: request.tags.clone(),
            importance: request.importance,
            properties: request.properties.clone(),
            ..IncomingMemory::default()
        };
        let cleaned = self.clean_incoming_memory(&mut memory);
        for notice in cleaned.notices() {
            tracing::info!("{notice}");
        }
        memory.content = memory.content.trim().to_owned();
        if memory.content.is_empty() {
            return Err(Error::invalid("there is no text to keep").with_hint("give the text of the memory"));
        }
        memory.title = memory.title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        if memory.title.is_none() && title_of(&memory.content).is_empty() {
            memory.title = Some(UNNAMED.to_owned());
        }
        memory.kind = memory.kind.map(|kind| kind.trim().to_owned()).filter(|kind| !kind.is_empty());
        Ok(memory)
    }

    /// Inserts memories, either all or none. `checked` is called under the write lock and may remove some.
    fn insert_all(
        &self,
        mut incoming: Vec<IncomingMemory>,
        checked: impl FnOnce(&mut Vec<IncomingMemory>) -> Result<()>,
    ) -> Result<Vec<Memory>> {
        let mut made: Vec<(NotePath, Vec<u8>)> = Vec::new();
        let now = self.core.clock.now();
        // Names are chosen under the lock, so that two processes do not choose the same one.
        let plan = |_: Option<&_>| {
            let view = View::new(self.core)?;
            checked(&mut incoming)?;
            let mut names = FreeNames::without_captures(&self.core.vault, &view);
            for memory in incoming {
                made.push(self.new_note(memory, &mut names, now)?);
            }
            self.plan_notes(&view, "new", &made)
        };
        let change = Changes::of(self.core).apply_planned(plan, false)?;
        for notice in &change.notices {
            tracing::info!("{notice}");
        }
        made.iter().map(|(path, _)| Memories::of(self.core).memory_of_reply(&change, path.as_str())).collect()
    }
}
