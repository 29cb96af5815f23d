//! Clusters: small memories about one subject that a single note could hold.

use std::collections::{BTreeMap, HashSet};

use sidenote_change::merge::says;
use sidenote_memory::statement::{Names, Statement};

use super::same_text::{is_placed, properties};
use super::{Action, Compared, Finding, Known};
use crate::proposal::ProposalKind;

/// The fewest memories of a cluster. Fewer are as easy to find alone.
const FEWEST: usize = 4;

/// The most memories of a cluster. Together they are still read at a glance; a subject with more is a field of its own.
const MOST: usize = 12;

/// What the memories of a cluster have in common: the folder, the type, the other properties and the subject.
type Shared = (String, String, String, String);

/// Finds groups of memories that each state one fact about the same subject: the name that comes first in each, or a tag. A
/// memory is in one group at most, and names come before tags. One that a cluster had before is left out unless it changed.
pub(super) fn find(notes: &[Compared], known: &Known) -> Vec<Finding> {
    let small: Vec<(&Compared, &Statement)> = notes
        .iter()
        .filter(|note| is_small(note) && !known.has(ProposalKind::Cluster, note))
        .filter_map(|note| Some((note, note.statement.as_ref()?)))
        .collect();
    let names = Names::of(small.iter().map(|(_, statement)| *statement));
    let mut by_name: BTreeMap<Shared, (String, Vec<&Compared>)> = BTreeMap::new();
    for (note, statement) in &small {
        if let Some(subject) = statement.subject(&names) {
            let group = by_name.entry(shared(note, &subject.stems));
            group.or_insert_with(|| (subject.text, Vec::new())).1.push(note);
        }
    }
    let mut found = Vec::new();
    let mut taken: HashSet<&str> = HashSet::new();
    for (title, group) in by_name.values().filter(|(_, group)| (FEWEST..=MOST).contains(&group.len())) {
        taken.extend(group.iter().map(|note| note.path()));
        found.extend(finding(title, group));
    }
    let mut by_tag: BTreeMap<Shared, (String, Vec<&Compared>)> = BTreeMap::new();
    for (note, _) in small.iter().filter(|(note, _)| !taken.contains(note.path())) {
        for tag in &note.memory.tags {
            let group = by_tag.entry(shared(note, &tag.to_lowercase()));
            group.or_insert_with(|| (tag.clone(), Vec::new())).1.push(note);
        }
    }
    for (tag, group) in by_tag.values().filter(|(_, group)| (FEWEST..=MOST).contains(&group.len())) {
        if group.iter().all(|note| !taken.contains(note.path())) {
            taken.extend(group.iter().map(|note| note.path()));
            found.extend(finding(tag, group));
        }
    }
    found
}

/// Returns whether a memory can be a part of another note: nothing about it counts but its text.
fn is_small(note: &Compared) -> bool {
    let memory = &note.memory;
    note.is_own
        && !note.is_over
        && memory.kind != "handoff"
        && !memory.state.pinned
        && !is_placed(note)
        && says(note.source.body(), &memory.title)
}

fn shared(note: &Compared, subject: &str) -> Shared {
    let path = note.path();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let said = serde_json::to_string(&properties(note)).unwrap_or_default();
    (folder.to_owned(), note.memory.kind.clone(), said, subject.to_owned())
}

fn finding(title: &str, group: &[&Compared]) -> Option<Finding> {
    // The oldest one stays, so that the texts follow each other in the order of their days.
    let mut group = group.to_vec();
    group.sort_by_key(|note| (note.date.at, note.path().to_owned()));
    let (into, from) = group.split_first()?;
    Some(Finding {
        kind: ProposalKind::Cluster,
        reason: format!("{} small memories about {title} could be one note", group.len()),
        evidence: group.iter().map(|note| note.evidence()).collect(),
        sources: group.iter().map(|note| note.origin()).collect(),
        changed: group.iter().map(|note| note.path().to_owned()).collect(),
        action: Action::Merge {
            from: from.iter().map(|note| note.path().to_owned()).collect(),
            into: into.path().to_owned(),
            title: Some(title.to_owned()),
        },
    })
}
