//! A note as HTML for a page: CommonMark with Obsidian's wikilinks, embeds, callouts, tasks, highlights, mathematics and
//! block ids. Comments are left out.
//!
//! The caller sanitizes the result. A [`LinkPages`] says where a link leads, and what an embed shows.

use std::collections::{HashMap, HashSet};

use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Parser, Tag, TagEnd};

use super::footnotes::Footnotes;
use super::html_tags::{HtmlCleaner, escape_attribute, escape_text};
use super::parser_input::parser_input;
use super::{OPTIONS, callout_marker, from_marker, shifted, task_marker};
use crate::line::Lines;
use crate::link::{Link, LinkForm};
use crate::note::{BlockKind, Note, PieceKind, heading_key};
use crate::span::Span;

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A file of the vault.
    File {
        /// The address on the page.
        address: String,
        /// The path in the vault.
        path: String,
    },
    /// Nowhere.
    Nowhere,
}

/// What an embed shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedHtml {
    /// The HTML.
    pub html: String,
    /// Whether it is a block, which no paragraph can contain.
    pub is_block: bool,
}

/// Tells where the links of a note lead. A link is named by its index in [`Note::links`].
pub trait LinkPages {
    /// Returns where a link leads.
    fn target(&self, number: usize, link: &Link) -> LinkTarget;
    /// Returns what an embed shows.
    fn embed(&self, number: usize, link: &Link) -> EmbedHtml;
    /// Returns the address of the notes with a tag.
    fn tag_address(&self, tag: &str) -> String;
    /// Returns the address of a link to the web, if it is one that a page may have.
    fn web_address(&self, url: &str) -> Option<String>;
    /// Returns whether headings, blocks and footnotes get ids. A part of another note has none.
    fn has_ids(&self) -> bool {
        true
    }
}

/// Returns the id of a heading on the page, if no heading before it has the same.
pub fn heading_id(text: &str) -> String {
    let kept = heading_key(text).replace(' ', "-");
    let kept: String = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
    format!("h-{kept}")
}

/// Returns the id of each heading of a note on the page, in order. No two are the same.
pub fn heading_ids(note: &Note) -> Vec<String> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut taken = HashSet::new();
    let headings = note.headings.iter().map(|heading| {
        let base = heading_id(&heading.text);
        let count = known.entry(base.clone()).or_default();
        loop {
            *count += 1;
            let id = if *count == 1 { base.clone() } else { format!("{base}-{count}") };
            if taken.insert(id.clone()) {
                return id;
            }
        }
    });
    headings.collect()
}

/// Renders a note, or the blocks of it that lie within `part`. `text` is the text of the note.
pub fn html(text: &str, note: &Note, part: Option<Span>, pages: &dyn LinkPages) -> String {
    let lines = Lines::new(text);
    let input = parser_input(text, note.body_start, &lines);
    let part = part.unwrap_or(Span::new(0, text.len()));
    let events = || {
        let all = Parser::new_ext(&input.body, OPTIONS).into_offset_iter().map(|(event, range)| {
            let span = from_marker(text, &event, shifted(range, note.body_start));
            (event, span)
        });
        all.filter(|(_, span)| span.start >= part.start && trimmed_end(text, *span) <= part.end)
    };
    let mut marks = marks_of(text, note);
    let mut footnotes = Footnotes::default();
    if Footnotes::are_in(text) {
        let opaque: Vec<Span> = marks.iter().map(|(span, _)| *span).collect();
        footnotes = Footnotes::of(text, &opaque, events());
        for inline in footnotes.inline() {
            marks.push((inline.opening, Mark::FootnoteStart(inline.number)));
            marks.push((inline.closing, Mark::FootnoteEnd));
        }
        marks.sort_by_key(|(span, _)| span.start);
    }
    let mut writer = Writer::new((text, note, &lines), marks, footnotes, pages);
    for (event, span) in events() {
        writer.event(&event, span);
    }
    writer.finish()
}

