//! Products of bytes by the vector neural network instructions of AVX-512, which add four of them to a sum at a time. One of
//! five files with unsafe code: it calls what is compiled for such instructions.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use crate::four_bits::{self, FourBits, expand};

/// The sums in a vector of the processor.
const LANES: usize = 16;
/// The vectors of columns that are computed at a time, so that all sums stay in registers.
const VECTORS: usize = 3;
/// The columns that are computed at a time.
const COLUMNS: usize = VECTORS * LANES;
/// The rows that are computed at a time.
const ROWS: usize = 8;
/// The bytes of a row that one instruction multiplies and adds.
const QUAD: usize = 4;
/// The quads in a block of a row, and of the columns it is multiplied with.
const BLOCK: usize = 32;
/// The rows of a block of the columns.
const ROWS_OF_BLOCK: usize = QUAD * BLOCK;

/// A block of a row.
type RowBlock = [[u8; QUAD]; BLOCK];

/// For each of some columns the weights of one quad, in one word.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct ColumnQuads([[u32; LANES]; VECTORS]);

/// A matrix of weights in the order in which they are read: for each group of columns one block after another.
pub(in super::super) struct Weights {
    blocks: Vec<[ColumnQuads; BLOCK]>,
    /// The number of blocks of a group.
    group: usize,
}

impl Weights {
    /// Expands a matrix. Returns `None` if the processor has no such instructions, or the matrix is not made up of whole groups
    /// and blocks.
    pub(super) fn expand(matrix: FourBits) -> Option<Self> {
        let can = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        let group = matrix.height() / ROWS_OF_BLOCK;
        if !can || !matrix.width().is_multiple_of(COLUMNS) || group * ROWS_OF_BLOCK != matrix.height() {
            return None;
        }
        let mut blocks = Vec::with_capacity(matrix.width() / COLUMNS * group);
        for from in (0..matrix.width()).step_by(COLUMNS) {
            // SAFETY: The processor has the instructions.
            blocks.extend((0..group).map(|block| unsafe { column_quads(matrix, from, block) }));
        }
        Some(Self { blocks, group })
    }

    /// Multiplies rows of bytes, of the height of the matrix, with it. Each row of `sums` gets a sum for each column.
    pub(super) fn multiply(&self, rows: &[u8], sums: &mut [i32]) {
        // SAFETY: `expand` gives weights only where the processor has the instructions.
        unsafe { multiply(&self.blocks, self.group, rows, sums) }
    }
}

/// Expands a block of the columns that begin at `from`.
#[target_feature(enable = "avx512f,avx512bw")]
fn column_quads(matrix: FourBits, from: usize, block: usize) -> [ColumnQuads; BLOCK] {
    const STORED: usize = ROWS_OF_BLOCK / four_bits::BLOCK;
    let mut quads = [ColumnQuads([[0; LANES]; VECTORS]); BLOCK];
    for at in 0..COLUMNS {
        let column = matrix.column(from + at);
        let stored = column.get(block * STORED..(block + 1) * STORED).unwrap_or_default();
        for (quads, stored) in quads.chunks_exact_mut(four_bits::BLOCK / QUAD).zip(stored) {
            let weights = expand(stored).map(i8::cast_unsigned);
            for (quads, weights) in quads.iter_mut().zip(weights.as_chunks().0) {
                quads.0[at / LANES][at % LANES] = u32::from_ne_bytes(*weights);
            }
        }
    }
    quads
}

#[target_feature(enable = "avx512f,avx512vnni")]
fn multiply(blocks: &[[ColumnQuads; BLOCK]], group: usize, rows: &[u8], sums: &mut [i32]) {
    let width = blocks.len() / group * COLUMNS;
    let rows: Vec<&[RowBlock]> = rows.as_chunks().0.as_chunks().0.chunks_exact(group).collect();
    for (at, group) in blocks.chunks_exact(group).enumerate() {
        for (rows, sums) in rows.chunks(ROWS).zip(sums.chunks_mut(ROWS * width)) {
            let own = sums.chunks_exact_mut(width).filter_map(|row| row.as_chunks_mut().0.get_mut(at));
            // One row at a time would wait for each of its sums.
            match rows.len() {
                ROWS => multiply_rows::<ROWS>(group, rows, own),
                7 => multiply_rows::<7>(group, rows, own),
                6 => multiply_rows::<6>(group, rows, own),
                5 => multiply_rows::<5>(group, rows, own),
                4 => multiply_rows::<4>(group, rows, own),
                3 => multiply_rows::<3>(group, rows, own),
                2 => multiply_rows::<2>(group, rows, own),
                _ => multiply_rows::<1>(group, rows, own),
            }
        }
    }
}

/// Multiplies `N` rows with a group of columns.
#[target_feature(enable = "avx512f,avx512vnni")]
fn multiply_rows<'s, const N: usize>(
    group: &[[ColumnQuads; BLOCK]],
    rows: &[&[RowBlock]],
    out: impl Iterator<Item = &'s mut [i32; COLUMNS]>,
) {
    if let Ok(rows) = <[_; N]>::try_from(rows) {
        for (sums, out) in multiply_group(group, rows).into_iter().zip(out) {
            store(sums, out);
        }
    }
}

/// Multiplies some rows with a group of columns.
#[target_feature(enable = "avx512f,avx512vnni")]
fn multiply_group<const N: usize>(
    group: &[[ColumnQuads; BLOCK]],
    rows: [&[RowBlock]; N],
) -> [[__m512i; VECTORS]; N] {
    let mut sums = [[_mm512_setzero_si512(); VECTORS]; N];
    let mut rest = rows.map(<[RowBlock]>::iter);
    for columns in group {
        let mut rows = [&[[0; QUAD]; BLOCK]; N];
        // A function that takes a closure with these instructions would not be inlined.
        for (row, rest) in rows.iter_mut().zip(&mut rest) {
            *row = rest.next().unwrap_or(row);
        }
        for (quad, columns) in columns.iter().enumerate() {
            let columns = load(&columns.0);
            for (sums, row) in sums.iter_mut().zip(rows) {
                let bytes = _mm512_set1_epi32(i32::from_ne_bytes(row[quad]));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = _mm512_dpbusd_epi32(*sum, bytes, column);
                }
            }
        }
    }
    sums
}

#[target_feature(enable = "avx512f")]
fn load(words: &[[u32; LANES]; VECTORS]) -> [__m512i; VECTORS] {
    let mut vectors = [_mm512_setzero_si512(); VECTORS];
    for (vector, words) in vectors.iter_mut().zip(words) {
        // SAFETY: The array has the 64 bytes that are loaded, and a load needs no alignment.
        *vector = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
    }
    vectors
}

#[target_feature(enable = "avx512f")]
fn store(sums: [__m512i; VECTORS], out: &mut [i32; COLUMNS]) {
    for (out, sums) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
        // SAFETY: The array has the 64 bytes that are stored, and a store needs no alignment.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sums) };
    }
}
