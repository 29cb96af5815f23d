//! Owns the embedded default, all-MiniLM-L6-v2 (int8, 384 dimensions): the only user of rten.
//!
//! Graph, weights and vocabulary lie in the binary (`assets/all-MiniLM-L6-v2`) and are read in place, at first use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::{panic, thread};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, op_registry};
use rten_tensor::{AsView, NdTensor};

use super::wordpiece::WordPiece;
use super::{Effort, Embed, ModelId, lower_priority};
use crate::error::{Error, Result};

/// The length of a vector.
const DIMENSIONS: usize = 384;
/// The cosine from which a passage is about a prompt (docs/dev/ranking.md, Recall).
const RECALL_FLOOR: f32 = 0.42;
/// The longest sequence the model was trained on, its two marks counted.
const MAX_IDS: usize = 256;
/// The first 16 digits of the BLAKE3 hash of graph, weights and vocabulary, one after the other.
const FINGERPRINT: &str = "7682abe8a259fbe8";

static GRAPH: &[u8] = include_bytes!("../../../assets/all-MiniLM-L6-v2/minilm_int8.onnx");
static VOCABULARY: &str = include_str!("../../../assets/all-MiniLM-L6-v2/vocab.txt");

/// The sentence transformer in the binary; costs nothing until it is asked for a vector or a count.
pub struct MiniLm {
    id: ModelId,
    words: OnceLock<WordPiece>,
    network: OnceLock<Result<Network, String>>,
    foreground: OnceLock<Vec<Lane>>,
    background: OnceLock<Vec<Lane>>,
    bulk: OnceLock<Vec<Lane>>,
}

/// One thread pool, on which one text at a time is embedded.
type Lane = Arc<ThreadPool>;

impl Default for MiniLm {
    /// Makes the embedder without loading anything.
    fn default() -> Self {
        Self {
            id: ModelId::new("minilm", DIMENSIONS, FINGERPRINT),
            words: OnceLock::new(),
            network: OnceLock::new(),
            foreground: OnceLock::new(),
            background: OnceLock::new(),
            bulk: OnceLock::new(),
        }
    }
}

impl MiniLm {
    fn words(&self) -> &WordPiece {
        self.words.get_or_init(|| WordPiece::new(VOCABULARY))
    }

    /// Loads the network at the first call; a failure is kept, as a second try could only fail alike.
    fn network(&self) -> Result<&Network> {
        self.network.get_or_init(Network::load).as_ref().map_err(|why| {
            Error::internal(format!("the embedded model cannot be loaded: {why}"))
                .with_hint("searching by words alone needs no model: use the mode bm25")
        })
    }

    /// Gives the thread pools for an effort, made at the first call.
    ///
    /// Several threads on one text shorten the wait for it, but several texts of one thread each are more texts a
    /// second.
    fn lanes(&self, effort: Effort) -> &[Lane] {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (made, lanes, threads) = match effort {
            Effort::Foreground => (&self.foreground, 1, cores.min(4)),
            Effort::Background => (&self.background, 1, 1),
            Effort::Bulk => (&self.bulk, cores, 1),
        };
        made.get_or_init(|| {
            let lanes: Vec<_> = (0..lanes).map(|_| Arc::new(ThreadPool::with_num_threads(threads))).collect();
            if effort == Effort::Background {
                lanes.iter().for_each(step_back);
            }
            lanes
        })
    }
}

