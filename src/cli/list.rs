//! `sidenote list`: lists notes that meet conditions.

use clap::{Args, ValueEnum};
use sidenote_base::error::Result;

use super::args::{AsOfArgs, AtArgs};
use super::search::FilterArgs;
use super::{CommandContext, output};
use crate::cli::format::ListFormat;
use crate::store::{ListRequest, NoteItem, PropertyCondition, SortBy};

/// List notes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote list --folder Projects --sort updated
  sidenote list --tag recipe --property vegetarian=true
  sidenote list --updated-after yesterday --format '{path}\\t{title}'
  sidenote list --tag draft -0 | xargs -0 wc -w
  sidenote list --folder Projects --at v1.0")]
pub(super) struct ListArgs {
    /// Only notes in this folder or below it.
    #[arg(long)]
    folder: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only notes that have this property, or this value of it.
    #[arg(long, value_name = "KEY[=VALUE]")]
    property: Option<String>,
    /// The order.
    #[arg(long, value_enum, default_value = "path")]
    sort: SortArg,
    /// The maximum number of notes.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    as_of: AsOfArgs,
    #[command(flatten)]
    format: ListFormat,
}

/// The values of `--sort`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SortArg {
    /// Newest first.
    Created,
    /// Most recently changed first.
    Updated,
    /// By title.
    Title,
    /// By path.
    Path,
}

pub(super) fn run(context: &CommandContext, args: &ListArgs) -> Result<()> {
    let mut filter = args.filter.filter(context.now())?;
    filter.folder.clone_from(&args.folder);
    let property = args.property.as_deref().map(PropertyCondition::parse).transpose()?;
    let sort = match args.sort {
        SortArg::Created => SortBy::Created,
        SortArg::Updated => SortBy::Updated,
        SortArg::Title => SortBy::Title,
        SortArg::Path => SortBy::Path,
    };
    let store = context.fresh_store_at(&args.at)?;
    if let Some(folder) = &args.folder {
        store.reads().refuse_missing_folder(folder)?;
    }
    let as_of = args.as_of.instant(context.now())?;
    let request = ListRequest { filter, as_of, property, sort, skip: 0, limit: args.limit };
    let notes = store.reads().list(&request)?.notes;
    if notes.is_empty() {
        context.print_unmet_conditions(&store.reads().absent(
            &request.filter,
            request.property.as_ref(),
            None,
        )?);
    }
    args.format.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}

/// Formats notes as rows: date of the last change, path, title and tags.
pub(super) fn show_notes(notes: &[NoteItem]) -> String {
    let date = |note: &NoteItem| note.updated.day();
    let tags = |note: &NoteItem| note.tags.iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" ");
    let rows: Vec<Vec<String>> = notes
        .iter()
        .map(|note| vec![date(note), note.path.clone(), note.title.clone(), tags(note)])
        .collect();
    output::columns(&rows)
}
