//! Owns [`Vault`]: the root folder of a vault, and the way from a [`NotePath`] to the bytes on disk.
//!
//! `write` alone changes notes; everything else here reads.

pub mod backup;
mod manifest;
pub mod obsidian;
pub mod recover;
pub mod scan;
pub mod watch;
pub mod applied;
pub mod apply;
mod commit;
pub(crate) mod dir;
mod records;
mod symlinks;
pub mod undo_log;
pub mod write_lock;

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Error, ErrorKind, Result};
use crate::safe_open;
use crate::text::path::NotePath;
use crate::vault::dir::Dir;
use crate::vault::obsidian::Settings;
use crate::vault::scan::{FollowedLink, ScanOptions};

/// The name of the folder that holds a vault's own state.
pub const STATE_DIR: &str = ".sidenote";

/// The name of Obsidian's configuration folder where nothing else is said.
pub const CONFIG_DIR: &str = ".obsidian";

/// The name of the file at the root by which another program turns memory off, and how long it may be.
const RULEBOOK: &str = ".rulebook";
const MAX_RULEBOOK: u64 = 1_000_000;

/// How many bytes a file may have to be read, where nothing else is said.
pub const MAX_FILE_SIZE: u64 = 100_000_000;

/// A folder of notes.
#[derive(Debug, Clone)]
pub struct Vault {
    root: PathBuf,
    config_dir: String,
    max_file_size: u64,
    read_only: bool,
    /// Whether symbolic links that lead out of the vault are followed.
    follow_outside: bool,
    /// The links to folders outside that the last look at everything followed, with the folders that they lead to.
    followed: Arc<RwLock<Option<Vec<FollowedLink>>>>,
    /// The folder of an index that lies among the notes, as a path from the root; empty for none.
    hidden: String,
}

