//! Edits of lists in frontmatter: the position of each item, and a minimal diff of the items (docs/spec/obsidian.md 5.6).

use serde_json::Value;

use super::scalar::format_value;
use super::{Property, Scalar, Style};
use crate::edit::Edit;
use crate::line::line_at;
use crate::span::Span;

/// The maximum number of pairs of items that the diff compares.
const MAX_PAIRS: usize = 1 << 20;

/// One step of the diff of a list.
#[derive(Debug, PartialEq, Eq)]
enum ListStep {
    /// The old item is kept.
    Keep,
    /// The old item is replaced by the new item with this index.
    Replace(usize),
    /// The old item is removed.
    Remove,
    /// The new item with this index is inserted.
    Insert(usize),
}

/// An item of a list with one item per line.
#[derive(Debug)]
struct BlockItem<'p> {
    /// The lines of the item with their ends, without the comments and blank lines after it.
    lines: Span,
    /// The value, if it is one scalar that is written out.
    scalar: Option<&'p Scalar>,
}

/// Plans the edits that replace the items of a written list by `new`. Returns `None` if the span of an item is not
/// certain.
///
/// Items that are kept retain their bytes and the comments next to them.
pub(super) fn change(text: &str, property: &Property, new: &[Value], line_end: &str) -> Option<Vec<Edit>> {
    let old = property.value.as_array()?;
    let steps = steps(old, new);
    if property.style == Style::FlowList {
        return change_flow(text, property, old.len(), new, &steps);
    }
    let items = block_items(text, property, old)?;
    if new.is_empty() {
        let colon = colon(text, property)?;
        let lines = items.iter().map(|item| Edit::remove(item.lines));
        return Some(std::iter::once(Edit::insert(colon, " []")).chain(lines).collect());
    }
    change_block(text, &items, new, &steps, line_end)
}

/// Finds the offset after the colon of a property.
pub(super) fn colon(text: &str, property: &Property) -> Option<usize> {
    let rest = text.get(property.key_span.end..)?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    rest.get(blanks..)?.starts_with(':').then_some(property.key_span.end + blanks + 1)
}

/// Finds the start of the line that contains `at`.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |end| end + 1)
}

/// Formats the lines of new items.
pub(super) fn lines<'v>(
    indent: &str,
    gap: &str,
    items: impl IntoIterator<Item = &'v Value>,
    line_end: &str,
) -> String {
    let line = |item: &Value| format!("{indent}-{gap}{}{line_end}", format_value(item, Style::Plain, false));
    items.into_iter().map(line).collect()
}

/// Finds the least number of steps from the old items to the new ones. Between two kept items, old items are first
/// replaced.
fn steps(old: &[Value], new: &[Value]) -> Vec<ListStep> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tails = old.iter().skip(head).rev().zip(new.iter().skip(head).rev());
    let tail = tails.take_while(|(a, b)| a == b).count();
    let mut steps: Vec<ListStep> = std::iter::repeat_with(|| ListStep::Keep).take(head).collect();
    let (mut from, mut into) = (head, head);
    for (old_at, new_at) in
        common(old, new, head, tail).into_iter().chain([(old.len() - tail, new.len() - tail)])
    {
        while from < old_at && into < new_at {
            steps.push(ListStep::Replace(into));
            (from, into) = (from + 1, into + 1);
        }
        steps.extend((from..old_at).map(|_| ListStep::Remove));
        steps.extend((into..new_at).map(ListStep::Insert));
        if old_at < old.len() - tail {
            steps.push(ListStep::Keep);
        }
        (from, into) = (old_at + 1, new_at + 1);
    }
    steps.extend(std::iter::repeat_with(|| ListStep::Keep).take(tail));
    steps
}

