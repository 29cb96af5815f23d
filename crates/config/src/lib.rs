//! Settings: their layers, their types, and the origin of each value. What a setting does is left to the crate that
//! gets its value.
//!
//! Defaults < user file < vault file < environment < flags. An unknown key fails; a vault's file may set safe keys
//! only, because a vault can be a download.
// size: one table of settings, with its layers and its edits.

mod check_settings;
mod git_settings;
mod home;
mod link_settings;
pub mod note_kinds;
mod relation_settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use toml_edit::{DocumentMut, Item};

use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_base::safe_open;

pub use crate::check_settings::CheckConfig;
pub use crate::git_settings::{CommitPolicy, GitConfig, GitVault};
pub use crate::home::{expand_home, home_folder};
pub use crate::link_settings::{LINK_DIALECTS, LinksConfig, LinksFolder};
pub use crate::relation_settings::RelationConfig;

const DEFAULTS: &str = include_str!("config.toml");

/// The file with a vault's own settings, as a path from its root.
pub const VAULT_FILE: &str = ".sidenote/config.toml";
/// The most bytes that it may have.
const MAX_VAULT_FILE: u64 = 1_000_000;

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
    "memory.evict",
    "privacy.redact",
    "backup.auto",
    "backup.dir",
    "backup.keep",
];

/// Keys that the user's file may set for single vaults only: a commit runs the programs that a repository names, such as
/// its hooks, and not every vault is to be trusted that much.
const ONLY_FOR_ONE_VAULT: &[&str] = &["git.commit"];

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
    /// How new notes are laid out.
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

/// Settings about taking operations back.
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
    /// The model's name: of fastembed's list, or as the endpoint knows it.
    pub model: String,
    /// A folder with an ONNX model and its tokenizer; empty: where `model install` puts them.
    #[serde(deserialize_with = "home::read_path")]
    pub dir: PathBuf,
    /// The ONNX runtime's library; empty: where it usually lies.
    #[serde(deserialize_with = "home::read_path")]
    pub onnxruntime: PathBuf,
    /// Where an endpoint is, without `/embeddings`.
    pub base_url: String,
    /// What the endpoint asks for; kept out of everything that is printed.
    #[serde(skip_serializing, default)]
    pub api_key: Secret,
    /// The length of a vector; 0: as the model's files or the list of known models say.
    pub dimensions: usize,
    /// How many tokens of a text the model sees; 0: as its files say.
    pub max_tokens: usize,
    /// What stands before a query that is embedded; empty: as the model's files say.
    pub query_prefix: String,
    /// What stands before a passage that is embedded; empty: as the model's files say.
    pub passage_prefix: String,
    /// Seconds that an endpoint has for one batch, all tries counted; a query has a fifth of it.
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

/// Settings about reading the best hits once more.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerankConfig {
    /// The model's name; empty: no model.
    pub model: String,
    /// A folder with an ONNX model and its tokenizer; empty: where `model install` puts them.
    #[serde(deserialize_with = "home::read_path")]
    pub dir: PathBuf,
    /// How many of the best hits are read.
    pub top: usize,
    /// Milliseconds that it may take.
    pub budget_ms: u64,
}

impl RerankConfig {
    /// Says whether a model is set.
    pub fn is_set(&self) -> bool {
        !self.model.is_empty() || !self.dir.as_os_str().is_empty()
    }
}

/// A key or token: it can be used, and never be seen.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for the request that needs it.
    pub fn reveal(&self) -> &str {
        self.0.trim()
    }

    /// Says whether there is none.
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
const HIDDEN: &str = "(set)";
/// Keys whose values nobody is shown.
const SECRET_KEYS: &[&str] = &["embed.api_key"];

/// Settings about memory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryConfig {
    /// Whether the toolset `rulebook` answers.
    pub enabled: bool,
    /// Where new memories go.
    pub folder: String,
    /// Which notes the toolsets of other memory servers see.
    pub scope: ToolsetScope,
    /// Where the uses of notes are recorded.
    pub uses: UseRecording,
    /// How many bytes memories may take.
    pub max_bytes: u64,
    /// Whether maintenance evicts.
    pub evict: bool,
    /// Where handoffs go.
    pub handoffs: String,
    /// What counts how much in recall.
    pub weights: WeightsConfig,
    /// Where the tiers begin and end.
    pub tiers: TiersConfig,
    /// Hours between two looks at the tiers.
    pub maintain_hours: u32,
    /// Which part of what recall gives is for which memories, in percent.
    pub budgets: BudgetsConfig,
    /// Types with the words that tell of them, in the order in which they are tried.
    pub classify: Vec<Vec<String>>,
}

