//! Commits the changes of operations in git, where the user's settings ask for it (docs/spec/git.md 5).
//!
//! Only paths that git had unchanged before are committed. What is not committed stays in the files, and the reply says why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::platform;
use sidenote_config::CommitPolicy;
use sidenote_git::{COMMIT_TIME, CommitRefusal, CommitRequest, FileState, FileStates, Repository};
use sidenote_journal::event::Event;
use sidenote_language::graphemes::beginning;
use sidenote_markdown::control::plain;
use sidenote_markdown::edit::{ChangeSet, Content, FileLocation};
use sidenote_open_vault::Core;
use sidenote_open_vault::session_commits::{
    CommittedOperation, OpenCommit, SessionCommits, metadata, number, spread,
};
use sidenote_vault::apply_result::Applied;

use crate::Changes;

/// The time without an operation after which the changes of a session are committed, in milliseconds.
const QUIET: i64 = 10 * 60 * 1000;
/// The most files that a notice names.
const NAMED: usize = 3;
/// The most characters of a session's or client's name in a commit.
const LONGEST_NAME: usize = 200;
/// Why a rename in case alone is not committed where the file system ignores case.
const SAME_NAME: &str = "this file system cannot tell the two names apart, so git cannot, either";
/// The folder of records, from the vault's root.
const RECORDS: &str = ".sidenote/records";

/// Paths from the top of the working tree, as git names them.
type TreePaths = Vec<Vec<u8>>;

/// A file of an operation that was not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncommittedFile {
    /// The path from the top of the working tree.
    pub path: String,
    /// Why it was not committed.
    pub reason: String,
}

/// What became of an operation in git.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CommitReply {
    /// The id of the commit, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether the changes are committed at the end of the session.
    pub deferred: bool,
    /// Why nothing was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The files that were not committed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<UncommittedFile>,
}

impl CommitReply {
    /// Returns the reply of a commit that was refused as a whole.
    fn refused(reason: impl ToString) -> Self {
        Self { refused: Some(reason.to_string()), ..Self::default() }
    }

    /// Says what was not committed and why.
    pub(crate) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if let Some(reason) = &self.refused {
            notices.push(format!("not committed to git: {reason}; the change stays in the files"));
        }
        let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for file in &self.left_out {
            by_reason.entry(&file.reason).or_default().push(plain(&file.path));
        }
        for (reason, files) in by_reason {
            let more = files.len().saturating_sub(NAMED);
            let mut named = files.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
            if more > 0 {
                named.push_str(&format!(" and {more} more"));
            }
            notices.push(format!("not committed to git: {named} ({reason}); the change stays in the files"));
        }
        notices
    }

    fn leave_out(&mut self, left: &BTreeMap<Vec<u8>, String>) {
        self.left_out.extend(left.iter().map(|(path, reason)| UncommittedFile {
            path: String::from_utf8_lossy(path).into_owned(),
            reason: reason.clone(),
        }));
    }
}

/// The state in git of the files of an operation, before it is applied.
#[derive(Debug)]
pub(crate) struct PreparedCommit {
    repository: Repository,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The files that can be committed.
    files: BTreeSet<Vec<u8>>,
    /// The files that cannot, and why.
    left_out: BTreeMap<Vec<u8>, String>,
    refused: Option<CommitRefusal>,
}

