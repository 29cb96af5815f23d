//! Models in folders: which files a model consists of, the metadata in them, and the fingerprint that identifies the
//! model. Nothing here runs a model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sidenote_base::atomic_file::replace_own;
use sidenote_base::error::{Error, Result};
use sidenote_config::{data_folder, user_cache};

/// The name of the file with the [`InstallRecord`], which `model install` writes.
pub(crate) const INSTALL_RECORD: &str = "sidenote.json";
/// The usual paths of the graph in the folder of a model, the preferred ones first.
const GRAPHS: &[&str] = &[
    "model.onnx",
    "onnx/model.onnx",
    "model_optimized.onnx",
    "onnx/model_optimized.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
];
/// The most tokens of a sequence. Passages are shorter, and memory use grows with the square of the length.
const MAX_TOKENS: usize = 512;
/// The operator that computes one scale for a whole batch.
const BATCH_DEPENDENT_OPERATOR: &[u8] = b"DynamicQuantizeLinear";
/// The most digests in the cache file.
const MAX_DIGESTS: usize = 64;

/// How the hidden states of the tokens are combined to one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean of all states.
    #[default]
    Mean,
    /// The first state.
    Cls,
}

/// The content of the file [`INSTALL_RECORD`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallRecord {
    /// The name under which the model was installed.
    pub name: String,
    /// The repository that the model was downloaded from.
    pub source: String,
    /// The file of the graph.
    pub graph: String,
    /// The number of dimensions; 0 for a reranker.
    pub dimensions: usize,
    /// How hidden states are combined to a vector.
    pub pooling: Option<Pooling>,
    /// The name of the output with the vector, if it is not one of the usual names.
    pub output: Option<String>,
    /// The prefix of queries.
    pub query_prefix: String,
    /// The prefix of passages.
    pub passage_prefix: String,
}

/// The files of a model, and their metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFiles {
    /// The folder of the model.
    pub folder: PathBuf,
    /// The file of the graph.
    pub graph: PathBuf,
    /// The files with the weights, next to the graph, by the names in the graph.
    pub weights: Vec<String>,
    /// Whether a vector depends on the other texts of its batch.
    pub is_batch_dependent: bool,
    /// The size of the graph and the weights in bytes.
    pub bytes: u64,
    /// The number of dimensions, if the files state it.
    pub dimensions: Option<usize>,
    /// How hidden states are combined to a vector.
    pub pooling: Pooling,
    /// See [`InstallRecord::output`].
    pub output: Option<String>,
    /// The most tokens of a text that the model reads.
    pub max_tokens: usize,
    /// The prefix of queries.
    pub query_prefix: String,
    /// The prefix of passages.
    pub passage_prefix: String,
    /// The fingerprint: 16 hexadecimal digits that change whenever the graph, the weights or the tokenizer do.
    pub fingerprint: String,
}

/// What is known of a graph without reading it again. It is cached on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Digest {
    /// The sizes and modification times of the files that were read.
    stamp: String,
    fingerprint: String,
    weights: Vec<String>,
    is_batch_dependent: bool,
}

/// The contents of the files of a tokenizer. Missing files are generated.
#[derive(Debug, Clone)]
pub struct TokenizerData {
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `special_tokens_map.json`.
    pub special: Vec<u8>,
    /// `tokenizer_config.json`.
    pub settings: Vec<u8>,
}

/// Returns the folder into which `model install` installs a model, or `None` if there is no home folder.
pub fn folder_of(name: &str) -> Option<PathBuf> {
    Some(data_folder()?.join("models").join(name))
}

