//! `sidenote team`: vaults that several servers share, in a PostgreSQL database.

mod args;
mod deletion;
mod quota;
mod restore;
mod rights;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use sidenote_base::error::{Error, ErrorKind, Result};

use self::args::{DatabaseArgs, SettingsArgs};
use self::deletion::{DeleteArgs, RenameArgs, UndeleteArgs};
use self::quota::QuotaArgs;
use self::restore::{CleanArgs, RestoreArgs};
use self::rights::{AuditArgs, BlockArgs, ForgetArgs, GrantArgs, ListArgs, RevokeArgs, UnblockArgs};
use crate::cli::args::DryRunArgs;
use crate::cli::login::{self, TeamLogin};
use crate::cli::sync::{self, SyncArgs};
use crate::cli::{CommandContext, Outcome, output, toolsets};
use crate::mcp::login::{KeyTimes, Login, LoginOptions};
use crate::mcp::{Http, VaultSource, VaultState};
use crate::share::follow::Follower;
use crate::share::host::Host;
use crate::share::members;
use crate::share::settings::TeamSettings;
use crate::share::team::{self, TeamCheck};
use crate::store::{Role, Store};

/// The interval at which a server stores uses of memories.
const STORE_USES: Duration = Duration::from_secs(1);

/// Serve vaults that several servers share, from a PostgreSQL database.
///
/// The database holds the files and the journal of all vaults. Each server has a copy of those that it serves, which can be
/// deleted at any time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team init --database postgres://postgres@db.example/notes
  sidenote team create handbook --from ~/handbook
  sidenote team serve handbook --http 127.0.0.1:3000
  sidenote team export handbook ~/handbook-copy
  sidenote team restore handbook ~/handbook-copy --dry-run
  sidenote team clean handbook --dry-run
  sidenote team quota handbook --notes 50000
  sidenote team rename handbook manual
  sidenote team delete handbook --dry-run
  sidenote team grant handbook group:staff writer
  sidenote team list --database postgres:///notes
  sidenote team audit handbook --since 7d
  sidenote team check handbook")]
pub(super) struct TeamArgs {
    #[command(subcommand)]
    command: TeamCommand,
}

impl TeamArgs {
    /// Says whether the command serves vaults.
    pub(super) fn is_server(&self) -> bool {
        matches!(self.command, TeamCommand::Serve(_))
    }
}

#[derive(Debug, Subcommand)]
enum TeamCommand {
    Init(InitArgs),
    Create(CreateArgs),
    Serve(ServeArgs),
    Export(ExportArgs),
    Restore(RestoreArgs),
    Clean(CleanArgs),
    Quota(QuotaArgs),
    Rename(RenameArgs),
    Delete(DeleteArgs),
    Undelete(UndeleteArgs),
    Check(CheckArgs),
    Grant(GrantArgs),
    Revoke(RevokeArgs),
    Block(BlockArgs),
    Unblock(UnblockArgs),
    Forget(ForgetArgs),
    List(ListArgs),
    Audit(AuditArgs),
    Sync(SyncArgs),
    Login(TeamLogin),
}

/// Create the roles and tables in the database, or bring them to the version of this program.
///
/// The role of the connection must be able to create roles. It makes sidenote_owner, which owns the tables, and sidenote_app,
/// as which servers connect. Set a password for sidenote_app, or another way to log in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team init --database postgres://postgres@db.example/notes --dry-run
  sidenote team init --database 'postgres:///notes?host=/run/postgresql'")]
struct InitArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The database, with a role that can create roles. Default: team.database of the settings.
    #[arg(long, value_name = "ADDRESS")]
    database: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Create a vault, empty or with the files of a folder.
///
/// The folder stays as it is. Notes, attachments, the trash and the settings that sidenote reads are stored; the index and the
/// journal of the folder are not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team create handbook --from ~/handbook
  sidenote team create handbook --from ~/handbook --dry-run")]
