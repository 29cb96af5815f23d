//! Text analysis: the tokenizer that splits text into the terms of BM25, snippets and queries.
//!
//! The rules are those of docs/spec/search.md (Text analysis): terms are in lower case and without diacritics, scripts
//! without spaces are split into bigrams, and identifiers are kept whole and split into parts. The index and queries
//! use the same analysis.

#[cfg(test)]
mod tests;

use std::mem;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::char::is_combining_mark;

use crate::ascii::small_run;
use crate::folding::{
    fold_into, folds_to_itself, is_flag_letter, is_inner_sign, is_invisible, is_skin_tone, is_symbol,
    is_unspaced, is_written_on,
};
use crate::language::{Language, LanguageStemmers};
use crate::short_word::{ShortWord, continues, short_run, short_word};

/// The most bytes of a word. A longer one is data, not language, and is omitted.
const MAX_WORD_LENGTH: usize = 128;
/// The most parts of an identifier that is kept whole. A longer one is found by its parts only.
const MAX_PARTS: usize = 12;

/// The kind of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TermKind {
    /// A plain word.
    #[default]
    Word,
    /// A part of an identifier or compound, such as `snake` of `snake_case`.
    Part,
    /// A whole identifier or compound whose parts are terms too. It has the position of its first part.
    Whole,
    /// Two adjacent characters of a script without spaces, or a single one.
    Bigram,
    /// The last character of a longer run of such a script, so that a query for this character finds it. Queries omit
    /// it.
    LastCharacter,
}

/// One term with its position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    /// The folded text.
    pub text: String,
    /// The byte offset of its start in the analysed text.
    pub start: usize,
    /// The byte offset of its end.
    pub end: usize,
    /// The position for phrase queries.
    pub position: usize,
    /// The kind of the term.
    pub kind: TermKind,
}

/// A term before folding.
#[derive(Debug, Clone, Copy)]
struct TermSpan {
    start: usize,
    end: usize,
    position: usize,
    kind: TermKind,
}

/// An iterator over the terms of a text. It reuses its buffers.
#[derive(Debug, Default)]
pub struct Terms<'a> {
    text: &'a str,
    /// The byte offset of the text that is not yet split.
    at: usize,
    /// The position of the next term.
    position: usize,
    /// The terms of the last word.
    queue: Vec<TermSpan>,
    /// The index of the next term in `queue`.
    next_queued: usize,
    /// The parts of the current word.
    parts: Vec<(usize, usize)>,
    /// The runs of letters and digits so far that are neither a word nor a part of one.
    inner_runs: Vec<(usize, usize)>,
    current: Term,
    has_omissions: bool,
    /// Whether the terms are whole runs of letters and digits.
    in_runs: bool,
}

/// The bytes with which the terms begin that [`Terms::advance_to`] visits.
#[derive(Debug, Clone)]
pub struct Initials([bool; 256]);

impl Initials {
    /// Collects the first bytes of folded words.
    pub fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut initials = [false; 256];
        for first in words.into_iter().filter_map(|word| word.bytes().next()) {
            initials[usize::from(first)] = true;
        }
        Self(initials)
    }

    /// Returns the first bytes of all words.
    pub fn any() -> Self {
        Self([true; 256])
    }

    fn contain(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }
}

/// Returns every term of `text`.
pub fn terms(text: &str) -> Vec<Term> {
    let mut terms = Terms::new(text);
    let mut found = Vec::new();
    while terms.advance() {
        found.push(terms.term().clone());
    }
    found
}

