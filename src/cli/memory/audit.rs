//! `sidenote memory audit`: lists the journal events of memories.

use clap::Args;
use sidenote_base::error::Result;

use crate::cli::{CommandContext, output};
use crate::store::{Event, actor_of, tool_of};

/// List the journal events of a memory or of all memories, newest first.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// The memory: id, path, title, alias or [[wikilink]]. Default: all memories.
    name: Option<String>,
    /// The maximum number of events.
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(super) fn run(context: &CommandContext, args: &AuditArgs) -> Result<()> {
    let mut events = context.fresh_store()?.memories().audit(args.name.as_deref())?;
    events.truncate(args.limit);
    context.out.reply(&events, |events| {
        let row = |event: &Event| {
            let by = event.more.get("by").and_then(|by| by.as_str()).unwrap_or("").to_owned();
            let [actor, tool] = [actor_of(event), tool_of(event)].map(Option::unwrap_or_default);
            vec![event.at.local_rfc3339(), event.op.clone(), by, actor, tool]
        };
        output::columns(&events.iter().map(row).collect::<Vec<_>>())
    })
}
