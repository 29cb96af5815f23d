//! `sidenote edit`: opens a note in the user's editor and records the change.

use clap::Args;
use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::note::ParseProblem;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, open, output};
use crate::store::{Edited, InspectReply};

/// Open a note in $VISUAL or $EDITOR and record the change.
///
/// After the editor ends, prints whether the note changed, and the problems in it. `history` lists the change, and `undo` reverts it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote edit \"Start here\"
  EDITOR=\"code --wait\" sidenote edit Plan")]
pub(in crate::cli) struct EditArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// The reply of `edit`: whether the note changed, and everything that the parser finds in it now.
#[derive(Debug, Serialize)]
struct EditReply {
    #[serde(flatten)]
    edited: Edited,
    #[serde(flatten)]
    note: InspectReply,
}

/// Runs the editor on the file of the note itself, not on a copy.
pub(super) fn run(context: &CommandContext, args: &EditArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let (path, before) = store.changes().before_edit(&args.note)?;
    let variable = |name: &str| std::env::var(name).ok().filter(|command| !command.trim().is_empty());
    let editor = variable("VISUAL").or_else(|| variable("EDITOR")).ok_or_else(|| {
        Error::invalid("neither VISUAL nor EDITOR is set")
            .with_hint("set one of them, such as EDITOR=nano sidenote edit NOTE")
    })?;
    let shown_path = output::plain(path.as_str());
    if args.dry_run.is_set() {
        let reply = serde_json::json!({ "path": path, "editor": editor });
        return context
            .out
            .reply(&reply, |_| format!("{} would open {shown_path}\n", output::plain(&editor)));
    }
    open::run_with(&editor, &store.root().join(path.as_str()))?;
    let edited = store.changes().edited(&path, &before)?;
    let reply = EditReply { edited, note: store.reads().inspect(path.as_str())? };
    context.out.reply(&reply, |reply| {
        let outcome = if reply.edited.changed { "changed" } else { "is unchanged" };
        let problem = |problem: &ParseProblem| format!("{shown_path}: {}\n", output::plain(&problem.message));
        let problems: String = reply.note.problems.iter().map(problem).collect();
        format!("{shown_path} {outcome}\n{problems}")
    })
}