/// Returns the end of a span without the white space at its end.
fn trimmed_end(text: &str, span: Span) -> usize {
    span.start + span.of(text).trim_end().len()
}

/// Something within the text of a block that is not shown as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It is not shown.
    Hidden,
    /// Mathematics, with the length of its signs.
    Math(usize),
    /// A wikilink, by its index among the links.
    Link(usize),
    /// A tag, by its index among the tags.
    Tag(usize),
    /// An address of the web.
    Url,
    /// What is before the text of a footnote within a line, with its number.
    FootnoteStart(usize),
    /// What is behind the text of a footnote within a line.
    FootnoteEnd,
}

/// A callout whose title is being written.
#[derive(Debug, Clone, Copy)]
struct CalloutTitle {
    /// The end of the line with the title.
    end: usize,
    /// Whether its element is `summary`.
    is_summary: bool,
}

/// What is open around a footnote within a line, and goes on behind it.
struct Surroundings {
    is_marked: bool,
    title: Option<CalloutTitle>,
    paragraph: Option<(usize, usize)>,
}

/// A block quote that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Plain,
    Callout,
    Foldable,
}

/// Where the parts of a note are, so that each is found without a search.
#[derive(Debug, Default)]
struct Places {
    /// The indexes of the blocks with an id that begin at an offset.
    blocks: HashMap<usize, Vec<usize>>,
    headings: HashMap<usize, usize>,
    /// The tasks by line.
    tasks: HashMap<usize, usize>,
    links: HashMap<(usize, usize), usize>,
    /// The links of reference definitions by their destination.
    definitions: HashMap<String, usize>,
}

impl Places {
    fn of(text: &str, note: &Note) -> Self {
        let mut places = Self::default();
        for (number, block) in note.blocks.iter().enumerate() {
            places.blocks.entry(block.span.start).or_default().push(number);
        }
        places
            .headings
            .extend(note.headings.iter().enumerate().map(|(at, heading)| (heading.span.start, at)));
        places.tasks.extend(note.tasks.iter().enumerate().map(|(at, task)| (task.line, at)));
        for (number, link) in note.links.iter().enumerate() {
            places.links.insert((link.span.start, link.span.end), number);
            if link.form == LinkForm::Refdef {
                places.definitions.entry(link.dest_span.of(text).to_owned()).or_insert(number);
            }
        }
        places
    }
}

struct Writer<'a> {
    text: &'a str,
    note: &'a Note,
    lines: &'a Lines,
    pages: &'a dyn LinkPages,
    out: String,
    marks: Vec<(Span, Mark)>,
    /// The first mark that is not behind the position.
    next_mark: usize,
    /// Nothing that begins before this offset is shown.
    skip: usize,
    /// Whether each open element is shown.
    shown: Vec<bool>,
    headings: Vec<String>,
    places: Places,
    quotes: Vec<Quote>,
    title: Option<CalloutTitle>,
    /// The offset in `out` at which the open paragraph begins, and after which its content does.
    paragraph: Option<(usize, usize)>,
    /// The elements that the open links were written as; `None` for one that has no element.
    links: Vec<Option<&'static str>>,
    is_marked: bool,
    in_code: bool,
    in_table_head: bool,
    alignments: Vec<Alignment>,
    column: usize,
    cleaner: HtmlCleaner,
    footnotes: Footnotes,
    /// What is open around the footnotes within lines that are open.
    around: Vec<Surroundings>,
}

