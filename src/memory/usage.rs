//! Owns what the journal tells of each note: uses, votes and checkpoints of importance, whatever names the note had.
//!
//! A ledger is a set of deeds, ordered by time and name: journals that were split, merged or compacted otherwise give
//! the same ledger.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::memory::recall::Context;
use crate::memory::state::Tier;

/// The name of an event, a UUID as a number; those of version 7 sort by time.
pub type DeedId = u128;

/// What somebody did with a note.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum What {
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

impl What {
    /// Says whether it counts as a use; a vote does.
    pub fn is_use(self) -> bool {
        matches!(self, Self::Use | Self::Vote { .. })
    }
}

/// Something that was done with one note at one time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deed {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The name of the event.
    pub id: DeedId,
    /// What.
    pub what: What,
}

impl Deed {
    fn order(&self) -> (i64, DeedId) {
        (self.at, self.id)
    }
}

/// Which note an event means: by its own id, or by the path that it had then.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// The `id` in its frontmatter, which stays.
    Id(String),
    /// A path in the vault, or in the trash.
    Path(String),
}

/// One thing of the journal that matters here.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// Something was done with a note.
    Deed(Subject, Deed),
    /// Files and folders changed places, all at once.
    Moves {
        /// When, and the name of the event.
        at: i64,
        /// The name of the event.
        id: DeedId,
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
        id: DeedId,
    },
    /// Somebody said what they work on, or that it is over.
    Context {
        /// When.
        at: i64,
        /// The name of the event.
        id: DeedId,
        /// What; nothing where it is over.
        context: Option<Context>,
    },
}

impl Happening {
    /// Gives what it is ordered by: its time, then its name.
    pub fn order(&self) -> (i64, DeedId) {
        match self {
            Self::Deed(_, deed) => deed.order(),
            Self::Moves { at, id, .. } | Self::Maintained { at, id } | Self::Context { at, id, .. } => {
                (*at, *id)
            }
        }
    }
}

/// The place of an event among all: its time in milliseconds since 1970, and its name.
pub type Order = (i64, DeedId);

/// What was done with one note, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    deeds: Vec<Deed>,
    /// When the note was made, where the journal tells.
    made: Option<Order>,
}

impl Usage {
    /// Takes deeds in any order; those that are there twice count once.
    pub fn of(mut deeds: Vec<Deed>) -> Self {
        deeds.sort_by_key(Deed::order);
        deeds.dedup_by_key(|deed| deed.id);
        Self { deeds, made: None }
    }

    /// Gives when the note was made, as far as the journal tells. Times in frontmatter have whole seconds; where the two
    /// agree, this one is exact. Of several notes that were made in one millisecond the names of the events tell.
    pub fn birth(&self, created: Timestamp) -> (Timestamp, DeedId) {
        let second = |millis: i64| millis.div_euclid(1000);
        match self.made.filter(|(at, _)| second(*at) == second(created.millis())) {
            Some((at, id)) => (Timestamp::from_millis(at), id),
            None => (created, 0),
        }
    }

    /// Gives the deeds, oldest first.
    pub fn deeds(&self) -> &[Deed] {
        &self.deeds
    }

    /// Lists when the note was used, oldest first; a vote is a use.
    pub fn uses(&self) -> impl DoubleEndedIterator<Item = Timestamp> {
        self.deeds.iter().filter(|deed| deed.what.is_use()).map(|deed| Timestamp::from_millis(deed.at))
    }

    /// Gives the tier that was written down last.
    pub fn tier(&self) -> Option<Tier> {
        self.deeds.iter().rev().find_map(|deed| match deed.what {
            What::Tier(tier) => Some(tier),
            _ => None,
        })
    }

    /// Gives votes for the note less those against it.
    pub fn votes(&self) -> i64 {
        let value = |deed: &Deed| match deed.what {
            What::Vote { useful } => 2 * i64::from(useful) - 1,
            _ => 0,
        };
        self.deeds.iter().map(value).sum()
    }

    fn merge(&mut self, other: Self) {
        let made = self.made.or(other.made);
        *self = Self { made, ..Self::of([std::mem::take(&mut self.deeds), other.deeds].concat()) };
    }
}

/// Where no more notes than this are made at once, it is kept when that was.
const FEW: usize = 16;

/// What the journal tells of every note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    notes: Vec<Usage>,
    subjects: HashMap<Subject, usize>,
    deeds: usize,
    /// What came last of all, and of moves.
    newest: (i64, DeedId),
    newest_moves: (i64, DeedId),
    /// When the first of all happened.
    oldest: Option<i64>,
    /// When tiers were looked at last.
    maintained: Option<i64>,
    /// From where somebody else moved a file to where.
    seen: HashMap<String, String>,
    context: Option<Context>,
}

