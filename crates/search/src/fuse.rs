//! Fusion: merges the ranking by words and the ranking by vectors into one. Pure.

use std::collections::HashMap;

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::FileId;

use crate::Components;

/// An entry of a ranked list. The best entry comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The note.
    pub file: FileId,
    /// The score of the note in this list.
    pub score: f32,
}

/// The scores of a note that do not depend on its ranks in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NoteScores {
    /// The BM25F score, or `None` if the note contains no word of the query.
    pub bm25: Option<f32>,
    /// The similarity of its passages to the query, or `None` if no passage has a vector.
    pub near: Option<Similarity>,
    /// The share of its passages that have no vector yet, 0 to 1.
    pub missing: f32,
}

/// The similarity of the passages of a note to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// The similarity of the best passage.
    pub best: f32,
    /// The similarities of the next passages. Several similar passages are evidence.
    pub next: [Option<f32>; NEXT_PASSAGES],
}

/// The number of passages after the best one that count.
pub(crate) const NEXT_PASSAGES: usize = 4;

impl Similarity {
    /// Returns the similarity of a note whose passages have these similarities, or `None` if there are none.
    pub fn of(similarities: &mut [f32]) -> Option<Self> {
        similarities.sort_by(|a, b| b.total_cmp(a));
        let (best, rest) = similarities.split_first()?;
        let mut next = [None; NEXT_PASSAGES];
        next.iter_mut().zip(rest).for_each(|(next, similarity)| *next = Some(*similarity));
        Some(Self { best: *best, next })
    }

    /// Returns the sum of the squares by which the similarities of the next passages exceed the background. Squares limit the
    /// weight of many dissimilar passages.
    fn others(self, background: f32) -> f32 {
        let exceeding = self.next.into_iter().flatten().map(|similarity| (similarity - background).max(0.0));
        exceeding.fold(0.0, |sum, exceeding| sum + exceeding * exceeding)
    }
}

/// The scale on which similarities are compared: the background is 0, and the best passage of all is 1.
#[derive(Debug, Clone, Copy)]
struct FusionScale {
    background: f32,
    span: f32,
}

impl FusionScale {
    /// Creates the scale for a list. If even the best passage hardly exceeds the usual similarity, or if the list holds notes
    /// below it, then the list was restricted to notes about something else, and the background is theirs.
    fn of(candidates: &Candidates<'_>, lowest: f32) -> Self {
        let listed = candidates.vector.iter().map(|hit| hit.score);
        let near = candidates.known.values().filter_map(|known| known.near).map(|near| near.best);
        let Some(best) = listed.chain(near).reduce(f32::max) else {
            return Self { background: 0.0, span: 1.0 };
        };
        let background = candidates.background.min(lowest).min(best - MIN_SPAN);
        Self { background, span: (best - background).max(f32::EPSILON) }
    }

    /// Returns the similarity of the best passage and the weighted one of the others. Neither is negative.
    fn shares(self, near: Similarity) -> (f32, f32) {
        let others = near.others(self.background) / (self.span * self.span);
        (self.place(near.best), NEXT_PASSAGES_WEIGHT * others)
    }

    /// Returns where a similarity lies, 0 if it is below the background.
    fn place(self, similarity: f32) -> f32 {
        (similarity - self.background).max(0.0) / self.span
    }
}

/// An entry of the fused list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusedHit {
    /// The note.
    pub file: FileId,
    /// The fused score, which is [`Components::total`].
    pub score: f32,
    /// The parts of the score.
    pub components: Components,
}

/// The method that merges the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// Each score relative to the best one of its list, with a weight of 0.4 for words and 0.6 for vectors. A note that
    /// is in one list only is scored by the measure of the other list, too. Cosines are measured from the usual one of
    /// the vault.
    #[default]
    Relative,
    /// Reciprocal rank fusion with k = 60 (Cormack, Clarke & Büttcher 2009).
    Rrf,
    /// A weight of 0.7 for vectors and 0.3 for words, with each score normalised between the worst and the best of
    /// its list.
    Weighted,
}

impl Fusion {
    /// Parses the name of a method.
    ///
    /// # Errors
    /// `Invalid` if there is no method of this name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "relative" => Ok(Self::Relative),
            "rrf" => Ok(Self::Rrf),
            "weighted" => Ok(Self::Weighted),
            _ => Err(Error::invalid(format!("{name:?} is not a fusion method"))
                .with_hint("use relative, rrf or weighted")),
        }
    }

    /// Returns whether the method uses [`NoteScores`] of every note.
    pub(crate) fn rescores(self) -> bool {
        self == Self::Relative
    }
}

