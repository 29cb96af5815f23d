//! Backups: full copies of a vault outside it, with a manifest by which they are verified.
//!
//! A backup gets its final name last, so that an incomplete one is never taken for a backup. Files are copied without the
//! write lock; at the end, all that changed meanwhile is copied again under the lock.
#![expect(clippy::disallowed_methods, reason = "a backup lies outside of the notes, in a folder of its own")]

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, FileTimes};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform::FileMetadata;
use sidenote_base::{parallel, platform, safe_open};

use crate::write_lock::WriteLock;
use crate::{STATE_DIR, Vault, canonical_path_of};

/// The prefix of backup names, followed by the time.
pub const PREFIX: &str = "memory_backup_";
/// The name of the manifest, which is written last.
const LIST: &str = "manifest.json";
/// The folder of what is in the vault.
const NOTES: &str = "notes";
/// The folder of the journal.
const JOURNAL: &str = "journal";
/// The folder of the part of the journal that stays in one working copy.
const LOCAL_JOURNAL: &str = "journal-local";
/// Notes and memories for other programs to read.
const EXPORT: &str = "memories_export.json";
/// The vault's own settings of sidenote.
const CONFIG: &str = "config.toml";
/// The folders of the records that are no journal.
const TRANSACTION_DIRS: &[&str] = &["pending", "undo", "conflicts"];
/// Folders that are never copied: sidenote's state, which is copied separately, and git repositories.
const LEFT_OUT: &[&str] = &[STATE_DIR, ".git"];
/// What stands there is not a file of anybody's.
const SPECIAL: &[&str] = &["/proc", "/sys", "/dev"];
/// The maximum size of the manifest in bytes.
const MAX_LIST: u64 = 1 << 30;
/// The maximum length of a sparse file that is copied, in bytes, which is hashed in some seconds. A longer one is left
/// out and named, because its length says nothing about its content.
const LARGEST_SPARSE: u64 = 4 << 30;
/// The number of attempts to copy a file that changes meanwhile.
const ATTEMPTS: usize = 5;

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its length; 0 for a link.
    pub bytes: u64,
    /// The hash of its bytes, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    /// Where it leads, for a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathBuf>,
}

/// The manifest of a backup, with paths relative to its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// When it was made, as RFC 3339.
    pub at: String,
    /// The vault that it is of, by its folder.
    #[serde(default)]
    pub vault: PathBuf,
    /// Notes in it.
    pub notes: usize,
    /// Its files.
    pub files: BTreeMap<String, BackupFile>,
    /// Folders without files.
    #[serde(default)]
    pub empty: Vec<String>,
    /// What could not be read, or leads back into the vault, and so is not in it.
    #[serde(default)]
    pub left_out: Vec<String>,
}

impl BackupManifest {
    /// Adds up the bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// Lists what is in the vault: its path there, and the file.
    pub fn of_vault(&self) -> impl Iterator<Item = (&str, &BackupFile)> {
        self.files.iter().filter_map(|(path, file)| Some((path.strip_prefix("notes/")?, file)))
    }
}

/// How a file looked when it was copied.
type FileStamp = (u64, i64, i64, u64);

/// Something of the vault that belongs into a backup.
#[derive(Debug, Clone)]
struct SourceFile {
    /// Where it is on disk.
    disk: PathBuf,
    look: FileStamp,
    link: Option<PathBuf>,
}

/// Everything of a vault that belongs into a backup.
#[derive(Debug, Default)]
struct SourceTree {
    items: BTreeMap<String, SourceFile>,
    empty: Vec<String>,
    left_out: Vec<String>,
}

/// A backup in progress. Dropping it before [`UnfinishedBackup::end`] removes it.
#[derive(Debug)]
pub struct UnfinishedBackup<'a> {
    vault: &'a Vault,
    folder: PathBuf,
    aside: PathBuf,
    /// Held as long as nobody else may make one here.
    _lock: File,
    looks: BTreeMap<String, FileStamp>,
    manifest: BackupManifest,
    done: bool,
}

impl Drop for UnfinishedBackup<'_> {
    fn drop(&mut self) {
        if !self.done
            && let Err(error) = fs::remove_dir_all(&self.aside)
        {
            tracing::debug!("{} stays until the next backup: {error}", self.aside.display());
        }
    }
}

