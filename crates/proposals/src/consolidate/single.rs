//! Memories that are stale, have no type, or have a title that says nothing.

use std::collections::BTreeMap;

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_change::naming::named_after;
use sidenote_memory::types::{GENERAL, MemoryTypes};
use sidenote_query::memory_weights::MemoryWeights;

use super::{Action, Compared, Finding, Known, set_property};
use crate::Proposals;
use crate::proposal::ProposalKind;

/// The days after which a memory that was never used is stale. It is three times the longest half-life of the default
/// types that fade, so that each of them has lost most of its weight.
const UNUSED_DAYS: i64 = 270;

/// The most memories of one proposal, so that a person can look through them.
const BATCH: usize = 25;

/// Titles that say nothing, in lower case, without the number behind them.
const EMPTY_TITLES: &[&str] = &[
    "untitled",
    "note",
    "notes",
    "new note",
    "memory",
    "memo",
    "todo",
    "misc",
    "draft",
    "document",
    "unbenannt",
    "notiz",
    "neue notiz",
    "ohne titel",
    "sans titre",
    "nouvelle note",
    "sin título",
    "nota",
    "nueva nota",
    "senza titolo",
    "naamloos",
    "bez tytułu",
    "без названия",
    "заметка",
    "無題",
    "メモ",
    "无标题",
    "제목 없음",
];

/// Finds the memories that are stale, and those whose type or title can be made of their text. Memories of the same rule
/// are proposed together. A memory that was proposed before is left out unless it changed.
pub(super) fn find(proposals: &Proposals<'_>, notes: &[Compared], known: &Known) -> Result<Vec<Finding>> {
    let now = proposals.core.clock.now();
    let mut found = Vec::new();
    let own = || notes.iter().filter(|note| note.is_own && note.memory.kind != "handoff");
    let is_new = |note: &&Compared, kind| !known.has(kind, note);
    let kinds = MemoryWeights::of(proposals.core).kinds();
    let stale = |note: &&Compared| is_new(note, ProposalKind::Stale) && !is_lasting(note, &kinds);
    let over: Vec<&Compared> = own().filter(stale).filter(|note| is_past(note, now)).collect();
    let unused: Vec<&Compared> =
        own().filter(stale).filter(|note| !is_past(note, now) && is_unused(note, now)).collect();
    let archive = |note: &Compared| set_property(note.path(), "tier", Value::from("archive"));
    let unused_rule = format!("older than {UNUSED_DAYS} days and never used");
    for (group, rule) in [(over, "past valid_until"), (unused, unused_rule.as_str())] {
        for batch in group.chunks(BATCH) {
            let reason = format!("{}, {rule}", counted(batch.len()));
            let edits = batch.iter().map(|note| archive(note)).collect();
            found.push(together(ProposalKind::Stale, reason, batch, Action::Edit("archive", edits)));
        }
    }
    let mut typed: BTreeMap<String, Vec<&Compared>> = BTreeMap::new();
    for note in
        own().filter(|note| note.memory.row.note_type.is_none() && is_new(note, ProposalKind::Unclear))
    {
        let kind = kinds.classify(note.source.body());
        if kind != GENERAL {
            typed.entry(kind.to_owned()).or_default().push(note);
        }
    }
    for (kind, group) in &typed {
        for batch in group.chunks(BATCH) {
            let reason = format!("{} without a type, with words of the type {kind}", counted(batch.len()));
            let edits = batch
                .iter()
                .map(|note| set_property(note.path(), "type", Value::from(kind.as_str())))
                .collect();
            found.push(together(ProposalKind::Unclear, reason, batch, Action::Edit("set", edits)));
        }
    }
    for note in own().filter(|note| says_nothing(&note.memory.title) && is_new(note, ProposalKind::Unclear)) {
        let title = named_after(note.source.body());
        if title == note.memory.title || says_nothing(&title) {
            continue;
        }
        let reason = format!("the title {:?} says nothing; the text begins: {title}", note.memory.title);
        let action = Action::Retitle { note: note.path().to_owned(), title };
        found.push(together(ProposalKind::Unclear, reason, &[note], action));
    }
    Ok(found)
}

fn counted(count: usize) -> String {
    if count == 1 { "1 memory".to_owned() } else { format!("{count} memories") }
}

/// Returns whether the time of a memory is over, and nothing replaces it.
fn is_past(note: &Compared, now: Timestamp) -> bool {
    let front = note.source.note.frontmatter.as_ref();
    let until = front.and_then(|front| front.get("valid_until")?.value.as_str());
    let end = until.and_then(sidenote_memory::validity::end_of);
    end.is_some_and(|end| end <= now) && note.memory.superseded_by.is_none()
}

/// Returns whether a memory is kept however old it is: it is protected, it is important, or its type does not fade.
fn is_lasting(note: &Compared, kinds: &MemoryTypes) -> bool {
    let memory = &note.memory;
    let kind = kinds.get(&memory.kind);
    // An importance of at most 1 is a part of the whole.
    let is_important = memory
        .given_importance()
        .is_some_and(|given| given >= IMPORTANT || (IMPORTANT / 10.0..=0.99).contains(&given));
    memory.said.is_protected()
        || memory.state.protected
        || is_important
        || kind.protected
        || kind.half_life_days > UNUSED_DAYS as f64
        || LASTING_TYPES.contains(&memory.kind.as_str())
}

/// The importance, of 10, from which on a memory is kept.
const IMPORTANT: f64 = 7.0;

/// Types whose memories hold until another one replaces them.
const LASTING_TYPES: [&str; 2] = ["preference", "decision"];

fn is_unused(note: &Compared, now: Timestamp) -> bool {
    let state = &note.memory.state;
    let age = now.millis() - note.memory.created.millis();
    state.uses == 0 && state.usefulness <= 0 && !state.protected && age >= UNUSED_DAYS * 86_400_000
}

fn says_nothing(title: &str) -> bool {
    let lower = title.trim().to_lowercase();
    let bare = lower.trim_end_matches(|c: char| {
        c.is_numeric() || c.is_whitespace() || matches!(c, '-' | '_' | '(' | ')')
    });
    bare.is_empty() || EMPTY_TITLES.contains(&bare)
}

fn together(kind: ProposalKind, reason: String, notes: &[&Compared], action: Action) -> Finding {
    Finding {
        kind,
        reason,
        evidence: notes.iter().map(|note| note.evidence()).collect(),
        sources: notes.iter().map(|note| note.origin()).collect(),
        changed: notes.iter().map(|note| note.path().to_owned()).collect(),
        action,
    }
}
