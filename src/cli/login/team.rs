//! `sidenote login URL`: logs in at a vault of a team, lists the logins of the user and removes them.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use sidenote_base::error::{Error, Result};

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, Outcome, interrupt, open, output};
use crate::share::address::VaultAddress;
use crate::share::oauth::stored_login::LoginStore;
use crate::share::oauth::{self, ForgetLoginReply, LoginPlan, LoginReply, LoginRequest, PreparedLogin};

/// How long the person may take in the browser.
const LIMIT: Duration = Duration::from_secs(300);

/// The arguments of a login at a vault of a team.
#[derive(Debug, Args)]
pub(super) struct TeamLoginArgs {
    /// The address of the vault: https://HOST/v/NAME.
    #[arg(required_unless_present = "list")]
    url: Option<String>,
    /// Also ask for the right to change the settings of the vault (the scope notes:admin).
    #[arg(long)]
    admin: bool,
    /// The id of sidenote at the identity provider. Default: sidenote registers there.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Only print the address; open it in a browser of this computer yourself. Otherwise it is opened with $SIDENOTE_OPENER,
    /// or with the program that the system has for it.
    #[arg(long)]
    no_browser: bool,
    /// List the logins.
    #[arg(long, conflicts_with_all = ["url", "admin", "client_id", "no_browser", "forget", "dry_run"])]
    list: bool,
    /// Remove the login, and have the identity provider revoke its tokens if it offers that.
    #[arg(long, conflicts_with_all = ["admin", "client_id", "no_browser"])]
    forget: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// A line of `login --json`.
#[derive(Debug, Serialize)]
struct LoginLine<'a> {
    /// What happened: `open` or `logged-in`.
    event: &'static str,
    /// The address that the browser is to open.
    #[serde(skip_serializing_if = "Option::is_none", rename = "address")]
    open: Option<&'a str>,
    /// The login.
    #[serde(flatten)]
    reply: Option<&'a LoginReply>,
}

pub(super) fn run(context: &CommandContext, args: &TeamLoginArgs) -> Result<Outcome> {
    let out = context.out;
    let store = LoginStore::of_user()?;
    let Some(url) = args.url.as_deref().filter(|_| !args.list) else {
        out.reply(&oauth::list(&store)?, |logins| show_list(logins))?;
        return Ok(Outcome::Done);
    };
    let address = VaultAddress::parse(url)?;
    if args.forget {
        out.reply(&oauth::forget(&store, &address, args.dry_run.is_set())?, show_forgotten)?;
        return Ok(Outcome::Done);
    }
    let stop = interrupt::stop_on_signal()?;
    let login = PreparedLogin::new(LoginRequest {
        address,
        client_id: args.client_id.clone(),
        admin: args.admin,
        limit: LIMIT,
        clock: context.open.clock,
    })?;
    if args.dry_run.is_set() {
        out.reply(&login.plan(), show_plan)?;
        return Ok(Outcome::Done);
    }
    let reply = login.log_in(&store, &stop, &mut |address| {
        match out.is_json() {
            true => print_line(out, &LoginLine { event: "open", open: Some(address), reply: None })?,
            false => {
                out.message("log in with the browser, at this address; press Ctrl-C to stop");
                out.print(&format!("{}\n", output::plain(address)))?;
            }
        }
        if !args.no_browser {
            open::open_browser(out, address.to_owned());
        }
        Ok(())
    })?;
    let Some(reply) = reply else { return Ok(Outcome::Interrupted) };
    match out.is_json() {
        true => print_line(out, &LoginLine { event: "logged-in", open: None, reply: Some(&reply) })?,
        false => out.reply(&reply, show_login)?,
    }
    Ok(Outcome::Done)
}

fn print_line(out: output::Output, line: &LoginLine<'_>) -> Result<()> {
    let text = serde_json::to_string(line)
        .map_err(|error| Error::internal("cannot write a line as JSON").with_source(error))?;
    out.print(&format!("{text}\n"))
}

fn show_login(reply: &LoginReply) -> String {
    let mut text = format!("logged in at {}\n", output::plain(&reply.address));
    text.push_str(&format!("scopes: {}\n", output::plain(&reply.scopes.join(" "))));
    if !reply.renews {
        text.push_str("the identity provider does not renew the token; log in again when it has expired\n");
    }
    text
}

fn show_list(logins: &[LoginReply]) -> String {
    if logins.is_empty() {
        return "no logins\n".to_owned();
    }
    let row = |login: &LoginReply| {
        let expires = login.expires.map_or("unknown expiry".to_owned(), |expires| expires.local_rfc3339());
        let until = if login.renews { "renewed when needed".to_owned() } else { expires };
        vec![login.address.clone(), login.issuer.clone(), until, login.scopes.join(" ")]
    };
    output::columns(&logins.iter().map(row).collect::<Vec<Vec<String>>>())
}

fn show_forgotten(reply: &ForgetLoginReply) -> String {
    let address = output::plain(&reply.address);
    if !reply.applied {
        let also = if reply.revocable { ", and its tokens be revoked" } else { "" };
        return format!("the login at {address} would be removed{also}\n");
    }
    let tokens = match (&reply.reason, reply.revoked) {
        (_, true) => "its tokens are revoked".to_owned(),
        (Some(reason), _) => format!("its tokens count until they expire: {}", output::plain(reason)),
        (None, _) => {
            "its tokens count until they expire: the identity provider does not revoke tokens".to_owned()
        }
    };
    format!("the login at {address} is removed; {tokens}\n")
}

fn show_plan(plan: &LoginPlan) -> String {
    let client = match (&plan.client_id, &plan.registration_endpoint) {
        (Some(id), _) => id.clone(),
        (None, Some(endpoint)) => format!("registered at {endpoint}"),
        (None, None) => String::new(),
    };
    let rows = [
        ("vault", plan.address.clone()),
        ("identity provider", plan.issuer.clone()),
        ("page for the browser", plan.authorization_endpoint.clone()),
        ("tokens from", plan.token_endpoint.clone()),
        ("client", client),
        ("resource", plan.resource.clone()),
        ("scopes", plan.scopes.join(" ")),
    ];
    output::columns(&rows.map(|(name, value)| vec![name.to_owned(), value]))
        + "nothing was changed: this is what would be done\n"
}
