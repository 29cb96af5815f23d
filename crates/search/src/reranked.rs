//! Orders the best hits by the scores of a reranker.

use crate::SearchHit;
use crate::reader::SearchReader;
use crate::updated_fact::newer_before_older;

/// Sorts the hits again that the reader scores. Notes that the query names or asks for by relation stay first. The set of
/// scores stays the same: each hit gets the score of its new position.
pub(super) fn rerank(reader: &dyn SearchReader, hits: &mut [SearchHit]) {
    let put_first = hits.iter().take_while(|hit| hit.components.is_put_first()).count();
    let rest = hits.get_mut(put_first..).unwrap_or_default();
    let scores = reader.rerank(rest);
    reorder(rest, &scores);
}

/// Sorts the hits with a score, which are the first ones, by it.
fn reorder(hits: &mut [SearchHit], scores: &[f32]) {
    let read = hits.get_mut(..scores.len().min(hits.len())).unwrap_or_default();
    let shares: Vec<f32> = read.iter().map(|hit| hit.score).collect();
    let mut sorted: Vec<SearchHit> = Vec::with_capacity(read.len());
    let mut order = order_by(scores);
    let hit_at = |at: &usize| read.get(*at);
    newer_before_older(
        &mut order,
        |at| hit_at(at).map(|hit| hit.row.id),
        |at| hit_at(at).and_then(|hit| hit.updated_by),
    );
    for (place, &at) in order.iter().enumerate() {
        let (Some(hit), Some(&share)) = (read.get(at), shares.get(place)) else { continue };
        let mut hit = hit.clone();
        hit.components.rerank = scores.get(at).copied();
        hit.components.from_rerank = Some(share - hit.score);
        hit.score = hit.components.total();
        sorted.push(hit);
    }
    read.iter_mut().zip(sorted).for_each(|(old, new)| *old = new);
}

/// Returns the order of the first entries of a list by their scores, as indexes, best first. Entries with equal scores
/// keep their order.
fn order_by(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |at: &usize| scores.get(*at).copied().unwrap_or(f32::MIN);
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}
