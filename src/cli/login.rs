//! `sidenote login`: logs in at a vault of a team, and manages who may use this computer's own server over HTTP.

mod server;
#[cfg(feature = "team")]
mod team;

use clap::Args;
use sidenote_base::error::Result;

pub(super) use self::server::require_passphrase;
use super::{CommandContext, Outcome};

/// Log in at a vault of a team, or manage who may use your own server.
///
/// With a URL, the browser opens the page of the identity provider that the vault names. Afterwards the tokens are in a file that no other
/// user can read, and `sidenote sync` renews them when they expire. They count for this vault alone. The password stays between
/// you and the identity provider.
///
/// With a subcommand, it is about the server that `sidenote mcp --http --login` starts: its passphrase, and the clients to which you gave access.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
#[cfg_attr(not(feature = "team"), command(subcommand_required = true))]
pub(super) struct LoginArgs {
    #[command(subcommand)]
    action: Option<server::LoginAction>,
    #[cfg(feature = "team")]
    #[command(flatten)]
    team: team::TeamLoginArgs,
}

const EXAMPLES: &str = "Examples:
  sidenote login https://notes.example/v/handbook
  sidenote login https://notes.example/v/handbook --no-browser
  sidenote login --list
  sidenote login https://notes.example/v/handbook --forget
  sidenote login passphrase
  sidenote login list
  sidenote login revoke 4f1c
  sidenote login log";

pub(super) fn run(context: &CommandContext, args: &LoginArgs) -> Result<Outcome> {
    if let Some(action) = &args.action {
        return server::run(context, action).map(|()| Outcome::Done);
    }
    #[cfg(feature = "team")]
    return team::run(context, &args.team);
    #[cfg(not(feature = "team"))]
    Ok(Outcome::Done)
}

/// Log in at a vault of a team, for `sidenote sync`.
///
/// The browser opens the page of the identity provider that the vault names. Afterwards the tokens are in a file that no other
/// user can read, and `sidenote sync` renews them when they expire. They count for this vault alone. The password stays between
/// you and the identity provider.
#[cfg(feature = "team")]
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote login https://notes.example/v/handbook
  sidenote login https://notes.example/v/handbook --no-browser
  sidenote login https://notes.example/v/handbook --dry-run
  sidenote login --list
  sidenote login https://notes.example/v/handbook --forget")]
pub(super) struct TeamLogin {
    #[command(flatten)]
    args: team::TeamLoginArgs,
}

/// Runs `sidenote team login`.
#[cfg(feature = "team")]
pub(super) fn run_team(context: &CommandContext, login: &TeamLogin) -> Result<Outcome> {
    team::run(context, &login.args)
}
