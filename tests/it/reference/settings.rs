//! `settings.md`, out of the built-in settings, and what the program itself says of each.

use std::fmt::Write as _;

use serde_json::Value;
use sidenote::config::Config;

use super::{MADE, check_page, code, prose, sentence};
use crate::support::{TestVault, repository, source_files, stdout};

/// One setting of `crates/config/src/config.toml`.
#[derive(Debug)]
struct Setting {
    key: String,
    default: String,
    meaning: String,
    /// Whether the meaning is that of the whole section.
    is_general: bool,
    is_text: bool,
}

/// Reads the built-in settings with their comments. A comment goes for every setting below it up to an empty line or the
/// next comment; a section's goes for all settings that have none.
fn settings() -> Vec<Setting> {
    let text = std::fs::read_to_string(repository().join("crates/config/src/config.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let (mut found, mut section) = (Vec::new(), String::new());
    let (mut comment, mut general, mut is_comment) = (String::new(), String::new(), false);
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("# ") {
            if !is_comment {
                comment.clear();
            }
            comment.push_str(told);
            comment.push(' ');
            is_comment = true;
            continue;
        }
        is_comment = false;
        if line.is_empty() {
            comment.clear();
        } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
            general = std::mem::take(&mut comment);
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with(' ')) {
            // A list of tables stands before the sections, by itself.
            let value = if section.is_empty() { &table[name] } else { &table[&section][name] };
            let meaning = if comment.is_empty() { &general } else { &comment };
            found.push(Setting {
                key: if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") },
                default: value.to_string(),
                meaning: meaning.trim().to_owned(),
                is_general: comment.is_empty(),
                is_text: !value.is_array() && !value.is_table(),
            });
        }
    }
    found
}

/// Describes the section `relations`, which has no settings of its own, with the built-in types.
fn types_of_relations() -> String {
    let text = std::fs::read_to_string(repository().join("crates/config/src/config.toml")).unwrap();
    let (before, _) = text.split_once("\n[relations]\n").unwrap();
    let (_, comment) = before.rsplit_once("\n\n").unwrap();
    let meaning: Vec<&str> = comment.lines().map(|line| line.strip_prefix("# ").unwrap()).collect();
    let mut page = format!("## relations\n\n{}\n\n", prose(&sentence(&meaning.join(" "))));
    page.push_str("| Built-in type | Inverse | A phrase |\n| --- | --- | --- |\n");
    let types = Config::load(std::path::Path::new("/nowhere"), &[]).unwrap().relations;
    assert!(types.len() >= 10, "only {} types were found", types.len());
    for (name, kind) in types {
        writeln!(page, "| {} | {} | {} |", code(&name), code(&kind.inverse), kind.forward[0]).unwrap();
    }
    page.push('\n');
    page
}

/// Gives the name of the variable that sets a key.
fn variable(key: &str) -> String {
    format!("SIDENOTE_{}", key.to_uppercase().replace('.', "_"))
}

/// Says whether a vault's own file may set a key, by trying it.
fn may_vault_set(setting: &Setting) -> bool {
    let text = match setting.key.split_once('.') {
        Some((section, name)) => format!("[{section}]\n{name} = {}\n", setting.default),
        None => format!("{} = {}\n", setting.key, setting.default),
    };
    let vault = TestVault::new(&[(".sidenote/config.toml", &text)]);
    match Config::load(vault.root(), &[]) {
        Ok(_) => true,
        Err(error) => {
            assert!(
                error.to_string().contains("which only your own settings can do"),
                "{}: {error}",
                setting.key
            );
            false
        }
    }
}

