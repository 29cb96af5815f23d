//! The operations on rows of numbers between two products of matrices. Each is compiled for every set of vector
//! instructions, and the widest one that the processor has is used. The only user of rten_simd.

use rten_simd::ops::{BitOps, FloatOps, IntOps, NarrowSaturate, NumOps, ToFloat};
use rten_simd::{Isa, Simd, SimdOp};

/// The most bytes that a vector of any processor holds. The length of a row is a multiple of it.
pub(super) const MAX_LANES: usize = 64;
/// What is added to a variance before a row is divided by its square root.
const EPSILON: f32 = 1e-12;
/// The number of outlier channels of a row: of those whose numbers are often much larger than all others. They are computed in
/// floats, as in LLM.int8() (Dettmers et al. 2022, arXiv:2208.07339), since the largest number of a row decides how exact all
/// others are.
pub(super) const OUTLIERS: usize = 2;
/// The greatest number of 8 bits.
const MAX_QUANTIZED: f32 = 255.0;
/// 1.5 · 2²³: the sum of this and a small number is rounded to a whole number, which its lowest bits hold.
pub(super) const ROUNDING: f32 = 12_582_912.0;
/// The least exponent, to which lower ones are raised.
pub(super) const LEAST_EXPONENT: f32 = -125.0;
/// The polynomial nearest to 2 to the power of a number between -1/2 and 1/2, to a part of 400,000.
const POWER_OF_TWO: [f32; 5] = [0.999_999_3, 0.693_121_8, 0.240_247_45, 0.055_917_86, 0.009_570_102];
/// The polynomial in x² which, times x and plus 1/2, is nearest to the normal distribution below [`GELU_LIMIT`]. The result of
/// the unit is right to .0002 with it, and quantized in steps of .01 on average, .0015 at least.
const NORMAL_DISTRIBUTION: [f32; 7] = [
    0.397_869_94,
    -0.064_554_02,
    0.008_763_535,
    -8.121_587e-4,
    4.776_120_4e-5,
    -1.588_704_3e-6,
    2.258_601e-8,
];
/// The number from which on the normal distribution is taken as 1.
const GELU_LIMIT: f32 = 4.0;

/// Rows whose numbers are `(byte − zero) · scale`, except those of the outlier channels.
#[derive(Default)]
pub(super) struct QuantizedRows {
    pub(super) bytes: Vec<u8>,
    /// One for each row.
    pub(super) scaling: Vec<Scaling>,
}

/// The numbers that the bytes of a row mean.
#[derive(Clone, Copy)]
pub(super) struct Scaling {
    scale: f32,
    /// An integer.
    zero: f32,
    /// The numbers in the outlier channels. The bytes of these channels mean 0.
    outliers: [f32; OUTLIERS],
}

/// What each column of a product with a matrix of weights needs. With the sum of products of bytes, the number it stands
/// for is `scale of the row · (sum · scale − zero of the row · total) + outliers of the row · outliers + bias`.
#[derive(Default)]
pub(super) struct Columns {
    /// The scale of the weights.
    pub(super) scale: Vec<f32>,
    /// The sum of the weights, each multiplied with the scale.
    pub(super) total: Vec<f32>,
    /// The bias that is added to the product.
    pub(super) bias: Vec<f32>,
    /// The weights of each outlier channel, multiplied with the scale.
    pub(super) outliers: [Vec<f32>; OUTLIERS],
    /// The outlier channels, each another one.
    pub(super) outlier_channels: [usize; OUTLIERS],
}

/// The weights of a layer normalization (Ba et al. 2016, arXiv:1607.06450).
pub(super) struct LayerNorm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// Gives each row the mean 0 and the variance 1, then multiplies it with the weight and adds the bias.
pub(super) fn normalize(rows: &mut [f32], norm: &LayerNorm) {
    NormalizeRows { rows, norm }.dispatch();
}

/// Quantizes rows for a product with these columns, each one between its least and its greatest number, and zero. The outlier
/// channels count for neither. The rows are the same afterwards.
pub(super) fn quantize(rows: &mut [f32], width: usize, columns: &Columns, quantized: &mut QuantizedRows) {
    QuantizeRows { rows, width, columns, quantized }.dispatch();
}

/// Turns the sums of a product with quantized rows into floats.
pub(super) fn dequantize(sums: &[i32], rows: &QuantizedRows, columns: &Columns, out: &mut [f32]) {
    DequantizeRows { sums, rows, columns, out, residual_norm: None }.dispatch();
}

