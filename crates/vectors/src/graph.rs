//! The graph over older vectors: its file, and the description by which it is trusted.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::remove_if_there;
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open::{FileIdentity, file_identity};
use sidenote_base::{parallel, platform, safe_open};
use usearch::ffi::{IndexOptions, MetricKind, ScalarKind};

use super::coarse::{self, coarse, signed};
use super::cosine::compare_by_cosine;
use super::graph_error;

/// The maximum size of the file that describes the graph, in bytes: enough for a centre of 8,192 dimensions.
const MAX_GRAPH_INFO: u64 = 262_144;
/// The form of the vectors of a graph. A graph with another one is not used.
const GRAPH_FORM: &str = "coarse-3";
/// The form where there is no graph.
const NO_GRAPH: &str = "none";
/// The number of vectors of which the mean is taken as the centre of coarse ones.
const SAMPLE: usize = 4096;

/// What is known of the first records of a log: they need not be read when the log is opened, and there may be a graph over
/// them.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub(super) struct GraphInfo {
    /// The number of these records.
    pub(super) records: usize,
    pub(super) dimensions: usize,
    /// The form of the vectors of the graph: [`GRAPH_FORM`], [`NO_GRAPH`], or that of another version.
    #[serde(default)]
    pub(super) form: String,
    /// The BLAKE3 hash of the graph file in hex.
    #[serde(default)]
    pub(super) hash: String,
    /// The identity of the graph file, which distinguishes it from a copy and from a file of somebody else. This
    /// matters because the reader of the graph trusts every byte.
    #[serde(default)]
    pub(super) file: Option<FileIdentity>,
    /// The centre of its coarse vectors.
    #[serde(default)]
    pub(super) centre: Vec<f32>,
}

impl GraphInfo {
    /// Describes the first records of a log without a graph.
    pub(super) fn without_graph(dimensions: usize, records: usize) -> Self {
        let form = NO_GRAPH.to_owned();
        Self { records, dimensions, form, hash: String::new(), file: None, centre: Vec::new() }
    }

    /// Returns whether there is a graph over the records, of this version of the program.
    pub(super) fn has_graph(&self) -> bool {
        self.form == GRAPH_FORM
    }

    /// Returns whether another version of the program wrote a graph, of which only the number of records can be used.
    pub(super) fn is_of_other_version(&self) -> bool {
        !self.has_graph() && self.form != NO_GRAPH
    }
}

/// Returns the mean of some of the first `records` vectors of a log, each scaled to length 1. `read` returns one of them.
///
/// # Errors
/// Those of `read`.
fn centre_of(
    (dimensions, records): (usize, usize),
    read: &mut dyn FnMut(usize) -> Result<Vec<i8>>,
) -> Result<Vec<f32>> {
    let mut sum = vec![0.0; dimensions];
    let step = records.div_ceil(SAMPLE).max(1);
    for at in (0..records).step_by(step) {
        let vector = read(at)?;
        let shrink = 1.0 / coarse::length(&vector).max(f32::MIN_POSITIVE);
        sum.iter_mut().zip(&vector).for_each(|(sum, &x)| *sum += f32::from(x) * shrink);
    }
    let count = records.div_ceil(step).max(1) as f32;
    Ok(sum.into_iter().map(|sum| sum / count).collect())
}

pub(super) fn graph_path(folder: &Path) -> PathBuf {
    folder.join("graph")
}

pub(super) fn graph_info_path(folder: &Path) -> PathBuf {
    folder.join("graph.json")
}

fn options(dimensions: usize) -> IndexOptions {
    IndexOptions {
        dimensions: coarse::size(dimensions),
        metric: MetricKind::Cos,
        quantization: ScalarKind::I8,
        connectivity: 8,
        expansion_add: 128,
        expansion_search: 96,
        multi: false,
    }
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid(format!("the index path {} is not UTF-8", path.display())))
}

/// Reads a saved graph into memory, so that it can be extended.
///
/// # Errors
/// `Io` if the file cannot be read; `Corrupt` if it is not a graph.
fn load_graph(graph: &mut usearch::Index, dimensions: usize, path: &Path) -> Result<()> {
    if platform::LIBRARIES_OPEN_ANY_PATH {
        graph.load(path_text(path)?).map_err(graph_error("load"))?;
    } else {
        let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
        graph.load_from_buffer(&bytes).map_err(graph_error("load"))?;
    }
    compare_by_cosine(graph, dimensions)
}

/// Maps a saved graph into memory, or reads it where usearch cannot open every path.
///
/// # Errors
/// The errors of [`load_graph`].
fn map_graph(graph: &mut usearch::Index, dimensions: usize, path: &Path) -> Result<()> {
    if !platform::LIBRARIES_OPEN_ANY_PATH {
        return load_graph(graph, dimensions, path);
    }
    graph.view(path_text(path)?).map_err(graph_error("open"))?;
    compare_by_cosine(graph, dimensions)
}

