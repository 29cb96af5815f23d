//! Settings: their layers, their types, and the origin of each value. What a setting does is decided in the crate that
//! gets its value.
//!
//! Defaults < user file < vault file < environment < flags. An unknown key fails; a vault's file may set safe keys
//! only, because a vault can be a download.

mod agent_rules;
mod check_settings;
mod git_settings;
mod layers;
mod home;
mod link_settings;
pub mod note_kinds;
mod relation_settings;
mod user_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};
use toml::Value;

pub use crate::agent_rules::{AgentRule, ConfirmedChange, OutsideLinks};
pub use crate::check_settings::CheckConfig;
pub use crate::git_settings::{CommitPolicy, GitConfig, GitVault};
pub use crate::home::{expand_home, home_folder};
use crate::layers::{defaults, merge, put, set_text, unflatten, vault_file};
pub use crate::link_settings::{LINK_DIALECTS, LinksConfig, LinksFolder};
pub use crate::relation_settings::RelationConfig;
pub use crate::user_file::{ConfigEdit, SettingChange, edit_user_file, set_user, set_user_for_vault};

pub(crate) const DEFAULTS: &str = include_str!("config.toml");

/// The file with a vault's own settings, as a path from its root.
pub const VAULT_FILE: &str = ".sidenote/config.toml";
/// The maximum size of that file in bytes.
pub(crate) const MAX_VAULT_FILE: u64 = 1_000_000;

/// Keys that a vault's own file may not set: they decide what runs or what is reached.
const UNSAFE_IN_VAULT: &[&str] = &[
    "git.commit",
    "git.author",
    "git.vault",
    "embed.provider",
    "embed.model",
    "embed.dir",
    "embed.onnxruntime",
    "embed.base_url",
    "embed.api_key",
    "embed.dimensions",
    "embed.max_tokens",
    "embed.query_prefix",
    "embed.passage_prefix",
    "embed.timeout_s",
    "embed.share",
    "rerank.model",
    "rerank.dir",
    "rerank.top",
    "rerank.budget_ms",
    "vault.config_dir",
    "vault.follow_outside",
    "undo.operations",
    "undo.days",
    "memory.conversations",
    "memory.evict",
    "privacy.redact",
    "backup.auto",
    "backup.dir",
    "backup.keep",
    "agents",
];

/// Keys that the user's file may set for single vaults only: a commit runs the programs that a repository names, such
/// as its hooks, and not every vault can be trusted that much.
pub(crate) const ONLY_FOR_ONE_VAULT: &[&str] = &["git.commit"];

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Built in.
    Default,
    /// The user's file.
    User(PathBuf),
    /// The vault's file.
    Vault(PathBuf),
    /// This variable.
    Env(String),
    /// This flag.
    Flag(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(path) | Self::Vault(path) => write!(f, "{}", path.display()),
            Self::Env(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Settings about the vault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultConfig {
    /// Name of Obsidian's configuration folder.
    pub config_dir: String,
    /// A file larger than this is listed but not read.
    pub max_file_bytes: u64,
    /// The layout of new notes.
    pub layout: Layout,
    /// Whether symbolic links that lead out of the vault are followed.
    pub follow_outside: bool,
}

/// How new notes are named and what their frontmatter holds (docs/spec/files.md, New notes; docs/spec/toolsets.md, `mem`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// `{folder or category}/{Title}.md`.
    #[default]
    Readable,
    /// `{category}-{slug}-{id}.md`, flat, with the ids of linked notes in `links`.
    Memories,
}

/// Settings about new notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotesConfig {
    /// Which of them get an `id` and a `created_at`.
    pub ids: IdPolicy,
}

/// Which new notes get an `id` and a `created_at` (docs/spec/git.md 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdPolicy {
    /// All but daily notes, notes made of a template or as one, and pages of a site or book.
    #[default]
    Auto,
    /// All.
    Always,
    /// None but memories.
    Never,
}

/// Which notes the toolsets of other memory servers see (docs/spec/toolsets.md, Rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolsetScope {
    /// The whole vault.
    #[default]
    Vault,
    /// Only what is in the folder of memories.
    Memories,
}

