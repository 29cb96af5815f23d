//! What a synchronisation does with each file, by a three-way comparison: its state at the last synchronisation (the base),
//! in the folder, and in the vault. Pure.
//!
//! No plan removes or replaces a text that only one side has: the other side gets it, or it gets a name of its own.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use sidenote_links::conflict_copy::marked_path;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::path::key;
use sidenote_vault::copy::SharedPath;

/// A file in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalFile {
    /// There is none.
    Absent,
    /// It has bytes with this hash.
    Present(ContentHash),
    /// It takes no part, for this reason: it cannot be read, or the vault does not take it.
    LeftOut(String),
}

/// What is known of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStates {
    /// The hash that both sides had at the last synchronisation; `None` if there was no file.
    pub base: Option<ContentHash>,
    /// The file in the folder.
    pub local: LocalFile,
    /// The hash in the vault; `None` if there is no file.
    pub remote: Option<ContentHash>,
}

/// What is done with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Both sides have the same, which becomes the base.
    Agree,
    /// The folder gets what the vault has, in place of `over`.
    Fetch {
        /// The hash that the folder has; `None` for a new file.
        over: Option<ContentHash>,
        /// The hash that the vault has.
        hash: ContentHash,
    },
    /// The file is removed from the folder, which has this hash.
    RemoveHere(ContentHash),
    /// The vault gets what the folder has, in place of `over`.
    Send {
        /// The hash that the vault has; `None` for a new file.
        over: Option<ContentHash>,
        /// The hash that the folder has.
        hash: ContentHash,
    },
    /// The file is removed from the vault, which has this hash.
    RemoveThere(ContentHash),
    /// The file of the folder takes another name, by which the vault gets it, and the name is that of the vault's file.
    SetAside {
        /// The hash that the folder has.
        mine: ContentHash,
        /// The hash that the vault has under the name; `None` if it only needs the name for a folder, or the reverse.
        theirs: Option<ContentHash>,
        /// The new name of the folder's file. It may be one that the vault does not share.
        copy: String,
    },
    /// Nothing is done, for this reason.
    LeaveOut(String),
}

/// What the plan depends on beside the files.
#[derive(Debug, Clone)]
pub struct Rules {
    /// What conflict copies of this synchronisation are called, such as `conflict 2026-11-23 14.05 Anna`.
    pub mark: String,
    /// Whether the folder tells names apart that differ only in case or accents.
    pub tells_case_apart: bool,
    /// Whether the system of the folder can have a file of this name.
    pub is_possible_name: fn(&str) -> bool,
}

/// The number of files that a plan changes, by what happens to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Files that the folder gets.
    pub fetched: usize,
    /// Files that are removed from the folder.
    pub removed_here: usize,
    /// Files that the vault gets.
    pub sent: usize,
    /// Files that are removed from the vault.
    pub removed_there: usize,
    /// Files that both sides changed.
    pub conflicts: usize,
    /// Files that take no part.
    pub left_out: usize,
}

/// What is done with all files, in the order of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Each file with its step. Files without a step are left out.
    pub steps: BTreeMap<SharedPath, Step>,
}

impl Plan {
    /// Counts the steps.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for step in self.steps.values() {
            let count = match step {
                Step::Agree => continue,
                Step::Fetch { .. } => &mut counts.fetched,
                Step::RemoveHere(_) => &mut counts.removed_here,
                Step::Send { .. } => &mut counts.sent,
                Step::RemoveThere(_) => &mut counts.removed_there,
                Step::SetAside { .. } => &mut counts.conflicts,
                Step::LeaveOut(_) => &mut counts.left_out,
            };
            *count += 1;
        }
        counts
    }
}

/// A plan that loses so few files needs no consent: the reply names each of them.
const FEW: usize = 10;

/// Returns whether a plan removes more than half of the files of a side, or all of a few, while their bytes do not stay
/// under another name. A folder that is not mounted looks like this, and so do a state without its files and a vault
/// that somebody emptied.
pub fn loses_most(plan: &Plan, files: &BTreeMap<SharedPath, FileStates>) -> bool {
    let local = |states: &FileStates| match states.local {
        LocalFile::Present(hash) => Some(hash),
        LocalFile::Absent | LocalFile::LeftOut(_) => None,
    };
    // Settings alone are nothing that a person would miss.
    let files = || files.iter().filter(|(path, _)| !path.is_settings()).map(|(_, states)| states);
    let here: Vec<ContentHash> = files().filter_map(local).collect();
    let there: Vec<ContentHash> = files().filter_map(|states| states.remote).collect();
    let removed_here = |step: &Step| if let Step::RemoveHere(hash) = step { Some(*hash) } else { None };
    let removed_there = |step: &Step| if let Step::RemoveThere(hash) = step { Some(*hash) } else { None };
    let is_most =
        |removed: &dyn Fn(&Step) -> Option<ContentHash>, own: &[ContentHash], other: &[ContentHash]| {
            // What the other side has somewhere is there, or comes.
            let other: HashSet<[u8; 32]> = other.iter().map(|hash| hash.to_bytes()).collect();
            let steps = plan.steps.iter().filter(|(path, _)| !path.is_settings()).map(|(_, step)| step);
            let lost = steps.filter_map(removed).filter(|hash| !other.contains(&hash.to_bytes())).count();
            // The removal of a single file is what people do every day.
            lost > FEW && lost > own.len() / 2 || lost > 1 && lost == own.len()
        };
    is_most(&removed_here, &here, &there) || is_most(&removed_there, &there, &here)
}

