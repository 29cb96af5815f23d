//! `sidenote merge`: appends one note to another and redirects the links.

use clap::Args;
use sidenote_base::error::Result;

use super::apply;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::{MergeRequest, Operation};

/// Merge a note into another.
///
/// The text of the first note is appended to the second, the first note is removed, and links to it are redirected.
#[derive(Debug, Args)]
pub(in crate::cli) struct MergeArgs {
    /// The note to append and remove: path, id, title, alias, file name or [[wikilink]].
    from: String,
    /// The note that receives the text.
    into: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: MergeArgs) -> Result<()> {
    let MergeArgs { from, into, dry_run } = args;
    let request = MergeRequest { from: vec![from], into, ..MergeRequest::default() };
    apply(context, &Operation::Merge(request), &dry_run)
}