impl Changes<'_> {
    /// Finds out which files of a plan can be committed after it. Returns `None` if the settings ask for no commits, and
    /// the reply if nothing can be committed.
    pub(crate) fn prepare_commit(&self, plan: &ChangeSet) -> Option<Result<PreparedCommit, CommitReply>> {
        if self.core.config.git.commit == CommitPolicy::Off {
            return None;
        }
        let repository = match Repository::discover(self.core.vault.root()) {
            Ok(Some(repository)) => repository,
            Ok(None) => return Some(Err(CommitReply::refused("the vault is in no git repository"))),
            Err(error) => return Some(Err(CommitReply::refused(error))),
        };
        Some(self.prepare_in(repository, plan).map_err(CommitReply::refused))
    }

    fn prepare_in(&self, repository: Repository, plan: &ChangeSet) -> Result<PreparedCommit> {
        let tree_path = |place: &FileLocation| repository.tree_path(&place.to_string());
        let mut paths = BTreeSet::new();
        let mut pairs = Vec::new();
        for change in &plan.files {
            let (from, to) = (change.from.as_ref().map(tree_path), change.to.as_ref().map(tree_path));
            if let (Some(from), Some(to)) = (&from, &to)
                && from != to
            {
                pairs.push((from.clone(), to.clone()));
            }
            paths.extend(from.into_iter().chain(to));
        }
        let folders: Vec<(Vec<u8>, Vec<u8>)> = plan
            .folders
            .iter()
            .map(|folder| {
                (repository.tree_path(folder.from.as_str()), repository.tree_path(folder.to.as_str()))
            })
            .collect();
        let needed: Vec<(Vec<u8>, Vec<u8>)> = plan
            .leads_to
            .iter()
            .map(|(note, to)| (repository.tree_path(note.as_str()), repository.tree_path(to.as_str())))
            .collect();
        let mut asked: BTreeSet<Vec<u8>> = paths.clone();
        asked.extend(needed.iter().map(|(_, to)| to.clone()));
        let asked: Vec<Vec<u8>> = asked.into_iter().collect();
        let sources: Vec<Vec<u8>> = folders.iter().map(|(from, _)| from.clone()).collect();
        let mut states = repository.file_states(&asked, &sources)?;
        let moved = moved_with(&folders, &states);
        if !moved.is_empty() {
            let ends: Vec<Vec<u8>> = moved.iter().map(|(_, to)| to.clone()).collect();
            states.files.extend(repository.file_states(&ends, &[])?.files);
            paths.extend(moved.iter().flat_map(|(from, to)| [from.clone(), to.clone()]));
            pairs.extend(moved);
        }
        let mut refused = repository.commit_obstacle()?;
        if refused.is_none() && states.is_detached {
            refused = Some(CommitRefusal::Detached);
        }
        let open = self.session_commit();
        let trash = repository.tree_path(".trash/");
        let mut left_out = BTreeMap::new();
        for path in &paths {
            let state = states.of(path);
            let is_own = || open.as_ref().is_some_and(|open| open.has_unchanged(&repository, path));
            match state {
                FileState::Committed | FileState::Absent => {}
                // A trash that git ignores is nothing to speak of: the note is removed from git.
                FileState::Ignored if path.starts_with(&trash) => {}
                FileState::Changed | FileState::Untracked if is_own() => {}
                // It is there under its old name.
                FileState::Untracked
                    if pairs.iter().any(|(from, to)| to == path && is_case_rename(from, to)) =>
                {
                    drop(left_out.insert(path.clone(), SAME_NAME.to_owned()));
                }
                _ => drop(left_out.insert(path.clone(), state.to_string())),
            }
        }
        // A link to a file that is not committed would be dead in the commit.
        for (note, to) in needed {
            let is_own = open.as_ref().is_some_and(|open| open.has_unchanged(&repository, &to));
            let is_uncommitted = matches!(states.of(&to), FileState::Untracked | FileState::Staged);
            if is_uncommitted && !is_own && !paths.contains(&to) {
                let reason = format!("it leads to {}, which is not committed", String::from_utf8_lossy(&to));
                left_out.entry(note).or_insert(reason);
            }
        }
        spread(&mut left_out, &pairs);
        paths.retain(|path| {
            let is_ignored_trash = states.of(path) == FileState::Ignored;
            !left_out.contains_key(path) && !is_ignored_trash
        });
        Ok(PreparedCommit { repository, pairs, files: paths, left_out, refused })
    }

    /// Returns the open commit of this session, if it has one.
    fn session_commit(&self) -> Option<OpenCommit> {
        session_commits(self.core).open.get(&session_key(self.core)?).cloned()
    }

    /// Commits an operation that was applied, or adds it to the commit of its session. The write lock is held, so that no
    /// other operation changes the files meanwhile.
    pub(crate) fn commit_applied(
        &self,
        prepared: PreparedCommit,
        plan: &ChangeSet,
        applied: &Applied,
    ) -> CommitReply {
        let core = self.core;
        let mut reply = CommitReply::default();
        reply.leave_out(&prepared.left_out);
        let key = session_key(core);
        let repository = &prepared.repository;
        let is_session = key.is_some();
        // Whether something is under way is asked again when the session ends.
        if let Some(refusal) = prepared.refused.as_ref().filter(|_| !is_session) {
            return CommitReply { refused: Some(refusal.to_string()), ..reply };
        }
        if prepared.files.is_empty() {
            return reply;
        }
        let operation =
            CommittedOperation { id: applied.id.clone(), title: title_of(plan, &Event::of(applied)) };
        let added = OpenCommit {
            operations: vec![operation],
            files: prepared.files.iter().map(|path| (path.clone(), metadata(repository, path))).collect(),
            pairs: prepared.pairs,
            session: core.session.as_ref().map(|session| cleaned_name(core, session)),
            client: cleaned_name(core, &core.client),
            is_agent: core.is_agent,
            last: applied.at,
        };
        if let Some(key) = key {
            let mut commits = session_commits(core);
            commits.open.entry(key).or_default().add(added);
            return CommitReply { deferred: true, ..reply };
        }
        self.make_commit(repository, &added, &mut reply);
        reply
    }

    /// Makes a commit of files that are still as the operations left them.
    fn make_commit(&self, repository: &Repository, open: &OpenCommit, reply: &mut CommitReply) {
        match self.try_commit(repository, open, reply) {
            Ok(()) => {}
            Err(error) => reply.refused = Some(error.to_string()),
        }
    }

    fn try_commit(&self, repository: &Repository, open: &OpenCommit, reply: &mut CommitReply) -> Result<()> {
        let files: Vec<Vec<u8>> = open.files.keys().cloned().collect();
        let records = repository.tree_path(RECORDS);
        let states = repository.file_states(&files, std::slice::from_ref(&records))?;
        let refusal = repository.commit_obstacle()?;
        if let Some(refusal) = refusal.or(states.is_detached.then_some(CommitRefusal::Detached)) {
            reply.refused = Some(refusal.to_string());
            return Ok(());
        }
        let mut left_out = BTreeMap::new();
        for path in &files {
            match states.of(path) {
                FileState::Committed | FileState::Absent => {}
                FileState::Changed | FileState::Untracked if open.has_unchanged(repository, path) => {}
                FileState::Changed | FileState::Untracked => {
                    drop(left_out.insert(path.clone(), "it was changed since".to_owned()));
                }
                state => drop(left_out.insert(path.clone(), state.to_string())),
            }
        }
        // Where a file system takes two names that differ by case for one, git cannot remove one and add the other.
        let case_renames = open.pairs.iter().filter(|(from, to)| is_case_rename(from, to));
        let mut renames_case = false;
        for (from, _) in case_renames {
            renames_case = true;
            if repository.disk_path(from).symlink_metadata().is_ok() {
                left_out.insert(from.clone(), SAME_NAME.to_owned());
            }
        }
        spread(&mut left_out, &open.pairs);
        reply.leave_out(&left_out);
        let is_changed =
            |path: &&Vec<u8>| matches!(states.of(path), FileState::Changed | FileState::Untracked);
        let chosen = files.iter().filter(|path| !left_out.contains_key(*path)).filter(is_changed);
        let (mut known, mut new): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            chosen.cloned().partition(|path| states.tracked.contains(path));
        if known.is_empty() && new.is_empty() {
            return Ok(());
        }
        let message = open.message(known.len() + new.len());
        let (own_known, own_new) = self.own_records(repository, &records, &states)?;
        known.extend(own_known);
        new.extend(own_new);
        let author = &self.core.config.git.author;
        let request = CommitRequest {
            known: &known,
            new: &new,
            message: &message,
            author: Some(author.as_str()).filter(|author| open.is_agent && !author.is_empty()),
            renames_case,
            time_limit: COMMIT_TIME,
        };
        match repository.commit_files(&request)? {
            Ok(id) => reply.id = Some(id.to_string()),
            Err(refusal) => reply.refused = Some(refusal.to_string()),
        }
        Ok(())
    }

    /// Lists the records of this clone that changed, known to git and new ones, if the user has records in git. They are
    /// committed with the notes, since they are of the same operations. Staged ones are left to the user.
    fn own_records(
        &self,
        repository: &Repository,
        records: &[u8],
        states: &FileStates,
    ) -> Result<(TreePaths, TreePaths)> {
        let below = [records, b"/"].concat();
        if !states.tracked.iter().any(|path| path.starts_with(&below)) {
            return Ok((Vec::new(), Vec::new()));
        }
        let own = self.core.journal().own_folder()?;
        let Some(own) = own.strip_prefix(self.core.vault.root()).ok().and_then(platform::slash_path) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let own = repository.tree_path(&format!("{own}/"));
        let of_state = |wanted: FileState| {
            let found =
                states.files.iter().filter(|(path, state)| path.starts_with(&own) && **state == wanted);
            found.map(|(path, _)| path.clone()).collect::<Vec<_>>()
        };
        Ok((of_state(FileState::Changed), of_state(FileState::Untracked)))
    }

    /// Commits the changes of this session. What is not committed is logged, and said with the next operation.
    pub fn end_session(&self) {
        if let Some(key) = session_key(self.core) {
            self.end_sessions_where(|session, _| *session == key);
        }
    }

    /// Commits the changes of all sessions of this process.
    pub fn end_all_sessions(&self) {
        self.end_sessions_where(|_, _| true);
    }

    /// Commits the changes of the sessions that have been quiet for ten minutes at a time.
    pub fn end_quiet_sessions(&self, now: Timestamp) {
        self.end_sessions_where(|_, open| now.millis() - open.last.millis() >= QUIET);
    }

    fn end_sessions_where(&self, is_over: impl Fn(&String, &OpenCommit) -> bool) {
        let is_any = session_commits(self.core).open.iter().any(|(session, open)| is_over(session, open));
        if !is_any {
            return;
        }
        // No operation changes the files meanwhile.
        let lock = match self.core.vault.lock(&self.core.vault.records()) {
            Ok(lock) => lock,
            Err(error) => return tracing::warn!("the changes of a session are not committed now: {error}"),
        };
        let ended: Vec<(String, OpenCommit)> =
            session_commits(self.core).open.extract_if(.., |session, open| is_over(session, open)).collect();
        for (_, open) in ended {
            let mut reply = CommitReply::default();
            match Repository::discover(self.core.vault.root()) {
                Ok(Some(repository)) => self.make_commit(&repository, &open, &mut reply),
                Ok(None) => reply.refused = Some("the vault is in no git repository".to_owned()),
                Err(error) => reply.refused = Some(error.to_string()),
            }
            for notice in reply.notices() {
                tracing::warn!("{notice}");
                session_commits(self.core).unsaid.push(format!("of earlier changes: {notice}"));
            }
        }
        drop(lock);
    }

    /// Takes what was not said yet of earlier commits of sessions.
    pub(crate) fn take_unsaid(&self) -> Vec<String> {
        std::mem::take(&mut session_commits(self.core).unsaid)
    }
}