/// Settings about what is kept out of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Whether texts that look like keys are taken out.
    pub redact: bool,
}

/// Settings about backups.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupConfig {
    /// Their folder; empty for the vault's own.
    #[serde(deserialize_with = "home::read_path")]
    pub dir: PathBuf,
    /// How many are kept.
    pub keep: usize,
    /// Whether they are made by themselves.
    pub auto: bool,
}

/// Where the tiers begin and end (docs/spec/memory.md, Tiers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TiersConfig {
    /// A note is HOT so many hours long.
    pub hot_hours: u32,
    /// A note is WARM after this many uses on enough days.
    pub warm_uses: usize,
    /// The uses that make a note WARM lie on this many days at least.
    pub warm_use_days: usize,
    /// A note stays WARM for this many days after its last use.
    pub warm_days: u32,
}

/// Which part of what recall gives is for which memories, in percent (docs/spec/memory.md, Recall).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetsConfig {
    /// For pinned ones.
    pub pinned: u8,
    /// For those of the tier HOT.
    pub hot: u8,
    /// For those of the tier WARM.
    pub warm: u8,
    /// For those of the tier COLD.
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
    /// Refuses budgets that are more than all.
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

/// What counts how much in recall (docs/spec/memory.md, Scores).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsConfig {
    /// Likeness to the question.
    pub similarity: f64,
    /// How lately it was made or used.
    pub recency: f64,
    /// How often it was used.
    pub frequency: f64,
}

/// How memories of one type fade (docs/spec/memory.md, Types).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeConfig {
    /// Days after which half of the importance is gone.
    pub half_life_days: f64,
    /// The importance that stays.
    pub floor: f64,
    /// Whether such notes are never evicted.
    #[serde(default)]
    pub protected: bool,
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
    /// About taking operations back.
    pub undo: UndoConfig,
    /// About vectors.
    pub embed: EmbedConfig,
    /// About reading the best hits once more.
    pub rerank: RerankConfig,
    /// About memory.
    pub memory: MemoryConfig,
    /// About what is kept out.
    pub privacy: PrivacyConfig,
    /// About backups.
    pub backup: BackupConfig,
    /// The types of memories.
    pub types: BTreeMap<String, TypeConfig>,
    /// The types of relations.
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
    types: BTreeMap<String, TypeConfig>,
    relations: BTreeMap<String, RelationConfig>,
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
            types: checked(sections.types)?,
            relations: relation_settings::checked(sections.relations)?,
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

/// Returns the folder of what the user has for all vaults: models, and which were used.
pub fn data_folder() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.data_dir().join("sidenote"))
}

/// Returns the folder of what can be made again at any time.
pub fn user_cache() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.cache_dir().join("sidenote"))
}

/// Returns the place for what is derived from a folder that cannot be written to: in `base`, else in the user's cache.
pub fn cache_folder(root: &Path, base: Option<&Path>) -> Option<PathBuf> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => etcetera::choose_base_strategy().ok()?.cache_dir().join("sidenote"),
    };
    let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    Some(base.join(name.get(..16)?))
}

/// A change of one setting in the user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange {
    /// Set to a text.
    Text(String),
    /// Set to a whole number.
    Number(i64),
    /// Set to any other value, written as TOML.
    Toml(String),
    /// Taken out, so that the default holds.
    Unset,
}

/// What a change of the user's file comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigEdit {
    /// The file.
    pub file: PathBuf,
    /// What is other than before, a line each; the values of secrets are never among them.
    pub changes: Vec<String>,
    /// Whether the file was written.
    pub applied: bool,
}

/// Changes settings in the user's file, and leaves every other byte of it; a dry run only says what would change.
///
/// # Errors
/// `Invalid` if the file is not TOML; `Io` if it cannot be read or written.
pub fn edit_user_file(changes: &[(&str, SettingChange)], dry_run: bool) -> Result<ConfigEdit> {
    let (file, mut document) = read_user_file()?;
    let mut said = Vec::new();
    for (key, setting) in changes {
        said.extend(edit_one(&mut document, key, setting, &file)?);
    }
    let applied = !dry_run && !said.is_empty();
    if applied {
        save_user_file(&file, &document.to_string())?;
    }
    Ok(ConfigEdit { file, changes: said, applied })
}