/// Returns the place of backups in a vault.
pub fn own_folder() -> PathBuf {
    Path::new(STATE_DIR).join("backups")
}

fn look_of(found: &FileMetadata) -> FileStamp {
    (found.size, found.modified_ns(), found.changed_ns(), found.inode)
}

impl<'a> UnfinishedBackup<'a> {
    /// Begins a backup in a folder, and removes what one that was cut short left there.
    ///
    /// # Errors
    /// `Conflict` if another process makes one there; `Invalid` if the folder lies among the notes; `Io` if it
    /// cannot be written.
    pub fn begin(vault: &'a Vault, folder: &Path) -> Result<Self> {
        let failed = |error| Error::io("write the backup in", folder, error);
        if let Ok(inner) = folder.strip_prefix(vault.root())
            && let Err(error) = safe_open::folder(vault.root(), inner)
            && safe_open::is_refusal(&error)
        {
            let folder = folder.display();
            return Err(Error::invalid(format!("no backup is made in {folder}: a symbolic link leads there (symlink)"))
                .with_hints("put a real folder in its place, or name another one: --to FOLDER, or backup.dir in your settings", "ask the user to put a real folder in its place, or to name another one in the settings (backup.dir)"));
        }
        let real = canonical_path_of(folder).map_err(failed)?;
        if let Ok(inner) = real.strip_prefix(vault.root())
            && !inner.starts_with(own_folder())
        {
            return Err(Error::invalid(format!("{} lies in the vault", folder.display()))
                .with_hint("its copies would be notes themselves; choose a folder outside of the vault"));
        }
        fs::create_dir_all(&real).map_err(failed)?;
        let folder = real;
        let path = folder.join(".lock");
        let lock = safe_open::open_or_create(&path, 0o600)
            .map_err(|error| safe_open::failed("write", &path, error))?;
        if !platform::try_lock(&lock).map_err(failed)? {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("another process is making a backup in {}", folder.display()),
            )
            .with_hint("wait until it is done"));
        }
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(&format!(".{PREFIX}")) {
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        let aside = folder.join(format!(".{PREFIX}{}", std::process::id()));
        fs::create_dir(&aside).map_err(failed)?;
        let manifest = BackupManifest::default();
        Ok(Self { vault, folder, aside, _lock: lock, looks: BTreeMap::new(), manifest, done: false })
    }

    /// Copies what is new or changed since the last call, and drops what is gone. Gives how many files were copied.
    ///
    /// # Errors
    /// `Io` naming what cannot be read or written.
    pub fn copy(&mut self) -> Result<usize> {
        let tree = collect(self.vault, &self.folder)?;
        self.manifest.empty = tree.empty;
        self.manifest.left_out = tree.left_out;
        let gone: Vec<String> =
            self.looks.keys().filter(|path| !tree.items.contains_key(*path)).cloned().collect();
        for path in gone {
            self.looks.remove(&path);
            let name = format!("{NOTES}/{path}");
            self.manifest.files.remove(&name);
            remove(&self.aside.join(name))?;
        }
        let fresh: Vec<(&String, &SourceFile)> =
            tree.items.iter().filter(|(path, item)| self.looks.get(*path) != Some(&item.look)).collect();
        let aside = self.aside.join(NOTES);
        let copied = parallel::map(
            &fresh,
            64,
            || vec![0_u8; 1 << 18],
            |buffer, (path, item)| copy_item(item, &aside.join(path), buffer),
        );
        for ((path, item), copied) in fresh.iter().zip(copied) {
            match copied {
                Ok(CopyResult::Copied(file)) => {
                    self.looks.insert((*path).clone(), item.look);
                    self.manifest.files.insert(format!("{NOTES}/{path}"), file);
                }
                // What went away since it was listed is seen to be gone by the next call.
                Ok(CopyResult::Gone) => {}
                Ok(CopyResult::Refused) => self.manifest.left_out.push((*path).clone()),
                Err(error) => return Err(error),
            }
        }
        Ok(fresh.len())
    }

    /// Adds a file in which other programs read what is in the vault.
    ///
    /// # Errors
    /// The errors of `write`; `Io` if the file cannot be written.
    pub fn export(&mut self, write: impl FnOnce(&mut dyn io::Write) -> Result<()>) -> Result<()> {
        let path = self.aside.join(EXPORT);
        let failed = |error| Error::io("write", &path, error);
        let mut file = io::BufWriter::new(File::create(&path).map_err(failed)?);
        write(&mut file)?;
        file.flush().map_err(failed)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(&path).map_err(failed)?).map_err(failed)?;
        let bytes = fs::metadata(&path).map_err(failed)?.len();
        let blake3 = Some(hasher.finalize().to_hex().to_string());
        self.manifest.files.insert(EXPORT.to_owned(), BackupFile { bytes, blake3, link: None });
        Ok(())
    }

    /// Ends the backup under the write lock: copies what changed since, the journal and the settings, waits for the
    /// disk, gives it its name, and removes all but the newest `keep` of this vault. Returns its folder and its
    /// contents.
    ///
    /// # Errors
    /// The errors of [`UnfinishedBackup::copy`].
    pub fn end(
        mut self,
        lock: &WriteLock,
        name: &str,
        at: String,
        notes: usize,
        keep: usize,
    ) -> Result<(PathBuf, BackupManifest)> {
        self.copy()?;
        let mut buffer = vec![0_u8; 1 << 18];
        let records = lock.records();
        let state = self.vault.root().join(STATE_DIR);
        let mut others = vec![(state.join(CONFIG), CONFIG.to_owned())];
        others.extend(journal_files(records, JOURNAL)?);
        others.extend(journal_files(&records.with_file_name("local"), LOCAL_JOURNAL)?);
        for (disk, path) in others {
            let item = match platform::entry_metadata(&disk) {
                Ok(found) if found.is_file() => SourceFile { look: look_of(&found), disk, link: None },
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("read", &disk, error)),
            };
            match copy_item(&item, &self.aside.join(&path), &mut buffer)? {
                CopyResult::Copied(file) => drop(self.manifest.files.insert(path, file)),
                CopyResult::Gone => {}
                CopyResult::Refused => {
                    return Err(Error::io("read", &item.disk, io::ErrorKind::PermissionDenied.into()));
                }
            }
        }
        self.manifest.at = at;
        self.manifest.notes = notes;
        self.manifest.vault = self.vault.root().to_owned();
        let failed = |error| Error::io("write the backup in", &self.folder, error);
        for path in &self.manifest.empty {
            fs::create_dir_all(self.aside.join(NOTES).join(path)).map_err(failed)?;
        }
        let list = serde_json::to_vec(&self.manifest)
            .map_err(|error| Error::internal("a backup cannot be listed").with_source(error))?;
        fs::write(self.aside.join(LIST), list).map_err(failed)?;
        platform::sync_file_system(&self.aside).map_err(failed)?;
        let place = free(&self.folder, name)?;
        fs::rename(&self.aside, &place).map_err(failed)?;
        platform::Dir::open(&self.folder).and_then(|folder| folder.sync()).map_err(failed)?;
        self.done = true;
        prune(&self.folder, self.vault.root(), keep, &place)?;
        Ok((place, std::mem::take(&mut self.manifest)))
    }
}

