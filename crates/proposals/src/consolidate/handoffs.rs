//! What three and more handoffs repeat: a line that no single project owns, and that a memory of its own could hold.

use std::collections::BTreeMap;

use serde_json::Value;
use sidenote_base::error::Result;
use sidenote_change::create::NewRequest;
use sidenote_change::naming::named_after;

use super::{Action, Compared, Finding, link_to};
use crate::Proposals;
use crate::proposal::{ProposalEvidence, ProposalKind};

/// The number of handoffs that repeat a line from which on it is proposed as a memory.
const REPEATED: usize = 3;

/// The fewest words of a line that says something by itself.
const SHORTEST: usize = 4;

/// Finds the items of lists that at least three handoffs have and no other note. Words are compared without case and
/// signs.
pub(super) fn find(proposals: &Proposals<'_>, notes: &[Compared]) -> Result<Vec<Finding>> {
    let mut holding: BTreeMap<String, (String, Vec<usize>)> = BTreeMap::new();
    for (at, note) in notes.iter().enumerate().filter(|(_, note)| note.memory.kind == "handoff") {
        for line in note.source.body().lines().filter_map(item) {
            let words = normalized(line);
            if words.split(' ').count() >= SHORTEST {
                let (_, places) = holding.entry(words).or_insert_with(|| (line.to_owned(), Vec::new()));
                if !places.contains(&at) {
                    places.push(at);
                }
            }
        }
    }
    let folder = proposals.core.config.memory.folder.trim_matches('/').to_owned();
    let is_known = |words: &str| {
        let others = notes.iter().filter(|note| note.memory.kind != "handoff");
        others.into_iter().any(|note| normalized(note.source.body()).contains(words))
    };
    let mut found = Vec::new();
    for (words, (line, places)) in holding.into_iter().filter(|(_, (_, places))| places.len() >= REPEATED) {
        if is_known(&words) {
            continue;
        }
        let handoffs: Vec<&Compared> = places.iter().filter_map(|at| notes.get(*at)).collect();
        let links: Vec<Value> = handoffs.iter().map(|note| Value::from(link_to(&note.source.path))).collect();
        let request = NewRequest {
            title: named_after(&line),
            content: line.clone(),
            folder: Some(folder.clone()),
            properties: vec![("handoffs".to_owned(), Value::from(links))],
            numbered: true,
            identified: true,
            ..NewRequest::default()
        };
        let evidence =
            |note: &&Compared| ProposalEvidence { path: note.path().to_owned(), text: line.clone() };
        found.push(Finding {
            kind: ProposalKind::Handoffs,
            reason: format!("{} handoffs repeat: {line}", handoffs.len()),
            evidence: handoffs.iter().map(evidence).collect(),
            sources: handoffs.iter().map(|note| note.origin()).collect(),
            changed: Vec::new(),
            action: Action::New(request),
        });
    }
    Ok(found)
}

/// Returns the text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix(['-', '*', '+'])?.trim();
    (text != "(none)").then_some(text)
}

fn normalized(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}
