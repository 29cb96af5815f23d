//! `sidenote set`: changes a property of a note. `unset` and `add` are earlier names of two of its forms.

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::{EditOptions, apply_edit};
use crate::cli::CommandContext;
use crate::store::{NoteEdit, json_or_text};

/// Set, extend or remove a property of a note.
///
/// Several values make a list.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote set Plan status open
  sidenote set Plan aliases \"The plan\" \"Boat plan\"
  sidenote set Plan aliases \"A third name\" --add
  sidenote set Plan status --remove")]
pub(in crate::cli) struct SetArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The name of the property.
    key: String,
    /// The value. It is parsed as JSON if it is valid JSON, and is text otherwise.
    #[arg(required_unless_present = "remove", allow_negative_numbers = true)]
    values: Vec<String>,
    /// Add the value to a list, and leave the others.
    #[arg(long)]
    add: bool,
    /// Remove the property.
    #[arg(long, conflicts_with_all = ["values", "add"])]
    remove: bool,
    #[command(flatten)]
    options: EditOptions,
}

/// Remove a property from a note.
#[derive(Debug, Args)]
pub(in crate::cli) struct UnsetArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The name of the property.
    key: String,
    #[command(flatten)]
    options: EditOptions,
}

/// Add a value to a list property of a note.
#[derive(Debug, Args)]
pub(in crate::cli) struct AddArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The name of the property.
    key: String,
    /// The value to add. It is parsed as JSON if it is valid JSON, and is text otherwise.
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    options: EditOptions,
}

pub(super) fn set(context: &CommandContext, args: SetArgs) -> Result<()> {
    if args.remove {
        return apply_edit(context, args.note, NoteEdit::Unset(args.key), args.options);
    }
    let value = match args.values.as_slice() {
        [value] if args.add => {
            let edit = NoteEdit::Add(args.key, json_or_text(value));
            return apply_edit(context, args.note, edit, args.options);
        }
        _ if args.add => {
            return Err(
                Error::invalid("--add adds one value").with_hint("run the command once for each value")
            );
        }
        [value] => json_or_text(value),
        values => values.iter().map(|value| json_or_text(value)).collect(),
    };
    apply_edit(context, args.note, NoteEdit::Set(args.key, value), args.options)
}

pub(super) fn unset(context: &CommandContext, args: UnsetArgs) -> Result<()> {
    apply_edit(context, args.note, NoteEdit::Unset(args.key), args.options)
}

pub(super) fn add(context: &CommandContext, args: AddArgs) -> Result<()> {
    let value = json_or_text(&args.value);
    apply_edit(context, args.note, NoteEdit::Add(args.key, value), args.options)
}
