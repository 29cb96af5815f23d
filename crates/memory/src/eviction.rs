//! Eviction: the choice of memories that go to the trash when the limit is exceeded (docs/spec/memory.md, Forgetting
//! and eviction).

use sidenote_base::clock::Timestamp;

/// The percentage of the limit at which eviction stops.
const UNTIL: u64 = 85;
/// The percentage of notes that a forced eviction removes.
const FORCED: usize = 15;

/// A memory that may be evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionCandidate {
    /// The size in bytes.
    pub bytes: u64,
    /// The time of the last use, or of creation.
    pub last: Timestamp,
    /// The time of creation.
    pub created: Timestamp,
    /// The path, which breaks ties.
    pub path: String,
    /// Whether the memory is protected from eviction.
    pub stays: bool,
}

/// Selects the memories to evict, the least recently used first, then the oldest, until at most 85 % of `most` bytes
/// are used. If at most `most` bytes are used, nothing is evicted, unless `forced`: then 15 % of the notes, at least one.
pub fn choose(candidates: &[EvictionCandidate], most: u64, forced: bool) -> Vec<usize> {
    let mut taken: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    // A limit of 0 means no limit.
    let is_over = most > 0 && taken > most;
    let mut order: Vec<(usize, &EvictionCandidate)> =
        candidates.iter().enumerate().filter(|(_, candidate)| !candidate.stays).collect();
    order.sort_by(|(_, one), (_, other)| {
        (one.last, one.created, &one.path).cmp(&(other.last, other.created, &other.path))
    });
    if is_over {
        let end = u64::try_from(u128::from(most) * u128::from(UNTIL) / 100).unwrap_or(most);
        let mut going = Vec::new();
        for (at, candidate) in order {
            if taken <= end {
                break;
            }
            taken -= candidate.bytes;
            going.push(at);
        }
        return going;
    }
    let count = if forced { (candidates.len() * FORCED / 100).max(1) } else { 0 };
    order.into_iter().take(count).map(|(at, _)| at).collect()
}
