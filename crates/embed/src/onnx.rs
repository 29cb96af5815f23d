//! Models in ONNX format, loaded from folders and run by ONNX Runtime through fastembed: embedders and cross-encoders.
//! The only user of fastembed and ort.
//!
//! Creating a model only reads its metadata. Weights and library are loaded with the first text.

pub mod runtime;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use fastembed::{
    EmbeddingModel, InitOptionsUserDefined, OutputKey, QuantizationMode, RerankInitOptionsUserDefined,
    TextEmbedding, TextRerank, TokenizerFiles, UserDefinedEmbeddingModel, UserDefinedRerankingModel,
};
use sidenote_base::error::{Error, Result};
use sidenote_base::parallel::no_thread;
use sidenote_base::platform;
use sidenote_base::wording::Wording;
use sidenote_config::{EmbedConfig, RerankConfig};
use sidenote_markdown::passage::estimate_tokens;

use super::{DEFAULT_DUPLICATE_THRESHOLD, Effort, Embed, ModelId, Rerank, normalize};
use crate::model_files::{InstallRecord, ModelFiles, Pooling, folder_of};

/// The most bytes of memory that a batch may take in a model.
const BATCH_BYTES: usize = 64 << 20;
/// The memory of a token as a multiple of its hidden state: attention, the feed-forward layer, and copies.
const STATES_PER_TOKEN: usize = 16;
/// The most texts of a batch. Larger batches are no faster on processors.
const MAX_BATCH: usize = 16;
/// The largest weights, in bytes, that are loaded a second time for work in the background.
const MAX_SECOND_COPY: u64 = 400 << 20;
/// The number of texts that a reranker reads between two checks of its budget.
const RERANK_GROUP: usize = 4;
/// The most tokens of query and text that a reranker reads.
const RERANK_TOKENS: usize = 512;
/// The name of the output of a model that pools by itself.
const POOLED_OUTPUT: &str = "sentence_embedding";

/// A sentence transformer in a folder.
pub struct OnnxEmbedder {
    id: ModelId,
    files: ModelFiles,
    runtime: PathBuf,
    max_tokens: usize,
    query_prefix: String,
    passage_prefix: String,
    foreground: OnceLock<Result<Mutex<TextEmbedding>, LoadError>>,
    /// A second session of one thread for work in the background; unused if the weights are too large to load twice.
    background: OnceLock<Result<Mutex<TextEmbedding>, LoadError>>,
}

/// The reason why a model cannot be loaded, which every call returns.
struct LoadError {
    message: String,
    hint: Option<Wording>,
}

impl LoadError {
    fn to_error(&self) -> Error {
        let error = Error::invalid(self.message.clone());
        match &self.hint {
            Some(hint) => error.with_hint(hint.clone()),
            None => error,
        }
    }
}

impl From<Error> for LoadError {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), hint: error.wording().cloned() }
    }
}

impl OnnxEmbedder {
    /// Creates the embedder that these settings select. Neither the weights nor the library are loaded yet.
    ///
    /// # Errors
    /// Returns `NotFound` if the model is not installed or its folder lacks a file, `Exists` if its name is ambiguous,
    /// `Invalid` if no model is configured or the length of its vectors is not known, and the other errors of
    /// [`ModelFiles::open`].
    pub fn new(config: &EmbedConfig) -> Result<Self> {
        let (name, folder) = match (config.model.trim(), config.dir.as_os_str().is_empty()) {
            (name, false) => {
                let last = config
                    .dir
                    .file_name()
                    .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                (if name.is_empty() { last } else { name.to_owned() }, config.dir.clone())
            }
            ("", true) => {
                return Err(Error::invalid("embed.provider is fastembed, but no model is configured")
                    .with_hints(
                        "run: sidenote model use NAME, or: sidenote model path FOLDER",
                        "ask the user to choose a model",
                    ));
            }
            (name, true) => {
                let listed = find_listed(&listed_embedders(), name)?.name.clone();
                (listed.clone(), installed_folder(&listed)?)
            }
        };
        Self::from_files(&name, ModelFiles::open(&folder)?, config)
    }

