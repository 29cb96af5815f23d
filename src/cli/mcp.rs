//! `sidenote mcp`: starts the MCP server over standard input and output or over HTTP, and prints client configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sidenote_base::error::{Error, Result};
use sidenote_config::{AgentRule, expand_home};
use sidenote_vault::fence::PathRules;
use sidenote_vault::location::LocationReason;

use super::args::path_from_home;
use super::clients;
use super::web_clients::{ConfigClient, WebClient};
use super::{CommandContext, login, toolsets};
use crate::mcp::{AuthorizationOptions, Http, Toolset};
use crate::store::Event;
use crate::store::agents::Agents;

/// Start the MCP server for AI agents.
///
/// MCP is the Model Context Protocol. The server uses standard input and output, or HTTP with --http. `sidenote mcp config CLIENT` prints the settings with which a client starts this server.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    action: Option<McpAction>,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    fence: FenceArgs,
}

const EXAMPLES: &str = "Examples:
  sidenote --vault ~/notes mcp
  sidenote --vault ~/notes mcp --toolset notes,longterm --read-only
  sidenote --vault ~/notes mcp --http 127.0.0.1:3000
  sidenote --vault anna=/srv/anna --vault family=/srv/family mcp
  sidenote --vault ~/notes mcp --http --login --public-url https://notes.example
  sidenote mcp --notestore_path ~/memories
  sidenote --vault ~/notes mcp config claude-desktop --write";

/// The longest name of a vault, in bytes.
const MAX_NAME: usize = 64;

#[derive(Debug, Subcommand)]
enum McpAction {
    /// Print the settings with which a client starts this server, or write them; or print how a client on the web reaches it.
    Config(ConfigArgs),
}

#[derive(Debug, Args)]
struct ConfigArgs {
    /// The client.
    client: ConfigClient,
    /// Merge the settings into the settings file of the client. The previous file is kept as FILE.bak. With a GLOB, let the
    /// agents change only files that match, as `sidenote mcp` does; may be repeated.
    #[arg(long, value_name = "GLOB", num_args = 0..=1, default_missing_value = "", action = clap::ArgAction::Append)]
    write: Vec<String>,
    /// Let the agents know only of files that match, as `sidenote mcp` does; may be repeated.
    #[arg(long, value_name = "GLOB", action = clap::ArgAction::Append)]
    read: Vec<String>,
    /// The settings file, if it is not the default one of the client.
    #[arg(long, value_name = "FILE", requires = "write")]
    file: Option<PathBuf>,
    /// Write nothing; print what would be written.
    #[arg(long, requires = "write")]
    dry_run: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

impl ConfigArgs {
    /// Returns whether the settings are merged into the file of the client.
    fn writes_file(&self) -> bool {
        self.write.iter().any(String::is_empty)
    }

