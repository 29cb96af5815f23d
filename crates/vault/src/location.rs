//! Where a vault is: the folder that is named, or the nearest folder upwards that has a marker.
//!
//! A marker is Obsidian's folder of settings, or a state folder that holds more than an index.

use std::path::{Path, PathBuf};

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_config::home_folder;

use crate::write_lock::{create_local_dir, local_folder};
use crate::{CONFIG_DIR, STATE_DIR, Vault};

/// The name of the index in the state folder. An index is derived, so it says nothing about what its folder is for.
const INDEX: &str = "index";

/// The folder that a command takes for the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The folder.
    pub root: PathBuf,
    /// Why it is that one.
    pub reason: LocationReason,
}

/// The reason for which a folder is taken for the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocationReason {
    /// It was named.
    Named,
    /// It is the current folder, and has a marker.
    Marked,
    /// It is the nearest folder above the current one that has a marker.
    Above,
    /// It is the current folder, and has an index but no marker.
    Indexed,
    /// It is the current folder, and neither it nor a folder above is a vault.
    Unmarked,
}

impl Location {
    /// Finds the vault of a command: the folder that is named, or else the one that the current folder is in.
    ///
    /// # Errors
    /// `Io` if there is no current folder; `Invalid` if it is the home folder or the root of the file system, which are
    /// vaults only where they are named.
    pub fn find(named: Option<&Path>) -> Result<Self> {
        match named {
            Some(root) => Ok(Self { root: root.to_owned(), reason: LocationReason::Named }),
            None => Self::from(&current_folder()?, home_folder().as_deref()),
        }
    }

    /// Finds the vault that a folder is in. The home folder and the root of the file system are passed over: everything
    /// that the user has is below them.
    ///
    /// # Errors
    /// `Invalid` if the folder is one of these two, and no vault is above it; `NotFound` if a folder above has an index and no
    /// marker.
    pub fn from(start: &Path, home: Option<&Path>) -> Result<Self> {
        let start = platform::canonicalize(start).unwrap_or_else(|_| start.to_owned());
        let home = home.map(|home| platform::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
        let is_reserved = |folder: &Path| folder.parent().is_none() || home.as_deref() == Some(folder);
        let marked = start.ancestors().find(|folder| !is_reserved(folder) && has_marker(folder));
        if let Some(root) = marked {
            let reason = if *root == *start { LocationReason::Marked } else { LocationReason::Above };
            return Ok(Self { root: root.to_owned(), reason });
        }
        if is_reserved(&start) {
            let what =
                if start.parent().is_none() { "the root of the file system" } else { "your home folder" };
            return Err(Error::invalid(format!(
                "{} is {what}, and no vault unless it is named",
                start.display()
            ))
            .with_hints(
                "go to the folder of your notes, or name it: --vault FOLDER",
                "ask the user to start the server for the folder of the notes",
            ));
        }
        let has_index = |folder: &Path| folder.join(STATE_DIR).join(INDEX).is_dir();
        if has_index(&start) {
            return Ok(Self { root: start, reason: LocationReason::Indexed });
        }
        // It may be the vault of the user's notes, in which another one would be made.
        if let Some(above) = start.ancestors().find(|folder| !is_reserved(folder) && has_index(folder)) {
            let (start, above) = (start.display(), above.display());
            return Err(Error::not_found(format!(
                "{start} is in {above}, which has an index, but no marker of a vault"
            ))
            .with_hints(
                format!(
                    "run `sidenote index` in {above} to make it the vault, or name the vault: --vault FOLDER"
                ),
                "ask the user to start the server for the folder of the notes",
            ));
        }
        Ok(Self { root: start, reason: LocationReason::Unmarked })
    }

    /// Returns the folder whose settings hold: the vault, or else the current folder.
    ///
    /// # Errors
    /// `Io` if there is no current folder.
    pub fn of_settings(named: Option<&Path>) -> Result<PathBuf> {
        match Self::find(named) {
            Ok(location) => Ok(location.root),
            Err(_) => current_folder(),
        }
    }

    /// Returns the error for a folder that only a command that writes, or the user, makes a vault.
    pub fn no_vault(&self) -> Error {
        Error::not_found(format!(
            "{} is no vault: neither it nor a folder above has .sidenote or .obsidian",
            self.root.display()
        ))
        .with_hints(
            "run `sidenote index` in the folder of your notes to make it a vault, or name the vault: --vault FOLDER",
            "ask the user to start the server for the folder of the notes",
        )
    }
}

/// Says whether a folder has a marker. A state folder with only an index is not a marker, as a search in that folder
/// may have left it.
pub(crate) fn has_marker(folder: &Path) -> bool {
    if folder.join(CONFIG_DIR).is_dir() {
        return true;
    }
    let state = folder.join(STATE_DIR);
    let Ok(entries) = std::fs::read_dir(&state) else { return false };
    let mut names = entries.flatten().map(|entry| entry.file_name()).peekable();
    names.peek().is_none() || names.any(|name| name != INDEX)
}

impl Vault {
    /// Gives the vault a marker, unless it has one: the folder for what belongs to this working copy, which git ignores.
    ///
    /// # Errors
    /// `Io` if the folder cannot be created.
    pub fn mark(&self) -> Result<()> {
        if has_marker(self.root()) {
            return Ok(());
        }
        create_local_dir(self, &local_folder(self)).map(drop)
    }
}

fn current_folder() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| Error::io("find", ".", error))
}
