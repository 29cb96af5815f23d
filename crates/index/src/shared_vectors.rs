//! The shared vectors: vectors of passages in the user's cache folder, which all clones, worktrees and vaults of the
//! user share. A text that was embedded for one index is not embedded for another one.
//!
//! Each model has a folder of segments, logs as in the index, which are appended to and removed as a whole, the oldest first.
//! Nothing depends on this: a failure is logged, and the passages are embedded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_embed::Embed;
use sidenote_vectors::{VectorRecord, VectorWriter, log_size, read_records};

/// How much space the shared vectors may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedVectorLimits {
    /// The size of all vectors of all models together, in bytes.
    pub total: u64,
    /// The size of one segment, in bytes.
    pub segment: u64,
}

impl Default for SharedVectorLimits {
    fn default() -> Self {
        Self { total: 2_000_000_000, segment: 64_000_000 }
    }
}

/// The number of digits in the name of a segment.
const SEGMENT_DIGITS: usize = 8;
/// The number of vectors that are kept in memory while another process holds the lock. More are not shared.
const MAX_WAITING: usize = 16_384;
/// The time after which appending is tried again after a failure, such as a full disk.
const RETRY_DELAY: Duration = Duration::from_secs(600);
/// The free space in bytes below which the disk counts as full in a diagnosis.
const LITTLE_SPACE: u64 = 16_000_000;

/// Where a lookup of shared vectors begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupScope {
    /// All vectors are looked through.
    Everything,
    /// Only what other processes appended since the last lookup.
    News,
}

/// The shared vectors of one model.
#[derive(Debug)]
pub struct SharedVectors {
    /// The folder of all models.
    root: PathBuf,
    /// The folder of this model.
    folder: PathBuf,
    dimensions: usize,
    limits: SharedVectorLimits,
    /// How many records of each segment were looked through.
    seen: HashMap<u64, usize>,
    /// The keys whose vectors are damaged, so that they may be appended once more.
    damaged: HashSet<i64>,
    /// The newest segment, if this process appended to it.
    writer: Option<(u64, VectorWriter)>,
    /// The vectors that are not appended yet.
    waiting: Vec<VectorRecord>,
    /// When appending is tried again after a failure.
    retry_at: Option<Instant>,
}

/// Returns the hash of all that the vectors of a model depend on: name, dimensions and fingerprint, and where texts are cut.
pub(crate) fn model_hash(embedder: &dyn Embed) -> blake3::Hash {
    let identity = format!("{}\n{}", embedder.model().key(), embedder.max_tokens());
    blake3::hash(identity.as_bytes())
}

/// Returns the name of the folder for the shared vectors of a model. Unlike in an index, several models are there at the
/// same time, so the hash of the model is in it.
fn folder_name(embedder: &dyn Embed) -> String {
    let id = embedder.model();
    let hash = model_hash(embedder).to_hex();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    let name: String = id.name().chars().map(plain).take(60).collect();
    format!("{name}-{}", hash.get(..32).unwrap_or_default())
}

impl SharedVectors {
    /// Creates the access to the vectors of a model in `root`, the folder for all models. Nothing is opened or created.
    pub fn new(root: &Path, embedder: &dyn Embed, limits: SharedVectorLimits) -> Self {
        Self {
            root: root.to_owned(),
            folder: root.join(folder_name(embedder)),
            dimensions: embedder.dimensions(),
            limits,
            seen: HashMap::new(),
            damaged: HashSet::new(),
            writer: None,
            waiting: Vec::new(),
            retry_at: None,
        }
    }

    /// Returns the folder of this model.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Passes on the shared vectors of `wanted` passages, in groups, and removes their keys from `wanted`. Returns the
    /// number of these vectors. Vectors that cannot be read are left out.
    ///
    /// # Errors
    /// The errors of `give`.
    pub fn take(
        &mut self,
        wanted: &mut HashSet<i64>,
        scope: LookupScope,
        give: &mut dyn FnMut(&[VectorRecord]) -> Result<()>,
    ) -> Result<usize> {
        let count = wanted.len();
        if count == 0 || !is_trusted(&self.root) || !is_trusted(&self.folder) {
            return Ok(0);
        }
        let segments = segments_of(&self.folder).unwrap_or_else(|error| {
            tracing::debug!("no vectors are shared: {error}");
            BTreeMap::new()
        });
        for (&number, path) in segments.iter().rev() {
            let seen = self.seen.get(&number).copied().filter(|_| scope == LookupScope::News);
            let mut failed = None;
            let read = read_records(path, self.dimensions, seen.unwrap_or(0), wanted, &mut |records| {
                give(records).inspect_err(|error| failed = Some(error.to_string()))
            });
            match read {
                Ok(read) => {
                    self.seen.insert(number, read.records);
                    self.damaged.extend(read.damaged);
                }
                // The index cannot be written.
                Err(error) if failed.is_some() => return Err(error),
                Err(error) => tracing::debug!("a part of the shared vectors is not used: {error}"),
            }
        }
        Ok(count - wanted.len())
    }

