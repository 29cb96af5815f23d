//! Lists the tasks of a note or of the vault.

use std::collections::HashSet;

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_catalog::{Filter, TaskRow};
use sidenote_markdown::decode::decode;
use sidenote_markdown::note::{Note, Task};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::task_due::due_day;
use sidenote_open_vault::lookup::Lookup;

use crate::read::Reads;

/// The selection of a list of tasks.
#[derive(Debug, Clone, Default)]
pub struct TasksRequest {
    /// The filter of notes.
    pub filter: Filter,
    /// Only tasks of this note, by any of its names.
    pub note: Option<String>,
    /// Only completed tasks, or only open ones.
    pub done: Option<bool>,
    /// The largest number of tasks.
    pub limit: Option<usize>,
}

/// A task and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskItem {
    /// Vault path.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The character between the brackets; a space means open.
    pub status: char,
    /// Whether the status is other than open.
    pub done: bool,
    /// The text of its first line.
    pub text: String,
    /// The day on which it is due, if its text says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
}

impl TaskItem {
    fn of(TaskRow { path, line, status, text }: TaskRow) -> Self {
        Self { path, line, status, done: status != ' ', due: due_day(&text), text }
    }
}

impl Reads<'_> {
    /// Lists tasks by path and place, as the index has them. Of a single note, and of notes that differ from the index, they
    /// are read from the file.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn tasks(&self, request: &TasksRequest) -> Result<Vec<TaskItem>> {
        let lookup = Lookup::of(self.core);
        let mut tasks: Vec<TaskItem> = match &request.note {
            Some(name) => self.tasks_in_file(&lookup.find(name)?.path),
            None => {
                let filter = lookup.with_canonical_folder(&request.filter)?;
                let mut rows = self.core.index.catalog().tasks(&filter)?;
                let unindexed = lookup.unindexed_files();
                if unindexed.is_empty() {
                    rows.into_iter().map(TaskItem::of).collect()
                } else {
                    let mut changed = self.core.index.catalog().select(&filter)?;
                    changed.retain(|file| unindexed.covers(&file.path));
                    let differing: HashSet<&str> = changed.iter().map(|file| file.path.as_str()).collect();
                    rows.retain(|row| !differing.contains(row.path.as_str()));
                    changed.retain(|file| !unindexed.is_gone(&file.path));
                    let read = changed.iter().flat_map(|file| self.tasks_in_file(&file.path));
                    let mut all: Vec<TaskItem> = rows.into_iter().map(TaskItem::of).chain(read).collect();
                    // The order of the tasks of one note stays.
                    all.sort_by(|one, other| one.path.cmp(&other.path));
                    all
                }
            }
        };
        tasks.retain(|task| request.done.is_none_or(|done| done == task.done));
        tasks.truncate(request.limit.unwrap_or(usize::MAX));
        Ok(tasks)
    }

    /// Reads the tasks of a note from its file. Of a file that cannot be read, there are none.
    fn tasks_in_file(&self, path: &NotePath) -> Vec<TaskItem> {
        let bytes = match self.core.read_bytes(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!("{error}; its tasks are left out");
                return Vec::new();
            }
        };
        let row = |Task { line, status, text, .. }: Task| {
            TaskItem::of(TaskRow { path: path.as_str().to_owned(), line, status, text })
        };
        Note::parse(&decode(&bytes).text).tasks.into_iter().map(row).collect()
    }
}
