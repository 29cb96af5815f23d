//! The cosines of vectors of bytes and of coarse vectors, by the widest instructions that the processor has. This is one of five
//! files with unsafe code: it calls what is compiled for such instructions, and reads the vectors to which usearch points.
#![allow(unsafe_code, reason = "instructions that not every processor has, and pointers of usearch")]

use std::sync::LazyLock;

use sidenote_base::error::{Error, Result};
use usearch::VectorType as _;
use usearch::ffi::ScalarKind;

use super::coarse::{self, Differences};
use super::graph_error;

/// The sums of products of a query and a vector that is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Products {
    /// Of the components of the vector with those of the query.
    both: i32,
    /// Of the components of the vector with themselves.
    own: i32,
}

/// A function that multiplies a query and another vector of the same length. No component is −128, as in what
/// [`Quantised`](super::Quantised) makes.
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

/// A vector that is compared with others, with what each comparison needs of it.
pub(super) struct Query<'t> {
    components: &'t [i8],
    /// The square root of the sum of the squares of the components.
    length: f32,
    multiply: Multiply,
}

impl<'t> Query<'t> {
    /// Prepares a vector for comparisons by the widest instructions that the processor has.
    pub(super) fn of(components: &'t [i8]) -> Self {
        Self::by(MULTIPLY.first().map_or(multiply, |(_, multiply)| *multiply), components)
    }

    fn by(multiply: Multiply, components: &'t [i8]) -> Self {
        // SAFETY: The function is one of the list, which has what this processor can run.
        let length = (unsafe { multiply(components, components) }.own as f32).sqrt();
        Self { components, length, multiply }
    }

    /// Returns the cosine of the query and another vector; 0 if one of them is zero. The longer one is cut to the length of
    /// the shorter one, as far as products go.
    pub(super) fn cosine(&self, other: &[i8]) -> f32 {
        let length = self.components.len().min(other.len());
        let components = self.components.get(..length).unwrap_or(self.components);
        // SAFETY: The function is one of the list, which has what this processor can run.
        let products = unsafe { (self.multiply)(components, other.get(..length).unwrap_or(other)) };
        if self.length == 0.0 || products.own <= 0 {
            return 0.0;
        }
        products.both as f32 / (self.length * (products.own as f32).sqrt())
    }

    /// Returns the cosine of the query and a vector that is stored as bytes, as [`Self::cosine`] does.
    pub(super) fn cosine_of_stored(&self, stored: &[u8]) -> f32 {
        // SAFETY: Bytes with a sign have the size and the alignment of those without.
        self.cosine(unsafe { std::slice::from_raw_parts(stored.as_ptr().cast(), stored.len()) })
    }
}

/// Returns the cosine of two vectors by each set of instructions that the processor has, the one in use first. No component
/// is −128.
pub fn cosine_by_instructions(a: &[i8], b: &[i8]) -> Vec<(&'static str, f32)> {
    let a = a.get(..a.len().min(b.len())).unwrap_or(a);
    MULTIPLY.iter().map(|(name, multiply)| (*name, Query::by(*multiply, a).cosine(b))).collect()
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

/// Returns the cosine of two coarse vectors of the same size, with this number of dimensions.
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

/// Sets the metric of a graph of coarse vectors with this number of dimensions to their cosine. A graph forgets this
/// when it is loaded from a file or opened.
///
/// # Errors
/// `Corrupt` if the graph has other vectors, or usearch fails.
pub(super) fn compare_by_cosine(graph: &mut usearch::Index, dimensions: usize) -> Result<()> {
    let size = coarse::size(dimensions);
    if graph.scalar_kind() != ScalarKind::I8 || graph.dimensions() != size {
        return Err(Error::corrupt("the graph has other vectors"));
    }
    let distance = move |a: *const i8, b: *const i8| {
        // SAFETY: usearch calls this with two of its vectors, or the query, and each has `size` bytes.
        let (a, b) = unsafe {
            (std::slice::from_raw_parts(a.cast(), size), std::slice::from_raw_parts(b.cast(), size))
        };
        1.0 - coarse_cosine(a, b, dimensions)
    };
    i8::change_metric(graph, Box::new(distance)).map_err(graph_error("measure"))
}

/// Multiplies by what every processor of the architecture has. Compilers make vector instructions of it.
fn multiply(query: &[i8], other: &[i8]) -> Products {
    let mut products = Products::default();
    for (&a, &b) in query.iter().zip(other) {
        let (a, b) = (i32::from(a), i32::from(b));
        products.both += a * b;
        products.own += b * b;
    }
    products
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32, _mm256_add_epi32,
        _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256, _mm256_madd_epi16,
        _mm256_setzero_si256, _mm512_abs_epi8, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_mask_sub_epi8,
        _mm512_movepi8_mask, _mm512_reduce_add_epi32, _mm512_setzero_si512,
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
    pub(super) fn multiply_avx2(query: &[i8], other: &[i8]) -> Products {
        let ((a, a_rest), (b, b_rest)) = (query.as_chunks::<16>(), other.as_chunks::<16>());
        let zero = _mm256_setzero_si256();
        let (mut both, mut own) = (zero, zero);
        for (a, b) in a.iter().zip(b) {
            // SAFETY: Each chunk has the 16 bytes that are loaded, and a load needs no alignment.
            let (a, b) = unsafe { (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast())) };
            let (a, b) = (_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b));
            both = _mm256_add_epi32(both, _mm256_madd_epi16(a, b));
            own = _mm256_add_epi32(own, _mm256_madd_epi16(b, b));
        }
        let rest = multiply(a_rest, b_rest);
        Products { both: sum(both) + rest.both, own: sum(own) + rest.own }
    }

    /// Adds the eight numbers of a vector.
    #[target_feature(enable = "avx2")]
    fn sum(numbers: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256::<1>(numbers));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b0100_1110>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b1011_0001>(two)))
    }

    /// The instruction multiplies bytes without a sign and bytes with one, so the signs of the query go to the vector.
    #[target_feature(enable = "avx512bw,avx512vnni")]
    pub(super) fn multiply_avx512(query: &[i8], other: &[i8]) -> Products {
        let ((a, a_rest), (b, b_rest)) = (query.as_chunks::<64>(), other.as_chunks::<64>());
        let zero = _mm512_setzero_si512();
        let (mut both, mut own) = (zero, zero);
        for (a, b) in a.iter().zip(b) {
            // SAFETY: Each chunk has the 64 bytes that are loaded, and a load needs no alignment.
            let (a, b) =
                unsafe { (_mm512_loadu_si512(a.as_ptr().cast()), _mm512_loadu_si512(b.as_ptr().cast())) };
            let signed = _mm512_mask_sub_epi8(b, _mm512_movepi8_mask(a), zero, b);
            both = _mm512_dpbusd_epi32(both, _mm512_abs_epi8(a), signed);
            let size = _mm512_abs_epi8(b);
            own = _mm512_dpbusd_epi32(own, size, size);
        }
        let rest = multiply(a_rest, b_rest);
        Products {
            both: _mm512_reduce_add_epi32(both) + rest.both,
            own: _mm512_reduce_add_epi32(own) + rest.own,
        }
    }
}
