//! Lists memories, their timeline, statistics, votes and audit trail.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileRow, Filter};
use sidenote_change::operation::ChangeReply;
use sidenote_journal::event::Event;
use sidenote_journal::projection::Projection;
use sidenote_markdown::path::NotePath;
use sidenote_memory::context::WorkContext;
use sidenote_memory::tier::Tier;
use sidenote_memory::types::GENERAL;
use sidenote_open_vault::call_context::is_answer;
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::Source;
use sidenote_query::memory_weights::{Memory, MemoryWeights, Weighed};

use crate::Memories;

/// The order of a list of memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemorySort {
    /// By importance, the most important first.
    Importance,
    /// By creation time, the newest first.
    #[default]
    Created,
    /// By last use, the latest first.
    Accessed,
}

/// The selection of a list of memories.
#[derive(Debug, Clone, Default)]
pub struct MemoryListRequest {
    /// The filter of notes.
    pub filter: Filter,
    /// Only memories of this tier.
    pub tier: Option<Tier>,
    /// Only memories with any of these tags.
    pub any_tag: Vec<String>,
    /// Whether to list only forgotten memories; otherwise only others.
    pub forgotten: bool,
    /// Whether to list only pinned memories.
    pub pinned: bool,
    /// The order.
    pub sort: MemorySort,
    /// The largest number of memories.
    pub limit: Option<usize>,
}

/// A type with its number of notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeItem {
    /// The name of the type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of notes.
    pub notes: usize,
}

/// The memories around one note in time.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineReply {
    /// The index of that note in the list.
    pub anchor: usize,
    /// The memories, the oldest first.
    pub memories: Vec<Memory>,
}

/// The totals of the memories of a vault.
#[derive(Debug, Clone, Serialize)]
pub struct MemoryStats {
    /// The number of notes, including forgotten ones.
    pub memories: usize,
    /// The number of notes by tier, without forgotten ones.
    pub tiers: BTreeMap<Tier, usize>,
    /// The number of notes by type, the most frequent first.
    pub types: Vec<TypeItem>,
    /// The number of pinned notes.
    pub pinned: usize,
    /// The number of forgotten notes.
    pub forgotten: usize,
    /// The number of all uses.
    pub uses: usize,
    /// The number of notes that were used.
    pub used: usize,
    /// The size of all notes that were created as memories, in bytes.
    pub bytes: u64,
    /// The limit of this size, in bytes.
    pub max_bytes: u64,
    /// The used share of the limit, in percent.
    pub usage_percent: f64,
    /// The active context.
    pub context: Option<WorkContext>,
    /// The time of the last maintenance.
    pub maintained: Option<Timestamp>,
    /// The number of invalid lines in the journal.
    pub corrupt_lines: usize,
    /// The name of the model, or `none`.
    pub embedder: String,
    /// The number of passages without a vector.
    pub pending: usize,
    /// The creation time of the oldest memory.
    pub oldest: Option<Timestamp>,
    /// The creation time of the newest memory.
    pub newest: Option<Timestamp>,
}