impl<'a> Writer<'a> {
    fn new(
        (text, note, lines): (&'a str, &'a Note, &'a Lines),
        marks: Vec<(Span, Mark)>,
        footnotes: Footnotes,
        pages: &'a dyn LinkPages,
    ) -> Self {
        Self {
            text,
            note,
            lines,
            pages,
            out: String::with_capacity(text.len() * 2),
            marks,
            next_mark: 0,
            skip: 0,
            shown: Vec::new(),
            headings: heading_ids(note),
            places: Places::of(text, note),
            quotes: Vec::new(),
            title: None,
            paragraph: None,
            links: Vec::new(),
            is_marked: false,
            in_code: false,
            in_table_head: false,
            alignments: Vec::new(),
            column: 0,
            cleaner: HtmlCleaner::default(),
            footnotes,
            around: Vec::new(),
        }
    }

    fn event(&mut self, event: &Event<'_>, span: Span) {
        self.pass_marks(span.start);
        match event {
            Event::Start(tag) => {
                let is_shown = span.start >= self.skip;
                self.shown.push(is_shown);
                if is_shown {
                    self.start(tag, span);
                }
            }
            Event::End(end) => {
                if self.shown.pop().unwrap_or(false) {
                    self.end(*end, span);
                }
            }
            Event::Text(value) if self.in_code => self.out.push_str(&escape_text(value)),
            Event::Text(value) => self.inline_text(value, span),
            _ if span.start < self.skip => {}
            Event::Code(value) => {
                self.end_title_before(span.start);
                self.out.push_str(&format!("<code>{}</code>", escape_text(value)));
            }
            Event::Html(raw) => {
                let mut cleaner = std::mem::take(&mut self.cleaner);
                cleaner.write(raw, &mut self.out);
                self.cleaner = cleaner;
            }
            Event::InlineHtml(raw) => HtmlCleaner::default().write(raw, &mut self.out),
            Event::FootnoteReference(id) => {
                self.end_title_before(span.start);
                if let Some(number) = self.footnotes.number(id) {
                    self.refer_to_footnote(number);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if self.title.is_some() {
                    self.end_title_before(span.end);
                } else {
                    self.out.push_str(if *event == Event::HardBreak { "<br>\n" } else { "\n" });
                }
            }
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::InlineMath(_) | Event::DisplayMath(_) | Event::TaskListMarker(_) => {}
        }
    }

    /// Hides what a mark covers that begins before an offset, such as a comment over several blocks.
    fn pass_marks(&mut self, at: usize) {
        while self.marks.get(self.next_mark).is_some_and(|(span, _)| span.end <= at) {
            self.next_mark += 1;
        }
        if let Some((span, Mark::Hidden)) = self.marks.get(self.next_mark).filter(|(span, _)| span.start < at)
        {
            self.skip = self.skip.max(span.end);
        }
    }

    fn line(&self, at: usize) -> usize {
        self.lines.of(at)
    }

    /// Returns the attributes of a block: its line, and the block id that names it.
    fn block_attributes(&self, span: Span, kinds: &[BlockKind]) -> String {
        let here = self.places.blocks.get(&span.start).into_iter().flatten();
        let mut blocks = here.filter_map(|number| self.note.blocks.get(*number));
        let named = blocks.find(|block| kinds.contains(&block.kind)).filter(|_| self.pages.has_ids());
        let id = named.map_or_else(String::new, |block| format!(" id=\"^{}\"", escape_attribute(&block.id)));
        format!(" data-line=\"{}\"{id}", self.line(span.start))
    }

    fn start(&mut self, tag: &Tag<'_>, span: Span) {
        match tag {
            Tag::Paragraph => self.start_paragraph(span),
            Tag::Heading { level, .. } => {
                let number = self.places.headings.get(&span.start);
                let id =
                    number.and_then(|number| self.headings.get(*number)).filter(|_| self.pages.has_ids());
                let id = id.map_or_else(String::new, |id| format!(" id=\"{}\"", escape_attribute(id)));
                self.out.push_str(&format!(
                    "<h{}{id} data-line=\"{}\">",
                    *level as u8,
                    self.line(span.start)
                ));
            }
            Tag::BlockQuote(_) => self.start_quote(span),
            Tag::CodeBlock(kind) => self.start_code(kind, span),
            Tag::HtmlBlock => self.cleaner = HtmlCleaner::default(),
            Tag::List(start) => {
                let attributes = self.block_attributes(span, &[BlockKind::List]);
                let start = start
                    .filter(|start| *start != 1)
                    .map_or_else(String::new, |at| format!(" start=\"{at}\""));
                let name = if matches!(tag, Tag::List(Some(_))) { "ol" } else { "ul" };
                self.out.push_str(&format!("<{name}{start}{attributes}>\n"));
            }
            Tag::Item => self.start_item(span),
            Tag::FootnoteDefinition(id) => {
                let number = self.footnotes.number(id).unwrap_or_default();
                self.footnotes.begin(number, &mut self.out);
            }
            Tag::Table(alignments) => {
                self.alignments.clone_from(alignments);
                let attributes = self.block_attributes(span, &[BlockKind::Table]);
                self.out.push_str(&format!("<table{attributes}>\n"));
            }
            Tag::TableHead => {
                (self.in_table_head, self.column) = (true, 0);
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.out.push_str("<tr>");
            }
            Tag::TableCell => {
                let align = match self.alignments.get(self.column) {
                    Some(Alignment::Left) => " align=\"left\"",
                    Some(Alignment::Center) => " align=\"center\"",
                    Some(Alignment::Right) => " align=\"right\"",
                    _ => "",
                };
                self.column += 1;
                self.out.push_str(&format!("<{}{align}>", self.cell()));
            }
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            Tag::Link { link_type, dest_url, .. } => self.start_link(*link_type, dest_url, span),
            Tag::Image { dest_url, .. } => self.image(dest_url, span),
            _ => {}
        }
    }

    fn cell(&self) -> &'static str {
        if self.in_table_head { "th" } else { "td" }
    }

    fn end(&mut self, tag: TagEnd, span: Span) {
        match tag {
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::Heading(level) => {
                self.end_highlight();
                self.out.push_str(&format!("</h{}>\n", level as u8));
            }
            TagEnd::BlockQuote(_) => self.end_quote(),
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.out.push_str("</code></pre>\n");
            }
            TagEnd::List(is_ordered) => self.out.push_str(if is_ordered { "</ol>\n" } else { "</ul>\n" }),
            TagEnd::Item => {
                self.end_highlight();
                self.out.push_str("</li>\n");
            }
            TagEnd::FootnoteDefinition => self.footnotes.end(&mut self.out),
            TagEnd::Table => self.out.push_str("</tbody></table>\n"),
            TagEnd::TableHead => {
                self.in_table_head = false;
                self.out.push_str("</tr></thead><tbody>\n");
            }
            TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => {
                self.end_highlight();
                self.out.push_str(&format!("</{}>", self.cell()));
            }
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link => {
                if let Some(Some(name)) = self.links.pop() {
                    self.out.push_str(&format!("</{name}>"));
                }
                self.skip_to(span.end);
            }
            _ => {}
        }
    }

