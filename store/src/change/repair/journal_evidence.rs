//! Clues from moves that the journals of all clones record, by sidenote or seen by its index (spec/git.md 3, evidence 1
//! and 2).
//!
//! The files are put back to where they were, one recorded move after the other, until a dead link leads to a file.

use std::collections::{HashMap, HashSet};

use crate::change::repair::evidence::{Certainty, Clue, EvidenceKind, Fate};
use crate::change::repair::present::{LinkCase, Present, place_of};
use crate::core::Core;
use sidenote_foundation::error::Result;
use sidenote_foundation::journal::event::{Event, OP_MOVED};
use sidenote_foundation::journal::reader::ReadOrder;
use sidenote_foundation::text::edit::FileLocation;
use sidenote_foundation::text::path::{NotePath, key};
use sidenote_foundation::text::resolve::{FileNames, name_keys};
use sidenote_foundation::text::rewrite::LinkedPlace;

/// The most operations that are looked through.
const MAX_EVENTS: usize = 20_000;

/// The files as they were before some recorded moves.
struct EarlierFiles {
    names: FileNames,
    /// The present path of each file that had another one.
    now: HashMap<NotePath, NotePath>,
    /// The path then of each present file that had another one.
    then: HashMap<NotePath, NotePath>,
}

impl EarlierFiles {
    fn new(present: &Present) -> Self {
        let mut names = present.names.empty_table();
        for path in present.files.keys() {
            names.insert(path);
            names.insert_folders_above(path);
        }
        Self { names, now: HashMap::new(), then: HashMap::new() }
    }

    /// Puts a file back. Returns its present path, or `None` if no file is at `to` any more.
    fn put_back(&mut self, from: &NotePath, to: &NotePath) -> Option<NotePath> {
        if !self.names.contains(to) || from == to {
            return None;
        }
        let now = self.now.remove(to).unwrap_or_else(|| to.clone());
        self.names.remove(to);
        self.names.insert(from);
        self.names.insert_folders_above(from);
        // Another file at the old path came later.
        self.now.insert(from.clone(), now.clone());
        self.then.insert(now.clone(), from.clone());
        Some(now)
    }

    fn path_now<'a>(&'a self, then: &'a NotePath) -> &'a NotePath {
        self.now.get(then).unwrap_or(then)
    }

    fn path_then<'a>(&'a self, now: &'a NotePath) -> &'a NotePath {
        self.then.get(now).unwrap_or(now)
    }

    /// Lists the files below a folder then.
    fn below(&self, present: &Present, folder: &NotePath) -> Vec<NotePath> {
        let prefix = format!("{folder}/");
        let all = present.files.keys().map(|path| self.path_then(path));
        all.filter(|path| path.as_str().starts_with(&prefix)).cloned().collect()
    }
}

