//! The writer of the index: it updates the catalog, the full-text index and the vectors from the files.
//!
//! Every change passes through [`Writer::sync`], which compares first, so that unchanged files are not read. The order
//! of commits is intents, full text, catalog. After a crash, the generations of both show what was committed.

mod dialects;
mod arrivals;
mod embedding;
mod passage_list;
pub(super) mod plan;
mod read;
pub(super) mod split_moves;
mod targets;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

pub(crate) use plan::{NextSync, OtherVectors, State};
use sidenote_attachments::AttachmentTexts;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel::{no_thread, start_some};
use sidenote_base::{parallel, platform};
use sidenote_bm25::{Analyzer, Bm25, Bm25Writer};
use sidenote_catalog::{COMPLETED_MODEL, CatalogWriter, FileId, LinkGroup, RELATION_RULES};
use sidenote_journal::projection::Projection;
use sidenote_links::dialect::{INDEX_NAMES, LinkDialects};
use sidenote_links::resolve::{evidence_places, link_places};
use sidenote_markdown::link::LinkSyntax;
use sidenote_markdown::path::{NotePath, key};
use sidenote_markdown::relation::RelationRules;
use sidenote_vault::Vault;
use sidenote_vault::link_dialects::DialectRules;
use sidenote_vectors::VectorWriter;

pub(super) use self::embedding::{EmbeddingStep, Extent};
use crate::diff::{ChangedFile, FileChanges, Redo, SyncReport, compare};
use crate::directory::{Identity, PACKED, STAGED, displaced, remove_packed, remove_staged};
use crate::service_vectors::ServiceVectors;
use crate::shared_vectors::SharedVectors;
use crate::writer::arrivals::{Arrival, date_copied, first_commits, note_creation};
use crate::writer::dialects::Dialects;
use crate::writer::passage_list::PassageList;
use crate::writer::plan::{Method, Plan};
use crate::writer::read::{AttachmentReading, FileRead, ReadContent, in_order, read_group};
use crate::writer::split_moves::SplitMoves;
use crate::writer::targets::{Targets, link_names};
use crate::{Phase, Progress, SyncScope, active_model, checksums};

/// The number of segments above which they are merged when the index is closed.
const TARGET_SEGMENTS: usize = 12;
/// The number of segments above which those of a load are merged by the command that waits for it. A search looks each word up in
/// every segment, and the segments of a load stay.
const LOADED_SEGMENTS: usize = 5;
/// The number of segments above which some are merged when there is no other work.
const IDLE_MERGE_SEGMENTS: usize = 24;
/// The number of segments above which some are merged at once.
const FORCED_MERGE_SEGMENTS: usize = 96;

/// The size in bytes above which the catalog's write-ahead log is emptied by another thread, or when there is no other work.
const CHECKPOINT_BYTES: u64 = 16 << 20;
/// The size in bytes above which the log is emptied at once: under steady load it is never quite empty, so it is never
/// started over.
const FORCED_CHECKPOINT_BYTES: u64 = 64 << 20;

/// When segments are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeTime {
    /// More work may wait.
    BetweenWork,
    Idle,
    /// A command loaded the index, and waits.
    Loaded,
    /// The index is about to be closed.
    Closing,
}

/// The name of the file in the index folder that has the entries of the folders of the vault.
const LISTINGS: &str = "listings";

/// The write side of the index.
// size: the steps of one batch and their order, in a file of `writer/` for each topic.
pub(crate) struct Writer {
    pub(crate) folder: PathBuf,
    pub(crate) vault: Arc<Vault>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) state: State,
    pub(crate) next_sync: NextSync,
    /// The rules by which relations are found.
    pub(crate) relations: Arc<RelationRules>,
    /// The texts of attachments, if they are read.
    pub(crate) attachments: Option<Arc<AttachmentTexts>>,
    /// The catalog that is written: the staged one while the state is [`State::Staging`].
    pub(crate) catalog: CatalogWriter,
    pub(crate) bm25: Arc<Bm25>,
    /// The writer of the full text, and whether it is a bulk writer.
    pub(crate) full_text: Option<(Bm25Writer, bool)>,
    /// Whether this process began a load.
    pub(crate) has_loaded: bool,
    pub(crate) vectors: Option<VectorWriter>,
    /// The vectors that all vaults of the user share, if the settings allow it.
    pub(crate) shared_vectors: Option<SharedVectors>,
    /// The vectors that the servers of the vault share; `None` for a vault without a service.
    pub(crate) service_vectors: Option<ServiceVectors>,
    pub(crate) vector_folder: Option<(PathBuf, usize)>,
    /// The key of the model whose pending passages are counted; 0 without a model.
    pub(crate) model: i64,
    pub(crate) other_vectors: OtherVectors,
    /// The thread that empties the catalog's write-ahead log, if one is running.
    pub(crate) checkpointing: Option<JoinHandle<()>>,
    /// The projection of the journal that says how often notes were used, once it was read.
    pub(crate) projection: Option<Projection>,
    /// The ends of moves by other programs whose other ends are not seen yet.
    pub(crate) split_moves: SplitMoves,
}

