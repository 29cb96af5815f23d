//! Calls of git with the user's own configuration: identity, hooks, signing and filters count, as in the user's shell. Only
//! for repositories that the user's settings name.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;

use crate::Repository;
use crate::command::USAGE;
use crate::process::{TimeLimit, cannot_start};
use crate::temporary::{TemporaryFolder, read_start};

/// The interval at which the end of a call is looked for.
const INTERVAL: Duration = Duration::from_millis(2);
/// The time that a call has to end after it was asked to.
const END_TIME: Duration = Duration::from_secs(2);

/// Says whether a variable of git tells who the user is, or where the user's configuration is. The others name a
/// repository, which is that of the caller.
fn is_of_user(name: &str) -> bool {
    let is_identity = name.starts_with("GIT_AUTHOR_") || name.starts_with("GIT_COMMITTER_");
    is_identity && !name.ends_with("_DATE")
        || matches!(name, "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "GIT_CONFIG_NOSYSTEM")
}

/// Returns a path as a pathspec that means this path alone, from the top of the working tree.
pub(super) fn literal(path: &[u8]) -> Vec<u8> {
    [b":(top,literal)", path].concat()
}

/// How a call ended that had a limited time.
pub(super) enum Ended {
    /// By itself, with what it said on standard error.
    Status(ExitStatus, String),
    /// It took too long and was ended.
    TimedOut,
}

/// A call of git with the user's configuration. It never asks for anything, and starts no editor and no pager.
pub(super) struct UserCall<'r> {
    repository: &'r Repository,
    command: Command,
}

impl<'r> UserCall<'r> {
    /// Begins a call at the top of the working tree.
    pub(super) fn new(repository: &'r Repository) -> Self {
        let mut command = Command::new("git");
        command.current_dir(&repository.work_tree).arg("--no-pager");
        let is_of_git = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("GIT_"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_git(name)) {
            if !name.to_str().is_some_and(is_of_user) {
                command.env_remove(name);
            }
        }
        // What git itself says is read; hooks keep the language of texts and the encoding.
        if let Some(language) = std::env::var_os("LC_ALL").filter(|language| !language.is_empty()) {
            command.env_remove("LC_ALL").env("LC_CTYPE", language);
        }
        command
            .env("LC_MESSAGES", "C")
            .env_remove("LANGUAGE")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_EDITOR", ":")
            .env("GIT_PAGER", "cat")
            // An agent of GnuPG must not ask on the terminal of this process.
            .env_remove("GPG_TTY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { repository, command }
    }

    /// Adds arguments.
    pub(super) fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Adds paths, each meaning itself alone.
    pub(super) fn pathspecs(self, paths: &[&[u8]]) -> Self {
        let literals: Vec<OsString> = paths.iter().map(|path| platform::os_string(&literal(path))).collect();
        self.arguments(literals)
    }

    /// Runs a call that only reads, and returns what it printed.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if it is too old or refuses.
    pub(super) fn read(self) -> Result<Vec<u8>> {
        self.read_or(&[], &[0])
    }

    /// Runs a call that only reads, with input. Some exit codes are no refusals.
    ///
    /// # Errors
    /// As [`UserCall::read`].
    pub(super) fn read_or(mut self, input: &[u8], codes: &[i32]) -> Result<Vec<u8>> {
        self.command.env("GIT_OPTIONAL_LOCKS", "0");
        let input = (!input.is_empty()).then_some(input);
        let said = self.repository.run(&mut self.command, input, TimeLimit::WhileAnswering)?;
        if codes.contains(&said.code) { Ok(said.stdout) } else { Err(self.repository.refusal(&said.stderr)) }
    }

    /// Runs a call that changes the repository, with input, for a limited time. Programs that it leaves running do not
    /// matter.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if it is too old; `Io` if it cannot be run.
    pub(super) fn run(self, input: &[u8], limit: Duration) -> Result<Ended> {
        self.repository.refuse_special_files()?;
        let failed = |error| Error::io("run", "git", error);
        // Standard error goes to a file, because a program that a hook leaves running would keep a pipe open. The file
        // stays open, because a hook may empty the folder of temporary files.
        let folder = TemporaryFolder::new()?;
        let (path, log) = folder.create("stderr")?;
        let mut command = self.command;
        command.stdout(Stdio::null()).stderr(log.try_clone().map_err(failed)?);
        // So does the input: git must never see a part of it, or none, because this process was killed.
        if !input.is_empty() {
            command.stdin(folder.input("stdin", input)?);
        }
        platform::begin_process_group(&mut command);
        let mut child = command.spawn().map_err(cannot_start)?;
        let end = Instant::now() + limit;
        let status = loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < end => std::thread::sleep(INTERVAL),
                // Git removes its locks when it is asked to end.
                Ok(None) => break platform::end_process_group(&mut child, END_TIME).map(|_| None),
                ended => break ended,
            }
        };
        let Some(status) = status.map_err(failed)? else { return Ok(Ended::TimedOut) };
        if status.code() == Some(USAGE) {
            self.repository.check_version()?;
        }
        Ok(Ended::Status(status, read_start(&path, log)?))
    }
}
