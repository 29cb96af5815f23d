//! Computes the state of notes as memories: importance, tier and uses.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{Details, FileId, FileRow, Filter, path_id};
use sidenote_config::{Layout, UseRecording};
use sidenote_index::Snapshot;
use sidenote_journal::projection::Projection;
use sidenote_markdown::path::{has_key, key};
use sidenote_markdown::tag_conversion;
use sidenote_memory::memory_properties::MemoryProperties;
use sidenote_memory::recall::{Quotas, RecallGroup};
use sidenote_memory::state::{MemoryState, fold_with};
use sidenote_memory::tier::Tier;
use sidenote_memory::tier_rule::{Thresholds, tier_at};
use sidenote_memory::types::{GENERAL, MemoryType, MemoryTypes};
use sidenote_memory::usage::{EventId, Usage};
use sidenote_open_vault::Core;
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::note_columns::{Creation, NoteColumns, NoteEntry};
use sidenote_sets::file_set::FileSet;

/// A note as a memory, with its state.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// The note's id.
    pub id: String,
    /// The path of the note.
    pub path: String,
    /// The note's title.
    pub title: String,
    /// The type of the memory.
    #[serde(rename = "type")]
    pub kind: String,
    /// The tags of the note.
    pub tags: Vec<String>,
    /// When the note was created.
    pub created: Timestamp,
    /// When the note was last changed.
    pub updated: Timestamp,
    /// The current state.
    #[serde(flatten)]
    pub state: MemoryState,
    /// The memory that replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The note in the index.
    #[serde(skip)]
    pub row: FileRow,
    /// What the properties of the note say.
    #[serde(skip)]
    pub said: MemoryProperties,
    /// The uses of the memory.
    #[serde(skip)]
    pub usage: Usage,
}

impl Memory {
    /// Returns the importance in the frontmatter, before decay.
    pub fn given_importance(&self) -> Option<f64> {
        self.said.importance
    }

    /// Lists the days on which the memory was used, oldest first, as `2026-11-21`.
    pub fn use_days(&self) -> Vec<String> {
        let days: BTreeSet<String> = self.usage.uses().map(Timestamp::day).collect();
        days.into_iter().collect()
    }
}

/// The thresholds of tiers in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TierThresholds {
    /// The hours for which a new note is HOT.
    pub hot_hours: i64,
    /// The fewest uses that make a note WARM.
    pub warm_uses: usize,
    /// The fewest days with a use that make it WARM.
    pub warm_use_days: usize,
    /// The days after its last use for which it is WARM.
    pub warm_days: i64,
}

impl TierThresholds {
    /// Reads the thresholds that the settings give.
    pub fn of(thresholds: &Thresholds) -> Self {
        Self {
            hot_hours: thresholds.hot / 3_600_000,
            warm_uses: thresholds.warm_uses,
            warm_use_days: thresholds.warm_days,
            warm_days: thresholds.warm / 86_400_000,
        }
    }
}

impl Memory {
    /// Returns the creation time, with the order of memories created in the same second.
    pub fn creation_order(&self) -> (Timestamp, EventId) {
        self.usage.creation_order(self.row.created)
    }

    /// Returns whether the memory has a tag or a nested tag of it.
    pub fn has_tag(&self, tag: &str) -> bool {
        let wanted = key(tag.trim_start_matches('#'));
        let mut names = self.tags.iter().chain(&self.said.tags).map(|own| key(own));
        names.any(|own| own == wanted || own.starts_with(&format!("{wanted}/")))
    }
}

/// Lists the tags of a note in their original form, from its normalized tags and its properties.
fn given_tags(names: Vec<String>, properties: &Map<String, Value>) -> Vec<String> {
    let value = |name: &str| properties.iter().find(|(own, _)| has_key(own, name)).map(|(_, value)| value);
    tag_conversion::in_original_form(names, value("tags"), value(tag_conversion::ORIGINALS))
}