/// Reads the user's file, to be edited; a missing one is empty.
fn read_user_file() -> Result<(PathBuf, DocumentMut)> {
    let file = user_file()
        .ok_or_else(|| Error::not_found("there is no home folder for settings").with_hint("set HOME"))?;
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::io("read", &file, error)),
    };
    parse(&before, &file)?;
    let document = before
        .parse()
        .map_err(|_: toml_edit::TomlError| Error::invalid(format!("{} is not valid TOML", file.display())))?;
    Ok((file, document))
}

/// Sets one setting in the user's file to a value in the type that it has, or takes it out; a dry run only says what
/// would change.
///
/// # Errors
/// `Invalid` for a key that is no setting, and for a value of another type or one that fits no setting; as
/// [`edit_user_file`].
pub fn set_user(key: &str, value: Option<&str>, dry_run: bool) -> Result<ConfigEdit> {
    let origin = || Origin::Flag("config set".to_owned());
    let mut values: BTreeMap<String, (Value, Origin)> = flatten(&parse(DEFAULTS, Path::new("config.toml"))?)
        .into_iter()
        .map(|(key, value)| (key, (value, Origin::Default)))
        .collect();
    if ONLY_FOR_ONE_VAULT.contains(&key) {
        return Err(git_settings::only_for_one_vault(&format!("{key} cannot be set for all vaults"), key));
    }
    let Some(text) = value else {
        if !values.contains_key(key) && !can_be_added(key) {
            return Err(no_setting(&values, key, format!("{key} is no setting")));
        }
        return edit_user_file(&[(key, SettingChange::Unset)], dry_run);
    };
    let known = values.get(key).map(|(value, _)| value);
    if matches!(known, Some(Value::Array(_) | Value::Table(_))) || known.is_none() && can_be_added(key) {
        let table = parse(&format!("value = {text}"), Path::new("the value"))?;
        put(&mut values, key, table.get("value").cloned().unwrap_or(Value::Boolean(false)), origin())?;
        checked_sections(&values)?;
        return edit_user_file(&[(key, SettingChange::Toml(text.to_owned()))], dry_run);
    }
    set_text(&mut values, key, text, origin())?;
    checked_sections(&values)?;
    let setting = match values.get(key).map(|(value, _)| value) {
        Some(Value::Integer(number)) => SettingChange::Number(*number),
        Some(Value::Boolean(flag)) => SettingChange::Toml(flag.to_string()),
        Some(Value::Float(_)) => SettingChange::Toml(text.trim().to_owned()),
        _ => SettingChange::Text(text.to_owned()),
    };
    edit_user_file(&[(key, setting)], dry_run)
}

/// Sets a setting of commits for one vault in the user's file, or takes it out; a dry run only says what would change.
///
/// # Errors
/// `Invalid` for a key that cannot be set for one vault, and for a value that does not fit; as [`edit_user_file`].
pub fn set_user_for_vault(root: &Path, key: &str, value: Option<&str>, dry_run: bool) -> Result<ConfigEdit> {
    if let Some(text) = value {
        let mut values: BTreeMap<String, (Value, Origin)> =
            flatten(&parse(DEFAULTS, Path::new("config.toml"))?)
                .into_iter()
                .map(|(key, value)| (key, (value, Origin::Default)))
                .collect();
        set_text(&mut values, key, text, Origin::Flag("config set".to_owned()))?;
        checked_sections(&values)?;
    }
    let (file, mut document) = read_user_file()?;
    let change = git_settings::edit_vault(&mut document, root, key, value, &file)?;
    let applied = !dry_run && change.is_some();
    if applied {
        save_user_file(&file, &document.to_string())?;
    }
    Ok(ConfigEdit { file, changes: change.into_iter().collect(), applied })
}

/// Says whether a key is in a table that can grow.
fn can_be_added(key: &str) -> bool {
    key.starts_with("types.") || key.starts_with("relations.")
}

/// Refuses settings that do not fit together.
fn checked_sections(values: &BTreeMap<String, (Value, Origin)>) -> Result<()> {
    let sections: ConfigSections = unflatten(values).try_into().map_err(|error: toml::de::Error| {
        Error::invalid("the settings do not fit together").with_source(error)
    })?;
    sections.links.checked()?;
    sections.git.checked()?;
    relation_settings::checked(sections.relations)?;
    checked(sections.types).map(drop)
}