/// Where the uses of notes are recorded (docs/spec/git.md 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UseRecording {
    /// In this working copy.
    #[default]
    Local,
    /// In this working copy; maintenance also writes them to the journal that git can track.
    Shared,
    /// Nowhere.
    Off,
}

/// Which links a process that follows the files repairs by itself (docs/spec/git.md 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutomaticRepair {
    /// None.
    #[default]
    Off,
    /// Those whose meaning is certain.
    Certain,
}

/// Settings about the repair of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairConfig {
    /// Which links are repaired without a command.
    pub auto: AutomaticRepair,
}

/// Settings about undo.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoConfig {
    /// How many operations keep their before-images.
    pub operations: usize,
    /// For how many days.
    pub days: u32,
}

/// Settings about searching.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchConfig {
    /// Default mode.
    pub mode: String,
    /// Default number of notes.
    pub limit: usize,
    /// Default fusion.
    pub fusion: String,
}

/// Settings about vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedConfig {
    /// Which embedder.
    pub provider: String,
    /// The name of the model, in fastembed's list or at the endpoint.
    pub model: String,
    /// A folder with an ONNX model and its tokenizer. Empty means the folder of `model install`.
    #[serde(deserialize_with = "home::read_path")]
    pub dir: PathBuf,
    /// The library of ONNX Runtime. Empty means its usual places.
    #[serde(deserialize_with = "home::read_path")]
    pub onnxruntime: PathBuf,
    /// The URL of an endpoint, without `/embeddings`.
    pub base_url: String,
    /// The API key of the endpoint. It is never printed.
    #[serde(skip_serializing, default)]
    pub api_key: Secret,
    /// The length of a vector. 0 means the length that the model's files or the list of known models give.
    pub dimensions: usize,
    /// The number of tokens of a text that the model sees. 0 means the number that its files give.
    pub max_tokens: usize,
    /// The prefix of a query that is embedded. Empty means the one that the model's files give.
    pub query_prefix: String,
    /// The prefix of a passage that is embedded. Empty means the one that the model's files give.
    pub passage_prefix: String,
    /// The seconds that an endpoint has for one batch, with all retries. A query has a fifth of that.
    pub timeout_s: u64,
    /// Whether vectors are shared with other vaults of the user. It says nothing about a model, so it is not recorded with
    /// one.
    #[serde(skip_serializing, default)]
    pub share: bool,
}

impl EmbedConfig {
    /// Returns the folder of the vectors that all vaults of the user share; `None` if none are shared.
    pub fn shared_vectors(&self) -> Option<PathBuf> {
        user_cache().filter(|_| self.share).map(|cache| cache.join("vectors"))
    }
}

/// Returns the folder for the texts of attachments that all vaults of the user share.
pub fn attachment_cache() -> Option<PathBuf> {
    user_cache().map(|cache| cache.join("attachments"))
}

/// Settings about reranking.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerankConfig {
    /// The name of the model. Empty means no model.
    pub model: String,
    /// A folder with an ONNX model and its tokenizer. Empty means the folder of `model install`.
    #[serde(deserialize_with = "home::read_path")]
    pub dir: PathBuf,
    /// The number of hits that are reranked.
    pub top: usize,
    /// The time limit in milliseconds.
    pub budget_ms: u64,
}

impl RerankConfig {
    /// Returns whether a model is set.
    pub fn is_set(&self) -> bool {
        !self.model.is_empty() || !self.dir.as_os_str().is_empty()
    }
}

/// A key or token, which is used and never shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for the request that needs it.
    pub fn reveal(&self) -> &str {
        self.0.trim()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.reveal().is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { HIDDEN })
    }
}

/// What is shown in place of a secret.
pub(crate) const HIDDEN: &str = "(set)";
/// Keys whose values are never shown.
pub(crate) const SECRET_KEYS: &[&str] = &["embed.api_key"];