/// Adds the numbers that the sums of a product with quantized rows mean to the states, and normalizes these.
pub(super) fn add_and_normalize(
    sums: &[i32],
    rows: &QuantizedRows,
    columns: &Columns,
    norm: &LayerNorm,
    states: &mut [f32],
) {
    DequantizeRows { sums, rows, columns, out: states, residual_norm: Some(norm) }.dispatch();
}

/// Applies the Gaussian error linear unit (Hendrycks & Gimpel 2016, arXiv:1606.08415) to the numbers that the sums of a
/// product with the quantized rows mean. The result replaces the rows, quantized for a product with the next columns.
pub(super) fn gelu_and_quantize(sums: &[i32], [columns, next]: [&Columns; 2], rows: &mut QuantizedRows) {
    GeluAndQuantizeRows { sums, columns, next, rows }.dispatch();
}

/// Replaces each number by 2 to the power of what it lies below the greatest one of its row, and returns one divided by the sum
/// of each row.
pub(super) fn exponentiate(rows: &mut [f32], width: usize, inverse_sums: &mut Vec<f32>) {
    ExponentiateRows { rows, width, inverse_sums }.dispatch();
}

/// Multiplies the rows of a head of the attention with one number each, and writes them to its place in the context.
pub(super) fn write_head(rows: &[f32], factors: &[f32], head: usize, context: &mut [f32]) {
    WriteHead { rows, factors, head, context }.dispatch();
}

struct NormalizeRows<'a> {
    rows: &'a mut [f32],
    norm: &'a LayerNorm,
}

impl SimdOp for NormalizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        for row in self.rows.chunks_exact_mut(self.norm.weight.len()) {
            normalize_row(isa, row, self.norm);
        }
    }
}

struct QuantizeRows<'a> {
    rows: &'a mut [f32],
    width: usize,
    columns: &'a Columns,
    quantized: &'a mut QuantizedRows,
}

impl SimdOp for QuantizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        self.quantized.bytes.clear();
        self.quantized.scaling.clear();
        for row in self.rows.chunks_exact_mut(self.width) {
            quantize_row(isa, row, self.columns, self.quantized);
        }
    }
}

struct DequantizeRows<'a> {
    sums: &'a [i32],
    rows: &'a QuantizedRows,
    columns: &'a Columns,
    out: &'a mut [f32],
    /// If given, the numbers are added to those of `out`, and the rows are normalized.
    residual_norm: Option<&'a LayerNorm>,
}

impl SimdOp for DequantizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self { sums, rows, columns, out, residual_norm } = self;
        let floats = isa.f32();
        let width = columns.scale.len();
        let sums = sums.chunks_exact(width).zip(&rows.scaling);
        for ((sums, scaling), out) in sums.zip(out.chunks_exact_mut(width)) {
            let Some(norm) = residual_norm else {
                map_sums(
                    isa,
                    (sums, scaling),
                    columns,
                    out,
                    #[inline(always)]
                    |value, _| value,
                );
                continue;
            };
            map_sums(
                isa,
                (sums, scaling),
                columns,
                out,
                #[inline(always)]
                |value, state| floats.add(value, state),
            );
            normalize_row(isa, out, norm);
        }
    }
}

struct GeluAndQuantizeRows<'a> {
    sums: &'a [i32],
    columns: &'a Columns,
    next: &'a Columns,
    rows: &'a mut QuantizedRows,
}

impl SimdOp for GeluAndQuantizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let width = self.columns.scale.len();
        let scaling = std::mem::take(&mut self.rows.scaling);
        self.rows.bytes.clear();
        let mut row = vec![0.0; width];
        for (sums, scaling) in self.sums.chunks_exact(width).zip(&scaling) {
            map_sums(
                isa,
                (sums, scaling),
                self.columns,
                &mut row,
                #[inline(always)]
                |value, _| gelu(isa, value),
            );
            quantize_row(isa, &mut row, self.next, self.rows);
        }
    }
}

struct ExponentiateRows<'a> {
    rows: &'a mut [f32],
    width: usize,
    inverse_sums: &'a mut Vec<f32>,
}

impl SimdOp for ExponentiateRows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        self.inverse_sums.clear();
        for row in self.rows.chunks_exact_mut(self.width) {
            self.inverse_sums.push(exponentiate_row(isa, row).recip());
        }
    }
}

struct WriteHead<'a> {
    rows: &'a [f32],
    factors: &'a [f32],
    head: usize,
    context: &'a mut [f32],
}

