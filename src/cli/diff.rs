//! `sidenote diff`: compares two states of a vault in git.

use clap::Args;
use console::style;
use serde_json::Value;
use sidenote_base::error::{Error, Result};
use sidenote_links::note_diff::{LinkChange, LinkRef, NoteDiff};

use super::{CommandContext, output};
use crate::store::{DiffReply, DiffRequest, DiffSide, NoteChange, NoteChangeKind, Revisions};

/// The longest value of a property that is shown, in characters.
const MAX_VALUE: usize = 60;

/// Compare the notes of two git revisions, or of one with the files as they are.
///
/// The result tells which notes were made, removed and renamed, which links were added, removed, retargeted and are broken
/// now, and what changed in tags, properties, headings, tasks and words. A revision is a branch, a tag, a commit, HEAD~3,
/// or a date such as 2026-01-01, yesterday or 7d, which means the last commit before the end of that day. Links are
/// followed by the settings of each revision. No index is needed, and nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote diff
  sidenote diff main..draft
  sidenote diff v1.0 v1.1 Projects
  sidenote diff 2026-01-01..2026-02-01 --json
  sidenote diff yesterday -- Projects/Plan.md 'Recipes/**'")]
pub(super) struct DiffArgs {
    /// The revisions: A..B, A B, or A for A and the files as they are; A...B begins at their common ancestor. What names no
    /// revision is a path.
    #[arg(value_name = "REV|PATH", default_value = "HEAD")]
    revisions: Vec<String>,
    /// Compare only these notes: paths, folders or globs.
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<String>,
}

pub(super) fn run(context: &CommandContext, args: &DiffArgs) -> Result<()> {
    let revisions = Revisions::open(&context.open)?;
    let request = request(&revisions, args)?;
    context.out.reply(&revisions.diff(&request)?, show)
}

/// Tells revisions and paths apart.
fn request(revisions: &Revisions, args: &DiffArgs) -> Result<DiffRequest> {
    let mut words = args.revisions.iter();
    let mut request = DiffRequest { from: "HEAD".to_owned(), ..DiffRequest::default() };
    let mut is_complete = false;
    if let Some(first) = words.clone().next() {
        if let Some((from, to, since_common_ancestor)) = range(first) {
            let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
            (request.from, request.to) = (or_head(from), Some(or_head(to)));
            (request.since_common_ancestor, is_complete) = (since_common_ancestor, true);
            words.next();
        } else if revisions.is_revision(first)? {
            first.clone_into(&mut request.from);
            words.next();
        } else if !revisions.is_there(first) {
            return Err(Error::not_found(format!("{first:?} is neither a revision of git nor a path"))
                .with_hint("name a branch, a tag, a commit, HEAD~3, or a date such as 2026-01-01 or 7d"));
        } else {
            is_complete = true;
        }
    }
    if let Some(second) = words.clone().next()
        && !is_complete
        && revisions.is_revision(second)?
    {
        if revisions.is_there(second) {
            return Err(Error::invalid(format!("{second:?} is a revision of git, and a path too"))
                .with_hint("write `--` before paths, and A..B for two revisions"));
        }
        request.to = Some(second.clone());
        words.next();
    }
    request.paths = words.chain(&args.paths).cloned().collect();
    Ok(request)
}

/// Reads `A..B` and `A...B`.
fn range(text: &str) -> Option<(&str, &str, bool)> {
    if let Some((from, to)) = text.split_once("...") {
        return Some((from, to, true));
    }
    // A path can begin with two dots; a revision cannot contain them.
    let (from, to) = text.split_once("..").filter(|(_, to)| !to.starts_with('/'))?;
    Some((from, to, false))
}

fn show(reply: &DiffReply) -> String {
    let mut text = format!("{} → {}\n", show_side(&reply.from), show_side(&reply.to));
    for note in &reply.notes {
        text.push_str(&show_note(note));
    }
    text.push_str(&format!("{}\n", show_totals(reply)));
    text
}

fn show_side(side: &DiffSide) -> String {
    let date = side.date.map(|date| date.day());
    let commit = side.commit.as_deref().and_then(|commit| commit.get(..10));
    match (commit, date) {
        (Some(commit), Some(date)) => format!("{} ({commit}, {date})", output::plain(&side.revision)),
        _ => "the files".to_owned(),
    }
}

/// Formats the sums of a comparison on one line.
fn show_totals(reply: &DiffReply) -> String {
    let totals = &reply.totals;
    let counts = [
        (totals.added, "added"),
        (totals.removed, "removed"),
        (totals.renamed, "renamed"),
        (totals.changed, "changed"),
        (totals.affected, "affected by other notes"),
    ];
    let links = [
        (totals.links_added, "added"),
        (totals.links_removed, "removed"),
        (totals.links_retargeted, "retargeted"),
        (totals.links_rewritten, "rewritten"),
        (totals.links_dead, "broken"),
        (totals.links_revived, "revived"),
    ];
    let list = |counts: &[(usize, &str)]| {
        let some = counts.iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    };
    if reply.notes.is_empty() {
        return "no difference".to_owned();
    }
    let mut parts = vec![format!("notes: {}", list(&counts))];
    let links = list(&links);
    if !links.is_empty() {
        parts.push(format!("links: {links}"));
    }
    parts.push(format!("words: +{} -{}", totals.words_added, totals.words_removed));
    parts.join("; ")
}

