//! `sidenote read`: prints the text of a note, a section, a block or a range of lines.

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::CommandContext;
use super::args::AtArgs;
use crate::store::ReadRequest;

/// Print a note, a section, a block or a range of lines.
///
/// UTF-8 is printed byte for byte. If the file is not UTF-8, a notice says so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote read Projects/Plan.md
  sidenote read '[[Start here#Search]]'
  sidenote read \"Start here\" --section ^first-step
  sidenote read Inbox --lines 1-10
  sidenote read Inbox --at yesterday")]
pub(super) struct ReadArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// Print only this section: a heading (nested headings joined by #), or ^ and a block id.
    #[arg(long, value_name = "HEADING|^BLOCK")]
    section: Option<String>,
    /// Print only these lines, such as 10-20.
    #[arg(long, value_name = "A-B")]
    lines: Option<String>,
    #[command(flatten)]
    at: AtArgs,
}

pub(super) fn run(context: &CommandContext, args: &ReadArgs) -> Result<()> {
    let store = context.fresh_store_at(&args.at)?;
    let reply = store.reads().read(&ReadRequest {
        note: args.note.clone(),
        section: args.section.clone(),
        lines: args.lines.as_deref().map(parse_line_range).transpose()?,
    })?;
    store.memories().record_use(&reply.path, "read");
    reply.notices.iter().for_each(|notice| context.out.message(notice));
    context.out.reply_exact(&reply, |reply| reply.text.clone())
}

/// Parses a range of lines, `10-20`, or a single line, `7`.
fn parse_line_range(text: &str) -> Result<(usize, usize)> {
    let wrong = || {
        Error::invalid(format!("--lines {text:?} is not a range of lines"))
            .with_hint("write 10-20, or 7 for one line")
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |part: &str| part.trim().parse::<usize>().map_err(|_| wrong());
    Ok((number(first)?, number(last)?))
}
