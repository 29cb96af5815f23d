//! The built-in embedder all-MiniLM-L6-v2 (int8, 384 dimensions). The only rten user.
//!
//! The graph, the weights and the vocabulary are part of the binary (`assets/all-MiniLM-L6-v2`). They are loaded in
//! place at the first use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::{panic, thread};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, op_registry};
use rten_tensor::{AsView, NdTensor};

use super::wordpiece::WordPiece;
use super::{Effort, Embed, ModelId};
use crate::error::{Error, Result};
use crate::platform;

/// The number of dimensions.
const DIMENSIONS: usize = 384;
/// The least cosine at which a passage is relevant to a prompt (docs/dev/ranking.md, Recall).
const RECALL_FLOOR: f32 = 0.49;
/// The longest sequence that the model was trained on, including its two special tokens.
const MAX_IDS: usize = 256;
/// The first 16 digits of the BLAKE3 hash of the graph, the weights and the vocabulary, concatenated.
const FINGERPRINT: &str = "7682abe8a259fbe8";

static GRAPH: &[u8] = include_bytes!("../../../assets/all-MiniLM-L6-v2/minilm_int8.onnx");
static VOCABULARY: &str = include_str!("../../../assets/all-MiniLM-L6-v2/vocab.txt");

/// The first line of a word in the vocabulary. Special tokens and single characters stand before it.
const FIRST_WORD: usize = 1_996;

/// Returns the place of a folded word in a list of words by how often English texts have them, the commonest first. `None`
/// for a word that is not among the 22,000 commonest. The list is the vocabulary of the model, which has this order.
pub fn english_rank(word: &str) -> Option<usize> {
    static RANKS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
        let words = VOCABULARY.lines().skip(FIRST_WORD).enumerate();
        words.filter(|(_, word)| !word.starts_with('#')).map(|(rank, word)| (word, rank)).collect()
    });
    RANKS.get(word).copied()
}

/// The built-in sentence transformer. Nothing is loaded before the first vector or token count is requested.
pub struct MiniLm {
    id: ModelId,
    tokenizer: OnceLock<WordPiece>,
    network: OnceLock<Result<Network, String>>,
    /// The thread pools for each effort.
    foreground: OnceLock<Vec<Pool>>,
    background: OnceLock<Vec<Pool>>,
    bulk: OnceLock<Vec<Pool>>,
}

/// A thread pool, which embeds one text at a time.
type Pool = Arc<ThreadPool>;

impl Default for MiniLm {
    /// Creates the embedder without loading anything.
    fn default() -> Self {
        Self {
            id: ModelId::new("minilm", DIMENSIONS, FINGERPRINT),
            tokenizer: OnceLock::new(),
            network: OnceLock::new(),
            foreground: OnceLock::new(),
            background: OnceLock::new(),
            bulk: OnceLock::new(),
        }
    }
}

impl MiniLm {
    fn tokenizer(&self) -> &WordPiece {
        self.tokenizer.get_or_init(|| WordPiece::new(VOCABULARY))
    }

    /// Returns the network, which the first call loads. A failure is cached, since another attempt would fail for the
    /// same reason.
    fn network(&self) -> Result<&Network> {
        self.network.get_or_init(Network::load).as_ref().map_err(|why| {
            Error::internal(format!("the embedded model cannot be loaded: {why}"))
                .with_hint("use the mode bm25, which needs no model")
        })
    }

    /// Returns the thread pools for an effort, which the first call creates.
    ///
    /// Several threads per text reduce the latency of one text. One thread per text gives the highest throughput for
    /// many texts.
    fn pools(&self, effort: Effort) -> &[Pool] {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (cell, pools, threads) = match effort {
            Effort::Foreground => (&self.foreground, 1, cores.min(4)),
            Effort::Background => (&self.background, 1, 1),
            Effort::Bulk => (&self.bulk, cores, 1),
        };
        cell.get_or_init(|| {
            let pools: Vec<_> = (0..pools).map(|_| Arc::new(ThreadPool::with_num_threads(threads))).collect();
            if effort == Effort::Background {
                pools.iter().for_each(lower_pool_priority);
            }
            pools
        })
    }
}

