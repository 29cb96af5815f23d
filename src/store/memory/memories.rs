//! Memories: notes with their weight, folded for each request from frontmatter, journal and time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};
use std::sync::{MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::clock::Timestamp;
use crate::config::Layout;
use crate::error::{Error, Result};
use crate::index::catalog::{Details, FileId, FileRow, Filter, path_id};
use crate::journal::Journal;
use crate::journal::event::{Event, OP_MOVED, TouchedFile};
use crate::journal::projection::Projection;
use crate::memory::context::WorkContext;
use crate::memory::recall::{Quotas, RecallGroup};
use crate::memory::state::{MemoryProperties, MemoryState, Thresholds, fold_with};
use crate::memory::tier::Tier;
use crate::memory::types::{GENERAL, MemoryType, MemoryTypes};
use crate::memory::usage::{EventId, Usage};
use crate::store::Store;
use crate::store::change::idempotency::is_answer;
use crate::store::view::Source;
use crate::text::edit::FileLocation;
use crate::text::original_tags;
use crate::text::path::{NotePath, has_key, key};

/// A note and what it is worth.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// The note's id.
    pub id: String,
    /// Vault path.
    pub path: String,
    /// The note's title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// What it is worth now.
    #[serde(flatten)]
    pub state: MemoryState,
    /// What took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    #[serde(skip)]
    pub(in crate::store) row: FileRow,
    #[serde(skip)]
    pub(in crate::store) said: MemoryProperties,
    /// What was done with it.
    #[serde(skip)]
    pub(in crate::store) usage: Usage,
}

impl Memory {
    /// Gives when it was made, exactly.
    fn birth(&self) -> (Timestamp, EventId) {
        self.usage.creation_order(self.row.created)
    }

    /// Says whether it has a tag, or one below it.
    pub(in crate::store) fn has_tag(&self, tag: &str) -> bool {
        let wanted = key(tag.trim_start_matches('#'));
        let mut names = self.tags.iter().chain(&self.said.tags).map(|own| key(own));
        names.any(|own| own == wanted || own.starts_with(&format!("{wanted}/")))
    }
}

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

/// Lists the tags of a note as they were given, from all names that it is found by and its properties.
fn given_tags(names: Vec<String>, properties: &Map<String, Value>) -> Vec<String> {
    let value = |name: &str| properties.iter().find(|(own, _)| has_key(own, name)).map(|(_, value)| value);
    original_tags::as_given(names, value("tags"), value(original_tags::ORIGINALS))
}

impl Store {
    pub(in crate::store) fn kinds(&self) -> MemoryTypes {
        let known = self.config.types.iter().map(|(name, kind)| (name.clone(), *kind)).collect();
        MemoryTypes::new(known, &self.config.memory.classify)
    }

    /// Gives the thresholds of the tiers as the settings say.
    pub(in crate::store) fn thresholds(&self) -> Thresholds {
        let tiers = &self.config.memory.tiers;
        Thresholds {
            hot: i64::from(tiers.hot_hours) * 3_600_000,
            warm_uses: tiers.warm_uses,
            warm_days: tiers.warm_use_days,
            warm: i64::from(tiers.warm_days) * 86_400_000,
        }
    }

    /// Gives the parts of what recall gives as the settings say.
    pub(in crate::store) fn shares(&self) -> Quotas {
        let budgets = &self.config.memory.budgets;
        [
            (RecallGroup::Pinned, usize::from(budgets.pinned)),
            (RecallGroup::Tier(Tier::Hot), usize::from(budgets.hot)),
            (RecallGroup::Tier(Tier::Warm), usize::from(budgets.warm)),
            (RecallGroup::Tier(Tier::Cold), usize::from(budgets.cold)),
        ]
    }

    pub(in crate::store) fn journal(&self) -> Journal {
        Journal::open(&self.vault, &self.vault.records())
    }

