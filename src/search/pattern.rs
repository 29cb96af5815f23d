//! Owns what a term of a query matches in a text: words, phrases and regular expressions (spec/obsidian.md 8.2). Pure.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::search::javascript::{Pattern, TooManySteps};
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

/// A text made ready to be searched; each form is made once, when it is asked for.
#[derive(Debug)]
pub struct Haystack<'a> {
    composed: Cow<'a, str>,
    lowered: std::cell::OnceCell<Option<String>>,
    unix: std::cell::OnceCell<Option<String>>,
}

impl<'a> Haystack<'a> {
    /// Takes a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            composed: composed(text),
            lowered: std::cell::OnceCell::new(),
            unix: std::cell::OnceCell::new(),
        }
    }

    fn of_case(&self, match_case: bool) -> &str {
        if match_case {
            return &self.composed;
        }
        let lowered = self.lowered.get_or_init(|| match lowered(&self.composed) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        });
        lowered.as_deref().unwrap_or(&self.composed)
    }

    /// Gives the text with plain line ends, by which `$` finds the end of a line.
    fn lines(&self) -> &str {
        let unix = self
            .unix
            .get_or_init(|| self.composed.contains('\r').then(|| self.composed.replace("\r\n", "\n")));
        unix.as_deref().unwrap_or(&self.composed)
    }
}

/// Composes letters and marks (NFC), so that both ways to write `é` meet.
fn composed(text: &str) -> Cow<'_, str> {
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfc().collect())
}

/// Lower-cases letter by letter, so that a part of a text is a part of the lowered text.
fn lowered(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Borrowed(text);
        }
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let low = |c: char| c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c });
    Cow::Owned(text.chars().flat_map(low).collect())
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
