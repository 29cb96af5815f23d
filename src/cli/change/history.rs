//! `sidenote history`: lists the operations on one note or on all, or the commits of git that touched a note.

use clap::Args;
use console::style;

use crate::cli::diff::{show_difference, show_whole};
use crate::cli::{CommandContext, output};
use crate::error::Result;
use crate::store::{Event, NoteCommit, NoteHistory, actor_of, tool_of};

/// List the operations on a note or on all notes, newest first.
///
/// With --git, the list is of the commits that touched the note, under all its names and through merges, each with what it
/// changed: links, tags, properties, headings, tasks and words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote history -n 5
  sidenote history \"Start here\"
  sidenote history Projects/Plan.md --git --limit 3")]
pub(in crate::cli) struct HistoryArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]], also of a deleted note. Default: all notes.
    note: Option<String>,
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
    let events = context.store()?.changes().history_of(args.note.as_deref(), args.limit)?;
    context.out.reply(&events, |events: &Vec<Event>| {
        // A list of what one person did by hand needs no names.
        let by = |event: &Event| [actor_of(event), tool_of(event)].map(Option::unwrap_or_default);
        let has_names = events.iter().any(|event| by(event).iter().any(|name| !name.is_empty()));
        let rows = events.iter().map(|event| {
            let others = (event.files.len() + event.folders.len()).saturating_sub(1);
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            let subject = event.subject().unwrap_or_default() + &more;
            let mut row = vec![event.at.local_rfc3339(), event.op.clone(), subject, event.id.clone()];
            if has_names {
                row.splice(1..1, by(event));
            }
            row
        });
        output::columns(&rows.collect::<Vec<_>>())
    })
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
