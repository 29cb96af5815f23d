//! Phrases of word lists: `going with`, `entschied*` with any ending, `first … then` with words between, `steps:` with a
//! colon after it, and `in {month}` with a slot that a pattern of dates fills.

use crate::word_lists::units::{Joint, Unit, units};

/// The most units of a gap, so that a long line is read in linear time. It is more than the longest part of an answer that is
/// captured has.
const MAX_GAP: usize = 500;

/// One part of a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A whole unit.
    Word(String),
    /// The beginning of a unit.
    Stem(String),
    /// Units of the same line, or none.
    Gap,
    /// A place for what a slot of this name admits.
    Slot(String),
}

/// A phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Phrase {
    /// The parts, each with what may precede it besides white space.
    parts: Vec<(Part, Joint)>,
    /// Whether a colon must follow.
    has_colon: bool,
}

/// Finds what fills a slot at a unit. Returns the number of units.
pub(super) type Filler<'f> = &'f mut dyn FnMut(&str, usize) -> Option<usize>;

impl Phrase {
    /// Parses a phrase of a file.
    pub(super) fn parse(written: &str) -> Self {
        let (bare, has_colon) = written.strip_suffix(':').map_or((written, false), |bare| (bare, true));
        let mut parts = Vec::new();
        let mut rest = bare;
        while let Some(at) = rest.find(['…', '{', '*']) {
            let (before, special) = rest.split_at(at);
            push_words(before, &mut parts);
            rest = match special.chars().next() {
                Some('{') => {
                    let end = special.find('}').unwrap_or(special.len());
                    let joint = match before.trim_end().chars().next_back() {
                        Some(',') => Joint::Comma,
                        Some('-') => Joint::Hyphen,
                        Some('.') => Joint::Break,
                        _ => Joint::Close,
                    };
                    parts.push((Part::Slot(special.get(1..end).unwrap_or("").to_owned()), joint));
                    special.get(end + 1..).unwrap_or("")
                }
                Some('*') => {
                    if let Some((part, _)) = parts.last_mut()
                        && let Part::Word(word) = part
                    {
                        *part = Part::Stem(std::mem::take(word));
                    }
                    special.get(1..).unwrap_or("")
                }
                _ => {
                    parts.push((Part::Gap, Joint::Close));
                    special.get('…'.len_utf8()..).unwrap_or("")
                }
            };
        }
        push_words(rest, &mut parts);
        Self { parts, has_colon }
    }

    /// Returns the first part.
    pub(super) fn first(&self) -> Option<&Part> {
        self.parts.first().map(|(part, _)| part)
    }

    /// Returns the whole words.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|(part, _)| match part {
            Part::Word(word) => Some(word.as_str()),
            _ => None,
        })
    }

    /// Says whether the phrase is one word, or the beginning of one.
    pub(super) fn is_one_unit(&self) -> bool {
        matches!(self.parts.as_slice(), [(Part::Word(_) | Part::Stem(_), _)]) && !self.has_colon
    }

    /// Matches the phrase with the units from `at` on. Returns the number of the first unit after it.
    pub(super) fn end(&self, text: &str, units: &[Unit], at: usize, fill: Filler<'_>) -> Option<usize> {
        let end = end_of(&self.parts, units, at, at, fill)?;
        let follows = || text.get(units.get(end.checked_sub(1)?)?.end..)?.chars().next();
        (!self.has_colon || matches!(follows(), Some(':' | '：'))).then_some(end)
    }
}

fn push_words(text: &str, parts: &mut Vec<(Part, Joint)>) {
    parts.extend(units(text).into_iter().map(|unit| (Part::Word(unit.text), unit.joint)));
}

/// Matches parts with the units from `at` on, of a phrase that begins at the unit `first`.
fn end_of(
    parts: &[(Part, Joint)],
    units: &[Unit],
    first: usize,
    at: usize,
    fill: Filler<'_>,
) -> Option<usize> {
    let Some(((part, joint), rest)) = parts.split_first() else { return Some(at) };
    if matches!(part, Part::Gap) {
        for next in at..units.len().min(at + MAX_GAP) {
            if units.get(next).is_some_and(|unit| unit.joint == Joint::Line) {
                break;
            }
            // The gap ends any phrase before it, so that the next part may stand after any sign.
            if let Some(end) = end_of(rest, units, next, next, fill) {
                return Some(end);
            }
        }
        return None;
    }
    let unit = units.get(at)?;
    let is_joined = at == first
        || match unit.joint {
            Joint::Close => true,
            Joint::Hyphen | Joint::Comma | Joint::Break => unit.joint == *joint,
            Joint::Line => false,
        };
    let next = match part {
        Part::Word(word) => (unit.text == *word).then_some(at + 1),
        Part::Stem(stem) => unit.text.starts_with(stem.as_str()).then_some(at + 1),
        Part::Slot(name) => fill(name, at).map(|length| at + length),
        Part::Gap => None,
    };
    end_of(rest, units, first, next.filter(|_| is_joined)?, fill)
}
