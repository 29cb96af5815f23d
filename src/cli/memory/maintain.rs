//! `sidenote memory maintain`: recomputes tiers, compacts the journal and evicts memories.

use clap::Args;
use sidenote_base::error::Result;

use super::cleanup::show_cleanup;
use crate::cli::args::DryRunArgs;
use crate::cli::change::show_change;
use crate::cli::{CommandContext, output};
use crate::store::{MaintainReply, MaintainRequest};

/// Update tiers, compact the journal and evict memories.
///
/// Changes of tier are recorded in the journal, whose old months are compacted. Memories are evicted if the settings ask
/// for it. `watch` and `mcp` do this every six hours. If it was done less than six hours ago, the command does nothing.
#[derive(Debug, Args)]
pub(in crate::cli) struct MaintainArgs {
    /// Also write the current importance into the frontmatter of memories, and of notes that have an importance.
    #[arg(long)]
    write_back: bool,
    /// Run even if maintenance was done less than six hours ago.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(in crate::cli) fn run(context: &CommandContext, args: &MaintainArgs) -> Result<()> {
    let request = MaintainRequest {
        write_back: args.write_back,
        force: args.force,
        dry_run: args.dry_run.is_set(),
        quiet: false,
    };
    context.out.reply(&context.fresh_store()?.maintenance().maintain(request)?, show)
}

fn show(reply: &MaintainReply) -> String {
    let mut out = String::new();
    if reply.ran {
        let rows = reply.tiers.iter().map(|change| {
            vec![change.from.to_string(), "→".to_owned(), change.to.to_string(), change.path.clone()]
        });
        out.push_str(&output::columns(&rows.collect::<Vec<_>>()));
        out.push_str(&format!("{} changed tier\n", output::count(reply.tiers.len(), "note")));
    } else if let Some(last) = reply.last {
        out.push_str(&format!("maintenance last ran {}; --force runs it again\n", last.local_rfc3339()));
    }
    if reply.compacted > 0 {
        out.push_str(&format!("{} of the journal compacted\n", output::count(reply.compacted, "month")));
    }
    if let Some(change) = &reply.change {
        out.push_str(&show_change(change));
    }
    out + &reply.evicted.as_ref().map(show_cleanup).unwrap_or_default()
}
