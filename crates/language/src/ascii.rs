//! SWAR classification of ASCII: letters, digits and white space in eight bytes at a time.
//!
//! A set is a `u64` in which the high bit of each byte says whether the byte belongs to the set. The first byte is the
//! lowest. Additions use seven bits of each byte, so that no byte carries into the next.

/// The set of all eight bytes.
pub const ALL: u64 = every(0x80);

const fn every(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Returns the set of bytes from `first` to `last`, both of which are ASCII.
fn within(chunk: u64, first: u8, last: u8) -> u64 {
    let low = chunk & !ALL;
    let reaches = |first: u8| low + every(0x80 - first);
    reaches(first) & !reaches(last + 1) & !chunk & ALL
}

/// Returns the set of small letters and digits.
pub(super) fn small_letters(chunk: u64) -> u64 {
    within(chunk, b'a', b'z') | within(chunk, b'0', b'9')
}

/// Returns the set of letters of either case and digits.
#[inline]
pub fn letters(chunk: u64) -> u64 {
    // Setting this bit turns a capital into a small letter.
    within(chunk | every(0x20), b'a', b'z') | within(chunk, b'0', b'9')
}

/// Returns the bytes with capitals as small letters.
pub(super) fn lower_case(chunk: u64) -> u64 {
    chunk | within(chunk, b'A', b'Z') >> 2
}

/// Returns the set of white space, as [`u8::is_ascii_whitespace`] says.
#[inline]
pub fn spaces(chunk: u64) -> u64 {
    within(chunk, b' ', b' ') | within(chunk, b'\t', b'\n') | within(chunk, b'\x0C', b'\r')
}

/// Packs a set into the eight bits of one byte, the first byte in the lowest bit.
#[inline]
pub fn packed_bits(set: u64) -> u8 {
    // The multiplication moves each bit to its position in the highest byte.
    ((set >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// Counts the bytes before the first one that is not a small letter or a digit.
pub(super) fn small_run(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks();
    for (at, chunk) in chunks.iter().enumerate() {
        let others = ALL & !small_letters(u64::from_le_bytes(*chunk));
        if others != 0 {
            return 8 * at + others.trailing_zeros() as usize / 8;
        }
    }
    let is_small = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    8 * chunks.len() + rest.iter().take_while(is_small).count()
}
