//! How much of one content is found again in another one, as git measures it for renames (diffcore-delta.c).
//!
//! Both contents are cut into lines, long ones every 64 bytes. The share is that of the bytes whose pieces both have.

use hashbrown::HashMap;

/// The longest piece, in bytes.
const PIECE: usize = 64;

/// The pieces of a content with the number of bytes of each.
#[derive(Debug, Clone, Default)]
pub struct ContentPieces {
    bytes: HashMap<[u8; 16], usize>,
    len: usize,
}

impl ContentPieces {
    /// Cuts a content into pieces. A carriage return in front of a line feed does not count.
    pub fn of(content: &[u8]) -> Self {
        let mut pieces = Self { bytes: HashMap::new(), len: content.len() };
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            let plain = line.strip_suffix(b"\r\n").map(|line| [line, b"\n"].concat());
            for piece in plain.as_deref().unwrap_or(line).chunks(PIECE) {
                let hash = blake3::hash(piece);
                let mut key = [0; 16];
                key.copy_from_slice(&hash.as_bytes()[..16]);
                *pieces.bytes.entry(key).or_default() += piece.len();
            }
        }
        pieces
    }

    /// Returns the share of common content in percent, from 0 to 100. Two empty contents share nothing.
    pub fn percent_in_common(&self, other: &Self) -> u8 {
        let longer = self.len.max(other.len);
        if longer == 0 {
            return 0;
        }
        let common: usize = self
            .bytes
            .iter()
            .map(|(piece, count)| (*count).min(other.bytes.get(piece).copied().unwrap_or(0)))
            .sum();
        u8::try_from(common * 100 / longer).unwrap_or(100).min(100)
    }
}
