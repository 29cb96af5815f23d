//! Weights of 4 bits in blocks of 32, and their expansion to bytes.
//!
//! Weight j of a block is in the lower half of byte j, weight j + 16 in the upper half, each with 8 added.

/// The number of weights of a block.
pub const BLOCK: usize = 32;
/// The bytes of the weights of a block.
const HALVES: usize = BLOCK / 2;
/// The bytes of a block of a matrix: a factor, and the weights.
pub const BLOCK_BYTES: usize = 2 + HALVES;
/// The bytes of a block of a row of the embedding: a scale as a float of 16 bits, and the weights.
pub const ROW_BLOCK_BYTES: usize = 2 + HALVES;
/// What is added to each weight.
const ZERO: i16 = 8;
/// The bits of a factor behind the point.
const FRACTION_BITS: u32 = 8;

/// A matrix of weights, one column after another, each in blocks of [`BLOCK`] rows.
///
/// A byte is a weight of 4 bits times the factor of its block, divided by 256 and rounded. The number that it stands for is the
/// byte times the scale of its column. No byte is greater than 64: some processors add two products of bytes in 16 bits with saturation, and
/// with activations of 8 bits their sum fits into 16 bits then.
#[derive(Clone, Copy, Debug)]
pub struct FourBits<'a> {
    blocks: &'a [[u8; BLOCK_BYTES]],
    /// The number of rows.
    height: usize,
    /// The number of columns.
    width: usize,
}

impl<'a> FourBits<'a> {
    /// Returns the matrix of this many rows and columns. `None` if `bytes` does not have its length.
    pub fn new(bytes: &'a [u8], [height, width]: [usize; 2]) -> Option<Self> {
        let (blocks, rest) = bytes.as_chunks();
        let fits = rest.is_empty()
            && height > 0
            && width > 0
            && height.is_multiple_of(BLOCK)
            && blocks.len() == height / BLOCK * width;
        fits.then_some(Self { blocks, height, width })
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the blocks of a column.
    pub fn column(&self, column: usize) -> &'a [[u8; BLOCK_BYTES]] {
        let blocks = self.height / BLOCK;
        self.blocks.get(column * blocks..(column + 1) * blocks).unwrap_or_default()
    }

    /// Returns the weight of a row and a column as a byte.
    pub fn weight(&self, row: usize, column: usize) -> i8 {
        self.column(column).get(row / BLOCK).map_or(0, |block| expand(block)[row % BLOCK])
    }
}

/// Expands a block of a matrix to bytes.
#[inline(always)]
pub(crate) fn expand(block: &[u8; BLOCK_BYTES]) -> [i8; BLOCK] {
    let [low, high, halves @ ..] = block;
    let factor = i16::from_le_bytes([*low, *high]);
    // A weight times its factor is at most 64 · 256, so that it fits into 16 bits.
    let weight = |half: u8| ((i16::from(half) - ZERO) * factor + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS;
    let mut weights = [0; BLOCK];
    let (first, second) = weights.split_at_mut(HALVES);
    for ((first, second), byte) in first.iter_mut().zip(second).zip(halves) {
        *first = weight(byte & 15) as i8;
        *second = weight(byte >> 4) as i8;
    }
    weights
}

/// Appends a row of the embedding as floats.
pub(crate) fn extend_with_row(blocks: &[[u8; ROW_BLOCK_BYTES]], row: &mut Vec<f32>) {
    for [low, high, halves @ ..] in blocks {
        let scale = to_f32(u16::from_le_bytes([*low, *high]));
        let weight = |half: u8| (f32::from(half) - f32::from(ZERO)) * scale;
        row.extend(halves.iter().map(|byte| weight(byte & 15)));
        row.extend(halves.iter().map(|byte| weight(byte >> 4)));
    }
}

/// Converts a float of 16 bits, given by its bits.
pub fn to_f32(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, f32::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f32.powi(-24),
        31 => f32::INFINITY,
        _ => (1.0 + fraction / 1024.0) * 2f32.powi(i32::from(exponent) - 15),
    };
    if sign == 1 { -size } else { size }
}
