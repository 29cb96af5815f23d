//! The evidence for the meaning of one link: clues, how certain each is, and their common result.

use std::collections::BTreeSet;

use serde::Serialize;
use sidenote_links::rewrite::{LinkedPlace, Relink};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;

use crate::RepairItem;
use crate::present::{LinkCase, Present};

/// How certain it is what a link meant (docs/spec/git.md 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// A guess, which a person has to confirm.
    Weak,
    /// Very likely.
    Strong,
    /// Proven.
    Certain,
}

impl Certainty {
    /// Returns the name in replies and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Strong => "strong",
            Self::Certain => "certain",
        }
    }
}

/// Where a clue comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceKind {
    /// The index saw the file move.
    Index,
    /// A journal records the move.
    Journal,
    /// The history of git.
    Git,
    /// The `id` of the note.
    Id,
    /// The same content.
    Content,
    /// The same file name, in another folder.
    Name,
}

impl EvidenceKind {
    /// Returns the name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Journal => "journal",
            Self::Git => "git",
            Self::Id => "id",
            Self::Content => "content",
            Self::Name => "name",
        }
    }
}

/// One piece of evidence for what a link meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where it comes from.
    pub kind: EvidenceKind,
    /// The file that it speaks for.
    pub to: String,
    /// How certain it is by itself.
    pub certainty: Certainty,
    /// A phrase that says what happened.
    pub detail: String,
}

/// What became of the file that a link meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetState {
    /// It is here now.
    At(LinkedPlace),
    /// It was deleted; the phrase says by what.
    Deleted(String),
}

/// A clue to what a link meant.
#[derive(Debug, Clone)]
pub(super) struct Clue {
    pub(super) kind: EvidenceKind,
    /// The path of the linking note when the link led to the right file.
    pub(super) source_then: NotePath,
    /// The right place then.
    pub(super) target_then: LinkedPlace,
    pub(super) state: TargetState,
    pub(super) certainty: Certainty,
    pub(super) detail: String,
}

impl Clue {
    /// Returns the present place, if it exists.
    pub(super) fn target(&self) -> Option<&LinkedPlace> {
        match &self.state {
            TargetState::At(path) => Some(path),
            TargetState::Deleted(_) => None,
        }
    }
}

/// What one link meant, by all clues.
#[derive(Debug)]
pub(super) struct LinkMeaning {
    pub(super) source: usize,
    pub(super) span: Span,
    link: usize,
    pub(super) is_dead: bool,
    clues: Vec<Clue>,
    /// The files of the same name, where nothing else is known.
    namesakes: Vec<NotePath>,
}

impl LinkMeaning {
    pub(super) fn new(present: &Present, case: &LinkCase, mut clues: Vec<Clue>) -> Self {
        clues.retain(|clue| clue.target().is_none_or(|target| present.has_place(target)));
        // The strongest come first, and among equal ones those that name the oldest state, so that the reply does not
        // depend on chance.
        clues.sort_by(|a, b| {
            (b.target().is_some(), b.certainty, a.kind).cmp(&(a.target().is_some(), a.certainty, b.kind))
        });
        let span = present.link(case).map_or(Span::new(0, 0), |link| link.span);
        Self {
            source: case.source,
            span,
            link: case.link,
            is_dead: case.is_dead,
            clues,
            namesakes: Vec::new(),
        }
    }

    /// Returns whether nothing speaks for any file, and no deletion is known.
    pub(super) fn is_unexplained(&self) -> bool {
        self.clues.is_empty() && self.namesakes.is_empty()
    }

    /// Adds the files that have the name of the link, in other folders.
    pub(super) fn add_namesakes(&mut self, present: &Present, case: &LinkCase) {
        /// The most files of one name that are shown.
        const MOST: usize = 5;
        self.namesakes = present.namesakes(case);
        self.namesakes.truncate(MOST);
    }

    /// Returns the file that all clues agree on, with the strongest clue for it.
    fn agreed(&self) -> Option<(&LinkedPlace, &Clue)> {
        let targets: BTreeSet<&LinkedPlace> = self.clues.iter().filter_map(Clue::target).collect();
        let best = self.clues.first()?;
        let target = best.target()?;
        (targets.len() == 1).then_some((target, best))
    }

    /// Returns how certain the meaning is. Evidence that disagrees makes it weak.
    pub(super) fn certainty(&self) -> Option<Certainty> {
        if let Some((_, clue)) = self.agreed() {
            return Some(clue.certainty);
        }
        let has_candidates =
            self.clues.iter().any(|clue| clue.target().is_some()) || !self.namesakes.is_empty();
        has_candidates.then_some(Certainty::Weak)
    }

    /// Returns the repair of the link, if all clues agree on a file.
    pub(super) fn relink(&self) -> Option<Relink> {
        self.agreed().map(|(target, _)| self.relink_to(target.clone()))
    }

    /// Returns the repair of the link with a target that was chosen.
    pub(super) fn relink_to(&self, target: LinkedPlace) -> Relink {
        let then = self.clues.iter().find(|clue| clue.target() == Some(&target)).or(self.clues.first());
        let (source_then, target_then) = match then {
            Some(clue) => (Some(clue.source_then.clone()), clue.target_then.clone()),
            None => (None, target.clone()),
        };
        Relink { span: self.span, source_then, target_then, target }
    }

    /// Returns the reply for the link.
    pub(super) fn item(&self, present: &Present) -> Option<RepairItem> {
        let source = present.sources.get(self.source)?;
        let link = source.note.links.get(self.link)?;
        let before = source.text.get(..link.span.start)?;
        let of_clue = |clue: &Clue| {
            let to = clue.target()?.to_string();
            Some(Evidence { kind: clue.kind, to, certainty: clue.certainty, detail: clue.detail.clone() })
        };
        let mut evidence: Vec<Evidence> = Vec::new();
        for found in self.clues.iter().filter_map(of_clue) {
            if !evidence.contains(&found) {
                evidence.push(found);
            }
        }
        evidence.extend(self.namesakes.iter().map(|path| Evidence {
            kind: EvidenceKind::Name,
            to: path.to_string(),
            certainty: Certainty::Weak,
            detail: "it has the same file name".to_owned(),
        }));
        let deleted = self.clues.iter().find_map(|clue| match &clue.state {
            TargetState::Deleted(by) => Some(by.clone()),
            TargetState::At(_) => None,
        });
        Some(RepairItem {
            path: source.path.to_string(),
            line: link.line,
            column: 1 + before.len() - before.rfind('\n').map_or(0, |end| end + 1),
            span: link.span,
            link: link.span.of(&source.text).to_owned(),
            dead: self.is_dead,
            was: self.clues.first().map(|clue| clue.target_then.to_string()),
            to: self.agreed().map(|(target, _)| target.to_string()),
            certainty: self.certainty(),
            deleted: deleted.filter(|_| evidence.is_empty()),
            new_link: None,
            dead_anchor: None,
            evidence,
        })
    }
}
