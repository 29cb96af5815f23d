//! Items of the lists below a heading, such as the observations of an entity. An item is a whole text, of any number of
//! lines: what is written as one item is read as the same text again.

use crate::frontmatter;
use crate::line::line_at;
use crate::path::key;
use crate::span::Span;

/// How comments and formulas begin and end whose lines are no items.
const HIDDEN: [(&str, &str); 3] = [("<!--", "-->"), ("%%", "%%"), ("$$", "$$")];

/// The markers of a list item.
const MARKERS: [char; 3] = ['-', '*', '+'];
/// The markers of fenced code.
const FENCES: [&str; 2] = ["```", "~~~"];

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListItem {
    /// The text, without the marker and the indentation of its other lines.
    pub text: String,
    /// The item from its marker to the end of its last line, without the line end.
    pub span: Span,
}

/// A heading and what is below it, up to the next heading of its level or above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSection {
    /// The section, from the first byte of its heading.
    pub span: Span,
    /// The items.
    pub items: Vec<ListItem>,
    /// The offset behind the line of the heading.
    body_start: usize,
    level: usize,
}

/// Lists the sections whose heading has a text, ignoring case.
pub fn sections(text: &str, heading: &str) -> Vec<ListSection> {
    let mut reader = SectionReader { wanted: key(heading), ..SectionReader::default() };
    let mut at = frontmatter::read(text).1;
    while at < text.len() {
        let (line, next) = line_at(text, at);
        reader.read(line, at, next);
        at = next;
    }
    reader.close_section(text.len());
    reader.sections
}

#[derive(Default)]
struct SectionReader {
    wanted: String,
    sections: Vec<ListSection>,
    section: Option<ListSection>,
    item: Option<ListItem>,
    /// The blank lines since the last line of the item.
    blank: usize,
    /// The marker of the code block that is open.
    fence: Option<String>,
    /// What ends the comment or formula in which the reader is.
    hidden: Option<&'static str>,
}

impl SectionReader {
    fn read(&mut self, line: &str, at: usize, next: usize) {
        if let Some(fence) = &self.fence {
            let closes = line.trim().starts_with(fence.as_str())
                && line.trim().trim_start_matches(['`', '~']).is_empty();
            if closes {
                self.fence = None;
            }
            return;
        }
        if let Some(end) = self.hidden {
            if line.contains(end) {
                self.hidden = None;
            }
            return;
        }
        if line.trim().is_empty() {
            self.blank += 1;
            return;
        }
        let inside = line.strip_prefix("  ").or_else(|| line.strip_prefix('\t'));
        if let (Some(inside), Some(_)) = (inside, &self.item) {
            return self.continue_item(inside, at + line.len());
        }
        if let Some((level, title)) = heading_of(line) {
            self.close_item();
            if self.section.as_ref().is_some_and(|section| level <= section.level) {
                self.close_section(at);
            }
            if self.section.is_none() && key(title) == self.wanted {
                let span = Span::new(at, next);
                self.section = Some(ListSection { span, items: Vec::new(), body_start: next, level });
            }
        } else if let Some(first) = item_of(line) {
            self.close_item();
            let span = Span::new(at, at + line.len());
            self.item = Some(ListItem { text: first.to_owned(), span });
        } else if let Some(fence) = FENCES.iter().find(|fence| line.trim_start().starts_with(**fence)) {
            self.close_item();
            let marker = line.trim_start();
            let length = marker.chars().take_while(|c| fence.starts_with(*c)).count();
            self.fence = marker.get(..length).map(str::to_owned);
        } else if let Some(end) = opens_hidden(line) {
            self.close_item();
            self.hidden = Some(end);
        } else if self.item.is_some() && self.blank == 0 && !is_rule(line) && !begins_block(line) {
            // The line goes on with the paragraph of the item.
            self.continue_item(line, at + line.len());
        } else {
            self.close_item();
        }
        self.blank = 0;
    }

    fn continue_item(&mut self, line: &str, end: usize) {
        let blank = std::mem::take(&mut self.blank);
        if let Some(item) = &mut self.item {
            item.text.extend(std::iter::repeat_n('\n', blank + 1));
            item.text.push_str(line);
            item.span.end = end;
        }
    }

    fn close_item(&mut self) {
        self.blank = 0;
        if let (Some(item), Some(section)) = (self.item.take(), &mut self.section) {
            section.items.push(item);
        }
    }

