//! `sidenote restore`: moves a file from the trash folder back to its place.

use clap::Args;
use sidenote_base::error::Result;

use super::apply;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::Operation;

/// Restore a file from the trash folder, .trash/.
#[derive(Debug, Args)]
pub(in crate::cli) struct RestoreArgs {
    /// The path of the file inside .trash/.
    note: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: RestoreArgs) -> Result<()> {
    apply(context, &Operation::Restore(args.note), &args.dry_run)
}