/// The weight of the text score in [`Fusion::Relative`]; the rest is the weight of the similarity.
/// docs/dev/ranking.md says how both constants were chosen.
const TEXT_WEIGHT: f32 = 0.4;
/// The weight of the passages after the best one in [`Fusion::Relative`].
const NEXT_PASSAGES_WEIGHT: f32 = 0.09;
/// The least by which the best passage exceeds the background.
const MIN_SPAN: f32 = 0.1;
const RRF_K: f32 = 60.0;
/// The minimum weight of the vectors if notes lack vectors: enough to order the notes that only the vectors found,
/// and too little to override the text score.
const MIN_COVERAGE: f32 = 0.02;
/// The least share of the first places that belongs to notes with vectors: the last of ten. Of the places of a vault in which
/// all notes have vectors, about as many as the weight of the vectors.
const MIN_EMBEDDED_PLACES: f32 = 0.1;
/// The power of the share of its passages with which a note that is partly embedded counts. It is embedded from its
/// beginning, which tells most of what it is about.
const PARTLY_EMBEDDED: f32 = 0.25;
/// The number of entries that [`Fusion::Weighted`] normalises over. It is constant, so that asking for more notes
/// does not reorder the first ones.
const NORMALISED_DEPTH: usize = 50;

/// The notes that are merged into one list, and what is known about them.
#[derive(Debug, Clone, Copy)]
pub struct Candidates<'a> {
    /// The text list.
    pub text: &'a [Ranked],
    /// The vector list.
    pub vector: &'a [Ranked],
    /// Notes of neither list that are scored by both measures. Only [`Fusion::Relative`] scores them.
    pub unlisted: &'a [FileId],
    /// The scores that do not depend on ranks. A note without an entry is scored by the lists alone.
    pub known: &'a HashMap<FileId, NoteScores>,
    /// The similarity that a passage has with the query by chance.
    pub background: f32,
    /// The share of all passages that have a vector, 0 to 1.
    pub embedded: f32,
}

impl<'a> Candidates<'a> {
    /// Returns the notes of two lists without a background, where all notes except the known ones have vectors for all passages.
    pub fn listed(text: &'a [Ranked], vector: &'a [Ranked], known: &'a HashMap<FileId, NoteScores>) -> Self {
        Self { text, vector, unlisted: &[], known, background: 0.0, embedded: 1.0 }
    }
}

/// Merges the text list and the vector list. Equal scores are ordered by file number until
/// [`tie_order`](crate::tie_order) orders them by path.
///
/// If notes lack vectors ([`NoteScores::missing`]), the weight of the vectors is lowered in proportion to the coverage
/// of the text list, and the missing similarity is estimated from the text score. So a missing vector neither lowers a
/// note nor raises other notes. If no vector is missing, none of this changes a score.
pub fn fuse(candidates: &Candidates<'_>, fusion: Fusion) -> Vec<FusedHit> {
    fuse_with(candidates, fusion, coverage(candidates.text, candidates.known))
}

/// Raises notes that have vectors to the places reserved for them, if notes of the fused list lack vectors. If none of
/// the best notes by words has a vector, even a high similarity would not count against them. So a share of the first
/// places is reserved for the notes that have vectors, in their own order.
pub fn raise_embedded(fused: &mut [FusedHit], candidates: &Candidates<'_>, fusion: Fusion) {
    if coverage(candidates.text, candidates.known) >= 1.0 {
        return;
    }
    let share = ((1.0 - TEXT_WEIGHT) * candidates.embedded).max(MIN_EMBEDDED_PLACES);
    let is_embedded =
        |hit: &FusedHit| hit.components.cosine.is_some() || hit.components.vector_rank.is_some();
    let alone = fuse_with(candidates, fusion, 1.0).into_iter().filter(is_embedded);
    sort_by_score(fused);
    let places: HashMap<FileId, usize> = fused.iter().enumerate().map(|(at, hit)| (hit.file, at)).collect();
    let scores: Vec<f32> = fused.iter().map(|hit| hit.score).collect();
    let mut raised: Vec<(usize, f32)> = Vec::new();
    for (at, hit) in alone.enumerate() {
        // The notes that may come before it, without those that were raised.
        let before = ((at + 1) as f32 / share).ceil() as usize - 1 - raised.len();
        let place = places.get(&hit.file).copied().filter(|place| *place > before);
        raised.extend(place.zip(scores.get(before).copied()));
    }
    // A little more than the score there, and than what was raised behind it, so that it comes before those with the same one.
    let mut next = 0.0_f32;
    for (place, score) in raised.into_iter().rev() {
        let Some(hit) = fused.get_mut(place) else { continue };
        hit.components.from_vector += score.max(next) * (1.0 + 4.0 * f32::EPSILON) - hit.score;
        hit.score = hit.components.total();
        next = hit.score;
    }
    sort_by_score(fused);
}

fn sort_by_score(fused: &mut [FusedHit]) {
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
}

