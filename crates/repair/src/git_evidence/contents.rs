//! Clues from the content that the file of a link had then: its id, or the same bytes.

use std::rc::Rc;

use sidenote_base::error::Result;
use sidenote_git::ObjectId;
use sidenote_links::content_similarity::ContentPieces;
use sidenote_links::rewrite::LinkedPlace;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::source::Source;

use super::{Followed, GitEvidence, LEAST_BODY, Origin};
use crate::evidence::{Certainty, Clue, EvidenceKind, TargetState};
use crate::moved_files::{is_mostly_in, is_rival};
use crate::present::Present;
use crate::working_tree::read;

impl GitEvidence<'_> {
    /// Returns clues from the `id` and the content that a note had then.
    pub(super) fn clues_of_content(
        &mut self,
        present: &Present,
        origin: &Origin,
        target: &NotePath,
        followed: &Followed,
    ) -> Result<Vec<Clue>> {
        let Some(id) = self.walk.graph.id(origin.commit).cloned() else { return Ok(Vec::new()) };
        let Some(blob) = self.reader.blob_at(&id, target.as_str())? else { return Ok(Vec::new()) };
        let Some(bytes) = self.reader.blob(&blob)? else { return Ok(Vec::new()) };
        let mut clues = Vec::new();
        let clue = |kind, to: &NotePath, certainty, detail| Clue {
            kind,
            source_then: origin.source.clone(),
            target_then: LinkedPlace::File(target.clone()),
            state: TargetState::At(LinkedPlace::File(to.clone())),
            certainty,
            detail,
        };
        if !target.is_note() {
            return Ok(clues);
        }
        let note = Source::unplaced(target.clone(), &bytes);
        if let Some(id) = note.own_id() {
            let found = self.core.index.catalog().names().with_id(&id)?;
            if let [only] = found.as_slice()
                && only.note_id == id
                && only.path != *target
            {
                let detail = format!("it has the id {id}");
                clues.push(clue(EvidenceKind::Id, &only.path, Certainty::Certain, detail));
            }
        }
        if note.body().len() >= LEAST_BODY {
            let found = present.with_content(blake3::hash(&bytes).as_bytes());
            // A copy that existed together with the note is not the moved note, and a content that other files had says nothing.
            if let [only] = found.as_slice()
                && only != target
                && !self.exists_at(origin.commit, only)?
                && (followed.at.is_some() || !self.exists_at(followed.last.0, only)?)
                && self.walk.owners.is_of(&blob, target, only)
                && !self.is_contested(followed, &blob, (target, only))?
            {
                let detail = "it has the same content".to_owned();
                clues.push(clue(EvidenceKind::Content, only, Certainty::Certain, detail));
            }
        }
        Ok(clues)
    }

    /// Returns whether a file whose content another file has may in fact be a third one, because the step that moved or
    /// removed it wrote most of its content elsewhere, too.
    fn is_contested(
        &mut self,
        followed: &Followed,
        blob: &ObjectId,
        (from, to): (&NotePath, &NotePath),
    ) -> Result<bool> {
        let mut path = from;
        for step in &followed.steps {
            let is_contested = match step.commit.and_then(|commit| self.walk.first_step(commit)) {
                Some(commits) => self.has_rival(commits, (path, &step.moved.to), blob)?,
                None => !step.moved.is_clear,
            };
            if is_contested {
                return Ok(true);
            }
            path = &step.moved.to;
        }
        if followed.at.is_some() {
            return Ok(false);
        }
        match followed.deleted_by {
            Some(commit) => self.has_rival((followed.last.0, commit), (from, to), blob),
            None => {
                let Some(content) = self.reader.pieces_of(&[blob])?.pop().flatten() else { return Ok(true) };
                let rivals = self.working.new.iter().filter(|other| is_rival(from, to, other));
                let rivals: Vec<NotePath> = rivals.cloned().collect();
                if !self.reader.may_compare(rivals.len()) {
                    return Ok(true);
                }
                let has_most =
                    |other| self.present_pieces(other).is_some_and(|it| is_mostly_in(&content, &it));
                Ok(rivals.iter().any(has_most))
            }
        }
    }

    /// Returns the pieces of the present content of a file; `None` if it cannot be read.
    fn present_pieces(&mut self, path: &NotePath) -> Option<Rc<ContentPieces>> {
        if let Some(known) = self.present_pieces.get(path) {
            return Some(known);
        }
        let bytes = read(self.core, path)?;
        Some(self.present_pieces.keep(path.clone(), ContentPieces::of(&bytes)))
    }
}
