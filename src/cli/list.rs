//! `sidenote list`, `recent`, `random`, `tags` and `properties`: lists of notes, tags and properties.

use clap::{Args, ValueEnum};

use super::search::FilterArgs;
use super::{CommandContext, output};
use crate::cli::format::ListFormat;
use crate::error::{Error, Result};
use crate::store::{ListRequest, NoteItem, PropertyItem, SortBy, TagItem};

/// List notes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote list --folder Projects --sort updated
  sidenote list --tag recipe --property vegetarian=true
  sidenote list --updated-after yesterday --format '{path}\\t{title}'
  sidenote list --tag draft -0 | xargs -0 wc -w")]
pub(super) struct ListArgs {
    /// Only notes below this folder.
    #[arg(long)]
    folder: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only notes with this property, or with this value of it.
    #[arg(long, value_name = "KEY[=VALUE]")]
    property: Option<String>,
    /// The order.
    #[arg(long, value_enum, default_value = "path")]
    sort: SortArg,
    /// At most this many notes.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    shape: ListFormat,
}

/// List the notes that changed last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote recent -n 5
  sidenote recent --format '{updated}\\t{title}'")]
pub(super) struct RecentArgs {
    /// At most this many notes.
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    shape: ListFormat,
}

/// Pick notes at random: one, or as many as asked for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote random
  sidenote random --tag recipe -n 3
  sidenote open \"$(sidenote random --format '{path}')\"")]
pub(super) struct RandomArgs {
    /// Only notes below this folder.
    #[arg(long)]
    folder: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// How many notes.
    #[arg(long, short = 'n', default_value_t = 1)]
    limit: usize,
    /// Decides what chance does, for equal answers.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    shape: ListFormat,
}

/// List every tag with the number of notes that carry it.
#[derive(Debug, Args)]
pub(super) struct TagsArgs {
    #[command(flatten)]
    shape: ListFormat,
}

/// List every property with its type and the number of notes that have it.
#[derive(Debug, Args)]
pub(super) struct PropertiesArgs {
    #[command(flatten)]
    shape: ListFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SortArg {
    /// Newest first.
    Created,
    /// Last changed first.
    Updated,
    /// By title.
    Title,
    /// By path.
    Path,
}

pub(super) fn run(context: &CommandContext, args: &ListArgs) -> Result<()> {
    let mut filter = args.filter.filter(context.now())?;
    filter.folder.clone_from(&args.folder);
    let property = args.property.as_deref().map(property).transpose()?;
    let sort = match args.sort {
        SortArg::Created => SortBy::Created,
        SortArg::Updated => SortBy::Updated,
        SortArg::Title => SortBy::Title,
        SortArg::Path => SortBy::Path,
    };
    let store = context.fresh_store()?;
    if let Some(folder) = &args.folder {
        store.reads().refuse_missing_folder(folder)?;
    }
    let request = ListRequest { filter, property, sort, skip: 0, limit: args.limit };
    let notes = store.reads().list(&request)?.notes;
    if notes.is_empty() {
        let name = request.property.as_ref().map(|(name, _)| name.as_str());
        context.print_unmet_conditions(&store.reads().absent(&request.filter, name, None)?);
    }
    args.shape.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}

/// Reads `KEY` or `KEY=VALUE`.
fn property(text: &str) -> Result<(String, Option<String>)> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let (name, compared) = match name.find(['<', '>', '!']) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    if !compared.is_empty() || name.trim().is_empty() {
        let name = if name.trim().is_empty() { "rating" } else { name.trim() };
        return Err(Error::invalid(format!("--property {text:?} is neither KEY nor KEY=VALUE"))
            .with_hint(format!("`sidenote search '[{name}:>4]'` compares values")));
    }
    Ok((name.to_owned(), value.map(str::to_owned)))
}

pub(super) fn recent(context: &CommandContext, args: &RecentArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let request = ListRequest { sort: SortBy::Updated, limit: Some(args.limit), ..ListRequest::default() };
    args.shape.reply(
        context.out,
        &store.reads().list(&request)?.notes,
        |notes| notes,
        |notes| show_notes(notes),
    )
}

pub(super) fn random(context: &CommandContext, args: &RandomArgs) -> Result<()> {
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
    args.shape.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}

pub(super) fn show_notes(notes: &[NoteItem]) -> String {
    let date = |note: &NoteItem| note.updated.rfc3339().chars().take(10).collect();
    let tags = |note: &NoteItem| note.tags.iter().map(|tag| format!("#{tag}")).collect::<Vec<_>>().join(" ");
    let rows: Vec<Vec<String>> = notes
        .iter()
        .map(|note| vec![date(note), note.path.clone(), note.title.clone(), tags(note)])
        .collect();
    output::columns(&rows)
}

pub(super) fn tags(context: &CommandContext, args: &TagsArgs) -> Result<()> {
    let tags = context.fresh_store()?.reads().tags()?;
    let show = |tags: &Vec<TagItem>| {
        let rows = tags.iter().map(|tag| vec![format!("#{}", tag.tag), tag.notes.to_string()]);
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.shape.reply(context.out, &tags, |tags| tags, show)
}

pub(super) fn properties(context: &CommandContext, args: &PropertiesArgs) -> Result<()> {
    let properties = context.fresh_store()?.reads().properties()?;
    let show = |properties: &Vec<PropertyItem>| {
        let rows = properties.iter().map(|p| vec![p.property.clone(), p.kind.clone(), p.notes.to_string()]);
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.shape.reply(context.out, &properties, |properties| properties, show)
}
