//! Edits of a note's body: append, prepend, replace text or a section, and rename, add or remove tags.
//!
//! New lines get the file's line ending. The frontmatter changes only with its tags. The text must be identical to the
//! file's bytes; the caller refuses files that are not UTF-8.

use regex::RegexBuilder;
use sidenote_language::graphemes::beginning;

use crate::edit::{Edit, apply};
use crate::frontmatter;
use crate::frontmatter::edit::{Refusal, line_end};
use crate::line::{Lines, line_at};
use crate::note::Note;
use crate::span::Span;

/// The number of similar texts that an error names.
const MAX_SIMILAR: usize = 3;

/// The maximum length of a pattern in bytes, and the maximum size of its compiled form.
const MAX_PATTERN: (usize, usize) = (1000, 1 << 20);
/// The maximum size of all replacements of one edit in bytes. A larger note would not be read.
const MAX_WRITTEN: usize = 100_000_000;

/// The maximum number of lines and bytes of a missing text that are compared with the note's lines.
const MAX_COMPARED: (usize, usize) = (20, 1000);

/// Adds text at the end of a note.
///
/// It starts on a new line after one blank line, unless both neighbours are list items or table rows, which stay
/// together. The file keeps its line ending at the end, or the lack of one; an empty file gets one.
///
/// # Errors
/// Refuses text that would become frontmatter.
pub fn append(text: &str, addition: &str) -> Result<Vec<Edit>, Refusal> {
    let Some(added) = InsertedText::new(text, addition) else {
        return Ok(Vec::new());
    };
    let (_, start) = frontmatter::read(text);
    let above = text.get(start..).unwrap_or("");
    let open = if is_open(text) { 1 } else { 0 };
    let ends = open + usize::from(!above.is_empty() && !added.joins_below(above));
    verified(text, vec![added.insert(text.len(), ends, usize::from(ends_with_line_end(text)))])
}

/// Adds text at the start of a note, after its frontmatter.
///
/// One blank line separates it from the body, by the rules of [`append`].
///
/// # Errors
/// Refuses text that would become frontmatter.
pub fn prepend(text: &str, addition: &str) -> Result<Vec<Edit>, Refusal> {
    let (_, start) = frontmatter::read(text);
    let body = text.get(start..).unwrap_or("");
    if body.is_empty() {
        return append(text, addition);
    }
    let Some(added) = InsertedText::new(text, addition) else {
        return Ok(Vec::new());
    };
    verified(text, vec![added.insert(start, 0, 1 + usize::from(!added.joins_above(body)))])
}

/// Returns the name of the block that is open at an offset, where text that is added would be a part of it: code, HTML, or
/// a comment that ends nowhere.
pub fn open_block(text: &str, at: usize) -> Option<&'static str> {
    // A comment is one when it ends.
    const PROBE: &str = "\n\n[[probe]]\n\n%%\n";
    let before = text.get(..at)?;
    let probed = Note::parse(&format!("{before}{PROBE}"));
    let found = probed.links.iter().find(|link| link.span.start >= before.len());
    match found {
        Some(link) => link.in_comment.then_some("a comment"),
        None => Some("a block of code or HTML"),
    }
}

/// Adds text at the end of a section: before the next heading of the same or a higher level, and before the blank
/// lines above that heading. The last section ends with the note.
///
/// # Errors
/// Refuses a heading that the note does not have (`no-heading`).
pub fn append_to_section(
    text: &str,
    note: &Note,
    heading: usize,
    addition: &str,
) -> Result<Vec<Edit>, Refusal> {
    let (start, end) = section(text, note, heading)?;
    if end >= text.len() {
        return append(text, addition);
    }
    let Some(added) = InsertedText::new(text, addition) else {
        return Ok(Vec::new());
    };
    let mut place = start;
    let mut at = start;
    while at < end {
        let (line, next) = line_at(text, at);
        if !line.trim().is_empty() {
            place = next;
        }
        at = next;
    }
    let above = Span::new(start, place).of(text);
    let swallowed = place == end && is_set_below(text, note, heading, end);
    let edit = added.insert(place, usize::from(!added.joins_below(above)), 1 + usize::from(swallowed));
    verified(text, vec![edit])
}

