//! The built-in embedder multilingual-e5-small (384 dimensions).
//!
//! The model is part of the binary (`sidenote_encoder`). It is read in place at the first use.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::{panic, thread};

use rayon::{ThreadPool, ThreadPoolBuilder};
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_encoder::{Asset, BertEncoder, TextKind, Tokenizer, Workspace, built_in, mean_passage};
use sidenote_markdown::passage::estimate_tokens;

use super::{Effort, Embed, ModelId};

/// The name of the model in the settings.
pub(super) const NAME: &str = "e5";
/// The number of dimensions.
const DIMENSIONS: usize = 384;
/// How far the similarity of a passage that is relevant to a prompt lies above chance (docs/dev/ranking.md, Recall).
const RECALL_FLOOR: f32 = 0.34;
/// The least similarity of two texts that can be duplicates (docs/dev/memory.md, Near duplicates).
const DUPLICATE_THRESHOLD: f32 = 0.90;
/// The longest sequence that the model was trained on, with its special tokens and its prefix.
const MAX_IDS: usize = 512;
/// The first 16 digits of the BLAKE3 hash of the model, its mean vectors and the version of the pooling, concatenated.
const FINGERPRINT: &str = "c77c6b7d4d5e88d8";
/// The most ids of texts that are embedded together. Short texts are faster together, and the memory stays in the cache.
const GROUP_IDS: usize = 512;

static TOKENIZER: LazyLock<Result<Tokenizer, String>> =
    LazyLock::new(|| Tokenizer::new(&Asset::parse(built_in())?));

/// The number of calls after which the pages of the weights are given back again.
const RELEASE_INTERVAL: usize = 32;

thread_local! {
    /// The memory of a thread of a pool, which later calls use again. A pool has one thread, so no other work runs on it meanwhile.
    static SPACE: RefCell<Workspace> = RefCell::default();
}

/// The built-in sentence transformer. Nothing is loaded before the first vector or token count is requested.
pub struct E5 {
    id: ModelId,
    encoder: OnceLock<Result<BertEncoder, String>>,
    /// The number of calls since the encoder has packed the weights.
    calls: AtomicUsize,
    /// Thread pools of one thread for each effort. Several threads for one text are slower than one.
    foreground: OnceLock<Result<Vec<ThreadPool>, String>>,
    background: OnceLock<Result<Vec<ThreadPool>, String>>,
    bulk: OnceLock<Result<Vec<ThreadPool>, String>>,
}

impl Default for E5 {
    /// Creates the embedder without loading anything.
    fn default() -> Self {
        Self {
            id: ModelId::new(NAME, DIMENSIONS, FINGERPRINT),
            encoder: OnceLock::new(),
            calls: AtomicUsize::new(0),
            foreground: OnceLock::new(),
            background: OnceLock::new(),
            bulk: OnceLock::new(),
        }
    }
}

impl E5 {
    /// Returns the encoder, which the first call loads. A failure is cached, since another attempt would fail for the
    /// same reason.
    fn encoder(&self) -> Result<&BertEncoder> {
        self.encoder
            .get_or_init(|| BertEncoder::new(Asset::parse(built_in())?))
            .as_ref()
            .map_err(|why| unusable(why))
    }

    /// Returns the thread pools for an effort, which the first call creates.
    fn pools(&self, effort: Effort) -> Result<&[ThreadPool]> {
        let (cell, pools) = match effort {
            Effort::Foreground => (&self.foreground, 1),
            Effort::Background => (&self.background, 1),
            Effort::Bulk => (&self.bulk, thread::available_parallelism().map_or(1, usize::from)),
        };
        let pool = |_| {
            let builder = ThreadPoolBuilder::new().num_threads(1).start_handler(move |_| {
                if effort == Effort::Background {
                    platform::lower_thread_priority();
                }
            });
            builder.build().map_err(|error| error.to_string())
        };
        let pools = cell.get_or_init(|| (0..pools).map(pool).collect());
        pools.as_deref().map_err(|why| unusable(why))
    }

