//! The places of a file as they are written, with the limit of their text.

use crate::{MAX_TEXT, Place, PlaceKind, Unreadable};

/// How many places a file has; a place takes memory even without text.
const MAX_PLACES: usize = 100_000;

/// Writes places one after the other.
pub(crate) struct Writer {
    kind: PlaceKind,
    places: Vec<Place>,
    name: Option<String>,
    text: String,
    written: usize,
}

impl Writer {
    pub(crate) fn new(kind: PlaceKind) -> Self {
        Self { kind, places: Vec::new(), name: None, text: String::new(), written: 0 }
    }

    /// Ends the place before, unless it is empty, and begins one.
    pub(crate) fn begin(&mut self, name: Option<String>) {
        if !self.text.trim().is_empty() || self.name.is_some() {
            self.end();
        }
        self.name = name;
    }

    /// Ends the place, with the name that it has or this one. It counts even if it is empty.
    pub(crate) fn end_as(&mut self, name: Option<String>) {
        self.name = self.name.take().or(name);
        self.end();
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim_matches(['\n', ' ', '\t']).to_owned();
        let number = self.places.len() + 1;
        self.places.push(Place { kind: self.kind, number, name: self.name.take(), text, is_scan: false });
    }

    /// Writes a text as it stands.
    pub(crate) fn push(&mut self, text: &str) {
        if !self.is_full() {
            self.text.push_str(text);
            self.written += text.len();
        }
    }

    /// Writes a text with each run of white space as one space.
    pub(crate) fn push_collapsed(&mut self, text: &str) {
        let mut words = text.split_whitespace().peekable();
        if text.starts_with(char::is_whitespace) {
            self.space();
        }
        while let Some(word) = words.next() {
            self.push(word);
            if words.peek().is_some() {
                self.push(" ");
            }
        }
        if text.ends_with(char::is_whitespace) {
            self.space();
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n', '\t']) {
            self.push(" ");
        }
    }

    /// Begins a cell of a row.
    pub(crate) fn cell(&mut self) {
        self.trim();
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\t");
        }
    }

    /// Ends a line.
    pub(crate) fn line(&mut self) {
        self.trim();
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
    }

    /// Ends a paragraph.
    pub(crate) fn paragraph(&mut self) {
        self.trim();
        if !self.text.is_empty() {
            let wanted = 2 - self.text.bytes().rev().take_while(|byte| *byte == b'\n').count().min(2);
            self.push(&"\n\n"[..wanted]);
        }
    }

    fn trim(&mut self) {
        self.text.truncate(self.text.trim_end_matches([' ', '\t']).len());
    }

    /// Whether the file has more text than is read.
    pub(crate) fn is_full(&self) -> bool {
        self.written > MAX_TEXT || self.places.len() > MAX_PLACES
    }

    /// Returns the places.
    pub(crate) fn finish(mut self) -> Result<Vec<Place>, Unreadable> {
        if self.is_full() {
            return Err(Unreadable::TooLong(MAX_TEXT));
        }
        self.begin(None);
        Ok(self.places)
    }
}
