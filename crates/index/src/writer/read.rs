//! Reading files of a batch on several threads: bytes become documents, in groups.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use sidenote_attachments::{AttachmentTexts, Readable, decode_text};
use sidenote_base::clock::{Timestamp, is_racy};
use sidenote_base::error::ErrorKind;
use sidenote_bm25::Analyzer;
use sidenote_catalog::{CreationSource, FileKind, Stat};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::RelationRules;
use sidenote_vault::Vault;

use crate::attachment_document::unreadable_attachment;
use crate::diff::{ChangedFile, stat_of};
use crate::indexed_document::IndexedDocument;

/// The most files that a reading thread sends at a time.
const GROUP: usize = 16;
/// The most files that wait for one before them.
const MAX_EARLY: usize = 500;
/// The bytes after which a reading thread sends what it has.
const GROUP_BYTES: u64 = 500_000;

/// One file that was read.
pub(super) struct FileRead {
    /// The index of the changed file in the batch.
    pub(super) at: usize,
    pub(super) content: ReadContent,
    /// The length of the file in bytes, or 0 if it was not read.
    pub(super) bytes: u64,
    pub(super) warning: Option<String>,
    /// Whether reading failed.
    pub(super) failed: bool,
}

/// What reading a file gave.
pub(super) enum ReadContent {
    /// What the index stores of the file.
    New(Box<IndexedDocument>),
    /// The indexed content stays. Only the times of the file are stored, and whether they prove that it is unchanged.
    Unchanged {
        stat: Stat,
        racy: bool,
        /// Whether it is an attachment that is still to be read.
        waits: bool,
    },
}

impl From<IndexedDocument> for ReadContent {
    fn from(document: IndexedDocument) -> Self {
        Self::New(Box::new(document))
    }
}

/// Reads the next few files. Returns none if all are taken. A group is sent at a time, because sending single files
/// would wake the receiver too often.
pub(super) fn read_group(
    vault: &Vault,
    changed: &[ChangedFile],
    next: &AtomicUsize,
    analyzer: &mut Analyzer,
    rules: &RelationRules,
    reading: AttachmentReading<'_>,
) -> Vec<FileRead> {
    let mut group: Vec<FileRead> = Vec::new();
    let mut bytes = 0;
    while group.len() < GROUP && bytes < GROUP_BYTES {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(changed_file) = changed.get(at) else { break };
        let read = read_changed_file(vault, at, changed_file, analyzer, rules, reading);
        bytes += read.bytes;
        group.push(read);
    }
    group
}

/// Puts files in order that threads read, by their place among the changed files. Rows that are appended in the order of their
/// keys fill the pages of the catalog, and the same notes give the same index.
pub(super) fn in_order(reads: impl Iterator<Item = FileRead>) -> impl Iterator<Item = FileRead> {
    let (mut reads, mut early, mut next) = (reads.fuse(), BTreeMap::new(), 0);
    std::iter::from_fn(move || {
        let read = loop {
            if let Some(read) = early.remove(&next) {
                break read;
            }
            // A file that is read for long, over a network for instance, does not let the others pile up.
            if early.len() >= MAX_EARLY {
                break early.pop_first()?.1;
            }
            match reads.next() {
                Some(read) if read.at <= next => break read,
                Some(read) => drop(early.insert(read.at, read)),
                None => break early.pop_first()?.1,
            }
        };
        next = next.max(read.at + 1);
        Some(read)
    })
}

/// What a batch does with attachments.
#[derive(Clone, Copy)]
pub(super) enum AttachmentReading<'a> {
    /// Their texts are not searched.
    Never,
    /// They wait for being read, so that no note waits for it.
    Later,
    /// They get their texts, if these were read before.
    Now(&'a AttachmentTexts),
}