impl<'a> Terms<'a> {
    /// Creates an iterator over the terms of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// Creates an iterator over another text from the buffers of this one.
    pub fn over<'b>(self, text: &'b str) -> Terms<'b> {
        let Self { mut queue, parts, mut inner_runs, current, .. } = self;
        queue.clear();
        inner_runs.clear();
        Terms { text, queue, parts, inner_runs, current, ..Terms::default() }
    }

    /// Changes the terms to whole runs of letters and digits, instead of identifiers and their parts.
    pub fn in_runs(self) -> Self {
        Self { in_runs: true, ..self }
    }

    /// Returns the term that the last [`Terms::advance`] reached.
    pub fn term(&self) -> &Term {
        &self.current
    }

    /// Returns whether a part of the text so far was omitted because a word or identifier is too long.
    pub fn has_omissions(&self) -> bool {
        self.has_omissions
    }

    /// Iterates over the runs of letters and digits so far that are no terms, because they are several parts of an
    /// identifier, such as `getValue` in `x.getValue`, one of a UUID, or divided by a sign within a word, such as a soft
    /// hyphen.
    pub fn inner_runs(&self) -> impl Iterator<Item = &'a str> {
        self.inner_runs.iter().map(|&(start, end)| self.text.get(start..end).unwrap_or_default())
    }

    /// Advances to the next term. Returns `false` at the end.
    pub fn advance(&mut self) -> bool {
        while let Some(TermSpan { start, end, position, kind }) = self.next_span() {
            let raw = self.text.get(start..end).unwrap_or("");
            self.current.text.clear();
            fold_into(raw, &mut self.current.text);
            if !self.current.text.is_empty() {
                self.current = Term { text: mem::take(&mut self.current.text), start, end, position, kind };
                return true;
            }
        }
        false
    }

    /// Advances to the next term whose folded text begins with one of these bytes. Returns `false` at the end. This is
    /// faster than [`Terms::advance`], because most words are skipped before they are folded.
    pub fn advance_to(&mut self, initials: &Initials) -> bool {
        loop {
            let position = self.position;
            let plain = self.next_plain_word();
            let span = plain.map(|(start, end)| TermSpan { start, end, position, kind: TermKind::Word });
            let Some(TermSpan { start, end, position, kind }) = span.or_else(|| self.next_span()) else {
                return false;
            };
            let raw = self.text.get(start..end).unwrap_or("");
            let Some(first) = raw.chars().next() else { continue };
            let begins_with = raw.bytes().next().unwrap_or(0).to_ascii_lowercase();
            if (folds_to_itself(first) || raw.is_ascii()) && !initials.contain(begins_with) {
                continue;
            }
            self.current.text.clear();
            fold_into(raw, &mut self.current.text);
            if self.current.text.bytes().next().is_some_and(|first| initials.contain(first)) {
                self.current = Term { text: mem::take(&mut self.current.text), start, end, position, kind };
                return true;
            }
        }
    }

    /// Advances to the next term, and returns only its text. This is faster than [`Terms::advance`], because most words
    /// need no folding.
    pub fn next_text(&mut self) -> Option<&str> {
        loop {
            if let Some((start, end)) = self.next_plain_word() {
                let word = self.text.get(start..end)?;
                // A plain word can have a capital only at its start.
                let length = if self.in_runs { word.len() } else { 1 };
                if !word.bytes().take(length).any(|byte| byte.is_ascii_uppercase()) {
                    return Some(word);
                }
                self.current.text.clear();
                fold_into(word, &mut self.current.text);
                break;
            }
            let span = self.next_span()?;
            let raw = self.text.get(span.start..span.end)?;
            if raw.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
                return Some(raw);
            }
            self.current.text.clear();
            fold_into(raw, &mut self.current.text);
            if !self.current.text.is_empty() {
                break;
            }
        }
        Some(&self.current.text)
    }

    /// Advances to the next term if it is a short plain word. Otherwise another method returns the next term. This is
    /// faster than [`Terms::next_text`], because the word is found and folded as a number.
    #[inline]
    pub fn next_short(&mut self) -> Option<ShortWord> {
        if self.next_queued < self.queue.len() {
            return None;
        }
        self.skip_separators();
        let bytes = self.text.as_bytes();
        let word = if self.in_runs { short_run(bytes, self.at) } else { short_word(bytes, self.at) }?;
        self.at += word.length;
        self.position += 1;
        Some(word)
    }

    /// Skips what separates words.
    #[inline]
    fn skip_separators(&mut self) {
        let signs = if self.in_runs { &BETWEEN_RUNS } else { &BETWEEN_WORDS };
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|&&byte| signs[usize::from(byte)]).count();
    }

    /// Skips what separates words, and returns the next word if it is [plain](plain_word), so that it need not be
    /// split.
    fn next_plain_word(&mut self) -> Option<(usize, usize)> {
        if self.next_queued < self.queue.len() {
            return None;
        }
        self.skip_separators();
        let (bytes, runs) = (self.text.as_bytes(), self.in_runs);
        let start = self.at;
        let end = if runs { plain_run(bytes, start) } else { plain_word(bytes, start) };
        let end = end.filter(|end| end - start <= MAX_WORD_LENGTH)?;
        (self.at, self.position) = (end, self.position + 1);
        Some((start, end))
    }

    /// Returns the next term before folding.
    fn next_span(&mut self) -> Option<TermSpan> {
        while self.next_queued == self.queue.len() {
            self.queue.clear();
            self.next_queued = 0;
            if !self.queue_next_word() {
                return None;
            }
        }
        self.next_queued += 1;
        self.queue.get(self.next_queued - 1).copied()
    }

    /// Queues a term at the next position, unless it is too long.
    fn push(&mut self, start: usize, end: usize, kind: TermKind) {
        if end - start <= MAX_WORD_LENGTH {
            self.queue.push(TermSpan { start, end, position: self.position, kind });
        } else {
            self.has_omissions = true;
        }
        self.position += 1;
    }

    /// Finds the next word, identifier or run of a script without spaces, and queues its terms. Returns `false` at the
    /// end of the text.
    fn queue_next_word(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if byte.is_ascii() {
                if byte.is_ascii_alphanumeric() || byte == b'_' {
                    match plain_word(bytes, self.at).filter(|_| !self.in_runs) {
                        Some(end) => {
                            self.push(self.at, end, TermKind::Word);
                            self.at = end;
                        }
                        None => self.queue_word_or_run(),
                    }
                    return true;
                }
                if !self.in_runs && is_crossed_out(bytes, self.at) {
                    self.queue_symbol(char::from(byte));
                    return true;
                }
                self.at += 1;
                continue;
            }
            let Some(c) = char_at(self.text, self.at) else {
                return false;
            };
            if is_unspaced(c) {
                self.queue_bigrams();
                return true;
            }
            // A mark without a letter is not a word.
            if is_word(c) && !is_combining_mark(c) {
                self.queue_word_or_run();
                return true;
            }
            if is_symbol(c) && !self.in_runs {
                self.queue_symbol(c);
                return true;
            }
            self.at += c.len_utf8();
        }
        false
    }

    /// Queues a symbol with what is written on it. The two letters of a flag are one symbol.
    fn queue_symbol(&mut self, c: char) {
        let start = self.at;
        let mut end = start + c.len_utf8();
        if is_flag_letter(c) {
            end += char_at(self.text, end).filter(|&c| is_flag_letter(c)).map_or(0, char::len_utf8);
        }
        let rest = self.text.get(end..).unwrap_or("").chars();
        let marks = rest.take_while(|&c| is_combining_mark(c) || is_skin_tone(c));
        self.at = end + marks.map(char::len_utf8).sum::<usize>();
        self.push(start, self.at, TermKind::Word);
    }

    /// Queues the bigrams of a run of a script without spaces.
    fn queue_bigrams(&mut self) {
        let (mut last, mut count) = (self.at, 0usize);
        while char_at(self.text, self.at).is_some_and(is_unspaced) {
            let previous = mem::replace(&mut last, self.at);
            self.at = end_of_unspaced(self.text, self.at);
            count += 1;
            if count > 1 {
                self.push(previous, self.at, TermKind::Bigram);
            }
        }
        let kind = if count == 1 { TermKind::Bigram } else { TermKind::LastCharacter };
        self.push(last, self.at, kind);
    }

    fn queue_word_or_run(&mut self) {
        if self.in_runs { self.queue_run() } else { self.queue_word() }
    }

    /// Queues one run of letters and digits, or skips a sign between runs.
    fn queue_run(&mut self) {
        let begin = self.at;
        let letters = self.text.as_bytes().iter().skip(begin).take_while(|byte| byte.is_ascii_alphanumeric());
        self.at += letters.count();
        let mut before = None;
        while let Some(c) = char_at(self.text, self.at) {
            let next = self.at + c.len_utf8();
            if !(is_word(c) && c != '_' || is_inside(self.text, before, c, next)) {
                break;
            }
            before = Some(c);
            self.at = next;
        }
        self.add_inner_runs((begin, self.at), true);
        if self.at > begin {
            self.push(begin, self.at, TermKind::Word);
        } else {
            self.at += 1;
        }
    }

    /// Splits one word at the connectors and case changes in it, and queues the whole and its parts.
    fn queue_word(&mut self) {
        let start = self.at;
        let mut parts = mem::take(&mut self.parts);
        parts.clear();
        let WordScan { end, is_joined, has_apostrophe } = scan_word(self.text, start, &mut parts);
        // `C++` and `C#` are names of their own, and the letter alone is a part of them.
        let suffix = self.text.get(end..).map_or(0, sign_suffix);
        self.at = (end + suffix).max(start + 1);
        if (parts.len() > 1 && is_joined) || suffix > 0 {
            self.queue_whole(start, end, suffix, parts.len());
            // Parts of a UUID are not searched for, and each would be a term of its own.
            if parts.len() == 5 && self.text.get(start..end).is_some_and(is_uuid) {
                self.position += 1;
                self.inner_runs.extend_from_slice(&parts);
            } else {
                self.queue_parts(&parts, TermKind::Part, has_apostrophe);
            }
        } else {
            self.queue_parts(&parts, TermKind::Word, has_apostrophe);
        }
        // A run goes on from part to part where only the case changes.
        for run in parts.chunk_by(|one, next| one.1 == next.0) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let is_term = run.len() == 1 || (first.0, last.1) == (start, end + suffix);
            self.add_inner_runs((first.0, last.1), is_term);
        }
        self.parts = parts;
    }

    /// Notes the runs of a word or of a part of one that are no terms. `is_term` says whether the whole is one.
    fn add_inner_runs(&mut self, (start, end): (usize, usize), is_term: bool) {
        let word = self.text.get(start..end).unwrap_or_default();
        if is_term && (word.is_ascii() || word.chars().all(char::is_alphanumeric)) {
            return;
        }
        for run in word.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
            let at = start + (run.as_ptr().addr() - word.as_ptr().addr());
            self.inner_runs.push((at, at + run.len()));
        }
    }

    /// Queues a compound of `parts` parts as a whole, unless it is too long. It precedes its parts, so that positions
    /// never decrease.
    fn queue_whole(&mut self, start: usize, end: usize, suffix: usize, parts: usize) {
        if parts > MAX_PARTS || end + suffix - start > MAX_WORD_LENGTH {
            self.has_omissions = true;
            return;
        }
        let raw = self.text.get(start..end).unwrap_or("");
        let underscores = raw.len() - raw.trim_start_matches('_').len();
        self.queue.push(TermSpan {
            start: start + underscores,
            end: end + suffix,
            position: self.position,
            kind: TermKind::Whole,
        });
    }

    /// Queues the parts of a word, without the clitics after an apostrophe.
    #[inline]
    fn queue_parts(&mut self, parts: &[(usize, usize)], kind: TermKind, has_apostrophe: bool) {
        for (index, &(start, end)) in parts.iter().enumerate() {
            let is_dropped = has_apostrophe && index > 0 && self.text.get(start..end).is_some_and(is_clitic);
            if !is_dropped {
                self.push(start, end, kind);
            }
        }
    }
}

