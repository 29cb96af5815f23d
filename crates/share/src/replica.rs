//! A replica: the folder of a person that is kept equal to a vault of a team over HTTP, byte for byte and in both directions.
//!
//! The process can be killed in every step: the next run finds what was done, and does the rest.

mod broken_links;
mod folder;
pub mod plan;
mod remote;
mod state;
mod unsent;
mod watch;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use sidenote_base::clock::{Clock, event_id};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::{parallel, platform};
use sidenote_links::conflict_copy::conflict_mark;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::path::is_safe_on_windows;
use sidenote_store::replication::protocol::{
    Changes, CommitRequest, CommittedContent, MAX_COMMIT_FILES, NewContent,
};
use sidenote_vault::copy::SharedPath;
use sidenote_vault::merge_base;

use crate::address::VaultAddress;
use crate::oauth::token_source::TokenSource;
pub use crate::replica::broken_links::BrokenLink;
use crate::replica::folder::{Folder, LocalStep};
use crate::replica::plan::{FileStates, LocalFile, Plan, Rules, Step};
use crate::replica::remote::{Committed, Remote};
use crate::replica::state::{SentCommit, State, StateFile};
use crate::replica::unsent::UnsentFiles;
pub use crate::replica::watch::{POLL_INTERVAL, SyncEvent};

/// How often a run plans again because files changed meanwhile.
const MAX_ROUNDS: usize = 8;
/// The most files that are fetched before they are written into the folder.
const FETCHED_FILES: usize = 500;
/// The most bytes that are fetched before they are written into the folder, unless one group of files is longer.
const FETCHED_BYTES: usize = 32 << 20;
/// The number of contents that are asked for at once.
const FETCHED_AT_ONCE: usize = 8;
/// The most bytes of a commit, unless it is of one file. It fits the limit of ordinary requests.
const COMMIT_BYTES: usize = 3 << 20;
/// The largest file before the service was asked for its limit.
const UNKNOWN_LIMIT: u64 = 50_000_000;

/// What the first synchronisation does with files of the folder that differ from those of the vault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstSync {
    /// Nothing: the plan is shown.
    #[default]
    Ask,
    /// They are sent; where both sides have a file of one name, both are kept.
    Adopt,
    /// They are removed or replaced, which can be undone.
    Replace,
}

/// What a synchronisation works on.
#[derive(Debug, Clone)]
pub struct ReplicaOptions {
    /// The address of the vault.
    pub address: VaultAddress,
    /// The folder.
    pub root: PathBuf,
    /// Where the tokens for the service come from.
    pub token: TokenSource,
    /// Who made the conflict copies, as their names say it.
    pub who: String,
    /// What the first synchronisation does.
    pub first: FirstSync,
    /// Whether a synchronisation may lose most of the files of a side.
    pub may_lose_most: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// The time.
    pub clock: Clock,
}

/// What a synchronisation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It reads the files of the folder.
    Reading,
    /// It fetches files of the vault.
    Fetching,
    /// It sends files of the folder.
    Sending,
}

/// A callback for progress: the phase, the number of files that are done, and that of all.
pub type Progress<'a> = dyn Fn(Phase, usize, usize) + 'a;

/// A conflict copy that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictReply {
    /// The file, which has the text of the vault now.
    pub path: String,
    /// The file with the text of the folder.
    pub copy: String,
}

/// A file that takes no part.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LeftOutFile {
    /// The path.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// What a synchronisation did or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SyncReply {
    /// Files that the folder got.
    pub fetched: Vec<String>,
    /// Files that were removed from the folder.
    pub removed_here: Vec<String>,
    /// Files that the vault got.
    pub sent: Vec<String>,
    /// Files that were removed from the vault.
    pub removed_there: Vec<String>,
    /// Files that both sides changed.
    pub conflicts: Vec<ConflictReply>,
    /// Files that take no part.
    pub left_out: Vec<LeftOutFile>,
    /// Links to files that were removed, which lead nowhere now.
    pub broken_links: Vec<BrokenLink>,
    /// The number of changes of the vault.
    pub generation: i64,
    /// Whether anything was written.
    pub applied: bool,
    /// Whether a person has to choose before anything is written.
    pub needs_choice: bool,
    /// Whether most of the files of a side would be lost, or were, as the person chose.
    pub loses_most: bool,
    /// Whether it was stopped before it was done.
    pub stopped: bool,
    /// Whether files changed so often meanwhile that the next run has to go on.
    pub unfinished: bool,
}

