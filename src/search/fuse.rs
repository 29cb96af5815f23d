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

/// An entry of the fused list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused {
    /// The note.
    pub file: FileId,
    /// Its fused score.
    pub score: f32,
    /// Where it comes from.
    pub components: Components,
}

/// How lists are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// Each score relative to the best and the worst of its list, text and vectors in equal parts.
    #[default]
    Relative,
    /// Reciprocal rank fusion, k = 60 (Cormack, Clarke & Büttcher 2009).
    Rrf,
    /// 0.7 of the normalised vector score and 0.3 of the normalised text score.
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
}

const RRF_K: f32 = 60.0;
/// Scores are normalised over this many entries, so that asking for more notes does not reorder the first ones.
const DEPTH: usize = 50;

/// Merges the text list and the vector list; equal scores by file number, so that a reply never shuffles.
pub fn fuse(text: &[Ranked], vector: &[Ranked], fusion: Fusion) -> Vec<Fused> {
    let (text_weight, vector_weight) = match fusion {
        Fusion::Relative => (0.5, 0.5),
        Fusion::Rrf => (1.0, 1.0),
        Fusion::Weighted => (0.3, 0.7),
    };
    let mut places: HashMap<FileId, Components> = HashMap::new();
    for (rank, (hit, part)) in text.iter().zip(parts(text, fusion)).enumerate() {
        let components = places.entry(hit.file).or_default();
        components.bm25_rank = Some(rank + 1);
        components.bm25 = Some(hit.score);
        components.from_bm25 = text_weight * part;
    }
    for (rank, (hit, part)) in vector.iter().zip(parts(vector, fusion)).enumerate() {
        let components = places.entry(hit.file).or_default();
        components.vector_rank = Some(rank + 1);
        components.cosine = Some(hit.score);
        components.from_vector = vector_weight * part;
    }
    let mut fused: Vec<Fused> = places
        .into_iter()
        .map(|(file, components)| Fused {
            file,
            score: components.from_bm25 + components.from_vector,
            components,
        })
        .collect();
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
    fused
}

/// Gives each entry's share before weighting.
fn parts(list: &[Ranked], fusion: Fusion) -> Vec<f32> {
    match fusion {
        Fusion::Rrf => (0..list.len()).map(|rank| 1.0 / (RRF_K + rank as f32 + 1.0)).collect(),
        Fusion::Relative | Fusion::Weighted => {
            let best = list.first().map_or(0.0, |hit| hit.score);
            let worst =
                list.get(..list.len().min(DEPTH)).and_then(<[Ranked]>::last).map_or(0.0, |hit| hit.score);
            let range = best - worst;
            let share = |hit: &Ranked| {
                if range > 0.0 { ((hit.score - worst) / range).max(0.0) } else { 1.0 }
            };
            list.iter().map(share).collect()
        }
    }
}
