//! The store: the one API that the command line and the servers call. It opens a vault, gives out its services, reads
//! earlier states in git, and exchanges changes with replicas. It knows no protocol and prints nothing.
//!
//! The store reads the time once for each request and passes it down. Replies are plain values that serialise as
//! documented.

pub mod agents;
pub mod replication;
mod revision;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lru::LruCache;
use sidenote_attachments::AttachmentTexts;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_change::apply::end_unfinished_at_start;
pub use sidenote_change::apply::{OP_SYNC, plan_basis};
pub use sidenote_change::commit::{CommitReply, UncommittedFile};
pub use sidenote_change::create::{NewRequest, refuse_long_label};
pub use sidenote_change::delete::{DanglingLinks, DeleteRequest};
pub use sidenote_change::edit::{EditRequest, NoteEdit, json_or_text};
pub use sidenote_change::editor::Edited;
pub use sidenote_change::extract::ExtractRequest;
pub use sidenote_change::link::{LinkRequest, display_text};
pub use sidenote_change::merge::MergeRequest;
pub use sidenote_change::move_files::MoveRequest;
pub use sidenote_change::naming::number;
pub use sidenote_change::operation::{ChangeReply, Operation};
pub use sidenote_change::rename_part::{PartKind, PartRequest};
pub use sidenote_change::rename_tag_or_property::{RenameKind, RenameRequest};
pub use sidenote_change::revise::ReviseRequest;
pub use sidenote_change::undo::UndoRequest;
pub use sidenote_change::undo_conflict::{LaterOperation, UndoConflict};
pub use sidenote_change::undo_session::{SessionOperation, SessionOutlook};
pub use sidenote_change::{Changes, Planner};
use sidenote_config::{Config, attachment_cache};
use sidenote_embed::model_selection;
use sidenote_embed::model_selection::{PreviousModels, Selection};
use sidenote_index::{Index, Options};
pub use sidenote_journal::event::Event;
use sidenote_language::graphemes::beginning;
use sidenote_markdown::control::plain;
use sidenote_markdown::edit::ChangeSet;
use sidenote_markdown::relation::RelationRules;
pub use sidenote_memories::content::MemoryContent;
pub use sidenote_memories::conversations::{
    ConversationHit, ConversationRequest, ConversationSession, Conversations, IndexedConversations,
};
pub use sidenote_memories::handoff::{Handoff, HandoffReply, HandoffRequest, HandoffText};
pub use sidenote_memories::insert::{InsertOutcome, InsertRequest};
pub use sidenote_memories::knowledge_graph::{
    BroughtGraph, Changed, Entity, EntityTexts, Graph, IncomingGraph, KnowledgeGraph, MAX_ENTITIES,
    Relation as GraphRelation,
};
pub use sidenote_memories::maintain::{CleanupReply, MaintainReply, MaintainRequest, TierChange};
pub use sidenote_memories::memories::{MemoryListRequest, MemorySort, MemoryStats, TimelineReply, TypeItem};
pub use sidenote_memories::memory_tool::{MemoryCommand, MemoryTool};
pub use sidenote_memories::recall::{
    ExplainReply, MemoryRecallRequest, RecallRequest, Recalled, RecalledReply, text_to_embed_for,
};
pub use sidenote_memories::recall_reply::{RecallBudget, RecallReply};
pub use sidenote_memories::save::{NearDuplicate, SaveReply, SaveRequest};
pub use sidenote_memories::text_search::{MemoryText, SimilarMemories, TextOrder, TextsRequest};
pub use sidenote_memories::transcript;
pub use sidenote_memories::write_note::{WriteReply, WriteRequest};
pub use sidenote_memories::{Handoffs, Maintenance, Memories, MemoryWrites, Recalls};
pub use sidenote_memory::context::WorkContext;
pub use sidenote_memory::recall::{RecallItem, xml_block};
pub use sidenote_memory::score::{CompositeScore, Intent, IntentScore, ScoreComponent};
pub use sidenote_memory::tier::Tier;
pub use sidenote_memory::tier_rule::TierReason;
use sidenote_open_vault::call_context::{Call, Once};
pub use sidenote_open_vault::caller::{
    CallOrigin, Caller, OP_REFUSED, Role, actor_of, names_of, person_of, tool_of,
};
use sidenote_open_vault::early_vector::EarlyVector;
use sidenote_open_vault::idempotency::LONGEST;
pub use sidenote_open_vault::idempotency::{Calls, EarlierCall};
pub use sidenote_open_vault::lookup::Lookup;
use sidenote_open_vault::open::prepare_vectors;
pub use sidenote_open_vault::open::{EarlierSettings, Open};
pub use sidenote_open_vault::sync::{IndexSync, Status};
use sidenote_open_vault::{Core, SharedState};
pub use sidenote_proposals::Proposals;
pub use sidenote_proposals::consolidate::{ConsolidateReply, ConsolidateRequest};
pub use sidenote_proposals::decide::{
    AcceptReply, AcceptedProposals, ProposalReply, ProposalsReply, ProposalsRequest, RefusedProposal,
};
pub use sidenote_proposals::outlook::{ProposalOutlook, ProposedText};
pub use sidenote_proposals::proposal::{Proposal, ProposalItem, ProposalKind, ProposalState};
pub use sidenote_proposals::review::{FadingMemory, ReviewReply, UsedMemory, WrittenBy};
pub use sidenote_query::Searches;
pub use sidenote_query::eval::{EvalReply, EvalRequest, ModeScores, Paired, ShareScores, evaluation_sets};
pub use sidenote_query::memory_ranking::MemoryRanking;
pub use sidenote_query::memory_weights::{Memory, MemoryWeights, TierThresholds};
pub use sidenote_query::read::Reads;
pub use sidenote_query::read::empty_filter::nearest;
pub use sidenote_query::read::files::{Attachment, FileContent, FileItem};
pub use sidenote_query::read::graph::{Backlink, LineRef, LinkItem, LinksReply, PathReply, UnresolvedItem};
pub use sidenote_query::read::list::{
    FieldsItem, ListRequest, NoteItem, Page, PropertyCondition, PropertyItem, SortBy, TagItem,
};
pub use sidenote_query::read::note::{InspectReply, ReadReply, ReadRequest};
pub use sidenote_query::read::relations::{RelationItem, RelationsReply, RelationsRequest};
pub use sidenote_query::read::tasks::{TaskItem, TasksRequest};
pub use sidenote_query::related::{
    MentionItem, MentionsReply, RelatedBy, RelatedItem, RelatedReply, RelatedRequest,
};
pub use sidenote_query::search::{
    Explained, Fallback, PlainSnippet, RelationStatement, SearchReply, SearchRequest, SearchResult,
    WordWeight,
};
pub use sidenote_query::verify::Verification;
pub use sidenote_query::why::{Condition, WhyReply, WhyRequest};
pub use sidenote_repair::dead_link::DeadLinkRequest;
pub use sidenote_repair::{
    Certainty, ChosenTarget, Evidence, EvidenceKind, RepairItem, RepairReply, RepairRequest, Repairs,
};
use sidenote_search::Mode;
pub use sidenote_upkeep::Upkeep;
pub use sidenote_upkeep::backup::{BackupItem, RestoreReply};
pub use sidenote_upkeep::check::baseline::{Baseline, BaselineCounts};
use sidenote_upkeep::check::check_without_index;
pub use sidenote_upkeep::check::codes::{
    CODES as PROBLEM_CODES, ProblemCode, Scope as ProblemScope, Severity,
};
pub use sidenote_upkeep::check::problem::{Fix, FixEdit, Problem};
pub use sidenote_upkeep::check::rules::refuse_invalid_check_settings;
pub use sidenote_upkeep::check::similar_texts::{RepeatedTexts, SimilarTexts};
pub use sidenote_upkeep::check::{CheckReply, CheckRequest};
pub use sidenote_upkeep::conflicts::{ConflictCopy, ConflictsReply, MarkedNote};
pub use sidenote_upkeep::doctor::{Diagnosis, Finding, Level};
pub use sidenote_upkeep::export::{ExportReply, Form as ExportForm};
pub use sidenote_upkeep::fix_problems::FixRequest;
pub use sidenote_upkeep::follow::{Followed, Follower};
pub use sidenote_upkeep::git_init::{
    GitInitReply, GitInitRequest, GitInitState, GitInitStep, prepare_repository,
};
pub use sidenote_upkeep::import::graph::GraphImportReply;
pub use sidenote_upkeep::import::imported_notes::{NoteSource, NotesImportReply, NotesImportRequest};
pub use sidenote_upkeep::import::{ImportReply, ImportSource};
pub use sidenote_upkeep::merge_copies::{MergeCopiesReply, MergeCopiesRequest, MergedCopy};
pub use sidenote_upkeep::merge_driver::{
    MergeDriverReply, MergeDriverRequest, TIME_LIMIT as MERGE_TIME_LIMIT, drive_merge,
};
pub use sidenote_upkeep::models::{
    Check as ModelCheck, Installed, ModelItem, ModelKind, ModelSet, ModelState, ModelUse, Models,
    ModelsShown, Verified,
};
use sidenote_vault::authority::authority_of;
use sidenote_vault::location::LocationReason;
use sidenote_vectors::Vectors;
pub use sidenote_views::activity::{
    ActivityEvent, ActivityReply, ActivityRequest, EventName, OperationView, UndoOutlook,
};
pub use sidenote_views::curve::{FallReason, TierSpan, WeightCurve, WeightEvent, WeightPoint};
pub use sidenote_views::day::{DailyNote, DayNote, DayNotes, DayTasks, DayView};
pub use sidenote_views::facets::{FacetValue, Facets};
pub use sidenote_views::folder::{FolderNote, FolderView, Subfolder, Templates};
pub use sidenote_views::inactive::{InactiveCounts, InactiveNote, InactiveNotes, InactiveSince};
pub use sidenote_views::memory_board::{
    DuplicatePair, DuplicatePairs, MemoryPoints, PairKind, PairSide, TierFall, TierFalls, TierMonths,
};
pub use sidenote_views::note_page::{CanvasNode, CanvasView, NotePage, OutlineItem, PropertyView};
pub use sidenote_views::page_links::note_address;
pub use sidenote_views::task_board::{BoardTask, TaskBoard, TaskBoardRequest, TaskDue};
pub use sidenote_views::trash::{TrashMatches, TrashedFile, TrashedText};
pub use sidenote_views::vault_graph::{EdgeColumns, GraphMatches, GraphPositions, TagColumn, VaultGraph};
pub use sidenote_views::{NamedColumn, Views};

