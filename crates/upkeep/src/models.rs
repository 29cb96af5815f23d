//! Lists, sets, installs and verifies models.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_config::{Config, ConfigEdit, Origin, SettingChange, edit_user_file};
use sidenote_embed::download::Progress;
use sidenote_embed::model_files::{ModelFiles, folder_of};
use sidenote_embed::onnx::{ListedModel, find_listed, listed_embedders, listed_rerankers};
use sidenote_embed::{
    CrossEncoder, E5, Effort, Embed, OnnxEmbedder, OpenAi, Rerank, download, model_selection, onnx,
};
use sidenote_vault::location::Location;

/// Three texts, of which the first two have a similar meaning.
const TEXTS: [&str; 3] = [
    "The cat is asleep on the warm windowsill.",
    "A kitten naps by the sunny window.",
    "The central bank raised its interest rates again.",
];

/// A question, its answer, and a text that is not an answer.
const QUESTION: &str = "how often do tomatoes need water";

const ANSWERS: [&str; 2] =
    ["Tomatoes need a deep watering twice a week.", "The bridge over the river was opened in 1932."];

/// The tolerance for rounding between vectors of the same text.
const SAME: f32 = 0.99;

/// The time limit for trying a reranker.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Computes vectors.
    Embedder,
    /// Reranks the best hits.
    Reranker,
}

/// A model that is available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelItem {
    /// The name of the model.
    pub name: String,
    /// The purpose of the model.
    pub kind: ModelKind,
    /// The origin: `built in`, its repository on the hub, its folder, or `endpoint`.
    pub source: String,
    /// The length of its vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// Whether it can be used without an installation.
    pub installed: bool,
    /// Whether the settings select it.
    pub in_use: bool,
    /// A description of the model.
    pub about: String,
}

/// A model as selected by the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelState {
    /// The name, or `none`.
    pub name: String,
    /// The length of its vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// The number of tokens that it reads of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// The key by which its vectors are identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Why the selected model is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The models that the settings select.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelsShown {
    /// `embed.provider`.
    pub provider: String,
    /// The embedder.
    pub embedder: ModelState,
    /// The reranker.
    pub reranker: ModelState,
    /// The library of the ONNX runtime, if it was found.
    pub onnxruntime: Option<PathBuf>,
}

/// The model to select.
#[derive(Debug, Clone, Default)]
pub struct ModelUse {
    /// A name of the list, `openai:MODEL`, `e5`, `auto` or `none`.
    pub name: String,
    /// The URL of the endpoint.
    pub base_url: Option<String>,
    /// The length of its vectors.
    pub dimensions: Option<usize>,
    /// Whether `none` deselects the reranker.
    pub rerank: bool,
}

/// The result of a change of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelSet {
    /// The change of the user's settings file.
    #[serde(flatten)]
    pub edited: ConfigEdit,
    /// Notes on obstacles and next steps.
    pub notes: Vec<String>,
}

/// An installed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The number of downloaded bytes.
    pub bytes: u64,
    /// Whether it was installed already.
    pub was_there: bool,
}

/// The result of one test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// The name of the test.
    pub what: String,
    /// The outcome.
    pub found: String,
    /// Whether the test succeeded.
    pub ok: bool,
}

/// A model that was verified.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verified {
    /// The purpose of the model.
    pub kind: ModelKind,
    /// Its name.
    pub name: String,
    /// The milliseconds for loading the model and the first texts.
    pub load_ms: f64,
    /// The milliseconds for another text.
    pub text_ms: f64,
    /// The results of the tests.
    pub checks: Vec<Check>,
}

impl Verified {
    /// Returns whether all tests succeeded.
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }
}

/// The models of a user, and the settings that select among them.
#[derive(Debug)]
pub struct Models {
    config: Config,
}

impl Models {
    /// Reads the settings of a vault, or of the current folder if no vault is given.
    ///
    /// # Errors
    /// `Invalid` if the settings cannot be parsed; `Io` if they cannot be read.
    pub fn open(vault: Option<&Path>, flags: &[(&str, String, &str)]) -> Result<Self> {
        Ok(Self { config: Config::load(&Location::of_settings(vault)?, flags)? })
    }