/// Finds a name that no backup has: one with a number behind those of the same second, also where the first went.
fn free(folder: &Path, name: &str) -> Result<PathBuf> {
    let failed = |error| Error::io("list", folder, error);
    let mut last = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let held = entry.map_err(failed)?.file_name();
        let (own, number) = numbered(&held.to_string_lossy());
        if own == name {
            last = last.max(number);
        }
    }
    Ok(folder.join(if last == 0 { name.to_owned() } else { format!("{name}_{}", last + 1) }))
}

/// Splits the name of a backup into the name of its second and its number among those of that second.
fn numbered(name: &str) -> (String, u64) {
    // memory_backup_YYYYMMDD_HHMMSS, and a number from 2 on.
    let split =
        name.rsplit_once('_').filter(|(own, _)| own.matches('_').count() > PREFIX.matches('_').count());
    match split.and_then(|(own, number)| Some((own.to_owned(), number.parse().ok()?))) {
        Some(numbered) => numbered,
        None => (name.to_owned(), 1),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Lists the contents of a vault. Symbolic links within the vault stay links. Others are followed if the user allows
/// it, so that their contents are in the backup, except to a folder that holds the vault or backups, or that is in it
/// already.
fn collect(vault: &Vault, backups: &Path) -> Result<SourceTree> {
    let root = vault.root();
    let top = platform::metadata(root).map_err(|error| Error::io("list", root, error))?;
    let mut collector = Collector {
        vault,
        backups,
        tree: SourceTree::default(),
        open: vec![(String::new(), root.to_owned())],
        entered: HashSet::from([top.id()]),
    };
    while let Some((path, disk)) = collector.open.pop() {
        collector.add_folder(path, &disk)?;
    }
    let mut tree = collector.tree;
    tree.empty.sort();
    Ok(tree)
}

/// A walk over the folders of a vault that must be copied.
struct Collector<'a> {
    vault: &'a Vault,
    backups: &'a Path,
    tree: SourceTree,
    /// The folders that were found and not yet listed: their paths in the vault, and on the disk.
    open: Vec<(String, PathBuf)>,
    /// Device and inode of each folder that was found, because a link may lead to a folder that holds it.
    entered: HashSet<(u64, u64)>,
}

impl Collector<'_> {
    /// Adds what is in a folder. One that cannot be listed is left out, except for the root of the vault.
    fn add_folder(&mut self, path: String, disk: &Path) -> Result<()> {
        let failed = |error| Error::io("list", disk, error);
        let is_root = path.is_empty();
        let entries = match platform::read_dir(disk) {
            Ok(entries) => entries,
            Err(error) if is_root => return Err(failed(error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => {
                self.tree.left_out.push(path);
                return Ok(());
            }
        };
        let mut is_empty = true;
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if is_root => return Err(failed(error)),
                Err(_) => {
                    self.tree.left_out.push(path.clone());
                    break;
                }
            };
            let Some(name) = entry.name().to_str() else {
                tracing::warn!("{} is not backed up: its name is not UTF-8", entry.path().display());
                continue;
            };
            let inner = if is_root { name.to_owned() } else { format!("{path}/{name}") };
            let is_ours = name == STATE_DIR || (is_root && LEFT_OUT.contains(&name));
            if is_ours || inner == self.vault.hidden() {
                continue;
            }
            let Ok(found) = entry.metadata() else { continue };
            is_empty = false;
            if found.is_symlink() {
                self.add_link(inner, entry.path(), &found).map_err(failed)?;
            } else {
                self.add_item(inner, entry.path(), &found);
            }
        }
        if is_empty && !is_root {
            self.tree.empty.push(path);
        }
        Ok(())
    }

    /// Adds a symbolic link, or what it leads to if that is outside of the vault and the user lets links be followed.
    fn add_link(&mut self, path: String, disk: PathBuf, found: &FileMetadata) -> io::Result<()> {
        let root = self.vault.root();
        let link = fs::read_link(&disk)?;
        let target = platform::canonicalize(&disk).ok();
        let leads_out = target.as_ref().is_some_and(|target| !target.starts_with(root));
        let leads_back = target.is_some_and(|target| {
            root.starts_with(&target)
                || self.backups.starts_with(&target)
                || SPECIAL.iter().any(|special| target.starts_with(special))
        });
        if leads_back {
            self.tree.left_out.push(path);
            return Ok(());
        }
        match platform::metadata(&disk) {
            Ok(target) if leads_out && self.vault.follows_outside() => {
                self.add_item(path, platform::canonicalize(&disk)?, &target);
            }
            _ => {
                self.tree.items.insert(path, SourceFile { disk, look: look_of(found), link: Some(link) });
            }
        }
        Ok(())
    }

    /// Adds a file, or a folder to be listed. Pipes and devices are not copied.
    fn add_item(&mut self, path: String, disk: PathBuf, found: &FileMetadata) {
        if found.is_dir() {
            if self.entered.insert(found.id()) {
                self.open.push((path, disk));
            }
        } else if found.is_file() {
            self.tree.items.insert(path, SourceFile { disk, look: look_of(found), link: None });
        }
    }
}

