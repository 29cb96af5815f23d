//! `sidenote tasks`: lists the tasks of the vault. `sidenote task`, which changes a task, is in `cli/change/task`.

use clap::Args;
use console::style;
use sidenote_base::error::Result;

use super::search::FilterArgs;
use super::{CommandContext, output};
use crate::cli::format::ListFormat;
use crate::store::{TaskItem, TasksRequest};

/// List the tasks of a note or of all notes.
///
/// `sidenote task` completes a task.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote tasks --todo --tag project
  sidenote tasks Plan
  sidenote tasks --done --updated-after 7d --format '{path}: {text}'")]
pub(super) struct TasksArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]]. Default: all notes.
    note: Option<String>,
    /// Only open tasks.
    #[arg(long)]
    todo: bool,
    /// Only tasks that are done or have another status than open.
    #[arg(long, conflicts_with = "todo")]
    done: bool,
    /// Only notes in this folder or below it.
    #[arg(long, conflicts_with = "note")]
    folder: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// The maximum number of tasks.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &TasksArgs) -> Result<()> {
    let mut filter = args.filter.filter(context.now())?;
    filter.folder.clone_from(&args.folder);
    let store = context.fresh_store()?;
    if let Some(folder) = &args.folder {
        store.reads().refuse_missing_folder(folder)?;
    }
    let done = if args.todo || args.done { Some(args.done) } else { None };
    let request = TasksRequest { filter, note: args.note.clone(), done, limit: args.limit };
    let tasks = store.reads().tasks(&request)?;
    if tasks.is_empty() {
        context.print_unmet_conditions(&store.reads().absent(&request.filter, None, None)?);
    }
    args.format.reply(context.out, &tasks, |tasks| tasks, |tasks| show(tasks))
}

fn show(tasks: &[TaskItem]) -> String {
    let mut text = String::new();
    let mut last = "";
    for task in tasks {
        if task.path != last {
            text.push_str(&format!("{}\n", style(output::plain(&task.path)).cyan()));
        }
        last = &task.path;
        text.push_str(&format!("{:>5}  [{}] {}\n", task.line, task.status, output::plain(&task.text)));
    }
    text
}
