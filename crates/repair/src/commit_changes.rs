//! The changes of one commit against a parent, by path, with the removed file that each new file is.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use sidenote_git::{ObjectId, PathChange};
use sidenote_markdown::path::{NotePath, key};

use crate::moved_files::{HashedFile, MovedFolders, is_rival, key_of, pair_equal};

/// The changes of a commit against one parent. A path is looked up in them without going through all of them.
#[derive(Debug)]
pub(super) struct CommitChanges {
    all: Vec<PathChange>,
    /// The files that the commit renamed to one of several equal files, where it cannot be known to which one. By the
    /// path before.
    unclear: HashSet<String>,
    index: OnceCell<ChangeIndex>,
    folders: OnceCell<MovedFolders>,
}

/// The numbers of changes by what they concern.
#[derive(Debug, Default)]
struct ChangeIndex {
    /// By the path before: of a file that was removed, renamed or changed.
    before: HashMap<String, usize>,
    /// By the path after: of a file that is new, renamed or changed.
    after: HashMap<String, usize>,
    /// By a content that a path had before and does not have any more.
    gone: HashMap<ObjectId, Vec<usize>>,
    /// By a content that is new at a path.
    new: HashMap<ObjectId, Vec<usize>>,
    /// By the extension of a file that is new at its path.
    new_files: HashMap<String, Vec<usize>>,
    /// By the extension of a file with a content that no path had before.
    written: HashMap<String, Vec<usize>>,
    /// The same by the key of the file's name.
    written_by_name: HashMap<String, Vec<usize>>,
}

impl CommitChanges {
    /// Pairs removed files with new ones of the same content, and keeps the changes.
    pub(super) fn of(mut all: Vec<PathChange>) -> Self {
        let unclear = pair_copies(&mut all).into_iter().collect();
        Self { all, unclear, index: OnceCell::new(), folders: OnceCell::new() }
    }

    /// Lists all changes.
    pub(super) fn all(&self) -> &[PathChange] {
        &self.all
    }

    /// Returns whether it cannot be known which of several equal files a renamed file became.
    pub(super) fn is_unclear(&self, from: &str) -> bool {
        self.unclear.contains(from)
    }

    /// Returns what the commit did to the file that was at a path.
    pub(super) fn of_file_at(&self, path: &str) -> Option<&PathChange> {
        self.all.get(*self.index().before.get(path)?)
    }

    /// Returns what made or changed the file that is at a path after the commit.
    pub(super) fn of_file_now_at(&self, path: &str) -> Option<&PathChange> {
        self.all.get(*self.index().after.get(path)?)
    }

    /// Lists the changes that took a content from a path.
    pub(super) fn taking(&self, blob: &ObjectId) -> impl Iterator<Item = &PathChange> {
        let numbers = self.index().gone.get(blob).map_or(&[][..], Vec::as_slice);
        numbers.iter().filter_map(|number| self.all.get(*number))
    }

    /// Lists the changes that brought a content to a path.
    pub(super) fn bringing(&self, blob: &ObjectId) -> impl Iterator<Item = &PathChange> {
        let numbers = self.index().new.get(blob).map_or(&[][..], Vec::as_slice);
        numbers.iter().filter_map(|number| self.all.get(*number))
    }

    /// Lists the files that are new at their path and have an extension, with their contents.
    pub(super) fn new_files(&self, extension: &str) -> Vec<(&str, &ObjectId)> {
        let numbers = self.index().new_files.get(extension).map_or(&[][..], Vec::as_slice);
        let changes = numbers.iter().filter_map(|number| self.all.get(*number));
        changes.filter_map(|change| paths_of(change).1.zip(contents_of(change).1)).collect()
    }

    /// Lists the contents that the commit wrote at other paths than `to`, each with the earlier content that must
    /// differ from it. The file that the commit renamed from a path may be at any of these paths as well.
    pub(super) fn rivals(&self, from: &NotePath, to: &NotePath) -> Vec<(Option<&ObjectId>, &ObjectId)> {
        let index = self.index();
        let name = key(from.name());
        let found = match key(to.name()) == name {
            true => index.written_by_name.get(&name),
            false => index.written.get(from.extension()),
        };
        let changes = found.into_iter().flatten().filter_map(|number| self.all.get(*number));
        let rivals = changes.filter(|change| {
            let (old, path) = paths_of(change);
            let is_own = old == Some(from.as_str());
            !is_own && path.and_then(NotePath::from_disk).is_some_and(|path| is_rival(from, to, &path))
        });
        let contents = rivals.filter_map(|change| {
            let (before, after) = contents_of(change);
            let is_changed = matches!(change, PathChange::Changed { .. });
            Some((before.filter(|_| is_changed), after?))
        });
        contents.collect()
    }

    /// Returns the folders that moved, by the files in them whose content is theirs alone.
    pub(super) fn moved_folders(&self, is_own: impl Fn(&ObjectId) -> bool) -> &MovedFolders {
        self.folders.get_or_init(|| {
            let mut folders = MovedFolders::default();
            for change in &self.all {
                if let PathChange::Renamed { from: Some(from), to: Some(to), before, percent: 100, .. } =
                    change
                    && is_own(before)
                {
                    folders.add(from, to);
                }
            }
            folders
        })
    }

