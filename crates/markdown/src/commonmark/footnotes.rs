//! Footnotes of a note for a page: the footnotes, with those written within a line as `^[text]`, their numbers, and the
//! list of their texts.

use std::collections::{HashMap, HashSet};

use pulldown_cmark::{Event, Tag, TagEnd};

use crate::span::Span;

/// A footnote whose text stands within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InlineFootnote {
    /// The signs before its text, `^[`.
    pub(super) opening: Span,
    /// The sign behind its text, `]`.
    pub(super) closing: Span,
    /// Its number on the page.
    pub(super) number: usize,
}

/// What names a footnote: its id in lower case, or the offset of its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Id(String),
    Inline(usize),
}

/// A reference, or a footnote within a line, which refers to itself.
struct Reference {
    name: Name,
    /// The footnote whose text has the reference.
    within: Option<String>,
}

/// An opening of a footnote within a line whose end was not found yet.
#[derive(Clone, Copy)]
struct Opening {
    /// The offset of `^`.
    start: usize,
    /// The number of inline elements around it.
    depth: usize,
    /// The number of brackets that are open in its text.
    brackets: usize,
    /// The number of references before it.
    references: usize,
}

/// Finds references, definitions and footnotes within lines, in the order of the text.
struct Finder<'a> {
    text: &'a str,
    /// What has no plain text, in order.
    opaque: &'a [Span],
    references: Vec<Reference>,
    definitions: Vec<String>,
    inline: Vec<(Span, Span)>,
    /// The definition that is open.
    definition: Option<String>,
    opening: Option<Opening>,
    /// The number of inline elements that are open.
    depth: usize,
    /// The number of images and code blocks that are open.
    hidden: usize,
}

impl<'a> Finder<'a> {
    fn new(text: &'a str, opaque: &'a [Span]) -> Self {
        Self {
            text,
            opaque,
            references: Vec::new(),
            definitions: Vec::new(),
            inline: Vec::new(),
            definition: None,
            opening: None,
            depth: 0,
            hidden: 0,
        }
    }

    fn event(&mut self, event: &Event<'_>, span: Span) {
        match event {
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. }) => {
                self.depth += 1;
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link) => {
                self.depth = self.depth.saturating_sub(1);
                // A footnote that begins within an element ends there, too.
                self.opening = self.opening.filter(|opening| opening.depth <= self.depth);
            }
            Event::Start(Tag::Image { .. }) => self.hidden += 1,
            Event::End(TagEnd::Image) => self.hidden = self.hidden.saturating_sub(1),
            Event::Start(tag) => {
                self.opening = None;
                match tag {
                    Tag::FootnoteDefinition(id) => {
                        self.definitions.push(id.to_lowercase());
                        self.definition = Some(id.to_lowercase());
                    }
                    Tag::CodeBlock(_) => self.hidden += 1,
                    _ => {}
                }
            }
            Event::End(tag) => {
                self.opening = None;
                match tag {
                    TagEnd::FootnoteDefinition => self.definition = None,
                    TagEnd::CodeBlock => self.hidden = self.hidden.saturating_sub(1),
                    _ => {}
                }
            }
            Event::FootnoteReference(id) if self.hidden == 0 && self.opaque_end(span.start).is_none() => {
                let (name, within) = (Name::Id(id.to_lowercase()), self.definition.clone());
                self.references.push(Reference { name, within });
            }
            // A character reference is not a sign.
            Event::Text(value) if self.hidden == 0 && **value == *span.of(self.text) => self.signs(span),
            _ => {}
        }
    }

    /// Returns the end of what has no plain text at an offset.
    fn opaque_end(&self, at: usize) -> Option<usize> {
        let next = self.opaque.partition_point(|span| span.start <= at);
        let before = self.opaque.get(next.checked_sub(1)?)?;
        (at < before.end).then_some(before.end)
    }

    /// Returns whether an odd number of backslashes is before an offset.
    fn is_escaped(&self, at: usize) -> bool {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
    }

    /// Looks at the signs of a piece of plain text.
    fn signs(&mut self, span: Span) {
        let bytes = self.text.as_bytes();
        let mut at = span.start;
        while at < span.end {
            if let Some(end) = self.opaque_end(at) {
                at = end;
                continue;
            }
            match bytes.get(at) {
                Some(b'[') if self.is_escaped(at) => {}
                Some(b'[') => match &mut self.opening {
                    Some(opening) => opening.brackets += 1,
                    None => self.open(at),
                },
                Some(b']') if self.opening.is_some() && !self.is_escaped(at) => self.close(at),
                _ => {}
            }
            at += 1;
        }
    }

    /// Opens a footnote at a bracket that has a caret before it.
    fn open(&mut self, bracket: usize) {
        let Some(start) = bracket.checked_sub(1) else { return };
        let has_caret = self.text.as_bytes().get(start) == Some(&b'^');
        if has_caret && !self.is_escaped(start) && self.opaque_end(start).is_none() {
            let (depth, references) = (self.depth, self.references.len());
            self.opening = Some(Opening { start, depth, brackets: 0, references });
        }
    }

    /// Closes a bracket in the text of a footnote, or the footnote. One without a text is none.
    fn close(&mut self, bracket: usize) {
        let Some(opening) = &mut self.opening else { return };
        if opening.brackets > 0 {
            opening.brackets -= 1;
            return;
        }
        let opening = *opening;
        if opening.depth != self.depth {
            return;
        }
        self.opening = None;
        let text = Span::new(opening.start + 2, bracket);
        if text.of(self.text).trim().is_empty() {
            return;
        }
        self.inline.push((Span::new(opening.start, text.start), Span::new(bracket, bracket + 1)));
        let (name, within) = (Name::Inline(opening.start), self.definition.clone());
        self.references.insert(opening.references, Reference { name, within });
    }

    /// Numbers the footnotes: in the order of their references in the text, then of those in the texts of footnotes. Those
    /// without a reference come last.
    fn numbers(&self) -> HashMap<Name, usize> {
        let mut within: HashMap<&str, Vec<&Name>> = HashMap::new();
        let mut order: Vec<&Name> = Vec::new();
        for reference in &self.references {
            match &reference.within {
                Some(id) => within.entry(id).or_default().push(&reference.name),
                None => order.push(&reference.name),
            }
        }
        let alone: Vec<Name> = self.definitions.iter().cloned().map(Name::Id).collect();
        let mut numbers: HashMap<Name, usize> = HashMap::new();
        let mut queue: std::collections::VecDeque<&Name> = order.into();
        let mut alone = alone.iter();
        while let Some(name) = queue.pop_front().or_else(|| alone.next()) {
            if numbers.contains_key(name) {
                continue;
            }
            numbers.insert(name.clone(), numbers.len() + 1);
            if let Name::Id(id) = name {
                queue.extend(within.remove(id.as_str()).into_iter().flatten());
            }
        }
        numbers
    }
}