impl Writer {
    /// Updates the index from the files within a scope.
    pub(crate) fn sync(
        &mut self,
        scope: &SyncScope,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<SyncReport> {
        let is_rebuild = self.next_sync == NextSync::Rebuild;
        let redo = if is_rebuild { Redo::All } else { self.unfinished_work()? };
        let scope = if redo == Redo::Nothing { scope } else { &SyncScope::All };
        progress(Phase::Scan, 0, 0);
        let mut changes =
            compare(&self.vault, self.catalog.reader(), scope, &redo, &self.folder.join(LISTINGS), progress)?;
        if is_rebuild {
            changes.treat_all_as_new();
        }
        let steps = self.catalog.reader().steps.get();
        // Each read outside of a transaction takes the locks of the catalog by itself.
        let reader = self.catalog.reader();
        let read = || {
            let starts_empty = is_rebuild || reader.is_empty()?;
            let stored = reader.links().dialects()?;
            let decided = self.dialects_of(&changes, &stored, starts_empty)?;
            Ok((reader.generation()?, starts_empty, stored, decided))
        };
        let (generation, starts_empty, stored, (dialects, markers)) = reader.in_transaction(read)?;
        changes.report.generation = generation;
        let is_same_dialect = dialects == stored;
        if changes.changed.is_empty()
            && changes.removed.is_empty()
            && redo == Redo::Nothing
            && (is_same_dialect || starts_empty)
        {
            return Ok(changes.report);
        }
        self.remove_seal()?;
        let reads_attachments = matches!(scope, SyncScope::Attachments(_));
        let plan = Plan { reads_attachments, ..Plan::new(changes.changed.len(), starts_empty, redo) };
        if plan.is_bulk() {
            // A bulk batch is repeated as a whole after a crash, so its paths need not be listed.
            self.catalog.set_intents(std::iter::once("*"))?;
        } else {
            let paths = changes.changed.iter().map(|file| file.stat.path.as_str());
            let moved = changes.changed.iter().filter_map(|file| file.old_path());
            let gone = changes.removed.iter().map(|known| &known.path).chain(moved);
            self.catalog.set_intents(paths.chain(gone.map(NotePath::as_str)))?;
        }
        let dialects = Dialects { before: stored, now: Arc::new(dialects), markers };
        let removed = SplitMoves::removed_by_batch(self.catalog.reader(), &changes.removed)?;
        let apply = || self.apply(&mut changes, &plan, dialects, progress, stop);
        let applied = catch_unwind(AssertUnwindSafe(apply)).unwrap_or_else(|_| Err(panicked()));
        let finished =
            match applied.and_then(|finished| self.catalog.set_cache_size(false).map(|()| finished)) {
                Ok(finished) => finished,
                Err(error) => {
                    self.roll_back()?;
                    return Err(error);
                }
            };
        if !finished {
            self.roll_back()?;
            return Err(Error::new(ErrorKind::Conflict, "indexing was stopped before it had finished")
                .with_hint(
                    "searches use the previous state of the index; run the command again to continue",
                ));
        }
        self.next_sync = NextSync::Changes;
        let moved = |new: &ChangedFile| Some((new.old_path()?.clone(), new.stat.path.clone()));
        changes.report.moves = changes.changed.iter().filter_map(moved).collect();
        let split = self.split_moves.complete(self.catalog.reader(), &changes.changed, removed)?;
        changes.report.moves.extend(split);
        changes.report.generation = self.catalog.reader().generation()?;
        // A load has the steps of the catalog that it made.
        changes.report.steps = self.catalog.reader().steps.get().saturating_sub(steps);
        Ok(changes.report)
    }

    /// Returns what an unfinished batch left to do: its full text was committed, and its catalog was not.
    fn unfinished_work(&self) -> Result<Redo> {
        let (catalog, text) = (self.catalog.reader().generation()?, self.bm25.generation()?);
        if catalog == text {
            return Ok(Redo::Nothing);
        }
        let intents: HashSet<String> = self.catalog.reader().intents()?.into_iter().collect();
        let known = text == catalog + 1 && !intents.is_empty() && !intents.contains("*");
        Ok(if known { Redo::Paths(intents) } else { Redo::All })
    }

    fn roll_back(&mut self) -> Result<()> {
        if let State::Staging { published } = self.state.take_staging() {
            self.catalog = *published;
            self.remove_staged_catalog();
        }
        self.catalog.rollback()?;
        self.catalog.set_cache_size(false)?;
        if let Some((mut writer, _)) = self.full_text.take() {
            writer.rollback()?;
        }
        // If the full text is ahead of the catalog, the next sync repairs it by the intents.
        if self.unfinished_work()? == Redo::Nothing {
            self.catalog.clear_intents()?;
        }
        Ok(())
    }

    pub(crate) fn remove_seal(&mut self) -> Result<()> {
        if let State::Sealed = self.state {
            checksums::remove_seal(&self.folder)?;
            self.state = State::Open;
        }
        Ok(())
    }

    /// Reads the changed files and writes the batch. Returns `false` if it was stopped.
    fn apply(
        &mut self,
        changes: &mut FileChanges,
        plan: &Plan,
        dialects: Dialects,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<bool> {
        let FileChanges { changed, removed, report } = changes;
        // Git is asked before anything is locked.
        let first_commits = first_commits(&self.vault, changed);
        self.open_vectors()?;
        self.open_full_text(plan.method == Method::BulkUpdate)?;
        let generation = self.catalog.reader().generation()?.max(self.bm25.generation()?) + 1;
        let given = changed.iter().map(|file| file.id).max().unwrap_or(0);
        let last_id = self.catalog.reader().last_id()?.max(given);
        let mut batch = Batch { dialects: Arc::clone(&dialects.now), ..Batch::default() };
        if plan.is_staged() {
            self.stage()?;
        }
        self.catalog.set_cache_size(plan.is_bulk())?;
        self.catalog.begin()?;
        self.prepare_full_text(plan)?;
        for known in removed.iter() {
            self.remove_file(known.id, &known.path, &mut batch, plan)?;
            report.removed += 1;
            report.touched.push(known.path.clone());
        }
        if !self.read_all(changed, plan, &mut batch, report, (progress, stop))? {
            return Ok(false);
        }
        progress(Phase::Commit, 0, 0);
        date_copied(&self.catalog, &first_commits, std::mem::take(&mut batch.arrivals))?;
        // The rest needs memory of its own.
        batch.targets = None;
        if plan.is_staged() {
            self.catalog.end_files();
        }
        if plan.is_bulk() {
            platform::release_free_memory();
        }
        let is_same_dialect = dialects.before == *dialects.now;
        if !batch.changed
            && removed.is_empty()
            && !plan.is_staged()
            && plan.redo == Redo::Nothing
            && is_same_dialect
        {
            // Only times differ, so only the catalog is written.
            self.catalog.clear_intents()?;
            self.catalog.commit()?;
            return Ok(true);
        }
        let text = self.full_text.as_mut().map(|(writer, _)| writer);
        write_passages(&self.catalog, std::mem::take(&mut batch.passages), plan, text, generation)?;
        self.resolve_links(&batch, plan)?;
        report.dialect_change = self.settle_dialects(&dialects, plan)?;
        self.catalog.set_last_id(last_id)?;
        self.catalog.set_meta("generation", generation)?;
        self.catalog.set_meta(RELATION_RULES, self.relations.fingerprint())?;
        self.catalog.clear_intents()?;
        let pending = if plan.is_bulk() {
            self.count_pending()?
        } else {
            self.catalog.reader().meta("pending")?.unwrap_or(0) + batch.pending
        };
        self.catalog.set_meta("pending", pending.max(0))?;
        self.commit_catalog()?;
        if plan.is_bulk() {
            self.full_text = None;
        }
        Ok(true)
    }

    /// Removes from the full text what the batch writes again.
    fn prepare_full_text(&mut self, plan: &Plan) -> Result<()> {
        if let Some((writer, _)) = &mut self.full_text {
            if plan.clears_full_text() {
                writer.clear()?;
            } else if plan.redo != Redo::Nothing {
                // The catalog does not know the new files of the unfinished batch, and will assign their numbers
                // again.
                writer.remove_above(self.catalog.reader().last_id()?)?;
            }
            if plan.redo == Redo::All {
                // A file that cannot be read now loses its words, and has to be read as soon as that is possible.
                self.catalog.mark_all_changed()?;
            }
            if plan.is_load() {
                writer.begin_bulk_load()?;
                self.has_loaded = true;
            }
        }
        Ok(())
    }

    /// Creates a staged catalog for a batch that starts from nothing. Readers keep using the published one. The staged
    /// catalog has no write-ahead log, because everything would be written twice with one.
    fn stage(&mut self) -> Result<()> {
        if self.identity.is_displaced() {
            return Err(displaced());
        }
        remove_staged(&self.folder)?;
        let staged = self.catalog.stage(&self.folder.join(STAGED))?;
        let published = std::mem::replace(&mut self.catalog, staged);
        self.state = State::Staging { published: Box::new(published) };
        Ok(())
    }

    /// Commits the batch. A staged catalog replaces the published one.
    fn commit_catalog(&mut self) -> Result<()> {
        self.catalog.commit()?;
        let State::Staging { published } = self.state.take_staging() else { return Ok(()) };
        let staged = std::mem::replace(&mut self.catalog, *published);
        let placed = complete_staged(&self.folder, staged).and_then(|()| self.place_staged());
        if placed.is_err() {
            self.remove_staged_catalog();
        }
        placed
    }

    /// Replaces the catalog file with the staged one, and opens it.
    fn place_staged(&mut self) -> Result<()> {
        let staged = self.folder.join(STAGED);
        // After a loss of power, an old version of a page would not be detected later.
        platform::sync_file(&staged).map_err(|error| Error::io("write", &staged, error))?;
        self.join_checkpoint();
        if !platform::REPLACES_OPEN_FILES {
            self.catalog.copy_from(&staged)?;
            return remove_staged(&self.folder);
        }
        let path = self.folder.join("catalog.db");
        // The log is removed with its catalog. What is in the log alone is needed only if a command finds the log
        // missing, and then everything is read again.
        if let Err(error) = CatalogWriter::checkpoint_passively(&path) {
            tracing::debug!("cannot empty the log of a catalog that is replaced: {error}");
        }
        let renewed = self.identity.replace_catalog();
        if renewed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            return renewed;
        }
        // Readers open the catalog again even if it could not be replaced, because its log may be gone.
        self.state = State::Replaced;
        match CatalogWriter::open(&path) {
            Ok(catalog) => {
                // This process wrote all rows of it.
                catalog.reader().paths().trust();
                self.catalog = catalog;
            }
            Err(error) => {
                // The next job opens the index again.
                self.identity.adopt(None);
                return Err(error);
            }
        }
        renewed
    }

    /// Removes the staged catalog, unless the folder belongs to another index now.
    fn remove_staged_catalog(&self) {
        if !self.identity.is_displaced()
            && let Err(error) = remove_staged(&self.folder)
        {
            tracing::debug!("the staged catalog is removed later: {error}");
        }
    }

    /// Reads and parses files on all cores while this thread writes the results. Returns `false` if it was stopped.
    fn read_all(
        &mut self,
        changed: &[ChangedFile],
        plan: &Plan,
        batch: &mut Batch,
        report: &mut SyncReport,
        (progress, stop): (&Progress, &AtomicBool),
    ) -> Result<bool> {
        let total = changed.len();
        let (vault, rules) = (Arc::clone(&self.vault), Arc::clone(&self.relations));
        let texts = self.attachments.clone();
        let next = AtomicUsize::new(0);
        let (sender, receiver) = sync_channel::<Vec<FileRead>>(4);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(total.max(1));
        std::thread::scope(|scope| {
            let start = |_| {
                let sender = sender.clone();
                let (vault, rules, next) = (&vault, &rules, &next);
                let attachments = match texts.as_deref() {
                    None => AttachmentReading::Never,
                    Some(texts) if plan.reads_attachments => AttachmentReading::Now(texts),
                    Some(_) => AttachmentReading::Later,
                };
                let read = move || {
                    let mut analyzer = Analyzer::default();
                    loop {
                        let group = read_group(vault, changed, next, &mut analyzer, rules, attachments);
                        // The receiver is gone once the batch is stopped.
                        if group.is_empty() || sender.send(group).is_err() {
                            break;
                        }
                    }
                };
                std::thread::Builder::new().spawn_scoped(scope, read).map(drop)
            };
            start_some(threads, start).map_err(no_thread)?;
            drop(sender);
            if plan.is_load() {
                // The index is empty, so all targets of links are among the new files.
                let files = changed.iter().map(|new| (&new.stat.path, new.id));
                let below = DialectRules::of(&self.vault).below_repository().to_owned();
                batch.targets = Some(Targets::new(&batch.dialects, &below, files));
            }
            for (done, read) in in_order(receiver.into_iter().flatten()).enumerate() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                if let Some(file) = changed.get(read.at) {
                    self.write_file(file, read, batch, plan, report)?;
                }
                progress(Phase::Parse, done + 1, total);
            }
            Ok(true)
        })
    }