impl Embed for MiniLm {
    fn model(&self) -> &ModelId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        MAX_IDS - WordPiece::MARKS
    }

    fn recall_floor(&self) -> Option<f32> {
        Some(RECALL_FLOOR)
    }

    /// The threshold was set on 2,425 memories of agents: of 34 pairs of unequal texts from 0.90 on that pass the lexical
    /// guard, 32 say the same (docs/dev/memory.md, Near duplicates).
    fn duplicate_threshold(&self) -> f32 {
        0.90
    }

    /// Runs the texts one by one: dynamic quantisation is per tensor, so in a batch a vector would depend on its
    /// neighbours, and a batch is no faster.
    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let network = self.network()?;
        let words = self.words();
        let next = AtomicUsize::new(0);
        let work = |lane: &Lane| {
            let mut made = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(at) else {
                    return Ok(made);
                };
                made.push((at, network.embed(&words.encode(text, MAX_IDS), lane)?));
            }
        };
        let made = match self.lanes(effort) {
            [lane] => vec![work(lane)?],
            lanes => thread::scope(|scope| {
                let workers: Vec<_> =
                    lanes.iter().take(texts.len()).map(|lane| scope.spawn(|| work(lane))).collect();
                workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
                    .collect::<Result<Vec<_>>>()
            })?,
        };
        let mut made: Vec<_> = made.into_iter().flatten().collect();
        made.sort_unstable_by_key(|&(at, _)| at);
        Ok(made.into_iter().map(|(_, vector)| vector).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.words().count(text)
    }
}

/// The loaded graph with the ends that we connect.
struct Network {
    model: Model,
    ids: NodeId,
    mask: NodeId,
    types: NodeId,
    hidden: NodeId,
}

impl Network {
    fn load() -> Result<Self, String> {
        // Naming the operators keeps the others out of the binary.
        let operators = op_registry!(
            Add,
            Cast,
            DequantizeLinear,
            Div,
            DynamicQuantizeLinear,
            Erf,
            Gather,
            LayerNormalization,
            MatMul,
            MatMulInteger,
            Mul,
            Reshape,
            Shape,
            Slice,
            Softmax,
            Sub,
            Transpose,
            Unsqueeze
        );
        let weights = rten::include_external_data!("../../../assets/all-MiniLM-L6-v2/minilm_int8.data");
        let model = ModelOptions::with_ops(operators)
            .prepack_weights(true)
            .external_data_static("minilm_int8.data", weights)
            .load_static_slice(GRAPH)
            .map_err(|error| error.to_string())?;
        let node = |name| model.node_id(name).map_err(|error| error.to_string());
        Ok(Self {
            ids: node("input_ids")?,
            mask: node("attention_mask")?,
            types: node("token_type_ids")?,
            hidden: node("last_hidden_state")?,
            model,
        })
    }

    /// Gives the mean of the hidden states of all ids, brought to length 1.
    fn embed(&self, ids: &[u32], lane: &Lane) -> Result<Vec<f32>> {
        let fail = |why: &str| Error::internal(format!("the embedded model cannot be run: {why}"));
        let shape = [1, ids.len()];
        let ids = NdTensor::from_data(shape, ids.iter().map(|&id| id as i32).collect::<Vec<_>>());
        let inputs = vec![
            (self.ids, ids.into()),
            (self.mask, NdTensor::full(shape, 1i32).into()),
            (self.types, NdTensor::full(shape, 0i32).into()),
        ];
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(lane)));
        let [hidden] = self
            .model
            .run_n(inputs, [self.hidden], Some(options))
            .map_err(|error| fail("an operator failed").with_source(error))?;
        let hidden: NdTensor<f32, 3> =
            hidden.try_into().map_err(|error| fail("its output has another shape").with_source(error))?;
        // Length 1 is all that is left of the sum, so it need not be divided by the number of ids first.
        let mut vector = vec![0.0; DIMENSIONS];
        for state in hidden.to_vec().chunks_exact(DIMENSIONS) {
            vector.iter_mut().zip(state).for_each(|(sum, value)| *sum += value);
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_normal() {
            return Err(fail("its vector has no direction"));
        }
        vector.iter_mut().for_each(|value| *value /= length);
        Ok(vector)
    }
}

/// Puts the one thread of a pool behind all others of the machine.
fn step_back(lane: &Lane) {
    let caller = thread::current().id();
    lane.run(|| {
        // A pool that could not start its thread runs on the caller's, which must keep its priority.
        if thread::current().id() != caller {
            lower_priority();
        }
    });
}
