//! Conflicts in which one side changed only the targets of links. The result is the text of the other side with these
//! links.

use std::collections::BTreeMap;
use std::ops::Range;

use sidenote_markdown::edit::{Edit, apply};
use sidenote_markdown::link::{Link, LinkForm};
use sidenote_markdown::note::Note;
use sidenote_markdown::span::Span;

use crate::merge::regions::{changed_regions, lines_of, text_of};
use crate::merge::{ParsedVersions, unchanged_side};

/// The placeholder of the destination of a link in a comparison of two texts without destinations.
const DESTINATION: char = '\u{1}';
/// The placeholder of the label of a link that only repeats its destination.
const REPEATED_LABEL: char = '\u{2}';

/// A part of a version, with all links of that version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage<'t> {
    pub(super) text: &'t str,
    pub(super) span: Span,
    pub(super) links: &'t [Link],
}

/// The body of a version, line by line.
struct Body<'t> {
    text: &'t str,
    links: &'t [Link],
    lines: Vec<&'t str>,
    /// The offset of each line in the file, and the end of the file.
    offsets: Vec<usize>,
}

/// What is compared of the labels of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkLabels {
    /// The label itself.
    AsWritten,
    /// Of a label that repeats its destination, only that it does.
    Masked,
}

/// A link that one side leads elsewhere: what replaces its destination, and the label if that repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Retarget {
    destination: String,
    label: Option<String>,
}

/// Writes the bodies of the three versions with their link-only conflicts resolved. Returns `None` if there are none.
pub(super) fn resolve_bodies(parsed: &ParsedVersions<'_>) -> Option<[String; 3]> {
    let base = Body::of(parsed.texts.base, &parsed.base);
    let ours = Body::of(parsed.texts.ours, &parsed.ours);
    let theirs = Body::of(parsed.texts.theirs, &parsed.theirs);
    let mut resolved = Vec::new();
    for region in changed_regions(&base.lines, &ours.lines, &theirs.lines) {
        let (old, our, their) =
            (base.passage(&region.base), ours.passage(&region.ours), theirs.passage(&region.theirs));
        if unchanged_side(old.written(), our.written(), their.written()).is_some() {
            continue;
        }
        if let Some(text) = resolve(old, our, their) {
            resolved.push((region, text));
        }
    }
    if resolved.is_empty() {
        return None;
    }
    let written = |body: &Body<'_>, range_of: fn(&super::regions::Region) -> &Range<usize>| {
        let (mut text, mut at) = (String::with_capacity(body.text.len()), 0);
        for (region, replacement) in &resolved {
            let range = range_of(region);
            text.push_str(&text_of(&body.lines, &(at..range.start)));
            text.push_str(replacement);
            at = range.end;
        }
        text.push_str(&text_of(&body.lines, &(at..body.lines.len())));
        text
    };
    Some([
        written(&base, |region| &region.base),
        written(&ours, |region| &region.ours),
        written(&theirs, |region| &region.theirs),
    ])
}

/// Resolves a conflict in which a side changed only the targets of links. Returns `None` if there is no such side.
pub(super) fn resolve(base: Passage<'_>, ours: Passage<'_>, theirs: Passage<'_>) -> Option<String> {
    carry_links(base, ours, theirs).or_else(|| carry_links(base, theirs, ours))
}

