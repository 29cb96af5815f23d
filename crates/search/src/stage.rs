//! The stages of a search by name, and a record of the order after each of them.

use std::fmt::{self, Display};
use std::ops::Range;

use serde::Serialize;
use sidenote_catalog::FileId;

/// A stage of a search, in the order in which they run. `validity` runs once more after the reranker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The list of notes by words.
    Words,
    /// The list of notes by meaning.
    Meaning,
    /// The lists are merged.
    Fusion,
    /// Notes before and after the best ones, by number or date, gain a part of their scores.
    AdjacentNotes,
    /// Notes that have vectors keep a share of the first places while others have none.
    MissingVectors,
    /// Notes whose title, alias or file name is the query come first.
    Names,
    /// Notes that answer a question by relation come first.
    Relations,
    /// Of notes that say nearly the same, the newer one comes before the older one.
    NewerFacts,
    /// Superseded notes come below what supersedes them, and notes that are not valid now lose a part of their scores.
    Validity,
    /// Notes that do not meet the condition of the query are left out, and the others that meet it are added.
    Condition,
    /// Notes of the period that the query names are added where no word ranks them.
    Period,
    /// Notes in which most words of a long query stand in one place, in their order, come first.
    Quotations,
    /// A cross-encoder ranks the best notes again.
    Reranker,
    /// Memories are ranked for an intent, and those of other tiers left out.
    Intent,
}

impl Stage {
    /// Returns the name of the stage, as replies for people print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Meaning => "meaning",
            Self::Fusion => "fusion",
            Self::AdjacentNotes => "adjacent notes",
            Self::MissingVectors => "missing vectors",
            Self::Names => "names",
            Self::Relations => "relations",
            Self::NewerFacts => "newer facts",
            Self::Validity => "validity",
            Self::Condition => "condition",
            Self::Period => "period",
            Self::Quotations => "quotations",
            Self::Reranker => "reranker",
            Self::Intent => "intent",
        }
    }

    /// Returns whether the stage makes a list of its own, which the next stages merge.
    fn is_list(self) -> bool {
        matches!(self, Self::Words | Self::Meaning)
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The place of a note after a stage that found it or changed its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StagePlace {
    /// The stage.
    pub stage: Stage,
    /// The place, counted from 1; absent if the stage left the note out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
}

/// The order of the notes after each stage of a search.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    orders: Vec<(Stage, Vec<FileId>)>,
}

impl Trace {
    /// Records the order after a stage.
    pub fn record(&mut self, stage: Stage, order: impl IntoIterator<Item = FileId>) {
        self.orders.push((stage, order.into_iter().collect()));
    }

    /// Returns the place of a note after each stage that found it or changed its place.
    pub fn places_of(&self, file: FileId) -> Vec<StagePlace> {
        let place = |order: &[FileId]| order.iter().position(|other| *other == file).map(|at| at + 1);
        self.changes(place).into_iter().map(|(stage, place)| StagePlace { stage, place }).collect()
    }

    /// Returns the stages that changed which notes have these places, from 0, or their order, each once.
    pub fn stages_that_order(&self, places: Range<usize>) -> Vec<Stage> {
        let only = |order: &[FileId]| -> Vec<FileId> {
            order.iter().copied().take(places.end).skip(places.start).collect()
        };
        let mut stages: Vec<Stage> = Vec::new();
        for (stage, _) in self.changes(only) {
            if !stages.contains(&stage) {
                stages.push(stage);
            }
        }
        stages
    }

    /// Returns the stages that changed what `view` shows of the order. A list counts if it shows anything, and what merges the
    /// lists if it differs from any of those that do.
    fn changes<V: PartialEq + Default + Clone>(&self, view: impl Fn(&[FileId]) -> V) -> Vec<(Stage, V)> {
        let (mut before, mut changes): (Vec<V>, Vec<(Stage, V)>) = (Vec::new(), Vec::new());
        let nothing = V::default();
        for (stage, order) in &self.orders {
            let shown = view(order);
            let is_change = match (stage.is_list(), before.as_slice()) {
                (true, _) | (false, []) => shown != nothing,
                (false, before) => before.iter().any(|before| *before != shown),
            };
            if !stage.is_list() {
                before = vec![shown.clone()];
            } else if is_change {
                before.push(shown.clone());
            }
            if is_change {
                changes.push((*stage, shown));
            }
        }
        changes
    }
}
