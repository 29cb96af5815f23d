//! Runs maintenance: tier changes, write-back of importance, eviction, and compaction of the journal.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::{FileRow, Filter, path_id};
use sidenote_change::move_files::add_edits;
use sidenote_change::naming::number;
use sidenote_change::operation::ChangeReply;
use sidenote_change::{Changes, Planner};
use sidenote_config::{Layout, UseRecording};
use sidenote_journal::event::Event;
use sidenote_journal::folders::LocalLock;
use sidenote_journal::reader::ReadOrder as Reading;
use sidenote_markdown::edit::{ChangeSet, Content, Edit, FileChange, FileLocation, apply, single_edit};
use sidenote_markdown::frontmatter::edit::{Refusal, set};
use sidenote_markdown::path::NotePath;
use sidenote_memory::eviction::{EvictionCandidate, choose};
use sidenote_memory::memory_properties::MemoryProperties;
use sidenote_memory::state::{DEFAULT_IMPORTANCE, decay_time, fold_with};
use sidenote_memory::tier::Tier;
use sidenote_memory::types::GENERAL;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::source::Source;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::{Memory, MemoryWeights, Weighed};
use sidenote_vault::write_lock::WriteLock;

use crate::Maintenance;

/// The least time between two checks whether a backup is due, in milliseconds.
pub const RETRY: i64 = 600_000;

/// The largest difference, in milliseconds, between the creation time of a note and the event of its creation. The time
/// in a note has whole seconds, and many notes can be created at once.
const AROUND: i64 = 3_600_000;

/// Properties with the creation time.
const DATES: &[&str] = &["created_at", "created", "date"];

/// The largest number of notes in one event.
const NAMED: usize = 500;

/// The largest number of notes that one operation moves to the trash.
const BATCH: usize = 200;

/// A note with another tier than the recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierChange {
    /// The id of the note.
    pub id: String,
    /// The path of the note.
    pub path: String,
    /// The recorded tier.
    pub from: Tier,
    /// The current tier.
    pub to: Tier,
}

/// The options of maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaintainRequest {
    /// Whether the current importance is written into frontmatter.
    pub write_back: bool,
    /// Whether it runs even if the last run was a short time ago.
    pub force: bool,
    /// Whether to plan only.
    pub dry_run: bool,
    /// Whether a run without changes is not recorded.
    pub quiet: bool,
}

/// The result of maintenance, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MaintainReply {
    /// Whether tiers were checked. They are not if the last run was a short time ago.
    pub ran: bool,
    /// The time of the run before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// The notes with a new tier.
    pub tiers: Vec<TierChange>,
    /// How many of them were HOT and are COLD or ARCHIVE now.
    #[serde(rename = "hotDemoted")]
    pub hot_demoted: usize,
    /// How many of them were WARM and are COLD or ARCHIVE now.
    #[serde(rename = "warmDemoted")]
    pub warm_demoted: usize,
    /// How many of them were COLD and are WARM now.
    pub promoted: usize,
    /// The number of months of the journal that were compacted.
    pub compacted: usize,
    /// The evicted memories, if the settings limit their size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted: Option<CleanupReply>,
    /// The change of frontmatter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeReply>,
}

/// The result of an eviction, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CleanupReply {
    /// The number of notes that were moved to the trash.
    pub evicted_count: usize,
    /// Their size in bytes.
    pub freed_bytes: u64,
    /// The size of all memories before, in bytes.
    pub bytes: u64,
    /// The limit of the size, in bytes.
    pub max_bytes: u64,
    /// The number of operations, which is the count for `undo`.
    pub operations: usize,
    /// The former paths of the notes.
    pub evicted: Vec<String>,
    /// The paths of the notes in the trash.
    pub trashed: Vec<String>,
}

/// The notes with a written importance, by its bits, the uses that have not taken effect yet, and the time for which the notes
/// had not been used, in milliseconds.
pub(crate) type Written = BTreeMap<(u64, u8, i64), Vec<FileRow>>;

