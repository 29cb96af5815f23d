//! Problems that appear when files are compared with each other: names that clash, ids that two notes have, notes with
//! almost the same text, and notes without links.

use std::collections::{HashMap, HashSet};

use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::word_sketch::{WordSketch, similar_pairs};

use crate::check::problem::Problem;

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

/// Finds notes with almost the same text.
pub(super) fn near_duplicates(notes: &[(&NotePath, &WordSketch)]) -> Vec<Problem> {
    let sketches: Vec<&WordSketch> = notes.iter().map(|(_, sketch)| *sketch).collect();
    let problem = |((one, other), percent): ((usize, usize), u8)| {
        let (path, twin) = (notes.get(one)?.0, notes.get(other)?.0);
        let message = format!("has about the same text as {path} ({percent} % of its word sequences)");
        Some(Problem::of_file(twin, "near-duplicate", message).related_to([path.clone()]).alike(percent))
    };
    similar_pairs(&sketches).into_iter().filter_map(problem).collect()
}
