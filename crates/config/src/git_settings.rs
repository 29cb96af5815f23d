//! The settings of commits in git. They belong to the user, and the user's file names the vaults to which they apply.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use toml::Value;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use super::{Origin, expand_home};

/// When the changes of operations are committed in git (docs/spec/git.md 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitPolicy {
    /// Never.
    #[default]
    Off,
    /// After each operation.
    Operation,
    /// Once for all operations of an MCP session; after each operation of anything else.
    Session,
}

/// What holds for one vault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitVault {
    /// The folder of the vault: an absolute path, or one from `~/` on.
    pub path: String,
    /// When its operations are committed.
    #[serde(default)]
    pub commit: Option<CommitPolicy>,
    /// The author of what agents change in it.
    #[serde(default)]
    pub author: Option<String>,
}

/// Settings about commits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitConfig {
    /// When the operations of this vault are committed.
    pub commit: CommitPolicy,
    /// The author of what agents change, as `Name <address>`; empty for the user.
    pub author: String,
    /// What holds for single vaults.
    pub vault: Vec<GitVault>,
}

impl GitConfig {
    /// Refuses an author that git would not take.
    pub(super) fn checked(self) -> Result<Self> {
        let authors = self.vault.iter().filter_map(|vault| vault.author.as_ref()).chain([&self.author]);
        for author in authors.filter(|author| !author.is_empty()) {
            let parts = author.strip_suffix('>').and_then(|author| author.split_once('<'));
            let is_sound =
                parts.is_some_and(|(name, address)| !name.trim().is_empty() && !address.contains(['<', '>']));
            if !is_sound || author.contains(char::is_control) {
                return Err(Error::invalid(format!("git.author {author:?} is no author"))
                    .with_hint("write it as: Name <address@example.org>"));
            }
        }
        for vault in &self.vault {
            if !expand_home(Path::new(&vault.path)).is_absolute() {
                return Err(Error::invalid(format!(
                    "the path {:?} of git.vault is not absolute",
                    vault.path
                ))
                .with_hint("write the whole path of the vault, or one that begins with ~/"));
            }
        }
        Ok(self)
    }
}

/// Returns a folder's path with all symbolic links followed, or the path itself where there is no such folder.
fn full_path(path: &Path) -> PathBuf {
    platform::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Says whether a path of the settings names a vault.
fn is_vault(path: &str, root: &Path) -> bool {
    full_path(&expand_home(Path::new(path))) == full_path(root)
}

/// Returns the error for a setting that is given without a vault.
pub(super) fn only_for_one_vault(what: &str, key: &str) -> Error {
    let name = key.trim_start_matches("git.");
    Error::invalid(format!("{what}, which is set for single vaults")).with_hints(
        format!(
            "run: sidenote --vault FOLDER config set {key} VALUE; it writes [[git.vault]] with path and {name}"
        ),
        "ask the user to set it for single vaults, as [[git.vault]] in their own file",
    )
}

/// Lists the settings that the user's file has for a vault. Of several entries for one vault, the last one counts.
pub(super) fn settings_of_vault(
    values: &BTreeMap<String, (Value, Origin)>,
    root: &Path,
    file: &Path,
) -> Result<Vec<(&'static str, Value)>> {
    let Some((Value::Array(entries), _)) = values.get("git.vault") else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let vault: GitVault = entry.clone().try_into().map_err(|error: toml::de::Error| {
            Error::invalid(format!("{} has a [[git.vault]] that cannot be read", file.display()))
                .with_source(error)
                .with_hint("give it path, commit (off, operation or session) and, if you like, author")
        })?;
        if !is_vault(&vault.path, root) {
            continue;
        }
        let value = |name: &str| entry.get(name).cloned();
        found.extend(value("commit").map(|value| ("git.commit", value)));
        found.extend(value("author").map(|value| ("git.author", value)));
    }
    Ok(found)
}

/// Sets a setting of one vault in the user's file, or takes it out. Says what was changed, if anything.
pub(super) fn edit_vault(
    document: &mut DocumentMut,
    root: &Path,
    key: &str,
    value: Option<&str>,
    file: &Path,
) -> Result<Option<String>> {
    let name = match key {
        "git.commit" => "commit",
        "git.author" => "author",
        _ => return Err(Error::invalid(format!("{key} cannot be set for one vault"))),
    };
    let root = full_path(root);
    let shown = root.to_str().ok_or_else(|| {
        Error::invalid(format!("{} is not UTF-8, so settings cannot name it", root.display()))
    })?;
    let wrong = || {
        Error::invalid(format!("git.vault in {} is no list of tables", file.display()))
            .with_hint("write it as [[git.vault]] with path, commit and author")
    };
    if value.is_none() && document.get("git").is_none_or(|git| git.get("vault").is_none()) {
        return Ok(None);
    }
    let git = document.entry("git").or_insert_with(|| {
        let mut git = Table::new();
        git.set_implicit(true);
        Item::Table(git)
    });
    let git = git.as_table_mut().ok_or_else(wrong)?;
    let vaults = git.entry("vault").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let vaults = vaults.as_array_of_tables_mut().ok_or_else(wrong)?;
    let is_it =
        |vault: &Table| vault.get("path").and_then(Item::as_str).is_some_and(|path| is_vault(path, &root));
    let at = vaults.iter().enumerate().filter(|(_, vault)| is_it(vault)).map(|(at, _)| at).last();
    let Some(text) = value else {
        let removed = at.and_then(|at| vaults.get_mut(at)).and_then(|vault| vault.remove(name));
        return Ok(
            removed.map(|item| format!("{key} of {shown}: {} -> the default", item.to_string().trim()))
        );
    };
    if at.is_none() {
        let mut vault = Table::new();
        vault.insert("path", toml_edit::value(shown));
        vaults.push(vault);
    }
    let last = vaults.len().saturating_sub(1);
    let vault = vaults.get_mut(at.unwrap_or(last)).ok_or_else(wrong)?;
    let was = vault.get(name).map(|item| item.to_string().trim().to_owned());
    let fresh = toml_edit::value(text);
    let is = fresh.to_string().trim().to_owned();
    if was.as_ref() == Some(&is) {
        return Ok(None);
    }
    vault.insert(name, fresh);
    Ok(Some(format!("{key} of {shown}: {} -> {is}", was.unwrap_or_else(|| "the default".to_owned()))))
}
