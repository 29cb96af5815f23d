//! Owns which embedder and which reranker the settings mean, and by which settings an earlier model can be had again.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::{EmbedConfig, RerankConfig, Secret, data_folder};
use crate::error::{Error, Result};
use crate::index::embed::{CrossEncoder, Embed, MiniLm, ModelId, OnnxEmbedder, OpenAi, Rerank, onnx};
use crate::index::vectors::{passage_key, replace};
use crate::wording::Wording;

/// The embedder in the binary.
const BUILT_IN: &str = "minilm";
/// So many models that were used are known by their settings.
const MOST_USED: usize = 32;

/// The model that the settings lead to, and why it is not another.
#[derive(Debug, Clone)]
pub struct Chosen<T: ?Sized> {
    /// The model, if any.
    pub model: Option<Arc<T>>,
    /// Why the model that is set is not the one that answers.
    pub why_not: Option<Wording>,
}

impl<T: ?Sized> Chosen<T> {
    fn of(model: Arc<T>) -> Self {
        Self { model: Some(model), why_not: None }
    }

    fn none(why_not: &Error) -> Self {
        Self { model: None, why_not: Some(sentence(why_not)) }
    }
}

/// Chooses the embedder (spec/search.md, Embedders). Where the model that is set cannot be had, words answer alone, or
/// with `auto` the one in the binary; that is no failure, for a search must go on.
///
/// # Errors
/// `Invalid` for a provider that there is not.
pub fn embedder(config: &EmbedConfig) -> Result<Chosen<dyn Embed>> {
    let built_in = || -> Arc<dyn Embed> { Arc::new(MiniLm::default()) };
    let is_set = !config.model.trim().is_empty() || !config.dir.as_os_str().is_empty();
    match config.provider.as_str() {
        "none" => Ok(Chosen { model: None, why_not: None }),
        "auto" if is_set => Ok(match onnx_embedder(config) {
            Ok(model) => Chosen::of(model),
            Err(error) => Chosen { model: Some(built_in()), why_not: Some(sentence(&error)) },
        }),
        BUILT_IN | "auto" => Ok(Chosen::of(built_in())),
        "fastembed" => Ok(OnnxEmbedder::new(config).map_or_else(
            |error| Chosen::none(&error),
            |model| Chosen::of(Arc::new(model) as Arc<dyn Embed>),
        )),
        "openai" => Ok(OpenAi::new(config).map_or_else(
            |error| Chosen::none(&error),
            |model| Chosen::of(Arc::new(model) as Arc<dyn Embed>),
        )),
        other => Err(unknown(other)),
    }
}

/// Refuses a provider that there is not.
///
/// # Errors
/// `Invalid` for such a one.
pub fn refuse_unknown(provider: &str) -> Result<()> {
    let known = ["none", "auto", BUILT_IN, "fastembed", "openai"];
    if known.contains(&provider) { Ok(()) } else { Err(unknown(provider)) }
}

fn unknown(provider: &str) -> Error {
    Error::invalid(format!("embed.provider is {provider:?}, which is no embedder"))
        .with_hint("use auto, minilm, fastembed, openai or none")
}

/// Chooses the reranker; none where none is set.
pub fn reranker(config: &RerankConfig, embed: &EmbedConfig) -> Chosen<dyn Rerank> {
    if !config.is_set() {
        return Chosen { model: None, why_not: None };
    }
    match CrossEncoder::new(config, embed.onnxruntime.clone()) {
        Ok(model) => Chosen::of(Arc::new(model)),
        Err(error) => Chosen::none(&error),
    }
}

/// Makes the embedder of a folder where it could run: the library is looked for, and not loaded.
fn onnx_embedder(config: &EmbedConfig) -> Result<Arc<dyn Embed>> {
    let model = OnnxEmbedder::new(config)?;
    onnx::runtime::find(&config.onnxruntime)?;
    Ok(Arc::new(model))
}

fn sentence(error: &Error) -> Wording {
    error.wording().cloned().unwrap_or_default().after(&error.to_string())
}

/// A model that was used, and the settings that lead to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Used {
    key: String,
    settings: EmbedConfig,
}

/// Finds embedders that were set earlier, so that their vectors can serve until a new model's are there.
///
/// Their settings stand in the user's own folder, and never in a vault's: a vault can be a download.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    settings: Option<EmbedConfig>,
}

impl Earlier {
    /// Looks among the models that were used beside the one that these settings lead to.
    pub fn than(config: &EmbedConfig) -> Self {
        Self { settings: Some(config.clone()) }
    }

    /// Makes the embedder whose vectors are known by this number, [`key_of`] its id, where that is still possible.
    pub fn find(&self, wanted: i64) -> Option<Arc<dyn Embed>> {
        let now = self.settings.as_ref()?;
        let fits = |model: &Arc<dyn Embed>| key_of(model.model()) == wanted;
        let built_in: Arc<dyn Embed> = Arc::new(MiniLm::default());
        if fits(&built_in) {
            return Some(built_in);
        }
        let used = read_used().into_iter().find(|used| passage_key(&used.key) == wanted)?;
        let mut settings = used.settings;
        // Whoever turned away from an endpoint does not want to be heard there any more.
        if settings.provider == "openai" && now.provider != "openai" {
            return None;
        }
        settings.api_key =
            if settings.base_url == now.base_url { now.api_key.clone() } else { Secret::default() };
        embedder(&settings).ok()?.model.filter(fits)
    }
}

/// Gives the number that a model's vectors are known by in the catalog.
pub fn key_of(id: &ModelId) -> i64 {
    passage_key(&id.key())
}

fn used_file() -> Option<PathBuf> {
    Some(data_folder()?.join("used-models.json"))
}

fn read_used() -> Vec<Used> {
    let bytes = used_file().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Writes down by which settings a model can be had again. Without that, a change of model leaves words alone to answer
/// until the new vectors are there.
pub fn remember(config: &EmbedConfig, id: &ModelId) {
    if id.name() == BUILT_IN {
        return;
    }
    let mut used = read_used();
    let new = Used { key: id.key(), settings: EmbedConfig { api_key: Secret::default(), ..config.clone() } };
    if used.contains(&new) {
        return;
    }
    used.retain(|used| used.key != new.key);
    used.insert(0, new);
    used.truncate(MOST_USED);
    let Some(path) = used_file() else { return };
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "the user's own folder")]
    let made = std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error));
    let text = serde_json::to_vec_pretty(&used)
        .map_err(|error| Error::internal("cannot write down a model").with_source(error));
    if let Err(error) = made.and(text).and_then(|text| replace(&path, &text)) {
        tracing::debug!("the model is not remembered: {error}");
    }
}
