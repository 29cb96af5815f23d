//! Child processes that may take a limited time: `self-check` runs this program, and `doctor` asks a sidenote that a
//! client starts for its version.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, Result};
use sidenote_base::parallel::no_thread;

/// The interval at which the end of a process is looked for.
const INTERVAL: Duration = Duration::from_millis(5);

/// A process that has ended, with what it printed.
pub(super) struct Finished {
    /// How it ended.
    pub(super) status: ExitStatus,
    /// What it printed.
    pub(super) stdout: String,
    /// What it logged.
    pub(super) stderr: String,
}

/// A process that is killed when this is dropped.
pub(super) struct Running {
    child: Child,
}

impl Running {
    /// Starts a process.
    ///
    /// # Errors
    /// `NotFound` if there is no such program; `Io` if it cannot be started.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(|error| Error::io("run", &program, error))?;
        Ok(Self { child })
    }

    /// Starts a process whose lines are received one by one.
    ///
    /// # Errors
    /// As [`Running::start`].
    pub(super) fn start_with_lines(command: &mut Command) -> Result<(Self, Receiver<String>)> {
        let mut running = Self::start(command.stdout(Stdio::piped()).stderr(Stdio::null()))?;
        let stdout = running.child.stdout.take();
        let stdout = stdout.ok_or_else(|| Error::internal("the process has no output"))?;
        let (sender, lines) = channel();
        let read = move || {
            for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().spawn(read).map_err(no_thread)?;
        Ok((running, lines))
    }

    /// Takes the input of the process, if it is a pipe.
    pub(super) fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for the end of the process and of its output, and kills it if that takes too long.
    ///
    /// # Errors
    /// `Internal` if there is no end in time.
    pub(super) fn finish(mut self, end: Instant) -> Result<Finished> {
        let stdout = self.child.stdout.take().map(read_to_end).transpose()?;
        let stderr = self.child.stderr.take().map(read_to_end).transpose()?;
        let collect = |pipe: Option<Receiver<Vec<u8>>>| {
            let left = end.saturating_duration_since(Instant::now());
            let bytes = pipe.map_or(Some(Vec::new()), |pipe| pipe.recv_timeout(left).ok());
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok_or_else(too_slow)
        };
        let (stdout, stderr) = (collect(stdout)?, collect(stderr)?);
        Ok(Finished { status: self.wait(end)?, stdout, stderr })
    }

    /// Kills the process if it still runs, and waits for its end.
    ///
    /// # Errors
    /// `Io` if that is not possible.
    pub(super) fn stop(&mut self) -> Result<()> {
        let failed = |error| Error::io("end", "a child process", error);
        if self.child.try_wait().map_err(failed)?.is_none() {
            self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(failed)?;
        }
        Ok(())
    }

    /// Waits for the end of the process, and kills it if that takes too long.
    ///
    /// # Errors
    /// `Internal` if there is no end in time.
    pub(super) fn wait(&mut self, end: Instant) -> Result<ExitStatus> {
        loop {
            let ended = self.child.try_wait();
            if let Some(status) = ended.map_err(|error| Error::io("wait for", "a child process", error))? {
                return Ok(status);
            }
            if Instant::now() >= end {
                self.stop()?;
                return Err(too_slow());
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!("{error}");
        }
    }
}

/// Returns the error that a process does not answer or end in time.
pub(super) fn too_slow() -> Error {
    Error::internal("there is no answer in time: the machine is slow, or the program hangs")
        .with_hint("for a slow machine, allow more time with `sidenote self-check --time-limit 600`")
}

/// Reads a pipe on a thread of its own. The bytes arrive when the pipe is closed.
///
/// # Errors
/// `Io` if the system cannot start a thread.
fn read_to_end(mut pipe: impl Read + Send + 'static) -> Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    let read = move || {
        let mut bytes = Vec::new();
        if let Err(error) = pipe.read_to_end(&mut bytes) {
            tracing::debug!("the output of a process ends early: {error}");
        }
        // Nobody waits any more for a process that took too long.
        drop(sender.send(bytes));
    };
    std::thread::Builder::new().spawn(read).map_err(no_thread)?;
    Ok(receiver)
}

/// Returns the next line of a process; `None` if none comes in time.
///
/// # Errors
/// `Internal` if the process closed its output.
pub(super) fn next_line(lines: &Receiver<String>, end: Instant) -> Result<Option<String>> {
    match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        Ok(line) => Ok(Some(line)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(Error::internal("the process ended too early")),
    }
}