    /// Lists all models with a name.
    ///
    /// # Errors
    /// `Invalid` if there is no such provider.
    pub fn list(&self) -> Result<Vec<ModelItem>> {
        let shown = self.show()?;
        let is_there = |listed: &ListedModel| folder_of(&listed.name).is_some_and(|folder| folder.is_dir());
        let built_in = E5::default();
        let mut items = vec![ModelItem {
            name: built_in.model().to_string(),
            kind: ModelKind::Embedder,
            source: "built in".to_owned(),
            dimensions: Some(built_in.dimensions()),
            installed: true,
            in_use: shown.embedder.name == built_in.model().name(),
            about: "multilingual-e5-small, 100 languages".to_owned(),
        }];
        items.push(ModelItem {
            name: "openai:MODEL".to_owned(),
            kind: ModelKind::Embedder,
            source: "endpoint".to_owned(),
            dimensions: None,
            installed: true,
            in_use: shown.provider == "openai",
            about: "any endpoint that speaks OpenAI's /v1/embeddings".to_owned(),
        });
        let reranked_by = shown.reranker.name.clone();
        let embedded_by = shown.embedder.name.clone();
        let listed = |kind, in_use: String| {
            move |listed: ListedModel| ModelItem {
                installed: is_there(&listed),
                in_use: listed.name == in_use,
                kind,
                dimensions: Some(listed.dimensions).filter(|told| *told > 0),
                name: listed.name,
                source: listed.source,
                about: listed.about,
            }
        };
        items.extend(listed_embedders().into_iter().map(listed(ModelKind::Embedder, embedded_by)));
        items.extend(listed_rerankers().into_iter().map(listed(ModelKind::Reranker, reranked_by)));
        let states = [(ModelKind::Embedder, shown.embedder), (ModelKind::Reranker, shown.reranker)];
        for (kind, state) in states {
            let is_listed = items.iter().any(|item| item.kind == kind && item.name == state.name);
            if let (Some(folder), false) = (state.folder, is_listed) {
                items.push(ModelItem {
                    name: state.name,
                    kind,
                    source: folder.display().to_string(),
                    dimensions: state.dimensions,
                    installed: true,
                    in_use: true,
                    about: "a folder".to_owned(),
                });
            }
        }
        Ok(items)
    }

    /// Returns the models that the settings select, without loading them.
    ///
    /// # Errors
    /// `Invalid` if there is no such provider.
    pub fn show(&self) -> Result<ModelsShown> {
        let (embed, rerank) = (&self.config.embed, &self.config.rerank);
        let chosen = model_selection::embedder(embed)?;
        let model = chosen.model.as_deref();
        let folder =
            OnnxEmbedder::new(embed).ok().map(|model| (model.model().clone(), model.files().folder.clone()));
        let embedder = ModelState {
            name: model.map_or_else(|| "none".to_owned(), |model| model.model().to_string()),
            dimensions: model.map(Embed::dimensions),
            max_tokens: model.map(Embed::max_tokens),
            fingerprint: model.map(|model| model.model().fingerprint().to_owned()),
            folder: folder
                .filter(|(id, _)| model.is_some_and(|model| model.model() == id))
                .map(|(_, folder)| folder),
            trouble: chosen.problem.as_ref().map(ToString::to_string),
        };
        let chosen = model_selection::reranker(rerank, embed);
        let reader =
            chosen.model.as_ref().and_then(|_| CrossEncoder::new(rerank, embed.onnxruntime.clone()).ok());
        let reranker = ModelState {
            name: chosen.model.as_ref().map_or_else(|| "none".to_owned(), |model| model.name().to_owned()),
            dimensions: None,
            max_tokens: reader.as_ref().map(|reader| reader.files().max_tokens),
            fingerprint: reader.as_ref().map(|reader| reader.files().fingerprint.clone()),
            folder: reader.map(|reader| reader.files().folder.clone()),
            trouble: chosen.problem.as_ref().map(ToString::to_string),
        };
        Ok(ModelsShown {
            provider: embed.provider.clone(),
            embedder,
            reranker,
            onnxruntime: onnx::runtime::find(&embed.onnxruntime).ok(),
        })
    }

