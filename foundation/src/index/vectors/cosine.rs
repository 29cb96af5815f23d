//! The cosines of vectors of bytes and of coarse vectors, by the widest instructions that the processor has. This is one of five
//! files with unsafe code: it calls what is compiled for such instructions, and reads the vectors to which usearch points.
#![allow(unsafe_code, reason = "instructions that not every processor has, and pointers of usearch")]

use std::sync::LazyLock;

use usearch::VectorType as _;
use usearch::ffi::ScalarKind;

use super::coarse::{self, Differences};
use super::graph_error;
use crate::error::{Error, Result};

/// The sums of products of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Products {
    /// Of both vectors.
    both: i32,
    /// Of the first vector with itself.
    first: i32,
    /// Of the second vector with itself.
    second: i32,
}

impl Products {
    fn cosine(self) -> f32 {
        if self.first == 0 || self.second == 0 {
            return 0.0;
        }
        self.both as f32 / ((self.first as f32).sqrt() * (self.second as f32).sqrt())
    }
}

/// A function that multiplies two vectors of the same length.
///
/// # Safety
/// The processor has the instructions for which it is compiled.
type Multiply = unsafe fn(&[i8], &[i8]) -> Products;

/// The functions that the processor can run, by the instructions for which they are compiled, the widest first.
static MULTIPLY: LazyLock<Vec<(&str, Multiply)>> = LazyLock::new(|| {
    let mut functions: Vec<(&str, Multiply)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
            functions.push(("AVX-512 VNNI", x86::multiply_avx512));
        }
        if is_x86_feature_detected!("avx2") {
            functions.push(("AVX2", x86::multiply_avx2));
        }
    }
    functions.push(("all processors", multiply));
    functions
});

/// Returns the cosine of two vectors by each set of instructions that the processor has, the one in use first.
pub fn cosine_by_instructions(a: &[i8], b: &[i8]) -> Vec<(&'static str, f32)> {
    let length = a.len().min(b.len());
    let (a, b) = (a.get(..length).unwrap_or(a), b.get(..length).unwrap_or(b));
    // SAFETY: The list has what this processor can run.
    MULTIPLY.iter().map(|(name, multiply)| (*name, unsafe { multiply(a, b) }.cosine())).collect()
}

/// Returns the cosine of two vectors; 0 if one of them is zero. The longer one is cut to the length of the shorter one.
pub(super) fn cosine(a: &[i8], b: &[i8]) -> f32 {
    let length = a.len().min(b.len());
    let (a, b) = (a.get(..length).unwrap_or(a), b.get(..length).unwrap_or(b));
    let multiply = MULTIPLY.first().map_or(multiply as Multiply, |(_, multiply)| *multiply);
    // SAFETY: The list has what this processor can run.
    unsafe { multiply(a, b) }.cosine()
}

/// Returns the cosine of a vector and another one that is stored as bytes, as [`cosine`] does.
pub(super) fn cosine_of_stored(a: &[i8], stored: &[u8]) -> f32 {
    // SAFETY: Bytes with a sign have the size and the alignment of those without.
    cosine(a, unsafe { std::slice::from_raw_parts(stored.as_ptr().cast(), stored.len()) })
}

/// A function that counts the differences of two coarse vectors of the same size.
///
/// # Safety
/// The processor has the instructions for which it is compiled.
type Count = unsafe fn(&[u8], &[u8]) -> Differences;

/// The functions that the processor can run, by the instructions for which they are compiled, the widest first.
static COUNT: LazyLock<Vec<(&str, Count)>> = LazyLock::new(|| {
    let mut functions: Vec<(&str, Count)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vpopcntdq") {
            functions.push(("AVX-512 VPOPCNTDQ", x86::count_avx512));
        }
        if is_x86_feature_detected!("popcnt") {
            functions.push(("POPCNT", x86::count_popcnt));
        }
    }
    functions.push(("all processors", Differences::count));
    functions
});

/// Returns the cosine of two coarse vectors of the same size, which have so many dimensions.
#[inline]
pub(super) fn coarse_cosine(a: &[u8], b: &[u8], dimensions: usize) -> f32 {
    let count = COUNT.first().map_or(Differences::count as Count, |(_, count)| *count);
    // SAFETY: The list has what this processor can run.
    unsafe { count(a, b) }.cosine(dimensions)
}