/// The result of scanning one word.
struct WordScan {
    /// The end of the word.
    end: usize,
    /// Whether a connector other than an apostrophe, or a case change, separates parts.
    is_joined: bool,
    /// Whether an apostrophe separates parts.
    has_apostrophe: bool,
}

/// Finds the end of the word at `start`, and appends its parts to `parts`.
#[inline]
fn scan_word(text: &str, start: usize, parts: &mut Vec<(usize, usize)>) -> WordScan {
    let mut scan = WordScan { end: start, is_joined: false, has_apostrophe: false };
    let mut part_start = start;
    let mut case = CaseState::default();
    let mut before: Option<char> = None;
    loop {
        // No part begins at a lowercase letter or a digit.
        let rest = text.as_bytes().get(scan.end..).unwrap_or_default();
        let small = small_run(rest);
        if let Some(&last) = rest.get(..small).and_then(<[u8]>::last) {
            case = CaseState { last_lower: last.is_ascii_lowercase(), last_upper: false };
            before = Some(char::from(last));
            scan.end += small;
        }
        let Some(c) = char_at(text, scan.end) else { break };
        let next = scan.end + c.len_utf8();
        if is_word(c) && c != '_' {
            if before.is_some() && case.breaks(c, text, next) {
                parts.push((part_start, scan.end));
                part_start = scan.end;
                scan.is_joined = true;
            }
            // A mark belongs to the letter before it.
            if c.is_ascii() || before.is_none() || !is_combining_mark(c) {
                case.push(c);
                before = Some(c);
            }
        } else if is_inside(text, before, c, next) {
            // The word goes on, and no part of it ends.
        } else if connects(c, before, char_at(text, next)) {
            if scan.end > part_start {
                parts.push((part_start, scan.end));
            }
            let is_apostrophe = matches!(c, '\'' | '\u{2019}');
            scan.has_apostrophe |= is_apostrophe;
            scan.is_joined |= !is_apostrophe;
            part_start = next;
            case = CaseState::default();
            before = Some(c).filter(|&c| c != '_');
        } else {
            break;
        }
        scan.end = next;
    }
    if scan.end > part_start {
        parts.push((part_start, scan.end));
    }
    scan
}

