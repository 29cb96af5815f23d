//! Products and attention by each set of instructions that the processor has.

use sidenote_encoder::{BLOCK, BLOCK_BYTES, FourBits, attention_by_instructions, products_by_instructions};

/// Checks which instructions are in use, where the caller of the tests knows that the processor has them.
#[track_caller]
fn check_in_use(in_use: &str, expected: &str) {
    if cfg!(target_arch = "x86_64") && std::env::var_os("SIDENOTE_TEST_AVX512").is_some() {
        assert_eq!(in_use, expected, "the processor has no such instructions");
    }
}

/// Returns bytes that follow no pattern, by the generator of Marsaglia (2003).
fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Matrices of the shapes of the model and smaller and odd ones, and numbers of rows around those that are computed at a time.
#[test]
fn all_instructions_give_the_same_products() {
    for [height, width] in
        [[384, 1152], [384, 384], [384, 1536], [1536, 384], [128, 48], [256, 96], [32, 16], [64, 5]]
    {
        let mut blocks = random_bytes(height / BLOCK * width * BLOCK_BYTES, height as u64);
        for block in blocks.chunks_exact_mut(BLOCK_BYTES) {
            let factor = (i16::from_le_bytes([block[0], block[1]])).rem_euclid(2 * 2048 + 1) - 2048;
            block[..2].copy_from_slice(&factor.to_le_bytes());
        }
        // The first column has the greatest weights there are.
        for block in blocks.chunks_exact_mut(BLOCK_BYTES).take(height / BLOCK) {
            block[..2].copy_from_slice(&(-2048i16).to_le_bytes());
            block[2..].fill(0);
        }
        let matrix = FourBits::new(&blocks, [height, width]).unwrap();
        let weights: Vec<Vec<i32>> = (0..width)
            .map(|column| (0..height).map(|row| i32::from(matrix.weight(row, column))).collect())
            .collect();
        assert!(weights[0].iter().all(|weight| *weight == 64));
        assert!(weights.iter().flatten().all(|weight| weight.abs() <= 64));
        for count in (1..=9).chain([16, 23, 128]) {
            let mut rows = random_bytes(count * height, count as u64);
            rows[..height].fill(255);
            let found = products_by_instructions(&rows, matrix).unwrap();
            assert_eq!(found.len(), 2);
            if height.is_multiple_of(128) {
                check_in_use(found[0].0, "AVX-512 VNNI");
            }
            let sums = rows.chunks(height).flat_map(|row| (0..width).map(move |column| (row, column)));
            // Each sum is compared where that takes no minutes, and otherwise those of some columns.
            let step = if height * width > 50_000 { 37 } else { 1 };
            for (at, (row, column)) in sums.enumerate().step_by(step) {
                let expected: i32 = row.iter().zip(&weights[column]).map(|(x, y)| i32::from(*x) * y).sum();
                for (name, sums) in &found {
                    assert_eq!(
                        sums[at],
                        expected,
                        "{name}, {height} x {width}, row {}, column {column}",
                        at / width
                    );
                }
            }
            assert!(found.iter().all(|(_, sums)| *sums == found[0].1));
        }
    }
}

/// Computes the attention of one text with softmax and sums of doubles, head by head.
fn plain_attention(states: &[f32], width: usize, heads: usize) -> Vec<f64> {
    let (length, size) = (states.len() / (3 * width), width / heads);
    let number = |token: usize, part: usize, at: usize| f64::from(states[(token * 3 + part) * width + at]);
    let mut context = vec![0.0; length * width];
    for head in 0..heads {
        let places = head * size..(head + 1) * size;
        for query in 0..length {
            let score = |key| places.clone().map(|at| number(query, 0, at) * number(key, 1, at)).sum::<f64>();
            let scores: Vec<f64> = (0..length).map(|key| score(key) / (size as f64).sqrt()).collect();
            let highest = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for at in places.clone() {
                let added = weights.iter().enumerate().map(|(key, weight)| weight * number(key, 2, at));
                context[query * width + at] = added.sum::<f64>() / sum;
            }
        }
    }
    context
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Lengths around those of the groups in which queries and keys are compared, and numbers of all sizes, so that some keys
/// take all of the attention.
#[test]
fn all_instructions_give_the_same_attention() {
    const WIDTH: usize = 384;
    for length in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 128, 200, 256, 512] {
        for size in [0.1f32, 2.0, 30.0] {
            let bytes = random_bytes(length * 3 * WIDTH, length as u64);
            let states: Vec<f32> = bytes.iter().map(|byte| (f32::from(*byte) / 127.5 - 1.0) * size).collect();
            let expected = plain_attention(&states, WIDTH, 12);
            let found = attention_by_instructions(&states).unwrap();
            assert_eq!(found.last().map(|(name, _)| *name), Some("floats"));
            check_in_use(found[0].0, "AVX-512 BF16");
            for (name, context) in found {
                assert_eq!(context.len(), expected.len());
                // Scores of hundreds rounded to eight bits choose other keys, so those are compared in floats only.
                let least = if name == "floats" {
                    0.999_99
                } else if size > 10.0 {
                    0.9
                } else {
                    0.999
                };
                for (row, expected) in context.chunks(WIDTH).zip(expected.chunks(WIDTH)) {
                    let expected: Vec<f32> = expected.iter().map(|number| *number as f32).collect();
                    let norms = cosine(row, row).sqrt() * cosine(&expected, &expected).sqrt();
                    let cosine = cosine(row, &expected) / norms;
                    assert!(cosine > least, "{name}, {length} tokens of up to {size}: {cosine}");
                }
            }
        }
    }
}
