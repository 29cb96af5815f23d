//! `sidenote handoff`: stores and shows the state of a project.

use clap::{Args, Subcommand};
use sidenote_base::error::Result;

use crate::cli::args::{DryRunArgs, text_or_stdin};
use crate::cli::change::show_change;
use crate::cli::{CommandContext, output};
use crate::store::{Handoff, HandoffRequest};

/// Store and show handoffs, which describe the state of a project.
///
/// A handoff is for the person or agent who continues the work. Each project has one.
#[derive(Debug, Args)]
pub(super) struct HandoffArgs {
    #[command(subcommand)]
    command: HandoffCommand,
}

#[derive(Debug, Subcommand)]
enum HandoffCommand {
    Store(HandoffStoreArgs),
    Show(HandoffShowArgs),
}

/// Store a handoff, which replaces the previous one of its project.
///
/// `sidenote undo` restores the previous one.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sidenote handoff store --project parser --completed \"tables\" \\
    --summary \"Tables parse, footnotes do not\" --next \"footnotes\"")]
struct HandoffStoreArgs {
    /// The name of the project.
    #[arg(long)]
    project: String,
    /// A summary in a few sentences; - reads standard input.
    #[arg(long, allow_hyphen_values = true)]
    summary: String,
    /// The branch of the repository.
    #[arg(long)]
    branch: Option<String>,
    /// Something completed; may be repeated.
    #[arg(long, value_name = "TEXT")]
    completed: Vec<String>,
    /// Something in progress or waiting; may be repeated.
    #[arg(long, value_name = "TEXT")]
    in_progress: Vec<String>,
    /// A decision; may be repeated.
    #[arg(long, value_name = "TEXT")]
    decision: Vec<String>,
    /// A next step; may be repeated.
    #[arg(long, value_name = "TEXT")]
    next: Vec<String>,
    /// A related memory, by any of its names; may be repeated.
    #[arg(long, value_name = "NAME")]
    memory: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Print the latest handoff and the memories that it names.
#[derive(Debug, Args)]
struct HandoffShowArgs {
    /// Print the handoff of this project. Default: the latest of all projects.
    #[arg(long)]
    project: Option<String>,
}

impl HandoffArgs {
    /// Returns whether the command stores a handoff.
    pub(super) fn writes(&self) -> bool {
        matches!(self.command, HandoffCommand::Store(_))
    }
}

pub(super) fn run(context: &CommandContext, args: HandoffArgs) -> Result<()> {
    match args.command {
        HandoffCommand::Store(args) => {
            let handoff = Handoff {
                project: args.project,
                branch: args.branch,
                summary: text_or_stdin(&args.summary)?,
                completed: args.completed,
                in_progress: args.in_progress,
                decisions: args.decision,
                next: args.next,
                memories: args.memory,
            };
            let request = HandoffRequest { handoff, ..HandoffRequest::default() };
            let reply = context.fresh_store()?.handoffs().store_handoff(&request, args.dry_run.is_set())?;
            context.out.reply(&reply, |reply| show_change(&reply.change))
        }
        HandoffCommand::Show(args) => {
            let reply = context.fresh_store()?.handoffs().handoff(args.project.as_deref())?;
            context.out.reply(&reply, |reply| output::plain_lines(&reply.with_memories()))
        }
    }
}
