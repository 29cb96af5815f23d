//! `sidenote move`: moves a note, folder or attachment and updates the links to it.

use clap::Args;
use sidenote_base::error::Result;

use super::apply;
use crate::cli::CommandContext;
use crate::cli::args::DryRunArgs;
use crate::store::{MoveRequest, Operation};

/// Move a note, folder or attachment, and update every link to it.
///
/// The target may have another name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote move Plan Projects/          into a folder, under the same name
  sidenote move Plan Archive/Old plan   to another folder, under another name
  sidenote move Projects Archive/       a whole folder")]
pub(in crate::cli) struct MoveArgs {
    /// What to move: a note by any name, or the path of a file or folder.
    from: String,
    /// The new path, from the root of the vault. A folder, ending with /, keeps the name.
    to: String,
    #[command(flatten)]
    options: MoveOptions,
}

/// Options of `move` and `rename`.
#[derive(Debug, Args)]
pub(super) struct MoveOptions {
    /// Allow names that are forbidden only on Windows.
    #[arg(long)]
    relaxed: bool,
    /// Allow a name that a link cannot contain.
    #[arg(long)]
    force: bool,
    /// Do not update any link.
    #[arg(long)]
    no_update_links: bool,
    /// Do not update relative links that Obsidian still resolves, even if other programs do not.
    #[arg(long)]
    keep_lookup_links: bool,
    /// Lengthen links that could resolve to several files equally well.
    #[arg(long)]
    stabilise: bool,
    /// Also update links next to other text in a property, which Obsidian does not treat as links.
    #[arg(long)]
    partial_properties: bool,
    /// Add the old name of a note to its aliases.
    #[arg(long)]
    keep_alias: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

impl MoveOptions {
    /// Returns the options that a rename of a part or of a tag or property has, too: --force and --dry-run.
    pub(super) fn of_part(self) -> (bool, DryRunArgs) {
        (self.force, self.dry_run)
    }

    /// Carries out a move with these options, in the same folder if `in_place`.
    pub(super) fn apply(
        self,
        context: &CommandContext,
        from: String,
        to: String,
        in_place: bool,
    ) -> Result<()> {
        let request = MoveRequest {
            from,
            to,
            in_place,
            is_exact: false,
            relaxed: self.relaxed,
            force: self.force,
            no_update_links: self.no_update_links,
            keep_lookup_links: self.keep_lookup_links,
            stabilise: self.stabilise,
            partial_properties: self.partial_properties,
            keep_alias: self.keep_alias,
        };
        apply(context, &Operation::Move(request), &self.dry_run)
    }
}

pub(super) fn run(context: &CommandContext, args: MoveArgs) -> Result<()> {
    args.options.apply(context, args.from, args.to, false)
}