fn session_commits(core: &Core) -> MutexGuard<'_, SessionCommits> {
    core.state.session_commits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the session whose operations are committed together, if that is what the settings ask for.
fn session_key(core: &Core) -> Option<String> {
    let is_deferred = core.config.git.commit == CommitPolicy::Session && core.commits_by_session;
    is_deferred.then(|| core.session.clone().unwrap_or_default())
}

/// Returns a name as the trailer of a commit can have it: one line without private text and secrets.
fn cleaned_name(core: &Core, name: &str) -> String {
    let mut name = name.to_owned();
    core.clean(&mut name);
    beginning(&plain(name.trim()), LONGEST_NAME).to_owned()
}

/// Lists the files that move with folders, each with its new path. Files that git ignores are left out.
fn moved_with(folders: &[(Vec<u8>, Vec<u8>)], states: &FileStates) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut moved = Vec::new();
    for (from, to) in folders {
        let below = [from.as_slice(), b"/"].concat();
        let files = states.files.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        for (path, _) in files {
            moved.push((path.clone(), [to.as_slice(), &path[from.len()..]].concat()));
        }
    }
    moved
}

fn is_case_rename(from: &[u8], to: &[u8]) -> bool {
    let lower = |path: &[u8]| String::from_utf8_lossy(path).to_lowercase();
    from != to && lower(from) == lower(to)
}

/// Says what an operation did, such as `move Guide.md → Handbook.md (12 links, 7 notes)`.
fn title_of(plan: &ChangeSet, event: &Event) -> String {
    let edits = |content: &Content| match content {
        Content::Edits(edits) => edits.len(),
        Content::Keep | Content::Whole(_) => 0,
    };
    let written = plan.files.iter().filter(|file| file.writes()).count();
    let links: usize = plan.files.iter().map(|file| edits(&file.content)).sum();
    let is_of_links =
        matches!(plan.operation.as_str(), "move" | "rename" | "rename-heading" | "rename-block" | "repair");
    let mut counts = Vec::new();
    if is_of_links && links > 0 {
        counts.push(number(links, "link"));
    }
    if is_of_links && links > 0 || plan.files.len() > 1 {
        counts.push(number(if is_of_links { written } else { plan.files.len() }, "note"));
    }
    let has_subject = plan.operation != "repair";
    let subject = event.subject().filter(|_| has_subject).map(|subject| subject.replace(" -> ", " → "));
    let subject = subject.map(|subject| format!(" {subject}")).unwrap_or_default();
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    plain(&format!("{}{subject}{counts}", plan.operation))
}
