//! The authority over the changes of a vault: [`Alone`] if the folder is the truth, or a service that several machines
//! share if the folder is a copy.
//!
//! An authority never changes notes itself, except those of a copy in [`Authority::catch_up`].

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::path::NotePath;

use crate::Vault;
use crate::apply_result::Applied;
use crate::copy::SharedPath;
use crate::manifest::Manifest;

/// Decides about the changes of one vault.
pub trait Authority: Debug + Send + Sync {
    /// Says whether changes and journal are kept elsewhere. The folder and its journal are a copy then, which only a change
    /// and catching up write.
    fn is_shared(&self) -> bool;

    /// Brings the folder up to the changes that were made elsewhere, and returns the files that changed since the last
    /// call that succeeded. Returns `None` if the folder itself is the truth; then changes are only found on the disk.
    ///
    /// # Errors
    /// `Io` if the changes cannot be read or written.
    fn catch_up(&self) -> Result<Option<Vec<NotePath>>>;

    /// Has the next catching up compare a file of the folder with what the authority has, and put it right.
    fn distrust(&self, _path: &NotePath) {}

    /// Returns whether the last comparison of the folder with the authority failed. Then reads are answered from the
    /// folder for a while, and say so.
    fn is_cut_off(&self) -> bool;

    /// Returns what a shared authority has, for those who follow it without a copy of a server.
    fn shared_contents(&self) -> Option<&dyn SharedContents> {
        None
    }

    /// Returns the vectors that the servers of a shared vault share; `None` if they share none.
    fn shared_vectors(&self) -> Option<&dyn VectorStore> {
        None
    }

    /// Returns how long a change waits for others, from the moment at which it asks for the write lock until it has its turn.
    fn wait_limit(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Returns why nobody can change the vault now, if that is known without asking.
    fn outage(&self) -> Option<Error> {
        None
    }

    /// Waits at most `wait_limit` for the right to change the vault. The caller holds the lock of the folder.
    ///
    /// # Errors
    /// `Conflict` if somebody else changes it all the time; `Io` if it cannot be asked for.
    fn lock_changes(&self, wait_limit: Duration) -> Result<Box<dyn ChangeLock>>;

    /// Records events of the journal that belong to no change of files, such as votes and uses. The journal of a copy gets
    /// them by catching up. With `durable`, they are stored when the call returns. Only a shared authority is asked.
    ///
    /// # Errors
    /// `Io` if they cannot be stored.
    fn record(&self, events: &mut dyn Iterator<Item = Result<RecordedEvent>>, durable: bool) -> Result<()>;
}

/// The files that a shared authority has, whatever is in the folder.
pub trait SharedContents: Debug + Send + Sync {
    /// Returns what changed after a position; all files if there is none, or if the vault has not gone on from there.
    ///
    /// # Errors
    /// `Io` if the authority cannot be asked.
    fn changes(&self, since: Option<&SharedPosition>) -> Result<SharedChanges>;

    /// Returns the hashes of those of some files that exist.
    ///
    /// # Errors
    /// `Io` if the authority cannot be asked.
    fn hashes(&self, paths: &[SharedPath]) -> Result<HashMap<SharedPath, ContentHash>>;

    /// Returns the bytes that a file of the vault has now, by their hash; `None` if no file has them.
    ///
    /// # Errors
    /// `Io` if the authority cannot be asked.
    fn content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>>;

    /// Returns bytes that a file of the vault has or had, by their hash; `None` if no file had them, or they were cleaned up.
    ///
    /// # Errors
    /// `Io` if the authority cannot be asked.
    fn earlier_content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>>;

    /// Returns the largest file in bytes that the authority takes.
    fn max_file(&self) -> u64;
}

/// A vector of a passage, as an authority stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVector {
    /// The key of the passage, which follows from its text.
    pub key: i64,
    /// The vector with its checksum, as the index reads it.
    pub bytes: Vec<u8>,
}

/// The vectors of a vault that its servers share.
pub trait VectorStore: Debug + Send + Sync {
    /// Returns the vectors of a model for those of some passages that have one.
    ///
    /// # Errors
    /// `Io` if the authority cannot be asked.
    fn find(&self, model: i64, keys: &[i64]) -> Result<Vec<StoredVector>>;

    /// Stores vectors of a model. Those that are there stay.
    ///
    /// # Errors
    /// `Io` if they cannot be stored.
    fn store(&self, model: i64, vectors: &[StoredVector]) -> Result<()>;
}

/// A state of a shared vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPosition {
    /// A random text that is another one after the vault was restored.
    pub origin: String,
    /// The number of changes.
    pub generation: i64,
    /// The id of the last change; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

/// What changed in a shared vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedChanges {
    /// The state after the changes.
    pub position: SharedPosition,
    /// Whether all files of the vault are listed, and not only those that changed.
    pub is_full: bool,
    /// The files, each with the hash of its bytes, or `None` if it was removed.
    pub files: Vec<(SharedPath, Option<ContentHash>)>,
}

/// Returns who decides about the changes of a vault.
pub fn authority_of(vault: &Vault) -> &dyn Authority {
    &*vault.authority
}

/// Returns a vault about whose changes `authority` decides, because the folder is a copy. Without this, the folder is the
/// truth.
#[must_use]
pub fn with_authority(mut vault: Vault, authority: Arc<dyn Authority>) -> Vault {
    vault.authority = authority;
    vault
}

/// The right to make the next change of a vault. It ends when it is dropped.
pub trait ChangeLock: Debug + Send {
    /// Commits a change. It is called when everything is prepared, and before any file of the folder changes. After an
    /// error the folder stays as it was.
    ///
    /// # Errors
    /// `Conflict` if the change was planned on other bytes than the authority has; `Io` if it cannot be committed, or if
    /// it is unknown whether it was.
    fn commit(&mut self, change: &ReadyChange<'_>) -> Result<()>;
}

/// A change of files that is prepared in full and not committed yet.
#[derive(Debug)]
pub struct ReadyChange<'a> {
    pub(crate) manifest: &'a Manifest,
    /// The new content of each file of the manifest, or `None` if it keeps its content or is removed.
    pub(crate) contents: Vec<Option<&'a [u8]>>,
}

impl ReadyChange<'_> {
    /// Returns what the change does, from which its event in the journal is made.
    pub fn applied(&self) -> Applied {
        Applied::of(self.manifest, Vec::new())
    }

    /// Returns the new content of each file that [`Self::applied`] lists, in its order, or `None` if the file keeps its
    /// content or is removed.
    pub fn contents(&self) -> &[Option<&[u8]>] {
        &self.contents
    }
}

/// An event of the journal that belongs to no change of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The id of the event.
    pub id: String,
    /// The event as one line of JSON, without a line break.
    pub line: String,
}

/// The authority of a vault whose folder is the truth: the lock of the folder is the right to change it, and the change is committed by
/// the rename of its manifest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Authority for Alone {
    fn is_shared(&self) -> bool {
        false
    }

    fn catch_up(&self) -> Result<Option<Vec<NotePath>>> {
        Ok(None)
    }

    fn is_cut_off(&self) -> bool {
        false
    }

    fn lock_changes(&self, _: Duration) -> Result<Box<dyn ChangeLock>> {
        Ok(Box::new(Self))
    }

    fn record(&self, _: &mut dyn Iterator<Item = Result<RecordedEvent>>, _: bool) -> Result<()> {
        Ok(())
    }
}

impl ChangeLock for Alone {
    fn commit(&mut self, _: &ReadyChange<'_>) -> Result<()> {
        Ok(())
    }
}
