//! Commits of some files alone, to the current branch. What else is staged stays staged. Hooks, signing and identity are
//! those of the user. Nothing is pushed, fetched, amended or stashed.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sidenote_base::error::Result;

use crate::user_command::{Ended, UserCall, literal};
use crate::{ObjectId, Repository, Unfinished};

/// The time for which a lock of git's index is waited for.
const LOCK_TIME: Duration = Duration::from_secs(2);
/// The interval at which the lock is looked at.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// The time that a commit may take with its hooks.
pub const COMMIT_TIME: Duration = Duration::from_secs(60);
/// The time that a change of the index alone may take.
const INDEX_TIME: Duration = Duration::from_secs(20);
/// The hooks that can change the files of a commit.
const HOOKS_BEFORE: [&str; 3] = ["pre-commit", "prepare-commit-msg", "commit-msg"];
/// The most characters of what git or a hook said that a message repeats.
const LONGEST_TEXT: usize = 300;

/// The files of a commit, and what it says.
#[derive(Debug, Clone, Copy)]
pub struct CommitRequest<'a> {
    /// The changed and removed files that the index of git has, from the top of the working tree.
    pub known: &'a [Vec<u8>],
    /// The files that the index of git does not have yet.
    pub new: &'a [Vec<u8>],
    /// The message with its trailers.
    pub message: &'a str,
    /// The author, as `Name <address>`; without it, the user.
    pub author: Option<&'a str>,
    /// Whether files are renamed that differ by case alone.
    pub renames_case: bool,
    /// The time that the commit may take with its hooks.
    pub time_limit: Duration,
}

/// Why nothing was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitRefusal {
    /// An operation of git is not finished.
    Unfinished(Unfinished),
    /// HEAD is at a commit and at no branch.
    Detached,
    /// The vault is in a submodule.
    Submodule,
    /// Another process holds the lock of the index, or left it behind.
    Locked(PathBuf),
    /// Git knows no name and address to commit with.
    NoIdentity,
    /// A hook refused, with what it said.
    Hook(String),
    /// Git refused, with what it said.
    Git(String),
    /// The commit took longer than it may. The lock is named if it was left behind.
    TimedOut(Duration, Option<PathBuf>),
}

