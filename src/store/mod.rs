//! Owns the store: the one API that the command line and the MCP server translate.
//!
//! Time is read here, once a request, and passed down. Replies are plain values that serialise as documented.

mod follow;
mod view;
mod change;
mod memory;
mod query;
mod read;
mod unindexed;
mod upkeep;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use serde::Serialize;

use crate::clock::{Clock, Timestamp};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::index::catalog::{Counts, FileRow};
use crate::index::embed::model_selection::{Chosen, Earlier};
use crate::index::embed::{Embed, Rerank, model_selection};
use crate::index::{SyncScope, Holder, Index, Options, Progress, Snapshot, SyncReport};
use crate::journal::projection::Projection;
use crate::text::path::{NotePath, key};
use crate::vault::watch::Watcher;
use crate::vault::{Vault, real_place};

pub use crate::journal::event::Event;
pub use crate::memory::context::WorkContext;
pub use crate::memory::recall::{RecallItem, ReplyForm, fit_budget, xml_block};
pub use crate::memory::score::{Intent, ScoreComponent};
pub use crate::memory::tier::Tier;
use crate::store::change::apply::end_unfinished_at_start;
pub use crate::store::change::apply::{ChangeReply, Operation};
pub use crate::store::change::create::{NewRequest, refuse_long_label};
pub use crate::store::change::edit::{EditRequest, Edited, NoteEdit};
pub use crate::store::change::idempotency::EarlierCall;
pub use crate::store::change::merge::{ExtractRequest, MergeRequest};
pub use crate::store::change::move_files::{MoveRequest, PartKind, PartRequest};
pub use crate::store::change::relate::{DanglingLinks, DeleteRequest, RelateRequest, shown};
pub use crate::store::change::rename::{RenameRequest, Renamed};
pub use crate::store::change::revise::ReviseRequest;
pub use crate::store::change::undo::UndoRequest;
pub use crate::store::change::write::{WriteReply, WriteRequest};
pub use crate::store::memory::content::MemoryContent;
pub use crate::store::memory::handoff::{Handoff, HandoffReply, HandoffRequest, HandoffText};
pub use crate::store::memory::insert::{KeepRequest, Kept};
pub use crate::store::memory::maintain::{CleanupReply, MaintainReply, MaintainRequest, TierChange};
pub use crate::store::memory::memories::{
    Memory, MemoryListRequest, MemorySort, MemoryStats, TimelineReply, TypeItem,
};
pub use crate::store::memory::recall::{
    ExplainReply, MemoryHit, MemoryRecallRequest, MemorySearchReply, MemorySearchRequest, RecallReply,
    RecallRequest, Recalled, RecalledReply,
};
pub use crate::store::memory::save::{Alike, SaveReply, SaveRequest, number};
pub use crate::store::memory::texts::{MemoryText, MostLike, TextOrder, TextsRequest};
pub use crate::store::query::eval::{EvalReply, EvalRequest, ModeScores, Paired, ShareScores};
pub use crate::store::query::related::{
    Kinship, MentionItem, MentionsReply, RelatedItem, RelatedReply, RelatedRequest,
};
pub use crate::store::query::search::{
    Explained, Fallback, SearchReply, SearchRequest, SearchResult, WordWeight,
};
pub use crate::store::query::verify::Sifted;
pub use crate::store::query::why::{Condition, WhyReply, WhyRequest};
pub use crate::store::read::files::{FileContent, FileItem};
pub use crate::store::read::graph::{Backlink, LinkItem, LinksReply, PathReply, Place, UnresolvedItem};
pub use crate::store::read::list::{FieldsItem, ListRequest, NoteItem, Page, PropertyItem, SortBy, TagItem};
pub use crate::store::read::note::{InspectReply, ReadReply, ReadRequest};
pub use crate::store::read::tasks::{TaskItem, TasksRequest};
use crate::store::unindexed::{Call, Unseen};
pub use crate::store::upkeep::backup::{BackupItem, RestoreReply};
pub use crate::store::upkeep::check::{CODES as PROBLEM_CODES, CheckReply, Problem, ProblemCode, Severity};
pub use crate::store::upkeep::models::{
    Check as ModelCheck, Installed, ModelItem, ModelKind, ModelSet, ModelState, ModelUse, Models,
    ModelsShown, Verified,
};
pub use crate::store::upkeep::transfer::{ExportReply, Form as ExportForm, ImportReply};
pub use follow::{Followed, Follower};

