//! Pairs of removed and new files that are one moved file, by equal or similar content.

use std::collections::{BTreeMap, HashMap, HashSet};

use sidenote_git::ObjectId;
use sidenote_links::content_similarity::ContentPieces;
use sidenote_markdown::path::{NotePath, key};

/// The least share of common content of a file that moved and changed, in percent (docs/spec/git.md 3).
pub(super) const LEAST_PERCENT: u8 = 50;
/// How many points the next candidate has to be behind.
pub(super) const MARGIN: u8 = 15;
/// The most pairs of files whose contents are compared.
pub(super) const MAX_COMPARED: usize = 250_000;

/// Where a file went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileMove {
    pub(super) to: NotePath,
    /// The share of common content. At 100 it is the same.
    pub(super) percent: u8,
    /// Whether no other file comes near.
    pub(super) is_clear: bool,
}

/// Folders that moved, by files that clearly moved from one to the other.
#[derive(Debug, Default)]
pub(super) struct MovedFolders(HashSet<(String, String)>);

impl MovedFolders {
    /// Adds the folders of a file that moved, and those above them while the names below are the same.
    pub(super) fn add(&mut self, from: &str, to: &str) {
        let pairs = pairs_above(folder_of(from), folder_of(to));
        self.0.extend(pairs.map(|(from, to)| (from.to_owned(), to.to_owned())));
    }

    /// Returns whether a folder, or one above it, moved so that it is another one now.
    pub(super) fn has(&self, from: &str, to: &str) -> bool {
        from != to
            && pairs_above(from, to).any(|(from, to)| self.0.contains(&(from.to_owned(), to.to_owned())))
    }
}

/// Lists two folders, and the folders above them, as long as their names are the same.
fn pairs_above<'f>(from: &'f str, to: &'f str) -> impl Iterator<Item = (&'f str, &'f str)> {
    std::iter::successors(Some((from, to)), |(from, to)| {
        let split = |folder: &'f str| folder.rsplit_once('/').unwrap_or(("", folder));
        let ((above, name), (other_above, other_name)) = (split(from), split(to));
        (!name.is_empty() && name == other_name && above != other_above).then_some((above, other_above))
    })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns whether another new file can be the one that is gone from a path as well as the file at `to`, by the names.
pub(super) fn is_rival(from: &NotePath, to: &NotePath, other: &NotePath) -> bool {
    let has_name = |path: &NotePath| key(path.name()) == key(from.name());
    other != to && other.extension() == from.extension() && (has_name(other) || !has_name(to))
}

/// Returns whether a content is for the most part in another one, which may be longer, as a template is in a page that was made
/// from it and filled.
pub(super) fn is_mostly_in(content: &ContentPieces, other: &ContentPieces) -> bool {
    content.percent_in(other) >= LEAST_PERCENT
}

/// A file that is gone or new: its path, and the hash of its content.
pub(super) type HashedFile = (NotePath, blake3::Hash);

/// Returns a key by which equal contents are paired.
pub(super) fn key_of(id: &ObjectId) -> blake3::Hash {
    blake3::hash(id.as_str().as_bytes())
}

