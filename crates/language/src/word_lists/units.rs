//! Units of text, of which phrases of word lists are made. A unit is a word, or, in a script without spaces, one
//! character, so that a phrase of such a script is found within a run of characters.

use unicode_normalization::char::is_combining_mark;

use crate::folding::{fold_into, is_unspaced};
use crate::terms::is_clitic;

/// What precedes a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// Nothing, white space or an apostrophe: a phrase goes on.
    Close,
    /// A hyphen: a phrase goes on if it has one there, too.
    Hyphen,
    /// A comma: likewise.
    Comma,
    /// Another sign: a phrase ends.
    Break,
    /// The end of a line.
    Line,
}

/// A unit of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// The text in lower case and without diacritics, as [`fold_into`] makes it.
    pub(super) text: String,
    /// The byte offset of its start.
    pub(super) start: usize,
    /// The byte offset of its end.
    pub(super) end: usize,
    /// What stands between the unit before and this one.
    pub(super) joint: Joint,
}

/// The class of a character. A word consists of characters of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A letter or digit of a script with spaces between words.
    Word,
    /// A Hangul syllable. Korean has spaces, and digits before a word are none of it: `3일`.
    Hangul,
    /// A character of a script without spaces.
    Unspaced,
    Other,
}

fn class(c: char) -> Class {
    match c {
        '\u{1100}'..='\u{11FF}' | '\u{3131}'..='\u{318E}' | '\u{AC00}'..='\u{D7AF}' => Class::Hangul,
        c if is_unspaced(c) => Class::Unspaced,
        c if c.is_alphanumeric() => Class::Word,
        _ => Class::Other,
    }
}

/// Splits a text into units. An apostrophe separates words, as in `l'heure`, unless an English ending follows, as in
/// `don't`.
pub(super) fn units(text: &str) -> Vec<Unit> {
    let mut found: Vec<Unit> = Vec::new();
    let mut joint = Joint::Close;
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let kind = class(c);
        if kind == Class::Other {
            joint = match c {
                '\n' => Joint::Line,
                _ if joint == Joint::Line => Joint::Line,
                '-' | '\u{2010}' | '\u{2011}' if joint == Joint::Close => Joint::Hyphen,
                ',' if joint == Joint::Close => Joint::Comma,
                '\'' | '\u{2019}' => joint,
                c if c.is_whitespace() || is_combining_mark(c) => joint,
                _ => Joint::Break,
            };
            continue;
        }
        let mut end = start + c.len_utf8();
        while let Some(&(at, next)) = chars.peek() {
            let goes_on = is_combining_mark(next) || kind != Class::Unspaced && class(next) == kind;
            let clitic = if matches!(next, '\'' | '\u{2019}') && kind == Class::Word {
                clitic_after(text, at + next.len_utf8())
            } else {
                0
            };
            if !goes_on && clitic == 0 {
                break;
            }
            end = at + next.len_utf8() + clitic;
            while chars.peek().is_some_and(|(at, _)| *at < end) {
                chars.next();
            }
        }
        let mut folded = String::with_capacity(end - start);
        fold_into(text.get(start..end).unwrap_or(""), &mut folded);
        folded.retain(|c| c != '\'' && c != '\u{2019}');
        if !folded.is_empty() {
            found.push(Unit { text: folded, start, end, joint });
            joint = Joint::Close;
        }
    }
    found
}

/// Returns the length of the English ending that stands after an apostrophe, or 0.
fn clitic_after(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    rest.get(..length).filter(|tail| is_clitic(tail)).map_or(0, str::len)
}
