//! Links that lead to another file than they meant, because their note moved, or because another file took the path of
//! theirs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sidenote_base::error::Result;
use sidenote_catalog::FileKind;
use sidenote_git::{CommitIndex, PathChange};
use sidenote_links::link_lines::{LinkLines, positions};
use sidenote_links::rewrite::LinkedPlace;
use sidenote_markdown::link::Link;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::source::Source;

use super::line_history::trace_recent;
use super::{GitEvidence, HEAD, Origin};
use crate::commit_changes::{contents_of, paths_of};
use crate::evidence::Certainty;
use crate::history_walk::{PathEvent, PathEventKind, RECENT_COMMITS};
use crate::present::{LinkCase, Present, is_judged, place_of};
use crate::working_tree::read;

/// A note whose links may lead elsewhere since one step: a commit, or the changes of the working tree since the last one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Suspect {
    /// The note before the step.
    then: Origin,
    /// The note after the step; `None` in the working tree.
    after: Option<Origin>,
    /// The present path of the note.
    note: NotePath,
}

/// A step of the history: a commit, and the one after it, or `None` for the working tree.
type HistoryStep = (CommitIndex, Option<CommitIndex>);

/// The recent moves that sidenote did not make.
#[derive(Default)]
struct RecentMoves {
    /// In the working tree: the path before, and the present one.
    in_tree: Vec<(NotePath, NotePath)>,
    /// In commits: the path before, the one after, and the event.
    renamed: Vec<(NotePath, NotePath, PathEvent)>,
    /// The paths that another file has now.
    taken: Vec<(NotePath, HistoryStep)>,
    /// The names of moved files that another file has, by key.
    names: BTreeMap<HistoryStep, BTreeSet<String>>,
}

impl RecentMoves {
    fn add_name(&mut self, present: &Present, step: HistoryStep, from: &NotePath, to: &NotePath) {
        if present.has_namesake(from, to) {
            self.names.entry(step).or_default().insert(key(from.name()));
        }
    }
}

