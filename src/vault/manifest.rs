//! Owns the manifest of a transaction: what it does, in which order, and under which names meanwhile. Pure.
//!
//! "Then" paths are those after the folders have moved, "now" paths those before.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::edit::{Content, ContentHash, Edit, FileLocation, FolderMove, single_edit};
use crate::text::path::{NotePath, key};
use crate::vault::dir::split_path;

/// How every temporary name ends.
pub(crate) const TEMPORARY: &str = ".sidenote-tmp";

/// How many bytes a name may have.
const LONGEST_NAME: usize = 255;

/// The edits of one file are kept where they have so many bytes at most.
const LONGEST_PATCH: usize = 1_000_000;

/// One transaction, as `manifest.json` and later `committed.json` hold it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The transaction, and later the event in the journal.
    pub(crate) id: String,
    /// The operation, as the journal names it.
    pub(crate) operation: String,
    /// The operation that it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<String>,
    /// When it was planned, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Folders that move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) folders: Vec<MovedFolder>,
    /// Folders that are made, outer ones first, as "now" paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made: Vec<String>,
    /// What happens to single files.
    pub(crate) files: Vec<ChangedFile>,
    /// What else the event in the journal says, such as the session.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) more: Map<String, Value>,
}

/// A folder that moves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MovedFolder {
    /// The move.
    #[serde(flatten)]
    pub(crate) paths: FolderMove,
    /// The folder's inode, by which a later look tells whether it has moved.
    pub(crate) inode: u64,
}

/// What happens to one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChangedFile {
    /// Where it was; nothing for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<FileLocation>,
    /// Where it will be; nothing for one that is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<FileLocation>,
    /// The hash of its bytes before; unknown for large files that are only moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<ContentHash>,
    /// The hash of its bytes afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<ContentHash>,
    /// Where its bytes before stand in `images`: offset and length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<(u64, u64)>,
    /// The edits that led from its bytes before to those afterwards, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) patch: Vec<Edit>,
    /// The name of the temporary file that holds its bytes afterwards, in the folder where it will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) temporary: Option<String>,
    /// The inode that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inode: Option<u64>,
}

impl ChangedFile {
    pub(crate) fn source(&self) -> Option<String> {
        self.from.as_ref().map(FileLocation::to_string)
    }

    pub(crate) fn target(&self) -> Option<String> {
        self.to.as_ref().map(FileLocation::to_string)
    }
}

/// One rename of a file or folder that replaces nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rename {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Which file it is: other files under that name are none of ours.
    pub(crate) inode: Option<u64>,
    /// What it holds, for a vault that was copied meanwhile, where inodes say nothing.
    pub(crate) hash: Option<ContentHash>,
}

/// A file that is removed, under the name that it has once all has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removal {
    /// Where it was, as people know it.
    pub(crate) path: String,
    /// Where it is when it comes to be removed.
    pub(crate) at: String,
    pub(crate) before: Option<ContentHash>,
    /// Its place in the manifest.
    pub(crate) index: usize,
}

/// Makes a hidden name in the same folder, which belongs to one transaction alone.
pub(crate) fn temporary_name(name: &str, id: &str, tag: &str) -> String {
    let end = format!(".{id}-{tag}{TEMPORARY}");
    let mut room = LONGEST_NAME.saturating_sub(1 + end.len()).min(name.len());
    while !name.is_char_boundary(room) {
        room -= 1;
    }
    format!(".{}{end}", name.get(..room).unwrap_or_default())
}

/// Gives the edits that a change makes, so that it can be taken back from a file that others changed since; none where they
/// are long, or the file is no text.
pub(crate) fn patch_of(content: &Content, before: &[u8]) -> Vec<Edit> {
    let edits = match content {
        Content::Edits(edits) => edits.clone(),
        Content::Whole(bytes) => match (std::str::from_utf8(before), std::str::from_utf8(bytes)) {
            (Ok(before), Ok(after)) => single_edit(before, after).into_iter().collect(),
            _ => Vec::new(),
        },
        Content::Keep => Vec::new(),
    };
    let length: usize = edits.iter().map(|edit| edit.text.len()).sum();
    if length <= LONGEST_PATCH { edits } else { Vec::new() }
}

/// Says whether `path` lies below `folder`.
pub(crate) fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn replace_prefix(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
}

/// Gives the path that something has once the folders have moved.
pub(crate) fn path_after_moves<'a>(folders: impl IntoIterator<Item = &'a FolderMove>, path: &str) -> String {
    let mut moved = folders
        .into_iter()
        .filter_map(|folder| replace_prefix(path, folder.from.as_str(), folder.to.as_str()));
    moved.next().unwrap_or_else(|| path.to_owned())
}

/// Gives the path that something has before the folders move; `None` for a path in a folder that will be gone.
pub(crate) fn path_before_moves<'a>(
    folders: impl IntoIterator<Item = &'a FolderMove> + Clone,
    path: &str,
) -> Option<String> {
    let mut back = folders
        .clone()
        .into_iter()
        .filter_map(|folder| replace_prefix(path, folder.to.as_str(), folder.from.as_str()));
    if let Some(before) = back.next() {
        return Some(before);
    }
    let gone = folders.into_iter().any(|folder| replace_prefix(path, folder.from.as_str(), "").is_some());
    (!gone).then(|| path.to_owned())
}