    /// Gives the ledger as the journal is this moment.
    pub(in crate::store) fn projection(&self) -> Result<MutexGuard<'_, Option<Projection>>> {
        let mut projection = self.projection.lock().unwrap_or_else(PoisonError::into_inner);
        Projection::refresh(
            &mut projection,
            self.index.folder(),
            !self.vault.is_read_only(),
            &self.journal(),
        )?;
        Ok(projection)
    }

    /// Puts notes in the order in which they were made, or, where `newest_first` says so, the other way round. Of notes of
    /// one second the journal tells; else paths decide.
    pub(in crate::store) fn sort_by_birth<T>(
        &self,
        list: &mut [T],
        newest_first: bool,
        row: impl Fn(&T) -> &FileRow,
    ) -> Result<()> {
        let turned = |order: Ordering| if newest_first { order.reverse() } else { order };
        let second = |item: &T| row(item).created.millis().div_euclid(1000);
        list.sort_by(|one, other| {
            let created = row(one).created.cmp(&row(other).created);
            turned(created).then_with(|| row(one).path.cmp(&row(other).path))
        });
        let is_tie = |one: &T, other: &T| second(one) == second(other);
        if list.chunk_by(is_tie).all(|run| run.len() == 1) {
            return Ok(());
        }
        let projection = self.projection()?;
        let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
            return Err(Error::internal("the ledger was not read"));
        };
        let birth = |item: &T| {
            let row = row(item);
            ledger.usage(own_id(row), row.path.as_str()).creation_order(row.created)
        };
        for run in list.chunk_by_mut(is_tie).filter(|run| run.len() > 1) {
            if newest_first {
                run.sort_by_cached_key(|item| Reverse(birth(item)));
            } else {
                run.sort_by_cached_key(birth);
            }
        }
        Ok(())
    }

    /// Tells what notes are worth now.
    pub(in crate::store) fn weigh(&self, rows: Vec<FileRow>, now: Timestamp) -> Result<Vec<Memory>> {
        self.weigh_by(rows, now, true)
    }

    /// Tells what a note is worth that was just written: where the journal cannot be read, as if nothing had been done
    /// with it yet, for the change itself landed.
    pub(in crate::store) fn weigh_landed(&self, row: FileRow) -> Result<Memory> {
        let now = self.clock.now();
        let weighed = match self.weigh(vec![row.clone()], now) {
            Ok(mut memories) => memories.pop(),
            Err(error) => {
                tracing::warn!("uses of {} are not counted: {error}", row.path);
                Some(memory_of(
                    row,
                    Details::default(),
                    Usage::default(),
                    (&self.kinds(), &self.thresholds()),
                    true,
                    now,
                ))
            }
        };
        weighed.ok_or_else(|| Error::internal("a row vanished"))
    }

    /// As [`Store::weigh`], for scores, which do not ask for importance and tags: those are left out.
    pub(in crate::store) fn weigh_roughly(&self, rows: Vec<FileRow>, now: Timestamp) -> Result<Vec<Memory>> {
        self.weigh_by(rows, now, false)
    }

    /// Adds what [`Store::weigh_roughly`] left out.
    pub(in crate::store) fn complete(&self, memories: &mut [Memory], now: Timestamp) -> Result<()> {
        let catalog = self.index.catalog();
        let (kinds, thresholds) = (self.kinds(), self.thresholds());
        catalog.at_once(|| {
            for memory in memories {
                let Details { tags, properties } = match &memory.row.unindexed {
                    Some(details) => (**details).clone(),
                    None => Details {
                        tags: catalog.tags_of(memory.row.id)?,
                        properties: catalog
                            .properties_of(&[memory.row.id])?
                            .remove(&memory.row.id)
                            .unwrap_or_default(),
                    },
                };
                memory.said.tags.clone_from(&tags);
                memory.tags = given_tags(tags, &properties);
                memory.state =
                    fold_with(&thresholds, &memory.said, &kinds.get(&memory.kind), &memory.usage, now);
            }
            Ok(())
        })
    }

    fn weigh_by(&self, rows: Vec<FileRow>, now: Timestamp, with_tags: bool) -> Result<Vec<Memory>> {
        let (kinds, thresholds) = (self.kinds(), self.thresholds());
        let catalog = self.index.catalog();
        let (mut tags, mut properties) = (HashMap::new(), HashMap::new());
        let few = rows.len() <= FEW;
        if few {
            let ids: Vec<FileId> = rows.iter().map(|row| row.id).collect();
            catalog.at_once(|| {
                for &id in ids.iter().filter(|_| with_tags) {
                    tags.insert(id, catalog.tags_of(id)?);
                }
                properties = catalog.properties_of(&ids)?;
                Ok(())
            })?;
        } else {
            tags = catalog.all_tags()?;
            catalog.each_properties(|file, map| drop(properties.insert(file, map)))?;
        }
        drop(catalog);
        let projection = self.projection()?;
        let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
            return Err(Error::internal("the ledger was not read"));
        };
        let weigh = |row: FileRow| {
            let details = Details {
                tags: tags.remove(&row.id).unwrap_or_default(),
                properties: properties.remove(&row.id).unwrap_or_default(),
            };
            let usage = ledger.usage(own_id(&row), row.path.as_str());
            memory_of(row, details, usage, (&kinds, &thresholds), with_tags, now)
        };
        Ok(rows.into_iter().map(weigh).collect())
    }

    /// Tells what all notes are worth now.
    pub(in crate::store) fn all_memories(&self, now: Timestamp) -> Result<Vec<Memory>> {
        // A statement of its own: the catalog is free again when it is weighed.
        let rows = self.index.catalog().select(&Filter::default())?;
        self.weigh(rows, now)
    }

    /// Says whether a memory was made as one: it lies in their folder, or, in the layout `memories`, is called as they are.
    pub(in crate::store) fn is_own(&self, memory: &Memory) -> bool {
        if self.config.vault.layout == Layout::Memories {
            return memory.row.path.stem().ends_with(&format!("-{}", memory.id));
        }
        let inside = memory.path.strip_prefix(self.config.memory.folder.trim_matches('/'));
        inside.is_some_and(|rest| rest.starts_with('/'))
    }

    pub(in crate::store) fn kind_of(&self, memory: &Memory) -> MemoryType {
        self.kinds().get(&memory.kind)
    }

    /// Finds one memory by any of its names.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn memory(&self, name: &str) -> Result<Memory> {
        let row = self.find(name)?;
        let found = self.weigh(vec![row], self.clock.now())?.pop();
        found.ok_or_else(|| Error::internal("a row vanished"))
    }

    /// Lists memories.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read; `Io` where the journal cannot.
    #[tracing::instrument(skip_all)]
    pub fn memories(&self, request: &MemoryListRequest) -> Result<Vec<Memory>> {
        let rows = self.index.catalog().select(&request.filter)?;
        let mut found = self.weigh(rows, self.clock.now())?;
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
    /// As [`Store::memories`].
    #[tracing::instrument(skip_all)]
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.memory_stats_among(&Filter::default())
    }

    /// As [`Store::memory_stats`], of the notes that pass a filter.
    ///
    /// # Errors
    /// As [`Store::memories`].
    pub fn memory_stats_among(&self, filter: &Filter) -> Result<MemoryStats> {
        let rows = self.index.catalog().select(filter)?;
        let memories = self.weigh(rows, self.clock.now())?;
        let own = memories.iter().filter(|memory| self.is_own(memory));
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
        let max_bytes = self.config.memory.max_bytes;
        let percent = if max_bytes == 0 { 0.0 } else { bytes as f64 / max_bytes as f64 * 100.0 };
        let context = self.context()?;
        let projection = self.projection()?;
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
            embedder: self.embedder_name(),
            pending: self.index.snapshot()?.pending,
            oldest: memories.iter().map(|memory| memory.created).min(),
            newest: memories.iter().map(|memory| memory.created).max(),
        })
    }

    /// Lists notes by the time at which they were made, around one of them: up to `window` before it and as many after.
    ///
    /// # Errors
    /// As [`Store::find`].
    #[tracing::instrument(skip_all)]
    pub fn timeline(&self, name: &str, window: usize) -> Result<TimelineReply> {
        self.timeline_among(name, window, &Filter::default())
    }

    /// As [`Store::timeline`], of the notes that pass a filter.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn timeline_among(&self, name: &str, window: usize, filter: &Filter) -> Result<TimelineReply> {
        let anchor = self.find(name)?;
        let rows = self.index.catalog().select(filter)?;
        let lies_there = |folder: &String, path: &NotePath| {
            path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        let is_among =
            |source: &Source| filter.folder.as_ref().is_none_or(|folder| lies_there(folder, &source.path));
        let mut rows = self.with_unseen(rows, is_among)?;
        self.sort_by_birth(&mut rows, false, |row| row)?;
        let at = rows.iter().position(|row| row.path == anchor.path).ok_or_else(|| {
            Error::not_found(format!("{} is in no list of notes", anchor.path))
                .with_hint("excluded files and attachments have no place in time")
        })?;
        let from = at.saturating_sub(window);
        let near: Vec<FileRow> =
            rows.into_iter().skip(from).take((at - from + 1).saturating_add(window)).collect();
        Ok(TimelineReply { anchor: at - from, memories: self.weigh(near, self.clock.now())? })
    }

    /// Writes down that notes were used; a failure is logged and harms nobody.
    pub(in crate::store) fn note_use<'a>(&self, rows: impl Iterator<Item = &'a FileRow>, by: &str) {
        let mut rows = rows.peekable();
        if rows.peek().is_none() || self.vault.is_read_only() {
            return;
        }
        let mut event = self.event_of("use", self.clock.now(), rows);
        event.more.insert("by".to_owned(), Value::from(by));
        if let Err(error) = self.journal().append_without_sync(&event) {
            tracing::debug!("a use is not written down: {error}");
        }
    }

    /// Writes down that the note at a path was read, which is a use; a failure is logged and harms nobody.
    pub fn used(&self, path: &str, by: &str) {
        match self.find(path) {
            Ok(row) => self.note_use(std::iter::once(&row), by),
            Err(error) => tracing::debug!("a use is not written down: {error}"),
        }
    }

    /// Writes down where used notes were moved by others, so that their uses go with them; a failure is logged.
    pub(in crate::store) fn note_moves(&self) {
        let moves = self.index.take_moves();
        if moves.is_empty() || self.vault.is_read_only() {
            return;
        }
        let journal = || -> Result<()> {
            let projection = self.projection()?;
            let is_known = |path: &NotePath| {
                projection.as_ref().is_some_and(|projection| {
                    !projection.ledger().usage(None, path.as_str()).events().is_empty()
                })
            };
            // What sidenote moved itself is known under its new path already.
            let files = moves.into_iter().filter(|(from, _)| is_known(from)).map(|(from, to)| TouchedFile {
                path: FileLocation::Vault(from),
                to: Some(FileLocation::Vault(to)),
                before: None,
                after: None,
            });
            let files: Vec<TouchedFile> = files.collect();
            drop(projection);
            if files.is_empty() {
                return Ok(());
            }
            self.journal().append(&Event { files, ..Event::new(OP_MOVED, self.clock.now()) })
        };
        if let Err(error) = journal() {
            tracing::warn!("uses of notes that were moved do not go with them: {error}");
        }
    }

    /// Votes for or against a note; gives its usefulness after that.
    ///
    /// # Errors
    /// As [`Store::find`]; `Io` where the journal cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn vote(&self, name: &str, useful: bool) -> Result<Memory> {
        let row = self.find(name)?;
        let mut event = self.event_of("vote", self.clock.now(), std::iter::once(&row));
        event.more.insert("useful".to_owned(), Value::from(useful));
        self.journal().append(&event)?;
        self.weigh_landed(row)
    }

    /// Gives what somebody works on, unless that has expired.
    ///
    /// # Errors
    /// `Io` where the journal cannot be read.
    pub fn context(&self) -> Result<Option<WorkContext>> {
        let now = self.clock.now();
        let projection = self.projection()?;
        let context = projection.as_ref().and_then(|projection| projection.ledger().context().cloned());
        Ok(context.filter(|context| context.is_current(now)))
    }

    /// Says what somebody works on, for some hours or until further notice.
    ///
    /// # Errors
    /// `Invalid` for an empty text or hours that are none; `Io` where the journal cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn set_context(&self, text: &str, hours: Option<f64>) -> Result<WorkContext> {
        let context = self.plan_context(text, hours)?;
        let mut event = Event::new("context", self.clock.now());
        event.more.insert("text".to_owned(), Value::from(context.text.as_str()));
        let until = context.expires_at;
        event.more.extend(until.map(|until| ("expires_at".to_owned(), Value::from(until.rfc3339()))));
        self.sign(&mut event);
        self.journal().append(&event)?;
        Ok(context)
    }

    /// Gives the context that [`Store::set_context`] would set, and sets nothing.
    ///
    /// # Errors
    /// `Invalid` for an empty text or hours that are none.
    pub fn plan_context(&self, text: &str, hours: Option<f64>) -> Result<WorkContext> {
        let mut text = text.to_owned();
        self.clean(&mut text);
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(
                Error::invalid("the context is empty").with_hint("say in a sentence what is being done")
            );
        }
        let now = self.clock.now();
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
    /// `Io` where the journal cannot be written.
    pub fn clear_context(&self) -> Result<bool> {
        let was_set = self.context()?.is_some();
        if was_set {
            let mut event = Event::new("context", self.clock.now());
            self.sign(&mut event);
            self.journal().append(&event)?;
        }
        Ok(was_set)
    }

    /// Makes an event that names notes: by their own id, where they have one, and by their path.
    pub(in crate::store) fn event_of<'a>(
        &self,
        op: &str,
        at: Timestamp,
        rows: impl Iterator<Item = &'a FileRow>,
    ) -> Event {
        let name = |row: &FileRow| {
            let path = row.path.as_str();
            if row.note_id == path_id(&row.path) {
                json!({ "path": path })
            } else {
                json!({ "id": row.note_id, "path": path })
            }
        };
        let mut event = Event::new(op, at);
        event.more.insert("notes".to_owned(), rows.map(name).collect());
        self.sign(&mut event);
        event
    }

    /// Lists what the journal knows of a note's weight and files, or of all, the newest first.
    ///
    /// # Errors
    /// As [`Store::find`]; `Io` where the journal cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn audit(&self, name: Option<&str>) -> Result<Vec<Event>> {
        let Some(name) = name else {
            let events = self.journal().events(crate::journal::reader::ReadOrder::NewestFirst)?;
            return events.filter(|event| !event.as_ref().is_ok_and(is_answer)).collect();
        };
        let row = self.find(name)?;
        let mut events = self.journal().history(&row.path)?;
        let names_it = |event: &Event| {
            let notes = event.more.get("notes").and_then(Value::as_array);
            notes.is_some_and(|notes| {
                notes.iter().any(|note| {
                    note.get("id").and_then(Value::as_str) == Some(&row.note_id)
                        || note.get("path").and_then(Value::as_str) == Some(row.path.as_str())
                })
            })
        };
        for event in self.journal().events(crate::journal::reader::ReadOrder::OldestFirst)? {
            let event = event?;
            if names_it(&event) {
                events.push(event);
            }
        }
        events.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
        Ok(events)
    }
}

