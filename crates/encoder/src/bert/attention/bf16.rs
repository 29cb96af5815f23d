//! Attention by products of brain floats, which have the range of floats in 16 bits: AVX-512 multiplies twice as many of them
//! at a time. One of five files with unsafe code: it calls what is compiled for such instructions.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{
    __m256i, __m512, __m512bh, __m512i, _mm512_add_epi32, _mm512_add_ps, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cvtepu16_epi32, _mm512_cvtne2ps_pbh, _mm512_cvtneps_pbh, _mm512_dpbf16_ps,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mask_blend_ps, _mm512_max_ps, _mm512_mul_ps,
    _mm512_or_si512, _mm512_reduce_add_ps, _mm512_reduce_max_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_setzero_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_storeu_ps, _mm512_storeu_si512,
    _mm512_sub_ps,
};
use std::array;
use std::mem::transmute;

use super::super::{HEADS, rows};
use super::scale;

/// The numbers of a query, key or value of one head.
const HEAD: usize = 32;
/// The numbers in a vector of the processor.
const LANES: usize = 16;
/// The pairs of numbers of a query or key. Two brain floats are one word, the first one in its lower half.
const PAIRS: usize = HEAD / 2;
/// The queries that are compared at a time, so that all sums stay in registers.
const QUERIES: usize = 8;
/// The keys that are compared at a time.
const KEYS: usize = 2 * LANES;
/// The score of a key that does not exist.
const LOWEST: f32 = f32::MIN;

/// What the heads of a text use, one after another.
#[derive(Default)]
pub(super) struct Workspace {
    /// For each query its pairs.
    queries: Vec<[u32; PAIRS]>,
    /// For each group of keys the first pair of each key, then the second pair of each, and so on.
    keys: Vec<[[u32; KEYS]; PAIRS]>,
    /// For each group of keys and each pair of tokens in it the pairs of the numbers of their values.
    values: Vec<[[u32; HEAD]; LANES]>,
    /// For each group of keys the scores of its keys, for some queries.
    scores: Vec<[[f32; KEYS]; QUERIES]>,
    /// For each group of keys the pairs of the weights of its keys, for some queries.
    weights: Vec<[[u32; LANES]; QUERIES]>,
}

/// Computes the attention of a text. `states` has the queries, keys and values of each token, of `width` numbers each. Returns
/// false, and does nothing, if the processor or the width is another one.
pub(super) fn attend(states: &[f32], width: usize, space: &mut Workspace, context: &mut [f32]) -> bool {
    let can = width == HEADS * HEAD
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512bf16");
    if can {
        for head in 0..HEADS {
            // SAFETY: The processor has the instructions.
            unsafe { attend_by_head(states, (width, head * HEAD), space, context) };
        }
    }
    can
}

/// Computes what the head whose numbers begin at `from` adds to the context of each token.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn attend_by_head(states: &[f32], (width, from): (usize, usize), space: &mut Workspace, context: &mut [f32]) {
    let length = states.len() / (3 * width);
    pack(states, (width, from), space);
    let Workspace { queries, keys, values, scores, weights } = space;
    scores.resize(keys.len(), [[0.0; KEYS]; QUERIES]);
    weights.resize(keys.len(), [[0; LANES]; QUERIES]);
    let rows = context.chunks_mut(QUERIES * width);
    for (queries, rows) in queries.as_chunks::<QUERIES>().0.iter().zip(rows) {
        let highest = compare(queries, keys, length, scores);
        let sums: [f32; QUERIES] = array::from_fn(|at| exponentiate(at, highest[at], scores, weights));
        let added = add_values(weights, values);
        for ((row, [first, second]), sum) in rows.chunks_exact_mut(width).zip(added).zip(sums) {
            let factor = _mm512_set1_ps(sum.recip());
            if let Some(row) = row.get_mut(from..).and_then(<[f32]>::first_chunk_mut) {
                store(row, [_mm512_mul_ps(first, factor), _mm512_mul_ps(second, factor)]);
            }
        }
    }
}

