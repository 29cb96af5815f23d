//! Text analysis: the tokenizer that turns text into the terms of BM25, snippets and queries.
//!
//! Rules are those of spec/search.md (Text analysis): lower-cased, diacritics folded, unspaced scripts by bigrams,
//! identifiers whole and by part. One analysis serves index and query, so the two can never disagree.

use std::mem;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::text::ascii::small_run;

/// Words longer than this many bytes are data, not language, and are left out.
const LONGEST_WORD: usize = 128;
/// An identifier of more parts than this is found by its parts alone.
const MOST_PARTS: usize = 12;

/// The kind of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TermKind {
    /// A plain word.
    #[default]
    Word,
    /// A part of an identifier or compound, such as `snake` of `snake_case`.
    Part,
    /// A whole identifier or compound that was also given by parts; it shares the first part's position.
    Whole,
    /// Two neighbouring characters of an unspaced script, or a single one that stands alone.
    Gram,
    /// The last character of a longer run, so that a query for it alone finds it; queries leave it out.
    Tail,
}

/// One term with its position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    /// The folded text.
    pub text: String,
    /// Byte offset of its first character in the analysed text.
    pub start: usize,
    /// Byte offset after its last character.
    pub end: usize,
    /// The position for phrase queries.
    pub position: usize,
    /// The kind of the term.
    pub kind: TermKind,
}

#[derive(Debug, Clone, Copy)]
struct TermSpan {
    start: usize,
    end: usize,
    position: usize,
    kind: TermKind,
}

/// Walks over the terms of a text, reusing one buffer.
#[derive(Debug, Default)]
pub struct Terms<'a> {
    text: &'a str,
    at: usize,
    position: usize,
    queue: Vec<TermSpan>,
    queued: usize,
    /// Parts of the word being cut; kept for its space.
    parts: Vec<(usize, usize)>,
    current: Term,
    has_omissions: bool,
    /// Whether words are only cut where something stands between letters.
    runs: bool,
}

/// Returns every term of `text`.
pub fn terms(text: &str) -> Vec<Term> {
    let mut walk = Terms::new(text);
    let mut found = Vec::new();
    while walk.advance() {
        found.push(walk.term().clone());
    }
    found
}