/// Adds text at the start of a section: below its heading and the blank lines there.
///
/// # Errors
/// Refuses a heading that the note does not have (`no-heading`).
pub fn prepend_to_section(
    text: &str,
    note: &Note,
    heading: usize,
    addition: &str,
) -> Result<Vec<Edit>, Refusal> {
    let (_, end) = section(text, note, heading)?;
    let own = note.headings.get(heading).map_or(end, |heading| heading.span.end);
    let (_, mut place) = line_at(text, own);
    while place < end {
        let (line, next) = line_at(text, place);
        if !line.trim().is_empty() {
            break;
        }
        place = next;
    }
    if place >= end {
        return append_to_section(text, note, heading, addition);
    }
    let Some(added) = InsertedText::new(text, addition) else {
        return Ok(Vec::new());
    };
    let below = text.get(place..).unwrap_or("");
    verified(text, vec![added.insert(place, 0, 1 + usize::from(!added.joins_above(below)))])
}

/// Replaces the text below a heading, subsections included. The heading and the blank lines around the text stay.
///
/// # Errors
/// Refuses a heading that the note does not have (`no-heading`).
pub fn replace_section(text: &str, note: &Note, heading: usize, new: &str) -> Result<Vec<Edit>, Refusal> {
    let (_, end) = section(text, note, heading)?;
    let own = note.headings.get(heading).map_or(end, |heading| heading.span.end);
    let mut at = line_at(text, own).1;
    // From the start of the first nonblank line to the end of the last one, without its line ending.
    let mut old: Option<Span> = None;
    let mut after = at;
    while at < end {
        let (line, next) = line_at(text, at);
        if !line.trim().is_empty() {
            old = Some(Span::new(old.map_or(at, |old| old.start), at + line.len()));
            after = next;
        }
        at = next;
    }
    let Some(old) = old else { return append_to_section(text, note, heading, new) };
    let Some(added) = InsertedText::new(text, new) else {
        return verified(text, vec![Edit::remove(Span::new(old.start, after))]);
    };
    let swallowed = after == end && is_set_below(text, note, heading, end);
    let line_end = if swallowed { added.line_end } else { "" };
    verified(text, vec![Edit::replace(old, format!("{}{line_end}", added.text))])
}

/// Returns whether the heading after a section is a setext heading. Text right above it would become part of it.
fn is_set_below(text: &str, note: &Note, heading: usize, end: usize) -> bool {
    let next = note.headings.iter().skip(heading + 1).find(|next| next.span.start >= end);
    next.is_some_and(|next| next.span.of(text).contains(['\n', '\r']))
}

/// Fails if the replacements are larger than a note may be (`too-large`).
fn check_written(start: usize, bytes: usize) -> Result<(), Refusal> {
    if bytes <= MAX_WRITTEN {
        return Ok(());
    }
    let message = format!("the replacements would have more than {MAX_WRITTEN} bytes");
    Err(Refusal::new("too-large", start, message))
}

/// Replaces all occurrences of a text in the body, optionally only if there are `expected` of them.
///
/// The search ignores the kind of line endings, and the new text gets the file's own. Only the bytes that differ are
/// edited.
///
/// # Errors
/// Refuses a text that is not found (`text-not-found`), with similar lines, or not as often as expected
/// (`count-mismatch`), and a change that would create or end frontmatter.
pub fn replace(text: &str, old: &str, new: &str, expected: Option<usize>) -> Result<Vec<Edit>, Refusal> {
    let (_, start) = frontmatter::read(text);
    let body = text.get(start..).unwrap_or("");
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err(Refusal::new("empty-text", start, "the text to look for is empty"));
    }
    let unified = LfText::new(body, start);
    let found: Vec<usize> = unified.text.match_indices(old.as_str()).map(|(at, _)| at).collect();
    if found.is_empty() {
        return Err(Refusal::new("text-not-found", start, not_found(text, start, &unified.text, &old)));
    }
    let places = found.iter().map(|at| unified.raw(*at));
    check_count(text, "the text stands in the note", places, expected)?;
    if old == new {
        return Ok(Vec::new());
    }
    check_written(start, found.len().saturating_mul(new.len()))?;
    let (head, tail) = equal_ends(&old, &new);
    let coming = Span::new(head, new.len() - tail).of(&new).replace('\n', line_end(text));
    let edit = |at: &usize| {
        let span = Span::new(unified.raw(at + head), unified.raw(at + old.len() - tail));
        Edit::replace(span, coming.clone())
    };
    verified(text, found.iter().map(edit).collect())
}

