//! Reading files of a batch on several threads: bytes become documents, in groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::ErrorKind;
use crate::index::bm25::Analyzer;
use crate::index::catalog::FileKind;
use crate::index::diff::{Candidate, stat_of};
use crate::index::indexed_document::Document;
use crate::vault::Vault;

/// A time stamp this close to the time of reading does not prove that a file is unchanged, because kernel clocks are coarse.
const RACY_NS: i64 = 50_000_000;
/// The same margin for file systems that store times in whole seconds.
const RACY_COARSE_NS: i64 = 2_100_000_000;
/// The most files that a reading thread sends at a time.
const GROUP: usize = 16;
/// The bytes after which a reading thread sends what it has.
const GROUP_BYTES: u64 = 500_000;

/// One file that was read.
pub(super) struct FileRead {
    /// The index of its candidate.
    pub(super) at: usize,
    pub(super) document: Document,
    /// The length of the file; 0 where nothing was read.
    pub(super) bytes: u64,
    pub(super) warning: Option<String>,
    /// Whether reading failed.
    pub(super) failed: bool,
}

/// Reads the next few candidates; none where all are taken. Sending one at a time would wake threads all the time.
pub(super) fn read_group(
    vault: &Vault,
    candidates: &[Candidate],
    next: &AtomicUsize,
    started: i64,
    analyzer: &mut Analyzer,
) -> Vec<FileRead> {
    let mut group: Vec<FileRead> = Vec::new();
    let mut bytes = 0;
    while group.len() < GROUP && bytes < GROUP_BYTES {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(candidate) = candidates.get(at) else { break };
        let read = read_candidate(vault, at, candidate, started, analyzer);
        bytes += read.bytes;
        group.push(read);
    }
    group
}

fn read_candidate(
    vault: &Vault,
    at: usize,
    candidate: &Candidate,
    started: i64,
    analyzer: &mut Analyzer,
) -> FileRead {
    let file = &candidate.stat;
    let stat = stat_of(file);
    let newest = stat.mtime_ns.max(stat.ctime_ns);
    let margin = if stat.mtime_ns % 1_000_000_000 == 0 { RACY_COARSE_NS } else { RACY_NS };
    let racy = newest.saturating_add(margin) >= started;
    if FileKind::of(&file.path) == FileKind::Attachment {
        let document = Document::attachment(&file.path, stat, false, candidate.excluded);
        return FileRead { at, document, bytes: 0, warning: None, failed: false };
    }
    let unreadable = |why: &str, again: bool| FileRead {
        at,
        document: Document::unreadable(&file.path, stat, again, candidate.excluded, why),
        bytes: 0,
        warning: Some(why.to_owned()),
        failed: true,
    };
    let bytes = match vault.read(&file.path) {
        Ok(bytes) => bytes,
        // What the system refuses now it may give later; what we refuse stays refused until the file changes.
        Err(error) => return unreadable(&error.to_string(), error.kind() != ErrorKind::Invalid),
    };
    let length = bytes.len() as u64;
    let read = || Document::of_note(&file.path, bytes, stat, racy, candidate.excluded, analyzer);
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(document) => FileRead {
            at,
            warning: document.is_skipped().then(|| format!("{} is UTF-16 and is not searched", file.path)),
            document,
            bytes: length,
            failed: false,
        },
        Err(_) => unreadable(&format!("{} could not be parsed; please report it", file.path), false),
    }
}
