//! `sidenote config show` and `sidenote completions`.

use clap::{Args, Subcommand};
use clap_complete::Shell;
use serde::Serialize;

use super::{Session, output, tree};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::vault::Vault;

/// Show settings.
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Debug, Subcommand)]
enum ConfigAction {
    /// Print every setting, its value and where that came from.
    Show,
}

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

#[derive(Debug, Serialize)]
struct Setting {
    key: String,
    value: String,
    origin: String,
}

pub(super) fn run(session: &Session, args: &ConfigArgs) -> Result<()> {
    let ConfigAction::Show = args.action;
    let root = match &session.open.vault {
        Some(root) => root.clone(),
        None => Vault::discover(&std::env::current_dir().map_err(|error| Error::io("find", ".", error))?),
    };
    let config = Config::load(&root, &session.open.flags)?;
    let settings: Vec<Setting> = config
        .entries()
        .map(|(key, value, origin)| Setting {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: origin.to_string(),
        })
        .collect();
    session.out.reply(&settings, |settings| {
        let rows = settings
            .iter()
            .map(|setting| vec![setting.key.clone(), setting.value.clone(), setting.origin.clone()]);
        output::columns(&rows.collect::<Vec<_>>())
    })
}

pub(super) fn completions(session: &Session, args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree(), "sidenote", &mut script);
    session.out.print(&String::from_utf8_lossy(&script))
}
