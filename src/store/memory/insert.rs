//! Inserts memories as they are given, or unless another note says the same.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::memory::state::check_importance;
use crate::store::catalog_overlay::View;
use crate::store::change::Changes;
use crate::store::change::free_names::FreeNames;
use crate::store::change::naming::{UNNAMED, title_of};
use crate::store::memory::note_from_memory::Incoming;
use crate::store::memory::save::Comparison;
use crate::store::memory::{Memories, MemoryWrites};
use crate::store::memory_weights::Memory;
use crate::store::sync::IndexSync;
use crate::text::path::NotePath;

/// A memory to insert as it is given.
#[derive(Debug, Clone, Default)]
pub struct InsertRequest {
    /// Its text.
    pub text: String,
    /// Its title; else its first heading, or its first words.
    pub title: Option<String>,
    /// Its type; else what its words tell.
    pub kind: Option<String>,
    /// Its tags, as they shall be given back.
    pub tags: Vec<String>,
    /// 1 to 10.
    pub importance: Option<f64>,
    /// Other properties, in order.
    pub properties: Map<String, Value>,
}

/// What became of a memory that is inserted unless a note says the same.
#[derive(Debug, Clone)]
pub enum InsertOutcome {
    /// It is a note now.
    New(Box<Memory>),
    /// This note says it already, and how alike they are: 1 where they are the same.
    Known(Box<Memory>, f32),
}

impl MemoryWrites<'_> {
    /// Keeps memories, each as a note of its own in the folder of memories, all of them or none, whatever other notes
    /// say. What is private in them goes, and so does what looks like a key.
    ///
    /// # Errors
    /// `Invalid` for an empty text, or an importance out of range.
    #[tracing::instrument(skip_all)]
    pub fn insert(&self, requests: &[InsertRequest]) -> Result<Vec<Memory>> {
        let incoming = requests.iter().map(|request| self.incoming(request)).collect::<Result<Vec<_>>>()?;
        IndexSync::of(self.core).refresh()?;
        self.insert_all(incoming, |_| Ok(()))
    }

    /// Keeps a memory, unless a note that is not forgotten says the same, or so nearly that it is the same.
    ///
    /// # Errors
    /// `Invalid` for an empty text, or an importance out of range.
    #[tracing::instrument(skip_all)]
    pub fn insert_unless_similar(&self, request: &InsertRequest) -> Result<InsertOutcome> {
        let incoming = self.incoming(request)?;
        IndexSync::of(self.core).refresh()?;
        let text = incoming.content.clone();
        let mut alike = self.alike(&text)?;
        let known = |alike: &Comparison| match (&alike.same, &alike.near) {
            (Some(same), _) => Some((same.path.as_str().to_owned(), 1.0)),
            (None, Some(near)) => Some((near.path.clone(), near.cosine)),
            (None, None) => None,
        };
        if let Some((path, cosine)) = known(&alike) {
            return Ok(InsertOutcome::Known(Box::new(Memories::of(self.core).memory(&path)?), cosine));
        }
        self.insert_one(incoming, || {
            self.renew(&mut alike, &text)?;
            match known(&alike) {
                Some((path, cosine)) => Ok(Some((Memories::of(self.core).memory(&path)?, cosine))),
                None => Ok(None),
            }
        })
    }

    /// Keeps a memory, unless a note that is not forgotten says exactly the same.
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

    /// Keeps one memory, unless `known` finds the note that says it, asked under the write lock.
    fn insert_one(
        &self,
        incoming: Incoming,
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
            (Some((memory, likeness)), _) => Ok(InsertOutcome::Known(Box::new(memory), likeness)),
            (None, Some(memory)) => Ok(InsertOutcome::New(Box::new(memory))),
            (None, None) => Err(Error::internal("a new note is not there")),
        }
    }

    /// Takes what is private out of a memory, and refuses what cannot be kept.
    fn incoming(&self, request: &InsertRequest) -> Result<Incoming> {
        check_importance(request.importance)?;
        let mut memory = Incoming {
            title: request.title.clone(),
            content: request.text.clone(),
            kind: request.kind.clone(),
            tags: request.tags.clone(),
            importance: request.importance,
            properties: request.properties.clone(),
            ..Incoming::default()
        };
        let cleaned = self.clean_incoming(&mut memory);
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

    /// Keeps memories, all of them or none; `checked` may take some out, under the write lock.
    fn insert_all(
        &self,
        mut incoming: Vec<Incoming>,
        checked: impl FnOnce(&mut Vec<Incoming>) -> Result<()>,
    ) -> Result<Vec<Memory>> {
        let mut made: Vec<(NotePath, Vec<u8>)> = Vec::new();
        let now = self.core.clock.now();
        // Names are given out under the lock, so that two processes do not choose one name.
        let plan = |_: Option<&_>| {
            let view = View::new(self.core)?;
            checked(&mut incoming)?;
            let mut names = FreeNames::new(&self.core.vault);
            for memory in incoming {
                made.push(self.note_of(memory, &mut names, now)?);
            }
            self.plan_notes(&view, "new", &made)
        };
        let change = Changes::of(self.core).carry_out(plan, false)?;
        for notice in &change.notices {
            tracing::info!("{notice}");
        }
        made.iter().map(|(path, _)| Memories::of(self.core).written_memory(&change, path.as_str())).collect()
    }
}
