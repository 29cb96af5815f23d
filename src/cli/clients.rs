//! Settings of MCP clients: entries that start our server, printed or merged into the settings file of a client.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use etcetera::BaseStrategy as _;
use serde::Serialize;
use serde_json::json;
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_base::platform::OpenMode;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use super::settings_json::SettingsJson;

/// The name of our server in the settings of a client.
pub(super) const NAME: &str = "sidenote";

/// A program that talks to MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Code: .mcp.json in the project's folder.
    ClaudeCode,
    /// Claude Desktop: claude_desktop_config.json.
    ClaudeDesktop,
    /// Cursor: ~/.cursor/mcp.json.
    Cursor,
    /// VS Code: .vscode/mcp.json in the project's folder.
    Vscode,
    /// Codex: ~/.codex/config.toml.
    Codex,
    /// Gemini CLI: ~/.gemini/settings.json.
    Gemini,
    /// Windsurf: ~/.codeium/windsurf/mcp_config.json.
    Windsurf,
    /// Zed: ~/.config/zed/settings.json.
    Zed,
}

/// How the server is started.
pub(super) struct ServerCommand {
    /// The program.
    pub(super) program: String,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
}

/// The reply of `mcp config` and `hook config`: the settings file of a client, and whether it was written.
#[derive(Debug, Serialize)]
pub(super) struct ConfigWritten {
    /// The settings file of the client.
    file: PathBuf,
    /// The copy of the previous file.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
    /// The text of the whole file, as it is now or would be.
    text: String,
    /// Whether the file was written.
    applied: bool,
    /// Whether the file had the settings already.
    unchanged: bool,
}

impl fmt::Display for ConfigWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match (self.applied, self.unchanged, &self.backup) {
            (_, true, _) => writeln!(f, "{file} is up to date already"),
            (false, ..) => write!(f, "{file} would be:\n{}", self.text),
            (true, _, Some(backup)) => {
                writeln!(f, "{file} starts sidenote now; the previous file is {}", backup.display())
            }
            (true, _, None) => writeln!(f, "{file} starts sidenote now"),
        }
    }
}

/// Merges something into a settings file, and keeps a copy of the previous file.
///
/// # Errors
/// Those of `merged`; `Io` if the file cannot be read or written.
pub(super) fn merge_into_file(
    file: PathBuf,
    dry_run: bool,
    merged: impl Fn(&str, &Path) -> Result<String>,
) -> Result<ConfigWritten> {
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("read", &file, error)),
    };
    let text = merged(before.as_deref().unwrap_or(""), &file)?;
    let unchanged = before.as_deref() == Some(text.as_str());
    let applied = !dry_run && !unchanged;
    // An earlier backup may hold what a person wrote, so it is not overwritten.
    let backup = before.filter(|_| applied).map(|before| (free_backup_path(&file), before));
    if applied {
        save(&file, &text, backup.as_ref())?;
    }
    Ok(ConfigWritten { file, backup: backup.map(|(path, _)| path), text, applied, unchanged })
}

impl Client {
    /// Returns the text to paste into the settings of the client.
    pub(super) fn snippet(self, server: &ServerCommand) -> Result<String> {
        self.merged("", Path::new("the snippet"), server)
    }

    /// Merges the server into the settings of the client, and keeps a copy of the previous file.
    ///
    /// # Errors
    /// `Invalid` if the file cannot be parsed; `Io` if it cannot be read or written.
    pub(super) fn write(
        self,
        server: &ServerCommand,
        file: Option<&Path>,
        dry_run: bool,
    ) -> Result<ConfigWritten> {
        let file = match file {
            Some(file) => file.to_owned(),
            None => {
                let file = self.file()?;
                refuse_project_link(&file)?;
                file
            }
        };
        merge_into_file(file, dry_run, |text, file| self.merged(text, file, server))
    }

    /// Returns the path of the settings file of the client.
    pub(super) fn file(self) -> Result<PathBuf> {
        let home = home_folder()?;
        Ok(match self {
            Self::ClaudeCode => PathBuf::from(".mcp.json"),
            Self::Vscode => Path::new(".vscode").join("mcp.json"),
            Self::Cursor => home.join(".cursor").join("mcp.json"),
            Self::Codex => home.join(".codex").join("config.toml"),
            Self::Gemini => home.join(".gemini").join("settings.json"),
            Self::Windsurf => home.join(".codeium").join("windsurf").join("mcp_config.json"),
            Self::Zed => base_folders()?.config_dir().join("zed").join("settings.json"),
            Self::ClaudeDesktop => application_folder()?.join("Claude").join("claude_desktop_config.json"),
        })
    }

    fn merged(self, text: &str, file: &Path, server: &ServerCommand) -> Result<String> {
        let plain = json!({ "command": server.program, "args": server.arguments });
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Gemini | Self::Windsurf => {
                merged_json(text, file, "mcpServers", &plain)
            }
            Self::Zed => merged_json(text, file, "context_servers", &plain),
            Self::Vscode => {
                let typed = json!({ "type": "stdio", "command": server.program, "args": server.arguments });
                merged_json(text, file, "servers", &typed)
            }
            Self::Codex => merged_toml(text, file, server),
        }
    }
}

