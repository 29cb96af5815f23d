//! Patterns of paths as people write them in a `.gitignore`, compiled to regular expressions. Wildcards stand for characters:
//! `globset`, which searches use, counts bytes, so that its `?` is no letter with a diacritic.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// The largest compiled pattern in bytes. A thousand characters need a small part of it.
const MAX_COMPILED: usize = 4 << 20;

/// How brackets and braces of a pattern are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brackets {
    /// As sets and alternatives.
    Wild,
    /// As characters of names.
    Literal,
}

/// Compiles a pattern, which is in the form in which paths are compared. It matches what lies below the folders that it
/// matches, too. `None` for a pattern that is malformed.
pub(crate) fn compiled(pattern: &str, brackets: Brackets) -> Option<Regex> {
    let mut translation = Translation { out: String::from("^(?:"), brackets, depth: 0 };
    let mut rest = pattern.chars().peekable();
    translation.run(&mut rest)?;
    translation.out.push_str(")(?:/.*)?$");
    let mut builder = RegexBuilder::new(&translation.out);
    builder.size_limit(MAX_COMPILED).dot_matches_new_line(true).build().ok()
}

/// A pattern that is being translated.
struct Translation {
    out: String,
    brackets: Brackets,
    /// How many braces are open.
    depth: usize,
}

impl Translation {
    fn run(&mut self, rest: &mut Peekable<Chars<'_>>) -> Option<()> {
        let mut begins_segment = true;
        while let Some(c) = rest.next() {
            let began = std::mem::replace(&mut begins_segment, c == '/');
            match c {
                '*' if rest.next_if_eq(&'*').is_some() => match (began, rest.peek()) {
                    (true, Some('/')) => {
                        rest.next();
                        self.out.push_str("(?:.*/)?");
                        begins_segment = true;
                    }
                    (true, None) => self.out.push_str(".*"),
                    _ => self.out.push_str("[^/]*"),
                },
                '*' => self.out.push_str("[^/]*"),
                '?' => self.out.push_str("[^/]"),
                '[' if self.brackets == Brackets::Wild => self.set(rest)?,
                '{' if self.brackets == Brackets::Wild => {
                    self.depth += 1;
                    self.out.push_str("(?:");
                    begins_segment = began;
                }
                '}' if self.depth > 0 => {
                    self.depth -= 1;
                    self.out.push(')');
                }
                ',' if self.depth > 0 => {
                    self.out.push('|');
                    begins_segment = true;
                }
                // A slash at the end of an alternative means nothing.
                '/' if self.depth > 0 && matches!(rest.peek(), Some(',' | '}')) => {}
                '\\' => self.literal(rest.next()?),
                c => self.literal(c),
            }
        }
        (self.depth == 0).then_some(())
    }

    /// Translates a set of characters, behind its opening bracket.
    fn set(&mut self, rest: &mut Peekable<Chars<'_>>) -> Option<()> {
        let is_negated = rest.next_if(|c| matches!(c, '!' | '^')).is_some();
        self.out.push_str(if is_negated { "[^/" } else { "[" });
        let mut is_first = true;
        loop {
            match rest.next()? {
                ']' if !is_first => break,
                '-' if !is_first && rest.peek() != Some(&']') => self.out.push('-'),
                c => self.literal(c),
            }
            is_first = false;
        }
        self.out.push(']');
        Some(())
    }

    fn literal(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.out.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
    }
}