/// What became of a file that was to be copied.
enum CopyResult {
    Copied(BackupFile),
    /// It went away since it was listed.
    Gone,
    /// We may not read it.
    Refused,
}

/// Copies one file with its times and rights.
fn copy_item(item: &SourceFile, to: &Path, buffer: &mut [u8]) -> Result<CopyResult> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
    }
    if let Some(link) = &item.link {
        remove(to)?;
        platform::create_symlink(link, to).map_err(|error| Error::io("write", to, error))?;
        return Ok(CopyResult::Copied(BackupFile { bytes: 0, blake3: None, link: Some(link.clone()) }));
    }
    for _ in 0..ATTEMPTS {
        let mut from = match safe_open::open_in_place(&item.disk) {
            Ok(from) => from,
            // Something else took its place since it was listed.
            Err(error) if safe_open::is_refusal(&error) => {
                remove(to)?;
                return Ok(CopyResult::Gone);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(to)?;
                return Ok(CopyResult::Gone);
            }
            // What one file refuses must not cost the backup of all others; it is named.
            Err(_) => return Ok(CopyResult::Refused),
        };
        let found = platform::file_metadata(&from).map_err(|error| Error::io("read", &item.disk, error))?;
        if !safe_open::is_regular(&found) && found.size > LARGEST_SPARSE {
            remove(to)?;
            return Ok(CopyResult::Refused);
        }
        let (before, copied) = copy_bytes(&mut from, &item.disk, to, buffer)?;
        let after = platform::file_metadata(&from).map_err(|error| Error::io("read", &item.disk, error))?;
        if before == look_of(&after) && copied.bytes == after.size {
            return Ok(CopyResult::Copied(copied));
        }
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!("{} keeps changing, so it cannot be copied", item.disk.display()),
    )
    .with_hint("try again when no other program writes it"))
}