    fn from_files(name: &str, files: ModelFiles, config: &EmbedConfig) -> Result<Self> {
        let stated = Some(config.dimensions).filter(|&dimensions| dimensions > 0).or(files.dimensions);
        let dimensions = stated.ok_or_else(|| {
            let folder = files.folder.display();
            Error::invalid(format!("no file in {folder} states the length of the vectors of the model"))
                .with_hint("add its config.json, or set embed.dimensions")
        })?;
        let choose =
            |set: &str, stated: &str| if set.is_empty() { stated.to_owned() } else { set.to_owned() };
        let passage_prefix = choose(&config.passage_prefix, &files.passage_prefix);
        let max_tokens = if config.max_tokens > 0 { config.max_tokens } else { files.max_tokens };
        let parameters = format!(
            "{} {:?} {max_tokens} {:?} {passage_prefix}",
            files.fingerprint, files.pooling, files.output
        );
        let fingerprint = blake3::hash(parameters.as_bytes()).to_hex();
        Ok(Self {
            id: ModelId::new(name, dimensions, fingerprint.get(..16).unwrap_or_default()),
            runtime: config.onnxruntime.clone(),
            max_tokens,
            query_prefix: choose(&config.query_prefix, &files.query_prefix),
            passage_prefix,
            files,
            foreground: OnceLock::new(),
            background: OnceLock::new(),
        })
    }

    /// Returns the files of the model and their metadata.
    pub fn files(&self) -> &ModelFiles {
        &self.files
    }

