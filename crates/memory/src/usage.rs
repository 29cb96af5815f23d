//! The usage ledger: uses, votes and importance checkpoints of each note, followed through its moves.
//!
//! A ledger depends only on the set of events, ordered by time and id. However a journal was split, merged or compacted,
//! the ledger is the same.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;

use crate::context::WorkContext;
use crate::packed_events::PackedEvents;
use crate::tier::Tier;
pub use crate::usage_event::{EventId, UsageEvent, UsageEventKind};

/// The note of an event, by its id or by the path that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NoteRef {
    /// The `id` in the frontmatter, which moves do not change.
    Id(String),
    /// A path in the vault or in the trash.
    Path(String),
}

/// One event of the journal that matters to memory.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryEvent {
    /// A note was used.
    Usage(NoteRef, UsageEvent),
    /// Files and folders moved in one operation.
    Moves {
        /// The time in milliseconds since 1970.
        at: i64,
        /// The id of the event.
        id: EventId,
        /// The old and new paths of files.
        files: Vec<(String, String)>,
        /// The old and new paths of folders.
        folders: Vec<(String, String)>,
        /// The paths of new files.
        made: Vec<String>,
        /// Whether another program moved the files.
        is_seen: bool,
    },
    /// Maintenance checked the tiers of all notes.
    Maintained {
        /// The time in milliseconds since 1970.
        at: i64,
        /// The id of the event.
        id: EventId,
    },
    /// The work context was set or cleared.
    Context {
        /// The time in milliseconds since 1970.
        at: i64,
        /// The id of the event.
        id: EventId,
        /// The new context; `None` if it was cleared.
        context: Option<WorkContext>,
    },
}

impl MemoryEvent {
    /// Returns the sort key of the event: its time, then its id.
    pub fn order(&self) -> (i64, EventId) {
        match self {
            Self::Usage(_, event) => event.order(),
            Self::Moves { at, id, .. } | Self::Maintained { at, id } | Self::Context { at, id, .. } => {
                (*at, *id)
            }
        }
    }
}

/// The sort key of an event: its time in milliseconds since 1970, and its id.
pub type EventOrder = (i64, EventId);

/// The usage events of one note, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    events: Vec<UsageEvent>,
    /// When the note was created, if the journal records it.
    made: Option<EventOrder>,
}

impl Usage {
    /// Collects events in any order. Duplicates count once.
    pub fn from_events(mut events: Vec<UsageEvent>) -> Self {
        events.sort_by_key(UsageEvent::order);
        events.dedup_by_key(|event| event.id);
        Self { events, made: None }
    }

    /// Returns the sort key for the creation of the note. If the time in the frontmatter is a whole second, and the journal's
    /// time is in it, that is used, because it has milliseconds. The event id orders notes of one millisecond.
    pub fn creation_order(&self, created: Timestamp) -> (Timestamp, EventId) {
        let second = |millis: i64| millis.div_euclid(1000);
        match self.made.filter(|(at, _)| second(*at) == second(created.millis())) {
            Some((at, id)) if created.millis() % 1000 == 0 => (Timestamp::from_millis(at), id),
            Some((_, id)) => (created, id),
            None => (created, 0),
        }
    }

    /// Returns the events, oldest first.
    pub fn events(&self) -> &[UsageEvent] {
        &self.events
    }

    /// Lists the times of all uses, oldest first. A vote is a use.
    pub fn uses(&self) -> impl DoubleEndedIterator<Item = Timestamp> {
        self.events.iter().filter(|event| event.what.is_use()).map(|event| Timestamp::from_millis(event.at))
    }

    /// Returns the tier that was recorded last.
    pub fn tier(&self) -> Option<Tier> {
        self.events.iter().rev().find_map(|event| match event.what {
            UsageEventKind::Tier(tier) => Some(tier),
            _ => None,
        })
    }

    /// Returns the number of positive votes minus the number of negative ones.
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

/// The creation time is recorded only for operations that create at most this many notes.
const MAX_TIMED_CREATIONS: usize = 16;

/// The usage of one note as a ledger has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct PackedUsage {
    /// The events, oldest first.
    events: PackedEvents,
    /// When the note was created, if the journal records it.
    made: Option<EventOrder>,
}

impl PackedUsage {
    fn unpacked(&self) -> Usage {
        let mut events: Vec<UsageEvent> = self.events.newest_first().collect();
        events.reverse();
        Usage { events, made: self.made }
    }
}

