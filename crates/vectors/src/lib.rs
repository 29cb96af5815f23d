//! The vectors of passages: an append-only log keyed by passage, and an HNSW graph over a large one. It is the only
//! user of usearch, and knows neither models nor notes.
//!
//! A vector belongs to a text, not to a note, so it is found again after a rename, a rebuild or a checkout. Vectors are
//! compared one by one while there are few enough, which certainly finds the nearest.

#[cfg(test)]
mod tests;

mod coarse;
pub mod cosine;
mod graph;
mod graph_scan;
mod key_table;
mod lazy_graph;
mod log_keys;
mod nearest_records;
mod records;
mod similarity;
mod vector_file;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cosine::Query;
use graph::{
    GraphInfo, graph_info_path, graph_path, known_of_log, read_graph_info, replace_graph, trusted_graph_info,
};
use lazy_graph::LazyGraph;
use log_keys::LogKeys;
use nearest_records::Passes;
use records::read_keys_from;
pub use records::{VectorRecord, read_records};
use sidenote_base::atomic_file::{AtomicFile, remove_if_there, replace_own};
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use similarity::SimilarityScale;
use vector_file::VectorFile;

/// The most vectors that are compared one by one. A graph of coarse vectors misses some: among look-alikes, which its vectors
/// cannot tell apart, and among outliers, to which few connections lead. So it is built where comparing takes too long.
/// docs/dev/indexing.md has the figures.
const MAX_COMPARED: usize = 262_144;
/// The most vectors that are read and checked whenever the log is opened, and held in memory.
const MAX_TAIL: usize = 8192;
/// The candidates that a graph is asked for, for each neighbour that is wanted.
const CANDIDATES: usize = 2;
/// The minimum number of candidates that a graph is asked for. With it, the graph finds .999 of the nearest ten and .97 of the
/// nearest hundred among 200,000 passages.
const MIN_CANDIDATES: usize = 300;
const KEY_RECORD: usize = 16;
/// The size of the scale before the components of a record.
const SCALE: usize = 4;
/// The most records of a log that are read at once.
const READ_AT_ONCE: usize = 64;
/// The maximum size of the file of keys in bytes, enough for a hundred million passages.
const MAX_KEYS: u64 = 1_600_000_016;
const MAGIC: &[u8; 8] = b"SNVEC001";
const HEADER: usize = 16;

/// Returns the key of a passage: the first eight bytes of the BLAKE3 hash of its embedded text.
pub fn passage_key(embedded_text: &str) -> i64 {
    let hash = blake3::hash(embedded_text.as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// A vector quantised to bytes. A component is its byte multiplied by the scale.
#[derive(Debug, Clone, PartialEq)]
struct Quantised {
    scale: f32,
    bytes: Vec<i8>,
}

impl Quantised {
    fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0f32, |most, x| most.max(x.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        let bytes = vector.iter().map(|x| (x / scale).round().clamp(-127.0, 127.0) as i8).collect();
        Self { scale, bytes }
    }
}

/// One state of the vectors of one model.
pub struct Vectors {
    dimensions: usize,
    /// The mean vector of passages about everything, if it is known for the model.
    mean_passage: Option<&'static [f32]>,
    keys: Arc<LogKeys>,
    damaged: usize,
    graph: LazyGraph,
    /// The number of records that were not read when the log was opened.
    covered: usize,
    /// The number of records in the description of the graph, even if it could not be used.
    graph_records: usize,
    /// The vectors of the records after these, concatenated.
    tail: Vec<i8>,
    log: Option<VectorFile>,
}

impl std::fmt::Debug for Vectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vectors")
            .field("records", &self.keys.len())
            .field("covered", &self.covered)
            .finish_non_exhaustive()
    }
}

/// A passage and its similarity to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The key of the passage.
    pub key: i64,
    /// The similarity: 0 is that of an unrelated passage, and 1 that of the same text.
    pub similarity: f32,
}

/// Returns the number of bytes of a vector with this number of dimensions in a log.
pub fn record_size(dimensions: usize) -> usize {
    4 + dimensions
}

fn checksum(key: i64, record: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&key.to_le_bytes()).update(record);
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn header(dimensions: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..].copy_from_slice(&(dimensions as u64).to_le_bytes());
    bytes
}

