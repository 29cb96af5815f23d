//! Opening an index whose folder cannot be written, for example on a full disk: the existing index is read, or one
//! in another folder is used.

use std::fs::File;
use std::sync::Arc;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_vault::Vault;

use crate::directory::{default_index_folder, take_lock, vault_index_folder};
use crate::open::{Opened, open_to_write};
use crate::{Index, IndexState, Options};

impl Index {
    /// Opens the existing index for reading. If there is none and no folder was given, an index in the user's cache
    /// folder is used, as for a read-only vault. The index is updated again once its folder can be written.
    ///
    /// # Errors
    /// `why`, the reason why the folder cannot be written, if neither is possible.
    pub(super) fn open_without_writing(vault: Arc<Vault>, options: Options, why: Error) -> Result<Self> {
        let folder = options.folder.clone().unwrap_or_else(|| vault_index_folder(vault.root()));
        let reading = Options { folder: Some(folder), read_only: true, ..options.clone() };
        let opened = Self::open_in_place(Arc::clone(&vault), reading);
        if let Err(error) = &opened {
            tracing::warn!("the index cannot be opened for reading, either: {error}");
        }
        if let Some(mut index) = opened.ok().filter(|index| index.generation().is_ok_and(|batch| batch > 0)) {
            index.options.read_only = false;
            index
                .notices
                .push(format!("the index cannot be updated, so the answers may be out of date: {why}"));
            return Ok(index);
        }
        if options.folder.is_some() {
            return Err(why);
        }
        let elsewhere = default_index_folder(vault.root(), true)?;
        let options = Options { folder: Some(elsewhere.clone()), ..options };
        let mut index = match Self::open_in_place(vault, options) {
            Ok(index) => index,
            Err(error) => {
                tracing::warn!("no index can be created in {}, either: {error}", elsewhere.display());
                return Err(why);
            }
        };
        let place = index.folder().display().to_string();
        index
            .notices
            .push(format!("the index is in {place}, because its default folder cannot be written: {why}"));
        Ok(index)
    }

    /// Takes the lock and opens the index for writing. Returns `None` if another process holds the lock, or if the
    /// folder cannot be written now.
    pub(super) fn reopen_to_write(&self) -> Result<Option<(File, Opened)>> {
        let IndexState { folder, identity, models, .. } = &*self.shared;
        let options = Options { rebuild: false, ..self.options.clone() };
        let open = || -> Result<Option<(File, Opened)>> {
            let Some(lock) = take_lock(self.vault.root(), folder, &options.verb)? else { return Ok(None) };
            let opened = open_to_write(&self.vault, &options, folder, identity, models)?;
            Ok(Some((lock, opened)))
        };
        match open() {
            Err(error) if error.kind() == ErrorKind::Io => {
                tracing::debug!("the index cannot be written now: {error}");
                Ok(None)
            }
            opened => opened,
        }
    }
}
