//! `sidenote team restore` and `clean`: giving a vault the files of a folder again, and removing contents that only old changes
//! had.

use std::path::PathBuf;

use clap::Args;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use super::args::OwnerArgs;
use crate::cli::{CommandContext, output};
use crate::share::team::{self, CleanReply};

/// The most files of one kind that are named to a person.
const MAX_NAMED: usize = 20;
/// The milliseconds of a day.
pub(super) const DAY: i64 = 86_400_000;

/// Give a vault the files of a folder and no others, such as those that `team export` wrote.
///
/// It is one change in the journal, which names the files and the operator. Servers make their copies again. A
/// synchronised folder loses nothing: files that it has and the vault does not are sent again, and where the texts
/// differ, both are kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team restore handbook ~/handbook-copy --dry-run
  sidenote team restore handbook ~/handbook-copy --database postgres:///notes")]
pub(super) struct RestoreArgs {
    /// The name of the vault.
    name: String,
    /// The folder with the files.
    folder: PathBuf,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// Remove contents from the database that no file has now and no change of the last days names.
///
/// Changes before that stay in the journal, and cannot be undone any more. The files of the database do not shrink by it:
/// PostgreSQL uses the space for new contents, or gives it back to the disk after `VACUUM FULL sidenote.blob`.
///
/// A vault that `team delete` deleted and whose time is over is removed for good, with its history and rights.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team clean handbook --dry-run
  sidenote team clean --database postgres:///notes
  sidenote team clean handbook --days 365 --database postgres:///notes")]
pub(super) struct CleanArgs {
    /// The name of the vault. Without it, all vaults of the database, and those that were deleted and whose time is over.
    name: Option<String>,
    /// The days whose changes can still be undone afterwards. With less than undo.days of the settings of servers, undo ends
    /// sooner.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
    #[command(flatten)]
    owner: OwnerArgs,
}

pub(super) fn restore(context: &CommandContext, args: &RestoreArgs) -> Result<()> {
    let (settings, database) = args.owner.open()?;
    let (now, dry_run) = (context.now(), args.owner.dry_run.is_set());
    let reply = team::restore(&database, &args.name, &args.folder, settings.max_file(), now, dry_run)?;
    context.out.reply(&reply, |reply| {
        let list = |verb: &str, paths: &[String]| {
            let named: String = paths
                .iter()
                .take(MAX_NAMED)
                .map(|path| format!("{verb}: {}\n", output::plain(path)))
                .collect();
            match paths.len().saturating_sub(MAX_NAMED) {
                0 => named,
                more => format!("{named}{verb}: {more} more\n"),
            }
        };
        let mut text = list("written", &reply.written) + &list("removed", &reply.removed);
        let unchanged = output::count(reply.unchanged, "file");
        text += &match (reply.applied, reply.written.is_empty() && reply.removed.is_empty()) {
            (_, true) => format!("{} has exactly the files of the folder already\n", reply.name),
            (true, false) => format!("{} is restored; {unchanged} stayed as they were\n", reply.name),
            (false, false) => format!(
                "nothing was changed: this is what would be done; {unchanged} would stay as they are\n"
            ),
        };
        text
    })
}

pub(super) fn clean(context: &CommandContext, args: &CleanArgs) -> Result<()> {
    let (_, database) = args.owner.open()?;
    let now = context.now();
    let since = now.millis().checked_sub(i64::from(args.days) * DAY).map(Timestamp::from_millis);
    let since = since.ok_or_else(|| Error::invalid("--days is too large"))?;
    let name = args.name.as_deref();
    let replies = team::clean(&database, name, since, now, args.owner.dry_run.is_set())?;
    match (replies.as_slice(), name) {
        ([reply], Some(_)) => context.out.reply(reply, cleaned),
        _ => context.out.reply(&replies, |replies| replies.iter().map(cleaned).collect()),
    }
}

/// Says what was removed of a vault.
pub(super) fn cleaned(reply: &CleanReply) -> String {
    let contents = format!("{}, {}", output::count(reply.contents, "content"), output::bytes(reply.bytes));
    let what = if reply.is_removal { format!("the whole vault ({contents})") } else { contents };
    match (reply.applied, reply.is_removal || reply.contents > 0) {
        (_, false) => format!("{}: nothing to remove\n", reply.name),
        (true, true) => format!(
            "{}: {what} removed; PostgreSQL uses the space again after its next VACUUM, and gives it back to the disk after VACUUM FULL sidenote.blob, during which nobody can read\n",
            reply.name
        ),
        (false, true) => format!("{}: {what} would be removed\n", reply.name),
    }
}
