//! The entries of folders as the last scan listed them. While a folder is unchanged, the next scan takes them from
//! here: listing folders takes a fifth of the time of a scan.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform::{FileKind, FolderState};
use sidenote_base::{platform, safe_open};

/// The version of the form of the file.
const FORMAT_VERSION: u8 = 1;
/// The maximum size of the file in bytes, enough for ten million files.
const MAX_FILE_LEN: u64 = 1 << 27;
/// The most bytes without compression for each compressed byte. Names usually have three; a file that states more than this is
/// not read, because it may come from a stranger and would take much memory.
const MAX_RATIO: usize = 16;
/// The least share of all entries that must be listed again before the file is written again: a sixteenth. Writing it
/// takes as long as listing a quarter of them.
const REWRITTEN_AT: usize = 16;

/// The entries of one folder that begin with no dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderListing {
    /// The state of the folder just before it was listed.
    state: FolderState,
    /// The kind of each entry, as a letter.
    kinds: String,
    /// The name of each entry, with a zero after it.
    names: String,
}

/// The kinds of entries and their letters.
const KINDS: [(FileKind, char); 4] =
    [(FileKind::File, 'f'), (FileKind::Dir, 'd'), (FileKind::Symlink, 'l'), (FileKind::Other, 'o')];

impl FolderListing {
    /// Begins the listing of a folder that is in this state.
    pub fn new(state: FolderState) -> Self {
        Self { state, kinds: String::new(), names: String::new() }
    }

    /// Adds an entry.
    pub fn push(&mut self, name: &str, kind: FileKind) {
        self.kinds.extend(KINDS.iter().filter(|(of, _)| *of == kind).map(|(_, letter)| letter));
        self.names.push_str(name);
        self.names.push('\0');
    }

    /// Returns the entries in the order of the folder.
    pub fn entries(&self) -> impl Iterator<Item = (&str, FileKind)> {
        let kind =
            |letter| KINDS.iter().find(|(_, of)| *of == letter).map_or(FileKind::Other, |(kind, _)| *kind);
        self.names.split_terminator('\0').zip(self.kinds.chars().map(kind))
    }

    /// Says whether these can be the entries of a folder: each has a kind and a name that leads nowhere else.
    fn is_possible(&self) -> bool {
        let names = self.names.as_bytes();
        let count = names.iter().filter(|byte| **byte == 0).count();
        let has = |bytes: &[u8]| memchr::memmem::find(names, bytes).is_some();
        self.kinds.chars().all(|letter| KINDS.iter().any(|(_, of)| *of == letter))
            && self.kinds.len() == count
            && names.last().is_none_or(|last| *last == 0)
            && names.first().is_none_or(|first| !matches!(first, 0 | b'.'))
            && memchr::memchr(b'/', names).is_none()
            && !has(b"\0.")
            && !has(b"\0\0")
    }
}

/// The listings of all folders of a vault.
#[derive(Debug, Default)]
pub struct FolderListings {
    folders: HashMap<String, FolderListing>,
}

impl FolderListings {
    /// Reads the listings from a file; there are none if it is missing or damaged.
    pub fn load(path: &Path) -> Self {
        // A file with holes is not ours, either.
        let is_ours = platform::entry_metadata(path).is_ok_and(|found| safe_open::is_regular(&found));
        let bytes = is_ours.then(|| safe_open::read_in_place(path, MAX_FILE_LEN).ok()).flatten();
        Self { folders: bytes.and_then(|bytes| decode(&bytes)).unwrap_or_default() }
    }

    /// Returns the listing of a folder, given by its path from the root, if the folder is in the state in which it was listed.
    pub fn get(&self, folder: &str, state: FolderState) -> Option<&FolderListing> {
        // The file may come from a stranger. A scan calls this on several threads.
        self.folders.get(folder).filter(|listing| listing.state == state && listing.is_possible())
    }

    /// Replaces the listings of folders that a scan listed again, keeps those that the scan took from here, drops the
    /// others, and writes the file if that is worth the time.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn update(mut self, path: &Path, scanned: ScannedFolders) -> Result<()> {
        let ScannedFolders { kept, fresh } = scanned;
        let count = |folders: &HashMap<String, FolderListing>| {
            folders.values().map(|listing| listing.kinds.len() + 1).sum::<usize>()
        };
        let anew = count(&fresh);
        let mut folders = fresh;
        folders.extend(kept.into_iter().filter_map(|folder| self.folders.remove_entry(&folder)));
        if anew == 0 || anew * REWRITTEN_AT < count(&folders) {
            return Ok(());
        }
        let Some(bytes) = encode(&folders)? else { return Ok(()) };
        AtomicFile::new(path)
            .single_writer()
            .write_bytes(&bytes)
            .map_err(|error| safe_open::failed("write", path, error))
    }
}

/// What a scan did with the folders that it visited.
#[derive(Debug, Default)]
pub struct ScannedFolders {
    /// The folders whose listings were taken from the last scan.
    pub kept: Vec<String>,
    /// The new listings of others that can be kept.
    pub fresh: HashMap<String, FolderListing>,
}

/// Encodes listings: the version, a hash of the rest, the length without compression, and the listings compressed by LZ4.
/// Returns `None` for listings that [`decode`] would not read.
fn encode(folders: &HashMap<String, FolderListing>) -> Result<Option<Vec<u8>>> {
    let failed =
        |error: &str| Error::internal(format!("the listings of folders cannot be serialized: {error}"));
    let body = postcard::to_stdvec(folders).map_err(|error| failed(&error.to_string()))?;
    let length = u32::try_from(body.len()).map_err(|error| failed(&error.to_string()))?;
    let compressed = lz4_flex::block::compress(&body);
    if body.len() > compressed.len().saturating_mul(MAX_RATIO) {
        return Ok(None);
    }
    let hashed = [length.to_le_bytes().as_slice(), &compressed].concat();
    Ok(Some([[FORMAT_VERSION].as_slice(), blake3::hash(&hashed).as_bytes(), &hashed].concat()))
}

/// Decodes what [`encode`] returned; `None` if the bytes are something else.
fn decode(bytes: &[u8]) -> Option<HashMap<String, FolderListing>> {
    let (version, rest) = bytes.split_first()?;
    let (hash, hashed) = rest.split_first_chunk::<{ blake3::OUT_LEN }>()?;
    if *version != FORMAT_VERSION || blake3::hash(hashed).as_bytes() != hash {
        return None;
    }
    let (length, compressed) = hashed.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > compressed.len().saturating_mul(MAX_RATIO) {
        return None;
    }
    let body = lz4_flex::block::decompress(compressed, length).ok()?;
    postcard::from_bytes(&body).ok()
}
