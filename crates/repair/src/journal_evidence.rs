//! Clues from moves that the journals of all clones record, by sidenote or seen by its index (docs/spec/git.md 3,
//! evidence 1 and 2).
//!
//! The files are put back to where they were, one recorded move after the other, until a dead link leads to a file.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::FileRow;
use sidenote_journal::event::{Event, OP_MOVED};
use sidenote_journal::reader::ReadOrder;
use sidenote_links::resolve::{FileNames, name_keys};
use sidenote_links::rewrite::LinkedPlace;
use sidenote_markdown::edit::FileLocation;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::Core;
use sidenote_open_vault::source::Source;

use crate::evidence::{Certainty, Clue, EvidenceKind, TargetState};
use crate::history_walk::keys_below;
use crate::present::{LinkCase, Present, is_judged, place_of};
use crate::working_tree::read;

/// The most operations that are looked through.
const MAX_EVENTS: usize = 20_000;

/// The files as they were before some recorded moves.
struct EarlierFiles {
    names: FileNames,
    /// The present path of each file that had another one.
    now: HashMap<NotePath, NotePath>,
    /// The path then of each present file that had another one.
    then: HashMap<NotePath, NotePath>,
    /// All paths then, in order.
    paths: BTreeMap<NotePath, ()>,
}

impl EarlierFiles {
    fn new(present: &Present) -> Self {
        let mut names = present.names.empty_table();
        for path in present.files.keys() {
            names.insert(path);
            names.insert_folders_above(path);
        }
        let paths = present.files.keys().map(|path| (path.clone(), ())).collect();
        Self { names, now: HashMap::new(), then: HashMap::new(), paths }
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
        self.paths.remove(to);
        self.paths.insert(from.clone(), ());
        Some(now)
    }

    fn path_now<'a>(&'a self, then: &'a NotePath) -> &'a NotePath {
        self.now.get(then).unwrap_or(then)
    }

    fn path_then<'a>(&'a self, now: &'a NotePath) -> &'a NotePath {
        self.then.get(now).unwrap_or(now)
    }

    /// Lists the files below a folder then.
    fn below(&self, folder: &NotePath) -> Vec<NotePath> {
        keys_below(&self.paths, folder).cloned().collect()
    }
}

/// Links whose meaning is not known yet, by what a move can have changed for them.
struct OpenLinks {
    by_key: HashMap<String, Vec<LinkCase>>,
    by_source: HashMap<NotePath, Vec<LinkCase>>,
    open: BTreeSet<LinkCase>,
}

impl OpenLinks {
    fn of(present: &Present) -> Self {
        let mut links = Self { by_key: HashMap::new(), by_source: HashMap::new(), open: BTreeSet::new() };
        for case in present.dead.iter().chain(&present.captured) {
            let Some((source, link)) = present.sources.get(case.source).zip(present.link(case)) else {
                continue;
            };
            for key in name_keys(&link.path) {
                links.by_key.entry(key).or_default().push(*case);
            }
            links.by_source.entry(source.path.clone()).or_default().push(*case);
            links.open.insert(*case);
        }
        links
    }

    /// Lists the open links that some moves can concern: they name one of the files, or a folder above it, or their note moved.
    fn concerned(&self, moved: &[(NotePath, NotePath)]) -> BTreeSet<LinkCase> {
        let names: HashSet<String> =
            moved.iter().flat_map(|(from, _)| from.as_str().split('/')).map(key).collect();
        let named = names.iter().filter_map(|name| self.by_key.get(name));
        let linking = moved.iter().filter_map(|(_, now)| self.by_source.get(now));
        named.chain(linking).flatten().filter(|case| self.open.contains(case)).copied().collect()
    }
}

/// Finds links that may have led to a file which another program moved, and that lead to another one with its name now: in notes
/// that were not changed since.
pub(super) fn find_captured(core: &Core, present: &mut Present) -> Result<()> {
    /// The most names that are looked at.
    const MOST: usize = 20_000;
    let dead: HashSet<(usize, usize)> = present.dead.iter().map(|case| (case.source, case.link)).collect();
    // The oldest move of each name.
    let mut moved: BTreeMap<String, Timestamp> = BTreeMap::new();
    for event in core.journal().events(ReadOrder::NewestFirst)?.of_changes().take(MAX_EVENTS) {
        let event = event?;
        if event.op != OP_MOVED {
            continue;
        }
        for file in &event.files {
            if let (FileLocation::Vault(from), Some(FileLocation::Vault(to))) = (&file.path, &file.to)
                && present.has_namesake(from, to)
            {
                moved.insert(key(from.name()), event.at);
            }
        }
        if moved.len() > MOST {
            break;
        }
    }
    for (name, at) in moved {
        for note in present.looking_up(core, &BTreeSet::from([name.clone()]))? {
            let is_as_then = |row: &FileRow| row.written <= at;
            if !present.files.get(&note).and_then(Option::as_ref).is_some_and(is_as_then) {
                continue;
            }
            let number = match present.number_of(&note) {
                Some(number) => number,
                None => {
                    let Some(bytes) = read(core, &note) else { continue };
                    present.add(Source::unplaced(note.clone(), &bytes))
                }
            };
            let Some(source) = present.sources.get(number) else { continue };
            let links = source.note.links.iter().enumerate();
            let named = links.filter(|(_, link)| is_judged(link) && name_keys(&link.path).contains(&name));
            let cases: Vec<LinkCase> = named
                .map(|(link, _)| LinkCase { source: number, link, is_dead: false })
                .filter(|case| !dead.contains(&(case.source, case.link)))
                .collect();
            present.captured.extend(cases);
        }
    }
    present.captured.sort_unstable();
    present.captured.dedup();
    Ok(())
}

