//! Links that lead to a file, but to another one than they meant, because their note moved, or another file took the path of
//! theirs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::line_history::trace_recent;
use super::{GitEvidence, HEAD, Origin};
use crate::change::repair::evidence::Certainty;
use crate::change::repair::history_walk::{PathEvent, PathEventKind, RECENT_COMMITS};
use crate::change::repair::present::{LinkCase, Present, is_judged, place_of};
use crate::change::repair::working_tree::read;
use crate::source::Source;
use sidenote_foundation::error::Result;
use sidenote_foundation::git::{CommitIndex, PathChange};
use sidenote_foundation::index::catalog::FileKind;
use sidenote_foundation::text::link::Link;
use sidenote_foundation::text::link_lines::{LinkLines, positions};
use sidenote_foundation::text::path::NotePath;
use sidenote_foundation::text::rewrite::LinkedPlace;

/// A note whose links may lead elsewhere since a state of it, because it moved, or another file took the path of a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Suspect {
    then: Origin,
    note: NotePath,
    is_note_moved: bool,
}

impl GitEvidence<'_> {
    /// Finds links that lead to a file, but to another one than before their note, or the file, moved.
    pub(in crate::change::repair) fn find_misled(&mut self, present: &mut Present) -> Result<()> {
        while self.walk.walked() < RECENT_COMMITS {
            if self.walk.step().is_none() {
                break;
            }
        }
        let mut suspects: BTreeSet<Suspect> = BTreeSet::new();
        let mut taken: Vec<(NotePath, CommitIndex)> = Vec::new();
        let mut renamed: Vec<(NotePath, NotePath, PathEvent)> = Vec::new();
        let by_others = self.moves_by_others()?;
        for (now, from) in &self.working.moved_from {
            if by_others.contains(&(from.clone(), now.clone())) {
                let then = Origin { commit: HEAD, source: from.clone() };
                suspects.insert(Suspect { note: now.clone(), then, is_note_moved: true });
            }
        }
        for path in self.working.taken.keys() {
            let to = self.working.moved.get(path).map(|moved| moved.to.clone());
            if to.is_none_or(|to| by_others.contains(&(path.clone(), to))) {
                taken.push((path.clone(), HEAD));
            }
        }
        for (path, events) in self.walk.known_events() {
            for event in events.iter().filter(|event| event.commit < RECENT_COMMITS) {
                match &event.kind {
                    PathEventKind::Removed(Some((to, _))) => {
                        let is_unclear = self.walk.is_unclear(event.parent, event.commit, path.as_str());
                        if is_unclear || !by_others.contains(&(path.clone(), to.clone())) {
                            continue;
                        }
                        if present.has(path) {
                            taken.push((path.clone(), event.parent));
                        }
                        renamed.push((path.clone(), to.clone(), event.clone()));
                    }
                    PathEventKind::Replaced { .. } if present.has(path) => {
                        taken.push((path.clone(), event.parent));
                    }
                    _ => {}
                }
            }
        }
        let is_text = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
        renamed.retain(|(_, to, _)| is_text(to));
        for (from, to, event) in renamed {
            if let Some(note) = self.follow(event.commit, &to)?.at {
                let then = Origin { commit: event.parent, source: from };
                suspects.insert(Suspect { note, then, is_note_moved: true });
            }
        }
        for (path, commit) in taken {
            for note in self.core.index.catalog().links().sources_of(std::slice::from_ref(&path))? {
                let then = if commit == HEAD { self.path_in_head(&note).clone() } else { note.clone() };
                let then = Origin { commit, source: then };
                suspects.insert(Suspect { note, then, is_note_moved: false });
            }
        }
        suspects.retain(|suspect| is_text(&suspect.note) && present.is_in_scope(&suspect.note));
        let mut doubtful: BTreeMap<LinkCase, Certainty> = BTreeMap::new();
        for suspect in suspects {
            for (case, most) in self.doubtful_links(present, &suspect)? {
                doubtful.entry(case).and_modify(|known| *known = most.min(*known)).or_insert(most);
            }
        }
        self.judge(present, &doubtful)
    }

    /// Finds out which of some links lead elsewhere than in the commit that last wrote their line.
    fn judge(&mut self, present: &mut Present, doubtful: &BTreeMap<LinkCase, Certainty>) -> Result<()> {
        trace_recent(self, present, doubtful.keys().copied())?;
        for (case, most) in doubtful {
            let Some((source, link)) = present.sources.get(case.source).zip(present.link(case)) else {
                continue;
            };
            for state in self.written.get(case).cloned().unwrap_or_default() {
                if self.place_at(present, &state, link)?.is_none() {
                    continue;
                }
                // What was deleted is not replaced.
                if let Some(meant) = self.meant(present, &state, link)?
                    && !self.is_right(present, source, link, &meant)
                {
                    self.misled_since.insert(*case, (state, *most));
                    present.misled.push(*case);
                }
                break;
            }
        }
        Ok(())
    }

    /// Returns the present place of what a link led to in a state. A folder stays one as long as it has files.
    fn meant(&mut self, present: &Present, state: &Origin, link: &Link) -> Result<Option<LinkedPlace>> {
        Ok(match self.place_at(present, state, link)? {
            Some(LinkedPlace::File(target)) => {
                let now = self.follow(state.commit, &target)?.at.filter(|meant| present.has(meant));
                now.map(LinkedPlace::File)
            }
            Some(outside @ LinkedPlace::Outside(_)) => Some(outside),
            Some(LinkedPlace::Folder(_)) | None => None,
        })
    }

    /// Returns whether a link leads to a place, or to a page that was left there for old links, and that links to it.
    fn is_right(&self, present: &Present, source: &Source, link: &Link, meant: &LinkedPlace) -> bool {
        let leads_to = place_of(&present.names, link, &source.path);
        if leads_to.as_ref() == Some(meant) {
            return true;
        }
        let (Some(LinkedPlace::File(at)), LinkedPlace::File(meant)) = (leads_to, meant) else { return false };
        let sources = self.core.index.catalog().links().sources_of(std::slice::from_ref(meant));
        sources.is_ok_and(|sources| sources.contains(&at))
    }

    /// Returns the moves of the recent commits and of the working tree that sidenote did not make: where it did, it rewrote
    /// the links.
    fn moves_by_others(&self) -> Result<HashSet<(NotePath, NotePath)>> {
        let mut moves: Vec<(NotePath, NotePath)> =
            self.working.moved.iter().map(|(from, moved)| (from.clone(), moved.to.clone())).collect();
        for (path, events) in self.walk.known_events() {
            for event in events.iter().filter(|event| event.commit < RECENT_COMMITS) {
                if let PathEventKind::Removed(Some((to, _))) = &event.kind {
                    moves.push((path.clone(), to.clone()));
                }
            }
        }
        if moves.is_empty() {
            return Ok(HashSet::new());
        }
        Ok(self.core.journal().not_by_sidenote(moves)?.into_iter().collect())
    }

    /// Finds the links of one note that led elsewhere in a state of it, and how certain it can be at most that they are wrong:
    /// only those whose line is as it was then. Of another one the author, or sidenote, has decided since.
    fn doubtful_links(
        &mut self,
        present: &mut Present,
        suspect: &Suspect,
    ) -> Result<Vec<(LinkCase, Certainty)>> {
        let (path, origin) = (&suspect.note, &suspect.then);
        let Some(then) = self.note(origin)? else { return Ok(Vec::new()) };
        let number = match present.number_of(path) {
            Some(number) => number,
            None => {
                let Some(bytes) = read(self.core, path) else { return Ok(Vec::new()) };
                present.add(Source::unplaced(path.clone(), &bytes))
            }
        };
        let Some(source) = present.sources.get(number) else { return Ok(Vec::new()) };
        // A note that was edited since can be right as it is.
        let most = match (then.text.lines().eq(source.text.lines()), suspect.is_note_moved) {
            (true, _) => Certainty::Certain,
            (false, true) => Certainty::Strong,
            (false, false) => Certainty::Weak,
        };
        let mut found = Vec::new();
        for (at, link) in unchanged_links(&then, source) {
            let leads_to = place_of(&present.names, link, path);
            // A link to nothing, or out of the vault, is judged already.
            if !is_judged(link) || !matches!(leads_to, Some(LinkedPlace::File(_) | LinkedPlace::Folder(_))) {
                continue;
            }
            let Some(meant) = self.meant(present, origin, link)? else { continue };
            if !self.is_right(present, source, link, &meant) {
                found.push((LinkCase { source: number, link: at, is_dead: false }, most));
            }
        }
        Ok(found)
    }

    /// Returns how certain it can be at most that a link meant the file that had its path before another one took it.
    pub(super) fn certainty_of_taken(
        &self,
        present: &Present,
        link: &Link,
        source: &Source,
        target: &NotePath,
    ) -> Certainty {
        let is_taken =
            place_of(&present.names, link, &source.path).as_ref() == Some(&LinkedPlace::File(target.clone()));
        if !is_taken {
            return Certainty::Certain;
        }
        let events = self.walk.known_events_of(target);
        let is_move = |event: &&PathEvent| {
            matches!(event.kind, PathEventKind::Removed(Some(_)) | PathEventKind::Replaced { .. })
        };
        let moves =
            events.iter().filter(is_move).count() + usize::from(self.working.taken.contains_key(target));
        if moves > 1 {
            // A file that makes room again and again, such as a daily page, is meant by its path.
            return Certainty::Weak;
        }
        if self.working.taken.get(target) == Some(&true) || self.was_moved_to(target) {
            return Certainty::Certain;
        }
        Certainty::Strong
    }

    /// Returns whether the file at a path was moved there, and is not a new one.
    pub(super) fn was_moved_to(&self, path: &NotePath) -> bool {
        if self.working.moved_from.contains_key(path) {
            return true;
        }
        let newest = self
            .walk
            .known_events_of(path)
            .iter()
            .find(|event| matches!(event.kind, PathEventKind::Added | PathEventKind::Replaced { .. }));
        let Some(event) = newest else { return false };
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else { return false };
        changes.iter().any(|change| match (change, &event.kind) {
            (PathChange::Renamed { to: Some(to), .. }, _) if to == path.as_str() => true,
            (
                PathChange::Removed { blob, .. } | PathChange::Renamed { before: blob, .. },
                PathEventKind::Replaced { after, .. },
            ) => blob == after,
            (PathChange::Changed { path: other, before, .. }, PathEventKind::Replaced { after, .. }) => {
                before == after && other != path.as_str()
            }
            _ => false,
        })
    }
}

/// Lists the links of a note whose whole line is as in an earlier version, with their numbers. Of several links with the same
/// destination, those in the same position among them are compared.
fn unchanged_links<'s>(earlier: &Source, source: &'s Source) -> Vec<(usize, &'s Link)> {
    let links = &source.note.links;
    let then = LinkLines::new(&earlier.text, &earlier.note.links);
    let now = LinkLines::new(&source.text, links);
    let placed = links.iter().zip(positions(links)).enumerate();
    let unchanged =
        placed.filter(|(_, (link, position))| then.same(link, *position) == Some(now.text(link.line)));
    unchanged.map(|(at, (link, _))| (at, link)).collect()
}
