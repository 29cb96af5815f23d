//! Owns what the journal tells of each note: uses, votes and checkpoints of importance, whatever names the note had.
//!
//! A ledger is a set of events, ordered by time and name: journals that were split, merged or compacted otherwise give
//! the same ledger.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::memory::context::WorkContext;
use crate::memory::tier::Tier;

/// The name of an event, a UUID as a number; those of version 7 sort by time.
pub type EventId = u128;

/// What somebody did with a note.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum UsageEventKind {
    /// It was read, recalled, or named in a handoff.
    Use,
    /// It was called useful or not, which is a use as well.
    Vote {
        /// Whether it was of use.
        useful: bool,
    },
    /// Its importance was written down in its frontmatter: what happened before is in that number.
    Checkpoint {
        /// The number.
        importance: f64,
        /// Uses that had not taken effect yet.
        tenths: u8,
    },
    /// It was seen to have come into this tier.
    Tier(Tier),
}

impl UsageEventKind {
    /// Says whether it counts as a use; a vote does.
    pub fn is_use(self) -> bool {
        matches!(self, Self::Use | Self::Vote { .. })
    }
}

/// Something that was done with one note at one time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UsageEvent {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The name of the event.
    pub id: EventId,
    /// What.
    pub what: UsageEventKind,
}

impl UsageEvent {
    fn order(&self) -> (i64, EventId) {
        (self.at, self.id)
    }
}

/// Which note an event means: by its own id, or by the path that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NoteRef {
    /// The `id` in its frontmatter, which stays.
    Id(String),
    /// A path in the vault, or in the trash.
    Path(String),
}

/// One thing of the journal that matters here.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryEvent {
    /// Something was done with a note.
    Usage(NoteRef, UsageEvent),
    /// Files and folders changed places, all at once.
    Moves {
        /// When, and the name of the event.
        at: i64,
        /// The name of the event.
        id: EventId,
        /// Former and new paths of files.
        files: Vec<(String, String)>,
        /// Former and new paths of folders.
        folders: Vec<(String, String)>,
        /// Paths at which something new was made.
        made: Vec<String>,
        /// Whether somebody else moved them, and it was only seen.
        is_seen: bool,
    },
    /// The tiers of all notes were looked at.
    Maintained {
        /// When.
        at: i64,
        /// The name of the event.
        id: EventId,
    },
    /// Somebody said what they work on, or that it is over.
    Context {
        /// When.
        at: i64,
        /// The name of the event.
        id: EventId,
        /// What; nothing where it is over.
        context: Option<WorkContext>,
    },
}

impl MemoryEvent {
    /// Gives what it is ordered by: its time, then its name.
    pub fn order(&self) -> (i64, EventId) {
        match self {
            Self::Usage(_, event) => event.order(),
            Self::Moves { at, id, .. } | Self::Maintained { at, id } | Self::Context { at, id, .. } => {
                (*at, *id)
            }
        }
    }
}

/// The place of an event among all: its time in milliseconds since 1970, and its name.
pub type EventOrder = (i64, EventId);

/// What was done with one note, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    events: Vec<UsageEvent>,
    /// When the note was made, where the journal tells.
    made: Option<EventOrder>,
}

impl Usage {
    /// Takes events in any order; those that are there twice count once.
    pub fn from_events(mut events: Vec<UsageEvent>) -> Self {
        events.sort_by_key(UsageEvent::order);
        events.dedup_by_key(|event| event.id);
        Self { events, made: None }
    }

    /// Gives when the note was made, as far as the journal tells. Times in frontmatter have whole seconds; where the two
    /// agree, this one is exact. Of several notes that were made in one millisecond the names of the events tell.
    pub fn creation_order(&self, created: Timestamp) -> (Timestamp, EventId) {
        let second = |millis: i64| millis.div_euclid(1000);
        match self.made.filter(|(at, _)| second(*at) == second(created.millis())) {
            Some((at, id)) => (Timestamp::from_millis(at), id),
            None => (created, 0),
        }
    }

    /// Gives the events, oldest first.
    pub fn events(&self) -> &[UsageEvent] {
        &self.events
    }

    /// Lists when the note was used, oldest first; a vote is a use.
    pub fn uses(&self) -> impl DoubleEndedIterator<Item = Timestamp> {
        self.events.iter().filter(|event| event.what.is_use()).map(|event| Timestamp::from_millis(event.at))
    }

    /// Gives the tier that was written down last.
    pub fn tier(&self) -> Option<Tier> {
        self.events.iter().rev().find_map(|event| match event.what {
            UsageEventKind::Tier(tier) => Some(tier),
            _ => None,
        })
    }

    /// Gives votes for the note less those against it.
    pub fn votes(&self) -> i64 {
        let value = |event: &UsageEvent| match event.what {
            UsageEventKind::Vote { useful } => 2 * i64::from(useful) - 1,
            _ => 0,
        };
        self.events.iter().map(value).sum()
    }

    fn merge(&mut self, other: Self) {
        let made = self.made.or(other.made);
        *self = Self { made, ..Self::from_events([std::mem::take(&mut self.events), other.events].concat()) };
    }
}

/// Where no more notes than this are made at once, it is kept when that was.
const FEW: usize = 16;