fn keys_path(folder: &Path) -> PathBuf {
    folder.join("keys")
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("vectors")
}

/// The keys of the log with their checksums, and the open log file. Incomplete records at the end are left out.
struct Log {
    keys: Vec<i64>,
    /// The records of the file of keys: each a key and the checksum of its vector.
    key_records: Vec<u8>,
    keys_file: Option<File>,
    file: Option<File>,
}

impl Log {
    /// Returns the checksum of a record.
    fn sum(&self, at: usize) -> Option<u64> {
        let record = self.key_records.get(HEADER + at * KEY_RECORD..)?;
        record.get(8..KEY_RECORD)?.first_chunk().map(|sum| u64::from_le_bytes(*sum))
    }

    /// Returns whether the bytes of a record are those that were written.
    fn is_sound(&self, at: usize, record: &[u8]) -> bool {
        self.keys.get(at).is_some_and(|key| Some(checksum(*key, record)) == self.sum(at))
    }
}

fn read_log(folder: &Path, dimensions: usize) -> Result<Log> {
    read_log_from(folder, dimensions, 0)
}

/// Returns the size of a log of this many records in bytes.
pub fn log_size(records: usize, dimensions: usize) -> u64 {
    (2 * HEADER + records * (KEY_RECORD + record_size(dimensions))) as u64
}

/// Reads the keys of a log from the record `first` on. A log with fewer records is empty.
fn read_log_from(folder: &Path, dimensions: usize, first: usize) -> Result<Log> {
    let empty = Log { keys: Vec::new(), key_records: Vec::new(), keys_file: None, file: None };
    let path = keys_path(folder);
    let is_regular =
        |path: &Path| platform::entry_metadata(path).is_ok_and(|found| safe_open::is_regular(&found));
    if !is_regular(&path) || !is_regular(&log_path(folder)) {
        return Ok(empty);
    }
    let (keys_file, bytes) = match read_keys_from(&path, first) {
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(empty),
        Err(error) => return Err(safe_open::failed("read", &path, error)),
    };
    let path = log_path(folder);
    let mut file = match safe_open::open_in_place(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(empty),
        Err(error) => return Err(safe_open::failed("open", &path, error)),
    };
    let mut head = [0; HEADER];
    if bytes.get(..HEADER) != Some(header(dimensions).as_slice())
        || file.read_exact(&mut head).is_err()
        || head != header(dimensions)
    {
        return Ok(empty);
    }
    let length = file.metadata().map_err(|error| Error::io("read", &path, error))?.len() as usize;
    let records = length.saturating_sub(HEADER) / record_size(dimensions);
    if records < first || bytes.len() < HEADER {
        return Ok(empty);
    }
    let records = records - first;
    let key_of = |record: &[u8]| record.first_chunk().map_or(0, |key| i64::from_le_bytes(*key));
    let keys = bytes[HEADER..].chunks_exact(KEY_RECORD).take(records).map(key_of).collect();
    Ok(Log { keys, key_records: bytes, keys_file: Some(keys_file), file: Some(file) })
}

fn reading_failed(error: std::io::Error) -> Error {
    Error::io("read", "the vectors", error)
}

fn graph_error<E: std::error::Error + Send + Sync + 'static>(doing: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::corrupt(format!("cannot {doing} the vector graph")).with_source(error)
}

impl Vectors {
    /// Creates the state of a model without vectors.
    pub fn empty(dimensions: usize) -> Self {
        Self {
            dimensions,
            mean_passage: None,
            keys: Arc::default(),
            damaged: 0,
            graph: LazyGraph::default(),
            covered: 0,
            graph_records: 0,
            tail: Vec::new(),
            log: None,
        }
    }

    /// Measures similarities from those that an unrelated passage has.
    #[must_use]
    pub fn with_mean_passage(self, mean_passage: Option<&'static [f32]>) -> Self {
        Self { mean_passage, ..self }
    }