impl SimdOp for WriteHead<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Self { rows, factors, head, context } = self;
        let ops = isa.f32();
        let lanes = ops.len();
        let (size, width) = (rows.len() / factors.len().max(1), context.len() / factors.len().max(1));
        for ((row, factor), context) in
            rows.chunks_exact(size).zip(factors).zip(context.chunks_exact_mut(width))
        {
            let factor = ops.splat(*factor);
            let own = context.get_mut(head * size..(head + 1) * size).unwrap_or_default();
            for (from, to) in row.chunks_exact(lanes).zip(own.chunks_exact_mut(lanes)) {
                ops.store(ops.mul(ops.load(from), factor), to);
            }
        }
    }
}

/// Replaces each number of `out` by the result of `map` for two numbers: the one that a sum means, and itself.
#[inline(always)]
fn map_sums<I: Isa>(
    isa: I,
    (sums, scaling): (&[i32], &Scaling),
    columns: &Columns,
    out: &mut [f32],
    map: impl Fn(I::F32, I::F32) -> I::F32,
) {
    let (ints, floats) = (isa.i32(), isa.f32());
    let lanes = floats.len();
    let Scaling { scale, zero, outliers } = *scaling;
    // Sums and totals are scaled by the row at once.
    let (scale, offset) = (floats.splat(scale), floats.splat(-scale * zero));
    let [first, second] = outliers.map(|number| floats.splat(number));
    let columns = columns
        .scale
        .chunks_exact(lanes)
        .zip(columns.total.chunks_exact(lanes))
        .zip(columns.bias.chunks_exact(lanes))
        .zip(columns.outliers[0].chunks_exact(lanes))
        .zip(columns.outliers[1].chunks_exact(lanes));
    for ((sums, ((((column_scale, total), bias), first_column), second_column)), out) in
        sums.chunks_exact(lanes).zip(columns).zip(out.chunks_exact_mut(lanes))
    {
        let bias = floats.mul_add(floats.load(total), offset, floats.load(bias));
        let bias = floats.mul_add(floats.load(first_column), first, bias);
        let bias = floats.mul_add(floats.load(second_column), second, bias);
        let factor = floats.mul(scale, floats.load(column_scale));
        let value = floats.mul_add(ints.to_float(ints.load(sums)), factor, bias);
        floats.store(map(value, floats.load(out)), out);
    }
}

#[inline(always)]
fn normalize_row<I: Isa>(isa: I, row: &mut [f32], norm: &LayerNorm) {
    let ops = isa.f32();
    let lanes = ops.len();
    let length = row.len() as f32;
    // A closure would be compiled without the instructions of the processor, unless it is inlined.
    let mut sum = ops.zero();
    for numbers in row.chunks_exact(lanes) {
        sum = ops.add(sum, ops.load(numbers));
    }
    let mean = ops.splat(ops.sum(sum) / length);
    let mut squares = ops.zero();
    for numbers in row.chunks_exact(lanes) {
        let difference = ops.sub(ops.load(numbers), mean);
        squares = ops.mul_add(difference, difference, squares);
    }
    let scale = ops.splat((ops.sum(squares) / length + EPSILON).sqrt().recip());
    let columns = norm.weight.chunks_exact(lanes).zip(norm.bias.chunks_exact(lanes));
    for (numbers, (weight, bias)) in row.chunks_exact_mut(lanes).zip(columns) {
        let difference = ops.sub(ops.load(numbers), mean);
        let normal = ops.mul_add(difference, ops.mul(scale, ops.load(weight)), ops.load(bias));
        ops.store(normal, numbers);
    }
}

/// Appends a quantized row, as DynamicQuantizeLinear of ONNX makes one of a tensor, but without the outlier channels. The
/// row is the same afterwards.
#[inline(always)]
fn quantize_row<I: Isa>(isa: I, row: &mut [f32], columns: &Columns, quantized: &mut QuantizedRows) {
    let outlier_channels = columns.outlier_channels;
    let outliers =
        outlier_channels.map(|channel| row.get_mut(channel).map(std::mem::take).unwrap_or_default());
    let floats = isa.f32();
    let lanes = floats.len();
    let (mut low, mut high) = (floats.zero(), floats.zero());
    for numbers in row.chunks_exact(lanes) {
        let numbers = floats.load(numbers);
        low = floats.min(low, numbers);
        high = floats.max(high, numbers);
    }
    let low = low.to_array().as_ref().iter().copied().fold(0.0, f32::min);
    let high = high.to_array().as_ref().iter().copied().fold(0.0, f32::max);
    let scale = if high > low { (high - low) / MAX_QUANTIZED } else { 1.0 };
    let zero = (-low / scale).round_ties_even().clamp(0.0, MAX_QUANTIZED);
    quantized.scaling.push(Scaling { scale, zero, outliers });
    let start = quantized.bytes.len();
    quantized.bytes.resize(start + row.len(), 0);
    let bytes = quantized.bytes.get_mut(start..).unwrap_or_default();
    quantize_numbers(isa, row, (scale, zero), bytes);
    for (channel, outlier) in outlier_channels.into_iter().zip(outliers) {
        if let Some(number) = row.get_mut(channel) {
            *number = outlier;
        }
    }
}

