//! Moves in the working tree that are not committed: the new paths of files of the last commit.

use std::collections::{BTreeMap, HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_catalog::FileKind;
use sidenote_git::ObjectId;
use sidenote_links::content_similarity::ContentPieces;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::Core;

use crate::content_owners::ContentOwners;
use crate::history_reader::HistoryReader;
use crate::moved_files::{
    FileMove, MAX_COMPARED, MovedFolders, is_mostly_in, is_rival, key_of, pair_equal, pair_similar,
};
use crate::present::Present;

/// The least share of common content with which a file that was rewritten in place is still the same one, in percent.
pub(super) const SAME_PERCENT: u8 = 50;

/// The moves in the working tree since the last commit.
#[derive(Debug, Default)]
pub(super) struct WorkingTreeMoves {
    /// Where each file of the last commit that is gone, or whose path another file took, went.
    pub(super) moved: BTreeMap<NotePath, FileMove>,
    /// The path in the last commit of each file that clearly moved.
    pub(super) moved_from: HashMap<NotePath, NotePath>,
    /// The paths that another file took, and whether that file was moved there, and so is not a new one.
    pub(super) taken: BTreeMap<NotePath, bool>,
    /// The notes and canvases that the last commit does not have, and that no file is known to have become.
    pub(super) new: Vec<NotePath>,
    /// The folders that moved, by the files in them whose content is theirs alone.
    pub(super) folders: MovedFolders,
}

impl WorkingTreeMoves {
    /// Compares the last commit with the files.
    pub(super) fn find(
        core: &Core,
        head_files: &BTreeMap<NotePath, ObjectId>,
        present: &Present,
        reader: &mut HistoryReader,
        owners: &ContentOwners,
    ) -> Result<Self> {
        let gone: Vec<&NotePath> = head_files.keys().filter(|path| !present.has(path)).collect();
        let mut new: Vec<&NotePath> =
            present.files.keys().filter(|path| !head_files.contains_key(*path)).collect();
        new.sort();
        if gone.is_empty() && new.is_empty() {
            return Ok(Self::default());
        }
        let mut finder = Finder { core, head_files, present, reader };
        let mut found = Self::default();
        let new_ids = finder.ids_of_new(&gone, &new)?;
        found.taken = finder.taken_paths(&gone, &new_ids)?;
        let mut left: Vec<&NotePath> = gone;
        left.extend(found.taken.keys());
        let hashed = |path: &NotePath| Some((path.clone(), key_of(head_files.get(path)?)));
        let left_hashes: Vec<_> = left.iter().filter_map(|path| hashed(path)).collect();
        let mut new_hashes: Vec<_> = new_ids.iter().map(|(path, id)| (path.clone(), key_of(id))).collect();
        // A file that took the path of another one is new there.
        let onto = found.taken.iter().filter(|(_, is_moved)| **is_moved).map(|(path, _)| path.clone());
        for path in onto {
            new_hashes.extend(finder.present_id(&path).map(|id| (path, key_of(&id))));
        }
        found.moved = pair_equal(&left_hashes, &new_hashes);
        found.folders = doubt_shared(&mut found.moved, head_files, owners);
        finder.doubt_contested(&new, &mut found.moved)?;
        let similar = finder.similar(&left, &new, &found.moved)?;
        found.moved.extend(similar);
        let used: HashSet<&NotePath> = found.moved.values().map(|moved| &moved.to).collect();
        let is_text = |path: &&NotePath| FileKind::of(path) != FileKind::Attachment;
        let free = new.iter().copied().filter(is_text).filter(|path| !used.contains(*path));
        found.new = free.cloned().collect();
        // A file that cannot be found elsewhere was rewritten in place.
        let moved = &found.moved;
        found.taken.retain(|path, _| moved.contains_key(path));
        let clear = found.moved.iter().filter(|(_, moved)| moved.is_clear);
        found.moved_from = clear.map(|(from, moved)| (moved.to.clone(), from.clone())).collect();
        Ok(found)
    }
}

/// Takes moves for unclear whose content other files have, unless the name or the folder tells the file. Returns the folders
/// that moved.
fn doubt_shared(
    moved: &mut BTreeMap<NotePath, FileMove>,
    head_files: &BTreeMap<NotePath, ObjectId>,
    owners: &ContentOwners,
) -> MovedFolders {
    let mut folders = MovedFolders::default();
    let is_own = |from: &NotePath| head_files.get(from).is_some_and(|blob| owners.is_of_one_file(blob));
    for (from, moved) in moved.iter().filter(|(from, moved)| moved.is_clear && is_own(from)) {
        folders.add(from.as_str(), moved.to.as_str());
    }
    for (from, moved) in moved {
        let Some(blob) = head_files.get(from) else { continue };
        moved.is_clear &= owners.tells(blob, from, &moved.to, &folders);
    }
    folders
}

struct Finder<'a> {
    core: &'a Core,
    head_files: &'a BTreeMap<NotePath, ObjectId>,
    present: &'a Present,
    reader: &'a mut HistoryReader,
}

