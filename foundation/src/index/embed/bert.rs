//! A BERT encoder (Devlin et al. 2019) with weights of 8 bits. The only user of rten_gemm and rten_tensor.
//!
//! Activations are quantized by row, which is one token: the vector of a text does not depend on the texts beside it. The
//! two channels that are much larger than the others are left in floats, and short texts get two bytes for each number.
//! Between two products of matrices, all operations on a row are one pass over it (`rows`).

mod attention;
mod products;
mod rows;
mod weights;

use std::array;
use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use self::attention::attention_by_instructions;
pub use self::products::products_by_instructions;

use self::attention::Attention;
use self::products::{Matrix, PackedWeights, Products, Weights};
use self::rows::{Columns, LayerNorm, OUTLIERS, QuantizedRows};
use self::weights::{ByteMatrix, OnnxWeights};

/// The number of attention heads.
const HEADS: usize = 12;
/// The number of rows that pass through the products of a layer at a time, so that they stay in the cache of a core.
const BLOCK_ROWS: usize = 128;
/// The channels without which the range of a row is the smallest, of what each layer of the model multiplies with the weights
/// of queries, keys and values, of the output of the attention, and of the two products after it. They are those of
/// all-MiniLM-L6-v2: the first ones were found on 120 texts, the second ones on 2,000. With others the encoder is less exact,
/// and works all the same.
const OUTLIER_CHANNELS: [[[usize; OUTLIERS]; 4]; 6] = [
    [[99, 63], [311, 190], [99, 63], [856, 692]],
    [[99, 157], [280, 272], [99, 157], [607, 251]],
    [[99, 157], [304, 255], [99, 223], [1004, 316]],
    [[99, 63], [32, 156], [99, 223], [358, 662]],
    [[99, 223], [293, 28], [99, 223], [1257, 192]],
    [[99, 223], [326, 96], [99, 223], [1300, 745]],
];
/// The channels of layers that the model does not have.
const NO_OUTLIERS: [[usize; OUTLIERS]; 4] = [[0, 1]; 4];
/// The number of tokens of the longest text that is quantized to two bytes, for the same products in the same order. The errors
/// of few tokens cancel each other less than those of many. The products are those of all-MiniLM-L6-v2 whose rounding changes a
/// vector most for what two bytes cost (docs/dev/decisions.md).
const TWO_BYTES_UP_TO: [[usize; 4]; 6] =
    [[0, 0, 16, 128], [0, 0, 64, 16], [0, 0, 16, 16], [0, 0, 0, 16], [0, 0, 16, 16], [0, 0, 0, 0]];
/// The largest weight. Some processors add two products of bytes in 16 bits with saturation, and with activations of 8
/// bits their sum fits into 16 bits then.
const MAX_WEIGHT: u8 = 64;

