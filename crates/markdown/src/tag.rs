//! Tags: one occurrence of a tag, and which names are legal (docs/spec/obsidian.md 6).

use serde::Serialize;

use crate::span::Span;

/// One occurrence of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tag {
    /// The tag as written, without `#` and without a trailing slash.
    pub name: String,
    /// The bytes of the tag: with the `#` in a body, and as written in frontmatter.
    pub span: Span,
    /// Whether it is in the frontmatter.
    pub in_frontmatter: bool,
}

/// Returns the name of the tag that `text` consists of, with or without `#`, and without a trailing slash. Returns
/// `None` if it is not a legal tag (docs/spec/obsidian.md 6).
pub fn tag_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let name = text.strip_prefix('#').unwrap_or(text).trim_end_matches('/');
    is_tag_name(name).then_some(name)
}

/// Returns whether a tag can contain `c` (docs/spec/obsidian.md 6).
pub(crate) fn is_tag_char(c: char) -> bool {
    if c.is_ascii() {
        !c.is_ascii_whitespace()
            && c != '\u{B}'
            && (!c.is_ascii_punctuation() || matches!(c, '_' | '-' | '/'))
    } else {
        !c.is_whitespace() && !matches!(c, '\u{2000}'..='\u{206F}' | '\u{2E00}'..='\u{2E7F}')
    }
}

/// Returns whether `name`, without `#`, is a legal tag: it has allowed characters, and not only digits
/// (docs/spec/obsidian.md 6).
pub(crate) fn is_tag_name(name: &str) -> bool {
    name.chars().all(is_tag_char)
        && name.bytes().any(|byte| !byte.is_ascii_digit())
        && name.bytes().any(|b| b != b'/')
}
