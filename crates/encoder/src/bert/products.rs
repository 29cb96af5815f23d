//! Products of rows of bytes with matrices of weights. The sums are integers, so that all instructions give the same.

#[cfg(target_arch = "x86_64")]
mod vnni;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

use crate::four_bits::{FourBits, expand};

/// Returns the product of rows of bytes with a matrix by each way in which this processor can compute it, the one in use first.
///
/// # Errors
/// Says why the product cannot be computed.
pub fn products_by_instructions(
    rows: &[u8],
    matrix: FourBits,
) -> Result<Vec<(&'static str, Vec<i32>)>, String> {
    let height = rows.len() / matrix.height();
    let in_use = Weights::expand(matrix);
    let name = match in_use {
        #[cfg(target_arch = "x86_64")]
        Weights::Vnni(_) => "AVX-512 VNNI",
        Weights::Rten(_) => "rten-gemm",
    };
    let ways = [(name, in_use), ("rten-gemm", Weights::expand_for_rten(matrix))];
    let compute = |(name, weights)| {
        let mut sums = vec![0; height * matrix.width()];
        Products::default().multiply(rows, height, &weights, &mut sums).map(|()| (name, sums))
    };
    ways.into_iter().map(compute).collect()
}

/// A matrix of weights in the order in which a product reads it.
pub(super) enum Weights {
    #[cfg(target_arch = "x86_64")]
    Vnni(vnni::Weights),
    Rten(PackedBMatrix<i8>),
}

/// Computes products by the fastest instructions that the processor has.
#[derive(Default)]
pub(super) struct Products(GemmExecutor<u8, i8, i32>);

impl Weights {
    /// Expands a matrix, in the order in which a product reads it.
    pub(super) fn expand(matrix: FourBits) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(weights) = vnni::Weights::expand(matrix) {
            return Self::Vnni(weights);
        }
        Self::expand_for_rten(matrix)
    }

    fn expand_for_rten(matrix: FourBits) -> Self {
        let (height, width) = (matrix.height(), matrix.width());
        let mut columns = Vec::with_capacity(height * width);
        for column in 0..width {
            columns.extend(matrix.column(column).iter().flat_map(expand));
        }
        let view = NdTensorView::from_data([width, height], columns.as_slice());
        Self::Rten(GemmExecutor::<u8, i8, i32>::default().prepack_b(view.transposed()))
    }
}

impl Products {
    /// Multiplies `height` rows of bytes, which together are `rows`, with weights. Each row of `sums` gets a sum for each
    /// column.
    ///
    /// # Errors
    /// Says why they cannot be multiplied.
    pub(super) fn multiply(
        &self,
        rows: &[u8],
        height: usize,
        weights: &Weights,
        sums: &mut [i32],
    ) -> Result<(), String> {
        let weights = match weights {
            #[cfg(target_arch = "x86_64")]
            Weights::Vnni(weights) => {
                weights.multiply(rows, sums);
                return Ok(());
            }
            Weights::Rten(weights) => GemmInputB::Packed(weights),
        };
        let rows = GemmInputA::Unpacked(NdTensorView::from_data([height, rows.len() / height.max(1)], rows));
        // The zeros are left to `rows`, because rten-gemm 0.27 uses those of the first rows for all rows.
        self.0.gemm(sums, rows, weights, GemmOptions::default()).map_err(|error| error.to_string())
    }
}
