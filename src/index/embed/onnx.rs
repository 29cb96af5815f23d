//! Owns models in ONNX form, run by onnxruntime through fastembed: embedders and cross-encoders, from folders. The only
//! user of fastembed and ort.
//!
//! Making one reads what its files say; weights and library are loaded when the first text comes.

pub mod runtime;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use fastembed::{
    EmbeddingModel, InitOptionsUserDefined, OutputKey, QuantizationMode, RerankInitOptionsUserDefined,
    TextEmbedding, TextRerank, TokenizerFiles, UserDefinedEmbeddingModel, UserDefinedRerankingModel,
};

use super::{Effort, Embed, ModelId, OTHER_THRESHOLD, Rerank, lower_priority, unit};
use crate::config::{EmbedConfig, RerankConfig};
use crate::error::{Error, Result};
use crate::index::embed::model_files::{Kept, Note, Pooling, folder_of};
use crate::text::passage::estimate_tokens;
use crate::wording::Wording;

/// Bytes that a batch may take on its way through a model.
const BATCH_BYTES: usize = 64 << 20;
/// How many times the bytes of its state a token takes: attention, the wide layer, and copies.
const COPIES: usize = 16;
/// A batch larger than this gains nothing on processors.
const MOST_BATCHED: usize = 16;
/// Weights beyond this are loaded once, and not a second time for the background.
const HEAVY: u64 = 400 << 20;
/// A reranker reads so many texts between two looks at the clock.
const READ_AT_ONCE: usize = 4;
/// A reranker sees so many tokens of query and text.
const RERANK_TOKENS: usize = 512;
/// The output of a model that pools by itself.
const POOLED: &str = "sentence_embedding";

/// A sentence transformer in a folder.
pub struct OnnxEmbedder {
    id: ModelId,
    kept: Kept,
    runtime: PathBuf,
    max_tokens: usize,
    query_prefix: String,
    passage_prefix: String,
    front: OnceLock<Result<Mutex<TextEmbedding>, Lost>>,
    /// One thread that gives way; nothing where the weights are too heavy to have twice.
    back: OnceLock<Result<Mutex<TextEmbedding>, Lost>>,
}

/// Why a model could not be loaded; it is told each time.
struct Lost {
    message: String,
    hint: Option<Wording>,
}

impl Lost {
    fn told(&self) -> Error {
        let error = Error::invalid(self.message.clone());
        match &self.hint {
            Some(hint) => error.with_hint(hint.clone()),
            None => error,
        }
    }
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), hint: error.wording().cloned() }
    }
}

