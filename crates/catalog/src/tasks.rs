//! Tasks in the catalog, so that a list of them opens no file.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use sidenote_base::error::Result;
use sidenote_markdown::note::Task;

use super::inserts::Inserts;
use super::{CatalogReader, FileId, Filter};

static INTO_TASKS: Inserts<5> = Inserts::new("INSERT INTO tasks VALUES");

/// A task of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// The path of the note.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character between the brackets; a space means open.
    pub status: char,
    /// The text of its first line.
    pub text: String,
}

/// Inserts the tasks of a file, in their order.
pub(super) fn put_tasks(db: &Connection, file: FileId, tasks: &[Task]) -> Result<()> {
    let row = |(ord, task): (usize, &Task)| -> [Value; 5] {
        [
            file.into(),
            (ord as i64).into(),
            (task.line as i64).into(),
            task.status.to_string().into(),
            task.text.clone().into(),
        ]
    };
    let rows: Vec<[Value; 5]> = tasks.iter().enumerate().map(row).collect();
    INTO_TASKS.insert(db, &rows)
}

impl CatalogReader {
    /// Lists the tasks of the notes that match a filter, by path and place.
    ///
    /// # Errors
    /// Returns `Corrupt` or `Io` if the catalog cannot be read.
    pub fn tasks(&self, filter: &Filter) -> Result<Vec<TaskRow>> {
        let (condition, values) = filter.condition();
        self.collect(
            &format!(
                "SELECT f.path, w.line, w.status, w.text FROM tasks w JOIN files f ON f.id = w.file
                 WHERE {condition} ORDER BY f.path, w.ord"
            ),
            params_from_iter(values),
            |row| {
                let status: String = row.get(2)?;
                Ok(TaskRow {
                    path: row.get(0)?,
                    line: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                    status: status.chars().next().unwrap_or(' '),
                    text: row.get(3)?,
                })
            },
        )
    }
}
