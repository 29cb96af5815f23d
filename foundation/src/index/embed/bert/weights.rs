//! The tensors of an ONNX graph, which lie in a file beside it. The only user of rten_onnx.

use std::borrow::Cow;
use std::collections::HashMap;

use rten_onnx::onnx::{ModelProto, TensorProto};

/// The tensors of a graph by their names.
pub(super) struct OnnxWeights {
    tensors: HashMap<String, TensorProto>,
    data: &'static [u8],
}

/// A matrix of bytes.
pub(super) struct ByteMatrix {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) bytes: Cow<'static, [u8]>,
}

impl ByteMatrix {
    /// Returns the rows, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.width.max(1))
    }
}

impl OnnxWeights {
    /// Reads the tensors of a graph. `data` is the file to which its tensors refer.
    ///
    /// # Errors
    /// Says why the graph cannot be read.
    pub(super) fn parse(graph: &[u8], data: &'static [u8]) -> Result<Self, String> {
        let model = ModelProto::parse_buf(graph).map_err(|error| error.to_string())?;
        let tensors = model.graph.map(|graph| graph.initializer).unwrap_or_default();
        let tensors = tensors.into_iter().filter_map(|tensor| Some((tensor.name.clone()?, tensor))).collect();
        Ok(Self { tensors, data })
    }

    /// Returns whether there is a tensor of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn tensor(&self, name: &str) -> Result<&TensorProto, String> {
        self.tensors.get(name).ok_or_else(|| format!("there is no tensor {name}"))
    }

    /// Returns the bytes of a tensor that lies in the file.
    fn stored(&self, name: &str) -> Result<&'static [u8], String> {
        let tensor = self.tensor(name)?;
        let number = |key: &str| {
            let entry = tensor.external_data.iter().find(|entry| entry.key.as_deref() == Some(key))?;
            entry.value.as_deref()?.parse::<usize>().ok()
        };
        let range = number("offset")
            .zip(number("length"))
            .and_then(|(from, length)| Some(from..from.checked_add(length)?));
        let stored = range.and_then(|range| self.data.get(range));
        stored.ok_or_else(|| format!("the data of the tensor {name} is missing"))
    }

    /// Returns the bytes of a tensor, from the graph or where they lie in the file.
    ///
    /// # Errors
    /// Names the tensor that is missing.
    pub(super) fn bytes(&self, name: &str) -> Result<Cow<'static, [u8]>, String> {
        let tensor = self.tensor(name)?;
        match &tensor.raw_data {
            Some(raw) => Ok(Cow::Owned(raw.borrow().clone())),
            // A graph can list the numbers of a small tensor as integers of 32 bits.
            None if !tensor.int32_data.is_empty() => {
                Ok(tensor.int32_data.iter().map(|number| number.to_le_bytes()[0]).collect())
            }
            None => Ok(Cow::Borrowed(self.stored(name)?)),
        }
    }

    /// Returns the numbers of a tensor of floats, from the graph or the file.
    ///
    /// # Errors
    /// Names the tensor that is missing.
    pub(super) fn floats(&self, name: &str) -> Result<Vec<f32>, String> {
        let tensor = self.tensor(name)?;
        if !tensor.float_data.is_empty() {
            return Ok(tensor.float_data.clone());
        }
        let bytes = self.bytes(name)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Returns a matrix of 8 bits per number.
    ///
    /// # Errors
    /// Names the tensor that is missing or no such matrix.
    pub(super) fn matrix(&self, name: &str) -> Result<ByteMatrix, String> {
        let bytes = self.bytes(name)?;
        let no_matrix = || format!("the tensor {name} is no matrix of bytes");
        let [height, width] = self.tensor(name)?.dims[..] else { return Err(no_matrix()) };
        let size = |number: i64| usize::try_from(number).ok().filter(|size| *size > 0).ok_or_else(no_matrix);
        let (height, width) = (size(height)?, size(width)?);
        if height.checked_mul(width) != Some(bytes.len()) {
            return Err(no_matrix());
        }
        Ok(ByteMatrix { height, width, bytes })
    }

    /// Returns the scale and the zero point of a tensor that has one of each.
    ///
    /// # Errors
    /// Names the tensor that is missing or empty.
    pub(super) fn quantization(&self, name: &str) -> Result<(f32, f32), String> {
        let scale = self.floats(&format!("{name}_scale"))?;
        let zero = self.bytes(&format!("{name}_zero_point"))?;
        let both = scale.first().copied().zip(zero.first().map(|zero| f32::from(*zero)));
        both.ok_or_else(|| format!("the quantization of {name} is empty"))
    }
}
