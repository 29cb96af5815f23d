//! A piece table: the composition of several successive edits of a text into one list of edits.

use std::collections::VecDeque;

use sidenote_base::error::{Error, Result};

use crate::edit::Edit;
use crate::span::Span;

/// A part of the edited text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TablePiece {
    /// Bytes of the original.
    Original(Span),
    /// Text that an edit inserted.
    Added(String),
}

impl TablePiece {
    fn len(&self) -> usize {
        match self {
            Self::Original(span) => span.len(),
            Self::Added(text) => text.len(),
        }
    }

    /// Splits the piece `at` bytes after its start.
    fn split(self, original: &str, at: usize) -> Result<(Self, Self)> {
        let within = || Error::internal("an edit splits a character");
        match self {
            Self::Original(span) => {
                let middle = span.start + at;
                let parts = (Span::new(span.start, middle), Span::new(middle, span.end));
                original
                    .is_char_boundary(middle)
                    .then_some((Self::Original(parts.0), Self::Original(parts.1)))
                    .ok_or_else(within)
            }
            Self::Added(text) => {
                let (head, tail) = text.split_at_checked(at).ok_or_else(within)?;
                Ok((Self::Added(head.to_owned()), Self::Added(tail.to_owned())))
            }
        }
    }
}

/// A text with successive edits.
#[derive(Debug, Clone)]
pub struct PieceTable<'a> {
    original: &'a str,
    pieces: Vec<TablePiece>,
}

impl<'a> PieceTable<'a> {
    /// Creates the table of a text without edits.
    pub fn new(original: &'a str) -> Self {
        Self { original, pieces: vec![TablePiece::Original(Span::new(0, original.len()))] }
    }

    /// Applies edits, whose spans are offsets in the present text. They can be in any order.
    ///
    /// # Errors
    /// Returns `Internal` if two edits overlap, or one is out of bounds or splits a character. Then the table must not
    /// be used any more.
    pub fn apply(&mut self, edits: &[Edit]) -> Result<()> {
        let mut order: Vec<&Edit> = edits.iter().collect();
        order.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut rest = VecDeque::from(std::mem::take(&mut self.pieces));
        let mut at = 0;
        for edit in order {
            let before = edit.span.start.checked_sub(at).filter(|_| edit.span.start <= edit.span.end);
            let before = before.ok_or_else(|| Error::internal("two edits overlap"))?;
            let kept = self.cut(&mut rest, before)?;
            self.pieces.extend(kept);
            self.cut(&mut rest, edit.span.len())?;
            if !edit.text.is_empty() {
                self.pieces.push(TablePiece::Added(edit.text.clone()));
            }
            at = edit.span.end;
        }
        self.pieces.extend(rest);
        Ok(())
    }

    /// Removes the first `len` bytes from the pieces, and returns them.
    fn cut(&self, rest: &mut VecDeque<TablePiece>, len: usize) -> Result<Vec<TablePiece>> {
        let mut taken = Vec::new();
        let mut left = len;
        while left > 0 {
            let piece = rest.pop_front().ok_or_else(|| Error::internal("an edit is out of bounds"))?;
            if piece.len() <= left {
                left -= piece.len();
                taken.push(piece);
            } else {
                let (head, tail) = piece.split(self.original, left)?;
                taken.push(head);
                rest.push_front(tail);
                left = 0;
            }
        }
        Ok(taken)
    }

    /// Returns the present text.
    pub fn text(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            TablePiece::Original(span) => span.of(self.original),
            TablePiece::Added(text) => text.as_str(),
        });
        pieces.collect()
    }

    /// Returns the edits that change the original to the present text, in order.
    pub fn edits(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut at = 0;
        let mut added = String::new();
        let end = TablePiece::Original(Span::new(self.original.len(), self.original.len()));
        for piece in self.pieces.iter().chain([&end]) {
            match piece {
                TablePiece::Added(text) => added.push_str(text),
                TablePiece::Original(span) => {
                    let removed = Span::new(at, span.start);
                    if removed.of(self.original) != added {
                        edits.push(Edit::replace(removed, std::mem::take(&mut added)));
                    }
                    added.clear();
                    at = span.end;
                }
            }
        }
        edits
    }
}
