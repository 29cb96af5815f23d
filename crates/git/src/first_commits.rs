//! When files appeared in the history: their first commits.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;

use crate::Repository;
use crate::process::TimeLimit;

/// The character before the time of a commit, with which no path begins.
const BEFORE_TIME: char = '\u{1}';
/// The most paths to which git limits the history by itself: it compares each changed path with all of them.
const MAX_PATHSPECS: usize = 100;

impl Repository {
    /// Returns for each of some paths that some commit before HEAD added the time of the first such commit. The history is read
    /// once, without looking for renames, and for a limited time.
    ///
    /// # Errors
    /// Those of running git; `Io` if it takes longer.
    pub fn first_commits(&self, paths: &[&str], limit: Duration) -> Result<HashMap<String, Timestamp>> {
        let format = format!("--format={BEFORE_TIME}%ct");
        let mut command = self.plumbing();
        command.args(["log", "-z", "--diff-filter=A", "--no-renames", "--name-only", &format, "HEAD", "--"]);
        if paths.len() <= MAX_PATHSPECS {
            command.args(paths.iter().map(|path| self.in_tree(path)));
        } else if !self.prefix().is_empty() {
            command.arg(self.prefix());
        }
        let said = self.run(&mut command, None, TimeLimit::InAll(limit))?;
        if said.code != 0 {
            return Err(self.refusal(&said.stderr));
        }
        let wanted: HashSet<&str> = paths.iter().copied().collect();
        let mut first = HashMap::new();
        let mut at = None;
        for field in said.stdout.split(|byte| *byte == 0) {
            let Ok(field) = std::str::from_utf8(field) else { continue };
            if let Some(seconds) = field.strip_prefix(BEFORE_TIME) {
                at = seconds.parse::<i64>().ok().map(|seconds| Timestamp::from_millis(seconds * 1_000));
                continue;
            }
            // A line feed stands between the time and the first path.
            let path = field.strip_prefix('\n').unwrap_or(field).strip_prefix(self.prefix());
            if let (Some(path), Some(at)) = (path.filter(|path| wanted.contains(path)), at) {
                // Times of commits need not rise.
                let known = first.entry(path.to_owned()).or_insert(at);
                *known = at.min(*known);
            }
        }
        Ok(first)
    }
}