    fn open_full_text(&mut self, bulk: bool) -> Result<()> {
        if self.full_text.as_ref().is_some_and(|(_, heavy)| *heavy != bulk) {
            self.full_text = None;
        }
        if self.full_text.is_none() {
            self.full_text = Some((self.bm25.writer(bulk)?, bulk));
        }
        Ok(())
    }

    fn remove_file(&mut self, id: FileId, path: &NotePath, batch: &mut Batch, plan: &Plan) -> Result<()> {
        let old = self.catalog.reader().passages().of(id)?;
        self.catalog.remove(id)?;
        self.uncount_orphans(&old, batch, plan)?;
        batch.touch(path);
        self.remove_text(id)
    }

    fn remove_text(&mut self, id: FileId) -> Result<()> {
        match &mut self.full_text {
            Some((writer, _)) => writer.remove(id),
            None => Ok(()),
        }
    }

    /// Returns whether a passage has no vector and is in no file. The next file that contains it makes it pending.
    fn is_orphan_without_vector(&self, passage: i64) -> Result<bool> {
        let waits = self.vectors.as_ref().is_some_and(|vectors| !vectors.contains(passage));
        Ok(waits && self.catalog.reader().passages().files_containing(&[passage])?.is_empty())
    }

    /// Subtracts passages that are in no file any more from the pending count. A bulk batch counts at its end
    /// instead.
    fn uncount_orphans(&self, old: &[i64], batch: &mut Batch, plan: &Plan) -> Result<()> {
        if plan.is_bulk() {
            return Ok(());
        }
        for passage in old.iter().copied().collect::<HashSet<i64>>() {
            batch.pending -= i64::from(self.is_orphan_without_vector(passage)?);
        }
        Ok(())
    }