impl SyncReply {
    /// Returns whether nothing was changed on either side.
    pub fn is_quiet(&self) -> bool {
        self.fetched.is_empty()
            && self.removed_here.is_empty()
            && self.sent.is_empty()
            && self.removed_there.is_empty()
            && self.conflicts.is_empty()
    }

    fn add(&mut self, path: &SharedPath, step: &Step) {
        let name = path.as_str().to_owned();
        match step {
            Step::Agree => {}
            Step::Fetch { .. } => self.fetched.push(name),
            Step::RemoveHere(_) => self.removed_here.push(name),
            Step::Send { .. } => self.sent.push(name),
            Step::RemoveThere(_) => self.removed_there.push(name),
            Step::SetAside { copy, .. } => {
                self.conflicts.push(ConflictReply { path: name, copy: copy.clone() });
            }
            Step::LeaveOut(reason) => self.leave_out(name, reason.clone()),
        }
    }

    fn sort(&mut self) {
        for paths in [&mut self.fetched, &mut self.removed_here, &mut self.sent, &mut self.removed_there] {
            paths.sort_unstable();
            paths.dedup();
        }
        self.conflicts.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        // Of several reasons for one file, the first is reported.
        self.left_out.sort_by(|one, other| one.path.cmp(&other.path));
        self.left_out.dedup_by(|one, other| one.path == other.path);
    }

    fn leave_out(&mut self, path: String, reason: String) {
        self.left_out.push(LeftOutFile { path, reason });
    }
}

/// A folder that is kept equal to a vault. One process has it at a time.
#[derive(Debug)]
pub struct Replica {
    options: ReplicaOptions,
    remote: Remote,
    folder: Folder,
    /// The state file; `None` for a dry run.
    state_file: Option<StateFile>,
    state: State,
    /// Whether the folder was never synchronised.
    is_first: bool,
    /// Whether the present plan loses most of the files of a side, which `undo` takes back in the folder.
    loses_most: bool,
    /// Contents that the vault loses by a commit, until the folder has recorded them.
    lost: HashMap<ContentHash, Vec<u8>>,
    /// The new files that the vault did not take in this round.
    unsent: UnsentFiles,
    max_file: u64,
}

impl Replica {
    /// Opens a folder. Nothing is asked of the service yet.
    ///
    /// # Errors
    /// `NotFound` if the folder does not exist; `Conflict` if another
    /// process synchronises it; `Io` if its state cannot be read or written.
    pub fn open(options: ReplicaOptions) -> Result<Self> {
        let remote = Remote::new(options.address.clone(), options.token.clone());
        let folder = Folder::open(&options.root, !options.dry_run)?;
        let state_file = if options.dry_run { None } else { Some(StateFile::open(folder.vault())?) };
        let known = match &state_file {
            Some(file) => file.load()?,
            None => StateFile::peek(folder.vault())?,
        };
        let is_first = known.as_ref().is_none_or(|known| known.position.is_none());
        let state = known.unwrap_or_default();
        Ok(Self {
            options,
            remote,
            folder,
            state_file,
            state,
            is_first,
            loses_most: false,
            lost: HashMap::new(),
            unsent: UnsentFiles::default(),
            max_file: UNKNOWN_LIMIT,
        })
    }

    /// Makes folder and vault equal. Files that change meanwhile are planned again; those that change once more are
    /// left to the next run. `stop` ends it between two steps.
    ///
    /// # Errors
    /// `Invalid` if the service refuses the token or a right; `NotFound` if it has no such vault; `Io` if it cannot be
    /// reached, or the folder not be read or written. What was done until then stays done.
    pub fn synchronise(&mut self, stop: &AtomicBool, progress: &Progress<'_>) -> Result<SyncReply> {
        self.synchronise_from(None, stop, progress)
    }

