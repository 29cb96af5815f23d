//! Following a file from a commit to the present, commit by commit.

use sidenote_base::error::Result;
use sidenote_catalog::FileKind;
use sidenote_git::{CommitIndex, ObjectId, PathChange};
use sidenote_markdown::path::NotePath;

use super::{Followed, GitEvidence, HEAD, MAX_CANDIDATES, Step};
use crate::commit_changes::{CommitChanges, paths_of};
use crate::history_reader::HistoryReader;
use crate::history_walk::{HistoryWalk, PathEvent, PathEventKind};
use crate::moved_files::{FileMove, MARGIN};
use crate::working_tree::SAME_PERCENT;

/// What happened next to a file that is followed.
enum NextMove {
    /// It is still at its path. If it was away meanwhile, `percent` is the share of its content that is there, and
    /// `is_clear` says that nothing speaks for another file.
    Stays {
        percent: u8,
        is_clear: bool,
    },
    /// A commit moved it. `is_restored` says that much of it is at its old path again in the last commit.
    Moved {
        by: CommitIndex,
        moved: FileMove,
        is_restored: bool,
    },
    Deleted {
        by: CommitIndex,
        parent: CommitIndex,
    },
}

/// Whether the file at a path on another branch is the one that is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    Same,
    /// The two came to the path by themselves, and have a part of their content in common, as pages of one template have, too.
    Alike,
    Different,
}

/// What a commit did that gave the path of a file another content.
enum Replacement {
    /// The file went to another path.
    Moved(FileMove),
    /// The file was rewritten in place.
    Rewritten,
    /// Another file was moved onto it, and its own new path is not known.
    Lost,
}

/// The changes of files by commits, from the walk and from contents.
struct CommitFiles<'a> {
    walk: &'a mut HistoryWalk,
    reader: &'a mut HistoryReader,
}

