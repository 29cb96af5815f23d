//! The encoder in floats, with the same weights: the oracle for the one that is in use.

use sidenote_encoder::{Asset, BLOCK, LinearAsset, NormAsset, ROW_BLOCK_BYTES, TextKind, to_f32};

const HEADS: usize = 12;
const HALF_FREQUENCY: f32 = 1e-4;

/// The weights of a product, one column after another.
pub(crate) struct Linear {
    weights: Vec<f32>,
    bias: Vec<f32>,
}

/// An encoder whose weights are floats.
pub(crate) struct FloatEncoder {
    asset: Asset,
    layers: Vec<[Linear; 4]>,
}

/// What sees the rows that a layer multiplies with its first to fourth matrix.
pub(crate) type Visit<'v> = dyn FnMut(usize, usize, &[f32]) + 'v;

impl Linear {
    fn new(asset: &LinearAsset) -> Self {
        let mut weights = Vec::new();
        for (column, scale) in asset.scale.iter().enumerate() {
            for [low, high, halves @ ..] in asset.weights.column(column) {
                let factor = f32::from(i16::from_le_bytes([*low, *high])) / 256.0 * scale;
                let weight = |half: u8| (f32::from(half) - 8.0) * factor;
                weights.extend(halves.iter().map(|byte| weight(byte & 15)));
                weights.extend(halves.iter().map(|byte| weight(byte >> 4)));
            }
        }
        Self { weights, bias: asset.bias.clone() }
    }

    fn multiply(&self, rows: &[f32]) -> Vec<f32> {
        let height = self.weights.len() / self.bias.len();
        let mut out = vec![0.0; rows.len() / height * self.bias.len()];
        for (at, (column, bias)) in self.weights.chunks_exact(height).zip(&self.bias).enumerate() {
            for (row, out) in rows.chunks_exact(height).zip(out.chunks_exact_mut(self.bias.len())) {
                out[at] = bias + dot(row, column);
            }
        }
        out
    }
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 32];
    for (a, b) in a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}

impl FloatEncoder {
    pub(crate) fn new(asset: Asset) -> Self {
        let layers = asset.layers.iter().map(|layer| {
            [&layer.attention_input, &layer.attention_output, &layer.forward_input, &layer.forward_output]
                .map(Linear::new)
        });
        Self { layers: layers.collect(), asset }
    }

    /// Returns the mean of the last states of a text, weighted by how rare the pieces are, of length 1.
    pub(crate) fn embed(&self, ids: &[u32], visit: &mut Visit) -> Vec<f32> {
        let width = self.asset.width;
        let mut states = Vec::new();
        for (id, position) in ids.iter().zip(self.asset.positions.chunks_exact(width)) {
            let blocks = width / BLOCK;
            let row = self.asset.words[*id as usize * blocks..][..blocks].iter().flat_map(expand_row_block);
            states.extend(row.zip(position).map(|(word, position)| word + position));
        }
        normalize(&mut states, &self.asset.norm);
        for (at, (weights, layer)) in self.layers.iter().zip(&self.asset.layers).enumerate() {
            visit(at, 0, &states);
            let input = weights[0].multiply(&states);
            let context = attend(&input, width);
            visit(at, 1, &context);
            add(&mut states, &weights[1].multiply(&context));
            normalize(&mut states, &layer.attention_norm);
            visit(at, 2, &states);
            let mut forward = weights[2].multiply(&states);
            forward.iter_mut().for_each(|x| *x *= normal_distribution(*x));
            visit(at, 3, &forward);
            add(&mut states, &weights[3].multiply(&forward));
            normalize(&mut states, &layer.forward_norm);
        }
        let mut sum = vec![0.0; width];
        let own = ids.iter().zip(states.chunks_exact(width)).enumerate();
        for (_, (id, state)) in own.filter(|(at, _)| !(1..=TextKind::PREFIX_TOKENS).contains(at)) {
            let frequency = f32::from_le_bytes(self.asset.scores[*id as usize]).exp();
            let state: Vec<f32> = state.iter().map(|number| number / (HALF_FREQUENCY + frequency)).collect();
            add(&mut sum, &state);
        }
        let length = dot(&sum, &sum).sqrt();
        sum.iter().map(|number| number / length).collect()
    }
}

fn expand_row_block([low, high, halves @ ..]: &[u8; ROW_BLOCK_BYTES]) -> Vec<f32> {
    let scale = to_f32(u16::from_le_bytes([*low, *high]));
    let halves = halves.iter().map(|byte| byte & 15).chain(halves.iter().map(|byte| byte >> 4));
    halves.map(|half| (f32::from(half) - 8.0) * scale).collect()
}

fn add(to: &mut [f32], what: &[f32]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += what);
}

fn normalize(rows: &mut [f32], norm: &NormAsset) {
    for row in rows.chunks_exact_mut(norm.weight.len()) {
        let length = row.len() as f32;
        let mean = row.iter().sum::<f32>() / length;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / length;
        for (x, (weight, bias)) in row.iter_mut().zip(norm.weight.iter().zip(&norm.bias)) {
            *x = (*x - mean) / (variance + 1e-12).sqrt() * weight + bias;
        }
    }
}

/// Computes the normal distribution by the series of Marsaglia (2004), which converges for all numbers that are not tiny.
fn normal_distribution(x: f32) -> f32 {
    let x = f64::from(x);
    if x.abs() > 6.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut at) = (x, x, 1.0);
    while term.abs() > 1e-12 {
        at += 2.0;
        term *= x * x / at;
        sum += term;
    }
    (0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()) as f32
}

fn attend(states: &[f32], width: usize) -> Vec<f32> {
    let (tokens, size) = (states.len() / (3 * width), width / HEADS);
    let part =
        |token: usize, part: usize, head: usize| &states[(token * 3 + part) * width + head * size..][..size];
    let mut context = vec![0.0; tokens * width];
    for head in 0..HEADS {
        for query in 0..tokens {
            let score = |key| dot(part(query, 0, head), part(key, 1, head)) / (size as f32).sqrt();
            let scores: Vec<f32> = (0..tokens).map(score).collect();
            let highest = scores.iter().copied().fold(f32::MIN, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| (score - highest).exp()).collect();
            let sum: f32 = weights.iter().sum();
            let out = &mut context[query * width + head * size..][..size];
            for (key, weight) in weights.iter().enumerate() {
                out.iter_mut().zip(part(key, 2, head)).for_each(|(out, value)| *out += weight / sum * value);
            }
        }
    }
    context
}
