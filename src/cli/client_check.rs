//! Examines the settings of MCP clients for `doctor`: whether they name sidenote, and whether the program is there.
//!
//! Only a program named sidenote in the user's own settings is run, with `--version`. The settings of a project can be
//! a download, and a package runner such as npx would use the network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use serde_json::Value;
use sidenote_base::platform;

use super::child::Running;
use super::clients::{Client, NAME};
use crate::store::{Finding, Level};

/// The time that a program has to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// The largest settings file that is read, in bytes.
const MAX_SETTINGS: u64 = 16_000_000;

/// A settings file of a client.
struct Place {
    file: PathBuf,
    /// Whether the file is the user's own, and not one of a project.
    is_own: bool,
}

/// How a client starts our server.
#[derive(Debug, PartialEq)]
enum Entry {
    /// By a program with arguments.
    Program(String, Vec<String>),
    /// By the address of a running server.
    Address(String),
}

/// Returns a finding for each settings file of each client, and for each client without one.
pub(super) fn findings() -> Vec<Finding> {
    let mut findings = Vec::new();
    for client in Client::value_variants() {
        let places = places(*client);
        let name = client.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let there: Vec<&Place> = places.iter().filter(|place| place.file.is_file()).collect();
        if there.is_empty() {
            let files: Vec<String> = places.iter().map(|place| place.file.display().to_string()).collect();
            let state = format!("there are no settings in {}", files.join(" or "));
            findings.push(Finding::new(name.clone(), Level::Note, state));
        }
        findings.extend(there.into_iter().flat_map(|place| findings_of(*client, &name, place)));
    }
    findings
}

/// Lists the settings files of a client: those of the user, and those of the project in the current folder.
fn places(client: Client) -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |file: PathBuf| {
        let is_own = file.is_absolute();
        places.push(Place { file, is_own });
    };
    if let Ok(file) = client.file() {
        add(file);
    }
    if let Ok(home) = super::clients::home_folder() {
        match client {
            Client::ClaudeCode => add(home.join(".claude.json")),
            Client::Cursor => add(Path::new(".cursor").join("mcp.json")),
            _ => {}
        }
    }
    if let (Client::Vscode, Ok(folder)) = (client, super::clients::application_folder()) {
        add(folder.join("Code").join("User").join("mcp.json"));
    }
    places
}

fn findings_of(client: Client, name: &str, place: &Place) -> Vec<Finding> {
    let file = place.file.display();
    // Users keep their settings in a repository and link to them. The settings of a project can be a download.
    let real = if place.is_own { platform::canonicalize(&place.file) } else { Ok(place.file.clone()) };
    let entries = match real.and_then(|real| sidenote_base::safe_open::read_in_place(&real, MAX_SETTINGS)) {
        Ok(bytes) => entries_of(client, &String::from_utf8_lossy(&bytes)),
        Err(error) => {
            let state = format!("{file} cannot be read: {error}");
            return vec![Finding::new(name, Level::Warning, state)];
        }
    };
    match entries {
        None => {
            let form = if client == Client::Codex { "TOML" } else { "JSON" };
            vec![Finding::new(name, Level::Note, format!("{file} is not {form}, so it was not examined"))]
        }
        Some(entries) if entries.is_empty() => {
            let finding = Finding::new(name, Level::Note, format!("{file} does not name sidenote"));
            let person = format!("to add it: sidenote mcp config {name} --write");
            vec![finding.with_advice(person, "")]
        }
        Some(entries) => entries.iter().map(|entry| examine(name, place, entry)).collect(),
    }
}

