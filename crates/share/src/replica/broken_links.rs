//! The links of a folder that lead to files which a synchronisation removed. A rename on another computer is a removal
//! here; it has updated only the links of the notes that existed there.

use std::collections::BTreeSet;

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_markdown::path::{NotePath, key};
use sidenote_store::{CheckRequest, Open, Store};

use crate::replica::{Replica, SyncReply};

/// With more removed files than this, all notes are checked, and not only those that have the name of one.
const MAX_NAMES: usize = 100;

/// A link that leads to a file which a synchronisation removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenLink {
    /// The path of the note.
    pub path: String,
    /// The line of the link, counted from 1.
    pub line: usize,
    /// What the link names.
    pub target: String,
}

impl Replica {
    /// Finds the broken links to files that a synchronisation removed. Only notes that have the name of such a file are parsed.
    pub(super) fn broken_links(&self, reply: &SyncReply) -> Result<Vec<BrokenLink>> {
        let removed = reply.removed_here.iter().chain(&reply.removed_there);
        let stems: BTreeSet<String> =
            removed.filter_map(|path| Some(key(NotePath::from_disk(path)?.stem()))).collect();
        if stems.is_empty() {
            return Ok(Vec::new());
        }
        let encoded: Vec<String> = stems.iter().map(|stem| stem.replace(' ', "%20")).collect();
        let mut notes = Vec::new();
        for path in self.state.paths().filter(|path| path.in_vault().is_some_and(|path| path.is_note())) {
            let Some(bytes) = self.folder.read(&path, self.max_file)? else { continue };
            let text = key(&String::from_utf8_lossy(&bytes));
            if stems.len() > MAX_NAMES || stems.iter().chain(&encoded).any(|name| text.contains(name)) {
                notes.push(path.as_str().to_owned());
            }
        }
        if notes.is_empty() {
            return Ok(Vec::new());
        }
        let open = Open { vault: Some(self.options.root.clone()), read_only: true, ..Open::default() };
        let request = CheckRequest { paths: Some(notes), ..CheckRequest::default() };
        let problems = Store::check_without_index(&open, &request)?.problems.into_iter();
        let broken = problems.filter(|problem| problem.code == "broken-link");
        let broken = broken.filter_map(|problem| {
            let target = problem.target?;
            let name = target.split(['#', '^']).next()?.rsplit('/').next()?;
            let name = key(name.strip_suffix(".md").unwrap_or(name));
            stems.contains(&name).then_some(BrokenLink { path: problem.path, line: problem.line, target })
        });
        Ok(broken.collect())
    }
}
