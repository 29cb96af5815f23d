//! The files of a commit, written into the user's cache folder, so that a commit can be read as a vault.
//!
//! Nothing is written to the vault or to the repository. A commit may come from anywhere: no symbolic link of it is made,
//! and no name that leads out of the folder.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::OpenMode;
use sidenote_base::{platform, safe_open};
use sidenote_config as config;
use sidenote_git::{CommitInfo, ObjectId, Objects, Repository, TreeFile};
use sidenote_markdown::media_type::{is_text, media_type};
use sidenote_markdown::path::{NotePath, is_safe_on_windows};

use crate::STATE_DIR;
use crate::link_dialects::{is_hidden_marker, is_marker};

/// The number of trees of a repository that are kept, the last used ones.
const KEPT_TREES: usize = 3;
/// How long a process waits for another one that removes trees.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// The beginning of the name of a folder that is not complete, or temporary.
const DRAFT: &str = "new-";
/// So many contents are in memory at a time.
const GROUP: usize = 256;
/// An attachment of an unknown type above this size is written without its content.
const MAX_UNKNOWN: u64 = 1_000_000;

/// The files of a commit in the cache, with a place for their index. They are not removed while this exists.
#[derive(Debug)]
pub struct RevisionFiles {
    /// The folder of this tree in the cache.
    folder: PathBuf,
    /// The folder of the vault in it.
    root: PathBuf,
    left_out: Vec<String>,
    /// The lock that is shared by all processes that use trees of this repository.
    _lock: File,
}

impl RevisionFiles {
    /// Opens the files of a commit in the cache, and writes them there if they are not. `config_dir` is the name of
    /// Obsidian's settings folder, whose settings are written as well; `max_file_size` is the size of the largest file that
    /// is read.
    ///
    /// # Errors
    /// `NotFound` if the commit does not have the folder of the vault; `Io` if the cache cannot be written; those of running
    /// git.
    pub fn open(
        repository: &Repository,
        commit: &CommitInfo,
        config_dir: &str,
        max_file_size: u64,
    ) -> Result<Self> {
        let Some(tree) = repository.tree_id(&commit.id)? else {
            let (folder, id) = (repository.prefix().trim_end_matches('/'), commit.id.short());
            return Err(Error::not_found(format!("commit {id} has no folder {folder}"))
                .with_hint("name a commit in which the vault is in this folder"));
        };
        let base = cache_of(repository)?;
        let folder = base.join(format!("{tree}-{}", env!("CARGO_PKG_VERSION")));
        let lock = lock_trees(&base, folder.is_dir())?;
        let root = folder.join("files").join(repository.prefix());
        if !folder.is_dir() {
            let draft = base.join(format!("{DRAFT}{}-{}", std::process::id(), draft_number()));
            let written = Draft { folder: draft.clone() };
            let writer = TreeWriter::new(repository, commit, &draft.join("files"), config_dir)?;
            let left_out = writer.write_all(max_file_size)?;
            let said = serde_json::to_vec(&left_out)
                .map_err(|error| Error::internal("cannot write down what was left out").with_source(error))?;
            let path = draft.join("left-out.json");
            let mut file = safe_open::create(&path).map_err(|error| Error::io("write", &path, error))?;
            file.write_all(&said).map_err(|error| Error::io("write", &path, error))?;
            written.publish(&folder)?;
        }
        mark_used(&folder)?;
        let said = safe_open::read_in_place(&folder.join("left-out.json"), 100_000_000)
            .map_err(|error| Error::io("read", folder.join("left-out.json"), error))?;
        let left_out = serde_json::from_slice(&said).map_err(|error| {
            Error::corrupt(format!("{} is damaged", folder.display()))
                .with_hint("remove the folder; it is made again")
                .with_source(error)
        })?;
        Ok(Self { folder, root, left_out, _lock: lock })
    }

    /// Returns the folder of the vault.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder for the index of these files.
    pub fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Returns what was left out, one sentence for each reason.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}

/// The settings of a commit, and the files and folders by which the link dialects are decided, in a temporary folder.
#[derive(Debug)]
pub struct RevisionSettings {
    draft: Draft,
    root: PathBuf,
    /// The lock that keeps other processes from removing the folder.
    _lock: File,
}

