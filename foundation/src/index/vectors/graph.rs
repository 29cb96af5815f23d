//! The graph over older vectors: its file, and the description by which it is trusted.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use usearch::ffi::{IndexOptions, MetricKind, ScalarKind};

use super::cosine::compare_by_cosine;
use super::{coarse, graph_error};
use crate::error::{Error, Result};
use crate::safe_open::{self, FileIdentity, file_identity};
use crate::{parallel, platform};

/// The maximum size of the file that describes the graph, in bytes.
const MAX_GRAPH_INFO: u64 = 65_536;
/// The form of the vectors of a graph. A graph with another one is not used.
pub(super) const GRAPH_FORM: &str = "coarse-2";

/// The description of a saved graph.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct GraphInfo {
    /// The number of log records that the graph covers, from the first.
    pub(super) records: usize,
    pub(super) dimensions: usize,
    /// The form of its vectors, [`GRAPH_FORM`].
    #[serde(default)]
    pub(super) form: String,
    /// The BLAKE3 hash of the graph file in hex.
    pub(super) hash: String,
    /// The identity of the graph file, which tells it from a copy and from a file of somebody else. This matters because the
    /// reader of the graph trusts every byte.
    #[serde(default)]
    pub(super) file: Option<FileIdentity>,
}

pub(super) fn graph_path(folder: &Path) -> PathBuf {
    folder.join("graph")
}

pub(super) fn graph_info_path(folder: &Path) -> PathBuf {
    folder.join("graph.json")
}

pub(super) fn options(dimensions: usize) -> IndexOptions {
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

pub(super) fn path_text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid(format!("the index path {} is not UTF-8", path.display())))
}

/// Reads a saved graph into memory, so that it can be extended.
///
/// # Errors
/// `Io` if the file cannot be read; `Corrupt` if it is not a graph.
pub(super) fn load_graph(graph: &mut usearch::Index, dimensions: usize, path: &Path) -> Result<()> {
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
pub(super) fn map_graph(graph: &mut usearch::Index, dimensions: usize, path: &Path) -> Result<()> {
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
pub(super) fn save_graph(graph: &usearch::Index, path: &Path) -> Result<()> {
    if platform::LIBRARIES_OPEN_ANY_PATH {
        return graph.save(path_text(path)?).map_err(graph_error("save"));
    }
    let mut bytes = vec![0; graph.serialized_length()];
    graph.save_to_buffer(&mut bytes).map_err(graph_error("save"))?;
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
    std::fs::write(path, &bytes).map_err(|error| Error::io("write", path, error))
}

/// Returns how many records of a log the saved graph covers: 0 if its description does not match the log of this many
/// `records`.
pub(super) fn covered_by_graph(folder: &Path, dimensions: usize, records: usize) -> usize {
    let info = trusted_graph_info(folder);
    info.filter(|info| info.dimensions == dimensions && info.records <= records)
        .map_or(0, |info| info.records)
}

/// Opens the saved graph over the first `covered` records, if it is still that one. Damage is detected by its hash when
/// the index is verified.
pub(super) fn open_graph(folder: &Path, dimensions: usize, covered: usize) -> Option<usearch::Index> {
    if covered_by_graph(folder, dimensions, covered) != covered {
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

/// The turn of a thread to search a graph, until it is dropped. A graph that was opened has as many search contexts as there are
/// cores, and a search without one fails. With more threads than cores no search would end earlier.
pub(super) struct SearchTurn;

impl SearchTurn {
    /// Waits until fewer threads search than there are cores.
    pub(super) fn wait() -> Self {
        let searching = SEARCHING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |searching: &mut usize| *searching >= parallel::core_count();
        let waited = SEARCHED.wait_while(searching, is_full);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for SearchTurn {
    fn drop(&mut self) {
        *SEARCHING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        SEARCHED.notify_one();
    }
}

pub(super) fn read_graph_info(folder: &Path) -> Option<GraphInfo> {
    let text = safe_open::read_in_place(&graph_info_path(folder), MAX_GRAPH_INFO).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Reads the description of a graph that this version of the program wrote at this place.
pub(super) fn trusted_graph_info(folder: &Path) -> Option<GraphInfo> {
    read_graph_info(folder).filter(|info| {
        info.form == GRAPH_FORM && info.file.is_some() && info.file == file_identity(&graph_path(folder))
    })
}
