//! `sidenote replace`: replaces a text in a note.

use clap::Args;
use sidenote_base::error::Result;

use super::{EditOptions, apply_edit};
use crate::cli::CommandContext;
use crate::store::NoteEdit;

/// Replace a text in a note.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReplaceArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The text to replace.
    #[arg(long, allow_hyphen_values = true)]
    old: String,
    /// The replacement.
    #[arg(long, allow_hyphen_values = true)]
    new: String,
    /// Refuse unless the text occurs exactly this many times.
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: usize,
    #[command(flatten)]
    options: EditOptions,
}

pub(super) fn run(context: &CommandContext, args: ReplaceArgs) -> Result<()> {
    let edit = NoteEdit::Replace { old: args.old, new: args.new, count: args.count };
    apply_edit(context, args.note, edit, args.options)
}
