//! Owns WordPiece, the tokenizer of BERT models without case: text to ids of a `vocab.txt`. Knows no model.
//!
//! The rules are those of BERT's `tokenization.py`, and the ids equal those of the `tokenizers` crate: both read
//! categories from the tables of `unicode_categories`, old as these are, since the model was trained with the like.

use std::collections::HashMap;
use std::iter;

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// Stands for a word that no pieces spell.
const UNKNOWN: u32 = 100;
/// Opens every sequence.
const START: u32 = 101;
/// Closes every sequence.
const END: u32 = 102;
/// Words of more characters than this are unknown.
const LONGEST_WORD: usize = 100;

/// Splits text into the pieces of a vocabulary, longest first.
#[derive(Debug)]
pub struct WordPiece {
    heads: HashMap<&'static str, u32>,
    tails: HashMap<&'static str, u32>,
    longest: usize,
}

impl WordPiece {
    /// Counts the marks that [`encode`](Self::encode) sets around a text.
    pub const MARKS: usize = 2;

    /// Reads a BERT vocabulary: one piece a line, its id the line's number from 0, `##` before a piece that
    /// continues a word, `[UNK]`, `[CLS]` and `[SEP]` at 100 to 102.
    pub fn new(vocabulary: &'static str) -> Self {
        let mut heads = HashMap::with_capacity(28_000);
        let mut tails = HashMap::with_capacity(7_000);
        let mut longest = 0;
        for (id, line) in (0..).zip(vocabulary.lines()) {
            longest = longest.max(line.len());
            match line.strip_prefix("##") {
                Some(tail) => tails.insert(tail, id),
                None => heads.insert(line, id),
            };
        }
        Self { heads, tails, longest }
    }

    /// Gives the ids of `text` between their two marks, cut to `limit` ids in all.
    pub fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let ids = self.ids(text, limit.saturating_sub(Self::MARKS));
        iter::once(START).chain(ids).chain(iter::once(END)).collect()
    }

    /// Counts the ids of the whole of `text`, without the marks.
    pub fn count(&self, text: &str) -> usize {
        self.ids(text, usize::MAX).len()
    }

    /// Gives the first `limit` ids of `text`, and reads no further than they reach.
    fn ids(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut word = String::new();
        for c in normalised(text).chain(iter::once(' ')) {
            let alone = stands_alone(c);
            if !alone && !c.is_whitespace() {
                // Once it is too long to be known, a word need not be held any longer.
                if word.len() <= LONGEST_WORD * char::MAX.len_utf8() {
                    word.push(c);
                }
                continue;
            }
            self.cut(&word, &mut ids);
            word.clear();
            if alone {
                self.cut(c.encode_utf8(&mut [0; 4]), &mut ids);
            }
            if ids.len() >= limit {
                break;
            }
        }
        ids.truncate(limit);
        ids
    }

    /// Appends the pieces of one word, the longest that fits first; a rest that no piece begins makes the whole word
    /// unknown.
    fn cut(&self, word: &str, ids: &mut Vec<u32>) {
        let known = ids.len();
        let mut rest = if word.chars().count() > LONGEST_WORD { "" } else { word };
        let mut table = &self.heads;
        while !rest.is_empty() {
            let found = (1..=self.longest.min(rest.len())).rev().find_map(|len| {
                let (piece, after) = rest.split_at_checked(len)?;
                Some((*table.get(piece)?, after))
            });
            let Some((id, after)) = found else {
                ids.truncate(known);
                break;
            };
            ids.push(id);
            rest = after;
            table = &self.tails;
        }
        if ids.len() == known && !word.is_empty() {
            ids.push(UNKNOWN);
        }
    }
}

/// Drops control characters and accents and lower-cases.
fn normalised(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .filter(|&c| !is_dropped(c))
        .nfd()
        .filter(|c| c.is_ascii() || !c.is_mark_nonspacing())
        .flat_map(char::to_lowercase)
}

/// Says whether a character is nothing to the model: tabs and line ends are white space, other controls are not there.
fn is_dropped(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | ' '..='~' => false,
        '\0' | char::REPLACEMENT_CHARACTER => true,
        _ => c.is_other(),
    }
}

/// Says whether a character is a word of its own: punctuation (every ASCII symbol counts) and Chinese characters.
fn stands_alone(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    is_chinese(c) || c.is_punctuation()
}

/// Knows the blocks that BERT takes for Chinese; the gap before U+2B920 is in the original.
fn is_chinese(c: char) -> bool {
    matches!(
        c,
        '\u{4E00}'..='\u{9FFF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{20000}'..='\u{2A6DF}'
            | '\u{2A700}'..='\u{2B73F}'
            | '\u{2B740}'..='\u{2B81F}'
            | '\u{2B920}'..='\u{2CEAF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{2F800}'..='\u{2FA1F}'
    )
}