/// How to open a store.
#[derive(Debug, Clone, Default)]
pub struct Open {
    /// The vault; found from the current folder where not given.
    pub vault: Option<PathBuf>,
    /// The index folder; inside the vault where not given.
    pub index: Option<PathBuf>,
    /// Throw the index away first.
    pub rebuild: bool,
    /// Fail where there is no index yet, instead of making one.
    pub existing: bool,
    /// Fill in missing vectors while idle.
    pub fill: bool,
    /// Write nothing in the vault, the journal included.
    pub read_only: bool,
    /// Settings that flags give: (key, value, flag).
    pub flags: Vec<(&'static str, String, &'static str)>,
    /// The session that changes are made in.
    pub session: Option<String>,
    /// What this process does, for whoever finds the index held: a word or two, never an argument.
    pub verb: String,
    /// Where the time comes from.
    pub clock: Clock,
}

/// A vault with its index: everything that sidenote can do. Clones share all but the session.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
    /// The session that changes are made in.
    session: Option<String>,
    /// Set where nobody waits any more for what is asked of this one.
    cancelled: Arc<AtomicBool>,
    call: Arc<Call>,
}

impl Deref for Store {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// What all sessions share.
#[derive(Debug)]
pub struct Shared {
    vault: Arc<Vault>,
    index: Index,
    notices: Vec<String>,
    /// The vault's own folder, where opening made it.
    made_state: Option<PathBuf>,
    config: Config,
    clock: Clock,
    query_vectors: Mutex<LruCache<String, Arc<Vec<f32>>>>,
    /// Why the embedder that is set is not the one that answers.
    embed_trouble: Option<String>,
    reranker: Chosen<dyn Rerank>,
    /// The watch over the files, while this process follows them and keeps the index.
    watch: Mutex<Option<Arc<Watcher>>>,
    /// Whether this process follows the files, or tries to.
    follows: AtomicBool,
    /// What the journal tells of every note, once it was read.
    projection: Mutex<Option<Projection>>,
    /// When maintenance was done last by this process, in milliseconds since 1970.
    tended: AtomicI64,
    /// When this process thought of a backup last.
    backed_up: AtomicI64,
    /// Held while what the watch told is brought into the index.
    turn: Mutex<()>,
    /// What the index did not show when this process looked last.
    unseen: Mutex<Arc<Unseen>>,
    /// Held while a call is carried out that its caller may repeat.
    repeated: Mutex<()>,
}

/// The state of a vault and its index.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The vault's folder.
    pub vault: PathBuf,
    /// The index folder.
    pub index: PathBuf,
    /// Totals.
    #[serde(flatten)]
    pub counts: Counts,
    /// The number of batches committed.
    pub generation: i64,
    /// The model's name; `none` without one.
    pub embedder: String,
    /// The model before, while its vectors serve until all of the new one's are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_embedder: Option<String>,
    /// Vectors there are.
    pub vectors: usize,
    /// Passages that wait for a vector.
    pub pending: usize,
    /// Bytes of the index, vectors included.
    pub index_bytes: u64,
    /// Bytes of the vectors.
    pub vector_bytes: u64,
    /// Files that differ from the index right now.
    pub behind: usize,
    /// Whether the index is behind the files.
    pub stale: bool,
    /// Who holds the index lock, if another process does.
    pub locked_by: Option<Holder>,
    /// When this was asked.
    pub at: Timestamp,
}

impl Store {
    /// Opens a vault and its index; repairs the index where it is damaged.
    ///
    /// # Errors
    /// `NotFound` where the vault's folder is missing; see [`Index::open`] and [`Config::load`].
    pub fn open(open: Open) -> Result<Self> {
        let root = match &open.vault {
            Some(root) => root.clone(),
            None => {
                let here = std::env::current_dir().map_err(|error| Error::io("find", ".", error))?;
                Vault::discover(&here)
            }
        };
        let vault = Vault::open(&root)?;
        vault.refuse_linked_state()?;
        let config = Config::load(vault.root(), &open.flags)?;
        // Events of the file system name places by their real paths.
        let index_folder = open
            .index
            .as_deref()
            .map(|folder| real_place(folder).map_err(|error| Error::io("find", folder, error)));
        let index_folder = index_folder.transpose()?;
        let vault =
            vault.with_config_dir(&config.vault.config_dir)?.with_max_file_size(config.vault.max_file_bytes);
        let vault = vault.with_read_only(open.read_only).with_follow_outside(config.vault.follow_outside);
        let vault = match &index_folder {
            Some(folder) => vault.with_index_in(folder)?,
            None => vault,
        };
        let vault = Arc::new(vault);
        let Chosen { model: embedder, why_not } = model_selection::embedder(&config.embed)?;
        if let Some(embedder) = &embedder {
            model_selection::remember(&config.embed, embedder.model());
        }
        let options = Options {
            folder: index_folder,
            rebuild: open.rebuild,
            read_only: false,
            fill: open.fill,
            verb: open.verb,
            embedder,
            earlier: Earlier::than(&config.embed),
        };
        if open.existing && !Index::is_there(&vault, options.folder.as_deref())? {
            return Err(Error::not_found(format!("{} has no index yet", vault.root().display()))
                .with_hint("run: sidenote index"));
        }
        let state = vault.root().join(crate::vault::STATE_DIR);
        let had_state = state.exists();
        let index = Index::open(Arc::clone(&vault), options)?;
        let made_state = !had_state && state.exists();
        let mut shared = Shared {
            notices: index.notices().to_vec(),
            made_state: made_state.then_some(state),
            reranker: model_selection::reranker(&config.rerank, &config.embed),
            embed_trouble: why_not,
            vault,
            index,
            config,
            clock: open.clock,
            query_vectors: Mutex::new(LruCache::new(std::num::NonZeroUsize::MIN.saturating_add(255))),
            watch: Mutex::new(None),
            follows: AtomicBool::new(false),
            turn: Mutex::new(()),
            tended: AtomicI64::new(0),
            backed_up: AtomicI64::new(0),
            projection: Mutex::new(None),
            unseen: Mutex::default(),
            repeated: Mutex::default(),
        };
        if !open.read_only {
            shared.notices.extend(end_unfinished_at_start(&shared.vault, shared.clock.now()));
        }
        for why in [&shared.embed_trouble, &shared.reranker.why_not].into_iter().flatten() {
            shared.notices.push(why.clone());
        }
        let session = open.session.filter(|session| !session.trim().is_empty());
        Ok(Self { shared: Arc::new(shared), session, cancelled: Arc::default(), call: Arc::default() })
    }

