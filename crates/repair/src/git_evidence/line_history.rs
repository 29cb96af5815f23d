//! The commit that last wrote the line of a link. All links are traced back through the history in one walk.

use std::collections::BTreeMap;

use sidenote_base::error::Result;
use sidenote_git::{CommitIndex, ObjectId, PathChange};
use sidenote_links::link_lines::{LinkLines, positions};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::source::Source;

use super::{GitEvidence, HEAD, Origin};
use crate::commit_changes::{CommitChanges, paths_of};
use crate::history_walk::{RECENT_COMMITS, WalkedCommit};
use crate::present::{LinkCase, Present};

/// A link on its way back to the commit that wrote it.
#[derive(Debug, Clone)]
struct TracedLink {
    case: LinkCase,
    /// The number of links with the same destination before it in its note.
    position: usize,
    /// The line of the note with the link.
    line: String,
    /// Whether only recent commits count.
    is_recent_only: bool,
}

/// The links on their way, by the commit that they reached and by their note there.
type OpenTraces = BTreeMap<CommitIndex, BTreeMap<NotePath, Vec<TracedLink>>>;

/// Traces the dead links back through the history, all at once.
pub(super) fn trace_dead_links(git: &mut GitEvidence<'_>, present: &Present) -> Result<()> {
    let mut open = begin_traces(git, present, present.dead.iter().copied(), false)?;
    while !open.is_empty() {
        let Some(walked) = git.walk.step() else { break };
        trace_commit(git, present, &walked, &mut open)?;
    }
    end_traces(git, open);
    Ok(())
}

/// Traces links back through the recent commits, which have been walked.
pub(super) fn trace_recent(
    git: &mut GitEvidence<'_>,
    present: &Present,
    cases: impl Iterator<Item = LinkCase>,
) -> Result<()> {
    let mut open = begin_traces(git, present, cases, true)?;
    for walked in git.walk.recent_commits() {
        trace_commit(git, present, &walked, &mut open)?;
    }
    end_traces(git, open);
    Ok(())
}

/// Begins with the last commit, with the links that it has. Of links that led somewhere in it, only the recent commits count.
fn begin_traces(
    git: &mut GitEvidence<'_>,
    present: &Present,
    cases: impl Iterator<Item = LinkCase>,
    is_recent_only: bool,
) -> Result<OpenTraces> {
    let mut by_source: BTreeMap<usize, Vec<LinkCase>> = BTreeMap::new();
    for case in cases {
        by_source.entry(case.source).or_default().push(case);
    }
    let mut open = OpenTraces::new();
    for (number, cases) in by_source {
        let Some(source) = present.sources.get(number) else { continue };
        let from = git.path_in_head(&source.path).clone();
        let last = Origin { commit: HEAD, source: from.clone() };
        let Some(committed) = git.note(&last)? else { continue };
        let lines = LinkLines::new(&committed.text, &committed.note.links);
        let positions = positions(&source.note.links);
        let traces = open.entry(HEAD).or_default().entry(from).or_default();
        for case in cases {
            let Some((link, &position)) = present.link(&case).zip(positions.get(case.link)) else { continue };
            let Some(line) = lines.same_or_first(link, position).map(str::to_owned) else { continue };
            let is_recent_only = is_recent_only || git.place_at(present, &last, link)?.is_some();
            traces.push(TracedLink { case, position, line, is_recent_only });
        }
    }
    Ok(open)
}

/// Traces all links through a commit that reached it.
fn trace_commit(
    git: &mut GitEvidence<'_>,
    present: &Present,
    walked: &WalkedCommit,
    open: &mut OpenTraces,
) -> Result<()> {
    for (path, links) in open.remove(&walked.commit).unwrap_or_default() {
        for (commit, path, link) in trace_through(git, present, walked, path, links)? {
            open.entry(commit).or_default().entry(path).or_default().push(link);
        }
    }
    Ok(())
}

/// Notes the oldest state that was looked at of links that are older.
fn end_traces(git: &mut GitEvidence<'_>, open: OpenTraces) {
    for (commit, notes) in open {
        for (path, links) in notes {
            for link in links {
                let state = Origin { commit, source: path.clone() };
                git.written.entry(link.case).or_default().push(state);
            }
        }
    }
}

