//! The length normalisation of BM25F: a frequency counts less in a long field.

use sidenote_base::error::Result;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::schema::Field;
use tantivy::{DocId, SegmentReader};

use super::{FieldTuning, failed};

/// The length normalisation of one field: the divisors of frequencies.
pub(super) enum LengthNorms {
    /// The field alone has the length: the divisor by the code of a length.
    ByCode(FieldNormReader, Box<[f32; 256]>),
    /// Several fields have it together.
    Sum(Vec<FieldNormReader>, LengthDivisor),
}

/// The divisor of a frequency by the length of the text: 1 − b + b · length / mean.
#[derive(Clone, Copy)]
pub(super) struct LengthDivisor {
    b: f32,
    min_length: f32,
    mean: f32,
}

impl LengthDivisor {
    fn of(self, length: u32) -> f32 {
        let length = (length as f32).max(self.min_length) / self.mean;
        1.0 - self.b + self.b * length
    }
}

impl LengthNorms {
    /// Creates the normalisation of a field that is scored as one with some others, in one segment. `mean` is the mean of their
    /// joint length.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the lengths cannot be read.
    pub(super) fn new(
        segment: &SegmentReader,
        fields: Vec<Field>,
        tuning: FieldTuning,
        (mean, min_length): (f32, f32),
    ) -> Result<Self> {
        let reader = |field| segment.get_fieldnorms_reader(field).map_err(failed("read"));
        let readers = fields.into_iter().map(reader).collect::<Result<Vec<_>>>()?;
        let divisor = LengthDivisor { b: tuning.b, min_length, mean: mean.max(min_length) };
        let by_code = || Box::new(std::array::from_fn(|code| divisor.of(length_of_code(code))));
        Ok(match <[FieldNormReader; 1]>::try_from(readers) {
            Ok([reader]) => Self::ByCode(reader, by_code()),
            Err(readers) => Self::Sum(readers, divisor),
        })
    }

    /// Returns what a frequency in a document is divided by.
    pub(super) fn divisor(&self, doc: DocId) -> f32 {
        match self {
            Self::ByCode(reader, divisors) => divisors[usize::from(reader.fieldnorm_id(doc))],
            Self::Sum(readers, divisor) => {
                divisor.of(readers.iter().map(|reader| reader.fieldnorm(doc)).sum())
            }
        }
    }
}

/// The number of tables in which the largest frequencies are found. With one, each document would wait for the one before it,
/// which mostly has the same length.
const TABLES: usize = 4;

/// The largest frequency of a term among the documents of each length.
pub(super) struct LargestByLength {
    by_code: [[u32; 256]; TABLES],
    /// The largest frequency divided by a length that has no code.
    divided: f32,
}

impl Default for LargestByLength {
    fn default() -> Self {
        Self { by_code: [[0; 256]; TABLES], divided: 0.0 }
    }
}

impl LargestByLength {
    /// Takes up the frequencies in some documents.
    pub(super) fn add(&mut self, docs: &[DocId], frequencies: &[u32], norms: &LengthNorms) {
        let LengthNorms::ByCode(reader, _) = norms else {
            for (&doc, &frequency) in docs.iter().zip(frequencies) {
                self.divided = self.divided.max(frequency as f32 / norms.divisor(doc));
            }
            return;
        };
        for (docs, frequencies) in docs.chunks(TABLES).zip(frequencies.chunks(TABLES)) {
            for ((&doc, &frequency), table) in docs.iter().zip(frequencies).zip(&mut self.by_code) {
                let largest = &mut table[usize::from(reader.fieldnorm_id(doc))];
                *largest = frequency.max(*largest);
            }
        }
    }

    /// Returns the largest frequency after the division by the length.
    pub(super) fn divided(&self, norms: &LengthNorms) -> f32 {
        let LengthNorms::ByCode(_, divisors) = norms else { return self.divided };
        let of_table = |table: &[u32; 256]| {
            let divided =
                table.iter().zip(divisors.iter()).map(|(&largest, divisor)| largest as f32 / divisor);
            divided.fold(0.0, f32::max)
        };
        self.by_code.iter().map(of_table).fold(self.divided, f32::max)
    }
}

/// Returns the length that a code of tantivy's field norms means.
fn length_of_code(code: usize) -> u32 {
    FieldNormReader::id_to_fieldnorm(u8::try_from(code).unwrap_or(u8::MAX))
}
