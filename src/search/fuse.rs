//! Owns fusion: how two ranked lists become one. Pure.

use std::collections::HashMap;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::index::catalog::FileId;
use crate::search::Components;

/// An entry of a ranked list; lists come best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The note.
    pub file: FileId,
    /// Its score in this list.
    pub score: f32,
}

/// What is known of a note beyond its places in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Known {
    /// Its BM25F score, where the text list does not hold it.
    pub bm25: Option<f32>,
    /// How near its passages are; nothing where none has a vector.
    pub near: Option<Nearness>,
    /// The share of its passages that have no vector yet, 0 to 1.
    pub missing: f32,
}

/// How near the passages of a note are to a query.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Nearness {
    /// Cosine of the best passage, −1 to 1.
    pub best: f32,
    /// Squared cosines of the next [`OTHERS`] passages, added up: several fair passages are evidence, and squares keep
    /// faint ones from counting by their number.
    pub others: f32,
}

/// So many passages count behind the best one.
pub const OTHERS: usize = 4;

impl Nearness {
    /// Sums up the cosines of a note's passages; `None` where there are none.
    pub fn of(cosines: &mut [f32]) -> Option<Self> {
        cosines.sort_by(|a, b| b.total_cmp(a));
        let (best, rest) = cosines.split_first()?;
        let others = rest.iter().take(OTHERS).map(|cosine| cosine.max(0.0).powi(2)).sum();
        Some(Self { best: *best, others })
    }

    /// Gives the two shares of a note's nearness: its best passage and the others. None is below zero.
    fn shares(self) -> (f32, f32) {
        (self.best.max(0.0), OTHERS_WEIGHT * self.others)
    }
}

/// An entry of the fused list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused {
    /// The note.
    pub file: FileId,
    /// Its fused score: [`Components::total`].
    pub score: f32,
    /// Where it comes from.
    pub components: Components,
}

/// How lists are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// Each score as a share of the best: 0.4 of text, 0.6 of nearness. What stands in one list alone is scored by the
    /// other's measure too.
    #[default]
    Relative,
    /// Reciprocal rank fusion, k = 60 (Cormack, Clarke & Büttcher 2009).
    Rrf,
    /// 0.7 of the vector score and 0.3 of the text score, each between the worst and the best of its list.
    Weighted,
}

impl Fusion {
    /// Reads a method's name.
    ///
    /// # Errors
    /// `Invalid` for any other word.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "relative" => Ok(Self::Relative),
            "rrf" => Ok(Self::Rrf),
            "weighted" => Ok(Self::Weighted),
            _ => Err(Error::invalid(format!("{name:?} is not a fusion method"))
                .with_hint("use relative, rrf or weighted")),
        }
    }

    /// Says whether it asks for what is known of a note beyond its places in the lists.
    pub fn looks_closer(self) -> bool {
        self == Self::Relative
    }
}

/// The share of the text in [`Fusion::Relative`]; the rest is nearness. docs/dev/ranking.md tells how both constants were
/// chosen.
const TEXT: f32 = 0.4;
/// What the passages behind the best one count beside it in [`Fusion::Relative`].
const OTHERS_WEIGHT: f32 = 0.1;
const RRF_K: f32 = 60.0;
/// The least weight of the vectors where notes lack them: enough to order what the vectors alone found, too little to
/// overrule the text.
const LEAST_COVERAGE: f32 = 0.02;
/// [`Fusion::Weighted`] normalises over this many entries, so that asking for more notes does not reorder the first
/// ones.
const DEPTH: usize = 50;

/// Merges the text list and the vector list; equal scores by file number, until [`order`](crate::search::tie_order) has looked
/// up their paths.
///
/// A note without an entry in `known` has what its lists say. Where notes lack vectors ([`Known::missing`]), the vectors
/// count for less, in proportion to the text list's [coverage](coverage), and what a note lacks is estimated from its
/// text score: a missing vector neither costs a note its place nor lends one to its rivals. Where none is missing, no
/// score depends on this.
pub fn fuse(
    text: &[Ranked],
    vector: &[Ranked],
    known: &HashMap<FileId, Known>,
    fusion: Fusion,
) -> Vec<Fused> {
    let mut notes: HashMap<FileId, Components> = HashMap::new();
    for (rank, hit) in text.iter().enumerate() {
        let components = notes.entry(hit.file).or_default();
        components.bm25_rank = Some(rank + 1);
        components.bm25 = Some(hit.score);
    }
    for (rank, hit) in vector.iter().enumerate() {
        let components = notes.entry(hit.file).or_default();
        components.vector_rank = Some(rank + 1);
        components.cosine = Some(hit.score);
    }
    let coverage = coverage(text, known);
    let missing = |file: &FileId| known.get(file).map_or(0.0, |known| known.missing);
    match fusion {
        Fusion::Relative => add_relative(&mut notes, text, vector, known, coverage),
        Fusion::Rrf => {
            for (file, components) in &mut notes {
                let by_text = components.bm25_rank.map_or(0.0, reciprocal);
                let by_vector = components.vector_rank.map_or(0.0, reciprocal);
                components.from_bm25 = by_text;
                components.from_vector = coverage * estimated(by_vector, by_text, missing(file));
            }
        }
        Fusion::Weighted => {
            let (text, vector) = (Range::of(text), Range::of(vector));
            for (file, components) in &mut notes {
                let by_text = components.bm25.map_or(0.0, |score| text.place(score));
                let by_vector = components.cosine.map_or(0.0, |score| vector.place(score));
                components.from_bm25 = (0.3 + 0.7 * (1.0 - coverage)) * by_text;
                components.from_vector = 0.7 * coverage * estimated(by_vector, by_text, missing(file));
            }
        }
    }
    let mut fused: Vec<Fused> = notes
        .into_iter()
        .map(|(file, components)| Fused { file, score: components.total(), components })
        .collect();
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    fused
}

