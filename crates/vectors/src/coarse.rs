//! Coarse vectors, which have two bits for each component of the difference from a centre. The graph compares these, in a
//! quarter of the memory, and the candidates that it finds are compared exactly.

/// The components in a word of a plane.
const WORD: usize = 64;
/// The bytes of a word.
const WORD_BYTES: usize = WORD / 8;
/// The multiple of the root mean square of a vector from which on a component counts as large. With this threshold and the
/// values −3, −1, 1 and 3, the passages nearest to 300 queries were found best among 200,000; quantizers for a normal
/// distribution use .98 (Max 1960, doi:10.1109/TIT.1960.1057548).
const LARGE: f32 = 0.8;

/// Returns the length of a vector.
pub(super) fn length(vector: &[i8]) -> f32 {
    vector.iter().map(|&x| f32::from(x) * f32::from(x)).sum::<f32>().sqrt()
}

/// Returns the number of bytes of a coarse vector with this number of dimensions.
pub(super) fn size(dimensions: usize) -> usize {
    2 * dimensions.div_ceil(WORD) * WORD_BYTES
}

/// Returns a coarse vector as a graph takes it.
pub(super) fn signed(coarse: &[u8]) -> Vec<i8> {
    coarse.iter().map(|byte| byte.cast_signed()).collect()
}

/// Makes a vector of bytes coarse: its difference from a centre, which has as many components, when it is scaled to length 1.
/// Vectors of many models have most of their length in common, and two bits for each component would be alike.
///
/// The first half has a bit for each component: whether it is positive. The second half says whether it is large if it is
/// positive, and whether it is small if it is not: with these as ±1, a component is two times the first plus the second.
pub(super) fn coarse(vector: &[i8], centre: &[f32]) -> Vec<u8> {
    let shrink = 1.0 / length(vector).max(f32::MIN_POSITIVE);
    let difference = vector.iter().zip(centre).map(|(&x, centre)| f32::from(x) * shrink - centre);
    let difference: Vec<f32> = difference.collect();
    let sum: f32 = difference.iter().map(|x| x * x).sum();
    let threshold = LARGE * (sum / vector.len().max(1) as f32).sqrt();
    let plane = |bit: &dyn Fn(f32) -> bool| {
        let words = difference.chunks(WORD).flat_map(|part| {
            let bits = part.iter().enumerate().map(|(at, &x)| u64::from(bit(x)) << at);
            bits.fold(0, |word, bit| word | bit).to_le_bytes()
        });
        words.collect::<Vec<u8>>()
    };
    let is_positive = |x: f32| x > 0.0;
    let is_large = |x: f32| x.abs() > threshold;
    [plane(&is_positive), plane(&|x| is_positive(x) == is_large(x))].concat()
}

/// The number of bits in which the planes of two coarse vectors differ, weighted by what they count in a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Differences {
    /// Of both vectors.
    both: u32,
    /// Of the planes of the first vector.
    first: u32,
    /// Of the planes of the second vector.
    second: u32,
}

impl Differences {
    /// Counts the differences of two coarse vectors of the same size.
    #[inline(always)]
    pub(super) fn count(a: &[u8], b: &[u8]) -> Self {
        let ((a_signs, a_sizes), (b_signs, b_sizes)) = (planes(a), planes(b));
        let (mut both, mut first, mut second) = (0, 0, 0);
        for ((a_sign, a_size), (b_sign, b_size)) in
            a_signs.iter().zip(a_sizes).zip(b_signs.iter().zip(b_sizes))
        {
            let [a_sign, a_size, b_sign, b_size] =
                [a_sign, a_size, b_sign, b_size].map(|bytes| u64::from_ne_bytes(*bytes));
            both += 4 * (a_sign ^ b_sign).count_ones()
                + 2 * ((a_sign ^ b_size).count_ones() + (a_size ^ b_sign).count_ones())
                + (a_size ^ b_size).count_ones();
            first += (a_sign ^ a_size).count_ones();
            second += (b_sign ^ b_size).count_ones();
        }
        Self { both, first, second }
    }

    /// Returns the cosine of the vectors, which have this number of dimensions.
    pub(super) fn cosine(self, dimensions: usize) -> f32 {
        // With bits as ±1, the product of two planes is the number of bits less twice the number of differences.
        let all = 9.0 * dimensions as f32;
        let product = all - 2.0 * self.both as f32;
        let [first, second] = [self.first, self.second].map(|within| all - 8.0 * within as f32);
        product / (first * second).sqrt()
    }
}

#[inline(always)]
fn planes(vector: &[u8]) -> (&[[u8; WORD_BYTES]], &[[u8; WORD_BYTES]]) {
    let (signs, sizes) = vector.split_at(vector.len() / 2);
    (signs.as_chunks().0, sizes.as_chunks().0)
}
