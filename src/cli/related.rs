//! `sidenote related`, `mentions` and `ask-why`: related notes, unlinked mentions, and why a query finds a note or not.

use clap::{Args, ValueEnum};
use console::style;

use super::search::AskedArgs;
use super::{CommandContext, output};
use crate::cli::format::ListFormat;
use crate::error::Result;
use crate::store::{Kinship, MentionsReply, RelatedReply, RelatedRequest, WhyReply, WhyRequest};

/// Show the notes that belong to a note: near in meaning, or linked with the same notes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote related \"Start here\"
  sidenote related Projects/Plan.md --by links --limit 5")]
pub(super) struct RelatedArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// What makes notes related.
    #[arg(long, value_enum, default_value = "both")]
    by: ByArg,
    /// At most this many notes.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    shape: ListFormat,
}

/// Kinds of kinship as flags spell them.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByArg {
    /// Meaning and links.
    Both,
    /// Meaning.
    Vector,
    /// Links in common.
    Links,
}

/// Show where a note is named by title, file name or alias without a link to it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sidenote mentions \"Start here\"")]
pub(super) struct MentionsArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// At most this many places.
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    shape: ListFormat,
}

/// Tell why a note is, or is not, among the results of a search.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote ask-why \"how do links survive\" \"Links and renames\"
  sidenote ask-why 'tag:#river -\"water level\"' Gauge --limit 5")]
pub(super) struct WhyArgs {
    /// The query.
    query: String,
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    asked: AskedArgs,
}

pub(super) fn related(context: &CommandContext, args: &RelatedArgs) -> Result<()> {
    let by = match args.by {
        ByArg::Both => Kinship::Both,
        ByArg::Vector => Kinship::Vector,
        ByArg::Links => Kinship::Links,
    };
    let request = RelatedRequest { note: args.note.clone(), by, limit: args.limit };
    let reply = context.store()?.searches().related(&request)?;
    if !context.out.is_json() {
        reply.notes.iter().for_each(|note| context.out.message(&format!("note: {note}")));
    }
    args.shape.reply(context.out, &reply, |reply| &reply.related, show_related)
}

fn show_related(reply: &RelatedReply) -> String {
    if reply.related.is_empty() {
        return "nothing is related\n".to_owned();
    }
    let rows = reply.related.iter().map(|item| {
        let mut why = Vec::new();
        why.extend(item.cosine.map(|cosine| format!("meaning {cosine:.2}")));
        if !item.common.is_empty() {
            why.push(format!("by {}", item.common.join(", ")));
        }
        if item.linked {
            why.push("linked".to_owned());
        }
        vec![item.title.clone(), item.path.clone(), why.join("; ")]
    });
    output::columns(&rows.collect::<Vec<_>>())
}

pub(super) fn mentions(context: &CommandContext, args: &MentionsArgs) -> Result<()> {
    let reply = context.store()?.searches().unlinked_mentions(&args.note, args.limit)?;
    args.shape.reply(context.out, &reply, |reply| &reply.mentions, show_mentions)
}

fn show_mentions(reply: &MentionsReply) -> String {
    if reply.names.is_empty() {
        return format!("the names of {} are too short to look for\n", output::plain(&reply.path));
    }
    if reply.mentions.is_empty() {
        return format!("nothing names {} without a link\n", reply.names.join(" or "));
    }
    let rows =
        reply.mentions.iter().map(|item| vec![format!("{}:{}", item.path, item.line), item.text.clone()]);
    let mut text = output::columns(&rows.collect::<Vec<_>>());
    if reply.more {
        text.push_str("there are more; --limit shows them\n");
    }
    text
}

pub(super) fn why(context: &CommandContext, args: &WhyArgs) -> Result<()> {
    let search = args.asked.request(args.query.clone(), context.now())?;
    let reply = context.store()?.searches().why(&WhyRequest { search, note: args.note.clone() })?;
    context.out.reply(&reply, show_why)
}

fn show_why(reply: &WhyReply) -> String {
    let verdict = if reply.found { "is found" } else { "is not found" };
    let mut text = format!("{} {verdict}\n", style(output::plain(&reply.path)).cyan());
    for reason in &reply.reasons {
        text.push_str(&format!("  {}\n", output::plain(reason)));
    }
    for condition in &reply.conditions {
        let sign = if condition.holds { "holds" } else { "fails" };
        text.push_str(&format!("  {sign}  {}\n", output::plain(&condition.term)));
    }
    if let Some(parts) = &reply.explain {
        text.push_str(&format!("  {}\n", super::search::show_parts(parts)));
    } else if let Some(cosine) = reply.cosine {
        text.push_str(&format!("  cosine {cosine:.3} with its nearest passage\n"));
    }
    if !reply.missing_words.is_empty() {
        text.push_str(&format!("  it lacks: {}\n", output::plain(&reply.missing_words.join(", "))));
    }
    text
}