impl Vault {
    /// Opens the vault whose root is `root`; any folder is one.
    ///
    /// # Errors
    /// `NotFound` where there is no such folder, `Invalid` where it is none, `Io` where it cannot be reached.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        let real = root.canonicalize().map_err(|error| Error::io("open the vault", root, error))?;
        if !real.is_dir() {
            return Err(Error::invalid(format!("{} is no folder", root.display()))
                .with_hint("name the folder that holds the notes"));
        }
        let config_dir = CONFIG_DIR.to_owned();
        let hidden = String::new();
        Ok(Self {
            root: real,
            config_dir,
            max_file_size: MAX_FILE_SIZE,
            read_only: false,
            follow_outside: false,
            followed: Arc::default(),
            hidden,
        })
    }

    /// Looks for Obsidian's settings in a folder of another name (spec/obsidian.md 1.1).
    ///
    /// # Errors
    /// `Invalid` for a name that does not start with a dot or is a path.
    pub fn with_config_dir(mut self, name: &str) -> Result<Self> {
        if !name.starts_with('.') || matches!(name, "." | "..") || name.contains(['/', '\\', '\0']) {
            return Err(Error::invalid(format!("{name:?} is no name of a configuration folder"))
                .with_hint("Obsidian's start with a dot, such as .obsidian-phone"));
        }
        name.clone_into(&mut self.config_dir);
        Ok(self)
    }

    /// Refuses to read files of more bytes than `bytes`.
    #[must_use]
    pub fn with_max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// Gives how many bytes a file may have to be read.
    pub fn max_file_size(&self) -> u64 {
        self.max_file_size
    }

    /// Refuses to write anything, the journal included.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Follows symbolic links that lead out of the vault. Only the user's own settings may ask for it.
    #[must_use]
    pub fn with_follow_outside(mut self, follow_outside: bool) -> Self {
        self.follow_outside = follow_outside;
        self
    }

    /// Says whether symbolic links that lead out of the vault are followed.
    pub fn follows_outside(&self) -> bool {
        self.follow_outside
    }

    /// Says how the whole vault is scanned.
    pub fn scan_options(&self) -> ScanOptions {
        let (hidden, follow_outside) = (self.hidden.clone(), self.follow_outside);
        ScanOptions { hidden, follow_outside, ..ScanOptions::default() }
    }

    /// Notes which links to folders outside a look at everything followed.
    pub(crate) fn set_followed_links(&self, links: Vec<FollowedLink>) {
        *self.followed.write().unwrap_or_else(PoisonError::into_inner) = Some(links);
    }

    /// Passes over the folder of the index where it lies among the notes: what is in it is neither note nor attachment.
    ///
    /// # Errors
    /// `Invalid` where it is the vault's own folder; `Io` where its place cannot be told.
    pub fn with_index_in(mut self, folder: &Path) -> Result<Self> {
        let real = real_place(folder).map_err(|error| Error::io("find", folder, error))?;
        if real == self.root {
            let folder = folder.display();
            return Err(Error::invalid(format!("{folder} is the vault itself, so no index is made there"))
                .with_hint("give a folder of its own: --index PATH"));
        }
        let inner = real.strip_prefix(&self.root).ok().and_then(Path::to_str);
        self.hidden = inner.unwrap_or_default().to_owned();
        Ok(self)
    }

    /// Gives the folder of the index where it lies among the notes, as a path from the root; else nothing, as text.
    pub fn hidden(&self) -> &str {
        &self.hidden
    }

    /// Fails where a folder of the vault's own state is a symbolic link: a vault can be a download, and a link in it must
    /// not lead what we write elsewhere.
    ///
    /// # Errors
    /// `Invalid` naming the link.
    pub fn refuse_linked_state(&self) -> Result<()> {
        for inner in ["", "/records", "/records/pending", "/records/undo", "/records/conflicts"] {
            let inner = format!("{STATE_DIR}{inner}");
            match safe_open::folder(&self.root, Path::new(&inner)) {
                Err(error) if safe_open::is_refusal(&error) => {
                    let folder = self.root.join(inner);
                    return Err(Error::invalid(format!("{} is a symbolic link (symlink)", folder.display()))
                        .with_hint(
                            "put a real folder in its place; only the index can lie elsewhere: --index PATH",
                        ));
                }
                // What is missing or cannot be opened is told by whoever needs it.
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens the folder of the records to read, beneath the root where it lies there; `None` where there is none yet.
    ///
    /// # Errors
    /// `Invalid` where a symbolic link leads to it; `Io` where it cannot be opened.
    pub(crate) fn open_records(&self, records: &Path) -> Result<Option<Dir>> {
        let opened = match records.strip_prefix(&self.root) {
            Ok(inner) => safe_open::folder(&self.root, inner).map(Dir::from),
            Err(_) => Dir::open(records),
        };
        match opened {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(safe_open::failed("open", records, error)),
        }
    }

    /// Says whether a path lies in the folder of the index.
    pub fn hides(&self, path: &NotePath) -> bool {
        scan::lies_in(path.as_str(), &self.hidden)
    }

    /// Fails where nothing may be written.
    ///
    /// # Errors
    /// `Invalid` in a vault that was opened to be read only.
    pub fn refuse_read_only(&self) -> Result<()> {
        if !self.read_only {
            return Ok(());
        }
        Err(Error::invalid(format!("{} is opened to be read only", self.root.display()))
            .with_hint("start sidenote without --read-only to change notes"))
    }

    /// Says whether nothing may be written here.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Finds the root of the vault that `start` lies in: the nearest folder upwards that holds `.sidenote` or
    /// `.obsidian`, else `start` itself.
    pub fn discover(start: &Path) -> PathBuf {
        let absolute = start.canonicalize().unwrap_or_else(|_| start.to_owned());
        let is_root = |folder: &&Path| [STATE_DIR, CONFIG_DIR].iter().any(|name| folder.join(name).is_dir());
        absolute.ancestors().find(is_root).unwrap_or(&absolute).to_owned()
    }

    /// Gives the root, without symbolic links in it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Gives the place of a file on disk.
    pub fn disk_path(&self, path: &NotePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// Reads a file, regular ones only.
    ///
    /// # Errors
    /// `NotFound` where it is gone; `Invalid` where it is no regular file or too large; `Io` otherwise.
    pub fn read(&self, path: &NotePath) -> Result<Vec<u8>> {
        let read = self.open_file(path).and_then(|file| safe_open::read_open(file, self.max_file_size));
        read.map_err(|error| {
            if safe_open::is_refusal(&error) {
                Error::new(ErrorKind::Invalid, format!("{path} is not read: {error}"))
            } else {
                Error::io("read", path.as_str(), error)
            }
        })
    }

    /// Says whether a file holds any of some texts, however long it is: a piece of it is in memory at a time.
    ///
    /// # Errors
    /// `Io` where it cannot be read.
    pub fn holds_any(&self, path: &NotePath, texts: &[&str]) -> Result<bool> {
        const PIECE: usize = 1 << 20;
        let failed = |error| Error::io("read", path.as_str(), error);
        let finders: Vec<memchr::memmem::Finder<'_>> = texts
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| memchr::memmem::Finder::new(*text))
            .collect();
        let overlap = texts.iter().map(|text| text.len()).max().unwrap_or(0).saturating_sub(1);
        let mut file = self.open_file(path).map_err(failed)?;
        let mut piece = Vec::with_capacity(PIECE + overlap);
        loop {
            let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece).map_err(failed)?;
            if finders.iter().any(|finder| finder.find(&piece).is_some()) {
                return Ok(true);
            }
            if read == 0 {
                return Ok(false);
            }
            piece.drain(..piece.len().saturating_sub(overlap));
        }
    }

    /// Lists the paths that Obsidian's bookmarks name.
    pub fn bookmarks(&self) -> HashSet<String> {
        obsidian::bookmarks(&self.root, &self.config_dir, self.follow_outside)
    }

    /// Gives Obsidian's configuration folder.
    pub fn config_folder(&self) -> PathBuf {
        self.root.join(&self.config_dir)
    }

    /// Says whether the file `.rulebook` at the root turns memory off. One that is not there, cannot be read or says
    /// something else does not.
    pub fn is_memory_disabled(&self) -> bool {
        let Ok(bytes) = safe_open::read(&self.root, RULEBOOK, MAX_RULEBOOK) else { return false };
        let said: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
        said.and_then(|said| said.pointer("/memory/enabled")?.as_bool()) == Some(false)
    }

    /// Reads Obsidian's settings as they are now.
    pub fn settings(&self) -> Settings {
        Settings::read(&self.root, &self.config_dir, self.follow_outside)
    }
}

/// Gives the absolute place of a folder without symbolic links on the way; it need not be there yet.
///
/// # Errors
/// That of the system where a folder on the way cannot be looked at.
pub fn real_place(folder: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(folder)?;
    let there = absolute.ancestors().find(|above| above.exists()).unwrap_or(&absolute);
    let rest = absolute.strip_prefix(there).unwrap_or(Path::new(""));
    Ok(there.canonicalize()?.join(rest))
}