impl GitEvidence<'_> {
    /// Finds links that lead to another file than before their note moved. With `with_taken`, links of notes that did
    /// not move are found, too, if another file took the path or the name of the file that they led to. Their repairs
    /// are weak, since they may mean the file that they lead to now.
    pub(crate) fn find_misled(&mut self, present: &mut Present, with_taken: bool) -> Result<()> {
        while self.walk.walked() < RECENT_COMMITS {
            if self.walk.step().is_none() {
                break;
            }
        }
        let mut moves = self.recent_moves(present)?;
        let is_text = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
        let mut suspects: BTreeSet<Suspect> = BTreeSet::new();
        for (from, now) in &moves.in_tree {
            let then = Origin { commit: HEAD, source: from.clone() };
            suspects.insert(Suspect { note: now.clone(), then, after: None });
        }
        moves.renamed.retain(|(_, to, _)| is_text(to));
        for (from, to, event) in moves.renamed {
            if let Some(note) = self.follow(event.commit, &to)?.at {
                let then = Origin { commit: event.parent, source: from };
                let after = Some(Origin { commit: event.commit, source: to });
                suspects.insert(Suspect { note, then, after });
            }
        }
        let mut linking: Vec<(NotePath, HistoryStep)> = Vec::new();
        for (path, step) in moves.taken.into_iter().filter(|_| with_taken) {
            let sources = self.core.index.catalog().links().sources_of(std::slice::from_ref(&path))?;
            linking.extend(sources.into_iter().map(|note| (note, step)));
        }
        for (step, names) in moves.names.iter().filter(|_| with_taken) {
            let notes = present.looking_up(self.core, names)?;
            linking.extend(notes.into_iter().map(|note| (note, *step)));
        }
        for (note, (before, after)) in linking {
            let path = if before == HEAD { self.path_in_head(&note).clone() } else { note.clone() };
            let after = after.map(|commit| Origin { commit, source: note.clone() });
            let then = Origin { commit: before, source: path };
            suspects.insert(Suspect { note, then, after });
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

    /// Lists the moves of the recent commits and of the working tree that sidenote did not make, and the paths and names that
    /// other files took.
    fn recent_moves(&mut self, present: &Present) -> Result<RecentMoves> {
        let mut moves = RecentMoves::default();
        let by_others = self.moves_by_others()?;
        for (now, from) in &self.working.moved_from {
            if by_others.contains(&(from.clone(), now.clone())) && self.is_clear_in_tree(from, now) {
                moves.in_tree.push((from.clone(), now.clone()));
                moves.add_name(present, (HEAD, None), from, now);
            }
        }
        for path in self.working.taken.keys() {
            let to = self.working.moved.get(path).map(|moved| moved.to.clone());
            if to.is_none_or(|to| by_others.contains(&(path.clone(), to))) {
                moves.taken.push((path.clone(), (HEAD, None)));
            }
        }
        for (path, event) in self.recent_events() {
            let step = (event.parent, Some(event.commit));
            match &event.kind {
                PathEventKind::Removed(Some((to, percent))) => {
                    let is_clear = *percent < 100 || self.is_clear_rename(&path, to, &event)?;
                    if !is_clear || !by_others.contains(&(path.clone(), to.clone())) {
                        continue;
                    }
                    if present.has(&path) {
                        moves.taken.push((path.clone(), step));
                    }
                    moves.add_name(present, step, &path, to);
                    moves.renamed.push((path.clone(), to.clone(), event.clone()));
                }
                PathEventKind::Replaced { .. } if present.has(&path) => {
                    moves.taken.push((path, step));
                }
                _ => {}
            }
        }
        Ok(moves)
    }

    /// Lists the files that the recent commits removed, renamed or replaced, with their paths.
    fn recent_events(&self) -> Vec<(NotePath, PathEvent)> {
        let is_move = |event: &&PathEvent| {
            matches!(event.kind, PathEventKind::Removed(Some(_)) | PathEventKind::Replaced { .. })
        };
        let mut found = Vec::new();
        for (path, events) in self.walk.known_events() {
            let recent = events.iter().filter(|event| event.commit < RECENT_COMMITS).filter(is_move);
            found.extend(recent.map(|event| (path.clone(), event.clone())));
        }
        found
    }

    /// Returns whether a file that a commit renamed without a change is certainly the one at the new path.
    fn is_clear_rename(&mut self, from: &NotePath, to: &NotePath, event: &PathEvent) -> Result<bool> {
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else { return Ok(false) };
        match changes.of_file_at(from.as_str()).and_then(|change| contents_of(change).0) {
            Some(blob) => self.is_clear_move((event.parent, event.commit), (from, to), blob),
            None => Ok(false),
        }
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
                // A deleted file is not replaced by another one.
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
        moves.extend(self.recent_events().into_iter().filter_map(|(path, event)| match event.kind {
            PathEventKind::Removed(to) => to.map(|(to, _)| (path, to)),
            _ => None,
        }));
        if moves.is_empty() {
            return Ok(HashSet::new());
        }
        Ok(self.core.journal().not_by_sidenote(moves)?.into_iter().collect())
    }

    /// Finds the links of one note that led elsewhere before a step, each with the highest certainty that it is wrong.
    /// Only links whose line is unchanged count: about any other one, the author or sidenote has decided since.
    fn doubtful_links(
        &mut self,
        present: &mut Present,
        suspect: &Suspect,
    ) -> Result<Vec<(LinkCase, Certainty)>> {
        let (path, origin) = (&suspect.note, &suspect.then);
        let number = match present.number_of(path) {
            Some(number) => number,
            None => {
                let Some(bytes) = read(self.core, path) else { return Ok(Vec::new()) };
                present.add(Source::unplaced(path.clone(), &bytes))
            }
        };
        let Some(source) = present.sources.get(number) else { return Ok(Vec::new()) };
        // A note without links to files needs no look into the history.
        if !source.note.links.iter().any(is_judged) {
            return Ok(Vec::new());
        }
        let Some(then) = self.note(origin)? else { return Ok(Vec::new()) };
        // A note that was edited since can be right as it is.
        let most = match then.text.lines().eq(source.text.lines()) {
            true => Certainty::Certain,
            false => Certainty::Strong,
        };
        let mut found = Vec::new();
        for (at, link) in unchanged_links(&then, source) {
            let leads_to = place_of(&present.names, link, path);
            // A link to nothing, or out of the vault, is judged already.
            if !is_judged(link) || !matches!(leads_to, Some(LinkedPlace::File(_) | LinkedPlace::Folder(_))) {
                continue;
            }
            let Some(meant) = self.meant(present, origin, link)? else { continue };
            if self.is_right(present, source, link, &meant) {
                continue;
            }
            if let Some(limit) = self.misled_by(present, suspect, link)? {
                found.push((LinkCase { source: number, link: at, is_dead: false }, most.min(limit)));
            }
        }
        Ok(found)
    }

    /// Returns whether a link leads to another file after a step than before it, even if the file itself moved in the
    /// step. If so, also returns the highest certainty that this was not meant.
    fn misled_by(&mut self, present: &Present, suspect: &Suspect, link: &Link) -> Result<Option<Certainty>> {
        let Some(before) = self.place_at(present, &suspect.then, link)? else { return Ok(None) };
        let now = match &suspect.after {
            Some(after) => self.place_at(present, after, link)?,
            None => place_of(&present.names, link, &suspect.note),
        };
        let stays = self.place_after(suspect, &before)?;
        if now.is_some() && now == stays {
            return Ok(None);
        }
        // If the same link, at the old path of its note, leads to the file that it meant, wherever that is now, then
        // the move of the note is the reason.
        let from_old_path = match &suspect.after {
            Some(after) => {
                let old = Origin { commit: after.commit, source: suspect.then.source.clone() };
                self.place_at(present, &old, link)?
            }
            None => place_of(&present.names, link, &suspect.then.source),
        };
        if from_old_path == now {
            // Another file took the path or the name of the one that moved. The link may mean the other file now.
            let is_taken = stays.is_some() && stays.as_ref() != Some(&before);
            return Ok(is_taken.then_some(Certainty::Weak));
        }
        if from_old_path != stays || self.is_tie_at(present, &suspect.then, link)? {
            // Another file is there, too, or only the order of the paths decided, so the meaning of the link was not certain.
            return Ok(Some(Certainty::Weak));
        }
        // A file that came with the move, or after it, may be what the link means now.
        let leads_to = now.or_else(|| place_of(&present.names, link, &suspect.note));
        Ok(Some(match leads_to {
            Some(LinkedPlace::File(new)) if !self.exists_at(suspect.then.commit, &new)? => Certainty::Weak,
            _ => Certainty::Certain,
        }))
    }

    /// Returns where a place is after the step of a suspect; `None` if the file was deleted in it.
    fn place_after(&mut self, suspect: &Suspect, place: &LinkedPlace) -> Result<Option<LinkedPlace>> {
        let LinkedPlace::File(path) = place else { return Ok(Some(place.clone())) };
        let to = match &suspect.after {
            Some(after) => self.path_after(suspect.then.commit, after.commit, path)?,
            None => match self.working.moved.get(path) {
                Some(moved) => Some(moved.to.clone()),
                None => self.core.vault.disk_path(path).symlink_metadata().is_ok().then(|| path.clone()),
            },
        };
        Ok(to.map(LinkedPlace::File))
    }

    /// Returns whether only the order of the paths decided what a link led to in a state.
    fn is_tie_at(&mut self, present: &Present, origin: &Origin, link: &Link) -> Result<bool> {
        let names = self.names_for(present, origin, link)?;
        Ok(names.follow(link, &origin.source).is_some_and(|found| found.unstable))
    }

    /// Returns whether the file that a commit has at a path was moved there, and is not a new one. For the last commit, the
    /// working tree counts, too.
    pub(super) fn was_moved_to(&mut self, path: &NotePath, commit: CommitIndex) -> bool {
        if commit == HEAD && self.working.moved_from.contains_key(path) {
            return true;
        }
        let events = self.walk.known_events_of(path).to_vec();
        let arrives =
            |event: &&PathEvent| matches!(event.kind, PathEventKind::Added | PathEventKind::Replaced { .. });
        let newest = events.iter().filter(arrives).find(|event| self.walk.contains(commit, event.commit));
        let Some(event) = newest else { return false };
        let Some(changes) = self.walk.kept_changes(event.parent, event.commit) else { return false };
        match (changes.of_file_now_at(path.as_str()), &event.kind) {
            (Some(PathChange::Renamed { .. }), _) => true,
            (_, PathEventKind::Replaced { after, .. }) => {
                changes.taking(after).any(|change| paths_of(change).0 != Some(path.as_str()))
            }
            _ => false,
        }
    }
}

/// Lists the links of a note whose whole line is the same as in an earlier version, with their numbers. Of several
/// links with the same destination, those in the same position among them are compared.
fn unchanged_links<'s>(earlier: &Source, source: &'s Source) -> Vec<(usize, &'s Link)> {
    let links = &source.note.links;
    let then = LinkLines::new(&earlier.text, &earlier.note.links);
    let now = LinkLines::new(&source.text, links);
    let placed = links.iter().zip(positions(links)).enumerate();
    let unchanged =
        placed.filter(|(_, (link, position))| then.same(link, *position) == Some(now.text(link.line)));
    unchanged.map(|(at, (link, _))| (at, link)).collect()
}