/// Returns the servers in a settings file that are sidenote; `None` if the file cannot be parsed.
fn entries_of(client: Client, text: &str) -> Option<Vec<Entry>> {
    let text = text.trim_start_matches('\u{feff}');
    let settings: Value = match client {
        _ if text.trim().is_empty() => Value::Null,
        Client::Codex => toml::from_str(text).ok()?,
        _ => super::settings_json::value_of(text)?,
    };
    let section = match client {
        Client::Codex => "mcp_servers",
        Client::Vscode => "servers",
        Client::Zed => "context_servers",
        _ => "mcpServers",
    };
    // Claude Code has servers for each project in the user's file, too.
    let projects = settings.get("projects").and_then(Value::as_object);
    let levels =
        std::iter::once(&settings).chain(projects.into_iter().flat_map(|projects| projects.values()));
    let mut entries: Vec<Entry> = Vec::new();
    for servers in levels.filter_map(|level| level.get(section)?.as_object()) {
        for entry in servers.iter().filter_map(|(name, server)| entry_of(name, server)) {
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    Some(entries)
}

/// Returns how a server is reached, if it is sidenote by its name, its program or an argument.
fn entry_of(name: &str, server: &Value) -> Option<Entry> {
    let text = |key: &str| server.get(key).and_then(Value::as_str).map(str::to_owned);
    let is_named = name == NAME;
    if let Some(program) = text("command") {
        let arguments: Vec<String> = server
            .get("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|argument| argument.as_str().map(str::to_owned))
            .collect();
        let is_ours = is_named || is_sidenote(&program) || arguments.iter().any(|argument| argument == NAME);
        return is_ours.then_some(Entry::Program(program, arguments));
    }
    text("url").filter(|_| is_named).map(Entry::Address)
}

/// Says whether a path or name is that of a program called sidenote.
fn is_sidenote(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(name) == NAME
}

fn examine(name: &str, place: &Place, entry: &Entry) -> Finding {
    let file = place.file.display();
    let (program, arguments) = match entry {
        Entry::Address(address) => {
            let state = format!("{file} names the server at {address}, which was not contacted");
            return Finding::new(name, Level::Ok, state);
        }
        Entry::Program(program, arguments) => (program, arguments),
    };
    let write = format!("run: sidenote mcp config {name} --write");
    let Some(found) = find_program(program) else {
        let state = format!("{file} starts {program}, which is not there");
        return Finding::new(name, Level::Problem, state)
            .with_advice(write, "ask the user to correct the settings of the client");
    };
    let vault = arguments.iter().skip_while(|argument| *argument != "--vault").nth(1);
    if let Some(vault) = vault.filter(|vault| Path::new(vault).is_absolute() && !Path::new(vault).is_dir()) {
        let state = format!("{file} starts sidenote for the vault {vault}, which is not there");
        return Finding::new(name, Level::Problem, state)
            .with_advice(write, "ask the user to correct the settings of the client");
    }
    let this = env!("CARGO_PKG_VERSION");
    match version_of(&found, place.is_own) {
        Some(version) if version == this => {
            Finding::new(name, Level::Ok, format!("{file} starts {}, version {version}", found.display()))
        }
        Some(version) => {
            let state = format!("{file} starts {}, which says {version}; this is {this}", found.display());
            Finding::new(name, Level::Warning, state)
                .with_advice(write, "ask the user to update the settings of the client")
        }
        None => {
            let state = format!("{file} starts {}, which was not asked for its version", found.display());
            Finding::new(name, Level::Ok, state)
        }
    }
}

/// Returns the file of a program: the path itself, or the first file of that name in `PATH`.
fn find_program(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    let in_folder = |folder: &Path| {
        let mut files =
            platform::PROGRAM_ENDINGS.iter().map(|ending| folder.join(format!("{program}{ending}")));
        files.find(|file| file.is_file())
    };
    if path.components().count() > 1 || path.is_absolute() {
        return in_folder(Path::new(""));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).find_map(|folder| in_folder(&folder))
}

/// Returns the version of a program; `None` if it is not a sidenote that may be run.
fn version_of(program: &Path, is_own: bool) -> Option<String> {
    let real = |path: &Path| platform::canonicalize(path).ok();
    let this = std::env::current_exe().ok().and_then(|path| real(&path));
    if this.is_some() && real(program) == this {
        return Some(env!("CARGO_PKG_VERSION").to_owned());
    }
    if !is_own || !is_sidenote(program.to_str()?) {
        return None;
    }
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let said =
        Running::start(&mut command).and_then(|running| running.finish(Instant::now() + VERSION_LIMIT));
    match said {
        Ok(said) if said.status.success() => {
            let line = said.stdout.lines().next().unwrap_or_default().trim();
            Some(line.strip_prefix("sidenote ").unwrap_or(line).to_owned())
        }
        Ok(said) => Some(format!("nothing, but ends with {}", said.status)),
        Err(error) => Some(format!("nothing: {error}")),
    }
}
