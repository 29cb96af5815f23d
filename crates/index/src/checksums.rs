//! The seal: the size, times and checksum of every index file when the last writer closed the index, by which damage is
//! detected.
//!
//! A missing seal means that a writer crashed or is active; then the checksums and structure inside the files decide.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::{remove_if_there, replace_own};
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open::{FileIdentity, file_identity};
use sidenote_base::{parallel, platform, safe_open};

pub(super) const NAME: &str = "seal.json";
/// The largest seal that is read, in bytes.
const MAX_SIZE: u64 = 64_000_000;
/// Files that every index has.
const NEEDED: [&str; 2] = ["catalog.db", "bm25/meta.json"];

/// The state of one file when it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SealedFile {
    size: u64,
    mtime: i64,
    ctime: i64,
    /// The BLAKE3 hash of the file in hex. Logs have none, because their records carry checksums.
    hash: Option<String>,
}

/// The content of the seal.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sealed {
    /// The sealed files by path, relative to the index directory.
    files: BTreeMap<String, SealedFile>,
    /// The identity of the catalog, if all its paths were checked; see [`file_identity`].
    #[serde(default)]
    checked_catalog: Option<FileIdentity>,
}

/// The seal as it is stored: its content as JSON, and the hash of that text.
#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    check: String,
    sealed: String,
}

/// The result of comparing an index with its seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every file is unchanged.
    Intact,
    /// Files have other times and the same content, or at least the same size: they were copied or touched, or made
    /// elsewhere. Their content has to be verified.
    Touched,
    /// There is no seal, because the last writer did not finish.
    Unsealed,
    /// These files, relative to the index folder, are missing or differ.
    Damaged(Vec<String>),
}

/// Returns the size, modification time and change time of a regular file, times in nanoseconds.
fn stat(path: &Path) -> Option<(u64, i64, i64)> {
    let found = platform::entry_metadata(path).ok().filter(safe_open::is_regular)?;
    Some((found.size, found.modified_ns(), found.changed_ns()))
}

fn hash_file(path: &Path) -> Result<String> {
    let hash = safe_open::hash_in_place(path).map_err(|error| safe_open::failed("read", path, error))?;
    Ok(hash.to_hex().to_string())
}

fn read(folder: &Path) -> Option<Result<Sealed>> {
    let path = folder.join(NAME);
    let damaged = || Error::corrupt(format!("{} is damaged", path.display()));
    let text = match safe_open::read_in_place(&path, MAX_SIZE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) if safe_open::is_refusal(&error) => {
            return Some(Err(Error::corrupt(format!("{} is not a seal: {error}", path.display()))));
        }
        Err(error) => return Some(Err(Error::io("read", &path, error))),
    };
    let sealed = serde_json::from_slice::<Envelope>(&text)
        .ok()
        .filter(|envelope| envelope.check == blake3::hash(envelope.sealed.as_bytes()).to_hex().as_str())
        .and_then(|envelope| serde_json::from_str::<Sealed>(&envelope.sealed).ok())
        .filter(|sealed| sealed.files.keys().all(|name| is_ours(name)))
        .filter(|sealed| NEEDED.iter().all(|name| sealed.files.contains_key(*name)));
    Some(sealed.ok_or_else(damaged))
}

/// Returns whether a path, relative to the index directory, can be that of an index file.
fn is_ours(name: &str) -> bool {
    let path = Path::new(name);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain && (name == "catalog.db" || path.starts_with("bm25") || path.starts_with("vectors"))
}

/// Returns whether the index has files that the seal does not name.
fn is_incomplete(folder: &Path, sealed: &Sealed) -> Result<bool> {
    let log = std::fs::symlink_metadata(folder.join("catalog.db-wal"));
    let files = sealed_files(folder)?;
    let is_named = |name: &Path| sealed.files.contains_key(&sealed_name(name));
    Ok(log.is_ok_and(|log| log.len() > 0) || files.iter().any(|(name, hashed)| *hashed && !is_named(name)))
}

/// Returns the name of an index file in the seal: its path relative to the index directory, with `/` on every system.
fn sealed_name(path: &Path) -> String {
    platform::slash_path(path).unwrap_or_else(|| path.to_string_lossy().into_owned())
}

