//! The commands that change notes, one file for each command or family, and their dispatch. Each command makes an
//! [`Operation`]; `Store` plans it and carries it out.

mod append;
mod delete;
mod edit;
mod extract;
mod history;
mod link;
mod merge;
mod move_file;
mod new;
mod property;
mod rename;
mod repair;
mod replace;
mod report;
mod restore;
pub(super) mod tag;
mod task;
mod undo;

use clap::{Args, Subcommand};
pub(super) use report::{coloured, print_remarks, show_change};
use sidenote_base::error::Result;

use super::CommandContext;
use super::args::DryRunArgs;
use crate::store::{EditRequest, NoteEdit, Operation};

/// Options of every command that edits one note.
#[derive(Debug, Args)]
struct EditOptions {
    /// Refuse unless the note has this hash; `sidenote inspect` prints the hash of a note.
    #[arg(long, value_name = "HASH")]
    expect_hash: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum ChangeCommand {
    #[command(alias = "create")]
    New(new::NewArgs),
    #[command(hide = true)]
    Daily(new::DailyArgs),
    Append(append::AppendArgs),
    /// Insert text at the beginning of a note or section.
    ///
    /// In a note, the text is inserted after the frontmatter.
    #[command(hide = true)]
    Prepend(append::AppendArgs),
    Replace(replace::ReplaceArgs),
    Set(property::SetArgs),
    #[command(hide = true)]
    Unset(property::UnsetArgs),
    #[command(hide = true)]
    Add(property::AddArgs),
    Tag(tag::TagArgs),
    Task(task::TaskArgs),
    #[command(alias = "mv")]
    Move(move_file::MoveArgs),
    Rename(rename::RenameArgs),
    /// Rename a heading, and update every link to it.
    #[command(hide = true)]
    RenameHeading(rename::RenamePartArgs),
    /// Rename a block id, and update every link to it.
    #[command(hide = true)]
    RenameBlock(rename::RenamePartArgs),
    /// Rename a tag and the tags nested below it in every note.
    #[command(hide = true)]
    RenameTag(rename::RenameEverywhereArgs),
    /// Rename a property in every note.
    #[command(hide = true)]
    RenameProperty(rename::RenameEverywhereArgs),
    Repair(repair::RepairArgs),
    /// Link two notes to each other in their related sections.
    Link(link::LinkArgs),
    /// Remove the links between two notes that `link` made.
    Unlink(link::LinkArgs),
    Merge(merge::MergeArgs),
    Extract(extract::ExtractArgs),
    Edit(edit::EditArgs),
    #[command(alias = "rm")]
    Delete(delete::DeleteArgs),
    Restore(restore::RestoreArgs),
    Undo(undo::UndoArgs),
    Redo(undo::RedoArgs),
    History(history::HistoryArgs),
}

impl ChangeCommand {
    /// Returns whether the command changes notes.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Self::History(_))
    }
}

pub(super) fn run(context: &CommandContext, command: ChangeCommand) -> Result<()> {
    match command {
        ChangeCommand::New(args) => new::run(context, args),
        ChangeCommand::Daily(args) => new::daily(context, args),
        ChangeCommand::Append(args) => append::append(context, args),
        ChangeCommand::Prepend(args) => append::prepend(context, args),
        ChangeCommand::Replace(args) => replace::run(context, args),
        ChangeCommand::Set(args) => property::set(context, args),
        ChangeCommand::Unset(args) => property::unset(context, args),
        ChangeCommand::Add(args) => property::add(context, args),
        ChangeCommand::Tag(args) => tag::run(context, args),
        ChangeCommand::Task(args) => task::run(context, args),
        ChangeCommand::Move(args) => move_file::run(context, args),
        ChangeCommand::Rename(args) => rename::rename(context, args),
        ChangeCommand::RenameHeading(args) => rename::rename_heading(context, args),
        ChangeCommand::RenameBlock(args) => rename::rename_block(context, args),
        ChangeCommand::RenameTag(args) => rename::rename_tag(context, args),
        ChangeCommand::RenameProperty(args) => rename::rename_property(context, args),
        ChangeCommand::Repair(args) => repair::run(context, args),
        ChangeCommand::Link(args) => link::link(context, args),
        ChangeCommand::Unlink(args) => link::unlink(context, args),
        ChangeCommand::Merge(args) => merge::run(context, args),
        ChangeCommand::Extract(args) => extract::run(context, args),
        ChangeCommand::Edit(args) => edit::run(context, &args),
        ChangeCommand::Delete(args) => delete::run(context, args),
        ChangeCommand::Restore(args) => restore::run(context, args),
        ChangeCommand::Undo(args) => undo::undo(context, args),
        ChangeCommand::Redo(args) => undo::redo(context, &args),
        ChangeCommand::History(args) => history::run(context, &args),
    }
}

/// Carries out an operation, or plans it for a dry run, and prints the reply.
fn apply(context: &CommandContext, operation: &Operation, dry_run: &DryRunArgs) -> Result<()> {
    let reply = context.store()?.changes().change(operation, dry_run.is_set())?;
    context.out.reply(&reply, show_change)?;
    report::print_remarks(context, &reply);
    Ok(())
}

/// Carries out an edit of one note, or plans it for a dry run, and prints the reply.
fn apply_edit(context: &CommandContext, note: String, edit: NoteEdit, options: EditOptions) -> Result<()> {
    let expect = options.expect_hash.map(|hash| hash.parse()).transpose()?;
    apply(context, &Operation::Edit(EditRequest { note, edit, expect }), &options.dry_run)
}