    /// Returns the vectors of texts of a kind.
    fn embed_kind(&self, kind: TextKind, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let (tokenizer, encoder) = (tokenizer()?, self.encoder()?);
        let ids: Vec<Vec<u32>> =
            texts.iter().map(|text| tokenizer.encode(kind.prefix(), text, MAX_IDS)).collect();
        let ids: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        let pools = self.pools(effort)?;
        let groups = groups(&ids, pools.len());
        let next = AtomicUsize::new(0);
        let embed = |space: &mut Workspace| {
            let mut vectors = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(group) = groups.get(at) else {
                    return Ok(vectors);
                };
                vectors.push((at, encoder.embed(group, space).map_err(|why| unusable(&why))?));
            }
        };
        let work = || SPACE.with_borrow_mut(embed);
        let results = match pools {
            [pool] => vec![pool.install(work)?],
            pools => thread::scope(|scope| {
                let pools = pools.iter().take(groups.len());
                let missing =
                    |error: &std::io::Error| tracing::debug!("embedding has fewer threads: {error}");
                let workers: Vec<_> = pools
                    .flat_map(|pool| {
                        thread::Builder::new()
                            .spawn_scoped(scope, move || pool.install(work))
                            .inspect_err(missing)
                    })
                    .collect();
                // Where the system cannot start any, this thread does the work.
                let own = if workers.is_empty() { vec![work()] } else { Vec::new() };
                let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
                let joined = joined.map(|done| done.unwrap_or_else(|panic| panic::resume_unwind(panic)));
                own.into_iter().chain(joined).collect::<Result<Vec<_>>>()
            })?,
        };
        let mut results: Vec<_> = results.into_iter().flatten().collect();
        results.sort_unstable_by_key(|&(at, _)| at);
        // The encoder has the matrices in another form now, and reads single words of the rest, around each of which the system
        // keeps 64 kB.
        if encoder.has_expanded()
            && self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(RELEASE_INTERVAL)
        {
            platform::release_program_pages(built_in());
        }
        let vectors = results.into_iter().flat_map(|(_, vectors)| vectors);
        let adapt = |vector| kind.adapt(vector).ok_or_else(|| unusable("a vector has no length"));
        vectors.map(adapt).collect()
    }
}

/// Returns the tokenizer, which the first call creates.
fn tokenizer() -> Result<&'static Tokenizer> {
    TOKENIZER.as_ref().map_err(|why| unusable(why))
}

/// Returns the error of a model that cannot be loaded or run.
fn unusable(why: &str) -> Error {
    Error::internal(format!("the embedded model cannot be run: {why}"))
        .with_hint("use the mode bm25, which needs no model")
}

impl Embed for E5 {
    fn model(&self) -> &ModelId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        MAX_IDS - Tokenizer::SPECIAL_TOKENS - TextKind::PREFIX_TOKENS
    }

    fn recall_floor(&self) -> Option<f32> {
        Some(RECALL_FLOOR)
    }

    fn duplicate_threshold(&self) -> f32 {
        DUPLICATE_THRESHOLD
    }

    fn mean_passage(&self) -> Option<&'static [f32]> {
        Some(mean_passage())
    }

    fn is_built_in(&self) -> bool {
        true
    }

    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        self.embed_kind(TextKind::Passage, texts, effort)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let vector = self.embed_kind(TextKind::Query, &[text], Effort::Foreground)?.pop();
        vector.ok_or_else(|| Error::internal("the embedder returned no vector"))
    }

    fn batch(&self, effort: Effort) -> usize {
        // The workers wait for each other at the end of a batch.
        if effort == Effort::Bulk { 128 } else { 1 }
    }

    fn count_tokens(&self, text: &str) -> usize {
        // A vocabulary that cannot be read is an error of `embed`.
        tokenizer().map_or_else(|_| estimate_tokens(text), |tokenizer| tokenizer.count(text))
    }
}

/// Cuts a list of texts into groups, of one text or of at most [`GROUP_IDS`] ids. The last groups are smaller, so that no worker
/// waits long for another one.
fn groups<'a, 't>(mut texts: &'a [&'t [u32]], workers: usize) -> Vec<&'a [&'t [u32]]> {
    let mut groups = Vec::new();
    let mut left: usize = texts.iter().map(|text| text.len()).sum();
    while !texts.is_empty() {
        let most = if workers == 1 { GROUP_IDS } else { GROUP_IDS.min(left / (2 * workers)) };
        let mut ids = 0;
        let fits = texts.iter().take_while(|text| {
            ids += text.len();
            ids <= most
        });
        let (group, rest) = texts.split_at(fits.count().max(1));
        left -= group.iter().map(|text| text.len()).sum::<usize>();
        groups.push(group);
        texts = rest;
    }
    groups
}
