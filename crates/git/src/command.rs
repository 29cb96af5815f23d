//! How git is run: which arguments and variables every call has, and what its failures mean.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use sidenote_base::error::{Error, Result};
use sidenote_base::platform;
use sidenote_base::platform::FileKind;

use crate::Repository;
use crate::process::{GitErrors, GitProcess, TimeLimit, cannot_run, in_background};

/// The oldest version of git that is used: the first with `cat-file --batch-command -z`.
pub const MIN_VERSION: (u32, u32) = (2, 38);

/// Settings that every reading call overrides, so that a repository's own settings start no program and open no connection.
const SAFE_SETTINGS: [&str; 8] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "diff.external=",
    "log.showSignature=false",
    "protocol.allow=never",
];

/// The exit code of git for an option that it does not know.
pub(super) const USAGE: i32 = 129;

/// What a call of git printed, and how it ended.
#[derive(Debug, Clone)]
pub(super) struct GitOutput {
    /// The exit code; -1 if a signal ended the call.
    pub(super) code: i32,
    /// What was printed on standard output.
    pub(super) stdout: Vec<u8>,
    /// What was printed on standard error.
    pub(super) stderr: String,
}

impl Repository {
    /// Creates a call of a plumbing command that only reads. Its paths are from the top of the working tree.
    pub(super) fn plumbing(&self) -> Command {
        let mut command = self.bare_command();
        for setting in SAFE_SETTINGS {
            command.args(["-c", setting]);
        }
        command
    }

    /// Creates a call of git with the variables that every call has, and no settings.
    pub(super) fn bare_command(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.work_tree);
        if !self.is_in_hook {
            let of_git = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("GIT_"));
            std::env::vars_os().filter(|(name, _)| of_git(name)).for_each(|(name, _)| {
                command.env_remove(name);
            });
        }
        command
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .env("LC_ALL", "C")
            .arg("--no-pager")
            .arg("--no-replace-objects")
            .arg("--literal-pathspecs")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Checks that git is new enough. This is asked where git does not know an option, so that other calls need no second one.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if it is too old.
    pub(super) fn check_version(&self) -> Result<()> {
        let said = output(self.bare_command().arg("version"), None)?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = text.trim().strip_prefix("git version ").unwrap_or_default();
        let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if found < MIN_VERSION {
            let (major, minor) = MIN_VERSION;
            return Err(Error::invalid(format!("git {version} is too old"))
                .with_hint(format!("install git {major}.{minor} or newer")));
        }
        Ok(())
    }

    /// Runs a call of git to its end. It may go on as long as it answers.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if it is too old for the call, or would wait for a file of the repository; `Io`
    /// if it cannot be run.
    pub(super) fn run(
        &self,
        command: &mut Command,
        input: Option<&[u8]>,
        limit: TimeLimit,
    ) -> Result<GitOutput> {
        self.refuse_special_files()?;
        let said = output_within(command, input, limit)?;
        if said.code == USAGE {
            self.check_version()?;
        }
        Ok(said)
    }

    /// Runs a plumbing command that only reads, and returns what it printed. A path among the arguments is one from the top
    /// of the working tree.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if git is too old or refuses, with what git said.
    pub(super) fn read<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Vec<u8>> {
        let said = self.try_read(arguments, None)?;
        if said.code == 0 { Ok(said.stdout) } else { Err(self.refusal(&said.stderr)) }
    }

    /// Runs a plumbing command that only reads, with input, and returns how it ended, too.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Invalid` if git is too old; `Io` if it cannot be run.
    pub(super) fn try_read<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: Option<&[u8]>,
    ) -> Result<GitOutput> {
        self.run(self.plumbing().args(arguments), input, TimeLimit::WhileAnswering)
    }

    /// Refuses a repository that has a pipe or a device among its data: git would wait for one, or read from it without end.
    /// This is looked at once.
    ///
    /// # Errors
    /// `Invalid` naming it.
    pub(super) fn refuse_special_files(&self) -> Result<()> {
        /// The folders of other repositories and programs, which the calls do not read.
        const OTHERS: [&str; 3] = ["annex", "lfs", "modules"];
        /// The socket of git's own file monitor, which is never used.
        const MONITOR: &str = "fsmonitor--daemon.ipc";
        if self.is_checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let common = self.common_dir();
        let own = (!self.git_dir.starts_with(&common)).then(|| self.git_dir.clone());
        let mut folders: Vec<PathBuf> = own.into_iter().chain([common.clone()]).collect();
        while let Some(folder) = folders.pop() {
            // What cannot be listed is refused by git.
            let Ok(entries) = platform::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let is_other = folder == common && OTHERS.iter().any(|name| entry.name() == *name);
                let kind = match entry.kind() {
                    Ok(FileKind::Dir) if is_other => continue,
                    Ok(FileKind::Dir) => {
                        folders.push(entry.path());
                        continue;
                    }
                    Ok(FileKind::Symlink) => platform::metadata(&entry.path()).map(|found| found.kind),
                    kind => kind,
                };
                if matches!(kind, Ok(FileKind::Other)) && entry.name() != MONITOR {
                    let path = entry.path();
                    return Err(Error::invalid(format!("{} is not a regular file", path.display()))
                        .with_hint("remove it; git would wait for it"));
                }
            }
        }
        self.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the error for a call that git refused.
    pub(super) fn refusal(&self, stderr: &str) -> Error {
        let said = stderr.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gave no reason");
        let said = said.trim_start_matches("fatal: ").trim_start_matches("error: ");
        let error = Error::invalid(format!("git refuses in {}: {said}", self.work_tree.display()));
        if stderr.contains("safe.directory") {
            let folder = self.work_tree.display();
            return error.with_hints(
                format!("if you trust its owner, run: git config --global --add safe.directory {folder}"),
                "ask the user whether the repository's owner is to be trusted (safe.directory)",
            );
        }
        error
    }
}

/// Runs a call to its end, and gives it input meanwhile.
pub(super) fn output(command: &mut Command, input: Option<&[u8]>) -> Result<GitOutput> {
    output_within(command, input, TimeLimit::WhileAnswering)
}

fn output_within(command: &mut Command, input: Option<&[u8]>, limit: TimeLimit) -> Result<GitOutput> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let (process, (pipe, stdout, stderr)) = GitProcess::start(command, limit)?;
    if let (Some(mut pipe), Some(input)) = (pipe, input.map(<[u8]>::to_vec)) {
        // Git may end before it has read everything. What it says then counts.
        in_background(move || drop(pipe.write_all(&input)))?;
    }
    let errors = stderr.map(GitErrors::read).transpose()?;
    let stdout = stdout.map_or(Ok(Vec::new()), |stdout| process.read_to_end(stdout))?;
    let status = process.wait().map_err(cannot_run)?;
    let stderr = errors.map(GitErrors::said).unwrap_or_default();
    Ok(GitOutput { code: status.code().unwrap_or(-1), stdout, stderr })
}
