//! The state of a memory: current importance, tier and protection. It is computed, never stored.

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use crate::memory_properties::MemoryProperties;
use crate::tier::Tier;
use crate::tier_rule::{DAY, Thresholds, counted, reason};
use crate::types::MemoryType;
use crate::usage::{Usage, UsageEventKind};

/// The importance of a note without the property.
pub const DEFAULT_IMPORTANCE: f64 = 5.0;
/// The lowest importance.
pub const MIN_IMPORTANCE: f64 = 1.0;
/// The highest importance.
pub const MAX_IMPORTANCE: f64 = 10.0;
/// The number of uses that take effect together. Each adds a tenth of importance.
const USES_PER_STEP: u8 = 5;

/// The state of a memory at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryState {
    /// The current importance, 1 to 10 in steps of one half.
    pub importance: f64,
    /// The tier.
    pub tier: Tier,
    /// The number of uses.
    pub uses: usize,
    /// The number of days with a use.
    pub days_used: usize,
    /// The time of the last use.
    pub last_use: Option<Timestamp>,
    /// The number of positive votes minus the number of negative ones.
    pub usefulness: i64,
    /// Whether the importance is fixed.
    pub protected: bool,
    /// Whether the note is pinned.
    pub pinned: bool,
    /// Whether the note is excluded from search and recall.
    pub forgotten: bool,
    /// The number of uses that have not taken effect yet.
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

/// Rounds to the nearest half; a quarter is rounded up.
pub fn round_to_half(number: f64) -> f64 {
    (number * 2.0).round() / 2.0
}

/// Converts an importance from 0 to 1 to our scale of 1 to 10. The middle and the ends map to each other.
pub fn importance_of_share(share: f64) -> f64 {
    let ours = if share < 0.5 { 1.0 + share * 8.0 } else { share * 10.0 };
    round_to_places(ours)
}

/// Converts an importance of our scale to one from 0 to 1, as the inverse of [`importance_of_share`].
pub fn share_of_importance(ours: f64) -> f64 {
    let ours = ours.clamp(MIN_IMPORTANCE, MAX_IMPORTANCE);
    round_to_places(if ours < DEFAULT_IMPORTANCE { (ours - 1.0) / 8.0 } else { ours / 10.0 })
}

/// Rounds to four decimals, so that a conversion and its inverse give the number that was written.
fn round_to_places(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// Returns how long an importance takes to decay to another one, in milliseconds. `None` if the other is higher.
pub fn decay_time(given: f64, present: f64, kind: &MemoryType) -> Option<i64> {
    let time = (given / present).log2() * kind.half_life_days * DAY as f64;
    (time.is_finite() && time >= 0.0).then_some(time as i64)
}

/// Applies decay over idle days: `importance × 0.5^(days / half-life)`, rounded to the nearest half and not below the
/// type's floor. A change of less than one half is ignored (docs/spec/memory.md, Importance).
pub fn decayed(importance: f64, idle_days: f64, kind: &MemoryType) -> f64 {
    let rest = importance * 0.5_f64.powf(idle_days.max(0.0) / kind.half_life_days);
    let rest = round_to_half(rest).max(kind.floor);
    if (importance - rest).abs() >= 0.5 { rest } else { importance }
}

/// Returns the days from one time to another; 0 if the clock went back.
pub fn days_between(from: Timestamp, to: Timestamp) -> f64 {
    to.millis().saturating_sub(from.millis()).max(0) as f64 / DAY as f64
}

/// The importance of a memory when it was last used.
struct LastUse {
    importance: f64,
    /// The number of uses that have not taken effect yet.
    tenths: u8,
    /// When it was last used; otherwise when it was created, or when its importance was written.
    at: Timestamp,
}

/// Limits an importance to the scale, and to the floor of a type.
fn bounded(number: f64, kind: &MemoryType) -> f64 {
    if number.is_nan() { DEFAULT_IMPORTANCE } else { number }
        .clamp(MIN_IMPORTANCE, MAX_IMPORTANCE)
        .max(kind.floor)
}

/// Computes the importance that a memory had when it was last used before `now`, and the number of uses that had not taken
/// effect yet. It has not decayed since.
pub fn importance_at_last_use(
    properties: &MemoryProperties,
    kind: &MemoryType,
    usage: &Usage,
    now: Timestamp,
) -> (f64, u8) {
    let last = last_use(properties, kind, usage, now);
    (last.importance, last.tenths)
}

/// Computes the importance from all uses up to `now`; returns it with the number of uses that have not taken effect.
fn importance(properties: &MemoryProperties, kind: &MemoryType, usage: &Usage, now: Timestamp) -> (f64, u8) {
    let last = last_use(properties, kind, usage, now);
    if properties.is_protected() {
        return (last.importance, 0);
    }
    (bounded(decayed(last.importance, days_between(last.at, now), kind), kind), last.tenths)
}

fn last_use(properties: &MemoryProperties, kind: &MemoryType, usage: &Usage, now: Timestamp) -> LastUse {
    let given = properties.importance.unwrap_or(DEFAULT_IMPORTANCE);
    let base = bounded(given, kind);
    if properties.is_protected() {
        return LastUse { importance: base, tenths: 0, at: now };
    }
    // If the importance in the frontmatter is that of a checkpoint, only later events count.
    let is_checkpoint = |what: UsageEventKind| matches!(what, UsageEventKind::Checkpoint { importance, .. } if importance.to_bits() == given.to_bits());
    // Later checkpoints that were undone are ignored.
    let begin = usage.events().iter().rposition(|event| is_checkpoint(event.what));
    let (mut importance, mut tenths) = (base, 0);
    let mut since = properties.created;
    let mut rest = usage.events();
    if let Some((event, after)) = begin.and_then(|at| usage.events().get(at..)).and_then(<[_]>::split_first) {
        rest = after;
        if let UsageEventKind::Checkpoint { tenths: left, idle, .. } = event.what {
            since = Timestamp::from_millis(event.at.saturating_sub(idle));
            tenths = left.min(USES_PER_STEP - 1);
        }
    }
    for event in rest.iter().filter(|event| event.what.is_use() && event.at <= now.millis()) {
        let at = Timestamp::from_millis(event.at);
        importance = decayed(importance, days_between(since, at), kind);
        since = since.max(at);
        tenths += 1;
        if tenths == USES_PER_STEP {
            importance = bounded(round_to_half(importance + f64::from(USES_PER_STEP) / 10.0), kind);
            tenths = 0;
        }
    }
    LastUse { importance, tenths, at: since }
}

/// Computes the state of a memory from its properties, its usage and the time, with the default thresholds.
pub fn fold(properties: &MemoryProperties, kind: &MemoryType, usage: &Usage, now: Timestamp) -> MemoryState {
    fold_with(&Thresholds::default(), properties, kind, usage, now)
}

/// Computes the state of a memory like [`fold`], with these thresholds of all types.
pub fn fold_with(
    thresholds: &Thresholds,
    properties: &MemoryProperties,
    kind: &MemoryType,
    usage: &Usage,
    now: Timestamp,
) -> MemoryState {
    let counts = counted(usage, now);
    let (importance, tenths) = importance(properties, kind, usage, now);
    MemoryState {
        importance,
        tenths,
        tier: reason(&thresholds.of_kind(kind), properties, counts, now).tier(),
        uses: counts.uses,
        days_used: counts.days,
        last_use: counts.last,
        usefulness: properties.usefulness + usage.votes(),
        protected: properties.is_protected(),
        pinned: properties.pinned,
        forgotten: properties.forgotten,
    }
}