    /// Selects a model by its name in the user's settings.
    ///
    /// # Errors
    /// `NotFound` if there is no such model, or it is not installed; `Invalid` or `Io` if the user's settings cannot be
    /// changed.
    pub fn choose(&self, want: &ModelUse, dry_run: bool) -> Result<ModelSet> {
        let name = want.name.trim();
        let mut notes = Vec::new();
        let provider = |name: &str| ("embed.provider", SettingChange::Text(name.to_owned()));
        let mut changes = match name {
            "none" if want.rerank => rerank_by("", None),
            "none" | "e5" => vec![provider(name)],
            // The name of the model that was built in before, which scripts can have.
            "minilm" => vec![provider("e5")],
            "auto" => vec![
                provider(name),
                ("embed.model", SettingChange::Unset),
                ("embed.dir", SettingChange::Unset),
            ],
            _ if name == "openai" || name.starts_with("openai:") => self.endpoint(want)?,
            _ => match find_listed(&listed_rerankers(), name) {
                Ok(listed) => {
                    let changes = rerank_by(&listed.name, None);
                    let config = sidenote_config::RerankConfig {
                        model: listed.name.clone(),
                        dir: PathBuf::new(),
                        ..self.config.rerank.clone()
                    };
                    CrossEncoder::new(&config, PathBuf::new())?;
                    changes
                }
                Err(_) => {
                    let all = listed_embedders();
                    let listed = find_listed(&all, name)?;
                    let config = sidenote_config::EmbedConfig {
                        model: listed.name.clone(),
                        dir: PathBuf::new(),
                        dimensions: 0,
                        ..self.config.embed.clone()
                    };
                    OnnxEmbedder::new(&config)?;
                    embed_by(&listed.name, None)
                }
            },
        };
        if want.dimensions.is_some() && !name.starts_with("openai") {
            return Err(Error::invalid("a number of dimensions can only be given for openai:MODEL"));
        }
        let runs_onnx = changes.iter().any(|change| {
            *change == provider("fastembed") || matches!(change, ("rerank.model", SettingChange::Text(_)))
        });
        if runs_onnx && let Err(error) = onnx::runtime::find(&self.config.embed.onnxruntime) {
            notes.push(format!("{error}; {}", error.hint().unwrap_or_default()));
        }
        self.set(&mut changes, notes, dry_run)
    }

    /// Selects a model in a folder, after checking that it works.
    ///
    /// # Errors
    /// `Invalid` if the folder has no model of this kind that works; `NotFound` or `Io` if its files cannot be read.
    pub fn choose_folder(&self, folder: &Path, rerank: bool, dry_run: bool) -> Result<ModelSet> {
        let kept = ModelFiles::open(folder)?;
        let dir = kept.folder;
        let tried = if rerank {
            let config = sidenote_config::RerankConfig {
                model: String::new(),
                dir: dir.clone(),
                ..self.config.rerank.clone()
            };
            verify_reranker(&CrossEncoder::new(&config, self.config.embed.onnxruntime.clone())?)?
        } else {
            let config = sidenote_config::EmbedConfig {
                model: String::new(),
                dir: dir.clone(),
                ..self.config.embed.clone()
            };
            verify_embedder(&OnnxEmbedder::new(&config)?)?
        };
        if let Some(failed) = tried.checks.iter().find(|check| !check.ok) {
            return Err(Error::invalid(format!(
                "the model in {} is not fit: {}: {}",
                dir.display(),
                failed.what,
                failed.found
            ))
            .with_hint(if rerank {
                "is it a cross-encoder?"
            } else {
                "is it a sentence transformer?"
            }));
        }
        let mut changes = if rerank { rerank_by("", Some(&dir)) } else { embed_by("", Some(&dir)) };
        self.set(&mut changes, vec![format!("{} was tested and works", tried.name)], dry_run)
    }