/// Merges the lists where the vectors have this share of their weight.
fn fuse_with(candidates: &Candidates<'_>, fusion: Fusion, coverage: f32) -> Vec<FusedHit> {
    let Candidates { text, vector, known, .. } = *candidates;
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
    let missing = |file: &FileId| known.get(file).map_or(0.0, |known| known.missing);
    match fusion {
        Fusion::Relative => add_relative(&mut notes, candidates, coverage),
        Fusion::Rrf => {
            for (file, components) in &mut notes {
                let by_text = components.bm25_rank.map_or(0.0, reciprocal);
                let by_vector = components.vector_rank.map_or(0.0, reciprocal);
                components.from_bm25 = by_text;
                components.from_vector = coverage * estimated(by_vector, by_text, missing(file));
            }
        }
        Fusion::Weighted => {
            let (text, vector) = (ScoreRange::of(text), ScoreRange::of(vector));
            for (file, components) in &mut notes {
                let by_text = components.bm25.map_or(0.0, |score| text.normalise(score));
                let by_vector = components.cosine.map_or(0.0, |score| vector.normalise(score));
                components.from_bm25 = (0.3 + 0.7 * (1.0 - coverage)) * by_text;
                components.from_vector = 0.7 * coverage * estimated(by_vector, by_text, missing(file));
            }
        }
    }
    let mut fused: Vec<FusedHit> = notes
        .into_iter()
        .map(|(file, components)| FusedHit { file, score: components.total(), components })
        .collect();
    sort_by_score(&mut fused);
    fused
}

/// Returns the share of the text list that has vectors; a note with vectors for some of its passages counts in
/// part. It is 1 if no vector is missing, and if the text list is empty, because the vectors alone answer then.
fn coverage(text: &[Ranked], known: &HashMap<FileId, NoteScores>) -> f32 {
    let looked_at = text.iter().filter_map(|hit| known.get(&hit.file));
    let lacking = looked_at.map(|known| 1.0 - (1.0 - known.missing).powf(PARTLY_EMBEDDED));
    let (count, missing) =
        lacking.fold((0.0, 0.0), |(count, missing), lacking| (count + 1.0, missing + lacking));
    if missing > 0.0 { (1.0 - missing / count).max(MIN_COVERAGE) } else { 1.0 }
}

/// Raises a known similarity towards an estimate, by the share of passages that lack a vector.
fn estimated(known: f32, estimate: f32, missing: f32) -> f32 {
    known + missing * (estimate - known).max(0.0)
}

fn add_relative(notes: &mut HashMap<FileId, Components>, candidates: &Candidates<'_>, coverage: f32) {
    let Candidates { text, vector, unlisted, known, .. } = *candidates;
    for file in unlisted {
        notes.entry(*file).or_default();
    }
    let best_text = text.first().map_or(0.0, |hit| hit.score);
    let lowest_similarity = vector.last().map_or(0.0, |hit| hit.score);
    let scale = FusionScale::of(candidates, lowest_similarity);
    let mut similarities: HashMap<FileId, (Similarity, f32)> = HashMap::with_capacity(notes.len());
    let mut best_similarity = 0.0f32;
    for (&file, components) in notes.iter_mut() {
        let known = known.get(&file).copied().unwrap_or_default();
        components.bm25 = components.bm25.or(known.bm25);
        components.cosine = known.near.map(|near| near.best).or(components.cosine);
        let others = known.near.map(|near| near.others(scale.background));
        components.others = others.filter(|others| *others > 0.0);
        let near = known.near.unwrap_or(Similarity {
            best: components.cosine.unwrap_or(lowest_similarity),
            next: [None; NEXT_PASSAGES],
        });
        let (best, others) = scale.shares(near);
        best_similarity = best_similarity.max(best + others);
        similarities.insert(file, (near, known.missing));
    }
    // If no vector is missing, these are exactly TEXT_WEIGHT and 1 − TEXT_WEIGHT.
    let text_weight = TEXT_WEIGHT + (1.0 - TEXT_WEIGHT) * (1.0 - coverage);
    let vector_weight = (1.0 - TEXT_WEIGHT) * coverage;
    for (file, components) in notes.iter_mut() {
        let by_text = if best_text > 0.0 { components.bm25.unwrap_or(0.0) / best_text } else { 0.0 };
        if best_text > 0.0 {
            components.from_bm25 = text_weight * components.bm25.unwrap_or(0.0) / best_text;
        }
        if let Some((near, missing)) = similarities.get(file).filter(|_| best_similarity > 0.0) {
            let (best, others) = scale.shares(*near);
            components.from_vector = vector_weight * best / best_similarity;
            components.from_others = vector_weight * others / best_similarity;
            if *missing > 0.0 {
                let floor = scale.place(lowest_similarity) / best_similarity;
                let estimate = floor + (1.0 - floor) * by_text;
                let share = (best + others) / best_similarity;
                components.from_vector += vector_weight * (estimated(share, estimate, *missing) - share);
            }
        }
    }
}

fn reciprocal(rank: usize) -> f32 {
    1.0 / (RRF_K + rank as f32)
}

/// The best and the worst score of a list.
struct ScoreRange {
    best: f32,
    worst: f32,
}

impl ScoreRange {
    fn of(list: &[Ranked]) -> Self {
        let last = list.get(..list.len().min(NORMALISED_DEPTH)).and_then(<[Ranked]>::last);
        Self { best: list.first().map_or(0.0, |hit| hit.score), worst: last.map_or(0.0, |hit| hit.score) }
    }

    /// Normalises a score to 0 to 1 between the worst and the best; the result is 1 if all scores are equal.
    fn normalise(&self, score: f32) -> f32 {
        let width = self.best - self.worst;
        if width > 0.0 { ((score - self.worst) / width).max(0.0) } else { 1.0 }
    }
}
