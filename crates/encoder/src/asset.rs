//! The layout of the file with a model. All numbers are little-endian, and each part begins at a multiple of 64 bytes.
//!
//! `examples/convert.rs` writes it. Only small parts are copied out of it.

use crate::four_bits::{BLOCK, BLOCK_BYTES, FourBits, ROW_BLOCK_BYTES};

/// The first bytes of the file, with the version of its format.
pub(crate) const MAGIC: &[u8; 8] = b"SNENC\0\0\x01";
/// The multiple of bytes at which each part begins.
const ALIGNMENT: usize = 64;
/// The bytes of a number of the header.
const WORD: usize = 4;

/// A model in a file.
#[derive(Debug)]
pub struct Asset {
    /// The length of a hidden state.
    pub width: usize,
    /// The id of the token at the start of each text.
    pub start_id: u32,
    /// The id of the token at the end of each text.
    pub end_id: u32,
    /// The id of what no piece has.
    pub unknown_id: u32,
    /// A double array from the pieces to their ids.
    pub pieces: &'static [u8],
    /// For each id the logarithm of the frequency of its piece, as four bytes.
    pub scores: &'static [[u8; WORD]],
    /// A double array from characters to the places of their replacements: the first byte times 256, plus the number of bytes.
    pub replacements: &'static [u8],
    /// The replacements.
    pub replacement_text: &'static [u8],
    /// The embeddings of the tokens: for each one the blocks of its row.
    pub words: &'static [[u8; ROW_BLOCK_BYTES]],
    /// The embeddings of the positions, with that of the first segment added.
    pub positions: Vec<f32>,
    /// The normalization of the embeddings.
    pub norm: NormAsset,
    /// The layers.
    pub layers: Vec<LayerAsset>,
}

/// The weights of a layer normalization.
#[derive(Debug)]
pub struct NormAsset {
    /// The numbers that normalized ones are multiplied with.
    pub weight: Vec<f32>,
    /// The numbers that are added then.
    pub bias: Vec<f32>,
}

/// The product with a matrix of weights.
#[derive(Debug)]
pub struct LinearAsset {
    /// The channels of what is multiplied that are computed in floats.
    pub outlier_channels: [usize; 2],
    /// What is added to each column.
    pub bias: Vec<f32>,
    /// The scale of each column.
    pub scale: Vec<f32>,
    /// The sum of the bytes of each column.
    pub total: Vec<f32>,
    /// The matrix.
    pub weights: FourBits<'static>,
}

/// A layer of the encoder.
#[derive(Debug)]
pub struct LayerAsset {
    /// Queries, keys and values of the attention, side by side.
    pub attention_input: LinearAsset,
    /// The output of the attention.
    pub attention_output: LinearAsset,
    /// The normalization after the attention.
    pub attention_norm: NormAsset,
    /// The first product of the feed-forward network.
    pub forward_input: LinearAsset,
    /// The second one.
    pub forward_output: LinearAsset,
    /// The normalization after the feed-forward network.
    pub forward_norm: NormAsset,
}

/// Reads one part of a file after another.
struct Parts {
    bytes: &'static [u8],
    at: usize,
}

impl Asset {
    /// Finds the parts of a file.
    ///
    /// # Errors
    /// Says why the file is not one that this version reads.
    pub fn parse(bytes: &'static [u8]) -> Result<Self, String> {
        let mut parts = Parts { bytes, at: 0 };
        let header = parts.part(MAGIC.len() + 12 * WORD)?;
        let words = header.strip_prefix(MAGIC).ok_or("it is no model of this version")?;
        let mut words = words.as_chunks::<WORD>().0.iter().map(|word| u32::from_le_bytes(*word));
        let mut word = || words.next().unwrap_or_default();
        let [start_id, end_id, unknown_id] = [word(), word(), word()];
        let mut size = || word() as usize;
        let [width, forward_width, layers, positions, pieces] = [size(), size(), size(), size(), size()];
        let [piece_bytes, replacement_bytes, text_bytes] = [size(), size(), size()];
        if !width.is_multiple_of(BLOCK) || width == 0 || layers == 0 {
            return Err("unexpected number of layers or length of a state".to_owned());
        }
        Ok(Self {
            width,
            start_id,
            end_id,
            unknown_id,
            pieces: parts.part(piece_bytes)?,
            scores: parts.part(pieces * WORD)?.as_chunks().0,
            replacements: parts.part(replacement_bytes)?,
            replacement_text: parts.part(text_bytes)?,
            words: parts.part(pieces * (width / BLOCK) * ROW_BLOCK_BYTES)?.as_chunks().0,
            positions: parts.floats(positions * width)?,
            norm: parts.norm(width)?,
            layers: (0..layers).map(|_| parts.layer(width, forward_width)).collect::<Result<_, _>>()?,
        })
    }
}

impl Parts {
    /// Returns the next part, which has this many bytes.
    fn part(&mut self, length: usize) -> Result<&'static [u8], String> {
        let from = self.at.next_multiple_of(ALIGNMENT);
        let part = self.bytes.get(from..).and_then(|rest| rest.get(..length)).ok_or("it is cut off")?;
        self.at = from + length;
        Ok(part)
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, String> {
        let bytes = self.part(count * WORD)?.as_chunks::<WORD>().0;
        Ok(bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    fn norm(&mut self, width: usize) -> Result<NormAsset, String> {
        Ok(NormAsset { weight: self.floats(width)?, bias: self.floats(width)? })
    }

    fn linear(&mut self, [height, width]: [usize; 2]) -> Result<LinearAsset, String> {
        let numbers = self.part(2 * WORD)?.as_chunks::<WORD>().0;
        let [first, second] = [0, 1].map(|at| u32::from_le_bytes(numbers[at]) as usize);
        if first >= height || second >= height || first == second {
            return Err("unexpected outlier channels".to_owned());
        }
        let [bias, scale, total] = [self.floats(width)?, self.floats(width)?, self.floats(width)?];
        let blocks = self.part(height / BLOCK * BLOCK_BYTES * width)?;
        let weights = FourBits::new(blocks, [height, width]).ok_or("unexpected weights")?;
        Ok(LinearAsset { outlier_channels: [first, second], bias, scale, total, weights })
    }

    fn layer(&mut self, width: usize, forward_width: usize) -> Result<LayerAsset, String> {
        Ok(LayerAsset {
            attention_input: self.linear([width, 3 * width])?,
            attention_output: self.linear([width, width])?,
            attention_norm: self.norm(width)?,
            forward_input: self.linear([width, forward_width])?,
            forward_output: self.linear([forward_width, width])?,
            forward_norm: self.norm(width)?,
        })
    }
}