    fn load(&self, threads: usize) -> Result<TextEmbedding> {
        let environment = runtime::environment(&self.runtime)?;
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| Error::io("read", path, error));
        let folder = self.files.graph.parent().map(PathBuf::from).unwrap_or_default();
        let mut model = UserDefinedEmbeddingModel::new(
            read(&self.files.graph)?,
            tokenizer_files(&self.files, self.max_tokens)?,
        )
        .with_pooling(match self.files.pooling {
            Pooling::Mean => fastembed::Pooling::Mean,
            Pooling::Cls => fastembed::Pooling::Cls,
        })
        // Batches are formed in `embed_with`, so that a batch-dependent model gets one text at a time.
        .with_quantization(QuantizationMode::None);
        for name in &self.files.weights {
            model = model.with_external_initializer(name.clone(), read(&folder.join(name))?);
        }
        if self.files.output.as_deref() == Some(POOLED_OUTPUT) {
            model.output_key = Some(OutputKey::ByName(POOLED_OUTPUT));
        }
        let options = InitOptionsUserDefined::new()
            .with_environment(environment.clone())
            .with_max_length(self.max_tokens)
            .with_intra_threads(threads);
        TextEmbedding::try_new_from_user_defined(model, options)
            .map_err(|error| unusable(&self.files, &error))
    }

    /// Returns a session, which the first call loads.
    fn session<'a>(
        &self,
        cell: &'a OnceLock<Result<Mutex<TextEmbedding>, LoadError>>,
        threads: usize,
    ) -> Result<MutexGuard<'a, TextEmbedding>> {
        let loaded = cell.get_or_init(|| self.load(threads).map(Mutex::new).map_err(LoadError::from));
        let session = loaded.as_ref().map_err(LoadError::to_error)?;
        // A panic leaves no state behind: calls share none.
        Ok(session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Embeds texts that have their prefixes, on all cores or on one thread of the lowest priority.
    fn embed_prefixed(&self, texts: &[String], effort: Effort) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if effort == Effort::Background && self.files.bytes <= MAX_SECOND_COPY {
            // This needs a thread of its own, because a lowered priority cannot be raised again.
            return std::thread::scope(|scope| {
                let work = std::thread::Builder::new().spawn_scoped(scope, || {
                    platform::lower_thread_priority();
                    self.embed_with(&mut *self.session(&self.background, 1)?, texts)
                });
                work.map_err(no_thread)?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
        }
        self.embed_with(&mut *self.session(&self.foreground, cores())?, texts)
    }

    /// Embeds texts in batches with a session.
    fn embed_with(&self, session: &mut TextEmbedding, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        // Texts of similar length are batched together to reduce padding.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        let length = |at: &usize| texts.get(*at).map_or(0, String::len);
        order.sort_by_key(length);
        let mut slots: Vec<Vec<f32>> = vec![Vec::new(); texts.len()];
        for group in order.chunks(self.batch_size()) {
            let batch: Vec<&str> = group.iter().filter_map(|at| texts.get(*at)).map(String::as_str).collect();
            let made =
                session.embed(&batch, Some(batch.len())).map_err(|error| unusable(&self.files, &error))?;
            for (at, vector) in group.iter().zip(made) {
                if let Some(slot) = slots.get_mut(*at) {
                    *slot = self.normalized(vector)?;
                }
            }
        }
        Ok(slots)
    }

    /// Returns the number of texts per batch.
    fn batch_size(&self) -> usize {
        if self.files.is_batch_dependent {
            return 1;
        }
        let text_bytes = self.max_tokens * self.id.dimensions() * size_of::<f32>() * STATES_PER_TOKEN;
        (BATCH_BYTES / text_bytes.max(1)).clamp(1, MAX_BATCH)
    }

    /// Checks and normalizes a vector of the model.
    fn normalized(&self, vector: Vec<f32>) -> Result<Vec<f32>> {
        let (found, expected) = (vector.len(), self.id.dimensions());
        if found != expected {
            return Err(Error::invalid(format!(
                "the model in {} returns vectors of {found} numbers, not {expected}",
                self.files.folder.display()
            ))
            .with_hint(format!("set embed.dimensions to {found}")));
        }
        normalize(vector).ok_or_else(|| {
            Error::corrupt(format!(
                "the model in {} returns vectors of zero or infinite length",
                self.files.folder.display()
            ))
            .with_hints(
                "download it again, or run: sidenote model use e5",
                "ask the user to download it again, or to choose another model",
            )
        })
    }
}

impl Embed for OnnxEmbedder {
    fn model(&self) -> &ModelId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn duplicate_threshold(&self) -> f32 {
        DEFAULT_DUPLICATE_THRESHOLD
    }

    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<String> = texts.iter().map(|text| format!("{}{text}", self.passage_prefix)).collect();
        self.embed_prefixed(&texts, effort)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let made = self.embed_prefixed(&[format!("{}{text}", self.query_prefix)], Effort::Foreground)?.pop();
        made.ok_or_else(|| Error::internal("the embedder returned no vector"))
    }

    fn count_tokens(&self, text: &str) -> usize {
        estimate_tokens(text)
    }
}

/// A cross-encoder in a folder.
pub struct CrossEncoder {
    name: String,
    files: ModelFiles,
    runtime: PathBuf,
    model: OnceLock<Result<Mutex<TextRerank>, LoadError>>,
}

impl CrossEncoder {
    /// Creates the reranker that these settings select. Neither the weights nor the library are loaded yet.
    ///
    /// # Errors
    /// Returns `NotFound` if the model is not installed or its folder lacks a file, `Exists` if its name is ambiguous,
    /// and the other errors of [`ModelFiles::open`].
    pub fn new(config: &RerankConfig, runtime: PathBuf) -> Result<Self> {
        let name = config.model.trim();
        let (name, folder) = if config.dir.as_os_str().is_empty() {
            let listed = find_listed(&listed_rerankers(), name)?.name.clone();
            (listed.clone(), installed_folder(&listed)?)
        } else {
            let last =
                config.dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            (if name.is_empty() { last } else { name.to_owned() }, config.dir.clone())
        };
        Ok(Self { name, files: ModelFiles::open(&folder)?, runtime, model: OnceLock::new() })
    }

