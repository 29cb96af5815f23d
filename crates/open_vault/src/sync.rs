//! Updates the index from the events of the watch or from a scan.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_catalog::{Counts, FileKind, FileRow};
use sidenote_config::CommitPolicy;
use sidenote_index::attachments::Extent;
use sidenote_index::follow::CatchUp;
use sidenote_index::indexed_document::ParsedNote;
use sidenote_index::{Drift, EmbedReport, Holder, Progress, SyncReport, SyncScope, WaitLimit, silent};
use sidenote_journal::event::{Event, OP_MOVED, TouchedFile};
use sidenote_links::dialect::DialectUnit;
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_markdown::edit::{ContentHash, FileLocation};
use sidenote_markdown::path::NotePath;
use sidenote_vault::authority::authority_of;

use crate::lookup::Lookup;
use crate::{Core, former_of};

/// The time that a search waits for changes to be indexed. After it, the reply says that the index is behind.
const SEARCH: Duration = Duration::from_millis(300);

/// The time that a search waits if nothing is indexed yet.
const FIRST: Duration = Duration::from_secs(5);

/// The time in which a search begins to read new attachments: enough for a few usual ones, and short enough to wait for.
const READING: Duration = Duration::from_millis(500);

/// The time after which a search gives up what it is reading. A long book is left to `index` and to servers.
const LONGEST_READING: Duration = Duration::from_secs(2);

/// The time that a reader waits for the process that writes the index.
const WAIT_LIMIT: Duration = Duration::from_millis(300);

impl Core {
    /// Reads a file. In a copy, a file that differs from the index is compared with the authority's version, and
    /// replaced by it: a change on the server's disk is never served.
    pub fn read_bytes(&self, path: &NotePath) -> Result<Vec<u8>> {
        let read = self.vault.read(path);
        let authority = authority_of(&self.vault);
        if !authority.is_shared() {
            return read;
        }
        let is_missing = |error: &Error| error.kind() == ErrorKind::NotFound;
        if read.as_ref().is_err_and(|error| !is_missing(error)) {
            // A file that is not read, such as one over the limit, is not compared either.
            return read;
        }
        let present = read.as_ref().ok().map(|bytes| ContentHash::of(bytes).to_bytes());
        // Callers may have a read transaction.
        let known = self.index.nested_catalog()?.row_at(path.as_str())?.and_then(|row| row.hash);
        // The index does not know yet what this process is changing.
        let is_own = || {
            let changing = self.state.changing.lock().unwrap_or_else(PoisonError::into_inner);
            changing.get(path).is_some_and(|own| *own == present)
        };
        if known.is_none() || known == present || is_own() {
            return read;
        }
        authority.distrust(path);
        IndexSync::of(self).catch_up_copy()?;
        self.vault.read(path)
    }
}

impl Core {
    /// Reads what is searched of a file: the bytes of a note or canvas, or the text of an attachment in the form of
    /// [`attachment`](sidenote_markdown::attachment). Returns `None` for an attachment without text.
    ///
    /// # Errors
    /// `NotFound` if the file is gone; `Io` if it cannot be read.
    pub fn read_searched(&self, row: &FileRow) -> Result<Option<Vec<u8>>> {
        let bytes = || self.read_bytes(&row.path);
        match row.kind {
            FileKind::Attachment => self.index.attachment_text(row, bytes),
            FileKind::Note | FileKind::Canvas => bytes().map(Some),
        }
    }

    /// Reads and parses a file as [`Self::read_searched`] reads it.
    ///
    /// # Errors
    /// Those of [`Self::read_searched`].
    pub fn parsed_file(&self, row: &FileRow) -> Result<Option<Arc<ParsedNote>>> {
        let bytes = self.read_searched(row)?;
        Ok(bytes.map(|bytes| self.state.parsed_notes.of(&row.path, &bytes)))
    }
}

