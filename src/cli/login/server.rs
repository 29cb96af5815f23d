//! `sidenote login passphrase`, `list`, `revoke` and `log`: who may use the server that `mcp --http --login` starts.

use std::io::BufRead as _;

use clap::{Args, Subcommand};
use serde::Serialize;
use sidenote_authorization::{AuditEntry, GrantInfo, Logins, RevokeReply};
use sidenote_base::error::{Error, Result};

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output, terminal};

#[derive(Debug, Subcommand)]
pub(super) enum LoginAction {
    Passphrase(PassphraseArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
    Log(LogArgs),
}

/// Set the passphrase with which you give clients access to your server.
///
/// On a terminal it is asked for, twice and without showing it; otherwise the first line of standard input is taken. Its hash (Argon2id) is stored in your data folder. Access that was given stays.
#[derive(Debug, Args)]
pub(super) struct PassphraseArgs {
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// List the clients to which you gave access to your server.
#[derive(Debug, Args)]
pub(super) struct ListArgs {}

/// Take access back, at once: the tokens of the client count no more.
#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// The id of the access, or its beginning, as `sidenote login list` shows it.
    #[arg(required_unless_present = "all")]
    id: Option<String>,
    /// Take back all access.
    #[arg(long, conflicts_with = "id")]
    all: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Show what the login of your server recorded: registrations, wrong passphrases, access given, renewed and taken back.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// The number of entries, the newest ones.
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: usize,
}

/// The reply of `login passphrase`.
#[derive(Debug, Serialize)]
struct PassphraseReply {
    /// Whether it was set.
    applied: bool,
    /// Whether there was one before.
    replaced: bool,
}

/// Returns the logins of the user of this process.
///
/// # Errors
/// `NotFound` if the user has no home folder.
fn logins() -> Result<Logins> {
    let data = sidenote_config::data_folder();
    data.map(Logins::new).ok_or_else(|| Error::not_found("there is no folder for the data of this user"))
}

pub(super) fn run(context: &CommandContext, action: &LoginAction) -> Result<()> {
    let (out, logins, now) = (context.out, logins()?, context.now());
    match action {
        LoginAction::Passphrase(args) => {
            let passphrase = read_passphrase()?;
            let replaced = match args.dry_run.is_set() {
                true => logins.check_passphrase(&passphrase)?,
                false => logins.set_passphrase(&passphrase, now)?,
            };
            let reply = PassphraseReply { applied: !args.dry_run.is_set(), replaced };
            out.reply(&reply, show_passphrase)
        }
        LoginAction::List(_) => out.reply(&logins.list(now)?, |grants| show_grants(grants)),
        LoginAction::Revoke(args) => {
            out.reply(&logins.revoke(args.id.as_deref(), now, args.dry_run.is_set())?, show_revoked)
        }
        LoginAction::Log(args) => out.reply(&logins.audit(args.limit)?, |entries| show_log(entries)),
    }
}

/// Returns the logins for a server, which needs a passphrase: asks for one on a terminal if there is none.
///
/// # Errors
/// `Invalid` if there is none and nobody can be asked.
pub(in crate::cli) fn require_passphrase(context: &CommandContext) -> Result<Logins> {
    let logins = logins()?;
    if logins.has_passphrase()? {
        return Ok(logins);
    }
    if !terminal::can_ask() {
        return Err(Error::invalid("the server has no passphrase, with which you give clients access")
            .with_hint("run: sidenote login passphrase"));
    }
    context.out.message("the server needs a passphrase, with which you give clients access");
    logins.set_passphrase(&read_passphrase()?, context.now())?;
    Ok(logins)
}

/// Reads a new passphrase: from the terminal twice, or the first line of standard input.
fn read_passphrase() -> Result<String> {
    if terminal::can_ask() {
        let passphrase = terminal::ask_secret("new passphrase (four or more words): ")?;
        if terminal::ask_secret("once more: ")? != passphrase {
            return Err(Error::invalid("the two passphrases differ").with_hint("run the command again"));
        }
        return Ok(passphrase);
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Error::io("read a passphrase from", "standard input", error))?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

fn show_passphrase(reply: &PassphraseReply) -> String {
    match (reply.applied, reply.replaced) {
        (false, true) => "the passphrase would be replaced\n",
        (false, false) => "the passphrase would be set\n",
        (true, true) => "the passphrase is replaced; access that was given stays\n",
        (true, false) => "the passphrase is set\n",
    }
    .to_owned()
}

fn row(grant: &GrantInfo) -> Vec<String> {
    let scopes = grant.scopes.join(" ");
    vec![
        grant.id.clone(),
        output::plain(&grant.client),
        scopes,
        output::plain(&grant.redirect),
        grant.resource.clone(),
        format!("given {}", grant.granted.local_rfc3339()),
        format!("renewed {}", grant.renewed.local_rfc3339()),
    ]
}

fn show_grants(grants: &[GrantInfo]) -> String {
    if grants.is_empty() {
        return "no client has access\n".to_owned();
    }
    output::columns(&grants.iter().map(row).collect::<Vec<Vec<String>>>())
}

fn show_revoked(reply: &RevokeReply) -> String {
    let head = match (reply.applied, reply.revoked.is_empty()) {
        (_, true) => return "no client has access\n".to_owned(),
        (true, false) => "access is taken back:\n",
        (false, false) => "access would be taken back:\n",
    };
    head.to_owned() + &output::columns(&reply.revoked.iter().map(row).collect::<Vec<Vec<String>>>())
}

fn show_log(entries: &[AuditEntry]) -> String {
    if entries.is_empty() {
        return "nothing is recorded\n".to_owned();
    }
    let row = |entry: &AuditEntry| {
        let text = |value: &Option<String>| output::plain(value.as_deref().unwrap_or_default());
        vec![
            entry.at.local_rfc3339(),
            entry.event.clone(),
            text(&entry.client),
            text(&entry.scope),
            text(&entry.grant),
            text(&entry.address),
        ]
    };
    output::columns(&entries.iter().map(row).collect::<Vec<Vec<String>>>())
}