pub use crate::replication::Replication;
pub use crate::revision::Revisions;
use crate::revision::at::open_at;
pub use crate::revision::diff::{DiffReply, DiffRequest, DiffSide, DiffTotals, NoteChange, NoteChangeKind};
pub use crate::revision::note_history::{NoteCommit, NoteHistory};
use crate::revision::{OpenedVault, open_vault};

impl Store {
    /// Returns the same store for one call. `named` is the operation id and the call, if the caller gave an id. An id
    /// with private text or a secret is replaced by its hash, so that neither reaches the journal.
    #[must_use]
    pub fn for_call(&self, named: Option<(&str, &str)>) -> Self {
        let known = |id: &str| {
            let mut clean = id.to_owned();
            self.core.clean(&mut clean);
            if clean == id || id.len() > LONGEST {
                id.to_owned()
            } else {
                blake3::hash(id.as_bytes()).to_hex().to_string()
            }
        };
        let once = named.map(|(id, call)| Once {
            id: known(id),
            call: blake3::hash(call.as_bytes()).to_hex().to_string(),
            own: Mutex::default(),
        });
        let call = Arc::new(Call::new(once));
        Self { core: Core { call, ..self.core.clone() } }
    }

    /// Opens a vault and its index, and repairs a damaged index. With `at`, the vault is that of a commit, and read-only.
    ///
    /// # Errors
    /// `NotFound` if the folder of the vault does not exist, or the revision; `Invalid` if the settings cannot be parsed;
    /// `Io` if the folder or the index cannot be read or written; `Corrupt` if the index is damaged and cannot be rebuilt.
    #[expect(clippy::too_many_lines, reason = "the steps of opening, in their order")]
    pub fn open(open: Open) -> Result<Self> {
        let revision = open.at.clone();
        let (open, files) = match &revision {
            Some(revision) => {
                let (at, files) = open_at(&open, revision)?;
                (at, Some(files))
            }
            None => (open, None),
        };
        // The folder of a revision says nothing to the user.
        let OpenedVault { vault, config, index_folder, location } =
            open_vault(&open).map_err(|error| match &revision {
                Some(revision) => error.of(&format!("the notes of {revision}")),
                None => error,
            })?;
        let vault = Arc::new(vault);
        let Selection { model: embedder, problem } = open.embedders.select(&config.embed)?;
        embedder.iter().for_each(|model| model_selection::record_used(&config.embed, model.model()));
        let client = client_name(&open);
        let relation_rules = Arc::new(RelationRules::new(&config.relations, config.links.infer_relations));
        let options = Options {
            folder: index_folder,
            rebuild: open.rebuild,
            merge_loads: open.merge_loads,
            read_only: false,
            fill: open.fill,
            verb: open.verb,
            embedder,
            shared_vectors: config.embed.shared_vectors(),
            attachments: open
                .reader
                .map(|program| Arc::new(AttachmentTexts::new(program, attachment_cache()))),
            earlier: PreviousModels::before(&config.embed),
            relations: Arc::clone(&relation_rules),
        };
        if open.existing && !Index::is_there(&vault, options.folder.as_deref())? {
            return Err(no_index(&vault));
        }
        // What is written into a folder of its own, or into the cache, makes no vault.
        let is_inside = options.folder.is_none() && !open.read_only;
        if location.reason == LocationReason::Unmarked && is_inside && !open.makes_vault {
            return Err(location.no_vault());
        }
        let early_vector =
            EarlyVector::start(options.embedder.as_ref(), first_query(&open.first_query, &config));
        let state = vault.root().join(sidenote_vault::STATE_DIR);
        let had_state = state.exists();
        let index = Index::open(Arc::clone(&vault), options)?;
        if early_vector.is_some() {
            prepare_vectors(&index, Vectors::prepare_search);
        }
        let is_chosen = open.makes_vault || location.reason == LocationReason::Named;
        let unmarked = (is_inside && is_chosen && state.exists()).then(|| vault.mark().err()).flatten();
        let left_out = files.iter().flat_map(|files| files.left_out()).cloned();
        let mut state = SharedState {
            notices: left_out.chain(index.notices().iter().cloned()).collect(),
            has_earlier_settings: false,
            relation_rules,
            has_changed: Arc::clone(&open.has_changed),
            revision_files: files,
            created_state_dir: (!had_state && state.exists()).then_some(state),
            reranker: model_selection::reranker(&config.rerank, &config.embed),
            embedder_error: problem,
            early_vector,
            query_vectors: Mutex::new(LruCache::new(std::num::NonZeroUsize::MIN.saturating_add(255))),
            last_maintenance_at: AtomicI64::new(0),
            last_backup_check: AtomicI64::new(0),
            projection: Mutex::new(None),
            note_columns: Mutex::default(),
            parsed_notes: sidenote_open_vault::parsed_notes::ParsedNotes::default(),
            deletions: Mutex::default(),
            is_copy_scanned: Mutex::default(),
            repair_is_due: AtomicBool::new(true),
            unindexed_files: Mutex::default(),
            looked_in_batch: Mutex::default(),
            session_commits: Mutex::default(),
            changing: Mutex::default(),
            refusals: Mutex::default(),
            named_call_lock: Mutex::default(),
        };
        if !open.read_only {
            state.notices.extend(end_unfinished_at_start(&vault, open.clock.now()));
        }
        state.has_earlier_settings = open.earlier_settings.is_some();
        state.notices.extend(open.earlier_settings.map(|earlier| earlier.notice));
        state.notices.extend(unmarked.map(|error| error.to_string()));
        let unusable = [&state.embedder_error, &state.reranker.problem].into_iter().flatten();
        state.notices.extend(unusable.map(ToString::to_string).collect::<Vec<_>>());
        let core = Core {
            client,
            is_agent: open.agent.is_some(),
            agent: None,
            refreshed: Arc::default(),
            commits_by_session: open.has_sessions,
            vault,
            index: Arc::new(index),
            config: Arc::new(config),
            clock: open.clock,
            state: Arc::new(state),
            session: open.session.filter(|session| !session.trim().is_empty()),
            origin: None,
            right: Role::Admin,
            cancelled: Arc::default(),
            call: Arc::default(),
        };
        Ok(Self { core })
    }

