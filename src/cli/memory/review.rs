//! `sidenote memory review`: the review of a week.

use clap::Args;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::cli::{CommandContext, output};
use crate::store::{FadingMemory, ProposalItem, ReviewReply, UsedMemory, WrittenBy};

/// Review a week: what was written by whom, what was recalled most, what fades, and what waits for you.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote memory review
  sidenote memory review --week 2026-11-16
  sidenote memory review --json")]
pub(in crate::cli) struct ReviewArgs {
    /// A day of the week to review, from Monday to Sunday: a date, or a distance such as 7d. Default: the last seven days.
    #[arg(long, value_name = "DATE")]
    week: Option<String>,
}

pub(super) fn run(context: &CommandContext, args: &ReviewArgs) -> Result<()> {
    let week = args.week.as_deref();
    let week = week.map(|text| Timestamp::parse_bound_at("--week", text, context.now())).transpose()?;
    context.out.reply(&context.fresh_store()?.proposals().review(week)?, show)
}

/// Formats a review.
fn show(reply: &ReviewReply) -> String {
    let mut out = format!("{} to {}\n", reply.from.day(), reply.until.day());
    out.push_str("\nwritten\n");
    let row = |author: &WrittenBy| {
        vec![
            format!("  {}", author.by),
            output::count(author.operations, "operation"),
            format!("{} new", author.created.len()),
            format!("{} changed", author.changed.len()),
            format!("{} removed", author.removed.len()),
        ]
    };
    out.push_str(&rows(reply.written.iter().map(row).collect(), "nothing"));
    out.push_str("\nrecalled most\n");
    let row = |used: &UsedMemory| vec![format!("  {}", output::count(used.uses, "use")), used.path.clone()];
    out.push_str(&rows(reply.recalled.iter().map(row).collect(), "nothing"));
    out.push_str("\nfading\n");
    let row = |fading: &FadingMemory| vec![format!("  {} → {}", fading.from, fading.to), fading.path.clone()];
    out.push_str(&rows(reply.fading.iter().map(row).collect(), "nothing"));
    if reply.faded > reply.fading.len() {
        out.push_str(&format!("  and {} more\n", reply.faded - reply.fading.len()));
    }
    out.push_str("\nwaiting for you\n");
    let row = |item: &ProposalItem| {
        let state = if item.is_outdated() { "outdated" } else { "" };
        vec![
            format!("  {}", item.id),
            item.kind.name().to_owned(),
            state.to_owned(),
            output::plain(&item.reason),
        ]
    };
    out.push_str(&rows(reply.proposals.iter().map(row).collect(), "no proposal"));
    if reply.waiting > reply.proposals.len() {
        out.push_str(&format!("  and {} more\n", reply.waiting - reply.proposals.len()));
    }
    out
}

fn rows(rows: Vec<Vec<String>>, nothing: &str) -> String {
    if rows.is_empty() { format!("  {nothing}\n") } else { output::columns(&rows) }
}
