//! The files that had a content. If several files had it, such as notes made from one template, it does not identify
//! one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sidenote_git::{ObjectId, PathChange};
use sidenote_markdown::path::{NotePath, key};

use crate::commit_changes::CommitChanges;
use crate::moved_files::MovedFolders;

/// The maximum number of owners of a content that are distinguished. A content with more owners identifies no file.
const MAX_OWNERS: usize = 64;

/// The files that had each content in the present and in the commits that were looked at.
#[derive(Debug, Default)]
pub(super) struct ContentOwners {
    /// One owner of each content; most have no other.
    first: HashMap<u64, Owner>,
    /// The others.
    more: HashMap<u64, Vec<Owner>>,
}

/// A path that had a content. Its path and its name are kept as hashes, so that a long history takes little memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    path: u32,
    name: u32,
    /// Whether the content was written there.
    is_written: bool,
    /// Whether the content came there from another path, which is the same file then.
    is_moved: bool,
}

impl Owner {
    fn of(path: &NotePath) -> Self {
        Self {
            path: hash_of(path.as_str()) as u32,
            name: hash_of(&key(path.name())) as u32,
            is_written: false,
            is_moved: false,
        }
    }

    /// Returns whether the path is not another one of a file that moved.
    fn is_first_path(&self) -> bool {
        self.is_written || !self.is_moved
    }
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl ContentOwners {
    /// Notes that a file has a content.
    pub(super) fn add(&mut self, path: &NotePath, blob: &ObjectId) {
        self.update(blob, Owner::of(path));
    }

    /// Notes the contents that the files of a commit have and had.
    pub(super) fn add_changes(&mut self, changes: &CommitChanges) {
        for change in changes.all() {
            match change {
                PathChange::Removed { path, blob } => self.seen(path, blob),
                PathChange::Added { path, blob } => self.arrived(changes, path, blob),
                PathChange::Changed { path, before, after } if before != after => {
                    self.seen(path, before);
                    self.arrived(changes, path, after);
                }
                PathChange::Changed { .. } => {}
                PathChange::Renamed { from, to, before, after, .. } => {
                    if let Some(from) = from {
                        self.seen(from, before);
                    }
                    if let Some(to) = to.as_deref().and_then(NotePath::from_disk) {
                        self.update(after, Owner { is_moved: true, ..Owner::of(&to) });
                    }
                }
            }
        }
    }

    fn seen(&mut self, path: &str, blob: &ObjectId) {
        if let Some(path) = NotePath::from_disk(path) {
            self.add(&path, blob);
        }
    }

    /// Notes a content that is new at a path: written there, or moved there from another path that it left. If the file
    /// that had it was renamed to a third path, the file here is a copy.
    fn arrived(&mut self, changes: &CommitChanges, path: &str, blob: &ObjectId) {
        let Some(path) = NotePath::from_disk(path) else { return };
        let is_moved = changes.taking(blob).any(|change| !matches!(change, PathChange::Renamed { .. }));
        self.update(blob, Owner { is_written: !is_moved, is_moved, ..Owner::of(&path) });
    }

    fn update(&mut self, blob: &ObjectId, owner: Owner) {
        let content = hash_of(blob.as_str());
        let merge = |known: &mut Owner| {
            known.is_written |= owner.is_written;
            known.is_moved |= owner.is_moved;
        };
        let first = self.first.entry(content).or_insert(owner);
        if first.path == owner.path {
            return merge(first);
        }
        let more = self.more.entry(content).or_default();
        match more.iter().position(|known| known.path == owner.path) {
            Some(at) => more.get_mut(at).into_iter().for_each(merge),
            None if more.len() < MAX_OWNERS => more.push(owner),
            None => {}
        }
    }

    fn of(&self, blob: &ObjectId) -> impl Iterator<Item = &Owner> {
        let content = hash_of(blob.as_str());
        self.first.get(&content).into_iter().chain(self.more.get(&content).into_iter().flatten())
    }

    /// Returns whether only one file had a content at any time, whatever its paths were.
    pub(super) fn is_of_one_file(&self, blob: &ObjectId) -> bool {
        self.of(blob).filter(|owner| owner.is_first_path()).nth(1).is_none()
    }

    /// Returns whether only one file with the name of a path had a content at any time.
    fn is_of_one_name(&self, blob: &ObjectId, path: &NotePath) -> bool {
        let name = Owner::of(path).name;
        self.of(blob).count() <= MAX_OWNERS
            && self.of(blob).filter(|owner| owner.is_first_path() && owner.name == name).nth(1).is_none()
    }

    /// Returns whether a content shows that a file with it moved from one path to another: no other file ever had the
    /// content, or none with that name, or the whole folder moved.
    pub(super) fn tells(
        &self,
        blob: &ObjectId,
        from: &NotePath,
        to: &NotePath,
        folders: &MovedFolders,
    ) -> bool {
        let has_name = || key(from.name()) == key(to.name());
        self.is_of_one_file(blob)
            || has_name() && (self.is_of_one_name(blob, from) || folders.has(from.folder(), to.folder()))
    }

    /// Returns whether no file but those at two paths had a content at any time.
    pub(super) fn is_of(&self, blob: &ObjectId, one: &NotePath, other: &NotePath) -> bool {
        let known = [Owner::of(one).path, Owner::of(other).path];
        self.of(blob).all(|owner| !owner.is_first_path() || known.contains(&owner.path))
    }
}