/// The product with a matrix of weights, and a bias.
struct Linear {
    /// The parts of the matrix, side by side, where they lie in the program.
    parts: Vec<ByteMatrix>,
    /// The matrix in the order in which the product reads it. The first short text does without, because a process that
    /// embeds one query would spend more time on the copy than on the products.
    packed: OnceLock<PackedWeights>,
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
pub(super) struct BertEncoder {
    /// The embeddings of the tokens, of `width` bytes each.
    words: Cow<'static, [u8]>,
    word_scale: f32,
    word_zero: f32,
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
pub(super) struct Workspace {
    products: Products,
    /// The hidden state of each token.
    states: Vec<f32>,
    /// The number of tokens of the text of each state.
    text_lengths: Vec<usize>,
    quantized: QuantizedRows,
    sums: Vec<i32>,
    /// Queries, keys and values of each token.
    attention_input: Vec<f32>,
    attention: Attention,
    context: Vec<f32>,
    /// A matrix of weights that is not packed.
    weights: Vec<i8>,
}

impl BertEncoder {
    /// Reads an encoder from an ONNX graph that onnxruntime has quantized, with one scale per column of a matrix, and
    /// from the file with its tensors.
    ///
    /// # Errors
    /// Says which tensor is missing or unexpected.
    pub(super) fn load(graph: &[u8], data: &'static [u8]) -> Result<Self, String> {
        let weights = OnnxWeights::parse(graph, data)?;
        let words = weights.matrix("word_quantized")?;
        let width = words.width;
        let linear = |names: &[String], shape, exact| Linear::load(&weights, names, shape, exact);
        let norm = |name: String| load_norm(&weights, &name, width);
        let mut layers = Vec::new();
        while weights.has(&format!("encoder.layer.{}.output.dense.B", layers.len())) {
            let of = |name: &str| format!("encoder.layer.{}.{name}", layers.len());
            let outliers = OUTLIER_CHANNELS.get(layers.len()).copied().unwrap_or(NO_OUTLIERS);
            let two_bytes_up_to = TWO_BYTES_UP_TO.get(layers.len()).copied().unwrap_or_default();
            let [of_states, of_context, of_attended, of_forward] =
                array::from_fn(|at| (outliers[at], two_bytes_up_to[at]));
            let forward_width = weights.matrix(&of("intermediate.dense.W_quantized"))?.width;
            let inputs = ["query", "key", "value"].map(|name| of(&format!("attention.self.{name}")));
            layers.push(Layer {
                attention_input: linear(&inputs, [width, 3 * width], of_states)?,
                attention_output: linear(&[of("attention.output.dense")], [width, width], of_context)?,
                attention_norm: norm(of("attention.output"))?,
                forward_input: linear(&[of("intermediate.dense")], [width, forward_width], of_attended)?,
                forward_output: linear(&[of("output.dense")], [forward_width, width], of_forward)?,
                forward_norm: norm(of("output"))?,
            });
        }
        let segments = weights.matrix("tok_quantized")?;
        let (segment_scale, segment_zero) = weights.quantization("tok")?;
        let segment = segments.rows().next().ok_or("no segment")?;
        let mut positions = weights.floats("pos")?;
        for row in positions.chunks_exact_mut(width) {
            for (value, segment) in row.iter_mut().zip(segment) {
                *value += (f32::from(*segment) - segment_zero) * segment_scale;
            }
        }
        let (word_scale, word_zero) = weights.quantization("word")?;
        let norm = norm("embeddings".to_owned())?;
        if layers.is_empty() || !width.is_multiple_of(HEADS) || !width.is_multiple_of(rows::MAX_LANES) {
            return Err("unexpected number of layers or length of a state".to_owned());
        }
        let has_embedded = AtomicBool::new(false);
        Ok(Self { words: words.bytes, word_scale, word_zero, positions, norm, layers, width, has_embedded })
    }

    /// Returns whether all matrices are packed, so that the data that they were read from is not read again.
    pub(super) fn has_packed(&self) -> bool {
        self.layers.iter().all(|layer| {
            [&layer.attention_input, &layer.attention_output, &layer.forward_input, &layer.forward_output]
                .iter()
                .all(|linear| linear.packed.get().is_some())
        })
    }

