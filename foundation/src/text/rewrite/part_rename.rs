//! Renaming parts of a note: what links write for a heading or block that gets another name.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    DestinationSyntax, EncodingLevel, LinkRewrite, Reader, angle_encode, parse, percent_encode, remark,
    syntax,
};
use crate::text::anchor::AnchorTable;
use crate::text::dialect::LinkDialect;
use crate::text::edit::{Edit, apply};
use crate::text::frontmatter::encode_in;
use crate::text::line::Lines;
use crate::text::link::{Link, LinkContext, LinkSyntax};
use crate::text::note::{Note, heading_key};
use crate::text::path::NotePath;
use crate::text::span::Span;
use crate::text::subpath::{SubpathTable, SubpathTarget};

/// Returns the text of a heading as links contain it (spec/obsidian.md 3.6, *heading_linktext*).
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

/// Plans the edits of the links of a file when a part of a note is renamed, which can be the file itself.
///
/// `is_target` returns whether a link resolves to the note with the part, and `target` is that note before the change.
/// `anchors` are the anchors of its headings before and after the change.
pub fn rename_part(
    (source, text, note): (&NotePath, &str, &Note),
    target: &Note,
    part: &PartRename,
    anchors: &AnchorRename,
    is_target: impl Fn(&Link) -> bool,
) -> LinkRewrite {
    let lines = Lines::new(text);
    let parts = SubpathTable::new(target);
    let mut rewritten = LinkRewrite::default();
    for link in note.links.iter().filter(|link| !link.subpath.is_empty() && is_target(link)) {
        let by_text =
            if anchors.is_only_by_anchor(link) { None } else { renamed_segment(link, text, &parts, part) };
        let is_anchor = by_text.is_none();
        let Some((span, new)) = by_text.or_else(|| anchors.renamed(link, text)) else { continue };
        let inner = match syntax(link, text) {
            // An anchor is encoded already, as it was before.
            DestinationSyntax::Plain | DestinationSyntax::Angle if is_anchor => new,
            DestinationSyntax::Wiki | DestinationSyntax::Canvas => new,
            DestinationSyntax::Plain => {
                let in_table = link.place == LinkContext::Table;
                percent_encode(&new, EncodingLevel::Minimal, in_table, Reader::Obsidian)
            }
            DestinationSyntax::Angle => angle_encode(&new, EncodingLevel::Minimal, Reader::Obsidian),
        };
        match encode_in(link.escape.host, &inner) {
            Some(raw) => {
                rewritten.edits.push(Edit::replace(span, raw));
                rewritten.links += 1;
            }
            None => {
                let message = "this value cannot contain the new name without quotes";
                rewritten.remarks.push(remark("yaml-style", source, text, &lines, link.span, message));
            }
        }
    }
    rewritten.work = parts.work();
    rewritten
}

/// What is percent-encoded in an anchor whose old form was encoded.
const ANCHOR: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The anchors of a note's headings before and after one of them is renamed.
#[derive(Debug)]
pub struct AnchorRename {
    /// The dialect of the notes whose links are rewritten.
    pub dialect: LinkDialect,
    /// The anchors before the change.
    pub before: AnchorTable,
    /// The anchors after the change. A heading has the same index.
    pub after: AnchorTable,
    /// The note after the change.
    pub note_after: Note,
}

impl AnchorRename {
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
        let new = self.after.of(target)?;
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
/// The arguments are those of [`rename_part`].
pub fn misled_by_rename(
    (source, text, note): (&NotePath, &str, &Note),
    target: &Note,
    anchors: &AnchorRename,
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
    let (before, after) = (SubpathTable::new(target), SubpathTable::new(&anchors.note_after));
    let pairs = note.links.iter().zip(&reparsed.links);
    let misled = pairs.filter(|(old, new)| {
        if old.subpath.is_empty() || !is_target(old) {
            return false;
        }
        let by_text = if anchors.is_only_by_anchor(old) { None } else { before.find(&old.subpath) };
        match (by_text, anchors.before.find(&old.subpath)) {
            (Some(part), _) => after.find(&new.subpath) != Some(part),
            (None, Some(place)) if old.form.syntax() == LinkSyntax::Markdown => {
                anchors.after.find(&new.subpath) != Some(place)
            }
            _ => false,
        }
    });
    misled.map(|(old, _)| old.span).collect()
}

/// Finds the segment of a link's subpath that means the part, and its replacement.
fn renamed_segment(
    link: &Link,
    text: &str,
    parts: &SubpathTable<'_>,
    part: &PartRename,
) -> Option<(Span, String)> {
    let raw = link.subpath_span.of(text);
    let mut decoded = link.subpath.split('#').filter(|segment| !segment.trim().is_empty());
    let mut prefix = String::new();
    let mut at = link.subpath_span.start;
    for piece in raw.split('#') {
        let start = at;
        at += piece.len() + 1;
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            continue;
        }
        let segment = decoded.next()?;
        prefix.push('#');
        prefix.push_str(segment);
        let lead = piece.len() - piece.trim_start().len();
        let span = Span::new(start + lead, start + lead + trimmed.len());
        match (part, parts.find(&prefix)) {
            (PartRename::Heading(index, new), Some(SubpathTarget::Heading(found))) if found == *index => {
                return Some((span, heading_linktext(new)));
            }
            (PartRename::Block(index, new), Some(SubpathTarget::Block(found))) if found == *index => {
                return Some((span, format!("^{new}")));
            }
            _ => {}
        }
    }
    None
}

/// Returns whether a link to the heading that is renamed to `new` could also mean another heading of the note.
pub fn heading_clashes(note: &Note, index: usize, new: &str) -> bool {
    let key = heading_key(&heading_linktext(new));
    note.headings.iter().enumerate().any(|(at, heading)| at != index && heading_key(&heading.text) == key)
}