/// Replaces all matches of a regular expression in the body, optionally only if there are `expected` of them.
///
/// The syntax is that of the `regex` crate, which takes linear time. `^` and `$` match at every line, line endings are
/// matched as `\n`, and `$1` or `${name}` in `new` refers to a group.
///
/// # Errors
/// Refuses an invalid or too large pattern (`invalid-pattern`), a pattern without a match (`text-not-found`) or with
/// another number of matches than expected (`count-mismatch`), and a change that would create or end frontmatter.
pub fn replace_pattern(
    text: &str,
    pattern: &str,
    new: &str,
    expected: Option<usize>,
) -> Result<Vec<Edit>, Refusal> {
    let (_, start) = frontmatter::read(text);
    let (longest, largest) = MAX_PATTERN;
    if pattern.len() > longest {
        let message = format!("the pattern has {} bytes, and at most {longest} are taken", pattern.len());
        return Err(Refusal::new("invalid-pattern", start, message));
    }
    let regex = RegexBuilder::new(pattern).multi_line(true).size_limit(largest).build().map_err(|error| {
        Refusal::new(
            "invalid-pattern",
            start,
            format!("{pattern:?} is not a valid regular expression: {error}"),
        )
    })?;
    let unified = LfText::new(text.get(start..).unwrap_or(""), start);
    let mut edits = Vec::new();
    let mut written = 0_usize;
    // Each reference inserts at most the whole match.
    let references = new.matches('$').count();
    for found in regex.captures_iter(&unified.text) {
        let Some(whole) = found.get(0) else { continue };
        let most = new.len().saturating_add(references.saturating_mul(whole.len()));
        check_written(start, written.saturating_add(most))?;
        let mut coming = String::new();
        found.expand(new, &mut coming);
        written = written.saturating_add(coming.len());
        let coming = coming.replace("\r\n", "\n").replace('\n', line_end(text));
        edits.push(Edit::replace(Span::new(unified.raw(whole.start()), unified.raw(whole.end())), coming));
    }
    if edits.is_empty() {
        return Err(Refusal::new(
            "text-not-found",
            start,
            format!("nothing in the note matches {pattern:?}"),
        ));
    }
    check_count(text, "the pattern matches", edits.iter().map(|edit| edit.span.start), expected)?;
    edits.retain(|edit| edit.span.of(text) != edit.text);
    verified(text, edits)
}

/// Fails if the number of places is not the expected one, and names their lines.
fn check_count(
    text: &str,
    what: &str,
    places: impl ExactSizeIterator<Item = usize> + Clone,
    expected: Option<usize>,
) -> Result<(), Refusal> {
    let found = places.len();
    let Some(expected) = expected.filter(|expected| *expected != found) else { return Ok(()) };
    let lines = Lines::new(text);
    let named: Vec<String> = places.clone().take(10).map(|at| lines.of(at).to_string()).collect();
    let message = format!(
        "{what} {}, not {}: line {}{}",
        times(found),
        times(expected),
        named.join(", "),
        if found > named.len() { ", …" } else { "" }
    );
    Err(Refusal::new("count-mismatch", places.clone().next().unwrap_or(0), message))
}

// Inserted text.

/// Text to add, without line endings at its end.
struct InsertedText {
    text: String,
    line_end: &'static str,
}

impl InsertedText {
    /// Converts a text to the file's line endings; `None` if it is empty.
    fn new(text: &str, addition: &str) -> Option<Self> {
        let line_end = line_end(text);
        let trimmed = addition.trim_end_matches(['\n', '\r']);
        let added = trimmed.replace("\r\n", "\n").replace('\r', "\n").replace('\n', line_end);
        (!added.is_empty()).then_some(Self { text: added, line_end })
    }

