//! The related section: the bullets with links that sidenote maintains at the end of a note.

use crate::edit::Edit;
use crate::frontmatter::edit::line_end;
use crate::line::Lines;
use crate::link::Link;
use crate::note::Note;
use crate::path::key;
use crate::span::Span;

/// The name and the style of the section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedSection {
    /// The name, such as `Related`.
    pub name: String,
    /// Whether a bold line begins the section, instead of a heading.
    pub bold: bool,
}

impl RelatedSection {
    fn opening(&self) -> String {
        if self.bold { format!("**{}:**", self.name) } else { format!("## {}", self.name) }
    }

    /// Finds the section: its first line, and the text after it up to the next heading or the end.
    fn find(&self, text: &str, note: &Note, lines: &Lines) -> Option<(Span, Span)> {
        let heading = note.headings.iter().rposition(|heading| key(&heading.text) == key(&self.name));
        let line_of = |at: usize| {
            let line = lines.of(at);
            Span::new(lines.start(line), lines.start(line + 1).min(text.len()))
        };
        if let Some(at) = heading {
            let whole = note.section_span(text, at)?;
            let opening = line_of(whole.start);
            return Some((opening, Span::new(opening.end, whole.end.max(opening.end))));
        }
        let body = Span::new(note.body_start, text.len());
        let bold =
            [format!("**{}:**", self.name), format!("**{}**:", self.name), format!("**{}**", self.name)];
        let mut at = body.start;
        let mut found = None;
        for line in body.of(text).split_inclusive('\n') {
            if bold.iter().any(|bold| line.trim() == bold) {
                found = Some(Span::new(at, at + line.len()));
            }
            at += line.len();
        }
        let opening = found?;
        let next = note.headings.iter().map(|heading| heading.span.start).find(|start| *start >= opening.end);
        Some((opening, Span::new(opening.end, next.unwrap_or(text.len()))))
    }
}

/// Adds a bullet with a link, given as written, at the end of the section. The section is created if it is missing.
pub fn add(text: &str, note: &Note, section: &RelatedSection, link: &str) -> Edit {
    let end = line_end(text);
    let lines = Lines::new(text);
    let bullet = format!("- {link}");
    let Some((opening, inside)) = section.find(text, note, &lines) else {
        let ends = text.is_empty() || text.ends_with('\n');
        let gap = match (text.get(note.body_start..).unwrap_or("").trim().is_empty(), ends) {
            (true, true) => String::new(),
            (false, true) => end.to_owned(),
            (_, false) => format!("{end}{end}"),
        };
        let last = if ends { end } else { "" };
        return Edit::insert(text.len(), format!("{gap}{}{end}{end}{bullet}{last}", section.opening()));
    };
    let mut at = inside.start;
    let mut last_bullet = None;
    for line in inside.of(text).split_inclusive('\n') {
        at += line.len();
        if is_bullet(line) {
            last_bullet = Some((at, line.ends_with('\n')));
        }
    }
    match last_bullet {
        Some((at, true)) => Edit::insert(at, format!("{bullet}{end}")),
        Some((at, false)) => Edit::insert(at, format!("{end}{bullet}")),
        None if opening.of(text).ends_with('\n') => Edit::insert(opening.end, format!("{end}{bullet}{end}")),
        None => Edit::insert(opening.end, format!("{end}{end}{bullet}")),
    }
}

/// Lists the links of the section that are the only content of their bullet.
pub fn bullet_links<'n>(text: &str, note: &'n Note, section: &RelatedSection) -> Vec<&'n Link> {
    let lines = Lines::new(text);
    let Some((_, inside)) = section.find(text, note, &lines) else { return Vec::new() };
    let links = sorted_links(note);
    let mut found = Vec::new();
    let mut at = inside.start;
    for line in inside.of(text).split_inclusive('\n') {
        let span = Span::new(at, at + line.len());
        at = span.end;
        let written = line.trim().get(1..).map(str::trim).filter(|_| is_bullet(line));
        found.extend(within(&links, span).find(|link| written == Some(link.span.of(text))));
    }
    found
}

/// Lists the links of a note in the order of their offsets.
fn sorted_links(note: &Note) -> Vec<&Link> {
    let mut links: Vec<&Link> = note.links.iter().collect();
    links.sort_by_key(|link| link.span.start);
    links
}

/// Returns those of sorted links that are in a part of the text.
fn within<'l, 'n>(links: &'l [&'n Link], part: Span) -> impl Iterator<Item = &'n Link> + 'l {
    let first = links.partition_point(|link| link.span.start < part.start);
    let links = links.get(first..).unwrap_or_default().iter().copied();
    links.take_while(move |link| link.span.start < part.end).filter(move |link| part.encloses(link.span))
}

/// Removes the bullets of the section that consist of one link for which `goes` returns true. The section itself is
/// removed if nothing else is left in it.
pub fn remove(text: &str, note: &Note, section: &RelatedSection, goes: impl Fn(&Link) -> bool) -> Vec<Edit> {
    let lines = Lines::new(text);
    let Some((opening, inside)) = section.find(text, note, &lines) else { return Vec::new() };
    let links = sorted_links(note);
    let mut edits = Vec::new();
    let mut is_left = false;
    let mut at = inside.start;
    for line in inside.of(text).split_inclusive('\n') {
        let span = Span::new(at, at + line.len());
        at = span.end;
        let written = line.trim();
        let bullet_links =
            within(&links, span).find(|link| written.get(1..).map(str::trim) == Some(link.span.of(text)));
        if is_bullet(line) && bullet_links.is_some_and(&goes) {
            edits.push(Edit::remove(span));
        } else {
            is_left |= !written.is_empty();
        }
    }
    if edits.is_empty() || is_left {
        return edits;
    }
    // The blank line before the section is removed too.
    let before = text.get(..opening.start).unwrap_or("");
    let blank = [("\r\n\r\n", 2), ("\n\n", 1)].into_iter().find(|(ends, _)| before.ends_with(ends));
    let is_last = inside.end == text.len();
    let unended = is_last && !text.ends_with('\n') && !before.is_empty();
    let start = match blank {
        Some((ends, _)) if unended => opening.start - ends.len(),
        Some((_, length)) => opening.start - length,
        None => opening.start,
    };
    vec![Edit::remove(Span::new(start, inside.end))]
}

fn is_bullet(line: &str) -> bool {
    ["- ", "* ", "+ "].iter().any(|sign| line.starts_with(sign))
}
