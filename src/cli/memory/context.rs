//! `sidenote memory set-context` and `sidenote memory clear-context`: the work context, which precedes every recall.

use clap::Args;
use sidenote_base::error::Result;

use crate::cli::CommandContext;
use crate::cli::args::{DryRunArgs, text_or_stdin};

/// Set the work context, which precedes every recall.
///
/// The work context is a sentence about the current work.
#[derive(Debug, Args)]
pub(super) struct SetContextArgs {
    /// The sentence; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Clear the context after this many hours. Default: never.
    #[arg(long, value_name = "HOURS")]
    ttl: Option<f64>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn set(context: &CommandContext, args: &SetContextArgs) -> Result<()> {
    let (store, text) = (context.store()?, text_or_stdin(&args.text)?);
    let (work_context, verb) = if args.dry_run.is_set() {
        (store.memories().plan_context(&text, args.ttl)?, "would be set")
    } else {
        (store.memories().set_context(&text, args.ttl)?, "set")
    };
    context.out.reply(&work_context, |work_context| {
        work_context.expires_at.map_or_else(
            || format!("{verb} until clear-context\n"),
            |until| format!("{verb} until {}\n", until.local_rfc3339()),
        )
    })
}

pub(super) fn clear(context: &CommandContext, dry_run: &DryRunArgs) -> Result<()> {
    let store = context.store()?;
    if dry_run.is_set() {
        let is_set = store.memories().context()?.is_some();
        let reply = serde_json::json!({ "cleared": false, "would_clear": is_set });
        let text = if is_set { "would be cleared\n" } else { "there is no context\n" };
        return context.out.reply(&reply, |_| text.to_owned());
    }
    let cleared = store.memories().clear_context()?;
    let reply = serde_json::json!({ "cleared": cleared });
    let text = if cleared { "cleared\n" } else { "there was no context\n" };
    context.out.reply(&reply, |_| text.to_owned())
}
