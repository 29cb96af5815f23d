//! The share of one content that is in another one, too, as git measures it for renames (diffcore-delta.c).
//!
//! Both contents are cut into lines, long ones every 64 bytes. The share counts the bytes of the pieces that both have.

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

    /// Returns how many bytes it takes in memory.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.allocation_size()
    }

    /// Returns the share of common content in percent, from 0 to 100. Two empty contents share nothing.
    pub fn percent_in_common(&self, other: &Self) -> u8 {
        percent(self.bytes_in(other), self.len.max(other.len))
    }

    /// Returns the share of this content that another one has, too, in percent, however long the other one is.
    pub fn percent_in(&self, other: &Self) -> u8 {
        percent(self.bytes_in(other), self.len)
    }

    /// Returns the number of bytes whose pieces another content has, too.
    fn bytes_in(&self, other: &Self) -> usize {
        let pieces = self.bytes.iter();
        pieces.map(|(piece, count)| (*count).min(other.bytes.get(piece).copied().unwrap_or(0))).sum()
    }
}

fn percent(part: usize, whole: usize) -> u8 {
    let share = (part * 100).checked_div(whole).unwrap_or(0);
    u8::try_from(share).unwrap_or(100).min(100)
}
