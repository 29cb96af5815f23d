//! A vault in git: its notes at a revision, and their changes. Only the files of a repository are read, and nothing is
//! written to it.

pub(crate) mod at;
pub(crate) mod diff;
pub(crate) mod note_history;
mod renames;
mod side;

use std::path::PathBuf;
use std::sync::Arc;

use sidenote_base::clock::Clock;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_config::Config;
use sidenote_git::Repository;
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::Core;
use sidenote_vault::authority::with_authority;
use sidenote_vault::location::Location;
use sidenote_vault::{Vault, canonical_path_of};

use crate::Open;

/// A vault with its settings, as [`Open`] describes it.
pub(crate) struct OpenedVault {
    pub(crate) vault: Vault,
    pub(crate) config: Config,
    /// The canonical path of the index folder, if one is given.
    pub(crate) index_folder: Option<PathBuf>,
    /// Why the folder is taken for the vault.
    pub(crate) location: Location,
}

/// Opens a vault and reads its settings, without an index.
///
/// # Errors
/// `NotFound` if the folder of the vault does not exist; `Invalid` if the settings cannot be parsed; `Io` if the folder
/// cannot be read.
pub(crate) fn open_vault(open: &Open) -> Result<OpenedVault> {
    let location = Location::find(open.vault.as_deref())?;
    let vault = Vault::open(&location.root)?;
    vault.refuse_linked_state()?;
    let config = match &open.earlier_settings {
        Some(earlier) => Config::load_with(vault.root(), &earlier.text, &open.flags)?,
        None => Config::load(vault.root(), &open.flags)?,
    };
    // Events of the file system have canonical paths.
    let index_folder = open
        .index
        .as_deref()
        .map(|folder| canonical_path_of(folder).map_err(|error| Error::io("find", folder, error)));
    let index_folder = index_folder.transpose()?;
    let vault =
        vault.with_config_dir(&config.vault.config_dir)?.with_max_file_size(config.vault.max_file_bytes);
    let vault = vault.with_link_rules(&config.links);
    let vault = vault.with_read_only(open.read_only).with_follow_outside(config.vault.follow_outside);
    let vault = match &index_folder {
        Some(folder) => vault.with_index_in(folder)?,
        None => vault,
    };
    let vault = match &open.fence {
        Some(fence) => vault.fenced(Arc::clone(fence)),
        None => vault,
    };
    let vault = match &open.authority {
        Some(authority) => with_authority(vault, Arc::clone(authority)),
        None => vault,
    };
    Ok(OpenedVault { vault, config, index_folder, location })
}

/// Compares and lists the states of a vault that git knows. No index is needed.
#[derive(Debug)]
pub struct Revisions {
    vault: Arc<Vault>,
    config: Arc<Config>,
    repository: Repository,
    clock: Clock,
}

impl Revisions {
    /// Opens the repository of a vault, without an index.
    ///
    /// # Errors
    /// `NotFound` if the vault is in no git repository; those of opening a vault.
    pub fn open(open: &Open) -> Result<Self> {
        let OpenedVault { vault, config, .. } = open_vault(open)?;
        Self::in_repository(Arc::new(vault), Arc::new(config), open.clock)
    }

    pub(crate) fn of(core: &Core) -> Result<Self> {
        Self::in_repository(Arc::clone(&core.vault), Arc::clone(&core.config), core.clock)
    }

    fn in_repository(vault: Arc<Vault>, config: Arc<Config>, clock: Clock) -> Result<Self> {
        let found = Repository::discover(vault.root())?;
        let repository = found.ok_or_else(|| {
            Error::not_found(format!("{} is in no git repository", vault.root().display())).with_hints(
                "run this in a repository; `sidenote history` lists what sidenote changed without one",
                "ask the user whether the vault is in git",
            )
        })?;
        Ok(Self { vault, config, repository, clock })
    }

    /// Returns whether a text names a revision: something that `git rev-parse` takes, or a date.
    ///
    /// # Errors
    /// Those of running git.
    pub fn is_revision(&self, text: &str) -> Result<bool> {
        match self.repository.named_commit(text, self.clock.now()) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound && self.repository.head()?.is_some() => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether a text is the path of a file or folder of the vault, or a glob.
    pub fn is_there(&self, text: &str) -> bool {
        text.contains(['*', '?', '[', '{'])
            || NotePath::parse(text.trim_end_matches('/'))
                .is_ok_and(|path| self.vault.disk_path(&path).symlink_metadata().is_ok())
    }
}
