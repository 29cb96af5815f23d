//! Links that should exist, because a memory names another note, and dead links whose meaning is certain.

use std::collections::{BTreeMap, HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_links::rewrite::parse;
use sidenote_markdown::edit::{ChangeSet, ContentHash, Edit, FileChange, FileLocation, apply};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;
use sidenote_repair::{Certainty, RepairRequest, Repairs};

use super::{Action, Compared, ConsolidateRequest, Finding};
use crate::Proposals;
use crate::proposal::{ProposalEvidence, ProposalKind, ProposalSource};

/// The fewest words of a title that is looked for in texts. One word says too little to mean the note.
const SHORTEST_TITLE: usize = 2;

/// The most words of a title that is looked for.
const LONGEST_TITLE: usize = 8;

/// Finds memories that name another note by its file name without a link, and the notes with dead links of which is
/// certain what they meant.
pub(super) fn find(
    proposals: &Proposals<'_>,
    notes: &[Compared],
    request: &ConsolidateRequest,
    notices: &mut Vec<String>,
) -> Result<Vec<Finding>> {
    let mut found = missing(notes)?;
    let wants = request.kinds.is_empty() || request.kinds.contains(&ProposalKind::DeadLink);
    if wants {
        found.extend(dead(proposals, request, notices)?);
    }
    Ok(found)
}

/// A word of a text with its place.
struct TextWord {
    text: String,
    span: Span,
}

fn words(text: &str, from: usize) -> Vec<TextWord> {
    let mut found = Vec::new();
    let mut start = None;
    let body = text.get(from..).unwrap_or_default();
    for (at, c) in body.char_indices().chain([(body.len(), ' ')]) {
        match (c.is_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(begin)) => {
                let word = body.get(begin..at).unwrap_or_default().to_lowercase();
                found.push(TextWord { text: word, span: Span::new(from + begin, from + at) });
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Finds the first place of each name in each memory, and links it.
fn missing(notes: &[Compared]) -> Result<Vec<Finding>> {
    let mut named: HashMap<Vec<String>, Vec<&NotePath>> = HashMap::new();
    for note in notes.iter().filter(|note| !note.is_over) {
        let name: Vec<String> = words(note.source.path.stem(), 0).into_iter().map(|word| word.text).collect();
        let says = name.iter().any(|word| word.chars().any(char::is_alphabetic));
        if (SHORTEST_TITLE..=LONGEST_TITLE).contains(&name.len()) && says {
            named.entry(name).or_default().push(&note.source.path);
        }
    }
    named.retain(|_, paths| paths.len() == 1);
    let lengths: HashSet<usize> = named.keys().map(Vec::len).collect();
    let mut found = Vec::new();
    for note in notes.iter().filter(|note| note.is_own && !note.is_over && note.memory.kind != "handoff") {
        let edits = links_of(note, &named, &lengths)?;
        if edits.is_empty() {
            continue;
        }
        let names: Vec<&str> = edits.iter().map(|edit| edit.text.as_str()).collect();
        let reason = format!("{} names without a link: {}", note.path(), names.join(", "));
        let mut plan = ChangeSet::new("link");
        plan.files.push(FileChange::edit(note.source.path.clone(), note.source.hash, edits));
        found.push(Finding {
            kind: ProposalKind::MissingLink,
            reason,
            evidence: vec![note.evidence()],
            sources: vec![note.origin()],
            changed: vec![note.path().to_owned()],
            action: Action::Plan(plan),
        });
    }
    Ok(found)
}

/// Returns the edits that make links of the first mention of each note in a memory, where the text then has one more
/// link for each.
fn links_of(
    note: &Compared,
    named: &HashMap<Vec<String>, Vec<&NotePath>>,
    lengths: &HashSet<usize>,
) -> Result<Vec<Edit>> {
    let text = &note.source.text;
    let own = words(text, note.source.note.body_start);
    let mut linked: HashSet<String> =
        note.source.note.links.iter().map(|link| link.path.trim_end_matches(".md").to_lowercase()).collect();
    let mut edits: Vec<Edit> = Vec::new();
    let mut at = 0;
    while at < own.len() {
        let mut step = 1;
        for length in (SHORTEST_TITLE..=LONGEST_TITLE).rev().filter(|length| lengths.contains(length)) {
            let Some(window) = own.get(at..at + length) else { continue };
            let key: Vec<String> = window.iter().map(|word| word.text.clone()).collect();
            let Some([path]) = named.get(&key).map(Vec::as_slice) else { continue };
            let (Some(first), Some(last)) = (window.first(), window.last()) else { continue };
            let span = Span::new(first.span.start, last.span.end);
            let said = span.of(text);
            let target = path.as_str().trim_end_matches(".md");
            let is_linked = linked.contains(&target.to_lowercase())
                || linked.contains(&path.stem().to_lowercase())
                || path.as_str() == note.path();
            // A mention across lines, or with signs that a link cannot have, stays as it is.
            if !is_linked && !said.contains(['\n', '[', ']', '|']) {
                let is_name = said == path.stem();
                let link =
                    if is_name { format!("[[{said}]]") } else { format!("[[{}|{said}]]", path.stem()) };
                let trial = apply(text.as_bytes(), &[Edit::replace(span, link.clone())])?;
                let trial = String::from_utf8_lossy(&trial).into_owned();
                if parse(&note.source.path, &trial).links.len() == note.source.note.links.len() + 1 {
                    linked.insert(path.stem().to_lowercase());
                    edits.push(Edit::replace(span, link));
                }
            }
            step = length;
            break;
        }
        at += step;
    }
    Ok(edits)
}

/// Plans the repair of dead links that are certain, a proposal for each note.
fn dead(
    proposals: &Proposals<'_>,
    request: &ConsolidateRequest,
    notices: &mut Vec<String>,
) -> Result<Vec<Finding>> {
    let repair = RepairRequest {
        paths: request.folder.iter().cloned().collect(),
        apply: Some(Certainty::Certain),
        dry_run: true,
        ..RepairRequest::default()
    };
    let reply = match Repairs::of(proposals.core).repair(&repair) {
        Ok(reply) => reply,
        Err(error) => {
            notices.push(format!("dead links were not looked for: {error}"));
            return Ok(Vec::new());
        }
    };
    let mut evidence: BTreeMap<&str, Vec<ProposalEvidence>> = BTreeMap::new();
    for item in &reply.links {
        let Some(new) = item.new_link.as_ref() else { continue };
        let text = format!("{}: {} → {new}", item.line, item.link);
        evidence.entry(&item.path).or_default().push(ProposalEvidence { path: item.path.clone(), text });
    }
    let mut found = Vec::new();
    for file in reply.change.plan.files.iter().filter(|file| file.writes()) {
        let path = file.from.as_ref().and_then(FileLocation::in_vault).map(ToString::to_string);
        let (Some(path), Some(hash)) = (path, file.before) else { continue };
        let hash: ContentHash = hash;
        let mut plan = ChangeSet::new("repair");
        plan.files.push(file.clone());
        found.push(Finding {
            kind: ProposalKind::DeadLink,
            reason: format!("{path} has links that lead to nothing, and what they meant is certain"),
            evidence: evidence.remove(path.as_str()).unwrap_or_default(),
            sources: vec![ProposalSource { path: path.clone(), hash }],
            changed: vec![path],
            action: Action::Plan(plan),
        });
    }
    Ok(found)
}
