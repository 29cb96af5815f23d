//! Arguments that the commands of `sidenote team` share.

use std::path::{Path, PathBuf};

use clap::Args;
use sidenote_base::error::Result;

use crate::cli::args::DryRunArgs;
use crate::share::Database;
use crate::share::settings::TeamSettings;

/// Where the settings are if nothing names them.
const DEFAULT_CONFIG: &str = "/etc/sidenote/team.toml";

/// The flag that names the settings.
#[derive(Debug, Args)]
pub(super) struct SettingsArgs {
    /// The settings of the team: a file team.toml that only you can read. Default: /etc/sidenote/team.toml. They need not exist
    /// for a command with --database.
    #[arg(long, env = "SIDENOTE_TEAM_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl SettingsArgs {
    /// Reads the settings.
    ///
    /// # Errors
    /// Those of [`TeamSettings::load`].
    pub(super) fn load(&self) -> Result<TeamSettings> {
        TeamSettings::load(self.config.as_deref().unwrap_or(Path::new(DEFAULT_CONFIG)))
    }

    /// Reads the settings, and returns the database: the one of an address, else that of the settings. With an address, settings
    /// that nothing names need not be there for this user.
    ///
    /// # Errors
    /// Those of [`TeamSettings::load`] and [`Database::new`]; `Invalid` if nothing names a database.
    pub(super) fn open(&self, address: Option<&str>) -> Result<(TeamSettings, Database)> {
        let settings = match (&self.config, address) {
            (None, Some(_)) => TeamSettings::load_if_readable(Path::new(DEFAULT_CONFIG))?.unwrap_or_default(),
            _ => self.load()?,
        };
        let address = match address {
            Some(address) => address,
            None => settings.database()?,
        };
        let database = Database::new(address)?;
        Ok((settings, database))
    }
}

/// The flags of the commands that ask the database.
#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The database. Default: team.database of the settings.
    #[arg(long, value_name = "ADDRESS")]
    database: Option<String>,
}

impl DatabaseArgs {
    /// Reads the settings, and returns the database.
    ///
    /// # Errors
    /// Those of [`TeamSettings::load`]; `Invalid` if the address cannot be parsed, or nothing names a database.
    pub(super) fn open(&self) -> Result<(TeamSettings, Database)> {
        self.settings.open(self.database.as_deref())
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
    /// Those of [`DatabaseArgs::open`].
    pub(super) fn open(&self) -> Result<(TeamSettings, Database)> {
        self.settings.open(self.database.as_deref())
    }
}