    /// Hides what lies before an offset, except marks behind it.
    fn skip_to(&mut self, at: usize) {
        self.skip = self.skip.max(at);
    }

    // Blocks.

    fn start_paragraph(&mut self, span: Span) {
        if self.title.is_some() {
            return;
        }
        let kinds = [BlockKind::Paragraph, BlockKind::Other, BlockKind::Math];
        let attributes = self.block_attributes(span, &kinds);
        let begin = self.out.len();
        self.out.push_str(&format!("<p{attributes}>"));
        self.paragraph = Some((begin, self.out.len()));
    }

    fn end_paragraph(&mut self) {
        self.end_highlight();
        if self.title.is_some() {
            self.end_title();
            // The paragraph goes on after the title only if it has another line.
            self.out.push('\n');
            return;
        }
        let Some((begin, content)) = self.paragraph.take() else { return };
        if self.out.get(content..).is_some_and(|written| written.trim().is_empty()) {
            self.out.truncate(begin);
        } else {
            self.out.push_str("</p>\n");
        }
    }

    fn start_quote(&mut self, span: Span) {
        let inner = span.of(self.text);
        let indent = inner.len() - inner.trim_start_matches(['>', ' ', '\t']).len();
        let line = inner.get(indent..).and_then(|rest| rest.lines().next()).unwrap_or("");
        let Some(len) = callout_marker(line) else {
            let attributes = self.block_attributes(span, &[BlockKind::Quote]);
            self.out.push_str(&format!("<blockquote{attributes}>\n"));
            self.quotes.push(Quote::Plain);
            return;
        };
        let marker = line.get(..len).unwrap_or(line);
        let kind =
            marker.trim_start_matches("[!").split([']', '|']).next().unwrap_or("note").trim().to_lowercase();
        let attributes = self.block_attributes(span, &[BlockKind::Callout, BlockKind::Quote]);
        let name = escape_attribute(&kind);
        let is_summary = marker.ends_with(['+', '-']);
        let open = if marker.ends_with('+') { " open" } else { "" };
        self.out.push_str(&match is_summary {
            true => format!("<details class=\"callout\" data-callout=\"{name}\"{attributes}{open}>\n<summary class=\"callout-title\">"),
            false => format!("<div class=\"callout\" data-callout=\"{name}\"{attributes}>\n<div class=\"callout-title\">"),
        });
        let title = line.get(len..).unwrap_or("").trim();
        if title.is_empty() {
            let mut letters = kind.chars();
            let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
            self.out.push_str(&escape_text(&format!("{first}{}", letters.as_str())));
        }
        let start = span.start + indent;
        self.quotes.push(if is_summary { Quote::Foldable } else { Quote::Callout });
        self.title = Some(CalloutTitle { end: start + line.len(), is_summary });
        let blanks = line.bytes().skip(len).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        // The block itself has begun; only its marker is hidden.
        self.hide(Span::new(start, start + len + blanks));
    }

