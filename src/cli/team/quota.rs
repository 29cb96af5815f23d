//! `sidenote team quota`: how much a vault of a team may hold, and how often a person may change it.

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::args::OwnerArgs;
use crate::cli::{CommandContext, output};
use crate::share::quota::{QuotaSetting, QuotaSettings};
use crate::share::settings::MEGABYTE;
use crate::share::team::{self, QuotaRequest};

/// Set quotas of a vault, or show them and how much it holds.
///
/// A change that would exceed a quota is refused, for every person and every tool; removing is always allowed. A quota
/// counts from the next change on. Each is a number, `none` for no limit, or `default` for the one of the settings of
/// servers ([quota]), which is no limit without such settings. Commands of an operator, such as `team restore`, have no
/// quota.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team quota handbook --database postgres:///notes
  sidenote team quota handbook --size-mb 5000 --notes 50000
  sidenote team quota handbook --changes 60 --dry-run
  sidenote team quota handbook --notes default")]
pub(super) struct QuotaArgs {
    /// The name of the vault.
    name: String,
    /// The size of all files as they are now, with the trash, in megabytes. Earlier versions do not count.
    #[arg(long, value_name = "MB")]
    size_mb: Option<String>,
    /// The number of notes. Those in the trash do not count.
    #[arg(long, value_name = "NUMBER")]
    notes: Option<String>,
    /// The changes of each person within a minute. Without login, all clients are one person.
    #[arg(long, value_name = "NUMBER")]
    changes: Option<String>,
    #[command(flatten)]
    owner: OwnerArgs,
}

pub(super) fn run(context: &CommandContext, args: &QuotaArgs) -> Result<()> {
    let parse = |flag: &str, text: &Option<String>| {
        text.as_deref().map(QuotaSetting::parse).transpose().map_err(|error: Error| error.of(flag))
    };
    let in_bytes = |setting| match setting {
        QuotaSetting::Limit(size) => QuotaSetting::Limit(size.saturating_mul(MEGABYTE)),
        other => other,
    };
    let request = QuotaRequest {
        bytes: parse("--size-mb", &args.size_mb)?.map(in_bytes),
        notes: parse("--notes", &args.notes)?,
        changes: parse("--changes", &args.changes)?,
    };
    let (_, database) = args.owner.open()?;
    let reply = team::quota(&database, &args.name, request, context.now(), args.owner.dry_run.is_set())?;
    context.out.reply(&reply, |reply| {
        format!(
            "{} holds {} and {}; quota: {}\n",
            reply.name,
            output::bytes(reply.usage.bytes),
            output::count(usize::try_from(reply.usage.notes).unwrap_or(usize::MAX), "note"),
            shown(&reply.quotas)
        )
    })
}

/// Says what is set for the quotas of a vault.
pub(super) fn shown(quotas: &QuotaSettings) -> String {
    let one = |setting, limit: &dyn Fn(u64) -> String, what: &str| match setting {
        QuotaSetting::Default => format!("{what} by default"),
        QuotaSetting::Unlimited => format!("{what} without limit"),
        QuotaSetting::Limit(number) => limit(number),
    };
    let count = |what: &'static str| {
        move |number: u64| output::count(usize::try_from(number).unwrap_or(usize::MAX), what)
    };
    let changes = |number| format!("{} a minute", count("change")(number));
    [
        one(quotas.bytes, &output::bytes, "size"),
        one(quotas.notes, &count("note"), "notes"),
        one(quotas.changes, &changes, "changes"),
    ]
    .join(", ")
}
