//! A BERT encoder (Devlin et al. 2019) with weights of 8 bits, which are expanded from 4 bits. The only user of rten_gemm and
//! rten_tensor. Activations are quantized by row, which is one token: the vector of a text does not depend on the texts beside
//! it. The two channels that are much larger than the others are left in floats. Between two products of matrices, all
//! operations on a row are one pass over it (`rows`).

mod attention;
mod products;
mod rows;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use self::attention::Attention;
pub use self::attention::attention_by_instructions;
pub use self::products::products_by_instructions;
use self::products::{Products, Weights};
use self::rows::{Columns, LayerNorm, QuantizedRows};
use crate::asset::{Asset, LinearAsset, NormAsset};
use crate::four_bits::{BLOCK, FourBits, ROW_BLOCK_BYTES, extend_with_row};
use crate::text_kind::{TextKind, normalized};

/// The number of attention heads.
const HEADS: usize = 12;
/// The tokens of a text that its vector is not made of: those of its prefix, after the one at its start. Of all kinds of texts
/// they are as many.
const PREFIX: Range<usize> = 1..1 + TextKind::PREFIX_TOKENS;
/// The frequency of a piece whose state counts half (the smoothing of Arora, Liang and Ma 2017; the assets' README has the
/// figures). Where this or [`PREFIX`] changes, cached vectors are no longer those of passages, and the version
/// of the pooling in the fingerprint must change, too.
const HALF_FREQUENCY: f32 = 1e-4;
/// The number of rows that pass through the products of a layer at a time, so that they stay in the cache of a core.
const BLOCK_ROWS: usize = 128;

/// The product with a matrix of weights, and a bias.
struct Linear {
    /// The matrix, where it lies in the program.
    stored: FourBits<'static>,
    /// The matrix in the order in which the product reads it.
    expanded: OnceLock<Weights>,
    columns: Columns,
}

/// One of the layers of the encoder.
struct Layer {
    /// The queries, keys and values of the attention, side by side.
    attention_input: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    forward_input: Linear,
    forward_output: Linear,
    forward_norm: LayerNorm,
}

/// An encoder with its weights.
pub struct BertEncoder {
    /// For each token the logarithm of its frequency. Special tokens have 0, as if each token were one.
    scores: &'static [[u8; 4]],
    /// The embeddings of the tokens, in blocks.
    words: &'static [[u8; ROW_BLOCK_BYTES]],
    /// The embeddings of the positions, with that of the first segment added.
    positions: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    /// The length of a hidden state.
    width: usize,
    /// Whether a text was embedded already.
    has_embedded: AtomicBool,
}

/// What one call after another uses: memory, and the products of matrices for the processor.
#[derive(Default)]
pub struct Workspace {
    products: Products,
    /// The hidden state of each token.
    states: Vec<f32>,
    quantized: QuantizedRows,
    sums: Vec<i32>,
    /// Queries, keys and values of each token.
    attention_input: Vec<f32>,
    attention: Attention,
    context: Vec<f32>,
}

impl BertEncoder {
    /// Creates the encoder of a model. Its matrices are expanded when the first text needs them.
    ///
    /// # Errors
    /// Says which part of the model is not as expected.
    pub fn new(asset: Asset) -> Result<Self, String> {
        let width = asset.width;
        if !width.is_multiple_of(HEADS) || !width.is_multiple_of(rows::MAX_LANES) {
            return Err("unexpected length of a state".to_owned());
        }
        let layers = asset.layers.into_iter().map(|layer| {
            Ok(Layer {
                attention_input: Linear::new(layer.attention_input)?,
                attention_output: Linear::new(layer.attention_output)?,
                attention_norm: layer.attention_norm.into(),
                forward_input: Linear::new(layer.forward_input)?,
                forward_output: Linear::new(layer.forward_output)?,
                forward_norm: layer.forward_norm.into(),
            })
        });
        Ok(Self {
            scores: asset.scores,
            words: asset.words,
            positions: asset.positions,
            norm: asset.norm.into(),
            layers: layers.collect::<Result<_, String>>()?,
            width,
            has_embedded: AtomicBool::new(false),
        })
    }