impl Manifest {
    /// Reads a manifest of the transaction `id`; `None` where it is none. A vault can be a download, so that nothing in
    /// it may lead out of the vault.
    pub(crate) fn parse(bytes: &[u8], id: &str) -> Option<Self> {
        let manifest: Self = serde_json::from_slice(bytes).ok()?;
        let temporaries = manifest.files.iter().filter_map(|file| file.temporary.as_ref());
        let ours = format!(".{id}-");
        let is_fine = manifest.id == id
            && temporaries.clone().all(|name| {
                name.starts_with('.')
                    && name.ends_with(TEMPORARY)
                    && name.contains(&ours)
                    && !name.contains(['/', '\0'])
            })
            && manifest.made.iter().all(|path| {
                let inner = path.strip_prefix(".trash/").unwrap_or(path);
                path == ".trash" || NotePath::from_disk(inner).is_some()
            });
        is_fine.then_some(manifest)
    }

    fn moves(&self) -> impl Iterator<Item = &FolderMove> + Clone {
        self.folders.iter().map(|folder| &folder.paths)
    }

    /// Gives the path that something has once the folders have moved.
    pub(crate) fn path_after(&self, path: &str) -> String {
        path_after_moves(self.moves(), path)
    }

    /// Gives the path that something has before the folders move.
    pub(crate) fn path_before(&self, path: &str) -> Option<String> {
        path_before_moves(self.moves(), path)
    }

    /// Gives the path of a file's temporary, once the folders have moved.
    pub(crate) fn temporary(&self, file: &ChangedFile) -> Option<String> {
        let to = file.target()?;
        let (folder, name) = (split_path(&to).0, file.temporary.as_ref()?);
        Some(if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") })
    }

    /// Lists the renames of folders in an order in which none is in the way of another.
    pub(crate) fn folder_renames(&self) -> Vec<Rename> {
        let moves = self.folders.iter().map(|folder| Rename {
            from: folder.paths.from.to_string(),
            to: folder.paths.to.to_string(),
            inode: Some(folder.inode),
            hash: None,
        });
        order_renames(moves.collect(), &self.id, "d")
    }

    /// Lists the renames of files that follow, and the files that are removed at last.
    pub(crate) fn file_renames(&self) -> (Vec<Rename>, Vec<Removal>) {
        let mut taken = HashSet::new();
        for file in &self.files {
            taken.extend(file.target().map(|to| key(&to)));
        }
        let (mut renames, mut removals) = (Vec::new(), Vec::new());
        for (index, file) in self.files.iter().enumerate() {
            let Some(path) = file.source() else { continue };
            let from = self.path_after(&path);
            let rename = |from: &str, to: &str| Rename {
                from: from.to_owned(),
                to: to.to_owned(),
                inode: file.inode,
                hash: file.before,
            };
            match file.target() {
                Some(to) if to == from => {}
                Some(to) => renames.push(rename(&from, &to)),
                // Its name is needed before the last step, at which it is removed.
                None if taken.contains(&key(&from)) => {
                    let at = temporary_sibling(&from, &self.id, &format!("r{index}"));
                    renames.push(rename(&from, &at));
                    removals.push(Removal { path, at, before: file.before, index });
                }
                None => removals.push(Removal { path, at: from, before: file.before, index }),
            }
        }
        (order_renames(renames, &self.id, "f"), removals)
    }
}

fn temporary_sibling(path: &str, id: &str, tag: &str) -> String {
    let (folder, name) = split_path(path);
    let name = temporary_name(name, id, tag);
    if folder.is_empty() { name } else { format!("{folder}/{name}") }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    Waiting,
    Open,
    Done,
}

/// Orders renames so that each finds its new name free. What stands in a circle, also a change of case alone, goes by
/// way of a temporary name.
fn order_renames(mut renames: Vec<Rename>, id: &str, tag: &str) -> Vec<Rename> {
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, rename) in renames.iter().enumerate() {
        by_name.entry(key(&rename.from)).or_default().push(index);
    }
    let mut state = vec![VisitState::Waiting; renames.len()];
    let mut aside = vec![false; renames.len()];
    let mut order = Vec::with_capacity(renames.len());
    for start in 0..renames.len() {
        let mut stack = vec![start];
        while let Some(&top) = stack.last() {
            let (Some(rename), Some(now)) = (renames.get(top).cloned(), state.get(top).copied()) else {
                break;
            };
            if now == VisitState::Done {
                stack.pop();
                continue;
            }
            set(&mut state, top, VisitState::Open);
            let in_way = by_name.get(&key(&rename.to)).into_iter().flatten().copied().find(|&other| {
                state.get(other) != Some(&VisitState::Done) && aside.get(other) == Some(&false)
            });
            match in_way {
                Some(other) if state.get(other) == Some(&VisitState::Waiting) => stack.push(other),
                Some(other) => {
                    if let Some(blocking) = renames.get_mut(other) {
                        let hold = temporary_sibling(&blocking.from, id, &format!("{tag}{other}"));
                        order.push(Rename { to: hold.clone(), ..blocking.clone() });
                        blocking.from = hold;
                    }
                    set(&mut aside, other, true);
                }
                None => {
                    // The name that it goes by now may be a temporary one.
                    order.extend(renames.get(top).cloned());
                    set(&mut state, top, VisitState::Done);
                    stack.pop();
                }
            }
        }
    }
    order
}

fn set<T>(values: &mut [T], index: usize, value: T) {
    if let Some(place) = values.get_mut(index) {
        *place = value;
    }
}
