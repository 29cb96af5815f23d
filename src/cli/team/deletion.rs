//! `sidenote team rename`, `delete` and `undelete`: giving a vault of a team another name, and deleting one for a while or for good.

use clap::Args;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use super::args::OwnerArgs;
use super::restore::{DAY, cleaned};
use crate::cli::CommandContext;
use crate::share::team::{self, DeleteReply};

/// Give a vault another name.
///
/// Files, history, roles and quotas stay, and servers keep their copies. Clients that use the former address get the
/// new one; agents that follow redirects go on at once. People who log in do so again for the new address. The former
/// name leads to the vault for as long as it exists, and no other vault can have it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team rename handbook manual --dry-run
  sidenote team rename handbook manual --database postgres:///notes")]
pub(super) struct RenameArgs {
    /// The name of the vault.
    old: String,
    /// The new name: letters, digits, - and _.
    new: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// Delete a vault, which can be brought back for some days.
///
/// It is closed at once, at all servers. Its files, history and roles are kept, and `team undelete` brings them back. When the days
/// are over, `team clean` removes it for good; so does --now at once. Synchronised folders stay as they are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team delete handbook --dry-run
  sidenote team delete handbook --days 90 --database postgres:///notes
  sidenote team delete handbook --now --yes")]
pub(super) struct DeleteArgs {
    /// The name of the vault.
    name: String,
    /// The days for which it can be brought back.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    days: u32,
    /// Remove it for good at once, also if it was deleted before. Requires --yes, unless it is a dry run.
    #[arg(long, conflicts_with = "days")]
    now: bool,
    /// Remove it for good without a question.
    #[arg(long, requires = "now")]
    yes: bool,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// Bring a vault back that was deleted.
///
/// It is as it was, with its history, roles and quotas.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team list --deleted --database postgres:///notes
  sidenote team undelete handbook --database postgres:///notes")]
pub(super) struct UndeleteArgs {
    /// The name of the vault.
    name: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

pub(super) fn rename(context: &CommandContext, args: &RenameArgs) -> Result<()> {
    let (_, database) = args.owner.open()?;
    let reply = team::rename(&database, &args.old, &args.new, context.now(), args.owner.dry_run.is_set())?;
    context.out.reply(&reply, |reply| {
        let verb = if reply.applied { "is called" } else { "would be called" };
        format!("{} {verb} {} now\n", reply.from, reply.to)
    })
}

pub(super) fn delete(context: &CommandContext, args: &DeleteArgs) -> Result<()> {
    let dry_run = args.owner.dry_run.is_set();
    if args.now && !args.yes && !dry_run {
        return Err(Error::invalid(format!("{} would be removed for good", args.name)).with_hints(
            "give --yes as well, or leave --now out to be able to bring it back",
            "ask the user first, and give --yes then",
        ));
    }
    let (_, database) = args.owner.open()?;
    if args.now {
        return context.out.reply(&team::delete_now(&database, &args.name, dry_run)?, cleaned);
    }
    let now = context.now();
    let until =
        now.millis().checked_add(i64::from(args.days).saturating_mul(DAY)).map(Timestamp::from_millis);
    let until = until.ok_or_else(|| Error::invalid("--days is too large"))?;
    let reply = team::delete(&database, &args.name, until, now, dry_run)?;
    context.out.reply(&reply, |reply: &DeleteReply| {
        let verb = if reply.applied { "is deleted" } else { "would be deleted" };
        format!("{} {verb}, and can be brought back until {}\n", reply.name, until.local_rfc3339())
    })
}

pub(super) fn undelete(context: &CommandContext, args: &UndeleteArgs) -> Result<()> {
    let (_, database) = args.owner.open()?;
    let reply = team::undelete(&database, &args.name, context.now(), args.owner.dry_run.is_set())?;
    context.out.reply(&reply, |reply: &DeleteReply| {
        let verb = if reply.applied { "is back" } else { "would be back" };
        format!("{} {verb}\n", reply.name)
    })
}