/// Changes one setting; says what was changed, if anything.
fn edit_one(
    document: &mut DocumentMut,
    key: &str,
    setting: &SettingChange,
    file: &Path,
) -> Result<Option<String>> {
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    let root = document.as_table_mut();
    if !root.contains_key(section) {
        if matches!(setting, SettingChange::Unset) {
            return Ok(None);
        }
        root.insert(section, toml_edit::table());
    }
    let table = root
        .get_mut(section)
        .and_then(Item::as_table_like_mut)
        .ok_or_else(|| Error::invalid(format!("{section} in {} is no section", file.display())))?;
    let bare = |item: &Item| {
        // A comment behind the value is no part of it.
        item.as_value().cloned().map(|mut value| {
            value.decor_mut().clear();
            value.to_string()
        })
    };
    let was = table.get(name).map(|item| bare(item).unwrap_or_else(|| item.to_string()));
    let fresh = match setting {
        SettingChange::Text(text) => Some(toml_edit::Value::from(text.as_str())),
        SettingChange::Number(number) => Some(toml_edit::Value::from(*number)),
        SettingChange::Toml(text) => Some(text.trim().parse().map_err(|_: toml_edit::TomlError| {
            Error::invalid(format!("{text:?} is no value of TOML"))
                .with_hint("write a list as [\"a\", \"b\"] and a table as { a = 1 }")
        })?),
        SettingChange::Unset => None,
    };
    let is = fresh.as_ref().map(|value| value.to_string().trim().to_owned());
    if was == is {
        return Ok(None);
    }
    match (fresh, table.get_mut(name).and_then(Item::as_value_mut)) {
        // What stands around the value, a comment behind it too, stays.
        (Some(mut fresh), Some(old)) => {
            *fresh.decor_mut() = old.decor().clone();
            *old = fresh;
        }
        (Some(fresh), None) => drop(table.insert(name, toml_edit::value(fresh))),
        (None, _) => drop(table.remove(name)),
    }
    let shown = |value: Option<String>| match value {
        Some(_) if SECRET_KEYS.contains(&key) => HIDDEN.to_owned(),
        Some(value) => value,
        None => "the default".to_owned(),
    };
    Ok(Some(format!("{key}: {} -> {}", shown(was), shown(is))))
}

/// Writes the user's file, whole or not at all. It may hold a key: a new one is the user's alone to read.
fn save_user_file(file: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    // A link to where the user keeps all settings stays one.
    let file = platform::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new(""));
    #[expect(clippy::disallowed_methods, reason = "the user's own settings")]
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let failed = |error| Error::io("write", &file, error);
    let write = |to: &mut std::fs::File| to.write_all(text.as_bytes()).map_err(failed);
    AtomicFile::new(&file).mode(0o600).sync().write(failed, write)
}

/// Returns the values that are built in.
fn defaults() -> Result<BTreeMap<String, (Value, Origin)>> {
    let table = parse(DEFAULTS, Path::new("config.toml"))?;
    Ok(flatten(&table).into_iter().map(|(key, value)| (key, (value, Origin::Default))).collect())
}

fn parse(text: &str, path: &Path) -> Result<Table> {
    text.parse::<Table>().map_err(|error: toml::de::Error| {
        let wrong = Error::invalid(format!("{} is not valid TOML", path.display()));
        // The parser quotes the line that it stumbles over, and there a key may stand.
        if text.contains("api_key") { wrong } else { wrong.with_source(error) }
    })
}

fn flatten(table: &Table) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (section, value) in table {
        match value {
            Value::Table(inner) => {
                flat.extend(inner.iter().map(|(key, value)| (format!("{section}.{key}"), value.clone())));
            }
            other => flat.push((section.clone(), other.clone())),
        }
    }
    flat
}

fn unflatten(values: &BTreeMap<String, (Value, Origin)>) -> Table {
    let mut table = Table::new();
    for (key, (value, _)) in values {
        if let Some((section, name)) = key.split_once('.') {
            let entry = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = entry {
                inner.insert(name.to_owned(), value.clone());
            }
        }
    }
    table
}

