//! The edits that turn the source of a note into what an editor made of it, line by line. A field of a web page has one kind
//! of line end, so the line ends of the note are kept.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::edit::{Edit, single_edit};
use crate::line::line_at;
use crate::span::Span;

/// A line of a text.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    /// The line without its end.
    content: &'t str,
    /// The line end; empty at the end of a text.
    end: &'t str,
    /// The offset of the line.
    start: usize,
}

fn lines_of(text: &str) -> Vec<Line<'_>> {
    let (mut lines, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (content, next) = line_at(text, at);
        lines.push(Line { content, end: text.get(at + content.len()..next).unwrap_or(""), start: at });
        at = next;
    }
    lines
}

/// Returns the edits that turn `old` into `new`.
///
/// If `new` has no carriage return, each line of `old` that it has, too, keeps its end, and a new line gets the end of the line
/// that it replaces or follows.
pub fn source_edits<'t>(old: &'t str, new: &'t str) -> Vec<Edit> {
    let (olds, news) = (lines_of(old), lines_of(new));
    let keeps_ends = !new.contains('\r');
    // The last line of a text can lack an end, which is a difference.
    let ended = |line: &Line<'t>| if keeps_ends && !line.end.is_empty() { "\n" } else { line.end };
    let (left, right): (Vec<_>, Vec<_>) = (
        olds.iter().map(|line| (line.content, ended(line))).collect(),
        news.iter().map(|line| (line.content, ended(line))).collect(),
    );
    let start_of = |at: usize| olds.get(at).map_or(old.len(), |line| line.start);
    let first_end = olds.iter().map(|line| line.end).find(|end| !end.is_empty()).unwrap_or("\n");
    let end_at = |at: usize| {
        let before = olds.get(..(at + 1).min(olds.len())).unwrap_or_default();
        before.iter().rev().map(|line| line.end).find(|end| !end.is_empty()).unwrap_or(first_end)
    };
    let mut edits: Vec<Edit> = Vec::new();
    for op in capture_diff_slices(Algorithm::Histogram, &left, &right) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (from, to) = (op.old_range(), op.new_range());
        let (start, end) = (start_of(from.start), start_of(from.end));
        let mut text = String::new();
        for (number, line) in news.get(to).unwrap_or_default().iter().enumerate() {
            text.push_str(line.content);
            text.push_str(if line.end.is_empty() || !keeps_ends {
                line.end
            } else {
                // A line that replaces another one gets its end, one that is inserted the end of the line before it.
                end_at((from.start + number).min(from.end.max(1) - 1))
            });
        }
        let Some(edit) = single_edit(old.get(start..end).unwrap_or(""), &text) else { continue };
        let span = Span::new(start + edit.span.start, start + edit.span.end);
        // A deletion and an insertion in one place are one edit.
        match edits.last_mut().filter(|last| last.span.end == span.start) {
            Some(last) => {
                last.span = Span::new(last.span.start, span.end);
                last.text.push_str(&edit.text);
            }
            None => edits.push(Edit::replace(span, edit.text)),
        }
    }
    edits
}
