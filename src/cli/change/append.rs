//! `sidenote append`: inserts text at the end of a note or section, or with --start, as `prepend` does, at its beginning.

use clap::Args;
use sidenote_base::error::Result;

use super::{EditOptions, apply_edit};
use crate::cli::CommandContext;
use crate::cli::args::text_or_stdin;
use crate::store::NoteEdit;

/// Append text to a note or to one of its sections.
#[derive(Debug, Args)]
pub(in crate::cli) struct AppendArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The text; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Insert into the section under this heading.
    #[arg(long, value_name = "HEADING")]
    section: Option<String>,
    /// Insert at the beginning: after the frontmatter, or after the heading of the section.
    #[arg(long)]
    start: bool,
    #[command(flatten)]
    options: EditOptions,
}

pub(super) fn append(context: &CommandContext, args: AppendArgs) -> Result<()> {
    if args.start {
        return prepend(context, args);
    }
    let edit = NoteEdit::Append(text_or_stdin(&args.text)?, args.section);
    apply_edit(context, args.note, edit, args.options)
}

pub(super) fn prepend(context: &CommandContext, args: AppendArgs) -> Result<()> {
    let edit = NoteEdit::Prepend(text_or_stdin(&args.text)?, args.section);
    apply_edit(context, args.note, edit, args.options)
}
