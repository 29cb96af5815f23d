//! Places of a text as lines and columns, counted in characters from 1, for messages and other programs.

use serde::Serialize;

use crate::text::line::Lines;
use crate::text::span::Span;

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

/// Converts spans of one text to lines and columns. A byte order mark takes no column.
#[derive(Debug)]
pub struct Locator<'t> {
    text: &'t str,
    lines: Lines,
}

impl<'t> Locator<'t> {
    /// Finds the lines of a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, lines: Lines::new(text) }
    }

    /// Returns the lines and columns of a span. An offset inside a character counts as its start.
    pub fn region(&self, span: Span) -> Region {
        let (line, column) = self.position(span.start);
        let (end_line, end_column) = self.position(span.end.max(span.start));
        Region { line, column, end_line, end_column }
    }

    /// Returns the line of an offset, without white space around it.
    pub fn line_text(&self, offset: usize) -> &'t str {
        let line = self.lines.of(offset);
        let end = self.lines.start(line + 1).min(self.text.len());
        Span::new(self.lines.start(line), end).of(self.text).trim_start_matches('\u{FEFF}').trim()
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.of(offset);
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = Span::new(self.lines.start(line), end).of(self.text);
        // Only the first line of a file can begin with a byte order mark.
        let before = if line == 1 { before.trim_start_matches('\u{FEFF}') } else { before };
        (line, 1 + before.chars().count())
    }
}