/// Gives the id that a note says it has.
fn own_id(row: &FileRow) -> Option<&str> {
    (row.note_id != path_id(&row.path)).then_some(row.note_id.as_str())
}

/// Makes a memory of a row: with the tags and properties of the catalog, unless the row brings its own.
fn memory_of(
    row: FileRow,
    details: Details,
    usage: Usage,
    (kinds, thresholds): (&MemoryTypes, &Thresholds),
    with_tags: bool,
    now: Timestamp,
) -> Memory {
    let details = row.unindexed.as_deref().cloned().unwrap_or(details);
    // A note that says it was made in the future is as old as its file, or as new as can be.
    let made = if row.created > now { row.written.min(now) } else { row.created };
    let own_tags = details.tags.clone();
    let given = if with_tags { given_tags(own_tags, &details.properties) } else { own_tags };
    let said = said(&details.properties, details.tags, made);
    let kind = row.note_type.clone().unwrap_or_else(|| GENERAL.to_owned());
    Memory {
        id: row.note_id.clone(),
        path: row.path.as_str().to_owned(),
        title: row.title.clone(),
        tags: given,
        created: usage.creation_order(row.created).0,
        updated: row.updated,
        superseded_by: said.superseded_by.clone(),
        state: fold_with(thresholds, &said, &kinds.get(&kind), &usage, now),
        kind,
        usage,
        said,
        row,
    }
}

/// A context lasts so many hours at most: a hundred years.
const LONGEST_CONTEXT: f64 = 876_600.0;

/// So many notes are looked up one by one; more are read in one pass.
const FEW: usize = 200;

/// Reads what a note's properties say of its weight.
fn said(properties: &Map<String, Value>, tags: Vec<String>, created: Timestamp) -> MemoryProperties {
    let get = |name: &str| properties.iter().find(|(own, _)| key(own) == name).map(|(_, value)| value);
    let number = |name: &str| match get(name)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let is_true = |name: &str| match get(name) {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    };
    let text = |name: &str| get(name).and_then(Value::as_str).map(str::to_owned);
    MemoryProperties {
        importance: number("importance").filter(|number| number.is_finite()),
        is_garbled: get("importance").is_some_and(|value| !value.is_null())
            && !number("importance").is_some_and(f64::is_finite),
        pinned: is_true("pinned"),
        archived: text("tier").is_some_and(|tier| tier.eq_ignore_ascii_case("archive")),
        forgotten: is_true("forgotten"),
        superseded_by: text("superseded_by"),
        usefulness: number("usefulness").map_or(0, |number| number as i64),
        tags,
        created,
    }
}
