//! Escapes of quoted strings in YAML and JSON, with a map from decoded text to raw bytes, so that a link inside a string
//! can be replaced in the file (docs/spec/obsidian.md 4.5).

use crate::span::Span;

/// The escaping of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteStyle {
    /// Nothing is escaped: the bytes are the text.
    None,
    /// YAML single quotes: a quote is doubled.
    Single,
    /// YAML double quotes: backslash escapes.
    Double,
    /// A JSON string: a subset of the escapes of YAML double quotes.
    Json,
}

/// The text of a quoted string with a map from its offsets back to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnquotedString {
    /// The decoded text.
    pub text: String,
    /// The offset of the string's bytes in the file.
    at: usize,
    /// The escapes, in order. Between them the offsets in text and file advance together.
    escapes: Vec<EscapeSequence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EscapeSequence {
    /// The start of the character in the text.
    start: usize,
    /// The end of the character in the text.
    end: usize,
    /// The end of the escape in the file.
    raw_end: usize,
}

impl UnquotedString {
    /// Decodes `body`, the bytes between the quotes, which start at `at` in the file. Returns `None` if an escape is
    /// unknown or the string contains a line end, which YAML would fold.
    pub fn read(body: &str, at: usize, quote: QuoteStyle) -> Option<Self> {
        let escape = match quote {
            QuoteStyle::None => None,
            QuoteStyle::Single => Some('\''),
            QuoteStyle::Double | QuoteStyle::Json => Some('\\'),
        };
        if body.contains(['\n', '\r']) {
            return None;
        }
        let mut read = Self { text: String::with_capacity(body.len()), at, escapes: Vec::new() };
        let mut rest = body;
        while let Some(run) = escape.and_then(|sign| rest.find(sign)) {
            let (plain, tail) = rest.split_at(run);
            let (c, len) = match quote {
                QuoteStyle::Single => tail.starts_with("''").then_some(('\'', 2))?,
                _ => escaped(tail, quote)?,
            };
            read.text.push_str(plain);
            let start = read.text.len();
            read.text.push(c);
            rest = tail.get(len..)?;
            let raw_end = at + body.len() - rest.len();
            read.escapes.push(EscapeSequence { start, end: read.text.len(), raw_end });
        }
        read.text.push_str(rest);
        Some(read)
    }

    /// Maps a span of the text to the bytes of the file, with whole escapes at both ends.
    pub fn raw(&self, span: Span) -> Span {
        let offset =
            |offset| self.in_step(offset, self.escapes.partition_point(|escape| escape.end <= offset));
        Span::new(offset(span.start), offset(span.end))
    }

    /// Splits `span` of the text before each escape, and returns the bytes of the file to which
    /// [`searchable`](crate::canvas::searchable) writes the parts.
    pub fn runs(&self, span: Span) -> Vec<Span> {
        let mut runs = Vec::new();
        let mut start = span.start;
        let mut next = self.escapes.partition_point(|escape| escape.start <= start);
        while start < span.end {
            let end = self.escapes.get(next).map_or(span.end, |escape| escape.start.min(span.end));
            let raw_start = self.in_step(start, next);
            runs.push(Span::new(raw_start, raw_start + (end - start)));
            (start, next) = (end, next + 1);
        }
        runs
    }

    /// Maps an offset between the start of the escape with the index `next - 1` and the escape with the index `next`.
    fn in_step(&self, offset: usize, next: usize) -> usize {
        match next.checked_sub(1).and_then(|last| self.escapes.get(last)) {
            Some(last) => (last.raw_end + offset).saturating_sub(last.end),
            None => self.at + offset,
        }
    }
}

/// Reads the backslash escape at the start of `text`: the character and the length of the escape in bytes.
///
/// An unpaired surrogate becomes U+FFFD, as in JavaScript.
pub fn escaped(text: &str, quote: QuoteStyle) -> Option<(char, usize)> {
    let sign = *text.as_bytes().get(1)?;
    let short = |c| Some((c, 2));
    match sign {
        b'"' => short('"'),
        b'\\' => short('\\'),
        b'/' => short('/'),
        b'b' => short('\u{8}'),
        b'f' => short('\u{C}'),
        b'n' => short('\n'),
        b'r' => short('\r'),
        b't' => short('\t'),
        b'u' => {
            let high = hex(text, 2, 4)?;
            let low = text.get(6..8).filter(|&pair| pair == "\\u").and_then(|_| hex(text, 8, 4));
            Some(match (high, low) {
                (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => {
                    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    (char::from_u32(code).unwrap_or('\u{FFFD}'), 12)
                }
                _ => (char::from_u32(high).unwrap_or('\u{FFFD}'), 6),
            })
        }
        _ if quote == QuoteStyle::Json => None,
        b'0' => short('\0'),
        b'a' => short('\u{7}'),
        b'\t' => short('\t'),
        b'v' => short('\u{B}'),
        b'e' => short('\u{1B}'),
        b' ' => short(' '),
        b'N' => short('\u{85}'),
        b'_' => short('\u{A0}'),
        b'L' => short('\u{2028}'),
        b'P' => short('\u{2029}'),
        b'x' => Some((char::from_u32(hex(text, 2, 2)?)?, 4)),
        b'U' => Some((char::from_u32(hex(text, 2, 8)?)?, 10)),
        _ => None,
    }
}

fn hex(text: &str, at: usize, len: usize) -> Option<u32> {
    let digits = text.get(at..at + len)?;
    let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
    all.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}