    /// Returns whether a clone of this store is held elsewhere, as by a call that is running.
    pub fn is_used_elsewhere(&self) -> bool {
        Arc::strong_count(&self.core.state) > 1
    }

    /// Returns whether the vault that `open` means has an index.
    ///
    /// # Errors
    /// `NotFound` if the folder of the vault does not exist; `Invalid` if the settings cannot be parsed; `Io` if the
    /// folder of the index cannot be found.
    pub fn has_index(open: &Open) -> Result<bool> {
        let OpenedVault { vault, index_folder: index, .. } = open_vault(open)?;
        Index::is_there(&vault, index.as_deref())
    }

    /// Checks the vault that `open` means without an index, and writes nothing.
    ///
    /// # Errors
    /// `NotFound` if the folder of the vault, or a path or revision of the request, does not exist; `Invalid` if the
    /// settings are invalid; `Io` if the files cannot be read; those of running git if the request needs it.
    pub fn check_without_index(open: &Open, request: &CheckRequest) -> Result<CheckReply> {
        let OpenedVault { vault, config, .. } = open_vault(open)?;
        check_without_index(&vault, &config, request)
    }

    /// Returns the same store for changes of another session.
    #[must_use]
    pub fn in_session(&self, name: &str) -> Self {
        let session = Some(name.to_owned());
        Self { core: Core { session, ..self.for_call(None).core } }
    }