    /// Returns whether all matrices are expanded, so that the data that they were read from is not read again.
    pub fn has_expanded(&self) -> bool {
        self.linears().all(|linear| linear.expanded.get().is_some())
    }

    /// Returns the products, in the order in which a text needs them.
    fn linears(&self) -> impl DoubleEndedIterator<Item = &Linear> {
        self.layers.iter().flat_map(|layer| {
            [&layer.attention_input, &layer.attention_output, &layer.forward_input, &layer.forward_output]
        })
    }

    /// Expands the matrices for the first text, the last ones first, while the text takes the first ones. Another thread
    /// halves the time that a process needs for one query.
    fn expand_ahead<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) {
        let expand = || {
            for linear in self.linears().rev() {
                linear.expanded();
            }
        };
        // Where the system cannot start a thread, each matrix is expanded when it is needed.
        drop(thread::Builder::new().spawn_scoped(scope, expand));
    }

    /// Returns the weighted mean of the hidden states of each text, normalized to the Euclidean norm 1. A text is a list of
    /// ids of tokens, with those of its start, prefix and end.
    ///
    /// The rarer a piece is, the more its state counts (smooth inverse frequency, Arora, Liang and Ma 2017). Frequencies are
    /// those of the tokenizer's model.
    ///
    /// # Errors
    /// Says why a text has no vector: it is empty or too long, or has an id that the model does not know.
    pub fn embed(&self, texts: &[&[u32]], space: &mut Workspace) -> Result<Vec<Vec<f32>>, String> {
        if self.has_embedded.swap(true, Ordering::Relaxed) {
            return self.run(texts, space);
        }
        thread::scope(|scope| {
            self.expand_ahead(scope);
            self.run(texts, space)
        })
    }

    fn run(&self, texts: &[&[u32]], space: &mut Workspace) -> Result<Vec<Vec<f32>>, String> {
        let Workspace { products, states, quantized, sums, attention_input, attention, context } = space;
        states.clear();
        for text in texts {
            self.push_states(text, states)?;
        }
        let lengths = texts.iter().map(|text| text.len());
        let product = |rows: &QuantizedRows, linear: &Linear, sums: &mut Vec<i32>| {
            linear.multiply(products, rows, sums)
        };
        rows::normalize(states, &self.norm);
        let width = self.width;
        let (block, wide_block) = (BLOCK_ROWS * width, BLOCK_ROWS * 3 * width);
        resize(context, states.len());
        resize(attention_input, 3 * states.len());
        for layer in &self.layers {
            for (states, input) in states.chunks_mut(block).zip(attention_input.chunks_mut(wide_block)) {
                rows::quantize(states, width, &layer.attention_input.columns, quantized);
                product(quantized, &layer.attention_input, sums)?;
                rows::dequantize(sums, quantized, &layer.attention_input.columns, input);
            }
            let (mut input, mut context_rest) = (attention_input.as_slice(), context.as_mut_slice());
            for length in lengths.clone() {
                let (own, rest) = input.split_at(3 * length * width);
                let (own_context, rest_context) = context_rest.split_at_mut(length * width);
                attention.attend(own, width, own_context)?;
                (input, context_rest) = (rest, rest_context);
            }
            for (states, context) in states.chunks_mut(block).zip(context.chunks_mut(block)) {
                rows::quantize(context, width, &layer.attention_output.columns, quantized);
                product(quantized, &layer.attention_output, sums)?;
                rows::add_and_normalize(
                    sums,
                    quantized,
                    &layer.attention_output.columns,
                    &layer.attention_norm,
                    states,
                );
                let (input, output) = (&layer.forward_input, &layer.forward_output);
                rows::quantize(states, width, &input.columns, quantized);
                product(quantized, input, sums)?;
                rows::gelu_and_quantize(sums, [&input.columns, &output.columns], quantized);
                product(quantized, output, sums)?;
                rows::add_and_normalize(sums, quantized, &output.columns, &layer.forward_norm, states);
            }
        }
        let mut states = states.as_slice();
        let mean = |ids: &&[u32]| {
            let (own, rest) = states.split_at(ids.len() * width);
            states = rest;
            let mut sum = vec![0.0; width];
            for (at, (id, state)) in ids.iter().zip(own.chunks_exact(width)).enumerate() {
                if !PREFIX.contains(&at) {
                    let weight = self.weight(*id);
                    sum.iter_mut().zip(state).for_each(|(sum, value)| *sum += weight * value);
                }
            }
            normalized(sum).ok_or_else(|| "its vector cannot be normalized".to_owned())
        };
        texts.iter().map(mean).collect()
    }

    /// Returns how much the state of a token counts: between 0 and 1, and nearly nothing for a special one.
    fn weight(&self, id: u32) -> f32 {
        let score = self.scores.get(id as usize).map_or(0.0, |score| f32::from_le_bytes(*score));
        HALF_FREQUENCY / (HALF_FREQUENCY + score.exp())
    }

    /// Appends the embeddings of the tokens of a text.
    fn push_states(&self, ids: &[u32], states: &mut Vec<f32>) -> Result<(), String> {
        let width = self.width;
        if ids.is_empty() || ids.len() * width > self.positions.len() {
            return Err(format!("it cannot read a text of {} tokens", ids.len()));
        }
        let blocks = width / BLOCK;
        for (id, position) in ids.iter().zip(self.positions.chunks_exact(width)) {
            let from = *id as usize * blocks;
            let word = self.words.get(from..from + blocks).ok_or_else(|| format!("it has no token {id}"))?;
            let start = states.len();
            extend_with_row(word, states);
            for (state, position) in states.iter_mut().skip(start).zip(position) {
                *state += position;
            }
        }
        Ok(())
    }
}