impl RevisionSettings {
    /// Writes the settings of a commit into a temporary folder of the cache, which is removed when this is dropped.
    ///
    /// # Errors
    /// `Io` if the cache cannot be written; those of running git.
    pub fn write(repository: &Repository, commit: &CommitInfo, config_dir: &str) -> Result<Self> {
        let base = cache_of(repository)?;
        let lock = lock_trees(&base, true)?;
        let folder = base.join(format!("{DRAFT}{}-{}", std::process::id(), draft_number()));
        let draft = Draft { folder: folder.clone() };
        TreeWriter::new(repository, commit, &folder.join("files"), config_dir)?.write_settings()?;
        Ok(Self { draft, root: folder.join("files").join(repository.prefix()), _lock: lock })
    }

    /// Returns the folder of the vault.
    pub fn root(&self) -> &Path {
        debug_assert!(self.root.starts_with(&self.draft.folder), "the vault is in the temporary folder");
        &self.root
    }
}

/// A folder that is being written. It is removed when this is dropped, unless it was published.
#[derive(Debug)]
struct Draft {
    folder: PathBuf,
}

impl Draft {
    /// Gives the folder its final name. If another process was faster, its folder is used.
    fn publish(self, folder: &Path) -> Result<()> {
        #[expect(clippy::disallowed_methods, reason = "a folder of the cache")]
        let renamed = std::fs::rename(&self.folder, folder);
        match renamed {
            Err(_) if folder.is_dir() => Ok(()),
            renamed => renamed.map_err(|error| Error::io("write", folder, error)),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "a folder of the cache")]
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("{} cannot be removed: {error}", self.folder.display());
            }
            _ => {}
        }
    }
}

/// Returns a number that no other draft of this process has.
fn draft_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Returns the folder for the trees of a repository, as the vault in it sees them, and creates it.
fn cache_of(repository: &Repository) -> Result<PathBuf> {
    let mut name = repository.git_dir().as_os_str().as_encoded_bytes().to_vec();
    name.push(0);
    name.extend(repository.prefix().as_bytes());
    let name = blake3::hash(&name).to_hex();
    let cache = config::user_cache().ok_or_else(|| {
        Error::new(ErrorKind::Io, "the user has no cache folder, which old versions of files are written to")
            .with_hint("set HOME, or XDG_CACHE_HOME")
    })?;
    let trees = cache.join("trees");
    let base = trees.join(name.get(..16).unwrap_or_default());
    for folder in [&trees, &base] {
        platform::make_private_dir(folder).map_err(|error| Error::io("create", folder, error))?;
    }
    Ok(base)
}