impl ModelFiles {
    /// Reads the metadata of the model in a folder.
    ///
    /// # Errors
    /// Returns `NotFound` if the folder, its graph or its tokenizer is missing, `Invalid` if it contains several
    /// graphs, `Corrupt` if its install record is damaged, and `Io` if a file cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder).map_err(|error| Error::io("find", folder, error))?;
        if !folder.is_dir() {
            return Err(Error::not_found(format!("there is no folder {}", folder.display()))
                .with_hint("give the folder of a model: model.onnx, tokenizer.json, config.json"));
        }
        let record: InstallRecord = match std::fs::read(folder.join(INSTALL_RECORD)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Error::corrupt(format!("{} is damaged", folder.join(INSTALL_RECORD).display()))
                    .with_source(error)
                    .with_hint("install the model again")
            })?,
            Err(_) => InstallRecord::default(),
        };
        let graph = graph_of(&folder, &record)?;
        let tokenizer = folder.join("tokenizer.json");
        if !tokenizer.is_file() {
            return Err(Error::not_found(format!("{} has no tokenizer.json", folder.display()))
                .with_hint("download it into this folder; vocab.txt alone is not enough"));
        }
        let digest = digest_of(&graph, &tokenizer)?;
        let graph_folder = graph.parent().unwrap_or(&folder);
        let weights = digest.weights.iter().map(|name| graph_folder.join(name));
        let bytes = weights.chain([graph.clone()]).map(|path| size_of(&path)).sum();
        let metadata = Metadata::read(&folder);
        Ok(Self {
            weights: digest.weights,
            is_batch_dependent: digest.is_batch_dependent,
            bytes,
            dimensions: Some(record.dimensions)
                .filter(|&dimensions| dimensions > 0)
                .or(metadata.dimensions()),
            pooling: record.pooling.unwrap_or(metadata.pooling()),
            output: record.output,
            max_tokens: metadata.max_tokens(),
            query_prefix: Some(record.query_prefix)
                .filter(|text| !text.is_empty())
                .unwrap_or(metadata.prompt(&["query"])),
            passage_prefix: Some(record.passage_prefix)
                .filter(|text| !text.is_empty())
                .unwrap_or(metadata.prompt(&["passage", "document"])),
            fingerprint: digest.fingerprint,
            graph,
            folder,
        })
    }

    /// Reads the files of the tokenizer. Settings that a loader requires and the files lack are generated.
    ///
    /// # Errors
    /// Returns `Io` if a file cannot be read, and `Invalid` if `tokenizer.json` is not JSON.
    pub fn tokenizer(&self, max_tokens: usize) -> Result<TokenizerData> {
        let path = self.folder.join("tokenizer.json");
        let tokenizer = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
        let parsed: Value = serde_json::from_slice(&tokenizer)
            .map_err(|error| Error::invalid(format!("{} is not JSON", path.display())).with_source(error))?;
        let mut settings = object(&self.folder.join("tokenizer_config.json"));
        if !settings.get("model_max_length").is_some_and(Value::is_number) {
            settings["model_max_length"] = json!(max_tokens);
        }
        let pad_token = settings.get("pad_token");
        if !pad_token.is_some_and(|pad_token| pad_token.is_string() || pad_token.get("content").is_some()) {
            settings["pad_token"] = json!(find_pad_token(&parsed));
        }
        Ok(TokenizerData {
            tokenizer,
            config: object(&self.folder.join("config.json")).to_string().into_bytes(),
            special: object(&self.folder.join("special_tokens_map.json")).to_string().into_bytes(),
            settings: settings.to_string().into_bytes(),
        })
    }
}

/// The usual metadata files of a model.
struct Metadata {
    config: Value,
    sentence: Value,
    tokenizer: Value,
    pooling: Value,
    prompts: Value,
}

impl Metadata {
    fn read(folder: &Path) -> Self {
        let file = |name: &str| object(&folder.join(name));
        Self {
            config: file("config.json"),
            sentence: file("sentence_bert_config.json"),
            tokenizer: file("tokenizer_config.json"),
            pooling: file("1_Pooling/config.json"),
            prompts: file("config_sentence_transformers.json"),
        }
    }

    fn dimensions(&self) -> Option<usize> {
        let pooled = self.pooling.get("word_embedding_dimension");
        let names = ["hidden_size", "dim", "d_model", "n_embd"];
        let found = pooled.or_else(|| names.iter().find_map(|name| self.config.get(name)));
        number(found)
    }

    fn pooling(&self) -> Pooling {
        let is_cls = self.pooling.get("pooling_mode_cls_token").and_then(Value::as_bool) == Some(true);
        if is_cls { Pooling::Cls } else { Pooling::Mean }
    }

    fn max_tokens(&self) -> usize {
        let limits = [
            self.sentence.get("max_seq_length"),
            self.tokenizer.get("model_max_length"),
            self.config.get("max_position_embeddings"),
        ];
        // An unlimited length is written as a huge number.
        let limit = limits.into_iter().find_map(number).unwrap_or(MAX_TOKENS);
        limit.clamp(8, MAX_TOKENS)
    }

    fn prompt(&self, names: &[&str]) -> String {
        let prompts = self.prompts.get("prompts");
        let found = names.iter().find_map(|name| prompts?.get(name)?.as_str());
        found.unwrap_or_default().to_owned()
    }
}

fn number(value: Option<&Value>) -> Option<usize> {
    let value = value?.as_f64().filter(|number| *number >= 1.0)?;
    Some(value.min(1e9) as usize)
}

