//! `sidenote outline`: prints the headings of a note.

use clap::Args;
use sidenote_base::error::Result;
use sidenote_markdown::note::Heading;

use super::format::ListFormat;
use super::{CommandContext, output};

/// Print the headings of a note, indented by level.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote outline \"Start here\"
  sidenote outline Plan --format '{line}: {text}'")]
pub(super) struct OutlineArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    format: ListFormat,
}

pub(super) fn run(context: &CommandContext, args: &OutlineArgs) -> Result<()> {
    let headings = context.fresh_store()?.reads().inspect(&args.note)?.headings;
    let show = |headings: &Vec<Heading>| {
        let min_level = headings.iter().map(|heading| heading.level).min().unwrap_or(1);
        let rows = headings.iter().map(|heading| {
            let indent = "  ".repeat((heading.level - min_level).into());
            vec![format!("{:>5}", heading.line), format!("{indent}{}", heading.text)]
        });
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.format.reply(context.out, &headings, |headings| headings, show)
}
