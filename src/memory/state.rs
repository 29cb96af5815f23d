//! Owns the state of a memory: importance as it is now, tier, protection; folded, never stored.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::memory::tier::Tier;
use crate::memory::types::MemoryType;
use crate::memory::usage::{Usage, UsageEventKind};

const DAY: i64 = 86_400_000;
/// Importance where nothing is said, and its bounds.
pub const DEFAULT_IMPORTANCE: f64 = 5.0;
/// The least importance that can be said.
pub const MIN_IMPORTANCE: f64 = 1.0;
/// The most importance.
pub const MAX_IMPORTANCE: f64 = 10.0;
/// A note is hot while it is younger than this.
const HOT: i64 = 72 * 3_600_000;
/// The fewest uses that make a note warm.
const WARM_USES: usize = 3;
/// The fewest days with a use that make a note warm.
const WARM_DAYS: usize = 2;
/// How long after its last use a note stays warm, in milliseconds.
const WARM_SPAN: i64 = 60 * DAY;
/// Tenths of importance that a use adds, and that take effect together.
const TENTHS: u8 = 5;
/// Tags that keep a note from fading and from eviction.
const PROTECTED_TAGS: &[&str] = &["core", "identity", "pinned"];

/// What a note's frontmatter says of its weight.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryProperties {
    /// `importance`.
    pub importance: Option<f64>,
    /// Whether it says an importance that is no number.
    pub is_garbled: bool,
    /// `pinned: true`.
    pub pinned: bool,
    /// `tier: archive`.
    pub archived: bool,
    /// `forgotten: true`.
    pub forgotten: bool,
    /// `superseded_by`.
    pub superseded_by: Option<String>,
    /// `usefulness`.
    pub usefulness: i64,
    /// Its tags, without `#`.
    pub tags: Vec<String>,
    /// When it was made.
    pub created: Timestamp,
}

impl MemoryProperties {
    /// Says whether the note neither fades nor grows.
    pub fn is_protected(&self) -> bool {
        let protects = |tag: &String| PROTECTED_TAGS.iter().any(|name| tag.eq_ignore_ascii_case(name));
        self.pinned || self.tags.iter().any(protects)
    }
}

/// What a memory is worth at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryState {
    /// 1 to 10, in halves.
    pub importance: f64,
    /// How near at hand it is.
    pub tier: Tier,
    /// How often it was used.
    pub uses: usize,
    /// On how many days.
    pub days_used: usize,
    /// When it was used last.
    pub last_use: Option<Timestamp>,
    /// Votes for it less those against it.
    pub usefulness: i64,
    /// Whether it neither fades nor grows.
    pub protected: bool,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Whether it is out of search and recall.
    pub forgotten: bool,
    /// Uses that have not taken effect on importance yet.
    #[serde(skip)]
    pub tenths: u8,
}

/// Checks that a given importance is between [`MIN_IMPORTANCE`] and [`MAX_IMPORTANCE`].
///
/// # Errors
/// `Invalid` if it is not.
pub fn check_importance(importance: Option<f64>) -> Result<()> {
    match importance {
        Some(number) if !(MIN_IMPORTANCE..=MAX_IMPORTANCE).contains(&number) => {
            Err(Error::invalid(format!("importance {number} is out of range")).with_hint("give 1 to 10"))
        }
        _ => Ok(()),
    }
}

/// Rounds to the nearest half, halves of halves upwards.
pub fn round_to_half(number: f64) -> f64 {
    (number * 2.0).round() / 2.0
}

/// Lets importance fade over idle days: `importance × 0.5^(days / half-life)`, to the nearest half, not under the
/// type's floor; a change of less than a half is none (spec/memory.md, Importance).
pub fn decayed(importance: f64, idle_days: f64, kind: &MemoryType) -> f64 {
    let rest = importance * 0.5_f64.powf(idle_days.max(0.0) / kind.half_life_days);
    let rest = round_to_half(rest).max(kind.floor);
    if (importance - rest).abs() >= 0.5 { rest } else { importance }
}

/// Gives the days from one moment to another; none where the clock went back.
pub fn days_between(from: Timestamp, to: Timestamp) -> f64 {
    to.millis().saturating_sub(from.millis()).max(0) as f64 / DAY as f64
}

