//! The writer of the index: it updates the catalog, the full-text index and the vectors from the files.
//!
//! Every change passes through [`Writer::sync`], which compares first, so that unchanged files cost nothing. The order of
//! commits is intents, full text, catalog; after a crash the generations of both tell what was committed.

mod plan;
mod read;
mod targets;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use crate::clock::wall_nanos;
use crate::error::{Error, ErrorKind, Result};
use crate::index::bm25::{Analyzer, Bm25, Bm25Writer};
use crate::index::catalog::{CatalogWriter, FileId, LinkGroup};
use crate::index::diff::{Candidate, Difference, Redo, SyncReport, compare};
use crate::index::directory::{Identity, STAGED, displaced, remove_staged};
use crate::index::embed::{Effort, Embed};
use crate::index::indexed_document::Reading;
use crate::index::vectors::{VectorWriter, passage_key};
use crate::index::writer::plan::{Method, Plan};
use crate::index::writer::read::{FileRead, read_group};
use crate::index::writer::targets::{Targets, link_names};
use crate::index::{Phase, Progress, SyncScope, active_model, checksums};
use crate::journal::Journal;
use crate::journal::projection::Projection;
use crate::memory::usage::NoteRef;
use crate::text::path::{NotePath, key};
use crate::vault::Vault;

pub(crate) use plan::{NextSync, OtherVectors, State};

/// The number of segments above which they are merged when the index is closed.
const MOST_SEGMENTS: usize = 12;
/// The number of segments above which some are merged when there is no other work.
const MANY_SEGMENTS: usize = 24;
/// The number of segments above which some are merged at once.
const TOO_MANY_SEGMENTS: usize = 96;

/// The number of the most used notes that are embedded early.
const MOST_USED: usize = 1000;
/// The size in bytes above which the catalog's write-ahead log is emptied by another thread, or when there is no other work.
const LONG_LOG: u64 = 16 << 20;
/// The size in bytes above which the log is emptied at once: under steady load it is never quite empty, so it is never
/// started over.
const TOO_LONG_LOG: u64 = 64 << 20;

/// The write side of the index.
pub(crate) struct Writer {
    pub(crate) folder: PathBuf,
    pub(crate) vault: Arc<Vault>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) state: State,
    pub(crate) next_sync: NextSync,
    /// The catalog that is written: the staged one while the state is [`State::Staging`].
    pub(crate) catalog: CatalogWriter,
    pub(crate) bm25: Arc<Bm25>,
    /// The writer of the full text, and whether it is a bulk writer.
    pub(crate) full_text: Option<(Bm25Writer, bool)>,
    pub(crate) vectors: Option<VectorWriter>,
    pub(crate) vector_folder: Option<(PathBuf, usize)>,
    /// The key of the model whose pending passages are counted; 0 without a model.
    pub(crate) model: i64,
    pub(crate) other_vectors: OtherVectors,
    /// The thread that empties the catalog's write-ahead log, while there is one.
    pub(crate) emptying: Option<JoinHandle<()>>,
    /// The projection of the journal that says how often notes were used, once it was read.
    pub(crate) projection: Option<Projection>,
}

