//! Headings as a web page shows them, and the names that HTML in a note gives to places of it.

use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::OPTIONS;
use super::parser_input::parser_input;
use crate::text::line::Lines;

/// A place of a note that a link can name on a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePlace {
    /// A heading, also one inside a quote or list.
    Heading {
        /// The offset of its first byte.
        start: usize,
        /// Its text without markup.
        text: String,
        /// The id in its attributes, as in `# Title {#id}`, if they are read.
        id: Option<String>,
    },
    /// An `id` or `name` of an HTML element.
    Element(String),
}

/// Lists the places of a body that begins at `body_start`, in order.
///
/// `with_attributes` reads attributes behind headings, as mdBook and site generators do and GitHub does not.
pub fn page_places(text: &str, body_start: usize, with_attributes: bool) -> Vec<PagePlace> {
    let input = parser_input(text, body_start, &Lines::new(text));
    let mut options = OPTIONS;
    options.set(Options::ENABLE_HEADING_ATTRIBUTES, with_attributes);
    // A reference that is defined nowhere in the body shows as text, and its brackets are no part of a slug.
    let undefined = |_: BrokenLink<'_>| Some((CowStr::Borrowed(""), CowStr::Borrowed("")));
    let parser =
        Parser::new_with_broken_link_callback(&input.body, options, Some(undefined)).into_offset_iter();
    let mut places = Vec::new();
    let mut heading: Option<(usize, String, Option<String>)> = None;
    let mut images = 0usize;
    for (event, range) in parser {
        match event {
            Event::Start(Tag::Heading { id, .. }) => {
                heading = Some((body_start + range.start, String::new(), id.map(|id| id.to_string())));
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((start, text, id)) = heading.take() {
                    places.push(PagePlace::Heading { start, text: text.trim().to_owned(), id });
                }
            }
            Event::Start(Tag::Image { .. }) => images += 1,
            Event::End(TagEnd::Image) => images = images.saturating_sub(1),
            // The text of an image is an attribute of it.
            Event::Text(part) | Event::Code(part) if images == 0 => {
                if let Some((_, text, _)) = &mut heading {
                    text.push_str(&part);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, text, _)) = &mut heading {
                    text.push(' ');
                }
            }
            Event::Html(markup) | Event::InlineHtml(markup) => {
                places.extend(element_names(&markup).into_iter().map(PagePlace::Element));
            }
            _ => {}
        }
    }
    places
}

/// Lists the values of `id` and `name` in the tags of some HTML.
fn element_names(markup: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let tag = rest.get(at + 1..).unwrap_or("");
        let end = tag_end(tag);
        if tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
            attributes(tag.get(..end).unwrap_or(tag), &mut names);
        }
        rest = tag.get(end..).unwrap_or("");
    }
    names
}

/// Returns the offset of the `>` that ends a tag, or the length of the text.
fn tag_end(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return at,
            _ => {}
        }
    }
    tag.len()
}

/// Adds the values of `id` and `name` in a tag to `names`.
fn attributes(tag: &str, names: &mut Vec<String>) {
    let name_end = tag.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(tag.len());
    let mut rest = tag.get(name_end..).unwrap_or("");
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let end =
            rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/')).unwrap_or(rest.len());
        if end == 0 {
            return;
        }
        let name = rest.get(..end).unwrap_or("");
        rest = rest.get(end..).unwrap_or("").trim_start();
        let Some(value) = rest.strip_prefix('=') else { continue };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = value.get(1..).unwrap_or("");
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            _ => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        if (name.eq_ignore_ascii_case("id") || name.eq_ignore_ascii_case("name")) && !value.is_empty() {
            names.push(value.to_owned());
        }
        rest = after;
    }
}
