//! Sanitizes the HTML of notes: a list of elements, attributes and addresses, and nothing else.
//!
//! The only user of ammonia.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::Builder;

/// The elements that a rendered note has.
const ELEMENTS: [&str; 68] = [
    "a",
    "abbr",
    "audio",
    "b",
    "big",
    "blockquote",
    "br",
    "cite",
    "code",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "iframe",
    "img",
    "input",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
    "var",
    "video",
    "wbr",
    "caption",
    "col",
    "colgroup",
    "figure",
    "figcaption",
    "bdi",
    "bdo",
    "ruby",
    "rp",
    "rt",
    "time",
    "tfoot",
];
/// The elements whose content is dropped, too.
const DROPPED: [&str; 6] = ["script", "style", "template", "noscript", "title", "textarea"];
/// The attributes of all elements.
const COMMON: [&str; 8] =
    ["class", "id", "data-callout", "data-line", "data-link", "data-path", "data-tag", "data-task"];
/// The schemes of links.
const SCHEMES: [&str; 4] = ["http", "https", "mailto", "obsidian"];
/// The beginnings of ids that the renderer gives.
const IDS: [&str; 8] = ["h-", "^", "fn-", "fnref-", "page=", "slide=", "sheet=", "chapter="];
/// The beginning of addresses that are loaded.
const RAW: &str = "/api/v1/raw/";

static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let attributes: HashMap<&str, HashSet<&str>> = HashMap::from([
        ("a", HashSet::from(["href", "rel", "target", "download"])),
        ("audio", HashSet::from(["src", "controls", "preload"])),
        ("details", HashSet::from(["open"])),
        ("iframe", HashSet::from(["src", "title"])),
        ("img", HashSet::from(["src", "alt", "width", "height", "loading"])),
        ("input", HashSet::from(["type", "checked", "disabled"])),
        ("ol", HashSet::from(["start"])),
        ("td", HashSet::from(["align"])),
        ("th", HashSet::from(["align"])),
        ("video", HashSet::from(["src", "controls", "preload", "width", "height"])),
    ]);
    let mut builder = Builder::default();
    builder
        .tags(HashSet::from(ELEMENTS))
        .clean_content_tags(HashSet::from(DROPPED))
        .tag_attributes(attributes)
        .generic_attributes(HashSet::from(COMMON))
        .allowed_classes(HashMap::new())
        .url_schemes(HashSet::from(SCHEMES))
        .link_rel(None)
        .strip_comments(true)
        .attribute_filter(|element, attribute, value| {
            keeps(element, attribute, value).then_some(Cow::Borrowed(value))
        });
    builder
});

/// Returns whether an attribute may have a value.
fn keeps(element: &str, attribute: &str, value: &str) -> bool {
    match (element, attribute) {
        (_, "src") => is_own_file(value),
        (_, "href") => is_link(value),
        (_, "id") => IDS.iter().any(|beginning| value.starts_with(beginning)),
        ("input", "type") => value == "checkbox",
        ("a", "target") => value == "_blank",
        (_, "width" | "height" | "start") => {
            value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => true,
    }
}

/// Returns whether an address is that of a file of the vault.
fn is_own_file(address: &str) -> bool {
    address.strip_prefix(RAW).is_some_and(|path| {
        !path.contains(['\\', '"', '<', '>']) && !path.split('/').any(|part| part == "..")
    })
}

/// Returns whether a link may lead to an address: a page of ours, a part of this one, or the web.
fn is_link(address: &str) -> bool {
    let is_own = ["/note/", "/search?", RAW].iter().any(|beginning| address.starts_with(beginning));
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    is_own
        || address.starts_with('#')
        || scheme.is_some_and(|scheme| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Returns the HTML without anything that could run, load or look like the page's own.
pub(crate) fn sanitized(html: &str) -> String {
    SANITIZER.clean(html).to_string()
}
