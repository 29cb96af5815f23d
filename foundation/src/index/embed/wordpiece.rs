//! WordPiece, the tokenizer of uncased BERT models. It converts a text to ids of a `vocab.txt`, and does not depend on
//! a model.
//!
//! The rules are those of BERT's `tokenization.py`, and the ids equal those of the crate `tokenizers`. Both read
//! categories from the outdated tables of `unicode_categories`, since the model was trained with such tables.

use std::iter;

use hashbrown::HashMap;
use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// The id of a word that cannot be split into known pieces.
const UNKNOWN_ID: u32 = 100;
/// The id at the start of every sequence.
const START_ID: u32 = 101;
/// The id at the end of every sequence.
const END_ID: u32 = 102;
/// The most characters of a word. A longer word is unknown.
const MAX_WORD_LENGTH: usize = 100;

/// A tokenizer that splits text into the pieces of a vocabulary, the longest piece first.
#[derive(Debug)]
pub struct WordPiece {
    /// The pieces that begin a word.
    heads: HashMap<&'static str, u32>,
    /// The pieces that continue a word.
    tails: HashMap<&'static str, u32>,
    /// The length of the longest piece in bytes.
    longest: usize,
}

impl WordPiece {
    /// The number of special tokens that [`encode`](Self::encode) adds to a text.
    pub const SPECIAL_TOKENS: usize = 2;

    /// Reads a BERT vocabulary with one piece per line. The id of a piece is the number of its line from 0, a piece
    /// that continues a word begins with `##`, and `[UNK]`, `[CLS]` and `[SEP]` have the ids 100 to 102.
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

    /// Returns the id of a piece that begins a word. `None` if the vocabulary does not have it.
    pub fn head_id(&self, piece: &str) -> Option<u32> {
        self.heads.get(piece).copied()
    }

    /// Returns the ids of `text` with the special tokens, truncated to `limit` ids in all.
    pub fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let ids = self.ids(text, limit.saturating_sub(Self::SPECIAL_TOKENS));
        iter::once(START_ID).chain(ids).chain(iter::once(END_ID)).collect()
    }

    /// Counts the ids of the whole `text`, without the special tokens.
    pub fn count(&self, text: &str) -> usize {
        self.ids(text, usize::MAX).len()
    }

    /// Returns the first `limit` ids of `text`. No more of the text is read than they need.
    fn ids(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut word = String::new();
        for c in normalize(text).chain(iter::once(' ')) {
            let is_single = is_single_word(c);
            if !is_single && !c.is_whitespace() {
                // A word that is too long to be known need not be stored completely.
                if word.len() <= MAX_WORD_LENGTH * char::MAX.len_utf8() {
                    word.push(c);
                }
                continue;
            }
            self.split_word(&word, &mut ids);
            word.clear();
            if is_single {
                self.split_word(c.encode_utf8(&mut [0; 4]), &mut ids);
            }
            if ids.len() >= limit {
                break;
            }
        }
        ids.truncate(limit);
        ids
    }

    /// Appends the ids of the pieces of one word, the longest matching piece first. If a remainder matches no piece,
    /// the whole word is unknown.
    fn split_word(&self, word: &str, ids: &mut Vec<u32>) {
        let known = ids.len();
        let mut rest = if word.chars().count() > MAX_WORD_LENGTH { "" } else { word };
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
            ids.push(UNKNOWN_ID);
        }
    }
}

/// Removes control characters and accents, and converts to lower case.
fn normalize(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .filter(|&c| !is_removed(c))
        .nfd()
        .filter(|c| c.is_ascii() || !c.is_mark_nonspacing())
        .flat_map(char::to_lowercase)
}

/// Returns whether a character is removed before tokenization. Tabs and line ends are white space; other control
/// characters are removed.
fn is_removed(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | ' '..='~' => false,
        '\0' | char::REPLACEMENT_CHARACTER => true,
        _ => c.is_other(),
    }
}

/// Returns whether a character is a word by itself: punctuation, which includes every ASCII symbol, and Chinese
/// characters.
fn is_single_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    is_chinese(c) || c.is_punctuation()
}

/// Returns whether a character is in the blocks that BERT treats as Chinese. The gap before U+2B920 is in the original.
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