/// Traces the links of one note through a commit. Returns those that a parent had already, each with that parent and the
/// path of the note there.
fn trace_through(
    git: &mut GitEvidence<'_>,
    present: &Present,
    walked: &WalkedCommit,
    path: NotePath,
    links: Vec<TracedLink>,
) -> Result<Vec<(CommitIndex, NotePath, TracedLink)>> {
    let commit = walked.commit;
    let (mut left, mut older) = (links, Vec::new());
    if commit >= RECENT_COMMITS {
        for link in left.extract_if(.., |link| link.is_recent_only) {
            git.written.entry(link.case).or_default().push(Origin { commit, source: path.clone() });
        }
    }
    let change_of = |changes: &CommitChanges| match changes.of_file_now_at(path.as_str()) {
        // For git, a note whose path another file took in the same commit is a new file at its own path.
        Some(PathChange::Added { path, blob }) => Some(
            moved_away(changes, path, blob)
                .unwrap_or_else(|| PathChange::Added { path: path.clone(), blob: blob.clone() }),
        ),
        change => change.cloned(),
    };
    let changes: Vec<(CommitIndex, Option<PathChange>)> =
        walked.changes.iter().map(|(parent, changes)| (*parent, change_of(changes))).collect();
    if let Some((parent, _)) = changes.iter().find(|(_, change)| change.is_none()) {
        return Ok(left.into_iter().map(|link| (*parent, path.clone(), link)).collect());
    }
    for (parent, change) in changes {
        let (from, before, is_same) = match change {
            Some(PathChange::Changed { before, .. }) => (path.clone(), before, false),
            Some(PathChange::Renamed { from: Some(from), before, percent, .. }) => {
                let Some(from) = NotePath::from_disk(&from) else { continue };
                let is_same = percent == 100;
                if is_same && !git.is_clear_move((parent, commit), (&from, &path), &before)? {
                    continue;
                }
                (from, before, is_same)
            }
            _ => continue,
        };
        if from != path {
            for link in &left {
                let before = Origin { commit: parent, source: from.clone() };
                git.note_paths.entry(link.case.source).or_default().insert(commit, before);
            }
        }
        if is_same {
            older.extend(left.drain(..).map(|link| (parent, from.clone(), link)));
            break;
        }
        let Some(bytes) = git.reader.blob(&before)? else { continue };
        let old = Source::unplaced(from.clone(), &bytes);
        let lines = LinkLines::new(&old.text, &old.note.links);
        let mut not_here = Vec::new();
        for traced in left {
            let link = present.link(&traced.case);
            let Some(line) = link.and_then(|link| lines.same_or_first(link, traced.position)) else {
                not_here.push(traced);
                continue;
            };
            if line != traced.line {
                let states = git.written.entry(traced.case).or_default();
                states.push(Origin { commit, source: path.clone() });
                states.push(Origin { commit: parent, source: from.clone() });
            }
            older.push((parent, from.clone(), TracedLink { line: line.to_owned(), ..traced }));
        }
        left = not_here;
    }
    for traced in left {
        git.written.entry(traced.case).or_default().push(Origin { commit, source: path.clone() });
    }
    Ok(older)
}

/// Returns the rename of a file that is new at a path, if its content was at another path before, which a third file took.
fn moved_away(changes: &CommitChanges, to: &str, blob: &ObjectId) -> Option<PathChange> {
    let mut sources = changes.taking(blob).filter_map(|change| match change {
        PathChange::Changed { path, after, .. } => {
            let mut left = changes.taking(after).filter_map(|change| paths_of(change).0);
            left.any(|from| from != path).then_some(path)
        }
        _ => None,
    });
    let (from, more) = (sources.next()?, sources.next());
    more.is_none().then(|| PathChange::Renamed {
        from: Some(from.clone()),
        to: Some(to.to_owned()),
        before: blob.clone(),
        after: blob.clone(),
        percent: 100,
    })
}