/// The footnotes of a note while it is written.
#[derive(Debug, Default)]
pub(super) struct Footnotes {
    /// The numbers of those with an id, by it in lower case.
    numbers: HashMap<String, usize>,
    /// Those within lines.
    inline: Vec<InlineFootnote>,
    /// The footnotes whose first reference was written.
    referred: HashSet<usize>,
    /// The texts that were written, each with its number.
    texts: Vec<(usize, String)>,
    /// The footnotes whose text is being written, each with the output around it.
    open: Vec<(usize, String)>,
}

impl Footnotes {
    /// Returns whether a text can have footnotes.
    pub(super) fn are_in(text: &str) -> bool {
        text.contains("[^") || text.contains("^[")
    }

    /// Finds the footnotes of a note. `opaque` lists in order what has no plain text, such as comments and wikilinks.
    pub(super) fn of<'e>(
        text: &str,
        opaque: &[Span],
        events: impl Iterator<Item = (Event<'e>, Span)>,
    ) -> Self {
        let mut finder = Finder::new(text, opaque);
        for (event, span) in events {
            finder.event(&event, span);
        }
        let mut footnotes = Self::default();
        let numbers = finder.numbers();
        for (opening, closing) in finder.inline {
            let number = numbers.get(&Name::Inline(opening.start)).copied().unwrap_or_default();
            footnotes.inline.push(InlineFootnote { opening, closing, number });
        }
        for (name, number) in numbers {
            if let Name::Id(id) = name {
                footnotes.numbers.insert(id, number);
            }
        }
        footnotes
    }

    /// Lists the footnotes within lines.
    pub(super) fn inline(&self) -> &[InlineFootnote] {
        &self.inline
    }

    /// Returns the number of the footnote with an id.
    pub(super) fn number(&self, id: &str) -> Option<usize> {
        self.numbers.get(&id.to_lowercase()).copied()
    }

    /// Writes the reference to a footnote, with a link if it can have one. The way back leads to the first reference.
    pub(super) fn refer(&mut self, number: usize, is_linked: bool, out: &mut String) {
        if !is_linked {
            return out.push_str(&format!("<sup class=\"footnote-ref\">{number}</sup>"));
        }
        let own =
            if self.referred.insert(number) { format!(" id=\"fnref-{number}\"") } else { String::new() };
        out.push_str(&format!(
            "<sup class=\"footnote-ref\"><a href=\"#fn-{number}\"{own}>{number}</a></sup>"
        ));
    }

    /// Begins the text of a footnote: what is written from now on belongs to it.
    pub(super) fn begin(&mut self, number: usize, out: &mut String) {
        self.open.push((number, std::mem::take(out)));
    }

    /// Ends the text that was begun last.
    pub(super) fn end(&mut self, out: &mut String) {
        if let Some((number, outer)) = self.open.pop() {
            self.texts.push((number, std::mem::replace(out, outer)));
        }
    }

    /// Writes the list of all texts.
    pub(super) fn finish(mut self, has_ids: bool, out: &mut String) {
        if self.texts.is_empty() {
            return;
        }
        self.texts.sort_by_key(|(number, _)| *number);
        out.push_str("<section class=\"footnotes\"><ol>\n");
        for (number, written) in &self.texts {
            let id = if has_ids { format!(" id=\"fn-{number}\"") } else { String::new() };
            out.push_str(&format!("<li{id}>"));
            // The way back is at the end of the text, in its last paragraph if it ends with one.
            let (text, end) = match written.strip_suffix("</p>\n") {
                Some(text) => (text, "</p>\n"),
                None => (written.as_str(), ""),
            };
            out.push_str(text);
            if self.referred.contains(number) {
                let back = format!(" <a class=\"footnote-back\" href=\"#fnref-{number}\">\u{21A9}</a>");
                out.push_str(&back);
            }
            out.push_str(&format!("{end}</li>\n"));
        }
        out.push_str("</ol></section>\n");
    }
}