    /// Adds line endings around the text.
    fn insert(&self, at: usize, before: usize, after: usize) -> Edit {
        let (before, after) = (self.line_end.repeat(before), self.line_end.repeat(after));
        Edit::insert(at, format!("{before}{}{after}", self.text))
    }

    /// Returns whether the text may follow the last line of `above` without a blank line between.
    fn joins_below(&self, above: &str) -> bool {
        let first = line_at(&self.text, 0).0;
        let last = last_line(above);
        first.trim().is_empty() || last.trim().is_empty() || are_of_one_block(above, first)
    }

    /// Returns whether the text may stand right above `below`.
    fn joins_above(&self, below: &str) -> bool {
        let first = line_at(below, 0).0;
        first.trim().is_empty() || are_of_one_block(&self.text, first)
    }
}

fn without_line_end(text: &str) -> &str {
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r'])).unwrap_or(text)
}

fn last_line(text: &str) -> &str {
    let text = without_line_end(text);
    text.rfind(['\n', '\r']).and_then(|end| text.get(end + 1..)).unwrap_or(text)
}

/// Returns whether the last line has no line ending.
fn is_open(text: &str) -> bool {
    !is_empty(text) && !text.ends_with(['\n', '\r'])
}

fn ends_with_line_end(text: &str) -> bool {
    is_empty(text) || text.ends_with(['\n', '\r'])
}

fn is_empty(text: &str) -> bool {
    text.trim_start_matches('\u{FEFF}').is_empty()
}

/// Returns whether the last lines of `above` and the line `below` are items of a list, or rows of a table.
fn are_of_one_block(above: &str, below: &str) -> bool {
    let is_row = |line: &str| line.trim_start().starts_with('|');
    if is_row(below) {
        return is_row(last_line(above));
    }
    if !is_item(below) {
        return false;
    }
    let mut rest = above;
    loop {
        let line = last_line(rest);
        if is_item(line) {
            return true;
        }
        // Indented lines may continue an item.
        if line.trim().is_empty() || !line.starts_with([' ', '\t']) {
            return false;
        }
        let Some(shorter) =
            without_line_end(rest).len().checked_sub(line.len()).and_then(|len| rest.get(..len))
        else {
            return false;
        };
        if shorter.is_empty() {
            return false;
        }
        rest = shorter;
    }
}