    /// Opens the vectors in `folder`. Damaged records are skipped and counted; a graph that does not belong to the
    /// log is ignored.
    ///
    /// # Errors
    /// `Io` if the files cannot be read.
    pub fn open(folder: &Path, dimensions: usize) -> Result<Self> {
        let mut known = known_of_log(folder, dimensions, usize::MAX);
        let mut log = read_log_from(folder, dimensions, known.as_ref().map_or(0, |info| info.records))?;
        if known.is_some() && log.file.is_none() {
            // More records are known than there are.
            known = None;
            log = read_log(folder, dimensions)?;
        }
        let covered = known.as_ref().map_or(0, |info| info.records);
        let (Some(file), Some(keys_file)) = (log.file.take(), log.keys_file.take()) else {
            return Ok(Self::empty(dimensions));
        };
        let size = record_size(dimensions);
        let mut records = vec![0u8; log.keys.len() * size];
        platform::read_exact_at(&file, &mut records, (HEADER + covered * size) as u64)
            .map_err(|error| Error::io("read", log_path(folder), error))?;
        let mut tail = Vec::with_capacity(log.keys.len() * dimensions);
        let (mut damaged, mut unsound) = (0, HashSet::new());
        for (index, record) in records.chunks_exact(size).enumerate() {
            if log.is_sound(index, record) {
                tail.extend(record[4..].iter().map(|&byte| byte as i8));
                if record[4..].iter().all(|&byte| byte == 0) {
                    unsound.insert(covered + index);
                }
            } else {
                // A zero vector is similar to no other, and its passage is embedded again.
                tail.resize(tail.len() + dimensions, 0);
                damaged += 1;
                unsound.insert(covered + index);
            }
        }
        Ok(Self {
            graph: known.map_or_else(LazyGraph::default, |info| LazyGraph::new(folder.to_owned(), info)),
            keys: Arc::new(LogKeys::of_file(keys_file, covered + log.keys.len(), unsound)),
            damaged,
            covered,
            graph_records: read_graph_info(folder).map_or(0, |info| info.records),
            tail,
            log: Some(VectorFile::new(file, dimensions, covered)),
            ..Self::empty(dimensions)
        })
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.keys.len() - self.damaged
    }

    /// Returns whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of records whose checksum does not match.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// Returns whether nothing was appended in `folder` since this state was read.
    pub fn is_current(&self, folder: &Path) -> bool {
        let length = std::fs::metadata(keys_path(folder)).map_or(0, |meta| meta.len() as usize);
        let graph_records = read_graph_info(folder).map_or(0, |info| info.records);
        length.saturating_sub(HEADER) / KEY_RECORD == self.keys.len() && graph_records == self.graph_records
    }

    /// Returns the newest record of a passage.
    fn record_of(&self, key: i64) -> Option<usize> {
        self.keys.record_of(key)
    }

    /// Prepares for one search in a thread of its own, so that it need not wait for all of it: reads the keys.
    pub fn prepare_search(&self) {
        if self.covered > 0 {
            let started =
                std::thread::Builder::new().name("sidenote-keys".to_owned()).spawn(self.keys_reader());
            if let Err(error) = started {
                tracing::debug!("the keys of vectors are read by the first search: {error}");
            }
        }
    }

    /// Prepares for many searches in a thread of its own, so that they need not wait for all of it: reads the keys, and opens
    /// the graph.
    pub fn prepare_searches(&self) {
        self.graph.open_soon(self.keys_reader());
    }

