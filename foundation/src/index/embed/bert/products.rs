//! Products of rows of bytes with matrices of weights. The sums are integers, so that all instructions give the same.

#[cfg(target_arch = "x86_64")]
mod vnni;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

/// Returns the product of rows of bytes with a matrix, which has rows of `width` weights, by each way in which this processor
/// can compute it, the one in use first.
///
/// # Errors
/// Says why the product cannot be computed.
pub fn products_by_instructions(
    rows: &[u8],
    weights: &[i8],
    width: usize,
) -> Result<Vec<(&'static str, Vec<i32>)>, String> {
    let (matrix, products) = (Matrix { weights, width }, Products::default());
    let height = rows.len().checked_div(weights.len().checked_div(width).unwrap_or(0)).unwrap_or(0);
    let packed = products.pack(matrix);
    let in_use = match packed {
        #[cfg(target_arch = "x86_64")]
        PackedWeights::Vnni(_) => "AVX-512 VNNI",
        PackedWeights::Rten(_) => "rten-gemm, packed",
    };
    let by_rten = PackedWeights::Rten(products.0.prepack_b(matrix.view()));
    let ways = [
        (in_use, Weights::Packed(&packed)),
        ("rten-gemm, packed", Weights::Packed(&by_rten)),
        ("rten-gemm", Weights::Plain(matrix)),
    ];
    let compute = |(name, weights)| {
        let mut sums = vec![0; height * width];
        products.multiply(rows, height, weights, &mut sums).map(|()| (name, sums))
    };
    ways.into_iter().map(compute).collect()
}

/// A matrix of weights, one row after another.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'m> {
    pub(super) weights: &'m [i8],
    pub(super) width: usize,
}

/// A matrix of weights in the order in which a product reads it.
pub(super) enum PackedWeights {
    #[cfg(target_arch = "x86_64")]
    Vnni(vnni::Weights),
    Rten(PackedBMatrix<i8>),
}

/// What rows are multiplied with.
pub(super) enum Weights<'m> {
    Plain(Matrix<'m>),
    Packed(&'m PackedWeights),
}

/// Computes products by the fastest instructions that the processor has.
#[derive(Default)]
pub(super) struct Products(GemmExecutor<u8, i8, i32>);

impl Matrix<'_> {
    fn view(&self) -> NdTensorView<'_, i8, 2> {
        NdTensorView::from_data([self.weights.len() / self.width.max(1), self.width], self.weights)
    }
}

impl Products {
    /// Puts a matrix into the order in which a product reads it.
    pub(super) fn pack(&self, matrix: Matrix) -> PackedWeights {
        #[cfg(target_arch = "x86_64")]
        if let Some(weights) = vnni::Weights::new(matrix.weights, matrix.width) {
            return PackedWeights::Vnni(weights);
        }
        PackedWeights::Rten(self.0.prepack_b(matrix.view()))
    }

    /// Multiplies `height` rows of bytes, which together are `rows`, with weights. Each row of `sums` gets a sum for each
    /// column.
    ///
    /// # Errors
    /// Says why they cannot be multiplied.
    pub(super) fn multiply(
        &self,
        rows: &[u8],
        height: usize,
        weights: Weights,
        sums: &mut [i32],
    ) -> Result<(), String> {
        let weights = match &weights {
            #[cfg(target_arch = "x86_64")]
            Weights::Packed(PackedWeights::Vnni(weights)) => {
                weights.multiply(rows, sums);
                return Ok(());
            }
            Weights::Packed(PackedWeights::Rten(weights)) => GemmInputB::Packed(weights),
            Weights::Plain(matrix) => GemmInputB::Unpacked(matrix.view()),
        };
        let rows = GemmInputA::Unpacked(NdTensorView::from_data([height, rows.len() / height.max(1)], rows));
        // The zeros are left to `rows`, because rten-gemm 0.27 uses those of the first rows for all rows.
        self.0.gemm(sums, rows, weights, GemmOptions::default()).map_err(|error| error.to_string())
    }
}
