//! Reading order: glyphs with positions become lines, lines blocks, and blocks the text of a page.

mod blocks;
mod lines;

use std::collections::{BTreeMap, HashSet};

use super::content::Glyph;

/// A glyph in the frame of its text: `start` and `end` along the line, `base` across it, growing downwards.
#[derive(Debug, Clone)]
struct Placed {
    text: std::rc::Rc<str>,
    start: f64,
    end: f64,
    base: f64,
    size: f64,
}

/// Returns the text of a page in reading order; paragraphs are divided by an empty line.
pub(super) fn text(glyphs: Vec<Glyph>) -> String {
    let mut by_angle: BTreeMap<i32, Vec<Placed>> = BTreeMap::new();
    for glyph in glyphs {
        let (angle, placed) = place(glyph);
        by_angle.entry(angle).or_default().push(placed);
    }
    let paragraphs: Vec<_> =
        by_angle.into_values().flat_map(|glyphs| blocks::paragraphs(lines::lines(glyphs))).collect();
    let hyphenated = hyphenated_words(&paragraphs);
    let mut text = String::new();
    for paragraph in &paragraphs {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        join_lines(&mut text, paragraph, &hyphenated);
    }
    text
}

/// Turns a glyph by the angle of its text, in whole degrees, so that all lines run from left to right.
fn place(glyph: Glyph) -> (i32, Placed) {
    #[expect(clippy::cast_possible_truncation, reason = "an angle has at most three digits")]
    let degrees = glyph.advance.atan2().to_degrees().round() as i32;
    let angle = degrees.rem_euclid(360);
    let (sin, cos) = f64::from(angle).to_radians().sin_cos();
    let start = glyph.origin.x * cos + glyph.origin.y * sin;
    let base = glyph.origin.y * cos - glyph.origin.x * sin;
    let end = start + glyph.advance.hypot();
    (angle, Placed { text: glyph.text, start, end, base, size: glyph.size })
}

/// A paragraph's line.
struct TextLine {
    text: String,
    /// Whether it ends at the right edge of its block, so that the sentence goes on in the next one.
    is_full: bool,
}

/// Returns the words with a hyphen that stand within lines.
fn hyphenated_words(paragraphs: &[Vec<TextLine>]) -> HashSet<String> {
    let lines = paragraphs.iter().flatten();
    let words = lines.flat_map(|line| line.text.split_whitespace());
    words.filter(|word| word.trim_end_matches('-').contains('-')).map(bare).collect()
}

/// Returns a word without the signs around it, in lower case.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Joins the lines of a paragraph. A word that a hyphen parts at the end of a line is joined, so that a search finds it;
/// the hyphen stays where the page writes that word with one within a line.
fn join_lines(text: &mut String, lines: &[TextLine], hyphenated: &HashSet<String>) {
    let mut full = false;
    let paragraph = text.len();
    for line in lines {
        let mut rest = line.text.as_str();
        if text.len() > paragraph {
            let (last, next) = (text[paragraph..].chars().next_back(), rest.chars().next());
            if parts_word(&text[paragraph..], next) {
                let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
                let begin = text[paragraph..].split_whitespace().next_back().unwrap_or_default();
                let keeps_hyphen = hyphenated.contains(&bare(&format!("{begin}{word}")));
                if !keeps_hyphen {
                    text.pop();
                }
                text.push_str(word);
                rest = after;
                text.push('\n');
            } else if !(full && last.is_some_and(is_unspaced) && next.is_some_and(is_unspaced)) {
                text.push('\n');
            }
        }
        text.push_str(rest);
        full = line.is_full;
    }
    text.truncate(text.trim_end().len().max(paragraph));
}

/// Whether a line ends with a part of a word whose other part begins with `next`.
fn parts_word(before: &str, next: Option<char>) -> bool {
    let mut back = before.chars().rev();
    let hyphen = matches!(back.next(), Some('-' | '\u{ad}' | '\u{2010}'));
    hyphen && back.next().is_some_and(char::is_alphabetic) && next.is_some_and(char::is_lowercase)
}

/// Whether a character belongs to a script that has no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0xe00..=0xeff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x2e80..=0x9fff | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f | 0xff00..=0xffef | 0x2_0000..=0x3_ffff)
}
