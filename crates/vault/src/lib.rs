//! The vault: its root folder, the mapping from a [`NotePath`] to the file on disk, scans, watching, writing and
//! recovery. It knows neither the index nor any database.
//!
//! Only `vault/apply`, `vault/commit`, `vault/recover` and, in a copy, `vault/copy` change notes. All other modules read.

pub mod backup_folder;
mod below;
mod manifest;
pub mod merge_base;
pub mod obsidian;
pub mod recover;
pub mod scan;
pub mod watch;
pub mod apply;
pub mod authority;
mod commit;
pub mod copy;
pub mod dir;
pub mod fence;
mod path_pattern;
pub mod symlinks;
pub mod flush_request;
pub mod folder_fingerprint;
pub mod folder_listings;
pub mod git_files;
pub mod link_dialects;
pub mod location;
pub mod revision_files;
mod site_config;
pub mod undo_log;
pub mod write_lock;
mod write_queue;
pub mod apply_result;
mod replaced_files;
mod transaction_records;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{platform, safe_open};
use sidenote_config::LinksConfig;
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::NotePath;

use crate::authority::{Alone, Authority};
use crate::dir::Dir;
pub use crate::dir::failpoint;
use crate::fence::Fence;
use crate::obsidian::Settings;
use crate::scan::{FollowedLink, ScanOptions};
use crate::write_queue::WriteQueue;

/// The name of the folder that holds a vault's own state.
pub const STATE_DIR: &str = ".sidenote";

/// The default name of Obsidian's configuration folder.
pub const CONFIG_DIR: &str = ".obsidian";

/// The name of the file at the root by which another program turns memory off.
const RULEBOOK: &str = ".rulebook";
/// The maximum size of that file in bytes.
const MAX_RULEBOOK: u64 = 1_000_000;

/// The default maximum size of a file that is read, in bytes.
pub(crate) const MAX_FILE_SIZE: u64 = 100_000_000;

/// A folder of notes, with the options it was opened with.
// size: what all layers ask of the folder: its options, its paths, and whether it may be read and written now.
#[derive(Debug, Clone)]
pub struct Vault {
    root: PathBuf,
    config_dir: String,
    max_file_size: u64,
    read_only: bool,
    /// Whether symbolic links that lead outside the vault are followed.
    follow_outside: bool,
    /// The links to folders outside the vault that the last full scan followed, with their targets.
    followed: Arc<RwLock<Option<Vec<FollowedLink>>>>,
    /// The folder of an index inside the vault, as a path from the root; empty for none.
    hidden: String,
    /// The user's rules about link dialects.
    links: Arc<LinksConfig>,
    authority: Arc<dyn Authority>,
    /// The device of the root when it was last seen with content.
    device: Arc<AtomicU64>,
    /// The threads of this process that want the write lock.
    write_queue: WriteQueue,
    /// The files that exist for the reader; all without it.
    fence: Option<Arc<Fence>>,
}

/// Fails inside the data of a git repository, such as a bare one, where files belong to git.
fn refuse_git_data(root: &Path) -> Result<()> {
    for folder in root.ancestors() {
        if folder.join(".git").symlink_metadata().is_ok() {
            // A working tree can stand inside of a bare repository.
            return Ok(());
        }
        let has = |name: &str| folder.join(name).is_dir();
        if has("objects") && has("refs") && folder.join("HEAD").symlink_metadata().is_ok() {
            return Err(Error::invalid(format!(
                "{} is the data of a git repository, and no folder of notes",
                folder.display()
            ))
            .with_hints(
                "run the command in a working tree, or name a vault with --vault",
                "ask the user for the folder of the notes: a working tree of the repository",
            ));
        }
    }
    Ok(())
}

