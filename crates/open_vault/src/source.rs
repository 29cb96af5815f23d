//! A note as it is on disk, for planning.

use sidenote_catalog::path_id;
use sidenote_links::rewrite::parse;
use sidenote_markdown::decode::decode;
use sidenote_markdown::edit::{ContentHash, Remark};
use sidenote_markdown::frontmatter;
use sidenote_markdown::note::Note;
use sidenote_markdown::note_names::{is_named, own_id};
use sidenote_markdown::path::{NotePath, key};

/// A note or canvas as it is on disk.
pub struct Source {
    /// The path of the file.
    pub path: NotePath,
    /// The text.
    pub text: String,
    /// What the text says.
    pub note: Note,
    /// The hash of the bytes on the disk.
    pub hash: ContentHash,
    /// Whether the file is valid UTF-8. Nothing is rewritten in a file that is not.
    pub(super) is_utf8: bool,
    /// Whether a symbolic link leads to the file. Nothing is written through one.
    pub(crate) is_linked: bool,
}

impl Source {
    pub(crate) fn new(path: NotePath, bytes: &[u8], is_linked: bool) -> Self {
        let decoded = decode(bytes);
        let is_utf8 = decoded.problem.is_none();
        let text = decoded.text.into_owned();
        Self { note: parse(&path, &text), hash: ContentHash::of(bytes), path, text, is_utf8, is_linked }
    }

    /// Parses the bytes of a note without checking for symbolic links.
    pub fn unplaced(path: NotePath, bytes: &[u8]) -> Self {
        Self::new(path, bytes, false)
    }

    /// Returns whether the note has a name, given as its key: file name, title, alias or id.
    pub fn answers(&self, wanted: &str) -> bool {
        key(&self.id()) == wanted || is_named(&self.path, &self.note, wanted)
    }

    /// Returns the id of the note: its own, or the one made from its path.
    pub fn id(&self) -> String {
        self.own_id().unwrap_or_else(|| path_id(&self.path))
    }

    /// Returns the id in the frontmatter of the note.
    pub fn own_id(&self) -> Option<String> {
        own_id(&self.note)
    }

    /// Returns the text without frontmatter, trimmed.
    pub fn body(&self) -> &str {
        without_frontmatter(&self.text)
    }

    /// Creates a remark about the byte at `at`, which is in `line`.
    pub fn remark(&self, code: &str, line: usize, at: usize, message: String) -> Remark {
        let before = self.text.get(..at).unwrap_or("");
        let column = 1 + at - before.rfind('\n').map_or(0, |end| end + 1).min(at);
        Remark { code: code.to_owned(), path: self.path.clone(), line, column, message }
    }

    /// Returns a remark that says why the file is not rewritten, if it cannot be.
    pub fn refusal(&self) -> Option<Remark> {
        let (code, message) = if !self.is_utf8 {
            ("invalid-utf8", "the file is not UTF-8, so it was left as it is")
        } else if self.is_linked {
            ("symlink", "a symbolic link leads to the file, so it was left as it is")
        } else {
            return None;
        };
        let (code, message) = (code.to_owned(), message.to_owned());
        Some(Remark { code, path: self.path.clone(), line: 1, column: 1, message })
    }
}

fn without_frontmatter(text: &str) -> &str {
    text.get(frontmatter::read(text).1..).unwrap_or("").trim()
}

/// Returns the text of a note without frontmatter, trimmed.
pub fn body_of(bytes: &[u8]) -> String {
    without_frontmatter(&decode(bytes).text).to_owned()
}