/// Follows importance through all uses up to now; gives it with the uses that have not taken effect yet.
fn importance(said: &MemoryProperties, kind: &MemoryType, usage: &Usage, now: Timestamp) -> (f64, u8) {
    let bounded = |number: f64| {
        if number.is_nan() { DEFAULT_IMPORTANCE } else { number }
            .clamp(MIN_IMPORTANCE, MAX_IMPORTANCE)
            .max(kind.floor)
    };
    let given = said.importance.unwrap_or(DEFAULT_IMPORTANCE);
    let base = bounded(given);
    if said.is_protected() {
        return (base, 0);
    }
    // Where the number in the frontmatter is one that was written down, the story goes on from there.
    let is_checkpoint = |what: UsageEventKind| matches!(what, UsageEventKind::Checkpoint { importance, .. } if importance.to_bits() == given.to_bits());
    // What was written later and taken back since is passed over.
    let begin = usage.events().iter().rposition(|event| is_checkpoint(event.what));
    let (mut importance, mut tenths) = (base, 0);
    let mut since = said.created;
    let mut rest = usage.events();
    if let Some((event, after)) = begin.and_then(|at| usage.events().get(at..)).and_then(<[_]>::split_first) {
        since = Timestamp::from_millis(event.at);
        rest = after;
        if let UsageEventKind::Checkpoint { tenths: left, .. } = event.what {
            tenths = left.min(TENTHS - 1);
        }
    }
    for event in rest.iter().filter(|event| event.what.is_use() && event.at <= now.millis()) {
        let at = Timestamp::from_millis(event.at);
        importance = decayed(importance, days_between(since, at), kind);
        since = since.max(at);
        tenths += 1;
        if tenths == TENTHS {
            importance = bounded(round_to_half(importance + f64::from(TENTHS) / 10.0));
            tenths = 0;
        }
    }
    (bounded(decayed(importance, days_between(since, now), kind)), tenths)
}

/// Where the tiers begin and end (spec/memory.md, Tiers).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// How long a note is HOT, in milliseconds.
    pub hot: i64,
    /// The fewest uses that make it WARM.
    pub warm_uses: usize,
    /// The fewest days with a use that make it WARM.
    pub warm_days: usize,
    /// How long it is WARM after its last use, in milliseconds.
    pub warm: i64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { hot: HOT, warm_uses: WARM_USES, warm_days: WARM_DAYS, warm: WARM_SPAN }
    }
}

/// Tells the tier (spec/memory.md, Tiers).
fn tier(
    thresholds: &Thresholds,
    said: &MemoryProperties,
    uses: usize,
    days_used: usize,
    last_use: Option<Timestamp>,
    now: Timestamp,
) -> Tier {
    let age = |since: Timestamp| now.millis().saturating_sub(since.millis());
    let in_use = uses >= thresholds.warm_uses
        && days_used >= thresholds.warm_days
        && last_use.is_some_and(|last| age(last) <= thresholds.warm);
    if said.archived && !said.pinned {
        Tier::Archive
    } else if age(said.created) < thresholds.hot {
        Tier::Hot
    } else if in_use || said.pinned {
        Tier::Warm
    } else {
        Tier::Cold
    }
}

/// Folds what is said, what happened and the time into a state.
pub fn fold(said: &MemoryProperties, kind: &MemoryType, usage: &Usage, now: Timestamp) -> MemoryState {
    fold_with(&Thresholds::default(), said, kind, usage, now)
}

/// As [`fold`], with other thresholds of the tiers.
pub fn fold_with(
    thresholds: &Thresholds,
    said: &MemoryProperties,
    kind: &MemoryType,
    usage: &Usage,
    now: Timestamp,
) -> MemoryState {
    let (mut uses, mut days_used, mut last_day) = (0, 0, None);
    let mut last_use = None;
    for at in usage.uses().filter(|at| *at <= now) {
        let day = at.millis().div_euclid(DAY);
        days_used += usize::from(last_day != Some(day));
        last_day = Some(day);
        uses += 1;
        last_use = Some(at);
    }
    let (importance, tenths) = importance(said, kind, usage, now);
    MemoryState {
        importance,
        tenths,
        tier: tier(thresholds, said, uses, days_used, last_use, now),
        uses,
        days_used,
        last_use,
        usefulness: said.usefulness + usage.votes(),
        protected: said.is_protected(),
        pinned: said.pinned,
        forgotten: said.forgotten,
    }
}
