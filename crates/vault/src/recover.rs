//! Crash recovery: finishes committed transactions, rolls back the others, and reports both.

use sidenote_base::error::{Error, Result};

use crate::Vault;
use crate::apply::remove_created_dirs;
use crate::apply_result::Applied;
use crate::commit::{CommitError, close, commit, roll_back};
use crate::dir::{Dir, DirTree};
use crate::manifest::Manifest;
use crate::transaction_records::{
    COMMITTED, CONFLICTS, MANIFEST, PENDING, read_manifest, remove_transaction,
};
use crate::write_lock::WriteLock;

/// The result of a recovery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// One sentence for the user about each transaction.
    pub notices: Vec<String>,
    /// The operations that were finished.
    pub finished: Vec<Applied>,
}

impl Vault {
    /// Finishes the committed transactions that a crash interrupted and rolls back the others. It is cheap if there are
    /// none.
    ///
    /// # Errors
    /// `Io` if a transaction cannot be finished or rolled back now. It stays for the next call.
    pub fn recover(&self, lock: &WriteLock) -> Result<Recovery> {
        let records = |error| Error::io("read the records in", lock.records(), error);
        let mut recovery = Recovery::default();
        let pending = match lock.folder.open_dir(PENDING) {
            Ok(pending) => pending,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(recovery),
            Err(error) => return Err(records(error)),
        };
        let mut ids: Vec<String> = pending
            .names()
            .map_err(records)?
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect();
        ids.sort();
        for id in ids {
            if pending.entry(&id).map_err(records)?.is_some_and(|entry| entry.is_dir()) {
                end_transaction(self, lock, &pending, &id, &mut recovery)?;
            }
        }
        Ok(recovery)
    }
}

/// Finishes a transaction that was committed, or rolls it back.
fn end_transaction(
    vault: &Vault,
    lock: &WriteLock,
    pending: &Dir,
    id: &str,
    recovery: &mut Recovery,
) -> Result<()> {
    let records = |error| Error::io("read the records in", lock.records(), error);
    let folder = pending.open_dir(id).map_err(records)?;
    let mut tree = DirTree::open(vault)?;
    if folder.entry(COMMITTED).map_err(records)?.is_some() {
        let Some(manifest) = read_manifest(&folder, COMMITTED, id).map_err(records)? else {
            let kept = lock.folder.open_or_create_dir(CONFLICTS).map_err(records)?;
            pending.rename_no_replace(id, &kept, id).map_err(records)?;
            recovery.notices.push(format!(
                "an unfinished change could not be read and was moved to {}/{CONFLICTS}/{id}",
                lock.records().display()
            ));
            return Ok(());
        };
        return match commit(vault, &mut tree, &manifest, lock, pending, None, false) {
            Ok(notices) => {
                if let Some(undone) = &manifest.undoes
                    && let Err(error) = remove_created_dirs(&mut tree, lock, undone)
                {
                    tracing::warn!(%error, "an empty folder of the undone operation could not be removed");
                }
                close(&manifest, lock, pending)?;
                recovery.notices.push(format!("an unfinished {} was finished", described(&manifest)));
                recovery.notices.extend(notices.iter().cloned());
                recovery.finished.push(Applied::of(&manifest, notices));
                Ok(())
            }
            Err(CommitError::RolledBack(error)) => {
                let operation = described(&manifest);
                recovery
                    .notices
                    .push(format!("an unfinished {operation} could not be finished and was undone: {error}"));
                Ok(())
            }
            Err(CommitError::Incomplete { error, .. }) => Err(error),
        };
    }
    match read_manifest(&folder, MANIFEST, id).map_err(records)? {
        Some(manifest) => {
            roll_back(&mut tree, &manifest, pending)?;
            recovery.notices.push(format!("an unfinished {} was undone", described(&manifest)));
        }
        // The process ended while it wrote the manifest, before any other step.
        None => remove_transaction(pending, id).map_err(records)?,
    }
    Ok(())
}

fn described(manifest: &Manifest) -> String {
    match manifest.files.len() + manifest.folders.len() {
        1 => format!("{} of 1 file", manifest.operation),
        count => format!("{} of {count} files", manifest.operation),
    }
}