/// Lists the files of the index, and whether each is hashed. Logs carry checksums of their own and are not.
fn sealed_files(folder: &Path) -> Result<Vec<(PathBuf, bool)>> {
    let mut files = vec![(PathBuf::from("catalog.db"), true)];
    for (name, hashed) in [("bm25", true), ("vectors", false)] {
        let mut folders = vec![PathBuf::from(name)];
        while let Some(inner) = folders.pop() {
            let path = folder.join(&inner);
            let entries = match std::fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("list", &path, error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| Error::io("list", &path, error))?;
                let name = inner.join(entry.file_name());
                if entry.path().is_dir() {
                    folders.push(name);
                } else if !entry.file_name().to_string_lossy().ends_with(".lock") {
                    files.push((name, hashed));
                }
            }
        }
    }
    Ok(files)
}

/// Compares the index files with the seal. A file whose size and times are unchanged is not read.
pub(super) fn check(folder: &Path) -> Result<Verdict> {
    compare(folder, true)
}

/// Compares the index files with the seal, and reads all of them.
pub(super) fn check_all(folder: &Path) -> Result<Verdict> {
    compare(folder, false)
}

fn compare(folder: &Path, trust_times: bool) -> Result<Verdict> {
    let sealed = match read(folder) {
        None => return Ok(Verdict::Unsealed),
        Some(Err(error)) if error.kind() == sidenote_base::error::ErrorKind::Corrupt => {
            return Ok(Verdict::Damaged(vec![NAME.to_owned()]));
        }
        Some(sealed) => sealed?,
    };
    if is_incomplete(folder, &sealed)? {
        return Ok(Verdict::Unsealed);
    }
    let (mut damaged, mut touched) = (Vec::new(), false);
    for (name, entry) in &sealed.files {
        let path = folder.join(name);
        let now = stat(&path);
        let same_times = now == Some((entry.size, entry.mtime, entry.ctime));
        if same_times && trust_times {
            continue;
        }
        let same_size = now.is_some_and(|(size, ..)| size == entry.size);
        match &entry.hash {
            Some(known) if same_size && hash_file(&path)? == *known => touched |= !same_times,
            // The records of a log carry checksums of their own.
            None if same_size => touched |= !same_times,
            _ => damaged.push(name.clone()),
        }
    }
    if touched && damaged.is_empty() {
        return Ok(Verdict::Touched);
    }
    Ok(if damaged.is_empty() { Verdict::Intact } else { Verdict::Damaged(damaged) })
}

/// Removes the seal, which a writer does before its first write.
pub(super) fn remove_seal(folder: &Path) -> Result<()> {
    remove_if_there(&folder.join(NAME))
}

/// Says whether all paths of a catalog were checked before it was sealed. It is asked of an index that is intact.
pub(super) fn are_paths_checked(folder: &Path) -> bool {
    let checked = read(folder).and_then(Result::ok).and_then(|sealed| sealed.checked_catalog);
    checked.is_some() && checked == file_identity(&folder.join("catalog.db"))
}

/// Writes the seal over all index files, once their content is on the disk. The seal records whether all paths of the
/// catalog were checked. If they were, the next process need not check them.
pub(super) fn write_seal(folder: &Path, are_paths_checked: bool) -> Result<()> {
    let seal = |(name, hashed): &(PathBuf, bool)| {
        let path = folder.join(name);
        let Some((size, mtime, ctime)) = stat(&path) else { return Ok(None) };
        let hash = if *hashed { Some(hash_file(&path)?) } else { None };
        platform::sync_file(&path).map_err(|error| Error::io("write", &path, error))?;
        Ok(Some((sealed_name(name), SealedFile { size, mtime, ctime, hash })))
    };
    let files = sealed_files(folder)?;
    let entries = parallel::map(&files, 1, || (), |(), file| seal(file)).into_iter();
    let files = entries.filter_map(Result::transpose).collect::<Result<_>>()?;
    let checked_catalog = file_identity(&folder.join("catalog.db")).filter(|_| are_paths_checked);
    let sealed = Sealed { files, checked_catalog };
    let unwritable = |error| Error::internal("cannot write the seal").with_source(error);
    let text = serde_json::to_string(&sealed).map_err(unwritable)?;
    let envelope = Envelope { check: blake3::hash(text.as_bytes()).to_hex().to_string(), sealed: text };
    let bytes = serde_json::to_vec(&envelope).map_err(unwritable)?;
    replace_own(&folder.join(NAME), &bytes)
}