    /// Makes folder and vault equal as [`Self::synchronise`] does, beginning with the answer of [`Self::ask`] if there is one.
    fn synchronise_from(
        &mut self,
        mut asked: Option<Changes>,
        stop: &AtomicBool,
        progress: &Progress<'_>,
    ) -> Result<SyncReply> {
        let mut reply = SyncReply { applied: !self.options.dry_run, ..SyncReply::default() };
        let is_other_address = !self.state.url.is_empty() && self.state.url != self.remote.url();
        self.state.is_replacing |= self.is_first && self.options.first == FirstSync::Replace;
        for round in 1..=MAX_ROUNDS {
            // What this round leaves out, the next one may not.
            reply.left_out.clear();
            self.refresh(is_other_address, asked.take())?;
            let plan = self.plan(progress)?;
            reply.loses_most |= self.loses_most;
            let needs_choice = self.needs_choice(&plan) || self.loses_most && !self.options.may_lose_most;
            if self.options.dry_run || needs_choice {
                reply.needs_choice = needs_choice;
                reply.applied = false;
                plan.steps.iter().for_each(|(path, step)| reply.add(path, step));
                break;
            }
            let is_whole = self.carry_out(&plan, stop, progress, &mut reply)?;
            if stop.load(Ordering::Relaxed) {
                reply.stopped = true;
                break;
            }
            if is_whole {
                self.state.is_replacing = false;
                break;
            }
            reply.unfinished = round == MAX_ROUNDS;
        }
        if reply.applied {
            self.is_first = false;
            self.store()?;
            merge_base::remove_unused(self.folder.vault())?;
            match self.broken_links(&reply) {
                Ok(broken) => reply.broken_links = broken,
                Err(error) => tracing::warn!("links to removed files were not looked for: {error}"),
            }
        }
        reply.sort();
        reply.generation = self.state.position.as_ref().map_or(0, |position| position.generation);
        Ok(reply)
    }

    fn store(&self) -> Result<()> {
        match &self.state_file {
            Some(file) => file.store(&self.state),
            None => Ok(()),
        }
    }

    /// Asks the service for changes, and for the result of the commit whose answer is missing.
    fn ask(&self) -> Result<Changes> {
        let operation = self.state.sent.as_ref().map(|sent| sent.operation.as_str());
        self.remote.changes(self.state.position.as_ref(), operation)
    }

