//! Finds names for new notes that no other file in the same folder has and that capture no links, numbering the others.

use std::collections::{HashMap, HashSet};

use sidenote_base::error::{Error, Result};
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_vault::Vault;

use crate::move_files::captures_links;
use crate::naming::placed;

/// The names in the folders of a vault. Names that differ only in case or Unicode form count as the same name, because
/// some file systems do not tell them apart.
pub struct FreeNames<'a> {
    vault: &'a Vault,
    /// The vault as a plan sees it, if names that capture links count as taken.
    view: Option<&'a View<'a>>,
    /// The keys of the names in each folder, listed once when the folder is first asked for.
    names: HashMap<String, HashSet<String>>,
    /// The next number to try for each path, so that many notes with one name do not each count from the beginning.
    numbers: HashMap<String, usize>,
}

impl<'a> FreeNames<'a> {
    pub(crate) fn new(vault: &'a Vault) -> Self {
        Self { vault, view: None, names: HashMap::new(), numbers: HashMap::new() }
    }

    /// Creates names of which none captures the links of other notes.
    pub fn without_captures(vault: &'a Vault, view: &'a View<'a>) -> Self {
        Self { view: Some(view), ..Self::new(vault) }
    }

    /// Returns whether a folder contains a file of this name, [`Self::take`] returned it, or it captures links.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed, or notes with links of this name cannot be read.
    pub(super) fn is_taken(&mut self, folder: &str, name: &str) -> Result<bool> {
        if self.in_folder(folder)?.contains(&key(name)) {
            return Ok(true);
        }
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        match self.vault.new_path(&path, NameRules::default()) {
            Ok(path) => self.captures(&path),
            // A name that no note can have is refused where the note is planned.
            Err(_) => Ok(false),
        }
    }

    fn captures(&self, path: &NotePath) -> Result<bool> {
        self.view.map_or(Ok(false), |view| captures_links(view, path))
    }

    /// Returns a free path for a note: with the name itself, or with the first free number after it. Every call returns
    /// another path.
    ///
    /// # Errors
    /// `Invalid` if the name cannot be that of a note; `Io` if the folder cannot be listed.
    pub fn take(&mut self, folder: &str, name: &str) -> Result<NotePath> {
        let base = key(&placed(folder, name));
        let mut number = self.numbers.get(&base).copied().unwrap_or(1);
        let path = loop {
            let name = if number == 1 { name.to_owned() } else { format!("{name} {number}") };
            let path = self.vault.new_path(&placed(folder, &name), NameRules::default())?;
            number += 1;
            if self.in_folder(path.folder())?.insert(key(path.name())) && !self.captures(&path)? {
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