impl<'a> Terms<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// Starts at the beginning of another text, in the same space.
    pub fn over<'b>(self, text: &'b str) -> Terms<'b> {
        let Self { mut queue, parts, current, .. } = self;
        queue.clear();
        Terms { text, queue, parts, current, ..Terms::default() }
    }

    /// Gives no identifiers and no parts from here on: only whole runs of letters and digits.
    pub fn in_runs(self) -> Self {
        Self { runs: true, ..self }
    }

    /// Returns the term that the last [`Terms::advance`] reached.
    pub fn term(&self) -> &Term {
        &self.current
    }

    /// Says whether something met so far is in no term as a whole: a word or identifier beyond reason.
    pub fn has_omissions(&self) -> bool {
        self.has_omissions
    }

    /// Moves to the next term; `false` at the end.
    pub fn advance(&mut self) -> bool {
        while let Some(TermSpan { start, end, position, kind }) = self.next_cut() {
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

    /// Moves to the next term and gives its text alone: most words stand in the text as they are folded.
    pub fn next_text(&mut self) -> Option<&str> {
        loop {
            if let Some((start, end)) = self.next_plain() {
                let word = self.text.get(start..end)?;
                // A plain word has a capital in front alone.
                let length = if self.runs { word.len() } else { 1 };
                if !word.bytes().take(length).any(|byte| byte.is_ascii_uppercase()) {
                    return Some(word);
                }
                self.current.text.clear();
                fold_into(word, &mut self.current.text);
                break;
            }
            let cut = self.next_cut()?;
            let raw = self.text.get(cut.start..cut.end)?;
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

    /// Passes over what stands before the next word, and over that where it is of the usual kind: then it needs no cut.
    fn next_plain(&mut self) -> Option<(usize, usize)> {
        if self.queued < self.queue.len() {
            return None;
        }
        let (bytes, runs) = (self.text.as_bytes(), self.runs);
        let is_between = |&&byte: &&u8| {
            matches!(ByteClass::of(byte), ByteClass::Space | ByteClass::Sign) && (runs || byte != b'_')
        };
        let between = bytes.get(self.at..)?.iter().take_while(is_between);
        self.at += between.count();
        let start = self.at;
        let end = if runs { plain_run(bytes, start) } else { plain_word(bytes, start) };
        let end = end.filter(|end| end - start <= LONGEST_WORD)?;
        (self.at, self.position) = (end, self.position + 1);
        Some((start, end))
    }

    fn next_cut(&mut self) -> Option<TermSpan> {
        while self.queued == self.queue.len() {
            self.queue.clear();
            self.queued = 0;
            if !self.cut_group() {
                return None;
            }
        }
        self.queued += 1;
        self.queue.get(self.queued - 1).copied()
    }

    fn push(&mut self, start: usize, end: usize, kind: TermKind) {
        if end - start <= LONGEST_WORD {
            self.queue.push(TermSpan { start, end, position: self.position, kind });
        } else {
            self.has_omissions = true;
        }
        self.position += 1;
    }

    /// Finds the next word, identifier or run of an unspaced script and queues its terms.
    fn cut_group(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if byte.is_ascii() {
                if byte.is_ascii_alphanumeric() || byte == b'_' {
                    match plain_word(bytes, self.at).filter(|_| !self.runs) {
                        Some(end) => {
                            self.push(self.at, end, TermKind::Word);
                            self.at = end;
                        }
                        None => self.cut_word_or_run(),
                    }
                    return true;
                }
                self.at += 1;
                continue;
            }
            let Some(c) = char_at(self.text, self.at) else {
                return false;
            };
            if is_unspaced(c) {
                self.cut_grams();
                return true;
            }
            if is_word(c) {
                self.cut_word_or_run();
                return true;
            }
            self.at += c.len_utf8();
        }
        false
    }

    fn cut_grams(&mut self) {
        let mut starts: [usize; 2] = [self.at, self.at];
        let mut count = 0usize;
        while let Some(c) = char_at(self.text, self.at) {
            if !(is_unspaced(c) || count > 0 && is_combining_mark(c)) {
                break;
            }
            let start = self.at;
            self.at += c.len_utf8();
            if is_combining_mark(c) && !is_unspaced(c) {
                continue;
            }
            count += 1;
            if count > 1 {
                self.push(starts[1], self.at, TermKind::Gram);
            }
            starts = [starts[1], start];
        }
        let kind = if count == 1 { TermKind::Gram } else { TermKind::Tail };
        self.push(starts[1], self.at, kind);
    }

    fn cut_word_or_run(&mut self) {
        if self.runs { self.cut_run() } else { self.cut_word() }
    }

    /// Cuts one run of letters and digits, or passes over a sign that joins some.
    fn cut_run(&mut self) {
        let begin = self.at;
        let letters = self.text.as_bytes().iter().skip(begin).take_while(|byte| byte.is_ascii_alphanumeric());
        self.at += letters.count();
        while let Some(c) = char_at(self.text, self.at).filter(|&c| is_word(c) && c != '_') {
            self.at += c.len_utf8();
        }
        if self.at > begin {
            self.push(begin, self.at, TermKind::Word);
        } else {
            self.at += 1;
        }
    }

    /// Cuts one word with the connectors and case changes inside it.
    fn cut_word(&mut self) {
        let begin = self.at;
        let mut parts = mem::take(&mut self.parts);
        parts.clear();
        let mut part_start = begin;
        let mut shape = CaseState::default();
        let mut joined = false;
        let mut apostrophe = false;
        let mut before: Option<char> = None;
        let mut end = begin;
        loop {
            // No word breaks before a small letter or a digit.
            let rest = self.text.as_bytes().get(end..).unwrap_or_default();
            let small = small_run(rest);
            if let Some(&last) = rest.get(..small).and_then(<[u8]>::last) {
                shape = CaseState { last_lower: last.is_ascii_lowercase(), last_upper: false };
                before = Some(char::from(last));
                end += small;
            }
            let Some(c) = char_at(self.text, end) else { break };
            let width = c.len_utf8();
            if is_word(c) && c != '_' {
                if before.is_some() && shape.breaks(c, self.text, end + width) {
                    parts.push((part_start, end));
                    part_start = end;
                    joined = true;
                }
                shape.push(c);
                before = Some(c);
                end += width;
                continue;
            }
            let next = char_at(self.text, end + width);
            let links = match c {
                '_' => true,
                '-' | '.' | '\'' | '\u{2019}' => {
                    before.is_some() && next.is_some_and(|n| is_word(n) && n != '_')
                }
                _ => false,
            };
            if !links || is_unspaced(c) {
                break;
            }
            if end > part_start {
                parts.push((part_start, end));
            }
            if c == '\'' || c == '\u{2019}' {
                apostrophe = true;
            } else {
                joined = true;
            }
            end += width;
            part_start = end;
            shape = CaseState::default();
            before = if c == '_' { None } else { Some(c) };
        }
        if end > part_start {
            parts.push((part_start, end));
        }
        // `C++` and `C#` are names of their own; the bare letter stays findable as a part.
        let suffix = self.text.get(end..).map_or(0, sign_suffix);
        let whole_end = end + suffix;
        self.at = whole_end.max(begin + 1);
        let is_compound = (parts.len() > 1 && joined) || suffix > 0;
        if is_compound && parts.len() <= MOST_PARTS && whole_end - begin <= LONGEST_WORD {
            let raw = self.text.get(begin..end).unwrap_or("");
            let start = begin + (raw.len() - raw.trim_start_matches('_').len());
            // It comes before its parts, so that positions never run backwards.
            self.queue.push(TermSpan {
                start,
                end: whole_end,
                position: self.position,
                kind: TermKind::Whole,
            });
        } else if is_compound {
            self.has_omissions = true;
        }
        if is_compound && parts.len() == 5 && self.text.get(begin..end).is_some_and(is_uuid) {
            // Nobody looks for a part of a UUID, and each would be a term of its own.
            self.position += 1;
            self.parts = parts;
            return;
        }
        let kind = if is_compound { TermKind::Part } else { TermKind::Word };
        for (index, &(start, stop)) in parts.iter().enumerate() {
            let tail = self.text.get(start..stop).unwrap_or("");
            if apostrophe && index > 0 && is_clitic(tail) {
                continue;
            }
            self.push(start, stop, kind);
        }
        self.parts = parts;
    }
}

/// Returns the end of the word at `at` where it is the usual kind: ASCII letters and digits, a capital at most in front,
/// and nothing after it that could join it to more. `None` where [`Terms::cut_word`] has to look closer.
fn plain_word(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at).filter(|byte| byte.is_ascii_alphanumeric())?;
    let rest = bytes.get(at + 1..)?;
    let length = small_run(rest);
    let is_open = match (rest.get(length), rest.get(length + 1)) {
        (None, _) => false,
        (Some(b'-' | b'.' | b'\''), next) => {
            next.is_some_and(|next| !next.is_ascii() || next.is_ascii_alphanumeric())
        }
        (Some(next), _) => {
            !next.is_ascii() || next.is_ascii_alphanumeric() || matches!(next, b'_' | b'+' | b'#')
        }
    };
    (!is_open).then_some(at + 1 + length)
}

/// Returns the end of the run of letters and digits at `at` where all of them are ASCII; `None` where [`Terms::cut_run`]
/// has to look closer.
fn plain_run(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    (length > 0 && rest.get(length).is_none_or(u8::is_ascii)).then_some(at + length)
}

/// The class of a byte for the tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteClass {
    /// A small letter of ASCII, or a digit.
    Small,
    /// A capital of ASCII.
    Capital,
    /// White space of ASCII.
    Space,
    /// Another sign of ASCII.
    Sign,
    /// A part of a character beyond ASCII.
    Wide,
}

