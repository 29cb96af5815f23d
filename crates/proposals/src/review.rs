//! The review of a week: what was written by whom, what was recalled most, what fades, and what waits.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_journal::event::OP_MOVED;
use sidenote_journal::reader::ReadOrder;
use sidenote_memory::memory_properties::MemoryProperties;
use sidenote_memory::state::fold_with;
use sidenote_memory::tier::Tier;
use sidenote_open_vault::caller::actor_of;
use sidenote_open_vault::sync::IndexSync;
use sidenote_query::memory_weights::{Memory, MemoryWeights};

use crate::Proposals;
use crate::decide::ProposalsRequest;
use crate::proposal::ProposalItem;

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// The most notes of each list, which a person reads in a minute.
const MOST: usize = 15;

/// The author of changes that no agent made.
const PERSON: &str = "you";

/// What one author wrote in the week.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WrittenBy {
    /// The agent or person; `you` for the command line and the page.
    pub by: String,
    /// The number of operations.
    pub operations: usize,
    /// The paths of the notes that were created.
    pub created: Vec<String>,
    /// The paths of the notes that were changed.
    pub changed: Vec<String>,
    /// The paths of the notes that were removed.
    pub removed: Vec<String>,
}

/// A memory with the number of times that it was used in the week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsedMemory {
    /// The path of the note.
    pub path: String,
    /// The title of the note.
    pub title: String,
    /// The number of uses in the week.
    pub uses: usize,
}

/// A memory that lost its tier in the week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FadingMemory {
    /// The path of the note.
    pub path: String,
    /// The title of the note.
    pub title: String,
    /// The tier at the beginning of the week.
    pub from: Tier,
    /// The tier at its end.
    pub to: Tier,
}

/// The review of a week.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewReply {
    /// The beginning of the week.
    pub from: Timestamp,
    /// The first instant after the week.
    pub until: Timestamp,
    /// What was written, by author. Who wrote most comes first.
    pub written: Vec<WrittenBy>,
    /// The memories that were used most.
    pub recalled: Vec<UsedMemory>,
    /// The memories that lost their tier.
    pub fading: Vec<FadingMemory>,
    /// How many did.
    pub faded: usize,
    /// The number of proposals that wait now.
    pub waiting: usize,
    /// The first of them.
    pub proposals: Vec<ProposalItem>,
}

impl Proposals<'_> {
    /// Reviews the week, from Monday to Sunday, that a time lies in; without one, the last seven days.
    ///
    /// # Errors
    /// `Io` if the journal cannot be read; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn review(&self, week: Option<Timestamp>) -> Result<ReviewReply> {
        IndexSync::of(self.core).refresh()?;
        let now = self.core.clock.now();
        let (from, until) = week.map_or_else(
            // What happened just now belongs to the week.
            || (Timestamp::from_millis(now.millis() - 7 * DAY), Timestamp::from_millis(now.millis() + 1)),
            |day| {
                let days = i64::from(day.date().weekday().to_monday_zero_offset());
                let start = Timestamp::start_of(day.date()).unwrap_or(day);
                let from = Timestamp::from_millis(start.millis() - days * DAY);
                (from, Timestamp::from_millis(from.millis() + 7 * DAY))
            },
        );
        let (recalled, mut fading) =
            self.weighed(from, until.min(Timestamp::from_millis(now.millis() + 1)))?;
        let faded = fading.len();
        fading.truncate(MOST);
        let waiting = self.list(ProposalsRequest::default())?;
        let proposals = waiting.proposals.into_iter().take(MOST).collect();
        Ok(ReviewReply {
            from,
            until,
            written: self.written(from, until)?,
            recalled,
            fading,
            faded,
            waiting: waiting.waiting,
            proposals,
        })
    }

    /// Collects what was written in a period, by author.
    fn written(&self, from: Timestamp, until: Timestamp) -> Result<Vec<WrittenBy>> {
        #[derive(Default)]
        struct Paths {
            operations: usize,
            created: BTreeSet<String>,
            changed: BTreeSet<String>,
            removed: BTreeSet<String>,
        }
        let mut authors: BTreeMap<String, Paths> = BTreeMap::new();
        // What was undone, and not done again, was not written.
        let mut undone: HashSet<String> = HashSet::new();
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            if event.at < from {
                break;
            }
            if undone.contains(&event.id) {
                continue;
            }
            if let Some(id) = event.undoes {
                undone.insert(id);
                continue;
            }
            if event.at >= until || event.op == OP_MOVED || event.files.is_empty() {
                continue;
            }
            let author = authors.entry(actor_of(&event).unwrap_or_else(|| PERSON.to_owned())).or_default();
            author.operations += 1;
            for file in &event.files {
                let path = file.end().to_string();
                let list = match (file.before.is_none(), file.end().in_vault().is_some()) {
                    (true, true) => &mut author.created,
                    (false, true) => &mut author.changed,
                    (_, false) => &mut author.removed,
                };
                list.insert(path);
            }
        }
        let mut written: Vec<WrittenBy> = authors
            .into_iter()
            .map(|(by, paths)| WrittenBy {
                by,
                operations: paths.operations,
                // A note that was created and then changed is new.
                changed: paths.changed.difference(&paths.created).cloned().collect(),
                created: paths.created.into_iter().collect(),
                removed: paths.removed.into_iter().collect(),
            })
            .collect();
        written.sort_by(|one, other| other.operations.cmp(&one.operations).then(one.by.cmp(&other.by)));
        Ok(written)
    }

    /// Finds the memories that were used most in a period, and those that lost their tier in it.
    fn weighed(&self, from: Timestamp, until: Timestamp) -> Result<(Vec<UsedMemory>, Vec<FadingMemory>)> {
        let weights = MemoryWeights::of(self.core);
        let (kinds, thresholds) = (weights.kinds(), weights.thresholds());
        let memories = weights.all_memories(until)?;
        let uses = |memory: &Memory| memory.usage.uses().filter(|at| *at >= from && *at < until).count();
        let mut used: Vec<UsedMemory> = memories
            .iter()
            .map(|memory| UsedMemory {
                path: memory.path.clone(),
                title: memory.title.clone(),
                uses: uses(memory),
            })
            .filter(|used| used.uses > 0)
            .collect();
        used.sort_by(|one, other| other.uses.cmp(&one.uses).then(one.path.cmp(&other.path)));
        used.truncate(MOST);
        let tier_before = |memory: &Memory| {
            let said = MemoryProperties { archived: false, ..memory.said.clone() };
            fold_with(&thresholds, &said, &kinds.get(&memory.kind), &memory.usage, from).tier
        };
        let is_concerned = |memory: &&Memory| {
            weights.is_own(memory) && memory.said.created < from && !memory.state.forgotten
        };
        let mut fading: Vec<FadingMemory> = memories
            .iter()
            .filter(is_concerned)
            .map(|memory| FadingMemory {
                path: memory.path.clone(),
                title: memory.title.clone(),
                from: tier_before(memory),
                to: memory.state.tier,
            })
            .filter(|fading| fading.to > fading.from)
            .collect();
        fading.sort_by(|one, other| (one.from, other.to, &one.path).cmp(&(other.from, one.to, &other.path)));
        Ok((used, fading))
    }
}
