//! Renames that git does not report, between a commit and the files on the disk: pairs of a removed and a new file.

use std::collections::HashMap;

use sidenote_markdown::decode::decode;
use sidenote_markdown::note::Note;
use sidenote_markdown::note_names::own_id;
use sidenote_markdown::path::NotePath;

/// The share of common lines, in percent of the larger file, from which two files are one. It is that of git.
const MIN_PERCENT: usize = 50;
/// A line in more files than this does not tell anything.
const MAX_SHARED: usize = 40;

/// A file with its content, if it was read.
pub(super) struct NamedContent {
    pub(super) path: NotePath,
    pub(super) content: Vec<u8>,
}

/// Finds the renames among removed and new files, as pairs of their numbers: first equal contents, then equal ids, then
/// notes with common lines, the most alike first.
pub(super) fn renames(removed: &[NamedContent], added: &[NamedContent]) -> Vec<(usize, usize)> {
    let mut pairs = Pairs { free: [vec![true; removed.len()], vec![true; added.len()]], found: Vec::new() };
    let content = |file: &NamedContent| (!file.content.is_empty()).then(|| blake3::hash(&file.content));
    pairs.by_key(removed, added, |file| content(file).map(|hash| hash.to_hex().to_string()));
    pairs.by_key(removed, added, id_of);
    pairs.by_lines(removed, added);
    pairs.found
}

/// Returns the id in the frontmatter of a note.
fn id_of(file: &NamedContent) -> Option<String> {
    if !file.path.is_note() {
        return None;
    }
    let decoded = decode(&file.content);
    let note = Note::parse(&decoded.text);
    own_id(&note)
}

struct Pairs {
    /// Which removed and which new files have no counterpart yet.
    free: [Vec<bool>; 2],
    found: Vec<(usize, usize)>,
}

impl Pairs {
    fn take(&mut self, one: usize, other: usize) {
        let [removed, added] = &mut self.free;
        let (Some(first), Some(second)) = (removed.get_mut(one), added.get_mut(other)) else { return };
        if *first && *second {
            (*first, *second) = (false, false);
            self.found.push((one, other));
        }
    }

    fn is_free(&self, side: usize, at: usize) -> bool {
        self.free.get(side).and_then(|files| files.get(at)).copied().unwrap_or(false)
    }

    /// Pairs files with a key that no other file of their side has.
    fn by_key(
        &mut self,
        removed: &[NamedContent],
        added: &[NamedContent],
        key: impl Fn(&NamedContent) -> Option<String>,
    ) {
        let mut known: HashMap<String, [Vec<usize>; 2]> = HashMap::new();
        for (side, files) in [removed, added].into_iter().enumerate() {
            for (at, file) in files.iter().enumerate().filter(|(at, _)| self.is_free(side, *at)) {
                if let Some(key) = key(file)
                    && let Some(list) = known.entry(key).or_default().get_mut(side)
                {
                    list.push(at);
                }
            }
        }
        for [one, other] in known.into_values() {
            if let ([one], [other]) = (one.as_slice(), other.as_slice()) {
                self.take(*one, *other);
            }
        }
    }

    /// Pairs notes by their common lines.
    fn by_lines(&mut self, removed: &[NamedContent], added: &[NamedContent]) {
        let mut holders: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (at, file) in removed.iter().enumerate() {
            if self.is_free(0, at) && is_document(&file.path) {
                for line in lines(&file.content) {
                    holders.entry(line).or_default().push(at);
                }
            }
        }
        let mut scores: Vec<(usize, usize, usize)> = Vec::new();
        for (at, file) in added.iter().enumerate() {
            if !self.is_free(1, at) || !is_document(&file.path) {
                continue;
            }
            let mut lines_here: HashMap<&[u8], usize> = HashMap::new();
            for line in lines(&file.content) {
                *lines_here.entry(line).or_default() += 1;
            }
            let mut common: HashMap<usize, usize> = HashMap::new();
            for (line, count) in lines_here {
                let Some(holders) = holders.get(line).filter(|holders| holders.len() <= MAX_SHARED) else {
                    continue;
                };
                let mut times: HashMap<usize, usize> = HashMap::new();
                for holder in holders {
                    *times.entry(*holder).or_default() += 1;
                }
                for (holder, times) in times {
                    *common.entry(holder).or_default() += line.len() * times.min(count);
                }
            }
            for (holder, bytes) in common {
                let size = removed.get(holder).map_or(0, |file| file.content.len());
                let percent = bytes * 100 / size.max(file.content.len()).max(1);
                if percent >= MIN_PERCENT {
                    scores.push((percent, holder, at));
                }
            }
        }
        scores.sort_by(|one, other| other.0.cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2))));
        for (_, one, other) in scores {
            self.take(one, other);
        }
    }
}

/// Returns whether a file is a note or a canvas.
pub(super) fn is_document(path: &NotePath) -> bool {
    path.is_note() || path.is_canvas()
}

/// Lists the lines of a file, line ends included.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n')
}