impl IndexSync<'_> {
    /// Returns whether this process follows the files. A search then uses the events of the watch instead of a scan.
    pub fn is_following(&self) -> bool {
        self.core.index.follower().is_following()
    }

    /// Waits until the process that writes the index has indexed every change of the files up to now. Returns `false` if that
    /// process does not follow the files, or does not say so in time.
    pub fn wait_for_follower(&self, wait_limit: Duration) -> bool {
        self.core.index.follower().wait_for_writer(wait_limit)
    }

    /// Updates the index for a caller with little time. What takes longer than `wait_limit` is left to other processes,
    /// or to the next call. Returns whether the index may say something else now, if only about the times of a file.
    pub fn refresh_within(&self, wait_limit: Duration) -> Result<bool> {
        if self.catch_up_copy()? {
            return Ok(true);
        }
        if !self.core.index.promote()? {
            return Ok(false);
        }
        let caught_up = self.core.index.follower().catch_up(WaitLimit::within(wait_limit).unless_large())?;
        self.note_moves();
        Ok(match caught_up {
            CatchUp::Done(report) => report.retimed > 0 || report.changed_anything(),
            CatchUp::Behind(_) => true,
        })
    }

    /// Updates the index if this process writes it, and returns the number of files that it is still behind. A process
    /// that follows the files, or that only reads the index, waits for a short time.
    ///
    /// # Errors
    /// `Io` if the vault cannot be listed.
    #[tracing::instrument(skip_all)]
    pub fn refresh(&self) -> Result<usize> {
        let refreshed = self.core.refreshed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(behind) = refreshed {
            Lookup::of(self.core).set_behind(behind);
            return Ok(behind);
        }
        let behind = if self.catch_up_copy()? {
            usize::from(authority_of(&self.core.vault).is_cut_off())
        } else if self.core.index.promote()? {
            self.refresh_as_writer()?
        } else {
            self.refresh_as_reader()?
        };
        Lookup::of(self.core).set_behind(behind);
        Ok(behind)
    }

    /// Brings the folder up to date if it is a copy, and indexes the files that this changed. Returns whether the folder is
    /// a copy. Its files are scanned once, for an earlier process may have ended before it indexed them.
    ///
    /// # Errors
    /// The errors of [`Authority::catch_up`](sidenote_vault::authority::Authority::catch_up); `Conflict` if
    /// another process writes the index.
    pub fn catch_up_copy(&self) -> Result<bool> {
        // Calls run at the same time, and none may answer before the changes that another one found are indexed.
        let mut is_scanned = self.core.state.is_copy_scanned.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(changed) = authority_of(&self.core.vault).catch_up()? else { return Ok(false) };
        let scope = if *is_scanned { SyncScope::only(changed) } else { SyncScope::All };
        if matches!(&scope, SyncScope::Only { files, .. } if files.is_empty()) {
            return Ok(true);
        }
        self.core.index.promote()?;
        // After an error it is unknown what is indexed.
        *is_scanned = false;
        warn_of(&self.core.index.sync(scope, silent())?);
        *is_scanned = true;
        Ok(true)
    }

    /// Returns how long a reply of a server waits for the index that it writes: for a large batch only before the first index,
    /// when there is nothing to answer from.
    fn server_wait_limit(&self) -> Result<WaitLimit> {
        let wait_limit = WaitLimit::within(self.wait_limit(SEARCH)?);
        Ok(if self.core.index.generation()? == 0 { wait_limit } else { wait_limit.unless_large() })
    }

    /// Returns how long a reply waits for the index: `wait_limit`, or longer if nothing is indexed yet.
    fn wait_limit(&self, wait_limit: Duration) -> Result<Duration> {
        Ok(if self.core.index.generation()? == 0 { FIRST } else { wait_limit })
    }

    /// Updates the index as its writer. Returns the number of changes that it is still behind.
    fn refresh_as_writer(&self) -> Result<usize> {
        let files = self.core.index.follower();
        // A process that follows the files serves other requests, too, so this one does not wait for long.
        let wait_limit = match files.is_requested() {
            true => self.server_wait_limit(),
            false => Ok(WaitLimit::ENDLESS),
        };
        match wait_limit.and_then(|wait_limit| files.catch_up(wait_limit)) {
            // For example, the disk may be full. The index can still be read.
            Err(error) if error.kind() == ErrorKind::Io && self.core.index.generation()? > 0 => {
                let drift = self.core.index.drift(&self.core.vault)?;
                Lookup::of(self.core).set_unindexed(Some(&drift));
                tracing::warn!("the index cannot be updated and is used as it is: {error}");
                Ok(drift.len())
            }
            caught_up => {
                let behind = match caught_up? {
                    CatchUp::Done(report) => {
                        warn_of(&report);
                        Lookup::of(self.core).set_unindexed(None);
                        0
                    }
                    CatchUp::Behind(changes) => {
                        self.look_for_unindexed()?;
                        changes
                    }
                };
                self.note_moves();
                Ok(behind)
            }
        }
    }

    /// Looks which files differ from the index, so that notes are found by name while a large batch is indexed. Once is enough
    /// for a batch: whatever is found then is read from the disk until the index is up to date, and a name that is not found is
    /// looked for again.
    fn look_for_unindexed(&self) -> Result<()> {
        let Some(batch) = self.core.index.follower().large_batch() else { return Ok(()) };
        // Calls run at the same time, and the others wait for what the first one finds.
        let mut looked = self.core.state.looked_in_batch.lock().unwrap_or_else(PoisonError::into_inner);
        if *looked != batch {
            Lookup::of(self.core).compare_again()?;
            *looked = batch;
        }
        Ok(())
    }

    /// Waits for the process that writes the index. Returns the number of files that the index is still behind. The files are
    /// compared with the index only where that process does not follow them, or does not answer.
    fn refresh_as_reader(&self) -> Result<usize> {
        let wait_limit = self.wait_limit(WAIT_LIMIT)?;
        let end = Instant::now() + wait_limit;
        if self.wait_for_follower(wait_limit) {
            Lookup::of(self.core).set_unindexed(Some(&Drift::default()));
            return Ok(0);
        }
        loop {
            let generation = self.core.index.generation()?;
            let drift = self.core.index.drift(&self.core.vault)?;
            Lookup::of(self.core).set_unindexed(Some(&drift));
            if drift.is_empty() || !self.core.index.wait_for_commit(generation, end)? {
                return Ok(drift.len());
            }
        }
    }

    /// Records in the journal where notes were moved by other programs, so that they keep their uses and links to them can
    /// be repaired. A failure is logged.
    pub fn note_moves(&self) {
        let moves = self.core.index.take_moves();
        // What moves in a copy was moved by a change, which is in its journal sooner or later.
        let is_copy = authority_of(&self.core.vault).is_shared();
        if moves.is_empty() || is_copy || self.core.vault.is_read_only() {
            return;
        }
        let journal = || -> Result<()> {
            // Moves by sidenote itself are in the journal already.
            let files = self.core.journal().unrecorded(moves)?.into_iter().map(|(from, to)| TouchedFile {
                path: FileLocation::Vault(from),
                to: Some(FileLocation::Vault(to)),
                before: None,
                after: None,
            });
            let files: Vec<TouchedFile> = files.collect();
            if files.is_empty() {
                return Ok(());
            }
            self.core.state.repair_is_due.store(true, Ordering::Relaxed);
            self.core.journal().append(&Event { files, ..Event::new(OP_MOVED, self.core.clock.now()) })
        };
        if let Err(error) = journal() {
            tracing::warn!("the moves of notes cannot be recorded, so they lose their uses: {error}");
        }
    }

    /// Updates the index by a full scan.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index.
    #[tracing::instrument(skip_all)]
    pub fn sync(&self, progress: Arc<Progress>) -> Result<SyncReport> {
        let report = self.core.index.sync(SyncScope::All, progress)?;
        self.note_moves();
        Ok(report)
    }

    /// Updates the index by a full scan. A process that does not write the index waits for the one that does.
    ///
    /// # Errors
    /// `Io` if the vault cannot be listed.
    pub fn compare_all(&self) -> Result<()> {
        if !self.core.index.is_writer() {
            return self.refresh().map(drop);
        }
        warn_of(&self.sync(silent())?);
        Ok(())
    }

    /// Calls `hearer` after every change of the index by this process.
    pub fn on_change(&self, hearer: impl FnMut(&SyncReport) + Send + 'static) {
        self.core.index.on_change(hearer);
    }

    /// Returns the number of committed batches, including those of another process.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn generation(&self) -> Result<i64> {
        self.core.index.generation()
    }

    /// Embeds all passages without a vector, unless another vault of the user shares it.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index; an error of the embedder if it fails.
    #[tracing::instrument(skip_all)]
    pub fn embed_all(&self, progress: Arc<Progress>) -> Result<EmbedReport> {
        self.core.index.embed_all(progress)
    }

    /// Reads all attachments that wait for it, and waits for it. Returns their number.
    ///
    /// # Errors
    /// `Conflict` if another process writes the index, or the work was stopped; `Io` or `Corrupt` if the index cannot be
    /// written.
    pub fn read_attachments(&self, progress: &Arc<Progress>) -> Result<usize> {
        self.core.index.read_attachments(Extent::All, &|| false, progress)
    }

    /// Reads attachments that are new, for a limited time, before a search. A process that follows the files reads them in the
    /// background.
    pub fn read_new_attachments(&self) {
        if self.is_following() {
            return;
        }
        let now = Instant::now();
        let extent = Extent::Until { begin: now + READING, end: now + LONGEST_READING };
        let halt = || self.core.check_cancelled().is_err();
        if let Err(error) = self.core.index.read_attachments(extent, &halt, &silent()) {
            tracing::warn!("new attachments are not read yet: {error}");
        }
    }

    /// Returns the numbers of notes, of passages, and of passages without a vector, without reading the files.
    pub fn totals(&self) -> Result<(usize, usize, usize)> {
        let pending = self.core.index.snapshot()?.pending;
        let catalog = self.core.index.catalog();
        Ok((catalog.totals().notes()?, catalog.totals().passages()?, pending))
    }

    /// Returns the number of passages without a vector, and that of vectors, without reading the files.
    ///
    /// # Errors
    /// `Corrupt` if the catalog cannot be read.
    pub fn vectors(&self) -> Result<(usize, usize)> {
        let snapshot = self.core.index.snapshot()?;
        Ok((snapshot.pending, snapshot.vectors.len()))
    }

    /// Returns the state of the vault and the index.
    #[tracing::instrument(skip_all)]
    pub fn status(&self) -> Result<Status> {
        let at = self.core.clock.now();
        let snapshot = self.core.index.snapshot()?;
        let behind = self.core.index.drift(&self.core.vault)?.len();
        let (index_bytes, vector_bytes) = self.core.index.size_on_disk()?;
        // Without an index nothing was counted or decided yet.
        let link_dialects = match snapshot.generation {
            0 => Vec::new(),
            _ => self.core.index.catalog().links().dialects()?.units().to_vec(),
        };
        Ok(Status {
            vault: self.core.vault.root().to_owned(),
            index: self.core.index.folder().to_owned(),
            counts: self.core.index.catalog().totals().counts()?,
            link_dialects,
            commits: self.core.config.git.commit,
            dialect_counts: self.core.index.catalog().links().dialect_counts()?,
            generation: snapshot.generation,
            embedder: self.core.embedder_name(),
            former_embedder: former_of(&snapshot),
            vectors: snapshot.vectors.len(),
            pending: snapshot.pending,
            index_bytes,
            vector_bytes,
            behind,
            stale: behind > 0,
            locked_by: if self.core.index.is_writer() { None } else { self.core.index.holder() },
            at,
        })
    }

    /// Returns whether nothing was indexed yet, and this process can index.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn is_new(&self) -> Result<bool> {
        Ok(self.core.index.is_writer() && self.core.index.generation()? == 0)
    }

    /// Returns the content of the index, one line for each fact. Equal indexes give equal lines.
    pub fn dump(&self) -> Result<Vec<String>> {
        self.core.index.dump()
    }
}

