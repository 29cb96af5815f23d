//! The built-in sentence encoder: multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672), its weights of 4 bits and
//! its tokenizer. Texts go in, and vectors come out. It knows no vault, and starts no threads but those that prepare
//! the weights.

mod asset;
mod bert;
mod four_bits;
mod text_kind;
mod tokenizer;

pub use asset::{Asset, LayerAsset, LinearAsset, NormAsset};
pub use bert::{BertEncoder, Workspace, attention_by_instructions, products_by_instructions};
pub use four_bits::{BLOCK, BLOCK_BYTES, FourBits, ROW_BLOCK_BYTES, to_f32};
pub use text_kind::{TextKind, mean_passage};
pub use tokenizer::Tokenizer;

/// The file with the model, aligned so that no number of it lies in two cache lines.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static MODEL: &Aligned<[u8]> = &Aligned(*include_bytes!("../assets/multilingual-e5-small/model.bin"));

/// Returns the file with the model, where it lies in the program.
pub fn built_in() -> &'static [u8] {
    &MODEL.0
}
