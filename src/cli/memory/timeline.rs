//! `sidenote memory timeline`: lists the memories created before and after one.

use clap::Args;
use sidenote_base::error::Result;

use super::list;
use crate::cli::{CommandContext, output};

/// List the memories created before and after a memory.
#[derive(Debug, Args)]
pub(super) struct TimelineArgs {
    /// The memory: id, path, title, alias or [[wikilink]].
    name: String,
    /// The maximum number of memories before it, and after it.
    #[arg(long, default_value_t = 5)]
    window: usize,
}

pub(super) fn run(context: &CommandContext, args: &TimelineArgs) -> Result<()> {
    let reply = context.fresh_store()?.memories().timeline(&args.name, args.window)?;
    context.out.reply(&reply, |reply| {
        let mark = |at: usize| if at == reply.anchor { "→" } else { "" }.to_owned();
        let memories = reply.memories.iter().enumerate();
        let rows = memories.map(|(at, memory)| [vec![mark(at)], list::row(memory)].concat());
        output::columns(&rows.collect::<Vec<_>>())
    })
}