/// Returns the cosine of two vectors that are made coarse, by each set of instructions that the processor has, the one in use
/// first.
pub fn coarse_cosine_by_instructions(a: &[i8], b: &[i8]) -> Vec<(&'static str, f32)> {
    let dimensions = a.len().min(b.len());
    let (a, b) = (a.get(..dimensions).unwrap_or(a), b.get(..dimensions).unwrap_or(b));
    let centre = vec![0.0; dimensions];
    let (a, b) = (coarse::coarse(a, &centre), coarse::coarse(b, &centre));
    // SAFETY: The list has what this processor can run.
    COUNT.iter().map(|(name, count)| (*name, unsafe { count(&a, &b) }.cosine(dimensions))).collect()
}

/// Has a graph compare its coarse vectors, of so many dimensions, by their cosine. A graph forgets this when it is loaded from
/// a file or opened.
///
/// # Errors
/// `Corrupt` if the graph has other vectors, or usearch fails.
pub(super) fn compare_by_cosine(graph: &mut usearch::Index, dimensions: usize) -> Result<()> {
    let size = coarse::size(dimensions);
    if graph.scalar_kind() != ScalarKind::I8 || graph.dimensions() != size {
        return Err(Error::corrupt("the graph has other vectors"));
    }
    let distance = move |a: *const i8, b: *const i8| {
        // SAFETY: usearch calls this with two of its vectors, or the query, and each has so many bytes.
        let (a, b) = unsafe {
            (std::slice::from_raw_parts(a.cast(), size), std::slice::from_raw_parts(b.cast(), size))
        };
        1.0 - coarse_cosine(a, b, dimensions)
    };
    i8::change_metric(graph, Box::new(distance)).map_err(graph_error("measure"))
}

/// Multiplies by what every processor of the architecture has. Compilers make vector instructions of it.
fn multiply(a: &[i8], b: &[i8]) -> Products {
    let mut products = Products::default();
    for (&a, &b) in a.iter().zip(b) {
        let (a, b) = (i32::from(a), i32::from(b));
        products.both += a * b;
        products.first += a * a;
        products.second += b * b;
    }
    products
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32, _mm256_add_epi32,
        _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_setzero_si256, _mm512_cvtepi8_epi16, _mm512_dpwssd_epi32,
        _mm512_reduce_add_epi32, _mm512_setzero_si512,
    };

    use super::{Differences, Products, multiply};

    #[target_feature(enable = "popcnt")]
    pub(super) fn count_popcnt(a: &[u8], b: &[u8]) -> Differences {
        Differences::count(a, b)
    }

    #[target_feature(enable = "avx512bw,avx512vpopcntdq")]
    pub(super) fn count_avx512(a: &[u8], b: &[u8]) -> Differences {
        Differences::count(a, b)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn multiply_avx2(a: &[i8], b: &[i8]) -> Products {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
        let zero = _mm256_setzero_si256();
        let (mut both, mut first, mut second) = (zero, zero, zero);
        for (a, b) in a.iter().zip(b) {
            // SAFETY: Each chunk has the 16 bytes that are loaded, and a load needs no alignment.
            let (a, b) = unsafe { (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast())) };
            let (a, b) = (_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b));
            both = _mm256_add_epi32(both, _mm256_madd_epi16(a, b));
            first = _mm256_add_epi32(first, _mm256_madd_epi16(a, a));
            second = _mm256_add_epi32(second, _mm256_madd_epi16(b, b));
        }
        let rest = multiply(a_rest, b_rest);
        Products {
            both: sum(both) + rest.both,
            first: sum(first) + rest.first,
            second: sum(second) + rest.second,
        }
    }

    /// Adds the eight numbers of a vector.
    #[target_feature(enable = "avx2")]
    fn sum(numbers: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256::<1>(numbers));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b0100_1110>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b1011_0001>(two)))
    }

    #[target_feature(enable = "avx512bw,avx512vnni")]
    pub(super) fn multiply_avx512(a: &[i8], b: &[i8]) -> Products {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
        let zero = _mm512_setzero_si512();
        let (mut both, mut first, mut second) = (zero, zero, zero);
        for (a, b) in a.iter().zip(b) {
            // SAFETY: Each chunk has the 32 bytes that are loaded, and a load needs no alignment.
            let (a, b) =
                unsafe { (_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(b.as_ptr().cast())) };
            let (a, b) = (_mm512_cvtepi8_epi16(a), _mm512_cvtepi8_epi16(b));
            both = _mm512_dpwssd_epi32(both, a, b);
            first = _mm512_dpwssd_epi32(first, a, a);
            second = _mm512_dpwssd_epi32(second, b, b);
        }
        let rest = multiply(a_rest, b_rest);
        Products {
            both: _mm512_reduce_add_epi32(both) + rest.both,
            first: _mm512_reduce_add_epi32(first) + rest.first,
            second: _mm512_reduce_add_epi32(second) + rest.second,
        }
    }
}
