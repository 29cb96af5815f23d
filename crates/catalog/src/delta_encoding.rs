//! Encoding of lists of numbers in a column: the differences of successive numbers in LEB128.

use sidenote_sets::leb128::{read, write};

use crate::{LinkPosition, LinkRole};

/// Encodes ascending numbers.
pub(super) fn pack_ascending(numbers: &[usize]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(2 * numbers.len());
    let mut previous = 0;
    for &number in numbers {
        write(number.saturating_sub(previous) as u64, &mut packed);
        previous = number;
    }
    packed
}

/// Decodes what [`pack_ascending`] encoded.
pub(super) fn unpack_ascending(mut packed: &[u8]) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    let mut number: usize = 0;
    while !packed.is_empty() {
        number = number.checked_add(usize::try_from(read(&mut packed)?).ok()?)?;
        numbers.push(number);
    }
    Some(numbers)
}

/// The bits of the first number of a position that are the role of the link.
const ROLE_BITS: u32 = 2;

/// Encodes positions of links. The difference of two lines is zigzag-encoded, because it can be negative. The low bits of
/// the first number are the role.
pub(super) fn pack_positions(positions: &[LinkPosition]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(2 * positions.len() + 2);
    let mut previous = LinkPosition::default();
    for position in positions {
        let ord = position.ord.saturating_sub(previous.ord) as u64;
        write(ord << ROLE_BITS | position.role.code(), &mut packed);
        let step = position.line as i64 - previous.line as i64;
        write(((step << 1) ^ (step >> 63)) as u64, &mut packed);
        previous = *position;
    }
    packed
}

/// Decodes what [`pack_positions`] encoded.
pub(super) fn unpack_positions(mut packed: &[u8]) -> Option<Vec<LinkPosition>> {
    let mut positions = Vec::new();
    let mut position = LinkPosition::default();
    while !packed.is_empty() {
        let first = read(&mut packed)?;
        position.role = LinkRole::from_code(first & ((1 << ROLE_BITS) - 1));
        position.ord = position.ord.checked_add(usize::try_from(first >> ROLE_BITS).ok()?)?;
        let coded = read(&mut packed)?;
        let step = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        position.line = position.line.checked_add_signed(isize::try_from(step).ok()?)?;
        positions.push(position);
    }
    Some(positions)
}