#[test]
fn settings_of_the_reference_are_those_of_the_program() {
    let settings = settings();
    let vault = TestVault::new(&[]);
    let mut show = vault.command(&["config", "show", "--json"]);
    show.env_remove("SIDENOTE_EMBED_PROVIDER");
    for setting in settings.iter().filter(|setting| setting.is_text) {
        show.env(variable(&setting.key), setting.default.trim_matches('"'));
    }
    let shown: Vec<Value> = serde_json::from_str(&stdout(&show.output().unwrap())).unwrap();
    assert_eq!(shown.len(), settings.len());
    assert!(settings.len() >= 60, "only {} settings were found", settings.len());
    let mut page = format!(
        "# Settings\n\n{MADE}\n\n`sidenote config show` prints every setting, its value and where that came from. A \
         setting is taken from the first of these that has it:\n\n1. a flag of the command\n2. the environment\n3. \
         `.sidenote/config.toml` in the vault\n4. your own file, which `sidenote config set KEY VALUE` writes\n5. the \
         defaults below\n\nA vault can be a download, so its file may not set what decides which program runs, which \
         address is reached, or what is kept. The column *Vault* says whether it may. A list or a table has no \
         variable. An unknown key and a value of the wrong type are errors.\n\n"
    );
    let mut section = "";
    for setting in &settings {
        let of = setting.key.split('.').next().unwrap();
        if of != section {
            section = of;
            let general = if setting.is_general {
                format!("{}\n\n", prose(&sentence(&setting.meaning)))
            } else {
                String::new()
            };
            writeln!(
                page,
                "## {section}\n\n{general}| Key | Default | Meaning | Environment | Vault |\n| --- | --- | --- | --- | --- |"
            )
            .unwrap();
        }
        let known = shown.iter().find(|known| known["key"] == *setting.key).expect(&setting.key);
        let name = variable(&setting.key);
        let origin = if setting.is_text { name.as_str() } else { "default" };
        // The output says that a key is set, and never shows it.
        assert_eq!(known["origin"], origin, "{}", setting.key);
        assert!(!setting.meaning.is_empty(), "nothing is said of {}", setting.key);
        let variable = if setting.is_text { code(&name) } else { "none".to_owned() };
        let vault = if may_vault_set(setting) { "yes" } else { "no" };
        let meaning =
            if setting.is_general { "see above".to_owned() } else { prose(&sentence(&setting.meaning)) };
        let (key, default) = (code(&setting.key), code(&setting.default));
        let last = settings.iter().rev().find(|other| other.key.split('.').next() == Some(of)).unwrap();
        let end = if last.key == setting.key { "\n\n" } else { "\n" };
        write!(page, "| {key} | {default} | {meaning} | {variable} | {vault} |{end}").unwrap();
    }
    page.push_str(&types_of_relations());
    page.push_str(VARIABLES);
    check_page("settings.md", &page);
}

/// Variables that are no settings.
const VARIABLES: &str = "\
## Other variables

| Variable | Meaning |
| --- | --- |
| `SIDENOTE_VAULT`, `SIDENOTE_INDEX`, `SIDENOTE_SESSION` | as the options `--vault`, `--index` and `--session` |
| `SIDENOTE_LOG` | what is logged to standard error, such as `sidenote=debug`; warnings and errors where it is not set |
| `SIDENOTE_NOW` | the time that the program takes for now, for scripts and tests |
| `SIDENOTE_PAGER`, `PAGER` | the pager; `less` where neither is set |
| `SIDENOTE_OPENER` | the program that `open` gives a note to |
| `VISUAL`, `EDITOR` | the editor of `edit` |
| `SIDENOTE_TEAM_CONFIG`, `PGPASSWORD` | the settings of a team, and the password for its database |
| `NO_COLOR` | no colours, unless `--color` says otherwise |
| `OPENAI_API_KEY` | the key for api.openai.com, where `embed.api_key` is not set |
| `HF_ENDPOINT`, `HF_TOKEN` | where `model install` fetches models, and the token for it |
| `ORT_DYLIB_PATH` | the library onnxruntime, where `embed.onnxruntime` is not set |
| `XDG_CONFIG_HOME`, `XDG_DATA_HOME`, `XDG_CACHE_HOME` | where your settings, models and caches lie |
";

#[test]
fn every_variable_that_the_program_reads_is_in_the_reference() {
    let text: String = source_files().into_iter().map(|file| file.text).collect();
    let mut found = std::collections::BTreeSet::new();
    for part in text.split("\"SIDENOTE_").skip(1) {
        let name = part.split('"').next().unwrap();
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
            found.insert(format!("SIDENOTE_{name}"));
        }
    }
    assert!(found.len() >= 5, "only {found:?} were found");
    let known = settings();
    // For the tests of this repository alone.
    assert!(found.remove("SIDENOTE_FAILPOINT") && found.remove("SIDENOTE_FAULT"));
    for name in found {
        let is_setting = known.iter().any(|setting| variable(&setting.key) == name);
        assert!(is_setting || VARIABLES.contains(&format!("`{name}`")), "nothing is said of {name}");
    }
}
