//! The records of a vector log as values, and reading wanted records of a log.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_vault::authority::StoredVector;

use super::{HEADER, KEY_RECORD, MAX_KEYS, Quantised, checksum, log_path, read_log_from, record_size};

/// A vector as a log holds it: the key of its passage, a checksum, and the quantised components behind their scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorRecord {
    pub(super) key: i64,
    pub(super) sum: u64,
    pub(super) bytes: Vec<u8>,
}

impl VectorRecord {
    /// Quantises the vector of a passage.
    pub fn new(key: i64, vector: &[f32]) -> Self {
        let quantised = Quantised::of(vector);
        let mut bytes = quantised.scale.to_le_bytes().to_vec();
        bytes.extend(quantised.bytes.iter().map(|&byte| byte as u8));
        Self { key, sum: checksum(key, &bytes), bytes }
    }

    /// Returns the key of the passage.
    pub fn key(&self) -> i64 {
        self.key
    }

    /// Returns the record as an authority stores it: the checksum, and the bytes.
    pub fn to_stored(&self) -> StoredVector {
        let bytes = [&self.sum.to_le_bytes(), self.bytes.as_slice()].concat();
        StoredVector { key: self.key, bytes }
    }

    /// Reads what [`Self::to_stored`] returns. Returns `None` if it has another size or checksum.
    pub fn from_stored(stored: &StoredVector, size: usize) -> Option<Self> {
        let (sum, bytes) = stored.bytes.split_first_chunk::<8>()?;
        let sum = u64::from_le_bytes(*sum);
        let is_whole = bytes.len() == size && checksum(stored.key, bytes) == sum;
        is_whole.then(|| Self { key: stored.key, sum, bytes: bytes.to_vec() })
    }
}

/// What [`read_records`] read of a log.
#[derive(Debug, Default)]
pub struct RecordsRead {
    /// The number of records that the log has.
    pub records: usize,
    /// The keys of wanted records whose checksum does not match.
    pub damaged: Vec<i64>,
}

/// The number of records that are read and handed on at once.
const RECORDS_AT_ONCE: usize = 4096;

/// Reads the wanted records of a log from the record `first` on, and removes the keys that were found from `wanted`. A
/// record whose checksum does not match is skipped, and so is an incomplete one at the end. A folder without a log of
/// this many dimensions has no records.
///
/// # Errors
/// `Io` if the files cannot be read; the errors of `give`.
pub fn read_records(
    folder: &Path,
    dimensions: usize,
    first: usize,
    wanted: &mut HashSet<i64>,
    give: &mut dyn FnMut(&[VectorRecord]) -> Result<()>,
) -> Result<RecordsRead> {
    let mut log = read_log_from(folder, dimensions, first)?;
    let Some(file) = log.file.take() else { return Ok(RecordsRead::default()) };
    let mut read = RecordsRead { records: first + log.keys.len(), damaged: Vec::new() };
    let size = record_size(dimensions);
    let mut at = 0;
    while at < log.keys.len() && !wanted.is_empty() {
        let run = log.keys[at..].iter().take(RECORDS_AT_ONCE).take_while(|key| wanted.contains(key)).count();
        if run == 0 {
            at += 1;
            continue;
        }
        let mut bytes = vec![0_u8; run * size];
        platform::read_exact_at(&file, &mut bytes, (HEADER + (first + at) * size) as u64)
            .map_err(|error| Error::io("read", log_path(folder), error))?;
        let mut records = Vec::with_capacity(run);
        for (index, bytes) in bytes.chunks_exact(size).enumerate() {
            let (Some(&key), Some(sum)) = (log.keys.get(at + index), log.sum(at + index)) else {
                continue;
            };
            if checksum(key, bytes) != sum {
                read.damaged.push(key);
            } else if wanted.remove(&key) {
                records.push(VectorRecord { key, sum, bytes: bytes.to_vec() });
            }
        }
        give(&records)?;
        at += run;
    }
    Ok(read)
}

/// Opens a file of keys, and reads its header and its keys from the record `first` on. Fewer bytes than a header mean that
/// there are fewer records.
pub(super) fn read_keys_from(path: &Path, first: usize) -> std::io::Result<(File, Vec<u8>)> {
    let mut file = safe_open::open_in_place(path)?;
    if first == 0 {
        let bytes = safe_open::read_open(file.try_clone()?, MAX_KEYS)?;
        return Ok((file, bytes));
    }
    let start = (HEADER + first * KEY_RECORD) as u64;
    if file.metadata()?.len() < start {
        return Ok((file, Vec::new()));
    }
    let mut bytes = vec![0; HEADER];
    file.read_exact(&mut bytes)?;
    file.seek(SeekFrom::Start(start))?;
    (&file).take(MAX_KEYS).read_to_end(&mut bytes)?;
    Ok((file, bytes))
}