impl fmt::Display for CommitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished(what) => write!(f, "{what} is under way"),
            Self::Detached => f.write_str("HEAD is detached from any branch"),
            Self::Submodule => f.write_str("the vault is in a submodule"),
            Self::Locked(lock) => write!(
                f,
                "{} has been there for 2 seconds; if no git runs, a crash left it there, and it can be removed",
                lock.display()
            ),
            Self::NoIdentity => f.write_str("git knows no user.name and user.email"),
            Self::Hook(said) if said.is_empty() => f.write_str("a hook of the repository refuses"),
            Self::Hook(said) => write!(f, "a hook of the repository refuses: {said}"),
            Self::Git(said) => write!(f, "git refuses: {said}"),
            Self::TimedOut(limit, lock) => {
                write!(f, "git took longer than {} seconds and was ended", limit.as_secs())?;
                f.write_str("; a hook or the signing of commits may wait for something")?;
                match lock {
                    Some(lock) => write!(f, "; {} was left behind", lock.display()),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Repository {
    /// Returns why nothing can be committed now, by the repository's files. A lock is waited for later.
    ///
    /// # Errors
    /// Those of running git.
    pub fn commit_obstacle(&self) -> Result<Option<CommitRefusal>> {
        if let Some(what) = self.unfinished().filter(|what| *what != Unfinished::Locked) {
            return Ok(Some(CommitRefusal::Unfinished(what)));
        }
        // A worktree names the folder that it shares; a submodule has a `.git` file, too, and does not.
        let is_file = self.work_tree.join(".git").is_file();
        if is_file && self.common_dir() == self.git_dir {
            let call = UserCall::new(self).arguments(["rev-parse", "--show-superproject-working-tree"]);
            if !call.read()?.trim_ascii().is_empty() {
                return Ok(Some(CommitRefusal::Submodule));
            }
        }
        Ok(None)
    }

    /// Commits some files alone, as they are in the working tree. After a refusal or an error, the index is as before.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if it is too old; `Io` if it cannot be run.
    pub fn commit_files(&self, request: &CommitRequest<'_>) -> Result<Result<ObjectId, CommitRefusal>> {
        let end = Instant::now() + LOCK_TIME;
        if !request.new.is_empty() {
            let options =
                ["add", "--intent-to-add", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"];
            let call = || self.commit_call(request).arguments(options);
            if let Err(refusal) = self.with_index(call, &pathspecs(request.new), INDEX_TIME, end)? {
                return Ok(Err(refusal));
            }
        }
        let mut options: Vec<OsString> =
            ["commit", "--quiet", "--only", "--pathspec-from-file=-", "--pathspec-file-nul"]
                .map(Into::into)
                .into();
        options.extend(["--no-edit", "--cleanup=whitespace", "-m", request.message].map(Into::into));
        options.extend(request.author.map(|author| format!("--author={author}").into()));
        let paths = [pathspecs(request.known), pathspecs(request.new)].concat();
        let call = || self.commit_call(request).arguments(&options);
        match self.with_index(call, &paths, request.time_limit, end) {
            Ok(Ok(())) => {
                let id = self.head()?.ok_or_else(|| self.refusal("HEAD has no commit"))?;
                // It is committed, whatever becomes of the index.
                if let Err(error) = self.take_from_commit(&paths) {
                    tracing::warn!("the index of git may have what a hook changed as it was before: {error}");
                }
                Ok(Ok(id))
            }
            Ok(Err(refusal)) => {
                self.forget_new(request)?;
                Ok(Err(self.explain(refusal)?))
            }
            Err(error) => {
                // The first error is the one to report.
                if let Err(second) = self.forget_new(request) {
                    tracing::warn!("new files stay in the index of git, with intent to add: {second}");
                }
                Err(error)
            }
        }
    }

    /// Begins a call that adds files or commits them.
    fn commit_call(&self, request: &CommitRequest<'_>) -> UserCall<'_> {
        let call = UserCall::new(self);
        // Git would take a new name that differs by case alone for the old one.
        if request.renames_case { call.arguments(["-c", "core.ignoreCase=false"]) } else { call }
    }

    /// Sets the index entries of committed files to the commit, where a hook may have changed the files: git keeps in the
    /// index what they were before the hook. The next commit of the user would bring that back.
    fn take_from_commit(&self, paths: &[u8]) -> Result<()> {
        let (hooks, _) = self.hooks_dir()?;
        if !HOOKS_BEFORE.iter().any(|hook| hooks.join(hook).is_file()) {
            return Ok(());
        }
        let options = ["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let call = || UserCall::new(self).arguments(options);
        if let Err(refusal) = self.with_index(call, paths, INDEX_TIME, Instant::now() + LOCK_TIME)? {
            tracing::warn!("the index of git may have what a hook changed as it was before: {refusal}");
        }
        Ok(())
    }

    /// Takes new files out of the index again, after the commit was refused.
    fn forget_new(&self, request: &CommitRequest<'_>) -> Result<()> {
        if request.new.is_empty() {
            return Ok(());
        }
        let input: Vec<u8> = request.new.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let call =
            || self.commit_call(request).arguments(["update-index", "--force-remove", "-z", "--stdin"]);
        if let Err(refusal) = self.with_index(call, &input, INDEX_TIME, Instant::now() + LOCK_TIME)? {
            tracing::warn!("new files stay in the index of git, with intent to add: {refusal}");
        }
        Ok(())
    }

    /// Runs a call that writes the index, and waits for the lock of another process until `end`.
    fn with_index<'r>(
        &'r self,
        call: impl Fn() -> UserCall<'r>,
        input: &[u8],
        limit: Duration,
        end: Instant,
    ) -> Result<Result<(), CommitRefusal>> {
        let lock = self.git_dir.join("index.lock");
        let is_locked = || lock.symlink_metadata().is_ok();
        loop {
            while is_locked() {
                if Instant::now() >= end {
                    return Ok(Err(CommitRefusal::Locked(lock)));
                }
                std::thread::sleep(LOCK_INTERVAL);
            }
            let (status, said) = match call().run(input, limit)? {
                Ended::TimedOut => {
                    let left = is_locked().then_some(lock);
                    return Ok(Err(CommitRefusal::TimedOut(limit, left)));
                }
                Ended::Status(status, _) if status.success() => return Ok(Ok(())),
                Ended::Status(status, said) => (status, said),
            };
            // Another process was faster.
            if said.contains("index.lock") {
                if Instant::now() >= end {
                    return Ok(Err(CommitRefusal::Locked(lock)));
                }
                std::thread::sleep(LOCK_INTERVAL);
                continue;
            }
            // Git ends with 128 for its own errors, and with 1 where a hook ends so.
            let own: Vec<&str> = said.lines().filter(|line| is_of_git(line)).collect();
            let is_hook = status.code() == Some(1) && !own.iter().any(|line| line.contains("pathspec"));
            return Ok(Err(match is_hook {
                true => CommitRefusal::Hook(shorten(said.lines())),
                false if own.is_empty() => CommitRefusal::Git(shorten(said.lines())),
                false => CommitRefusal::Git(shorten(own.into_iter())),
            }));
        }
    }

    /// Finds out whether git refused for want of an identity.
    fn explain(&self, refusal: CommitRefusal) -> Result<CommitRefusal> {
        if !matches!(refusal, CommitRefusal::Git(_)) {
            return Ok(refusal);
        }
        for who in ["GIT_COMMITTER_IDENT", "GIT_AUTHOR_IDENT"] {
            // It ends with 128 where there is none.
            if UserCall::new(self).arguments(["var", who]).read_or(&[], &[0, 128])?.is_empty() {
                return Ok(CommitRefusal::NoIdentity);
            }
        }
        Ok(refusal)
    }
}

fn pathspecs(paths: &[Vec<u8>]) -> Vec<u8> {
    paths.iter().flat_map(|path| literal(path).into_iter().chain([0])).collect()
}

fn is_of_git(line: &str) -> bool {
    line.starts_with("fatal: ") || line.starts_with("error: ")
}

/// Joins lines into one of limited length.
fn shorten<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let lines = lines.map(|line| {
        let line = line.trim();
        line.trim_start_matches("fatal: ").trim_start_matches("error: ")
    });
    let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
