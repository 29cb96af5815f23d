//! `sidenote memory cleanup`: evicts the least used memories.

use clap::Args;
use sidenote_base::error::Result;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};
use crate::store::CleanupReply;

/// Evict the least used memories if memories exceed their limit.
///
/// The limit is the setting memory.max_bytes. Evicted memories are moved to the trash folder. Pinned memories, memories with a protected type or tag, and memories made in this --session stay. `restore` brings a
/// note back.
#[derive(Debug, Args)]
pub(in crate::cli) struct CleanupArgs {
    /// Evict 15 % of the memories even if they do not exceed the limit.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(in crate::cli) fn run(context: &CommandContext, args: &CleanupArgs) -> Result<()> {
    let store = context.fresh_store()?;
    context.out.reply(&store.maintenance().cleanup(args.force, args.dry_run.is_set())?, show_cleanup)
}

/// Formats which memories were evicted, and how to bring them back.
pub(super) fn show_cleanup(reply: &CleanupReply) -> String {
    let paths: String = reply.evicted.iter().map(|path| format!("{}\n", output::plain(path))).collect();
    format!(
        "{paths}{} to the trash, {}; memories had {} of {}\n{}",
        output::count(reply.evicted_count, "note"),
        output::bytes(reply.freed_bytes),
        output::bytes(reply.bytes),
        output::bytes(reply.max_bytes),
        match reply.operations {
            0 => String::new(),
            count => format!("`sidenote undo {count}` brings them all back\n"),
        }
    )
}
