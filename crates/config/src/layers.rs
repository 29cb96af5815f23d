//! The layers of the settings: how a value of a higher layer replaces that of a lower one.

use std::collections::BTreeMap;
use std::path::Path;

use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use toml::{Table, Value};

use crate::{DEFAULTS, MAX_VAULT_FILE, Origin, VAULT_FILE, relation_settings};

/// Returns the built-in defaults.
pub(crate) fn defaults() -> Result<BTreeMap<String, (Value, Origin)>> {
    let table = parse(DEFAULTS, Path::new("config.toml"))?;
    Ok(flatten(&table).into_iter().map(|(key, value)| (key, (value, Origin::Default))).collect())
}

pub(crate) fn parse(text: &str, path: &Path) -> Result<Table> {
    text.parse::<Table>().map_err(|error: toml::de::Error| {
        let wrong = Error::invalid(format!("{} is not valid TOML", path.display()));
        // The parser's message quotes the malformed line, which may contain a key.
        if text.contains("api_key") { wrong } else { wrong.with_source(error) }
    })
}

pub(crate) fn flatten(table: &Table) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (section, value) in table {
        match value {
            Value::Table(inner) => {
                flat.extend(inner.iter().map(|(key, value)| (format!("{section}.{key}"), value.clone())));
            }
            other => flat.push((section.clone(), other.clone())),
        }
    }
    flat
}

pub(crate) fn unflatten(values: &BTreeMap<String, (Value, Origin)>) -> Table {
    let mut table = Table::new();
    for (key, (value, _)) in values {
        let Some((section, name)) = key.split_once('.') else {
            table.insert(key.clone(), value.clone());
            continue;
        };
        let entry = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(inner) = entry {
            inner.insert(name.to_owned(), value.clone());
        }
    }
    table
}

/// Reads a vault's own settings; empty if it has none.
pub(crate) fn vault_file(root: &Path) -> Result<String> {
    let path = root.join(VAULT_FILE);
    let bytes = match safe_open::read(root, VAULT_FILE, MAX_VAULT_FILE) {
        Ok(bytes) => bytes,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(String::new());
        }
        Err(error) => return Err(safe_open::failed("read", &path, error)),
    };
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} is not UTF-8", path.display())))
}

pub(crate) fn merge(
    values: &mut BTreeMap<String, (Value, Origin)>,
    text: &str,
    path: &Path,
    origin: Origin,
    refused: &[&str],
) -> Result<()> {
    for (key, value) in flatten(&parse(text, path)?) {
        if refused.contains(&key.as_str()) && matches!(origin, Origin::User(_)) {
            return Err(crate::git_settings::only_for_one_vault(
                &format!("{} sets {key}", path.display()),
                &key,
            ));
        }
        if refused.contains(&key.as_str()) {
            return Err(Error::invalid(format!(
                "{} sets {key}, which only your own settings can do",
                path.display()
            ))
            .with_hints(
                "set it in your own file; `sidenote config show` tells where that is",
                "ask the user to set it in their own file",
            ));
        }
        put(values, &key, value, origin.clone())?;
    }
    Ok(())
}

/// Returns the error for an unknown setting, which names the settings that may be meant: the most similar ones, or the sections.
pub(crate) fn no_setting(values: &BTreeMap<String, (Value, Origin)>, key: &str, message: String) -> Error {
    /// A name may have one wrong character for each of so many characters.
    const CHARACTERS: usize = 4;
    /// The maximum number of names that the error gives.
    const NAMED: usize = 3;
    let section = key.split('.').next().unwrap_or_default();
    let mut near: Vec<(usize, &str)> =
        values.keys().map(|known| (strsim::osa_distance(known, key), known.as_str())).collect();
    near.retain(|(wrong, _)| *wrong <= key.len() / CHARACTERS);
    near.sort_unstable();
    let near: Vec<&str> = near.into_iter().take(NAMED).map(|(_, known)| known).collect();
    let in_section =
        || values.keys().filter(move |known| known.split('.').next() == Some(section)).map(String::as_str);
    let mut sections: Vec<&str> = values.keys().filter_map(|known| known.split('.').next()).collect();
    sections.dedup();
    let hint = if !near.is_empty() {
        format!("did you mean {}? `sidenote config show` lists all settings", near.join(" or "))
    } else if in_section().next().is_some() {
        format!("settings of {section} are {}", in_section().collect::<Vec<_>>().join(", "))
    } else {
        format!("settings begin with {}; `sidenote config show` lists them", sections.join(", "))
    };
    Error::invalid(message).with_hint(hint)
}

pub(crate) fn put(
    values: &mut BTreeMap<String, (Value, Origin)>,
    key: &str,
    value: Value,
    origin: Origin,
) -> Result<()> {
    if can_be_added(key) && value.is_table() && !values.contains_key(key) {
        values.insert(key.to_owned(), (value, origin));
        return Ok(());
    }
    // A type of relations keeps the fields that are not set, and its lists grow.
    if key.starts_with("relations.")
        && let (Some((Value::Table(old), _)), Value::Table(new)) = (values.get(key), &value)
    {
        let mut merged = old.clone();
        relation_settings::add(&mut merged, new);
        values.insert(key.to_owned(), (Value::Table(merged), origin));
        return Ok(());
    }
    let Some((old, _)) = values.get(key) else {
        return Err(no_setting(values, key, format!("{origin} sets {key}, which is no setting")));
    };
    if !old.same_type(&value) {
        return Err(Error::invalid(format!(
            "{origin} sets {key} to a {}, not a {}",
            value.type_str(),
            old.type_str()
        )));
    }
    values.insert(key.to_owned(), (value, origin));
    Ok(())
}

/// Sets a key from text, with the type of its default.
pub(crate) fn set_text(
    values: &mut BTreeMap<String, (Value, Origin)>,
    key: &str,
    text: &str,
    origin: Origin,
) -> Result<()> {
    let wrong = |kind: &str| Error::invalid(format!("{origin} sets {key} to {text:?}, which is no {kind}"));
    let value = match values.get(key).map(|(value, _)| value) {
        Some(Value::Integer(_)) => Value::Integer(text.parse().map_err(|_| wrong("whole number"))?),
        Some(Value::Boolean(_)) => Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?),
        Some(Value::Float(_)) => Value::Float(text.parse().map_err(|_| wrong("number"))?),
        _ => Value::String(text.to_owned()),
    };
    put(values, key, value, origin)
}

/// Returns whether a key is in a table to which keys can be added.
pub(crate) fn can_be_added(key: &str) -> bool {
    key.starts_with("types.") || key.starts_with("relations.")
}