impl ByteClass {
    /// Tells the class of a byte.
    pub(super) fn of(byte: u8) -> Self {
        CLASSES[usize::from(byte)]
    }
}

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

/// Remembers just enough of a word to see where `camelCase` and `HTTPServer` break.
#[derive(Default)]
struct CaseState {
    last_lower: bool,
    last_upper: bool,
}

impl CaseState {
    fn push(&mut self, c: char) {
        self.last_lower = c.is_lowercase();
        self.last_upper = c.is_uppercase();
    }

    fn breaks(&self, c: char, text: &str, next: usize) -> bool {
        if !c.is_uppercase() {
            return false;
        }
        let before_lower = || char_at(text, next).is_some_and(|n| n.is_lowercase() && !is_plural(text, next));
        self.last_lower || (self.last_upper && before_lower())
    }
}

/// Keeps `PDFs` and `IDs` in one piece: a lone `s` behind capitals is a plural.
fn is_plural(text: &str, at: usize) -> bool {
    char_at(text, at) == Some('s') && !char_at(text, at + 1).is_some_and(is_word)
}

fn sign_suffix(rest: &str) -> usize {
    let length = match rest.as_bytes() {
        [b'+', b'+', ..] => 2,
        [b'#', ..] => 1,
        _ => 0,
    };
    let ends = !rest
        .get(length..)
        .and_then(|behind| behind.chars().next())
        .is_some_and(|c| is_word(c) || is_unspaced(c) || c == '+' || c == '#');
    if ends { length } else { 0 }
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_clitic(tail: &str) -> bool {
    ["s", "t", "d", "m", "ll", "re", "ve"].iter().any(|clitic| tail.eq_ignore_ascii_case(clitic))
}

fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(&byte) if byte.is_ascii() => Some(char::from(byte)),
        Some(_) => text.get(at..).and_then(|rest| rest.chars().next()),
        None => None,
    }
}

fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c)
}

/// Says whether a script is written without spaces between words, so that only character pairs find its words.
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' // Thai, Lao
        | '\u{1000}'..='\u{109F}' // Myanmar
        | '\u{1100}'..='\u{11FF}' // Hangul letters
        | '\u{1780}'..='\u{17FF}' // Khmer
        | '\u{3005}'..='\u{3007}' // ideographic iteration and zero
        | '\u{3041}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' // kana
        | '\u{3105}'..='\u{312F}' // bopomofo
        | '\u{31F0}'..='\u{31FF}' // small kana
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' // Han
        | '\u{AC00}'..='\u{D7AF}' // Hangul syllables
        | '\u{F900}'..='\u{FAFF}' // Han, compatibility
        | '\u{FF66}'..='\u{FF9F}' // half-width kana
        | '\u{20000}'..='\u{323AF}') // Han, supplementary
}

/// Appends `raw` lower-cased, in compatibility form, without diacritics.
///
/// Marks of Latin, Greek and Cyrillic letters (U+0300–U+036F) and Arabic vowel signs go; marks that are letters in
/// their own script (Devanagari vowels, kana voicing) stay.
pub fn fold_into(raw: &str, out: &mut String) {
    if raw.is_ascii() {
        let start = out.len();
        out.push_str(raw);
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    let bare = raw.nfkd().filter(
        |&c| !matches!(c, '\u{0300}'..='\u{036F}' | '\u{064B}'..='\u{065F}' | '\u{0670}' | '\u{0640}'),
    );
    for c in bare.nfc() {
        match c {
            'ß' | 'ẞ' => out.push_str("ss"),
            'æ' | 'Æ' => out.push_str("ae"),
            'œ' | 'Œ' => out.push_str("oe"),
            'ø' | 'Ø' => out.push('o'),
            'ł' | 'Ł' => out.push('l'),
            'đ' | 'Đ' | 'ð' | 'Ð' => out.push('d'),
            'þ' | 'Þ' => out.push_str("th"),
            'ı' | 'İ' => out.push('i'),
            'ς' => out.push('σ'),
            _ => out.extend(c.to_lowercase().map(|low| if low == 'ς' { 'σ' } else { low })),
        }
    }
}

/// Remembered stems, for notes and for a query; powers of two.
const REMEMBERED: usize = 4096;
const REMEMBERED_BRIEFLY: usize = 16;

/// Reduces English words to their stems by Snowball's Porter2 algorithm; leaves everything else alone.
///
/// It remembers the words that it met last, for a text uses few words many times.
pub struct CachedStemmer {
    stemmer: Stemmer,
    /// Each word has one place, by its hash; the last that came there is in it.
    met: Vec<Option<Box<StemCacheEntry>>>,
}

#[derive(Debug, Clone, Default)]
struct StemCacheEntry {
    word: String,
    stem: String,
}

impl std::fmt::Debug for CachedStemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stem(English)")
    }
}

