//! One day of the vault: its daily note, the notes that were created and changed on it, and the tasks that are due.

use std::cmp::Reverse;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{FileRow, Filter};
use sidenote_change::Planner;

use crate::Views;
use crate::task_board::BoardTask;

/// The most notes of each list.
const MOST_NOTES: usize = 200;

/// The daily note of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DailyNote {
    /// Where it is, or would be.
    pub path: String,
    /// The title of the note, if it is there.
    pub title: Option<String>,
}

/// A note of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DayNote {
    /// The path from the root of the vault.
    pub path: String,
    /// The title.
    pub title: String,
    /// When it was created, or changed.
    pub at: Timestamp,
}

/// A part of some notes of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DayNotes {
    /// The number of all of them.
    pub total: usize,
    /// The notes, the last one first.
    pub notes: Vec<DayNote>,
}

/// The open tasks of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DayTasks {
    /// The number of all of them.
    pub total: usize,
    /// The tasks by day.
    pub tasks: Vec<BoardTask>,
}

/// A day of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DayView {
    /// The day.
    pub day: String,
    /// Today.
    pub today: String,
    /// The day before.
    pub previous: String,
    /// The day after.
    pub next: String,
    /// The daily note; none if Obsidian's settings give no path.
    pub daily: Option<DailyNote>,
    /// Why there is no path of a daily note.
    pub daily_error: Option<String>,
    /// The notes that were created on the day.
    pub created: DayNotes,
    /// The notes that were changed last on the day, without those that were created on it.
    pub changed: DayNotes,
    /// The open tasks that are due on the day; of today, also those that were due before.
    pub tasks: DayTasks,
}

impl Views<'_> {
    /// Shows a day.
    ///
    /// # Errors
    /// `Invalid` if the day is at the end of all days; `Corrupt` if the index cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn day(&self, at: Timestamp) -> Result<DayView> {
        let day = at.day();
        let out_of_range = || Error::invalid(format!("{day} has no day before or after it"));
        let (start, end) = Timestamp::day_range(at.date()).ok_or_else(out_of_range)?;
        let before = Timestamp::from_millis(start.millis() - 1);
        let (daily, daily_error) = match Planner::of(self.core).daily_note(Some(start)) {
            Ok(path) => {
                let row = self.core.index.catalog().row_at(path.as_str())?;
                (Some(DailyNote { path: path.to_string(), title: row.map(|row| row.title) }), None)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let created = Filter { created_after: Some(start), created_before: Some(end), ..Filter::default() };
        let changed = Filter { updated_after: Some(start), updated_before: Some(end), ..Filter::default() };
        let created = self.notes_of(&created, |row| row.created, |_| true)?;
        let changed = self.notes_of(&changed, |row| row.updated, |at| at < start || at >= end)?;
        let (total, tasks) = self.tasks_due(&day)?;
        Ok(DayView {
            today: self.core.clock.now().day(),
            previous: before.day(),
            next: end.day(),
            day,
            daily,
            daily_error,
            created,
            changed,
            tasks: DayTasks { total, tasks },
        })
    }

    /// Lists the notes of a filter by one of their times, the last one first; only those whose time of creation is wanted.
    fn notes_of(
        &self,
        filter: &Filter,
        time_of: impl Fn(&FileRow) -> Timestamp,
        is_wanted: impl Fn(Timestamp) -> bool,
    ) -> Result<DayNotes> {
        let mut rows = self.core.index.catalog().select(filter)?;
        rows.retain(|row| is_wanted(row.created));
        rows.sort_by_key(|row| Reverse(time_of(row)));
        let total = rows.len();
        let shown = rows.into_iter().take(MOST_NOTES).map(|row| DayNote {
            at: time_of(&row),
            path: row.path.as_str().to_owned(),
            title: row.title,
        });
        Ok(DayNotes { total, notes: shown.collect() })
    }
}
