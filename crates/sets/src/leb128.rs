//! LEB128, the variable-length encoding of integers: seven bits per byte, the lowest first.

/// Appends the encoding of `number` to `out`.
#[inline]
pub fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes the number at the beginning of `packed`, and advances `packed` past it. Returns `None` if there is no
/// complete number.
#[inline]
pub fn read(packed: &mut &[u8]) -> Option<u64> {
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
