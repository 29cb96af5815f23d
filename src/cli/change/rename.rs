//! `sidenote rename`, `rename-heading`, `rename-block`, `rename-tag` and `rename-property`: rename a file, a part of a
//! note, or a tag or property in every note.

use clap::Args;

use super::apply;
use super::move_file::MoveOptions;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::error::Result;
use crate::store::{Operation, PartKind, PartRequest, RenameKind, RenameRequest};

/// Rename a note, folder or attachment, and update every link to it.
///
/// It stays in its folder. `move` also moves it to another folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote rename Plan \"Old plan\"
  sidenote rename Projects/Boat.jpg Ship.jpg --dry-run")]
pub(in crate::cli) struct RenameArgs {
    /// What to rename: a note by any name, or the path of a file or folder.
    note: String,
    /// The new name, in the same folder. A name with a slash is a path from the root of the vault, as for `move`.
    name: String,
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
    args.options.apply(context, args.note, args.name, true)
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