/// Reads a JSON object from a file. The result is empty if the file does not contain one.
fn object(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// Finds the token that pads the sequences of a batch.
fn find_pad_token(tokenizer: &Value) -> String {
    let set = tokenizer.pointer("/padding/pad_token").and_then(Value::as_str);
    let added = tokenizer.get("added_tokens").and_then(Value::as_array).into_iter().flatten();
    let mut names = added.filter_map(|token| token.get("content")?.as_str());
    set.or_else(|| names.find(|name| name.to_lowercase().contains("pad_token"))).unwrap_or("[PAD]").to_owned()
}

/// Finds the graph of the model in a folder.
fn graph_of(folder: &Path, record: &InstallRecord) -> Result<PathBuf> {
    if !record.graph.is_empty() {
        // Sidenote writes the install record, but the folder can come from elsewhere, so the path must not leave it.
        let graph = Path::new(&record.graph);
        let is_inside = graph.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let path = folder.join(graph);
        return if is_inside && path.is_file() {
            Ok(path)
        } else {
            Err(Error::not_found(format!("{} does not exist", path.display()))
                .with_hint("install the model again"))
        };
    }
    if let Some(path) = GRAPHS.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        return Ok(path);
    }
    let mut found: Vec<PathBuf> = [folder.to_owned(), folder.join("onnx")]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "onnx"))
        .collect();
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Error::not_found(format!("{} contains no ONNX model", folder.display()))
            .with_hint("download model.onnx, or export the model to ONNX")),
        several => {
            let names: Vec<_> = several
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy())
                .collect();
            Err(Error::invalid(format!("{} contains several models: {}", folder.display(), names.join(", ")))
                .with_hint("keep only one of them, or rename one to model.onnx"))
        }
    }
}

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Returns the sizes and modification times of files. Files with equal stamps are taken to be equal.
fn stamp_of(paths: &[PathBuf]) -> String {
    let times = paths.iter().map(|path| {
        let found = std::fs::metadata(path).ok();
        let changed = found.as_ref().and_then(|found| found.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        format!("{}:{}", found.map_or(0, |found| found.len()), changed.map_or(0, |time| time.as_nanos()))
    });
    times.collect::<Vec<_>>().join(" ")
}

/// Returns the digest of a model from the cache, or computes it. Hashing a large model takes seconds.
fn digest_of(graph: &Path, tokenizer: &Path) -> Result<Digest> {
    let cache = user_cache().map(|folder| folder.join("models.json"));
    let mut known: BTreeMap<PathBuf, Digest> = cache
        .as_ref()
        .and_then(|path| std::fs::read(path).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let files = |weights: &[String]| {
        let folder = graph.parent().unwrap_or(Path::new(""));
        let mut files = vec![graph.to_owned(), tokenizer.to_owned()];
        files.extend(weights.iter().map(|name| folder.join(name)));
        files
    };
    if let Some(digest) = known.get(graph).filter(|digest| digest.stamp == stamp_of(&files(&digest.weights)))
    {
        return Ok(digest.clone());
    }
    let bytes = std::fs::read(graph).map_err(|error| Error::io("read", graph, error))?;
    let weights = weights_of(graph, &bytes);
    let mut hasher = blake3::Hasher::new();
    let paths = files(&weights);
    for path in &paths {
        let file = std::fs::File::open(path).map_err(|error| Error::io("open", path, error))?;
        hasher.update_reader(file).map_err(|error| Error::io("read", path, error))?;
    }
    let digest = Digest {
        stamp: stamp_of(&paths),
        fingerprint: hasher.finalize().to_hex().get(..16).unwrap_or_default().to_owned(),
        is_batch_dependent: memmem::find(&bytes, BATCH_DEPENDENT_OPERATOR).is_some(),
        weights,
    };
    if known.len() >= MAX_DIGESTS {
        known.retain(|path, _| path.exists());
    }
    known.insert(graph.to_owned(), digest.clone());
    if let Some(path) = cache {
        save_digests(&path, &known);
    }
    Ok(digest)
}

/// Writes the digests to the cache file. A failure is only logged, because the digests can be computed again.
fn save_digests(path: &Path, known: &BTreeMap<PathBuf, Digest>) {
    let folder = path.parent().unwrap_or(Path::new(""));
    #[expect(clippy::disallowed_methods, reason = "the cache's own folder")]
    let made = std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error));
    let text = serde_json::to_vec(known)
        .map_err(|error| Error::internal("cannot serialize the digests").with_source(error));
    if let Err(error) = made.and(text).and_then(|text| replace_own(path, &text)) {
        tracing::debug!("the digests of models cannot be cached: {error}");
    }
}

/// Finds the files next to a graph whose names it contains: its weights.
fn weights_of(graph: &Path, bytes: &[u8]) -> Vec<String> {
    let Some(entries) = graph.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let names = entries.flatten().filter(|entry| entry.path() != graph && entry.path().is_file());
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let other = ["onnx", "json", "txt", "md", "py"];
            let end = Path::new(name).extension().and_then(|end| end.to_str()).unwrap_or_default();
            !other.contains(&end) && memmem::find(bytes, name.as_bytes()).is_some()
        })
        .collect();
    names.sort();
    names
}
