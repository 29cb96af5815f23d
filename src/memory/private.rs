//! Owns what must not be kept: text that is marked private, and what looks like a key.

use std::borrow::Cow;
use std::sync::LazyLock;

use fancy_regex::Regex;

const OPEN: &str = "<private>";
const CLOSE: &str = "</private>";

/// Takes out what stands between `<private>` and `</private>`, in any case; what is not closed is private to the end.
pub fn without_private(text: &str) -> Cow<'_, str> {
    without_passages(text).0
}

/// As [`without_private`]; tells too how many passages went, and whether the last one was not closed.
pub fn without_passages(text: &str) -> (Cow<'_, str>, usize, bool) {
    let lower = text.to_ascii_lowercase();
    if !lower.contains(OPEN) {
        return (Cow::Borrowed(text), 0, false);
    }
    let mut count = 0;
    let mut kept = String::with_capacity(text.len());
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        let rest = lower.get(at..).unwrap_or("");
        if rest.starts_with(OPEN) {
            count += usize::from(depth == 0);
            depth += 1;
            at += OPEN.len();
        } else if depth > 0 && rest.starts_with(CLOSE) {
            depth -= 1;
            at += CLOSE.len();
        } else {
            let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
            if depth == 0 {
                kept.push(next);
            }
            at += next.len_utf8();
        }
    }
    (Cow::Owned(kept), count, depth > 0)
}

/// What stands for a key that was taken out.
pub const REDACTED: &str = "[redacted]";

/// Keys of known forms (spec/security.md, Secrets): of OpenAI and the like, GitHub, GitLab, Slack, Google, AWS, JSON web
/// tokens and PEM blocks.
const KEYS: &str = concat!(
    // Without its end, as far as lines of base64 and of names with values go.
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|(?:\s*\n[A-Za-z0-9+/=:, -]+(?=\n|\z))*)",
    // A digit tells a key from words that are joined by hyphens.
    r"|(?<![A-Za-z0-9_/.-])(?:sk|pk|rk)-(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{16,}",
    r"|\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}",
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}",
    r"|\b(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b",
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
);

/// A word of such signs may be a key; what stands in an address, a path, a link or an embedded file is none, nor is the
/// hash of a file.
const TOKEN: &str = concat!(
    r"(?<![A-Za-z0-9_+/=.:~#?&%\[\]-])(?<!base64,)(?!sha(?:256|384|512)-)",
    r"[A-Za-z0-9_+/=-]{32,}(?![A-Za-z0-9_+/=%\]-]|\.[A-Za-z0-9])"
);
/// So many small letters in a row are a word,
const WORD: usize = 5;
/// and where words make up more than this part of the signs, chance did not make them.
const WORDY: f64 = 0.2;
/// So many bits a sign speak of chance (Shannon); words, paths and numbers have fewer.
const RANDOM: f64 = 4.2;

static PATTERNS: LazyLock<Option<[Regex; 2]>> =
    LazyLock::new(|| Some([Regex::new(KEYS).ok()?, Regex::new(TOKEN).ok()?]));

/// Takes out what looks like a key; gives the text, and how many there were.
pub fn without_secrets(text: &str) -> (Cow<'_, str>, usize) {
    // Without the patterns nobody can tell, and then nothing is kept.
    let Some([keys, token]) = &*PATTERNS else { return (Cow::Borrowed(REDACTED), 1) };
    let known = keys.find_iter(text).flatten().map(|found| (found.start(), found.end()));
    let random = token.find_iter(text).flatten().filter(|found| is_random(found.as_str()));
    let mut spans: Vec<(usize, usize)> =
        known.chain(random.map(|found| (found.start(), found.end()))).collect();
    if spans.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    spans.sort_unstable();
    let (mut kept, mut end, mut count) = (String::with_capacity(text.len()), 0, 0);
    for (from, to) in spans {
        if from >= end {
            kept.push_str(text.get(end..from).unwrap_or(""));
            kept.push_str(REDACTED);
            count += 1;
        }
        end = end.max(to);
    }
    kept.push_str(text.get(end..).unwrap_or(""));
    (Cow::Owned(kept), count)
}

/// Says whether a word is of mixed signs, as evenly spread as chance spreads them, and not made of words.
fn is_random(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let runs = word.as_bytes().split(|byte| !byte.is_ascii_lowercase());
    let in_words: usize = runs.map(<[u8]>::len).filter(|length| *length >= WORD).sum();
    mixed && in_words as f64 <= WORDY * word.len() as f64 && bits_per_sign(word) >= RANDOM
}

/// Gives Shannon's entropy of the signs of a word, in bits.
fn bits_per_sign(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in word.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = word.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|&count| f64::from(count) / length);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}