impl Memories<'_> {
    /// Finds a memory by any of its names.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    pub fn memory(&self, name: &str) -> Result<Memory> {
        let row = Lookup::of(self.core).find(name)?;
        let found = MemoryWeights::of(self.core).weigh(vec![row], self.core.clock.now())?.pop();
        found.ok_or_else(|| Error::internal("a row is missing"))
    }

    /// Lists memories.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn list(&self, request: &MemoryListRequest) -> Result<Vec<Memory>> {
        let filter = Lookup::of(self.core).with_canonical_folder(&request.filter)?;
        let rows = self.core.index.catalog().select(&filter)?;
        let mut found = MemoryWeights::of(self.core).weigh(rows, self.core.clock.now())?;
        found.retain(|memory| {
            request.tier.is_none_or(|tier| memory.state.tier == tier)
                && memory.state.forgotten == request.forgotten
                && (!request.pinned || memory.state.pinned)
                && (request.any_tag.is_empty() || request.any_tag.iter().any(|tag| memory.has_tag(tag)))
        });
        found.sort_by(|one, other| {
            let newer =
                other.creation_order().cmp(&one.creation_order()).then_with(|| one.path.cmp(&other.path));
            match request.sort {
                MemorySort::Created => newer,
                MemorySort::Importance => other.state.importance.total_cmp(&one.state.importance).then(newer),
                MemorySort::Accessed => other.state.last_use.cmp(&one.state.last_use).then(newer),
            }
        });
        found.truncate(request.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Returns the totals of the memories of the vault.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.memory_stats_among(&Filter::default())
    }

    /// Returns the totals of the memories that pass a filter.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read; `Io` if the journal cannot be read.
    pub fn memory_stats_among(&self, filter: &Filter) -> Result<MemoryStats> {
        let rows = self.core.index.catalog().select(filter)?;
        let weights = MemoryWeights::of(self.core);
        let memories = weights.weigh_all(&rows, self.core.clock.now())?;
        let bytes: u64 = rows.iter().filter(|row| weights.is_row_of_own(row)).map(|row| row.size).sum();
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tiers: BTreeMap<Tier, usize> = Tier::ALL.into_iter().map(|tier| (tier, 0)).collect();
        for (row, memory) in rows.iter().zip(&memories) {
            *types.entry(row.note_type.as_deref().unwrap_or(GENERAL)).or_default() += 1;
            *tiers.entry(memory.state.tier).or_default() += usize::from(!memory.state.forgotten);
        }
        let mut types: Vec<TypeItem> =
            types.into_iter().map(|(kind, notes)| TypeItem { kind: kind.to_owned(), notes }).collect();
        types.sort_by_key(|item| std::cmp::Reverse(item.notes));
        let count = |holds: fn(&Weighed) -> bool| memories.iter().filter(|memory| holds(memory)).count();
        let created = || rows.iter().zip(&memories).map(|(row, own)| own.usage.creation_order(row.created).0);
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
            oldest: created().min(),
            newest: created().max(),
        })
    }

    /// Lists the notes created around one note: up to `window` before it and as many after it.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn timeline(&self, name: &str, window: usize) -> Result<TimelineReply> {
        self.timeline_among(name, window, &Filter::default())
    }

    /// Lists the notes created around one note, among those that pass a filter.
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
        MemoryWeights::of(self.core).sort_by_creation(&mut rows, false, |row| row)?;
        let at = rows.iter().position(|row| row.path == anchor.path).ok_or_else(|| {
            Error::not_found(format!("{} is not listed as a note", anchor.path))
                .with_hint("excluded files and attachments have no timeline")
        })?;
        let from = at.saturating_sub(window);
        let near: Vec<FileRow> =
            rows.into_iter().skip(from).take((at - from + 1).saturating_add(window)).collect();
        Ok(TimelineReply {
            anchor: at - from,
            memories: MemoryWeights::of(self.core).weigh(near, self.core.clock.now())?,
        })
    }

    /// Records that the note at a path was read, which counts as a use. A failure is only logged.
    pub fn record_use(&self, path: &str, by: &str) {
        match Lookup::of(self.core).find(path) {
            Ok(row) => MemoryWeights::of(self.core).note_use(std::iter::once(&row), by),
            Err(error) => tracing::debug!("a use cannot be recorded: {error}"),
        }
    }

    /// Votes for or against a note, and returns the memory with its new usefulness.
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

    /// Returns the active context, unless it has expired.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read.
    pub fn context(&self) -> Result<Option<WorkContext>> {
        let now = self.core.clock.now();
        let projection = self.core.projection()?;
        let context = projection.as_ref().and_then(|projection| projection.ledger().context().cloned());
        Ok(context.filter(|context| context.is_current(now)))
    }

    /// Sets the active context, for a number of hours or without a limit.
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

    /// Returns the context that [`Self::set_context`] would set.
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
                return Err(Error::invalid(format!("{hours} is not a valid number of hours"))
                    .with_hint("give a number above 0 and up to a hundred years"));
            }
            None => None,
        };
        Ok(WorkContext { text, expires_at })
    }

    /// Clears the active context. Returns whether there was one.
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

    /// Lists the events of a note, or all events, the newest first.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Io` if the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn audit(&self, name: Option<&str>) -> Result<Vec<Event>> {
        let Some(name) = name else {
            let events = self.core.journal().events(sidenote_journal::reader::ReadOrder::NewestFirst)?;
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
        for event in self.core.journal().events(sidenote_journal::reader::ReadOrder::OldestFirst)? {
            let event = event?;
            if names_it(&event) {
                events.push(event);
            }
        }
        events.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
        Ok(events)
    }

    /// Returns the memory that an operation left at a path, regardless of later changes by others.
    ///
    /// # Errors
    /// `NotFound` if the operation left no note at the path, and there is none now.
    pub(super) fn memory_of_reply(&self, change: &ChangeReply, path: &str) -> Result<Memory> {
        let row = match change.rows.iter().find(|row| *row.path.as_str() == *path) {
            Some(row) => Some(row.clone()),
            None => match NotePath::from_disk(path) {
                Some(path) => self.core.index.row_on_disk(&path, &self.core.vault.settings())?,
                None => None,
            },
        };
        let row = row.ok_or_else(|| Error::not_found(format!("{path} is gone again")))?;
        Lookup::of(self.core).remember_resolved(&row);
        MemoryWeights::of(self.core).weigh_written(row)
    }

    /// Returns the memory at a path after an operation, or its current state without one.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it. A note that the operation left is not
    /// looked up.
    pub fn memory_after(&self, last: Option<&ChangeReply>, path: &str) -> Result<Memory> {
        match last {
            Some(change) => {
                self.memory_of_reply(change, &change.changed().unwrap_or_else(|| path.to_owned()))
            }
            None => self.memory(path),
        }
    }

    /// Returns the path, id and hash of the note that an operation left or did not have to change.
    pub fn left(&self, change: &ChangeReply, path: &str) -> Option<(String, String, Option<String>)> {
        let memory = self.memory_of_reply(change, path).ok()?;
        let hash = memory.row.hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string());
        Some((memory.path, memory.id, hash))
    }
}

/// The longest lifetime of a context, in hours: a hundred years.
const LONGEST_CONTEXT: f64 = 876_600.0;
