//! Opens an index where it cannot be written to, as on a full disk: what is there answers, or one elsewhere does.

use std::fs::File;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::index::directory::{kept_folder, own_folder, take_lock};
use crate::index::open::{Opened, open_to_write};
use crate::index::{Index, IndexState, Options};
use crate::vault::Vault;

impl Index {
    /// Opens the index that is there to read it; where there is none, and its place was not chosen, one in the user's
    /// cache folder, as for a vault that can only be read. It is written again once that can be done.
    ///
    /// # Errors
    /// The reason why it cannot be written, where neither can be done.
    pub(super) fn open_unwritten(vault: Arc<Vault>, options: Options, why: Error) -> Result<Self> {
        let folder = options.folder.clone().unwrap_or_else(|| kept_folder(vault.root()));
        let reading = Options { folder: Some(folder), read_only: true, ..options.clone() };
        let opened = Self::open_in_place(Arc::clone(&vault), reading);
        if let Err(error) = &opened {
            tracing::warn!("the index cannot be opened to read it either: {error}");
        }
        if let Some(mut index) = opened.ok().filter(|index| index.generation().is_ok_and(|batch| batch > 0)) {
            index.options.read_only = false;
            index.notices.push(format!("the index cannot be written, so it answers as it is: {why}"));
            return Ok(index);
        }
        if options.folder.is_some() {
            return Err(why);
        }
        let elsewhere = own_folder(vault.root(), true)?;
        let options = Options { folder: Some(elsewhere.clone()), ..options };
        let mut index = match Self::open_in_place(vault, options) {
            Ok(index) => index,
            Err(error) => {
                tracing::warn!("no index can be made in {} either: {error}", elsewhere.display());
                return Err(why);
            }
        };
        let place = index.folder().display().to_string();
        index
            .notices
            .push(format!("the index is in {place}, because its own place cannot be written: {why}"));
        Ok(index)
    }

    /// Takes the lock and opens the index for writing; nothing where another process has it, or where it cannot be written
    /// now.
    pub(super) fn reopen_to_write(&self) -> Result<Option<(File, Opened)>> {
        let IndexState { folder, identity, serving, .. } = &*self.shared;
        let options = Options { rebuild: false, ..self.options.clone() };
        let open = || -> Result<Option<(File, Opened)>> {
            let Some(lock) = take_lock(self.vault.root(), folder, &options.verb)? else { return Ok(None) };
            let opened = open_to_write(&self.vault, &options, folder, identity, serving)?;
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