impl Ledger {
    /// Folds a journal, in whatever order it was read.
    pub fn fold(mut happenings: Vec<Happening>) -> Self {
        happenings.sort_by_key(Happening::order);
        let mut ledger = Self::default();
        happenings.into_iter().for_each(|happening| ledger.take(happening));
        ledger
    }

    /// Takes what happened since; `false` where some of it happened before what was taken already, so that all must be
    /// folded again.
    pub fn extend(&mut self, mut happenings: Vec<Happening>) -> bool {
        happenings.sort_by_key(Happening::order);
        if happenings.first().is_some_and(|first| first.order() < self.newest) {
            return false;
        }
        happenings.into_iter().for_each(|happening| self.take(happening));
        true
    }

    fn take(&mut self, happening: Happening) {
        let order = happening.order();
        self.newest = self.newest.max(order);
        self.oldest.get_or_insert(order.0);
        match happening {
            Happening::Deed(subject, deed) => {
                let next = self.notes.len();
                let at = *self.subjects.entry(subject).or_insert(next);
                if at == next {
                    self.notes.push(Usage::default());
                }
                // What is there twice stands side by side in this order.
                if let Some(usage) = self.notes.get_mut(at)
                    && usage.deeds.last().is_none_or(|last| last.id != deed.id)
                {
                    usage.deeds.push(deed);
                    self.deeds += 1;
                }
            }
            Happening::Context { context, .. } => self.context = context,
            Happening::Maintained { at, .. } => self.maintained = self.maintained.max(Some(at)),
            Happening::Moves { .. } if self.newest_moves == order => {}
            Happening::Moves { files, folders, made, is_seen, .. } => {
                self.newest_moves = order;
                let mut landed: Vec<(Subject, Option<usize>)> = Vec::new();
                for (from, to) in folders {
                    let inside = |subject: &Subject| match subject {
                        Subject::Path(path) => {
                            path.strip_prefix(&from).filter(|rest| rest.starts_with('/')).map(str::to_owned)
                        }
                        Subject::Id(_) => None,
                    };
                    let moved: Vec<(Subject, String)> = self
                        .subjects
                        .keys()
                        .filter_map(|subject| Some((subject.clone(), inside(subject)?)))
                        .collect();
                    for (subject, rest) in moved {
                        landed.push((Subject::Path(format!("{to}{rest}")), self.subjects.remove(&subject)));
                    }
                }
                for (from, to) in files {
                    let at = self.subjects.remove(&Subject::Path(from.clone()));
                    // Another machine saw what was told of here, or the other way round: it came already.
                    // And what others put into the bin comes back to the name that it had.
                    let came = is_seen || self.seen.get(&to) == Some(&from) || from.starts_with(".trash/");
                    if is_seen {
                        self.seen.insert(to.clone(), from);
                    }
                    if at.is_some() || !came {
                        landed.push((Subject::Path(to), at));
                    }
                }
                // Of notes that came all at once none came before another.
                let is_told = made.len() <= FEW;
                for path in made {
                    let at = is_told.then_some(self.notes.len());
                    self.notes.extend(at.map(|_| Usage { made: Some(order), ..Usage::default() }));
                    landed.push((Subject::Path(path), at));
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
        let find = |subject: Subject| self.subjects.get(&subject).and_then(|&at| self.notes.get(at)).cloned();
        let mut usage = find(Subject::Path(path.to_owned())).unwrap_or_default();
        if let Some(more) = own_id.and_then(|id| find(Subject::Id(id.to_owned()))) {
            usage.merge(more);
        }
        usage
    }

    /// Gives what somebody works on, expired or not.
    pub fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Gives the time of the first event of all.
    pub fn begin(&self) -> Option<Timestamp> {
        self.oldest.map(Timestamp::from_millis)
    }

    /// Gives the time at which tiers were looked at last.
    pub fn maintained(&self) -> Option<Timestamp> {
        self.maintained.map(Timestamp::from_millis)
    }

    /// Lists the notes that were used, those used most first.
    pub fn used_most(&self) -> Vec<&Subject> {
        let uses = |at: usize| self.notes.get(at).map_or(0, |usage| usage.uses().count());
        let mut used: Vec<(usize, &Subject)> = self
            .subjects
            .iter()
            .map(|(subject, &at)| (uses(at), subject))
            .filter(|(uses, _)| *uses > 0)
            .collect();
        used.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        used.into_iter().map(|(_, subject)| subject).collect()
    }

    /// Counts the deeds of all notes.
    pub fn len(&self) -> usize {
        self.deeds
    }

    /// Says whether nothing was ever done.
    pub fn is_empty(&self) -> bool {
        self.deeds == 0
    }
}