impl MemoryWeights<'_> {
    /// Returns the types of memories by the settings.
    pub fn kinds(&self) -> MemoryTypes {
        let known = self.core.config.types.iter().map(|(name, kind)| (name.clone(), *kind)).collect();
        MemoryTypes::new(known, &self.core.config.memory.classify)
    }

    /// Returns the thresholds of the tiers in the settings, for all types without their own.
    pub fn thresholds(&self) -> Thresholds {
        let tiers = &self.core.config.memory.tiers;
        Thresholds {
            hot: i64::from(tiers.hot_hours) * 3_600_000,
            warm_uses: tiers.warm_uses,
            warm_days: tiers.warm_use_days,
            warm: i64::from(tiers.warm_days) * 86_400_000,
        }
    }

    /// Returns the quotas of recall in the settings.
    pub fn shares(&self) -> Quotas {
        let budgets = &self.core.config.memory.budgets;
        [
            (RecallGroup::Pinned, usize::from(budgets.pinned)),
            (RecallGroup::Tier(Tier::Hot), usize::from(budgets.hot)),
            (RecallGroup::Tier(Tier::Warm), usize::from(budgets.warm)),
            (RecallGroup::Tier(Tier::Cold), usize::from(budgets.cold)),
        ]
    }

    /// Sorts notes by creation time, in descending order if `newest_first` is set. The journal decides between notes of
    /// the same second, otherwise their paths.
    pub fn sort_by_creation<T>(
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
        let projection = self.core.projection()?;
        let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
            return Err(Error::internal("the projection was not read"));
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

    /// Computes the current state of notes.
    pub fn weigh(&self, rows: Vec<FileRow>, now: Timestamp) -> Result<Vec<Memory>> {
        self.weigh_by(rows, now, true)
    }

    /// Computes the state of a note that was just written. If the journal cannot be read, the note counts as not used
    /// yet, because the change itself was committed.
    pub fn weigh_written(&self, row: FileRow) -> Result<Memory> {
        let now = self.core.clock.now();
        let weighed = match self.weigh(vec![row.clone()], now) {
            Ok(mut memories) => memories.pop(),
            Err(error) => {
                tracing::warn!("the uses of {} are not counted: {error}", row.path);
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
        weighed.ok_or_else(|| Error::internal("a row is missing"))
    }

    /// Computes the state of notes for scores, without importance and tags, which scores do not need.
    pub fn weigh_for_scores(&self, rows: Vec<FileRow>, now: Timestamp) -> Result<Vec<Memory>> {
        self.weigh_by(rows, now, false)
    }

    /// Adds importance and tags to memories from [`Self::weigh_for_scores`].
    pub fn complete(&self, memories: &mut [Memory], now: Timestamp) -> Result<()> {
        let catalog = self.core.index.catalog();
        let (kinds, thresholds) = (self.kinds(), self.thresholds());
        for memory in memories {
            let Details { tags, properties } = match &memory.row.unindexed {
                Some(details) => (**details).clone(),
                None => Details {
                    tags: catalog.tags_of(memory.row.id)?,
                    properties: catalog
                        .properties()
                        .of(&[memory.row.id])?
                        .remove(&memory.row.id)
                        .unwrap_or_default(),
                },
            };
            memory.said.tags.clone_from(&tags);
            memory.tags = given_tags(tags, &properties);
            memory.state = fold_with(&thresholds, &memory.said, &kinds.get(&memory.kind), &memory.usage, now);
        }
        Ok(())
    }

    fn weigh_by(&self, rows: Vec<FileRow>, now: Timestamp, with_tags: bool) -> Result<Vec<Memory>> {
        let (kinds, thresholds) = (self.kinds(), self.thresholds());
        let catalog = self.core.index.catalog();
        let (mut tags, mut properties) = (HashMap::new(), HashMap::new());
        let few = rows.len() <= FEW;
        if few {
            let ids: Vec<FileId> = rows.iter().map(|row| row.id).collect();
            for &id in ids.iter().filter(|_| with_tags) {
                tags.insert(id, catalog.tags_of(id)?);
            }
            properties = catalog.properties().of(&ids)?;
        } else {
            tags = catalog.all_tags()?;
            catalog.properties().each(|file, map| drop(properties.insert(file, map)))?;
        }
        drop(catalog);
        let projection = self.core.projection()?;
        let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
            return Err(Error::internal("the projection was not read"));
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

    /// Computes the current state of many notes, in their order, without what a list of memories shows. The properties of the
    /// vault are read one after another, so that few of them are in memory at a time.
    pub fn weigh_all(&self, rows: &[FileRow], now: Timestamp) -> Result<Vec<Weighed>> {
        let (kinds, thresholds) = (self.kinds(), self.thresholds());
        let places: HashMap<FileId, usize> = rows.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
        let mut said_of: Vec<MemoryProperties> =
            rows.iter().map(|row| said(&Map::new(), Vec::new(), Creation::of(row, now))).collect();
        {
            let catalog = self.core.index.catalog();
            let mut add = |file: FileId, map: Map<String, Value>| {
                if let Some(place) = places.get(&file).and_then(|at| said_of.get_mut(*at)) {
                    *place =
                        said(&map, Vec::new(), Creation { at: place.created, is_copied: place.is_copied });
                }
            };
            let mut tags = HashMap::new();
            if rows.len() <= FEW {
                let ids: Vec<FileId> = rows.iter().map(|row| row.id).collect();
                catalog.properties().of(&ids)?.into_iter().for_each(|(file, map)| add(file, map));
                for id in ids {
                    tags.insert(id, catalog.tags_of(id)?);
                }
            } else {
                tags = catalog.all_tags()?;
                catalog.properties().each(add)?;
            }
            for (file, at) in &places {
                if let Some(place) = said_of.get_mut(*at) {
                    place.tags = tags.remove(file).unwrap_or_default();
                }
            }
        }
        let projection = self.core.projection()?;
        let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
            return Err(Error::internal("the projection was not read"));
        };
        let weighed = rows.iter().zip(said_of).map(|(row, said)| {
            let usage = ledger.usage(own_id(row), row.path.as_str());
            let kind = kinds.get(row.note_type.as_deref().unwrap_or(GENERAL));
            let state = fold_with(&thresholds, &said, &kind, &usage, now);
            Weighed { said, usage, thresholds: thresholds.of_kind(&kind), state }
        });
        Ok(weighed.collect())
    }

    /// Returns the columns of all notes of a snapshot, which are read when they are first needed.
    pub fn columns(&self, snapshot: &Snapshot) -> Result<Arc<NoteColumns>> {
        let mut held = self.core.state.note_columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(columns) = held.as_ref().filter(|columns| columns.generation() == snapshot.generation) {
            return Ok(Arc::clone(columns));
        }
        let now = self.core.clock.now();
        let catalog = snapshot.catalog();
        let (rows, tags) = (catalog.select(&Filter::default())?, catalog.all_tags()?);
        let (mut archived, mut pinned) = (HashSet::new(), HashSet::new());
        catalog.properties().each(|file, map| {
            let said = said(&map, Vec::new(), Creation { at: now, is_copied: false });
            archived.extend(said.archived.then_some(file));
            pinned.extend(said.pinned.then_some(file));
        })?;
        drop(catalog);
        let columns = NoteColumns::new(snapshot.generation, rows, tags, (&archived, &pinned), own_id, now);
        Ok(Arc::clone(held.insert(Arc::new(columns))))
    }

    /// Returns the tier of each of some notes of columns, in their order.
    pub fn tiers_of<'n>(
        &self,
        columns: &NoteColumns,
        notes: impl Iterator<Item = &'n NoteEntry>,
    ) -> Result<Vec<Tier>> {
        let (now, thresholds, kinds) = (self.core.clock.now(), self.thresholds(), self.kinds());
        let mut of_kinds: HashMap<Option<u32>, Thresholds> = HashMap::new();
        let projection = self.core.projection()?;
        let Some(ledger) = projection.as_ref().map(Projection::ledger) else {
            return Err(Error::internal("the projection was not read"));
        };
        let tier = |note: &NoteEntry| {
            let (path, own_id) = note.names();
            let own = of_kinds.entry(note.kind).or_insert_with(|| {
                let kind = note.kind.map_or(GENERAL, |kind| columns.kinds.get(kind));
                thresholds.of_kind(&kinds.get(kind))
            });
            tier_at(own, &note.tier_properties(), &ledger.usage(own_id, path), now)
        };
        Ok(notes.map(tier).collect())
    }

    /// Returns the notes of a tier.
    pub fn files_in_tier(&self, snapshot: &Snapshot, tier: Tier) -> Result<FileSet> {
        let columns = self.columns(snapshot)?;
        let tiers = self.tiers_of(&columns, columns.all())?;
        Ok(columns.all().zip(tiers).filter(|(_, own)| *own == tier).map(|(note, _)| note.id).collect())
    }

    /// Computes the current state of all notes.
    pub fn all_memories(&self, now: Timestamp) -> Result<Vec<Memory>> {
        // This is a separate statement so that the catalog is released before the computation.
        let rows = self.core.index.catalog().select(&Filter::default())?;
        self.weigh(rows, now)
    }

    /// Returns whether a note was created as a memory: it is in the folder of memories, or its name has the form of the
    /// layout `memories`.
    pub fn is_own(&self, memory: &Memory) -> bool {
        self.is_row_of_own(&memory.row)
    }

    /// Returns whether the note of a row was created as a memory.
    pub fn is_row_of_own(&self, row: &FileRow) -> bool {
        if self.core.config.vault.layout == Layout::Memories {
            return row.path.stem().ends_with(&format!("-{}", row.note_id));
        }
        let inside = row.path.as_str().strip_prefix(self.core.config.memory.folder.trim_matches('/'));
        inside.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the type of a memory.
    pub fn kind_of(&self, memory: &Memory) -> MemoryType {
        self.kinds().get(&memory.kind)
    }

    /// Records uses of notes in the journal. A failure is only logged.
    pub fn note_use<'a>(&self, rows: impl Iterator<Item = &'a FileRow>, by: &str) {
        let rows: Vec<&FileRow> = rows.collect();
        let is_off = self.core.config.memory.uses == UseRecording::Off;
        if rows.is_empty() || is_off || self.core.vault.is_read_only() {
            return;
        }
        let mut event = Calls::of(self.core).event_of("use", self.core.clock.now(), rows.iter().copied());
        event.more.insert("by".to_owned(), Value::from(by));
        if by == RECALLED && self.core.session.is_some() {
            // A session gets a note again only if its content is another one.
            let states: Vec<String> = rows.iter().map(|row| content_state(row)).collect();
            event.more.insert("states".to_owned(), Value::from(states));
        }
        if let Err(error) = self.core.journal().append_without_sync(&event) {
            tracing::debug!("a use cannot be recorded: {error}");
        }
    }
}

/// The name of a recall in the events of uses.
pub const RECALLED: &str = "recall";

/// Returns a short text that differs for another content of a note: the beginning of its hash in hex.
pub fn content_state(row: &FileRow) -> String {
    let hash = row.hash.unwrap_or_default();
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the id that a note itself has, and that was not made from its path.
pub(crate) fn own_id(row: &FileRow) -> Option<&str> {
    (row.note_id != path_id(&row.path)).then_some(row.note_id.as_str())
}

/// What decides about the tier and the importance of one note, with both.
pub struct Weighed {
    /// What the properties of the note say.
    pub said: MemoryProperties,
    /// The uses in the journal.
    pub usage: Usage,
    /// The thresholds of the tiers for its type.
    pub thresholds: Thresholds,
    /// The importance and the tier that follow.
    pub state: MemoryState,
}

/// Creates a memory from a row, with tags and properties of the catalog unless the row has its own.
fn memory_of(
    row: FileRow,
    details: Details,
    usage: Usage,
    (kinds, thresholds): (&MemoryTypes, &Thresholds),
    with_tags: bool,
    now: Timestamp,
) -> Memory {
    let details = row.unindexed.as_deref().cloned().unwrap_or(details);
    let made = Creation::of(&row, now);
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

/// The largest number of notes that are looked up one by one. More are read in a single pass.
const FEW: usize = 200;

/// Reads the properties of a note that determine its state.
pub fn said(
    properties: &Map<String, Value>,
    tags: Vec<String>,
    Creation { at: created, is_copied }: Creation,
) -> MemoryProperties {
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
        is_copied,
    }
}

/// Computes the state of notes as memories, and records their uses.
#[derive(Debug, Clone, Copy)]
pub struct MemoryWeights<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> MemoryWeights<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