/// Finds what dead links meant by the moves in the journals. `is_committed` says whether a file is in the commit that is
/// checked out: of such a file git knows where it came from, and a move that the index saw may be that of a checkout.
pub(super) fn journal_clues(
    core: &Core,
    present: &Present,
    is_committed: impl Fn(&NotePath) -> bool,
) -> Result<Vec<(LinkCase, Clue)>> {
    let mut open: Vec<(LinkCase, HashSet<String>)> = Vec::with_capacity(present.dead.len());
    for case in &present.dead {
        let keys = present.link(case).map(|link| name_keys(&link.path).into_iter().collect());
        open.push((*case, keys.unwrap_or_default()));
    }
    let mut clues = Vec::new();
    if open.is_empty() {
        return Ok(clues);
    }
    let mut files = EarlierFiles::new(present);
    let mut copies: HashMap<[u8; 32], usize> = HashMap::new();
    for hash in present.files.values().flatten().filter_map(|row| row.hash) {
        *copies.entry(hash).or_default() += 1;
    }
    let is_copied = |path: &NotePath| {
        present.hash_of(path).is_some_and(|hash| copies.get(&hash).copied().unwrap_or(0) > 1)
    };
    for event in core.journal().events(ReadOrder::NewestFirst)?.of_changes().take(MAX_EVENTS) {
        let event = event?;
        let moved = put_back_all(&mut files, present, &event);
        if moved.is_empty() {
            continue;
        }
        // A link can name the file, or a folder above it.
        let segments = moved.iter().flat_map(|(from, _)| from.as_str().split('/'));
        let names: HashSet<String> = segments.map(key).collect();
        let sources: HashSet<&NotePath> = moved.iter().map(|(_, now)| now).collect();
        let is_seen = event.op == OP_MOVED;
        open.retain(|(case, keys)| {
            let Some((source, link)) = present.sources.get(case.source).zip(present.link(case)) else {
                return false;
            };
            if keys.is_disjoint(&names) && !sources.contains(&source.path) && event.folders.is_empty() {
                return true;
            }
            let source_then = files.path_then(&source.path).clone();
            let target_then = match place_of(&files.names, link, &source_then) {
                Some(LinkedPlace::File(target)) => target,
                Some(LinkedPlace::Folder(folder)) => {
                    clues.extend(folder_clue(&event, &folder, &source_then).map(|clue| (*case, clue)));
                    return clues.last().is_none_or(|(last, _)| last != case);
                }
                Some(LinkedPlace::Outside(_)) | None => return true,
            };
            let target_then = &target_then;
            let target = files.path_now(target_then).clone();
            let certainty = if is_seen && is_copied(&target) { Certainty::Weak } else { Certainty::Certain };
            if is_seen && is_committed(&target) {
                return false;
            }
            let (kind, by) = match is_seen {
                true => (EvidenceKind::Index, "another program moved"),
                false => (EvidenceKind::Journal, "sidenote moved"),
            };
            let detail = if target == *target_then {
                format!("{by} {source_then} to {}", source.path)
            } else {
                format!("{by} {target_then} to {target}")
            };
            let target_then = LinkedPlace::File(target_then.clone());
            let fate = Fate::At(LinkedPlace::File(target));
            clues.push((*case, Clue { kind, source_then, target_then, fate, certainty, detail }));
            false
        });
        if open.is_empty() {
            break;
        }
    }
    Ok(clues)
}

/// Returns the clue that a folder was moved, as one or with all files that an event moved out of it.
fn folder_clue(event: &Event, folder: &NotePath, source_then: &NotePath) -> Option<Clue> {
    let is_seen = event.op == OP_MOVED;
    let whole = event.folders.iter().find_map(|moved| {
        let rest = folder.as_str().strip_prefix(moved.from.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", moved.to))
    });
    let to = match whole {
        Some(to) => NotePath::from_disk(&to)?,
        None => {
            let prefix = format!("{folder}/");
            let mut targets = event.files.iter().filter_map(|file| {
                let (FileLocation::Vault(from), Some(FileLocation::Vault(to))) = (&file.path, &file.to)
                else {
                    return None;
                };
                let rest = from.as_str().strip_prefix(&prefix)?;
                Some(to.as_str().strip_suffix(rest).and_then(|to| to.strip_suffix('/')).map(str::to_owned))
            });
            let first = targets.next()??;
            // Files that went elsewhere mean that the folder was taken apart.
            if !targets.all(|other| other.as_ref() == Some(&first)) {
                return None;
            }
            NotePath::from_disk(&first)?
        }
    };
    let (kind, by) = match is_seen {
        true => (EvidenceKind::Index, "another program moved"),
        false => (EvidenceKind::Journal, "sidenote moved"),
    };
    Some(Clue {
        kind,
        source_then: source_then.clone(),
        target_then: LinkedPlace::Folder(folder.clone()),
        detail: format!("{by} {folder} to {to}"),
        fate: Fate::At(LinkedPlace::Folder(to)),
        certainty: Certainty::Certain,
    })
}

/// Puts the files that an event moved back. Lists the old and the present path of each.
fn put_back_all(files: &mut EarlierFiles, present: &Present, event: &Event) -> Vec<(NotePath, NotePath)> {
    let mut moves: Vec<(NotePath, NotePath)> = Vec::new();
    for file in &event.files {
        let (FileLocation::Vault(from), Some(FileLocation::Vault(to))) = (&file.path, &file.to) else {
            continue;
        };
        moves.push((from.clone(), to.clone()));
    }
    for folder in &event.folders {
        for to in files.below(present, &folder.to) {
            let rest = to.as_str().strip_prefix(folder.to.as_str()).unwrap_or_default();
            moves.extend(NotePath::from_disk(&format!("{}{rest}", folder.from)).map(|from| (from, to)));
        }
    }
    let put_back = |(from, to): (NotePath, NotePath)| files.put_back(&from, &to).map(|now| (from, now));
    moves.into_iter().filter_map(put_back).collect()
}
