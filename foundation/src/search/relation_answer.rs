//! Answers by relation: the notes that are put before the ranking, and what states that they belong there.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::index::catalog::FileId;
use crate::index::file_set::FileSet;
use crate::index::{Index, Snapshot};
use crate::search::fuse::FusedHit;
use crate::search::query::Query;
use crate::search::relation_question;
use crate::search::{Components, QueryVector};
use crate::text::path::NotePath;
use crate::text::relation::{RelationEnd, RelationRules};
use crate::text::span::Span;

/// The score that is added to a note at the other end of a relation that the query asks for. Each of these scores is larger
/// than the next one by more than all other parts together.
const RELATION_SCORE: f32 = 4.8;
/// The score that is added to a linked note in words of the relation.
const TOLD_SCORE: f32 = 3.6;
/// The score that is added to a note whose relation follows from others, such as a common meeting.
const SHARED_SCORE: f32 = 2.4;
/// The score that is added to another linked note that may answer.
const LINKED_SCORE: f32 = 1.2;
/// The least fit of a linked note in words of the relation.
const TOLD: f32 = 1.0;
/// What is added to it for each unit of [`RelatedNote::fit`].
const FIT_WEIGHT: f32 = 0.1;
/// The number of notes up to which less likely linked notes follow the others, if the ranking does not.
const AT_LEAST: usize = 5;

/// How questions are answered by relations.
#[derive(Clone, Copy)]
pub struct RelationLookup<'a> {
    /// The rules of relations.
    pub rules: &'a RelationRules,
    /// Reads a note, for the words around its links. `None` if it cannot be read.
    pub read: &'a (dyn Fn(&NotePath) -> Option<Vec<u8>> + Sync),
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
    /// The note is linked with the named one, in other words.
    Possible,
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

/// Puts the notes first that answer a question by relation, including notes that are in neither list. If the question asks
/// for nothing else, and some note states the relation, the others are left out.
pub(super) fn put_related_first(
    (index, snapshot): (&Index, &Snapshot),
    lookup: RelationLookup<'_>,
    (query, vector): (&Query, &QueryVector),
    allowed: Option<&FileSet>,
    fused: &mut Vec<FusedHit>,
) -> Result<Option<RelationAnswer>> {
    // A note that the whole query names is what was asked for.
    if fused.iter().any(|hit| hit.components.from_name.is_some()) {
        return Ok(None);
    }
    let catalog = index.catalog();
    let found = relation_question::answer((&catalog, snapshot), lookup, &query.text_to_embed, vector)?;
    let Some(mut answer) = found else { return Ok(None) };
    answer.notes.retain(|note| allowed.is_none_or(|files| files.contains(note.file)));
    answer.is_whole &= answer.stated() > 0;
    let sure = answer.notes.iter().filter(|note| note.standing != Standing::Possible).count();
    if sure == 0 {
        return Ok(None);
    }
    answer.notes.truncate(if answer.is_whole { sure.max(AT_LEAST) } else { sure });
    let listed: HashSet<FileId> = fused.iter().map(|hit| hit.file).collect();
    let unlisted = answer.notes.iter().map(|note| note.file).filter(|file| !listed.contains(file));
    fused.extend(unlisted.map(|file| FusedHit { file, score: 0.0, components: Components::default() }));
    let related: HashMap<FileId, &RelatedNote> = answer.notes.iter().map(|note| (note.file, note)).collect();
    for hit in fused.iter_mut() {
        let Some(note) = related.get(&hit.file) else { continue };
        match note.standing {
            Standing::Stated => hit.components.from_relation = Some(RELATION_SCORE),
            Standing::Shared => hit.components.from_relation = Some(SHARED_SCORE),
            Standing::Likely => {
                let score = if note.fit >= TOLD { TOLD_SCORE } else { LINKED_SCORE };
                hit.components.from_link = Some(score + FIT_WEIGHT * note.fit.clamp(0.0, 3.0));
            }
            Standing::Possible => {}
        }
        hit.score = hit.components.total();
    }
    if answer.is_whole {
        fused.retain(|hit| related.contains_key(&hit.file));
    }
    Ok(Some(answer))
}