    /// Hides a part of the text that is still to come.
    fn hide(&mut self, span: Span) {
        let at = self.next_mark
            + self
                .marks
                .get(self.next_mark..)
                .map_or(0, |rest| rest.partition_point(|(other, _)| other.start < span.start));
        self.marks.insert(at, (span, Mark::Hidden));
    }

    /// Ends the title of a callout, if the text at an offset is behind it.
    fn end_title_before(&mut self, at: usize) {
        if self.title.is_some_and(|title| at > title.end) {
            self.end_title();
            let begin = self.out.len();
            self.out.push_str("<p>");
            self.paragraph = Some((begin, self.out.len()));
        }
    }

    fn end_title(&mut self) {
        self.end_highlight();
        if let Some(title) = self.title.take() {
            self.out.push_str(if title.is_summary { "</summary>\n" } else { "</div>\n" });
            self.out.push_str("<div class=\"callout-body\">\n");
        }
    }

    fn end_quote(&mut self) {
        if self.title.is_some() {
            self.end_title();
        }
        self.out.push_str(match self.quotes.pop() {
            Some(Quote::Callout) => "</div></div>\n",
            Some(Quote::Foldable) => "</div></details>\n",
            _ => "</blockquote>\n",
        });
    }

    fn start_code(&mut self, kind: &CodeBlockKind<'_>, span: Span) {
        let info = match kind {
            CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or(""),
            CodeBlockKind::Indented => "",
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '#' | '.');
        let language: String = info.chars().take_while(|c| is_name(*c)).collect::<String>().to_lowercase();
        let attributes = self.block_attributes(span, &[BlockKind::Code]);
        let source = if language == "mermaid" { " class=\"mermaid-source\"" } else { "" };
        let class =
            if language.is_empty() { String::new() } else { format!(" class=\"language-{language}\"") };
        self.out.push_str(&format!("<pre{source}{attributes}><code{class}>"));
        self.in_code = true;
    }