#[inline(always)]
fn quantize_numbers<I: Isa>(isa: I, row: &[f32], (scale, zero): (f32, f32), bytes: &mut [u8]) {
    let (floats, ints) = (isa.f32(), isa.i32());
    let lanes = floats.len();
    let (factor, zero) = (floats.splat(scale.recip()), ints.splat(zero as i32));
    for (numbers, bytes) in row.chunks_exact(4 * lanes).zip(bytes.chunks_exact_mut(4 * lanes)) {
        let [a, b, c, d] = floats.load_many::<4>(numbers);
        let (a, b) = (floats.to_int_round(floats.mul(a, factor)), floats.to_int_round(floats.mul(b, factor)));
        let (c, d) = (floats.to_int_round(floats.mul(c, factor)), floats.to_int_round(floats.mul(d, factor)));
        store_bytes(isa, [a, b, c, d], zero, bytes);
    }
}

/// Stores numbers plus a zero as bytes. What is too small or too great becomes the least or the greatest byte.
#[inline(always)]
fn store_bytes<I: Isa>(isa: I, [a, b, c, d]: [I::I32; 4], zero: I::I32, bytes: &mut [u8]) {
    let ints = isa.i32();
    let first = ints.narrow_saturate(ints.add(a, zero), ints.add(b, zero));
    let second = ints.narrow_saturate(ints.add(c, zero), ints.add(d, zero));
    isa.u8().store(isa.i16().narrow_saturate(first, second), bytes);
}

/// Computes the Gaussian error linear unit: x times the normal distribution.
#[inline(always)]
fn gelu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let ops = isa.f32();
    let near = ops.clamp(x, ops.splat(-GELU_LIMIT), ops.splat(GELU_LIMIT));
    let sum = polynomial(isa, NORMAL_DISTRIBUTION, ops.mul(near, near));
    ops.mul(x, ops.mul_add(near, sum, ops.splat(0.5)))
}

#[inline(always)]
fn polynomial<I: Isa, const N: usize>(isa: I, coefficients: [f32; N], x: I::F32) -> I::F32 {
    let ops = isa.f32();
    let mut sum = ops.zero();
    // A fold would take a closure, which is compiled without the instructions of the processor.
    for coefficient in coefficients.into_iter().rev() {
        sum = ops.mul_add(sum, x, ops.splat(coefficient));
    }
    sum
}

/// Returns 2 to the power of numbers of at most 0: the fraction by a polynomial, the whole number by the exponent of a float.
#[inline(always)]
fn power_of_two<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (ops, ints) = (isa.f32(), isa.i32());
    let rounding = ops.splat(ROUNDING);
    let x = ops.max(x, ops.splat(LEAST_EXPONENT));
    let shifted = ops.add(x, rounding);
    let power = polynomial(isa, POWER_OF_TWO, ops.sub(x, ops.sub(shifted, rounding)));
    let exponent: I::I32 = ints.shift_left::<23>(shifted.reinterpret_cast());
    ints.add(power.reinterpret_cast(), exponent).reinterpret_cast()
}

/// Replaces each number of a row by 2 to the power of what it lies below the greatest one, and returns their sum.
#[inline(always)]
fn exponentiate_row<I: Isa>(isa: I, row: &mut [f32]) -> f32 {
    let ops = isa.f32();
    let lanes = ops.len();
    let (whole, rest) = row.split_at_mut(row.len() / lanes * lanes);
    let (last, exists) = ops.load_pad(rest);
    let lowest = ops.splat(f32::MIN);
    let mut highest = ops.select(last, lowest, exists);
    for numbers in whole.chunks_exact(lanes) {
        highest = ops.max(highest, ops.load(numbers));
    }
    let highest = ops.splat(highest.to_array().as_ref().iter().copied().fold(f32::MIN, f32::max));
    let last = ops.select(power_of_two(isa, ops.sub(last, highest)), ops.zero(), exists);
    let mut sum = last;
    for numbers in whole.chunks_exact_mut(lanes) {
        let power = power_of_two(isa, ops.sub(ops.load(numbers), highest));
        sum = ops.add(sum, power);
        ops.store(power, numbers);
    }
    rest.iter_mut().zip(last.to_array().as_ref()).for_each(|(number, power)| *number = *power);
    ops.sum(sum)
}
