//! Owns what a term of a query matches in a text: words, phrases and regular expressions (spec/obsidian.md 8.2). Pure.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::search::javascript_regex::{Pattern, TooManySteps};
use crate::text::path::{caseless_in_place, composed, lowered};
use crate::text::span::Span;
use crate::text::terms::is_unspaced;

/// A term of a query.
#[derive(Debug, Clone)]
pub struct Term {
    /// What it is.
    pub kind: TermKind,
    /// Whether upper and lower case differ.
    pub match_case: bool,
    /// What was typed, without quotes, slashes and escapes.
    pub text: String,
    /// The text as it is compared.
    needle: String,
}

/// What a term of a query is.
#[derive(Debug, Clone)]
pub enum TermKind {
    /// A word: found anywhere.
    Word,
    /// A phrase in quotes: whole words.
    Phrase,
    /// A regular expression.
    Regex(Pattern),
}

impl Term {
    /// Makes a term of its kind.
    pub fn new(kind: TermKind, text: &str, match_case: bool) -> Self {
        let needle = match kind {
            TermKind::Regex(_) => String::new(),
            _ if match_case => composed(text).into_owned(),
            _ => lowered(&composed(text)).into_owned(),
        };
        Self { kind, match_case, text: text.to_owned(), needle }
    }

    /// Gives a word or phrase for which case does not count, in the form in which it is compared; nothing for others.
    pub fn caseless(&self) -> Option<&str> {
        (!self.match_case && !matches!(self.kind, TermKind::Regex(_))).then_some(&self.needle)
    }

    /// Says whether a text holds it: a word anywhere, a phrase as whole words.
    ///
    /// # Errors
    /// Where a regular expression takes too many steps.
    pub fn is_in(&self, text: &Haystack<'_>) -> Result<bool, TooManySteps> {
        match &self.kind {
            TermKind::Word => Ok(text.of_case(self.match_case).contains(&self.needle)),
            TermKind::Phrase => Ok(holds_phrase(text.of_case(self.match_case), &self.needle)),
            TermKind::Regex(pattern) => pattern.is_match(text.lines()),
        }
    }

    /// Gives the lines of a text, counted from 0, in which it stands.
    ///
    /// # Errors
    /// Where a regular expression takes too many steps.
    pub fn lines_in(&self, text: &str) -> Result<Vec<usize>, TooManySteps> {
        let mut found = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if self.is_in(&Haystack::new(line))? {
                found.push(at);
            }
        }
        Ok(found)
    }

    /// Says whether a name holds it; of a phrase, too, any part of a word is enough.
    ///
    /// # Errors
    /// Where a regular expression takes too many steps.
    pub fn is_in_name(&self, name: &Haystack<'_>) -> Result<bool, TooManySteps> {
        match &self.kind {
            TermKind::Phrase => Ok(name.of_case(self.match_case).contains(&self.needle)),
            _ => self.is_in(name),
        }
    }

    /// Says whether it is the whole of a text; a regular expression may match a part.
    ///
    /// # Errors
    /// Where a regular expression takes too many steps.
    pub fn is_all_of(&self, text: &Haystack<'_>) -> Result<bool, TooManySteps> {
        match &self.kind {
            TermKind::Regex(pattern) => pattern.is_match(text.lines()),
            _ => Ok(text.of_case(self.match_case) == self.needle),
        }
    }
}

/// The form of a whole text in which case does not count, once it was asked for; nothing where a character gets longer
/// or shorter by that, so that places in it would not be the same.
pub type CaselessInPlace = OnceCell<Option<String>>;

/// A text made ready to be searched; each form is made once, when it is asked for.
#[derive(Debug)]
pub struct Haystack<'a> {
    raw: &'a str,
    /// Where it was cut out of a longer text, that text, the place, and its form without case.
    whole: Option<(&'a str, Span, &'a CaselessInPlace)>,
    composed: OnceCell<Cow<'a, str>>,
    lowered: OnceCell<Option<String>>,
    unix: OnceCell<Option<String>>,
}

impl<'a> Haystack<'a> {
    /// Takes a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            raw: text,
            whole: None,
            composed: OnceCell::new(),
            lowered: OnceCell::new(),
            unix: OnceCell::new(),
        }
    }

    /// Takes a part of a text. The form without case is made once of the whole, and kept in `caseless`.
    pub fn part(text: &'a str, span: Span, caseless: &'a CaselessInPlace) -> Self {
        Self { whole: Some((text, span, caseless)), ..Self::new(span.of(text)) }
    }

    fn composed(&self) -> &str {
        self.composed.get_or_init(|| composed(self.raw))
    }

    fn of_case(&self, match_case: bool) -> &str {
        if match_case {
            return self.composed();
        }
        let ready = self.whole.and_then(|(text, span, caseless)| {
            let caseless = caseless.get_or_init(|| caseless_in_place(text));
            caseless.as_deref().map(|caseless| span.of(caseless))
        });
        if let Some(ready) = ready {
            return ready;
        }
        let lowered = self.lowered.get_or_init(|| match lowered(self.composed()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        });
        lowered.as_deref().unwrap_or_else(|| self.composed())
    }

    /// Gives the text with plain line ends, by which `$` finds the end of a line.
    fn lines(&self) -> &str {
        let text = self.composed();
        let unix = self.unix.get_or_init(|| text.contains('\r').then(|| text.replace("\r\n", "\n")));
        unix.as_deref().unwrap_or(text)
    }
}

/// Says whether a phrase stands in a text with no word going on at either end. An empty phrase stands everywhere.
fn holds_phrase(text: &str, phrase: &str) -> bool {
    let (Some(first), Some(last)) = (phrase.chars().next(), phrase.chars().next_back()) else {
        return true;
    };
    text.match_indices(phrase).any(|(start, _)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let behind = text.get(start + phrase.len()..).and_then(|behind| behind.chars().next());
        !(goes_on(before, Some(first)) || goes_on(Some(last), behind))
    })
}

/// Says whether two neighbouring characters belong to one word. Scripts without spaces have no ends of words to see.
fn goes_on(left: Option<char>, right: Option<char>) -> bool {
    let is_word = |c: char| (c.is_alphanumeric() || c == '_') && !is_unspaced(c);
    left.is_some_and(is_word) && right.is_some_and(is_word)
}