    /// Returns the files of the model and their metadata.
    pub fn files(&self) -> &ModelFiles {
        &self.files
    }

    fn load(&self) -> Result<TextRerank> {
        let environment = runtime::environment(&self.runtime)?;
        let tokens = self.files.max_tokens.clamp(RERANK_TOKENS / 4, RERANK_TOKENS);
        let model =
            UserDefinedRerankingModel::new(self.files.graph.clone(), tokenizer_files(&self.files, tokens)?);
        let options = RerankInitOptionsUserDefined::new()
            .with_environment(environment.clone())
            .with_max_length(tokens)
            .with_intra_threads(cores());
        TextRerank::try_new_from_user_defined(model, options).map_err(|error| unusable(&self.files, &error))
    }
}

impl Rerank for CrossEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn rerank(&self, query: &str, texts: &[&str], budget: Duration) -> Result<Vec<f32>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let loaded = self.model.get_or_init(|| self.load().map(Mutex::new).map_err(LoadError::from));
        let mut model =
            loaded.as_ref().map_err(LoadError::to_error)?.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        let mut scores = Vec::with_capacity(texts.len());
        let mut slowest = Duration::ZERO;
        for group in texts.chunks(RERANK_GROUP) {
            // A group that would probably exceed the budget is not started.
            if started.elapsed() + slowest >= budget {
                break;
            }
            let group_started = Instant::now();
            let mut results = model
                .rerank(query, group, false, Some(group.len()))
                .map_err(|error| unusable(&self.files, &error))?;
            slowest = slowest.max(group_started.elapsed());
            results.sort_by_key(|result| result.index);
            if results.iter().any(|result| !result.score.is_finite()) {
                let folder = self.files.folder.display();
                return Err(Error::corrupt(format!(
                    "the reranker in {folder} returns scores that are not finite numbers"
                ))
                .with_hints(
                    "download it again, or run: sidenote model use none --rerank",
                    "ask the user to download it again, or to disable the reranker",
                ));
            }
            scores.extend(results.into_iter().map(|result| result.score));
        }
        Ok(scores)
    }
}

/// A model that can be installed by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The name of the model.
    pub name: String,
    /// The repository on the hub.
    pub source: String,
    /// The files to download from the repository, the graph first.
    pub files: Vec<String>,
    /// The number of dimensions; 0 for a reranker.
    pub dimensions: usize,
    /// The description of the model.
    pub about: String,
    /// The install record to store with the files.
    pub record: InstallRecord,
}

