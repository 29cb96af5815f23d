//! Answers by relation: notes, why they answer, and what states it.

use sidenote_catalog::FileId;
use sidenote_markdown::relation::{RelationEnd, RelationRules};
use sidenote_markdown::span::Span;

use crate::reader::SearchReader;

/// How questions are answered by relations.
#[derive(Clone, Copy)]
pub struct RelationLookup<'a> {
    /// The rules of relations.
    pub rules: &'a RelationRules,
    /// Reads notes, for the words around their links.
    pub reader: &'a dyn SearchReader,
}

impl std::fmt::Debug for RelationLookup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelationLookup").field("rules", &self.rules.fingerprint()).finish_non_exhaustive()
    }
}

/// The notes that answer a question by relation.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationAnswer {
    /// The name of the type.
    pub kind: String,
    /// The note that the question names.
    pub named: FileId,
    /// The end of the relation at which it is; `None` for notes of a kind that are linked with it.
    pub end: Option<RelationEnd>,
    /// The notes at the other end, those that are stated most often first, and then linked notes.
    pub notes: Vec<RelatedNote>,
    /// Whether the question asks for nothing else.
    pub is_whole: bool,
}

impl RelationAnswer {
    /// Returns the number of notes of which the relation is known, and not only a link.
    pub fn stated(&self) -> usize {
        let is_known = |note: &&RelatedNote| matches!(note.standing, Standing::Stated | Standing::Shared);
        self.notes.iter().filter(is_known).count()
    }
}

/// Why a note answers a question by relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A note states the relation.
    Stated,
    /// The relation follows from relations of another type: both attended a meeting.
    Shared,
    /// The note is linked with the named one, in words that fit the question.
    Likely,
}

/// A note that answers a question by relation.
#[derive(Debug, Clone, PartialEq)]
pub struct RelatedNote {
    /// The note.
    pub file: FileId,
    /// Why it answers.
    pub standing: Standing,
    /// How well the words around the link fit the question.
    pub fit: f32,
    /// What states the relation, or holds the link.
    pub evidence: Option<Evidence>,
}

/// The place in a note that states a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The note that states it.
    pub source: FileId,
    /// The line, counted from 1.
    pub line: usize,
    /// The text that states it.
    pub span: Span,
}
