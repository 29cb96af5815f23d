//! The options for opening a vault.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sidenote_base::clock::Clock;
use sidenote_embed::model_selection::Embedders;
use sidenote_index::Index;
use sidenote_vault::authority::Authority;
use sidenote_vault::fence::Fence;
use sidenote_vectors::Vectors;

/// The options for opening a store.
#[derive(Debug, Clone, Default)]
pub struct Open {
    /// The vault. Without it, it is found from the current folder.
    pub vault: Option<PathBuf>,
    /// The index folder. Without it, the index is inside the vault.
    pub index: Option<PathBuf>,
    /// Whether the index is deleted and built again.
    pub rebuild: bool,
    /// Whether the full text is merged at the end of a load, as a command does that waits for it.
    pub merge_loads: bool,
    /// Whether to return an error if there is no index yet, instead of creating one.
    pub existing: bool,
    /// Whether missing vectors are computed while the process is idle.
    pub fill: bool,
    /// Whether the current folder becomes a vault if neither it nor a folder above is one. Otherwise that is an error.
    pub makes_vault: bool,
    /// The files that exist for the reader; all without it.
    pub fence: Option<Arc<Fence>>,
    /// Whether nothing may be written to the vault and the journal.
    pub read_only: bool,
    /// The revision of git whose files are the vault, instead of those on the disk: what `git rev-parse` takes, or a date.
    pub at: Option<String>,
    /// Settings from command line flags: (key, value, flag).
    pub flags: Vec<(&'static str, String, &'static str)>,
    /// The session of changes.
    pub session: Option<String>,
    /// The agent that asks for changes; `None` for a person.
    pub agent: Option<String>,
    /// Whether the process serves sessions that end, as the MCP server does.
    pub has_sessions: bool,
    /// The text whose vector is probably the first that is needed, which is computed while the index is opened.
    pub first_query: Option<String>,
    /// What this process does, in a word or two, for other processes that find the index locked. It never contains
    /// arguments.
    pub verb: String,
    /// The program that reads attachments, which is this one; without it their texts are not read.
    pub reader: Option<PathBuf>,
    /// The source of the time.
    pub clock: Clock,
    /// Who decides about changes, if the folder of the vault is a copy. Without it, the folder is the truth.
    pub authority: Option<Arc<dyn Authority>>,
    /// The text that counts in place of the vault's own settings, because these cannot be read.
    pub earlier_settings: Option<EarlierSettings>,
    /// The embedders that the stores of this process share.
    pub embedders: Embedders,
    /// Set once a change is made. What fails later, such as its report, does not take it back.
    pub has_changed: Arc<AtomicBool>,
}

/// Settings with which a vault is opened whose own cannot be read.
#[derive(Debug, Clone)]
pub struct EarlierSettings {
    /// The settings as TOML.
    pub text: String,
    /// What is the case, for those who operate the vault.
    pub notice: String,
}

/// Prepares the vectors for one search by meaning or for many, in the background.
pub fn prepare_vectors(index: &Index, prepare: fn(&Vectors)) {
    match index.snapshot() {
        Ok(snapshot) => prepare(&snapshot.vectors),
        Err(error) => tracing::debug!("the vectors are opened by the first search: {error}"),
    }
}
