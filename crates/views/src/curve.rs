//! The importance of one note over time: how it came about, and how it fades if the note is not used.

use std::collections::BTreeSet;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_memories::Memories;
use sidenote_memory::memory_properties::MemoryProperties;
use sidenote_memory::state::fold_with;
use sidenote_memory::tier::Tier;
use sidenote_memory::tier_rule::{Thresholds, TierReason, tier_at, tier_reason};
use sidenote_memory::usage::{Usage, UsageEventKind};
use sidenote_query::memory_weights::{Memory, MemoryWeights, TierThresholds};

use crate::Views;

const DAY: i64 = 86_400_000;
/// The number of days that are drawn ahead.
const AHEAD: i64 = 90;
/// The most moments between uses at which the past is computed.
const MOMENTS: i64 = 365;
/// The most uses that are given and computed; of more, the last.
const MOST_EVENTS: usize = 1_000;

/// A time and the importance from then on.
pub type WeightPoint = (Timestamp, f64);

/// Something in the journal that changed the weight of a note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightEvent {
    /// When it was.
    pub at: Timestamp,
    /// `use`, `vote`, `checkpoint` or `tier`.
    pub kind: &'static str,
    /// Whether the vote was positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub useful: Option<bool>,
    /// The importance that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f64>,
    /// The tier that maintenance recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
}

/// Why a note falls to another tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FallReason {
    /// It is not new any more.
    Age,
    /// It was not used for too long.
    Unused,
}

/// A tier and how long the note is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierSpan {
    /// The tier.
    pub tier: Tier,
    /// From when on.
    pub from: Timestamp,
    /// Until when; none for the last.
    pub until: Option<Timestamp>,
    /// Why the tier begins; none for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<FallReason>,
}

/// The weight of a note over time.
#[derive(Debug, Clone, Serialize)]
pub struct WeightCurve {
    /// The note as a memory.
    #[serde(flatten)]
    pub memory: Memory,
    /// The half-life of its importance in days.
    pub half_life_days: f64,
    /// The lower limit of its importance.
    pub floor: f64,
    /// The steps of the importance until now.
    pub points: Vec<WeightPoint>,
    /// The steps of the importance from now on, if nobody uses the note.
    pub ahead: Vec<WeightPoint>,
    /// The uses, votes and records.
    pub events: Vec<WeightEvent>,
    /// The tiers from now on, if nobody uses the note.
    pub tiers: Vec<TierSpan>,
    /// Which value decides the tier.
    pub tier_reason: TierReason,
    /// The thresholds of the tiers.
    pub thresholds: TierThresholds,
}

impl Views<'_> {
    /// Returns the importance of a note over time.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn weight(&self, name: &str) -> Result<WeightCurve> {
        let memory = Memories::of(self.core).memory(name)?;
        let weights = MemoryWeights::of(self.core);
        let (kind, now) = (weights.kind_of(&memory), self.core.clock.now());
        let thresholds = weights.thresholds().of_kind(&kind);
        let importance = |at: i64| {
            let at = Timestamp::from_millis(at);
            fold_with(&thresholds, &memory.said, &kind, &memory.usage, at).importance
        };
        let created = memory.said.created.millis().min(now.millis());
        let step = ((now.millis() - created) / MOMENTS).max(DAY);
        let mut moments: BTreeSet<i64> = (0..=MOMENTS).map(|at| created + at * step).collect();
        let uses = memory.usage.events().iter().rev().take(MOST_EVENTS).map(|event| event.at);
        moments.extend(uses.filter(|at| *at >= created));
        moments.insert(now.millis());
        let points =
            steps(moments.into_iter().filter(|at| *at <= now.millis()).map(|at| (at, importance(at))));
        let ahead = steps((0..=AHEAD).map(|day| now.millis() + day * DAY).map(|at| (at, importance(at))));
        let events = memory.usage.events().iter().rev().take(MOST_EVENTS).rev().map(|event| WeightEvent {
            at: Timestamp::from_millis(event.at),
            kind: match event.what {
                UsageEventKind::Use => "use",
                UsageEventKind::Vote { .. } => "vote",
                UsageEventKind::Checkpoint { .. } => "checkpoint",
                UsageEventKind::Tier(_) => "tier",
            },
            useful: match event.what {
                UsageEventKind::Vote { useful } => Some(useful),
                _ => None,
            },
            importance: match event.what {
                UsageEventKind::Checkpoint { importance, .. } => Some(importance),
                _ => None,
            },
            tier: match event.what {
                UsageEventKind::Tier(tier) => Some(tier),
                _ => None,
            },
        });
        let events = events.collect();
        let tiers = tiers_ahead((&memory.said, &memory.usage), &thresholds, now, AHEAD);
        Ok(WeightCurve {
            half_life_days: kind.half_life_days,
            floor: kind.floor,
            points,
            ahead,
            events,
            tiers,
            tier_reason: tier_reason(&thresholds, &memory.said, &memory.usage, now),
            thresholds: TierThresholds::of(&thresholds),
            memory,
        })
    }
}

/// Keeps the first and last point, and those at which the importance changes.
fn steps(points: impl Iterator<Item = (i64, f64)>) -> Vec<WeightPoint> {
    let mut kept: Vec<WeightPoint> = Vec::new();
    let mut last = None;
    for (at, importance) in points {
        let at = Timestamp::from_millis(at);
        if kept.last().is_none_or(|(_, before)| before.to_bits() != importance.to_bits()) {
            kept.push((at, importance));
        }
        last = Some((at, importance));
    }
    kept.extend(last.filter(|last| kept.last() != Some(last)));
    kept
}

/// Returns the tiers of a memory from now on, if nobody uses it. A tier ends only when the time of being new or that after
/// the last use is over.
pub(crate) fn tiers_ahead(
    (said, usage): (&MemoryProperties, &Usage),
    thresholds: &Thresholds,
    now: Timestamp,
    days: i64,
) -> Vec<TierSpan> {
    let last_use = usage.uses().rfind(|last| *last <= now);
    let last_use = last_use.map(|last| (last.millis() + thresholds.warm + 1, FallReason::Unused));
    let mut ends: Vec<(i64, FallReason)> =
        last_use.into_iter().chain([(said.created.millis() + thresholds.hot, FallReason::Age)]).collect();
    ends.retain(|(end, _)| *end > now.millis() && *end <= now.millis() + days * DAY);
    ends.sort_unstable_by_key(|(end, _)| *end);
    let tier = |at: i64| tier_at(thresholds, said, usage, Timestamp::from_millis(at));
    let mut spans = vec![TierSpan { tier: tier(now.millis()), from: now, until: None, why: None }];
    for (end, why) in ends {
        let next = tier(end);
        if let Some(last) = spans.last_mut().filter(|last| last.tier != next) {
            let at = Timestamp::from_millis(end);
            last.until = Some(at);
            spans.push(TierSpan { tier: next, from: at, until: None, why: Some(why) });
        }
    }
    spans
}
