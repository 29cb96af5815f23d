//! Attachments that wait for being read: they are read in groups, each by a child process, and then indexed as the files are.
//!
//! A sync indexes an attachment at once, as a target of links. Its text follows here, so that no note waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sidenote_attachments::{AttachmentTexts, Readable, decode_text};
use sidenote_base::error::{ErrorKind, Result};
use sidenote_base::parallel::{no_thread, start_some};
use sidenote_catalog::FileRow;
use sidenote_markdown::path::NotePath;

use crate::attachment_document::attachment_text;
use crate::{Index, Phase, Progress, SyncScope, silent};

/// The most attachments that are indexed together and that a child process reads. What is read shows after each group.
const GROUP: usize = 16;
/// The time after which reading once more what is shown is given up: the text of a usual file comes in a tenth of it.
const LONGEST_READING: Duration = Duration::from_secs(2);
/// The most text files that are indexed together.
const TEXT_GROUP: usize = 500;

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that waits, on all cores.
    All,
    /// All that waits, one at a time.
    Background,
    /// The smallest first, on all cores: what is begun until `begin` and done at `end`. The rest waits on.
    Until {
        /// When no more files are begun.
        begin: Instant,
        /// When the reading of a file is given up.
        end: Instant,
    },
}

impl Extent {
    fn is_past_begin(self) -> bool {
        matches!(self, Self::Until { begin, .. } if Instant::now() >= begin)
    }

    fn is_past_end(self) -> bool {
        matches!(self, Self::Until { end, .. } if Instant::now() >= end)
    }
}

impl Index {
    /// Returns the texts of attachments, if this process can read them.
    pub fn attachment_texts(&self) -> Option<&AttachmentTexts> {
        self.options.attachments.as_deref()
    }

    /// Reads attachments that wait for it, the newest first, and indexes them, until `halt` returns true. Returns how many
    /// were read. What fails is indexed with its reason.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index, or the work was stopped; `Io` or `Corrupt` if the index cannot be
    /// written.
    pub fn read_attachments(
        &self,
        extent: Extent,
        halt: &(dyn Fn() -> bool + Sync),
        progress: &Arc<Progress>,
    ) -> Result<usize> {
        let halt = || halt() || self.stop.load(Ordering::Relaxed);
        let Some(texts) = self.options.attachments.clone().filter(|_| self.is_writer()) else { return Ok(0) };
        // What waits again may be in no new snapshot, because its text of before stays.
        if self.catalog().totals().waiting()? == 0 {
            return Ok(0);
        }
        let mut waiting = self.catalog().paths().waiting()?;
        if let Extent::Until { .. } = extent {
            waiting.sort_by_key(|(_, size)| *size);
        }
        let waiting: Vec<NotePath> = waiting.into_iter().map(|(path, _)| path).collect();
        let total = waiting.len();
        let mut done = 0;
        for group in groups(&waiting) {
            if extent.is_past_begin() || halt() {
                break;
            }
            progress(Phase::Read, done, total);
            let read = self.read_group(&texts, group, extent, &halt)?;
            // What could not be read now waits on.
            if !read.is_empty() {
                done += read.len();
                self.sync(SyncScope::Attachments(read), silent())?;
            }
        }
        progress(Phase::Read, done, total);
        Ok(done)
    }

    /// Reads the attachments of a group, so that their texts are known. Returns those whose texts are.
    fn read_group(
        &self,
        texts: &AttachmentTexts,
        group: &[NotePath],
        extent: Extent,
        halt: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<NotePath>> {
        let stop = || halt() || extent.is_past_end();
        let read = |path: &NotePath| match Readable::of(path.name()) {
            Some(Readable::Text(_)) => true,
            Some(Readable::Document(_)) if extent.is_past_begin() || halt() => false,
            Some(Readable::Document(format)) => match self.vault.read(path) {
                Ok(bytes) => texts.read(format, &bytes, &stop).is_some(),
                // A file that is there and cannot be read is indexed with the reason.
                Err(error) => error.kind() != ErrorKind::NotFound,
            },
            None => false,
        };
        if extent == Extent::Background {
            return Ok(group.iter().filter(|path| read(path)).cloned().collect());
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(group.len());
        let next = AtomicUsize::new(0);
        let known: Vec<_> = group.iter().map(|_| std::sync::atomic::AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            let start = |_| {
                let work = || {
                    while let Some((path, known)) = Some(next.fetch_add(1, Ordering::Relaxed))
                        .and_then(|at| group.get(at).zip(known.get(at)))
                    {
                        known.store(read(path), Ordering::Relaxed);
                    }
                };
                std::thread::Builder::new().spawn_scoped(scope, work).map(drop)
            };
            start_some(threads, start).map_err(no_thread)
        })?;
        let is_known =
            |(_, known): &(&NotePath, &std::sync::atomic::AtomicBool)| known.load(Ordering::Relaxed);
        Ok(group.iter().zip(&known).filter(is_known).map(|(path, _)| path.clone()).collect())
    }

    /// Returns the text of an attachment that is indexed, as [`text_of`] does.
    ///
    /// # Errors
    /// The errors of `bytes`.
    pub fn attachment_text(
        &self,
        row: &FileRow,
        bytes: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let halt = || self.stop.load(Ordering::Relaxed);
        self.attachment_texts().map_or(Ok(None), |texts| text_of(texts, row, bytes, &halt))
    }
}

/// Returns the text of an attachment that is indexed, in the form of [`sidenote_markdown::attachment`]. Its `bytes` are read
/// where the text is not known. Returns `None` if it has none.
pub(crate) fn text_of(
    texts: &AttachmentTexts,
    row: &FileRow,
    bytes: impl FnOnce() -> Result<Vec<u8>>,
    halt: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Vec<u8>>> {
    let (Some(hash), Some(readable)) = (row.hash, Readable::of(row.path.name())) else { return Ok(None) };
    let format = match readable {
        Readable::Text(_) => return Ok(decode_text(bytes()?).ok()),
        Readable::Document(format) => format,
    };
    let outcome = match texts.known(&hash, format) {
        Some(outcome) => Some(outcome),
        None => {
            let end = Instant::now() + LONGEST_READING;
            texts.read(format, &bytes()?, &|| halt() || Instant::now() >= end)
        }
    };
    let text = outcome.and_then(|outcome| outcome.as_ref().as_ref().ok().map(attachment_text));
    Ok(text.map(String::into_bytes))
}

/// Cuts the waiting attachments into groups.
fn groups(waiting: &[NotePath]) -> Vec<&[NotePath]> {
    let is_document = |path: &NotePath| matches!(Readable::of(path.name()), Some(Readable::Document(_)));
    let (mut groups, mut from, mut documents) = (Vec::new(), 0, 0);
    for (at, path) in waiting.iter().enumerate() {
        documents += usize::from(is_document(path));
        if documents == GROUP || at + 1 - from == TEXT_GROUP || at + 1 == waiting.len() {
            groups.extend(waiting.get(from..=at));
            (from, documents) = (at + 1, 0);
        }
    }
    groups
}