impl Embed for MiniLm {
    fn model(&self) -> &ModelId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        MAX_IDS - WordPiece::SPECIAL_TOKENS
    }

    fn recall_floor(&self) -> Option<f32> {
        Some(RECALL_FLOOR)
    }

    /// The threshold was measured on 2,425 memories of agents: of 34 pairs of different texts with a cosine of 0.90 or
    /// more that pass the lexical guard, 32 have the same meaning (docs/dev/memory.md, Near duplicates).
    fn duplicate_threshold(&self) -> f32 {
        0.90
    }

    /// Embeds the texts one by one. Dynamic quantisation is per tensor, so in a batch a vector would depend on the
    /// other texts, and a batch is no faster.
    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let network = self.network()?;
        let tokenizer = self.tokenizer();
        let next = AtomicUsize::new(0);
        let work = |pool: &Pool| {
            let mut vectors = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(at) else {
                    return Ok(vectors);
                };
                vectors.push((at, network.embed(&tokenizer.encode(text, MAX_IDS), pool)?));
            }
        };
        let results = match self.pools(effort) {
            [pool] => vec![work(pool)?],
            pools => thread::scope(|scope| {
                let workers: Vec<_> =
                    pools.iter().take(texts.len()).map(|pool| scope.spawn(|| work(pool))).collect();
                workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
                    .collect::<Result<Vec<_>>>()
            })?,
        };
        let mut results: Vec<_> = results.into_iter().flatten().collect();
        results.sort_unstable_by_key(|&(at, _)| at);
        Ok(results.into_iter().map(|(_, vector)| vector).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.tokenizer().count(text)
    }
}

/// The loaded graph with its input and output nodes.
struct Network {
    model: Model,
    ids: NodeId,
    mask: NodeId,
    types: NodeId,
    hidden: NodeId,
}

impl Network {
    fn load() -> Result<Self, String> {
        // Listing the operators keeps all others out of the binary.
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

    /// Computes the mean of the hidden states of all ids, normalized to length 1.
    fn embed(&self, ids: &[u32], pool: &Pool) -> Result<Vec<f32>> {
        let fail = |why: &str| Error::internal(format!("the embedded model cannot be run: {why}"));
        let shape = [1, ids.len()];
        let ids = NdTensor::from_data(shape, ids.iter().map(|&id| id as i32).collect::<Vec<_>>());
        let inputs = vec![
            (self.ids, ids.into()),
            (self.mask, NdTensor::full(shape, 1i32).into()),
            (self.types, NdTensor::full(shape, 0i32).into()),
        ];
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(pool)));
        let [hidden] = self
            .model
            .run_n(inputs, [self.hidden], Some(options))
            .map_err(|error| fail("an operator failed").with_source(error))?;
        let hidden: NdTensor<f32, 3> = hidden
            .try_into()
            .map_err(|error| fail("its output has an unexpected shape").with_source(error))?;
        // The sum is normalized, so it need not be divided by the number of ids first.
        let mut vector = vec![0.0; DIMENSIONS];
        for state in hidden.to_vec().chunks_exact(DIMENSIONS) {
            vector.iter_mut().zip(state).for_each(|(sum, value)| *sum += value);
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_normal() {
            return Err(fail("its vector cannot be normalized"));
        }
        vector.iter_mut().for_each(|value| *value /= length);
        Ok(vector)
    }
}

/// Gives the only thread of a pool the lowest priority.
fn lower_pool_priority(pool: &Pool) {
    let caller = thread::current().id();
    pool.run(|| {
        // A pool that could not start its thread runs on the thread of the caller, which must keep its priority.
        if thread::current().id() != caller {
            platform::lower_thread_priority();
        }
    });
}
