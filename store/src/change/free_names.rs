//! Finds names for new notes that no other file in the same folder has, numbering those that are taken.

use std::collections::{HashMap, HashSet};

use crate::change::naming::placed;
use sidenote_foundation::error::{Error, Result};
use sidenote_foundation::text::path::{NameRules, NotePath, key};
use sidenote_foundation::vault::Vault;

/// The names in the folders of a vault. Names that differ only in case or Unicode form count as the same name, because
/// some file systems do not tell them apart.
pub(crate) struct FreeNames<'a> {
    vault: &'a Vault,
    /// The keys of the names in each folder, listed once when the folder is first asked for.
    names: HashMap<String, HashSet<String>>,
    /// The next number to try for each path, so that many notes with one name do not each count from the beginning.
    numbers: HashMap<String, usize>,
}

impl<'a> FreeNames<'a> {
    pub(crate) fn new(vault: &'a Vault) -> Self {
        Self { vault, names: HashMap::new(), numbers: HashMap::new() }
    }

    /// Returns whether a folder contains a file of this name, or [`Self::take`] returned it.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed.
    pub(super) fn is_taken(&mut self, folder: &str, name: &str) -> Result<bool> {
        Ok(self.in_folder(folder)?.contains(&key(name)))
    }

    /// Returns a free path for a note: with the name itself, or with the first free number after it. Every call returns
    /// another path.
    ///
    /// # Errors
    /// `Invalid` if the name cannot be that of a note; `Io` if the folder cannot be listed.
    pub(crate) fn take(&mut self, folder: &str, name: &str) -> Result<NotePath> {
        let base = key(&placed(folder, name));
        let mut number = self.numbers.get(&base).copied().unwrap_or(1);
        let path = loop {
            let name = if number == 1 { name.to_owned() } else { format!("{name} {number}") };
            let path = self.vault.new_path(&placed(folder, &name), NameRules::default())?;
            number += 1;
            if self.in_folder(path.folder())?.insert(key(path.name())) {
                break path;
            }
        };
        self.numbers.insert(base, number);
        Ok(path)
    }

    fn in_folder(&mut self, folder: &str) -> Result<&mut HashSet<String>> {
        if !self.names.contains_key(folder) {
            self.names.insert(folder.to_owned(), list(self.vault, folder)?);
        }
        self.names.get_mut(folder).ok_or_else(|| Error::internal("a listed folder is missing"))
    }
}

/// Lists the keys of the names in a folder of the vault. A folder that does not exist has none.
fn list(vault: &Vault, folder: &str) -> Result<HashSet<String>> {
    let disk = vault.root().join(folder);
    let entries = match std::fs::read_dir(&disk) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(Error::io("list", &disk, error)),
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.map_err(|error| Error::io("list", &disk, error))?;
        Ok(key(&entry.file_name().to_string_lossy()))
    };
    entries.map(name).collect()
}
