//! Puts the notes that answer a question by relation before the ranking.

use std::collections::{HashMap, HashSet};

use sidenote_catalog::FileId;
use sidenote_sets::file_set::FileSet;

use crate::Components;
use crate::fuse::FusedHit;
use crate::relation_answer::{RelatedNote, RelationAnswer, Standing};

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

/// Puts the notes first that answer a question by relation, including notes that are in neither list. If the question asks
/// for nothing else, and some note states the relation, the others are left out. Returns the answer with the notes that are
/// allowed; `None` if there are none.
pub(super) fn put_related_first(
    mut answer: RelationAnswer,
    allowed: Option<&FileSet>,
    fused: &mut Vec<FusedHit>,
) -> Option<RelationAnswer> {
    answer.notes.retain(|note| allowed.is_none_or(|files| files.contains(note.file)));
    answer.is_whole &= answer.stated() > 0;
    if answer.notes.is_empty() {
        return None;
    }
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
        }
        hit.score = hit.components.total();
    }
    if answer.is_whole {
        fused.retain(|hit| related.contains_key(&hit.file));
    }
    Some(answer)
}