impl GitEvidence<'_> {
    /// Follows a file from a commit to the present.
    pub(super) fn follow(&mut self, commit: CommitIndex, path: &NotePath) -> Result<Followed> {
        /// The most renames of one file.
        const MOST: usize = 64;
        let wanted = (commit, path.clone());
        if let Some(known) = self.followed.get(&wanted) {
            return Ok(known.clone());
        }
        let (mut at, mut since) = (path.clone(), commit);
        let mut followed =
            Followed { at: None, steps: Vec::new(), deleted_by: None, last: (HEAD, path.clone()) };
        let mut is_deleted = false;
        // The steps from a path that has much of the file again, with the path: another, similar file may be the meant one.
        let mut restored = Vec::new();
        let (percent, is_clear) = loop {
            let next = if followed.steps.len() < MOST {
                self.next_move(since, &at)?
            } else {
                NextMove::Stays { percent: 100, is_clear: false }
            };
            match next {
                NextMove::Moved { by, moved, is_restored } => {
                    if is_restored {
                        restored.push((followed.steps.len(), at));
                    }
                    at = moved.to.clone();
                    followed.steps.push(Step { commit: Some(by), moved });
                    since = by;
                }
                NextMove::Deleted { by, parent } => {
                    followed.deleted_by = Some(by);
                    followed.last = (parent, at.clone());
                    is_deleted = true;
                    break (100, true);
                }
                NextMove::Stays { percent, is_clear } => break (percent, is_clear),
            }
        };
        for (step, path) in restored {
            if let Some(step) = followed.steps.get_mut(step) {
                step.moved.is_clear &= path == at;
            }
        }
        if !is_deleted && self.is_committed(&at) {
            followed.last = (HEAD, at.clone());
            let is_there = self.core.vault.disk_path(&at).symlink_metadata().is_ok();
            if is_there && !self.working.taken.contains_key(&at) {
                followed.at = Some(at);
            } else if let Some(moved) = self.working.moved.get(&at) {
                followed.at = Some(moved.to.clone());
                let mut moved = moved.clone();
                moved.is_clear &= self.is_clear_in_tree(&at, &moved.to);
                followed.steps.push(Step { commit: None, moved });
            }
        } else if !is_deleted {
            // A merge left it out, or it moved more often than it is followed.
            followed.deleted_by = self.walk.known_events_of(&at).first().map(|event| event.commit);
            followed.last = (since, at.clone());
        }
        // Without a step, the link is right as it is.
        if let Some(Step { moved: last, .. }) = followed.steps.last_mut() {
            last.percent = last.percent.min(percent);
            last.is_clear &= is_clear;
        }
        self.followed.insert(wanted, followed.clone());
        Ok(followed)
    }

    /// Returns whether a move without a change in the working tree certainly concerns one file.
    pub(super) fn is_clear_in_tree(&self, from: &NotePath, to: &NotePath) -> bool {
        let is_same = self.working.moved.get(from).is_some_and(|moved| moved.percent == 100);
        let blob = self.head_files.get(from).filter(|_| is_same);
        blob.is_none_or(|blob| self.walk.owners.tells(blob, from, to, &self.working.folders))
    }

    /// Returns what the first commit that took a file from its path did with it. A commit has the file there.
    fn next_move(&mut self, commit: CommitIndex, path: &NotePath) -> Result<NextMove> {
        let mut is_clear = true;
        let events = self.walk.events_since(commit, path);
        for (number, event) in events.iter().enumerate() {
            match event.kind {
                PathEventKind::Added => continue,
                PathEventKind::Merged => {
                    is_clear = is_clear && self.commits().keeps_file(commit, path, event.commit)?;
                    continue;
                }
                PathEventKind::Removed(_) | PathEventKind::Replaced { .. } => {}
            }
            match self.commits().identity(commit, path, event)? {
                Identity::Same => {}
                Identity::Alike => is_clear = false,
                Identity::Different => continue,
            }
            let moved = match &event.kind {
                PathEventKind::Replaced { before, after } => {
                    match self.commits().replaced_by(event, path, before, after)? {
                        Replacement::Moved(moved) => Some(moved),
                        Replacement::Rewritten => continue,
                        Replacement::Lost => {
                            is_clear = false;
                            continue;
                        }
                    }
                }
                _ => self.commits().moved_by(event, path)?,
            };
            let restored = self.percent_restored(path, event)?;
            if let Some(percent) = restored
                && (percent == 100 || moved.as_ref().is_none_or(|moved| moved.percent <= percent))
            {
                return Ok(NextMove::Stays { percent, is_clear });
            }
            let Some(mut moved) = moved else {
                return Ok(NextMove::Deleted { by: event.commit, parent: event.parent });
            };
            let later = events.get(number + 1..).unwrap_or_default();
            moved.is_clear &=
                is_clear && self.commits().is_only_move(commit, path, event, &moved.to, later)?;
            return Ok(NextMove::Moved { by: event.commit, moved, is_restored: restored.is_some() });
        }
        Ok(NextMove::Stays { percent: 100, is_clear })
    }

    /// Returns the path in a commit of a file that its parent had at a path; `None` if the commit deleted it.
    pub(super) fn path_after(
        &mut self,
        parent: CommitIndex,
        commit: CommitIndex,
        path: &NotePath,
    ) -> Result<Option<NotePath>> {
        let mut events = self.walk.known_events_of(path).iter();
        let Some(event) = events.find(|event| event.commit == commit && event.parent == parent).cloned()
        else {
            return Ok(Some(path.clone()));
        };
        let moved = match &event.kind {
            PathEventKind::Removed(_) => {
                return Ok(self.commits().moved_by(&event, path)?.map(|moved| moved.to));
            }
            PathEventKind::Replaced { before, after } => {
                self.commits().replaced_by(&event, path, before, after)?
            }
            PathEventKind::Added | PathEventKind::Merged => Replacement::Rewritten,
        };
        Ok(Some(match moved {
            Replacement::Moved(moved) => moved.to,
            Replacement::Rewritten | Replacement::Lost => path.clone(),
        }))
    }

    /// Returns the share of a file that is at its path again in the last commit after an event removed it, as after a
    /// revert, in percent. `None` if the share is less than an edited file keeps.
    fn percent_restored(&mut self, path: &NotePath, event: &PathEvent) -> Result<Option<u8>> {
        let Some(now) = self.head_files.get(path).cloned() else { return Ok(None) };
        let Some(then) = self.commits().blob_in(event.parent, path)? else { return Ok(None) };
        Ok(Some(self.reader.percent_in_common(&now, &then)?).filter(|percent| *percent >= SAME_PERCENT))
    }

    /// Returns whether a file that a commit renamed without a change is certainly the one at the new path.
    pub(super) fn is_clear_move(
        &mut self,
        step: (CommitIndex, CommitIndex),
        paths: (&NotePath, &NotePath),
        blob: &ObjectId,
    ) -> Result<bool> {
        self.commits().is_clear_move(step, paths, blob)
    }

    /// Returns whether a commit wrote most of the content of a file that it removed at another path than this one.
    pub(super) fn has_rival(
        &mut self,
        (parent, commit): (CommitIndex, CommitIndex),
        paths: (&NotePath, &NotePath),
        blob: &ObjectId,
    ) -> Result<bool> {
        match self.walk.kept_changes(parent, commit) {
            Some(changes) => self.commits().has_rival(&changes, paths, blob),
            None => Ok(false),
        }
    }

    fn commits(&mut self) -> CommitFiles<'_> {
        CommitFiles { walk: &mut self.walk, reader: &mut self.reader }
    }
}

