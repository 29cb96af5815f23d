//! `sidenote undo` and `sidenote redo`: revert operations, and apply the reverted ones again.

use clap::Args;
use sidenote_base::error::Result;

use super::report;
use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};
use crate::store::{ChangeReply, UndoRequest};

/// Undo the last operations, one operation by its id, or all operations of a session.
///
/// What an operation wrote is removed even if the note was edited by another program since. If the two changes cannot
/// be separated, nothing is written, and the notes concerned are named.
#[derive(Debug, Args)]
pub(in crate::cli) struct UndoArgs {
    /// The number of operations to undo, or the id of one as `history` prints it (at least its first 8 characters).
    #[arg(default_value = "1", value_name = "N|ID", conflicts_with = "session")]
    which: String,
    /// Undo all operations of this session, and no others. `history --json` names the session of each.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Skip operations that cannot be undone, and name them.
    #[arg(long)]
    skip: bool,
    /// Do not change this file; may be repeated.
    #[arg(long, value_name = "FILE")]
    keep: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Redo what was undone last.
#[derive(Debug, Args)]
pub(in crate::cli) struct RedoArgs {
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn undo(context: &CommandContext, args: UndoArgs) -> Result<()> {
    /// A number with more digits than this is an id.
    const MAX_COUNT_DIGITS: usize = 5;
    let count = args.which.parse().ok().filter(|count| *count > 0 && args.which.len() <= MAX_COUNT_DIGITS);
    let id = if count.is_none() { Some(args.which) } else { None };
    let request = UndoRequest {
        id,
        count: count.unwrap_or(1),
        session: args.session,
        skip: args.skip,
        keep: args.keep,
        dry_run: args.dry_run.is_set(),
    };
    let replies = context.store()?.changes().undo_by(&request)?;
    context.out.reply(&replies, |replies| replies.iter().map(|reply| show(reply, "undone")).collect())?;
    replies.iter().for_each(|reply| report::print_remarks(context, reply));
    Ok(())
}

pub(super) fn redo(context: &CommandContext, args: &RedoArgs) -> Result<()> {
    let reply = context.store()?.changes().redo(args.dry_run.is_set())?;
    context.out.reply(&reply, |reply| show(reply, "done again"))?;
    report::print_remarks(context, &reply);
    Ok(())
}

/// Shows what an undo or redo changed, and the operation that it took back or did again.
fn show(reply: &ChangeReply, verb: &str) -> String {
    let reverted = reply.reverted.as_deref().filter(|_| reply.applied).map(output::plain);
    let line = reverted.map(|reverted| format!("{verb}: {reverted}\n")).unwrap_or_default();
    line + &report::show_change(reply)
}
