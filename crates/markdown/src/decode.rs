//! Decoding of a file's bytes to text whose offsets are offsets in the file.

use std::borrow::Cow;

use crate::note::ParseProblem;
use crate::span::Span;

/// A file's bytes decoded so that every offset in the text is an offset in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText<'a> {
    /// The text. Each byte that is not UTF-8 is replaced by one U+001A, so that lengths agree.
    pub text: Cow<'a, str>,
    /// The problem with the bytes, if there is one.
    pub problem: Option<ParseProblem>,
}

/// Decodes a file's bytes so that every offset in the text is an offset in the file (docs/spec/obsidian.md 1.8).
///
/// For UTF-16 the text is empty and the problem `utf-16`. For other bytes that are not UTF-8 the problem is
/// `invalid-utf8`.
pub fn decode(bytes: &[u8]) -> DecodedText<'_> {
    let problem = |code, message: &str, span| Some(ParseProblem { code, message: message.to_owned(), span });
    if is_utf16(bytes) {
        let message = "the file is UTF-16 and was not read; save it as UTF-8";
        return DecodedText { text: Cow::Borrowed(""), problem: problem("utf-16", message, None) };
    }
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => {
            return DecodedText { text: Cow::Borrowed(text), problem: None };
        }
        Err(error) => error,
    };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n('\u{1A}', chunk.invalid().len()));
    }
    let at = error.valid_up_to();
    let span = Some(Span::new(at, at + error.error_len().unwrap_or(bytes.len() - at)));
    let message = "the file contains bytes that are not UTF-8; it is searched but never rewritten";
    DecodedText { text: Cow::Owned(text), problem: problem("invalid-utf8", message, span) }
}

/// Decodes like [`decode`] into an owned text. Owned bytes that are valid UTF-8 are not copied.
pub fn decode_whole(bytes: Cow<'_, [u8]>) -> (String, Option<ParseProblem>) {
    let bytes = match bytes {
        Cow::Owned(bytes) if !is_utf16(&bytes) => match String::from_utf8(bytes) {
            Ok(text) => return (text, None),
            Err(error) => Cow::Owned(error.into_bytes()),
        },
        bytes => bytes,
    };
    let DecodedText { text, problem } = decode(&bytes);
    (text.into_owned(), problem)
}

/// Returns whether bytes are UTF-16, by the byte order mark, or by NUL bytes in only one half of the byte pairs.
fn is_utf16(bytes: &[u8]) -> bool {
    let sample = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
    let is_marked = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
    if is_marked || memchr::memchr(0, sample).is_none() {
        return is_marked;
    }
    let (mut nuls, mut pairs) = ([0usize; 2], 0usize);
    for pair in sample.chunks_exact(2) {
        pairs += 1;
        for (count, byte) in nuls.iter_mut().zip(pair) {
            *count += usize::from(*byte == 0);
        }
    }
    let [even, odd] = nuls;
    let (few, many) = (even.min(odd), even.max(odd));
    pairs >= 4 && few == 0 && many * 2 > pairs
}
