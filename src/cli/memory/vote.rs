//! `sidenote memory vote`: records whether a memory was useful.

use clap::{Args, ValueEnum};
use sidenote_base::error::Result;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};

/// Record whether a memory was useful.
#[derive(Debug, Args)]
pub(super) struct VoteArgs {
    /// The memory: id, path, title, alias or [[wikilink]].
    name: String,
    /// Whether it was useful.
    #[arg(value_enum)]
    vote: VoteArg,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VoteArg {
    /// The memory was useful.
    Up,
    /// The memory was not useful.
    Down,
}

pub(super) fn run(context: &CommandContext, args: &VoteArgs) -> Result<()> {
    let store = context.fresh_store()?;
    if args.dry_run.is_set() {
        let memory = store.memories().memory(&args.name)?;
        return context.out.reply(&memory, |memory| {
            let direction = if args.vote == VoteArg::Up { "up" } else { "down" };
            let (path, usefulness) = (output::plain(&memory.path), memory.state.usefulness);
            format!("{path} would be voted {direction}; its usefulness is {usefulness} now\n")
        });
    }
    let memory = store.memories().vote(&args.name, args.vote == VoteArg::Up)?;
    context.out.reply(&memory, |memory| {
        format!("{}: usefulness {}\n", output::plain(&memory.path), memory.state.usefulness)
    })
}