/// Decides about one file by itself. `None` means that there is nothing to do.
pub fn decide(states: &FileStates, copy: impl FnOnce() -> String) -> Option<Step> {
    let local = match &states.local {
        LocalFile::LeftOut(why) => return Some(Step::LeaveOut(why.clone())),
        LocalFile::Absent => None,
        LocalFile::Present(hash) => Some(*hash),
    };
    let (base, remote) = (states.base, states.remote);
    if local == remote {
        return (base != local).then_some(Step::Agree);
    }
    match (local, remote) {
        // Only the vault changed, or the folder's file was removed and the vault's changed: the change wins.
        (over, Some(hash)) if over == base || over.is_none() && base != remote => {
            Some(Step::Fetch { over, hash })
        }
        (Some(mine), None) if base == local => Some(Step::RemoveHere(mine)),
        // Only the folder changed, or the vault's file was removed and the folder's changed: the change wins.
        (Some(hash), over) if over == base || over.is_none() => Some(Step::Send { over, hash }),
        (None, Some(theirs)) => Some(Step::RemoveThere(theirs)),
        (Some(mine), theirs) => Some(Step::SetAside { mine, theirs, copy: copy() }),
        // Both are absent, which is equal.
        (None, None) => None,
    }
}

/// Plans a synchronisation.
pub fn plan(files: &BTreeMap<SharedPath, FileStates>, rules: &Rules) -> Plan {
    let mut taken = Names::new(files);
    let mut steps = BTreeMap::new();
    for (path, states) in files {
        let step = decide(states, || taken.free(path.as_str(), None, rules));
        steps.extend(step.map(|step| (path.clone(), step)));
    }
    leave_out_impossible(files, rules, &mut steps);
    set_aside_clashes(files, rules, &mut taken, &mut steps);
    Plan { steps }
}

/// Leaves out the files of the vault that the folder cannot have: names that its system refuses, and all but one of the
/// names that it does not distinguish. They stay in the vault as they are.
fn leave_out_impossible(
    files: &BTreeMap<SharedPath, FileStates>,
    rules: &Rules,
    steps: &mut BTreeMap<SharedPath, Step>,
) {
    let is_new = |step: &Step| matches!(step, Step::Fetch { over: None, .. });
    for (path, step) in steps.iter_mut().filter(|(_, step)| is_new(step)) {
        if !path.as_str().split('/').all(rules.is_possible_name) {
            *step = Step::LeaveOut("this system cannot have a file of this name".to_owned());
        }
    }
    if rules.tells_case_apart {
        return;
    }
    let stays = |path: &SharedPath| {
        let states = files.get(path)?;
        let goes = matches!(steps.get(path), Some(Step::RemoveHere(_)));
        (matches!(states.local, LocalFile::Present(_)) && !goes).then(|| key(path.as_str()))
    };
    let mut held: BTreeSet<String> = files.keys().filter_map(stays).collect();
    for (path, step) in steps.iter_mut().filter(|(_, step)| is_new(step)) {
        if !held.insert(key(path.as_str())) {
            *step =
                Step::LeaveOut("the folder has a file whose name differs only in case or accents".to_owned());
        }
    }
}

/// Gives other names to files of the folder alone whose name the vault needs for a folder, or which are in a folder whose name
/// the vault needs for a file.
fn set_aside_clashes(
    files: &BTreeMap<SharedPath, FileStates>,
    rules: &Rules,
    taken: &mut Names,
    steps: &mut BTreeMap<SharedPath, Step>,
) {
    let stays = |path: &SharedPath| {
        let is_there = files.get(path).is_some_and(|states| states.remote.is_some());
        is_there && !matches!(steps.get(path), Some(Step::RemoveThere(_)))
    };
    let remote: BTreeSet<&str> = files.keys().filter(|path| stays(path)).map(SharedPath::as_str).collect();
    let folders: BTreeSet<&str> = remote.iter().flat_map(|path| folders_of(path)).collect();
    let mut clashes = Vec::new();
    for (path, step) in &*steps {
        let Step::Send { over: None, hash } = step else { continue };
        let text = path.as_str();
        let file_above = folders_of(text).find(|folder| remote.contains(folder));
        let at = file_above.map(|folder| Some(folder.split('/').count()));
        if let Some(at) = at.or_else(|| folders.contains(text).then_some(None)) {
            clashes.push((path.clone(), *hash, at));
        }
    }
    for (path, mine, at) in clashes {
        let copy = taken.free(path.as_str(), at, rules);
        steps.insert(path, Step::SetAside { mine, theirs: None, copy });
    }
}

/// Lists the folders of a path, the outermost first.
pub fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// The names that are taken, in the form in which the least capable folder compares them.
struct Names(BTreeSet<String>);

impl Names {
    fn new(files: &BTreeMap<SharedPath, FileStates>) -> Self {
        let mut names: BTreeSet<String> = files.keys().map(|path| key(path.as_str())).collect();
        names.extend(files.keys().flat_map(|path| folders_of(path.as_str())).map(key));
        Self(names)
    }

    /// Takes a free name for the conflict copy of a file. With `folder`, the mark is at the end of the folder of that many
    /// segments.
    fn free(&mut self, path: &str, folder: Option<usize>, rules: &Rules) -> String {
        let mut number = 1;
        loop {
            let mark = if number == 1 { rules.mark.clone() } else { format!("{} {number}", rules.mark) };
            let name = marked_path(path, folder, &mark);
            if self.0.insert(key(&name)) {
                return name;
            }
            number += 1;
        }
    }
}
