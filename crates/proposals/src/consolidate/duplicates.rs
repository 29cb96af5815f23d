//! Duplicates: notes with the same text, notes whose word sequences are mostly the same with the same numbers, times and
//! negations, and short statements of the same words.

use std::collections::{BTreeMap, HashMap, HashSet};

use sidenote_markdown::word_sketch::{WordSketch, similar_pairs};
use sidenote_memory::duplicate::{digest, same_facts};
use sidenote_memory::left_out::left_out;
use sidenote_memory::related_statements::RelatedPair;
use sidenote_memory::statement::Comparison;

use super::same_text::is_duplicate;
use super::{Action, Compared, Finding};
use crate::proposal::ProposalKind;

/// The bytes of a text below which it says nothing, such as an empty note.
const SHORTEST: usize = 20;

/// The notes with the same text that are compared with each. More are found when those are decided.
const MOST_COMPARED: usize = 20;

/// Two notes that say the same, by their places, and how that is known.
struct Twins {
    one: usize,
    other: usize,
    /// The share of common word sequences in percent; `None` for statements that are compared by their words.
    percent: Option<u8>,
}

/// Finds pairs of notes that say the same. A note is in one pair at most, and the surest pairs come first.
pub(super) fn find(notes: &[Compared], said: &[RelatedPair]) -> Vec<Finding> {
    let is_compared = |note: &Compared| note.source.body().len() >= SHORTEST && note.memory.kind != "handoff";
    let mut twins = Vec::new();
    let mut by_text: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, note) in notes.iter().enumerate().filter(|(_, note)| is_compared(note)) {
        by_text.entry(digest(note.source.body())).or_default().push(at);
    }
    for group in by_text.values() {
        for (at, &one) in group.iter().enumerate() {
            let others = group.iter().skip(at + 1).take(MOST_COMPARED);
            twins.extend(others.map(|&other| Twins { one, other, percent: Some(100) }));
        }
    }
    twins.sort_by_key(|pair| (pair.one, pair.other));
    let empty = WordSketch::default();
    let sketches: Vec<&WordSketch> =
        notes.iter().map(|note| if is_compared(note) { &note.sketch } else { &empty }).collect();
    let mut near: Vec<Twins> = similar_pairs(&sketches)
        .into_iter()
        .map(|((one, other), percent)| Twins { one, other, percent: Some(percent) })
        .filter(|pair| match (notes.get(pair.one), notes.get(pair.other)) {
            (Some(one), Some(other)) => is_same(one, other),
            _ => false,
        })
        .collect();
    near.sort_by_key(|pair| (std::cmp::Reverse(pair.percent), pair.one, pair.other));
    twins.extend(near);
    let same = said.iter().filter(|pair| pair.comparison == Comparison::Same);
    twins.extend(same.map(|pair| Twins { one: pair.older, other: pair.newer, percent: None }));
    let mut taken: HashSet<usize> = HashSet::new();
    let mut found = Vec::new();
    let links = link_counts(notes);
    for pair in twins {
        if taken.contains(&pair.one) || taken.contains(&pair.other) {
            continue;
        }
        let (Some(one), Some(other)) = (notes.get(pair.one), notes.get(pair.other)) else { continue };
        if !is_duplicate(one, other) {
            continue;
        }
        taken.extend([pair.one, pair.other]);
        let (from, into) = direction(one, other, &links);
        found.push(finding(from, into, pair.percent));
    }
    found
}

/// Returns whether two notes whose word sequences are mostly the same say the same. Statements have to have the same words.
/// Of longer notes, one has to have all numbers and names of the other.
fn is_same(one: &Compared, other: &Compared) -> bool {
    if let (Some(first), Some(second)) = (&one.statement, &other.statement) {
        return first.compare(second) == Comparison::Same;
    }
    let (a, b) = (one.source.body(), other.source.body());
    same_facts(a, b) && (left_out(&[a], b).is_empty() || left_out(&[b], a).is_empty())
}

/// Counts the links that lead to each name.
fn link_counts(notes: &[Compared]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for link in notes.iter().flat_map(|note| &note.source.note.links) {
        *counts.entry(link.path.to_lowercase()).or_default() += 1;
    }
    counts
}

/// Chooses which of two notes is merged into the other one: a note stays that is pinned, or else has more links to it,
/// or a name without the number of a copy, or more text, or is older.
fn direction<'n>(
    one: &'n Compared,
    other: &'n Compared,
    links: &HashMap<String, usize>,
) -> (&'n Compared, &'n Compared) {
    let is_copy = |note: &Compared, other: &Compared| {
        let own = note.source.path.stem();
        own.len() > other.source.path.stem().len() && own.starts_with(other.source.path.stem())
    };
    let rank = |note: &Compared, other: &Compared| {
        let linked =
            [note.source.path.stem().to_lowercase(), note.path().trim_end_matches(".md").to_lowercase()];
        let linked: usize = linked.iter().filter_map(|name| links.get(name)).sum();
        let words = note.source.body().split_whitespace().count();
        (note.memory.state.pinned, linked, !is_copy(note, other), words)
    };
    let (first, second) = (rank(one, other), rank(other, one));
    let is_one_older = (one.date.at, one.path()) <= (other.date.at, other.path());
    if first > second || first == second && is_one_older { (other, one) } else { (one, other) }
}

fn finding(from: &Compared, into: &Compared, percent: Option<u8>) -> Finding {
    let (gone, kept) = (from.path(), into.path());
    let reason = match percent {
        Some(100) => format!("{gone} and {kept} have the same text; {kept} stays"),
        Some(percent) => {
            format!(
                "{gone} and {kept} have about the same text ({percent} % of their word sequences); {kept} stays"
            )
        }
        None => format!("{gone} and {kept} say the same in other words; {kept} stays"),
    };
    Finding {
        kind: ProposalKind::Duplicate,
        reason,
        evidence: vec![into.evidence(), from.evidence()],
        sources: vec![into.origin(), from.origin()],
        changed: vec![kept.to_owned(), gone.to_owned()],
        action: Action::Merge { from: vec![gone.to_owned()], into: kept.to_owned(), title: None },
    }
}
