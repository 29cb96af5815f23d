//! A cache of parsed notes for the excerpts of searches, since related queries find the same notes. It says nothing about
//! the files: a note is looked up with the bytes that its file has now.

use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_markdown::path::NotePath;

/// The most bytes of text of all notes in the cache, with [`EXTRA_BYTES`] for each. A parsed note takes a multiple of its text.
const MAX_BYTES: usize = 4 << 20;
/// What a note counts beside its text.
const EXTRA_BYTES: usize = 2 << 10;
/// The most bytes of a note that is kept: a larger one would push out many others.
const MAX_NOTE_BYTES: usize = MAX_BYTES / 4;

/// The notes that searches showed last.
#[derive(Debug)]
pub struct ParsedNotes(Mutex<Cache>);

#[derive(Debug)]
struct Cache {
    /// Whether a note was asked for since [`ParsedNotes::release_unused`] was called.
    is_used: bool,
    notes: LruCache<NotePath, Arc<ParsedNote>>,
    /// The sum of what they count.
    bytes: usize,
}

impl Default for ParsedNotes {
    fn default() -> Self {
        Self(Mutex::new(Cache { is_used: false, notes: LruCache::unbounded(), bytes: 0 }))
    }
}

impl ParsedNotes {
    /// Returns the parsed note of a file with these bytes.
    pub fn of(&self, path: &NotePath, bytes: &[u8]) -> Arc<ParsedNote> {
        let cache = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cache().get(path);
        if let Some(note) = known.filter(|note| note.text.as_bytes() == bytes) {
            return note;
        }
        let note = Arc::new(ParsedNote::new(path, bytes));
        // A text that is not what the file holds could not be compared with the file.
        if note.text.as_bytes() == bytes && bytes.len() <= MAX_NOTE_BYTES {
            cache().add(path, &note);
        }
        note
    }

    /// Forgets the notes, unless one was asked for since the last call.
    pub fn release_unused(&self) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut cache.is_used) {
            cache.notes.clear();
            cache.bytes = 0;
        }
    }
}

impl Cache {
    fn get(&mut self, path: &NotePath) -> Option<Arc<ParsedNote>> {
        self.is_used = true;
        self.notes.get(path).cloned()
    }

    fn add(&mut self, path: &NotePath, note: &Arc<ParsedNote>) {
        self.bytes += size(note);
        if let Some(before) = self.notes.put(path.clone(), Arc::clone(note)) {
            self.bytes -= size(&before);
        }
        while self.bytes > MAX_BYTES
            && let Some((_, oldest)) = self.notes.pop_lru()
        {
            self.bytes -= size(&oldest);
        }
    }
}

/// Returns what a note counts.
fn size(note: &ParsedNote) -> usize {
    note.text.len() + EXTRA_BYTES
}
