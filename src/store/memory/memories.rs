//! Lists memories, their timeline, statistics, votes and audit trail.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::index::catalog::{FileRow, Filter};
use crate::journal::event::Event;
use crate::journal::projection::Projection;
use crate::memory::context::WorkContext;
use crate::memory::tier::Tier;
use crate::store::call_context::is_answer;
use crate::store::change::operation::ChangeReply;
use crate::store::idempotency::Calls;
use crate::store::lookup::Lookup;
use crate::store::memory::Memories;
use crate::store::memory_weights::{Memory, MemoryWeights};
use crate::store::source::Source;
use crate::text::path::NotePath;

/// What a list of memories is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemorySort {
    /// The most important first.
    Importance,
    /// The newest first.
    #[default]
    Created,
    /// What was used last first.
    Accessed,
}

/// Which memories to list.
#[derive(Debug, Clone, Default)]
pub struct MemoryListRequest {
    /// Conditions on the note.
    pub filter: Filter,
    /// One tier alone.
    pub tier: Option<Tier>,
    /// With any of these tags.
    pub any_tag: Vec<String>,
    /// Forgotten ones alone; else those that are not.
    pub forgotten: bool,
    /// Pinned ones alone.
    pub pinned: bool,
    /// The order.
    pub sort: MemorySort,
    /// How many at most.
    pub limit: Option<usize>,
}

/// A type and how many notes have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeItem {
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Notes that have it.
    pub notes: usize,
}

/// What was made around one note.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineReply {
    /// The place of that note in the list.
    pub anchor: usize,
    /// Oldest first.
    pub memories: Vec<Memory>,
}

/// Totals of a vault's memories.
#[derive(Debug, Clone, Serialize)]
pub struct MemoryStats {
    /// Notes, forgotten ones too.
    pub memories: usize,
    /// By tier, the nearest first; forgotten ones are in none.
    pub tiers: BTreeMap<Tier, usize>,
    /// By type, the most first.
    pub types: Vec<TypeItem>,
    /// Pinned.
    pub pinned: usize,
    /// Forgotten.
    pub forgotten: usize,
    /// Uses of all.
    pub uses: usize,
    /// Notes that were used at all.
    pub used: usize,
    /// Bytes of what was created as memories.
    pub bytes: u64,
    /// How many they may be.
    pub max_bytes: u64,
    /// The part of them that is taken, in percent.
    pub usage_percent: f64,
    /// What somebody works on.
    pub context: Option<WorkContext>,
    /// When tiers were looked at last.
    pub maintained: Option<Timestamp>,
    /// Lines of the journal that are no events.
    pub corrupt_lines: usize,
    /// The model's name; `none` without one.
    pub embedder: String,
    /// Passages that wait for a vector.
    pub pending: usize,
    /// The first and the last that was made.
    pub oldest: Option<Timestamp>,
    /// The last that was made.
    pub newest: Option<Timestamp>,
}

