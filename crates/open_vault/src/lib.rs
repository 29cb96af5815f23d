//! The handle of an open vault, [`Core`], from which all services of a store are made: files, index, journal, settings,
//! clock and caller. It also shows the files as they are now, with the planned changes of an operation. The work of
//! services must not be here.

pub mod agent_access;
pub mod call_context;
pub mod caller;
pub mod catalog_overlay;
pub mod deletions;
pub mod early_vector;
pub mod idempotency;
pub mod lookup;
pub mod note_columns;
pub mod open;
pub mod parsed_notes;
pub mod parts;
pub mod redaction;
pub mod refusals;
pub mod session_commits;
pub mod similar_names;
pub mod source;
pub mod sync;
pub mod unindexed;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use sidenote_base::clock::Clock;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_config::Config;
use sidenote_embed::model_selection::Selection;
use sidenote_embed::{Embed, Rerank};
use sidenote_index::indexed_document::ParsedNote;
use sidenote_index::{Index, Snapshot};
use sidenote_journal::Journal;
use sidenote_journal::projection::Projection;
use sidenote_links::rewrite::RewriteOptions;
use sidenote_markdown::path::NotePath;
use sidenote_markdown::relation::RelationRules;
use sidenote_vault::Vault;
use sidenote_vault::revision_files::RevisionFiles;

use crate::agent_access::AgentAccess;
use crate::call_context::Call;
use crate::caller::{CallOrigin, Role};
use crate::deletions::KnownDeletions;
use crate::early_vector::{EarlyVector, vector_key};
use crate::note_columns::NoteColumns;
use crate::parsed_notes::ParsedNotes;
use crate::refusals::Refusals;
use crate::session_commits::SessionCommits;
use crate::unindexed::UnindexedFiles;

impl Core {
    /// Returns the journal of the vault.
    pub fn journal(&self) -> Journal {
        Journal::open(&self.vault, &self.vault.records())
    }

    /// Returns the projection of the journal, brought up to date.
    pub fn projection(&self) -> Result<MutexGuard<'_, Option<Projection>>> {
        let mut projection = self.state.projection.lock().unwrap_or_else(PoisonError::into_inner);
        Projection::refresh(
            &mut projection,
            self.index.folder(),
            !self.vault.is_read_only(),
            &self.journal(),
        )?;
        Ok(projection)
    }

    /// Returns the options of link rewriting that Obsidian's settings give.
    pub fn rewrite_options(&self) -> RewriteOptions {
        let settings = self.vault.settings();
        RewriteOptions {
            format: settings.link_format,
            keep_exact_paths: !settings.is_link_format_set,
            ..RewriteOptions::default()
        }
    }

    /// Logs that a note is left out because it cannot be read, unless it was removed.
    pub fn warn_unless_gone(&self, error: &Error) {
        if error.kind() != ErrorKind::NotFound {
            tracing::warn!("{error}; it is left out");
        }
    }

    /// Returns an error if the call was cancelled.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Conflict, "the call was cancelled; nothing was changed"));
        }
        Ok(())
    }

    /// Returns the name of the model in use, for messages.
    pub fn embedder_name(&self) -> String {
        self.index.embedder().map_or_else(|| "none".to_owned(), |embedder| embedder.model().to_string())
    }

    /// Reads and parses a note that a search may show. `None` if it cannot be read.
    pub fn parsed_note(&self, path: &NotePath) -> Option<Arc<ParsedNote>> {
        self.read_bytes(path).ok().map(|bytes| self.state.parsed_notes.of(path, &bytes))
    }

    /// Embeds a text with the model of the vectors to compare it with. Returns `None` without a model.
    pub fn query_vector(&self, model: Option<&Arc<dyn Embed>>, text: &str) -> Result<Option<Arc<Vec<f32>>>> {
        let Some(embedder) = model else {
            return Ok(None);
        };
        let key = vector_key(embedder.model(), text);
        let mut cache = self.state.query_vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = cache.get(&key) {
            return Ok(Some(Arc::clone(vector)));
        }
        drop(cache);
        let early = self.state.early_vector.as_ref().and_then(|early| early.take(&key));
        let vector = Arc::new(early.unwrap_or_else(|| embedder.embed_query(text))?);
        cache = self.state.query_vectors.lock().unwrap_or_else(PoisonError::into_inner);
        cache.put(key, Arc::clone(&vector));
        Ok(Some(vector))
    }
}