/// Refuses a settings file in the project's folder that is reached through a symbolic link. A project can be a download, and a
/// link in it must not lead a write to another file of the user.
///
/// # Errors
/// `Invalid` naming the link.
fn refuse_project_link(file: &Path) -> Result<()> {
    let places = file.ancestors().filter(|place| file.is_relative() && !place.as_os_str().is_empty());
    match places.into_iter().find(|place| place.is_symlink()) {
        None => Ok(()),
        Some(link) => Err(Error::invalid(format!("{} is a symbolic link (symlink)", link.display()))
            .with_hint(
                "name the file that is to be written: --file FILE, or print the settings without --write",
            )),
    }
}

fn base_folders() -> Result<impl etcetera::BaseStrategy> {
    etcetera::choose_base_strategy()
        .map_err(|error| Error::invalid("there is no home folder").with_source(error))
}

/// Returns the home folder of the user.
///
/// # Errors
/// `Invalid` if there is none.
pub(super) fn home_folder() -> Result<PathBuf> {
    Ok(base_folders()?.home_dir().to_owned())
}

/// Returns the folder in which desktop applications keep their settings.
///
/// # Errors
/// `Invalid` if there is no home folder.
pub(super) fn application_folder() -> Result<PathBuf> {
    let base = base_folders()?;
    Ok(platform::APPLICATION_SETTINGS.map_or_else(|| base.config_dir(), |inner| base.home_dir().join(inner)))
}

/// Sets the keys of our entry. Its other keys, such as an environment, stay.
fn merged_json(text: &str, file: &Path, section: &str, server: &serde_json::Value) -> Result<String> {
    if text.trim().is_empty() {
        return pretty(&json!({ section: { NAME: server } }));
    }
    let settings = SettingsJson::parse(text, file)?;
    settings.set_entry(section, NAME, server)?;
    Ok(settings.text())
}

/// Returns the text of new settings.
pub(super) fn pretty(settings: &serde_json::Value) -> Result<String> {
    let text = serde_json::to_string_pretty(settings)
        .map_err(|error| Error::internal("cannot write the settings as JSON").with_source(error))?;
    Ok(text + "\n")
}

fn merged_toml(text: &str, file: &Path, server: &ServerCommand) -> Result<String> {
    let unreadable = || {
        Error::invalid(format!("{} is not TOML as Codex reads it", file.display()))
            .with_hint("run the command without --write, and paste what it prints")
    };
    let mut settings: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| unreadable().with_source(error))?;
    let implicit_table = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let servers = settings.entry("mcp_servers").or_insert_with(implicit_table);
    let is_inline = servers.is_inline_table();
    let servers = servers.as_table_like_mut().ok_or_else(unreadable)?;
    // Other keys of the entry, such as an environment, stay.
    if !servers.get(NAME).is_some_and(Item::is_table_like) {
        let empty = if is_inline { value(InlineTable::new()) } else { Item::Table(Table::new()) };
        servers.insert(NAME, empty);
    }
    let ours = servers.get_mut(NAME).and_then(Item::as_table_like_mut).ok_or_else(unreadable)?;
    ours.insert("command", value(&server.program));
    ours.insert("args", value(server.arguments.iter().collect::<Array>()));
    Ok(settings.to_string())
}

/// Writes the backup of the previous file, and then the new file.
#[expect(clippy::disallowed_methods, reason = "a settings file that the user names")]
fn save(file: &Path, text: &str, backup: Option<&(PathBuf, String)>) -> Result<()> {
    let failed = |error| Error::io("write", file, error);
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // A symbolic link stays one, because settings are often stored in another folder.
    let real = platform::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // The file may hold keys of other servers, so it keeps its permissions.
    let permissions = std::fs::metadata(&real).map(|found| found.permissions()).ok();
    let put = |file: &mut File, text: &str| {
        file.write_all(text.as_bytes())?;
        match &permissions {
            Some(permissions) => file.set_permissions(permissions.clone()),
            None => platform::share_for_reading(file),
        }
    };
    if let Some((path, before)) = backup {
        let opened = platform::open_in_place(path, OpenMode::CreateNew(0o600));
        opened
            .and_then(|mut opened| put(&mut opened, before))
            .map_err(|error| Error::io("write", path, error))?;
    }
    AtomicFile::new(&real).mode(0o600).write(|error| error, |file| put(file, text)).map_err(failed)
}

/// Returns the first free path for a backup of a file: FILE.bak, FILE.bak2 and so on.
fn free_backup_path(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut path = file.with_file_name(format!("{name}.bak"));
    let mut number = 1;
    while path.symlink_metadata().is_ok() {
        number += 1;
        path = file.with_file_name(format!("{name}.bak{number}"));
    }
    path
}
