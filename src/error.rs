//! Owns the one error type: what went wrong, at which path, and what to do about it.
//!
//! Parsers never return it: they yield a value and a list of problems.

use std::error::Error as StdError;
use std::fmt;

/// The result of anything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Sorts errors by what a caller can do about them; the exit code and the MCP reply follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The named note, folder, section or index is not there.
    NotFound,
    /// The target is there already, or a name means more than one note.
    Exists,
    /// The file changed since it was read, or somebody else holds the lock.
    Conflict,
    /// The request itself is malformed.
    Invalid,
    /// The operating system refused.
    Io,
    /// A file of ours is damaged.
    Corrupt,
    /// A bug of ours.
    Internal,
}

impl ErrorKind {
    /// Names the kind as replies print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Exists => "exists",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }
}

/// A failure: one sentence that names the path, and a hint that says what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync + 'static>>,
}

impl Error {
    /// Makes an error of `kind` with one sentence that names the path concerned.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, source: None }
    }

    /// Makes a [`ErrorKind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Makes an [`ErrorKind::Invalid`] error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Makes an [`ErrorKind::Corrupt`] error.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Makes an [`ErrorKind::Internal`] error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Makes an [`ErrorKind::Io`] error of a system error met while `doing` something to `path`.
    pub fn io(doing: &str, path: impl AsRef<std::path::Path>, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let hint = match source.raw_os_error() {
            _ if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
                Some("what lies there can only be read")
            }
            Some(libc::EMFILE | libc::ENFILE) => {
                Some("too many files are open; allow more, for instance with `ulimit -n 1024`")
            }
            Some(libc::EXDEV) => Some(
                "the two places lie on different file systems, and nothing is moved from one to another; copy it",
            ),
            _ => None,
        };
        let mut error =
            Self::new(kind, format!("cannot {doing} {}", path.as_ref().display())).with_source(source);
        error.hint = hint.map(str::to_owned);
        error
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says which part of a request the failure is about.
    #[must_use]
    pub fn of(mut self, part: &str) -> Self {
        self.message = format!("{part}: {}", self.message);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Says which kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Gives the sentence without causes or hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Says what to do about it, where we know.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    /// Prints the sentence and its causes on one line.
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