/// Finds a longest common subsequence of the items between the common prefix and suffix, as pairs of indexes.
fn common(old: &[Value], new: &[Value], head: usize, tail: usize) -> Vec<(usize, usize)> {
    let (rows, columns) = (old.len() - tail - head, new.len() - tail - head);
    if rows.saturating_mul(columns) > MAX_PAIRS {
        return Vec::new();
    }
    let width = columns + 1;
    // The length of the longest subsequence after each pair of indexes.
    let mut lengths = vec![0usize; (rows + 1) * width];
    let length = |lengths: &[usize], row: usize, column: usize| {
        lengths.get(row * width + column).copied().unwrap_or(0)
    };
    let equal = |row: usize, column: usize| old.get(head + row) == new.get(head + column);
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let longest = if equal(row, column) {
                1 + length(&lengths, row + 1, column + 1)
            } else {
                length(&lengths, row + 1, column).max(length(&lengths, row, column + 1))
            };
            if let Some(place) = lengths.get_mut(row * width + column) {
                *place = longest;
            }
        }
    }
    let mut pairs = Vec::new();
    let (mut row, mut column) = (0, 0);
    while row < rows && column < columns {
        if equal(row, column) {
            pairs.push((head + row, head + column));
            (row, column) = (row + 1, column + 1);
        } else if length(&lengths, row + 1, column) >= length(&lengths, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}

fn change_block(
    text: &str,
    items: &[BlockItem<'_>],
    new: &[Value],
    steps: &[ListStep],
    line_end: &str,
) -> Option<Vec<Edit>> {
    let line = |at: usize| {
        let (indent, gap) = items.last().map_or(("", " "), |last| dash(text, last));
        Some(lines(indent, gap, [new.get(at)?], line_end))
    };
    let mut edits = Vec::new();
    let mut place = items.first()?.lines.start;
    let mut rest = items.iter();
    for step in steps {
        if let ListStep::Insert(at) = step {
            edits.push(Edit::insert(place, line(*at)?));
            continue;
        }
        let item = rest.next()?;
        place = item.lines.end;
        match (step, item.scalar) {
            (ListStep::Replace(at), Some(scalar)) => {
                edits.push(Edit::replace(scalar.span, format_value(new.get(*at)?, scalar.style, false)));
            }
            (ListStep::Replace(at), None) => edits.push(Edit::replace(item.lines, line(*at)?)),
            (ListStep::Remove, _) => edits.push(Edit::remove(item.lines)),
            _ => {}
        }
    }
    Some(edits)
}

/// Returns the text before an item's dash, and between the dash and the value.
fn dash<'t>(text: &'t str, item: &BlockItem<'_>) -> (&'t str, &'t str) {
    let (line, _) = line_at(text, item.lines.start);
    let (indent, value) = line.split_once('-').unwrap_or(("", ""));
    let gap = value.len() - value.trim_start_matches([' ', '\t']).len();
    let gap = if gap == value.len() { " " } else { value.get(..gap).unwrap_or(" ") };
    (indent, gap)
}

/// Finds the items of a list with one item per line. All dashes of a list are in one column.
fn block_items<'p>(text: &str, property: &'p Property, values: &[Value]) -> Option<Vec<BlockItem<'p>>> {
    let start = line_start(text, property.value_span.start);
    let indent = text.get(start..property.value_span.start)?;
    if !indent.bytes().all(|b| b == b' ') {
        return None;
    }
    let (_, end) = line_at(text, property.span.end);
    let mut items: Vec<BlockItem<'p>> = Vec::new();
    let mut scalars = property.scalars.iter().peekable();
    let mut inside = 0;
    let mut at = start;
    while at < end {
        let (line, next) = line_at(text, at);
        let content = line.trim_start_matches([' ', '\t']);
        let behind_dash = line.strip_prefix(indent).and_then(|rest| rest.strip_prefix('-'));
        let opens = behind_dash.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        if at >= inside && opens {
            items.push(BlockItem { lines: Span::new(at, next), scalar: None });
        } else if at < inside || !content.is_empty() && !content.starts_with('#') {
            items.last_mut()?.lines.end = next;
        }
        while let Some(scalar) = scalars.next_if(|scalar| scalar.span.start < next) {
            inside = inside.max(scalar.span.end);
            let item = items.last_mut()?;
            item.scalar = item.scalar.or(Some(scalar)).filter(|scalar| !scalar.span.is_empty());
        }
        at = next;
    }
    for (item, value) in items.iter_mut().zip(values) {
        item.scalar = item.scalar.filter(|_| !value.is_array() && !value.is_object());
    }
    (items.len() == values.len()).then_some(items)
}

