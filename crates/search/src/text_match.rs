//! Matching of query terms in a text: words, phrases and regular expressions (docs/spec/obsidian.md 8.2). Pure.

use std::borrow::Cow;
use std::cell::OnceCell;

use memchr::memmem;
use sidenote_language::folding::is_unspaced;
use sidenote_markdown::path::{fold_case_in_place, lowercase_chars, to_nfc};
use sidenote_markdown::span::Span;

use crate::javascript_regex::{Pattern, TooManySteps};

/// A term of a query.
#[derive(Debug, Clone)]
pub struct QueryTerm {
    /// The kind of the term.
    pub kind: QueryTermKind,
    /// Whether case is significant.
    pub match_case: bool,
    /// The term as typed, without quotes, slashes and escapes.
    pub text: String,
    /// The term in the form in which it is compared.
    needle: String,
}

/// The kind of a query term.
#[derive(Debug, Clone)]
pub enum QueryTermKind {
    /// A word, which matches anywhere, also within a word.
    Word,
    /// A phrase in quotes, which matches whole words.
    Phrase,
    /// A regular expression.
    Regex(Pattern),
}

impl QueryTerm {
    /// Creates a term.
    pub fn new(kind: QueryTermKind, text: &str, match_case: bool) -> Self {
        let needle = match kind {
            QueryTermKind::Regex(_) => String::new(),
            _ if match_case => to_nfc(text).into_owned(),
            _ => lowercase_chars(&to_nfc(text)).into_owned(),
        };
        Self { kind, match_case, text: text.to_owned(), needle }
    }

    /// Returns the case-folded form of a word or phrase whose case is ignored, otherwise `None`.
    pub(crate) fn caseless(&self) -> Option<&str> {
        (!self.match_case && !matches!(self.kind, QueryTermKind::Regex(_))).then_some(&self.needle)
    }

    /// Returns whether the term is a word that begins with `#`, as tags are written.
    pub(crate) fn is_hashtag(&self) -> bool {
        matches!(self.kind, QueryTermKind::Word) && self.text.len() > 1 && self.text.starts_with('#')
    }

    /// Returns whether a text contains the term: a word anywhere, a phrase as whole words.
    ///
    /// # Errors
    /// [`TooManySteps`] if a regular expression reaches its step limit.
    pub fn is_in(&self, text: &Haystack<'_>) -> Result<bool, TooManySteps> {
        match &self.kind {
            QueryTermKind::Word => {
                Ok(memmem::find(text.with_case(self.match_case).as_bytes(), self.needle.as_bytes()).is_some())
            }
            QueryTermKind::Phrase => Ok(contains_phrase(text.with_case(self.match_case), &self.needle)),
            QueryTermKind::Regex(pattern) => pattern.is_match(text.unix_text()),
        }
    }

    /// Returns the lines of a text that contain the term, counted from 0.
    ///
    /// # Errors
    /// [`TooManySteps`] if a regular expression reaches its step limit.
    pub fn lines_in(&self, text: &str) -> Result<Vec<usize>, TooManySteps> {
        let mut found = Vec::new();
        // What a line contains, the text contains, too, and most texts lack the term. A regular expression can mean whole lines.
        if !matches!(self.kind, QueryTermKind::Regex(_)) && !self.is_in(&Haystack::new(text))? {
            return Ok(found);
        }
        for (at, line) in text.lines().enumerate() {
            if self.is_in(&Haystack::new(line))? {
                found.push(at);
            }
        }
        Ok(found)
    }

    /// Returns whether a name contains the term. In a name, a phrase matches within a word, too.
    ///
    /// # Errors
    /// [`TooManySteps`] if a regular expression reaches its step limit.
    pub fn is_in_name(&self, name: &Haystack<'_>) -> Result<bool, TooManySteps> {
        match &self.kind {
            QueryTermKind::Phrase => Ok(name.with_case(self.match_case).contains(&self.needle)),
            _ => self.is_in(name),
        }
    }

    /// Returns whether the term is the whole text. A regular expression may match a part of it.
    ///
    /// # Errors
    /// [`TooManySteps`] if a regular expression reaches its step limit.
    pub fn is_whole(&self, text: &Haystack<'_>) -> Result<bool, TooManySteps> {
        match &self.kind {
            QueryTermKind::Regex(pattern) => pattern.is_match(text.unix_text()),
            _ => Ok(text.with_case(self.match_case) == self.needle),
        }
    }
}

/// The case-folded form of a whole text, computed on first use. It is `None` if folding changes the length of a
/// character, because offsets would differ.
pub type CaselessInPlace = OnceCell<Option<String>>;

/// A text to search in. Each form of it is computed on first use.
#[derive(Debug)]
pub struct Haystack<'a> {
    raw: &'a str,
    /// The longer text that this one is a part of, with its span there and the case-folded form of that text.
    whole: Option<(&'a str, Span, &'a CaselessInPlace)>,
    composed: OnceCell<Cow<'a, str>>,
    lowered: OnceCell<Option<String>>,
    unix: OnceCell<Option<String>>,
}

impl<'a> Haystack<'a> {
    /// Creates a haystack of a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            raw: text,
            whole: None,
            composed: OnceCell::new(),
            lowered: OnceCell::new(),
            unix: OnceCell::new(),
        }
    }

    /// Creates a haystack of a part of a text. The whole text is case-folded once and stored in `caseless`.
    pub fn part(text: &'a str, span: Span, caseless: &'a CaselessInPlace) -> Self {
        Self { whole: Some((text, span, caseless)), ..Self::new(span.of(text)) }
    }

    fn composed(&self) -> &str {
        self.composed.get_or_init(|| to_nfc(self.raw))
    }

    fn with_case(&self, match_case: bool) -> &str {
        if match_case {
            return self.composed();
        }
        let ready = self.whole.and_then(|(text, span, caseless)| {
            let caseless = caseless.get_or_init(|| fold_case_in_place(text));
            caseless.as_deref().map(|caseless| span.of(caseless))
        });
        if let Some(ready) = ready {
            return ready;
        }
        let lowered = self.lowered.get_or_init(|| match lowercase_chars(self.composed()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        });
        lowered.as_deref().unwrap_or_else(|| self.composed())
    }

    /// Returns the text with line feeds as line ends, before which `$` matches.
    fn unix_text(&self) -> &str {
        let text = self.composed();
        let unix = self.unix.get_or_init(|| text.contains('\r').then(|| text.replace("\r\n", "\n")));
        unix.as_deref().unwrap_or(text)
    }
}

/// Returns whether a text contains a phrase that starts and ends at word boundaries. Every text contains an empty
/// phrase.
fn contains_phrase(text: &str, phrase: &str) -> bool {
    let (Some(first), Some(last)) = (phrase.chars().next(), phrase.chars().next_back()) else {
        return true;
    };
    memmem::find_iter(text.as_bytes(), phrase).any(|start| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let behind = text.get(start + phrase.len()..).and_then(|behind| behind.chars().next());
        !(joins_word(before, Some(first)) || joins_word(Some(last), behind))
    })
}

/// The dot that lower case leaves of the Turkish capital İ. It is no letter, and does not end the word.
const DOT_ABOVE: char = '\u{307}';

/// Returns whether two adjacent characters belong to one word. Scripts without spaces have no visible word
/// boundaries.
fn joins_word(left: Option<char>, right: Option<char>) -> bool {
    let is_word = |c: char| (c.is_alphanumeric() || c == '_' || c == DOT_ABOVE) && !is_unspaced(c);
    left.is_some_and(is_word) && right.is_some_and(is_word)
}
