//! The attributes of the tags in raw HTML, with their places.

use crate::span::Span;

/// An attribute of a tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HtmlAttribute<'h> {
    /// The name of the tag.
    pub(crate) tag: &'h str,
    /// The name of the attribute.
    pub(crate) name: &'h str,
    /// The bytes of the value in the markup, without quotes.
    pub(crate) value: Span,
}

/// Lists the attributes with a value in some HTML. Those in comments are left out.
pub(crate) fn attributes(markup: &str) -> Vec<HtmlAttribute<'_>> {
    let mut found = Vec::new();
    // Most tags have no attribute.
    if memchr::memchr(b'=', markup.as_bytes()).is_none() {
        return found;
    }
    let mut at = 0;
    while let Some(open) = markup.get(at..).and_then(|rest| memchr::memchr(b'<', rest.as_bytes())) {
        let start = at + open + 1;
        let rest = markup.get(start..).unwrap_or("");
        if let Some(comment) = rest.strip_prefix("!--") {
            let len = comment.find("-->").map_or(comment.len(), |end| end + 3);
            at = start + 3 + len;
            continue;
        }
        let end = tag_end(rest);
        if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            of_tag(markup, Span::new(start, start + end), &mut found);
        }
        at = start + end;
    }
    found
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

/// Adds the attributes of the tag whose content, without `<` and `>`, is at `span`.
fn of_tag<'h>(markup: &'h str, span: Span, found: &mut Vec<HtmlAttribute<'h>>) {
    let inside = span.of(markup);
    let is_gap = |c: char| c.is_ascii_whitespace() || c == '/';
    let name_end = inside.find(is_gap).unwrap_or(inside.len());
    let tag = inside.get(..name_end).unwrap_or("");
    let mut rest = inside.get(name_end..).unwrap_or("");
    loop {
        rest = rest.trim_start_matches(is_gap);
        let end = rest.find(|c: char| is_gap(c) || c == '=').unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or("");
        let behind = rest.get(end..).unwrap_or("").trim_start();
        let Some(value) = behind.strip_prefix('=').map(str::trim_start) else {
            if end == 0 {
                return;
            }
            rest = behind;
            continue;
        };
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = value.get(1..).unwrap_or("");
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            _ => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        if !name.is_empty() {
            // The value is a slice of the markup, so the addresses give its offset.
            let start = value.as_ptr().addr() - markup.as_ptr().addr();
            found.push(HtmlAttribute { tag, name, value: Span::new(start, start + value.len()) });
        }
        rest = after;
    }
}