    fn close_section(&mut self, end: usize) {
        self.close_item();
        if let Some(mut section) = self.section.take() {
            section.span.end = end;
            self.sections.push(section);
        }
    }
}

/// Returns the level and the text of a heading.
fn heading_of(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
    is_heading.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

/// Returns what ends the comment or formula that a line begins and does not end.
fn opens_hidden(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let begun = HIDDEN.iter().find(|(begin, _)| line.starts_with(begin))?;
    let rest = line.get(begun.0.len()..).unwrap_or_default();
    (!rest.contains(begun.1)).then_some(begun.1)
}

/// Returns whether a line begins a block that ends the paragraph before it.
fn begins_block(line: &str) -> bool {
    let line = line.trim_start();
    let is_ordered = line.starts_with("1. ") || line.starts_with("1) ");
    let is_html = line
        .strip_prefix('<')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)));
    line.starts_with(['>', '|'])
        || is_ordered
        || is_html
        || HIDDEN.iter().any(|(begin, _)| line.starts_with(begin))
}

/// Returns whether a line is a thematic break.
fn is_rule(line: &str) -> bool {
    let marks = line.chars().filter(|c| matches!(c, '-' | '*' | '_')).count();
    marks > 2 && line.chars().all(|c| line.starts_with(c) || c == ' ')
}

/// Returns the first line of an item without its marker.
fn item_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(MARKERS)?;
    if is_rule(line) {
        return None;
    }
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix([' ', '\t']) }
}

/// Returns a text as an item of a list, without a line end.
pub fn written(text: &str) -> String {
    let mut item = String::from("-");
    for (at, line) in unix_lines(text).trim_end_matches('\n').split('\n').enumerate() {
        match (at, line.trim().is_empty()) {
            (0, _) => item.push(' '),
            (_, true) => {
                item.push('\n');
                continue;
            }
            (_, false) => item.push_str("\n  "),
        }
        item.push_str(line);
    }
    item
}

/// Returns a text as it is read from the item that is written for it: line ends are line feeds, and lines of white space
/// are empty.
pub fn item_text(text: &str) -> String {
    let mut read = String::new();
    for (at, line) in unix_lines(text).trim_end_matches('\n').split('\n').enumerate() {
        if at > 0 {
            read.push('\n');
        }
        if at == 0 || !line.trim().is_empty() {
            read.push_str(line);
        }
    }
    read.truncate(read.trim_end_matches('\n').len());
    read
}

/// Replaces all line ends by line feeds.
pub fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns a text with more items at the end of the section with a heading. A new section is put before the section `before`, or
/// at the end. The text has line feeds alone.
pub fn with_items(text: &str, heading: &str, before: &str, items: &[String]) -> String {
    let list = items.iter().map(|item| written(item)).collect::<Vec<_>>().join("\n");
    if items.is_empty() {
        return text.to_owned();
    }
    let found = sections(text, heading);
    let last_item = found.iter().rev().find_map(|section| section.items.last());
    if let Some(last) = last_item {
        return joined(text, last.span.end, "\n", &list);
    }
    if let Some(section) = found.first() {
        let inside = text.get(section.body_start..section.span.end).unwrap_or("");
        let end = section.body_start + inside.trim_end().len();
        let end = if inside.trim().is_empty() { text.get(..end).unwrap_or("").trim_end().len() } else { end };
        return joined(text, end, "\n\n", &list);
    }
    let place = sections(text, before).first().map_or(text.len(), |section| section.span.start);
    let (above, below) = text.split_at(place);
    let body_start = frontmatter::read(text).1.min(above.len());
    let mut new = match above.get(body_start..).unwrap_or("").trim() {
        "" => above.get(..body_start).unwrap_or("").to_owned(),
        _ => format!("{}\n\n", above.trim_end()),
    };
    new.push_str(&format!("## {heading}\n\n{list}\n"));
    if !below.is_empty() {
        new.push('\n');
        new.push_str(below);
    }
    new
}

/// Inserts a list at an offset, on lines of its own.
fn joined(text: &str, at: usize, gap: &str, list: &str) -> String {
    let (above, below) = text.split_at(at);
    let end = if below.is_empty() { "\n" } else { "" };
    format!("{above}{gap}{list}{end}{below}")
}