/// Writes the text of `other` with the links that `retargeted` leads elsewhere. Returns `None` if `retargeted` differs
/// from `base` in more than that, or if it is not certain which links of `other` they are.
fn carry_links(base: Passage<'_>, retargeted: Passage<'_>, other: Passage<'_>) -> Option<String> {
    let is_alike = |labels| {
        let (base, retargeted) = (base.without_destinations(labels), retargeted.without_destinations(labels));
        base.is_some() && base == retargeted
    };
    // A rename rewrites a label that repeats the destination in some links, and keeps it in others.
    let labels = [LinkLabels::AsWritten, LinkLabels::Masked].into_iter().find(|labels| is_alike(*labels))?;
    let (old, new) = (base.links_inside(), retargeted.links_inside());
    let mut changes: BTreeMap<(&'static str, &str), Retarget> = BTreeMap::new();
    for (old, new) in old.iter().zip(&new) {
        let destination = new.dest_span.of(retargeted.text).to_owned();
        let is_renamed = labels == LinkLabels::Masked && repeats_destination(new, retargeted.text);
        let label = new.alias_span.filter(|_| is_renamed);
        let label = label.map(|span| span.of(retargeted.text).to_owned());
        let change = Retarget { destination, label };
        // One destination that became two is ambiguous; one of two links that stayed is, too.
        let known = changes.entry((old.form.name(), old.dest_span.of(base.text))).or_insert(change.clone());
        if *known != change {
            return None;
        }
    }
    changes.retain(|(_, old), change| *old != change.destination);
    let mut edits = Vec::new();
    let mut missing: Vec<(&'static str, &str)> = changes.keys().copied().collect();
    for link in other.links_inside() {
        let named = (link.form.name(), link.dest_span.of(other.text));
        let Some(change) = changes.get(&named) else { continue };
        missing.retain(|left| *left != named);
        let in_passage = |span: Span| Span::new(span.start - other.span.start, span.end - other.span.start);
        edits.push(Edit::replace(in_passage(link.dest_span), change.destination.as_str()));
        let label = link.alias_span.filter(|_| repeats_destination(link, other.text));
        if let (Some(span), Some(label)) = (label, &change.label) {
            edits.push(Edit::replace(in_passage(span), label.as_str()));
        }
    }
    if !missing.is_empty() || edits.is_empty() {
        return None;
    }
    String::from_utf8(apply(other.written().as_bytes(), &edits).ok()?).ok()
}

/// Returns whether the label of a link is the name or the path that the link leads to, as a rename keeps it.
fn repeats_destination(link: &Link, text: &str) -> bool {
    let Some(label) = link.alias_span.map(|span| span.of(text).trim()) else { return false };
    let name = link.path.rsplit('/').next().unwrap_or(&link.path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    matches!(link.form, LinkForm::Wiki | LinkForm::MdPlain | LinkForm::MdAngle)
        && !label.is_empty()
        && (label == name || label == stem || label == link.path)
}

impl<'t> Body<'t> {
    fn of(text: &'t str, note: &'t Note) -> Self {
        let lines = lines_of(text.get(note.body_start..).unwrap_or(""));
        let mut offsets = Vec::with_capacity(lines.len() + 1);
        let mut at = note.body_start.min(text.len());
        offsets.push(at);
        for line in &lines {
            at += line.len();
            offsets.push(at);
        }
        Self { text, links: &note.links, lines, offsets }
    }

    fn passage(&self, range: &Range<usize>) -> Passage<'t> {
        let offset = |line: usize| self.offsets.get(line).copied().unwrap_or(self.text.len());
        let span = Span::new(offset(range.start), offset(range.end));
        Passage { text: self.text, span, links: self.links }
    }
}

impl<'t> Passage<'t> {
    pub(super) fn written(&self) -> &'t str {
        self.span.of(self.text)
    }

    /// Lists the links that lie in the passage as a whole, by their destinations.
    fn links_inside(&self) -> Vec<&'t Link> {
        let mut links: Vec<&Link> = self.links.iter().filter(|link| self.span.encloses(link.span)).collect();
        links.sort_by_key(|link| link.dest_span);
        links
    }

    /// Returns the passage without the destinations of its links, and perhaps without labels that repeat them. Returns
    /// `None` if two destinations overlap.
    fn without_destinations(&self, labels: LinkLabels) -> Option<String> {
        let mut spans: Vec<(Span, String)> = Vec::new();
        for link in self.links_inside() {
            spans.push((link.dest_span, format!("{DESTINATION}{}{DESTINATION}", link.form.name())));
            let is_masked = labels == LinkLabels::Masked && repeats_destination(link, self.text);
            if let Some(label) = link.alias_span.filter(|_| is_masked) {
                spans.push((label, REPEATED_LABEL.to_string()));
            }
        }
        let at = self.span.start;
        let edits: Vec<Edit> = spans
            .into_iter()
            .map(|(span, sign)| Edit::replace(Span::new(span.start - at, span.end - at), sign))
            .collect();
        String::from_utf8(apply(self.written().as_bytes(), &edits).ok()?).ok()
    }
}

/// A line without the destinations of its links: with all labels, and without those that repeat a destination. Two
/// lines that differ only in the targets of their links have one of these two forms in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LineForms {
    pub(super) as_written: String,
    pub(super) masked: String,
}

/// Returns the lines of a text without the destinations of its links.
pub(super) fn lines_without_destinations(text: &str, note: &Note) -> Vec<LineForms> {
    let whole = Passage { text, span: Span::new(0, text.len()), links: &note.links };
    let form = |labels| whole.without_destinations(labels).unwrap_or_else(|| text.to_owned());
    let (as_written, masked) = (form(LinkLabels::AsWritten), form(LinkLabels::Masked));
    let forms = as_written.lines().zip(masked.lines());
    forms
        .map(|(as_written, masked)| LineForms {
            as_written: as_written.to_owned(),
            masked: masked.to_owned(),
        })
        .collect()
}
