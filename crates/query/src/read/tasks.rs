//! Lists the tasks of a note or of the vault.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_base::parallel;
use sidenote_catalog::{FileId, FileRow, Filter, Hash};
use sidenote_markdown::decode::decode;
use sidenote_markdown::edit::ContentHash;
use sidenote_markdown::note::Note;
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

/// The tasks of one note.
#[derive(Debug, Clone)]
struct NoteTasks {
    id: FileId,
    path: NotePath,
    /// The hash of the bytes that were read; `None` if they could not be read, so that they are read again.
    hash: Option<Hash>,
    tasks: Arc<[TaskItem]>,
}

/// The tasks of all notes.
#[derive(Debug, Clone, Default)]
pub struct AllTasks {
    /// All notes by path, also those without tasks.
    notes: Vec<NoteTasks>,
    /// The number of notes that were read for it.
    read: usize,
}

impl AllTasks {
    /// Lists the tasks by path and line.
    pub fn items(&self) -> impl Iterator<Item = &TaskItem> {
        self.notes.iter().flat_map(|note| note.tasks.iter())
    }

    /// Returns the number of notes that were read for it. The others had not changed since the former one was made.
    pub fn notes_read(&self) -> usize {
        self.read
    }
}

impl Reads<'_> {
    /// Lists the tasks of all notes. Of notes that are as they were for the former list, these are taken from it.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn all_tasks(&self, former: &AllTasks) -> Result<AllTasks> {
        let rows = self.core.index.catalog().select(&Filter::default())?;
        let known: HashMap<FileId, &NoteTasks> = former.notes.iter().map(|note| (note.id, note)).collect();
        let found = parallel::map(
            &rows,
            16,
            || (),
            |(), row: &FileRow| {
                let same = known.get(&row.id).filter(|note| note.path == row.path && note.hash == row.hash);
                match same.filter(|_| row.hash.is_some()) {
                    Some(note) => ((*note).clone(), false),
                    None => {
                        let (hash, tasks) = self.tasks_of(row, None).unzip();
                        let tasks = tasks.unwrap_or_default().into();
                        (NoteTasks { id: row.id, path: row.path.clone(), hash, tasks }, true)
                    }
                }
            },
        );
        let read = found.iter().filter(|(_, is_read)| *is_read).count();
        Ok(AllTasks { notes: found.into_iter().map(|(note, _)| note).collect(), read })
    }

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
        let found = found.into_iter().flatten().flat_map(|(_, tasks)| tasks);
        Ok(found.take(request.limit.unwrap_or(usize::MAX)).collect())
    }

    /// Reads the tasks of a note, with the hash of the bytes that were read. `None` if they cannot be read.
    fn tasks_of(&self, row: &FileRow, done: Option<bool>) -> Option<(Hash, Vec<TaskItem>)> {
        let bytes = match self.core.read_bytes(&row.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!("{error}; its tasks are left out");
                return None;
            }
        };
        let tasks = Note::parse(&decode(&bytes).text).tasks;
        let item = |task: sidenote_markdown::note::Task| TaskItem {
            path: row.path.as_str().to_owned(),
            line: task.line,
            status: task.status,
            done: task.status != ' ',
            due: due_day(&task.text),
            text: task.text,
        };
        let is_wanted = |task: &TaskItem| done.is_none_or(|done| done == task.done);
        Some((ContentHash::of(&bytes).to_bytes(), tasks.into_iter().map(item).filter(is_wanted).collect()))
    }
}
