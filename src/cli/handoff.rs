//! `sidenote handoff`: stores and shows where a piece of work stands.

use clap::{Args, Subcommand};

use crate::cli::args::{DryRunArgs, text_or_stdin};
use crate::cli::change::show_change;
use crate::cli::{CommandContext, output};
use crate::error::Result;
use crate::store::{Handoff, HandoffRequest};

/// Say where a piece of work stands, for whoever takes it up; one note for each project.
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

/// Keep a handoff in place of the former one of its project; `sidenote undo` brings that one back.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sidenote handoff store --project parser --completed \"tables\" \\
    --summary \"Tables parse, footnotes do not\" --next \"footnotes\"")]
struct HandoffStoreArgs {
    /// What is worked on.
    #[arg(long)]
    project: String,
    /// In a few sentences; - reads standard input.
    #[arg(long, allow_hyphen_values = true)]
    summary: String,
    /// The branch.
    #[arg(long)]
    branch: Option<String>,
    /// Something done; may be repeated, as those below.
    #[arg(long, value_name = "TEXT")]
    completed: Vec<String>,
    /// Something begun, or waiting.
    #[arg(long, value_name = "TEXT")]
    in_progress: Vec<String>,
    /// Something decided.
    #[arg(long, value_name = "TEXT")]
    decision: Vec<String>,
    /// Something to be done next.
    #[arg(long, value_name = "TEXT")]
    next: Vec<String>,
    /// A memory that belongs to it, by any of its names.
    #[arg(long, value_name = "NAME")]
    memory: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Print the newest handoff, with the memories that it names.
#[derive(Debug, Args)]
struct HandoffShowArgs {
    /// That of this project.
    #[arg(long)]
    project: Option<String>,
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