/// Settings about memory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryConfig {
    /// Whether the toolset `rulebook` is enabled.
    pub enabled: bool,
    /// The folder of new memories.
    pub folder: String,
    /// Which notes the toolsets of other memory servers see.
    pub scope: ToolsetScope,
    /// Where the uses of notes are recorded.
    pub uses: UseRecording,
    /// The size in bytes above which memories are evicted.
    pub max_bytes: u64,
    /// Whether maintenance evicts memories.
    pub evict: bool,
    /// Whether a long-running process looks once a day for what could be consolidated.
    pub consolidate: bool,
    /// The folder with the sessions of a coding agent, which can be searched. Empty means none.
    #[serde(deserialize_with = "home::read_path")]
    pub conversations: PathBuf,
    /// The folder of handoffs.
    pub handoffs: String,
    /// The weights of the components of a score in recall.
    pub weights: WeightsConfig,
    /// The thresholds of the tiers.
    pub tiers: TiersConfig,
    /// The hours between two runs of maintenance.
    pub maintain_hours: u32,
    /// The shares of a recall, in percent.
    pub budgets: BudgetsConfig,
    /// The types with the words that indicate them, in the order in which they are tried.
    pub classify: Vec<Vec<String>>,
}

/// Settings about privacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Whether text that looks like a key is removed.
    pub redact: bool,
}

/// Settings about backups.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupConfig {
    /// The folder of backups. Empty means the folder in the vault.
    #[serde(deserialize_with = "home::read_path")]
    pub dir: PathBuf,
    /// How many are kept.
    pub keep: usize,
    /// Whether backups are made automatically.
    pub auto: bool,
}

/// The thresholds of the tiers (docs/spec/memory.md, Tiers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TiersConfig {
    /// The number of hours for which a new note is HOT.
    pub hot_hours: u32,
    /// The number of uses that make a note WARM.
    pub warm_uses: usize,
    /// The number of different days that these uses need.
    pub warm_use_days: usize,
    /// The number of days for which a note stays WARM after its last use.
    pub warm_days: u32,
}

/// The shares of a recall, in percent (docs/spec/memory.md, Recall).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetsConfig {
    /// The share of pinned memories.
    pub pinned: u8,
    /// The share of the tier HOT.
    pub hot: u8,
    /// The share of the tier WARM.
    pub warm: u8,
    /// The share of the tier COLD.
    pub cold: u8,
}

impl Default for TiersConfig {
    fn default() -> Self {
        Self { hot_hours: 72, warm_uses: 3, warm_use_days: 2, warm_days: 60 }
    }
}

impl Default for BudgetsConfig {
    fn default() -> Self {
        Self { pinned: 25, hot: 45, warm: 25, cold: 5 }
    }
}

impl MemoryConfig {
    /// Refuses shares of more than 100 percent together.
    fn checked(self) -> Result<Self> {
        let BudgetsConfig { pinned, hot, warm, cold } = self.budgets;
        let sum: u32 = [pinned, hot, warm, cold].into_iter().map(u32::from).sum();
        if sum > 100 {
            return Err(Error::invalid(format!("memory.budgets are {sum} percent together"))
                .with_hint("give parts that are 100 together at most"));
        }
        Ok(self)
    }
}

/// The weights of the components of a score in recall (docs/spec/memory.md, Scores).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsConfig {
    /// The weight of the similarity to the prompt.
    pub similarity: f64,
    /// The weight of recency, the time since the last use.
    pub recency: f64,
    /// The weight of the frequency of use.
    pub frequency: f64,
}

/// The decay of memories of one type (docs/spec/memory.md, Types).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeConfig {
    /// The half-life of the importance in days.
    pub half_life_days: f64,
    /// The floor, below which the importance does not fall.
    pub floor: f64,
    /// Whether such notes are never evicted.
    #[serde(default)]
    pub protected: bool,
    /// The number of hours for which a new note of the type is HOT. Without it, that of `memory.tiers` counts.
    #[serde(default)]
    pub hot_hours: Option<u32>,
    /// The number of days for which such a note stays WARM after its last use. Without it, that of `memory.tiers` counts.
    #[serde(default)]
    pub warm_days: Option<u32>,
}

