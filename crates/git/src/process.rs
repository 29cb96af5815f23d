//! A running git with a time limit. A git that does not answer, for example because a file system is disconnected, is ended.

use std::io::{Error as IoError, ErrorKind as IoErrorKind, Read, Result as IoResult, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel::no_thread;
use sidenote_base::platform;

/// The longest time for which git may be silent while it is asked something. The search for renames in a commit of thousands of
/// files takes the longest, about a minute.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// How long the end of a process that was killed is waited for, and the end of a pipe whose process has ended. Both come at
/// once, unless the disk is away or a program that git left running keeps the pipe.
const WAIT_LIMIT: Duration = Duration::from_secs(2);

/// How long a call of git may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeLimit {
    /// As long as it goes on answering.
    WhileAnswering,
    /// So long in all.
    InAll(Duration),
}

/// A running git. Its end is waited for when this is dropped, unless it does not end although it was killed.
#[derive(Debug)]
pub(super) struct GitProcess {
    watch: Arc<Watch>,
    watcher: Option<JoinHandle<()>>,
}

/// What the thread knows that ends a process after its time.
#[derive(Debug)]
struct Watch {
    running: Mutex<Running>,
    started: Instant,
    limit: Duration,
    is_in_all: bool,
    waits: Mutex<Waits>,
    is_over: Mutex<bool>,
    over: Condvar,
    /// When its time was over.
    timed_out: OnceLock<Instant>,
}

/// The process, and how it ended. Its id may be another one's after that.
#[derive(Debug)]
struct Running {
    child: Child,
    ended: Option<ExitStatus>,
}

/// What is awaited of a process: its input, its output and its end, each perhaps by a thread of its own.
#[derive(Debug)]
struct Waits {
    count: usize,
    /// When it last did something that was awaited, or was first waited for.
    since: Instant,
}

