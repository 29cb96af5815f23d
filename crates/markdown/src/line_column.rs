//! Places of a text as lines and columns, counted in characters from 1, for messages and other programs.

use std::cell::OnceCell;

use serde::Serialize;

use crate::line::Lines;
use crate::span::Span;

/// A place of a file: its first character, and the position after its last one. All are 0 for the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Region {
    /// The line, counted from 1; 0 for a problem of the whole file.
    pub line: usize,
    /// The column, counted from 1 in Unicode code points; 0 for a problem of the whole file.
    pub column: usize,
    /// The line of the end, counted from 1; 0 for a problem of the whole file.
    pub end_line: usize,
    /// The column after the last character, counted from 1 in Unicode code points; 0 for a problem of the whole file.
    pub end_column: usize,
}

impl Region {
    /// Returns whether the region is the whole file.
    pub fn is_whole_file(self) -> bool {
        self.line == 0
    }
}

/// The distance of the offsets before which the characters are counted in advance, in bytes.
const COUNTED: usize = 1024;

/// Converts spans of one text to lines and columns, also where a line is as long as the text. A byte order mark takes no
/// column.
#[derive(Debug)]
pub struct Locator<'t> {
    text: &'t str,
    lines: Lines,
    /// The number of characters that begin before each multiple of [`COUNTED`], counted when it is first asked for.
    counts: OnceCell<Vec<usize>>,
}

impl<'t> Locator<'t> {
    /// Finds the lines of a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, lines: Lines::new(text), counts: OnceCell::new() }
    }

    /// Returns the lines and columns of a span. An offset inside a character counts as its start.
    pub fn region(&self, span: Span) -> Region {
        let (line, column) = self.position(span.start);
        let (end_line, end_column) = self.position(span.end.max(span.start));
        Region { line, column, end_line, end_column }
    }

    /// Returns the number of the line of an offset.
    pub fn line(&self, offset: usize) -> usize {
        self.lines.of(offset)
    }

    /// Returns the text of a line, without white space around it.
    pub fn line_text(&self, line: usize) -> &'t str {
        let end = self.lines.start(line + 1).min(self.text.len());
        Span::new(self.lines.start(line), end).of(self.text).trim_start_matches('\u{FEFF}').trim()
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.of(offset);
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let mut column = 1 + self.chars_before(end) - self.chars_before(self.lines.start(line));
        // Only the first line of a file can begin with a byte order mark.
        if line == 1 && end > 0 && self.text.starts_with('\u{FEFF}') {
            column -= 1;
        }
        (line, column)
    }

    /// Returns the number of characters before an offset.
    fn chars_before(&self, offset: usize) -> usize {
        let bytes = self.text.as_bytes();
        // Every byte of a character but its first one has the form 10xxxxxx.
        let begins = |bytes: &[u8]| bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        let counts = self.counts.get_or_init(|| {
            let total = bytes.chunks(COUNTED).scan(0, |total, part| {
                let before = *total;
                *total += begins(part);
                Some(before)
            });
            total.collect()
        });
        let block = offset / COUNTED;
        let Some(before) = counts.get(block) else { return self.text.chars().count() };
        before + bytes.get(block * COUNTED..offset).map_or(0, begins)
    }
}