/// Returns a text without some items of the sections with a heading. A section in which nothing is left goes, too. The text has
/// line feeds alone.
pub fn without_items(text: &str, heading: &str, goes: impl Fn(&ListItem) -> bool) -> String {
    let mut new = text.to_owned();
    for section in sections(text, heading).iter().rev() {
        let gone: Vec<&ListItem> = section.items.iter().filter(|item| goes(item)).collect();
        if gone.is_empty() {
            continue;
        }
        let mut end = section.span.end;
        for item in gone.iter().rev() {
            let line_end = usize::from(new.get(item.span.end..).is_some_and(|rest| rest.starts_with('\n')));
            new.replace_range(item.span.start..item.span.end + line_end, "");
            end -= item.span.len() + line_end;
        }
        let is_empty = new.get(section.body_start..end).is_some_and(|rest| rest.trim().is_empty());
        if is_empty {
            new.replace_range(section.span.start..end, "");
            trim_gap(&mut new, section.span.start);
        }
    }
    new
}

/// Leaves one blank line where a section was removed, and none at the end of the text.
fn trim_gap(text: &mut String, at: usize) {
    let body_start = frontmatter::read(text).1;
    let above = text.get(body_start..at).unwrap_or("").trim_end().len();
    let (start, is_first) = (body_start + above, above == 0);
    let below = text.get(at..).unwrap_or("");
    let end = at + (below.len() - below.trim_start_matches('\n').len());
    let gap = match (is_first, end == text.len()) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    };
    text.replace_range(start..end, gap);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        sections(text, "Observations").into_iter().flat_map(|one| one.items).map(|item| item.text).collect()
    }

    #[test]
    fn items_are_read_as_they_were_written() {
        let said = [
            "plain",
            "",
            "two\nlines",
            "a\n\nb",
            "# no heading\n## nor this",
            "- nested\n  - more",
            "```\n- code\n```",
            "  spaces ",
            "ends\n\n",
            "\r\nreturns\r\n",
            "* * *",
            "[[Link]] and #tag",
            "\ttab\n\ttab",
            "   \nx",
        ];
        let items: Vec<String> = said.iter().map(|text| (*text).to_owned()).collect();
        for start in
            ["", "---\na: 1\n---\n", "Text.", "# T\n\n## Observations\n", "## Relations\n\n- a [[b]]\n"]
        {
            let text = with_items(start, "Observations", "Relations", &items);
            let read: Vec<String> = said.iter().map(|text| item_text(text)).collect();
            assert_eq!(texts(&text), read, "{text}");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
            let more = with_items(&text, "Observations", "Relations", &["last".to_owned()]);
            assert_eq!(texts(&more).len(), said.len() + 1, "{more}");
            let less = without_items(&more, "Observations", |item| item.text == "last");
            assert_eq!(less, text);
        }
    }

    #[test]
    fn a_section_is_what_people_write() {
        let text = "---\n- no\n---\n- no\n# observations #\n\nText.\n\n* one\n  more\nlazy\n\nText.\n\n### Work\n+ two\n***\n```\n- code\n```\n# Next\n- no\n";
        assert_eq!(texts(text), ["one\nmore\nlazy", "two"]);
    }

    #[test]
    fn what_stands_in_a_comment_or_below_an_item_is_no_part_of_one() {
        let texts_of = |text: &str| texts(text);
        assert!(texts_of("<!--\n## Observations\n- draft\n-->\n\nText.\n").is_empty());
        assert!(texts_of("%%\n## Observations\n- draft\n%%\n").is_empty());
        for below in ["> a quote", "1. first", "<div>", "<!-- x -->", "| a | b |", "$$", "%%"] {
            let text = format!("## Observations\n- gone\n{below}\n");
            assert_eq!(texts_of(&text), ["gone"], "{below}");
            let left = without_items(&text, "Observations", |_| true);
            assert!(left.contains(below), "{left}");
        }
    }

    #[test]
    fn a_section_without_items_goes() {
        let cases = [
            ("## Observations\n\n- a\n", ""),
            (
                "---\na: 1\n---\n## Observations\n\n- a\n\n## Relations\n\n- b [[c]]\n",
                "---\na: 1\n---\n## Relations\n\n- b [[c]]\n",
            ),
            ("Text.\n\n## Observations\n\n- a\n", "Text.\n"),
            ("Text.\n\n## Observations\n\n- a\n\n# More\n", "Text.\n\n# More\n"),
            ("## Observations\n\nText.\n\n- a\n", "## Observations\n\nText.\n\n"),
            ("## Observations\n\n- a\n- b\n", "## Observations\n\n- b\n"),
        ];
        for (text, left) in cases {
            assert_eq!(without_items(text, "Observations", |item| item.text == "a"), left, "{text:?}");
        }
    }
}
