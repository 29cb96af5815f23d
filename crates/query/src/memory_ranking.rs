//! Ranks the hits of a search as memories: by intent, and within one tier.

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_memory::score::{Intent, IntentScore, SplitMix64, intent_score, min_max_normalized};
use sidenote_memory::tier::Tier;
use sidenote_search::SearchHit;
use sidenote_search::updated_fact::newer_before_older;
use sidenote_search::validity_order::order_below_replacements;

use crate::Searches;
use crate::memory_weights::{Memory, MemoryWeights};

/// The factor by which a ranking by intent or tier examines more notes than requested.
const DEPTH: usize = 5;

/// How a search ranks its results as memories.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryRanking {
    /// The intent of the ranking. Without one, results are ranked by relevance.
    pub intent: Option<Intent>,
    /// The tier to which results are limited.
    pub tier: Option<Tier>,
    /// The seed of the random part of a score. Without one, it is the current time.
    pub seed: Option<u64>,
}

impl MemoryRanking {
    /// Returns the number of notes to examine for `limit` results.
    pub(super) fn candidates(&self, limit: usize) -> usize {
        if self.intent.is_some() || self.tier.is_some() { limit.saturating_mul(DEPTH) } else { limit }
    }
}

/// A hit as a memory.
pub(super) struct RankedMemory {
    pub(super) memory: Memory,
    pub(super) intent_score: Option<IntentScore>,
}

impl Searches<'_> {
    /// Converts hits to memories, keeps those of the tier, and ranks them for the intent. A hit that was ranked for an
    /// intent gets that score. Superseded memories stay below those that supersede them `at` an instant. The memories lack tags and
    /// importance.
    pub(super) fn rank_memories(
        &self,
        ranking: MemoryRanking,
        found: &mut Vec<SearchHit>,
        at: Timestamp,
    ) -> Result<Vec<RankedMemory>> {
        let now = self.core.clock.now();
        // The bonus of a note that the query names or quotes would make all others look similar.
        let unnamed = |hit: &SearchHit| f64::from(hit.rank_score());
        let relevances = min_max_normalized(&found.iter().map(unnamed).collect::<Vec<_>>());
        let rows = found.iter().map(|hit| hit.row.clone()).collect();
        let memories = MemoryWeights::of(self.core).weigh_for_scores(rows, now)?;
        let mut chance = SplitMix64::new(ranking.seed.unwrap_or_else(|| now.millis().unsigned_abs()));
        let mut hits: Vec<(SearchHit, RankedMemory)> = Vec::with_capacity(found.len());
        for ((mut hit, memory), relevance) in std::mem::take(found).into_iter().zip(memories).zip(relevances)
        {
            let drawn = chance.draw();
            let intent_score = ranking.intent.map(|intent| {
                intent_score(intent, relevance, &memory.state, memory.said.created, now, drawn)
            });
            if let Some(score) = &intent_score {
                hit.score = score.total as f32;
            }
            hits.push((hit, RankedMemory { memory, intent_score }));
        }
        hits.retain(|(_, ranked)| ranking.tier.is_none_or(|tier| ranked.memory.state.tier == tier));
        if ranking.intent.is_some() {
            // A note that the query names stays first for every intent.
            let is_named = |hit: &SearchHit| hit.components.from_name.is_some();
            let total = |ranked: &RankedMemory| ranked.intent_score.map_or(0.0, |score| score.total);
            hits.sort_by(|(one, ranked_one), (other, ranked_other)| {
                is_named(other).cmp(&is_named(one)).then(total(ranked_other).total_cmp(&total(ranked_one)))
            });
        }
        if ranking.intent.is_some() {
            newer_before_older(&mut hits, |(hit, _)| Some(hit.row.id), |(hit, _)| hit.updated_by);
            let table = self.core.index.validity(&*self.core.index.snapshot()?)?;
            // The scores stay those of the intent.
            hits = order_below_replacements(hits, &table, at, |(hit, _)| hit.row.id, |_| None, |_, _| {});
        }
        let (hits, ranked) = hits.into_iter().unzip();
        *found = hits;
        Ok(ranked)
    }

    /// Adds tags and importance to memories.
    pub(super) fn complete_memories(&self, ranked: Vec<RankedMemory>) -> Result<Vec<RankedMemory>> {
        let (mut memories, scores): (Vec<Memory>, Vec<Option<IntentScore>>) =
            ranked.into_iter().map(|ranked| (ranked.memory, ranked.intent_score)).unzip();
        MemoryWeights::of(self.core).complete(&mut memories, self.core.clock.now())?;
        let pairs = memories.into_iter().zip(scores);
        Ok(pairs.map(|(memory, intent_score)| RankedMemory { memory, intent_score }).collect())
    }
}