/// Gives the share of the text list's passages that have vectors: how far its notes can be compared by meaning. 1 where
/// nothing is missing, and where there is no text list, for then meaning alone answers.
fn coverage(text: &[Ranked], known: &HashMap<FileId, Known>) -> f32 {
    let looked_at = text.iter().filter_map(|hit| known.get(&hit.file));
    let (count, missing) =
        looked_at.fold((0.0, 0.0), |(count, missing), known| (count + 1.0, missing + known.missing));
    if missing > 0.0 { (1.0 - missing / count).max(LEAST_COVERAGE) } else { 1.0 }
}

/// Raises what is known of a note's nearness towards an estimate, by the share of its passages that lack a vector.
fn estimated(known: f32, estimate: f32, missing: f32) -> f32 {
    known + missing * (estimate - known).max(0.0)
}

fn add_relative(
    notes: &mut HashMap<FileId, Components>,
    text: &[Ranked],
    vector: &[Ranked],
    known: &HashMap<FileId, Known>,
    coverage: f32,
) {
    let best_text = text.first().map_or(0.0, |hit| hit.score);
    let faintest = vector.last().map_or(0.0, |hit| hit.score);
    let mut nearness: HashMap<FileId, (Nearness, f32)> = HashMap::with_capacity(notes.len());
    let mut best_near = 0.0f32;
    for (&file, components) in notes.iter_mut() {
        let known = known.get(&file).copied().unwrap_or_default();
        components.bm25 = components.bm25.or(known.bm25);
        components.cosine = known.near.map(|near| near.best).or(components.cosine);
        components.others = known.near.map(|near| near.others).filter(|others| *others > 0.0);
        let near =
            known.near.unwrap_or(Nearness { best: components.cosine.unwrap_or(faintest), others: 0.0 });
        let (best, others) = near.shares();
        best_near = best_near.max(best + others);
        nearness.insert(file, (near, known.missing));
    }
    // With all vectors there, these are TEXT and 1 − TEXT to the last bit.
    let for_text = TEXT + (1.0 - TEXT) * (1.0 - coverage);
    let for_near = (1.0 - TEXT) * coverage;
    for (file, components) in notes.iter_mut() {
        let by_text = if best_text > 0.0 { components.bm25.unwrap_or(0.0) / best_text } else { 0.0 };
        if best_text > 0.0 {
            components.from_bm25 = for_text * components.bm25.unwrap_or(0.0) / best_text;
        }
        if let Some((near, missing)) = nearness.get(file).filter(|_| best_near > 0.0) {
            let (best, others) = near.shares();
            components.from_vector = for_near * best / best_near;
            components.from_others = for_near * others / best_near;
            if *missing > 0.0 {
                let floor = faintest.max(0.0) / best_near;
                let estimate = floor + (1.0 - floor) * by_text;
                let share = (best + others) / best_near;
                components.from_vector += for_near * (estimated(share, estimate, *missing) - share);
            }
        }
    }
}

fn reciprocal(rank: usize) -> f32 {
    1.0 / (RRF_K + rank as f32)
}

/// The best and the worst score of a list.
struct Range {
    best: f32,
    worst: f32,
}

impl Range {
    fn of(list: &[Ranked]) -> Self {
        let last = list.get(..list.len().min(DEPTH)).and_then(<[Ranked]>::last);
        Self { best: list.first().map_or(0.0, |hit| hit.score), worst: last.map_or(0.0, |hit| hit.score) }
    }

    /// Gives a score's place between the two, 0 to 1; 1 where all are equal.
    fn place(&self, score: f32) -> f32 {
        let width = self.best - self.worst;
        if width > 0.0 { ((score - self.worst) / width).max(0.0) } else { 1.0 }
    }
}
