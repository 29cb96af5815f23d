//! The state that the services of a store share.

use sidenote_base::wording::Wording;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::call_context::Call;
use crate::caller::{CallOrigin, Role};
use crate::deletions::KnownDeletions;
use crate::early_vector::{EarlyVector, vector_key};
use crate::note_columns::NoteColumns;
use crate::parsed_notes::ParsedNotes;
use crate::refusals::Refusals;
use crate::session_commits::SessionCommits;
use crate::unindexed::UnindexedFiles;
use sidenote_base::clock::Clock;
use sidenote_base::error::{Error, ErrorKind, Result};
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
use sidenote_search::relation_answer::RelationLookup;
use sidenote_vault::Vault;
use sidenote_vault::revision_files::RevisionFiles;

impl Core {
    pub(crate) fn journal(&self) -> Journal {
        Journal::open(&self.vault, &self.vault.records())
    }

    /// Returns the projection of the journal, brought up to date.
    pub(crate) fn projection(&self) -> Result<MutexGuard<'_, Option<Projection>>> {
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
    pub(crate) fn rewrite_options(&self) -> RewriteOptions {
        let settings = self.vault.settings();
        RewriteOptions {
            format: settings.link_format,
            keep_exact_paths: !settings.is_link_format_set,
            ..RewriteOptions::default()
        }
    }

    /// Logs that a note is left out because it cannot be read, unless it was removed.
    pub(crate) fn warn_unless_gone(&self, error: &Error) {
        if error.kind() != ErrorKind::NotFound {
            tracing::warn!("{error}; it is left out");
        }
    }

    /// Returns an error if the call was cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Conflict, "the call was cancelled; nothing was changed"));
        }
        Ok(())
    }

    pub(crate) fn embedder_name(&self) -> String {
        self.index.embedder().map_or_else(|| "none".to_owned(), |embedder| embedder.model().to_string())
    }

    /// Reads and parses a note that a search may show. `None` if it cannot be read.
    pub(crate) fn parsed_note(&self, path: &NotePath) -> Option<Arc<ParsedNote>> {
        self.read_bytes(path).ok().map(|bytes| self.state.parsed_notes.of(path, &bytes))
    }

    /// Returns how questions are answered by relations. `read` reads a note.
    pub(crate) fn relation_lookup<'a>(
        &'a self,
        read: &'a (dyn Fn(&NotePath) -> Option<Arc<ParsedNote>> + Sync),
    ) -> RelationLookup<'a> {
        RelationLookup { rules: &self.state.relation_rules, read }
    }

    /// Embeds a text with the model of the vectors to compare it with. Returns `None` without a model.
    pub(crate) fn query_vector(
        &self,
        model: Option<&Arc<dyn Embed>>,
        text: &str,
    ) -> Result<Option<Arc<Vec<f32>>>> {
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
pub(crate) fn former_of(snapshot: &Snapshot) -> Option<String> {
    let model = snapshot.model.as_ref().filter(|_| snapshot.is_former)?;
    Some(model.model().to_string())
}

use std::sync::atomic::Ordering;

/// What every service of a store borrows: the vault, its index, its settings, and the current call.
#[derive(Debug, Clone)]
pub(super) struct Core {
    pub(crate) vault: Arc<Vault>,
    pub(crate) index: Arc<Index>,
    pub(crate) config: Arc<Config>,
    pub(crate) clock: Clock,
    pub(crate) state: Arc<SharedState>,
    /// The session of changes.
    pub(crate) session: Option<String>,
    /// The tool of the current call, and the person for whom it is called.
    pub(crate) origin: Option<Arc<CallOrigin>>,
    /// What the current call may do.
    pub(crate) right: Role,
    /// Who asks for changes, as commits name it: an agent, or the command.
    pub(crate) client: String,
    /// Whether an agent asks for changes.
    pub(crate) is_agent: bool,
    /// Whether this process serves sessions that end, whose changes can be committed together.
    pub(crate) commits_by_session: bool,
    /// Whether the current call was cancelled.
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) call: Arc<Call>,
}

/// The mutable state that all clones of a store share.
#[derive(Debug)]
pub(super) struct SharedState {
    /// The rules by which relations are found.
    pub(crate) relation_rules: Arc<RelationRules>,
    /// Whether this process made a change.
    pub(crate) has_changed: Arc<AtomicBool>,
    pub(crate) notices: Vec<String>,
    /// Whether the vault's own settings cannot be read, and earlier ones are used.
    pub(crate) has_earlier_settings: bool,
    /// The files of the commit that is read as a vault, which are not removed meanwhile.
    #[expect(dead_code, reason = "it holds the lock of the files")]
    pub(crate) revision_files: Option<RevisionFiles>,
    /// The state folder of the vault, if opening the store created it.
    pub(crate) created_state_dir: Option<PathBuf>,
    pub(crate) query_vectors: Mutex<LruCache<String, Arc<Vec<f32>>>>,
    pub(crate) early_vector: Option<EarlyVector>,
    /// Why the embedder in the settings is not used.
    pub(crate) embedder_error: Option<Wording>,
    pub(crate) reranker: Selection<dyn Rerank>,
    /// The projection of the journal, after it was first read.
    pub(crate) projection: Mutex<Option<Projection>>,
    /// What facets need of each note, after it was first read.
    pub(crate) note_columns: Mutex<Option<Arc<NoteColumns>>>,
    pub(crate) parsed_notes: ParsedNotes,
    /// Where the files in the trash come from, after they were first listed.
    pub(crate) deletions: Mutex<Option<KnownDeletions>>,
    /// The time of the last maintenance by this process, in milliseconds since 1970.
    pub(crate) last_maintenance_at: AtomicI64,
    /// The time of the last check of this process whether a backup is due.
    pub(crate) last_backup_check: AtomicI64,
    /// Whether the files of a copy were scanned since this process opened it. Held while changes of a copy are indexed.
    pub(crate) is_copy_scanned: Mutex<bool>,
    /// Whether files moved without sidenote since the last automatic repair of links.
    pub(crate) repair_is_due: AtomicBool,
    /// The files that differed from the index at the last check of this process.
    pub(crate) unindexed_files: Mutex<Arc<UnindexedFiles>>,
    /// The number of the last large batch for which the files were compared with the index.
    pub(crate) looked_in_batch: Mutex<u64>,
    /// The changes of sessions that are not committed in git yet.
    pub(crate) session_commits: Mutex<SessionCommits>,
    /// The files that a change of this process left, each with the hash of its bytes, until the index has them.
    pub(crate) changing: Mutex<HashMap<NotePath, Option<[u8; 32]>>>,
    /// The refused calls of the last minute.
    pub(crate) refusals: Mutex<Refusals>,
    /// The lock that a call with an operation id holds while it runs.
    pub(crate) named_call_lock: Mutex<()>,
}