    /// Returns a function that reads the keys.
    fn keys_reader(&self) -> impl FnOnce() + Send + 'static {
        let keys = Arc::clone(&self.keys);
        move || {
            keys.table();
        }
    }

    /// Prepares for searches as an earlier state was prepared.
    pub fn prepare_as(&self, earlier: &Self) {
        self.graph.count_on(&earlier.graph);
        if let (Some(log), Some(earlier)) = (&self.log, &earlier.log) {
            log.hold_as(earlier);
        }
        if earlier.graph.is_wanted() {
            self.prepare_searches();
        }
    }

    /// Returns whether a passage has a vector.
    pub fn contains(&self, key: i64) -> bool {
        self.record_of(key).is_some()
    }

    fn tail_at(&self, record: usize) -> Option<&[i8]> {
        let start = record.checked_sub(self.covered)? * self.dimensions;
        self.tail.get(start..start + self.dimensions)
    }

    /// Reads the vector of a record into `vector`, with `buffer` for what is read of the log.
    fn read_at(&self, record: usize, buffer: &mut Vec<u8>, vector: &mut Vec<i8>) -> Result<()> {
        vector.clear();
        if let Some(held) = self.tail_at(record) {
            vector.extend_from_slice(held);
            return Ok(());
        }
        let stored = self.read_records(record..record + 1, buffer)?;
        vector.extend(stored.iter().skip(SCALE).map(|&byte| byte.cast_signed()));
        Ok(())
    }

    /// Returns the mean of the vectors of these passages, or `None` if none of them has one.
    ///
    /// # Errors
    /// `Io` if the log cannot be read.
    pub fn mean(&self, keys: &[i64]) -> Result<Option<Vec<f32>>> {
        let mut sum = vec![0.0_f32; self.dimensions];
        let mut count = 0;
        let (mut bytes, mut vector) = (Vec::new(), Vec::new());
        for record in keys.iter().filter_map(|&key| self.record_of(key)) {
            self.read_at(record, &mut bytes, &mut vector)?;
            // Each record has its own scale, so its vector is normalised.
            let norm = vector.iter().map(|&byte| f32::from(byte) * f32::from(byte)).sum::<f32>().sqrt();
            if norm > 0.0 {
                sum.iter_mut().zip(&vector).for_each(|(sum, &byte)| *sum += f32::from(byte) / norm);
                count += 1;
            }
        }
        Ok((count > 0).then(|| sum.iter().map(|sum| sum / count as f32).collect()))
    }

    /// Returns the mean of the vectors of passages at the length 1, so that its similarities are those of a passage.
    ///
    /// # Errors
    /// `Io` if the log cannot be read.
    pub fn mean_direction(&self, keys: &[i64]) -> Result<Option<Vec<f32>>> {
        Ok(self.mean(keys)?.map(similarity::direction))
    }

    /// Returns a state in memory with the vectors of these passages only and without a graph.
    ///
    /// # Errors
    /// `Io` if the log cannot be read.
    pub fn restricted_to(&self, keys: &HashSet<i64>) -> Result<Self> {
        let (mut some, mut some_keys) =
            (Self::empty(self.dimensions).with_mean_passage(self.mean_passage), Vec::new());
        let (mut bytes, mut vector) = (Vec::new(), Vec::new());
        for &key in keys {
            let Some(record) = self.record_of(key) else { continue };
            self.read_at(record, &mut bytes, &mut vector)?;
            some_keys.push(key);
            some.tail.extend_from_slice(&vector);
        }
        some.keys = Arc::new(LogKeys::of(some_keys));
        Ok(some)
    }

    /// Returns the similarity of two vectors, of which the second is that of a passage or the mean of several: 0 is
    /// that of unrelated texts, and 1 that of the same text. This scale is the same for all models.
    pub fn similarity(&self, vector: &[f32], other: &[f32]) -> f32 {
        self.scale(vector).similarity(vector, other)
    }

    fn scale(&self, vector: &[f32]) -> SimilarityScale {
        SimilarityScale::of(vector, self.mean_passage)
    }

    /// Returns the similarities of a query and these passages, as far as they have a vector.
    pub fn compare(&self, query: &[f32], keys: &[i64]) -> Result<Vec<Neighbour>> {
        self.compare_quantised(&Quantised::of(query), self.scale(query), keys)
    }

    fn compare_quantised(
        &self,
        query: &Quantised,
        scale: SimilarityScale,
        keys: &[i64],
    ) -> Result<Vec<Neighbour>> {
        let placed = keys.iter().enumerate();
        let mut records: Vec<(usize, usize)> =
            placed.filter_map(|(at, key)| Some((self.record_of(*key)?, at))).collect();
        records.sort_unstable();
        let mut near = Vec::with_capacity(records.len());
        let mut buffer = Vec::new();
        let query = Query::of(&query.bytes);
        // Most passages of a note are next to each other in the log, and are read at once.
        for run in records.chunk_by(|one, next| next.0 <= one.0 + 1).flat_map(|run| run.chunks(READ_AT_ONCE))
        {
            let first = run.first().map_or(0, |(record, _)| *record);
            let last = run.last().map_or(0, |(record, _)| *record);
            let bytes = self.read_records(first..(last + 1).min(self.covered), &mut buffer)?;
            for &(record, at) in run {
                let cosine = match self.tail_at(record) {
                    Some(held) => query.cosine(held),
                    None => {
                        let stored = bytes.chunks_exact(record_size(self.dimensions)).nth(record - first);
                        let stored = stored.and_then(|stored| stored.get(SCALE..)).unwrap_or_default();
                        query.cosine_of_stored(stored)
                    }
                };
                let similarity = scale.of_cosine(cosine);
                near.extend(keys.get(at).map(|&key| (at, Neighbour { key, similarity })));
            }
        }
        near.sort_unstable_by_key(|(at, _)| *at);
        Ok(near.into_iter().map(|(_, near)| near).collect())
    }

    /// Returns records of the log, with `buffer` for what is read of it.
    fn read_records<'t>(&'t self, records: Range<usize>, buffer: &'t mut Vec<u8>) -> Result<&'t [u8]> {
        let read = |log: &'t VectorFile| log.read(records, buffer);
        self.log.as_ref().map_or(Ok([].as_slice()), read).map_err(reading_failed)
    }

    /// Finds the passages nearest to a query, best first. If `allowed` is given, only those are searched; a few of
    /// them are compared one by one.
    ///
    /// # Errors
    /// `Invalid` if the query has another number of dimensions; `Io` if the log cannot be read; `Corrupt` if the
    /// graph fails.
    pub fn search(
        &self,
        query: &[f32],
        count: usize,
        allowed: Option<&HashSet<i64>>,
    ) -> Result<Vec<Neighbour>> {
        if query.len() != self.dimensions {
            return Err(Error::invalid(format!(
                "a query vector of {} dimensions cannot be compared with vectors of {}",
                query.len(),
                self.dimensions
            )));
        }
        let count = count.min(self.keys.len());
        let (quantised, scale) = (Quantised::of(query), self.scale(query));
        let compared = Query::of(&quantised.bytes);
        let passes = |key: i64| allowed.is_none_or(|keys| keys.contains(&key));
        let mut near: Vec<Neighbour> = Vec::new();
        for (index, vector) in self.tail.chunks_exact(self.dimensions).enumerate() {
            if let Some(&key) = self.keys.all().get(self.covered + index).filter(|&&key| passes(key)) {
                near.push(Neighbour { key, similarity: scale.of_cosine(compared.cosine(vector)) });
            }
        }
        match allowed {
            // A search in all vectors with a selective filter is slow; comparing the few is exact and fast.
            Some(keys) if keys.len() * 20 < self.covered => {
                let covered: Vec<i64> = keys
                    .iter()
                    .filter(|&&key| self.record_of(key).is_some_and(|at| at < self.covered))
                    .copied()
                    .collect();
                near.extend(self.compare_quantised(&quantised, scale, &covered)?);
            }
            _ => near.extend(self.search_covered(&quantised.bytes, scale, count, allowed)?),
        }
        near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
        near.dedup_by_key(|passage| passage.key);
        near.truncate(count);
        Ok(near)
    }

    /// Finds about `count` passages nearest to a query among those that are not in memory.
    fn search_covered(
        &self,
        query: &[i8],
        scale: SimilarityScale,
        count: usize,
        allowed: Option<&HashSet<i64>>,
    ) -> Result<Vec<Neighbour>> {
        let Some(log) = self.log.as_ref().filter(|_| self.covered > 0) else { return Ok(Vec::new()) };
        let all = self.keys.all();
        let passes =
            |record: usize| all.get(record).is_some_and(|key| allowed.is_none_or(|keys| keys.contains(key)));
        let passes: Option<Passes<'_>> = allowed.is_some().then_some(&passes);
        let compared = Query::of(query);
        let candidates = (CANDIDATES * count).max(MIN_CANDIDATES).min(self.covered);
        let neighbour = |record: usize, cosine: f32| {
            Some(Neighbour { key: *all.get(record)?, similarity: scale.of_cosine(cosine) })
        };
        let Some(found) = self.graph.nearest(query, candidates, passes)? else {
            let cosine = |record: &[u8]| compared.cosine_of_stored(record.get(SCALE..).unwrap_or_default());
            let records = log.scan().map_err(reading_failed)?;
            let nearest = records.nearest(count.min(self.covered), cosine, passes).map_err(reading_failed)?;
            return Ok(nearest.into_iter().filter_map(|near| neighbour(near.record, near.score)).collect());
        };
        let (mut bytes, mut vector) = (Vec::new(), Vec::new());
        let mut near = Vec::with_capacity(found.len());
        for record in found {
            self.read_at(record, &mut bytes, &mut vector)?;
            near.extend(neighbour(record, compared.cosine(&vector)));
        }
        Ok(near)
    }
}