impl Maintenance<'_> {
    /// Records which notes changed their tier since the last run. Also writes importance into frontmatter if requested,
    /// evicts memories if the settings limit their size, and compacts old months of the journal.
    ///
    /// # Errors
    /// `Conflict` if another process writes; `Io` if the journal or the notes cannot be written.
    #[tracing::instrument(skip_all)]
    pub fn maintain(&self, request: MaintainRequest) -> Result<MaintainReply> {
        IndexSync::of(self.core).refresh()?;
        let now = self.core.clock.now();
        let mut reply = if request.dry_run {
            self.look_at_tiers(request, None, now)?
        } else {
            let lock = self.core.journal().lock_local()?;
            self.look_at_tiers(request, Some(&lock), now)?
        };
        if request.write_back {
            let plan = |lock: Option<&WriteLock>| {
                let (plan, written) = self.plan_write_back(now)?;
                // The event comes first: it has no effect until the note has the importance.
                if lock.is_some() {
                    self.note_written(written, now)?;
                }
                Ok(plan)
            };
            reply.change = Some(Changes::of(self.core).apply_planned(plan, request.dry_run)?);
        }
        if self.core.config.memory.evict {
            let evicted = self.cleanup(false, request.dry_run)?;
            reply.evicted = Some(evicted).filter(|evicted| evicted.evicted_count > 0);
        }
        Ok(reply)
    }

    /// Returns the interval of maintenance in milliseconds.
    pub fn interval(&self) -> i64 {
        i64::from(self.core.config.memory.maintain_hours.max(1)) * 3_600_000
    }

    fn look_at_tiers(
        &self,
        request: MaintainRequest,
        lock: Option<&LocalLock>,
        now: Timestamp,
    ) -> Result<MaintainReply> {
        let last =
            self.core.projection()?.as_ref().and_then(|projection| projection.ledger().last_maintained());
        // A time in the future was written with a wrong clock.
        let interval = self.interval();
        let is_due = |last: Timestamp| !(0..interval).contains(&(now.millis() - last.millis()));
        let ran = request.force || last.is_none_or(is_due);
        let mut reply = MaintainReply { ran, last, ..MaintainReply::default() };
        if !ran {
            return Ok(reply);
        }
        let rows = self.core.index.catalog().select(&Filter::default())?;
        let changes = self.tier_changes(&rows, last, now)?;
        let mut events = Vec::new();
        let mut steps: BTreeMap<(Tier, Tier), Vec<&FileRow>> = BTreeMap::new();
        for (row, from, to) in &changes {
            steps.entry((*from, *to)).or_default().push(row);
        }
        for ((from, to), rows) in steps {
            match (from, to) {
                (Tier::Hot, Tier::Cold | Tier::Archive) => reply.hot_demoted += rows.len(),
                (Tier::Warm, Tier::Cold | Tier::Archive) => reply.warm_demoted += rows.len(),
                (Tier::Cold, Tier::Warm) => reply.promoted += rows.len(),
                _ => {}
            }
            for rows in rows.chunks(NAMED) {
                let op = if to < from { "promote" } else { "demote" };
                let mut event = Calls::of(self.core).event_of(op, now, rows.iter().copied());
                event.more.insert("from".to_owned(), Value::from(from.name()));
                event.more.insert("to".to_owned(), Value::from(to.name()));
                events.push(event);
            }
        }
        let change = |(row, from, to): &(&FileRow, Tier, Tier)| TierChange {
            id: row.note_id.clone(),
            path: row.path.to_string(),
            from: *from,
            to: *to,
        };
        reply.tiers = changes.iter().map(change).collect();
        let Some(lock) = lock else { return Ok(reply) };
        if !events.is_empty() || !request.quiet {
            let mut event = Event::new("maintain", now);
            Calls::of(self.core).sign(&mut event);
            events.push(event);
            self.core.journal().append_all(&events)?;
        }
        if self.core.config.memory.uses == UseRecording::Shared {
            self.core.journal().share_uses(lock, now)?;
        }
        reply.compacted = self.core.journal().compact(lock, now)?;
        Ok(reply)
    }

    /// Finds the notes with another tier than the recorded one. A note without a recorded tier is taken to have had the
    /// tier of its age and use at the last run. A note that was created after the journal began is taken to have been
    /// HOT. For an older note no change is reported. Returns each row with the recorded tier and the tier that the note
    /// has now.
    fn tier_changes<'a>(
        &self,
        rows: &'a [FileRow],
        last: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Vec<(&'a FileRow, Tier, Tier)>> {
        let weights = MemoryWeights::of(self.core);
        let (kinds, thresholds) = (weights.kinds(), weights.thresholds());
        let weighed = weights.weigh_all(rows, now)?;
        let begin =
            self.core.projection()?.as_ref().and_then(|projection| projection.ledger().first_event_at());
        let before = |row: &FileRow, note: Weighed| {
            let then = match last {
                Some(last) if note.said.created <= last => last,
                _ if begin.is_some_and(|begin| note.said.created.millis() >= begin.millis() - AROUND) => {
                    return Tier::Hot;
                }
                _ => return note.state.tier,
            };
            let said = MemoryProperties { pinned: false, archived: false, ..note.said };
            let kind = kinds.get(row.note_type.as_deref().unwrap_or(GENERAL));
            fold_with(&thresholds, &said, &kind, &note.usage, then).tier
        };
        let found = rows.iter().zip(weighed).map(|(row, note)| {
            let to = note.state.tier;
            (row, note.usage.tier().unwrap_or_else(|| before(row, note)), to)
        });
        Ok(found.filter(|(_, from, to)| from != to).collect())
    }

    /// Plans to write the current importance into notes that have an importance, and into memories. Returns the plan
    /// and the written values. A note without a creation time gets one, because the time of its file changes.
    fn plan_write_back(&self, now: Timestamp) -> Result<(ChangeSet, Written)> {
        let view = View::new(self.core)?;
        let memories = MemoryWeights::of(self.core).all_memories(now)?;
        let mut plan = ChangeSet::new("importance");
        let mut written = Written::new();
        for memory in &memories {
            let given = memory.said.importance;
            let is_told =
                given.is_some() || (MemoryWeights::of(self.core).is_own(memory) && !memory.said.is_garbled);
            let is_same = (memory.state.importance - given.unwrap_or(DEFAULT_IMPORTANCE)).abs() < 0.5;
            if !is_told || is_same || memory.said.is_protected() {
                continue;
            }
            let source = view.source(&memory.row.path)?;
            match with_importance(&source, memory) {
                Ok(edits) => add_edits(&mut plan, &source, None, edits, Vec::new()),
                Err(refusal) => {
                    plan.remarks.push(refusal.remark(source.path.clone(), &source.text));
                    continue;
                }
            }
            // A note that is not changed has a remark that says why.
            let from = Some(FileLocation::Vault(source.path.clone()));
            if plan.files.last().is_none_or(|change| change.from != from) {
                continue;
            }
            let key = (memory.state.importance.to_bits(), memory.state.tenths, 0);
            written.entry(key).or_default().push(memory.row.clone());
        }
        Ok((plan, written))
    }

    /// Records the importance that was written into notes, so that earlier uses do not count again.
    pub(super) fn note_written(&self, written: Written, now: Timestamp) -> Result<()> {
        let mut events = Vec::new();
        for ((importance, tenths, idle), rows) in written {
            for rows in rows.chunks(NAMED) {
                let mut event = Calls::of(self.core).event_of("importance", now, rows.iter());
                event.more.insert("importance".to_owned(), Value::from(f64::from_bits(importance)));
                event.more.insert("tenths".to_owned(), Value::from(tenths));
                event.more.extend((idle > 0).then(|| ("idle".to_owned(), Value::from(idle))));
                events.push(event);
            }
        }
        self.core.journal().append_all(&events)
    }

    /// Records the importance that imported notes had in the program from which they come, so that its decay goes on
    /// from there, instead of starting again at their creation. An importance above the one in the frontmatter was gained
    /// by uses, which are not imported.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read; `Io` if the journal cannot be written.
    pub fn note_imported<'n>(
        &self,
        notes: impl Iterator<Item = (&'n NotePath, f64)>,
        now: Timestamp,
    ) -> Result<()> {
        let (mut rows, mut had) = (Vec::new(), HashMap::new());
        for (path, importance) in notes {
            rows.extend(Lookup::of(self.core).row_at(path.as_str())?);
            had.insert(path.as_str(), importance);
        }
        let kinds = MemoryWeights::of(self.core).kinds();
        let mut written = Written::new();
        for memory in MemoryWeights::of(self.core).weigh(rows, now)? {
            let Some(&importance) = had.get(memory.path.as_str()) else { continue };
            let is_same = (memory.state.importance - importance).abs() < 0.5;
            let given = memory.said.importance.unwrap_or(DEFAULT_IMPORTANCE);
            let idle = decay_time(given, importance, &kinds.get(&memory.kind));
            if let Some(idle) = idle.filter(|_| !is_same && !memory.said.is_protected()) {
                written.entry((given.to_bits(), 0, idle)).or_default().push(memory.row);
            }
        }
        self.note_written(written, now)
    }

    /// Moves the least used memories to the trash until 85 % of the limit is used, if they exceed it; with `force`,
    /// moves 15 % of them in any case. Pinned and protected memories and those of this session stay.
    ///
    /// # Errors
    /// `Conflict` if another process writes; `Io` if the notes cannot be moved.
    #[tracing::instrument(skip_all)]
    pub fn cleanup(&self, force: bool, dry_run: bool) -> Result<CleanupReply> {
        IndexSync::of(self.core).refresh()?;
        let mut memories = MemoryWeights::of(self.core).all_memories(self.core.clock.now())?;
        memories.retain(|memory| MemoryWeights::of(self.core).is_own(memory));
        let ours = self.made_in_session()?;
        let kinds = MemoryWeights::of(self.core).kinds();
        let candidates: Vec<EvictionCandidate> = memories
            .iter()
            .map(|memory| EvictionCandidate {
                bytes: memory.row.size,
                last: memory.state.last_use.map_or(memory.said.created, |last| last.max(memory.said.created)),
                created: memory.said.created,
                path: memory.path.clone(),
                stays: memory.state.protected
                    || kinds.get(&memory.kind).protected
                    || ours.contains(&memory.path),
            })
            .collect();
        let max_bytes = self.core.config.memory.max_bytes;
        let chosen = choose(&candidates, max_bytes, force);
        let going: Vec<&Memory> = chosen.into_iter().filter_map(|at| memories.get(at)).collect();
        let mut reply = CleanupReply {
            bytes: candidates.iter().map(|candidate| candidate.bytes).sum(),
            max_bytes,
            ..CleanupReply::default()
        };
        for batch in going.chunks(BATCH) {
            let done = Changes::of(self.core).apply_planned(|_| self.plan_trash("evict", batch), dry_run)?;
            reply.operations += usize::from(done.applied);
            for change in &done.plan.files {
                let gone = batch.iter().find(|memory| {
                    change.from.as_ref().and_then(FileLocation::in_vault) == Some(&memory.row.path)
                });
                reply.freed_bytes += gone.map_or(0, |memory| memory.row.size);
                reply.trashed.extend(change.to.iter().map(ToString::to_string));
                reply.evicted.extend(gone.map(|memory| memory.path.clone()));
            }
        }
        reply.evicted_count = reply.evicted.len();
        Ok(reply)
    }

    fn plan_trash(&self, operation: &str, batch: &[&Memory]) -> Result<ChangeSet> {
        let view = View::new(self.core)?;
        let mut plan = ChangeSet::new(operation);
        let mut taken = BTreeSet::new();
        for memory in batch {
            let path: &NotePath = &memory.row.path;
            if !view.holds(path)? {
                continue;
            }
            let to = Planner::of(self.core).free_in_trash(path, &taken)?;
            taken.insert(to.clone());
            plan.files.push(FileChange {
                from: Some(FileLocation::Vault(path.clone())),
                to: Some(FileLocation::Trash(to)),
                before: None,
                content: Content::Keep,
            });
        }
        Ok(plan)
    }

    /// Moves the notes that sidenote created in the folder of memories to the trash, and returns their number. Notes
    /// that others created or moved there stay, whatever their ids.
    ///
    /// # Errors
    /// `Conflict` if another process writes; `Io` if the notes cannot be moved.
    #[tracing::instrument(skip_all)]
    pub fn discard_memories(&self) -> Result<usize> {
        IndexSync::of(self.core).refresh()?;
        let mut memories = MemoryWeights::of(self.core).all_memories(self.core.clock.now())?;
        let made = self.made_as_memories()?;
        // Notes by sidenote have an id. Without one, another program may have created the note at this path.
        let says_its_id = |memory: &Memory| memory.id != path_id(&memory.row.path);
        memories.retain(|memory| {
            MemoryWeights::of(self.core).is_own(memory) && says_its_id(memory) && made.contains(&memory.path)
        });
        let all: Vec<&Memory> = memories.iter().collect();
        let mut gone = 0;
        for batch in all.chunks(BATCH) {
            gone += Changes::of(self.core)
                .apply_planned(|_| self.plan_trash("delete", batch), false)?
                .plan
                .files
                .len();
        }
        Ok(gone)
    }

    /// Lists the notes that were created in the folder of memories according to the journal, by their current paths.
    fn made_as_memories(&self) -> Result<HashSet<String>> {
        let folder = self.core.config.memory.folder.trim_matches('/');
        let is_flat = self.core.config.vault.layout == Layout::Memories || folder.is_empty();
        let is_there = |place: &FileLocation| {
            let inside = place.in_vault().and_then(|path| path.as_str().strip_prefix(folder));
            place.in_vault().is_some() && (is_flat || inside.is_some_and(|rest| rest.starts_with('/')))
        };
        let mut made: HashSet<FileLocation> = HashSet::new();
        for event in self.core.journal().events(Reading::OldestFirst)?.of_changes() {
            let event = event?;
            for folder in &event.folders {
                let inside = |place: &FileLocation| {
                    let rest = place.in_vault()?.as_str().strip_prefix(folder.from.as_str())?;
                    let to = rest.starts_with('/').then(|| format!("{}{rest}", folder.to))?;
                    NotePath::parse(&to).ok().map(FileLocation::Vault)
                };
                let moved: Vec<(FileLocation, FileLocation)> =
                    made.iter().filter_map(|place| Some((place.clone(), inside(place)?))).collect();
                for (from, to) in moved {
                    made.remove(&from);
                    made.insert(to);
                }
            }
            for file in &event.files {
                let is_new = file.before.is_none() && file.to.is_none() && file.after.is_some();
                if is_new && event.undoes.is_none() && is_there(&file.path) {
                    made.insert(file.path.clone());
                } else if (file.to.is_some() || file.after.is_none()) && made.remove(&file.path) {
                    // A note at the path of one that was removed permanently is another note.
                    made.extend(file.to.clone());
                }
            }
        }
        Ok(made.into_iter().filter_map(|place| Some(place.in_vault()?.as_str().to_owned())).collect())
    }

    /// Lists the notes that this session created or changed.
    fn made_in_session(&self) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let Some(session) = &self.core.session else { return Ok(found) };
        for event in self.core.journal().events(Reading::NewestFirst)?.of_changes() {
            let event = event?;
            if event.more.get("session").and_then(Value::as_str) == Some(session) {
                let ends = event.files.iter().map(|file| file.to.as_ref().unwrap_or(&file.path));
                found.extend(ends.filter_map(FileLocation::in_vault).map(ToString::to_string));
            }
        }
        Ok(found)
    }
}

/// Plans the text of a note with its current importance and its creation time.
fn with_importance(source: &Source, memory: &Memory) -> std::result::Result<Vec<Edit>, Refusal> {
    let worth = set(&source.text, "importance", &number(memory.state.importance))?;
    let front = source.note.frontmatter.as_ref();
    let is_dated = front.is_some_and(|front| DATES.iter().any(|name| front.get(name).is_some()));
    let Some(text) =
        apply(source.text.as_bytes(), &worth).ok().and_then(|bytes| String::from_utf8(bytes).ok())
    else {
        return Ok(worth);
    };
    if is_dated {
        return Ok(worth);
    }
    let dated = set(&text, "created_at", &Value::from(memory.created.rfc3339()))?;
    let both = apply(text.as_bytes(), &dated).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(both.and_then(|both| single_edit(&source.text, &both)).into_iter().collect())
}