    /// Returns what the agents of the server may read and change.
    fn fence(&self) -> FenceArgs {
        let write = self.write.iter().filter(|pattern| !pattern.is_empty()).cloned().collect();
        FenceArgs { read: self.read.clone(), write }
    }
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// The toolsets to serve, separated by commas: notes (standard tools), more (for longer work), connector
    /// (search and fetch, for ChatGPT), or those of others: mem, longterm, vector, tiered, rulebook, graph, memories.
    #[arg(long, value_name = "SETS")]
    toolset: Option<String>,
    /// Offer no tool that writes, and write no file, not even the journal.
    #[arg(long)]
    read_only: bool,
    /// Serve only a vault that has an index already. In another folder, the server ends with an error and creates nothing.
    #[arg(long)]
    existing: bool,
    /// Serve HTTP at this address (POST /mcp) instead of standard input and output. With --vault NAME=FOLDER, each vault is
    /// also served at /v/NAME/mcp.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:3000")]
    http: Option<SocketAddr>,
    /// The file with the token that clients must send. It is created if it is missing. Required for an address that other
    /// machines can reach.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// An origin whose web pages may use the server (CORS), such as https://notes.example:8443; may be repeated. Pages of
    /// this machine may always call it.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// A host name by which a tunnel or proxy reaches the server, such as notes.example; may be repeated. Requires
    /// --token-file.
    #[arg(long, value_name = "NAME", requires = "token_file")]
    allow_host: Vec<String>,
    /// Let clients log in: the server has an OAuth authorization server of its own, at whose page you give a client access with your
    /// passphrase (`sidenote login passphrase`). For ChatGPT, Claude and others that reach the server from elsewhere.
    #[arg(long, requires = "http")]
    login: bool,
    /// The address by which clients reach the server through a tunnel or proxy, such as https://notes.example. Default: the
    /// address of --http, for clients of this machine.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// The folder of memories: like --vault, with the toolset mem and the layout memories. Default: ./memories.
    #[arg(long = "notestore_path", alias = "notestore-path", value_name = "FOLDER", num_args = 0..=1, default_missing_value = "./memories", value_parser = path_from_home())]
    notestore_path: Option<PathBuf>,
    /// The folder of the index of these memories: like --index. Default: index in the folder of memories.
    #[arg(long = "index_path", alias = "index-path", value_name = "FOLDER", num_args = 0..=1, default_missing_value = "./memories/index", value_parser = path_from_home())]
    index_path: Option<PathBuf>,
}

/// What the agents of one server may read and change, besides the rules of the settings.
#[derive(Debug, Args)]
struct FenceArgs {
    /// Let the agents know only of files that match, such as Projects or "!Private"; may be repeated. The last pattern that
    /// matches a path decides, ! takes paths out, and a list that begins with ! begins with every file.
    #[arg(long, value_name = "GLOB", action = clap::ArgAction::Append)]
    read: Vec<String>,
    /// Let the agents change only files that match, of those that they may read; may be repeated.
    #[arg(long, value_name = "GLOB", action = clap::ArgAction::Append)]
    write: Vec<String>,
}

impl FenceArgs {
    /// Returns what the flags allow, as a rule for all agents of the server.
    fn rule(&self) -> AgentRule {
        let given = |patterns: &Vec<String>| (!patterns.is_empty()).then(|| patterns.clone());
        AgentRule { read: given(&self.read), write: given(&self.write), ..AgentRule::default() }
    }
}

impl ServeArgs {
    fn sets(&self) -> Result<Vec<Toolset>> {
        let names = match (&self.toolset, &self.notestore_path) {
            (Some(names), _) => names.as_str(),
            (None, Some(_)) => "mem",
            (None, None) => "notes",
        };
        toolsets::parse(names)
    }
}

/// Runs the command. `vaults` are the values of `--vault`, of which `context` has the first.
pub(super) fn run(context: &mut CommandContext, args: &McpArgs, vaults: &[PathBuf]) -> Result<()> {
    match &args.action {
        Some(McpAction::Config(args)) => configure(context, args, vaults),
        None => serve(context, args, named_vaults(vaults, &args.serve)?),
    }
}

/// Starts the server. `named` are the vaults to serve under their names; if it is empty, one vault is served.
fn serve(context: &mut CommandContext, args: &McpArgs, named: Vec<NamedVault>) -> Result<()> {
    let (args, fence) = (&args.serve, &args.fence);
    let sets = args.sets()?;
    apply_compatibility_settings(context, args, &sets)?;
    context.open.fill = true;
    context.open.agent = Some("mcp".to_owned());
    context.open.has_sessions = true;
    context.open.read_only = args.read_only;
    context.open.existing = args.existing;
    // Over standard input and output, the connection is the session. Over HTTP, each client begins its own, and calls
    // without a session share this one.
    if args.http.is_none() {
        let now = context.open.clock.now();
        context.open.session.get_or_insert_with(|| Event::new("session", now).id);
    }
    if !named.is_empty() && context.open.index.is_some() {
        return Err(Error::invalid("several vaults cannot share the folder of an index")
            .with_hint("leave out --index; the index of each is in its own .sidenote/index"));
    }
    let authorization = authorization(context, args)?;
    let mut vaults = Vec::new();
    for NamedVault { name, folder } in named {
        context.open.vault = Some(folder);
        vaults.push((name, agents(context, fence)?));
    }
    if vaults.is_empty() {
        vaults.push((String::new(), agents(context, fence)?));
    }
    let Some(address) = args.http else { return crate::mcp::serve_stdio(vaults, &sets) };
    let mut paths: Vec<String> = vaults.iter().map(|(name, _)| format!("/v/{name}/mcp")).collect();
    match vaults.as_slice() {
        [(name, _)] if name.is_empty() => paths = vec!["/mcp".to_owned()],
        [_] => {}
        _ => paths.push("/mcp".to_owned()),
    }
    let http = Http {
        login: None,
        authorization,
        address,
        token_file: args.token_file.clone(),
        origins: args.allow_origin.clone(),
        hosts: args.allow_host.clone(),
    };
    let out = context.out;
    crate::mcp::serve_http(vaults, &sets, &http, &mut |address| {
        let addresses: Vec<String> = paths.iter().map(|path| format!("http://{address}{path}")).collect();
        let elsewhere = args.public_url.as_ref().map_or_else(String::new, |url| {
            let url = url.trim_end_matches('/');
            let addresses: Vec<String> = paths.iter().map(|path| format!("{url}{path}")).collect();
            format!(", for clients elsewhere at {}", addresses.join(", "))
        });
        out.message(&format!("serving at {}{elsewhere}; press Ctrl-C to stop", addresses.join(", ")));
    })
}

/// Opens the vault, and reads what agents may do in it.
fn agents(context: &CommandContext, fence: &FenceArgs) -> Result<Agents> {
    let store = context.store()?;
    store.config().agents.iter().try_for_each(toolsets::refuse_unknown_tools)?;
    let agents = Agents::new(store, context.open.clone(), fence.rule())?;
    for pattern in agents.unmatched_flags()? {
        tracing::warn!("no file matches {pattern:?} of --read or --write; check its spelling");
    }
    Ok(agents)
}

/// Returns the settings of the authorization server, if clients log in.
fn authorization(context: &CommandContext, args: &ServeArgs) -> Result<Option<AuthorizationOptions>> {
    if !args.login {
        return match args.public_url {
            None => Ok(None),
            Some(_) => Err(Error::invalid("--public-url is the address of a server with --login")
                .with_hint("add --login, or leave --public-url out")),
        };
    }
    let folder = login::require_passphrase(context)?.folder();
    Ok(Some(AuthorizationOptions { public_url: args.public_url.clone(), folder, clock: context.open.clock }))
}

/// A vault that is served under a name.
struct NamedVault {
    name: String,
    folder: PathBuf,
}

/// Reads the values of `--vault` as `NAME=FOLDER`. Returns none if there is one without a name, which is served alone.
///
/// # Errors
/// `Invalid` if a value has no valid name, or two have the same name or folder;
/// `NotFound` if a folder does not exist.
fn named_vaults(vaults: &[PathBuf], args: &ServeArgs) -> Result<Vec<NamedVault>> {
    if let [only] = vaults
        && (only.is_dir() || split_name(only).is_none())
    {
        return Ok(Vec::new());
    }
    if vaults.is_empty() {
        return Ok(Vec::new());
    }
    if args.notestore_path.is_some() {
        return Err(Error::invalid("--notestore_path is one vault, and cannot be combined with others")
            .with_hint("name its folder by --vault NAME=FOLDER"));
    }
    let mut named: Vec<NamedVault> = Vec::new();
    let mut real_folders = Vec::new();
    for value in vaults {
        let (name, folder) = split_name(value).ok_or_else(|| {
            Error::invalid(format!("{} does not begin with the name of a vault", value.display()))
                .with_hint("write --vault NAME=FOLDER, with a name of letters, digits, - and _")
        })?;
        let real = sidenote_base::platform::canonicalize(&folder)
            .map_err(|error| Error::io("open the vault", &folder, error))?;
        if let Some(other) = named.iter().find(|other| other.name.eq_ignore_ascii_case(&name)) {
            return Err(Error::invalid(format!(
                "two vaults have the name {name}, or {} in other letters",
                other.name
            ))
            .with_hint("give each its own name"));
        }
        if real_folders.contains(&real) {
            return Err(Error::invalid(format!("{} is given under two names", folder.display()))
                .with_hint("give each folder once"));
        }
        real_folders.push(real);
        named.push(NamedVault { name, folder });
    }
    Ok(named)
}

/// Splits `NAME=FOLDER`. Returns `None` if it does not begin with a valid name.
fn split_name(value: &Path) -> Option<(String, PathBuf)> {
    let (name, folder) = value.to_str()?.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fits = (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_name) && !folder.is_empty();
    fits.then(|| (name.to_owned(), expand_home(Path::new(folder))))
}

/// Applies the flags and environment variables by which the servers `mem` and `longterm` are given their folders.
fn apply_compatibility_settings(
    context: &mut CommandContext,
    args: &ServeArgs,
    sets: &[Toolset],
) -> Result<()> {
    let open = &mut context.open;
    if let Some(folder) = &args.notestore_path {
        open.vault = Some(created_folder(folder)?);
        open.flags.push(("vault.layout", "memories".to_owned(), "--notestore_path"));
        open.index.get_or_insert_with(|| folder.join("index"));
    }
    if let Some(folder) = &args.index_path {
        open.index = Some(folder.clone());
    }
    if sets.iter().any(|set| set.name() == "longterm") {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if open.vault.is_none()
            && let Some(folder) = variable("MEMORY_DB_PATH")
        {
            let folder = expand_home(Path::new(&folder));
            if folder.is_file() {
                let place = folder.with_extension("");
                return Err(Error::invalid(format!(
                    "MEMORY_DB_PATH names the file {}; sidenote keeps memories as notes in a folder",
                    folder.display()
                ))
                .with_hint(format!(
                    "set MEMORY_DB_PATH to a folder, such as {0}, and import the database of the other server: sidenote --vault {0} memory import {1}",
                    place.display(),
                    folder.display()
                )));
            }
            open.vault = Some(created_folder(&folder)?);
        }
        if let Some(folder) = variable("MEMORY_BACKUP_PATH") {
            let folder =
                folder.into_string().map_err(|_| Error::invalid("MEMORY_BACKUP_PATH is not UTF-8"))?;
            // A relative path in the variable is relative to the current folder, not to the vault.
            let folder = expand_home(Path::new(&folder));
            let absolute = std::path::absolute(&folder).map_err(|error| Error::io("find", &folder, error))?;
            open.flags.push(("backup.dir", absolute.display().to_string(), "MEMORY_BACKUP_PATH"));
            // The variable also turns automatic backups on, as in the other server.
            open.flags.push(("backup.auto", "true".to_owned(), "MEMORY_BACKUP_PATH"));
        }
    }
    Ok(())
}

/// Creates the folder of memories if it is missing, as the other servers do.
fn created_folder(folder: &Path) -> Result<PathBuf> {
    if folder.is_file() {
        return Err(Error::invalid(format!("{} is a file", folder.display()))
            .with_hint("name a folder, which is created if it is missing"));
    }
    #[expect(clippy::disallowed_methods, reason = "the folder that the user names")]
    std::fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
    Ok(folder.to_owned())
}

/// Returns the vault of a command as settings name it: its absolute path.
pub(super) fn absolute_vault(context: &CommandContext) -> Result<PathBuf> {
    let location = context.location()?;
    if location.reason == LocationReason::Unmarked {
        let root = location.root.display();
        context.out.message(&format!("note: {root} is no vault yet; the server makes it one"));
    }
    std::path::absolute(&location.root).map_err(|error| Error::io("find", &location.root, error))
}

/// Prints or writes the settings of a client.
fn configure(context: &CommandContext, args: &ConfigArgs, vaults: &[PathBuf]) -> Result<()> {
    args.serve.sets()?;
    let client = match args.client {
        ConfigClient::Program(client) => client,
        ConfigClient::Web(client) => return print_steps(context, args, client, vaults),
    };
    let named = named_vaults(vaults, &args.serve)?;
    if args.serve.http.is_some() {
        return Err(Error::invalid("a client starts a server over standard input and output")
            .with_hint("leave out --http; for a server over HTTP, enter its URL in the client"));
    }
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(|error| Error::io("find", path, error));
    let mut line = Vec::new();
    if let Some(index) = args.serve.index_path.as_ref().or(context.open.index.as_ref()) {
        line.extend(["--index".to_owned(), absolute(index)?.display().to_string()]);
    }
    if let Some(folder) = &args.serve.notestore_path {
        line.extend([
            "mcp".to_owned(),
            "--notestore_path".to_owned(),
            absolute(folder)?.display().to_string(),
        ]);
    } else if !named.is_empty() {
        for NamedVault { name, folder } in &named {
            line.extend(["--vault".to_owned(), format!("{name}={}", absolute(folder)?.display())]);
        }
        line.push("mcp".to_owned());
    } else {
        let vault = absolute_vault(context)?;
        if !vault.is_dir() {
            let vault = vault.display();
            context.out.message(&format!("warning: {vault} is not a folder, so the server will not start"));
        }
        line.extend(["--vault".to_owned(), vault.display().to_string(), "mcp".to_owned()]);
    }
    if let Some(sets) = &args.serve.toolset {
        line.extend(["--toolset".to_owned(), sets.clone()]);
    }
    if args.serve.read_only {
        line.push("--read-only".to_owned());
    }
    let fence = args.fence();
    let rule = fence.rule();
    if rule != AgentRule::default() {
        context.out.message(&format!("note: with these settings, the agent {}", rule.describe()));
    }
    // A wrong pattern is found now, not by the client.
    [&fence.read, &fence.write].into_iter().try_for_each(|patterns| PathRules::new(patterns).map(drop))?;
    for (flag, patterns) in [("--read", &fence.read), ("--write", &fence.write)] {
        line.extend(patterns.iter().flat_map(|pattern| [flag.to_owned(), pattern.clone()]));
    }
    if args.serve.existing {
        line.push("--existing".to_owned());
    }
    let program = std::env::current_exe().map_err(|error| Error::io("find", "this program", error))?;
    let server = clients::ServerCommand { program: program.display().to_string(), arguments: line };
    if !args.writes_file() {
        return context.out.print(&client.snippet(&server)?);
    }
    let reply = client.write(&server, args.file.as_deref(), args.dry_run)?;
    context.out.reply(&reply, |reply| reply.to_string())
}

/// Prints the steps by which a person connects a client that reaches the server.
fn print_steps(
    context: &CommandContext,
    args: &ConfigArgs,
    client: WebClient,
    vaults: &[PathBuf],
) -> Result<()> {
    if args.writes_file() {
        return Err(
            Error::invalid("this client has no settings file").with_hint("follow the steps without --write")
        );
    }
    let named = |vault: &PathBuf| split_name(vault).filter(|_| !vault.is_dir()).map(|(name, _)| name);
    let names: Vec<String> = vaults.iter().filter_map(named).collect();
    let alone = context.open.vault.iter().filter(|_| vaults.is_empty());
    let vaults: Vec<String> = vaults.iter().chain(alone).map(|vault| vault.display().to_string()).collect();
    let steps = client.steps(args.serve.public_url.as_deref(), &vaults, &names);
    context.out.reply(&steps, |steps| steps.text())
}