fn copy_bytes(from: &mut File, name: &Path, to: &Path, buffer: &mut [u8]) -> Result<(FileStamp, BackupFile)> {
    let unread = |error| Error::io("read", name, error);
    let unwritten = |error| Error::io("write", to, error);
    let found = from.metadata().map_err(unread)?;
    let metadata = platform::file_metadata(from).map_err(unread)?;
    let look = look_of(&metadata);
    // An earlier copy may be one that nobody may write to.
    remove(to)?;
    let mut copy = File::create(to).map_err(unwritten)?;
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    let is_sparse = !safe_open::is_regular(&metadata);
    if is_sparse {
        copy.set_len(metadata.size).map_err(unwritten)?;
    }
    // The end of the part that is read.
    let mut end = if is_sparse { 0 } else { u64::MAX };
    loop {
        if bytes >= end {
            // A hole stays one.
            let rest = (metadata.size, metadata.size);
            let (start, after) = platform::next_data(from, bytes).map_err(unread)?.unwrap_or(rest);
            hash_zeros(&mut hasher, start.saturating_sub(bytes), buffer);
            (bytes, end) = (bytes.max(start), after);
            if bytes >= metadata.size {
                break;
            }
            copy.seek(SeekFrom::Start(bytes)).map_err(unwritten)?;
        }
        let most = usize::try_from(end - bytes).unwrap_or(buffer.len()).min(buffer.len());
        let count = from.read(buffer.get_mut(..most).unwrap_or_default()).map_err(unread)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else { break };
        hasher.update(part);
        copy.write_all(part).map_err(unwritten)?;
        bytes += count as u64;
    }
    copy.set_permissions(found.permissions()).map_err(unwritten)?;
    let times = found.modified().map(|modified| FileTimes::new().set_modified(modified));
    times.and_then(|times| copy.set_times(times)).map_err(unwritten)?;
    let blake3 = Some(hasher.finalize().to_hex().to_string());
    Ok((look, BackupFile { bytes, blake3, link: None }))
}

/// Hashes a hole of a file, which reads as zeros.
fn hash_zeros(hasher: &mut blake3::Hasher, mut count: u64, buffer: &mut [u8]) {
    buffer.fill(0);
    while count > 0 {
        let part = buffer.get(..usize::try_from(count).unwrap_or(buffer.len()).min(buffer.len()));
        let part = part.unwrap_or_default();
        hasher.update(part);
        count -= part.len() as u64;
    }
}