impl OnnxEmbedder {
    /// Makes the embedder that these settings describe; neither the weights nor the library are loaded yet.
    ///
    /// # Errors
    /// `NotFound` where the model is not installed, or its folder lacks something; `Invalid` where nobody told the length
    /// of its vectors.
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
                return Err(Error::invalid("embed.provider is fastembed, and no model is set").with_hints(
                    "run: sidenote model use NAME, or: sidenote model path FOLDER",
                    "ask the user to choose a model",
                ));
            }
            (name, true) => {
                let listed = find_listed(&listed_embedders(), name)?.name.clone();
                (listed.clone(), installed_folder(&listed)?)
            }
        };
        Self::from_folder(&name, Kept::open(&folder)?, config)
    }

    fn from_folder(name: &str, kept: Kept, config: &EmbedConfig) -> Result<Self> {
        let told = Some(config.dimensions).filter(|told| *told > 0).or(kept.dimensions);
        let dimensions = told.ok_or_else(|| {
            let folder = kept.folder.display();
            Error::invalid(format!("nothing in {folder} tells how long the model's vectors are"))
                .with_hint("add its config.json, or set embed.dimensions")
        })?;
        let pick = |own: &str, files: &str| if own.is_empty() { files.to_owned() } else { own.to_owned() };
        let passage_prefix = pick(&config.passage_prefix, &kept.passage_prefix);
        let max_tokens = if config.max_tokens > 0 { config.max_tokens } else { kept.max_tokens };
        let made_by = format!(
            "{} {:?} {max_tokens} {:?} {passage_prefix}",
            kept.fingerprint, kept.pooling, kept.output
        );
        let fingerprint = blake3::hash(made_by.as_bytes()).to_hex();
        Ok(Self {
            id: ModelId::new(name, dimensions, fingerprint.get(..16).unwrap_or_default()),
            runtime: config.onnxruntime.clone(),
            max_tokens,
            query_prefix: pick(&config.query_prefix, &kept.query_prefix),
            passage_prefix,
            kept,
            front: OnceLock::new(),
            back: OnceLock::new(),
        })
    }

    /// Gives the model's folder and files.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    fn load(&self, threads: usize) -> Result<TextEmbedding> {
        let environment = runtime::environment(&self.runtime)?;
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| Error::io("read", path, error));
        let beside = self.kept.graph.parent().map(PathBuf::from).unwrap_or_default();
        let mut model = UserDefinedEmbeddingModel::new(
            read(&self.kept.graph)?,
            tokenizer_of(&self.kept, self.max_tokens)?,
        )
        .with_pooling(match self.kept.pooling {
            Pooling::Mean => fastembed::Pooling::Mean,
            Pooling::Cls => fastembed::Pooling::Cls,
        })
        // Batches are cut here, so that a model that is bound to them gets texts one by one.
        .with_quantization(QuantizationMode::None);
        for name in &self.kept.weights {
            model = model.with_external_initializer(name.clone(), read(&beside.join(name))?);
        }
        if self.kept.output.as_deref() == Some(POOLED) {
            model.output_key = Some(OutputKey::ByName(POOLED));
        }
        let options = InitOptionsUserDefined::new()
            .with_environment(environment.clone())
            .with_max_length(self.max_tokens)
            .with_intra_threads(threads);
        TextEmbedding::try_new_from_user_defined(model, options).map_err(|error| unusable(&self.kept, &error))
    }

    fn session<'a>(
        &self,
        place: &'a OnceLock<Result<Mutex<TextEmbedding>, Lost>>,
        threads: usize,
    ) -> Result<MutexGuard<'a, TextEmbedding>> {
        let loaded = place.get_or_init(|| self.load(threads).map(Mutex::new).map_err(Lost::from));
        let session = loaded.as_ref().map_err(Lost::told)?;
        // A panic inside left no text half-done: each call begins anew.
        Ok(session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Embeds texts, prefixes in place, with all cores or with one that gives way.
    fn run(&self, texts: &[String], effort: Effort) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if effort == Effort::Background && self.kept.bytes <= HEAVY {
            // A thread of its own, for a priority that was lowered does not rise again.
            return std::thread::scope(|scope| {
                let work = scope.spawn(|| {
                    lower_priority();
                    self.run_on(&mut *self.session(&self.back, 1)?, texts)
                });
                work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
        }
        self.run_on(&mut *self.session(&self.front, cores())?, texts)
    }

    fn run_on(&self, session: &mut TextEmbedding, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        // Texts of like length stand together, so that little is filled up.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        let length = |at: &usize| texts.get(*at).map_or(0, String::len);
        order.sort_by_key(length);
        let mut slots: Vec<Vec<f32>> = vec![Vec::new(); texts.len()];
        for group in order.chunks(self.batch_size()) {
            let batch: Vec<&str> = group.iter().filter_map(|at| texts.get(*at)).map(String::as_str).collect();
            let made =
                session.embed(&batch, Some(batch.len())).map_err(|error| unusable(&self.kept, &error))?;
            for (at, vector) in group.iter().zip(made) {
                if let Some(slot) = slots.get_mut(*at) {
                    *slot = self.checked(vector)?;
                }
            }
        }
        Ok(slots)
    }

    /// Counts the texts that go through the model together.
    fn batch_size(&self) -> usize {
        if self.kept.is_batch_bound {
            return 1;
        }
        let a_text = self.max_tokens * self.id.dimensions() * size_of::<f32>() * COPIES;
        (BATCH_BYTES / a_text.max(1)).clamp(1, MOST_BATCHED)
    }

    fn checked(&self, vector: Vec<f32>) -> Result<Vec<f32>> {
        let (told, wanted) = (vector.len(), self.id.dimensions());
        if told != wanted {
            return Err(Error::invalid(format!(
                "the model in {} gives vectors of {told} numbers, not {wanted}",
                self.kept.folder.display()
            ))
            .with_hint(format!("set embed.dimensions to {told}")));
        }
        unit(vector).ok_or_else(|| {
            Error::corrupt(format!(
                "the model in {} gives vectors without a direction",
                self.kept.folder.display()
            ))
            .with_hints(
                "download it again, or run: sidenote model use minilm",
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
        OTHER_THRESHOLD
    }

    fn embed(&self, texts: &[&str], effort: Effort) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<String> = texts.iter().map(|text| format!("{}{text}", self.passage_prefix)).collect();
        self.run(&texts, effort)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let made = self.run(&[format!("{}{text}", self.query_prefix)], Effort::Foreground)?.pop();
        made.ok_or_else(|| Error::internal("the embedder gave no vector"))
    }

    fn count_tokens(&self, text: &str) -> usize {
        estimate_tokens(text)
    }
}

/// A cross-encoder in a folder.
pub struct CrossEncoder {
    name: String,
    kept: Kept,
    runtime: PathBuf,
    model: OnceLock<Result<Mutex<TextRerank>, Lost>>,
}

impl CrossEncoder {
    /// Makes the reranker that these settings describe; neither the weights nor the library are loaded yet.
    ///
    /// # Errors
    /// As [`OnnxEmbedder::new`].
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
        Ok(Self { name, kept: Kept::open(&folder)?, runtime, model: OnceLock::new() })
    }

    /// Gives the model's folder and files.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    fn load(&self) -> Result<TextRerank> {
        let environment = runtime::environment(&self.runtime)?;
        let tokens = self.kept.max_tokens.clamp(RERANK_TOKENS / 4, RERANK_TOKENS);
        let model =
            UserDefinedRerankingModel::new(self.kept.graph.clone(), tokenizer_of(&self.kept, tokens)?);
        let options = RerankInitOptionsUserDefined::new()
            .with_environment(environment.clone())
            .with_max_length(tokens)
            .with_intra_threads(cores());
        TextRerank::try_new_from_user_defined(model, options).map_err(|error| unusable(&self.kept, &error))
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
        let loaded = self.model.get_or_init(|| self.load().map(Mutex::new).map_err(Lost::from));
        let mut model = loaded.as_ref().map_err(Lost::told)?.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let mut scores = Vec::with_capacity(texts.len());
        let mut slowest = Duration::ZERO;
        for group in texts.chunks(READ_AT_ONCE) {
            // What would end too late is not begun.
            if begun.elapsed() + slowest >= budget {
                break;
            }
            let turn = Instant::now();
            let mut read = model
                .rerank(query, group, false, Some(group.len()))
                .map_err(|error| unusable(&self.kept, &error))?;
            slowest = slowest.max(turn.elapsed());
            read.sort_by_key(|one| one.index);
            if read.iter().any(|one| !one.score.is_finite()) {
                let folder = self.kept.folder.display();
                return Err(Error::corrupt(format!(
                    "the reranker in {folder} gives scores that are no numbers"
                ))
                .with_hints(
                    "download it again, or run: sidenote model use none --rerank",
                    "ask the user to download it again, or to do without",
                ));
            }
            scores.extend(read.into_iter().map(|one| one.score));
        }
        Ok(scores)
    }
}

/// A model that can be had by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name here.
    pub name: String,
    /// Its repository on the hub.
    pub source: String,
    /// The files to fetch from there, the graph first.
    pub files: Vec<String>,
    /// The length of a vector; 0 for a reranker.
    pub dimensions: usize,
    /// What it is said to be.
    pub about: String,
    /// What is noted beside the files.
    pub note: Note,
}