    /// Gives the same store for changes that another session makes.
    #[must_use]
    pub fn in_session(&self, name: &str) -> Self {
        Self { session: Some(name.to_owned()), ..self.for_call(None) }
    }

    /// Gives the same store for one call that ends early once `cancelled` is set. Only what takes long asks for that, and
    /// nothing that has begun to write.
    #[must_use]
    pub fn cancelled_by(&self, cancelled: Arc<AtomicBool>) -> Self {
        Self { cancelled, ..self.clone() }
    }

    /// Ends long work that nobody waits for any more.
    fn go_on(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Conflict, "the call was cancelled; nothing was changed"));
        }
        Ok(())
    }

    /// Says whether changes are made in a session with a name.
    pub fn is_session_named(&self) -> bool {
        self.session.is_some()
    }

    /// Says whether nothing is written here.
    pub fn is_read_only(&self) -> bool {
        self.vault.is_read_only()
    }

    /// Reads the clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Gives the vault's folder.
    pub fn root(&self) -> &Path {
        self.vault.root()
    }

    /// Gives the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tells what opening found and mended.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Gives the folder that holds what belongs to the vault, where opening made it: the files are not alone any more.
    pub fn made_state(&self) -> Option<&Path> {
        self.made_state.as_deref()
    }

    /// Says whether this process writes the index.
    pub fn is_writer(&self) -> bool {
        self.index.is_writer()
    }

    /// Gives the flag that stops long work.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        self.index.stop_handle()
    }

    /// Brings the index in line with the files.
    ///
    /// # Errors
    /// `Conflict` where another process writes it.
    #[tracing::instrument(skip_all)]
    pub fn sync(&self, progress: Arc<Progress>) -> Result<SyncReport> {
        self.index.sync(SyncScope::All, progress)
    }

    /// Tells `hearer` of every change that comes into the index here: by an editor, by us, in whichever way it was seen.
    pub fn on_change(&self, hearer: impl FnMut(&SyncReport) + Send + 'static) {
        self.index.on_change(hearer);
    }

    /// Counts the batches that the index took in, also those of another process that keeps it.
    ///
    /// # Errors
    /// `Corrupt` where the catalog cannot be read.
    pub fn generation(&self) -> Result<i64> {
        self.index.generation()
    }

    /// Embeds every passage that waits; gives the number of vectors made.
    ///
    /// # Errors
    /// `Conflict` where another process writes the index; the embedder's own.
    #[tracing::instrument(skip_all)]
    pub fn embed_all(&self, progress: Arc<Progress>) -> Result<usize> {
        self.index.embed_all(progress)
    }

    /// Counts what the index holds, and the passages that wait for a vector, without looking at the files.
    pub fn totals(&self) -> Result<(Counts, usize)> {
        let pending = self.index.snapshot()?.pending;
        Ok((self.index.catalog().counts()?, pending))
    }

    /// Describes the state of vault and index.
    #[tracing::instrument(skip_all)]
    pub fn status(&self) -> Result<Status> {
        let at = self.clock.now();
        let snapshot = self.index.snapshot()?;
        let behind = self.index.drift(&self.vault)?.len();
        let (index_bytes, vector_bytes) = self.index.size_on_disk()?;
        Ok(Status {
            vault: self.vault.root().to_owned(),
            index: self.index.folder().to_owned(),
            counts: self.index.catalog().counts()?,
            generation: snapshot.generation,
            embedder: self.embedder_name(),
            former_embedder: former_of(&snapshot),
            vectors: snapshot.vectors.len(),
            pending: snapshot.pending,
            index_bytes,
            vector_bytes,
            behind,
            stale: behind > 0,
            locked_by: if self.index.is_writer() { None } else { self.index.holder() },
            at,
        })
    }

    fn embedder_name(&self) -> String {
        self.index.embedder().map_or_else(|| "none".to_owned(), |embedder| embedder.model().to_string())
    }

    /// Describes the whole index, one line for each fact; equal indexes give equal lines.
    pub fn dump(&self) -> Result<Vec<String>> {
        self.index.dump()
    }

    /// Finds the note that a path, id, title, alias, file name or `[[wikilink]]` names.
    ///
    /// # Errors
    /// `NotFound` with names that are alike; `Exists` listing the candidates where several answer.
    pub fn find(&self, name: &str) -> Result<FileRow> {
        let bare = name.trim();
        let inner = bare
            .strip_prefix("![[")
            .or_else(|| bare.strip_prefix("[["))
            .and_then(|rest| rest.strip_suffix("]]"))
            .map(|body| body.split(['|', '#']).next().unwrap_or(body).trim());
        let wanted = inner.unwrap_or(bare).trim_start_matches("./");
        for path in [wanted.to_owned(), format!("{wanted}.md")] {
            if let Some(row) = self.row_at(&path)? {
                self.resolved(&row);
                return Ok(row);
            }
        }
        // A folder that is a second way to another is one with it.
        let mut refused = None;
        for path in [wanted.to_owned(), format!("{wanted}.md")] {
            let Some(given) = NotePath::parse(&path).ok().filter(|path| !path.folder().is_empty()) else {
                continue;
            };
            match self.vault.canonical_path(&given) {
                Ok(settled) if settled == given => {}
                Ok(settled) => {
                    if let Some(row) = self.row_at(settled.as_str())? {
                        self.resolved(&row);
                        return Ok(row);
                    }
                }
                Err(error) => refused = Some(error),
            }
        }
        let catalog = self.index.catalog();
        let mut rows = catalog.named(wanted)?;
        if rows.is_empty() {
            rows = catalog.resolving(wanted)?;
        }
        drop(catalog);
        let folded = key(wanted);
        let mut rows = self.with_unseen(rows, |source| source.answers(&folded))?;
        match rows.len() {
            1 => {
                let row = rows.pop().ok_or_else(|| Error::internal("a row vanished"))?;
                self.resolved(&row);
                Ok(row)
            }
            0 => match refused {
                Some(refused) => Err(refused),
                None => Err(not_found(name, &self.index.catalog().names_like(wanted, 5)?)),
            },
            _ => {
                let paths: Vec<&str> = rows.iter().take(8).map(|row| row.path.as_str()).collect();
                Err(Error::new(ErrorKind::Exists, format!("{name:?} names {} notes", rows.len()))
                    .with_hint(format!("give one path: {}", paths.join(", "))))
            }
        }
    }

    fn read_bytes(&self, path: &NotePath) -> Result<Vec<u8>> {
        self.vault.read(path)
    }

    /// Embeds a text by the model whose vectors it is compared with; nothing without one.
    fn query_vector(&self, model: Option<&Arc<dyn Embed>>, text: &str) -> Result<Option<Arc<Vec<f32>>>> {
        let Some(embedder) = model else {
            return Ok(None);
        };
        let key = format!("{}\n{text}", embedder.model().key());
        let mut cache = self.query_vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = cache.get(&key) {
            return Ok(Some(Arc::clone(vector)));
        }
        drop(cache);
        let vector = Arc::new(embedder.embed_query(text)?);
        cache = self.query_vectors.lock().unwrap_or_else(PoisonError::into_inner);
        cache.put(key, Arc::clone(&vector));
        Ok(Some(vector))
    }

    /// Forgets cached query vectors, so that a bench pays for each.
    pub fn forget_query_vectors(&self) {
        self.query_vectors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Names the earlier model, where its vectors answer.
fn former_of(snapshot: &Snapshot) -> Option<String> {
    let model = snapshot.model.as_ref().filter(|_| snapshot.is_former)?;
    Some(model.model().to_string())
}

fn not_found(name: &str, alike: &[String]) -> Error {
    let error = Error::not_found(format!("no note answers to {name:?}"));
    if alike.is_empty() {
        error.with_hint(
            "a note is named by its path, id, title, alias or file name; `sidenote list` shows them",
        )
    } else {
        error.with_hint(format!("did you mean {}?", alike.join(", ")))
    }
}
