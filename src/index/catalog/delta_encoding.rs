//! Encoding of lists of numbers in a column: the differences of successive numbers in LEB128.

use crate::index::catalog::Place;
use crate::index::leb128::{read, write};

/// Encodes ascending numbers.
pub(super) fn pack_ascending(numbers: &[usize]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(2 * numbers.len());
    let mut before = 0;
    for &number in numbers {
        write(number.saturating_sub(before) as u64, &mut packed);
        before = number;
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

/// Encodes positions of links. The difference of two lines is zigzag-encoded, because it can be negative.
pub(super) fn pack_places(places: &[Place]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(2 * places.len() + 2);
    let mut before = Place::default();
    for place in places {
        write(place.ord.saturating_sub(before.ord) as u64, &mut packed);
        let step = place.line as i64 - before.line as i64;
        write(((step << 1) ^ (step >> 63)) as u64, &mut packed);
        before = *place;
    }
    packed
}

/// Decodes what [`pack_places`] encoded.
pub(super) fn unpack_places(mut packed: &[u8]) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    let mut place = Place::default();
    while !packed.is_empty() {
        place.ord = place.ord.checked_add(usize::try_from(read(&mut packed)?).ok()?)?;
        let coded = read(&mut packed)?;
        let step = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        place.line = place.line.checked_add_signed(isize::try_from(step).ok()?)?;
        places.push(place);
    }
    Some(places)
}
