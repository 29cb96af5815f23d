//! Which commit a text names: a revision as git understands it, or a date.

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};

use crate::{ObjectId, Repository};

/// A commit, and the text that named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCommit {
    /// The text.
    pub name: String,
    /// The commit.
    pub id: ObjectId,
}

impl Repository {
    /// Finds the commit that a text names: anything that `git rev-parse` takes, or a date, which means the last commit of
    /// HEAD before the end of that day. `now` is the time that a date such as `7d` is relative to.
    ///
    /// # Errors
    /// `NotFound` if it is neither, or if the history has no commit so early; those of running git.
    pub fn named_commit(&self, name: &str, now: Timestamp) -> Result<NamedCommit> {
        let named = |id| NamedCommit { name: name.to_owned(), id };
        if let Some(id) = self.commit(name)? {
            return Ok(named(id));
        }
        let Some(end) = end_of(name, now) else {
            return Err(Error::not_found(format!("git knows no revision {name:?}")).with_hint(
                "name a branch, a tag, a commit, HEAD~3, or a date such as 2026-01-01, yesterday or 7d",
            ));
        };
        // git counts commits of this very second as well.
        let latest = format!("--min-age={}", (end.millis() - 1).div_euclid(1000));
        let found = match self.head()? {
            // A file may have the name of the revision.
            Some(head) => self.read(["rev-list", "--max-count=1", &latest, head.as_str(), "--"])?,
            None => Vec::new(),
        };
        let id = ObjectId::parse(String::from_utf8_lossy(&found).trim());
        id.map(named).ok_or_else(|| {
            Error::not_found(format!("HEAD has no commit before the end of {name}"))
                .with_hint("name a later date, or a commit")
        })
    }
}

/// Returns the exclusive end of the day, or of the time, that a text means.
fn end_of(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some((_, end)) = Timestamp::relative(text, now) {
        return Some(end);
    }
    match text.trim().parse() {
        Ok(day) if !text.trim().contains([':', 'T', ' ']) => Some(Timestamp::day_range(day)?.1),
        _ => Some(Timestamp::from_millis(Timestamp::parse(text)?.millis() + 1)),
    }
}
