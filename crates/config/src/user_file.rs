//! Edits of the user's file of settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use toml::Value;
use toml_edit::{DocumentMut, Item};

use crate::layers::{can_be_added, flatten, no_setting, parse, put, set_text};
use crate::{DEFAULTS, HIDDEN, ONLY_FOR_ONE_VAULT, Origin, SECRET_KEYS, checked_sections, user_file};

/// A change of one setting in the user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange {
    /// Set to a text.
    Text(String),
    /// Set to a whole number.
    Number(i64),
    /// Set to any other value, written as TOML.
    Toml(String),
    /// Removed, so that the default applies.
    Unset,
}

/// The result of a change of the user's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigEdit {
    /// The file.
    pub file: PathBuf,
    /// The differences, one line each. They never contain the value of a secret.
    pub changes: Vec<String>,
    /// Whether the file was written.
    pub applied: bool,
}

/// Changes settings in the user's file and keeps every other byte of it. A dry run only reports what would change.
///
/// # Errors
/// `Invalid` if the file is not TOML; `Io` if it cannot be read or written.
pub fn edit_user_file(changes: &[(&str, SettingChange)], dry_run: bool) -> Result<ConfigEdit> {
    let (file, mut document) = read_user_file()?;
    let mut said = Vec::new();
    for (key, setting) in changes {
        said.extend(edit_one(&mut document, key, setting, &file)?);
    }
    let applied = !dry_run && !said.is_empty();
    if applied {
        save_user_file(&file, &document.to_string())?;
    }
    Ok(ConfigEdit { file, changes: said, applied })
}

/// Reads the user's file, to be edited; a missing one is empty.
fn read_user_file() -> Result<(PathBuf, DocumentMut)> {
    let file = user_file()
        .ok_or_else(|| Error::not_found("there is no home folder for settings").with_hint("set HOME"))?;
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::io("read", &file, error)),
    };
    parse(&before, &file)?;
    let document = before
        .parse()
        .map_err(|_: toml_edit::TomlError| Error::invalid(format!("{} is not valid TOML", file.display())))?;
    Ok((file, document))
}

/// Sets one setting in the user's file to a value of its type, or removes it. A dry run only reports what would change.
///
/// # Errors
/// `Invalid` for an unknown key, and for a value of a wrong type or out of range; otherwise those of
/// [`edit_user_file`].
pub fn set_user(key: &str, value: Option<&str>, dry_run: bool) -> Result<ConfigEdit> {
    let origin = || Origin::Flag("config set".to_owned());
    let mut values: BTreeMap<String, (Value, Origin)> = flatten(&parse(DEFAULTS, Path::new("config.toml"))?)
        .into_iter()
        .map(|(key, value)| (key, (value, Origin::Default)))
        .collect();
    if ONLY_FOR_ONE_VAULT.contains(&key) {
        return Err(crate::git_settings::only_for_one_vault(
            &format!("{key} cannot be set for all vaults"),
            key,
        ));
    }
    let Some(text) = value else {
        if !values.contains_key(key) && !can_be_added(key) {
            return Err(no_setting(&values, key, format!("{key} is no setting")));
        }
        return edit_user_file(&[(key, SettingChange::Unset)], dry_run);
    };
    let known = values.get(key).map(|(value, _)| value);
    if matches!(known, Some(Value::Array(_) | Value::Table(_))) || known.is_none() && can_be_added(key) {
        let table = parse(&format!("value = {text}"), Path::new("the value"))?;
        put(&mut values, key, table.get("value").cloned().unwrap_or(Value::Boolean(false)), origin())?;
        checked_sections(&values)?;
        return edit_user_file(&[(key, SettingChange::Toml(text.to_owned()))], dry_run);
    }
    set_text(&mut values, key, text, origin())?;
    checked_sections(&values)?;
    let setting = match values.get(key).map(|(value, _)| value) {
        Some(Value::Integer(number)) => SettingChange::Number(*number),
        Some(Value::Boolean(flag)) => SettingChange::Toml(flag.to_string()),
        Some(Value::Float(_)) => SettingChange::Toml(text.trim().to_owned()),
        _ => SettingChange::Text(text.to_owned()),
    };
    edit_user_file(&[(key, setting)], dry_run)
}

