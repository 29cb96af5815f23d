//! Owns the choice of what goes to the trash where memories take too much room (spec/memory.md, Forgetting and eviction).

use crate::clock::Timestamp;

/// Evicting ends where so much of the room is taken, in percent.
const UNTIL: u64 = 85;
/// So many of a hundred notes go where eviction is asked for although there is room.
const FORCED: usize = 15;

/// A memory that could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionCandidate {
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was used last, or made.
    pub last: Timestamp,
    /// When it was made.
    pub created: Timestamp,
    /// Its path, which decides between equals.
    pub path: String,
    /// Whether it must stay.
    pub stays: bool,
}

/// Chooses the memories that go, in the order in which they do: the least recently used first, then the oldest, until
/// 85 % of `most` bytes are taken. Where they take no more than `most`, none goes, unless it is `forced`: then 15 % of
/// the notes, one at least.
pub fn choose(candidates: &[EvictionCandidate], most: u64, forced: bool) -> Vec<usize> {
    let mut taken: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    // No room at all is no limit: nobody means that all shall go.
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
