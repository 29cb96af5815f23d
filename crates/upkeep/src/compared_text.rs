//! What tells that two notes are versions of one: their ids, and samples of their word sequences.

use sidenote_links::rewrite::parse;
use sidenote_markdown::decode::decode;
use sidenote_markdown::frontmatter;
use sidenote_markdown::note::Note;
use sidenote_markdown::note_names::own_id;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::word_sketch::{ALIKE, WordSketch};
use sidenote_vault::Vault;

/// What notes are compared by.
#[derive(Debug, Clone, Default)]
pub(crate) struct ComparedText {
    /// The property `id`.
    pub(crate) id: Option<String>,
    /// A sample of the word sequences.
    pub(crate) sketch: WordSketch,
}

impl ComparedText {
    /// Reads a note or canvas of a vault. `None` if it cannot be read.
    pub(crate) fn read(vault: &Vault, path: &NotePath) -> Option<Self> {
        Some(Self::of(path, &decode(&vault.read(path).ok()?).text))
    }

    /// Takes what the text of a note or canvas is compared by. Of a note, only the frontmatter is parsed.
    pub(crate) fn of(path: &NotePath, text: &str) -> Self {
        if path.is_canvas() {
            return Self { id: None, sketch: WordSketch::of(&parse(path, text), text) };
        }
        let (frontmatter, body_start) = frontmatter::read(text);
        let note = Note { frontmatter, body_start, ..Note::default() };
        Self { id: own_id(&note), sketch: WordSketch::of(&note, text) }
    }

    /// Returns whether two notes have one id, or about the same text.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let have_one_id = match (&self.id, &other.id) {
            (Some(one), Some(other)) => key(one) == key(other),
            _ => false,
        };
        have_one_id || self.sketch.share(&other.sketch) >= ALIKE
    }
}