/// Makes the document of an attachment.
fn read_attachment(
    vault: &Vault,
    at: usize,
    changed_file: &ChangedFile,
    stat: Stat,
    analyzer: &mut Analyzer,
    reading: AttachmentReading<'_>,
) -> FileRead {
    let path = &changed_file.stat.path;
    let racy = is_racy(stat.mtime_ns, stat.ctime_ns);
    let file_read =
        |content: ReadContent, bytes: u64| FileRead { at, content, bytes, warning: None, failed: false };
    let plain = || IndexedDocument::attachment(path, stat, false, changed_file.excluded);
    let is_searched = !changed_file.excluded && stat.size <= vault.max_file_size();
    let readable = Readable::of(path.name()).filter(|_| is_searched);
    let texts = match (readable, reading) {
        (None, _) | (_, AttachmentReading::Never) => return file_read(plain().into(), 0),
        (Some(_), AttachmentReading::Later) => {
            let known = changed_file.old_hash().filter(|_| changed_file.old_path().is_none());
            let Some(known) = known else {
                let mut waiting = plain();
                waiting.record.waits = true;
                return file_read(waiting.into(), 0);
            };
            let is_same = vault.read(path).is_ok_and(|bytes| blake3::hash(&bytes) == *known);
            // Until it is read again, the text of before is found.
            let waits = !is_same;
            return file_read(ReadContent::Unchanged { stat, racy: racy && is_same, waits }, stat.size);
        }
        (Some(_), AttachmentReading::Now(texts)) => texts,
    };
    let bytes = match vault.read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let mut document = plain();
            document.record.problems = unreadable_attachment(&error.to_string());
            return file_read(document.into(), 0);
        }
    };
    let (length, hash) = (bytes.len() as u64, *blake3::hash(&bytes).as_bytes());
    let mut document = match readable {
        Some(Readable::Document(format)) => match texts.known(&hash, format) {
            Some(known) => IndexedDocument::from_attachment(path, hash, &known, stat, analyzer),
            // It was changed since it was read.
            None => {
                let mut waiting = plain();
                waiting.record.waits = true;
                waiting
            }
        },
        Some(Readable::Text(_)) | None => match decode_text(bytes) {
            Ok(text) => IndexedDocument::from_text_file(path, hash, text, stat, analyzer),
            Err(why) => {
                let mut document = IndexedDocument::from_text_file(path, hash, Vec::new(), stat, analyzer);
                document.record.problems = unreadable_attachment(&why);
                document
            }
        },
    };
    document.record.racy = racy && document.record.row.hash.is_some();
    file_read(document.into(), length)
}

fn read_changed_file(
    vault: &Vault,
    at: usize,
    changed_file: &ChangedFile,
    analyzer: &mut Analyzer,
    rules: &RelationRules,
    reading: AttachmentReading<'_>,
) -> FileRead {
    let file = &changed_file.stat;
    let stat = stat_of(file);
    // A change after this moment gives the file another time, unless the present one is as young as the clock is coarse.
    let racy = is_racy(stat.mtime_ns, stat.ctime_ns);
    if FileKind::of(&file.path) == FileKind::Attachment {
        let read = AssertUnwindSafe(|| read_attachment(vault, at, changed_file, stat, analyzer, reading));
        return catch_unwind(read).unwrap_or_else(|_| {
            let mut document = IndexedDocument::attachment(&file.path, stat, false, changed_file.excluded);
            document.record.problems =
                unreadable_attachment("its text could not be indexed; please report it");
            FileRead { at, content: document.into(), bytes: 0, warning: None, failed: false }
        });
    }
    let unreadable = |why: &str, again: bool| FileRead {
        at,
        content: IndexedDocument::unreadable(&file.path, stat, again, changed_file.excluded, why).into(),
        bytes: 0,
        warning: Some(why.to_owned()),
        failed: true,
    };
    // The time of creation is needed only for new notes.
    let birth =
        |opened: &File| if changed_file.is_new { opened.metadata().ok().and_then(birth_in) } else { None };
    let (bytes, birth) = match vault.read_with(&file.path, birth) {
        Ok(read) => read,
        // An error of the system may be temporary. What this program refuses stays refused until the file changes.
        Err(error) => return unreadable(&error.to_string(), error.kind() != ErrorKind::Invalid),
    };
    let length = bytes.len() as u64;
    let is_moved = changed_file.old_path().is_some();
    if !is_moved && changed_file.old_hash().is_some_and(|old| blake3::hash(&bytes) == *old) {
        let content = ReadContent::Unchanged { stat, racy, waits: false };
        return FileRead { at, content, bytes: length, warning: None, failed: false };
    }
    let excluded = changed_file.excluded;
    let read = || {
        let mut document =
            IndexedDocument::from_note(&file.path, bytes, stat, racy, excluded, analyzer, rules);
        let row = &mut document.record.row;
        if changed_file.is_new && row.time_sources.created == CreationSource::File {
            row.existed_at(birth);
        }
        document
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(document) => FileRead {
            at,
            warning: document.is_skipped().then(|| format!("{} is UTF-16 and is not searched", file.path)),
            content: document.into(),
            bytes: length,
            failed: false,
        },
        Err(_) => unreadable(&format!("{} could not be parsed; please report it", file.path), false),
    }
}

/// Returns when a file was created on this disk, where the system knows it. A program that replaces files to save them creates
/// a new one each time.
pub(super) fn birth_of(vault: &Vault, path: &NotePath) -> Option<Timestamp> {
    std::fs::symlink_metadata(vault.disk_path(path)).ok().and_then(birth_in)
}

fn birth_in(found: Metadata) -> Option<Timestamp> {
    let born = found.created().ok()?;
    let since = born.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
}
