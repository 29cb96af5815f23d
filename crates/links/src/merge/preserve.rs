//! The check of a merge that was read back: it must contain everything that a side has, unless the other side removed it.

use std::collections::HashSet;

use sidenote_markdown::link::Link;
use sidenote_markdown::note::Note;

use crate::merge::properties::has_properties;
use crate::merge::retarget::{LineForms, lines_without_destinations};
use crate::merge::{Merged, ParsedVersions};

/// What a link leads to, and whether it shows it.
type LinkKey<'n> = (&'n str, &'n str, bool);

/// Returns whether a merge has all links and lines that it must have, and frontmatter that can be read.
pub(super) fn is_complete(parsed: &ParsedVersions<'_>, merged: &Merged) -> bool {
    let result = Note::parse(&merged.text);
    let can_be_read = |note: &Note| note.frontmatter.as_ref().is_none_or(|block| block.error.is_none());
    let is_readable = merged.conflicts > 0
        || can_be_read(&result)
        || !(can_be_read(&parsed.ours) && can_be_read(&parsed.theirs));
    is_readable && has_links(parsed, merged, &result) && has_lines(parsed, merged, &result)
}

/// Returns the members of either side that the other one did not remove.
fn expected<'s, T: Eq + std::hash::Hash>(
    base: &HashSet<T>,
    ours: &'s HashSet<T>,
    theirs: &'s HashSet<T>,
) -> impl Iterator<Item = &'s T> {
    let kept = |side: &'s HashSet<T>, other: &'s HashSet<T>| {
        side.iter().filter(move |member| other.contains(member) || !base.contains(member))
    };
    kept(ours, theirs).chain(kept(theirs, ours)).collect::<Vec<_>>().into_iter()
}

fn has_links(parsed: &ParsedVersions<'_>, merged: &Merged, result: &Note) -> bool {
    let keys = |note: &'_ Note| note.links.iter().map(key).map(owned).collect::<HashSet<_>>();
    let (base, ours, theirs) = (keys(&parsed.base), keys(&parsed.ours), keys(&parsed.theirs));
    let found = keys(result);
    let is_written = |wanted: &(String, String, bool)| {
        // Between markers a note is not read as it will be. There, the written link counts.
        let sides = [(&parsed.ours, parsed.texts.ours), (&parsed.theirs, parsed.texts.theirs)];
        merged.conflicts > 0
            && sides.iter().any(|(note, text)| {
                let mut links = note.links.iter().filter(|link| owned(key(link)) == *wanted);
                links.any(|link| merged.text.contains(link.span.of(text)))
            })
    };
    let mut wanted = expected(&base, &ours, &theirs);
    wanted.all(|wanted| found.contains(wanted) || is_written(wanted))
}

fn key(link: &Link) -> LinkKey<'_> {
    (&link.path, &link.subpath, link.embed)
}

fn owned((path, subpath, embed): LinkKey<'_>) -> (String, String, bool) {
    (path.to_owned(), subpath.to_owned(), embed)
}

/// Lines in either of their forms.
#[derive(Default)]
struct KnownLines(HashSet<String>);

impl KnownLines {
    fn of(lines: &[LineForms]) -> Self {
        let mut known = Self::default();
        known.add(lines);
        known
    }

    fn add(&mut self, lines: &[LineForms]) {
        self.0.extend(lines.iter().flat_map(|line| [line.as_written.clone(), line.masked.clone()]));
    }

    fn add_text(&mut self, text: &str) {
        self.0.extend(text.lines().map(str::to_owned));
    }

    fn have(&self, line: &LineForms) -> bool {
        self.0.contains(&line.as_written) || self.0.contains(&line.masked)
    }
}

/// Compares the bodies by their lines. Frontmatter is merged by its values.
fn has_lines(parsed: &ParsedVersions<'_>, merged: &Merged, result: &Note) -> bool {
    let lines = |text: &str, note: &Note| -> Vec<LineForms> {
        let head = text.get(..note.body_start).unwrap_or("").lines().count();
        lines_without_destinations(text, note).into_iter().skip(head).collect()
    };
    let base = KnownLines::of(&lines(parsed.texts.base, &parsed.base));
    let (ours, theirs) = (lines(parsed.texts.ours, &parsed.ours), lines(parsed.texts.theirs, &parsed.theirs));
    let mut found = KnownLines::of(&lines_without_destinations(&merged.text, result));
    found.add_text(&merged.text);
    let has_side = |side: &[LineForms], other: &KnownLines| {
        let mut expected = side.iter().filter(|line| other.have(line) || !base.have(line));
        expected.all(|line| found.have(line))
    };
    has_side(&ours, &KnownLines::of(&theirs)) && has_side(&theirs, &KnownLines::of(&ours))
}

/// Returns whether a merged text has every line of a version that its base lacks. Destinations of links may have been
/// rewritten. Properties are compared by their values: items of united lists, and times of which the later or earlier
/// one was taken.
pub fn has_every_line(version: &str, base: &str, merged: &str) -> bool {
    let (note, old, result) = (Note::parse(version), Note::parse(base), Note::parse(merged));
    let mut known = KnownLines::of(&lines_without_destinations(merged, &result));
    known.add(&lines_without_destinations(base, &old));
    known.add_text(merged);
    let head = version.get(..note.body_start).unwrap_or("").lines().count();
    let lines = lines_without_destinations(version, &note);
    let is_readable = |note: &Note| note.frontmatter.as_ref().is_some_and(|block| block.error.is_none());
    let has_head = || match (&note.frontmatter, &result.frontmatter) {
        (Some(own), Some(other)) if is_readable(&note) && is_readable(&result) => {
            has_properties(own, old.frontmatter.as_ref(), other)
        }
        _ => lines.iter().take(head).all(|line| known.have(line)),
    };
    lines.iter().skip(head).all(|line| known.have(line)) && has_head()
}
