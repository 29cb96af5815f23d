//! Facts that a newer note replaces or contradicts, by the words of short notes (`memory/related_statements`), or by the
//! property `supersedes` of the newer one.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use sidenote_markdown::name_date::day_in_name;
use sidenote_memory::related_statements::{RelatedPair, related};
use sidenote_memory::statement::{Comparison, Statement};

use super::{Action, Compared, Finding, link_to, set_property};
use crate::proposal::ProposalKind;

/// Finds the pairs of notes that say the same, or of which one replaces or contradicts the other, by their places. The
/// pairs that share the most telling words come first.
pub(super) fn related_pairs(notes: &[Compared]) -> Vec<RelatedPair> {
    let is_compared = |note: &Compared| !note.is_over && note.memory.kind != "handoff";
    let (places, statements): (Vec<usize>, Vec<&Statement>) = notes
        .iter()
        .enumerate()
        .filter(|(_, note)| is_compared(note))
        .filter_map(|(at, note)| Some((at, note.statement.as_ref()?)))
        .unzip();
    let note = |at: usize| places.get(at).and_then(|at| notes.get(*at));
    let is_after = |one: usize, other: usize| match (note(one), note(other)) {
        (Some(one), Some(other)) => one.date.is_after(&other.date),
        _ => false,
    };
    let place = |at: usize| places.get(at).copied().unwrap_or_default();
    let mut pairs = related(&statements, is_after);
    for pair in &mut pairs {
        (pair.older, pair.newer) = (place(pair.older), place(pair.newer));
    }
    pairs
}

/// Finds the facts that a newer note replaces or contradicts. Each older note has one finding, of the newest note that is
/// not replaced itself.
pub(super) fn find(notes: &[Compared], said: &[RelatedPair]) -> Vec<Finding> {
    let mut found = declared(notes);
    let mut replaced: HashSet<usize> = HashSet::new();
    let mut conflicts: BTreeMap<usize, Vec<RelatedPair>> = BTreeMap::new();
    for pair in said.iter().filter(|pair| pair.comparison != Comparison::Same) {
        replaced.insert(pair.older);
        conflicts.entry(pair.older).or_default().push(*pair);
    }
    for pairs in conflicts.values() {
        let last = pairs.iter().max_by_key(|pair| {
            let date = notes.get(pair.newer).map(|note| note.date.at.millis());
            (!replaced.contains(&pair.newer), date, std::cmp::Reverse(pair.newer))
        });
        let Some(pair) = last else { continue };
        let (Some(older), Some(newer)) = (notes.get(pair.older), notes.get(pair.newer)) else { continue };
        if pair.comparison == Comparison::Contradicted && !can_contradict(older, newer) {
            continue;
        }
        found.push(finding(older, newer, pair.comparison == Comparison::Superseded));
    }
    found
}

/// Returns whether two notes whose statements differ may contradict each other: it is known which is newer, none is of a day,
/// and they are not about two versions or two times of a day.
fn can_contradict(older: &Compared, newer: &Compared) -> bool {
    let is_of_day = |note: &Compared| day_in_name(&note.source.path).is_some();
    let is_known = older.date.is_stated || newer.date.is_stated;
    is_known
        && newer.date.is_after(&older.date)
        && !is_of_day(older)
        && !is_of_day(newer)
        && versions_and_times(older.source.body()) == versions_and_times(newer.source.body())
}

/// Returns the versions and times of day of a text, such as `2.1`, `v3` and `14:30`.
fn versions_and_times(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'));
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    let is_digit = |c: char| c.is_ascii_digit();
    let is_one = |word: &String| {
        let parts: Vec<&str> = word.trim_start_matches('v').split(['.', ':']).collect();
        let is_numbered = parts.len() > 1 && parts.iter().all(|part| part.starts_with(is_digit));
        let behind_v = word.strip_prefix('v').is_some_and(|rest| rest.starts_with(is_digit));
        let is_hour = ["am", "pm"]
            .iter()
            .any(|end| word.strip_suffix(end).is_some_and(|hour| hour.ends_with(is_digit)));
        is_numbered || behind_v || is_hour
    };
    words.filter(is_one).collect()
}

/// Finds notes that a note says it supersedes, by its property `supersedes`, and that do not say so themselves.
fn declared(notes: &[Compared]) -> Vec<Finding> {
    let by_name: HashMap<String, &Compared> = notes
        .iter()
        .flat_map(|note| {
            let names = [note.path().to_owned(), note.source.path.stem().to_owned(), note.memory.id.clone()];
            names.into_iter().map(move |name| (name.to_lowercase(), note))
        })
        .collect();
    let mut found = Vec::new();
    for newer in notes {
        let front = newer.source.note.frontmatter.as_ref();
        let value = front.and_then(|front| front.get("supersedes")).map(|property| &property.value);
        let values = match value {
            Some(Value::Array(items)) => items.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => continue,
        };
        for name in values.iter().filter_map(Value::as_str) {
            let name = name.trim().trim_start_matches("[[").trim_end_matches("]]");
            let name = name.split('|').next().unwrap_or_default().to_lowercase();
            let older = by_name.get(&name).or_else(|| by_name.get(&format!("{name}.md")));
            if let Some(older) = older.filter(|older| !older.is_over && older.path() != newer.path()) {
                found.push(finding(older, newer, true));
            }
        }
    }
    found
}

fn finding(older: &Compared, newer: &Compared, is_update: bool) -> Finding {
    let (old, new) = (older.path(), newer.path());
    let mut edits = vec![set_property(old, "superseded_by", Value::from(link_to(&newer.source.path)))];
    let has_end =
        older.source.note.frontmatter.as_ref().is_some_and(|front| front.get("valid_until").is_some());
    if is_update && newer.date.is_stated && !has_end {
        edits.push(set_property(old, "valid_until", Value::from(newer.date.at.rfc3339())));
    }
    let (kind, reason) = if is_update {
        (ProposalKind::Superseded, format!("{new} says that what {old} says no longer holds"))
    } else {
        (
            ProposalKind::Contradiction,
            format!("{old} and {new} contradict each other; accept if the second one holds"),
        )
    };
    Finding {
        kind,
        reason,
        evidence: vec![older.evidence(), newer.evidence()],
        sources: vec![older.origin(), newer.origin()],
        changed: vec![old.to_owned()],
        action: Action::Edit("supersede", edits),
    }
}
