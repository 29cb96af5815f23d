//! `sidenote tag`: adds and removes tags of a note.

use std::ffi::OsString;

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::{EditOptions, apply_edit};
use crate::cli::CommandContext;
use crate::store::NoteEdit;

/// Add tags to a note and remove tags from it.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sidenote tag Plan +urgent -draft")]
pub(in crate::cli) struct TagArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// Tags to add, as +TAG, and to remove, as -TAG.
    #[arg(value_name = "+TAG|-TAG", required_unless_present = "remove")]
    tags: Vec<String>,
    /// Remove this tag, as -TAG does; may be repeated.
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
    #[command(flatten)]
    options: EditOptions,
}

pub(super) fn run(context: &CommandContext, args: TagArgs) -> Result<()> {
    let added = |tag: &String| {
        tag.strip_prefix('+').map(str::to_owned).ok_or_else(|| {
            Error::invalid(format!("{tag:?} begins with neither + nor -"))
                .with_hint("write +tag to add a tag, or -tag to remove one")
        })
    };
    let add = args.tags.iter().map(added).collect::<Result<_>>()?;
    apply_edit(context, args.note, NoteEdit::Tags { add, remove: args.remove }, args.options)
}

/// Rewrites each `-TAG` after the command `tag` to `--remove=TAG`, because the argument parser takes `-TAG` for flags.
pub(in crate::cli) fn expand_removed_tags(mut arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    /// The flags whose value is the next argument. It stays as it is.
    const FLAGS_WITH_VALUE: [&str; 6] =
        ["--vault", "--index", "--session", "--color", "--expect-hash", "--remove"];
    let (mut is_tag_command, mut is_value, mut has_command) = (false, false, false);
    let expanded = |argument: OsString| {
        let text = argument.to_str().unwrap_or_default().to_owned();
        if std::mem::take(&mut is_value) {
            return argument;
        }
        is_value = FLAGS_WITH_VALUE.contains(&text.as_str());
        let removed =
            text.strip_prefix('-').filter(|tag| !tag.is_empty() && !tag.starts_with('-') && *tag != "h");
        match removed {
            Some(tag) if is_tag_command => OsString::from(format!("--remove={tag}")),
            _ => {
                is_tag_command |= !has_command && text == "tag";
                has_command |= !text.starts_with('-');
                argument
            }
        }
    };
    let program = arguments.next();
    program.into_iter().chain(arguments.map(expanded)).collect()
}