    fn start_item(&mut self, span: Span) {
        let attributes = self.block_attributes(span, &[BlockKind::ListItem]);
        let line = self.line(span.start);
        let task = self.places.tasks.get(&line).and_then(|number| self.note.tasks.get(*number));
        let Some(task) = task else {
            self.out.push_str(&format!("<li{attributes}>"));
            return;
        };
        let status = escape_attribute(&task.status.to_string());
        let checked = if task.status == ' ' { "" } else { " checked" };
        self.out.push_str(&format!(
            "<li class=\"task\" data-task=\"{status}\"{attributes}><input type=\"checkbox\" disabled{checked}> "
        ));
        let source = task.span.of(self.text);
        let marker = source.find('[').and_then(|at| Some((at, task_marker(source.get(at..)?)?.1)));
        if let Some((at, len)) = marker {
            self.hide(Span::new(task.span.start + at, task.span.start + at + len));
        }
    }

    // Inline content.

    /// Writes the text of an event, with the marks in it.
    fn inline_text(&mut self, value: &str, span: Span) {
        let mut at = span.start.max(self.skip);
        if at >= span.end {
            return;
        }
        self.end_title_before(at);
        // A character reference is not cut.
        if span.of(self.text) != value {
            if at == span.start {
                self.plain(value);
            }
            return;
        }
        while at < span.end {
            self.pass_marks(at);
            at = at.max(self.skip);
            let next = self.marks.get(self.next_mark).copied().filter(|(mark, _)| mark.start < span.end);
            let until = next.map_or(span.end, |(mark, _)| mark.start.max(at)).min(span.end);
            if at < until {
                self.plain(Span::new(at, until).of(self.text));
            }
            let Some((mark, kind)) = next.filter(|_| at < span.end) else { return };
            if mark.start >= self.skip {
                self.mark(mark, kind);
            }
            self.next_mark += 1;
            self.skip_to(mark.end);
            at = mark.end.max(until);
        }
    }

    /// Writes plain text, in which `==` begins and ends a highlight.
    fn plain(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find("==") {
            let (before, behind) = rest.split_at(at);
            let run = behind.len() - behind.trim_start_matches('=').len();
            let (signs, after) = behind.split_at(run);
            self.out.push_str(&escape_text(before));
            let opens =
                !self.is_marked && run == 2 && !after.starts_with(char::is_whitespace) && !after.is_empty();
            let closes = self.is_marked && run == 2;
            if closes {
                self.end_highlight();
            } else if opens {
                self.is_marked = true;
                self.out.push_str("<mark>");
            } else {
                self.out.push_str(signs);
            }
            rest = after;
        }
        self.out.push_str(&escape_text(rest));
    }

    fn end_highlight(&mut self) {
        if std::mem::take(&mut self.is_marked) {
            self.out.push_str("</mark>");
        }
    }

    fn mark(&mut self, span: Span, mark: Mark) {
        match mark {
            Mark::Hidden => {}
            Mark::FootnoteStart(number) => self.begin_inline_footnote(number, span.start),
            Mark::FootnoteEnd => self.end_inline_footnote(),
            Mark::Math(signs) => {
                let tex = Span::new(span.start + signs, span.end - signs).of(self.text);
                let class = if signs == 2 { "math display" } else { "math inline" };
                self.out.push_str(&format!("<span class=\"{class}\">{}</span>", escape_text(tex.trim())));
            }
            Mark::Tag(number) => {
                let Some(tag) = self.note.tags.get(number) else { return };
                let shown = format!("#{}", escape_text(&tag.name));
                let address = self.pages.tag_address(&tag.name);
                self.anchor(
                    "tag",
                    &address,
                    &format!("data-tag=\"{}\"", escape_attribute(&tag.name)),
                    &shown,
                );
            }
            Mark::Url => {
                let url = span.of(self.text);
                match self.pages.web_address(url).filter(|_| self.links.is_empty()) {
                    Some(address) => self.external("external", &address, &escape_text(url)),
                    None => self.out.push_str(&escape_text(url)),
                }
            }
            Mark::Link(number) => {
                let Some(link) = self.note.links.get(number) else { return };
                if link.embed {
                    let embedded = self.pages.embed(number, link);
                    self.embed(&embedded);
                } else {
                    let shown = escape_text(link.display.as_deref().unwrap_or(&link.path));
                    self.link_to(number, link, &shown);
                }
            }
        }
    }