/// Rounds the queries, keys and values of a head to brain floats, in the order in which they are read. What fills the last
/// groups is zero.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack(states: &[f32], (width, from): (usize, usize), space: &mut Workspace) {
    let Workspace { queries, keys, values, .. } = space;
    let length = states.len() / (3 * width);
    queries.clear();
    queries.resize(length.next_multiple_of(QUERIES), [0; PAIRS]);
    keys.resize(length.div_ceil(KEYS), [[0; KEYS]; PAIRS]);
    values.resize(keys.len(), [[0; HEAD]; LANES]);
    if let (Some(keys), Some(values)) = (keys.last_mut(), values.last_mut()) {
        (*keys, *values) = ([[0; KEYS]; PAIRS], [[0; HEAD]; LANES]);
    }
    let factor = _mm512_set1_ps(scale(HEAD));
    let rows = states.chunks(3 * width * KEYS).zip(queries.chunks_mut(KEYS)).zip(keys).zip(values);
    for (((states, queries), keys), values) in rows {
        for ((at, state), query) in states.chunks_exact(3 * width).enumerate().zip(queries) {
            let [first, second] = head_of(state, from);
            *query = words(pairs(_mm512_mul_ps(first, factor), _mm512_mul_ps(second, factor)));
            let [first, second] = head_of(state, width + from);
            for (key, column) in words(pairs(first, second)).iter().zip(&mut *keys) {
                column[at] = *key;
            }
        }
        for (states, pairs) in states.chunks(2 * 3 * width).zip(values) {
            let (even, odd) = states.split_at(3 * width);
            let [even, odd] =
                [even, odd].map(|state| head_of(state, 2 * width + from).map(|part| rounded(part)));
            for (at, pairs) in pairs.as_chunks_mut().0.iter_mut().enumerate() {
                *pairs = stored(_mm512_or_si512(even[at], _mm512_slli_epi32::<16>(odd[at])));
            }
        }
    }
}

/// Computes the score of each key for some queries, and returns the highest one of each query in sixteen parts.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn compare(
    queries: &[[u32; PAIRS]; QUERIES],
    keys: &[[[u32; KEYS]; PAIRS]],
    length: usize,
    scores: &mut [[[f32; KEYS]; QUERIES]],
) -> [__m512; QUERIES] {
    let lowest = _mm512_set1_ps(LOWEST);
    let mut highest = [lowest; QUERIES];
    for ((group, columns), scores) in keys.iter().enumerate().zip(scores) {
        let mut sums = [[_mm512_setzero_ps(); 2]; QUERIES];
        for (pair, column) in columns.iter().enumerate() {
            let [first, second] = halves(column);
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = brain_floats(_mm512_set1_epi32(query[pair].cast_signed()));
                sums[0] = _mm512_dpbf16_ps(sums[0], query, first);
                sums[1] = _mm512_dpbf16_ps(sums[1], query, second);
            }
        }
        let left = length - group * KEYS;
        if left < KEYS {
            let exist = (1u32 << left) - 1;
            for [first, second] in &mut sums {
                *first = _mm512_mask_blend_ps(exist as u16, lowest, *first);
                *second = _mm512_mask_blend_ps((exist >> LANES) as u16, lowest, *second);
            }
        }
        for ((scores, highest), [first, second]) in scores.iter_mut().zip(&mut highest).zip(sums) {
            *highest = _mm512_max_ps(*highest, _mm512_max_ps(first, second));
            store(scores, [first, second]);
        }
    }
    highest
}

/// Writes 2 to the power of what each score of a query lies below the highest one, and returns the sum.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn exponentiate(
    query: usize,
    highest: __m512,
    scores: &[[[f32; KEYS]; QUERIES]],
    weights: &mut [[[u32; LANES]; QUERIES]],
) -> f32 {
    let highest = _mm512_set1_ps(_mm512_reduce_max_ps(highest));
    let mut sums = [_mm512_setzero_ps(); 2];
    for (scores, weights) in scores.iter().zip(weights) {
        let [first, second] = loaded(&scores[query]).map(|score| power_of_two(_mm512_sub_ps(score, highest)));
        sums = [_mm512_add_ps(sums[0], first), _mm512_add_ps(sums[1], second)];
        weights[query] = words(pairs(first, second));
    }
    _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
}