    /// Appends vectors that this process computed. While another process appends, they are kept for the next call.
    pub fn append(&mut self, records: &[VectorRecord]) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.waiting.extend_from_slice(records);
        self.flush();
    }

    /// Appends what could not be appended before.
    pub fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.append_waiting() {
            Ok(true) => self.retry_at = None,
            Ok(false) if self.waiting.len() > MAX_WAITING => {
                tracing::debug!(
                    "{} vectors are not shared: another process is appending",
                    self.waiting.len()
                );
                self.waiting.clear();
            }
            Ok(false) => {}
            Err(error) => {
                tracing::debug!("new vectors are not shared for some minutes: {error}");
                self.waiting = Vec::new();
                self.writer = None;
                self.retry_at = Some(Instant::now() + RETRY_DELAY);
            }
        }
    }

    /// Appends all waiting vectors. Returns `false` if another process holds the lock.
    fn append_waiting(&mut self) -> Result<bool> {
        // The folders may be removed at any time, and then everything begins again.
        make_private(&self.root)?;
        make_private(&self.folder)?;
        let Some(_lock) = AppendLock::take(&self.root)? else { return Ok(false) };
        let newest = segments_of(&self.folder)?.into_keys().next_back();
        let mut number = newest.unwrap_or(0);
        let mut open = None;
        if let Some((at, mut writer)) = self.writer.take()
            && newest == Some(at)
            && writer.refresh()?
        {
            open = Some(writer);
        }
        let mut writer = match (open, newest) {
            (Some(writer), _) => writer,
            (None, Some(newest)) => self.open_segment(newest)?,
            (None, None) => self.add_segment(number)?,
        };
        if !self.damaged.is_empty() {
            writer.forget(&self.damaged);
            self.damaged.clear();
        }
        let record = log_size(1, self.dimensions) - log_size(0, self.dimensions);
        while !self.waiting.is_empty() {
            let room = self.limits.segment.saturating_sub(writer.size()) / record;
            // A segment has one vector at least, whatever the limit is.
            let room = if writer.is_empty() { room.max(1) } else { room };
            if room == 0 {
                number += 1;
                writer = self.add_segment(number)?;
                continue;
            }
            let count = self.waiting.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            writer.append_records(self.waiting.get(..count).unwrap_or_default())?;
            self.waiting.drain(..count);
        }
        self.writer = Some((number, writer));
        Ok(true)
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:0SEGMENT_DIGITS$}"))
    }

    fn open_segment(&self, number: u64) -> Result<VectorWriter> {
        let folder = self.segment(number);
        make_private(&folder)?;
        VectorWriter::open_private(&folder, self.dimensions)
    }

    /// Begins a segment, and removes the oldest ones so that all have room.
    fn add_segment(&self, number: u64) -> Result<VectorWriter> {
        make_room(&self.root, &self.folder, self.limits)?;
        // The folder of the model is removed with its last segment.
        make_private(&self.folder)?;
        self.open_segment(number)
    }
}