/// Returns whether a character that is not a letter or digit connects the parts of a word.
#[inline]
fn connects(c: char, before: Option<char>, after: Option<char>) -> bool {
    match c {
        '_' => true,
        '-' | '.' | '\'' | '\u{2019}' => before.is_some() && after.is_some_and(|c| is_word(c) && c != '_'),
        _ => false,
    }
}

/// Returns the end of the word at `at` if the word is plain: ASCII letters and digits, at most the first of them a
/// capital, and no connector after it. Returns `None` if [`Terms::queue_word`] must examine it.
fn plain_word(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at).filter(|byte| byte.is_ascii_alphanumeric())?;
    let rest = bytes.get(at + 1..)?;
    let length = small_run(rest);
    let is_open = rest.get(length).is_some_and(|&next| continues(next, rest.get(length + 1).copied()));
    (!is_open).then_some(at + 1 + length)
}

/// Returns the end of the run of letters and digits at `at` if all of them are ASCII. Returns `None` if
/// [`Terms::queue_run`] must examine it.
fn plain_run(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    (length > 0 && rest.get(length).is_none_or(u8::is_ascii)).then_some(at + length)
}

/// The class of a byte for the tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteClass {
    /// A lowercase ASCII letter, or a digit.
    Small,
    /// An uppercase ASCII letter.
    Capital,
    /// ASCII white space.
    Space,
    /// Another ASCII character.
    Sign,
    /// A byte of a character that is not ASCII.
    Wide,
}