/// Reads the whole log in `folder`, and returns how many of its records are sound and how many are not.
///
/// # Errors
/// `Io` if the files cannot be read.
pub fn verify(folder: &Path, dimensions: usize) -> Result<(usize, usize)> {
    let mut log = read_log(folder, dimensions)?;
    let Some(file) = log.file.take() else { return Ok((0, 0)) };
    let mut record = vec![0u8; record_size(dimensions)];
    let mut damaged = 0;
    let mut reader = std::io::BufReader::with_capacity(1 << 20, file);
    for at in 0..log.keys.len() {
        reader.read_exact(&mut record).map_err(|error| Error::io("read", log_path(folder), error))?;
        damaged += usize::from(!log.is_sound(at, &record));
    }
    Ok((log.keys.len() - damaged, damaged))
}

/// Appends vectors to a log. Only one process at a time may have one for a folder: the writer of the index, or the
/// process that holds the lock of the shared vectors.
#[derive(Debug)]
pub struct VectorWriter {
    folder: PathBuf,
    dimensions: usize,
    known: HashSet<i64>,
    records: usize,
    /// The permissions of new files, if not those of the umask.
    mode: Option<u32>,
}

impl VectorWriter {
    /// Opens the log for appending, and drops an incomplete record at its end. If `verify` is set, it also drops
    /// every record whose checksum does not match, and a graph whose bytes changed. Returns the writer and the
    /// number of dropped records.
    ///
    /// # Errors
    /// `Io` if the files cannot be written.
    pub fn open(folder: &Path, dimensions: usize, verify: bool) -> Result<(Self, usize)> {
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own folder")]
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        let records = 0;
        let mut writer =
            Self { folder: folder.to_owned(), dimensions, known: HashSet::new(), records, mode: None };
        let dropped = writer.load(verify)?;
        Ok((writer, dropped))
    }

