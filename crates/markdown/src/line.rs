//! Line ends of a text: offsets to line numbers and back.

use std::borrow::Cow;

use crate::span::Span;

/// The starts of a text's lines, which convert offsets to line numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The offset after each line end.
    starts: Vec<usize>,
}

impl Lines {
    /// Finds the lines of `text`. A line ends with a line feed.
    pub fn new(text: &str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        // Counting the lines first is much faster than growing the vector.
        let mut starts = Vec::with_capacity(ends.clone().count());
        starts.extend(ends.map(|at| at + 1));
        Self { starts }
    }

    /// Lists the lines of a text of `len` bytes, line ends included.
    pub fn spans(&self, len: usize) -> impl Iterator<Item = Span> + '_ {
        let starts = std::iter::once(0).chain(self.starts.iter().copied());
        starts.zip(self.starts.iter().copied().chain([len])).map(|(start, end)| Span::new(start, end))
    }

    /// Returns the line of `offset`, counted from 1.
    pub fn of(&self, offset: usize) -> usize {
        1 + self.starts.partition_point(|&start| start <= offset)
    }

    /// Returns the offset of the first byte of a line, counted from 1. After the last line it is `usize::MAX`.
    pub fn start(&self, line: usize) -> usize {
        match line.checked_sub(2) {
            None => 0,
            Some(before) => self.starts.get(before).copied().unwrap_or(usize::MAX),
        }
    }
}

/// Returns a text with the line ends of another one, where all of those are of one kind.
pub fn with_line_ends_of<'t>(text: &'t str, like: &str) -> Cow<'t, str> {
    let (all, with_return) = (like.matches('\n').count(), like.matches("\r\n").count());
    let is_crlf = with_return > 0;
    if all == 0 || is_crlf && with_return < all {
        return Cow::Borrowed(text);
    }
    let own = (text.matches('\n').count(), text.matches("\r\n").count());
    if own.1 == if is_crlf { own.0 } else { 0 } {
        return Cow::Borrowed(text);
    }
    let plain = text.replace("\r\n", "\n");
    Cow::Owned(if is_crlf { plain.replace('\n', "\r\n") } else { plain })
}

/// Returns the line that starts at `at` without its end, and the offset of the next line. A lone CR ends a line too
/// (docs/spec/obsidian.md 1.8).
pub fn line_at(text: &str, at: usize) -> (&str, usize) {
    let rest = text.get(at..).unwrap_or("");
    let Some(len) = rest.find(['\n', '\r']) else {
        return (rest, text.len());
    };
    let (line, end) = rest.split_at(len);
    (line, at + len + if end.starts_with("\r\n") { 2 } else { 1 })
}