    /// Returns the same store for changes that a client asks for. Journal and commits name it, by the first
    /// [`MAX_CLIENT_NAME`] characters of the name that it gives itself.
    #[must_use]
    pub fn for_client(&self, name: &str) -> Self {
        let client = plain(beginning(name, MAX_CLIENT_NAME));
        Self { core: Core { client, ..self.core.clone() } }
    }

    /// Returns the same store for calls of a tool. The events of the journal name it, its toolset, and the person for whom
    /// it is called.
    #[must_use]
    pub fn for_tool(&self, origin: CallOrigin) -> Self {
        Self { core: Core { origin: Some(Arc::new(origin)), ..self.core.clone() } }
    }

    /// Returns the same store for calls that may do what a role allows. Without this, they may do everything.
    #[must_use]
    pub fn limited_to(&self, right: Role) -> Self {
        Self { core: Core { right, ..self.core.clone() } }
    }

    /// Returns the same store for one call that ends early once `cancelled` is set. Only long work checks the flag; a change
    /// that has begun to write completes.
    #[must_use]
    pub fn cancelled_by(&self, cancelled: Arc<AtomicBool>) -> Self {
        Self { core: Core { cancelled, ..self.core.clone() } }
    }

    /// Returns an error if the call was cancelled.
    ///
    /// # Errors
    /// `Conflict` if it was.
    pub fn check_cancelled(&self) -> Result<()> {
        self.core.check_cancelled()
    }

