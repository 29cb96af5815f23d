//! Raw HTML of a note as it is shown on a page: the tags of a short list without their attributes, and the text.
//!
//! Everything else of the HTML is left out, and text is escaped. The content of scripts and style sheets is not text.

/// Escapes a text for the content of an element.
pub fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes a text for the value of an attribute in double quotes.
pub fn escape_attribute(text: &str) -> String {
    escape_text(text).replace('"', "&quot;")
}

/// The elements that raw HTML may use. None has an effect beyond the look of its text.
const ALLOWED: [&str; 32] = [
    "abbr",
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
    "dl",
    "dt",
    "em",
    "hr",
    "i",
    "ins",
    "kbd",
    "mark",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "small",
    "strong",
    "sub",
    "summary",
    "sup",
    "u",
    "var",
    "wbr",
];
/// The elements whose content is not text.
const HIDDEN: [&str; 7] = ["script", "style", "svg", "math", "template", "iframe", "noscript"];

/// The state between two parts of one HTML block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HtmlCleaner {
    /// What ends the hidden content that is open: the name of an element, or `--` for a comment.
    hidden_until: Option<&'static str>,
    /// Whether a tag is open that the part before began.
    in_tag: bool,
}

impl HtmlCleaner {
    /// Writes a part of raw HTML: allowed tags without attributes, and text.
    pub(super) fn write(&mut self, html: &str, out: &mut String) {
        let mut rest = html;
        while !rest.is_empty() {
            rest = if let Some(name) = self.hidden_until {
                self.skip_hidden(name, rest)
            } else if self.in_tag {
                self.skip_tag(rest)
            } else {
                let at = rest.find('<').unwrap_or(rest.len());
                let (text, tag) = rest.split_at(at);
                out.push_str(&escape_text(&with_entities(text)));
                self.tag(tag, out)
            };
        }
    }

    /// Returns what follows the hidden content, if it ends in `rest`.
    fn skip_hidden<'t>(&mut self, name: &str, rest: &'t str) -> &'t str {
        let end = match name {
            "--" => rest.find("-->").map(|at| at + 3),
            name => {
                let is_close = |at: &usize| {
                    let begun = rest.get(at + 2..at + 2 + name.len());
                    begun.is_some_and(|begun| begun.eq_ignore_ascii_case(name))
                };
                let close = rest.match_indices("</").map(|(at, _)| at).find(is_close);
                close.map(|at| {
                    rest.get(at..).and_then(|tail| tail.find('>')).map_or(rest.len(), |end| at + end + 1)
                })
            }
        };
        if end.is_some() {
            self.hidden_until = None;
        }
        end.and_then(|end| rest.get(end..)).unwrap_or("")
    }

    /// Returns what follows the open tag, if it ends in `rest`.
    fn skip_tag<'t>(&mut self, rest: &'t str) -> &'t str {
        match rest.find('>') {
            Some(end) => {
                self.in_tag = false;
                rest.get(end + 1..).unwrap_or("")
            }
            None => "",
        }
    }

    /// Writes the tag that `rest` begins with, and returns what follows it.
    fn tag<'t>(&mut self, rest: &'t str, out: &mut String) -> &'t str {
        let Some(inner) = rest.strip_prefix('<') else { return rest };
        if let Some(comment) = inner.strip_prefix("!--") {
            self.hidden_until = Some("--");
            return comment;
        }
        let (slash, inner) = inner.strip_prefix('/').map_or(("", inner), |inner| ("/", inner));
        let len = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
        let name = inner.get(..len).unwrap_or("").to_ascii_lowercase();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            if slash.is_empty() && !inner.starts_with(['!', '?']) {
                out.push_str("&lt;");
                return inner;
            }
            self.in_tag = true;
            return inner;
        }
        if slash.is_empty() {
            self.hidden_until = HIDDEN.into_iter().find(|hidden| *hidden == name);
        }
        if self.hidden_until.is_none() {
            self.in_tag = true;
            if ALLOWED.contains(&name.as_str()) {
                out.push_str(&format!("<{slash}{name}>"));
            }
        }
        inner.get(len..).unwrap_or("")
    }
}

/// Replaces the character references that HTML needs by their characters; others stay as they are written.
fn with_entities(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&nbsp;", "\u{A0}")
        .replace("&amp;", "&")
}
