//! `sidenote mentions`: lists unlinked mentions of a note.

use clap::Args;
use sidenote_base::error::Result;

use super::format::ListFormat;
use super::{CommandContext, output};
use crate::store::MentionsReply;

/// List unlinked mentions of a note.
///
/// An unlinked mention is a place that names the note by title, file name or alias, without a link to it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sidenote mentions \"Start here\"")]
pub(super) struct MentionsArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The maximum number of mentions.
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &MentionsArgs) -> Result<()> {
    let reply = context.store()?.searches().unlinked_mentions(&args.note, args.limit)?;
    args.format.reply(context.out, &reply, |reply| &reply.mentions, show)
}

fn show(reply: &MentionsReply) -> String {
    if reply.names.is_empty() {
        return format!("the names of {} are too short to search for\n", output::plain(&reply.path));
    }
    if reply.mentions.is_empty() {
        return format!("no text mentions {} without a link\n", reply.names.join(" or "));
    }
    let rows =
        reply.mentions.iter().map(|item| vec![format!("{}:{}", item.path, item.line), item.text.clone()]);
    let mut text = output::columns(&rows.collect::<Vec<_>>());
    if reply.more {
        text.push_str("there are more mentions; a higher --limit shows them\n");
    }
    text
}