impl Vault {
    /// Opens the vault whose root is `root`. Any folder can be a vault.
    ///
    /// # Errors
    /// `NotFound` if the folder does not exist, `Invalid` if it is not a folder or holds the data of a git repository, `Io`
    /// if it cannot be read.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref();
        let real = platform::canonicalize(root).map_err(|error| {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let failed = Error::io("open the vault", root, error);
            if is_missing {
                failed.with_hint("name a folder that exists, or create it first")
            } else {
                failed
            }
        })?;
        if !real.is_dir() {
            return Err(Error::invalid(format!("{} is not a folder", root.display()))
                .with_hint("name the folder that holds the notes"));
        }
        refuse_git_data(&real)?;
        let device =
            platform::metadata(&real).map_err(|error| Error::io("open the vault", &real, error))?.device;
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
            links: Arc::default(),
            authority: Arc::new(Alone),
            device: Arc::new(AtomicU64::new(device)),
            write_queue: WriteQueue::default(),
            fence: None,
        })
    }

    /// Sets the user's rules about link dialects.
    #[must_use]
    pub fn with_link_rules(mut self, links: &LinksConfig) -> Self {
        self.links = Arc::new(links.clone());
        self
    }

    /// Sets the name of Obsidian's configuration folder (docs/spec/obsidian.md 1.1).
    ///
    /// # Errors
    /// `Invalid` if the name does not start with a dot or is a path.
    pub fn with_config_dir(mut self, name: &str) -> Result<Self> {
        if !name.starts_with('.') || matches!(name, "." | "..") || name.contains(['/', '\\', '\0']) {
            return Err(Error::invalid(format!("{name:?} is not a valid name of a configuration folder"))
                .with_hint("the name starts with a dot, such as .obsidian-phone"));
        }
        name.clone_into(&mut self.config_dir);
        Ok(self)
    }

    /// Sets the maximum size of a file that is read, in bytes. It is never above [`safe_open::MAX_IN_MEMORY`].
    #[must_use]
    pub fn with_max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes.min(safe_open::MAX_IN_MEMORY);
        self
    }

    /// Returns the maximum size of a file that is read, in bytes.
    pub fn max_file_size(&self) -> u64 {
        self.max_file_size
    }

    /// Sets whether all writing is refused, the journal included.
    #[must_use]
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets whether symbolic links that lead outside the vault are followed. Only the user's own settings may allow it.
    #[must_use]
    pub fn with_follow_outside(mut self, follow_outside: bool) -> Self {
        self.follow_outside = follow_outside;
        self
    }

    /// Says whether symbolic links that lead outside the vault are followed.
    pub fn follows_outside(&self) -> bool {
        self.follow_outside
    }

    /// Returns the options for a scan of the whole vault.
    pub fn scan_options(&self) -> ScanOptions {
        let (hidden, follow_outside) = (self.hidden.clone(), self.follow_outside);
        ScanOptions { hidden, follow_outside, fence: self.fence.clone(), ..ScanOptions::default() }
    }

    /// Stores the links to folders outside the vault that a full scan followed.
    pub fn set_followed_links(&self, links: Vec<FollowedLink>) {
        *self.followed.write().unwrap_or_else(PoisonError::into_inner) = Some(links);
    }

    /// Hides the folder of the index if it is inside the vault: its files are neither notes nor attachments.
    ///
    /// # Errors
    /// `Invalid` if it is the root of the vault; `Io` if its canonical path cannot be determined.
    pub fn with_index_in(mut self, folder: &Path) -> Result<Self> {
        let real = canonical_path_of(folder).map_err(|error| Error::io("find", folder, error))?;
        if real == self.root {
            let folder = folder.display();
            return Err(Error::invalid(format!("{folder} is the vault itself and cannot hold the index"))
                .with_hints(
                    "choose a separate folder: --index PATH",
                    "ask the user to choose a separate folder for the index",
                ));
        }
        let inner = real.strip_prefix(&self.root).ok().and_then(platform::slash_path);
        self.hidden = inner.unwrap_or_default();
        Ok(self)
    }

    /// Returns the folder of an index inside the vault, as a path from the root; empty for none.
    pub fn hidden(&self) -> &str {
        &self.hidden
    }

    /// Fails if a folder of sidenote's state is a symbolic link. A vault can be a download, and a link in it must not
    /// redirect writes.
    ///
    /// # Errors
    /// `Invalid` naming the link.
    pub fn refuse_linked_state(&self) -> Result<()> {
        let folders = [
            "",
            "/records",
            "/records/pending",
            "/records/undo",
            "/records/conflicts",
            "/records/proposals",
            "/local",
            "/local/moves",
        ];
        for inner in folders {
            let inner = format!("{STATE_DIR}{inner}");
            match safe_open::folder(&self.root, Path::new(&inner)) {
                Err(error) if safe_open::is_refusal(&error) => {
                    let folder = self.root.join(inner);
                    return Err(Error::invalid(format!("{} is a symbolic link (symlink)", folder.display()))
                        .with_hints(
                            "replace it with a real folder; only the index can be elsewhere: --index PATH",
                            "ask the user to replace it with a real folder",
                        ));
                }
                // Other errors are reported when the folder is used.
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens the records folder for reading; `None` if it does not exist. Inside the vault, no symbolic link is followed
    /// on the way.
    ///
    /// # Errors
    /// `Invalid` if it is after a symbolic link; `Io` if it cannot be opened.
    pub fn open_records(&self, records: &Path) -> Result<Option<Dir>> {
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

    /// Says whether a path is in the folder of the index, or does not exist for the reader.
    pub fn hides(&self, path: &NotePath) -> bool {
        below::lies_in(path.as_str(), &self.hidden) || !self.may_show(path)
    }

    /// Fails if the vault is read-only.
    ///
    /// # Errors
    /// `Invalid` if the vault was opened read-only.
    pub fn refuse_read_only(&self) -> Result<()> {
        if !self.read_only {
            return Ok(());
        }
        Err(Error::invalid(format!("{} is opened read-only", self.root.display())).with_hints(
            "start sidenote without --read-only to change notes",
            "the user started this server read-only",
        ))
    }

    /// Fails if the root is only the mount point of the vault's former file system: empty, and on another device than
    /// before. Then nothing is written there, and no note counts as deleted.
    ///
    /// # Errors
    /// `NotFound` if the vault is not mounted.
    pub fn refuse_unmounted(&self) -> Result<()> {
        // A root that is missing is reported by whatever opens a file in it.
        let Ok(found) = platform::metadata(&self.root) else { return Ok(()) };
        if found.device == self.device.load(Ordering::Relaxed) {
            return Ok(());
        }
        if platform::read_dir(&self.root).is_ok_and(|mut entries| entries.next().is_none()) {
            let root = self.root.display();
            return Err(Error::not_found(format!("{root} is empty, because it is not mounted any more"))
                .with_hint("mount it again; nothing is written there meanwhile"));
        }
        self.device.store(found.device, Ordering::Relaxed);
        Ok(())
    }

    /// Says whether the vault is read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the canonical path of the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a file on disk.
    pub fn disk_path(&self, path: &NotePath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// Parses the path of a file or folder to create, without symbolic links in its folder. Segments that exist are accepted
    /// whatever their names; each other one must be a valid name for a new file or folder.
    ///
    /// # Errors
    /// `Invalid` with the reason; the errors of [`Vault::canonical_path`].
    pub fn new_path(&self, text: &str, rules: NameRules) -> Result<NotePath> {
        self.new_path_keeping(text, rules, None)
    }

    /// Parses the path to which an existing file or folder moves, like [`Vault::new_path`]. It may keep its name.
    ///
    /// # Errors
    /// Those of [`Vault::new_path`].
    pub fn moved_path(&self, from: &NotePath, text: &str, rules: NameRules) -> Result<NotePath> {
        self.new_path_keeping(text, rules, Some(from.name()))
    }

    fn new_path_keeping(&self, text: &str, rules: NameRules, kept: Option<&str>) -> Result<NotePath> {
        let given = NotePath::parse(text)?;
        // Some systems cannot look up a name that no new file may have.
        let path = self.canonical_path(&given).or_else(|error| {
            given.as_str().split('/').try_for_each(|name| rules.check(name)).and(Err(error))
        })?;
        let mut rest = path.as_str();
        let mut known = String::with_capacity(rest.len());
        while !rest.is_empty() {
            let (name, behind) = rest.split_once('/').unwrap_or((rest, ""));
            if !known.is_empty() {
                known.push('/');
            }
            known.push_str(name);
            if !self.root.join(&known).exists() && (!behind.is_empty() || kept != Some(name)) {
                rules.check(name)?;
            }
            rest = behind;
        }
        Ok(path)
    }

    /// Reads a regular file.
    ///
    /// # Errors
    /// `NotFound` if it does not exist; `Invalid` if it is not a regular file or too large; `Io` otherwise.
    pub fn read(&self, path: &NotePath) -> Result<Vec<u8>> {
        self.read_with(path, |_| ()).map(|(bytes, ())| bytes)
    }

    /// Reads a file as [`read`](Self::read) does, and looks at it while it is open.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_with<T>(&self, path: &NotePath, look: impl FnOnce(&File) -> T) -> Result<(Vec<u8>, T)> {
        let read = self.open_to_read(path).and_then(|file| {
            let seen = look(&file);
            let bytes = safe_open::read_open(file, self.max_file_size)?;
            self.refuse_withheld_bytes(path, &bytes)?;
            Ok((bytes, seen))
        });
        read.map_err(|error| {
            if safe_open::is_refusal(&error) {
                Error::new(ErrorKind::Invalid, format!("{path} is not read: {error}"))
            } else {
                Error::io("read", path.as_str(), error)
            }
        })
    }

    /// Says whether a file contains any of `texts`. The file is read in chunks and may be of any size.
    ///
    /// # Errors
    /// `Invalid` for a sparse file, whose size says nothing about what it holds; `Io` if it cannot be read.
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
        if platform::file_metadata(&file).is_ok_and(|found| !safe_open::is_regular(&found)) {
            return Err(Error::invalid(format!("{path} is a sparse file, which is not read")));
        }
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

    /// Lists the paths in Obsidian's bookmarks.
    pub fn bookmarks(&self) -> HashSet<String> {
        obsidian::bookmarks(&self.root, &self.config_dir, self.follow_outside)
    }

    /// Returns the path of Obsidian's configuration folder.
    pub fn config_folder(&self) -> PathBuf {
        self.root.join(&self.config_dir)
    }

    /// Says whether the file `.rulebook` at the root turns memory off. A missing or unreadable file does not.
    pub fn is_memory_disabled(&self) -> bool {
        let Ok(bytes) = safe_open::read(&self.root, RULEBOOK, MAX_RULEBOOK) else { return false };
        let said: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
        said.and_then(|said| said.pointer("/memory/enabled")?.as_bool()) == Some(false)
    }

    /// Reads Obsidian's present settings.
    pub fn settings(&self) -> Settings {
        Settings::read(&self.root, &self.config_dir, self.follow_outside)
    }
}

/// Opens a regular file of any size for reading.
///
/// # Errors
/// `NotFound` if it does not exist; `Invalid` if it is not a regular file; `Io` otherwise.
pub fn open_to_read(vault: &Vault, path: &NotePath) -> Result<std::fs::File> {
    vault.open_file(path).map_err(|error| {
        if safe_open::is_refusal(&error) {
            Error::new(ErrorKind::Invalid, format!("{path} is not read: {error}"))
        } else {
            Error::io("read", path.as_str(), error)
        }
    })
}

/// Returns the path of a vault below the root of its git repository, which is the nearest folder with `.git`; empty if it
/// is that root. Returns `None` if it is in no repository.
pub fn path_in_repository(root: &Path) -> Option<String> {
    let is_repository = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let repository = root.ancestors().find(is_repository)?;
    root.strip_prefix(repository).ok().and_then(platform::slash_path)
}

/// Returns the canonical path of a folder, which need not exist yet.
///
/// # Errors
/// System errors for a parent folder that cannot be read.
pub fn canonical_path_of(folder: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(folder)?;
    let there = absolute.ancestors().find(|above| above.exists()).unwrap_or(&absolute);
    let rest = absolute.strip_prefix(there).unwrap_or(Path::new(""));
    Ok(platform::canonicalize(there)?.join(rest))
}