    /// Returns the session of changes.
    pub fn session(&self) -> Option<&str> {
        self.core.session.as_deref()
    }

    /// Returns the same store for one call whose changes are planned and kept, and not applied.
    /// [`Store::propose_planned`] makes proposals of them.
    #[must_use]
    pub fn proposing(&self) -> Self {
        let call = Arc::new(Call { proposes: AtomicBool::new(true), ..Call::default() });
        Self { core: Core { call, ..self.core.clone() } }
    }

    /// Lets the changes of this call that a person has to confirm become proposals, which [`Store::propose_planned`] makes.
    pub fn allow_proposals(&self) {
        self.core.call.allow_proposals();
    }

    /// Makes proposals of the changes that a call planned after [`Store::proposing`]. Without a reason, a rule asks a person to
    /// confirm them.
    ///
    /// # Errors
    /// Those of [`Proposals::propose`].
    pub fn propose_planned(&self, reason: Option<&str>) -> Result<Vec<Proposal>> {
        let planned = self.core.call.take_proposed();
        // A proposal is made of a dry run, which is kept no second time.
        let person = self.core.origin.as_ref().and_then(|origin| origin.caller.as_ref()).map(Caller::shown);
        let author =
            person.map_or_else(|| self.core.client.clone(), |name| format!("{name} ({})", self.core.client));
        let propose = |plan: ChangeSet| {
            let asked = || {
                let places = plan.files.iter().filter_map(|file| file.places().next());
                let paths: Vec<String> = places.map(ToString::to_string).collect();
                let rule =
                    self.core.agent.as_ref().map_or_else(|| "a rule".to_owned(), |access| access.name());
                format!("{} of {}: {rule} asks a person to confirm it", plan.operation, paths.join(", "))
            };
            let reason = reason.map_or_else(asked, str::to_owned);
            self.proposals().propose(plan, &reason, &author)
        };
        planned.into_iter().map(propose).collect()
    }