impl Linear {
    fn new(asset: LinearAsset) -> Result<Self, String> {
        let LinearAsset { outlier_channels, bias, scale, total, weights: stored } = asset;
        if !stored.width().is_multiple_of(rows::MAX_LANES) || !stored.height().is_multiple_of(rows::MAX_LANES)
        {
            return Err("unexpected size of a matrix".to_owned());
        }
        let total = total.iter().zip(&scale).map(|(total, scale)| total * scale).collect();
        let outliers = outlier_channels.map(|channel| {
            let weights = scale.iter().enumerate();
            weights.map(|(column, scale)| f32::from(stored.weight(channel, column)) * scale).collect()
        });
        let columns = Columns { scale, total, bias, outliers, outlier_channels };
        Ok(Self { stored, expanded: OnceLock::new(), columns })
    }

    /// Returns the matrix, which the first call expands.
    fn expanded(&self) -> &Weights {
        self.expanded.get_or_init(|| Weights::expand(self.stored))
    }

    /// Multiplies rows with the weights. The sums are integers, so that no order of adding changes them.
    ///
    /// # Errors
    /// Says why they cannot be multiplied.
    fn multiply(&self, products: &Products, rows: &QuantizedRows, sums: &mut Vec<i32>) -> Result<(), String> {
        let height = rows.bytes.len() / self.stored.height();
        let size = height * self.stored.width();
        // What is too much has no meaning: to shorten and lengthen the list would fill it with zeros each time.
        resize(sums, size.max(sums.len()));
        products.multiply(&rows.bytes, height, self.expanded(), sums.get_mut(..size).unwrap_or_default())
    }
}

impl From<NormAsset> for LayerNorm {
    fn from(asset: NormAsset) -> Self {
        Self { weight: asset.weight, bias: asset.bias }
    }
}

/// Gives a buffer a length. What it holds has no meaning.
fn resize<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) {
    buffer.resize(length, T::default());
}