/// Lists the backups of a vault in a folder, the newest first, with what they hold. Those that were cut short are none.
///
/// # Errors
/// `Io` if the folder cannot be listed.
pub fn list(folder: &Path, vault: &Path) -> Result<Vec<(PathBuf, BackupManifest)>> {
    let failed = |error| Error::io("list", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX)) {
            match open(&path) {
                Ok(manifest) if manifest.vault == vault => found.push((path, manifest)),
                Ok(_) => {}
                Err(error) => tracing::warn!("{error}"),
            }
        }
    }
    let number = |path: &Path| path.file_name().map_or(0, |name| numbered(&name.to_string_lossy()).1);
    found.sort_by(|(one, made), (other, later)| (&later.at, number(other)).cmp(&(&made.at, number(one))));
    Ok(found)
}

/// Reads what a backup holds.
///
/// # Errors
/// `NotFound` if there is none, `Corrupt` if its list cannot be read.
pub fn open(backup: &Path) -> Result<BackupManifest> {
    let path = backup.join(LIST);
    let bytes = safe_open::read_in_place(&path, MAX_LIST)
        .map_err(|error| safe_open::failed("open the backup", &path, error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::corrupt(format!("{} is damaged", path.display())).with_source(error))
}

/// Removes all backups of a vault but the newest `keep`, and the one just made.
fn prune(folder: &Path, vault: &Path, keep: usize, made: &Path) -> Result<()> {
    let backups = list(folder, vault)?;
    for (path, _) in backups.iter().skip(keep.max(1)).filter(|(path, _)| path != made) {
        // Renamed first: what is half removed is no backup.
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let aside = path.with_file_name(format!(".{name}"));
        let gone = fs::rename(path, &aside).and_then(|()| fs::remove_dir_all(&aside));
        gone.map_err(|error| Error::io("remove the backup", path, error))?;
    }
    Ok(())
}

/// Reads one file of a backup, and checks it.
///
/// # Errors
/// `Corrupt` if it is not what was copied.
pub fn read(backup: &Path, path: &str, file: &BackupFile) -> Result<Vec<u8>> {
    let disk = backup.join(path);
    regular(&disk, file)?;
    let bytes = match safe_open::read(backup, path, file.bytes) {
        Err(error) if safe_open::is_refusal(&error) => return Err(damaged(&disk)),
        read => read.map_err(|error| Error::io("read", &disk, error))?,
    };
    if file.blake3.as_deref() == Some(blake3::hash(&bytes).to_hex().as_str()) {
        Ok(bytes)
    } else {
        Err(damaged(&disk))
    }
}

/// Refuses what is no plain file of the length that was copied: a link, a pipe or a device.
fn regular(disk: &Path, file: &BackupFile) -> Result<FileMetadata> {
    let found = platform::entry_metadata(disk).map_err(|error| Error::io("read", disk, error))?;
    if found.is_file() && found.size == file.bytes { Ok(found) } else { Err(damaged(disk)) }
}

fn damaged(path: &Path) -> Error {
    Error::corrupt(format!("{} in the backup is damaged", path.display()))
        .with_hint("take an older backup; nothing was restored from this one")
}

/// Lists the files of the journal in a backup.
pub fn journal(manifest: &BackupManifest) -> impl Iterator<Item = (&str, &str, &BackupFile)> {
    manifest.files.iter().filter_map(|(path, file)| {
        let (folder, name) = path.split_once('/')?;
        [JOURNAL, LOCAL_JOURNAL].contains(&folder).then_some((path.as_str(), name, file))
    })
}

/// Lists the files of a folder of the journal and of the folders in it, with their paths in a backup.
fn journal_files(folder: &Path, name: &str) -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), name.to_owned())];
    while let Some((folder, name)) = folders.pop() {
        let failed = |error| Error::io("read the journal in", &folder, error);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let own = entry.file_name().to_string_lossy().into_owned();
            let is_dir = entry.file_type().map_err(failed)?.is_dir();
            if own.ends_with(".jsonl") {
                files.push((entry.path(), format!("{name}/{own}")));
            } else if is_dir && !name.contains('/') && !TRANSACTION_DIRS.contains(&own.as_str()) {
                folders.push((entry.path(), format!("{name}/{own}")));
            }
        }
    }
    Ok(files)
}