    /// Returns whether changes belong to a named session.
    pub fn is_session_named(&self) -> bool {
        self.core.session.is_some()
    }

    /// Returns whether the store was opened read-only.
    pub fn is_read_only(&self) -> bool {
        self.core.vault.is_read_only()
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.core.clock.now()
    }

    /// Returns the folder of the vault.
    pub fn root(&self) -> &Path {
        self.core.vault.root()
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Returns notices about what opening the store found and repaired.
    pub fn notices(&self) -> &[String] {
        &self.core.state.notices
    }

    /// Returns whether the folder is a copy of a vault whose files a service has.
    pub fn is_copy(&self) -> bool {
        authority_of(&self.core.vault).is_shared()
    }

    /// Returns whether the vault's own settings cannot be read, and earlier ones are used.
    pub fn has_earlier_settings(&self) -> bool {
        self.core.state.has_earlier_settings
    }

    /// Returns the state folder of the vault, if opening the store created it.
    pub fn created_state_dir(&self) -> Option<&Path> {
        self.core.state.created_state_dir.as_deref()
    }

    /// Returns whether this process writes the index.
    pub fn is_writer(&self) -> bool {
        self.core.index.is_writer()
    }

    /// Ends the writing of the index by this process, as the end of the process does. The index is sealed, so that the
    /// next command need not check it. Searches still work. Returns whether that was done in time; if not, the next
    /// command checks the index.
    pub fn close(&self, limit: Duration) -> bool {
        self.core.index.close(limit)
    }

    /// Returns the flag that stops long work.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        self.core.index.stop_handle()
    }
}

/// Returns the text whose vector is needed first, if searches compare vectors by the settings.
fn first_query<'t>(text: &'t Option<String>, config: &Config) -> Option<&'t str> {
    let is_by_words = Mode::parse(&config.search.mode).is_ok_and(|mode| mode == Mode::Bm25);
    text.as_deref().filter(|_| !is_by_words)
}

fn no_index(vault: &sidenote_vault::Vault) -> Error {
    Error::not_found(format!("{} has no index yet", vault.root().display()))
        .with_hints("run: sidenote index", "ask the user to build the index")
}

/// The longest name of a client, in characters. It is part of each journal event.
const MAX_CLIENT_NAME: usize = 120;

/// A vault with its index. Services read, search, change and maintain it. Clones share everything but the session.
// size: one method for each service, and for each thing that tells calls apart.
#[derive(Debug, Clone)]
pub struct Store {
    core: Core,
}

