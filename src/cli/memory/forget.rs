//! `sidenote memory forget`: takes a memory out of search and recall.

use clap::Args;
use sidenote_base::error::Result;
use sidenote_catalog::Inactive;

use super::print_change;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;

/// Exclude a memory from search and recall.
///
/// `restore` brings it back.
#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// The memory by any of its names, or a query whose first hit it is.
    name: String,
    /// Move the note to the trash folder instead; requires --confirm.
    #[arg(long, requires = "confirm")]
    hard: bool,
    /// Confirm --hard.
    #[arg(long)]
    confirm: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &ForgetArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let include = Inactive { archived: true, forgotten: args.hard };
    let (memory, by_query) = store.recalls().find_by_name_or_query(&args.name, include)?;
    let reply = store.memory_writes().forget(&memory.path, args.hard, args.dry_run.is_set())?;
    let name = format!("{} ({})", memory.path, memory.title);
    if by_query {
        context.out.message(&format!("note: the query matches {name}"));
    }
    if reply.applied {
        let outcome = if args.hard { "moved to the trash" } else { "forgotten" };
        context.out.message(&format!("{name} is {outcome}; `sidenote undo` brings it back"));
    }
    print_change(context, &reply)
}
