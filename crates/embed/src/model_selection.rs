//! Selects the embedder and the reranker from the settings, and records the settings of earlier models so that they can
//! be opened again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sidenote_base::atomic_file::replace_own;
use sidenote_base::error::{Error, Result};
use sidenote_base::wording::Wording;
use sidenote_config::{EmbedConfig, RerankConfig, Secret, data_folder};
use sidenote_vectors::passage_key;

use crate::{CrossEncoder, E5, Embed, ModelId, OnnxEmbedder, OpenAi, Rerank, e5, onnx};

/// The name of the built-in embedder.
const BUILT_IN: &str = e5::NAME;
/// The name of an earlier built-in embedder, which settings can still have.
const FORMER_BUILT_IN: &str = "minilm";
/// The most earlier models whose settings are recorded.
const MAX_USED_MODELS: usize = 32;

/// The model that the settings select, and the problem with it if there is one.
#[derive(Debug, Clone)]
pub struct Selection<T: ?Sized> {
    /// The model, if one is available.
    pub model: Option<Arc<T>>,
    /// The reason why the configured model is not available.
    pub problem: Option<Wording>,
}

impl<T: ?Sized> Selection<T> {
    fn of(model: Arc<T>) -> Self {
        Self { model: Some(model), problem: None }
    }

    fn none(problem: &Error) -> Self {
        Self { model: None, problem: Some(problem_of(problem)) }
    }
}

/// Selects the embedder (docs/spec/search.md, Embedders). If the configured model is not available, the provider `auto`
/// falls back to the built-in model, and others to none; then searches use words only. This is not an error, because a
/// search must go on.
///
/// # Errors
/// Returns `Invalid` if the provider does not exist.
pub fn embedder(config: &EmbedConfig) -> Result<Selection<dyn Embed>> {
    let built_in = || -> Arc<dyn Embed> { Arc::new(E5::default()) };
    let is_configured = !config.model.trim().is_empty() || !config.dir.as_os_str().is_empty();
    match config.provider.as_str() {
        "none" => Ok(Selection { model: None, problem: None }),
        "auto" if is_configured => Ok(match onnx_embedder(config) {
            Ok(model) => Selection::of(model),
            Err(error) => Selection { model: Some(built_in()), problem: Some(problem_of(&error)) },
        }),
        BUILT_IN | FORMER_BUILT_IN | "auto" => Ok(Selection::of(built_in())),
        "fastembed" => Ok(OnnxEmbedder::new(config).map_or_else(
            |error| Selection::none(&error),
            |model| Selection::of(Arc::new(model) as Arc<dyn Embed>),
        )),
        "openai" => Ok(OpenAi::new(config).map_or_else(
            |error| Selection::none(&error),
            |model| Selection::of(Arc::new(model) as Arc<dyn Embed>),
        )),
        other => Err(unknown_provider(other)),
    }
}

/// The embedders of a process that opens several vaults. Vaults with the same settings share one.
#[derive(Debug, Clone, Default)]
pub struct Embedders {
    opened: Arc<Mutex<Vec<OpenedEmbedder>>>,
}

/// An embedder that was opened, and its settings.
type OpenedEmbedder = (EmbedConfig, Option<Arc<dyn Embed>>, Option<Wording>);

impl Embedders {
    /// Selects the embedder as [`embedder`] does, or the one that another vault with the same settings has.
    ///
    /// # Errors
    /// Returns `Invalid` if the provider does not exist.
    pub fn select(&self, config: &EmbedConfig) -> Result<Selection<dyn Embed>> {
        // Whether vectors are shared says nothing about the model.
        let settings = EmbedConfig { share: false, ..config.clone() };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, model, problem)) = opened.iter().find(|(known, ..)| *known == settings) {
            return Ok(Selection { model: model.clone(), problem: problem.clone() });
        }
        let selection = embedder(config)?;
        opened.push((settings, selection.model.clone(), selection.problem.clone()));
        Ok(selection)
    }
}

/// Checks that a provider exists.
///
/// # Errors
/// Returns `Invalid` if it does not.
pub fn check_provider(provider: &str) -> Result<()> {
    let known = ["none", "auto", BUILT_IN, FORMER_BUILT_IN, "fastembed", "openai"];
    if known.contains(&provider) { Ok(()) } else { Err(unknown_provider(provider)) }
}

