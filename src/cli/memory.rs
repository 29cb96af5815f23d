//! `sidenote memory`: the commands on memories, one file for each command or family, and their dispatch.

mod audit;
pub(super) mod cleanup;
mod consolidate;
mod context;
mod explain;
pub(super) mod export;
mod forget;
pub(super) mod import;
mod list;
pub(super) mod maintain;
mod pin;
mod recall;
mod restore;
mod review;
mod save;
mod search;
mod stats;
mod tier;
mod timeline;
mod vote;

use clap::{Args, Subcommand};
use sidenote_base::error::{Error, Result};

use super::CommandContext;
use super::args::DryRunArgs;
use super::change::show_change;
use crate::store::{ChangeReply, Tier};

/// Save, search, recall and forget memories.
///
/// A memory is a note that gains weight when it is used and loses weight with age.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote memory save \"We chose plain files\" --type decision --tags design
  sidenote memory search \"storage\" --intent fact_check
  sidenote memory recall \"how do we store notes?\" --budget 500
  sidenote memory explain \"Plain files\" --query storage")]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    Save(save::SaveArgs),
    Search(search::SearchArgs),
    List(list::ListArgs),
    /// Show totals: tiers, types, uses, storage, context, model.
    Stats,
    Forget(forget::ForgetArgs),
    /// Restore a memory that was forgotten, archived or cleaned up.
    Restore(MemoryNameArgs),
    /// Pin a memory, so that it does not fade and is not evicted.
    Pin(MemoryNameArgs),
    /// Unpin a memory.
    Unpin(MemoryNameArgs),
    Vote(vote::VoteArgs),
    Tier(tier::TierArgs),
    Explain(explain::ExplainArgs),
    SetContext(context::SetContextArgs),
    /// Clear the context that set-context set.
    ClearContext(DryRunArgs),
    Recall(recall::RecallArgs),
    Timeline(timeline::TimelineArgs),
    #[command(hide = true)]
    ByType(list::ByTypeArgs),
    #[command(hide = true)]
    ByTags(list::ByTagsArgs),
    #[command(hide = true)]
    ByDate(list::ByDateArgs),
    Audit(audit::AuditArgs),
    Maintain(maintain::MaintainArgs),
    Cleanup(cleanup::CleanupArgs),
    Consolidate(consolidate::ConsolidateArgs),
    Review(review::ReviewArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
}

/// The arguments of a command on one memory.
#[derive(Debug, Args)]
struct MemoryNameArgs {
    /// The memory: id, path, title, alias or [[wikilink]].
    name: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

impl MemoryArgs {
    /// Returns whether the command changes memories or what is recorded of them.
    pub(super) fn writes(&self) -> bool {
        use MemoryCommand::{
            Audit, ByDate, ByTags, ByType, Explain, Export, List, Recall, Review, Search, Stats, Timeline,
        };
        !matches!(
            self.command,
            Search(_)
                | List(_)
                | Stats
                | Explain(_)
                | Recall(_)
                | Timeline(_)
                | ByType(_)
                | ByTags(_)
                | ByDate(_)
                | Audit(_)
                | Export(_)
                | Review(_)
        )
    }
}

pub(super) fn run(context: &CommandContext, args: MemoryArgs) -> Result<()> {
    match args.command {
        MemoryCommand::Save(args) => save::run(context, &args),
        MemoryCommand::Search(args) => search::run(context, &args),
        MemoryCommand::List(args) => list::run(context, &args),
        MemoryCommand::Stats => stats::run(context),
        MemoryCommand::Forget(args) => forget::run(context, &args),
        MemoryCommand::Restore(args) => restore::run(context, &args),
        MemoryCommand::Pin(args) => pin::pin(context, &args),
        MemoryCommand::Unpin(args) => pin::unpin(context, &args),
        MemoryCommand::Vote(args) => vote::run(context, &args),
        MemoryCommand::Tier(args) => tier::run(context, &args),
        MemoryCommand::Explain(args) => explain::run(context, &args),
        MemoryCommand::SetContext(args) => context::set(context, &args),
        MemoryCommand::ClearContext(dry_run) => context::clear(context, &dry_run),
        MemoryCommand::Recall(args) => recall::run(context, &args),
        MemoryCommand::Timeline(args) => timeline::run(context, &args),
        MemoryCommand::ByType(args) => list::by_type(context, args),
        MemoryCommand::ByTags(args) => list::by_tags(context, args),
        MemoryCommand::ByDate(args) => list::by_date(context, &args),
        MemoryCommand::Audit(args) => audit::run(context, &args),
        MemoryCommand::Maintain(args) => maintain::run(context, &args),
        MemoryCommand::Cleanup(args) => cleanup::run(context, &args),
        MemoryCommand::Consolidate(args) => consolidate::run(context, args),
        MemoryCommand::Review(args) => review::run(context, &args),
        MemoryCommand::Export(args) => export::run(context, &args),
        MemoryCommand::Import(args) => import::run(context, &args),
    }
}

/// Prints the reply of a command that changed a memory.
fn print_change(context: &CommandContext, reply: &ChangeReply) -> Result<()> {
    context.out.reply(reply, show_change)
}

/// Parses the name of a tier.
///
/// # Errors
/// `Invalid` if there is no such tier.
fn parse_tier(name: &str) -> Result<Tier> {
    Tier::parse(name).ok_or_else(|| {
        Error::invalid(format!("{name:?} is not a tier")).with_hint("use hot, warm, cold or archive")
    })
}