/// Sets a setting of commits for one vault in the user's file, or removes it. A dry run only reports what would change.
///
/// # Errors
/// `Invalid` for a key that cannot be set for one vault, and for a value out of range; otherwise those of
/// [`edit_user_file`].
pub fn set_user_for_vault(root: &Path, key: &str, value: Option<&str>, dry_run: bool) -> Result<ConfigEdit> {
    if let Some(text) = value {
        let mut values: BTreeMap<String, (Value, Origin)> =
            flatten(&parse(DEFAULTS, Path::new("config.toml"))?)
                .into_iter()
                .map(|(key, value)| (key, (value, Origin::Default)))
                .collect();
        set_text(&mut values, key, text, Origin::Flag("config set".to_owned()))?;
        checked_sections(&values)?;
    }
    let (file, mut document) = read_user_file()?;
    let change = crate::git_settings::edit_vault(&mut document, root, key, value, &file)?;
    let applied = !dry_run && change.is_some();
    if applied {
        save_user_file(&file, &document.to_string())?;
    }
    Ok(ConfigEdit { file, changes: change.into_iter().collect(), applied })
}

/// Changes one setting, and returns what changed, if anything.
fn edit_one(
    document: &mut DocumentMut,
    key: &str,
    setting: &SettingChange,
    file: &Path,
) -> Result<Option<String>> {
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    let root = document.as_table_mut();
    if !root.contains_key(section) {
        if matches!(setting, SettingChange::Unset) {
            return Ok(None);
        }
        root.insert(section, toml_edit::table());
    }
    let table = root
        .get_mut(section)
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| Error::invalid(format!("{section} in {} is no section", file.display())))?;
    let bare = |item: &Item| {
        // A comment after the value is not part of it.
        item.as_value().cloned().map(|mut value| {
            value.decor_mut().clear();
            value.to_string()
        })
    };
    let was = table.get(name).map(|item| bare(item).unwrap_or_else(|| item.to_string()));
    let fresh = match setting {
        SettingChange::Text(text) => Some(toml_edit::Value::from(text.as_str())),
        SettingChange::Number(number) => Some(toml_edit::Value::from(*number)),
        SettingChange::Toml(text) => Some(text.trim().parse().map_err(|_: toml_edit::TomlError| {
            Error::invalid(format!("{text:?} is not a TOML value"))
                .with_hint("write a list as [\"a\", \"b\"] and a table as { a = 1 }")
        })?),
        SettingChange::Unset => None,
    };
    let is = fresh.as_ref().map(|value| value.to_string().trim().to_owned());
    if was == is {
        return Ok(None);
    }
    match (fresh, table.get_mut(name).and_then(Item::as_value_mut)) {
        // The text around the value stays, with a comment after it.
        (Some(mut fresh), Some(old)) => {
            *fresh.decor_mut() = old.decor().clone();
            *old = fresh;
        }
        (Some(fresh), None) => drop(table.insert(name, toml_edit::value(fresh))),
        (None, _) => drop(table.remove(name)),
    }
    let shown = |value: Option<String>| match value {
        Some(_) if SECRET_KEYS.contains(&key) => HIDDEN.to_owned(),
        Some(value) => value,
        None => "the default".to_owned(),
    };
    Ok(Some(format!("{key}: {} -> {}", shown(was), shown(is))))
}

/// Writes the user's file, whole or not at all. Because it may hold a key, a new file is readable by the user only.
fn save_user_file(file: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    // If the file is a symbolic link to another folder of settings, it stays one.
    let file = platform::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new(""));
    #[expect(clippy::disallowed_methods, reason = "the user's own settings")]
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let failed = |error| Error::io("write", &file, error);
    let write = |to: &mut std::fs::File| to.write_all(text.as_bytes()).map_err(failed);
    AtomicFile::new(&file).mode(0o600).sync().write(failed, write)
}
