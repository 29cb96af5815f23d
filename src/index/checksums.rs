//! Owns the seal: what every index file looked like when the last writer finished, so that damage is noticed.
//!
//! No seal means that a writer died or is at work; then the files' own checksums and structure decide.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::index::directory::sealed_files;
use crate::index::vectors::{remove_if_there, replace};
use crate::{parallel, safe_open};

const NAME: &str = "seal.json";
/// How many bytes it may have.
const MAX_SIZE: u64 = 64_000_000;
/// No index is without these.
const NEEDED: [&str; 2] = ["catalog.db", "bm25/meta.json"];

/// How one file looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    size: u64,
    mtime: i64,
    ctime: i64,
    /// BLAKE3 in hex; logs whose records carry checksums of their own have none.
    hash: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Sealed {
    files: BTreeMap<String, Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    check: String,
    sealed: String,
}

/// What the seal says about the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every file is as it was left.
    Whole,
    /// Files have the same bytes, or at least the same size, and other times: they were copied or touched, or somebody made
    /// them elsewhere. What is in them is checked.
    Touched,
    /// No seal: the last writer did not finish.
    Unsealed,
    /// These files, relative to the index folder, are missing or differ.
    Damaged(Vec<String>),
}

fn stat(path: &Path) -> Option<(u64, i64, i64)> {
    let meta = std::fs::symlink_metadata(path).ok().filter(safe_open::is_regular)?;
    let nanos = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Some((meta.len(), nanos(meta.mtime(), meta.mtime_nsec()), nanos(meta.ctime(), meta.ctime_nsec())))
}

fn hash(path: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let file = safe_open::open_in_place(path).map_err(|error| safe_open::failed("open", path, error))?;
    hasher.update_reader(file).map_err(|error| Error::io("read", path, error))?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn read(folder: &Path) -> Option<Result<Sealed>> {
    let path = folder.join(NAME);
    let damaged = || Error::corrupt(format!("{} is damaged", path.display()));
    let text = match safe_open::read_in_place(&path, MAX_SIZE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) if safe_open::is_refusal(&error) => {
            return Some(Err(Error::corrupt(format!("{} is no seal: {error}", path.display()))));
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

/// Says whether a name can be that of a file of the index, below its folder.
fn is_ours(name: &str) -> bool {
    let path = Path::new(name);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain && (name == "catalog.db" || path.starts_with("bm25") || path.starts_with("vectors"))
}

/// Says whether files have a part in the index that the seal does not name.
fn is_incomplete(folder: &Path, sealed: &Sealed) -> Result<bool> {
    let log = std::fs::symlink_metadata(folder.join("catalog.db-wal"));
    let files = sealed_files(folder)?;
    let is_named = |name: &Path| name.to_str().is_some_and(|name| sealed.files.contains_key(name));
    Ok(log.is_ok_and(|log| log.len() > 0) || files.iter().any(|(name, hashed)| *hashed && !is_named(name)))
}

/// Compares the index files with the seal. Files whose size and times are unchanged are not read.
pub(super) fn check(folder: &Path) -> Result<Verdict> {
    let sealed = match read(folder) {
        None => return Ok(Verdict::Unsealed),
        Some(Err(error)) if error.kind() == crate::error::ErrorKind::Corrupt => {
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
        if now == Some((entry.size, entry.mtime, entry.ctime)) {
            continue;
        }
        let same_size = now.is_some_and(|(size, ..)| size == entry.size);
        match &entry.hash {
            Some(known) if same_size && hash(&path)? == *known => touched = true,
            // The records of a log tell whether they are sound.
            None if same_size => touched = true,
            _ => damaged.push(name.clone()),
        }
    }
    if touched && damaged.is_empty() {
        return Ok(Verdict::Touched);
    }
    Ok(if damaged.is_empty() { Verdict::Whole } else { Verdict::Damaged(damaged) })
}

/// Breaks the seal before the first write.
pub(super) fn break_open(folder: &Path) -> Result<()> {
    remove_if_there(&folder.join(NAME))
}

/// Seals the files given relative to `folder`, once they are on the disk; those marked `false` are compared by size and
/// times alone.
pub(super) fn close(folder: &Path, files: &[(PathBuf, bool)]) -> Result<()> {
    let seal = |(name, hashed): &(PathBuf, bool)| {
        let path = folder.join(name);
        let Some((size, mtime, ctime)) = stat(&path) else { return Ok(None) };
        let hash = if *hashed { Some(hash(&path)?) } else { None };
        let synced = std::fs::File::open(&path).and_then(|file| file.sync_data());
        synced.map_err(|error| Error::io("write", &path, error))?;
        Ok(Some((name.to_string_lossy().into_owned(), Entry { size, mtime, ctime, hash })))
    };
    let entries = parallel::map(files, 1, || (), |(), file| seal(file)).into_iter();
    let files = entries.filter_map(Result::transpose).collect::<Result<_>>()?;
    let sealed = Sealed { files };
    let unwritable = |error| Error::internal("cannot write the seal").with_source(error);
    let text = serde_json::to_string(&sealed).map_err(unwritable)?;
    let envelope = Envelope { check: blake3::hash(text.as_bytes()).to_hex().to_string(), sealed: text };
    let bytes = serde_json::to_vec(&envelope).map_err(unwritable)?;
    replace(&folder.join(NAME), &bytes)
}
