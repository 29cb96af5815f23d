//! `sidenote rename`: renames a file, a part of a note, or a tag or property in every note. `rename-heading`,
//! `rename-block`, `rename-tag` and `rename-property` are earlier names of its forms.

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::apply;
use super::move_file::MoveOptions;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::{Operation, PartKind, PartRequest, RenameKind, RenameRequest};

/// Rename a note, folder, attachment, heading, block, tag or property, and update every link to it.
///
/// A file stays in its folder; `move` also moves it to another one. With --heading or --block, the first name is that of
/// the note, and the two names of the part follow. A tag or property is renamed in every note.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote rename Plan \"Old plan\"
  sidenote rename Projects/Boat.jpg Ship.jpg --dry-run
  sidenote rename --heading Plan \"To do\" \"Next steps\"
  sidenote rename --tag project projects")]
pub(in crate::cli) struct RenameArgs {
    /// What to rename: a note by any name, or the path of a file or folder; with --tag or --property, their current name.
    #[arg(value_name = "NOTE|OLD")]
    from: String,
    /// The new name. That of a file with a slash is a path from the root of the vault, as for `move`. With --heading or
    /// --block, the current name of the part.
    #[arg(value_name = "NEW")]
    to: String,
    /// With --heading or --block, the new name of the part.
    #[arg(value_name = "NEW_NAME")]
    new: Option<String>,
    /// Rename a heading of a note: NOTE OLD NEW.
    #[arg(long, requires = "new", group = "what")]
    heading: bool,
    /// Rename a block id of a note: NOTE OLD NEW.
    #[arg(long, requires = "new", group = "what")]
    block: bool,
    /// Rename a tag and the tags nested below it in every note: OLD NEW.
    #[arg(long, conflicts_with = "new", group = "what")]
    tag: bool,
    /// Rename a property in every note: OLD NEW.
    #[arg(long, conflicts_with = "new", group = "what")]
    property: bool,
    #[command(flatten)]
    options: MoveOptions,
}

/// Rename a part of a note, and update every link to it.
#[derive(Debug, Args)]
pub(in crate::cli) struct RenamePartArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The current name.
    old: String,
    /// The new name.
    new: String,
    /// Rename even if another part of the note has the new name.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Rename a tag or property in every note.
#[derive(Debug, Args)]
pub(in crate::cli) struct RenameEverywhereArgs {
    /// The current name.
    old: String,
    /// The new name.
    new: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn rename(context: &CommandContext, args: RenameArgs) -> Result<()> {
    let RenameArgs { from, to, new, heading, block, tag, property, options } = args;
    let everywhere = match (tag, property) {
        (true, _) => Some(RenameKind::Tag),
        (_, true) => Some(RenameKind::Property),
        _ => None,
    };
    match (new, everywhere) {
        (Some(new), _) if heading || block => {
            let kind = if heading { PartKind::Heading } else { PartKind::Block };
            let (force, dry_run) = options.of_part();
            rename_part(context, RenamePartArgs { note: from, old: to, new, force, dry_run }, kind)
        }
        (Some(new), _) => Err(Error::invalid(format!("{new:?} is one name too many"))
            .with_hint("quote a name with spaces; to rename a part of a note, give --heading or --block")),
        (None, Some(kind)) => {
            let (_, dry_run) = options.of_part();
            rename_everywhere(context, RenameEverywhereArgs { old: from, new: to, dry_run }, kind)
        }
        (None, None) => options.apply(context, from, to, true),
    }
}

pub(super) fn rename_heading(context: &CommandContext, args: RenamePartArgs) -> Result<()> {
    rename_part(context, args, PartKind::Heading)
}

pub(super) fn rename_block(context: &CommandContext, args: RenamePartArgs) -> Result<()> {
    rename_part(context, args, PartKind::Block)
}

fn rename_part(context: &CommandContext, args: RenamePartArgs, kind: PartKind) -> Result<()> {
    let RenamePartArgs { note, old, new, force, dry_run } = args;
    apply(context, &Operation::RenamePart(PartRequest { note, kind, old, new, force }), &dry_run)
}

pub(super) fn rename_tag(context: &CommandContext, args: RenameEverywhereArgs) -> Result<()> {
    rename_everywhere(context, args, RenameKind::Tag)
}

pub(super) fn rename_property(context: &CommandContext, args: RenameEverywhereArgs) -> Result<()> {
    rename_everywhere(context, args, RenameKind::Property)
}

fn rename_everywhere(context: &CommandContext, args: RenameEverywhereArgs, kind: RenameKind) -> Result<()> {
    let RenameEverywhereArgs { old, new, dry_run } = args;
    apply(context, &Operation::RenameEverywhere(RenameRequest { kind, old, new }), &dry_run)
}