impl ByteClass {
    /// Returns the class of a byte.
    pub fn of(byte: u8) -> Self {
        CLASSES[usize::from(byte)]
    }
}

/// The class of each byte.
const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Wide; 256];
    let mut byte = 0;
    while byte < 128u8 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' => ByteClass::Small,
            b'A'..=b'Z' => ByteClass::Capital,
            _ if byte.is_ascii_whitespace() => ByteClass::Space,
            _ => ByteClass::Sign,
        };
        byte += 1;
    }
    classes
};

/// The bytes that separate words, and those that separate runs of letters and digits.
static BETWEEN_WORDS: [bool; 256] = separators(b'_');
static BETWEEN_RUNS: [bool; 256] = separators(0x80);

/// Returns the set of the ASCII characters that are neither a letter nor a digit, except one.
const fn separators(except: u8) -> [bool; 256] {
    let mut signs = [false; 256];
    let mut byte = 0;
    while byte < 128u8 {
        signs[byte as usize] = !byte.is_ascii_alphanumeric() && byte != except;
        byte += 1;
    }
    signs
}

/// The case of the last character of a word, which determines where `camelCase` and `HTTPServer` are split.
#[derive(Default)]
struct CaseState {
    last_lower: bool,
    last_upper: bool,
}

impl CaseState {
    /// Records a character of the word.
    fn push(&mut self, c: char) {
        self.last_lower = c.is_lowercase();
        self.last_upper = is_capital(c);
    }