/// Returns the name of the former model, if its vectors are used.
pub fn former_of(snapshot: &Snapshot) -> Option<String> {
    let model = snapshot.model.as_ref().filter(|_| snapshot.is_former)?;
    Some(model.model().to_string())
}

use std::sync::atomic::Ordering;

/// What every service of a store borrows: the vault, its index, its settings, and the current call.
#[derive(Debug, Clone)]
pub struct Core {
    /// The files.
    pub vault: Arc<Vault>,
    /// The index of the files.
    pub index: Arc<Index>,
    /// The settings.
    pub config: Arc<Config>,
    /// The source of the time.
    pub clock: Clock,
    /// What all services of the vault share.
    pub state: Arc<SharedState>,
    /// The session of changes.
    pub session: Option<String>,
    /// The tool of the current call, and the person for whom it is called.
    pub origin: Option<Arc<CallOrigin>>,
    /// What the current call may do.
    pub right: Role,
    /// Who asks for changes, as commits name it: an agent, or the command.
    pub client: String,
    /// Whether an agent asks for changes.
    pub is_agent: bool,
    /// What the agent may do, if a rule or a note limits it.
    pub agent: Option<Arc<AgentAccess>>,
    /// How many files the index was behind when it was brought up to date for this request already. The next update takes it
    /// for its own.
    pub refreshed: Arc<Mutex<Option<usize>>>,
    /// Whether this process serves sessions that end, whose changes can be committed together.
    pub commits_by_session: bool,
    /// Whether the current call was cancelled.
    pub cancelled: Arc<AtomicBool>,
    /// What belongs to the call that is served.
    pub call: Arc<Call>,
}

/// The mutable state that all clones of a store share.
#[derive(Debug)]
pub struct SharedState {
    /// The rules by which relations are found.
    pub relation_rules: Arc<RelationRules>,
    /// Whether this process made a change.
    pub has_changed: Arc<AtomicBool>,
    /// What was noticed when the vault was opened.
    pub notices: Vec<String>,
    /// Whether the vault's own settings cannot be read, and earlier ones are used.
    pub has_earlier_settings: bool,
    /// The files of the commit that is read as a vault, which are not removed meanwhile.
    pub revision_files: Option<RevisionFiles>,
    /// The state folder of the vault, if opening the store created it.
    pub created_state_dir: Option<PathBuf>,
    /// The vectors of the last queries, by their text.
    pub query_vectors: Mutex<LruCache<String, Arc<Vec<f32>>>>,
    /// The vector that is computed while the index is opened.
    pub early_vector: Option<EarlyVector>,
    /// Why the embedder in the settings is not used.
    pub embedder_error: Option<Wording>,
    /// The model that reranks the best hits.
    pub reranker: Selection<dyn Rerank>,
    /// The projection of the journal, after it was first read.
    pub projection: Mutex<Option<Projection>>,
    /// What facets need of each note, after it was first read.
    pub note_columns: Mutex<Option<Arc<NoteColumns>>>,
    /// The notes that were parsed last.
    pub parsed_notes: ParsedNotes,
    /// Where the files in the trash come from, after they were first listed.
    pub deletions: Mutex<Option<KnownDeletions>>,
    /// The time of the last maintenance by this process, in milliseconds since 1970.
    pub last_maintenance_at: AtomicI64,
    /// The time of the last check of this process whether a backup is due.
    pub last_backup_check: AtomicI64,
    /// Whether the files of a copy were scanned since this process opened it. Held while changes of a copy are indexed.
    pub is_copy_scanned: Mutex<bool>,
    /// Whether files moved without sidenote since the last automatic repair of links.
    pub repair_is_due: AtomicBool,
    /// The files that differed from the index at the last check of this process.
    pub unindexed_files: Mutex<Arc<UnindexedFiles>>,
    /// The number of the last large batch for which the files were compared with the index.
    pub looked_in_batch: Mutex<u64>,
    /// The changes of sessions that are not committed in git yet.
    pub session_commits: Mutex<SessionCommits>,
    /// The files that a change of this process left, each with the hash of its bytes, until the index has them.
    pub changing: Mutex<HashMap<NotePath, Option<[u8; 32]>>>,
    /// The refused calls of the last minute.
    pub refusals: Mutex<Refusals>,
    /// The lock that a call with an operation id holds while it runs.
    pub named_call_lock: Mutex<()>,
}
