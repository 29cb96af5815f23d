//! The regions of three versions of a text: lines that all have, that one side changed, or that both did. Also the line
//! merge of the program itself, for where git is not installed.
//!
//! Changes of the two sides that overlap or touch are one region, as in git.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::merge::{Merged, Versions, unchanged_side};

/// The size of the markers of a conflict, and the labels behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    /// The number of characters of a marker.
    pub size: usize,
    /// The label of the side that merges.
    pub ours: String,
    /// The label of the common ancestor, which is shown in some styles.
    pub base: String,
    /// The label of the side that is merged.
    pub theirs: String,
}

impl Default for Markers {
    fn default() -> Self {
        Self { size: 7, ours: "ours".to_owned(), base: "base".to_owned(), theirs: "theirs".to_owned() }
    }
}

/// A run of lines, as ranges of line indexes in the three versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) base: Range<usize>,
    pub(super) ours: Range<usize>,
    pub(super) theirs: Range<usize>,
}

/// One side's change of some lines of the base.
#[derive(Debug, Clone)]
struct LineChange {
    base: Range<usize>,
    new: Range<usize>,
}

/// Splits a text into its lines, with their ends.
pub(super) fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Finds the regions in which a side changed the base, in order. All lines between them are the same in all versions.
pub(super) fn changed_regions(base: &[&str], ours: &[&str], theirs: &[&str]) -> Vec<Region> {
    let (our_changes, their_changes) = (changes(base, ours), changes(base, theirs));
    let mut our_rest = our_changes.iter().peekable();
    let mut their_rest = their_changes.iter().peekable();
    let mut regions = Vec::new();
    // The line after the previous region, in each version.
    let mut after = Region { base: 0..0, ours: 0..0, theirs: 0..0 };
    loop {
        let starts = [our_rest.peek(), their_rest.peek()];
        let Some(start) = starts.into_iter().flatten().map(|change| change.base.start).min() else { break };
        let mut end = start;
        // The lines that each side adds to the range of the base, as the new end and the old end.
        let (mut our_end, mut their_end) = (None, None);
        loop {
            if let Some(change) = our_rest.next_if(|change| change.base.start <= end) {
                end = end.max(change.base.end);
                our_end = Some((change.new.end, change.base.end));
            } else if let Some(change) = their_rest.next_if(|change| change.base.start <= end) {
                end = end.max(change.base.end);
                their_end = Some((change.new.end, change.base.end));
            } else {
                break;
            }
        }
        let common = start - after.base.end;
        let range = |from: usize, changed: Option<(usize, usize)>| {
            let from = from + common;
            let end = changed.map_or(from + (end - start), |(new, old)| new + (end - old));
            from..end
        };
        let region = Region {
            base: start..end,
            ours: range(after.ours.end, our_end),
            theirs: range(after.theirs.end, their_end),
        };
        after = region.clone();
        regions.push(region);
    }
    regions
}

fn changes(base: &[&str], side: &[&str]) -> Vec<LineChange> {
    let ops = capture_diff_slices(Algorithm::Histogram, base, side);
    let changed = ops.into_iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let mut found: Vec<LineChange> = Vec::new();
    for op in changed {
        let (base, new) = (op.old_range(), op.new_range());
        // A deletion and an insertion in one place are one change.
        match found.last_mut().filter(|last| last.base.end == base.start && last.new.end == new.start) {
            Some(last) => (last.base.end, last.new.end) = (base.end, new.end),
            None => found.push(LineChange { base, new }),
        }
    }
    found
}

/// Returns the text of some lines.
pub(super) fn text_of(lines: &[&str], range: &Range<usize>) -> String {
    lines.get(range.clone()).unwrap_or_default().concat()
}

/// Merges three versions line by line, without git.
///
/// Changes that overlap or touch are a conflict unless they are alike. Lines that both sides have at its beginning and
/// its end are removed from it.
pub fn merge_lines(texts: Versions<'_>, markers: &Markers) -> Merged {
    let (base, ours, theirs) = (lines_of(texts.base), lines_of(texts.ours), lines_of(texts.theirs));
    let mut merged = Merged { text: String::new(), conflicts: 0 };
    let mut at = 0;
    for region in changed_regions(&base, &ours, &theirs) {
        merged.text.push_str(&text_of(&base, &(at..region.base.start)));
        at = region.base.end;
        let part = |lines: &[&str], range: &Range<usize>| text_of(lines, range);
        let (old, our, their) =
            (part(&base, &region.base), part(&ours, &region.ours), part(&theirs, &region.theirs));
        match unchanged_side(&old, &our, &their) {
            Some(taken) => merged.text.push_str(taken),
            None => {
                push_conflict(&mut merged.text, &lines_of(&our), &lines_of(&their), markers);
                merged.conflicts += 1;
            }
        }
    }
    merged.text.push_str(&text_of(&base, &(at..base.len())));
    merged
}

/// Appends a conflict with its markers. Their line ends are those of the lines around them.
fn push_conflict(text: &mut String, ours: &[&str], theirs: &[&str], markers: &Markers) {
    let head = ours.iter().zip(theirs).take_while(|(our, their)| our == their).count();
    let rest = ours.len().min(theirs.len()) - head;
    let tail = ours.iter().rev().zip(theirs.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let inner = |lines: &[&str]| text_of(lines, &(head..lines.len() - tail));
    let (our, their) = (inner(ours), inner(theirs));
    let sample = [ours.first(), theirs.first()].into_iter().flatten().find(|line| line.ends_with('\n'));
    let is_crlf = match sample {
        Some(line) => line.ends_with("\r\n"),
        None => text.ends_with("\r\n"),
    };
    let end = if is_crlf { "\r\n" } else { "\n" };
    let marker = |sign: char, label: &str| {
        let sign: String = std::iter::repeat_n(sign, markers.size).collect();
        if label.is_empty() { format!("{sign}{end}") } else { format!("{sign} {label}{end}") }
    };
    let whole = |part: &str| match part {
        "" => String::new(),
        part if part.ends_with('\n') => part.to_owned(),
        part => format!("{part}{end}"),
    };
    text.push_str(&text_of(ours, &(0..head)));
    text.push_str(&marker('<', &markers.ours));
    text.push_str(&whole(&our));
    text.push_str(&marker('=', ""));
    text.push_str(&whole(&their));
    text.push_str(&marker('>', &markers.theirs));
    text.push_str(&text_of(ours, &(ours.len() - tail..ours.len())));
}

/// Counts the lines in which two texts differ: those that one has and the other does not have.
pub fn count_changed_lines(old: &str, new: &str) -> usize {
    let changes = changes(&lines_of(old), &lines_of(new));
    changes.iter().map(|change| change.base.len() + change.new.len()).sum()
}
