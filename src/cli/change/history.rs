//! `sidenote history`: lists the operations on one note or on all.

use clap::Args;

use crate::cli::{CommandContext, output};
use crate::error::Result;
use crate::store::Event;

/// List the operations on a note or on all notes, newest first.
#[derive(Debug, Args)]
pub(in crate::cli) struct HistoryArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]]. Default: all notes.
    note: Option<String>,
    /// The maximum number of operations.
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: usize,
}

pub(super) fn run(context: &CommandContext, args: &HistoryArgs) -> Result<()> {
    let events = context.store()?.changes().history_of(args.note.as_deref(), args.limit)?;
    context.out.reply(&events, |events: &Vec<Event>| {
        let rows = events.iter().map(|event| {
            let others = (event.files.len() + event.folders.len()).saturating_sub(1);
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            let subject = event.subject().unwrap_or_default() + &more;
            vec![event.at.rfc3339(), event.op.clone(), subject, event.id.clone()]
        });
        output::columns(&rows.collect::<Vec<_>>())
    })
}
