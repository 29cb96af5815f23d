//! Owns models that lie on the disk as folders: which files a model consists of, what they say of it, and by what it is
//! told from any other. Nothing here runs a model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{data_folder, user_cache};
use crate::error::{Error, Result};
use crate::index::vectors::replace;

/// What `model install` knew of a model, beside the files themselves.
pub const NOTE: &str = "sidenote.json";
/// Where the graph of a model mostly lies, the best first.
const GRAPHS: &[&str] = &[
    "model.onnx",
    "onnx/model.onnx",
    "model_optimized.onnx",
    "onnx/model_optimized.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
];
/// Passages are shorter than this, and memory grows with the square of it.
const MOST_TOKENS: usize = 512;
/// The operator whose scale is that of the whole batch.
const BATCH_BOUND: &[u8] = b"DynamicQuantizeLinear";
/// So many digests are remembered.
const MOST_DIGESTS: usize = 64;

/// How the states of the tokens become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean of all.
    #[default]
    Mean,
    /// The first alone.
    Cls,
}

/// What stands in [`NOTE`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// The name that it was installed under.
    pub name: String,
    /// Where it came from.
    pub source: String,
    /// The graph's file.
    pub graph: String,
    /// The length of a vector; 0 for what gives none.
    pub dimensions: usize,
    /// How states become a vector.
    pub pooling: Option<Pooling>,
    /// The output that is the vector, where its name is not one of the usual.
    pub output: Option<String>,
    /// What stands before a query.
    pub query_prefix: String,
    /// What stands before a passage.
    pub passage_prefix: String,
}

/// The files of a model, and what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The folder.
    pub folder: PathBuf,
    /// The graph's file.
    pub graph: PathBuf,
    /// Files beside the graph that hold its weights, by the names that it calls them.
    pub weights: Vec<String>,
    /// Whether a vector would depend on its neighbours in a batch.
    pub is_batch_bound: bool,
    /// Bytes of graph and weights.
    pub bytes: u64,
    /// The length of a vector, where the files tell.
    pub dimensions: Option<usize>,
    /// How states become a vector.
    pub pooling: Pooling,
    /// See [`Note::output`].
    pub output: Option<String>,
    /// How many tokens of a text the model sees.
    pub max_tokens: usize,
    /// What stands before a query.
    pub query_prefix: String,
    /// What stands before a passage.
    pub passage_prefix: String,
    /// 16 hexadecimal digits that change whenever graph, weights or tokenizer do.
    pub fingerprint: String,
}

/// What reading the graph told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Digest {
    /// Sizes and times of the files that were read.
    stamp: String,
    fingerprint: String,
    weights: Vec<String>,
    is_batch_bound: bool,
}

/// The bytes of a tokenizer's files, made up where there are none.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `config.json`.
    pub config: Vec<u8>,
    /// `special_tokens_map.json`.
    pub special: Vec<u8>,
    /// `tokenizer_config.json`.
    pub settings: Vec<u8>,
}

/// Gives the folder that `model install` puts a model in.
pub fn folder_of(name: &str) -> Option<PathBuf> {
    Some(data_folder()?.join("models").join(name))
}

impl Kept {
    /// Looks into a model's folder.
    ///
    /// # Errors
    /// `NotFound` where the folder, its graph or its tokenizer is missing; `Invalid` where it holds several graphs.
    pub fn open(folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder).map_err(|error| Error::io("find", folder, error))?;
        if !folder.is_dir() {
            return Err(Error::not_found(format!("there is no folder {}", folder.display()))
                .with_hint("give the folder of a model: model.onnx, tokenizer.json, config.json"));
        }
        let note: Note = match std::fs::read(folder.join(NOTE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Error::corrupt(format!("{} is damaged", folder.join(NOTE).display()))
                    .with_source(error)
                    .with_hint("install the model again")
            })?,
            Err(_) => Note::default(),
        };
        let graph = graph_of(&folder, &note)?;
        let tokenizer = folder.join("tokenizer.json");
        if !tokenizer.is_file() {
            return Err(Error::not_found(format!("{} has no tokenizer.json", folder.display()))
                .with_hint("download it beside the model; vocab.txt alone is not enough"));
        }
        let digest = digest_of(&graph, &tokenizer)?;
        let beside = graph.parent().unwrap_or(&folder);
        let weights = digest.weights.iter().map(|name| beside.join(name));
        let bytes = weights.chain([graph.clone()]).map(|path| size_of(&path)).sum();
        let said = Said::read(&folder);
        Ok(Self {
            weights: digest.weights,
            is_batch_bound: digest.is_batch_bound,
            bytes,
            dimensions: Some(note.dimensions).filter(|told| *told > 0).or(said.dimensions()),
            pooling: note.pooling.unwrap_or(said.pooling()),
            output: note.output,
            max_tokens: said.max_tokens(),
            query_prefix: Some(note.query_prefix)
                .filter(|text| !text.is_empty())
                .unwrap_or(said.prompt(&["query"])),
            passage_prefix: Some(note.passage_prefix)
                .filter(|text| !text.is_empty())
                .unwrap_or(said.prompt(&["passage", "document"])),
            fingerprint: digest.fingerprint,
            graph,
            folder,
        })
    }

    /// Reads the tokenizer's files; what a loader insists on and a folder lacks is made up from the rest.
    ///
    /// # Errors
    /// `Io` or `Invalid` where they cannot be read.
    pub fn tokens(&self, max_tokens: usize) -> Result<Tokens> {
        let path = self.folder.join("tokenizer.json");
        let tokenizer = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
        let parsed: Value = serde_json::from_slice(&tokenizer)
            .map_err(|error| Error::invalid(format!("{} is no JSON", path.display())).with_source(error))?;
        let mut settings = object(&self.folder.join("tokenizer_config.json"));
        if !settings.get("model_max_length").is_some_and(Value::is_number) {
            settings["model_max_length"] = json!(max_tokens);
        }
        let pad = settings.get("pad_token");
        if !pad.is_some_and(|pad| pad.is_string() || pad.get("content").is_some()) {
            settings["pad_token"] = json!(pad_of(&parsed));
        }
        Ok(Tokens {
            tokenizer,
            config: object(&self.folder.join("config.json")).to_string().into_bytes(),
            special: object(&self.folder.join("special_tokens_map.json")).to_string().into_bytes(),
            settings: settings.to_string().into_bytes(),
        })
    }
}

