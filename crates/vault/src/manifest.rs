//! The manifest of a transaction: its renames, their order and the temporary names. Pure.
//!
//! "After" paths hold once the folders of the transaction have moved, "before" paths hold until then.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sidenote_markdown::edit::{Content, ContentHash, Edit, FileLocation, FolderMove, single_edit};
use sidenote_markdown::path::{NotePath, key};

use crate::dir::split_path;
use crate::{CONFIG_DIR, STATE_DIR};

/// The suffix of every temporary name.
pub(crate) const TEMPORARY: &str = ".sidenote-tmp";

/// The maximum length of a file name in bytes.
const MAX_NAME_LEN: usize = 255;

/// The edits of one file are recorded only if their text has at most this many bytes.
const MAX_PATCH_LEN: usize = 1_000_000;

/// One transaction, stored as `manifest.json` and, once committed, as `committed.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The id of the transaction, and of its event in the journal.
    pub(crate) id: String,
    /// The name of the operation in the journal.
    pub(crate) operation: String,
    /// The id of the operation that it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<String>,
    /// The time of the plan in milliseconds since 1970.
    pub(crate) at: i64,
    /// The folders that move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) folders: Vec<MovedFolder>,
    /// The folders that are created, outer ones first, as "before" paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made: Vec<String>,
    /// The files that change.
    pub(crate) files: Vec<ChangedFile>,
    /// Additional fields of the event in the journal, such as the session.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) more: Map<String, Value>,
}

/// One folder that moves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MovedFolder {
    /// The old and the new path.
    #[serde(flatten)]
    pub(crate) paths: FolderMove,
    /// The folder's inode, by which recovery finds out whether it has moved.
    pub(crate) inode: u64,
}

/// One file that changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChangedFile {
    /// The location before the operation; `None` for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<FileLocation>,
    /// The location after the operation; `None` for a removed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<FileLocation>,
    /// The hash of the bytes before the operation; unknown for large files that only move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<ContentHash>,
    /// The hash of the bytes after the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<ContentHash>,
    /// Offset and length of the before-image in the file `images`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<(u64, u64)>,
    /// The edits that turn the old bytes into the new ones, if they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) patch: Vec<Edit>,
    /// The name of the temporary file that holds the new bytes, in the target folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) temporary: Option<String>,
    /// The inode before the operation.
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

/// One rename of a file or folder. It never replaces an existing file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rename {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The inode of the file, which distinguishes it from another file of the same name.
    pub(crate) inode: Option<u64>,
    /// The hash of the file, which identifies it if the vault was copied and the inodes changed.
    pub(crate) hash: Option<ContentHash>,
}

/// One removal of a file, at its path after all renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The original path, as messages show it.
    pub(crate) path: String,
    /// The path at the time of the removal.
    pub(crate) at: String,
    pub(crate) before: Option<ContentHash>,
    /// The index of the file in the manifest.
    pub(crate) index: usize,
}

/// Returns a hidden file name that is unique to one transaction.
pub(crate) fn temporary_name(name: &str, id: &str, tag: &str) -> String {
    let end = format!(".{id}-{tag}{TEMPORARY}");
    let room = name.floor_char_boundary(MAX_NAME_LEN.saturating_sub(1 + end.len()));
    format!(".{}{end}", name.get(..room).unwrap_or_default())
}

/// Returns the edits of a change, by which it can be undone in a file that changed since. The list is empty if the
/// edits are long or the file is not text.
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
    if length <= MAX_PATCH_LEN { edits } else { Vec::new() }
}

fn replace_prefix(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
}

/// Returns a path as it is after the folder moves.
pub(crate) fn path_after_moves<'a>(folders: impl IntoIterator<Item = &'a FolderMove>, path: &str) -> String {
    let mut moved = folders
        .into_iter()
        .filter_map(|folder| replace_prefix(path, folder.from.as_str(), folder.to.as_str()));
    moved.next().unwrap_or_else(|| path.to_owned())
}

/// Returns a path as it is before the folder moves; `None` for a path in a folder that moves away.
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
    /// Parses the manifest of the transaction `id`; `None` if it is not valid. A vault can be a download, so no path in
    /// the manifest may lead outside the vault.
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
                [".trash", CONFIG_DIR, STATE_DIR].contains(&path.as_str())
                    || NotePath::from_disk(inner).is_some()
            });
        is_fine.then_some(manifest)
    }

    fn moves(&self) -> impl Iterator<Item = &FolderMove> + Clone {
        self.folders.iter().map(|folder| &folder.paths)
    }

    /// Returns a path as it is after the folder moves.
    pub(crate) fn path_after(&self, path: &str) -> String {
        path_after_moves(self.moves(), path)
    }

    /// Returns a path as it is before the folder moves.
    pub(crate) fn path_before(&self, path: &str) -> Option<String> {
        path_before_moves(self.moves(), path)
    }

    /// Returns the path of a file's temporary file after the folder moves.
    pub(crate) fn temporary(&self, file: &ChangedFile) -> Option<String> {
        let to = file.target()?;
        let (folder, name) = (split_path(&to).0, file.temporary.as_ref()?);
        Some(if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") })
    }

    /// Lists the folder renames in an order in which each target name is free.
    pub(crate) fn folder_renames(&self) -> Vec<Rename> {
        let moves = self.folders.iter().map(|folder| Rename {
            from: folder.paths.from.to_string(),
            to: folder.paths.to.to_string(),
            inode: Some(folder.inode),
            hash: None,
        });
        order_renames(moves.collect(), &self.id, "d")
    }

    /// Lists the file renames, which follow the folder renames, and the removals, which come last.
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
                // Another file takes its name before the removals, so it is moved to a temporary name first.
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

/// Orders renames so that each target name is free. Cycles, including changes of case only, are broken by a temporary
/// name.
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
                    // The rename is read again, because its source may now be a temporary name.
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