impl Memories<'_> {
    /// Finds one memory by any of its names.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub fn memory(&self, name: &str) -> Result<Memory> {
        let row = Lookup::of(self.core).find(name)?;
        let found = MemoryWeights::of(self.core).weigh(vec![row], self.core.clock.now())?.pop();
        found.ok_or_else(|| Error::internal("a row vanished"))
    }

    /// Lists memories.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn list(&self, request: &MemoryListRequest) -> Result<Vec<Memory>> {
        let rows = self.core.index.catalog().select(&request.filter)?;
        let mut found = MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?;
        found.retain(|memory| {
            request.tier.is_none_or(|tier| memory.state.tier == tier)
                && memory.state.forgotten == request.forgotten
                && (!request.pinned || memory.state.pinned)
                && (request.any_tag.is_empty() || request.any_tag.iter().any(|tag| memory.has_tag(tag)))
        });
        found.sort_by(|one, other| {
            let newer = other.birth().cmp(&one.birth()).then_with(|| one.path.cmp(&other.path));
            match request.sort {
                MemorySort::Created => newer,
                MemorySort::Importance => other.state.importance.total_cmp(&one.state.importance).then(newer),
                MemorySort::Accessed => other.state.last_use.cmp(&one.state.last_use).then(newer),
            }
        });
        found.truncate(request.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Adds up the memories of the vault.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.memory_stats_among(&Filter::default())
    }

    /// Adds up the memories of the notes that pass a filter.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if the journal cannot be read.
    pub fn memory_stats_among(&self, filter: &Filter) -> Result<MemoryStats> {
        let rows = self.core.index.catalog().select(filter)?;
        let memories = MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?;
        let own = memories.iter().filter(|memory| MemoryWeights::of(self.core).is_own(memory));
        let bytes: u64 = own.map(|memory| memory.row.size).sum();
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tiers: BTreeMap<Tier, usize> = Tier::ALL.into_iter().map(|tier| (tier, 0)).collect();
        for memory in &memories {
            *types.entry(&memory.kind).or_default() += 1;
            *tiers.entry(memory.state.tier).or_default() += usize::from(!memory.state.forgotten);
        }
        let mut types: Vec<TypeItem> =
            types.into_iter().map(|(kind, notes)| TypeItem { kind: kind.to_owned(), notes }).collect();
        types.sort_by_key(|item| std::cmp::Reverse(item.notes));
        let count = |holds: fn(&Memory) -> bool| memories.iter().filter(|memory| holds(memory)).count();
        let max_bytes = self.core.config.memory.max_bytes;
        let percent = if max_bytes == 0 { 0.0 } else { bytes as f64 / max_bytes as f64 * 100.0 };
        let context = self.context()?;
        let projection = self.core.projection()?;
        let corrupt_lines = projection.as_ref().map_or(0, Projection::corrupt);
        let maintained = projection.as_ref().and_then(|projection| projection.ledger().last_maintained());
        drop(projection);
        Ok(MemoryStats {
            memories: memories.len(),
            tiers,
            types,
            pinned: count(|memory| memory.state.pinned),
            forgotten: count(|memory| memory.state.forgotten),
            uses: memories.iter().map(|memory| memory.state.uses).sum(),
            used: count(|memory| memory.state.uses > 0),
            bytes,
            max_bytes,
            usage_percent: (percent * 100.0).round() / 100.0,
            context,
            maintained,
            corrupt_lines,
            embedder: self.core.embedder_name(),
            pending: self.core.index.snapshot()?.pending,
            oldest: memories.iter().map(|memory| memory.created).min(),
            newest: memories.iter().map(|memory| memory.created).max(),
        })
    }

    /// Lists notes by the time at which they were made, around one of them: up to `window` before it and as many after.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn timeline(&self, name: &str, window: usize) -> Result<TimelineReply> {
        self.timeline_among(name, window, &Filter::default())
    }

    /// Lists notes around one of them, as [`Self::timeline`] does, among the notes that pass a filter.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub fn timeline_among(&self, name: &str, window: usize, filter: &Filter) -> Result<TimelineReply> {
        let anchor = Lookup::of(self.core).find(name)?;
        let rows = self.core.index.catalog().select(filter)?;
        let lies_there = |folder: &String, path: &NotePath| {
            path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        let is_among =
            |source: &Source| filter.folder.as_ref().is_none_or(|folder| lies_there(folder, &source.path));
        let mut rows = Lookup::of(self.core).with_unindexed(rows, is_among)?;
        MemoryWeights::of(self.core).sort_by_birth(&mut rows, false, |row| row)?;
        let at = rows.iter().position(|row| row.path == anchor.path).ok_or_else(|| {
            Error::not_found(format!("{} is in no list of notes", anchor.path))
                .with_hint("excluded files and attachments have no place in time")
        })?;
        let from = at.saturating_sub(window);
        let near: Vec<FileRow> =
            rows.into_iter().skip(from).take((at - from + 1).saturating_add(window)).collect();
        Ok(TimelineReply {
            anchor: at - from,
            memories: MemoryWeights::of(self.core).weigh(near, self.core.clock.now())?,
        })
    }

    /// Writes down that the note at a path was read, which is a use; a failure is logged and harms nobody.
    pub fn used(&self, path: &str, by: &str) {
        match Lookup::of(self.core).find(path) {
            Ok(row) => MemoryWeights::of(self.core).note_use(std::iter::once(&row), by),
            Err(error) => tracing::debug!("a use is not written down: {error}"),
        }
    }

    /// Votes for or against a note; gives its usefulness after that.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Io` if the journal cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn vote(&self, name: &str, useful: bool) -> Result<Memory> {
        let row = Lookup::of(self.core).find(name)?;
        let mut event = Calls::of(self.core).event_of("vote", self.core.clock.now(), std::iter::once(&row));
        event.more.insert("useful".to_owned(), Value::from(useful));
        self.core.journal().append(&event)?;
        MemoryWeights::of(self.core).weigh_written(row)
    }

    /// Gives what somebody works on, unless that has expired.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn context(&self) -> Result<Option<WorkContext>> {
        let now = self.core.clock.now();
        let projection = self.core.projection()?;
        let context = projection.as_ref().and_then(|projection| projection.ledger().context().cloned());
        Ok(context.filter(|context| context.is_current(now)))
    }

    /// Says what somebody works on, for some hours or until further notice.
    ///
    /// # Errors
    /// `Invalid` for an empty text or an invalid number of hours; `Io` if the journal cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn set_context(&self, text: &str, hours: Option<f64>) -> Result<WorkContext> {
        let context = self.plan_context(text, hours)?;
        let mut event = Event::new("context", self.core.clock.now());
        event.more.insert("text".to_owned(), Value::from(context.text.as_str()));
        let until = context.expires_at;
        event.more.extend(until.map(|until| ("expires_at".to_owned(), Value::from(until.rfc3339()))));
        Calls::of(self.core).sign(&mut event);
        self.core.journal().append(&event)?;
        Ok(context)
    }

    /// Gives the context that [`Self::set_context`] would set, and sets nothing.
    ///
    /// # Errors
    /// `Invalid` for an empty text or an invalid number of hours.
    pub fn plan_context(&self, text: &str, hours: Option<f64>) -> Result<WorkContext> {
        let mut text = text.to_owned();
        self.core.clean(&mut text);
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(
                Error::invalid("the context is empty").with_hint("say in a sentence what is being done")
            );
        }
        let now = self.core.clock.now();
        let expires_at = match hours {
            Some(hours) if hours > 0.0 && hours <= LONGEST_CONTEXT => {
                Some(Timestamp::from_millis(now.millis().saturating_add((hours * 3_600_000.0) as i64)))
            }
            Some(hours) => {
                return Err(Error::invalid(format!("{hours} is no number of hours"))
                    .with_hint("give one above 0, and not more than a hundred years"));
            }
            None => None,
        };
        Ok(WorkContext { text, expires_at })
    }

    /// Ends what somebody works on; says whether there was anything.
    ///
    /// # Errors
    /// `Io` if the journal cannot be written.
    pub fn clear_context(&self) -> Result<bool> {
        let was_set = self.context()?.is_some();
        if was_set {
            let mut event = Event::new("context", self.core.clock.now());
            Calls::of(self.core).sign(&mut event);
            self.core.journal().append(&event)?;
        }
        Ok(was_set)
    }

    /// Lists what the journal knows of a note's weight and files, or of all, the newest first.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn audit(&self, name: Option<&str>) -> Result<Vec<Event>> {
        let Some(name) = name else {
            let events = self.core.journal().events(crate::journal::reader::ReadOrder::NewestFirst)?;
            return events.filter(|event| !event.as_ref().is_ok_and(is_answer)).collect();
        };
        let row = Lookup::of(self.core).find(name)?;
        let mut events = self.core.journal().history(&row.path)?;
        let names_it = |event: &Event| {
            let notes = event.more.get("notes").and_then(Value::as_array);
            notes.is_some_and(|notes| {
                notes.iter().any(|note| {
                    note.get("id").and_then(Value::as_str) == Some(&row.note_id)
                        || note.get("path").and_then(Value::as_str) == Some(row.path.as_str())
                })
            })
        };
        for event in self.core.journal().events(crate::journal::reader::ReadOrder::OldestFirst)? {
            let event = event?;
            if names_it(&event) {
                events.push(event);
            }
        }
        events.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
        Ok(events)
    }

    /// Tells what a note is that an operation left at a path: as it was then, whoever moved or removed it since.
    ///
    /// # Errors
    /// `NotFound` if the operation left no note at the path, and there is none now.
    pub(super) fn written_memory(&self, change: &ChangeReply, path: &str) -> Result<Memory> {
        let row = match change.rows.iter().find(|row| *row.path.as_str() == *path) {
            Some(row) => Some(row.clone()),
            None => match NotePath::from_disk(path) {
                Some(path) => self.core.index.row_on_disk(&path, &self.core.vault.settings())?,
                None => None,
            },
        };
        let row = row.ok_or_else(|| Error::not_found(format!("{path} is gone again")))?;
        Lookup::of(self.core).resolved(&row);
        MemoryWeights::of(self.core).weigh_written(row)
    }

    /// Tells what a note is now that was found at a path, after the last operation on it, where there was one.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it. A note that the operation left is not
    /// looked up.
    pub fn memory_after(&self, last: Option<&ChangeReply>, path: &str) -> Result<Memory> {
        match last {
            Some(change) => self.written_memory(change, &change.changed().unwrap_or_else(|| path.to_owned())),
            None => self.memory(path),
        }
    }

    /// Gives path, id and hash of the note that an operation left, or found as it should be.
    pub fn left(&self, change: &ChangeReply, path: &str) -> Option<(String, String, Option<String>)> {
        let memory = self.written_memory(change, path).ok()?;
        let hash = memory.row.hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
        Some((memory.path, memory.id, hash))
    }
}

/// A context lasts so many hours at most: a hundred years.
const LONGEST_CONTEXT: f64 = 876_600.0;