struct CreateArgs {
    /// The name of the vault: letters, digits, - and _.
    name: String,
    /// The folder with the files of the vault.
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Serve vaults to agents over HTTP, each at /v/NAME/mcp.
///
/// A vault is opened by the first request of it, and closed again where more than team.open of the settings are open. /ready
/// says whether the server can serve, and /metrics has counts for Prometheus.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team serve --http 127.0.0.1:3000
  sidenote team serve handbook support --http 127.0.0.1:3000 --token-file token")]
struct ServeArgs {
    /// The vaults to serve. Default: all of the database; those of team.warm in the settings are opened at the start.
    names: Vec<String>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// The address to serve at.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    http: SocketAddr,
    /// The file with the token that clients must send. It is created if it is missing. Required for an address that other
    /// machines can reach, unless people log in; then this token is for /metrics alone.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A host name by which a proxy reaches the server, such as notes.example; may be repeated. The host of login.url is
    /// allowed already. Requires --token-file or login.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The toolsets to serve, separated by commas.
    #[arg(long, value_name = "SETS", default_value = "notes")]
    toolset: String,
}

/// Write a vault into a new folder: the plain files, as they were.
///
/// A folder that the command makes is for you alone. A file that is damaged in the database is named and left out, and the command
/// ends with 8.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team export handbook ~/handbook-copy")]
struct ExportArgs {
    /// The name of the vault.
    name: String,
    /// The folder, which must be empty or missing.
    folder: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Compare all contents of a vault with their hashes, and its generations with each other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote team check handbook --json
  sidenote team check --database postgres:///notes")]
struct CheckArgs {
    /// The name of the vault. Without it, all vaults of the database, for which the role of the connection must own the tables.
    name: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) fn run(context: &mut CommandContext, args: TeamArgs) -> Result<Outcome> {
    match args.command {
        TeamCommand::Init(args) => init(context, &args)?,
        TeamCommand::Create(args) => create(context, &args)?,
        TeamCommand::Serve(args) => serve(context, args)?,
        TeamCommand::Export(args) => return export(context, &args),
        TeamCommand::Restore(args) => restore::restore(context, &args)?,
        TeamCommand::Clean(args) => restore::clean(context, &args)?,
        TeamCommand::Quota(args) => quota::run(context, &args)?,
        TeamCommand::Rename(args) => deletion::rename(context, &args)?,
        TeamCommand::Delete(args) => deletion::delete(context, &args)?,
        TeamCommand::Undelete(args) => deletion::undelete(context, &args)?,
        TeamCommand::Check(args) => return check(context, &args),
        TeamCommand::Grant(args) => rights::grant(context, &args)?,
        TeamCommand::Revoke(args) => rights::revoke(context, &args)?,
        TeamCommand::Block(args) => rights::block(context, &args)?,
        TeamCommand::Unblock(args) => rights::unblock(context, &args)?,
        TeamCommand::Forget(args) => rights::forget(context, &args)?,
        TeamCommand::List(args) => rights::list(context, &args)?,
        TeamCommand::Audit(args) => rights::show_audit(context, &args)?,
        TeamCommand::Sync(args) => return sync::run(context, &args),
        TeamCommand::Login(args) => return login::run_team(context, &args),
    }
    Ok(Outcome::Done)
}

fn init(context: &CommandContext, args: &InitArgs) -> Result<()> {
    let (_, database) = args.settings.open(args.database.as_deref())?;
    let reply = database.init(args.dry_run.is_set())?;
    context.out.reply(&reply, |reply| match (reply.from == reply.to, reply.applied) {
        (true, _) => format!("the tables have version {} already\n", reply.to),
        (false, true) => format!("the tables have version {} now\n", reply.to),
        (false, false) => {
            format!("the tables would be brought from version {} to {}\n", reply.from, reply.to)
        }
    })
}

fn create(context: &CommandContext, args: &CreateArgs) -> Result<()> {
    let (settings, database) = args.database.open()?;
    let (from, dry_run) = (args.from.as_deref(), args.dry_run.is_set());
    let reply = team::create(&database, &args.name, from, settings.max_file(), context.now(), dry_run)?;
    context.out.reply(&reply, |reply| {
        let verb = if reply.applied { "created" } else { "would be created" };
        let files = output::count(reply.files, "file");
        format!("{} {verb}: {files}, {}\n", reply.name, output::bytes(reply.bytes))
    })
}

fn export(context: &CommandContext, args: &ExportArgs) -> Result<Outcome> {
    let (_, database) = args.database.open()?;
    let reply = team::export(&database, &args.name, &args.folder, args.dry_run.is_set())?;
    context.out.reply(&reply, |reply| {
        let verb = if reply.applied { "written" } else { "would be written" };
        let files = output::count(reply.files, "file");
        let damaged = reply.damaged.iter();
        let damaged = damaged
            .map(|path| format!("{} is damaged in the database, and was left out\n", output::plain(path)));
        damaged.collect::<String>()
            + &format!("{files} {verb} to {}, {}\n", args.folder.display(), output::bytes(reply.bytes))
    })?;
    Ok(if reply.damaged.is_empty() { Outcome::Done } else { Outcome::ProblemsFound })
}

fn check(context: &CommandContext, args: &CheckArgs) -> Result<Outcome> {
    let (_, database) = args.database.open()?;
    let names = team::vaults(&database, args.name.as_deref())?;
    let replies =
        names.iter().map(|name| team::check(&database, name)).collect::<Result<Vec<TeamCheck>>>()?;
    let show = |reply: &TeamCheck| match reply.problems.as_slice() {
        [] => format!("{}: {} are as they should be\n", reply.name, output::count(reply.files, "file")),
        problems => {
            problems.iter().map(|problem| format!("{}: {}\n", reply.name, output::plain(problem))).collect()
        }
    };
    match (replies.as_slice(), &args.name) {
        ([reply], Some(_)) => context.out.reply(reply, show)?,
        _ => context.out.reply(&replies, |replies| replies.iter().map(show).collect())?,
    }
    let is_whole = replies.iter().all(|reply| reply.problems.is_empty());
    Ok(if is_whole { Outcome::Done } else { Outcome::ProblemsFound })
}

/// The vaults of the database that a server serves.
struct TeamVaults {
    host: Host,
    /// The names of those that are served; all if empty.
    names: Vec<String>,
    warm: Vec<String>,
    most_open: usize,
}

impl TeamVaults {
    /// Returns whether a vault is served: all are, or it is one of those that are, or was when it had another name.
    fn serves(&self, name: &str) -> Result<bool> {
        if team::check_name(name).is_err() {
            return Ok(false);
        }
        if self.names.is_empty() || self.names.iter().any(|served| served == name) {
            return Ok(true);
        }
        self.host.was_named(name, &self.names)
    }
}

impl VaultSource for TeamVaults {
    fn open(&self, name: &str) -> Result<Option<Store>> {
        if !self.serves(name)? {
            return Ok(None);
        }
        match self.host.store(name) {
            Ok(store) => {
                for notice in store.notices() {
                    tracing::warn!("{name}: {notice}");
                }
                Ok(Some(store))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn role(&self, name: &str, who: &[String]) -> Result<Option<(Role, VaultState)>> {
        if !self.serves(name)? {
            return Ok(None);
        }
        let found = self.host.members().role(name, who)?;
        Ok(found.map(|(role, state)| (role, told(state))))
    }

    fn state(&self, name: &str) -> Result<Option<VaultState>> {
        if !self.serves(name)? {
            return Ok(None);
        }
        Ok(self.host.members().state(name)?.map(told))
    }

    fn take_news(&self) -> bool {
        self.host.take_news()
    }

    fn close(&self, name: &str) {
        self.host.close(name);
    }

    fn check(&self) -> Result<()> {
        self.host.check()
    }

    fn is_away(&self) -> bool {
        self.host.is_away()
    }

    fn warm(&self) -> &[String] {
        &self.warm
    }

    fn most_open(&self) -> usize {
        self.most_open
    }

    fn with_earlier_settings(&self) -> usize {
        self.host.with_earlier_settings()
    }

    fn metrics(&self) -> String {
        self.host.metrics()
    }
}

/// Converts the state of a vault to the value for the server of clients.
fn told(state: members::VaultState) -> VaultState {
    match state {
        members::VaultState::Present => VaultState::Present,
        members::VaultState::Renamed(name) => VaultState::Renamed(name),
        members::VaultState::Deleted => VaultState::Deleted,
    }
}

/// Prepares the check of access tokens, if the settings have one.
fn login(settings: &TeamSettings) -> Result<Option<Arc<Login>>> {
    let Some(login) = &settings.login else { return Ok(None) };
    let login = Login::new(LoginOptions {
        issuers: login.issuer.clone(),
        audiences: login.audiences.clone(),
        url: login.url.clone(),
        groups_claim: login.groups_claim.clone(),
        name_claim: login.name_claim.clone(),
        algorithms: login.algorithms.clone(),
        records_reads: settings.audit.reads,
        key_times: KeyTimes::default(),
    })?;
    Ok(Some(Arc::new(login)))
}

/// Does something again and again, with pauses, in a thread of its own, until the vaults are not served any more.
fn keep_doing(
    name: &str,
    vaults: &Arc<TeamVaults>,
    pause: Duration,
    mut work: impl FnMut(&TeamVaults) + Send + 'static,
) -> Result<()> {
    let served = Arc::downgrade(vaults);
    let work = move || {
        while let Some(vaults) = served.upgrade() {
            work(&vaults);
            drop(vaults);
            std::thread::sleep(pause);
        }
    };
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|error| Error::internal("no thread can be started").with_source(error))
}

fn serve(context: &mut CommandContext, args: ServeArgs) -> Result<()> {
    let settings = args.settings.load()?;
    for name in args.names.iter().chain(&settings.warm) {
        team::check_name(name)?;
    }
    let login = login(&settings)?;
    let sets = toolsets::parse(&args.toolset)?;
    context.open.fill = true;
    context.open.agent = Some("mcp".to_owned());
    context.open.has_sessions = true;
    // Vaults that are named are open before the server is ready.
    let warm = if args.names.is_empty() { settings.warm.clone() } else { args.names.clone() };
    let most_open = settings.open.max(1);
    let host = Host::new(settings, context.open.clone())?;
    let vaults = Arc::new(TeamVaults { host, names: args.names, warm, most_open });
    let mut follower = Follower::default();
    keep_doing("sidenote-follow", &vaults, Duration::ZERO, move |vaults| vaults.host.follow(&mut follower))?;
    keep_doing("sidenote-uses", &vaults, STORE_USES, |vaults| vaults.host.tend())?;
    let http = Http {
        authorization: None,
        address: args.http,
        token_file: args.token_file,
        origins: Vec::new(),
        hosts: args.allow_host,
        login,
    };
    let names = vaults.names.clone();
    let out = context.out;
    let served = crate::mcp::serve_named(vaults.clone(), &sets, &http, &mut |address| {
        let named: Vec<&str> =
            if names.is_empty() { vec!["NAME"] } else { names.iter().map(String::as_str).collect() };
        let addresses: Vec<String> =
            named.iter().map(|name| format!("http://{address}/v/{name}/mcp")).collect();
        out.message(&format!("serving at {}; press Ctrl-C to stop", addresses.join(", ")));
    });
    vaults.host.tend();
    served
}
