//! `sidenote recent`: lists the notes that changed last.

use clap::Args;
use sidenote_base::error::Result;

use super::CommandContext;
use super::format::ListFormat;
use super::list::show_notes;
use crate::store::{ListRequest, SortBy};

/// List the most recently changed notes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote recent -n 5
  sidenote recent --format '{updated}\\t{title}'")]
pub(super) struct RecentArgs {
    /// The maximum number of notes.
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &RecentArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let request = ListRequest { sort: SortBy::Updated, limit: Some(args.limit), ..ListRequest::default() };
    let notes = store.reads().list(&request)?.notes;
    args.format.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}
