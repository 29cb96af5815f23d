//! `sidenote memory list`, `by-type`, `by-tags` and `by-date`: lists of memories.

use clap::{Args, ValueEnum};
use sidenote_base::error::Result;
use sidenote_catalog::Filter;

use super::{parse_tier, stats};
use crate::cli::search::FilterArgs;
use crate::cli::{CommandContext, output};
use crate::store::{Memory, MemoryListRequest, MemorySort, Searches};

/// List memories, or count them by tier.
///
/// Without options, the number of memories of each tier is printed.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Show only memories of this tier: hot, warm, cold or archive.
    #[arg(long)]
    tier: Option<String>,
    /// Show only forgotten memories.
    #[arg(long)]
    forgotten: bool,
    /// Show only pinned memories.
    #[arg(long)]
    pinned: bool,
    /// The order. Default: created.
    #[arg(long, value_enum)]
    sort: Option<SortArg>,
    /// The maximum number of memories.
    #[arg(long)]
    limit: Option<usize>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The values of `--sort`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SortArg {
    /// Most important first.
    Importance,
    /// Newest first.
    Created,
    /// Most recently used first.
    Accessed,
}

/// List the memories of a type, most important first.
#[derive(Debug, Args)]
pub(super) struct ByTypeArgs {
    /// The type.
    kind: String,
    /// The maximum number of memories.
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// List the memories that have at least one of the tags, most important first.
#[derive(Debug, Args)]
pub(super) struct ByTagsArgs {
    /// The tags, separated by commas.
    #[arg(value_delimiter = ',', required = true)]
    tags: Vec<String>,
    /// The maximum number of memories.
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// List the memories created in a period, newest first.
#[derive(Debug, Args)]
pub(super) struct ByDateArgs {
    /// The first date of the period, such as 2026-11-21, yesterday or 7d.
    from: String,
    /// The date before which the period ends. Default: now.
    to: Option<String>,
    /// The maximum number of memories.
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(super) fn run(context: &CommandContext, args: &ListArgs) -> Result<()> {
    let tier = args.tier.as_deref().map(parse_tier).transpose()?;
    let filter = args.filter.filter(context.now())?;
    let has_no_options = tier.is_none()
        && !args.forgotten
        && !args.pinned
        && filter.is_unrestricted()
        && args.sort.is_none()
        && args.limit.is_none();
    if has_no_options && !context.out.is_json() {
        let reply = context.fresh_store()?.memories().memory_stats()?;
        return context.out.print(&stats::show_tiers(&reply));
    }
    let sort = match args.sort {
        None | Some(SortArg::Created) => MemorySort::Created,
        Some(SortArg::Importance) => MemorySort::Importance,
        Some(SortArg::Accessed) => MemorySort::Accessed,
    };
    let request = MemoryListRequest {
        filter,
        tier,
        any_tag: Vec::new(),
        forgotten: args.forgotten,
        pinned: args.pinned,
        sort,
        limit: args.limit,
    };
    print_list(context, &request)
}

pub(super) fn by_type(context: &CommandContext, args: ByTypeArgs) -> Result<()> {
    let filter = Filter { note_type: Some(args.kind), ..Filter::default() };
    print_list(context, &MemoryListRequest { filter, ..most_important(args.limit) })
}

pub(super) fn by_tags(context: &CommandContext, args: ByTagsArgs) -> Result<()> {
    print_list(context, &MemoryListRequest { any_tag: args.tags, ..most_important(args.limit) })
}

pub(super) fn by_date(context: &CommandContext, args: &ByDateArgs) -> Result<()> {
    let filter = Filter {
        created_after: Searches::date_bound("FROM", Some(&args.from), context.now())?,
        created_before: Searches::date_bound("TO", args.to.as_deref(), context.now())?,
        ..Filter::default()
    };
    let limit = Some(args.limit);
    print_list(context, &MemoryListRequest { filter, limit, ..MemoryListRequest::default() })
}

fn most_important(limit: usize) -> MemoryListRequest {
    MemoryListRequest { sort: MemorySort::Importance, limit: Some(limit), ..MemoryListRequest::default() }
}

/// Prints the memories that a request selects. If there are none, prints which conditions no memory meets.
fn print_list(context: &CommandContext, request: &MemoryListRequest) -> Result<()> {
    let store = context.fresh_store()?;
    let memories = store.memories().list(request)?;
    if memories.is_empty() {
        context.print_unmet_conditions(&store.reads().absent(&request.filter, None, None)?);
        for tag in &request.any_tag {
            let filter = Filter { tags: vec![tag.clone()], ..Filter::default() };
            context.print_unmet_conditions(&store.reads().absent(&filter, None, None)?);
        }
    }
    context.out.reply(&memories, |memories| output::columns(&memories.iter().map(row).collect::<Vec<_>>()))
}

/// Formats a memory as the cells of a row.
pub(super) fn row(memory: &Memory) -> Vec<String> {
    let state = &memory.state;
    let marks = [(state.pinned, "[PINNED]"), (state.forgotten, "[FORGOTTEN]")];
    let marks: Vec<&str> = marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| mark).collect();
    vec![
        memory.created.day(),
        state.tier.to_string(),
        format!("{:.1}", state.importance),
        format!("{}×", state.uses),
        memory.kind.clone(),
        memory.path.clone(),
        marks.join(" "),
    ]
}
