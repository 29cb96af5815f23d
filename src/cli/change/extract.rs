//! `sidenote extract`: moves a section of a note into a note of its own.

use clap::Args;
use sidenote_base::error::Result;

use super::apply;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::{ExtractRequest, Operation};

/// Move a section into a new note, and leave a link in its place.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExtractArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The heading of the section.
    #[arg(long, value_name = "HEADING")]
    section: String,
    /// The title of the new note.
    #[arg(long, value_name = "TITLE")]
    to: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: ExtractArgs) -> Result<()> {
    let request = ExtractRequest { note: args.note, section: args.section, title: args.to };
    apply(context, &Operation::Extract(request), &args.dry_run)
}
