//! `sidenote task`: completes or reopens a task. `sidenote tasks`, which lists tasks, is in `cli/tasks`.

use clap::Args;
use sidenote_base::error::Result;

use super::{EditOptions, apply_edit};
use crate::cli::CommandContext;
use crate::store::NoteEdit;

/// Complete a task, or reopen a completed one.
///
/// `sidenote tasks` lists tasks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote task Plan \"call the harbour\"
  sidenote task Plan 12 --status /
  sidenote task Plan 12 --todo --dry-run")]
pub(in crate::cli) struct TaskArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The task: its line number, or a part of its text that occurs in no other task of the note.
    task: String,
    /// Mark the task as done.
    #[arg(long, group = "new_status")]
    done: bool,
    /// Mark the task as open.
    #[arg(long, group = "new_status")]
    todo: bool,
    /// Write this character between the brackets.
    #[arg(long, group = "new_status", value_name = "CHARACTER")]
    status: Option<char>,
    #[command(flatten)]
    options: EditOptions,
}

pub(super) fn run(context: &CommandContext, args: TaskArgs) -> Result<()> {
    let status = match (args.done, args.todo) {
        (true, _) => Some('x'),
        (_, true) => Some(' '),
        _ => args.status,
    };
    apply_edit(context, args.note, NoteEdit::Task { task: args.task, status }, args.options)
}