impl Drop for SharedVectors {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The lock of a process that appends or removes, released when this is dropped.
struct AppendLock(File);

impl AppendLock {
    /// Takes the lock; `None` if another process holds it.
    fn take(root: &Path) -> Result<Option<Self>> {
        let path = root.join("lock");
        let file = safe_open::open_or_create(&path, 0o600)
            .map_err(|error| safe_open::failed("open", &path, error))?;
        let taken = platform::try_lock(&file).map_err(|error| Error::io("lock", &path, error))?;
        Ok(taken.then_some(Self(file)))
    }
}

impl Drop for AppendLock {
    fn drop(&mut self) {
        // Closing the file is not enough, because a process that is being started may hold it for a moment longer.
        if let Err(error) = platform::unlock(&self.0) {
            tracing::debug!("the lock of the shared vectors is released by closing it: {error}");
        }
    }
}

/// Creates a folder that only the user can read, or makes it one.
fn make_private(folder: &Path) -> Result<()> {
    platform::make_private_dir(folder)
        .and_then(|()| if platform::is_private(folder)? { Ok(()) } else { platform::restrict_folder(folder) })
        .map_err(|error| Error::io("use", folder, error))
}

/// Says whether a folder is a real one in which only the user can write.
fn is_trusted(folder: &Path) -> bool {
    platform::is_own_folder(folder).unwrap_or(false)
}

/// Lists the segments of a model by number. Whatever else is in the folder is left alone.
fn segments_of(folder: &Path) -> Result<BTreeMap<u64, PathBuf>> {
    let mut found = BTreeMap::new();
    for (name, path) in folders_in(folder)? {
        let is_number = name.len() == SEGMENT_DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(number) = name.parse().ok().filter(|_| is_number) {
            found.insert(number, path);
        }
    }
    Ok(found)
}

/// Lists the folders in a folder that only the user can write in, without following symbolic links.
fn folders_in(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", folder, error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("list", folder, error))?;
        if let Ok(name) = entry.file_name().into_string()
            && is_trusted(&entry.path())
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

/// A segment of any model.
struct SegmentFile {
    /// When it was appended to last, in nanoseconds; 0 if it is not complete.
    appended: i64,
    path: PathBuf,
    /// The size in bytes; that of a full segment if it is the newest of its model, because it may still grow.
    size: u64,
}

/// Removes the oldest segments of all models until another one has room. The caller holds the lock.
fn make_room(root: &Path, model: &Path, limits: SharedVectorLimits) -> Result<()> {
    let mut all = Vec::new();
    for (_, folder) in folders_in(root)? {
        let segments = segments_of(&folder)?;
        let newest = segments.keys().next_back().copied().filter(|_| folder != model);
        for (number, path) in segments {
            let size = size_of(&path);
            let size = if newest == Some(number) { size.max(limits.segment) } else { size };
            let appended =
                platform::entry_metadata(&path.join("keys")).map_or(0, |found| found.modified_ns());
            all.push(SegmentFile { appended, path, size });
        }
    }
    all.sort_by(|a, b| (a.appended, &a.path).cmp(&(b.appended, &b.path)));
    let mut total: u64 = all.iter().map(|segment| segment.size).sum();
    for segment in all {
        if total.saturating_add(limits.segment) <= limits.total {
            break;
        }
        // A symbolic link in the folder would be removed, and not what it leads to.
        #[expect(clippy::disallowed_methods, reason = "a folder of the cache")]
        std::fs::remove_dir_all(&segment.path).map_err(|error| Error::io("remove", &segment.path, error))?;
        total -= segment.size;
        if let Some(folder) = segment.path.parent() {
            // This removes the folder of a model only if it has no other segment.
            if let Err(error) = std::fs::remove_dir(folder) {
                tracing::trace!("{} is kept: {error}", folder.display());
            }
        }
    }
    Ok(())
}

/// Returns the size of the files of a segment in bytes.
fn size_of(segment: &Path) -> u64 {
    let sizes = std::fs::read_dir(segment).into_iter().flatten().flatten();
    sizes.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

/// What is the case with the shared vectors of all models, determined without writing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SharedVectorHealth {
    /// The number of models that have vectors.
    pub models: usize,
    /// The size of all vectors in bytes.
    pub bytes: u64,
    /// Why vectors cannot be shared, if they cannot.
    pub problem: Option<String>,
}

impl SharedVectorHealth {
    /// Examines the folder for the vectors of all models, which need not exist.
    pub fn examine(root: &Path) -> Self {
        let mut health = Self { problem: obstacle(root), ..Self::default() };
        if !is_trusted(root) {
            return health;
        }
        for (_, folder) in folders_in(root).unwrap_or_default() {
            let segments = segments_of(&folder).unwrap_or_default();
            health.models += usize::from(!segments.is_empty());
            health.bytes += segments.values().map(|path| size_of(path)).sum::<u64>();
        }
        health
    }
}

/// Says what keeps vectors from being appended to a folder, or from being read of it.
fn obstacle(root: &Path) -> Option<String> {
    let present = root.ancestors().find(|folder| platform::entry_metadata(folder).is_ok())?;
    if present == root && !is_trusted(root) {
        let what = match platform::entry_metadata(root) {
            Ok(found) if found.is_symlink() => "it is a symbolic link (symlink), which is not followed here",
            Ok(found) if found.is_dir() => "other users own it or may write in it",
            _ => "it is no folder",
        };
        return Some(what.to_owned());
    }
    if !platform::is_writable(present) {
        return Some(format!("you may not write in {}", present.display()));
    }
    if platform::is_on_read_only_file_system(present) == Some(true) {
        return Some("its file system is mounted read-only".to_owned());
    }
    let free = platform::free_space(present)?;
    (free < LITTLE_SPACE).then(|| format!("its disk is full: {:.1} MB are free", free as f64 / 1e6))
}