/// Makes a vault of a backup in a folder that is empty or not there yet, and not in `vault`; all of it, or nothing.
///
/// # Errors
/// `Invalid` if the folder is in the vault; `Exists` if something is in it; `Corrupt` if a file is not what was copied; `Io` if it cannot be
/// written.
pub fn restore(vault: &Vault, backup: &Path, to: &Path) -> Result<BackupManifest> {
    let manifest = open(backup)?;
    let failed = |error| Error::io("restore to", to, error);
    if canonical_path_of(to).map_err(failed)?.starts_with(vault.root()) {
        return Err(Error::invalid(format!("{} lies in the vault", to.display())).with_hints(
            "every note would be there twice; leave --to out, or name a folder elsewhere",
            "every note would be there twice; ask the user to name a folder elsewhere",
        ));
    }
    match fs::read_dir(to).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            return Err(Error::new(ErrorKind::Exists, format!("{} is not empty", to.display()))
                .with_hint("name a folder that is empty or not there yet"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let absolute = canonical_path_of(to).map_err(failed)?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(Error::invalid(format!("{} is no place for a vault", to.display())));
    };
    fs::create_dir_all(parent).map_err(failed)?;
    let aside = parent.join(format!(".{}.restored", name.to_string_lossy()));
    // One that was cut short may have left it.
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let written = fs::create_dir(&aside).map_err(failed).and_then(|()| write_all(backup, &manifest, &aside));
    let synced = written.and_then(|()| {
        platform::sync_file_system(&aside).map_err(failed)?;
        place(&aside, &absolute).map_err(failed)?;
        platform::Dir::open(parent).and_then(|folder| folder.sync()).map_err(failed)
    });
    if let Err(error) = synced {
        if let Err(left) = fs::remove_dir_all(&aside) {
            tracing::debug!("{} is left: {left}", aside.display());
        }
        return Err(error);
    }
    Ok(manifest)
}

/// Gives a folder its name. An empty folder of that name is replaced.
fn place(aside: &Path, absolute: &Path) -> io::Result<()> {
    match fs::rename(aside, absolute) {
        // Not every system replaces a folder. One that is not empty is not removed.
        Err(_) if absolute.is_dir() => fs::remove_dir(absolute).and_then(|()| fs::rename(aside, absolute)),
        renamed => renamed,
    }
}

/// Writes what a backup holds to the places that it had, links last, so that nothing is written through one.
fn write_all(backup: &Path, manifest: &BackupManifest, root: &Path) -> Result<()> {
    let mut buffer = vec![0_u8; 1 << 18];
    let mut links = Vec::new();
    for (path, file) in &manifest.files {
        let inner = match path.split_once('/') {
            Some((NOTES, inner)) => PathBuf::from(inner),
            Some((JOURNAL, inner)) => Path::new(STATE_DIR).join("records").join(inner),
            Some((LOCAL_JOURNAL, inner)) => Path::new(STATE_DIR).join("local").join(inner),
            None if path == CONFIG => Path::new(STATE_DIR).join(CONFIG),
            _ => continue,
        };
        // The list could have been written by anybody: nothing leads out, into our own state, or through a link.
        let is_plain = inner.components().all(|part| matches!(part, Component::Normal(_)));
        let is_ours = path.starts_with("notes/") && LEFT_OUT.iter().any(|name| inner.starts_with(name));
        let above = inner.ancestors().skip(1).filter_map(Path::to_str);
        let through = above.filter_map(|above| manifest.files.get(&format!("{NOTES}/{above}")));
        if !is_plain || is_ours || through.count() > 0 {
            return Err(damaged(&backup.join(path)));
        }
        let to = root.join(inner);
        if let Some(link) = &file.link {
            links.push((to, link));
            continue;
        }
        let disk = backup.join(path);
        let found = regular(&disk, file)?;
        if safe_open::folder(backup, Path::new(path).parent().unwrap_or(Path::new(""))).is_err() {
            return Err(damaged(&disk));
        }
        let item = SourceFile { look: look_of(&found), disk: disk.clone(), link: None };
        let CopyResult::Copied(copied) = copy_item(&item, &to, &mut buffer)? else {
            return Err(damaged(&disk));
        };
        if copied.blake3 != file.blake3 {
            return Err(damaged(&disk));
        }
    }
    for path in &manifest.empty {
        if Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            let folder = root.join(path);
            fs::create_dir_all(&folder).map_err(|error| Error::io("make", &folder, error))?;
        }
    }
    for (to, link) in links {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
        }
        platform::create_symlink(link, &to).map_err(|error| Error::io("write", &to, error))?;
    }
    Ok(())
}
