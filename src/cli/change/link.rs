//! `sidenote link` and `sidenote unlink`: link two notes to each other, or remove those links.

use clap::Args;
use sidenote_base::error::Result;

use super::apply;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::{LinkRequest, Operation};

/// Link two notes to each other in their related sections, or remove these links.
#[derive(Debug, Args)]
pub(in crate::cli) struct LinkArgs {
    /// The first note: path, id, title, alias, file name or [[wikilink]].
    a: String,
    /// The second note.
    b: String,
    /// The text shown for the link from the first note to the second.
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn link(context: &CommandContext, args: LinkArgs) -> Result<()> {
    let LinkArgs { a, b, text, dry_run } = args;
    apply(context, &Operation::Link(LinkRequest { a, b, text }), &dry_run)
}

pub(super) fn unlink(context: &CommandContext, args: LinkArgs) -> Result<()> {
    let LinkArgs { a, b, text, dry_run } = args;
    apply(context, &Operation::Unlink(LinkRequest { a, b, text }), &dry_run)
}