/// The prefixes of queries and passages that some families of models require (according to their documentation), by a
/// part of the name of their repository.
const PREFIXES: &[(&str, &str, &str)] = &[
    ("e5-", "query: ", "passage: "),
    ("nomic-embed", "search_query: ", "search_document: "),
    ("modernbert-embed", "search_query: ", "search_document: "),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
    ("-en-v1.5-onnx-Q", INSTRUCTION, ""),
    ("Xenova/bge-small-en", INSTRUCTION, ""),
    ("Xenova/bge-base-en", INSTRUCTION, ""),
    ("Xenova/bge-large-en", INSTRUCTION, ""),
    ("arctic-embed", INSTRUCTION, ""),
    ("mxbai-embed", INSTRUCTION, ""),
    ("bge-small-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    ("bge-large-zh", "为这个句子生成表示以用于检索相关文章：", ""),
];
const INSTRUCTION: &str = "Represent this sentence for searching relevant passages: ";

/// Lists the embedders that fastembed knows by name, ordered by name.
pub fn listed_embedders() -> Vec<ListedModel> {
    let mut all: Vec<ListedModel> = TextEmbedding::list_supported_models()
        .into_iter()
        // This model embeds captions of images.
        .filter(|info| info.model != EmbeddingModel::ClipVitB32)
        .map(|info| {
            let name = format!("{:?}", info.model);
            let pooling =
                TextEmbedding::get_default_pooling_method(&info.model).map(|pooling| match pooling {
                    fastembed::Pooling::Cls => Pooling::Cls,
                    fastembed::Pooling::Mean => Pooling::Mean,
                });
            let source = info.model_code.to_lowercase();
            let prefixes = PREFIXES.iter().find(|(part, ..)| source.contains(&part.to_lowercase()));
            let (_, query, passage) = prefixes.copied().unwrap_or_default();
            let record = InstallRecord {
                name: name.clone(),
                source: info.model_code.clone(),
                graph: info.model_file.clone(),
                dimensions: info.dim,
                pooling,
                output: info.output_key.is_some().then(|| POOLED_OUTPUT.to_owned()),
                query_prefix: query.to_owned(),
                passage_prefix: passage.to_owned(),
            };
            let mut files = vec![info.model_file];
            files.extend(info.additional_files);
            ListedModel {
                name,
                source: info.model_code,
                files,
                dimensions: info.dim,
                about: info.description,
                record,
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Lists the rerankers that fastembed knows by name.
pub fn listed_rerankers() -> Vec<ListedModel> {
    let all = TextRerank::list_supported_models().into_iter().map(|info| {
        let name = format!("{:?}", info.model);
        let record = InstallRecord {
            name: name.clone(),
            source: info.model_code.clone(),
            graph: info.model_file.clone(),
            ..InstallRecord::default()
        };
        let mut files = vec![info.model_file];
        files.extend(info.additional_files);
        ListedModel { name, source: info.model_code, files, dimensions: 0, about: info.description, record }
    });
    all.collect()
}

/// Finds a model of a list by its name or its repository, ignoring case.
///
/// # Errors
/// Returns `NotFound` if there is no such model, and `Exists` if the repository has several.
pub fn find_listed<'a>(all: &'a [ListedModel], name: &str) -> Result<&'a ListedModel> {
    if let Some(listed) = all.iter().find(|listed| listed.name.eq_ignore_ascii_case(name)) {
        return Ok(listed);
    }
    let same: Vec<&ListedModel> =
        all.iter().filter(|listed| listed.source.eq_ignore_ascii_case(name)).collect();
    match same.as_slice() {
        [one] => Ok(one),
        [] => Err(Error::not_found(format!("there is no model named {name:?}")).with_hints(
            "see the names with: sidenote model list; or use a folder with: sidenote model path FOLDER",
            "ask the user to choose a model of the list",
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|listed| listed.name.as_str()).collect();
            Err(Error::new(
                sidenote_base::error::ErrorKind::Exists,
                format!("{name:?} is the repository of {} models", several.len()),
            )
            .with_hint(format!("use one of their names: {}", names.join(", "))))
        }
    }
}

fn installed_folder(name: &str) -> Result<PathBuf> {
    let folder = folder_of(name).ok_or_else(|| Error::not_found("there is no home folder for models"))?;
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Error::not_found(format!("the model {name} is not installed")).with_hints(
        format!(
            "run: sidenote model install {name}; or download it elsewhere and run: sidenote model path FOLDER"
        ),
        "ask the user to install it",
    ))
}

fn tokenizer_files(files: &ModelFiles, max_tokens: usize) -> Result<TokenizerFiles> {
    let data = files.tokenizer(max_tokens)?;
    Ok(TokenizerFiles {
        tokenizer_file: data.tokenizer,
        config_file: data.config,
        special_tokens_map_file: data.special,
        tokenizer_config_file: data.settings,
    })
}

/// Returns the error of a model that cannot be run.
fn unusable(files: &ModelFiles, error: &fastembed::Error) -> Error {
    Error::invalid(format!("the model in {} cannot be run: {error}", files.folder.display())).with_hints(
        "check its files with: sidenote model verify",
        "ask the user to check the files of the model",
    )
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