    /// Returns whether a part of the word ends before `c`; `next` is the offset after it.
    fn breaks(&self, c: char, text: &str, next: usize) -> bool {
        if !is_capital(c) {
            return false;
        }
        let before_lower = || {
            let next = next + marks_at(text, next);
            char_at(text, next).is_some_and(|n| n.is_lowercase() && !is_plural(text, next))
        };
        self.last_lower || (self.last_upper && before_lower())
    }
}

/// Returns whether a letter is a capital one, also one in title case, such as `ῌ`, which is a capital and a mark if decomposed.
fn is_capital(c: char) -> bool {
    c.is_uppercase() || (!c.is_ascii() && !c.is_lowercase() && c.to_lowercase().next() != Some(c))
}

/// Returns whether a plural `s` is at `at`, as in `PDFs` and `IDs`, which are not split.
fn is_plural(text: &str, at: usize) -> bool {
    char_at(text, at) == Some('s') && !char_at(text, at + 1).is_some_and(is_word)
}

/// Returns the length of the suffix `++` or `#` at the start of `rest`, or 0.
fn sign_suffix(rest: &str) -> usize {
    let length = match rest.as_bytes() {
        [b'+', b'+', ..] => 2,
        [b'#', ..] => 1,
        _ => 0,
    };
    let ends = !rest
        .get(length..)
        .and_then(|following| following.chars().next())
        .is_some_and(|c| is_word(c) || is_unspaced(c) || c == '+' || c == '#');
    if ends { length } else { 0 }
}

/// Returns whether a word has the form of a UUID.
fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns whether a run of letters begins with a mark, which no term does.
pub fn begins_with_mark(run: &str) -> bool {
    run.chars().next().is_some_and(is_combining_mark)
}

/// Returns whether the part after an apostrophe is a clitic, such as the `s` of `it's`.
pub fn is_clitic(tail: &str) -> bool {
    ["s", "t", "d", "m", "ll", "re", "ve"].iter().any(|clitic| tail.eq_ignore_ascii_case(clitic))
}

/// Returns the character at a byte offset.
fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(&byte) if byte.is_ascii() => Some(char::from(byte)),
        Some(_) => text.get(at..).and_then(|rest| rest.chars().next()),
        None => None,
    }
}

/// Returns whether a sign that is crossed out begins at a byte offset, such as ≠ in decomposed form.
fn is_crossed_out(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    let is_sign = rest.first().is_some_and(|sign| matches!(sign, b'<' | b'=' | b'>'));
    is_sign && rest.get(1..).is_some_and(|marks| marks.starts_with("\u{338}".as_bytes()))
}

/// Returns the length of the combining marks at a byte offset.
fn marks_at(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    rest.chars().take_while(|&c| is_combining_mark(c)).map(char::len_utf8).sum()
}

/// Returns the end of the character of a script without spaces at a byte offset, with what is written on it.
fn end_of_unspaced(text: &str, at: usize) -> usize {
    let mut rest = text.get(at..).unwrap_or("").chars();
    let first = rest.next().map_or(0, char::len_utf8);
    let marks = rest.take_while(|&c| is_written_on(c) || is_combining_mark(c) && !is_unspaced(c));
    at + first + marks.map(char::len_utf8).sum::<usize>()
}