/// Writes a graph to a file.
///
/// # Errors
/// `Io` if the file cannot be written; `Corrupt` if usearch fails.
fn save_graph(graph: &usearch::Index, path: &Path) -> Result<()> {
    if platform::LIBRARIES_OPEN_ANY_PATH {
        return graph.save(path_text(path)?).map_err(graph_error("save"));
    }
    let mut bytes = vec![0; graph.serialized_length()];
    graph.save_to_buffer(&mut bytes).map_err(graph_error("save"))?;
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
    std::fs::write(path, &bytes).map_err(|error| Error::io("write", path, error))
}

/// Extends the graph, or builds one over this number of records, and replaces the earlier one. The description of the
/// earlier one is removed first: a graph without its description is not used, so that a crash leaves a correct, slower
/// state. `read` returns a vector of the log. Returns the description of the graph, or `None` if `stop` returned true
/// between two vectors.
///
/// # Errors
/// `Io` if the files cannot be read or written; `Corrupt` if usearch fails; the errors of `read`.
pub(super) fn replace_graph(
    folder: &Path,
    (dimensions, records): (usize, usize),
    earlier: Option<GraphInfo>,
    read: &mut dyn FnMut(usize) -> Result<Vec<i8>>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<GraphInfo>> {
    let mut graph = usearch::Index::new(&options(dimensions)).map_err(graph_error("make"))?;
    let path = graph_path(folder);
    let (covered, centre) = match earlier {
        Some(info) => {
            load_graph(&mut graph, dimensions, &path)?;
            (info.records, info.centre)
        }
        None => {
            compare_by_cosine(&mut graph, dimensions)?;
            (0, centre_of((dimensions, records), read)?)
        }
    };
    graph.reserve_capacity_and_threads(records, 64).map_err(graph_error("grow"))?;
    for at in covered..records {
        if stop() {
            return Ok(None);
        }
        graph.add(at as u64, &signed(&coarse(&read(at)?, &centre))).map_err(graph_error("extend"))?;
    }
    let fresh = folder.join("graph.new");
    remove_if_there(&fresh)?;
    save_graph(&graph, &fresh)?;
    let hash = safe_open::hash_in_place(&fresh).map_err(|error| safe_open::failed("read", &fresh, error))?;
    remove_if_there(&graph_info_path(folder))?;
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
    std::fs::rename(&fresh, &path).map_err(|error| Error::io("replace", &path, error))?;
    // Renaming changes the change time of the file.
    let (form, hash, file) = (GRAPH_FORM.to_owned(), hash.to_hex().to_string(), file_identity(&path));
    Ok(Some(GraphInfo { records, dimensions, form, hash, file, centre }))
}

/// Returns the description of the first records of a log with at most this number of records, or `None` if there is none.
pub(super) fn known_of_log(folder: &Path, dimensions: usize, records: usize) -> Option<GraphInfo> {
    trusted_graph_info(folder).filter(|info| info.dimensions == dimensions && info.records <= records)
}

/// Returns whether the saved graph is still one over the first `covered` records.
pub(super) fn is_over(folder: &Path, dimensions: usize, covered: usize) -> bool {
    known_of_log(folder, dimensions, covered).is_some_and(|info| info.has_graph() && info.records == covered)
}

/// Opens the saved graph over the first `covered` records, if it is still that one. Damage is detected by its hash when
/// the index is verified.
pub(super) fn open_graph(folder: &Path, dimensions: usize, covered: usize) -> Option<usearch::Index> {
    if !is_over(folder, dimensions, covered) {
        return None;
    }
    let mut graph = usearch::Index::new(&options(dimensions)).ok()?;
    map_graph(&mut graph, dimensions, &graph_path(folder)).ok()?;
    (graph.size() == covered).then_some(graph)
}

/// The number of threads that search a graph.
static SEARCHING: Mutex<usize> = Mutex::new(0);
/// A thread has searched.
static SEARCHED: Condvar = Condvar::new();

/// The permit of a thread to search a graph, until it is dropped. A graph that was opened has as many search contexts
/// as there are cores, and a search without one fails. With more threads than cores, no search would end earlier.
pub(super) struct SearchPermit;

impl SearchPermit {
    /// Waits until fewer threads search than there are cores.
    pub(super) fn wait() -> Self {
        let searching = SEARCHING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |searching: &mut usize| *searching >= parallel::core_count();
        let waited = SEARCHED.wait_while(searching, is_full);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for SearchPermit {
    fn drop(&mut self) {
        *SEARCHING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        SEARCHED.notify_one();
    }
}

pub(super) fn read_graph_info(folder: &Path) -> Option<GraphInfo> {
    let text = safe_open::read_in_place(&graph_info_path(folder), MAX_GRAPH_INFO).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Reads the description, if there is no graph of this version of the program, or one that was written at this place.
pub(super) fn trusted_graph_info(folder: &Path) -> Option<GraphInfo> {
    read_graph_info(folder).filter(|info| {
        let is_of_file = || info.file.is_some() && info.file == file_identity(&graph_path(folder));
        !info.has_graph() || info.centre.len() == info.dimensions && is_of_file()
    })
}
