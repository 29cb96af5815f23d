//! Links that should exist, because a memory names another note, and dead links whose meaning is certain.

use std::collections::{BTreeMap, HashMap, HashSet};

use sidenote_base::error::Result;
use sidenote_catalog::Filter;
use sidenote_links::rewrite::parse;
use sidenote_markdown::edit::{ChangeSet, ContentHash, Edit, FileChange, FileLocation, apply};
use sidenote_markdown::note::Note;
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
    let mut found = missing(proposals, notes)?;
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
fn missing(proposals: &Proposals<'_>, notes: &[Compared]) -> Result<Vec<Finding>> {
    let name_of = |path: &NotePath| -> Vec<String> {
        words(path.stem(), 0).into_iter().map(|word| word.text).collect()
    };
    // A name is also taken by archived notes, by attachments and by the files of other folders.
    let mut owners: HashMap<Vec<String>, usize> = HashMap::new();
    for row in proposals.core.index.catalog().select(&Filter::default())? {
        *owners.entry(name_of(&row.path)).or_default() += 1;
    }
    let mut named: HashMap<Vec<String>, Vec<&NotePath>> = HashMap::new();
    for note in notes.iter().filter(|note| !note.is_over) {
        let name = name_of(&note.source.path);
        let says = name.iter().any(|word| word.chars().any(char::is_alphabetic));
        if (SHORTEST_TITLE..=LONGEST_TITLE).contains(&name.len()) && says {
            named.entry(name).or_default().push(&note.source.path);
        }
    }
    named.retain(|name, paths| paths.len() == 1 && owners.get(name).is_none_or(|count| *count <= 1));
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
            if !is_linked && is_mention(text, span, path.stem()) {
                let is_name = said == path.stem();
                let link =
                    if is_name { format!("[[{said}]]") } else { format!("[[{}|{said}]]", path.stem()) };
                let trial = apply(text.as_bytes(), &[Edit::replace(span, link.clone())])?;
                let trial = parse(&note.source.path, &String::from_utf8_lossy(&trial));
                if is_same_but_for_a_link(&note.source.note, &trial) {
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

/// Returns whether a part of a text names a note in words, and is no part of a tag, an address, a path or an identifier.
fn is_mention(text: &str, span: Span, name: &str) -> bool {
    let before = text.get(..span.start).unwrap_or_default().chars().next_back();
    let mut behind = text.get(span.end..).unwrap_or_default().chars();
    let (after, next) = (behind.next(), behind.next());
    let is_joined = |c: char| c.is_alphanumeric() || JOINING.contains(&c);
    // A sign ends a sentence only where the sentence ends.
    let ends = match after {
        Some('.' | ':' | '?') => next.is_none_or(|c| c.is_whitespace() || CLOSING.contains(&c)),
        after => after.is_none_or(|c| !is_joined(c)),
    };
    let said = span.of(text);
    // A mention across lines stays as it is.
    ends && before.is_none_or(|c| !is_joined(c))
        && !said.contains('\n')
        && (gaps(said) == gaps(name) || gaps(said).iter().all(|gap| gap.chars().all(char::is_whitespace)))
        && !said.contains(['[', ']', '|'])
}

/// Signs that join a word to an identifier, such as a tag, an address or a path.
const JOINING: &[char] = &[
    '#', '^', '@', '/', '.', '_', '-', '[', '\\', '`', ':', '=', '&', '?', '%', '+', '$', '~', '|', '<', '{',
];

/// Signs that may follow the end of a sentence.
const CLOSING: &[char] = &['"', '\'', ')', ']', '*', '_', '»', '”', '’'];

/// Returns what is between the words of a text.
fn gaps(text: &str) -> Vec<&str> {
    let own = words(text, 0);
    let between = own.iter().zip(own.iter().skip(1));
    between.filter_map(|(one, next)| text.get(one.span.end..next.span.start)).collect()
}

/// Returns whether a text with a new link has the same tags, block ids, footnotes, headings and tasks.
fn is_same_but_for_a_link(old: &Note, new: &Note) -> bool {
    let names = |note: &Note| -> Vec<String> {
        let tags = note.tags.iter().map(|tag| &tag.name);
        let blocks = note.blocks.iter().map(|block| &block.id);
        let footnotes = note.footnotes.iter().map(|footnote| &footnote.id);
        let headings = note.headings.iter().map(|heading| &heading.text);
        tags.chain(blocks).chain(footnotes).chain(headings).cloned().collect()
    };
    new.links.len() == old.links.len() + 1
        && names(old) == names(new)
        && old.tasks.len() == new.tasks.len()
        && old.mentions.len() == new.mentions.len()
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