    /// Writes one file that was read.
    fn write_file(
        &mut self,
        file: &ChangedFile,
        read: FileRead,
        batch: &mut Batch,
        plan: &Plan,
        report: &mut SyncReport,
    ) -> Result<()> {
        let FileRead { content, bytes, warning, failed, .. } = read;
        report.warnings.extend(warning);
        if failed && !file.is_new {
            // A failed read does not remove what was indexed before, unless the file was moved.
            if let Some(old) = file.old_path() {
                report.moved = report.moved.saturating_sub(1);
                report.removed += 1;
                report.touched.push(old.clone());
                batch.changed = true;
                self.remove_file(file.id, old, batch, plan)?;
            }
            return Ok(());
        }
        report.bytes += bytes;
        report.read += usize::from(bytes > 0);
        let mut document = match content {
            ReadContent::New(document) => *document,
            ReadContent::Unchanged { stat, racy, waits } => {
                report.retimed += 1;
                let path = &file.stat.path;
                return self.catalog.update_stat(file.id, path, &stat, racy, file.excluded, waits);
            }
        };
        let record = &mut document.record;
        record.row.id = file.id;
        let unmoved = file.old_path().is_none();
        batch.changed = true;
        report.touched.push(record.row.path.clone());
        report.touched.extend(file.old_path().cloned());
        if file.is_new {
            report.added += 1;
            if batch.targets.is_none() {
                batch.touch(&record.row.path);
            }
        } else if unmoved {
            report.changed += 1;
        }
        if let Some(old_path) = file.old_path() {
            batch.touch(old_path);
            batch.touch(&record.row.path);
        }
        if let Some(targets) = &batch.targets {
            for links in &mut record.links {
                (links.target, links.evidence) = targets.find(file.id, &record.row.path, links);
            }
        }
        note_creation(&self.catalog, file, &mut record.row, &mut batch.arrivals)?;
        let old = if file.is_new { Vec::new() } else { self.catalog.reader().passages().of(file.id)? };
        self.catalog.upsert(record, file.is_new)?;
        self.uncount_orphans(&old, batch, plan)?;
        for (ord, &passage) in record.passages.iter().enumerate() {
            if plan.is_bulk() {
                batch.passages.push(passage, file.id, ord)?;
            } else {
                batch.pending += i64::from(self.is_orphan_without_vector(passage)?);
                self.catalog.add_passages([(passage, file.id, ord)])?;
            }
        }
        if !file.is_new {
            self.remove_text(file.id)?;
        }
        if let (Some(mut entry), Some((writer, _))) = (document.entry, &mut self.full_text) {
            entry.file = file.id;
            writer.add(entry)?;
        }
        if batch.targets.is_none() && !record.links.is_empty() {
            let links = std::mem::take(&mut record.links);
            batch.sources.extend(links.into_iter().map(|links| (file.id, record.row.path.clone(), links)));
        }
        Ok(())
    }