impl Default for CachedStemmer {
    fn default() -> Self {
        Self::remembering(REMEMBERED)
    }
}

impl CachedStemmer {
    /// Is for a few words: it remembers little, and costs little to make.
    pub fn brief() -> Self {
        Self::remembering(REMEMBERED_BRIEFLY)
    }

    fn remembering(places: usize) -> Self {
        Self { stemmer: Stemmer::new(Algorithm::English), met: vec![None; places] }
    }

    /// Returns the stem of a folded term.
    pub fn of<'a>(&'a mut self, term: &'a str) -> &'a str {
        let is_english = term.len() > 2 && term.bytes().all(|byte| byte.is_ascii_lowercase());
        let places = self.met.len();
        let Some(place) = self.met.get_mut(place_of(term, places)).filter(|_| is_english) else {
            return term;
        };
        let met = place.get_or_insert_default();
        if met.word != term {
            met.stem.clear();
            met.stem.push_str(&self.stemmer.stem(term));
            met.word.clear();
            met.word.push_str(term);
        }
        &met.stem
    }
}

/// Returns the beginnings of English words by which all words with a stem are found: each of them has one, and few others
/// do. None where no English word has the stem.
///
/// Porter2 takes endings away, and changes the last letters of what is left in a few ways only: `y` to `i` (happy),
/// `ilit` to `l` (possibility), nothing to `e` (citing), and the exceptions sky and dying, lying, tying.
pub fn stem_prefixes(stem: &str) -> Vec<String> {
    if !stem.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Vec::new();
    }
    if stem.len() < 2 {
        // Of AED and OED one letter is left.
        return if stem.is_empty() { Vec::new() } else { vec![format!("{stem}ed"), format!("{stem}ing")] };
    }
    let mut found = vec![stem.to_owned()];
    let changed = [("i", "y"), ("bl", "bilit"), ("e", "i"), ("ie", "ying"), ("sky", "skies")];
    for (end, before) in changed {
        found.extend(stem.strip_suffix(end).map(|rest| format!("{rest}{before}")));
    }
    found
}

/// FNV-1a, folded to the number of places.
fn place_of(term: &str, places: usize) -> usize {
    let hash =
        term.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 15) as usize % places.max(1)
}

/// English words too common to rank by: Lucene's list with the question words and pronouns that queries are phrased with.
const STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she", "so", "such",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Says whether a folded term is an English stop word.
pub fn is_stop_word(term: &str) -> bool {
    STOP_WORDS.binary_search(&term).is_ok()
}