    /// Returns the mean of the hidden states of each text, normalized to the Euclidean norm 1. A text is a list of ids of
    /// tokens, with those of its start and end.
    ///
    /// # Errors
    /// Says why a text has no vector: it is empty or too long, or has an id that the model does not know.
    pub(super) fn embed(&self, texts: &[&[u32]], space: &mut Workspace) -> Result<Vec<Vec<f32>>, String> {
        let Workspace {
            products,
            states,
            text_lengths,
            quantized,
            sums,
            attention_input,
            attention,
            context,
            weights,
        } = space;
        states.clear();
        text_lengths.clear();
        for text in texts {
            self.push_states(text, states)?;
            text_lengths.resize(text_lengths.len() + text.len(), text.len());
        }
        let lengths = texts.iter().map(|text| text.len());
        let is_first = !self.has_embedded.swap(true, Ordering::Relaxed);
        let packs = !is_first || lengths.clone().sum::<usize>() > BLOCK_ROWS;
        if packs {
            // Only the first text uses it.
            *weights = Vec::new();
        }
        let mut product = |rows: &QuantizedRows, linear: &Linear, sums: &mut Vec<i32>| {
            linear.multiply(products, rows, if packs { None } else { Some(&mut *weights) }, sums)
        };
        rows::normalize(states, &self.norm);
        let width = self.width;
        let (block, wide_block) = (BLOCK_ROWS * width, BLOCK_ROWS * 3 * width);
        resize(context, states.len());
        resize(attention_input, 3 * states.len());
        for layer in &self.layers {
            let blocks = states.chunks_mut(block).zip(text_lengths.chunks(BLOCK_ROWS));
            for ((states, lengths), input) in blocks.zip(attention_input.chunks_mut(wide_block)) {
                rows::quantize(states, lengths, &layer.attention_input.columns, quantized);
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
            let blocks = states.chunks_mut(block).zip(text_lengths.chunks(BLOCK_ROWS));
            for ((states, lengths), context) in blocks.zip(context.chunks_mut(block)) {
                rows::quantize(context, lengths, &layer.attention_output.columns, quantized);
                product(quantized, &layer.attention_output, sums)?;
                rows::add_and_normalize(
                    sums,
                    quantized,
                    &layer.attention_output.columns,
                    &layer.attention_norm,
                    states,
                );
                let (input, output) = (&layer.forward_input, &layer.forward_output);
                rows::quantize(states, lengths, &input.columns, quantized);
                product(quantized, input, sums)?;
                rows::gelu_and_quantize(sums, lengths, [&input.columns, &output.columns], quantized);
                product(quantized, output, sums)?;
                rows::add_and_normalize(sums, quantized, &output.columns, &layer.forward_norm, states);
            }
        }
        let mut states = states.as_slice();
        let mean = |length: usize| {
            let (own, rest) = states.split_at(length * width);
            states = rest;
            normalized_sum(own, width).ok_or_else(|| "its vector cannot be normalized".to_owned())
        };
        lengths.map(mean).collect()
    }

    /// Appends the embeddings of the tokens of a text.
    fn push_states(&self, ids: &[u32], states: &mut Vec<f32>) -> Result<(), String> {
        let width = self.width;
        if ids.is_empty() || ids.len() * width > self.positions.len() {
            return Err(format!("it cannot read a text of {} tokens", ids.len()));
        }
        for (id, position) in ids.iter().zip(self.positions.chunks_exact(width)) {
            let word = self.words.chunks_exact(width).nth(*id as usize);
            let word = word.ok_or_else(|| format!("it has no token {id}"))?;
            let embedded = |(word, position): (&u8, &f32)| {
                (f32::from(*word) - self.word_zero) * self.word_scale + position
            };
            states.extend(word.iter().zip(position).map(embedded));
        }
        Ok(())
    }
}

impl Linear {
    /// Reads matrices side by side, which together have this height and breadth. Of what they are multiplied with, `outlier_channels`
    /// are the outlier channels, and texts of at most `two_bytes_up_to` tokens are quantized to two bytes.
    fn load(
        weights: &OnnxWeights,
        names: &[String],
        [height, breadth]: [usize; 2],
        (outlier_channels, two_bytes_up_to): ([usize; OUTLIERS], usize),
    ) -> Result<Self, String> {
        let mut columns = Columns { outlier_channels, two_bytes_up_to, ..Columns::default() };
        let parts = names
            .iter()
            .map(|name| {
                columns.scale.extend(weights.floats(&format!("{name}.W_scale"))?);
                columns.bias.extend(weights.floats(&format!("{name}.B"))?);
                if weights.bytes(&format!("{name}.W_zero_point"))?.iter().any(|zero| *zero != 0) {
                    return Err(format!("{name} has a zero point"));
                }
                weights.matrix(&format!("{name}.W_quantized"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let is_complete = parts.iter().all(|part| part.height == height)
            && parts.iter().map(|part| part.width).sum::<usize>() == breadth
            && columns.scale.len() == breadth
            && columns.bias.len() == breadth
            && breadth.is_multiple_of(rows::MAX_LANES);
        let mut outliers: [Vec<u8>; OUTLIERS] = Default::default();
        for part in &parts {
            let mut totals = vec![0i32; part.width];
            for row in part.rows() {
                totals
                    .iter_mut()
                    .zip(row)
                    .for_each(|(total, weight)| *total += i32::from(weight.cast_signed()));
            }
            columns.total.extend(totals.into_iter().map(|total| total as f32));
            for (weights, channel) in outliers.iter_mut().zip(outlier_channels) {
                weights.extend(part.rows().nth(channel).ok_or("no outlier channel")?);
            }
        }
        let largest = parts.iter().flat_map(|part| part.bytes.iter());
        let largest = largest.fold(0, |largest: u8, weight| largest.max(weight.cast_signed().unsigned_abs()));
        if !is_complete || largest > MAX_WEIGHT {
            return Err(format!("unexpected weights in {names:?}"));
        }
        columns.total.iter_mut().zip(&columns.scale).for_each(|(total, scale)| *total *= scale);
        for (scaled, weights) in columns.outliers.iter_mut().zip(&outliers) {
            let weights = weights.iter().zip(&columns.scale);
            *scaled = weights.map(|(weight, scale)| f32::from(weight.cast_signed()) * scale).collect();
        }
        Ok(Self { parts, packed: OnceLock::new(), columns })
    }

    /// Multiplies rows with the weights, which are packed unless there is memory for them as they are. The sums are integers,
    /// so that no order of adding changes them.
    ///
    /// # Errors
    /// Says why they cannot be multiplied.
    fn multiply(
        &self,
        products: &Products,
        rows: &QuantizedRows,
        unpacked: Option<&mut Vec<i8>>,
        sums: &mut Vec<i32>,
    ) -> Result<(), String> {
        let height = rows.bytes.len() / self.parts.first().map_or(1, |part| part.height);
        let size = height * self.columns.scale.len();
        // What is too much has no meaning: to shorten and lengthen the list would fill it with zeros each time.
        resize(sums, size.max(sums.len()));
        let sums = sums.get_mut(..size).unwrap_or_default();
        let weights = match unpacked {
            Some(memory) => Weights::Plain(self.matrix(memory)),
            None => Weights::Packed(self.packed.get_or_init(|| products.pack(self.matrix(&mut Vec::new())))),
        };
        products.multiply(&rows.bytes, height, weights, sums)
    }

    /// Returns the matrix, which is written into `memory`.
    fn matrix<'m>(&self, memory: &'m mut Vec<i8>) -> Matrix<'m> {
        let height = self.parts.first().map_or(0, |part| part.height);
        memory.clear();
        memory.reserve_exact(height * self.columns.scale.len());
        for at in 0..height {
            for part in &self.parts {
                let row = part.bytes.get(at * part.width..(at + 1) * part.width).unwrap_or_default();
                memory.extend(row.iter().map(|byte| byte.cast_signed()));
            }
        }
        Matrix { weights: memory.as_slice(), width: self.columns.scale.len() }
    }
}

/// Reads a layer normalization of rows of `width` numbers.
fn load_norm(weights: &OnnxWeights, name: &str, width: usize) -> Result<LayerNorm, String> {
    let (weight, bias) =
        (weights.floats(&format!("{name}.LayerNorm.w"))?, weights.floats(&format!("{name}.LayerNorm.b"))?);
    if weight.len() != width || bias.len() != width {
        return Err(format!("unexpected weights in {name}.LayerNorm"));
    }
    Ok(LayerNorm { weight, bias })
}

/// Returns the sum of states, normalized to the Euclidean norm 1, or `None` if it cannot be normalized.
fn normalized_sum(states: &[f32], width: usize) -> Option<Vec<f32>> {
    let mut sum = vec![0.0; width];
    for state in states.chunks_exact(width) {
        sum.iter_mut().zip(state).for_each(|(sum, value)| *sum += value);
    }
    super::normalize(sum)
}

/// Gives a buffer a length. What it holds has no meaning.
fn resize<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) {
    buffer.resize(length, T::default());
}
