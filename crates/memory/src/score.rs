//! The ranking formulas of memories (docs/spec/memory.md, Scores), with the components of each score.

use serde::{Deserialize, Serialize};
use sidenote_base::clock::Timestamp;
use sidenote_config::WeightsConfig;

use crate::state::{MemoryState, days_between};
use crate::tier::Tier;
use crate::types::MemoryType;

/// The weights of the composite score.
pub type Weights = WeightsConfig;

/// One component of a score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreComponent {
    /// The value, between 0 and 1.
    pub raw: f64,
    /// The value multiplied by its weight.
    pub weighted: f64,
}

impl ScoreComponent {
    fn new(raw: f64, weight: f64) -> Self {
        Self { raw, weighted: raw * weight }
    }
}

/// The composite score of a memory with its components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CompositeScore {
    /// The similarity to the query.
    pub similarity: ScoreComponent,
    /// The recency of creation or last use.
    pub recency: ScoreComponent,
    /// The frequency of use.
    pub frequency: ScoreComponent,
    /// The sum; 0 for an archived memory.
    pub total: f64,
}

/// Computes the composite score for recall, by default `0.5·similarity + 0.3·recency + 0.2·frequency`. Recency is
/// `exp(-age / half-life)` in days since creation or last use, 1 for a pinned memory, and halved for a COLD one.
/// Frequency is `ln(1 + uses) / ln 101`, at most 1.
pub fn composite_score(
    similarity: f64,
    state: &MemoryState,
    kind: &MemoryType,
    created: Timestamp,
    now: Timestamp,
    weights: &Weights,
) -> CompositeScore {
    let since = state.last_use.map_or(created, |last| last.max(created));
    let fresh = if state.pinned { 1.0 } else { (-days_between(since, now) / kind.half_life_days).exp() };
    let fresh = if state.tier == Tier::Cold { fresh / 2.0 } else { fresh };
    let similarity = ScoreComponent::new(similarity.clamp(0.0, 1.0), weights.similarity);
    let recency = ScoreComponent::new(fresh, weights.recency);
    let frequency =
        ScoreComponent::new(((1.0 + state.uses as f64).ln() / 101.0_f64.ln()).min(1.0), weights.frequency);
    let sum = similarity.weighted + recency.weighted + frequency.weighted;
    let total = if state.tier == Tier::Archive { 0.0 } else { sum };
    CompositeScore { similarity, recency, frequency, total }
}

/// The intent of a search, which selects the weights of its ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Continue recent work: recency counts most.
    Continuity,
    /// Check a fact: relevance counts most.
    FactCheck,
    /// Find what is used most: utility counts most.
    Frequent,
    /// Find related ideas: relevance with some randomness.
    Associative,
    /// Explore: balanced weights with much randomness.
    Explore,
}

impl Intent {
    /// All intents.
    pub const ALL: [Self; 5] =
        [Self::Continuity, Self::FactCheck, Self::Frequent, Self::Associative, Self::Explore];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Continuity => "continuity",
            Self::FactCheck => "fact_check",
            Self::Frequent => "frequent",
            Self::Associative => "associative",
            Self::Explore => "explore",
        }
    }

    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|intent| intent.name() == text.trim().replace('-', "_"))
    }

    /// Returns the weights of relevance, recency and utility, and the jitter.
    fn weights(self) -> [f64; 4] {
        match self {
            Self::Continuity => [0.3, 0.5, 0.2, 0.02],
            Self::FactCheck => [0.6, 0.1, 0.3, 0.02],
            Self::Frequent => [0.2, 0.2, 0.6, 0.02],
            Self::Associative => [0.7, 0.1, 0.2, 0.05],
            Self::Explore => [0.4, 0.3, 0.3, 0.15],
        }
    }
}

/// The score of a memory for an intent with its components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IntentScore {
    /// The fused search score, normalized to 0–1 over the candidates.
    pub relevance: ScoreComponent,
    /// The recency: `0.995^hours` since the last use or creation.
    pub recency: ScoreComponent,
    /// The utility: `sigmoid((usefulness + ln(uses + 1)) / 5)`.
    pub utility: ScoreComponent,
    /// The random factor of the sum.
    pub jitter: f64,
    /// The total score.
    pub total: f64,
}

/// Computes the score for an intent; `chance` is a random number between -1 and 1.
pub fn intent_score(
    intent: Intent,
    relevance: f64,
    state: &MemoryState,
    created: Timestamp,
    now: Timestamp,
    chance: f64,
) -> IntentScore {
    let [for_relevance, for_recency, for_utility, jitter] = intent.weights();
    let hours = 24.0 * days_between(state.last_use.unwrap_or(created), now);
    let worth = (state.usefulness as f64 + (state.uses as f64 + 1.0).ln()) / 5.0;
    let relevance = ScoreComponent::new(relevance, for_relevance);
    let recency = ScoreComponent::new(0.995_f64.powf(hours), for_recency);
    let utility = ScoreComponent::new(1.0 / (1.0 + (-worth).exp()), for_utility);
    let jitter = 1.0 + chance.clamp(-1.0, 1.0) * jitter;
    let total = (relevance.weighted + recency.weighted + utility.weighted) * jitter;
    IntentScore { relevance, recency, utility, jitter, total }
}

/// A deterministic pseudorandom number generator (SplitMix64, Steele, Lea and Flood, 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a uniformly distributed number between -1 and 1.
    pub fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // A double has 53 bits of precision.
        (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Normalizes scores to 0–1 by minimum and maximum. If all scores are equal, each becomes 1.
pub fn min_max_normalized(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let least = scores.iter().copied().fold(f64::MAX, f64::min);
    let width = most - least;
    scores.iter().map(|score| if width > 0.0 { (score - least) / width } else { 1.0 }).collect()
}
