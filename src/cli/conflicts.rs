//! `sidenote conflicts`: lists what a synchronisation or a merge left undecided, and merges conflict copies.

use clap::{Args, Subcommand};
use sidenote_base::error::Result;

use super::args::DryRunArgs;
use super::{CommandContext, Outcome, change, output};
use crate::store::{ConflictsReply, MergeCopiesReply, MergeCopiesRequest};

/// List conflict copies of notes, and notes with conflict markers of git.
///
/// Programs that synchronise a folder leave a second file where two devices changed a note. Copies of Syncthing, Dropbox,
/// Nextcloud, Obsidian Sync and Resilio Sync are known by their names. Copies of iCloud Drive, OneDrive and Google Drive
/// must also have the note's id, or about its text.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote conflicts
  sidenote conflicts merge \"Plan\" --dry-run
  sidenote conflicts merge \"Plan.sync-conflict-20260102-101112-ABCDEFG\"")]
pub(super) struct ConflictsArgs {
    #[command(subcommand)]
    command: Option<ConflictsCommand>,
}

#[derive(Debug, Subcommand)]
enum ConflictsCommand {
    Merge(MergeCopiesArgs),
}

/// Merge the conflict copies of a note into it.
///
/// The merge needs the version that both had in common. It is taken from git, from the before-images of past operations
/// or from a backup. Without one, the difference is shown and nothing is changed. Where both changed the same lines,
/// both versions stand in the note between conflict markers. A copy goes to the trash if the note has every line that
/// it has and the common version does not have. For a copy that `sidenote sync` made in this folder, the common version
/// is the one of the last synchronisation.
///
/// The command ends with 8 if a copy was not merged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote conflicts merge \"Plan\" --dry-run
  sidenote conflicts merge Projects/Plan.md && sidenote conflicts")]
struct MergeCopiesArgs {
    /// The note whose copies are merged, or one copy: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: ConflictsArgs) -> Result<Outcome> {
    match args.command {
        None => {
            context.out.reply(&context.store()?.upkeep().conflicts()?, show_list)?;
            Ok(Outcome::Done)
        }
        Some(ConflictsCommand::Merge(args)) => {
            let request = MergeCopiesRequest { note: args.note };
            let reply = context.store()?.upkeep().merge_copies(&request, args.dry_run.is_set())?;
            context.out.reply(&reply, show_merge)?;
            change::print_remarks(context, &reply.change);
            let is_merged = reply.copies.iter().all(|copy| copy.base.is_some());
            Ok(if is_merged { Outcome::Done } else { Outcome::ProblemsFound })
        }
    }
}

fn show_list(reply: &ConflictsReply) -> String {
    let mut text = String::new();
    for copy in &reply.copies {
        let state = if copy.exists { "copy of" } else { "copy of the missing" };
        let [path, note] = [&copy.copy, &copy.note].map(|path| output::plain(path.as_str()));
        text.push_str(&format!("{path}  {state} {note} ({})\n", copy.program));
    }
    for note in &reply.marked {
        text.push_str(&format!("{}:{}  conflict markers\n", output::plain(note.path.as_str()), note.line));
    }
    if text.is_empty() { "no conflicts\n".to_owned() } else { text }
}

fn show_merge(reply: &MergeCopiesReply) -> String {
    let mut text = String::new();
    for copy in &reply.copies {
        let path = output::plain(copy.copy.as_str());
        match (&copy.base, &copy.difference) {
            (Some(base), _) => {
                let conflicts = match copy.conflicts {
                    0 => String::new(),
                    count => format!(", {}", output::count(count, "conflict")),
                };
                text.push_str(&format!("{path}: merged by {}{conflicts}\n", output::plain(base)));
            }
            (None, Some(difference)) => text.push_str(&change::coloured(difference)),
            (None, None) => {}
        }
    }
    text + &change::show_change(&reply.change)
}
