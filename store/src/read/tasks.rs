//! Lists the tasks of a note or of the vault.

use serde::Serialize;

use crate::lookup::Lookup;
use crate::read::Reads;
use sidenote_foundation::error::Result;
use sidenote_foundation::index::catalog::{FileRow, Filter};
use sidenote_foundation::parallel;
use sidenote_foundation::text::decode::decode;
use sidenote_foundation::text::note::Note;
use sidenote_foundation::text::task_due::due_day;

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

impl Reads<'_> {
    /// Lists tasks by path and line, from the current files.
    ///
    /// # Errors
    /// `NotFound` if no note has the name; `Exists` if several notes have it.
    #[tracing::instrument(skip_all)]
    pub fn tasks(&self, request: &TasksRequest) -> Result<Vec<TaskItem>> {
        let rows = match &request.note {
            Some(name) => vec![Lookup::of(self.core).find(name)?],
            None => {
                let filter = Lookup::of(self.core).with_canonical_folder(&request.filter)?;
                self.core.index.catalog().select(&filter)?
            }
        };
        let found = parallel::map(&rows, 16, || (), |(), row: &FileRow| self.tasks_of(row, request.done));
        Ok(found.into_iter().flatten().take(request.limit.unwrap_or(usize::MAX)).collect())
    }

    fn tasks_of(&self, row: &FileRow, done: Option<bool>) -> Vec<TaskItem> {
        let bytes = match self.core.read_bytes(&row.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!("{error}; its tasks are left out");
                return Vec::new();
            }
        };
        let tasks = Note::parse(&decode(&bytes).text).tasks;
        let item = |task: sidenote_foundation::text::note::Task| TaskItem {
            path: row.path.as_str().to_owned(),
            line: task.line,
            status: task.status,
            done: task.status != ' ',
            due: due_day(&task.text),
            text: task.text,
        };
        tasks.into_iter().map(item).filter(|task| done.is_none_or(|done| done == task.done)).collect()
    }
}