/// Returns what a lock protects, also after a panic.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Waits for something of the process.
    fn awaiting<T>(&self, wait: impl FnOnce() -> IoResult<T>) -> IoResult<T> {
        {
            let mut waits = locked(&self.waits);
            if waits.count == 0 {
                waits.since = Instant::now();
            }
            waits.count += 1;
        }
        let found = wait();
        {
            let mut waits = locked(&self.waits);
            waits.count -= 1;
            waits.since = Instant::now();
        }
        let is_late = self.is_in_all && self.started.elapsed() >= self.limit;
        if is_late || self.timed_out.get().is_some() { Err(self.silence()) } else { found }
    }

    fn silence(&self) -> IoError {
        let limit = self.limit.as_secs_f32();
        let message = format!("git did not answer within {limit} seconds and was ended");
        IoError::new(IoErrorKind::TimedOut, message)
    }

    /// Returns whether the process, or what it started, goes on although it was killed.
    fn is_given_up(&self) -> bool {
        self.timed_out.get().is_some_and(|at| at.elapsed() >= WAIT_LIMIT)
    }

    fn try_wait(&self) -> IoResult<Option<ExitStatus>> {
        let mut running = locked(&self.running);
        if running.ended.is_none() {
            running.ended = running.child.try_wait()?;
        }
        Ok(running.ended)
    }

    /// Returns how much of its time is left.
    fn left(&self) -> Duration {
        if self.is_in_all {
            return self.limit.saturating_sub(self.started.elapsed());
        }
        let waits = locked(&self.waits);
        if waits.count == 0 { self.limit } else { self.limit.saturating_sub(waits.since.elapsed()) }
    }

    /// Ends the process when its time is over. Returns when it has ended.
    fn watch(&self) {
        /// The pause before a process that was killed is looked at again.
        const PAUSE: Duration = Duration::from_millis(50);
        let mut is_over = locked(&self.is_over);
        while !*is_over {
            let left = self.left();
            if !left.is_zero() {
                is_over = self.over.wait_timeout(is_over, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(is_over);
            // Who reads then knows why the output ends.
            self.timed_out.get_or_init(Instant::now);
            let mut running = locked(&self.running);
            let killed = match running.ended {
                Some(_) => Ok(()),
                None => platform::kill_process_group(&mut running.child),
            };
            drop(running);
            if let Err(error) = killed {
                tracing::debug!("git cannot be ended: {error}");
            }
            // The system keeps a process that ended until somebody asks for its status.
            while matches!(self.try_wait(), Ok(None)) {
                std::thread::sleep(PAUSE);
            }
            return;
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

/// The pipes of a running git that its call has.
pub(super) type GitPipes = (Option<GitInput>, Option<GitOutputPipe>, Option<ChildStderr>);

impl GitProcess {
    /// Starts a call of git.
    ///
    /// # Errors
    /// `NotFound` if there is no git; `Io` if it cannot be started.
    pub(super) fn start(command: &mut Command, limit: TimeLimit) -> Result<(Self, GitPipes)> {
        // What git starts may keep its pipes open, so it is ended together with git.
        platform::begin_process_group(command);
        let mut child = command.spawn().map_err(cannot_start)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (limit, is_in_all) = match limit {
            TimeLimit::WhileAnswering => (MAX_SILENCE, false),
            TimeLimit::InAll(limit) => (limit, true),
        };
        let watch = Arc::new(Watch {
            running: Mutex::new(Running { child, ended: None }),
            started: Instant::now(),
            limit,
            is_in_all,
            waits: Mutex::new(Waits { count: 0, since: Instant::now() }),
            is_over: Mutex::new(false),
            over: Condvar::new(),
            timed_out: OnceLock::new(),
        });
        // Without the thread, git ends when its pipes are closed.
        let own = Arc::clone(&watch);
        let watcher = std::thread::Builder::new().spawn(move || own.watch()).map_err(no_thread)?;
        let input = pipes.0.map(|pipe| GitInput(pipe, Arc::clone(&watch)));
        let output = pipes.1.map(|pipe| GitOutputPipe(pipe, Arc::clone(&watch)));
        Ok((Self { watch, watcher: Some(watcher) }, (input, output, pipes.2)))
    }

    /// Reads the output to its end. A pipe that a program keeps open which git started is not waited for longer than git.
    ///
    /// # Errors
    /// An error of the system, or that it takes too long.
    pub(super) fn read_to_end(&self, mut output: GitOutputPipe) -> Result<Vec<u8>> {
        /// The longest time before it is looked whether git was ended.
        const INTERVAL: Duration = Duration::from_millis(50);
        let found = in_background(move || {
            let mut printed = Vec::new();
            output.read_to_end(&mut printed).map(|_| printed)
        })?;
        loop {
            match found.recv_timeout(INTERVAL) {
                Ok(read) => return read.map_err(cannot_run),
                Err(RecvTimeoutError::Timeout) if !self.watch.is_given_up() => {}
                Err(RecvTimeoutError::Timeout) => return Err(cannot_run(self.watch.silence())),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("the thread that reads from git ended"));
                }
            }
        }
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
                if let Some(status) = self.watch.try_wait()? {
                    return Ok(status);
                }
                if self.watch.is_given_up() {
                    return Err(self.watch.silence());
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
        // After a kill it ends when the process does, which may be never.
        if self.watch.timed_out.get().is_none() {
            // It ends at once, and a panic in it was printed.
            drop(self.watcher.take().map(JoinHandle::join));
        }
    }
}

/// What git says of errors, read by a thread of its own.
#[derive(Debug)]
pub(super) struct GitErrors(Receiver<String>);

impl GitErrors {
    /// Starts to read.
    ///
    /// # Errors
    /// `Io` if there is no thread.
    pub(super) fn read(mut stderr: ChildStderr) -> Result<Self> {
        let said = in_background(move || {
            let mut said = Vec::new();
            // What was read until an error counts.
            drop(stderr.read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        })?;
        Ok(Self(said))
    }

    /// Returns what a git said that has ended; nothing where a program that it left running keeps the pipe.
    pub(super) fn said(self) -> String {
        self.0.recv_timeout(WAIT_LIMIT).unwrap_or_default()
    }
}

/// Starts a thread and returns the channel for its result. Nothing has to wait for the thread.
///
/// # Errors
/// `Io` if there is no thread. What it would have used, such as a pipe, is closed.
pub(super) fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Receiver<T>> {
    let (sender, receiver) = channel();
    // The receiver may be gone.
    let work = move || drop(sender.send(work()));
    std::thread::Builder::new().spawn(work).map_err(no_thread)?;
    Ok(receiver)
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