/// Refuses types whose numbers are out of range.
fn checked(types: BTreeMap<String, TypeConfig>) -> Result<BTreeMap<String, TypeConfig>> {
    for (name, kind) in &types {
        let fits = kind.half_life_days.is_finite()
            && kind.half_life_days > 0.0
            && (1.0..=10.0).contains(&kind.floor);
        if !fits {
            return Err(Error::invalid(format!("types.{name} has a number that is out of range"))
                .with_hint("half_life_days is above 0, and floor is 1 to 10"));
        }
    }
    Ok(types)
}

/// All settings, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// About the vault.
    pub vault: VaultConfig,
    /// About new notes.
    pub notes: NotesConfig,
    /// About searching.
    pub search: SearchConfig,
    /// About links.
    pub links: LinksConfig,
    /// About the repair of links.
    pub repair: RepairConfig,
    /// About commits.
    pub git: GitConfig,
    /// About checking.
    pub check: CheckConfig,
    /// About undo.
    pub undo: UndoConfig,
    /// About vectors.
    pub embed: EmbedConfig,
    /// About reranking.
    pub rerank: RerankConfig,
    /// About memory.
    pub memory: MemoryConfig,
    /// About privacy.
    pub privacy: PrivacyConfig,
    /// About backups.
    pub backup: BackupConfig,
    /// The rules about agents, of which the first that names an agent counts.
    pub agents: Vec<AgentRule>,
    /// The types of memories.
    pub types: BTreeMap<String, TypeConfig>,
    /// The types of relations, the built-in ones with what the settings add to them.
    pub relations: BTreeMap<String, RelationConfig>,
    origins: BTreeMap<String, (String, Origin)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigSections {
    vault: VaultConfig,
    notes: NotesConfig,
    search: SearchConfig,
    links: LinksConfig,
    repair: RepairConfig,
    git: GitConfig,
    check: CheckConfig,
    undo: UndoConfig,
    embed: EmbedConfig,
    rerank: RerankConfig,
    memory: MemoryConfig,
    privacy: PrivacyConfig,
    backup: BackupConfig,
    agents: Vec<AgentRule>,
    types: BTreeMap<String, TypeConfig>,
    #[serde(default)]
    relations: BTreeMap<String, toml::Table>,
}

impl Config {
    /// Reads every layer for a vault. `flags` are given as (key, value, flag name).
    ///
    /// # Errors
    /// `Invalid` for a malformed file, an unknown key, a value of the wrong type, or a key that the vault may not set.
    pub fn load(root: &Path, flags: &[(&str, String, &str)]) -> Result<Self> {
        Self::load_with(root, &vault_file(root)?, flags)
    }