    /// Resolves the links of changed files, and links of other files to a name that was added or removed.
    fn resolve_links(&self, batch: &Batch, plan: &Plan) -> Result<()> {
        if plan.is_load() {
            // The targets were found while the files were written.
            return Ok(());
        }
        let changed: HashSet<FileId> = batch.sources.iter().map(|(source, ..)| *source).collect();
        let mut others = self.catalog.reader().links().affected_by_names(&batch.touched_names())?;
        others.retain(|(source, ..)| !changed.contains(source));
        let below = DialectRules::of(&self.vault).below_repository().to_owned();
        let table = if plan.is_bulk() {
            self.catalog.reader().paths().all()?
        } else {
            let named = batch.sources.iter().chain(&others).flat_map(|(_, _, links)| link_names(links));
            let keys: HashSet<String> = named.collect();
            let mut table = self.catalog.reader().paths().named(&keys.into_iter().collect::<Vec<_>>())?;
            for (_, path, links) in batch.sources.iter().chain(&others) {
                if links.syntax == LinkSyntax::Markdown {
                    let mut places = link_places(&batch.dialects, &links.linkpath, path);
                    places.extend(evidence_places(&links.linkpath, path, &below));
                    for place in places {
                        let row = self.catalog.reader().row_at(&place)?;
                        table.extend(row.map(|row| (row.path, row.id)));
                    }
                }
            }
            table
        };
        let targets = Targets::new(&batch.dialects, &below, table.iter().map(|(path, id)| (path, *id)));
        for (source, path, links) in batch.sources.iter().chain(&others) {
            self.find_target(&targets, *source, path, links)?;
        }
        Ok(())
    }