fn show_note(note: &NoteChange) -> String {
    let path = output::plain(&note.path);
    let head = match (note.change, &note.was) {
        (NoteChangeKind::Added, _) => style(format!("+ {path}")).green(),
        (NoteChangeKind::Removed, _) => style(format!("- {path}")).red(),
        (_, Some(was)) => style(format!("> {} → {path}", output::plain(was))).cyan(),
        (NoteChangeKind::Affected, _) => style(format!("! {path}")).yellow(),
        _ => style(format!("~ {path}")).bold(),
    };
    let is_whole = matches!(note.change, NoteChangeKind::Added | NoteChangeKind::Removed);
    let details = if is_whole { show_whole(&note.diff) } else { show_difference(&note.diff) };
    let text = match note.change {
        NoteChangeKind::Changed if details.is_empty() => "    white space and markup only\n".to_owned(),
        _ => details,
    };
    format!("{head}\n{text}")
}

/// Formats a note that is new or gone: the links that are broken in it, and the number of its words and links.
pub(super) fn show_whole(diff: &NoteDiff) -> String {
    let dead = diff.links.added.iter().filter(|link| link.dead);
    let mut text: String = dead.map(|link| show_link("broken", link)).collect();
    let links = diff.links.added.len() + diff.links.removed.len();
    let mut parts = vec![format!("words +{} -{}", diff.words.added, diff.words.removed)];
    if links > 0 {
        parts.push(output::count(links, "link"));
    }
    text.push_str(&format!("    {}\n", parts.join(", ")));
    text
}

fn show_link(what: &str, link: &LinkRef) -> String {
    format!("    {what:<10} {} (line {})\n", output::plain(&link.text), link.line)
}

fn show_link_change(what: &str, change: &LinkChange) -> String {
    let (before, after) = (&change.before, &change.after);
    let target = |link: &LinkRef| link.target.as_deref().map(output::plain);
    let shown = match (before.text == after.text, target(before), target(after)) {
        // The link is the same text, and another file has the name.
        (true, Some(was), Some(is)) => format!("{}: {was} → {is}", output::plain(&after.text)),
        (true, Some(was), None) => format!("{} led to {was}", output::plain(&after.text)),
        (true, None, Some(is)) => format!("{} leads to {is}", output::plain(&after.text)),
        (true, None, None) => output::plain(&after.text),
        (false, ..) => format!("{} → {}", output::plain(&before.text), output::plain(&after.text)),
    };
    format!("    {what:<10} {shown} (line {})\n", after.line)
}

/// Formats what differs in a note, a line for each difference.
pub(super) fn show_difference(diff: &NoteDiff) -> String {
    let links = &diff.links;
    let mut text = String::new();
    for (what, list) in [("link +", &links.added), ("link -", &links.removed)] {
        for link in list {
            let what = if link.dead && what == "link +" { "link + broken" } else { what };
            text.push_str(&show_link(what, link));
        }
    }
    let changes = [
        ("retargeted", &links.retargeted),
        ("rewritten", &links.rewritten),
        ("broken", &links.dead),
        ("revived", &links.revived),
    ];
    for (what, list) in changes {
        list.iter().for_each(|change| text.push_str(&show_link_change(what, change)));
    }
    let mut line = |what: &str, shown: String| text.push_str(&format!("    {what:<10} {shown}\n"));
    let tags = diff.tags.added.iter().map(|tag| format!("+#{tag}"));
    let tags: Vec<String> = tags.chain(diff.tags.removed.iter().map(|tag| format!("-#{tag}"))).collect();
    if !tags.is_empty() {
        line("tags", output::plain(&tags.join(" ")));
    }
    for property in &diff.properties {
        let value = |value: &Option<Value>| value.as_ref().map_or_else(|| "(none)".to_owned(), show_value);
        let shown = format!("{}: {} → {}", property.name, value(&property.before), value(&property.after));
        line("property", output::plain(&shown));
    }
    for (sign, headings) in [("+", &diff.headings.added), ("-", &diff.headings.removed)] {
        for heading in headings {
            let shown = format!("{} {}", "#".repeat(heading.level.into()), heading.text);
            line(&format!("heading {sign}"), output::plain(&shown));
        }
    }
    for (sign, tasks) in [("+", &diff.tasks.added), ("-", &diff.tasks.removed)] {
        for task in tasks {
            line(&format!("task {sign}"), output::plain(&format!("[{}] {}", task.status, task.text)));
        }
    }
    for task in &diff.tasks.changed {
        let shown = format!("[{}] → [{}] {}", task.before, task.after, task.text);
        line("task", output::plain(&shown));
    }
    if diff.words.added + diff.words.removed > 0 {
        line("words", format!("+{} -{}", diff.words.added, diff.words.removed));
    }
    text
}

/// Formats the value of a property, cut if it is long.
fn show_value(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