    /// Writes a link of the vault with its text.
    fn link_to(&mut self, number: usize, link: &Link, shown: &str) {
        if let Some(address) = self.pages.web_address(&link.path).filter(|_| link.is_external()) {
            return self.external("external", &address, shown);
        }
        let (class, address, data) = attributes_of(&self.pages.target(number, link), link);
        self.anchor(class, &address, &data, shown);
    }

    /// Writes a link, or its text alone within another link.
    fn anchor(&mut self, class: &str, address: &str, data: &str, shown: &str) {
        if !self.links.is_empty() {
            return self.out.push_str(shown);
        }
        let address = if address.is_empty() {
            String::new()
        } else {
            format!(" href=\"{}\"", escape_attribute(address))
        };
        self.out.push_str(&format!("<a class=\"{class}\"{address} {data}>{shown}</a>"));
    }

    fn external(&mut self, class: &str, address: &str, shown: &str) {
        self.anchor(class, address, "rel=\"noopener noreferrer\" target=\"_blank\"", shown);
    }

    /// Writes an embed. A block ends the paragraph around it, which goes on behind it.
    fn embed(&mut self, embedded: &EmbedHtml) {
        let paragraph = self.paragraph.filter(|_| embedded.is_block && self.links.is_empty());
        let Some((begin, content)) = paragraph else {
            self.out.push_str(&embedded.html);
            return;
        };
        self.end_highlight();
        if self.out.get(content..).is_some_and(|written| written.trim().is_empty()) {
            self.out.truncate(begin);
        } else {
            self.out.push_str("</p>\n");
        }
        self.out.push_str(&embedded.html);
        let begin = self.out.len();
        self.out.push_str("<p>");
        self.paragraph = Some((begin, self.out.len()));
    }

    /// Finds the link of a Markdown link, by its place or, for one that names a definition, by its destination.
    fn markdown_link(&self, span: Span, destination: &str) -> Option<(usize, &'a Link)> {
        let here = self.places.links.get(&(span.start, span.end));
        let number = *here.or_else(|| self.places.definitions.get(destination))?;
        Some((number, self.note.links.get(number)?))
    }

    fn start_link(&mut self, link_type: LinkType, destination: &str, span: Span) {
        self.end_title_before(span.start);
        let is_auto = matches!(link_type, LinkType::Autolink | LinkType::Email);
        let found = if is_auto { None } else { self.markdown_link(span, destination) };
        let mail = format!("mailto:{destination}");
        let destination = if matches!(link_type, LinkType::Email) { &mail } else { destination };
        let attributes = match found {
            _ if !self.links.is_empty() => None,
            Some((number, link)) => {
                let (class, address, data) = attributes_of(&self.pages.target(number, link), link);
                let address = match address.as_str() {
                    "" => String::new(),
                    address => format!(" href=\"{}\"", escape_attribute(address)),
                };
                Some(format!("class=\"{class}\"{address} {data}"))
            }
            None => self.pages.web_address(destination).map(|address| {
                let address = escape_attribute(&address);
                format!("class=\"external\" href=\"{address}\" rel=\"noopener noreferrer\" target=\"_blank\"")
            }),
        };
        match attributes {
            Some(attributes) => {
                self.out.push_str(&format!("<a {attributes}>"));
                self.links.push(Some("a"));
            }
            None => self.links.push(None),
        }
    }

    /// Writes an image or another embed of Markdown. Its label is not shown again.
    fn image(&mut self, destination: &str, span: Span) {
        self.end_title_before(span.start);
        let source = span.of(self.text);
        let label = source.strip_prefix("![").and_then(|rest| rest.split(']').next()).unwrap_or("");
        match self.markdown_link(span, destination) {
            Some((number, link)) => {
                let embedded = self.pages.embed(number, link);
                self.embed(&embedded);
            }
            None => {
                let shown = if label.trim().is_empty() { destination } else { label };
                match self.pages.web_address(destination) {
                    Some(address) => self.external("external remote-image", &address, &escape_text(shown)),
                    None => self.out.push_str(&escape_text(label)),
                }
            }
        }
        self.skip_to(span.end);
    }

