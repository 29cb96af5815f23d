//! When the files of a repository appeared in it.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::git::Repository;

/// What stands before the time of a commit, and in no path that git prints as it is.
const BEFORE_TIME: char = '\u{1}';

impl Repository {
    /// Returns for each path that some commit before HEAD added the time of the first such commit. The history is read once,
    /// without looking for renames.
    ///
    /// # Errors
    /// Those of running git.
    pub fn first_commits(&self) -> Result<HashMap<String, Timestamp>> {
        let Some(head) = self.head()? else { return Ok(HashMap::new()) };
        let format = format!("--format={BEFORE_TIME}%ct");
        let mut arguments =
            vec!["log", "--diff-filter=A", "--no-renames", "--name-only", &format, head.as_str(), "--"];
        arguments.extend(Some(self.prefix()).filter(|prefix| !prefix.is_empty()));
        let listed = self.read(&arguments)?;
        let mut first = HashMap::new();
        let mut at = None;
        for line in String::from_utf8_lossy(&listed).lines() {
            if let Some(seconds) = line.strip_prefix(BEFORE_TIME) {
                at = seconds.parse::<i64>().ok().map(|seconds| Timestamp::from_millis(seconds * 1_000));
            } else if let (Some(path), Some(at)) = (line.strip_prefix(self.prefix()), at) {
                // Times of commits need not rise.
                let known = first.entry(path.to_owned()).or_insert(at);
                *known = at.min(*known);
            }
        }
        Ok(first)
    }
}