    /// Takes over what changed in the vault, by an answer that was just given or a new one.
    fn refresh(&mut self, is_other_address: bool, asked: Option<Changes>) -> Result<()> {
        let known = self.state.position.clone();
        let mut changes = asked.map_or_else(|| self.ask(), Ok)?;
        if let Some(known) = &known {
            let head = &changes.head;
            let is_other = known.origin != head.position.origin;
            if is_other && is_other_address && self.options.first == FirstSync::Ask {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!("this folder is kept equal to another vault, {}", self.state.url),
                )
                .with_hints("give --adopt to bring both together, or choose another folder", ""));
            }
            // A commit that was answered is in every later state.
            let lacks_commit = self.state.sent.as_ref().is_some_and(|sent| sent.is_done)
                && (head.is_done == Some(false) || head.position.generation <= known.generation);
            // The vault was restored, or went back: what both had then says nothing about what is there now.
            if is_other || lacks_commit || head.is_full && known.generation > 0 {
                self.state.forget_base();
                self.state.is_replacing = is_other_address && self.options.first == FirstSync::Replace;
                if !head.is_full {
                    changes = self.remote.changes(None, None)?;
                }
            }
        }
        let Changes { head, files } = changes;
        self.max_file = head.max_file;
        if head.is_full {
            self.state.ahead.clear();
            let gone: Vec<SharedPath> = self.state.paths().collect();
            gone.iter().for_each(|path| self.state.set_remote(path, None));
        }
        for (path, hash) in &files {
            self.state.set_remote(path, *hash);
        }
        self.settle(head.is_done.unwrap_or(false));
        self.state.position = Some(head.position);
        self.remote.url().clone_into(&mut self.state.url);
        Ok(())
    }

    /// Records what a commit did whose answer was lost, or whose sender was killed.
    fn settle(&mut self, is_done: bool) {
        let Some(sent) = self.state.sent.take() else { return };
        for (path, hash) in sent.files {
            let remote = self.state.remote(&path);
            if is_done || remote == hash {
                self.state.agree(&path, hash);
                if let Some(shared) = SharedPath::parse(&path) {
                    self.state.set_remote(&shared, remote);
                }
            }
        }
    }

    /// Compares the folder, the vault and the state of the last synchronisation.
    fn plan(&mut self, progress: &Progress<'_>) -> Result<Plan> {
        let expected: Vec<SharedPath> = self.state.paths().collect();
        let local = self.folder.scan(expected.into_iter(), self.max_file, &|done, all| {
            progress(Phase::Reading, done, all);
        })?;
        let mut files: BTreeMap<SharedPath, FileStates> = BTreeMap::new();
        for (path, local) in local {
            let mut base = self.state.base.get(path.as_str()).copied();
            if let (true, None, LocalFile::Present(hash)) = (self.state.is_replacing, base, &local) {
                // The vault decides about everything that was in the folder.
                base = Some(*hash);
            }
            let remote = self.state.remote(path.as_str());
            files.insert(path, FileStates { base, local, remote });
        }
        let rules = Rules {
            mark: conflict_mark(self.options.clock.now(), &self.options.who),
            tells_case_apart: self.folder.tells_case_apart(),
            is_possible_name: if platform::LIMITS_NAMES { is_safe_on_windows } else { |_| true },
        };
        let plan = plan::plan(&files, &rules);
        self.loses_most = !self.state.is_replacing && plan::loses_most(&plan, &files);
        Ok(plan)
    }

    /// Returns whether the person has to decide first: the folder was never synchronised, and has notes or attachments
    /// that the vault does not have. Settings alone need no choice, since every new vault of Obsidian has some.
    fn needs_choice(&self, plan: &Plan) -> bool {
        let is_own = |(path, step): (&SharedPath, &Step)| {
            !path.is_settings() && matches!(step, Step::Send { .. } | Step::SetAside { .. })
        };
        self.is_first && self.options.first == FirstSync::Ask && plan.steps.iter().any(is_own)
    }

    /// Carries out a plan: first in the folder, then in the vault. Returns whether everything is done, and nothing has
    /// to be planned again.
    fn carry_out(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        progress: &Progress<'_>,
        reply: &mut SyncReply,
    ) -> Result<bool> {
        // What replaces the files of the folder must be known before the first of them is replaced.
        if self.is_first {
            self.store()?;
        }
        for (path, step) in &plan.steps {
            match step {
                Step::Agree => {
                    let remote = self.state.remote(path.as_str());
                    self.state.agree(path.as_str(), remote);
                }
                Step::LeaveOut(reason) => reply.leave_out(path.as_str().to_owned(), reason.clone()),
                _ => {}
            }
        }
        let is_fetched = self.fetch_all(plan, stop, progress, reply)?;
        let is_sent = self.send_all(plan, stop, progress, reply)?;
        Ok(is_fetched && is_sent)
    }

    /// Carries out the steps that change the folder, in groups.
    fn fetch_all(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        progress: &Progress<'_>,
        reply: &mut SyncReply,
    ) -> Result<bool> {
        let is_local =
            |step: &Step| matches!(step, Step::Fetch { .. } | Step::RemoveHere(_) | Step::SetAside { .. });
        let steps: Vec<(&SharedPath, &Step)> = plan.steps.iter().filter(|(_, step)| is_local(step)).collect();
        let mut is_whole = true;
        let mut at = 0;
        while at < steps.len() && !stop.load(Ordering::Relaxed) {
            let mut ready: Vec<LocalStep<'_>> = Vec::new();
            let mut size = 0;
            // Steps without contents are carried out with the first that has one, so that renames arrive together.
            while at < steps.len() && ready.len() < FETCHED_FILES && size < FETCHED_BYTES {
                let group = steps.get(at..(at + FETCHED_AT_ONCE).min(steps.len())).unwrap_or_default();
                at += group.len();
                let contents = self.fetch(group)?;
                for (path, step) in group {
                    let bytes = match fetched_hash(step) {
                        None => Vec::new(),
                        Some(hash) => match contents.get(&hash) {
                            Some(bytes) => bytes.clone(),
                            // The vault has changed it meanwhile.
                            None => {
                                is_whole = false;
                                continue;
                            }
                        },
                    };
                    size += bytes.len();
                    ready.push(LocalStep { path, step, bytes });
                }
                progress(Phase::Fetching, at, steps.len());
            }
            is_whole &= self.land(&ready, plan, reply)?;
        }
        Ok(is_whole)
    }

    /// Fetches the contents of some steps, on several connections.
    fn fetch(&self, steps: &[(&SharedPath, &Step)]) -> Result<HashMap<ContentHash, Vec<u8>>> {
        let mut wanted: Vec<ContentHash> = steps.iter().filter_map(|(_, step)| fetched_hash(step)).collect();
        wanted.sort_unstable_by_key(|hash| hash.to_bytes());
        wanted.dedup();
        let (remote, largest) = (&self.remote, self.max_file);
        let fetched = parallel::map(&wanted, 1, || (), |(), hash| remote.content(*hash, largest));
        let mut contents = HashMap::new();
        for (hash, bytes) in wanted.into_iter().zip(fetched) {
            if let Some(bytes) = bytes? {
                contents.insert(hash, bytes);
            }
        }
        Ok(contents)
    }

    /// Writes a group of steps into the folder, and records what was done.
    fn land(&mut self, ready: &[LocalStep<'_>], plan: &Plan, reply: &mut SyncReply) -> Result<bool> {
        if ready.is_empty() {
            return Ok(true);
        }
        self.keep_bases(ready)?;
        let now = self.options.clock.now();
        let is_undoable = self.state.is_replacing || self.loses_most;
        let landed = self.folder.land(ready, now, is_undoable)?;
        let mut is_whole = landed.changed.is_empty();
        for path in &landed.done {
            let Some(step) = plan.steps.get(path) else { continue };
            reply.add(path, step);
            // The conflict copy is a file of the folder that must be sent.
            is_whole &= !matches!(step, Step::SetAside { .. });
            match step {
                // The name is needed for a folder, and no file of the vault has it.
                Step::SetAside { theirs: None, .. } => {}
                _ => self.state.agree(path.as_str(), fetched_hash(step)),
            }
        }
        for (path, reason) in landed.failed {
            reply.leave_out(path.as_str().to_owned(), reason);
        }
        self.store()?;
        Ok(is_whole)
    }

    /// Keeps the common version of each note that is about to get a conflict copy, so that `conflicts merge` has it.
    fn keep_bases(&self, ready: &[LocalStep<'_>]) -> Result<()> {
        for ready in ready.iter().filter(|ready| ready.path.as_str().ends_with(".md")) {
            let Step::SetAside { theirs: Some(_), copy, .. } = ready.step else { continue };
            let Some(base) = self.state.base.get(ready.path.as_str()) else { continue };
            if let Some(bytes) = self.remote.earlier_content(*base, self.max_file)? {
                merge_base::store(self.folder.vault(), copy, &bytes)?;
            }
        }
        Ok(())
    }

    /// Carries out the steps that change the vault, in commits. Settings have commits of their own, since they need
    /// another right. If a file takes the place of a folder, or the reverse, the old one is removed first. A file that
    /// was only renamed is sent and removed in one commit. All others are removed last, unless they may be new files
    /// that the vault did not take.
    fn send_all(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        progress: &Progress<'_>,
        reply: &mut SyncReply,
    ) -> Result<bool> {
        let is_sent = |step: &Step| matches!(step, Step::Send { .. } | Step::RemoveThere(_));
        let steps: Vec<(&SharedPath, &Step)> = plan.steps.iter().filter(|(_, step)| is_sent(step)).collect();
        let (settings, files): (Vec<_>, Vec<_>) = steps.iter().partition(|(path, _)| path.is_settings());
        let coming: std::collections::BTreeSet<&str> = files
            .iter()
            .filter(|(_, step)| matches!(step, Step::Send { .. }))
            .map(|(path, _)| path.as_str())
            .collect();
        let needed: std::collections::BTreeSet<&str> =
            coming.iter().flat_map(|path| plan::folders_of(path)).collect();
        let (first, rest): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, step)| {
            let path = path.as_str();
            matches!(step, Step::RemoveThere(_))
                && (needed.contains(path) || plan::folders_of(path).any(|folder| coming.contains(folder)))
        });
        let (coming, going) = with_their_removals(rest);
        let mut is_whole = true;
        let mut done = 0;
        self.unsent = UnsentFiles::default();
        for (group, is_last) in [(first, false), (coming, false), (settings, false), (going, true)] {
            let group = if is_last { self.without_renamed(group, reply)? } else { group };
            // What is removed makes room.
            is_whole &= !is_last || group.is_empty() || self.unsent.is_empty();
            let mut at = 0;
            while at < group.len() && !stop.load(Ordering::Relaxed) {
                let (request, taken) = self.commit_of(group.get(at..).unwrap_or_default());
                at += taken;
                done += taken;
                is_whole &= self.send(&request, plan, reply)?;
                progress(Phase::Sending, done, steps.len());
            }
        }
        Ok(is_whole)
    }

    /// Leaves out the removals of files that may be new ones which the vault did not take.
    fn without_renamed<'p>(
        &self,
        removals: Vec<FileStep<'p>>,
        reply: &mut SyncReply,
    ) -> Result<Vec<FileStep<'p>>> {
        let mut kept = Vec::with_capacity(removals.len());
        for (path, step) in removals {
            let Step::RemoveThere(base) = step else { continue };
            match self.reason_to_keep(path, *base)? {
                Some(reason) => reply.leave_out(path.as_str().to_owned(), reason),
                None => kept.push((path, step)),
            }
        }
        Ok(kept)
    }

    /// Says why a file that is gone from the folder stays in the vault, if it does.
    fn reason_to_keep(&self, path: &SharedPath, base: ContentHash) -> Result<Option<String>> {
        let content = || self.remote.content(base, self.max_file);
        let renamed = self.unsent.renamed_from(path, base, content)?;
        Ok(renamed.map(|new| {
            format!(
                "it may be {} now, which the vault does not take; it stays in the vault until then",
                new.as_str()
            )
        }))
    }

    /// Fetches what the vault loses by a commit.
    fn fetch_lost(&self, request: &CommitRequest) -> Result<HashMap<ContentHash, Vec<u8>>> {
        let removed = request.files.iter().filter(|file| file.content == NewContent::Removed);
        let mut lost = HashMap::new();
        for hash in removed.filter_map(|file| file.base) {
            if let Some(bytes) = self.remote.content(hash, self.max_file)? {
                lost.insert(hash, bytes);
            }
        }
        Ok(lost)
    }

    /// Reads the next files of a commit. Returns it with the number of steps that it covers.
    fn commit_of(&self, steps: &[(&SharedPath, &Step)]) -> (CommitRequest, usize) {
        let mut files: Vec<CommittedContent> = Vec::new();
        let (mut size, mut taken) = (0, 0);
        for (path, step) in steps.iter().take(MAX_COMMIT_FILES) {
            let (base, content) = match step {
                Step::Send { over, .. } => match self.folder.read(path, self.max_file) {
                    Ok(Some(bytes)) => (*over, NewContent::Bytes(bytes)),
                    // It was removed or made unreadable meanwhile, which the next plan finds.
                    Ok(None) | Err(_) => {
                        taken += 1;
                        continue;
                    }
                },
                Step::RemoveThere(base) => (Some(*base), NewContent::Removed),
                _ => continue,
            };
            let length = match &content {
                NewContent::Bytes(bytes) => bytes.len(),
                NewContent::Removed => 0,
            };
            if size + length > COMMIT_BYTES && !files.is_empty() {
                break;
            }
            size += length;
            taken += 1;
            files.push(CommittedContent { path: (*path).clone(), base, content });
        }
        let operation = event_id(self.options.clock.now()).simple().to_string();
        (CommitRequest { operation, files }, taken.max(1))
    }

    /// Sends a commit, and records its result. Returns whether nothing has to be planned again.
    fn send(&mut self, request: &CommitRequest, plan: &Plan, reply: &mut SyncReply) -> Result<bool> {
        if request.files.is_empty() {
            return Ok(false);
        }
        let files: BTreeMap<String, Option<ContentHash>> =
            request.files.iter().map(|file| (file.path.as_str().to_owned(), file.content.hash())).collect();
        let operation = request.operation.clone();
        let sent = SentCommit { operation: operation.clone(), files: files.clone(), is_done: false };
        let before = self.state.sent.replace(sent);
        self.store()?;
        if self.loses_most {
            self.lost = self.fetch_lost(request)?;
        }
        let committed = self.remote.commit(request)?;
        self.state.sent = before.filter(|before| before.is_done);
        match committed {
            Committed::Done { is_new } => {
                self.state.sent =
                    is_new.then(|| SentCommit { operation, files: BTreeMap::new(), is_done: true });
                for (path, hash) in files {
                    self.state.agree(&path, hash);
                }
                let lost = std::mem::take(&mut self.lost);
                self.folder.record_lost(request, &lost, self.options.clock.now())?;
                for file in &request.files {
                    if let Some(step) = plan.steps.get(&file.path) {
                        reply.add(&file.path, step);
                    }
                }
                self.store()?;
                // The next question for changes leads to a state that has the commit.
                Ok(false)
            }
            Committed::Conflicts(conflicts) => {
                tracing::debug!("{} files changed in the vault meanwhile", conflicts.len());
                self.store()?;
                Ok(false)
            }
            // One file that is refused must not keep all others from being sent.
            Committed::Refused(_) if request.files.len() > 1 => {
                let mut is_whole = true;
                for file in &request.files {
                    if let (NewContent::Removed, Some(base)) = (&file.content, file.base)
                        && let Some(reason) = self.reason_to_keep(&file.path, base)?
                    {
                        reply.leave_out(file.path.as_str().to_owned(), reason);
                        continue;
                    }
                    let operation = event_id(self.options.clock.now()).simple().to_string();
                    let single = CommitRequest { operation, files: vec![file.clone()] };
                    is_whole &= self.send(&single, plan, reply)?;
                }
                Ok(is_whole)
            }
            // What is only removed or renamed is taken, and what does not fit is not tried file by file.
            Committed::OverQuota(_) if !fitting(&request.files).is_empty() => {
                let operation = event_id(self.options.clock.now()).simple().to_string();
                let fitting = CommitRequest { operation, files: fitting(&request.files) };
                for file in request.files.iter().filter(|file| !fitting.files.contains(file)) {
                    self.keep_unsent(file);
                }
                self.send(&fitting, plan, reply)?;
                Ok(false)
            }
            Committed::Refused(error) | Committed::Forbidden(error) | Committed::OverQuota(error) => {
                self.store()?;
                for file in &request.files {
                    self.keep_unsent(file);
                    reply.leave_out(file.path.as_str().to_owned(), error.to_string());
                }
                Ok(true)
            }
        }
    }

    /// Remembers a file that was not sent, if it is a new one.
    fn keep_unsent(&mut self, file: &CommittedContent) {
        if let (None, NewContent::Bytes(bytes)) = (file.base, &file.content) {
            self.unsent.add(&file.path, bytes);
        }
    }
}

