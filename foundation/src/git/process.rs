//! A running git with a time limit: one that does not answer, as on a file system that is away, is ended.

use std::io::{Error as IoError, ErrorKind as IoErrorKind, Read, Result as IoResult, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::parallel::no_thread;

/// The longest time for which git may be silent while it is asked something. The search for renames in a commit of thousands of
/// files takes the longest, about a minute.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// How long a call of git may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeLimit {
    /// As long as it goes on answering.
    WhileAnswering,
    /// So long in all.
    InAll(Duration),
}

/// A running git. Its end is waited for when this is dropped.
#[derive(Debug)]
pub(super) struct GitProcess {
    watch: Arc<Watch>,
    watcher: Option<JoinHandle<()>>,
}

/// What the thread knows that ends a process after its time.
#[derive(Debug)]
struct Watch {
    child: Mutex<Child>,
    started: Instant,
    limit: Duration,
    is_in_all: bool,
    /// Since when something is awaited, in milliseconds after the start and one more; 0 if nothing is.
    awaited_since: AtomicU64,
    is_over: Mutex<bool>,
    over: Condvar,
    has_timed_out: AtomicBool,
}

/// Returns what a lock protects, also after a panic.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    fn millis(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits for something of the process.
    fn awaiting<T>(&self, wait: impl FnOnce() -> IoResult<T>) -> IoResult<T> {
        if !self.is_in_all {
            self.awaited_since.store(self.millis() + 1, Ordering::Relaxed);
        }
        let found = wait();
        if !self.is_in_all {
            self.awaited_since.store(0, Ordering::Relaxed);
        }
        let is_late = self.is_in_all && self.started.elapsed() >= self.limit;
        match is_late || self.has_timed_out.load(Ordering::Relaxed) {
            true => Err(IoError::new(
                IoErrorKind::TimedOut,
                format!("git did not answer within {} seconds and was ended", self.limit.as_secs_f32()),
            )),
            false => found,
        }
    }

    /// Ends the process when its time is over. Returns when it has ended.
    fn watch(&self) {
        let mut is_over = locked(&self.is_over);
        while !*is_over {
            let left = match self.awaited_since.load(Ordering::Relaxed) {
                0 => self.limit,
                since => {
                    self.limit.saturating_sub(Duration::from_millis(self.millis().saturating_sub(since - 1)))
                }
            };
            if left.is_zero() {
                self.has_timed_out.store(true, Ordering::Relaxed);
                if let Err(error) = locked(&self.child).kill() {
                    tracing::debug!("git cannot be ended: {error}");
                }
                return;
            }
            is_over = self.over.wait_timeout(is_over, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The input of a running git.
#[derive(Debug)]
pub(super) struct GitInput(ChildStdin, Arc<Watch>);

/// The output of a running git.
#[derive(Debug)]
pub(super) struct GitOutputPipe(ChildStdout, Arc<Watch>);

impl Write for GitInput {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        self.1.awaiting(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> IoResult<()> {
        self.0.flush()
    }
}

impl Read for GitOutputPipe {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        self.1.awaiting(|| self.0.read(into))
    }
}

/// The pipes of a running git, as far as its call has them.
pub(super) type GitPipes = (Option<GitInput>, Option<GitOutputPipe>, Option<ChildStderr>);

impl GitProcess {
    /// Starts a call of git.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Io` if it cannot be started.
    pub(super) fn start(command: &mut Command, limit: TimeLimit) -> Result<(Self, GitPipes)> {
        let mut child = command.spawn().map_err(cannot_start)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (limit, is_in_all) = match limit {
            TimeLimit::WhileAnswering => (MAX_SILENCE, false),
            TimeLimit::InAll(limit) => (limit, true),
        };
        let watch = Arc::new(Watch {
            child: Mutex::new(child),
            started: Instant::now(),
            limit,
            is_in_all,
            awaited_since: AtomicU64::new(u64::from(is_in_all)),
            is_over: Mutex::new(false),
            over: Condvar::new(),
            has_timed_out: AtomicBool::new(false),
        });
        // Without the thread, git ends when its pipes are closed.
        let own = Arc::clone(&watch);
        let watcher = std::thread::Builder::new().spawn(move || own.watch()).map_err(no_thread)?;
        let input = pipes.0.map(|pipe| GitInput(pipe, Arc::clone(&watch)));
        let output = pipes.1.map(|pipe| GitOutputPipe(pipe, Arc::clone(&watch)));
        Ok((Self { watch, watcher: Some(watcher) }, (input, output, pipes.2)))
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    /// An error of the system, or that it takes too long.
    pub(super) fn wait(&self) -> IoResult<ExitStatus> {
        /// The longest pause before the process is looked at again.
        const PAUSE: Duration = Duration::from_millis(2);
        // The lock is free meanwhile, so that the process can be ended.
        self.watch.awaiting(|| {
            let mut pause = Duration::from_micros(50);
            loop {
                if let Some(status) = locked(&self.watch.child).try_wait()? {
                    return Ok(status);
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSE);
            }
        })
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        if let Err(error) = self.wait() {
            tracing::debug!("git has no end: {error}");
        }
        *locked(&self.watch.is_over) = true;
        self.watch.over.notify_one();
        // It ends at once, and a panic in it was printed.
        drop(self.watcher.take().map(JoinHandle::join));
    }
}

/// Returns the error that git cannot be started.
pub(super) fn cannot_start(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::new(ErrorKind::NotFound, "git is not installed, or not on the PATH")
            .with_hint("install git 2.38 or newer; everything but git's own history works without it");
    }
    Error::io("run", "git", error)
}

/// Returns the error of a call that failed, which says how long git was waited for.
pub(super) fn cannot_run(error: IoError) -> Error {
    let has_timed_out = error.kind() == IoErrorKind::TimedOut;
    let error = Error::io("run", "git", error);
    if !has_timed_out {
        return error;
    }
    error.with_hints(
        "see whether `git status` answers in this folder: its disk, or a network, may not",
        "try again later; if git does not answer again, tell the user: the disk of the vault, or a network, may not",
    )
}

/// Returns whether an error says that git did not answer, so that it need not be asked more.
pub fn is_silence(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<IoError>());
    source.is_some_and(|source| source.kind() == IoErrorKind::TimedOut)
}
