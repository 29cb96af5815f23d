//! The state that the services of a store share.

use crate::wording::Wording;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::clock::Clock;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::index::embed::model_selection::Selection;
use crate::index::embed::{Embed, Rerank};
use crate::index::{Index, Snapshot};
use crate::journal::Journal;
use crate::journal::projection::Projection;
use crate::store::call_context::Call;
use crate::store::session_commits::SessionCommits;
use crate::store::unindexed::UnindexedFiles;
use crate::text::path::NotePath;
use crate::text::rewrite::RewriteOptions;
use crate::vault::Vault;
use crate::vault::revision_files::RevisionFiles;

impl Core {
    pub(in crate::store) fn journal(&self) -> Journal {
        Journal::open(&self.vault, &self.vault.records())
    }

    /// Returns the projection of the journal, brought up to date.
    pub(in crate::store) fn projection(&self) -> Result<MutexGuard<'_, Option<Projection>>> {
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
    pub(in crate::store) fn rewrite_options(&self) -> RewriteOptions {
        let settings = self.vault.settings();
        RewriteOptions {
            format: settings.link_format,
            keep_exact_paths: !settings.is_link_format_set,
            ..RewriteOptions::default()
        }
    }

    /// Logs that a note is left out because it cannot be read, unless it was removed.
    pub(in crate::store) fn warn_unless_gone(&self, error: &Error) {
        if error.kind() != ErrorKind::NotFound {
            tracing::warn!("{error}; it is left out");
        }
    }

    /// Returns an error if the call was cancelled.
    pub(in crate::store) fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Conflict, "the call was cancelled; nothing was changed"));
        }
        Ok(())
    }

    pub(in crate::store) fn embedder_name(&self) -> String {
        self.index.embedder().map_or_else(|| "none".to_owned(), |embedder| embedder.model().to_string())
    }

    pub(in crate::store) fn read_bytes(&self, path: &NotePath) -> Result<Vec<u8>> {
        self.vault.read(path)
    }

    /// Embeds a text with the model of the vectors to compare it with. Returns `None` without a model.
    pub(in crate::store) fn query_vector(
        &self,
        model: Option<&Arc<dyn Embed>>,
        text: &str,
    ) -> Result<Option<Arc<Vec<f32>>>> {
        let Some(embedder) = model else {
            return Ok(None);
        };
        let key = format!("{}\n{text}", embedder.model().key());
        let mut cache = self.state.query_vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = cache.get(&key) {
            return Ok(Some(Arc::clone(vector)));
        }
        drop(cache);
        let vector = Arc::new(embedder.embed_query(text)?);
        cache = self.state.query_vectors.lock().unwrap_or_else(PoisonError::into_inner);
        cache.put(key, Arc::clone(&vector));
        Ok(Some(vector))
    }
}

/// Returns the name of the former model, if its vectors are used.
pub(in crate::store) fn former_of(snapshot: &Snapshot) -> Option<String> {
    let model = snapshot.model.as_ref().filter(|_| snapshot.is_former)?;
    Some(model.model().to_string())
}

use std::sync::atomic::Ordering;

/// What every service of a store borrows: the vault, its index, its settings, and the current call.
#[derive(Debug, Clone)]
pub(super) struct Core {
    pub(in crate::store) vault: Arc<Vault>,
    pub(in crate::store) index: Arc<Index>,
    pub(in crate::store) config: Arc<Config>,
    pub(in crate::store) clock: Clock,
    pub(in crate::store) state: Arc<SharedState>,
    /// The session of changes.
    pub(in crate::store) session: Option<String>,
    /// Who asks for changes, as commits name it: an agent, or the command.
    pub(in crate::store) client: String,
    /// Whether an agent asks for changes.
    pub(in crate::store) is_agent: bool,
    /// Whether this process serves sessions that end, whose changes can be committed together.
    pub(in crate::store) commits_by_session: bool,
    /// Whether the current call was cancelled.
    pub(in crate::store) cancelled: Arc<AtomicBool>,
    pub(in crate::store) call: Arc<Call>,
}

/// The mutable state that all clones of a store share.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(in crate::store) notices: Vec<String>,
    /// The files of the commit that is read as a vault, which are not removed meanwhile.
    #[expect(dead_code, reason = "it holds the lock of the files")]
    pub(in crate::store) revision_files: Option<RevisionFiles>,
    /// The state folder of the vault, if opening the store created it.
    pub(in crate::store) created_state_dir: Option<PathBuf>,
    pub(in crate::store) query_vectors: Mutex<LruCache<String, Arc<Vec<f32>>>>,
    /// Why the embedder in the settings is not used.
    pub(in crate::store) embedder_error: Option<Wording>,
    pub(in crate::store) reranker: Selection<dyn Rerank>,
    /// The projection of the journal, after it was first read.
    pub(in crate::store) projection: Mutex<Option<Projection>>,
    /// The time of the last maintenance by this process, in milliseconds since 1970.
    pub(in crate::store) last_maintenance_at: AtomicI64,
    /// The time of the last check of this process whether a backup is due.
    pub(in crate::store) last_backup_check: AtomicI64,
    /// Whether files moved without sidenote since the last automatic repair of links.
    pub(in crate::store) repair_is_due: AtomicBool,
    /// The files that differed from the index at the last check of this process.
    pub(in crate::store) unindexed_files: Mutex<Arc<UnindexedFiles>>,
    /// The changes of sessions that are not committed in git yet.
    pub(in crate::store) session_commits: Mutex<SessionCommits>,
    /// The lock that a call with an operation id holds while it runs.
    pub(in crate::store) named_call_lock: Mutex<()>,
}