    /// Downloads a model by its name to the user's folder of models.
    ///
    /// # Errors
    /// `NotFound` if there is no such model, or the hub lacks one of its files; `Io` if the hub cannot be reached or
    /// the files cannot be written.
    pub fn install(&self, name: &str, heard: &Progress<'_>) -> Result<Installed> {
        let all: Vec<ListedModel> = listed_embedders().into_iter().chain(listed_rerankers()).collect();
        let listed = find_listed(&all, name.trim())?;
        let fetched = download::fetch(listed, heard)?;
        Ok(Installed {
            name: listed.name.clone(),
            folder: fetched.folder,
            bytes: fetched.bytes,
            was_there: fetched.was_installed,
        })
    }

    /// Loads the selected models and verifies them with texts of known similarity.
    ///
    /// # Errors
    /// An error of the embedder or reranker in the settings, if it cannot be found, loaded or run.
    pub fn verify(&self) -> Result<Vec<Verified>> {
        let (embed, rerank) = (&self.config.embed, &self.config.rerank);
        let is_set = !embed.model.trim().is_empty() || !embed.dir.as_os_str().is_empty();
        let mut tried = Vec::new();
        match embed.provider.as_str() {
            "fastembed" => tried.push(verify_embedder(&OnnxEmbedder::new(embed)?)?),
            "auto" if is_set => tried.push(verify_embedder(&OnnxEmbedder::new(embed)?)?),
            "openai" => tried.push(verify_embedder(&OpenAi::new(embed)?)?),
            "none" => {}
            // Other words are rejected here.
            _ => tried.extend(
                model_selection::embedder(embed)?.model.map(|model| verify_embedder(&*model)).transpose()?,
            ),
        }
        if rerank.is_set() {
            tried.push(verify_reranker(&CrossEncoder::new(rerank, embed.onnxruntime.clone())?)?);
        }
        Ok(tried)
    }

    fn endpoint(&self, want: &ModelUse) -> Result<Vec<(&'static str, SettingChange)>> {
        let model = want.name.trim().strip_prefix("openai:").unwrap_or_default().trim();
        let mut config = sidenote_config::EmbedConfig {
            model: if model.is_empty() { self.config.embed.model.clone() } else { model.to_owned() },
            ..self.config.embed.clone()
        };
        if model != self.config.embed.model {
            config.dimensions = 0;
        }
        config.dimensions = want.dimensions.unwrap_or(config.dimensions);
        if let Some(base_url) = &want.base_url {
            config.base_url.clone_from(base_url);
        }
        OpenAi::new(&config)?;
        let number = i64::try_from(config.dimensions).unwrap_or(0);
        Ok(vec![
            ("embed.provider", SettingChange::Text("openai".to_owned())),
            ("embed.model", SettingChange::Text(config.model)),
            ("embed.dir", SettingChange::Unset),
            (
                "embed.dimensions",
                if number == 0 { SettingChange::Unset } else { SettingChange::Number(number) },
            ),
            match &want.base_url {
                Some(base_url) => ("embed.base_url", SettingChange::Text(base_url.clone())),
                None => ("embed.base_url", self.as_it_was("embed.base_url", &self.config.embed.base_url)),
            },
        ])
    }

    /// Returns a setting as the user's file has it.
    fn as_it_was(&self, key: &str, value: &str) -> SettingChange {
        let entry = self.config.entries().find(|(name, ..)| *name == key);
        match entry {
            Some((_, _, Origin::User(_))) => SettingChange::Text(value.to_owned()),
            _ => SettingChange::Unset,
        }
    }