/// Returns 2 to the power of numbers of at most 0, to 13 bits: the fraction by a polynomial, the whole number by the exponent
/// of a float.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn power_of_two(x: __m512) -> __m512 {
    /// The polynomial with the least relative error between -1/2 and 1/2, .000075.
    const COEFFICIENTS: [f32; 4] = [0.999_928_07, 0.693_261, 0.242_611_14, 0.055_171_67];
    let [c0, c1, c2, c3] = COEFFICIENTS.map(|coefficient| _mm512_set1_ps(coefficient));
    // A float of this size has no place for a fraction, so that the sum is rounded.
    let rounding = _mm512_set1_ps(rows::ROUNDING);
    let x = _mm512_max_ps(x, _mm512_set1_ps(rows::LEAST_EXPONENT));
    let shifted = _mm512_add_ps(x, rounding);
    let fraction = _mm512_sub_ps(x, _mm512_sub_ps(shifted, rounding));
    let power = _mm512_fmadd_ps(c3, fraction, c2);
    let power = _mm512_fmadd_ps(_mm512_fmadd_ps(power, fraction, c1), fraction, c0);
    let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
    _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(power), exponent))
}

/// Adds the values by the weights of some queries.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn add_values(
    weights: &[[[u32; LANES]; QUERIES]],
    values: &[[[u32; HEAD]; LANES]],
) -> [[__m512; 2]; QUERIES] {
    let mut sums = [[_mm512_setzero_ps(); 2]; QUERIES];
    for (weights, values) in weights.iter().zip(values) {
        for (pair, value) in values.iter().enumerate() {
            let [first, second] = halves(value);
            for (sums, weights) in sums.iter_mut().zip(weights) {
                let weight = brain_floats(_mm512_set1_epi32(weights[pair].cast_signed()));
                sums[0] = _mm512_dpbf16_ps(sums[0], weight, first);
                sums[1] = _mm512_dpbf16_ps(sums[1], weight, second);
            }
        }
    }
    sums
}

/// Returns the numbers of a head; zeros for a token that does not exist.
#[target_feature(enable = "avx512f")]
fn head_of(state: &[f32], from: usize) -> [__m512; 2] {
    state
        .get(from..)
        .and_then(<[f32]>::first_chunk)
        .map_or([_mm512_setzero_ps(); 2], |numbers| loaded(numbers))
}

/// Rounds numbers to brain floats, each in the lower half of a word.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn rounded(numbers: __m512) -> __m512i {
    // SAFETY: Both have 32 bytes, and all bytes are valid.
    let halves: __m256i = unsafe { transmute(_mm512_cvtneps_pbh(numbers)) };
    _mm512_cvtepu16_epi32(halves)
}

/// Rounds 32 numbers to brain floats, in order.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pairs(first: __m512, second: __m512) -> __m512bh {
    _mm512_cvtne2ps_pbh(second, first)
}

#[target_feature(enable = "avx512f")]
fn loaded(numbers: &[f32; 2 * LANES]) -> [__m512; 2] {
    // SAFETY: Each half has the 64 bytes that are loaded, and a load needs no alignment.
    numbers.as_chunks::<LANES>().0.first_chunk().map_or([_mm512_setzero_ps(); 2], |[first, second]| unsafe {
        [_mm512_loadu_ps(first.as_ptr()), _mm512_loadu_ps(second.as_ptr())]
    })
}

#[target_feature(enable = "avx512f")]
fn store(out: &mut [f32; 2 * LANES], numbers: [__m512; 2]) {
    for (out, numbers) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(numbers) {
        // SAFETY: The array has the 64 bytes that are stored, and a store needs no alignment.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), numbers) };
    }
}

#[target_feature(enable = "avx512f")]
fn stored(words: __m512i) -> [u32; LANES] {
    let mut stored = [0; LANES];
    // SAFETY: The array has the 64 bytes that are stored, and a store needs no alignment.
    unsafe { _mm512_storeu_si512(stored.as_mut_ptr().cast(), words) };
    stored
}

#[target_feature(enable = "avx512f")]
fn words(pairs: __m512bh) -> [u32; LANES] {
    // SAFETY: Both have 64 bytes, and all bytes are valid.
    stored(unsafe { transmute::<__m512bh, __m512i>(pairs) })
}

#[target_feature(enable = "avx512f")]
fn brain_floats(words: __m512i) -> __m512bh {
    // SAFETY: Both have 64 bytes, and all bytes are valid.
    unsafe { transmute(words) }
}

#[target_feature(enable = "avx512f")]
fn halves(words: &[u32; 2 * LANES]) -> [__m512bh; 2] {
    // SAFETY: Each half has the 64 bytes that are loaded, and a load needs no alignment.
    words.as_chunks::<LANES>().0.first_chunk().map_or(
        [brain_floats(_mm512_setzero_si512()); 2],
        |[first, second]| unsafe {
            [first, second].map(|half| brain_floats(_mm512_loadu_si512(half.as_ptr().cast())))
        },
    )
}