impl Finder<'_> {
    /// Returns the ids that git gives to the contents of new files. An attachment is read only if a file that is gone has its
    /// size.
    fn ids_of_new(&mut self, gone: &[&NotePath], new: &[&NotePath]) -> Result<Vec<(NotePath, ObjectId)>> {
        let is_attachment = |path: &NotePath| FileKind::of(path) == FileKind::Attachment;
        let gone_ids: Vec<ObjectId> = gone
            .iter()
            .filter(|path| is_attachment(path))
            .filter_map(|path| self.head_files.get(*path).cloned())
            .collect();
        let sizes: HashSet<u64> = self.reader.sizes(&gone_ids)?.into_iter().flatten().collect();
        let mut found = Vec::new();
        for path in new {
            if is_attachment(path) {
                let size = self.core.vault.disk_path(path).metadata().map(|data| data.len());
                if !size.is_ok_and(|size| sizes.contains(&size)) {
                    continue;
                }
            }
            found.extend(self.present_id(path).map(|id| ((*path).clone(), id)));
        }
        Ok(found)
    }

    /// Returns the id that git gives to the present content of a file, with line ends as git stores them.
    fn present_id(&self, path: &NotePath) -> Option<ObjectId> {
        let bytes = read(self.core, path)?;
        let id = self.reader.blob_id(&bytes);
        if self.is_committed_content(&id) || !bytes.windows(2).any(|two| two == b"\r\n") {
            return Some(id);
        }
        let plain = String::from_utf8(bytes).ok()?.replace("\r\n", "\n");
        let converted = self.reader.blob_id(plain.as_bytes());
        Some(if self.is_committed_content(&converted) { converted } else { id })
    }

    fn is_committed_content(&self, id: &ObjectId) -> bool {
        self.reader.is_head_blob(id)
    }

    /// Finds the paths of files of the last commit that another file took: their content is at another path, and the
    /// content of another file was moved to theirs. A file with a new content is still at its path, unless its old
    /// content went to a path that was taken. The file with that content at a new path is then a copy, such as the next
    /// note made from the same template.
    fn taken_paths(
        &mut self,
        gone: &[&NotePath],
        new_ids: &[(NotePath, ObjectId)],
    ) -> Result<BTreeMap<NotePath, bool>> {
        let mut taken: BTreeMap<NotePath, bool> = BTreeMap::new();
        let ids: HashSet<&ObjectId> = new_ids.iter().map(|(_, id)| id).collect();
        let mut by_id: HashMap<&ObjectId, Vec<&NotePath>> = HashMap::new();
        for (path, id) in self.head_files {
            by_id.entry(id).or_default().push(path);
        }
        // The contents that are at another path now, and whether that path was another file's before.
        let mut open: Vec<(ObjectId, bool)> = ids.iter().map(|id| ((*id).clone(), false)).collect();
        while let Some((id, made_room)) = open.pop() {
            let paths: Vec<NotePath> = by_id.get(&id).into_iter().flatten().copied().cloned().collect();
            for path in paths.into_iter().filter(|path| self.present.has(path)) {
                if taken.contains_key(&path) {
                    continue;
                }
                let Some(now) = self.present_id(&path).filter(|now| *now != id) else { continue };
                // The content came from a file that is not there with it any more.
                let left = by_id.get(&now).into_iter().flatten().copied();
                let mut left = left.filter(|from| **from != path);
                let is_moved = left.any(|from| self.present_id(from).as_ref() != Some(&now));
                if is_moved || made_room && !self.is_rewritten(&path, &id)? {
                    taken.insert(path, is_moved);
                    open.push((now, true));
                }
            }
        }
        // A file that is gone and has no new path was perhaps moved onto another one.
        for from in gone {
            let Some(id) = self.head_files.get(*from).filter(|id| !ids.contains(id)) else { continue };
            if FileKind::of(from) == FileKind::Attachment {
                continue;
            }
            let Some(content) = self.reader.blob(id)? else { continue };
            let hash = *blake3::hash(&content).as_bytes();
            for path in self.present.with_content(&hash) {
                if self.head_files.get(&path).is_some_and(|then| then != id) {
                    taken.insert(path, true);
                }
            }
        }
        Ok(taken)
    }

    /// Returns whether the present content of a file is its content in the last commit, with changes.
    fn is_rewritten(&mut self, path: &NotePath, then: &ObjectId) -> Result<bool> {
        let Some(before) = self.reader.blob(then)? else { return Ok(true) };
        let Some(now) = read(self.core, path) else { return Ok(true) };
        Ok(ContentPieces::of(&before).percent_in_common(&ContentPieces::of(&now)) >= SAME_PERCENT)
    }

    /// Takes moves for unclear where another new file has most of the content, and may be the one that moved.
    fn doubt_contested(&mut self, new: &[&NotePath], moved: &mut BTreeMap<NotePath, FileMove>) -> Result<()> {
        let is_text = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
        let used: HashSet<NotePath> = moved.values().map(|moved| moved.to.clone()).collect();
        let free = new.iter().copied().filter(|path| is_text(path) && !used.contains(*path));
        let free: Vec<&NotePath> = free.collect();
        let mut by_name: HashMap<String, Vec<&NotePath>> = HashMap::new();
        free.iter().for_each(|path| by_name.entry(key(path.name())).or_default().push(path));
        let mut contents: HashMap<&NotePath, Option<ContentPieces>> = HashMap::new();
        let mut compared = 0;
        for (from, moved) in moved.iter_mut().filter(|(from, moved)| moved.is_clear && is_text(from)) {
            let name = key(from.name());
            let others = match key(moved.to.name()) == name {
                true => by_name.get(&name).map_or(&[][..], Vec::as_slice),
                false => free.as_slice(),
            };
            let rivals: Vec<&NotePath> =
                others.iter().copied().filter(|other| is_rival(from, &moved.to, other)).collect();
            if rivals.is_empty() {
                continue;
            }
            compared += rivals.len();
            let blob = self.head_files.get(from).filter(|_| compared <= MAX_COMPARED);
            let content = blob.map_or(Ok(Vec::new()), |blob| self.reader.pieces_of(&[blob]))?.pop().flatten();
            moved.is_clear = content.is_some_and(|content| {
                !rivals.into_iter().any(|other| {
                    let of_other = || read(self.core, other).map(|bytes| ContentPieces::of(&bytes));
                    let found = contents.entry(other).or_insert_with(of_other);
                    found.as_ref().is_some_and(|found| is_mostly_in(&content, found))
                })
            });
        }
        Ok(())
    }

    /// Pairs the files that are left with new ones of similar content.
    fn similar(
        &mut self,
        left: &[&NotePath],
        new: &[&NotePath],
        moved: &BTreeMap<NotePath, FileMove>,
    ) -> Result<BTreeMap<NotePath, FileMove>> {
        let is_text = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
        let mut left_gone = Vec::new();
        for path in left.iter().filter(|path| is_text(path) && !moved.contains_key(**path)) {
            let Some(id) = self.head_files.get(*path) else { continue };
            if let Some(content) = self.reader.blob(id)? {
                left_gone.push(((*path).clone(), ContentPieces::of(&content)));
            }
        }
        if left_gone.is_empty() {
            return Ok(BTreeMap::new());
        }
        let used: HashSet<&NotePath> = moved.values().map(|moved| &moved.to).collect();
        let free = new.iter().filter(|path| is_text(path) && !used.contains(**path));
        let left_new: Vec<(NotePath, ContentPieces)> = free
            .filter_map(|path| Some(((*path).clone(), ContentPieces::of(&read(self.core, path)?))))
            .collect();
        Ok(pair_similar(&left_gone, &left_new))
    }
}

/// Reads a file; `None` if it cannot be read now.
pub(super) fn read(core: &Core, path: &NotePath) -> Option<Vec<u8>> {
    core.vault.read(path).inspect_err(|error| core.warn_unless_gone(error)).ok()
}