    /// Finds the target and the evidence of links again, and stores them if they differ.
    fn find_target(
        &self,
        targets: &Targets,
        source: FileId,
        path: &NotePath,
        links: &LinkGroup,
    ) -> Result<()> {
        let (target, evidence) = targets.find(source, path, links);
        if (target, evidence) != (links.target, links.evidence) {
            self.catalog.retarget(source, links, target, evidence)?;
        }
        Ok(())
    }

    /// Opens the vectors for writing, if a model is configured.
    pub(crate) fn open_vectors(&mut self) -> Result<()> {
        if let (None, Some((folder, dimensions))) = (&self.vectors, &self.vector_folder) {
            let (vectors, _) = VectorWriter::open(folder, *dimensions, false)?;
            self.vectors = Some(vectors);
        }
        Ok(())
    }

    /// Returns the number of distinct passages without a vector.
    pub(crate) fn count_pending(&self) -> Result<i64> {
        let Some(vectors) = &self.vectors else {
            return Ok(0);
        };
        let (mut count, mut last) = (0, None);
        self.catalog.reader().passages().each(|passage, _| {
            if last != Some(passage) && !vectors.contains(passage) {
                count += 1;
            }
            last = Some(passage);
        })?;
        Ok(count)
    }

    /// Returns whether all vectors of the model are there, and the graph and the counts in the catalog are theirs, so that
    /// [`Writer::finish_vectors`] would change nothing.
    pub(crate) fn are_vectors_finished(&self) -> Result<bool> {
        let catalog = self.catalog.reader();
        let is_built = self.vectors.as_ref().is_none_or(|vectors| !vectors.graph_is_due());
        let is_counted = catalog.meta("pending")? == Some(0) && catalog.meta("model")? == Some(self.model);
        Ok(is_built && is_counted && active_model::completed_model(catalog)? == self.model)
    }

    /// Counts the pending passages again, after the model changed or another process may have written.
    pub(crate) fn recount(&mut self) -> Result<()> {
        self.remove_seal()?;
        self.open_vectors()?;
        let pending = self.count_pending()?;
        self.catalog.set_meta("pending", pending)?;
        self.update_completed_model(pending)?;
        self.catalog.set_meta("model", self.model)
    }

