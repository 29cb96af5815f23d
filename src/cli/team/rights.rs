//! `sidenote team grant`, `revoke`, `block`, `unblock`, `forget` and `audit`: who may do what in vaults of a team, and who did what.

use std::collections::HashSet;

use clap::{Args, ValueEnum};
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use super::args::{DatabaseArgs, OwnerArgs, SettingsArgs};
use super::quota;
use crate::cli::{CommandContext, output};
use crate::share::audit::{AuditEvent, AuditRequest, audit};
use crate::share::members::{self, BlockReply, RoleReply, VaultList};
use crate::share::quota::QuotaSettings;
use crate::share::settings::TeamSettings;
use crate::share::{Database, team};
use crate::store::Role;

/// The roles, as arguments.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleArg {
    /// Reads notes.
    Reader,
    /// Reads and changes notes.
    Writer,
    /// Also changes settings in the vault.
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Reader => Self::Reader,
            RoleArg::Writer => Self::Writer,
            RoleArg::Admin => Self::Admin,
        }
    }
}

/// Give a person or group a role in a vault.
///
/// It counts from the next request on. What a person may do is the role and the scope of the access token, whichever is less.
/// A person with several roles, by groups, has the highest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team grant handbook https://login.example#24828 writer
  sidenote team grant handbook group:staff reader --dry-run
  sidenote team grant handbook group:staff reader --database postgres:///notes")]
