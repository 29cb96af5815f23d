//! Owns how a number takes up few bytes where it is small: LEB128, seven bits in each byte, the lowest first.

/// Writes a number behind `out`.
pub(super) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes the number that `packed` begins with; `None` where there is none.
pub(super) fn take(packed: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = packed.split_first()?;
        *packed = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
