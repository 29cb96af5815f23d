//! Reading attachments: a child process of the same program, whose memory, time and output are limited, reads one file, and
//! its text is kept in the user's cache by the hash of the file.
//!
//! A hostile file can end the child, and nothing else. Clones and worktrees of a vault share the cache, which can be deleted
//! at any time.

mod cache;
mod child;
mod text_files;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

use lru::LruCache;
use serde::{Deserialize, Serialize};
pub use sidenote_attachment_text::{AttachmentText, Format, Place, PlaceKind, Unreadable};

use crate::cache::TextCache;
pub use crate::child::{COMMAND, serve};
pub use crate::text_files::{TextKind, decode_text};

/// The content hash of a file: BLAKE3 of its bytes.
pub type Hash = [u8; 32];

/// How many texts stay in memory: those of a page of results, and those of a group that is being indexed.
const IN_MEMORY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);

/// The most bytes of the texts that stay in memory, but for one that is longer.
const MOST_IN_MEMORY: usize = 32 << 20;

/// How the text of an attachment is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readable {
    /// The file is text.
    Text(TextKind),
    /// A child process reads the file.
    Document(Format),
}

impl Readable {
    /// Returns how the text of a file is read, by the extension of its name; `None` if it has none that is searched.
    pub fn of(name: &str) -> Option<Self> {
        Format::of(name).map(Self::Document).or_else(|| TextKind::of(name).map(Self::Text))
    }
}

/// What reading an attachment gave.
pub type Outcome = Result<AttachmentText, Failure>;

/// Why an attachment has no text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The file itself.
    Unreadable(Unreadable),
    /// Reading took longer than it may.
    TookTooLong,
    /// The process that read the file ended: it took more memory than it may, or it has a bug.
    Ended,
}

impl Failure {
    /// Returns the reason as a phrase that follows the path of the file and a colon.
    pub fn reason(&self) -> String {
        match self {
            Self::Unreadable(Unreadable::Damaged(detail)) => format!("its text cannot be read: {detail}"),
            Self::Unreadable(Unreadable::Encrypted) => {
                "its text cannot be read: a password protects it".to_owned()
            }
            Self::Unreadable(Unreadable::TooLong(most)) => {
                format!("it has more than {} MB of text, which is not searched", most / 1_000_000)
            }
            Self::TookTooLong => {
                format!("reading its text took more than {} seconds, so it is not searched", child::SECONDS)
            }
            Self::Ended => format!(
                "its text cannot be read within {} MB of memory, or the reader failed on it",
                child::MEMORY / 1_000_000
            ),
        }
    }
}

/// What an outcome is known by: the hash of the file, and the format as which it was read.
type Key = (Hash, Format);

/// The texts of attachments: those that are kept, and the program that reads more.
#[derive(Debug)]
pub struct AttachmentTexts {
    /// The program, which is started with [`COMMAND`].
    program: PathBuf,
    cache: Option<TextCache>,
    recent: Mutex<Recent>,
    /// Whether it was said that no process can be started.
    failed: Once,
}

/// The outcomes that were asked for last.
#[derive(Debug)]
struct Recent {
    outcomes: LruCache<Key, Arc<Outcome>>,
    /// The sum of the lengths of their texts.
    bytes: usize,
}

impl Recent {
    fn put(&mut self, key: Key, outcome: &Arc<Outcome>) {
        self.bytes += length(outcome);
        if let Some((_, before)) = self.outcomes.push(key, Arc::clone(outcome)) {
            self.bytes -= length(&before);
        }
        while self.bytes > MOST_IN_MEMORY
            && self.outcomes.len() > 1
            && let Some((_, oldest)) = self.outcomes.pop_lru()
        {
            self.bytes -= length(&oldest);
        }
    }
}

/// Returns the length of the text of an outcome in bytes.
fn length(outcome: &Outcome) -> usize {
    outcome.as_ref().map_or(0, |text| text.places.iter().map(|place| place.text.len()).sum())
}

impl AttachmentTexts {
    /// Creates the access to texts that `program` reads, and that are kept below `folder`, if one is given.
    pub fn new(program: PathBuf, folder: Option<PathBuf>) -> Self {
        let recent = Mutex::new(Recent { outcomes: LruCache::new(IN_MEMORY), bytes: 0 });
        Self { program, cache: folder.map(TextCache::new), recent, failed: Once::new() }
    }

    /// Returns what reading the file with this hash as a format gave, if it was read before.
    pub fn known(&self, hash: &Hash, format: Format) -> Option<Arc<Outcome>> {
        let key = (*hash, format);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = recent.outcomes.get(&key) {
            return Some(Arc::clone(outcome));
        }
        drop(recent);
        let outcome = Arc::new(self.cache.as_ref()?.get(hash, format)?);
        self.remember(key, &outcome);
        Some(outcome)
    }

    /// Reads a file in a child process, unless it was read before. Returns `None` if `stop` returned true meanwhile, or no
    /// process can read it now.
    pub fn read(
        &self,
        format: Format,
        bytes: &[u8],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Arc<Outcome>> {
        let hash = *blake3::hash(bytes).as_bytes();
        if let Some(outcome) = self.known(&hash, format) {
            return Some(outcome);
        }
        let outcome = match child::read(&self.program, format, bytes, stop) {
            Ok(outcome) => Arc::new(outcome?),
            Err(error) => {
                // It is tried again and again.
                self.failed.call_once(|| tracing::warn!("attachments cannot be read now: {error}"));
                return None;
            }
        };
        if let Some(cache) = &self.cache {
            cache.put(&hash, format, &outcome);
        }
        self.remember((hash, format), &outcome);
        Some(outcome)
    }

    fn remember(&self, key: Key, outcome: &Arc<Outcome>) {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).put(key, outcome);
    }
}
