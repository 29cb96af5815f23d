//! Problems that appear when files are compared with each other: names that clash, ids that two notes have, notes with
//! almost the same text, and notes without links.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::store::upkeep::check::problem::Problem;
use crate::text::note::Note;
use crate::text::path::{NotePath, key};
use crate::text::terms::Terms;

/// The number of hashes of word sequences that are kept of each note.
const SKETCH: usize = 32;

/// The number of words of a sequence.
const SHINGLE: usize = 4;

/// The number of sequences below which a note is too short to be compared.
const SHORTEST: usize = 12;

/// The share of common sequences above which two notes are near duplicates.
const ALIKE: f64 = 0.8;

/// The number of notes above which a shared sequence counts as part of a template.
const CROWD: usize = 40;

/// Finds names that differ only in case or accents, which some file systems do not distinguish.
pub(super) fn name_clashes(all: &[NotePath]) -> Vec<Problem> {
    let mut by_key: HashMap<String, Vec<&NotePath>> = HashMap::new();
    for path in all {
        by_key.entry(key(path.as_str())).or_default().push(path);
    }
    let clashing = by_key.into_values().filter(|paths| paths.len() > 1);
    clashing
        .flat_map(|paths| {
            let first = paths.iter().min().copied();
            let others = paths.iter().filter(|path| Some(**path) != first);
            let problem = |path: &&NotePath| {
                let message = "another file's name differs in case or accents alone".to_owned();
                let related = paths.iter().filter(|other| *other != path).map(|other| (*other).clone());
                Problem::of_file(path, "name-clash", message).related_to(related)
            };
            others.map(problem).collect::<Vec<_>>()
        })
        .collect()
}

/// Finds notes with the same id. The notes come with their ids.
pub(super) fn duplicate_ids<'a>(notes: impl IntoIterator<Item = (&'a NotePath, &'a str)>) -> Vec<Problem> {
    let mut first: HashMap<String, &NotePath> = HashMap::new();
    let mut found = Vec::new();
    for (path, id) in notes {
        match first.get(&key(id)) {
            Some(other) => {
                let message = format!("{other} has the id {id} too");
                found.push(Problem::of_file(path, "duplicate-id", message).related_to([(*other).clone()]));
            }
            None => {
                first.insert(key(id), path);
            }
        }
    }
    found
}

/// Finds notes without links to or from other files. Each note comes with whether it links to another file; `targets` are
/// the files that others link to.
pub(super) fn orphans<'a>(
    notes: impl IntoIterator<Item = (&'a NotePath, bool)>,
    targets: &HashSet<&NotePath>,
) -> Vec<Problem> {
    let alone = notes.into_iter().filter(|(path, has_links)| !has_links && !targets.contains(path));
    alone
        .map(|(path, _)| {
            Problem::of_file(path, "orphan", "links to no note, and no note links to it".to_owned())
        })
        .collect()
}

/// Returns the smallest hashes of the word sequences of a note. The share of common hashes estimates the share of
/// common sequences (Broder, On the resemblance and containment of documents, 1997).
pub(super) fn sketch(note: &Note, text: &str) -> Vec<u64> {
    let body = text.get(note.body_start..).unwrap_or("");
    let mut walk = Terms::new(body);
    let mut words = Vec::new();
    while walk.advance() {
        words.push(hash(&walk.term().text));
    }
    let hashes: BTreeSet<u64> = words.windows(SHINGLE).map(hash).collect();
    if hashes.len() < SHORTEST { Vec::new() } else { hashes.into_iter().take(SKETCH).collect() }
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Finds notes with almost the same text. Only notes that share one of their four smallest hashes are compared, so the
/// cost grows linearly with the number of notes.
pub(super) fn near_duplicates(notes: &[(&NotePath, &[u64])]) -> Vec<Problem> {
    let mut holding: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, (_, sketch)) in notes.iter().enumerate() {
        for hash in sketch.iter().take(4) {
            holding.entry(*hash).or_default().push(at);
        }
    }
    let mut pairs: HashSet<(usize, usize)> = HashSet::new();
    for group in holding.values().filter(|group| group.len() <= CROWD) {
        for (place, &one) in group.iter().enumerate() {
            pairs.extend(group.iter().skip(place + 1).map(|&other| (one, other)));
        }
    }
    let mut found = Vec::new();
    for (one, other) in pairs {
        let (Some((path, a)), Some((twin, b))) = (notes.get(one), notes.get(other)) else { continue };
        let merged: BTreeSet<u64> = a.iter().chain(*b).copied().collect();
        let smallest: Vec<u64> = merged.into_iter().take(SKETCH).collect();
        let common = smallest.iter().filter(|hash| a.contains(hash) && b.contains(hash)).count();
        let share = common as f64 / smallest.len().max(1) as f64;
        if share >= ALIKE {
            let message =
                format!("has about the same text as {path} ({:.0} % of its word sequences)", share * 100.0);
            found.push(Problem::of_file(twin, "near-duplicate", message).related_to([(*path).clone()]));
        }
    }
    found
}