/// Returns whether a line starts with the marker of a list item.
fn is_item(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    let is_rule = ['-', '*'].iter().any(|sign| {
        line.matches(*sign).count() > 2 && line.chars().all(|c| c == *sign || c == ' ' || c == '\t')
    });
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match digits {
        0 => line.strip_prefix(['-', '*', '+']),
        1..=9 => line.get(digits..).and_then(|rest| rest.strip_prefix(['.', ')'])),
        _ => None,
    };
    !is_rule && marker.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Returns the start of a heading's line and the start of the line where its section ends.
fn section(text: &str, note: &Note, heading: usize) -> Result<(usize, usize), Refusal> {
    let span = note.section_span(text, heading);
    let span =
        span.ok_or_else(|| Refusal::new("no-heading", note.body_start, "the note has no such heading"))?;
    let line_start = |at: usize| {
        let before = text.get(note.body_start..at).unwrap_or("");
        before.rfind(['\n', '\r']).map_or(note.body_start, |end| note.body_start + end + 1)
    };
    let end = if span.end >= text.len() { text.len() } else { line_start(span.end) };
    Ok((line_start(span.start), end))
}

// Replacing text.

/// A text with LF line endings, with a map back to the file.
struct LfText {
    text: String,
    /// The offset of the original in the file.
    at: usize,
    /// The offsets of the line feeds that followed a carriage return.
    dropped: Vec<usize>,
}

impl LfText {
    fn new(original: &str, at: usize) -> Self {
        let pairs = original.match_indices("\r\n").enumerate();
        let dropped = pairs.map(|(before, (place, _))| place - before).collect();
        Self { text: original.replace("\r\n", "\n"), at, dropped }
    }

    /// Returns the offset in the file, which is never between a carriage return and its line feed.
    fn raw(&self, offset: usize) -> usize {
        self.at + offset + self.dropped.partition_point(|place| *place < offset)
    }
}

/// Returns the lengths of the common prefix and suffix of two texts.
fn equal_ends(a: &str, b: &str) -> (usize, usize) {
    let head = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    let (a, b) = (a.get(head..).unwrap_or(""), b.get(head..).unwrap_or(""));
    let ends = a.chars().rev().zip(b.chars().rev());
    (head, ends.take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum())
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Returns the error for a text that is not found, with similar lines.
fn not_found(text: &str, body_start: usize, body: &str, wanted: &str) -> String {
    let first_line = Lines::new(text).of(body_start);
    let near: Vec<String> = nearest(body, wanted)
        .into_iter()
        .map(|(at, found)| {
            let short = beginning(found, 200);
            let more = if short.len() < found.len() { "…" } else { "" };
            format!("line {}: {short:?}{more}", first_line + at)
        })
        .collect();
    let frontmatter = text.get(..body_start).unwrap_or("").replace("\r\n", "\n");
    let properties = if frontmatter.contains(wanted) {
        "; it stands among the properties, which are edited by their names"
    } else {
        ""
    };
    let near = if near.is_empty() { String::new() } else { format!("; the nearest is {}", near.join("; ")) };
    format!("the text is not in the note{properties}{near}")
}

/// Finds the runs of lines most similar to a text, best first, with the index of their first line.
fn nearest<'b>(body: &'b str, wanted: &str) -> Vec<(usize, &'b str)> {
    let (max_lines, max_bytes) = MAX_COMPARED;
    let wanted = wanted.trim_matches('\n');
    let count = wanted.split('\n').count().min(max_lines);
    let cut = |text: &str| text.chars().take(max_bytes).filter(|c| !c.is_whitespace()).collect::<String>();
    let compared = cut(&wanted.split('\n').take(count).collect::<Vec<_>>().join("\n")).to_lowercase();
    let starts: Vec<usize> =
        std::iter::once(0).chain(body.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut scored: Vec<(f64, usize, &str)> = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + count).map_or(body.len(), |end| end - 1);
        let run = Span::new(start, end).of(body);
        let score = strsim::sorensen_dice(&cut(run).to_lowercase(), &compared);
        if score > 0.3 && !run.starts_with('\n') {
            scored.push((score, index, run.trim_end()));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (_, index, run) in scored {
        // Runs that overlap a better one are dropped.
        if found.len() < MAX_SIMILAR && found.iter().all(|(other, _)| other.abs_diff(index) >= count) {
            found.push((index, run));
        }
    }
    found
}

// Tags.

// Checks.

pub(crate) fn mismatch(reason: &str) -> Refusal {
    let message =
        format!("the edited text would not be read as requested ({reason}), so the edit was refused");
    Refusal::new("reparse-mismatch", 0, message)
}

pub(crate) fn apply_to_text(text: &str, edits: &[Edit]) -> Result<String, Refusal> {
    let changed = apply(text.as_bytes(), edits).map_err(|error| mismatch(error.message()))?;
    String::from_utf8(changed).map_err(|_| mismatch("a character is cut"))
}

/// Returns the edits if they leave the frontmatter, or the lack of it, unchanged.
fn verified(text: &str, edits: Vec<Edit>) -> Result<Vec<Edit>, Refusal> {
    let changed = apply_to_text(text, &edits)?;
    let bounds = |text: &str| {
        let (block, start) = frontmatter::read(text);
        (block.map(|block| block.span.of(text).trim_end_matches(['\n', '\r']).to_owned()), start)
    };
    let (before, after) = (bounds(text), bounds(&changed));
    // The closing line may get a line ending.
    let moved = after.1 != before.1 && !(is_open(text) && before.1 == text.len());
    if before.0 != after.0 || moved {
        return Err(mismatch("the frontmatter changes"));
    }
    Ok(edits)
}
