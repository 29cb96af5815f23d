//! Renaming parts of a note: what links write for a heading or block that gets another name.

use std::collections::HashMap;
use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sidenote_markdown::edit::{Edit, apply};
use sidenote_markdown::frontmatter::encode_in;
use sidenote_markdown::line::Lines;
use sidenote_markdown::link::{Link, LinkContext, LinkSyntax};
use sidenote_markdown::note::{Note, heading_key};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::span::Span;
use sidenote_markdown::subpath::{SubpathTable, SubpathTarget};
use sidenote_markdown::unlinked_reference::UnlinkedReferenceKind;

use super::{
    DestinationSyntax, EncodingLevel, LinkRewrite, Reader, angle_encode, parse, percent_encode, remark,
    syntax,
};
use crate::anchor::{AnchorTable, AnchorTarget};
use crate::dialect::LinkDialect;

/// Returns the text of a heading as links contain it (docs/spec/obsidian.md 3.6, *heading_linktext*).
pub fn heading_linktext(heading: &str) -> String {
    let mut plain = heading.to_owned();
    for pair in ["%%", "[[", "]]"] {
        plain = plain.replace(pair, " ");
    }
    let words = plain.split(|c: char| c.is_whitespace() || matches!(c, ':' | '#' | '|' | '^' | '\\'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The renaming of a part of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartRename {
    /// The index of a heading, and its new text.
    Heading(usize, String),
    /// The index of a block, and its new id.
    Block(usize, String),
}

impl PartRename {
    /// Returns the part, and the segment of a subpath that names it afterwards.
    fn segment(&self) -> (SubpathTarget, String) {
        match self {
            Self::Heading(index, new) => (SubpathTarget::Heading(*index), heading_linktext(new)),
            Self::Block(index, new) => (SubpathTarget::Block(*index), format!("^{new}")),
        }
    }
}

/// Plans the edits of the links of a file when parts of a note are renamed, which can be the file itself, or get other
/// anchors.
///
/// `is_target` returns whether a link resolves to the note with the parts, and `target` is that note before the change.
/// `changes` are its parts before and after the change.
pub fn rename_parts(
    (source, text, note): (&NotePath, &str, &Note),
    target: &Note,
    parts: &[PartRename],
    changes: &PartChanges,
    is_target: impl Fn(&Link) -> bool,
) -> LinkRewrite {
    let lines = Lines::new(text);
    let table = SubpathTable::new(target);
    let segments: HashMap<SubpathTarget, String> = parts.iter().map(PartRename::segment).collect();
    let mut rewritten = LinkRewrite::default();
    let attributes =
        note.mentions.iter().filter(|mention| mention.kind == UnlinkedReferenceKind::HtmlAttribute);
    let links = note.links.iter().map(|link| (link, false));
    let links = links.chain(attributes.map(|mention| (&mention.link, true)));
    for (link, is_html) in links.filter(|(link, _)| !link.subpath.is_empty() && is_target(link)) {
        // A browser follows HTML, and knows anchors alone.
        let is_anchor = is_html && changes.before.find(&link.subpath).is_some();
        let by_text = !is_anchor && !changes.is_only_by_anchor(link) && table.find(&link.subpath).is_some();
        let renamed = match by_text {
            true => renamed_segments(link, text, &table, &segments),
            false => changes.renamed(link, text).into_iter().collect(),
        };
        let mut edits = Vec::with_capacity(renamed.len());
        for (span, new) in renamed {
            let inner = match syntax(link, text) {
                // An anchor is encoded already, as it was before.
                DestinationSyntax::Plain | DestinationSyntax::Angle if !by_text => new,
                DestinationSyntax::Wiki | DestinationSyntax::Canvas => new,
                DestinationSyntax::Plain => {
                    let in_table = link.place == LinkContext::Table;
                    percent_encode(&new, EncodingLevel::Minimal, in_table, Reader::Obsidian)
                }
                DestinationSyntax::Angle => angle_encode(&new, EncodingLevel::Minimal, Reader::Obsidian),
            };
            match encode_in(link.escape.host, &inner) {
                Some(raw) => edits.push(Edit::replace(span, raw)),
                None => {
                    let message = "this value cannot contain the new name without quotes";
                    rewritten.remarks.push(remark("yaml-style", source, text, &lines, link.span, message));
                }
            }
        }
        rewritten.links += usize::from(!edits.is_empty());
        rewritten.edits.append(&mut edits);
    }
    rewritten.work = table.work();
    rewritten
}

/// What is percent-encoded in an anchor whose old form was encoded.
const ANCHOR: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Which parts of a changed text the parts of a note are: ranges of their indexes, each with the index that its first part
/// has in the changed text. A part in no range is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartMap {
    /// The headings of the note.
    pub headings: Vec<(Range<usize>, usize)>,
    /// The other places with anchors, as in [`AnchorTarget::Other`].
    pub others: Vec<(Range<usize>, usize)>,
}

impl PartMap {
    /// Returns the map of a note that keeps all of its parts.
    pub fn same() -> Self {
        Self { headings: vec![(0..usize::MAX, 0)], others: vec![(0..usize::MAX, 0)] }
    }

    /// Returns the index that a heading has in the changed text.
    pub fn heading(&self, index: usize) -> Option<usize> {
        mapped(&self.headings, index)
    }

    fn of(&self, target: AnchorTarget) -> Option<AnchorTarget> {
        match target {
            AnchorTarget::Heading(index) => self.heading(index).map(AnchorTarget::Heading),
            AnchorTarget::Other(index) => mapped(&self.others, index).map(AnchorTarget::Other),
        }
    }
}

fn mapped(ranges: &[(Range<usize>, usize)], index: usize) -> Option<usize> {
    let (range, first) = ranges.iter().find(|(range, _)| range.contains(&index))?;
    Some(first + index - range.start)
}

/// The parts of a note before and after a change, and the anchors by which links name them.
#[derive(Debug)]
pub struct PartChanges {
    /// The dialect of the notes whose links are rewritten.
    pub dialect: LinkDialect,
    /// The anchors before the change.
    pub before: AnchorTable,
    /// The anchors of the text that holds the parts after the change.
    pub after: AnchorTable,
    /// The note with that text.
    pub note_after: Note,
    /// Where each part is now.
    pub map: PartMap,
}

impl PartChanges {
    /// Compares a note with the text that holds its parts after a change, for links of one dialect.
    pub fn new(
        dialect: LinkDialect,
        (text, note): (&str, &Note),
        (path_after, text_after): (&NotePath, &str),
        map: PartMap,
    ) -> Self {
        let note_after = parse(path_after, text_after);
        let before = AnchorTable::new(dialect, text, note);
        let after = AnchorTable::new(dialect, text_after, &note_after);
        Self { dialect, before, after, note_after, map }
    }

    /// Lists the headings of the note that links by text name otherwise after the change.
    pub fn renamed_headings(&self, before: &Note) -> Vec<PartRename> {
        let renamed = before.headings.iter().enumerate().filter_map(|(index, heading)| {
            let now = self.note_after.headings.get(self.map.heading(index)?)?;
            (heading_key(&heading.text) != heading_key(&now.text))
                .then(|| PartRename::Heading(index, now.text.clone()))
        });
        renamed.collect()
    }

    /// Returns whether a link names a heading by its anchor and never by its text.
    fn is_only_by_anchor(&self, link: &Link) -> bool {
        self.dialect.follows_paths() && link.form.syntax() == LinkSyntax::Markdown
    }

    /// Returns the bytes of a link's anchor and the new one, if it names a heading whose anchor changes. That can also
    /// be a heading behind the renamed one, whose anchor was counted.
    fn renamed(&self, link: &Link, text: &str) -> Option<(Span, String)> {
        if link.form.syntax() != LinkSyntax::Markdown {
            return None;
        }
        let target = self.before.find(&link.subpath)?;
        let new = self.after.of(self.map.of(target)?)?;
        if self.before.of(target) == Some(new) {
            return None;
        }
        let span = Span::new(link.subpath_span.start + 1, link.subpath_span.end);
        let is_encoded = span.of(text).contains('%');
        let encoded = if is_encoded { utf8_percent_encode(new, ANCHOR).to_string() } else { new.to_owned() };
        Some((span, encoded))
    }
}

/// Lists the links of a file that lead to another part of the target than before, when `edits` rename a part of it: their
/// bytes before the change. A link to no part is left out.
///
/// The arguments are those of [`rename_parts`].
pub fn misled_by_rename(
    (source, text, note): (&NotePath, &str, &Note),
    target: &Note,
    changes: &PartChanges,
    is_target: impl Fn(&Link) -> bool,
    edits: &[Edit],
) -> Vec<Span> {
    let all = || note.links.iter().filter(|link| is_target(link)).map(|link| link.span).collect();
    let Some(changed) = apply(text.as_bytes(), edits).ok().and_then(|text| String::from_utf8(text).ok())
    else {
        return all();
    };
    let reparsed = parse(source, &changed);
    if reparsed.links.len() != note.links.len() {
        return all();
    }
    let (before, after) = (SubpathTable::new(target), SubpathTable::new(&changes.note_after));
    let pairs = note.links.iter().zip(&reparsed.links);
    let misled = pairs.filter(|(old, new)| {
        if old.subpath.is_empty() || !is_target(old) {
            return false;
        }
        let by_text = if changes.is_only_by_anchor(old) { None } else { before.find(&old.subpath) };
        match (by_text, changes.before.find(&old.subpath)) {
            (Some(SubpathTarget::Heading(at)), _) => {
                let now = changes.map.heading(at).map(SubpathTarget::Heading);
                now.is_some() && after.find(&new.subpath) != now
            }
            (Some(part), _) => after.find(&new.subpath) != Some(part),
            (None, Some(place)) if old.form.syntax() == LinkSyntax::Markdown => {
                let now = changes.map.of(place);
                now.is_some() && changes.after.find(&new.subpath) != now
            }
            _ => false,
        }
    });
    misled.map(|(old, _)| old.span).collect()
}

/// Finds the segments of a link's subpath that mean a renamed part, and their replacements.
fn renamed_segments(
    link: &Link,
    text: &str,
    table: &SubpathTable<'_>,
    segments: &HashMap<SubpathTarget, String>,
) -> Vec<(Span, String)> {
    let raw = link.subpath_span.of(text);
    let mut decoded = link.subpath.split('#').filter(|segment| !segment.trim().is_empty());
    let mut prefix = String::new();
    let mut at = link.subpath_span.start;
    let mut renamed = Vec::new();
    for piece in raw.split('#') {
        let start = at;
        at += piece.len() + 1;
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            continue;
        }
        let Some(segment) = decoded.next() else { break };
        prefix.push('#');
        prefix.push_str(segment);
        let lead = piece.len() - piece.trim_start().len();
        let span = Span::new(start + lead, start + lead + trimmed.len());
        let new = table.find(&prefix).and_then(|part| segments.get(&part));
        renamed.extend(new.map(|new| (span, new.clone())));
    }
    renamed
}

/// Returns whether a link to the heading that is renamed to `new` could also mean another heading of the note.
pub fn heading_clashes(note: &Note, index: usize, new: &str) -> bool {
    let key = heading_key(&heading_linktext(new));
    note.headings.iter().enumerate().any(|(at, heading)| at != index && heading_key(&heading.text) == key)
}
