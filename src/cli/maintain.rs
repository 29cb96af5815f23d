//! `sidenote memory maintain` and `sidenote memory cleanup`.

use clap::Args;

use crate::cli::change::{Dry, show_change};
use crate::cli::{Session, output};
use crate::error::Result;
use crate::store::{CleanupReply, MaintainReply, MaintainRequest};

/// Write down which notes came into another tier, shorten the journal's old months, and make room where settings ask
/// for it. Done a short while ago, it does nothing. `watch` and `mcp` do this each six hours.
#[derive(Debug, Args)]
pub(super) struct MaintainArgs {
    /// Also write importance as it is now into the frontmatter of memories, and of notes that say one.
    #[arg(long)]
    write_back: bool,
    /// Although it was done less than six hours ago.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Move the least used memories to the trash where they take more room than they may (memory.max_bytes).
///
/// What is pinned, has a protected type or tag, or was made in this --session stays. `restore` brings a note back.
#[derive(Debug, Args)]
pub(super) struct CleanupArgs {
    /// Although there is room: 15 % of the memories.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry: Dry,
}

pub(super) fn maintain(session: &Session, args: &MaintainArgs) -> Result<()> {
    let request = MaintainRequest {
        write_back: args.write_back,
        force: args.force,
        dry_run: args.dry.is_set(),
        quiet: false,
    };
    session.out.reply(&session.fresh_store()?.maintenance().maintain(request)?, show_maintained)
}

fn show_maintained(reply: &MaintainReply) -> String {
    let mut out = String::new();
    if reply.ran {
        let rows = reply.tiers.iter().map(|change| {
            vec![change.from.to_string(), "→".to_owned(), change.to.to_string(), change.path.clone()]
        });
        out.push_str(&output::columns(&rows.collect::<Vec<_>>()));
        out.push_str(&format!("{} came into another tier\n", output::count(reply.tiers.len(), "note")));
    } else if let Some(last) = reply.last {
        out.push_str(&format!("tiers were looked at {}; --force does it again\n", last.rfc3339()));
    }
    if reply.compacted > 0 {
        out.push_str(&format!(
            "{} of the journal written shorter\n",
            output::count(reply.compacted, "month")
        ));
    }
    if let Some(change) = &reply.change {
        out.push_str(&show_change(change));
    }
    out + &reply.evicted.as_ref().map(show_cleaned).unwrap_or_default()
}

pub(super) fn cleanup(session: &Session, args: &CleanupArgs) -> Result<()> {
    session
        .out
        .reply(&session.fresh_store()?.maintenance().cleanup(args.force, args.dry.is_set())?, show_cleaned)
}

fn show_cleaned(reply: &CleanupReply) -> String {
    let paths: String = reply.evicted.iter().map(|path| format!("{}\n", output::plain(path))).collect();
    format!(
        "{paths}{} to the trash, {}; memories had {} of {}\n{}",
        output::count(reply.evicted_count, "note"),
        output::bytes(reply.freed_bytes),
        output::bytes(reply.bytes),
        output::bytes(reply.max_bytes),
        match reply.operations {
            0 => String::new(),
            count => format!("`sidenote undo {count}` brings them all back\n"),
        }
    )
}