/// The usual files beside a model.
struct Said {
    config: Value,
    sentence: Value,
    tokenizer: Value,
    pooling: Value,
    prompts: Value,
}

impl Said {
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
        let told = [
            self.sentence.get("max_seq_length"),
            self.tokenizer.get("model_max_length"),
            self.config.get("max_position_embeddings"),
        ];
        // An unlimited length is written as a number beyond all others.
        let told = told.into_iter().find_map(number).unwrap_or(MOST_TOKENS);
        told.clamp(8, MOST_TOKENS)
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

/// Reads a JSON object; an empty one where there is none.
fn object(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// Finds the token that fills up a batch.
fn pad_of(tokenizer: &Value) -> String {
    let set = tokenizer.pointer("/padding/pad_token").and_then(Value::as_str);
    let added = tokenizer.get("added_tokens").and_then(Value::as_array).into_iter().flatten();
    let mut names = added.filter_map(|token| token.get("content")?.as_str());
    set.or_else(|| names.find(|name| name.to_lowercase().contains("pad"))).unwrap_or("[PAD]").to_owned()
}

fn graph_of(folder: &Path, note: &Note) -> Result<PathBuf> {
    if !note.graph.is_empty() {
        // The note is ours, but it may have come with a folder from elsewhere.
        let graph = Path::new(&note.graph);
        let stays = graph.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let path = folder.join(graph);
        return if stays && path.is_file() {
            Ok(path)
        } else {
            Err(Error::not_found(format!("{} is not there", path.display()))
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
        [] => Err(Error::not_found(format!("{} holds no model in ONNX form", folder.display()))
            .with_hint("download model.onnx, or export the model to ONNX")),
        several => {
            let names: Vec<_> = several
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy())
                .collect();
            Err(Error::invalid(format!("{} holds several models: {}", folder.display(), names.join(", ")))
                .with_hint("keep one of them there, or call it model.onnx"))
        }
    }
}

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Gives sizes and times of files: equal ones mean equal bytes.
fn stamp_of(paths: &[PathBuf]) -> String {
    let times = paths.iter().map(|path| {
        let found = std::fs::metadata(path).ok();
        let changed = found.as_ref().and_then(|found| found.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        format!("{}:{}", found.map_or(0, |found| found.len()), changed.map_or(0, |time| time.as_nanos()))
    });
    times.collect::<Vec<_>>().join(" ")
}

/// Hashes a model's files, or remembers what that gave: a large model takes seconds.
fn digest_of(graph: &Path, tokenizer: &Path) -> Result<Digest> {
    let memory = user_cache().map(|folder| folder.join("models.json"));
    let mut known: BTreeMap<PathBuf, Digest> = memory
        .as_ref()
        .and_then(|path| std::fs::read(path).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let files = |weights: &[String]| {
        let beside = graph.parent().unwrap_or(Path::new(""));
        let mut files = vec![graph.to_owned(), tokenizer.to_owned()];
        files.extend(weights.iter().map(|name| beside.join(name)));
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
        is_batch_bound: memmem::find(&bytes, BATCH_BOUND).is_some(),
        weights,
    };
    if known.len() >= MOST_DIGESTS {
        known.retain(|path, _| path.exists());
    }
    known.insert(graph.to_owned(), digest.clone());
    if let Some(path) = memory {
        remember(&path, &known);
    }
    Ok(digest)
}

/// Keeps what can be made again; without it the next start takes longer, and that is all.
fn remember(path: &Path, known: &BTreeMap<PathBuf, Digest>) {
    let folder = path.parent().unwrap_or(Path::new(""));
    #[expect(clippy::disallowed_methods, reason = "the cache's own folder")]
    let made = std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error));
    let text = serde_json::to_vec(known)
        .map_err(|error| Error::internal("cannot write down digests").with_source(error));
    if let Err(error) = made.and(text).and_then(|text| replace(path, &text)) {
        tracing::debug!("digests of models are not remembered: {error}");
    }
}

/// Finds the files beside a graph that it names: its weights.
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
