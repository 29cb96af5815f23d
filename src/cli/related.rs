//! `sidenote related`: lists the notes that are related to a note, by meaning or by common links.

use clap::{Args, ValueEnum};
use sidenote_base::error::Result;

use super::format::ListFormat;
use super::{CommandContext, output};
use crate::store::{RelatedBy, RelatedReply, RelatedRequest};

/// List notes with a similar meaning or common links.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote related \"Start here\"
  sidenote related Projects/Plan.md --by links --limit 5")]
pub(super) struct RelatedArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// What relates notes.
    #[arg(long, value_enum, default_value = "both")]
    by: RelationArg,
    /// The maximum number of notes.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    format: ListFormat,
}

/// The values of `--by`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RelationArg {
    /// Meaning and links.
    Both,
    /// Similar meaning.
    Vector,
    /// Common links.
    Links,
}

pub(super) fn run(context: &CommandContext, args: &RelatedArgs) -> Result<()> {
    let by = match args.by {
        RelationArg::Both => RelatedBy::Both,
        RelationArg::Vector => RelatedBy::Vector,
        RelationArg::Links => RelatedBy::Links,
    };
    let request = RelatedRequest { note: args.note.clone(), by, limit: args.limit };
    let reply = context.store()?.searches().related(&request)?;
    if !context.out.is_json() {
        reply.notes.iter().for_each(|note| context.out.message(&format!("note: {note}")));
    }
    args.format.reply(context.out, &reply, |reply| &reply.related, show)
}

fn show(reply: &RelatedReply) -> String {
    if reply.related.is_empty() {
        return "no related notes\n".to_owned();
    }
    let rows = reply.related.iter().map(|item| {
        let mut reasons = Vec::new();
        reasons.extend(item.cosine.map(|cosine| format!("meaning {cosine:.2}")));
        if !item.common.is_empty() {
            reasons.push(format!("by {}", item.common.join(", ")));
        }
        if item.linked {
            reasons.push("linked".to_owned());
        }
        vec![item.title.clone(), item.path.clone(), reasons.join("; ")]
    });
    output::columns(&rows.collect::<Vec<_>>())
}
