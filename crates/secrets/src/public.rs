//! Public values that look like secrets: certificates, public keys, content identifiers, hashes and base64 data.
//!
//! Private key blocks are found here too, because they have the same framing as public ones.

use std::ops::Range;

/// Byte ranges of a text, in order.
pub(super) struct ByteRanges(Vec<Range<usize>>);

impl ByteRanges {
    /// Says whether an offset is in one of the ranges.
    pub(super) fn holds(&self, at: usize) -> bool {
        let next = self.0.partition_point(|block| block.end <= at);
        self.0.get(next).is_some_and(|block| block.contains(&at))
    }
}

/// The most bytes of a label, such as `RSA PRIVATE KEY`.
const LABEL: usize = 100;

/// Finds the blocks of RFC 7468: those with private keys, and all others. A block without its end ends with the last
/// line of base64 or of a name with a value.
pub(super) fn pem_blocks(text: &str) -> (Vec<Range<usize>>, ByteRanges) {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let (mut private, mut public) = (Vec::new(), Vec::new());
    // The next end is looked for once, not again from every beginning.
    let mut ends = text.match_indices(END).map(|(at, _)| at).peekable();
    let mut begins = text.match_indices(BEGIN).map(|(at, _)| at).peekable();
    let mut done = 0;
    while let Some(start) = begins.next() {
        if start < done {
            continue;
        }
        let Some((label, body)) = label(text, start + BEGIN.len()) else { continue };
        while ends.peek().is_some_and(|end| *end < body) {
            ends.next();
        }
        let is_private = label.contains("PRIVATE KEY");
        let closing = ends.peek().copied().filter(|end| begins.peek().is_none_or(|next| end < next));
        let closed = closing.and_then(|end| super::public::label(text, end + END.len()));
        let end = match closed {
            Some((closing, end)) if closing == label => end,
            _ => body + unclosed(text.get(body..).unwrap_or("")),
        };
        if is_private {
            private.push(start..end)
        } else {
            public.push(start..end)
        }
        done = end;
    }
    (private, ByteRanges(public))
}

/// Reads a label up to its dashes; gives it with the place after them.
fn label(text: &str, start: usize) -> Option<(&str, usize)> {
    let rest = text.get(start..text.floor_char_boundary(start.saturating_add(LABEL)))?;
    let length = rest.find("-----")?;
    let label = rest.get(..length).filter(|label| !label.contains('\n'))?;
    Some((label, start + length + "-----".len()))
}

/// Measures the lines of base64, and of names with values, with which a text begins.
fn unclosed(text: &str) -> usize {
    let is_of_body = |c: char| c.is_ascii_alphanumeric() || "+/=:,\\ \t\r-".contains(c);
    let mut length = 0;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim();
        // The rest of the line after the dashes belongs to the block if line ends are escaped.
        let is_body = if at == 0 {
            content.is_empty() || content.starts_with('\\')
        } else {
            !content.is_empty() && content.chars().all(is_of_body)
        };
        if !is_body {
            break;
        }
        length += if at == 0 && content.is_empty() { line.len() } else { line.trim_end().len().max(1) };
        if line.trim_end().len() < line.len() && !(at == 0 && content.is_empty()) {
            length += line.len() - line.trim_end().len();
        }
    }
    let taken = text.get(..length).unwrap_or("");
    taken.trim_end().len()
}

/// Beginnings of what everybody may know, in base64 or base58.
const BEGINNINGS: &[&str] = &[
    // Public keys of SSH, X.509 and minisign.
    "AAAAB3NzaC",
    "AAAAC3NzaC",
    "AAAAE2Vj",
    "AAAAGnNr",
    "AAAAInNr",
    "AAAAI",
    "MIIBIjAN",
    "MIICIjAN",
    "MIGfMA0G",
    "MFkwEwYH",
    "MCowBQYDK2Vw",
    "MHYwEAYH",
    "RWQ",
    "RWR",
    "mQIN",
    "mQEN",
    "mDME",
    "xsFN",
    "xsDN",
    // Images, documents, archives, fonts, programs.
    "iVBORw0KGgo",
    "/9j/",
    "R0lGOD",
    "UklGR",
    "JVBERi0",
    "UEsDB",
    "H4sI",
    "d09G",
    "AAEAAA",
    "T2dnUw",
    "SUQz",
    "PHN2Zy",
    "PD94bWw",
    "Qk0",
    "AGFzbQ",
    "f0VMRg",
    "TVqQ",
    "AAABAA",
    "KLUv",
    "QlpoOT",
    // Content identifiers and peers.
    "Qm",
    "12D3KooW",
    "baf",
    "zb2rh",
    "zdj7",
    "did:",
    "npub1",
    "note1",
    "xpub",
    "ypub",
    "zpub",
    "tpub",
    // Hashes with their name.
    "sha1-",
    "sha256-",
    "sha384-",
    "sha512-",
    "md5-",
    "h1:",
];

/// Returns whether a value is of a public kind: a public key, a content identifier, an address, a hash with its name, a
/// file or a text in base64. `before` is the text before it on its line.
pub(super) fn is_public(value: &str, before: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
        || before.ends_with("0x")
        || value.strip_prefix("0x").is_some_and(|hex| hex.len() == 40)
        || value.starts_with("MII") && before.trim().is_empty()
        || is_coin_address(value)
        || is_text(value)
        || value.bytes().all(|byte| byte.is_ascii_hexdigit())
            && value.len() == 40
            && !before.contains(['=', ':'])
}

/// Says whether a value has the shape of an address to which coins are sent, in base58.
fn is_coin_address(value: &str) -> bool {
    let is_base58 = |byte: u8| byte.is_ascii_alphanumeric() && !b"0OIl".contains(&byte);
    (26..=35).contains(&value.len()) && value.starts_with(['1', '3']) && value.bytes().all(is_base58)
}

/// Says whether a value is text in base64: most bytes that chance makes are none.
fn is_text(value: &str) -> bool {
    let bare = value.trim_end_matches('=');
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(bare.len() * 3 / 4), 0_u32, 0);
    for byte in bare.bytes() {
        let Some(digit) = digit(byte) else { return false };
        bits = (bits << 6 | u32::from(digit)) & 0xFFF;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xFF) as u8);
        }
    }
    std::str::from_utf8(&bytes).is_ok_and(|text| {
        text.len() >= 12 && text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'))
    })
}

/// The least width of a line of wrapped base64.
const WRAPPED: usize = 56;

/// Says whether a token is a line of base64 that goes on in the line before or after it, as files in mails do.
pub(super) fn is_wrapped(text: &str, start: usize, end: usize) -> bool {
    let bytes = text.as_bytes();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let width = end - start;
    let above = bytes.get(..start).unwrap_or(&[]);
    let above = above.strip_suffix(b"\n").map(|above| above.strip_suffix(b"\r").unwrap_or(above));
    let above =
        above.map_or(0, |above| above.iter().rev().take(100).take_while(|byte| is_base64(byte)).count());
    let below = bytes.get(end..).unwrap_or(&[]);
    let below = below.strip_prefix(b"\r").unwrap_or(below).strip_prefix(b"\n");
    let below = below.map_or(0, |below| below.iter().take(100).take_while(|byte| is_base64(byte)).count());
    above >= WRAPPED && width <= above || width >= WRAPPED && below >= 1 && below <= width && below > 3
}