/// Logs the warnings of a sync.
fn warn_of(report: &SyncReport) {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    if let Some(change) = &report.dialect_change {
        tracing::warn!("{change}");
    }
}

/// The state of a vault and its index.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The folder of the vault.
    pub vault: PathBuf,
    /// The folder of the index.
    pub index: PathBuf,
    /// The totals of the index.
    #[serde(flatten)]
    pub counts: Counts,
    /// The link dialect of each folder that has one of its own, and of the vault, which is the last. Empty before the first
    /// index, which decides.
    pub link_dialects: Vec<DialectUnit>,
    /// How many links between files lead to a file under each dialect, by which the dialect is found where no file marks it.
    pub dialect_counts: DialectCounts,
    /// When the changes of operations are committed in git.
    pub commits: CommitPolicy,
    /// The number of batches committed.
    pub generation: i64,
    /// The model's name; `none` without one.
    pub embedder: String,
    /// The former model, while its vectors are used until all new ones are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_embedder: Option<String>,
    /// The number of vectors.
    pub vectors: usize,
    /// The number of passages without a vector.
    pub pending: usize,
    /// The size of the index in bytes, with vectors.
    pub index_bytes: u64,
    /// The size of the vectors in bytes.
    pub vector_bytes: u64,
    /// The number of files that differ from the index.
    pub behind: usize,
    /// Whether the index is behind the files.
    pub stale: bool,
    /// The process that holds the index lock, if it is another one.
    pub locked_by: Option<Holder>,
    /// The time of this status.
    pub at: Timestamp,
}

/// Updates the index, and returns its state.
#[derive(Debug, Clone, Copy)]
pub struct IndexSync<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> IndexSync<'a> {
    /// Makes the service of an open vault.
    pub fn of(core: &'a Core) -> Self {
        Self { core }
    }
}
