//! Short words of ASCII letters and digits, found and folded eight bytes at a time. Most words of most texts are such.

use crate::ascii::{ALL, letters, lower_case, small_letters};

/// The most bytes of a short word.
pub const MAX_SHORT: usize = 16;

/// A short word in folded form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortWord {
    /// The bytes in lower case, the first one lowest. Above the last one are zeros.
    pub folded: u128,
    /// The number of bytes.
    pub length: usize,
}

/// Returns the bytes of a term of at most [`MAX_SHORT`] bytes as those of a [`ShortWord`]; those before that limit of a
/// longer one.
#[inline]
pub fn packed(term: &[u8]) -> u128 {
    let mut bytes = [0; MAX_SHORT];
    bytes.iter_mut().zip(term).for_each(|(to, &from)| *to = from);
    u128::from_le_bytes(bytes)
}

/// Returns the word at `at` if it is short and plain: ASCII letters and digits, at most the first of them a capital, and
/// no connector after it. Returns `None` for all others, and near the end of a text.
#[inline]
pub(super) fn short_word(bytes: &[u8], at: usize) -> Option<ShortWord> {
    let window = window(bytes, at)?;
    let first = u64::from(window[0].is_ascii_uppercase()) << 7;
    let word =
        packed_word(window, |chunk, is_first| small_letters(chunk) | if is_first { first } else { 0 })?;
    let behind = bytes.get(at + word.length..)?;
    (!continues(*behind.first()?, behind.get(1).copied())).then_some(word)
}

/// Returns the run of letters and digits at `at` if it is short and ASCII. Returns `None` for all others, and near the end
/// of a text.
#[inline]
pub(super) fn short_run(bytes: &[u8], at: usize) -> Option<ShortWord> {
    let word = packed_word(window(bytes, at)?, |chunk, _| letters(chunk))?;
    // A window that is full of letters can be the beginning of a longer run.
    let behind = bytes.get(at + word.length)?;
    (behind.is_ascii() && !behind.is_ascii_alphanumeric()).then_some(word)
}

/// Says whether a word of small letters goes on with `next`, or may do so: with a capital, a connector, or a letter or mark
/// that is not ASCII. `second` is the byte behind `next`.
#[inline]
pub(super) fn continues(next: u8, second: Option<u8>) -> bool {
    match FOLLOWERS[usize::from(next)] {
        Follower::End => false,
        Follower::Part => true,
        Follower::Connector => second.is_some_and(|byte| !byte.is_ascii() || byte.is_ascii_alphanumeric()),
    }
}

/// What a byte behind a word is.
#[derive(Clone, Copy)]
enum Follower {
    /// It is not a part of the word.
    End,
    /// It is or may be a part of the word.
    Part,
    /// It is a part of the word if a letter or digit follows.
    Connector,
}

static FOLLOWERS: [Follower; 256] = {
    let mut followers = [Follower::Part; 256];
    let mut byte = 0;
    while byte < 128u8 {
        followers[byte as usize] = match byte {
            b'-' | b'.' | b'\'' => Follower::Connector,
            b'_' | b'+' | b'#' => Follower::Part,
            _ if byte.is_ascii_alphanumeric() => Follower::Part,
            _ => Follower::End,
        };
        byte += 1;
    }
    followers
};

fn window(bytes: &[u8], at: usize) -> Option<&[u8; MAX_SHORT]> {
    bytes.get(at..)?.first_chunk()
}

/// Returns the word at the start of a window. `letters` says which bytes of a chunk belong to it.
#[inline(always)]
fn packed_word(window: &[u8; MAX_SHORT], letters: impl Fn(u64, bool) -> u64) -> Option<ShortWord> {
    let (chunks, _) = window.as_chunks();
    let &[first, second] = chunks else { return None };
    let [first, second] = [first, second].map(u64::from_le_bytes);
    let others = ALL & !letters(first, true);
    if others != 0 {
        let length = others.trailing_zeros() / 8;
        // The lowest bit of `others` is the high bit of the byte behind the word.
        let folded = lower_case(first) & ((others & others.wrapping_neg()) >> 7).wrapping_sub(1);
        return (length > 0).then_some(ShortWord { folded: u128::from(folded), length: length as usize });
    }
    let others = ALL & !letters(second, false);
    let length = others.trailing_zeros() / 8;
    let above = lower_case(second) & ((others & others.wrapping_neg()) >> 7).wrapping_sub(1);
    let folded = u128::from(lower_case(first)) | u128::from(above) << 64;
    Some(ShortWord { folded, length: 8 + length as usize })
}
