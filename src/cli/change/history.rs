//! `sidenote history`: lists the operations on one note or on all, shows one of them, or lists the commits of git that touched
//! a note.

use clap::Args;
use console::style;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::cli::change::report::coloured;
use crate::cli::diff::{show_difference, show_whole};
use crate::cli::{CommandContext, output};
use crate::store::{
    ActivityEvent, ActivityRequest, NoteCommit, NoteHistory, OperationView, actor_of, tool_of,
};

/// List the operations on a note or on all notes, newest first, or show one operation with its difference.
///
/// With --git, the list is of the commits that touched the note, under all its names and through merges, each with what it
/// changed: links, tags, properties, headings, tasks and words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote history -n 5
  sidenote history \"Start here\"
  sidenote history 019c2f0d8a41
  sidenote history --client claude-code --since 2026-11-01
  sidenote history Projects/Plan.md --git --limit 3")]
pub(in crate::cli) struct HistoryArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]], also of a deleted note. Or the id of an operation, at least
    /// its first 8 characters: it is shown with its difference. Default: all notes.
    #[arg(value_name = "NOTE|ID")]
    note: Option<String>,
    /// List only operations of this session.
    #[arg(long, value_name = "SESSION", conflicts_with = "git")]
    session: Option<String>,
    /// List only operations of this agent; `cli` for what people did.
    #[arg(long, value_name = "CLIENT", conflicts_with = "git")]
    client: Option<String>,
    /// List only operations since this time.
    #[arg(long, value_name = "TIME", conflicts_with = "git")]
    since: Option<String>,
    /// List the commits of git that touched the note, and what they changed in it.
    #[arg(long, requires = "note")]
    git: bool,
    /// The maximum number of operations or commits.
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: usize,
}

pub(super) fn run(context: &CommandContext, args: &HistoryArgs) -> Result<()> {
    if let Some(note) = args.note.as_deref().filter(|_| args.git) {
        let history = context.fresh_store()?.git_history(note, args.limit)?;
        if history.shallow {
            context.out.message("notice: this clone is shallow, so earlier commits may be missing");
        }
        return context.out.reply(&history, show_commits);
    }
    let store = context.store()?;
    let views = store.views();
    let changes = store.changes();
    if let Some(id) = args.note.as_deref().map(|name| changes.operation_id(name)).transpose()?.flatten() {
        return context.out.reply(&views.operation(&id)?, show_operation);
    }
    let bound = |text: &String| Timestamp::parse_bound_at("--since", text, context.now());
    let request = ActivityRequest {
        limit: args.limit,
        from: args.since.as_ref().map(bound).transpose()?,
        session: args.session.clone(),
        agent: args.client.clone(),
        note: args.note.clone(),
        ..ActivityRequest::default()
    };
    context.out.reply(&views.changes(&request)?, |events: &Vec<ActivityEvent>| {
        // A list of what one person did by hand needs no names.
        let by = |event: &ActivityEvent| {
            [actor_of(&event.event), tool_of(&event.event)].map(Option::unwrap_or_default)
        };
        let has_names = events.iter().any(|event| by(event).iter().any(|name| !name.is_empty()));
        let rows = events.iter().map(|event| {
            let mut row = row_of(event);
            if has_names {
                row.splice(1..1, by(event));
            }
            row
        });
        output::columns(&rows.collect::<Vec<_>>())
    })
}

/// Returns the time, the operation, what it was about, and the id of an event. One that does not stand any more says so.
fn row_of(event: &ActivityEvent) -> Vec<String> {
    let ActivityEvent { event, undone, restored, .. } = event;
    let others = (event.files.len() + event.folders.len()).saturating_sub(1);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    let state = match (undone, restored) {
        (Some(_), _) => " (undone)",
        (None, Some(_)) => " (restored)",
        (None, None) => "",
    };
    let subject = event.subject().unwrap_or_default() + &more;
    vec![event.at.local_rfc3339(), format!("{}{state}", event.op), subject, event.id.clone()]
}

fn show_operation(operation: &OperationView) -> String {
    let event = &operation.event.event;
    let by = [actor_of(event), tool_of(event)].into_iter().flatten();
    let session = event.more.get("session").and_then(|session| session.as_str());
    let by: Vec<String> = by.chain(session.map(|session| format!("session {session}"))).collect();
    let mut text = output::columns(&[row_of(&operation.event)]);
    if !by.is_empty() {
        text.push_str(&format!("by {}\n", output::plain(&by.join(", "))));
    }
    let diff = operation.diff.as_deref().map(coloured).unwrap_or_default();
    let missing = operation.diff_missing.as_deref().map(|said| format!("{}\n", output::plain(said)));
    text.push_str(&format!("{diff}{}", missing.unwrap_or_default()));
    text.push_str(&match &operation.undo.message {
        None => format!("to undo it: sidenote undo {}\n", event.id),
        Some(said) => format!("it cannot be undone: {}\n", output::plain(said)),
    });
    text
}

fn show_commits(history: &NoteHistory) -> String {
    if history.commits.is_empty() {
        return format!("no commit has {} yet\n", output::plain(&history.path));
    }
    let mut text: String = history.commits.iter().map(show_commit).collect();
    if history.more {
        text.push_str("… more commits: --limit shows them\n");
    }
    text
}

fn show_commit(commit: &NoteCommit) -> String {
    let id = commit.commit.get(..10).unwrap_or(&commit.commit);
    let merge = if commit.merge { " (merge)" } else { "" };
    let (author, subject) = (output::plain(&commit.author), output::plain(&commit.subject));
    let mut text =
        format!("{} {} {author}: {subject}{merge}\n", style(id).yellow(), commit.date.local_rfc3339());
    let path = output::plain(&commit.path);
    text.push_str(&match &commit.was {
        _ if commit.created => format!("    created    {path}\n"),
        _ if commit.removed => format!("    removed    {path}\n"),
        Some(was) => format!("    renamed    {} → {path}\n", output::plain(was)),
        None => format!("    {path}\n"),
    });
    let is_whole = commit.created || commit.removed;
    text.push_str(&if is_whole { show_whole(&commit.diff) } else { show_difference(&commit.diff) });
    text
}