    /// Reads every layer for a vault, with a text in place of the vault's own file.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn load_with(root: &Path, vault_file: &str, flags: &[(&str, String, &str)]) -> Result<Self> {
        let mut values = defaults()?;
        if let Some(path) = user_file() {
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(Error::io("read", &path, error)),
            };
            let origin = Origin::User(path.clone());
            merge(&mut values, &text, &path, origin.clone(), ONLY_FOR_ONE_VAULT)?;
            for (key, value) in git_settings::settings_of_vault(&values, root, &path)? {
                put(&mut values, key, value, origin.clone())?;
            }
        }
        let path = root.join(VAULT_FILE);
        merge(&mut values, vault_file, &path, Origin::Vault(path.clone()), UNSAFE_IN_VAULT)?;
        let keys: Vec<String> = values.keys().cloned().collect();
        for key in keys {
            let name = format!("SIDENOTE_{}", key.to_uppercase().replace('.', "_"));
            if let Ok(text) = std::env::var(&name) {
                set_text(&mut values, &key, &text, Origin::Env(name))?;
            }
        }
        for (key, text, flag) in flags {
            set_text(&mut values, key, text, Origin::Flag((*flag).to_owned()))?;
        }
        Self::of_values(values)
    }

    /// Checks a vault's own settings by themselves, whatever the settings of a user are.
    ///
    /// # Errors
    /// `Invalid` with the reason, which names the file by its path in the vault.
    pub fn check_vault_file(bytes: &[u8]) -> Result<()> {
        Self::read_vault_file(bytes).map_err(|error| match error.message().contains(VAULT_FILE) {
            true => error,
            false => error.of(VAULT_FILE),
        })
    }

    fn read_vault_file(bytes: &[u8]) -> Result<()> {
        let path = Path::new(VAULT_FILE);
        if bytes.len() as u64 > MAX_VAULT_FILE {
            return Err(Error::invalid(format!("{VAULT_FILE} is larger than {MAX_VAULT_FILE} bytes")));
        }
        let text =
            std::str::from_utf8(bytes).map_err(|_| Error::invalid(format!("{VAULT_FILE} is not UTF-8")))?;
        let mut values = defaults()?;
        merge(&mut values, text, path, Origin::Vault(path.to_owned()), UNSAFE_IN_VAULT)?;
        Self::of_values(values).map(drop)
    }

    fn of_values(values: BTreeMap<String, (Value, Origin)>) -> Result<Self> {
        let sections: ConfigSections = unflatten(&values).try_into().map_err(|error: toml::de::Error| {
            Error::invalid("the settings do not fit together").with_source(error)
        })?;
        let origins = values
            .into_iter()
            .map(|(key, (value, origin))| {
                let is_kept_back = SECRET_KEYS.contains(&key.as_str()) && value.as_str() != Some("");
                let shown = if is_kept_back { format!("{HIDDEN:?}") } else { value.to_string() };
                (key, (shown, origin))
            })
            .collect();
        Ok(Self {
            vault: sections.vault,
            notes: sections.notes,
            search: sections.search,
            links: sections.links.checked()?,
            repair: sections.repair,
            git: sections.git.checked()?,
            check: sections.check,
            undo: sections.undo,
            embed: sections.embed,
            rerank: sections.rerank,
            memory: sections.memory.checked()?,
            privacy: sections.privacy,
            backup: sections.backup,
            agents: sections.agents.into_iter().map(AgentRule::checked).collect::<Result<_>>()?,
            types: checked(sections.types)?,
            relations: relation_settings::with_built_in(&sections.relations)?,
            origins,
        })
    }

    /// Returns the origin of a setting's value.
    pub fn origin_of(&self, key: &str) -> &Origin {
        self.origins.get(key).map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// Lists every key with its value, as TOML, and its origin.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, &Origin)> {
        self.origins.iter().map(|(key, (value, origin))| (key.as_str(), value.as_str(), origin))
    }
}

/// Returns the place of the user's settings file.
pub fn user_file() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("sidenote").join("config.toml"))
}

/// Returns the place of the settings file of the vault at `root`.
pub fn vault_settings_file(root: &Path) -> PathBuf {
    root.join(VAULT_FILE)
}

/// Returns the user's data folder for all vaults: models, and the list of models that were used.
pub fn data_folder() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.data_dir().join("sidenote"))
}

/// Returns the user's cache folder, whose contents can be made again at any time.
pub fn user_cache() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("sidenote"))
}

/// Returns the folder for the data of a vault that cannot be written to: in `base`, or else in the user's cache.
pub fn cache_folder(root: &Path, base: Option<&Path>) -> Option<PathBuf> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => etcetera::choose_base_strategy().ok()?.cache_dir().join("sidenote"),
    };
    let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    Some(base.join(name.get(..16)?))
}

/// Refuses settings that contradict each other.
pub(crate) fn checked_sections(values: &BTreeMap<String, (Value, Origin)>) -> Result<()> {
    let sections: ConfigSections = unflatten(values).try_into().map_err(|error: toml::de::Error| {
        Error::invalid("the settings do not fit together").with_source(error)
    })?;
    sections.links.checked()?;
    sections.git.checked()?;
    sections.agents.into_iter().try_for_each(|rule| rule.checked().map(drop))?;
    relation_settings::with_built_in(&sections.relations)?;
    checked(sections.types).map(drop)
}