/// What the journal tells of every note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageLedger {
    notes: Vec<Usage>,
    subjects: HashMap<NoteRef, usize>,
    events: usize,
    /// What came last of all, and of moves.
    newest: (i64, EventId),
    newest_moves: (i64, EventId),
    /// When the first of all happened.
    oldest: Option<i64>,
    /// When tiers were looked at last.
    maintained: Option<i64>,
    /// From where somebody else moved a file to where.
    seen: HashMap<String, String>,
    context: Option<WorkContext>,
}

impl UsageLedger {
    /// Folds a journal, in whatever order it was read.
    pub fn fold(mut events: Vec<MemoryEvent>) -> Self {
        events.sort_by_key(MemoryEvent::order);
        let mut ledger = Self::default();
        events.into_iter().for_each(|event| ledger.apply(event));
        ledger
    }

    /// Takes what happened since; `false` where some of it happened before what was taken already, so that all must be
    /// folded again.
    pub fn extend(&mut self, mut events: Vec<MemoryEvent>) -> bool {
        events.sort_by_key(MemoryEvent::order);
        if events.first().is_some_and(|first| first.order() < self.newest) {
            return false;
        }
        events.into_iter().for_each(|event| self.apply(event));
        true
    }

    fn apply(&mut self, event: MemoryEvent) {
        let order = event.order();
        self.newest = self.newest.max(order);
        self.oldest.get_or_insert(order.0);
        match event {
            MemoryEvent::Usage(subject, event) => {
                let next = self.notes.len();
                let at = *self.subjects.entry(subject).or_insert(next);
                if at == next {
                    self.notes.push(Usage::default());
                }
                // What is there twice stands side by side in this order.
                if let Some(usage) = self.notes.get_mut(at)
                    && usage.events.last().is_none_or(|last| last.id != event.id)
                {
                    usage.events.push(event);
                    self.events += 1;
                }
            }
            MemoryEvent::Context { context, .. } => self.context = context,
            MemoryEvent::Maintained { at, .. } => self.maintained = self.maintained.max(Some(at)),
            MemoryEvent::Moves { .. } if self.newest_moves == order => {}
            MemoryEvent::Moves { files, folders, made, is_seen, .. } => {
                self.newest_moves = order;
                let mut landed: Vec<(NoteRef, Option<usize>)> = Vec::new();
                for (from, to) in folders {
                    let inside = |subject: &NoteRef| match subject {
                        NoteRef::Path(path) => {
                            path.strip_prefix(&from).filter(|rest| rest.starts_with('/')).map(str::to_owned)
                        }
                        NoteRef::Id(_) => None,
                    };
                    let moved: Vec<(NoteRef, String)> = self
                        .subjects
                        .keys()
                        .filter_map(|subject| Some((subject.clone(), inside(subject)?)))
                        .collect();
                    for (subject, rest) in moved {
                        landed.push((NoteRef::Path(format!("{to}{rest}")), self.subjects.remove(&subject)));
                    }
                }
                for (from, to) in files {
                    let at = self.subjects.remove(&NoteRef::Path(from.clone()));
                    // Another machine saw what was told of here, or the other way round: it came already.
                    // And what others put into the bin comes back to the name that it had.
                    let came = is_seen || self.seen.get(&to) == Some(&from) || from.starts_with(".trash/");
                    if is_seen {
                        self.seen.insert(to.clone(), from);
                    }
                    if at.is_some() || !came {
                        landed.push((NoteRef::Path(to), at));
                    }
                }
                // Of notes that came all at once none came before another.
                let is_told = made.len() <= FEW;
                for path in made {
                    let at = is_told.then_some(self.notes.len());
                    self.notes.extend(at.map(|_| Usage { made: Some(order), ..Usage::default() }));
                    landed.push((NoteRef::Path(path), at));
                }
                for (subject, at) in landed {
                    // What stands at a name now is not what stood there before.
                    match at {
                        Some(at) => drop(self.subjects.insert(subject, at)),
                        None => drop(self.subjects.remove(&subject)),
                    }
                }
            }
        }
    }

    /// Gives what was done with a note: by its own id where it has one, and by the path that it has now.
    pub fn usage(&self, own_id: Option<&str>, path: &str) -> Usage {
        let find = |subject: NoteRef| self.subjects.get(&subject).and_then(|&at| self.notes.get(at)).cloned();
        let mut usage = find(NoteRef::Path(path.to_owned())).unwrap_or_default();
        if let Some(more) = own_id.and_then(|id| find(NoteRef::Id(id.to_owned()))) {
            usage.merge(more);
        }
        usage
    }

    /// Gives what somebody works on, expired or not.
    pub fn context(&self) -> Option<&WorkContext> {
        self.context.as_ref()
    }

    /// Gives the time of the first event of all.
    pub fn first_event_at(&self) -> Option<Timestamp> {
        self.oldest.map(Timestamp::from_millis)
    }

    /// Gives the time at which tiers were looked at last.
    pub fn last_maintained(&self) -> Option<Timestamp> {
        self.maintained.map(Timestamp::from_millis)
    }

    /// Lists the notes that were used, those used most first.
    pub fn most_used(&self) -> Vec<&NoteRef> {
        let uses = |at: usize| self.notes.get(at).map_or(0, |usage| usage.uses().count());
        let mut used: Vec<(usize, &NoteRef)> = self
            .subjects
            .iter()
            .map(|(subject, &at)| (uses(at), subject))
            .filter(|(uses, _)| *uses > 0)
            .collect();
        used.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        used.into_iter().map(|(_, subject)| subject).collect()
    }

    /// Counts the events of all notes.
    pub fn len(&self) -> usize {
        self.events
    }

    /// Says whether nothing was ever done.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }
}
