//! The scopes of a grant: reading, and reading and writing.

use serde::{Deserialize, Serialize};

/// The name of the scope with which a client reads.
const READ: &str = "read";
/// The name of the scope with which a client changes notes.
const WRITE: &str = "write";

/// What a client may do. Whoever may write may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scopes {
    /// Reading alone.
    Read,
    /// Reading and writing.
    Write,
}

impl Scopes {
    /// Reads what a client asks for, up to `most`. Names of other scopes are left out, as RFC 6749 allows (3.3). Without
    /// any, the default is reading. Returns `None` if only other scopes are named.
    pub(crate) fn of_request(text: Option<&str>, most: Self) -> Option<Self> {
        let text = text.unwrap_or_default();
        let mut names = text.split(' ').filter(|name| !name.is_empty()).peekable();
        if names.peek().is_none() {
            return Some(Self::Read);
        }
        let asked = names.filter_map(|name| match name {
            READ => Some(Self::Read),
            WRITE => Some(Self::Write),
            _ => None,
        });
        asked.max().map(|asked| asked.min(most))
    }

    /// Returns the value of `scope` in requests and replies.
    pub fn text(self) -> &'static str {
        match self {
            Self::Read => READ,
            Self::Write => "read write",
        }
    }

    /// Returns the names of the scopes.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Read => &[READ],
            Self::Write => &[READ, WRITE],
        }
    }
}