impl CommitFiles<'_> {
    /// Returns whether the file that an event found at a path is the one that a commit has there.
    fn identity(&mut self, commit: CommitIndex, path: &NotePath, event: &PathEvent) -> Result<Identity> {
        // A file that both have from their common past is one file, however it was edited since.
        if self.walk.contains(event.parent, commit) || !self.walk.differs(commit, event.parent, path) {
            return Ok(Identity::Same);
        }
        let (Some(here), Some(there)) = (self.blob_in(commit, path)?, self.blob_in(event.parent, path)?)
        else {
            return Ok(Identity::Different);
        };
        Ok(match self.reader.percent_in_common(&here, &there)? {
            100 => Identity::Same,
            SAME_PERCENT.. => Identity::Alike,
            _ => Identity::Different,
        })
    }

    /// Returns whether a merge that gave a path the state of one of its parents left the file of a commit there.
    fn keeps_file(&mut self, commit: CommitIndex, path: &NotePath, merge: CommitIndex) -> Result<bool> {
        for parent in self.walk.graph.parents(merge).to_vec() {
            if self.walk.contains(parent, commit)
                && let Some(before) = self.blob_in(parent, path)?
                && let Some(after) = self.blob_in(merge, path)?
                && self.reader.percent_in_common(&before, &after)? < SAME_PERCENT
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the event is the only one that moved a file, to `to`. A move to another path after the file came
    /// back from there is one of its next moves.
    fn is_only_move(
        &mut self,
        commit: CommitIndex,
        path: &NotePath,
        event: &PathEvent,
        to: &NotePath,
        later: &[PathEvent],
    ) -> Result<bool> {
        /// The most moves elsewhere that are looked at, so that a path that many files had takes little time.
        const MOST: usize = 64;
        let mut elsewhere = 0;
        let mut returned = None;
        for (index, other) in later.iter().enumerate() {
            let is_elsewhere = matches!(other.kind, PathEventKind::Removed(_))
                && self.moved_by(other, path)?.is_some_and(|other| other.to != *to)
                && self.identity(commit, path, other)? != Identity::Different;
            if !is_elsewhere {
                continue;
            }
            elsewhere += 1;
            let first_return =
                *returned.get_or_insert_with(|| self.walk.first_return(path, event, to, later));
            let is_next =
                first_return.is_some_and(|(at, back)| at < index && self.walk.contains(other.parent, back));
            if elsewhere > MOST || !is_next {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the object of the file at a path in a commit.
    fn blob_in(&mut self, commit: CommitIndex, path: &NotePath) -> Result<Option<ObjectId>> {
        let Some(id) = self.walk.graph.id(commit).cloned() else { return Ok(None) };
        self.reader.blob_at(&id, path.as_str())
    }

    /// Returns what a commit did that gave the path of a file another content.
    fn replaced_by(
        &mut self,
        event: &PathEvent,
        path: &NotePath,
        before: &ObjectId,
        after: &ObjectId,
    ) -> Result<Replacement> {
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else {
            return Ok(Replacement::Rewritten);
        };
        let is_elsewhere = |other: &&str| *other != path.as_str();
        let mut gone_to =
            changes.bringing(before).filter_map(|change| paths_of(change).1).filter(is_elsewhere);
        let to = match (gone_to.next(), gone_to.next()) {
            (Some(to), None) => NotePath::from_disk(to),
            _ => None,
        };
        let mut left = changes.taking(after).filter_map(|change| paths_of(change).0);
        let is_moved_onto = left.any(|from| from != path.as_str());
        let Some(to) = to else {
            return Ok(if is_moved_onto { Replacement::Lost } else { Replacement::Rewritten });
        };
        if !is_moved_onto {
            // A file with a text of its own at its path did not move. The file with its old content is then a copy,
            // such as the next note made from the same template. It did move if the file at the other path made room
            // for it.
            let made_room = match changes.of_file_at(to.as_str()) {
                Some(PathChange::Changed { before: old, .. }) => {
                    changes.bringing(old).any(|change| paths_of(change).1 != Some(to.as_str()))
                }
                _ => false,
            };
            if !made_room || self.reader.percent_in_common(before, after)? >= SAME_PERCENT {
                return Ok(Replacement::Rewritten);
            }
        }
        let is_clear =
            self.walk.owners.is_of_one_file(before) && !self.has_rival(&changes, (path, &to), before)?;
        Ok(Replacement::Moved(FileMove { to, percent: 100, is_clear }))
    }

    /// Returns where a commit moved a file that it removed from its path.
    fn moved_by(&mut self, event: &PathEvent, path: &NotePath) -> Result<Option<FileMove>> {
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else { return Ok(None) };
        let (renamed, own) = match changes.of_file_at(path.as_str()) {
            Some(PathChange::Renamed { to, before, percent, .. }) => {
                let to = to.as_deref().and_then(NotePath::from_disk);
                (to.map(|to| (to, *percent)), before.clone())
            }
            Some(PathChange::Removed { blob, .. }) => (None, blob.clone()),
            _ => return Ok(None),
        };
        // A file that took the path of another one is not a rename for git.
        if renamed.as_ref().is_none_or(|(_, percent)| *percent < 100) {
            let mut onto = changes.bringing(&own).filter_map(|change| match change {
                PathChange::Changed { path, .. } => Some(path),
                _ => None,
            });
            if let (Some(onto), None) = (onto.next(), onto.next())
                && let Some(to) = NotePath::from_disk(onto)
            {
                let is_clear =
                    self.walk.owners.is_of_one_file(&own) && !self.has_rival(&changes, (path, &to), &own)?;
                return Ok(Some(FileMove { to, percent: 100, is_clear }));
            }
        }
        let Some((to, percent)) = renamed else { return Ok(None) };
        let is_clear = match percent {
            100 => self.is_clear_move((event.parent, event.commit), (path, &to), &own)?,
            _ => {
                self.is_far_ahead(&own, percent, &to, &changes)?
                    && !self.has_rival(&changes, (path, &to), &own)?
            }
        };
        Ok(Some(FileMove { to, percent, is_clear }))
    }

    /// Returns whether a file that a commit renamed without a change is certainly the one at the new path: its content
    /// shows it, and no other file that the commit wrote has most of it.
    fn is_clear_move(
        &mut self,
        (parent, commit): (CommitIndex, CommitIndex),
        (from, to): (&NotePath, &NotePath),
        blob: &ObjectId,
    ) -> Result<bool> {
        let known = (parent, commit, from.clone());
        if let Some(is_clear) = self.walk.clear_moves.get(&known) {
            return Ok(*is_clear);
        }
        let is_clear = self.walk.content_tells((parent, commit), (from, to), blob)
            && match self.walk.kept_changes(parent, commit) {
                Some(changes) => !self.has_rival(&changes, (from, to), blob)?,
                None => false,
            };
        self.walk.clear_moves.insert(known, is_clear);
        Ok(is_clear)
    }

    /// Returns whether another file that a commit wrote has most of the content of one that the commit renamed. That
    /// file may be the renamed one with more text, and the file at the new path the next one made from the same
    /// template.
    fn has_rival(
        &mut self,
        changes: &CommitChanges,
        (from, to): (&NotePath, &NotePath),
        blob: &ObjectId,
    ) -> Result<bool> {
        if FileKind::of(from) == FileKind::Attachment {
            return Ok(false);
        }
        self.reader.is_mostly_in_one(blob, &changes.rivals(from, to))
    }

    /// Returns whether no other new file of a commit is nearly as similar as the one that git takes for the renamed file.
    fn is_far_ahead(
        &mut self,
        before: &ObjectId,
        percent: u8,
        to: &NotePath,
        changes: &CommitChanges,
    ) -> Result<bool> {
        let others = changes.new_files(to.extension());
        if others.len() > MAX_CANDIDATES {
            return Ok(false);
        }
        let Some(content) = self.reader.pieces_of(&[before])?.pop().flatten() else { return Ok(false) };
        let others = others.into_iter().filter(|(path, _)| *path != to.as_str());
        let ids: Vec<&ObjectId> = others.map(|(_, blob)| blob).collect();
        let contents = self.reader.pieces_of(&ids)?;
        let nearest = contents.iter().flatten().map(|other| content.percent_in_common(other));
        Ok(nearest.max().unwrap_or(0).saturating_add(MARGIN) <= percent)
    }
}