/// The usage of every note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageLedger {
    notes: Vec<PackedUsage>,
    subjects: HashMap<NoteRef, usize>,
    events: usize,
    /// The sort key of the newest event.
    newest: (i64, EventId),
    /// The sort key of the newest moves.
    newest_moves: (i64, EventId),
    /// The time of the oldest event.
    oldest: Option<i64>,
    /// The time of the last maintenance.
    maintained: Option<i64>,
    /// Moves by other programs: the new path of a file, and the old one.
    seen: HashMap<String, String>,
    context: Option<WorkContext>,
}

impl UsageLedger {
    /// Folds the events of a journal, in any order.
    pub fn fold(mut events: Vec<MemoryEvent>) -> Self {
        events.sort_by_key(MemoryEvent::order);
        let mut ledger = Self::default();
        events.into_iter().for_each(|event| ledger.apply(event));
        ledger
    }

    /// Adds new events; `false` if one of them is older than the newest known event, so that the whole journal must be
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
                    self.notes.push(PackedUsage::default());
                }
                // Duplicates are adjacent in this order.
                if let Some(usage) = self.notes.get_mut(at)
                    && usage.events.last_id() != Some(event.id)
                {
                    usage.events.push(&event);
                    self.events += 1;
                }
            }
            MemoryEvent::Context { context, .. } => self.context = context,
            MemoryEvent::Maintained { at, .. } => self.maintained = self.maintained.max(Some(at)),
            MemoryEvent::Moves { .. } if self.newest_moves == order => {}
            MemoryEvent::Moves { files, folders, made, is_seen, .. } => {
                self.newest_moves = order;
                let mut moved_notes: Vec<(NoteRef, Option<usize>)> = Vec::new();
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
                        moved_notes
                            .push((NoteRef::Path(format!("{to}{rest}")), self.subjects.remove(&subject)));
                    }
                }
                for (from, to) in files {
                    let at = self.subjects.remove(&NoteRef::Path(from.clone()));
                    // Two machines may both record one move, so it may already be applied. A file that another program moved to
                    // the trash gets its old path back.
                    let came = is_seen || self.seen.get(&to) == Some(&from) || from.starts_with(".trash/");
                    if is_seen {
                        self.seen.insert(to.clone(), from);
                    }
                    if at.is_some() || !came {
                        moved_notes.push((NoteRef::Path(to), at));
                    }
                }
                // Notes of one bulk operation have no order of creation.
                let is_told = made.len() <= MAX_TIMED_CREATIONS;
                for path in made {
                    let at = is_told.then_some(self.notes.len());
                    self.notes
                        .extend(at.map(|_| PackedUsage { made: Some(order), ..PackedUsage::default() }));
                    moved_notes.push((NoteRef::Path(path), at));
                }
                for (subject, at) in moved_notes {
                    // The note at a path now is not the one that was there before.
                    match at {
                        Some(at) => drop(self.subjects.insert(subject, at)),
                        None => drop(self.subjects.remove(&subject)),
                    }
                }
            }
        }
    }

    /// Returns the usage of a note, by its id if it has one, and by its present path.
    pub fn usage(&self, own_id: Option<&str>, path: &str) -> Usage {
        let note = |subject: NoteRef| self.subjects.get(&subject).and_then(|&at| self.notes.get(at));
        let find = |subject| note(subject).map(PackedUsage::unpacked);
        let mut usage = find(NoteRef::Path(path.to_owned())).unwrap_or_default();
        if let Some(more) = own_id.and_then(|id| find(NoteRef::Id(id.to_owned()))) {
            usage.merge(more);
        }
        usage
    }

    /// Returns the work context, expired or not.
    pub fn context(&self) -> Option<&WorkContext> {
        self.context.as_ref()
    }

    /// Returns the time of the oldest event.
    pub fn first_event_at(&self) -> Option<Timestamp> {
        self.oldest.map(Timestamp::from_millis)
    }

    /// Returns the time of the last maintenance.
    pub fn last_maintained(&self) -> Option<Timestamp> {
        self.maintained.map(Timestamp::from_millis)
    }

    /// Lists the notes that were used, most used first.
    pub fn most_used(&self) -> Vec<&NoteRef> {
        let count =
            |usage: &PackedUsage| usage.events.newest_first().filter(|event| event.what.is_use()).count();
        let uses = |at: usize| self.notes.get(at).map_or(0, count);
        let mut used: Vec<(usize, &NoteRef)> = self
            .subjects
            .iter()
            .map(|(subject, &at)| (uses(at), subject))
            .filter(|(uses, _)| *uses > 0)
            .collect();
        used.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        used.into_iter().map(|(_, subject)| subject).collect()
    }

    /// Returns the number of usage events of all notes.
    pub fn len(&self) -> usize {
        self.events
    }

    /// Says whether there are no usage events.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }
}
