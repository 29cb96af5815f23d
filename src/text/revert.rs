//! Reverting an edit in a text that has changed since: three-way merge of the edit's inverse.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::text::edit::Edit;
use crate::text::span::Span;

/// A changed part with more words than this is compared by lines alone.
const WORDS: usize = 4000;
/// A text longer than this, in bytes, is not compared.
const LONGEST: usize = 4_000_000;

/// Signs that stand inside names and paths, beside letters and digits.
const JOINING: &[char] = &['/', '\\', '_', '-', '%'];

/// A run of bytes that two texts have in common: where it begins in each, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommonRun {
    old: usize,
    new: usize,
    len: usize,
}

/// Plans how to take back what `patch` made of `before`, in a text that became `now` since; `None` where somebody changed
/// what it wrote, or what it left out belongs in no certain place.
pub fn take_back(before: &str, patch: &[Edit], after: &str, now: &str) -> Option<Vec<Edit>> {
    if after.len().max(now.len()) > LONGEST {
        return None;
    }
    let runs = common(after, now);
    let mut order: Vec<&Edit> = patch.iter().collect();
    order.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let (mut edits, mut come, mut gone) = (Vec::with_capacity(order.len()), 0, 0);
    for edit in order {
        // Where the edit's text stands in `after`.
        let start = (edit.span.start + come).checked_sub(gone)?;
        let end = start + edit.text.len();
        come += edit.text.len();
        gone += edit.span.end - edit.span.start;
        let former = before.get(edit.span.start..edit.span.end)?;
        let span = placed(&runs, start, end, (after.len(), now.len()))?;
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

/// Says whether what was written is a part of a longer word or path now: `E/A.md` is not the `A.md` that was written.
/// The arguments are the texts before and after it, at the time of the edit and now.
fn is_joined(written: &str, then: (&str, &str), now: (&str, &str)) -> bool {
    let joins = |then: Option<char>, now: Option<char>| {
        then != now && now.is_some_and(|sign| sign.is_alphanumeric() || JOINING.contains(&sign))
    };
    let before = joins(then.0.chars().next_back(), now.0.chars().next_back());
    let behind = joins(then.1.chars().next(), now.1.chars().next());
    before && !written.starts_with(char::is_whitespace) || behind && !written.ends_with(char::is_whitespace)
}

/// Finds where a part of the old text is in the new one; `None` if it is not there as it was.
fn placed(runs: &[CommonRun], start: usize, end: usize, lengths: (usize, usize)) -> Option<Span> {
    let holds = |run: &&CommonRun| run.old <= start && end <= run.old + run.len;
    if start < end {
        let run = runs.iter().find(holds)?;
        let at = run.new + (start - run.old);
        return Some(Span::new(at, at + (end - start)));
    }
    // Nothing stands there: the place is certain where what is around it is still together.
    let mut places: Vec<usize> = runs.iter().filter(holds).map(|run| run.new + (start - run.old)).collect();
    if lengths.0 == 0 {
        places.push(0);
    }
    places.dedup();
    match places.as_slice() {
        [at] => Some(Span::new(*at, *at)),
        _ => None,
    }
}

/// Lists what two texts have in common, by lines, and within changed lines by words.
fn common(old: &str, new: &str) -> Vec<CommonRun> {
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
                words_in_common(part, other, (from, to), &mut runs);
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => {}
        }
    }
    runs
}

fn words_in_common(old: &str, new: &str, at: (usize, usize), runs: &mut Vec<CommonRun>) {
    let (olds, news) = (words(old), words(new));
    if olds.len().max(news.len()) > WORDS {
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

/// Adds a run to the one before where they are together in both texts.
fn push(runs: &mut Vec<CommonRun>, run: CommonRun) {
    match runs.last_mut() {
        Some(last) if last.old + last.len == run.old && last.new + last.len == run.new => last.len += run.len,
        _ => runs.push(run),
    }
}

/// Returns where a part begins in its text; behind the last one, the text ends.
fn offset(text: &str, parts: &[&str], index: usize) -> usize {
    parts.get(index).map_or(text.len(), |part| part.as_ptr() as usize - text.as_ptr() as usize)
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Cuts a text into runs of letters and digits, and single other characters.
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

#[cfg(test)]
mod tests {
    use crate::text::edit::{apply, single_edit};
    use crate::text::*;

    /// An edit leads from the first text to the second; others then made the third of it. Taken back, the fourth is left.
    fn check_back(before: &str, after: &str, now: &str, expected: Option<&str>) {
        let patch: Vec<Edit> = single_edit(before, after).into_iter().collect();
        let back = take_back(before, &patch, after, now);
        let back = back.map(|edits| String::from_utf8(apply(now.as_bytes(), &edits).unwrap()).unwrap());
        assert_eq!(back.as_deref(), expected, "{before:?} {after:?} {now:?}");
    }

    #[test]
    fn what_nobody_touched_is_taken_back() {
        let cases = [
            ("a\n", "a\nb\n", "a\nb\n", Some("a\n")),
            ("a\n", "a\nb\n", "x\na\nb\n", Some("x\na\n")),
            ("a\n", "a\nb\n", "a\nb\nc\n", Some("a\nc\n")),
            ("a\n", "a\nb\n", "a\nB\n", None),
            ("a\n", "a\nb\n", "a\n", None),
            (
                "see [[Old]] now\n",
                "see [[New]] now\n",
                "see [[New]] then, or so\n",
                Some("see [[Old]] then, or so\n"),
            ),
            ("see [[Old]] now\n", "see [[New]] now\n", "see [[Newer]] now\n", None),
            ("see [[Old]]\n", "see [[New]]\n", "see [[Folder/New]]\n", None),
            ("see [[Old]]\n", "see [[New]]\n", "see [[New-er]]\n", None),
            ("see [[Old]]\n", "see [[New]]\n", "see [[New#Part|so]]\n", Some("see [[Old#Part|so]]\n")),
            ("a: [b]\n", "a: [b, c]\n", "a: [b, c, d]\n", Some("a: [b, d]\n")),
            ("a\nb\nc\n", "a\nc\n", "a\nc\nd\n", Some("a\nb\nc\nd\n")),
            ("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", None),
            ("", "b\n", "b\nc\n", Some("c\n")),
            ("a\n", "", "", Some("a\n")),
            ("a\n", "", "x\n", Some("a\nx\n")),
        ];
        for (before, after, now, expected) in cases {
            check_back(before, after, now, expected);
        }
        assert_eq!(cases.len(), 16);
    }
}