pub(super) struct GrantArgs {
    /// The name of the vault.
    name: String,
    /// The person as ISSUER#SUBJECT, as the access token has them, or a group as group:NAME.
    who: String,
    /// The role.
    role: RoleArg,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// Withdraw the role of a person or group in a vault.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team revoke handbook group:staff")]
pub(super) struct RevokeArgs {
    /// The name of the vault.
    name: String,
    /// The person as ISSUER#SUBJECT, or a group as group:NAME.
    who: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// Block a person or group in all vaults at once, whatever their roles are.
///
/// An access token that the identity provider has issued counts until it expires; this counts from the next request on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team block https://login.example#24828")]
pub(super) struct BlockArgs {
    /// The person as ISSUER#SUBJECT, or a group as group:NAME.
    who: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// End the block of a person or group.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team unblock https://login.example#24828")]
pub(super) struct UnblockArgs {
    #[command(flatten)]
    block: BlockArgs,
}

/// Replace a person by a number in the journals of all vaults, and remove the roles of the person.
///
/// Notes that name the person stay as they are, and so do backups. Servers make their copies of the vaults again, at
/// once or when they run again. The log of a server names a person who was refused because of a missing role; delete
/// such lines where your system keeps them.
///
/// A block of the person stays: the database keeps a hash by which it is recognised, and `sidenote team unblock` ends it. A person
/// who is not blocked and still has a role by a group may come back, under the name; block the person first if that must not be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team forget https://login.example#24828 --dry-run")]
pub(super) struct ForgetArgs {
    /// The person as ISSUER#SUBJECT, as the audit has it.
    who: String,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// List the vaults of the database with their sizes and quotas, who has which role in each, and who is blocked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team list --database postgres:///notes
  sidenote team list --deleted --database postgres:///notes
  sidenote team list --database postgres:///notes --json")]
pub(super) struct ListArgs {
    /// Only the vaults that were deleted and not removed for good yet.
    #[arg(long)]
    deleted: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    /// The database, with a role that owns the tables. Default: team.database of the settings, whose role servers have; it
    /// may not list all vaults.
    #[arg(long, value_name = "ADDRESS")]
    database: Option<String>,
}

/// List who changed a vault, which calls were refused, and which roles and blocks were given, oldest first.
///
/// With audit.reads of the settings, it also lists who read which notes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team audit handbook --since 7d
  sidenote team audit --since 7d --database postgres:///notes
  sidenote team audit handbook --who anna@example.org --json")]
pub(super) struct AuditArgs {
    /// The name of the vault. Without it, all vaults of the database, for which the role of the connection must own the tables.
    name: Option<String>,
    /// Only events since this time or date, such as 2026-01-01, yesterday or 7d.
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Only events of this person, or about it: ISSUER#SUBJECT, the subject, the shown name, or group:NAME.
    #[arg(long, value_name = "WHO")]
    who: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Checks a person or group of an argument. Where no settings of login were read, it says that the issuer was not compared.
fn check_who(context: &CommandContext, who: &str, settings: &TeamSettings) -> Result<()> {
    let issuers = settings.login.as_ref().map_or(&[][..], |login| &login.issuer);
    members::check_who(who, issuers)?;
    if issuers.is_empty()
        && let Some((issuer, _)) = who.split_once('#').filter(|_| !who.starts_with("group:"))
    {
        context.out.message(&format!(
            "{issuer} was not compared with login.issuer, since no settings with [login] were read: it must be exactly the iss of access tokens, where a slash at the end counts"
        ));
    }
    Ok(())
}

pub(super) fn grant(context: &CommandContext, args: &GrantArgs) -> Result<()> {
    let (settings, database) = args.owner.open()?;
    check_who(context, &args.who, &settings)?;
    let (role, dry_run) = (Some(args.role.into()), args.owner.dry_run.is_set());
    let reply = members::set_role(&database, &args.name, &args.who, role, context.now(), dry_run)?;
    context.out.reply(&reply, role_text)
}

pub(super) fn revoke(context: &CommandContext, args: &RevokeArgs) -> Result<()> {
    let (_, database) = args.owner.open()?;
    let dry_run = args.owner.dry_run.is_set();
    let reply = members::set_role(&database, &args.name, &args.who, None, context.now(), dry_run)?;
    context.out.reply(&reply, role_text)
}

fn role_text(reply: &RoleReply) -> String {
    let name = |role: Option<Role>| role.map_or("no role", Role::name);
    let verb = if reply.applied { "has" } else { "would have" };
    let (who, vault) = (output::plain(&reply.who), &reply.vault);
    format!("{who} {verb} {} in {vault}, before: {}\n", name(reply.role), name(reply.before))
}

pub(super) fn block(context: &CommandContext, args: &BlockArgs) -> Result<()> {
    let (settings, database) = args.owner.open()?;
    check_who(context, &args.who, &settings)?;
    set_blocked(context, args, &database, true)
}

pub(super) fn unblock(context: &CommandContext, args: &UnblockArgs) -> Result<()> {
    let (_, database) = args.block.owner.open()?;
    set_blocked(context, &args.block, &database, false)
}

fn set_blocked(context: &CommandContext, args: &BlockArgs, database: &Database, blocked: bool) -> Result<()> {
    let reply =
        members::set_blocked(database, &args.who, blocked, context.now(), args.owner.dry_run.is_set())?;
    context.out.reply(&reply, |reply: &BlockReply| {
        let who = output::plain(&reply.who);
        let state = if reply.blocked { "blocked" } else { "not blocked" };
        match (reply.applied, reply.before == reply.blocked) {
            (_, true) => format!("{who} is {state} already\n"),
            (true, false) => format!("{who} is {state} now\n"),
            (false, false) => format!("{who} would be {state}\n"),
        }
    })
}

pub(super) fn list(context: &CommandContext, args: &ListArgs) -> Result<()> {
    let (_, database) = args.settings.open(args.database.as_deref())?;
    context.out.reply(&members::list(&database, args.deleted)?, |list: &VaultList| {
        let mut rows = Vec::new();
        for vault in &list.vaults {
            let size = &vault.size;
            rows.push(vec![
                vault.name.clone(),
                output::count(usize::try_from(size.files).unwrap_or(usize::MAX), "file"),
                format!(
                    "{}, {}, with earlier versions {}",
                    output::count(usize::try_from(size.notes).unwrap_or(usize::MAX), "note"),
                    output::bytes(size.bytes),
                    output::bytes(size.stored)
                ),
            ]);
            if vault.quotas != QuotaSettings::default() {
                let quotas = quota::shown(&vault.quotas);
                rows.push(vec![String::new(), "quota".to_owned(), quotas]);
            }
            if let Some(deletion) = vault.deletion {
                let (at, until) = (deletion.deleted_at, deletion.removable_at);
                let text = format!("{}, kept until {}", at.local_rfc3339(), until.local_rfc3339());
                rows.push(vec![String::new(), "deleted".to_owned(), text]);
            }
            let roles = vault.roles.iter();
            rows.extend(
                roles.map(|role| vec![String::new(), role.role.name().to_owned(), output::plain(&role.who)]),
            );
            if vault.roles.is_empty() {
                rows.push(vec![String::new(), "-".to_owned(), "nobody has a role".to_owned()]);
            }
        }
        let blocked = list.blocked.iter().enumerate().map(|(at, who)| {
            let place = if at == 0 { "in all vaults" } else { "" };
            vec![place.to_owned(), "blocked".to_owned(), output::plain(who)]
        });
        rows.extend(blocked);
        let none = if args.deleted { "no vault was deleted\n" } else { "there are no vaults\n" };
        if rows.is_empty() { none.to_owned() } else { output::columns(&rows) }
    })
}

pub(super) fn forget(context: &CommandContext, args: &ForgetArgs) -> Result<()> {
    let (_, database) = args.owner.open()?;
    let reply = members::forget(&database, &args.who, context.now(), args.owner.dry_run.is_set())?;
    context.out.reply(&reply, |reply| {
        let verb = if reply.applied { "is" } else { "would be" };
        let (events, roles) = (output::count(reply.events, "event"), output::count(reply.roles, "role"));
        let vaults = output::count(reply.vaults, "vault");
        let block = match reply.blocked {
            true => "the person stays blocked",
            false => "the person is not blocked, and comes back with a token and a role by a group",
        };
        format!("the person {verb} {} now: {events} and {roles} in {vaults}; {block}\n", reply.replaced_by)
    })
}

pub(super) fn show_audit(context: &CommandContext, args: &AuditArgs) -> Result<()> {
    let (_, database) = args.database.open()?;
    let bound = |text: &String| Timestamp::parse_bound_at("--since", text, context.now());
    let since = args.since.as_ref().map(bound).transpose()?;
    let request = AuditRequest { since, who: args.who.clone() };
    let is_of_all = args.name.is_none();
    let (mut events, mut seen) = (Vec::new(), HashSet::new());
    for name in team::vaults(&database, args.name.as_deref())? {
        let mut of_vault = audit(&database, &name, &request)?;
        if is_of_all {
            of_vault.iter_mut().for_each(|event| event.set_vault(&name));
            // A block is of no vault, and every vault tells it.
            of_vault.retain(|event| seen.insert(event.event.id.clone()));
        }
        events.append(&mut of_vault);
    }
    events.sort_by(|one, other| (one.event.at, &one.event.id).cmp(&(other.event.at, &other.event.id)));
    context.out.reply(&events, |events: &Vec<AuditEvent>| {
        let rows = events.iter().map(|event| {
            let (tool, op) = (event.tool().to_owned(), event.event.op.clone());
            let (at, client) = (event.event.at.local_rfc3339(), event.client().to_owned());
            let mut row = vec![at, event.actor(), client, tool, op, event.object(), event.event.id.clone()];
            if is_of_all {
                row.insert(1, event.vault().to_owned());
            }
            row
        });
        output::columns(&rows.collect::<Vec<_>>())
    })
}