impl Store {
    /// Finds notes by their names.
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup::of(&self.core)
    }

    /// Updates the index.
    pub fn index(&self) -> IndexSync<'_> {
        IndexSync::of(&self.core)
    }

    /// Exchanges changes of a shared vault with folders of people.
    pub fn replication(&self) -> Replication<'_> {
        Replication::of(&self.core)
    }

    /// Recognises repeated calls.
    pub fn calls(&self) -> Calls<'_> {
        Calls::of(&self.core)
    }

    /// Reads notes, lists, files, tasks and links.
    pub fn reads(&self) -> Reads<'_> {
        Reads::of(&self.core)
    }

    /// Searches notes.
    pub fn searches(&self) -> Searches<'_> {
        Searches::of(&self.core)
    }

    /// Plans operations.
    pub fn planner(&self) -> Planner<'_> {
        Planner::of(&self.core)
    }

    /// Applies and undoes operations.
    pub fn changes(&self) -> Changes<'_> {
        Changes::of(&self.core)
    }

    /// Repairs links that are dead or lead elsewhere than they meant.
    pub fn repairs(&self) -> Repairs<'_> {
        Repairs::of(&self.core)
    }

    /// Lists memories.
    pub fn memories(&self) -> Memories<'_> {
        Memories::of(&self.core)
    }

    /// Saves and changes memories.
    pub fn memory_writes(&self) -> MemoryWrites<'_> {
        MemoryWrites::of(&self.core)
    }

    /// Recalls memories.
    pub fn recalls(&self) -> Recalls<'_> {
        Recalls::of(&self.core)
    }

    /// Reads and changes the knowledge graph.
    pub fn knowledge_graph(&self) -> KnowledgeGraph<'_> {
        KnowledgeGraph::of(&self.core)
    }

    /// Carries out commands of the memory tool.
    pub fn memory_tool(&self) -> MemoryTool<'_> {
        MemoryTool::of(&self.core)
    }

    /// Maintains memories.
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance::of(&self.core)
    }

    /// Stores and reads handoffs.
    pub fn handoffs(&self) -> Handoffs<'_> {
        Handoffs::of(&self.core)
    }

    /// Indexes and searches sessions of a coding agent.
    pub fn conversations(&self) -> Conversations<'_> {
        Conversations::of(&self.core)
    }

    /// Makes, lists, accepts and rejects proposals.
    pub fn proposals(&self) -> Proposals<'_> {
        Proposals::of(&self.core)
    }

    /// Follows the files, checks the vault, and makes backups.
    pub fn upkeep(&self) -> Upkeep<'_> {
        Upkeep::of(&self.core)
    }

    /// Prepares what a page for people shows.
    pub fn views(&self) -> Views<'_> {
        Views::of(&self.core)
    }

    /// Returns the same store for one call whose first change is made only if it is based on what the caller saw, as
    /// [`plan_basis`] gives it.
    #[must_use]
    pub fn expecting(&self, basis: Option<String>) -> Self {
        let call = Arc::new(Call { expected: Mutex::new(basis), ..Call::default() });
        Self { core: Core { call, ..self.core.clone() } }
    }

    /// Lists every setting with its value, as TOML, and the origin of the value.
    pub fn settings(&self) -> Vec<Setting> {
        settings_of(&self.core.config)
    }

    /// Reads what git knows of the vault.
    ///
    /// # Errors
    /// `NotFound` if the vault is in no git repository.
    pub fn revisions(&self) -> Result<Revisions> {
        Revisions::of(&self.core)
    }

    /// Computes the state of notes as memories.
    pub fn memory_weights(&self) -> MemoryWeights<'_> {
        MemoryWeights::of(&self.core)
    }
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Setting {
    /// The key, such as `search.limit`.
    pub key: String,
    /// The value as TOML; `"(set)"` for a secret.
    pub value: String,
    /// The origin of the value: `default`, a file, a variable or a flag.
    pub origin: String,
}

/// Lists every setting with its value, as TOML, and the origin of the value.
pub fn settings_of(config: &Config) -> Vec<Setting> {
    let setting = |(key, value, origin): (&str, &str, &sidenote_config::Origin)| Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        origin: origin.to_string(),
    };
    config.entries().map(setting).collect()
}

/// Returns who changes notes, as commits name it.
fn client_name(open: &Open) -> String {
    match (&open.agent, open.verb.as_str()) {
        (Some(agent), _) => agent.clone(),
        (None, "") => "sidenote".to_owned(),
        (None, verb) => format!("sidenote {verb}"),
    }
}