/// Returns whether a character that is no letter stands within a word without dividing it. `next` is the offset after it.
fn is_inside(text: &str, before: Option<char>, c: char, next: usize) -> bool {
    if before.is_none_or(|before| !is_invisible(c) && !is_inner_sign(before, c)) {
        return false;
    }
    let after = text.get(next..).unwrap_or("").chars().find(|&c| !is_invisible(c));
    after.is_some_and(|after| is_word(after) && after != '_' && (is_invisible(c) || is_inner_sign(after, c)))
}

/// Returns whether a character is part of words. A mark belongs to the word in which it is, whatever its script.
fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    is_combining_mark(c) || c.is_alphanumeric() && !is_unspaced(c)
}

/// The slots of the cache for a whole text, and for a few words. Both are powers of two.
const CACHE_SLOTS: usize = 4096;
const SMALL_CACHE_SLOTS: usize = 16;

/// A stemmer for English words (Snowball's Porter2 algorithm). It leaves everything else unchanged.
///
/// It caches recent stems, because a text repeats few words many times.
pub struct CachedStemmer {
    /// The stemmers of other languages.
    pub in_languages: LanguageStemmers,
    stemmer: Stemmer,
    /// A direct-mapped cache: the hash of a word determines its slot, which holds the last such word.
    slots: Vec<Option<Box<StemCacheEntry>>>,
}

/// A word with its stem.
#[derive(Debug, Clone, Default)]
struct StemCacheEntry {
    word: String,
    stem: String,
}

impl std::fmt::Debug for CachedStemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CachedStemmer(English)")
    }
}

impl Default for CachedStemmer {
    fn default() -> Self {
        Self::with_slots(CACHE_SLOTS)
    }
}

impl CachedStemmer {
    /// Creates a stemmer for a few words, with a small cache that is cheap to create.
    pub fn with_small_cache() -> Self {
        Self::with_slots(SMALL_CACHE_SLOTS)
    }

    fn with_slots(slots: usize) -> Self {
        let (in_languages, stemmer) = (LanguageStemmers::default(), Stemmer::new(Algorithm::English));
        Self { in_languages, stemmer, slots: vec![None; slots] }
    }

    /// Returns the stem of a folded term.
    pub fn of<'a>(&'a mut self, term: &'a str) -> &'a str {
        let is_english = term.len() > 2 && term.bytes().all(|byte| byte.is_ascii_lowercase());
        let slots = self.slots.len();
        let Some(slot) = self.slots.get_mut(slot_of(term, slots)).filter(|_| is_english) else {
            return term;
        };
        let cached = slot.get_or_insert_default();
        if cached.word != term {
            cached.stem.clear();
            cached.stem.push_str(&self.stemmer.stem(term));
            cached.word.clear();
            cached.word.push_str(term);
        }
        &cached.stem
    }
}

/// Returns prefixes such that every English word with this stem has one of them, and few other words do. There are none
/// if no English word has the stem.
///
/// Porter2 removes endings, and changes the last letters of the remainder in few ways only: `y` to `i` (happy), `ilit`
/// to `l` (possibility), nothing to `e` (citing), and the exceptions sky and dying, lying, tying.
pub fn stem_prefixes(stem: &str) -> Vec<String> {
    if !stem.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Vec::new();
    }
    if stem.len() < 2 {
        // The stems of AED and OED are single letters.
        return if stem.is_empty() { Vec::new() } else { vec![format!("{stem}ed"), format!("{stem}ing")] };
    }
    let mut found = vec![stem.to_owned()];
    let changed = [("i", "y"), ("bl", "bilit"), ("e", "i"), ("ie", "ying"), ("sky", "skies")];
    for (end, before) in changed {
        found.extend(stem.strip_suffix(end).map(|rest| format!("{rest}{before}")));
    }
    found
}

/// Returns the slot of a word: its FNV-1a hash, reduced to the number of slots.
fn slot_of(term: &str, slots: usize) -> usize {
    let hash =
        term.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 15) as usize % slots.max(1)
}

/// Returns whether a folded term is an English stop word.
pub fn is_stop_word(term: &str) -> bool {
    Language::ENGLISH.has_stop_word(term)
}