fn unknown_provider(provider: &str) -> Error {
    Error::invalid(format!("embed.provider is {provider:?}, which is not a known embedder"))
        .with_hint("use auto, e5, fastembed, openai or none")
}

/// Selects the reranker. There is none if none is configured.
pub fn reranker(config: &RerankConfig, embed: &EmbedConfig) -> Selection<dyn Rerank> {
    if !config.is_set() {
        return Selection { model: None, problem: None };
    }
    match CrossEncoder::new(config, embed.onnxruntime.clone()) {
        Ok(model) => Selection::of(Arc::new(model)),
        Err(error) => Selection::none(&error),
    }
}

/// Creates the ONNX embedder if it can run. The runtime library is located, but not loaded.
fn onnx_embedder(config: &EmbedConfig) -> Result<Arc<dyn Embed>> {
    let model = OnnxEmbedder::new(config)?;
    onnx::runtime::find(&config.onnxruntime)?;
    Ok(Arc::new(model))
}

fn problem_of(error: &Error) -> Wording {
    error.wording().cloned().unwrap_or_default().after(&error.to_string())
}

/// A model that was used, with the settings that select it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct UsedModel {
    key: String,
    settings: EmbedConfig,
}

/// Finds embedders that were configured earlier, so that their vectors can be used until those of a new model are
/// computed.
///
/// The settings are recorded in the user's own folder and never in a vault, because a vault can be a download.
#[derive(Debug, Clone, Default)]
pub struct PreviousModels {
    settings: Option<EmbedConfig>,
}

impl PreviousModels {
    /// Creates the lookup of models that were used before the one that these settings select.
    pub fn before(config: &EmbedConfig) -> Self {
        Self { settings: Some(config.clone()) }
    }

    /// Opens the embedder whose [key](model_key) is `wanted`, if that is still possible.
    pub fn find(&self, wanted: i64) -> Option<Arc<dyn Embed>> {
        let current = self.settings.as_ref()?;
        let fits = |model: &Arc<dyn Embed>| model_key(model.model()) == wanted;
        let built_in: Arc<dyn Embed> = Arc::new(E5::default());
        if fits(&built_in) {
            return Some(built_in);
        }
        let used = read_used().into_iter().find(|used| passage_key(&used.key) == wanted)?;
        let mut settings = used.settings;
        // A user who no longer uses an endpoint does not expect requests to it.
        if settings.provider == "openai" && current.provider != "openai" {
            return None;
        }
        settings.api_key =
            if settings.base_url == current.base_url { current.api_key.clone() } else { Secret::default() };
        embedder(&settings).ok()?.model.filter(fits)
    }
}

/// Returns the number that identifies a model in the catalog.
pub fn model_key(id: &ModelId) -> i64 {
    passage_key(&id.key())
}

fn used_file() -> Option<PathBuf> {
    Some(data_folder()?.join("used-models.json"))
}

fn read_used() -> Vec<UsedModel> {
    let bytes = used_file().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Records the settings of a model, so that it can be opened after a change of the settings. A failure is only logged:
/// without the record, searches use words only until the vectors of the new model are computed.
pub fn record_used(config: &EmbedConfig, id: &ModelId) {
    if id.name() == BUILT_IN {
        return;
    }
    let mut used = read_used();
    let new =
        UsedModel { key: id.key(), settings: EmbedConfig { api_key: Secret::default(), ..config.clone() } };
    if used.contains(&new) {
        return;
    }
    used.retain(|used| used.key != new.key);
    used.insert(0, new);
    used.truncate(MAX_USED_MODELS);
    let Some(path) = used_file() else { return };
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "the user's own folder")]
    let made = std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error));
    let text = serde_json::to_vec_pretty(&used)
        .map_err(|error| Error::internal("cannot serialize the settings of a model").with_source(error));
    if let Err(error) = made.and(text).and_then(|text| replace_own(&path, &text)) {
        tracing::debug!("the settings of the model cannot be recorded: {error}");
    }
}