    /// Records which model's vectors are searched after a change of the model: the previous one's until none of the
    /// new ones is missing.
    fn update_completed_model(&mut self, pending: i64) -> Result<()> {
        let completed = active_model::completed_model(self.catalog.reader())?;
        let before = self.catalog.reader().meta("model")?.unwrap_or(0);
        if self.model == 0 || completed == self.model {
            return Ok(());
        }
        // An empty catalog has no pending passages, which does not mean that its vectors are complete.
        if pending == 0 && self.catalog.reader().generation()? > 0 {
            self.catalog.set_meta(COMPLETED_MODEL, self.model)?;
            self.other_vectors = OtherVectors::Remove;
        } else if completed == 0 && before != self.model {
            self.catalog.set_meta(COMPLETED_MODEL, before)?;
        }
        Ok(())
    }

    /// Removes the vectors of the previous model once no snapshot of this process uses them.
    pub(crate) fn remove_unused_vectors(&mut self) -> Result<()> {
        if let (OtherVectors::Remove, Some((folder, _))) = (self.other_vectors, &self.vector_folder) {
            active_model::remove_others(&self.folder, folder)?;
        }
        self.other_vectors = OtherVectors::Keep;
        Ok(())
    }

    /// Returns whether the pending count belongs to another model.
    pub(crate) fn counts_another_model(&self) -> Result<bool> {
        Ok(self.catalog.reader().meta("model")?.unwrap_or(0) != self.model)
    }

    /// Builds a graph if there are enough new vectors, and counts the pending passages.
    pub(crate) fn finish_vectors(&mut self, stop: &dyn Fn() -> bool) -> Result<()> {
        if let Some(vectors) = &self.vectors {
            vectors.build_graph(stop)?;
        }
        self.recount()
    }

    /// Merges some small segments if there are too many of them: how many are too many depends on what else there is to do.
    /// Returns whether it did.
    pub(crate) fn merge_if_due(&mut self, time: MergeTime) -> Result<bool> {
        let (most, target) = match time {
            MergeTime::BetweenWork => (FORCED_MERGE_SEGMENTS, TARGET_SEGMENTS),
            MergeTime::Idle => (IDLE_MERGE_SEGMENTS, TARGET_SEGMENTS),
            MergeTime::Loaded if self.has_loaded => (LOADED_SEGMENTS, LOADED_SEGMENTS),
            MergeTime::Closing if !matches!(self.state, State::Sealed) => (TARGET_SEGMENTS, TARGET_SEGMENTS),
            MergeTime::Loaded | MergeTime::Closing => return Ok(false),
        };
        if self.bm25.segments()? <= most {
            return Ok(false);
        }
        self.open_full_text(false)?;
        let Some((writer, _)) = &mut self.full_text else { return Ok(false) };
        let merged = writer.merge_smallest(target)?;
        writer.remove_unused_files()?;
        Ok(merged)
    }

    /// Empties the catalog's write-ahead log if it is long. This happens in a thread of its own, because it waits
    /// for the disk and for readers. If `is_idle` is set or the log is too long, it is emptied here and completely.
    pub(crate) fn checkpoint_if_due(&mut self, is_idle: bool) {
        let path = self.folder.join("catalog.db");
        let length = std::fs::metadata(self.folder.join("catalog.db-wal")).map_or(0, |found| found.len());
        if length < CHECKPOINT_BYTES {
            return;
        }
        if is_idle || length > FORCED_CHECKPOINT_BYTES {
            self.join_checkpoint();
            if let Err(error) = self.catalog.checkpoint() {
                tracing::debug!("the catalog's log is emptied later: {error}");
            }
            return;
        }
        if self.checkpointing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let empty = move || {
            if let Err(error) = CatalogWriter::checkpoint_passively(&path) {
                tracing::debug!("the catalog's log is emptied later: {error}");
            }
        };
        match std::thread::Builder::new().name("sidenote-log".to_owned()).spawn(empty) {
            Ok(thread) => self.checkpointing = Some(thread),
            Err(error) => tracing::debug!("the catalog's log is emptied later: {error}"),
        }
    }

