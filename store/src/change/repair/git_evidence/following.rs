//! Following a file from a commit to the present, commit by commit.

use super::{Followed, GitEvidence, MAX_CANDIDATES, Step};
use crate::change::repair::history_walk::{PathEvent, PathEventKind};
use crate::change::repair::moved_files::{FileMove, MARGIN};
use crate::change::repair::working_tree::SAME_PERCENT;
use sidenote_foundation::error::Result;
use sidenote_foundation::git::{CommitIndex, ObjectId, PathChange};
use sidenote_foundation::text::content_similarity::ContentPieces;
use sidenote_foundation::text::path::NotePath;

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
        let mut followed = Followed { at: None, steps: Vec::new(), deleted_by: None };
        let mut is_lost = false;
        while followed.steps.len() < MOST {
            let events = self.walk.events_since(since, &at);
            let Some((by, moved)) = self.first_move(&at, &events)? else { break };
            match moved {
                Some(moved) => {
                    at = moved.to.clone();
                    followed.steps.push(Step { commit: Some(by), moved });
                    since = by;
                }
                None => {
                    followed.deleted_by = Some(by);
                    is_lost = true;
                    break;
                }
            }
        }
        if !is_lost && self.is_committed(&at) {
            let is_there = self.core.vault.disk_path(&at).symlink_metadata().is_ok();
            if is_there && !self.working.taken.contains_key(&at) {
                followed.at = Some(at);
            } else if let Some(moved) = self.working.moved.get(&at) {
                followed.at = Some(moved.to.clone());
                followed.steps.push(Step { commit: None, moved: moved.clone() });
            }
        }
        self.followed.insert(wanted, followed.clone());
        Ok(followed)
    }

    /// Returns the first of some events that took a file from its path, and where it moved it, if it did.
    fn first_move(
        &mut self,
        path: &NotePath,
        events: &[PathEvent],
    ) -> Result<Option<(CommitIndex, Option<FileMove>)>> {
        for (number, event) in events.iter().enumerate() {
            let mut moved = match &event.kind {
                PathEventKind::Removed(_) => self.moved_by(event, path)?,
                PathEventKind::Replaced { before, after } => {
                    match self.replaced_by(event, path, before, after)? {
                        Some(moved) => Some(moved),
                        // It was rewritten in place.
                        None => continue,
                    }
                }
                PathEventKind::Added | PathEventKind::Merged => continue,
            };
            // The file can have come back to its path, as by a revert.
            if self.is_back(path, event)? {
                return Ok(None);
            }
            if let Some(moved) = &mut moved {
                // Another branch may have moved it elsewhere.
                let later = events.get(number + 1..).unwrap_or_default();
                for (count, other) in later.iter().enumerate() {
                    if matches!(other.kind, PathEventKind::Removed(_))
                        && self.moved_by(other, path)?.is_some_and(|other| other.to != moved.to)
                    {
                        let between = later.get(..count).unwrap_or_default();
                        moved.is_clear &= self.is_moved_again(event, &moved.to, between, other, path);
                    }
                }
            }
            return Ok(Some((event.commit, moved)));
        }
        Ok(None)
    }

    /// Returns whether a file that an event moved `to` another path came back from there before another event moved it again, all
    /// of them one after the other.
    fn is_moved_again(
        &mut self,
        event: &PathEvent,
        to: &NotePath,
        between: &[PathEvent],
        other: &PathEvent,
        path: &NotePath,
    ) -> bool {
        between.iter().any(|back| {
            let is_from = |change: &PathChange| {
                matches!(change, PathChange::Renamed { from: Some(from), to: Some(at), .. }
                    if from == to.as_str() && at == path.as_str())
            };
            matches!(back.kind, PathEventKind::Added)
                && self.walk.contains(back.parent, event.commit)
                && self.walk.contains(other.parent, back.commit)
                && self.walk.kept_changes(back.parent, back.commit).is_some_and(|all| all.iter().any(is_from))
        })
    }

    /// Returns whether the last commit has the file at its path again that an event moved away.
    fn is_back(&mut self, path: &NotePath, event: &PathEvent) -> Result<bool> {
        let Some(now) = self.head_files.get(path).cloned() else { return Ok(false) };
        let Some(id) = self.walk.graph.id(event.parent).cloned() else { return Ok(false) };
        let Some(then) = self.reader.blob_at(&id, path.as_str())? else { return Ok(false) };
        if now == then {
            return Ok(true);
        }
        let (Some(now), Some(then)) = (self.reader.blob(&now)?, self.reader.blob(&then)?) else {
            return Ok(false);
        };
        Ok(ContentPieces::of(&now).percent_in_common(&ContentPieces::of(&then)) >= SAME_PERCENT)
    }

    /// Returns where a file went whose path another content took in a commit.
    fn replaced_by(
        &mut self,
        event: &PathEvent,
        path: &NotePath,
        before: &ObjectId,
        after: &ObjectId,
    ) -> Result<Option<FileMove>> {
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else { return Ok(None) };
        let (mut gone_to, mut is_moved_onto) = (Vec::new(), false);
        for change in changes.iter() {
            match change {
                PathChange::Added { path: to, blob } if blob == before => gone_to.push(to.clone()),
                PathChange::Changed { path: to, before: old, after: new } if to != path.as_str() => {
                    if new == before {
                        gone_to.push(to.clone());
                    }
                    is_moved_onto |= old == after;
                }
                PathChange::Renamed { to, before: old, after: new, .. } => {
                    if new == before {
                        gone_to.extend(to.clone());
                    }
                    is_moved_onto |= old == after;
                }
                PathChange::Removed { blob, .. } => is_moved_onto |= blob == after,
                _ => {}
            }
        }
        let [to] = gone_to.as_slice() else { return Ok(None) };
        let Some(to) = NotePath::from_disk(to) else { return Ok(None) };
        if !is_moved_onto {
            let (Some(old), Some(new)) = (self.reader.blob(before)?, self.reader.blob(after)?) else {
                return Ok(None);
            };
            if ContentPieces::of(&old).percent_in_common(&ContentPieces::of(&new)) >= SAME_PERCENT {
                return Ok(None);
            }
        }
        Ok(Some(FileMove { to, percent: 100, is_clear: true }))
    }

    /// Returns where a commit moved a file that it removed from its path.
    fn moved_by(&mut self, event: &PathEvent, path: &NotePath) -> Result<Option<FileMove>> {
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else { return Ok(None) };
        let renamed = changes.iter().find_map(|change| match change {
            PathChange::Renamed { from: Some(from), to: Some(to), before, percent, .. }
                if from == path.as_str() =>
            {
                Some((NotePath::from_disk(to)?, before.clone(), *percent))
            }
            _ => None,
        });
        // A file that took the path of another one is no rename for git.
        let own = renamed.as_ref().map(|(_, before, _)| before.clone()).or_else(|| {
            changes.iter().find_map(|change| match change {
                PathChange::Removed { path: removed, blob } if removed == path.as_str() => Some(blob.clone()),
                _ => None,
            })
        });
        let onto: Vec<&String> = changes
            .iter()
            .filter_map(|change| match change {
                PathChange::Changed { path, before, after }
                    if before != after && Some(after) == own.as_ref() =>
                {
                    Some(path)
                }
                _ => None,
            })
            .collect();
        if renamed.as_ref().is_none_or(|(_, _, percent)| *percent < 100)
            && let [onto] = onto.as_slice()
            && let Some(to) = NotePath::from_disk(onto)
        {
            return Ok(Some(FileMove { to, percent: 100, is_clear: true }));
        }
        let Some((to, before, percent)) = renamed else { return Ok(None) };
        let new: Vec<(NotePath, ObjectId)> = changes
            .iter()
            .filter_map(|change| match change {
                PathChange::Renamed { to: Some(to), after, .. } => Some((to, after)),
                PathChange::Added { path, blob } => Some((path, blob)),
                _ => None,
            })
            .filter_map(|(path, blob)| Some((NotePath::from_disk(path)?, blob.clone())))
            .filter(|(other, _)| *other != to)
            .collect();
        if percent == 100 {
            let is_clear = !self.walk.is_unclear(event.parent, event.commit, path.as_str());
            return Ok(Some(FileMove { to, percent, is_clear }));
        }
        let is_clear = self.is_far_ahead(&before, percent, &to, &new)?;
        Ok(Some(FileMove { to, percent, is_clear }))
    }

    /// Returns whether no other new file of a commit comes near the one that git takes for a renamed file.
    fn is_far_ahead(
        &mut self,
        before: &ObjectId,
        percent: u8,
        to: &NotePath,
        others: &[(NotePath, ObjectId)],
    ) -> Result<bool> {
        let Some(content) = self.reader.blob(before)? else { return Ok(false) };
        let content = ContentPieces::of(&content);
        let alike = others.iter().filter(|(path, _)| path.extension() == to.extension());
        let ids: Vec<ObjectId> = alike.map(|(_, blob)| blob.clone()).collect();
        if ids.len() > MAX_CANDIDATES {
            return Ok(false);
        }
        let contents = self.reader.blobs(&ids)?;
        let nearest =
            contents.iter().flatten().map(|other| content.percent_in_common(&ContentPieces::of(other)));
        Ok(nearest.max().unwrap_or(0).saturating_add(MARGIN) <= percent)
    }
}
