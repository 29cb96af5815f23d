//! `sidenote config`: shows and changes settings.

use clap::{Args, Subcommand};
use sidenote_base::error::Result;
use sidenote_config as config;
use sidenote_config::{CheckConfig, Config, ConfigEdit};
use sidenote_embed::model_selection;
use sidenote_search::Mode;
use sidenote_search::fuse::Fusion;
use sidenote_vault::Vault;
use sidenote_vault::location::Location;

use super::args::DryRunArgs;
use crate::cli::{CommandContext, output, terminal};
use crate::store::{refuse_invalid_check_settings, settings_of};

/// Show and change settings.
///
/// Changes are written to your settings file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote config show
  sidenote config set search.limit 20
  sidenote config set memory.folder Brain --dry-run
  sidenote config unset search.limit")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Debug, Subcommand)]
enum ConfigAction {
    /// Print every setting with its value and the origin of the value.
    Show,
    Set(SetArgs),
    Unset(UnsetArgs),
}

/// Set a value in your settings file.
///
/// The rest of the file stays as it is. `git.commit` is set for the vault that `--vault` names, and with `--vault` so is
/// `git.author`.
#[derive(Debug, Args)]
struct SetArgs {
    /// The setting, such as search.limit. `config show` lists all settings.
    key: String,
    /// The value. Lists and tables are written as TOML.
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Remove a setting from your settings file, which restores the default.
#[derive(Debug, Args)]
struct UnsetArgs {
    /// The setting.
    key: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// The width of the column of values, at which they are wrapped.
const VALUE_WIDTH: usize = 48;

pub(super) fn run(context: &CommandContext, args: &ConfigArgs) -> Result<()> {
    match &args.action {
        ConfigAction::Show => show(context),
        ConfigAction::Set(args) => {
            check_name(&args.key, &args.value)?;
            let edited = set(context, &args.key, Some(&args.value), args.dry_run.is_set())?;
            context.out.reply(&edited, show_edited)
        }
        ConfigAction::Unset(args) => {
            let edited = set(context, &args.key, None, args.dry_run.is_set())?;
            context.out.reply(&edited, show_edited)
        }
    }
}

/// Sets a setting in the user's file, or takes it out. With `--vault`, settings of commits are set for that vault alone.
fn set(context: &CommandContext, key: &str, value: Option<&str>, dry_run: bool) -> Result<ConfigEdit> {
    match &context.open.vault {
        Some(vault) if matches!(key, "git.commit" | "git.author") => {
            // A misspelled path would be a setting of no vault.
            let vault = Vault::open(vault)?;
            config::set_user_for_vault(vault.root(), key, value, dry_run)
        }
        _ => config::set_user(key, value, dry_run),
    }
}

/// Refuses an unknown mode, fusion method, embedder or problem code, because each later command would fail with it.
fn check_name(key: &str, value: &str) -> Result<()> {
    match key {
        "search.mode" => Mode::parse(value).map(drop),
        "search.fusion" => Fusion::parse(value).map(drop),
        "embed.provider" => model_selection::check_provider(value),
        _ => key.strip_prefix("check.").map_or(Ok(()), |name| check_of_check(name, value)),
    }
}

/// Refuses a setting of `check` with an unknown code or severity or a malformed glob. What is no TOML, or of another type,
/// is refused later.
fn check_of_check(name: &str, value: &str) -> Result<()> {
    match toml::from_str::<CheckConfig>(&format!("{name} = {value}")) {
        Ok(check) => refuse_invalid_check_settings(&check),
        Err(_) => Ok(()),
    }
}

fn show_edited(edited: &ConfigEdit) -> String {
    if edited.changes.is_empty() {
        return "nothing to change\n".to_owned();
    }
    let verb = if edited.applied { "in" } else { "would change in" };
    let changes = edited.changes.iter().map(|change| format!("{}\n", output::plain(change)));
    format!("{}{verb} {}\n", changes.collect::<String>(), edited.file.display())
}

fn show(context: &CommandContext) -> Result<()> {
    let root = Location::of_settings(context.open.vault.as_deref())?;
    let config = Config::load(&root, &context.open.flags)?;
    let settings = settings_of(&config);
    context.out.reply(&settings, |settings| {
        let rows = settings.iter().flat_map(|setting| {
            // A long value is wrapped in its column, so that the origin stays visible.
            let mut lines = terminal::wrap(&setting.value, VALUE_WIDTH).into_iter();
            let first = vec![setting.key.clone(), lines.next().unwrap_or_default(), setting.origin.clone()];
            std::iter::once(first).chain(lines.map(|line| vec![String::new(), line, String::new()]))
        });
        output::columns(&rows.collect::<Vec<_>>())
    })
}