impl Writer {
    /// Updates the index from the files within a scope.
    pub(crate) fn sync(
        &mut self,
        changes: &SyncScope,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<SyncReport> {
        let started = wall_nanos();
        let is_rebuild = self.next_sync == NextSync::Rebuild;
        let redo = if is_rebuild { Redo::All } else { self.unfinished()? };
        let changes = if redo == Redo::Nothing { changes } else { &SyncScope::All };
        progress(Phase::Scan, 0, 0);
        let mut difference = compare(&self.vault, self.catalog.reader(), changes, &redo)?;
        if is_rebuild {
            difference.forget_known();
        }
        difference.report.generation = self.catalog.reader().generation()?;
        if difference.candidates.is_empty() && difference.removed.is_empty() && redo == Redo::Nothing {
            return Ok(difference.report);
        }
        self.break_seal()?;
        let starts_empty = is_rebuild || self.catalog.reader().is_empty()?;
        let plan = Plan::new(difference.candidates.len(), starts_empty, redo, started);
        if plan.is_bulk() {
            // After a crash a batch of this size is done again as a whole, so its paths need not be listed.
            self.catalog.set_intents(std::iter::once("*"))?;
        } else {
            let paths = difference.candidates.iter().map(|candidate| candidate.stat.path.as_str());
            let moved = difference.candidates.iter().filter_map(|candidate| candidate.old_path.as_ref());
            let gone = difference.removed.iter().map(|known| &known.path).chain(moved);
            self.catalog.set_intents(paths.chain(gone.map(NotePath::as_str)))?;
        }
        let applied = self.apply(&mut difference, &plan, progress, stop);
        let finished =
            match applied.and_then(|finished| self.catalog.set_cache_size(false).map(|()| finished)) {
                Ok(finished) => finished,
                Err(error) => {
                    self.abandon()?;
                    return Err(error);
                }
            };
        if !finished {
            self.abandon()?;
            return Err(Error::new(ErrorKind::Conflict, "indexing was stopped before it was done")
                .with_hint("what was indexed before still answers; run the command again to go on"));
        }
        self.next_sync = NextSync::Changes;
        let moved = |new: &Candidate| Some((new.old_path.clone()?, new.stat.path.clone()));
        difference.report.moves = difference.candidates.iter().filter_map(moved).collect();
        difference.report.generation = self.catalog.reader().generation()?;
        Ok(difference.report)
    }

    /// Returns what an unfinished batch left to do: its full text was committed, and its catalog was not.
    fn unfinished(&self) -> Result<Redo> {
        let (catalog, text) = (self.catalog.reader().generation()?, self.bm25.generation()?);
        if catalog == text {
            return Ok(Redo::Nothing);
        }
        let intents: HashSet<String> = self.catalog.reader().intents()?.into_iter().collect();
        let known = text == catalog + 1 && !intents.is_empty() && !intents.contains("*");
        Ok(if known { Redo::Paths(intents) } else { Redo::All })
    }

    fn abandon(&mut self) -> Result<()> {
        if let State::Staging { published } = self.state.take_staging() {
            self.catalog = *published;
            self.give_up_staged();
        }
        self.catalog.rollback()?;
        self.catalog.set_cache_size(false)?;
        if let Some((mut writer, _)) = self.full_text.take() {
            writer.rollback()?;
        }
        // Where the full text went ahead, the intents are what the next sync repairs it by.
        if self.unfinished()? == Redo::Nothing {
            self.catalog.clear_intents()?;
        }
        Ok(())
    }

    pub(crate) fn break_seal(&mut self) -> Result<()> {
        if let State::Sealed = self.state {
            checksums::break_open(&self.folder)?;
            self.state = State::Open;
        }
        Ok(())
    }

    /// Reads the candidates and writes the batch; `false` where it was stopped.
    fn apply(
        &mut self,
        difference: &mut Difference,
        plan: &Plan,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<bool> {
        let Difference { candidates, removed, report } = difference;
        self.open_vectors()?;
        self.open_full_text(plan.method == Method::BulkUpdate)?;
        let generation = self.catalog.reader().generation()?.max(self.bm25.generation()?) + 1;
        let given = candidates.iter().map(|candidate| candidate.id).max().unwrap_or(0);
        let last_id = self.catalog.reader().last_id()?.max(given);
        let mut batch = Batch::default();
        if plan.is_staged() {
            self.stage()?;
        }
        self.catalog.set_cache_size(plan.is_bulk())?;
        self.catalog.begin()?;
        if let Some((writer, _)) = &mut self.full_text {
            if plan.clears_full_text() {
                writer.clear()?;
            } else if plan.redo != Redo::Nothing {
                // The catalog does not know the files of the unfinished batch, and gives their numbers again.
                writer.remove_above(self.catalog.reader().last_id()?)?;
            }
            if plan.redo == Redo::All {
                // A file that cannot be read now loses its words, and has to be read once it can be.
                self.catalog.mark_all_changed()?;
            }
            if plan.is_load() {
                writer.begin_bulk_load()?;
            }
        }
        for known in removed.iter() {
            self.remove_file(known.id, &known.path, &mut batch, plan)?;
            report.removed += 1;
            report.touched.push(known.path.clone());
        }
        if !self.read_all(candidates, plan, &mut batch, report, progress, stop)? {
            return Ok(false);
        }
        progress(Phase::Commit, 0, 0);
        if !batch.changed && removed.is_empty() && !plan.is_staged() && plan.redo == Redo::Nothing {
            // Only times differ, which concerns nothing but the catalog.
            self.catalog.clear_intents()?;
            self.catalog.commit()?;
            return Ok(true);
        }
        let Self { full_text, catalog, .. } = self;
        std::thread::scope(|scope| {
            let text = full_text.as_mut().map(|(writer, _)| scope.spawn(|| writer.commit(generation)));
            batch.passages.sort_unstable();
            let rows = catalog.add_passages(&batch.passages);
            let rows = rows.and_then(|()| if plan.is_staged() { catalog.build_indexes() } else { Ok(()) });
            let text = text.map(|text| text.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            text.unwrap_or(Ok(())).and(rows)
        })?;
        self.resolve(&batch, plan)?;
        self.catalog.set_last_id(last_id)?;
        self.catalog.set_meta("generation", generation)?;
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

    /// Makes a catalog of its own for a batch that starts from nothing. Readers go on with what was there, and it needs no
    /// log, in which all of it would be written twice.
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

    /// Commits the batch; a catalog that was made beside the one that is read takes its place.
    fn commit_catalog(&mut self) -> Result<()> {
        self.catalog.commit()?;
        let State::Staging { published } = self.state.take_staging() else { return Ok(()) };
        let staged = std::mem::replace(&mut self.catalog, *published);
        let placed = staged.close_staged().and_then(|()| self.place_staged());
        if placed.is_err() {
            self.give_up_staged();
        }
        placed
    }

    /// Puts the catalog that was made in the place of the one that is open, and opens that.
    fn place_staged(&mut self) -> Result<()> {
        let staged = self.folder.join(STAGED);
        // Nothing would show later that an old version of a page is all that a loss of power left.
        let synced = crate::safe_open::open_to_write(&staged).and_then(|file| file.sync_data());
        synced.map_err(|error| Error::io("write", &staged, error))?;
        self.wait_for_log();
        let path = self.folder.join("catalog.db");
        // The log goes with the catalog. What it alone holds is needed only by a command that finds the one without the
        // other, and that one reads everything again.
        if let Err(error) = CatalogWriter::checkpoint_passively(&path) {
            tracing::debug!("the log of a catalog that is replaced goes as it is: {error}");
        }
        let renewed = self.identity.renew();
        if renewed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Conflict) {
            return renewed;
        }
        // Readers open it again even where it could not be replaced, because its log may be gone.
        self.state = State::Replaced;
        match CatalogWriter::open(&path) {
            Ok(catalog) => self.catalog = catalog,
            Err(error) => {
                // Whoever asks next opens everything anew.
                self.identity.adopt(None);
                return Err(error);
            }
        }
        renewed
    }

    /// Removes what was made of a catalog, unless the folder is somebody else's by now.
    fn give_up_staged(&self) {
        if !self.identity.is_displaced()
            && let Err(error) = remove_staged(&self.folder)
        {
            tracing::debug!("what is left of a load is removed later: {error}");
        }
    }

    /// Reads and parses on every core while this thread writes what arrives; `false` where it was stopped.
    fn read_all(
        &mut self,
        candidates: &[Candidate],
        plan: &Plan,
        batch: &mut Batch,
        report: &mut SyncReport,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<bool> {
        let total = candidates.len();
        let vault = Arc::clone(&self.vault);
        let next = AtomicUsize::new(0);
        let (sender, receiver) = sync_channel::<Vec<FileRead>>(4);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(total.max(1));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let sender = sender.clone();
                let (vault, next) = (&vault, &next);
                scope.spawn(move || {
                    let mut analyzer = Analyzer::default();
                    loop {
                        let group = read_group(vault, candidates, next, plan.started, &mut analyzer);
                        // The receiver is gone once the batch was given up.
                        if group.is_empty() || sender.send(group).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            if plan.is_load() {
                // Nothing else is known, so every target of a link is among the candidates.
                batch.targets = Some(Targets::new(candidates.iter().map(|new| (&new.stat.path, new.id))));
            }
            for (done, read) in receiver.into_iter().flatten().enumerate() {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                if let Some(candidate) = candidates.get(read.at) {
                    self.take(candidate, read, batch, plan, report)?;
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
        self.settle_passages(&old, batch, plan)?;
        batch.names.insert(key(path.name()));
        self.remove_text(id);
        Ok(())
    }

    fn remove_text(&self, id: FileId) {
        if let Some((writer, _)) = &self.full_text {
            writer.remove(id);
        }
    }

    /// Says whether a passage has no vector and is held by no file: its next holder makes it pending.
    fn is_unheld(&self, passage: i64) -> Result<bool> {
        let waits = self.vectors.as_ref().is_some_and(|vectors| !vectors.contains(passage));
        Ok(waits && self.catalog.reader().passages().files_containing(&[passage])?.is_empty())
    }

    /// Takes passages that no file holds any more off the pending count; a bulk batch counts anew at its end.
    fn settle_passages(&self, old: &[i64], batch: &mut Batch, plan: &Plan) -> Result<()> {
        if plan.is_bulk() {
            return Ok(());
        }
        for passage in old.iter().copied().collect::<HashSet<i64>>() {
            batch.pending -= i64::from(self.is_unheld(passage)?);
        }
        Ok(())
    }

    /// Writes one file that was read.
    fn take(
        &mut self,
        candidate: &Candidate,
        read: FileRead,
        batch: &mut Batch,
        plan: &Plan,
        report: &mut SyncReport,
    ) -> Result<()> {
        let FileRead { mut document, bytes, warning, failed, .. } = read;
        report.warnings.extend(warning);
        if failed && !candidate.fresh {
            // One failed reading does not take away what was read before, unless it stood somewhere else.
            if let Some(old) = &candidate.old_path {
                report.moved = report.moved.saturating_sub(1);
                report.removed += 1;
                report.touched.push(old.clone());
                batch.changed = true;
                self.remove_file(candidate.id, old, batch, plan)?;
            }
            return Ok(());
        }
        report.bytes += bytes;
        report.read += usize::from(bytes > 0);
        let record = &mut document.record;
        record.row.id = candidate.id;
        let unmoved = candidate.old_path.is_none();
        if unmoved && record.row.hash.is_some() && record.row.hash == candidate.old_hash {
            return self.catalog.update_stat(candidate.id, &record.stat, record.racy);
        }
        batch.changed = true;
        report.touched.push(record.row.path.clone());
        report.touched.extend(candidate.old_path.clone());
        if candidate.fresh {
            report.added += 1;
            if batch.targets.is_none() {
                batch.names.insert(key(record.row.path.name()));
            }
        } else if unmoved {
            report.changed += 1;
        }
        if let Some(old_path) = &candidate.old_path {
            batch.names.insert(key(old_path.name()));
            batch.names.insert(key(record.row.path.name()));
        }
        if let Some(targets) = &batch.targets {
            for links in &mut record.links {
                links.target = targets.find(candidate.id, &record.row.path, links);
            }
        }
        let old =
            if candidate.fresh { Vec::new() } else { self.catalog.reader().passages().of(candidate.id)? };
        self.catalog.upsert(record, candidate.fresh)?;
        self.settle_passages(&old, batch, plan)?;
        for (ord, &passage) in record.passages.iter().enumerate() {
            let row = (passage, candidate.id, ord);
            if plan.is_bulk() {
                batch.passages.push(row);
            } else {
                batch.pending += i64::from(self.is_unheld(passage)?);
                self.catalog.add_passages(&[row])?;
            }
        }
        if !candidate.fresh {
            self.remove_text(candidate.id);
        }
        if let (Some(mut entry), Some((writer, _))) = (document.entry, &mut self.full_text) {
            entry.file = candidate.id;
            writer.add(entry)?;
        }
        if batch.targets.is_none() && !record.links.is_empty() {
            let links = std::mem::take(&mut record.links);
            batch
                .sources
                .extend(links.into_iter().map(|links| (candidate.id, record.row.path.clone(), links)));
        }
        Ok(())
    }

    /// Points the links of changed notes, and links of others that name a file which came or went, at their targets.
    fn resolve(&self, batch: &Batch, plan: &Plan) -> Result<()> {
        if batch.targets.is_some() {
            return Ok(());
        }
        let touched: Vec<String> = batch.names.iter().cloned().collect();
        let others = self.catalog.reader().links().affected_by_names(&touched)?;
        let table = if plan.is_bulk() {
            self.catalog.reader().paths().all()?
        } else {
            let named = batch.sources.iter().chain(&others).flat_map(|(_, _, links)| link_names(links));
            let keys: HashSet<String> = named.collect();
            self.catalog.reader().paths().named(&keys.into_iter().collect::<Vec<_>>())?
        };
        let targets = Targets::new(table.iter().map(|(path, id)| (path, *id)));
        for (source, path, links) in batch.sources.iter().chain(&others) {
            let found = targets.find(*source, path, links);
            if found != links.target {
                self.catalog.retarget(*source, links, found)?;
            }
        }
        Ok(())
    }

    /// Opens the vectors' write side, where a model is set.
    pub(crate) fn open_vectors(&mut self) -> Result<()> {
        if let (None, Some((folder, dimensions))) = (&self.vectors, &self.vector_folder) {
            let (vectors, _) = VectorWriter::open(folder, *dimensions, false)?;
            self.vectors = Some(vectors);
        }
        Ok(())
    }

    /// Counts distinct passages without a vector.
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

    /// Lists the files that have passages without a vector, the newest and the most used first.
    pub(crate) fn waiting_files(&mut self) -> Result<Vec<FileId>> {
        let Some(vectors) = &self.vectors else {
            return Ok(Vec::new());
        };
        let mut waiting = HashSet::new();
        self.catalog.reader().passages().each(|passage, file| {
            if !vectors.contains(passage) {
                waiting.insert(file);
            }
        })?;
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let mut order = self.catalog.reader().newest_first(None)?;
        order.retain(|file| waiting.contains(file));
        let used = self.used_most(&waiting)?;
        // One of these, one of those: both come first.
        let (mut newest, mut used) = (order.into_iter(), used.into_iter());
        let mut order = Vec::with_capacity(waiting.len());
        while newest.len() > 0 {
            for file in [newest.next(), used.next()].into_iter().flatten() {
                if waiting.remove(&file) {
                    order.push(file);
                }
            }
        }
        Ok(order)
    }

    /// Lists those of these files that were used, the most used first.
    fn used_most(&mut self, among: &HashSet<FileId>) -> Result<Vec<FileId>> {
        let journal = Journal::open(&self.vault, &self.vault.records());
        if let Err(error) = Projection::refresh(&mut self.projection, &self.folder, true, &journal) {
            tracing::debug!("what is used most is not embedded first: {error}");
        }
        let mut found = Vec::new();
        for subject in
            self.projection.iter().flat_map(|projection| projection.ledger().most_used()).take(MOST_USED)
        {
            let rows = match subject {
                NoteRef::Path(path) => self.catalog.reader().row_at(path)?.into_iter().collect(),
                NoteRef::Id(id) => self.catalog.reader().names().best_matches(id)?,
            };
            found.extend(rows.iter().map(|row| row.id).filter(|file| among.contains(file)));
        }
        Ok(found)
    }

    /// Embeds what these files still lack; gives the number of vectors made. `stop` is asked between passages, and
    /// `done` hears how many of them are there.
    pub(crate) fn embed_files(
        &mut self,
        files: &[FileId],
        embedder: &dyn Embed,
        effort: Effort,
        done: &dyn Fn(usize),
        stop: &dyn Fn() -> bool,
    ) -> Result<usize> {
        let mut waiting: Vec<(i64, String)> = Vec::new();
        let mut seen = HashSet::new();
        let Some(vectors) = &mut self.vectors else {
            return Ok(0);
        };
        for row in self.catalog.reader().rows(files)? {
            let bytes = match self.vault.read(&row.path) {
                Ok(bytes) => bytes,
                // It went away, or cannot be read now; its passages keep waiting.
                Err(error) => {
                    tracing::warn!("{error}");
                    continue;
                }
            };
            for text in Reading::new(&row.path, bytes).embedded_texts() {
                let passage = passage_key(&text);
                if !vectors.contains(passage) && seen.insert(passage) {
                    waiting.push((passage, text));
                }
            }
        }
        let step = embedder.batch(effort).max(1);
        let mut made = 0;
        for group in waiting.chunks(step) {
            if stop() {
                break;
            }
            let texts: Vec<&str> = group.iter().map(|(_, text)| text.as_str()).collect();
            let embedded = embedder.embed(&texts, effort)?;
            let keyed: Vec<(i64, Vec<f32>)> =
                group.iter().map(|(passage, _)| *passage).zip(embedded).collect();
            vectors.append(&keyed)?;
            made += keyed.len();
            done(made);
        }
        Ok(made)
    }

    /// Counts again what waits for a vector, after somebody else may have written or the model changed.
    pub(crate) fn recount(&mut self) -> Result<()> {
        self.break_seal()?;
        self.open_vectors()?;
        let pending = self.count_pending()?;
        self.catalog.set_meta("pending", pending)?;
        self.keep_serving(pending)?;
        self.catalog.set_meta("model", self.model)
    }

    /// Lets the vectors that were there serve on after a change of model, and the new ones once none is missing.
    fn keep_serving(&mut self, pending: i64) -> Result<()> {
        let serving = active_model::named(self.catalog.reader())?;
        let before = self.catalog.reader().meta("model")?.unwrap_or(0);
        if self.model == 0 || serving == self.model {
            return Ok(());
        }
        // A catalog that holds nothing yet misses nothing, and says nothing.
        if pending == 0 && self.catalog.reader().generation()? > 0 {
            self.catalog.set_meta(active_model::SERVING, self.model)?;
            if serving != 0 || before != self.model {
                self.other_vectors = OtherVectors::Remove;
            }
        } else if serving == 0 && before != self.model {
            self.catalog.set_meta(active_model::SERVING, before)?;
        }
        Ok(())
    }

    /// Removes the vectors of the model that served before, once nobody here looks at them any more.
    pub(crate) fn drop_replaced(&mut self) -> Result<()> {
        if let (OtherVectors::Remove, Some((folder, _))) = (self.other_vectors, &self.vector_folder) {
            active_model::remove_others(&self.folder, folder)?;
        }
        self.other_vectors = OtherVectors::Keep;
        Ok(())
    }

    /// Says whether the pending count is that of another model.
    pub(crate) fn counts_another_model(&self) -> Result<bool> {
        Ok(self.catalog.reader().meta("model")?.unwrap_or(0) != self.model)
    }

    /// Counts again, and saves a graph where it pays.
    pub(crate) fn settle_vectors(&mut self, stop: &dyn Fn() -> bool) -> Result<()> {
        if let Some(vectors) = &self.vectors {
            vectors.build_graph(stop)?;
        }
        self.recount()
    }

    /// Merges a few segments where a long life made many of them, or too many where there is other work; says whether
    /// it did.
    pub(crate) fn merge_if_due(&mut self, is_idle: bool) -> Result<bool> {
        if self.bm25.segments()? <= if is_idle { MANY_SEGMENTS } else { TOO_MANY_SEGMENTS } {
            return Ok(false);
        }
        self.open_full_text(false)?;
        let Some((writer, _)) = &mut self.full_text else { return Ok(false) };
        let merged = writer.merge_smallest(MOST_SEGMENTS)?;
        writer.remove_unused_files()?;
        Ok(merged)
    }

    /// Empties the catalog's log where it grew long: in a thread of its own, since that waits for the disk, and while
    /// others write much it waits for them too; or to its end, where nothing else is to be done.
    pub(crate) fn empty_log_if_due(&mut self, is_idle: bool) {
        let path = self.folder.join("catalog.db");
        let length = std::fs::metadata(self.folder.join("catalog.db-wal")).map_or(0, |found| found.len());
        if length < LONG_LOG {
            return;
        }
        if is_idle || length > TOO_LONG_LOG {
            self.wait_for_log();
            if let Err(error) = self.catalog.checkpoint() {
                tracing::debug!("the catalog's log is emptied later: {error}");
            }
            return;
        }
        if self.emptying.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let empty = move || {
            if let Err(error) = CatalogWriter::checkpoint_passively(&path) {
                tracing::debug!("the catalog's log is emptied later: {error}");
            }
        };
        match std::thread::Builder::new().name("sidenote-log".to_owned()).spawn(empty) {
            Ok(thread) => self.emptying = Some(thread),
            Err(error) => tracing::debug!("the catalog's log is emptied later: {error}"),
        }
    }

    fn wait_for_log(&mut self) {
        if self.emptying.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("the thread that empties the catalog's log panicked");
        }
    }

    /// Leaves the index as it is, for another one stands in its folder.
    pub(crate) fn abandon_files(&mut self) {
        self.wait_for_log();
        self.full_text = None;
    }

    /// Tidies, moves everything to its place and seals the index, so that the next command trusts it.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.wait_for_log();
        if let State::Sealed = self.state {
            return Ok(());
        }
        if self.bm25.segments()? > MOST_SEGMENTS {
            self.open_full_text(false)?;
        }
        if let Some((mut writer, _)) = self.full_text.take() {
            writer.merge_down_to(MOST_SEGMENTS)?;
        }
        if !self.catalog.checkpoint()? {
            // A reader still looks at the log; without a seal the next writer checks the files itself.
            return Ok(());
        }
        checksums::close(&self.folder)?;
        self.state = State::Sealed;
        Ok(())
    }
}

/// Gathers what a batch leaves to its end.
#[derive(Default)]
struct Batch {
    /// Whether anything but a time was different.
    changed: bool,
    names: HashSet<String>,
    sources: Vec<(FileId, NotePath, LinkGroup)>,
    passages: Vec<(i64, FileId, usize)>,
    pending: i64,
    targets: Option<Targets>,
}
