//! The settings of a team, `team.toml`. They belong to the operator of a server and are never read from a vault.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_config::Secret;

use crate::quota::Quotas;

/// The bytes of a megabyte.
pub const MEGABYTE: u64 = 1_000_000;
/// The maximum size of the file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The settings of a server of a team.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamSettings {
    /// Where the database is, as `postgres://USER@HOST/NAME`. The password can also be in the variable `PGPASSWORD`. Empty if
    /// the settings do not say it.
    #[serde(default)]
    pub database: Secret,
    /// The folder of the copies. It belongs to this server alone, and can be deleted while the server is not running. Empty if
    /// the settings do not say it.
    #[serde(default)]
    pub cache: PathBuf,
    /// The vaults that are opened before the server says that it is ready.
    #[serde(default)]
    pub warm: Vec<String>,
    /// The largest number of vaults that are open at a time.
    #[serde(default = "default_open")]
    pub open: usize,
    /// How many seconds reads go on, and say so, while the database cannot be reached.
    #[serde(default = "default_stale_s")]
    pub stale_s: u64,
    /// How many seconds a change waits for its turn.
    #[serde(default = "default_lock_s")]
    pub lock_s: u64,
    /// The largest file in megabytes.
    #[serde(default = "default_max_file_mb")]
    pub max_file_mb: u64,
    /// The quotas of vaults for which none are set, from a table of their own.
    #[serde(skip)]
    pub quota: QuotaDefaults,
    /// The settings of login, from a table of their own; `None` where nobody logs in.
    #[serde(skip)]
    pub login: Option<LoginSettings>,
    /// The settings of the audit, from a table of their own.
    #[serde(skip)]
    pub audit: AuditSettings,
}

/// The quotas of vaults for which none are set. Without a number there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaDefaults {
    /// The size of all files of a vault in megabytes.
    pub size_mb: Option<u64>,
    /// The number of its notes.
    pub notes: Option<u64>,
    /// The changes of a person in a minute.
    pub changes: Option<u64>,
}

/// The settings of login: whose access tokens are accepted, and how they are read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginSettings {
    /// The identity providers that are trusted: one, or a list.
    #[serde(deserialize_with = "one_or_more")]
    pub issuer: Vec<String>,
    /// The audiences of tokens that are accepted besides the address of the vault.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// The public address of the service.
    pub url: String,
    /// The claim with the groups of a person.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: String,
    /// The claim with the name of a person that is shown.
    #[serde(default = "default_name_claim")]
    pub name_claim: String,
    /// The algorithms of signatures that are accepted.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<String>,
}

/// What is recorded of requests besides changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// Whether it is recorded who read which notes. Queries never are.
    #[serde(default)]
    pub reads: bool,
}

/// Reads a text, or a list of texts.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an address, or a list of addresses")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    })
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

fn default_name_claim() -> String {
    "email".to_owned()
}

fn default_algorithms() -> Vec<String> {
    ["RS256", "PS256", "ES256", "EdDSA"].map(str::to_owned).to_vec()
}

fn default_open() -> usize {
    32
}

fn default_stale_s() -> u64 {
    60
}

fn default_lock_s() -> u64 {
    15
}

fn default_max_file_mb() -> u64 {
    50
}

/// The file with its tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamFile {
    #[serde(default)]
    team: TeamSettings,
    #[serde(default)]
    quota: QuotaDefaults,
    login: Option<LoginSettings>,
    #[serde(default)]
    audit: AuditSettings,
}

impl Default for TeamSettings {
    fn default() -> Self {
        Self {
            database: Secret::default(),
            cache: PathBuf::new(),
            warm: Vec::new(),
            open: default_open(),
            stale_s: default_stale_s(),
            lock_s: default_lock_s(),
            max_file_mb: default_max_file_mb(),
            quota: QuotaDefaults::default(),
            login: None,
            audit: AuditSettings::default(),
        }
    }
}

impl TeamSettings {
    /// Reads the settings from a file like [`Self::load`]. Returns `None` if there is no file, or this user may not read it.
    ///
    /// # Errors
    /// Those of [`Self::load`] besides these.
    pub fn load_if_readable(path: &Path) -> Result<Option<Self>> {
        use std::io::ErrorKind::{NotFound, PermissionDenied};
        match std::fs::File::open(path) {
            Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => Ok(None),
            _ => Self::load(path).map(Some),
        }
    }

    /// Returns the address of the database.
    ///
    /// # Errors
    /// `Invalid` if the settings do not say it.
    pub fn database(&self) -> Result<&str> {
        let missing = || {
            Error::invalid("the settings of the team name no database").with_hints(
                "write team.database there, or give --database ADDRESS where the command has it",
                "tell the user",
            )
        };
        Some(self.database.reveal()).filter(|address| !address.is_empty()).ok_or_else(missing)
    }

    /// Returns the folder of the copies.
    ///
    /// # Errors
    /// `Invalid` if the settings do not say it.
    pub fn cache(&self) -> Result<&Path> {
        let missing = || {
            Error::invalid("the settings of the team name no folder for the copies of this server")
                .with_hint("write team.cache there, such as cache = \"/var/cache/sidenote\"")
        };
        Some(self.cache.as_path()).filter(|cache| !cache.as_os_str().is_empty()).ok_or_else(missing)
    }

    /// Reads the settings from a file.
    ///
    /// # Errors
    /// `Io` if the file cannot be read; `Invalid` if other users can read it, or if it is no valid `team.toml`.
    pub fn load(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            let failed = Error::io("read the settings of the team in", path, error);
            if !is_missing {
                return failed;
            }
            failed.with_hints("write them there, with the database, and the cache for a server, in a table [team] and the mode 0600, or name the file with --config FILE or SIDENOTE_TEAM_CONFIG", "tell the user")
        };
        if !platform::is_private(path).map_err(failed)? {
            return Err(Error::invalid(format!(
                "other users can read {}, which may hold a password",
                path.display()
            ))
            .with_hint(format!("run: chmod 600 {}", path.display())));
        }
        let bytes = safe_open::read_in_place(path, MAX_FILE).map_err(failed)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::invalid(format!("{} is not UTF-8", path.display())))?;
        let file: TeamFile =
            toml::from_str(&text).map_err(|error| Error::invalid(format!("{}: {error}", path.display())))?;
        Ok(Self { quota: file.quota, login: file.login, audit: file.audit, ..file.team })
    }

    /// Returns the largest file in bytes.
    pub fn max_file(&self) -> u64 {
        self.max_file_mb.saturating_mul(MEGABYTE)
    }

    /// Returns the quotas of vaults for which none are set.
    pub fn quotas(&self) -> Quotas {
        let QuotaDefaults { size_mb, notes, changes } = self.quota;
        Quotas { bytes: size_mb.map(|size| size.saturating_mul(MEGABYTE)), notes, changes }
    }
}