/// Finds what dead links meant by the moves in the journals. `is_committed` says whether a file is in the commit that
/// is checked out: git knows where such a file came from, and a move that the index saw may be that of a checkout.
pub(super) fn journal_clues(
    core: &Core,
    present: &Present,
    is_committed: impl Fn(&NotePath) -> bool,
) -> Result<Vec<(LinkCase, Clue)>> {
    let mut links = OpenLinks::of(present);
    let mut clues = Vec::new();
    if links.open.is_empty() {
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
        let moved = put_back_all(&mut files, &event);
        present.count(moved.len());
        if moved.is_empty() {
            continue;
        }
        let is_seen = event.op == OP_MOVED;
        for case in links.concerned(&moved) {
            let Some((source, link)) = present.sources.get(case.source).zip(present.link(&case)) else {
                continue;
            };
            let source_then = files.path_then(&source.path).clone();
            let place_then = place_of(&files.names, link, &source_then);
            if !case.is_dead && place_then == place_of(&present.names, link, &source.path) {
                continue;
            }
            let target_then = match place_then {
                Some(LinkedPlace::File(target)) => target,
                Some(LinkedPlace::Folder(folder)) => {
                    if let Some(clue) = folder_clue(&event, &folder, &source_then) {
                        clues.push((case, clue));
                        links.open.remove(&case);
                    }
                    continue;
                }
                Some(LinkedPlace::Outside(_)) | None => continue,
            };
            links.open.remove(&case);
            let target = files.path_now(&target_then).clone();
            if is_seen && is_committed(&target) {
                continue;
            }
            // A link that leads to a file may be right as it is.
            let is_doubtful = !case.is_dead || is_seen && is_copied(&target);
            let certainty = if is_doubtful { Certainty::Weak } else { Certainty::Certain };
            let (kind, by) = mover(&event);
            let detail = if target == target_then {
                format!("{by} {source_then} to {}", source.path)
            } else {
                format!("{by} {target_then} to {target}")
            };
            let target_then = LinkedPlace::File(target_then);
            let state = TargetState::At(LinkedPlace::File(target));
            clues.push((case, Clue { kind, source_then, target_then, state, certainty, detail }));
        }
        if links.open.is_empty() {
            break;
        }
    }
    Ok(clues)
}

/// Returns the kind of evidence that an event is, and the words that say who moved the files.
fn mover(event: &Event) -> (EvidenceKind, &'static str) {
    match event.op.as_str() {
        OP_MOVED => (EvidenceKind::Index, "another program moved"),
        _ => (EvidenceKind::Journal, "sidenote moved"),
    }
}

/// Returns the clue that a folder was moved, as one or with all files that an event moved out of it.
fn folder_clue(event: &Event, folder: &NotePath, source_then: &NotePath) -> Option<Clue> {
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
    let (kind, by) = mover(event);
    Some(Clue {
        kind,
        source_then: source_then.clone(),
        target_then: LinkedPlace::Folder(folder.clone()),
        detail: format!("{by} {folder} to {to}"),
        state: TargetState::At(LinkedPlace::Folder(to)),
        certainty: Certainty::Certain,
    })
}

/// Puts the files that an event moved back. Lists the old and the present path of each.
fn put_back_all(files: &mut EarlierFiles, event: &Event) -> Vec<(NotePath, NotePath)> {
    let mut moves: Vec<(NotePath, NotePath)> = Vec::new();
    for file in &event.files {
        let (FileLocation::Vault(from), Some(FileLocation::Vault(to))) = (&file.path, &file.to) else {
            continue;
        };
        moves.push((from.clone(), to.clone()));
    }
    for folder in &event.folders {
        for to in files.below(&folder.to) {
            let rest = to.as_str().strip_prefix(folder.to.as_str()).unwrap_or_default();
            moves.extend(NotePath::from_disk(&format!("{}{rest}", folder.from)).map(|from| (from, to)));
        }
    }
    let put_back = |(from, to): (NotePath, NotePath)| files.put_back(&from, &to).map(|now| (from, now));
    moves.into_iter().filter_map(put_back).collect()
}