    fn set(
        &self,
        changes: &mut Vec<(&'static str, SettingChange)>,
        mut notes: Vec<String>,
        dry_run: bool,
    ) -> Result<ModelSet> {
        changes.dedup_by(|a, b| a.0 == b.0);
        let edited = edit_user_file(changes, dry_run)?;
        for (key, ..) in changes.iter() {
            let origin = self.config.entries().find(|(name, ..)| name == key).map(|(_, _, origin)| origin);
            if let Some(origin @ (Origin::Env(_) | Origin::Flag(_))) = origin {
                notes.push(format!("{origin} also sets {key} and takes precedence"));
            }
        }
        if edited.applied && changes.iter().any(|(key, _)| key.starts_with("embed.")) {
            notes.push(
                "`sidenote index` embeds what has no vector of this model yet; until then the model before answers where \
                 it still runs, and words alone elsewhere"
                    .to_owned(),
            );
        }
        Ok(ModelSet { edited, notes })
    }
}

fn embed_by(model: &str, folder: Option<&Path>) -> Vec<(&'static str, SettingChange)> {
    vec![
        ("embed.provider", SettingChange::Text("fastembed".to_owned())),
        ("embed.model", text_or_unset(model)),
        (
            "embed.dir",
            folder.map_or(SettingChange::Unset, |folder| SettingChange::Text(folder.display().to_string())),
        ),
        ("embed.dimensions", SettingChange::Unset),
    ]
}

fn rerank_by(model: &str, folder: Option<&Path>) -> Vec<(&'static str, SettingChange)> {
    vec![
        ("rerank.model", text_or_unset(model)),
        (
            "rerank.dir",
            folder.map_or(SettingChange::Unset, |folder| SettingChange::Text(folder.display().to_string())),
        ),
    ]
}

fn text_or_unset(text: &str) -> SettingChange {
    if text.is_empty() { SettingChange::Unset } else { SettingChange::Text(text.to_owned()) }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn ms(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e4).round() / 10.0
}

fn verify_embedder(model: &dyn Embed) -> Result<Verified> {
    let begun = Instant::now();
    let vectors = model.embed(&TEXTS, Effort::Foreground)?;
    let load_ms = ms(begun);
    let begun = Instant::now();
    let alone = model.embed(&TEXTS[..1], Effort::Foreground)?;
    let text_ms = ms(begun);
    let query = model.embed_query(TEXTS[0])?;
    let (Some(first), [a, b, c]) = (alone.first(), vectors.as_slice()) else {
        return Err(Error::new(
            ErrorKind::Internal,
            "the embedder gave another number of vectors than of texts",
        ));
    };
    let (similar, unlike, same) = (cosine(a, b), cosine(a, c), cosine(a, first));
    let lengths = vectors.iter().chain([&query]).map(Vec::len);
    let is_unit = vectors.iter().all(|vector| (cosine(vector, vector) - 1.0).abs() < 1e-3);
    let check = |what: &str, found: String, ok| Check { what: what.to_owned(), found, ok };
    Ok(Verified {
        kind: ModelKind::Embedder,
        name: model.model().to_string(),
        load_ms,
        text_ms,
        checks: vec![
            check(
                "vectors have the stated length",
                format!("{} numbers", a.len()),
                lengths.into_iter().all(|length| length == model.dimensions()),
            ),
            check("vectors have length 1", if is_unit { "yes" } else { "no" }.to_owned(), is_unit),
            check(
                "texts that say the same are nearer than others",
                format!("cosine {similar:.3} against {unlike:.3}"),
                similar > unlike,
            ),
            check(
                "a text has the same vector alone and in a batch",
                format!("cosine {same:.4}"),
                same >= SAME,
            ),
        ],
    })
}

fn verify_reranker(model: &dyn Rerank) -> Result<Verified> {
    let begun = Instant::now();
    let scores = model.rerank(QUESTION, &ANSWERS, WAIT_LIMIT)?;
    let load_ms = ms(begun);
    let begun = Instant::now();
    model.rerank(QUESTION, &ANSWERS[..1], WAIT_LIMIT)?;
    let text_ms = ms(begun);
    let [answer, other] = scores.as_slice() else {
        return Err(Error::new(
            ErrorKind::Internal,
            "the reranker gave another number of scores than of texts",
        ));
    };
    Ok(Verified {
        kind: ModelKind::Reranker,
        name: model.name().to_owned(),
        load_ms,
        text_ms,
        checks: vec![Check {
            what: "an answer stands before a text that is none".to_owned(),
            found: format!("{answer:.3} against {other:.3}"),
            ok: answer > other,
        }],
    })
}