    /// Opens the log in an existing folder for appending, and drops an incomplete record at its end. Only the user can
    /// read a log that is created.
    ///
    /// # Errors
    /// `Io` if the files cannot be written.
    pub fn open_private(folder: &Path, dimensions: usize) -> Result<Self> {
        let (known, mode) = (HashSet::new(), Some(0o600));
        let mut writer = Self { folder: folder.to_owned(), dimensions, known, records: 0, mode };
        writer.load(false)?;
        Ok(writer)
    }

    /// Reads the log as [`VectorWriter::open`] says, and returns the number of dropped records.
    fn load(&mut self, verify: bool) -> Result<usize> {
        let (folder, dimensions) = (self.folder.clone(), self.dimensions);
        let folder = folder.as_path();
        let writer = self;
        let mut log = read_log(folder, dimensions)?;
        let mut dropped = 0;
        let fresh = log.file.is_none();
        if fresh {
            let length = |path: PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
            dropped = usize::from(length(keys_path(folder)) > 0 || length(log_path(folder)) > 0);
            writer.drop_graph()?;
            writer.rewrite(&[], &[])?;
        } else if verify {
            if let Some(file) = log.file.take() {
                dropped = writer.drop_damaged(&log, &file)?;
            }
            if !fresh && writer.graph_is_damaged() {
                writer.drop_graph()?;
                dropped += 1;
            }
            log = read_log(folder, dimensions)?;
        }
        writer.records = log.keys.len();
        writer.known = log.keys.into_iter().collect();
        writer.truncate(writer.records)?;
        Ok(dropped)
    }

    /// Reads what other processes appended since. Returns `false` if the log is not the one that was opened, because it
    /// was removed, or replaced by a shorter one.
    ///
    /// # Errors
    /// `Io` if the files cannot be read.
    pub fn refresh(&mut self) -> Result<bool> {
        let log = read_log_from(&self.folder, self.dimensions, self.records)?;
        if log.file.is_none() {
            return Ok(false);
        }
        self.records += log.keys.len();
        self.known.extend(log.keys);
        Ok(true)
    }