    // Footnotes.

    fn refer_to_footnote(&mut self, number: usize) {
        let is_linked = self.pages.has_ids() && self.links.is_empty();
        self.footnotes.refer(number, is_linked, &mut self.out);
    }

    /// Writes the reference to a footnote within a line, and begins its text, which is at the end of the page.
    fn begin_inline_footnote(&mut self, number: usize, at: usize) {
        self.refer_to_footnote(number);
        self.around.push(Surroundings {
            is_marked: std::mem::take(&mut self.is_marked),
            title: self.title.take(),
            paragraph: self.paragraph.take(),
        });
        self.footnotes.begin(number, &mut self.out);
        self.out.push_str(&format!("<p data-line=\"{}\">", self.line(at)));
        self.paragraph = Some((0, self.out.len()));
    }

    fn end_inline_footnote(&mut self) {
        let Some(Surroundings { is_marked, title, paragraph }) = self.around.pop() else { return };
        self.end_paragraph();
        self.footnotes.end(&mut self.out);
        (self.is_marked, self.title, self.paragraph) = (is_marked, title, paragraph);
    }

    fn finish(mut self) -> String {
        while !self.around.is_empty() {
            self.end_inline_footnote();
        }
        self.footnotes.finish(self.pages.has_ids(), &mut self.out);
        self.out
    }
}

/// Returns the class, the address and the other attributes of a link.
fn attributes_of(target: &LinkTarget, link: &Link) -> (&'static str, String, String) {
    match target {
        LinkTarget::File { address, path } => {
            ("internal", address.clone(), format!("data-path=\"{}\"", escape_attribute(path)))
        }
        LinkTarget::Nowhere => {
            let written = format!("{}{}", link.path, link.subpath);
            ("internal unresolved", String::new(), format!("data-link=\"{}\"", escape_attribute(&written)))
        }
    }
}

/// Lists what is not shown as it is written, by place.
fn marks_of(text: &str, note: &Note) -> Vec<(Span, Mark)> {
    let mut marks: Vec<(Span, Mark)> = note.comments.iter().map(|span| (*span, Mark::Hidden)).collect();
    for piece in &note.pieces {
        let signs = |sign: &str| {
            let before = text.get(..piece.span.start).is_some_and(|before| before.ends_with(sign));
            before && text.get(piece.span.end..).is_some_and(|after| after.starts_with(sign))
        };
        let around = |len: usize| Span::new(piece.span.start.saturating_sub(len), piece.span.end + len);
        match piece.kind {
            PieceKind::Math if signs("$$") => marks.push((around(2), Mark::Math(2))),
            PieceKind::Math if signs("$") => marks.push((around(1), Mark::Math(1))),
            PieceKind::Url => marks.push((piece.span, Mark::Url)),
            _ => {}
        }
    }
    for (number, link) in note.links.iter().enumerate() {
        if link.form == LinkForm::Wiki && !link.in_comment {
            marks.push((link.span, Mark::Link(number)));
        }
    }
    let body_tags = note.tags.iter().enumerate().filter(|(_, tag)| !tag.in_frontmatter);
    marks.extend(body_tags.map(|(number, tag)| (tag.span, Mark::Tag(number))));
    for block in &note.blocks {
        let id = block.id_span;
        marks.push((Span::new(id.start.saturating_sub(1), id.end), Mark::Hidden));
    }
    // Of two marks at one place the longer one counts; one within another is passed with it.
    marks.sort_by_key(|(span, _)| (span.start, usize::MAX - span.end));
    let mut end = 0;
    marks.retain(|(span, _)| {
        let is_outside = span.start >= end;
        end = end.max(span.end);
        is_outside
    });
    marks
}