/// What some families of models want before queries and passages (their own pages say so), by a part of their source.
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

/// Lists the embedders that fastembed knows by name.
pub fn listed_embedders() -> Vec<ListedModel> {
    let mut all: Vec<ListedModel> = TextEmbedding::list_supported_models()
        .into_iter()
        // It embeds captions of pictures.
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
            let note = Note {
                name: name.clone(),
                source: info.model_code.clone(),
                graph: info.model_file.clone(),
                dimensions: info.dim,
                pooling,
                output: info.output_key.is_some().then(|| POOLED.to_owned()),
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
                note,
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
        let note = Note {
            name: name.clone(),
            source: info.model_code.clone(),
            graph: info.model_file.clone(),
            ..Note::default()
        };
        let mut files = vec![info.model_file];
        files.extend(info.additional_files);
        ListedModel { name, source: info.model_code, files, dimensions: 0, about: info.description, note }
    });
    all.collect()
}

/// Finds a listed model by its name or its source, whatever the case.
///
/// # Errors
/// `NotFound` where there is none of that name; `Exists` where a source has several.
pub fn find_listed<'a>(all: &'a [ListedModel], name: &str) -> Result<&'a ListedModel> {
    if let Some(listed) = all.iter().find(|listed| listed.name.eq_ignore_ascii_case(name)) {
        return Ok(listed);
    }
    let same: Vec<&ListedModel> =
        all.iter().filter(|listed| listed.source.eq_ignore_ascii_case(name)).collect();
    match same.as_slice() {
        [one] => Ok(one),
        [] => Err(Error::not_found(format!("no model is called {name:?}")).with_hints(
            "`sidenote model list` shows the names; a folder is set by: sidenote model path FOLDER",
            "ask the user to choose a model that is there",
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|listed| listed.name.as_str()).collect();
            Err(Error::new(
                crate::error::ErrorKind::Exists,
                format!("{name:?} names {} models", several.len()),
            )
            .with_hint(format!("give one of {}", names.join(", "))))
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

fn tokenizer_of(kept: &Kept, max_tokens: usize) -> Result<TokenizerFiles> {
    let tokens = kept.tokens(max_tokens)?;
    Ok(TokenizerFiles {
        tokenizer_file: tokens.tokenizer,
        config_file: tokens.config,
        special_tokens_map_file: tokens.special,
        tokenizer_config_file: tokens.settings,
    })
}

fn unusable(kept: &Kept, error: &fastembed::Error) -> Error {
    Error::invalid(format!("the model in {} cannot be run: {error}", kept.folder.display())).with_hints(
        "see that its files belong together: sidenote model verify",
        "ask the user to see that its files belong together",
    )
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