    /// Lets the vectors of these passages be appended once more, because those in the log are damaged.
    pub fn forget(&mut self, keys: &HashSet<i64>) {
        self.known.retain(|key| !keys.contains(key));
    }

    /// Returns the size of the log in bytes.
    pub fn size(&self) -> u64 {
        log_size(self.records, self.dimensions)
    }

    fn drop_damaged(&self, log: &Log, file: &File) -> Result<usize> {
        let size = record_size(self.dimensions);
        let mut keys = Vec::new();
        let mut records = Vec::new();
        let mut dropped = 0;
        let mut record = vec![0u8; size];
        for (at, &key) in log.keys.iter().enumerate() {
            platform::read_exact_at(file, &mut record, (HEADER + at * size) as u64)
                .map_err(|error| Error::io("read", log_path(&self.folder), error))?;
            if let Some(sum) = log.sum(at).filter(|sum| *sum == checksum(key, &record)) {
                keys.push((key, sum));
                records.extend_from_slice(&record);
            } else {
                dropped += 1;
            }
        }
        if dropped > 0 {
            // The graph refers to records by number, so it is dropped, too.
            self.drop_graph()?;
            self.rewrite(&keys, &records)?;
        }
        Ok(dropped)
    }

    fn graph_is_damaged(&self) -> bool {
        let path = graph_path(&self.folder);
        if !path.exists() && !graph_info_path(&self.folder).exists() {
            return false;
        }
        let is_hash =
            |known: &str| safe_open::hash_in_place(&path).is_ok_and(|hash| known == hash.to_hex().as_str());
        trusted_graph_info(&self.folder).is_none_or(|info| info.has_graph() && !is_hash(&info.hash))
    }

    fn drop_graph(&self) -> Result<()> {
        for path in [graph_info_path(&self.folder), graph_path(&self.folder)] {
            remove_if_there(&path)?;
        }
        Ok(())
    }

    fn rewrite(&self, keys: &[(i64, u64)], records: &[u8]) -> Result<()> {
        let mut key_bytes = header(self.dimensions).to_vec();
        for (key, sum) in keys {
            key_bytes.extend_from_slice(&key.to_le_bytes());
            key_bytes.extend_from_slice(&sum.to_le_bytes());
        }
        let mut log_bytes = header(self.dimensions).to_vec();
        log_bytes.extend_from_slice(records);
        self.replace(&keys_path(&self.folder), &header(self.dimensions))?;
        self.replace(&log_path(&self.folder), &log_bytes)?;
        self.replace(&keys_path(&self.folder), &key_bytes)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let file = AtomicFile::new(path).single_writer();
        let file = if let Some(mode) = self.mode { file.mode(mode) } else { file };
        file.write_bytes(bytes).map_err(|error| safe_open::failed("write", path, error))
    }

    /// Truncates both files to whole records, so that the next append is aligned.
    fn truncate(&self, records: usize) -> Result<()> {
        for (path, size) in
            [(log_path(&self.folder), record_size(self.dimensions)), (keys_path(&self.folder), KEY_RECORD)]
        {
            let length = (HEADER + records * size) as u64;
            let file = open_to_write(&path)?;
            let now = file.metadata().map_err(|error| Error::io("read", &path, error))?.len();
            if now != length {
                file.set_len(length).map_err(|error| Error::io("cut", &path, error))?;
            }
        }
        Ok(())
    }