/// A file with its step.
type FileStep<'p> = (&'p SharedPath, &'p Step);

/// Divides steps into what is sent, each renamed file followed by the removal of its former name, and all other removals.
fn with_their_removals(steps: Vec<FileStep<'_>>) -> (Vec<FileStep<'_>>, Vec<FileStep<'_>>) {
    let mut removed: HashMap<ContentHash, Vec<FileStep<'_>>> = HashMap::new();
    for (path, step) in &steps {
        if let Step::RemoveThere(base) = step {
            removed.entry(*base).or_default().push((path, step));
        }
    }
    let mut coming = Vec::with_capacity(steps.len());
    for (path, step) in steps {
        let Step::Send { over, hash } = step else { continue };
        coming.push((path, step));
        if over.is_none() {
            coming.extend(removed.get_mut(hash).and_then(Vec::pop));
        }
    }
    let mut going: Vec<_> = removed.into_values().flatten().collect();
    going.sort_unstable_by_key(|(path, _)| *path);
    (coming, going)
}

/// Returns the files of a commit that need no room: those that are removed, and those that only have another name. Empty if
/// that is all of them.
fn fitting(files: &[CommittedContent]) -> Vec<CommittedContent> {
    let is_removed = |file: &&CommittedContent| file.content == NewContent::Removed;
    let bases: HashSet<ContentHash> = files.iter().filter(is_removed).filter_map(|file| file.base).collect();
    let fits = |file: &&CommittedContent| {
        is_removed(file) || file.content.hash().is_some_and(|hash| bases.contains(&hash))
    };
    let fitting: Vec<CommittedContent> = files.iter().filter(fits).cloned().collect();
    if fitting.len() < files.len() { fitting } else { Vec::new() }
}

/// Returns the hash of the bytes that a step writes into the folder.
fn fetched_hash(step: &Step) -> Option<ContentHash> {
    match step {
        Step::Fetch { hash, .. } => Some(*hash),
        Step::SetAside { theirs, .. } => *theirs,
        _ => None,
    }
}
