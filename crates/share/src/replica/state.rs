//! The state of the last synchronisation of a folder, in `.sidenote/local/sync.json`.
//!
//! The file is replaced as a whole. It is written after the changes that it records, so a process that was killed may
//! have done more than it says, and never less.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};
use sidenote_markdown::edit::ContentHash;
use sidenote_vault::authority::SharedPosition;
use sidenote_vault::copy::SharedPath;
use sidenote_vault::write_lock::{create_local, local_folder};
use sidenote_vault::{Vault, failpoint};

/// The name of the file.
const FILE: &str = "sync.json";
/// The name of the file that a running synchronisation locks.
const LOCK: &str = "sync.lock";
/// The largest file that is read, in bytes.
const MAX_STATE: u64 = 512 << 20;

/// The last commit that was sent, until the vault is known to have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentCommit {
    /// The id of the commit.
    pub(crate) operation: String,
    /// The files with what they get: the hash of their bytes, or `None` for a removal.
    pub(crate) files: BTreeMap<String, Option<ContentHash>>,
    /// Whether the service has answered that it was carried out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_done: bool,
}

/// The state of a folder after a synchronisation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The address of the vault.
    pub(crate) url: String,
    /// The state of the vault that was last asked for; `None` before the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<SharedPosition>,
    /// The hash that each file had on both sides when it was last the same.
    #[serde(default)]
    pub(crate) base: BTreeMap<String, ContentHash>,
    /// Files of the vault at the position that differ from the base, with their hashes, or `None` for removed ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) ahead: BTreeMap<String, Option<ContentHash>>,
    /// Whether the first synchronisation replaces what was in the folder, and is not done yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_replacing: bool,
    /// The last commit, until its answer and a later state of the vault are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sent: Option<SentCommit>,
}

impl State {
    /// Returns the hash that a file of the vault has at the position.
    pub(crate) fn remote(&self, path: &str) -> Option<ContentHash> {
        self.ahead.get(path).copied().unwrap_or_else(|| self.base.get(path).copied())
    }

    /// Records the hash that a file of the vault has.
    pub(crate) fn set_remote(&mut self, path: &SharedPath, hash: Option<ContentHash>) {
        if self.base.get(path.as_str()).copied() == hash {
            self.ahead.remove(path.as_str());
        } else {
            self.ahead.insert(path.as_str().to_owned(), hash);
        }
    }

    /// Records that a file is the same on both sides.
    pub(crate) fn agree(&mut self, path: &str, hash: Option<ContentHash>) {
        self.ahead.remove(path);
        match hash {
            Some(hash) => self.base.insert(path.to_owned(), hash),
            None => self.base.remove(path),
        };
    }

    /// Lists the files that were or are in the vault.
    pub(crate) fn paths(&self) -> impl Iterator<Item = SharedPath> {
        self.base.keys().chain(self.ahead.keys()).filter_map(|path| SharedPath::parse(path))
    }

    /// Forgets what both sides had, so that nothing counts as removed or unchanged. What the vault has stays known.
    pub(crate) fn forget_base(&mut self) {
        self.base.clear();
        self.ahead.clear();
        self.sent = None;
    }
}

/// The state file of a folder, which one process has at a time.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    lock: std::fs::File,
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if let Err(error) = platform::unlock(&self.lock) {
            tracing::debug!("the lock of a synchronisation could not be released: {error}");
        }
    }
}

impl StateFile {
    /// Takes the state of a folder.
    ///
    /// # Errors
    /// `Conflict` if another process synchronises the folder; `Io` if the state folder cannot be written.
    pub(crate) fn open(vault: &Vault) -> Result<Self> {
        let folder = create_local(vault)?;
        let path = folder.join(LOCK);
        let failed = |error| Error::io("lock", &path, error);
        let lock = safe_open::open_or_create(&path, 0o600).map_err(failed)?;
        if !platform::try_lock(&lock).map_err(failed)? {
            return Err(Error::new(ErrorKind::Conflict, "another process synchronises this folder")
                .with_hints("`sidenote sync --watch` may be running; stop it first", ""));
        }
        Ok(Self { path: folder.join(FILE), lock })
    }

    /// Reads the state of a folder that nobody locks, for a dry run; `None` if there is none.
    ///
    /// # Errors
    /// The errors of [`Self::load`].
    pub(crate) fn peek(vault: &Vault) -> Result<Option<State>> {
        load(&local_folder(vault).join(FILE))
    }

    /// Reads the state; `None` if the folder was not synchronised yet.
    ///
    /// # Errors
    /// `Io` if it cannot be read; `Corrupt` if it is damaged.
    pub(crate) fn load(&self) -> Result<Option<State>> {
        load(&self.path)
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// `Io` if it cannot be written.
    pub(crate) fn store(&self, state: &State) -> Result<()> {
        let bytes = serde_json::to_vec(state)
            .map_err(|error| Error::internal("a state cannot be serialized").with_source(error))?;
        failpoint();
        let written = AtomicFile::new(&self.path).single_writer().sync().write_bytes(&bytes);
        written.map_err(|error| Error::io("write", &self.path, error))
    }
}

fn load(path: &Path) -> Result<Option<State>> {
    match safe_open::read_in_place(path, MAX_STATE) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Error::corrupt(format!("{} is damaged", path.display())).with_source(error).with_hints(
                "remove it, and run the command with --adopt: files that differ are kept on both sides",
                "",
            )
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}