/// Takes the lock of a repository's trees to use them. If there will be a new one, those that were not used for the longest
/// time are removed before, unless another process uses any.
fn lock_trees(base: &Path, is_there: bool) -> Result<File> {
    let path = base.join("lock");
    let failed = |error| Error::io("lock", &path, error);
    let lock = safe_open::open_or_create(&path, 0o600).map_err(failed)?;
    if !is_there && platform::try_lock(&lock).map_err(failed)? {
        remove_old_trees(base)?;
        platform::unlock(&lock).map_err(failed)?;
    }
    let end = Instant::now() + LOCK_TIMEOUT;
    while !platform::try_lock_shared(&lock).map_err(failed)? {
        if Instant::now() > end {
            return Err(Error::new(ErrorKind::Conflict, format!("{} is locked", path.display()))
                .with_hint("another sidenote process removes old trees; try again in a moment"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(lock)
}

/// Removes what was left of processes that ended early, and all trees but the newest, so that one more has room. The caller
/// holds the lock alone.
fn remove_old_trees(base: &Path) -> Result<()> {
    let mut trees: Vec<(SystemTime, PathBuf)> = Vec::new();
    let entries = std::fs::read_dir(base).map_err(|error| Error::io("list", base, error))?;
    for entry in entries {
        let path = entry.map_err(|error| Error::io("list", base, error))?.path();
        if !path.is_dir() {
            continue;
        }
        let is_draft =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(DRAFT.as_bytes()));
        if is_draft {
            drop(Draft { folder: path });
            continue;
        }
        // A folder that was never used is the first to go.
        let used = path.join("used").metadata().and_then(|found| found.modified());
        trees.push((used.unwrap_or(SystemTime::UNIX_EPOCH), path));
    }
    trees.sort();
    let count = trees.len().saturating_sub(KEPT_TREES - 1);
    for (_, path) in trees.into_iter().take(count) {
        drop(Draft { folder: path });
    }
    Ok(())
}

/// Records that a tree is used now.
fn mark_used(folder: &Path) -> Result<()> {
    let path = folder.join("used");
    let failed = |error| Error::io("write", &path, error);
    let mut file = safe_open::open_or_create(&path, 0o600).map_err(failed)?;
    file.write_all(b"\n").map_err(failed)
}

/// Writes files of a commit into a new folder.
struct TreeWriter<'a> {
    objects: Objects,
    files: Vec<TreeFile>,
    /// The folder of the vault.
    root: PathBuf,
    config_dir: &'a str,
    /// The time of the commit, which all files get.
    time: SystemTime,
    folders: HashSet<String>,
}

impl<'a> TreeWriter<'a> {
    /// Creates the folder of the working tree, and in it the one of the vault.
    fn new(repository: &Repository, commit: &CommitInfo, top: &Path, config_dir: &'a str) -> Result<Self> {
        let root = top.join(repository.prefix());
        // A link with a leading slash can begin at the top of the repository, which this empty folder marks.
        for folder in [&top.join(".git"), &root] {
            platform::make_private_dir(folder).map_err(|error| Error::io("create", folder, error))?;
        }
        let seconds = u64::try_from(commit.committed_at).unwrap_or(0);
        Ok(Self {
            objects: repository.objects()?,
            files: repository.tree(&commit.id)?,
            root,
            config_dir,
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            folders: HashSet::from([String::new()]),
        })
    }

    /// Writes every file of the vault and its settings. Returns what was left out.
    fn write_all(mut self, max_file_size: u64) -> Result<Vec<String>> {
        let mut left = LeftOut::default();
        let files = std::mem::take(&mut self.files);
        let wanted: Vec<&TreeFile> = files.iter().filter(|file| self.is_wanted(file, &mut left)).collect();
        for group in wanted.chunks(GROUP) {
            let ids: Vec<ObjectId> = group.iter().map(|file| file.blob.clone()).collect();
            let sizes = self.objects.sizes(&ids)?;
            let is_read = |file: &TreeFile, size: Option<u64>| {
                size.is_some_and(|size| size <= max_file_size && has_content(&file.path, size))
            };
            let read: Vec<ObjectId> = group
                .iter()
                .zip(&sizes)
                .filter(|(file, size)| is_read(file, **size))
                .map(|(file, _)| file.blob.clone())
                .collect();
            let mut contents = self.objects.blobs(&read)?.into_iter();
            for (file, size) in group.iter().zip(sizes) {
                match (size, is_read(file, size)) {
                    (None, _) => left.missing.push(file.path.clone()),
                    (Some(_), true) => match contents.next().flatten() {
                        Some(content) => self.write(&file.path, &content, &mut left)?,
                        None => left.missing.push(file.path.clone()),
                    },
                    (Some(size), false) => self.reserve(&file.path, size, &mut left)?,
                }
            }
        }
        Ok(left.sentences())
    }

    /// Writes the settings and the files that decide about link dialects, and creates every folder.
    fn write_settings(mut self) -> Result<()> {
        let mut left = LeftOut::default();
        for file in std::mem::take(&mut self.files) {
            if !self.is_wanted(&file, &mut left) {
                continue;
            }
            if !self.make_folder_of(&file.path)? {
                continue;
            }
            if NotePath::from_disk(&file.path).is_none_or(|path| is_marker(&path)) {
                let content = self.objects.blob(&file.blob)?.unwrap_or_default();
                self.write(&file.path, &content, &mut left)?;
            }
        }
        Ok(())
    }

    /// Returns whether a file belongs to the vault or its settings and can be written.
    fn is_wanted(&self, file: &TreeFile, left: &mut LeftOut) -> bool {
        let path = file.path.as_str();
        let is_setting = path == ".sidenote/config.toml"
            || path
                .strip_prefix(self.config_dir)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|name| name.ends_with(".json") && !name.contains('/') && !name.starts_with('.'));
        debug_assert!(STATE_DIR == ".sidenote", "the settings of a vault are in its state folder");
        if NotePath::from_disk(path).is_none() && !is_setting && !is_hidden_marker(path) {
            return false;
        }
        let is_dangerous = platform::HAS_DANGEROUS_NAMES && !path.split('/').all(is_safe_on_windows);
        if file.is_link {
            left.links.push(path.to_owned());
        } else if is_dangerous {
            left.dangerous.push(path.to_owned());
        }
        !file.is_link && !is_dangerous
    }

    /// Creates the folder of a file. Returns whether it is there now: another file may have its name.
    fn make_folder_of(&mut self, path: &str) -> Result<bool> {
        let folder = path.rfind('/').map_or("", |slash| path.get(..slash).unwrap_or_default());
        if self.folders.contains(folder) {
            return Ok(true);
        }
        let disk = self.root.join(folder);
        match platform::make_private_dir(&disk) {
            Err(error) if is_taken(&error) => return Ok(false),
            made => made.map_err(|error| Error::io("create", &disk, error))?,
        }
        self.folders.insert(folder.to_owned());
        Ok(true)
    }

    /// Creates a file. Returns `None`, and notes it, if another file has its name on this file system.
    fn create(&mut self, path: &str, left: &mut LeftOut) -> Result<Option<(PathBuf, File)>> {
        let disk = self.root.join(path);
        if self.make_folder_of(path)? {
            match platform::open_in_place(&disk, OpenMode::CreateNew(0o600)) {
                Err(error) if is_taken(&error) => {}
                opened => {
                    let file = opened.map_err(|error| Error::io("write", &disk, error))?;
                    return Ok(Some((disk, file)));
                }
            }
        }
        left.clashing.push(path.to_owned());
        Ok(None)
    }

    fn write(&mut self, path: &str, content: &[u8], left: &mut LeftOut) -> Result<()> {
        let Some((disk, mut file)) = self.create(path, left)? else { return Ok(()) };
        let written = file.write_all(content).and_then(|()| file.set_modified(self.time));
        written.map_err(|error| Error::io("write", &disk, error))
    }

    /// Writes a file of the right size without its content, which nothing reads.
    fn reserve(&mut self, path: &str, size: u64, left: &mut LeftOut) -> Result<()> {
        let Some((disk, file)) = self.create(path, left)? else { return Ok(()) };
        // An empty file would be read as an empty text.
        let sized = file.set_len(size.max(1)).and_then(|()| file.set_modified(self.time));
        sized.map_err(|error| Error::io("write", &disk, error))
    }
}

/// Returns whether an error says that the name, or that of a folder above, belongs to another file.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory)
}

/// Returns whether the content of a file may be read: an image or a film is only named by links.
fn has_content(path: &str, size: u64) -> bool {
    let kind = media_type(path);
    is_text(kind) || kind == "application/octet-stream" && size <= MAX_UNKNOWN
}

/// The files of a commit that are not written, by reason.
#[derive(Debug, Default)]
struct LeftOut {
    links: Vec<String>,
    dangerous: Vec<String>,
    clashing: Vec<String>,
    missing: Vec<String>,
}

impl LeftOut {
    /// Returns a sentence for each reason.
    fn sentences(self) -> Vec<String> {
        let reasons = [
            (self.links, "it is a symbolic link", "they are symbolic links"),
            (self.dangerous, "it has a name that is not safe here", "they have names that are not safe here"),
            (
                self.clashing,
                "it has the name of another file here",
                "they have the names of other files here",
            ),
            (self.missing, "it is not in this clone", "they are not in this clone"),
        ];
        let said = reasons.into_iter().filter_map(|(paths, one, many)| {
            let first = paths.first()?;
            Some(match paths.len() {
                1 => format!("{first} is left out: {one}"),
                count => format!("{first} and {} more are left out: {many}", count - 1),
            })
        });
        said.collect()
    }
}