    fn index(&self) -> &ChangeIndex {
        self.index.get_or_init(|| {
            let mut index = ChangeIndex::default();
            for (number, change) in self.all.iter().enumerate() {
                let (from, to) = paths_of(change);
                let (old, new) = contents_of(change);
                if let Some(from) = from {
                    index.before.insert(from.to_owned(), number);
                }
                if let Some(to) = to {
                    index.after.insert(to.to_owned(), number);
                    if let (PathChange::Added { .. } | PathChange::Renamed { .. }, Some(path)) =
                        (change, NotePath::from_disk(to))
                    {
                        index.new_files.entry(path.extension().to_owned()).or_default().push(number);
                    }
                }
                // A file that only changed its mode or its path brought no content.
                let is_same_place = matches!(change, PathChange::Changed { .. }) && old == new;
                let is_kept = matches!(change, PathChange::Renamed { percent: 100, .. }) || is_same_place;
                if let Some(path) = to.and_then(NotePath::from_disk).filter(|_| !is_kept) {
                    index.written.entry(path.extension().to_owned()).or_default().push(number);
                    index.written_by_name.entry(key(path.name())).or_default().push(number);
                }
                if !is_same_place {
                    old.into_iter().for_each(|old| index.gone.entry(old.clone()).or_default().push(number));
                    new.into_iter().for_each(|new| index.new.entry(new.clone()).or_default().push(number));
                }
            }
            index
        })
    }
}

/// Returns the path of a file before a change, and its path after it.
pub(super) fn paths_of(change: &PathChange) -> (Option<&str>, Option<&str>) {
    match change {
        PathChange::Added { path, .. } => (None, Some(path)),
        PathChange::Removed { path, .. } => (Some(path), None),
        PathChange::Changed { path, .. } => (Some(path), Some(path)),
        PathChange::Renamed { from, to, .. } => (from.as_deref(), to.as_deref()),
    }
}

/// Returns the content of a file before a change, and its content after it.
pub(super) fn contents_of(change: &PathChange) -> (Option<&ObjectId>, Option<&ObjectId>) {
    match change {
        PathChange::Added { blob, .. } => (None, Some(blob)),
        PathChange::Removed { blob, .. } => (Some(blob), None),
        PathChange::Changed { before, after, .. } | PathChange::Renamed { before, after, .. } => {
            (Some(before), Some(after))
        }
    }
}

/// Pairs removed files with new ones again if several have the same content, because git takes any of them. They are
/// distinguished by their names and by the new paths of the files around them. Returns the old paths of those that
/// cannot be distinguished.
fn pair_copies(changes: &mut Vec<PathChange>) -> Vec<String> {
    type FileContent<'c> = (&'c String, &'c ObjectId);
    let (mut gone, mut new): (Vec<FileContent<'_>>, Vec<FileContent<'_>>) = Default::default();
    for change in changes.iter() {
        match change {
            PathChange::Removed { path, blob } => gone.push((path, blob)),
            PathChange::Added { path, blob } => new.push((path, blob)),
            PathChange::Renamed { from: Some(from), to: Some(to), before, percent: 100, .. } => {
                gone.push((from, before));
                new.push((to, before));
            }
            _ => {}
        }
    }
    let mut counts: HashMap<&ObjectId, (usize, usize)> = HashMap::new();
    gone.iter().for_each(|(_, blob)| counts.entry(blob).or_default().0 += 1);
    new.iter().for_each(|(_, blob)| counts.entry(blob).or_default().1 += 1);
    // One file that git paired already needs no other pair. It pairs none where it could not look for renames.
    let mut open: HashSet<&ObjectId> = HashSet::new();
    for change in changes.iter() {
        if let PathChange::Removed { blob, .. } | PathChange::Added { blob, .. } = change {
            open.insert(blob);
        }
    }
    let is_several = |blob: &ObjectId| {
        counts
            .get(blob)
            .is_some_and(|(gone, new)| *gone > 0 && *new > 0 && (gone + new > 2 || open.contains(blob)))
    };
    if !gone.iter().any(|(_, blob)| is_several(blob)) {
        return Vec::new();
    }
    let hashed = |files: &[FileContent<'_>]| -> Vec<HashedFile> {
        let one = |(path, blob): &FileContent<'_>| Some((NotePath::from_disk(path)?, key_of(blob)));
        files.iter().filter_map(one).collect()
    };
    let moves = pair_equal(&hashed(&gone), &hashed(&new));
    let mut paired: Vec<PathChange> = Vec::with_capacity(changes.len());
    let mut unclear = Vec::new();
    let (mut used, mut several_new): (HashSet<String>, Vec<(String, ObjectId)>) = Default::default();
    for change in changes.iter() {
        let (from, blob) = match change {
            PathChange::Renamed { from: Some(from), to: Some(to), before, percent: 100, .. }
                if is_several(before) =>
            {
                several_new.push((to.clone(), before.clone()));
                (from, before)
            }
            PathChange::Removed { path, blob } if is_several(blob) => (path, blob),
            PathChange::Added { path, blob } if is_several(blob) => {
                several_new.push((path.clone(), blob.clone()));
                continue;
            }
            _ => {
                paired.push(change.clone());
                continue;
            }
        };
        let moved = NotePath::from_disk(from).and_then(|from| moves.get(&from));
        match moved {
            Some(moved) if used.insert(moved.to.as_str().to_owned()) => {
                if !moved.is_clear {
                    unclear.push(from.clone());
                }
                paired.push(PathChange::Renamed {
                    from: Some(from.clone()),
                    to: Some(moved.to.as_str().to_owned()),
                    before: blob.clone(),
                    after: blob.clone(),
                    percent: 100,
                });
            }
            _ => paired.push(PathChange::Removed { path: from.clone(), blob: blob.clone() }),
        }
    }
    let added = several_new.into_iter().filter(|(path, _)| !used.contains(path));
    paired.extend(added.map(|(path, blob)| PathChange::Added { path, blob }));
    *changes = paired;
    unclear
}
