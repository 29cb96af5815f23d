//! Names with lines, such as `Plan.md:3-9`.

/// The largest offset of a page, and the largest number of a line.
pub(super) const MAX_POSITION: usize = 1_000_000;

/// Splits a name such as `Plan.md:3-9`, as searches and links show places, into the note and its lines.
pub(super) fn place_of(name: &str) -> Option<(&str, (usize, usize))> {
    let (note, range) = name.trim().rsplit_once(':')?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let line = |text: &str| text.parse().ok().filter(|line| (1..=MAX_POSITION).contains(line));
    let (first, last) = (line(first)?, line(last)?);
    (first <= last && !note.is_empty()).then_some((note, (first, last)))
}
