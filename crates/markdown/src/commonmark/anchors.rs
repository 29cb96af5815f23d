//! Headings as a web page shows them, and the names that HTML in a note gives to places of it.

use pulldown_cmark::{BrokenLink, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::OPTIONS;
use super::html_attributes::attributes;
use super::parser_input::parser_input;
use crate::line::Lines;

/// A place of a note that a link can name on a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePlace {
    /// A heading, also one inside a quote or list.
    Heading {
        /// The offset of its first byte.
        start: usize,
        /// Its text without markup.
        text: String,
        /// The id in its attributes, as in `# Title {#id}` or `# Title {id=id}`, if they are read.
        id: Option<String>,
    },
    /// An `id` or `name` of an HTML element.
    Element {
        /// The offset of the HTML that has it.
        start: usize,
        /// The id or name.
        name: String,
    },
}

/// Lists the places of a body that begins at `body_start`, in order.
///
/// `with_attributes` reads attributes behind headings, as mdBook and site generators do and GitHub does not.
pub fn page_places(text: &str, body_start: usize, with_attributes: bool) -> Vec<PagePlace> {
    let input = parser_input(text, body_start, &Lines::new(text));
    let mut options = OPTIONS;
    options.set(Options::ENABLE_HEADING_ATTRIBUTES, with_attributes);
    // A reference that is defined nowhere in the body shows as text, and its brackets are not a part of a slug.
    let undefined = |_: BrokenLink<'_>| Some((CowStr::Borrowed(""), CowStr::Borrowed("")));
    let parser =
        Parser::new_with_broken_link_callback(&input.body, options, Some(undefined)).into_offset_iter();
    let mut places = Vec::new();
    let mut heading: Option<(usize, String, Option<String>)> = None;
    let mut images = 0usize;
    for (event, range) in parser {
        match event {
            Event::Start(Tag::Heading { id, attrs, .. }) => {
                let stated = attrs.into_iter().find(|(name, _)| **name == *"id").and_then(|(_, value)| value);
                let id = id.or(stated).map(|id| id.trim_matches('"').to_owned());
                heading = Some((body_start + range.start, String::new(), id));
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
                let start = body_start + range.start;
                let names = element_names(&markup).into_iter();
                places.extend(names.map(|name| PagePlace::Element { start, name }));
            }
            _ => {}
        }
    }
    places
}

/// Lists the values of `id` and `name` in the tags of some HTML.
fn element_names(markup: &str) -> Vec<String> {
    let is_name = |name: &str| name.eq_ignore_ascii_case("id") || name.eq_ignore_ascii_case("name");
    let named = attributes(markup).into_iter().filter(|attribute| is_name(attribute.name));
    named.map(|named| named.value.of(markup).to_owned()).filter(|name| !name.is_empty()).collect()
}
