//! `sidenote random`: picks notes at random.

use clap::Args;
use sidenote_base::error::Result;

use super::CommandContext;
use super::format::ListFormat;
use super::list::show_notes;
use super::search::FilterArgs;

/// Pick one or more notes at random.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote random
  sidenote random --tag recipe -n 3
  sidenote open \"$(sidenote random --format '{path}')\"")]
pub(super) struct RandomArgs {
    /// Only notes in this folder or below it.
    #[arg(long)]
    folder: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// The number of notes.
    #[arg(long, short = 'n', default_value_t = 1)]
    limit: usize,
    /// The seed of the random numbers, for reproducible results.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &RandomArgs) -> Result<()> {
    let mut filter = args.filter.filter(context.now())?;
    filter.folder.clone_from(&args.folder);
    let store = context.fresh_store()?;
    if let Some(folder) = &args.folder {
        store.reads().refuse_missing_folder(folder)?;
    }
    let notes = store.reads().random(&filter, args.limit, args.seed)?;
    if notes.is_empty() {
        context.print_unmet_conditions(&store.reads().absent(&filter, None, None)?);
    }
    args.format.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}