    fn join_checkpoint(&mut self) {
        if self.checkpointing.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("the thread that empties the catalog's log panicked");
        }
    }

    /// Closes the index without writing, because another index is in its folder.
    pub(crate) fn discard(&mut self) {
        self.join_checkpoint();
        self.full_text = None;
    }

    /// Empties the log and writes the seal, so that the next command need not check the index.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.join_checkpoint();
        if let State::Sealed = self.state {
            return Ok(());
        }
        if let Some((mut writer, _)) = self.full_text.take() {
            writer.remove_unused_files()?;
        }
        if !self.catalog.checkpoint()? {
            // A reader still uses the log. Without a seal, the next writer checks the files itself.
            return Ok(());
        }
        checksums::write_seal(&self.folder, self.catalog.reader().paths().are_checked())?;
        self.state = State::Sealed;
        Ok(())
    }
}

/// Returns the error about a panic while the index was written, whose message is on standard error.
pub(crate) fn panicked() -> Error {
    Error::internal("writing the index failed unexpectedly; standard error says where").with_hint(
        "the notes are not concerned, and the next command writes the index again; please report what standard error says",
    )
}

/// The data of a batch that is written at its end.
#[derive(Default)]
struct Batch {
    /// Whether more than times changed.
    changed: bool,
    names: HashSet<String>,
    /// The names of the folders of files that were added or removed, which a link to a page can name instead.
    folders: HashSet<String>,
    /// The dialects by which the targets of links are found.
    dialects: Arc<LinkDialects>,
    sources: Vec<(FileId, NotePath, LinkGroup)>,
    passages: PassageList,
    pending: i64,
    /// The new notes that do not say when they were created.
    arrivals: Vec<Arrival>,
    /// The targets of links, in a load until all files are written.
    targets: Option<Targets>,
}

impl Batch {
    /// Records that a file appeared at a path or vanished from it.
    fn touch(&mut self, path: &NotePath) {
        self.names.insert(key(path.name()));
        self.folders.extend(path.folder().rsplit('/').next().map(key));
        if INDEX_NAMES.contains(&path.name()) {
            self.folders.extend([".".to_owned(), "..".to_owned()]);
        }
    }

    /// Lists the last parts of the link paths that can lead to the files that appeared or vanished.
    fn touched_names(&self) -> Vec<String> {
        let names = self.names.iter();
        // A page of a book or site can be named by its HTML file, by its folder, or without its extension.
        let pages = names.clone().filter_map(|name| name.strip_suffix(".md"));
        let pages = pages.map(|stem| format!("{}.html", if stem == "readme" { "index" } else { stem }));
        let stems = names.clone().filter_map(|name| name.strip_suffix(".mdx")).map(str::to_owned);
        names.cloned().chain(self.folders.iter().cloned()).chain(pages).chain(stems).collect()
    }
}

/// Writes the passages of a large batch and builds the indexes of a staged catalog, while another thread commits the full
/// text.
fn write_passages(
    catalog: &CatalogWriter,
    passages: PassageList,
    plan: &Plan,
    text: Option<&mut Bm25Writer>,
    generation: i64,
) -> Result<()> {
    let write_rows = || {
        let rows = catalog.add_passages(passages.into_sorted());
        if plan.is_bulk() {
            // SQLite sorts the indexes in memory of its own allocator, which gets nothing of what ours has free.
            platform::release_free_memory();
        }
        rows.and_then(|()| if plan.is_staged() { catalog.build_indexes() } else { Ok(()) })
    };
    match text {
        Some(writer) => {
            let (text, rows) = parallel::join(move || writer.commit(generation), write_rows);
            text.and(rows)
        }
        None => write_rows(),
    }
}

/// Completes and closes the staged catalog of a folder. If it cannot be packed, for instance because the disk is nearly full, it
/// is used as it is.
fn complete_staged(folder: &Path, staged: CatalogWriter) -> Result<()> {
    if let Err(error) = pack_staged(folder, &staged) {
        tracing::debug!("the catalog is not packed: {error}");
        if let Err(error) = remove_packed(folder) {
            tracing::debug!("{error}");
        }
        return staged.close_staged();
    }
    drop(staged);
    let (path, packed) = (folder.join(STAGED), folder.join(PACKED));
    #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
    std::fs::rename(&packed, &path).map_err(|error| Error::io("write", &path, error))
}

/// Writes the staged catalog of a folder once more, without free space.
fn pack_staged(folder: &Path, staged: &CatalogWriter) -> Result<()> {
    let packed = folder.join(PACKED);
    // SQLite takes the path as text.
    let path = packed.to_str().ok_or_else(|| Error::invalid("the path of the index is not UTF-8"))?;
    staged.pack_staged(path)?.close_staged()
}