/// Pairs files that are gone with new files of the same content. Copies are distinguished by their names, and by where
/// the files around them went.
pub(super) fn pair_equal(gone: &[HashedFile], new: &[HashedFile]) -> BTreeMap<NotePath, FileMove> {
    let mut groups: HashMap<blake3::Hash, (Vec<&NotePath>, Vec<&NotePath>)> = HashMap::new();
    for (path, hash) in gone {
        groups.entry(*hash).or_default().0.push(path);
    }
    for (path, hash) in new {
        if let Some(group) = groups.get_mut(hash) {
            group.1.push(path);
        }
    }
    let mut moves = BTreeMap::new();
    let mut add = |from: &NotePath, to: &NotePath, is_clear: bool| {
        moves.insert(from.clone(), FileMove { to: to.clone(), percent: 100, is_clear });
    };
    let mut folders: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
    let mut copies = Vec::new();
    for (gone, new) in groups.into_values() {
        match (gone.as_slice(), new.as_slice()) {
            (_, []) => {}
            ([from], [to]) => {
                add(from, to, true);
                *folders.entry(from.folder()).or_default().entry(to.folder()).or_default() += 1;
            }
            _ => copies.push((gone, new)),
        }
    }
    let usual = |folder: &str| {
        let to = folders.get(folder)?.iter().max_by_key(|(to, count)| (**count, std::cmp::Reverse(**to)));
        to.map(|(to, _)| *to)
    };
    for (gone, new) in copies {
        let mut taken: HashSet<&NotePath> = HashSet::new();
        // How many of the new files have a name, less those that had it.
        let mut surplus: HashMap<&str, isize> = HashMap::new();
        new.iter().for_each(|to| *surplus.entry(to.name()).or_default() += 1);
        gone.iter().for_each(|from| *surplus.entry(from.name()).or_default() -= 1);
        for from in gone.iter().copied() {
            let free = || new.iter().copied().filter(|to| !taken.contains(to));
            let in_usual = || free().filter(|to| usual(from.folder()) == Some(to.folder()));
            let same_name: Vec<&NotePath> = free().filter(|to| to.name() == from.name()).collect();
            let both: Vec<&NotePath> = in_usual().filter(|to| to.name() == from.name()).collect();
            let near: Vec<&NotePath> = in_usual().collect();
            let choice = [both, same_name, near].into_iter().find_map(|found| match found.as_slice() {
                [only] => Some(*only),
                _ => None,
            });
            match choice {
                Some(to) => {
                    // A new file more than went away, in a place that is as likely, is the file as well.
                    let is_clear = match to.name() == from.name() {
                        true => surplus.get(to.name()).is_none_or(|more| *more <= 0),
                        false => new.len() <= gone.len(),
                    };
                    add(from, to, is_clear);
                    taken.insert(to);
                }
                None => {
                    if let Some(to) = free().next() {
                        add(from, to, false);
                    }
                }
            }
        }
    }
    moves
}

/// Pairs files that are gone with new files of similar content, the most similar first. Each is used once.
pub(super) fn pair_similar(
    gone: &[(NotePath, ContentPieces)],
    new: &[(NotePath, ContentPieces)],
) -> BTreeMap<NotePath, FileMove> {
    if gone.len().saturating_mul(new.len()) > MAX_COMPARED {
        return BTreeMap::new();
    }
    let mut scores: Vec<(u8, &NotePath, &NotePath)> = Vec::new();
    for (from, content) in gone {
        for (to, other) in new.iter().filter(|(to, _)| to.extension() == from.extension()) {
            let percent = content.percent_in_common(other);
            if percent > 0 {
                scores.push((percent, from, to));
            }
        }
    }
    scores.sort_by(|a, b| (b.0, a.1, a.2).cmp(&(a.0, b.1, b.2)));
    // The two best scores of each file, on either side.
    let mut best: HashMap<(bool, &NotePath), [u8; 2]> = HashMap::new();
    for (percent, from, to) in &scores {
        for side in [(false, *from), (true, *to)] {
            let [first, second] = best.entry(side).or_default();
            match (*first, *second) {
                (0, _) => *first = *percent,
                (_, 0) => *second = *percent,
                _ => {}
            }
        }
    }
    let next_of = |side: (bool, &NotePath), percent: u8| {
        let [first, second] = best.get(&side).copied().unwrap_or_default();
        if first == percent { second } else { first }
    };
    let contents: HashMap<&NotePath, &ContentPieces> =
        gone.iter().map(|(path, content)| (path, content)).collect();
    let has_rival = |from: &NotePath, to: &NotePath| {
        let Some(content) = contents.get(from) else { return false };
        new.iter().any(|(other, found)| is_rival(from, to, other) && is_mostly_in(content, found))
    };
    let mut moves: BTreeMap<NotePath, FileMove> = BTreeMap::new();
    let mut taken: HashSet<&NotePath> = HashSet::new();
    for (percent, from, to) in scores.iter().filter(|(percent, ..)| *percent >= LEAST_PERCENT) {
        if moves.contains_key(*from) || taken.contains(to) {
            continue;
        }
        let next = next_of((false, *from), *percent).max(next_of((true, *to), *percent));
        let is_clear = next.saturating_add(MARGIN) <= *percent && !has_rival(from, to);
        taken.insert(to);
        moves.insert((*from).clone(), FileMove { to: (*to).clone(), percent: (*percent).min(99), is_clear });
    }
    moves
}
