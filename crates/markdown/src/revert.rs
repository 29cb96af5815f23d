//! Reverting an edit in a text that has changed since: three-way merge of the edit's inverse.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::edit::Edit;
use crate::span::Span;

/// The most words of a changed part that is compared by words. A larger part is compared by lines only.
const MAX_WORDS: usize = 4000;
/// The most bytes of a text. A longer one is not compared.
const MAX_BYTES: usize = 4_000_000;

/// The signs of names and paths, besides letters and digits.
const NAME_SIGNS: &[char] = &['/', '\\', '_', '-', '%'];

/// A run of bytes that two texts have in common: its start in each, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommonRun {
    old: usize,
    new: usize,
    len: usize,
}

/// Plans the edits that revert `patch` in a text that has changed since.
///
/// `before` and `after` are the texts around the patch, and `now` is the present text. Returns `None` if the text that
/// the patch wrote was changed, or if the position of a text that it removed is not certain.
pub fn revert_edits(before: &str, patch: &[Edit], after: &str, now: &str) -> Option<Vec<Edit>> {
    if after.len().max(now.len()) > MAX_BYTES {
        return None;
    }
    let runs = common_runs(after, now);
    let mut order: Vec<&Edit> = patch.iter().collect();
    order.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let (mut edits, mut added, mut removed) = (Vec::with_capacity(order.len()), 0, 0);
    for edit in order {
        // The span of the edit's text in `after`.
        let start = (edit.span.start + added).checked_sub(removed)?;
        let end = start + edit.text.len();
        added += edit.text.len();
        removed += edit.span.end - edit.span.start;
        let former = before.get(edit.span.start..edit.span.end)?;
        let span = locate(&runs, start, end, (after.len(), now.len()))?;
        let written = if edit.text.is_empty() { former } else { edit.text.as_str() };
        if is_joined(
            written,
            (after.get(..start)?, after.get(end..)?),
            (now.get(..span.start)?, now.get(span.end..)?),
        ) {
            return None;
        }
        edits.push(Edit::replace(span, former));
    }
    Some(edits)
}

/// Returns whether the written text is now a part of a longer word or path, such as `A.md` of `E/A.md`. `then` and
/// `now` are the texts before and after it, at the time of the edit and now.
fn is_joined(written: &str, then: (&str, &str), now: (&str, &str)) -> bool {
    let joins = |then: Option<char>, now: Option<char>| {
        then != now && now.is_some_and(|sign| sign.is_alphanumeric() || NAME_SIGNS.contains(&sign))
    };
    let preceding = joins(then.0.chars().next_back(), now.0.chars().next_back());
    let following = joins(then.1.chars().next(), now.1.chars().next());
    preceding && !written.starts_with(char::is_whitespace)
        || following && !written.ends_with(char::is_whitespace)
}

/// Finds a part of the old text in the new one. Returns `None` if it has changed.
fn locate(runs: &[CommonRun], start: usize, end: usize, lengths: (usize, usize)) -> Option<Span> {
    let contains = |run: &&CommonRun| run.old <= start && end <= run.old + run.len;
    if start < end {
        let run = runs.iter().find(contains)?;
        let at = run.new + (start - run.old);
        return Some(Span::new(at, at + (end - start)));
    }
    // The part is empty. Its position is certain if the texts around it are still adjacent.
    let mut positions: Vec<usize> =
        runs.iter().filter(contains).map(|run| run.new + (start - run.old)).collect();
    if lengths.0 == 0 {
        positions.push(0);
    }
    positions.dedup();
    match positions.as_slice() {
        [at] => Some(Span::new(*at, *at)),
        _ => None,
    }
}

/// Lists the common runs of two texts, by lines, and within changed lines by words.
fn common_runs(old: &str, new: &str) -> Vec<CommonRun> {
    let (olds, news) = (lines(old), lines(new));
    let mut runs = Vec::new();
    for op in capture_diff_slices(Algorithm::Patience, &olds, &news) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                let (from, to) = (offset(old, &olds, old_index), offset(new, &news, new_index));
                push(
                    &mut runs,
                    CommonRun { old: from, new: to, len: offset(old, &olds, old_index + len) - from },
                );
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                let (from, to) = (offset(old, &olds, old_index), offset(new, &news, new_index));
                let part = old.get(from..offset(old, &olds, old_index + old_len)).unwrap_or("");
                let other = new.get(to..offset(new, &news, new_index + new_len)).unwrap_or("");
                add_common_words(part, other, (from, to), &mut runs);
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => {}
        }
    }
    runs
}

/// Adds the common runs of two changed parts, by words.
fn add_common_words(old: &str, new: &str, at: (usize, usize), runs: &mut Vec<CommonRun>) {
    let (olds, news) = (words(old), words(new));
    if olds.len().max(news.len()) > MAX_WORDS {
        return;
    }
    for op in capture_diff_slices(Algorithm::Myers, &olds, &news) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            let (from, to) = (offset(old, &olds, old_index), offset(new, &news, new_index));
            let len = offset(old, &olds, old_index + len) - from;
            push(runs, CommonRun { old: at.0 + from, new: at.1 + to, len });
        }
    }
}

/// Adds a run, merged with the last one if they are adjacent in both texts.
fn push(runs: &mut Vec<CommonRun>, run: CommonRun) {
    match runs.last_mut() {
        Some(last) if last.old + last.len == run.old && last.new + last.len == run.new => last.len += run.len,
        _ => runs.push(run),
    }
}

/// Returns the offset of a part in its text, or the length of the text for the index after the last part.
fn offset(text: &str, parts: &[&str], index: usize) -> usize {
    parts.get(index).map_or(text.len(), |part| part.as_ptr() as usize - text.as_ptr() as usize)
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Splits a text into runs of letters and digits, and single other characters.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut was_word = false;
    for (at, c) in text.char_indices() {
        let is_word = c.is_alphanumeric();
        if at > start && !(is_word && was_word) {
            words.extend(text.get(start..at));
            start = at;
        }
        was_word = is_word;
    }
    words.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    words
}