    /// Returns whether a passage has a vector.
    pub fn contains(&self, key: i64) -> bool {
        self.known.contains(&key)
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Returns whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Quantises and appends vectors of passages; see [`VectorWriter::append_records`].
    ///
    /// # Errors
    /// Those of [`VectorWriter::append_records`].
    pub fn append(&mut self, vectors: &[(i64, Vec<f32>)]) -> Result<()> {
        let records: Vec<VectorRecord> =
            vectors.iter().map(|(key, vector)| VectorRecord::new(*key, vector)).collect();
        self.append_records(&records)
    }

    /// Appends vectors of passages, and skips those that exist. When this returns, the vectors survive a crash of
    /// the program.
    ///
    /// # Errors
    /// `Internal` if a vector has another number of dimensions; `Io` if the files cannot be written.
    pub fn append_records(&mut self, vectors: &[VectorRecord]) -> Result<()> {
        let mut keys = Vec::new();
        let mut records = Vec::new();
        let mut fresh = HashSet::new();
        for VectorRecord { key, sum, bytes } in vectors {
            if bytes.len() != record_size(self.dimensions) {
                return Err(Error::internal(format!(
                    "the model made a vector of {} dimensions instead of {}",
                    bytes.len().saturating_sub(4),
                    self.dimensions
                )));
            }
            if self.known.contains(key) || !fresh.insert(*key) {
                continue;
            }
            keys.extend_from_slice(&key.to_le_bytes());
            keys.extend_from_slice(&sum.to_le_bytes());
            records.extend_from_slice(bytes);
        }
        if keys.is_empty() {
            return Ok(());
        }
        let added = keys.len() / KEY_RECORD;
        // Offsets are computed from the number of records, so the next write overwrites one that failed half-way.
        for (path, bytes, size) in [
            (log_path(&self.folder), &records, record_size(self.dimensions)),
            (keys_path(&self.folder), &keys, KEY_RECORD),
        ] {
            platform::write_all_at(&open_to_write(&path)?, bytes, (HEADER + self.records * size) as u64)
                .map_err(|error| Error::io("write", &path, error))?;
        }
        self.records += added;
        self.known.extend(fresh);
        Ok(())
    }

    /// Returns whether enough vectors were appended for [`VectorWriter::build_graph`].
    pub fn graph_is_due(&self) -> bool {
        self.is_due(trusted_graph_info(&self.folder).as_ref(), MAX_COMPARED)
    }

    fn is_due(&self, known: Option<&GraphInfo>, most_compared: usize) -> bool {
        let covered = known.map_or(0, |info| info.records);
        let outside = self.records.saturating_sub(covered);
        match known {
            Some(info) if info.has_graph() => outside > MAX_TAIL.max(covered / 4),
            Some(info) if info.is_of_other_version() => true,
            _ => outside > MAX_TAIL || self.records > most_compared,
        }
    }

    /// Records that the vectors need not be read when the log is opened, if enough were appended; where there are many, also
    /// builds and saves a graph over them. Returns whether it did. `stop` is called between vectors.
    ///
    /// # Errors
    /// `Io` if the files cannot be read or written; `Corrupt` if usearch fails.
    pub fn build_graph(&self, stop: &dyn Fn() -> bool) -> Result<bool> {
        self.build_graph_beyond(MAX_COMPARED, stop)
    }

    /// Does the same as [`VectorWriter::build_graph`] with another limit of vectors that are compared one by one.
    ///
    /// # Errors
    /// Those of [`VectorWriter::build_graph`].
    pub fn build_graph_beyond(&self, most_compared: usize, stop: &dyn Fn() -> bool) -> Result<bool> {
        let known = trusted_graph_info(&self.folder).filter(|info| info.dimensions == self.dimensions);
        if !self.is_due(known.as_ref(), most_compared) {
            return Ok(false);
        }
        let earlier = known.filter(GraphInfo::has_graph);
        let info = if earlier.is_some() || self.records > most_compared {
            let Some(file) = read_log(&self.folder, self.dimensions)?.file else { return Ok(false) };
            let size = record_size(self.dimensions);
            let mut record = vec![0u8; size];
            let mut read = |at: usize| -> Result<Vec<i8>> {
                platform::read_exact_at(&file, &mut record, (HEADER + at * size) as u64)
                    .map_err(|error| Error::io("read", log_path(&self.folder), error))?;
                Ok(record[SCALE..].iter().map(|&byte| byte as i8).collect())
            };
            match replace_graph(&self.folder, (self.dimensions, self.records), earlier, &mut read, stop)? {
                Some(info) => info,
                None => return Ok(false),
            }
        } else {
            // An earlier version of the program may have left a graph.
            remove_if_there(&graph_path(&self.folder))?;
            GraphInfo::without_graph(self.dimensions, self.records)
        };
        let text = serde_json::to_string(&info)
            .map_err(|error| Error::internal("cannot write the graph's description").with_source(error))?;
        replace_own(&graph_info_path(&self.folder), text.as_bytes())?;
        Ok(true)
    }
}

fn open_to_write(path: &Path) -> Result<File> {
    safe_open::open_to_write(path).map_err(|error| safe_open::failed("open", path, error))
}
