//! The crate's error type: a kind, a message that names the path, a hint and a source.
//!
//! Parsers never return it. They return a value and a list of problems.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::platform;
use crate::wording::Wording;

/// A `Result` with the crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, from which the exit code and the MCP error code follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The named note, folder, section or index does not exist.
    NotFound,
    /// The target already exists, or a name matches more than one note.
    Exists,
    /// The file changed since it was read, or another process holds the lock.
    Conflict,
    /// The request is malformed.
    Invalid,
    /// The change would exceed a quota of the vault.
    Quota,
    /// The operating system returned an error.
    Io,
    /// A file of sidenote's own state is damaged.
    Corrupt,
    /// A bug in sidenote.
    Internal,
}

impl ErrorKind {
    /// Returns the name of the kind as replies print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Exists => "exists",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Quota => "quota",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }
}

/// An error with a message that names the path, and a hint that says what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<Box<Wording>>,
    /// The bytes of the input that are wrong, if the error is about a text that somebody wrote.
    place: Option<(usize, usize)>,
    /// The time after which the request may succeed, if that is known.
    retry_after: Option<Duration>,
    source: Option<Box<dyn StdError + Send + Sync + 'static>>,
}

impl Error {
    /// Creates an error of `kind` whose message is one sentence that names the path.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, place: None, retry_after: None, source: None }
    }

    /// Creates a [`ErrorKind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Creates an [`ErrorKind::Invalid`] error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Creates an [`ErrorKind::Corrupt`] error.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Creates an [`ErrorKind::Internal`] error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Creates an [`ErrorKind::Io`] error from a system error that occurred while `doing` something to `path`.
    pub fn io(doing: &str, path: impl AsRef<std::path::Path>, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let hint = match source.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem => Some("this file system is mounted read-only".into()),
            std::io::ErrorKind::CrossesDevices => {
                Some("the two paths are on different file systems; copy the file instead".into())
            }
            _ if platform::is_too_many_open_files(&source) => Some(Wording::new(
                "too many files are open; raise the limit, for example with `ulimit -n 1024`",
                "too many files are open; try again, or ask the user to raise the limit",
            )),
            _ => None,
        };
        let mut error =
            Self::new(kind, format!("cannot {doing} {}", path.as_ref().display())).with_source(source);
        error.hint = hint.map(Box::new);
        error
    }

    /// Adds a hint that says what to do, in one form or in two.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Wording>) -> Self {
        self.hint = Some(Box::new(hint.into()));
        self
    }

    /// Adds a hint with one form for a person at the command line and one for an agent.
    #[must_use]
    pub fn with_hints(self, person: impl Into<String>, agent: impl Into<String>) -> Self {
        self.with_hint(Wording::new(person, agent))
    }

    /// Prefixes the message with the part of the request that failed.
    #[must_use]
    pub fn of(mut self, part: &str) -> Self {
        self.message = format!("{part}: {}", self.message);
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Adds the bytes of the input that are wrong: the first, and the one behind the last.
    #[must_use]
    pub fn with_place(mut self, start: usize, end: usize) -> Self {
        self.place = Some((start, end));
        self
    }

    /// Adds the time after which the request may succeed.
    #[must_use]
    pub fn with_retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    /// Returns the time after which the request may succeed, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the bytes of the input that are wrong, if they are known.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.place
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message without causes or hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the hint for a person at the command line, if there is one.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref().map(Wording::for_person)
    }

    /// Returns the hint in all its forms, if there is one.
    pub fn wording(&self) -> Option<&Wording> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    /// Prints the message and its causes on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
