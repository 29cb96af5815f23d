//! The saved graph of a state of vectors, which is opened when it is needed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use sidenote_base::error::Result;

use super::coarse::{coarse, signed};
use super::graph::{GraphInfo, SearchPermit, open_graph};
use super::nearest_records::Passes;
use super::{graph_error, graph_scan};

/// The searches that scan the file of a graph before one opens it. To open it takes longer than as many scans.
const SCANS: usize = 4;

/// A saved graph over the first records of a log. To open it takes much longer than a search in it, and searches by words do
/// not need it: a server opens it in a thread of its own, and a process that searches a few times does not open it.
#[derive(Default)]
pub(super) struct LazyGraph {
    folder: PathBuf,
    dimensions: usize,
    /// The number of records that it covers; 0 if there is no graph.
    covered: usize,
    /// The centre of its coarse vectors.
    centre: Vec<f32>,
    /// The number of searches that scanned its file.
    scans: AtomicUsize,
    opened: OnceLock<Option<usearch::Index>>,
    opening: Mutex<Opening>,
}

/// How far the opening of a graph is.
#[derive(Default)]
enum Opening {
    /// Nobody needs the graph yet.
    #[default]
    NotBegun,
    /// A thread opens it.
    Begun(JoinHandle<Option<usearch::Index>>),
    /// A search waits for it or has it.
    Awaited,
}

impl LazyGraph {
    /// Names the graph in `folder` that is described, or none.
    pub(super) fn new(folder: PathBuf, described: GraphInfo) -> Self {
        let covered = if described.has_graph() { described.records } else { 0 };
        Self {
            folder,
            dimensions: described.dimensions,
            covered,
            centre: described.centre,
            ..Self::default()
        }
    }

    /// Calls `first` and opens the graph, if there is one, in a thread of its own.
    pub(super) fn open_soon(&self, first: impl FnOnce() + Send + 'static) {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*opening, Opening::NotBegun) {
            return;
        }
        let (folder, dimensions, covered) = (self.folder.clone(), self.dimensions, self.covered);
        let open = move || {
            first();
            (covered > 0).then(|| open_graph(&folder, dimensions, covered)).flatten()
        };
        match std::thread::Builder::new().name("sidenote-graph".to_owned()).spawn(open) {
            Ok(thread) => *opening = Opening::Begun(thread),
            Err(error) => tracing::debug!("the vector graph is opened by a search: {error}"),
        }
    }

    /// Returns whether the graph was needed, or is expected to be.
    pub(super) fn is_wanted(&self) -> bool {
        !matches!(*self.opening.lock().unwrap_or_else(PoisonError::into_inner), Opening::NotBegun)
    }

    /// Goes on counting the searches of an earlier state of the vectors.
    pub(super) fn count_on(&self, earlier: &Self) {
        self.scans.store(earlier.scans.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns the graph; `None` if there is none, or if it cannot be opened.
    fn graph(&self) -> Option<&usearch::Index> {
        let open = || {
            let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
            let begun = std::mem::replace(&mut *opening, Opening::Awaited);
            drop(opening);
            let opened = match begun {
                // A panic of usearch is as any other failure.
                Opening::Begun(thread) => thread.join().unwrap_or_default(),
                _ => open_graph(&self.folder, self.dimensions, self.covered),
            };
            if opened.is_none() {
                // It was replaced, or it is damaged, which verifying the index finds.
                tracing::debug!("the vector graph cannot be opened, so vectors are compared one by one");
            }
            opened
        };
        self.opened.get_or_init(open).as_ref()
    }

    /// Returns about `count` records whose coarse vectors are nearest to that of a query, of those for which `passes` is true, if
    /// it is given. Returns `None` if there is no graph, or if it cannot be used.
    ///
    /// # Errors
    /// `Corrupt` if the graph fails.
    pub(super) fn nearest(
        &self,
        query: &[i8],
        count: usize,
        passes: Option<Passes<'_>>,
    ) -> Result<Option<Vec<usize>>> {
        if self.covered == 0 {
            return Ok(None);
        }
        let query = coarse(query, &self.centre);
        if !self.is_wanted() && self.scans.fetch_add(1, Ordering::Relaxed) < SCANS {
            let file = (self.folder.as_path(), self.dimensions, self.covered);
            let nearest = graph_scan::nearest(file, &query, count, passes);
            if nearest.is_none() {
                tracing::debug!(
                    "the file of the vector graph cannot be used, so vectors are compared one by one"
                );
            }
            return Ok(nearest);
        }
        let Some(graph) = self.graph() else { return Ok(None) };
        let query = signed(&query);
        let turn = SearchPermit::wait();
        let found = match passes {
            None => graph.search(&query, count),
            Some(passes) => graph.filtered_search(&query, count, |at| usize::try_from(at).is_ok_and(passes)),
        }
        .map_err(graph_error("search"))?;
        drop(turn);
        Ok(Some(found.keys.into_iter().flat_map(usize::try_from).collect()))
    }
}
