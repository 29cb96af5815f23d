//! Arguments that the commands of `sidenote team` share.

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::DryRunArgs;
use crate::error::Result;
use crate::share::Database;
use crate::share::settings::TeamSettings;

/// The flag that names the settings.
#[derive(Debug, Args)]
pub(super) struct SettingsArgs {
    /// The settings of the team: a file team.toml that only you can read.
    #[arg(
        long,
        env = "SIDENOTE_TEAM_CONFIG",
        value_name = "FILE",
        default_value = "/etc/sidenote/team.toml"
    )]
    config: PathBuf,
}

impl SettingsArgs {
    /// Reads the settings.
    ///
    /// # Errors
    /// Those of [`TeamSettings::load`].
    pub(super) fn load(&self) -> Result<TeamSettings> {
        TeamSettings::load(&self.config)
    }
}

/// The flags of the commands that change what the owner of the tables administers.
#[derive(Debug, Args)]
pub(super) struct OwnerArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The database, with a role that owns the tables. Default: team.database of the settings, whose role servers have; it
    /// may not change rights.
    #[arg(long, value_name = "ADDRESS")]
    database: Option<String>,
    #[command(flatten)]
    pub(super) dry_run: DryRunArgs,
}

impl OwnerArgs {
    /// Reads the settings, and returns the database as the owner reaches it.
    ///
    /// # Errors
    /// Those of [`TeamSettings::load`]; `Invalid` if the address cannot be parsed.
    pub(super) fn open(&self) -> Result<(TeamSettings, Database)> {
        let settings = self.settings.load()?;
        let database = Database::new(self.database.as_deref().unwrap_or(settings.database.reveal()))?;
        Ok((settings, database))
    }
}
