//! The rule by which a memory is HOT, WARM or COLD.

use serde::Serialize;
use sidenote_base::clock::Timestamp;

use crate::memory_properties::MemoryProperties;
use crate::tier::Tier;
use crate::types::MemoryType;
use crate::usage::Usage;

/// The age in milliseconds up to which a note is HOT.
const HOT: i64 = 72 * HOUR;

/// The fewest uses that make a note warm.
const WARM_USES: usize = 3;

/// The fewest days with a use that make a note warm.
const WARM_DAYS: usize = 2;

/// How long after its last use a note stays warm, in milliseconds.
const WARM_SPAN: i64 = 60 * DAY;

/// The thresholds of the tiers (docs/spec/memory.md, Tiers).
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

impl Thresholds {
    /// Returns the thresholds of a type, whose own times replace those of all.
    #[must_use]
    pub fn of_kind(&self, kind: &MemoryType) -> Self {
        Self {
            hot: kind.hot_hours.map_or(self.hot, |hours| i64::from(hours) * HOUR),
            warm: kind.warm_days.map_or(self.warm, |days| i64::from(days) * DAY),
            ..*self
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { hot: HOT, warm_uses: WARM_USES, warm_days: WARM_DAYS, warm: WARM_SPAN }
    }
}

/// Which value decides the tier of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierReason {
    /// ARCHIVE: its properties say so.
    Archived,
    /// HOT: it was created recently.
    New,
    /// WARM: it was used often enough, on enough days, and recently.
    InUse,
    /// WARM: it is pinned.
    Pinned,
    /// COLD: it has too few uses.
    FewUses,
    /// COLD: it was used on too few days.
    FewDays,
    /// COLD: its last use is too long ago.
    Unused,
}

impl TierReason {
    /// Returns the tier that follows.
    pub(crate) fn tier(self) -> Tier {
        match self {
            Self::Archived => Tier::Archive,
            Self::New => Tier::Hot,
            Self::InUse | Self::Pinned => Tier::Warm,
            Self::FewUses | Self::FewDays | Self::Unused => Tier::Cold,
        }
    }
}

/// Counts the uses up to an instant.
pub(crate) fn counted(usage: &Usage, until: Timestamp) -> UseCounts {
    let (mut counts, mut last_day) = (UseCounts::default(), None);
    for used in usage.uses().filter(|used| *used <= until) {
        let day = used.date();
        counts.days += usize::from(last_day != Some(day));
        last_day = Some(day);
        counts.uses += 1;
        counts.last = Some(used);
    }
    counts
}

/// Finds which value decides the tier (docs/spec/memory.md, Tiers).
pub(crate) fn reason(
    thresholds: &Thresholds,
    properties: &MemoryProperties,
    counts: UseCounts,
    now: Timestamp,
) -> TierReason {
    let age = |since: Timestamp| now.millis().saturating_sub(since.millis());
    let of_uses = if counts.uses < thresholds.warm_uses {
        TierReason::FewUses
    } else if counts.days < thresholds.warm_days {
        TierReason::FewDays
    } else if counts.last.is_none_or(|last| age(last) > thresholds.warm) {
        TierReason::Unused
    } else {
        TierReason::InUse
    };
    if properties.archived && !properties.pinned {
        TierReason::Archived
    } else if !properties.is_copied && age(properties.created) < thresholds.hot {
        TierReason::New
    } else if properties.pinned && of_uses != TierReason::InUse {
        TierReason::Pinned
    } else {
        of_uses
    }
}

/// Returns which value decides the tier of a memory at one time, with the thresholds of its type.
pub fn tier_reason(
    thresholds: &Thresholds,
    properties: &MemoryProperties,
    usage: &Usage,
    at: Timestamp,
) -> TierReason {
    reason(thresholds, properties, counted(usage, at), at)
}

/// Determines the tier of a memory at one time, without its importance, with the thresholds of its type.
pub fn tier_at(thresholds: &Thresholds, properties: &MemoryProperties, usage: &Usage, at: Timestamp) -> Tier {
    tier_reason(thresholds, properties, usage, at).tier()
}

/// The uses of a memory, counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UseCounts {
    pub uses: usize,
    pub days: usize,
    pub last: Option<Timestamp>,
}

const HOUR: i64 = 3_600_000;
pub(crate) const DAY: i64 = 24 * HOUR;