fn change_flow(
    text: &str,
    property: &Property,
    count: usize,
    new: &[Value],
    steps: &[ListStep],
) -> Option<Vec<Edit>> {
    let whole = property.value_span;
    let inner = Span::new(whole.start + 1, whole.end.checked_sub(1)?);
    let items = flow_items(text, property, inner)?;
    if items.len() != count {
        return None;
    }
    let written: Vec<String> = new.iter().map(|value| format_value(value, Style::Plain, true)).collect();
    // A span with a comment is not removed as a whole: the comment stays.
    let clean = |span: Span| !comments(text, &items, span);
    if items.is_empty() {
        return Some(vec![if clean(inner) {
            Edit::replace(inner, written.join(", "))
        } else {
            Edit::insert(inner.end, written.join(", "))
        }]);
    }
    if new.is_empty() && clean(inner) {
        return Some(vec![Edit::remove(inner)]);
    }
    let mut edits = Vec::new();
    let mut index = 0;
    let mut steps = steps.iter().peekable();
    while let Some(step) = steps.next() {
        match step {
            ListStep::Keep => index += 1,
            ListStep::Replace(at) => {
                let span = *items.get(index)?;
                let style = property.scalars.iter().find(|scalar| scalar.span == span);
                let style = style.map_or(Style::Plain, |scalar| scalar.style);
                edits.push(Edit::replace(span, format_value(new.get(*at)?, style, true)));
                index += 1;
            }
            ListStep::Insert(at) => {
                let item = written.get(*at)?;
                edits.push(match index.checked_sub(1).and_then(|before| items.get(before)) {
                    Some(before) => Edit::insert(before.end, format!(", {item}")),
                    None => Edit::insert(items.first()?.start, format!("{item}, ")),
                });
            }
            ListStep::Remove => {
                let first = index;
                index += 1;
                while steps.next_if(|step| **step == ListStep::Remove).is_some() {
                    index += 1;
                }
                let gone = items.get(first..index)?;
                let span = match (first.checked_sub(1), items.get(index)) {
                    (Some(before), _) => Span::new(items.get(before)?.end, gone.last()?.end),
                    (None, Some(next)) => Span::new(gone.first()?.start, next.start),
                    (None, None) => inner,
                };
                if clean(span) {
                    edits.push(Edit::remove(span));
                } else {
                    edits.extend(gone.iter().flat_map(|item| without_item(text, *item, inner)));
                }
            }
        }
    }
    Some(edits)
}

/// Returns whether there is a comment between the items within a span.
fn comments(text: &str, items: &[Span], span: Span) -> bool {
    let within = items.iter().filter(|item| item.start >= span.start && item.end <= span.end);
    let mut at = span.start;
    within.copied().chain([Span::new(span.end, span.end)]).any(|item| {
        let gap = Span::new(at, item.start).of(text);
        at = item.end;
        gap.contains('#')
    })
}

/// Plans the removal of one item of a list in brackets and of the comma after it. Comments stay. A line goes with the
/// item that is alone in it.
fn without_item(text: &str, item: Span, inner: Span) -> Vec<Edit> {
    let mut at = item.end;
    let comma = loop {
        let rest = Span::new(at, inner.end).of(text);
        at += rest.len() - rest.trim_start().len();
        match rest.trim_start().as_bytes().first() {
            Some(b'#') => at += line_at(text, at).0.len(),
            Some(b',') => break Some(at),
            _ => break None,
        }
    };
    let mut span = item;
    let mut edits = Vec::new();
    match comma {
        Some(comma) if comma == item.end => span.end = comma + 1,
        Some(comma) => edits.push(Edit::remove(Span::new(comma, comma + 1))),
        None => {}
    }
    let start = line_start(text, item.start);
    let (rest, next) = line_at(text, span.end);
    if start > inner.start
        && next <= inner.end
        && Span::new(start, item.start).of(text).trim().is_empty()
        && rest.trim().is_empty()
    {
        span = Span::new(start, next);
    }
    edits.insert(0, Edit::remove(span));
    edits
}

/// Finds the items of a list in brackets. Commas, blanks and comments separate them.
fn flow_items(text: &str, property: &Property, inner: Span) -> Option<Vec<Span>> {
    let bytes = text.as_bytes();
    let mut scalars = property.scalars.iter().filter(|scalar| !scalar.span.is_empty()).peekable();
    let mut items = Vec::new();
    let mut item: Option<Span> = None;
    let mut depth = 0usize;
    let mut at = inner.start;
    while at < inner.end {
        while scalars.next_if(|scalar| scalar.span.start < at).is_some() {}
        let byte = *bytes.get(at)?;
        let mut end = at + 1;
        if let Some(scalar) = scalars.next_if(|scalar| scalar.span.start == at) {
            end = scalar.span.end;
        } else {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    at = end;
                    continue;
                }
                b'#' if bytes.get(at - 1).is_some_and(|b| b.is_ascii_whitespace()) => {
                    at += line_at(text, at).0.len();
                    continue;
                }
                b',' if depth == 0 => {
                    items.push(item.take()?);
                    at = end;
                    continue;
                }
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        item = Some(Span::new(item.map_or(at, |item| item.start), end));
        at = end;
    }
    items.extend(item);
    Some(items)
}
