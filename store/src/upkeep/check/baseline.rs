//! Baselines: files that record the known problems of a vault, so that only new ones are reported.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::upkeep::check::codes::{Scope, find};
use crate::upkeep::check::problem::Problem;
use sidenote_foundation::error::{Error, Result};

/// The version of the format.
const VERSION: u32 = 1;

/// The known problems of a vault. A problem is recognised by its note and its fingerprint, not by its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    version: u32,
    problems: Vec<KnownProblem>,
}

/// A known problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct KnownProblem {
    path: String,
    code: String,
    fingerprint: String,
    /// The number of problems with this note and fingerprint.
    count: usize,
    /// The message, for those who read the file.
    #[serde(default)]
    message: String,
}

/// How the problems of a vault compare with a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BaselineCounts {
    /// The number of problems that the baseline records. They are not reported.
    pub known: usize,
    /// The number of recorded problems that no longer exist.
    pub fixed: usize,
}

impl Baseline {
    /// Records problems. Those of the index and the records are left out, because they are not of the notes.
    pub fn of(problems: &[Problem]) -> Self {
        let mut known: BTreeMap<(&str, &str, &str), KnownProblem> = BTreeMap::new();
        for problem in problems.iter().filter(|problem| !problem.is_of_vault()) {
            let key = (problem.path.as_str(), problem.code, problem.fingerprint.as_str());
            let entry = known.entry(key).or_insert_with(|| KnownProblem {
                path: problem.path.clone(),
                code: problem.code.to_owned(),
                fingerprint: problem.fingerprint.clone(),
                count: 0,
                message: problem.message.clone(),
            });
            entry.count += 1;
        }
        Self { version: VERSION, problems: known.into_values().collect() }
    }

    /// Parses a baseline. `path` is the file that it was read from.
    ///
    /// # Errors
    /// `Invalid` if the text is no baseline, or one of a later version.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let invalid = |what: &str| {
            Error::invalid(format!("{} {what}", path.display())).with_hints(
                format!(
                    "record the present problems anew: sidenote check --write-baseline {}",
                    path.display()
                ),
                "ask the user to write the baseline anew",
            )
        };
        let parsed: Self =
            serde_json::from_str(text).map_err(|error| invalid("is not a baseline").with_source(error))?;
        if parsed.version != VERSION {
            return Err(invalid(&format!("has version {}, which is unknown", parsed.version)));
        }
        Ok(parsed)
    }

    /// Returns the file's text: JSON with one property a line, in an order that makes small diffs.
    ///
    /// # Errors
    /// `Internal` if it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("cannot write the baseline as JSON").with_source(error))?;
        Ok(format!("{text}\n"))
    }

    /// Returns the number of problems that it records.
    pub fn count(&self) -> usize {
        self.problems.iter().map(|known| known.count).sum()
    }

    /// Removes the problems that are known. Each entry stands for as many equal problems as it counts.
    ///
    /// An entry of a note that is gone also stands for a problem of another note with the same fingerprint, since the note
    /// may have been renamed; but not for one of a whole note, whose fingerprint says nothing about the note.
    pub(super) fn remove_known(
        &self,
        problems: &mut Vec<Problem>,
        is_there: impl Fn(&str) -> bool,
    ) -> BaselineCounts {
        let mut left: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for known in &self.problems {
            *left.entry(&known.path).or_default().entry(&known.fingerprint).or_default() += known.count;
        }
        let all = problems.len();
        problems.retain(|problem| {
            let of_note = left.get_mut(problem.path.as_str());
            !take(of_note.and_then(|counts| counts.get_mut(problem.fingerprint.as_str())))
        });
        let mut moved: BTreeMap<&str, usize> = BTreeMap::new();
        for (fingerprint, count) in
            left.iter().filter(|(path, _)| !is_there(path)).flat_map(|(_, counts)| counts)
        {
            *moved.entry(fingerprint).or_default() += count;
        }
        let mut followed = 0;
        problems.retain(|problem| {
            let is_of_place = find(problem.code).is_some_and(|known| known.scope == Scope::Place);
            let is_known = is_of_place && take(moved.get_mut(problem.fingerprint.as_str()));
            followed += usize::from(is_known);
            !is_known
        });
        let unused: usize = left.values().flat_map(BTreeMap::values).sum();
        BaselineCounts { known: all - problems.len(), fixed: unused.saturating_sub(followed) }
    }
}

/// Takes one from a count, if there is one left.
fn take(count: Option<&mut usize>) -> bool {
    match count {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    }
}
