//! `sidenote delete`: moves a note or attachment to the trash folder of the vault, or removes it permanently.

use clap::{Args, ValueEnum};
use sidenote_base::error::Result;

use super::apply;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::{DanglingLinks, DeleteRequest, Operation};

/// Move a note or attachment to the trash folder, .trash/.
#[derive(Debug, Args)]
pub(in crate::cli) struct DeleteArgs {
    /// The note by any name, or the path of a file.
    note: String,
    /// Remove the file permanently; requires --yes.
    #[arg(long, requires = "yes")]
    permanent: bool,
    /// Confirm --permanent.
    #[arg(long)]
    yes: bool,
    /// What to do with links to the file.
    #[arg(long, value_enum, default_value_t = DanglingLinksArg::Leave)]
    links: DanglingLinksArg,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// The values of `--links`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DanglingLinksArg {
    /// Keep the links, which are broken then.
    Leave,
    /// Replace each link by its text.
    Plain,
}

pub(super) fn run(context: &CommandContext, args: DeleteArgs) -> Result<()> {
    let links = match args.links {
        DanglingLinksArg::Leave => DanglingLinks::Leave,
        DanglingLinksArg::Plain => DanglingLinks::Plain,
    };
    let permanent = args.permanent && args.yes;
    apply(context, &Operation::Delete(DeleteRequest { note: args.note, permanent, links }), &args.dry_run)
}
