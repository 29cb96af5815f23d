//! Baselines: files that record the known problems of a vault, so that only new ones are reported.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sidenote_base::error::{Error, Result};

use crate::check::codes::{Scope, find};
use crate::check::problem::Problem;

/// The version of the format.
const VERSION: u32 = 1;

/// The known problems of a vault. A problem is recognised by its note and its fingerprint, not by its line; or else by
/// its note, its code and the target of its link, which stay the same when files are renamed and links follow.
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
    /// What the link names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The note that the link leads to, if it is one of its parts that is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    into: Option<String>,
}

impl KnownProblem {
    fn of(problem: &Problem) -> Self {
        Self {
            path: problem.path.clone(),
            code: problem.code.to_owned(),
            fingerprint: problem.fingerprint.clone(),
            count: 0,
            message: problem.message.clone(),
            target: problem.target.clone(),
            into: note_with_part(problem),
        }
    }

    /// Returns what the link of the problem means, if its files exist; `None` for a problem without a link.
    fn meaning(&self, is_there: &impl Fn(&str) -> bool) -> Option<LinkMeaning<'_>> {
        let target = self.target.as_deref()?;
        let into = self.into.as_deref();
        Some(LinkMeaning {
            path: Some(self.path.as_str()).filter(|path| is_there(path)),
            code: &self.code,
            part: part_of(target, into),
            into: into.map(|into| Some(into).filter(|into| is_there(into))),
        })
    }
}

/// What a link with a problem means. A note that is gone may have been renamed, so its entry covers any note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinkMeaning<'p> {
    path: Option<&'p str>,
    code: &'p str,
    /// The part of the note that the link leads to, or all that it names.
    part: &'p str,
    /// The note that the link leads to, if it leads to one.
    into: Option<Option<&'p str>>,
}

/// Returns the note to which the link of a problem leads, if it is one of its parts that is missing.
fn note_with_part(problem: &Problem) -> Option<String> {
    let is_part = problem.code == "broken-subpath";
    problem.related.first().filter(|_| is_part).map(ToString::to_string)
}

/// Returns what a link names, without the path of a note that it leads to.
fn part_of<'t>(target: &'t str, into: Option<&str>) -> &'t str {
    let part = target.find('#').and_then(|at| target.get(at..));
    part.filter(|_| into.is_some()).unwrap_or(target)
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
            known.entry(key).or_insert_with(|| KnownProblem::of(problem)).count += 1;
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
                    "record the present problems again: sidenote check --write-baseline {}",
                    path.display()
                ),
                "ask the user to write the baseline again",
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

    /// Removes the problems that are known. Each entry covers as many equal problems as it counts.
    ///
    /// An entry whose problem is gone also covers a problem of the same note with the same code and the same target of
    /// its link, since a rename or an edit may have changed the text of the line. If its note is gone, the entry covers
    /// one of another note, since the note may have been renamed. It does not cover a problem of a whole note, whose
    /// fingerprint says nothing about the note.
    pub(super) fn remove_known(
        &self,
        problems: &mut Vec<Problem>,
        is_there: impl Fn(&str) -> bool,
    ) -> BaselineCounts {
        let all = problems.len();
        let mut left: Vec<usize> = self.problems.iter().map(|known| known.count).collect();
        // What the problems of the entries are known by, from the most exact.
        let mut same: BTreeMap<(&str, &str), Entries> = BTreeMap::new();
        let mut moved: BTreeMap<&str, Entries> = BTreeMap::new();
        let mut alike: BTreeMap<LinkMeaning<'_>, Entries> = BTreeMap::new();
        for (at, known) in self.problems.iter().enumerate() {
            same.entry((&known.path, &known.fingerprint)).or_default().numbers.push(at);
            if !is_there(&known.path) {
                moved.entry(&known.fingerprint).or_default().numbers.push(at);
            }
            if let Some(meaning) = known.meaning(&is_there) {
                alike.entry(meaning).or_default().numbers.push(at);
            }
        }
        let is_of_place =
            |problem: &Problem| find(problem.code).is_some_and(|known| known.scope == Scope::Place);
        problems.retain(|problem| {
            !take(&mut left, same.get(&(problem.path.as_str(), problem.fingerprint.as_str())))
        });
        problems.retain(|problem| {
            !(is_of_place(problem) && take(&mut left, moved.get(problem.fingerprint.as_str())))
        });
        problems.retain(|problem| {
            let Some(target) = problem.target.as_deref().filter(|_| is_of_place(problem)) else {
                return true;
            };
            let into = note_with_part(problem);
            let part = part_of(target, into.as_deref());
            // The note and the one that the link leads to are those of the entry, or had another path then.
            let path = problem.path.as_str();
            let pairs = [Some(path), None].into_iter().flat_map(|path| {
                let of_entry = into.as_deref().map(|into| [Some(Some(into)), Some(None)]);
                of_entry.unwrap_or([None, None]).map(|into| (path, into))
            });
            let mut meanings = pairs.map(|(path, into)| LinkMeaning { path, code: problem.code, part, into });
            !meanings.any(|meaning| take(&mut left, alike.get(&meaning)))
        });
        BaselineCounts { known: all - problems.len(), fixed: left.iter().sum() }
    }
}

/// The entries of a baseline with something in common.
#[derive(Debug, Default)]
struct Entries {
    /// Their numbers.
    numbers: Vec<usize>,
    /// How many of them have no problem left.
    used: Cell<usize>,
}

/// Takes one from the first of some entries that has one left.
fn take(left: &mut [usize], entries: Option<&Entries>) -> bool {
    let Some(Entries { numbers, used }) = entries else { return false };
    while let Some(at) = numbers.get(used.get()) {
        match left.get_mut(*at) {
            Some(count) if *count > 0 => {
                *count -= 1;
                return true;
            }
            _ => used.set(used.get() + 1),
        }
    }
    false
}