/// Reads a vault's own settings; empty if it has none.
fn vault_file(root: &Path) -> Result<String> {
    let path = root.join(VAULT_FILE);
    let bytes = match safe_open::read(root, VAULT_FILE, MAX_VAULT_FILE) {
        Ok(bytes) => bytes,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(String::new());
        }
        Err(error) => return Err(safe_open::failed("read", &path, error)),
    };
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} is not UTF-8", path.display())))
}

fn merge(
    values: &mut BTreeMap<String, (Value, Origin)>,
    text: &str,
    path: &Path,
    origin: Origin,
    refused: &[&str],
) -> Result<()> {
    for (key, value) in flatten(&parse(text, path)?) {
        if refused.contains(&key.as_str()) && matches!(origin, Origin::User(_)) {
            return Err(git_settings::only_for_one_vault(&format!("{} sets {key}", path.display()), &key));
        }
        if refused.contains(&key.as_str()) {
            return Err(Error::invalid(format!(
                "{} sets {key}, which only your own settings can do",
                path.display()
            ))
            .with_hints(
                "set it in your own file; `sidenote config show` tells where that is",
                "ask the user to set it in their own file",
            ));
        }
        put(values, &key, value, origin.clone())?;
    }
    Ok(())
}

/// Tells of a setting that there is not, and names those that may be meant: the most similar ones, or the sections.
fn no_setting(values: &BTreeMap<String, (Value, Origin)>, key: &str, message: String) -> Error {
    /// How many characters of a name there are for each that may be wrong in it, and how many names are given.
    const CHARACTERS: usize = 4;
    const NAMED: usize = 3;
    let section = key.split('.').next().unwrap_or_default();
    let mut near: Vec<(usize, &str)> =
        values.keys().map(|known| (strsim::osa_distance(known, key), known.as_str())).collect();
    near.retain(|(wrong, _)| *wrong <= key.len() / CHARACTERS);
    near.sort_unstable();
    let near: Vec<&str> = near.into_iter().take(NAMED).map(|(_, known)| known).collect();
    let in_section =
        || values.keys().filter(move |known| known.split('.').next() == Some(section)).map(String::as_str);
    let mut sections: Vec<&str> = values.keys().filter_map(|known| known.split('.').next()).collect();
    sections.dedup();
    let hint = if !near.is_empty() {
        format!("did you mean {}? `sidenote config show` lists all settings", near.join(" or "))
    } else if in_section().next().is_some() {
        format!("settings of {section} are {}", in_section().collect::<Vec<_>>().join(", "))
    } else {
        format!("settings begin with {}; `sidenote config show` lists them", sections.join(", "))
    };
    Error::invalid(message).with_hint(hint)
}

fn put(
    values: &mut BTreeMap<String, (Value, Origin)>,
    key: &str,
    value: Value,
    origin: Origin,
) -> Result<()> {
    if can_be_added(key) && value.is_table() && !values.contains_key(key) {
        values.insert(key.to_owned(), (value, origin));
        return Ok(());
    }
    // A type of relations keeps what is not set.
    if key.starts_with("relations.")
        && let (Some((Value::Table(old), _)), Value::Table(new)) = (values.get(key), &value)
    {
        let mut merged = old.clone();
        merged.extend(new.clone());
        values.insert(key.to_owned(), (Value::Table(merged), origin));
        return Ok(());
    }
    let Some((old, _)) = values.get(key) else {
        return Err(no_setting(values, key, format!("{origin} sets {key}, which is no setting")));
    };
    if !old.same_type(&value) {
        return Err(Error::invalid(format!(
            "{origin} sets {key} to a {}, not a {}",
            value.type_str(),
            old.type_str()
        )));
    }
    values.insert(key.to_owned(), (value, origin));
    Ok(())
}

/// Sets a key from text, in the type that the default has.
fn set_text(
    values: &mut BTreeMap<String, (Value, Origin)>,
    key: &str,
    text: &str,
    origin: Origin,
) -> Result<()> {
    let wrong = |kind: &str| Error::invalid(format!("{origin} sets {key} to {text:?}, which is no {kind}"));
    let value = match values.get(key).map(|(value, _)| value) {
        Some(Value::Integer(_)) => Value::Integer(text.parse().map_err(|_| wrong("whole number"))?),
        Some(Value::Boolean(_)) => Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?),
        Some(Value::Float(_)) => Value::Float(text.parse().map_err(|_| wrong("number"))?),
        _ => Value::String(text.to_owned()),
    };
    put(values, key, value, origin)
}
