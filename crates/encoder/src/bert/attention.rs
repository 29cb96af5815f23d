//! The attention (Vaswani et al. 2017, arXiv:1706.03762, 3.2) of one text.

#[cfg(target_arch = "x86_64")]
mod bf16;

use std::f32::consts::LOG2_E;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_tensor::NdTensorView;

use super::{HEADS, resize, rows};

/// Returns the attention of a text by each set of instructions that the processor has, the one in use first. `states` has the
/// queries, keys and values of each token, of 384 numbers each.
///
/// # Errors
/// Says which product cannot be computed.
pub fn attention_by_instructions(states: &[f32]) -> Result<Vec<(&'static str, Vec<f32>)>, String> {
    const WIDTH: usize = 384;
    if states.is_empty() || !states.len().is_multiple_of(3 * WIDTH) {
        return Err(format!("{} numbers are no states", states.len()));
    }
    let mut attention = Attention::default();
    let mut found = Vec::new();
    let mut context = vec![0.0; states.len() / 3];
    #[cfg(target_arch = "x86_64")]
    if bf16::attend(states, WIDTH, &mut attention.bf16, &mut context) {
        found.push(("AVX-512 BF16", context.clone()));
    }
    attention.attend_in_floats(states, WIDTH, &mut context)?;
    found.push(("floats", context));
    Ok(found)
}

/// Computes attention by the widest instructions that the processor has, and keeps the memory for it.
#[derive(Default)]
pub(super) struct Attention {
    /// The products of floats, for processors that multiply no numbers of 16 bits.
    products: GemmExecutor,
    /// How much each token attends to each other one, not yet divided by the sum of its row.
    scores: Vec<f32>,
    /// One divided by the sum of each row.
    inverse_sums: Vec<f32>,
    head: Vec<f32>,
    #[cfg(target_arch = "x86_64")]
    bf16: bf16::Workspace,
}

impl Attention {
    /// Computes the attention of a text. `states` has the queries, keys and values of each token, of `width` numbers each.
    /// `context` has `width` numbers for each token.
    ///
    /// # Errors
    /// Says which product cannot be computed.
    pub(super) fn attend(&mut self, states: &[f32], width: usize, context: &mut [f32]) -> Result<(), String> {
        #[cfg(target_arch = "x86_64")]
        if bf16::attend(states, width, &mut self.bf16, context) {
            return Ok(());
        }
        self.attend_in_floats(states, width, context)
    }

    /// Computes the attention by products that every processor has.
    ///
    /// # Errors
    /// Says which product cannot be computed.
    fn attend_in_floats(&mut self, states: &[f32], width: usize, context: &mut [f32]) -> Result<(), String> {
        let Self { products, scores, inverse_sums, head, .. } = self;
        let (length, size) = (states.len() / (3 * width), width / HEADS);
        // The vectors of one head are a matrix whose rows lie three states apart.
        let part = |part: usize, head: usize| {
            let from = part * width + head * size;
            let data = states.get(from..from + (length - 1) * 3 * width + size).unwrap_or_default();
            NdTensorView::from_data_with_strides([length, size], data, [3 * width, 1])
                .map_err(|error| error.to_string())
        };
        let scaled = GemmOptions { alpha: scale(size), ..GemmOptions::default() };
        resize(scores, length * length);
        resize(head, length * size);
        for at in 0..HEADS {
            let (queries, keys, values) = (part(0, at)?, part(1, at)?, part(2, at)?);
            multiply(products, scores, (queries, keys.transposed()), scaled.clone())?;
            rows::exponentiate(scores, length, inverse_sums);
            let weights = NdTensorView::from_data([length, length], scores.as_slice());
            multiply(products, head, (weights, values), GemmOptions::default())?;
            rows::write_head(head, inverse_sums, at, context);
        }
        Ok(())
    }
}

fn multiply(
    products: &GemmExecutor,
    out: &mut [f32],
    (a, b): (NdTensorView<f32, 2>, NdTensorView<f32, 2>),
    options: GemmOptions<f32, f32, f32>,
) -> Result<(), String> {
    let (a, b) = (GemmInputA::Unpacked(a), GemmInputB::Unpacked(b));
    products.gemm(out, a, b, options).map_err(|error| error.to_string())
}

/// Returns by what the product of a query and a key is multiplied, so that 2 to the power of it is the weight.
fn scale(size: usize) -> f32 {
    (size as f32).sqrt().recip() * LOG2_E
}
