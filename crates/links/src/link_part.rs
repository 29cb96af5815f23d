//! Whether the subpath of a link names a part of its note: a heading, block or footnote, or an anchor of the web page.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::note::Note;
use sidenote_markdown::subpath::SubpathTable;

use crate::anchor::AnchorTable;
use crate::dialect::{DialectUnit, LinkDialect};

/// The subpath of a link, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPart<'l> {
    /// The subpath with its `#`.
    pub subpath: Cow<'l, str>,
    /// The dialect by which it is an anchor. Otherwise it names the part itself.
    pub anchor: Option<LinkDialect>,
    /// Whether it can be an anchor of GitHub as well: nothing says that Obsidian reads the note.
    can_be_anchor: bool,
}

impl<'l> LinkPart<'l> {
    /// Returns the part that a link names, if it names one. A link from a note of `unit` does not if its subpath is
    /// empty, or means the beginning of a page or lines of a file.
    pub fn of(link: &'l Link, unit: &DialectUnit) -> Option<Self> {
        let is_markdown = link.form.syntax() == LinkSyntax::Markdown;
        let anchor = (is_markdown && unit.dialect.follows_paths()).then_some(unit.dialect);
        let subpath = match anchor {
            Some(_) => Cow::Borrowed(&*link.subpath),
            None => link.looked_up_subpath(),
        };
        let name = subpath.trim_start_matches('#');
        let is_of_page = is_markdown && (name.eq_ignore_ascii_case("top") || is_line(name));
        let names_part = !name.trim().is_empty() && !is_of_page;
        let can_be_anchor = is_markdown && !unit.is_certain();
        names_part.then_some(Self { subpath, anchor, can_be_anchor })
    }

    /// Returns the same part without a borrow of the link.
    pub fn into_owned(self) -> LinkPart<'static> {
        LinkPart { subpath: Cow::Owned(self.subpath.into_owned()), ..self }
    }
}

/// Returns whether the name of an anchor is that of lines of a file on GitHub, such as `L10` or `L10-L20`.
fn is_line(name: &str) -> bool {
    let is_end = |end: &str| {
        let end = end.strip_prefix('L').unwrap_or(end);
        let (line, column) = end.split_once('C').unwrap_or((end, "1"));
        [line, column].iter().all(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name.starts_with('L') && name.split('-').all(is_end)
}

/// The parts of one note, by which links into it are checked.
#[derive(Debug)]
pub struct NoteParts<'n> {
    text: &'n str,
    note: &'n Note,
    parts: SubpathTable<'n>,
    anchors: BTreeMap<LinkDialect, AnchorTable>,
}

impl<'n> NoteParts<'n> {
    /// Creates the table of a note with this text.
    pub fn new(text: &'n str, note: &'n Note) -> Self {
        Self { text, note, parts: SubpathTable::new(note), anchors: BTreeMap::new() }
    }

    /// Returns whether the note has the part.
    pub fn has(&mut self, part: &LinkPart<'_>) -> bool {
        match part.anchor {
            Some(dialect) => self.anchors(dialect).find(&part.subpath).is_some(),
            None if self.parts.find(&part.subpath).is_some() => true,
            None => part.can_be_anchor && self.anchors(LinkDialect::Github).find(&part.subpath).is_some(),
        }
    }

    /// Returns the headings, blocks and footnotes by name.
    pub fn by_name(&self) -> &SubpathTable<'n> {
        &self.parts
    }

    /// Returns the anchors of the note in a dialect.
    pub fn anchors(&mut self, dialect: LinkDialect) -> &AnchorTable {
        self.anchors.entry(dialect).or_insert_with(|| AnchorTable::new(dialect, self.text, self.note))
    }
}
