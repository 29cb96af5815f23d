//! The tasks of the vault for a person: open ones first and by the day on which they are due, a part at a time, with counts.

use std::collections::BTreeMap;

use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_query::read::Reads;
use sidenote_query::read::tasks::{TaskItem, TasksRequest};

use crate::Views;

/// The tasks of a reply, unless another number is asked for.
const TASKS: usize = 100;
/// The most tasks of a reply.
const MOST_TASKS: usize = 1_000;
/// The days from today on that a week has.
const WEEK: usize = 7;

/// When a task is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskDue {
    /// Before today.
    Overdue,
    /// Today.
    Today,
    /// Within the seven days that begin today.
    Week,
    /// On any day.
    Dated,
    /// On no day that its text says.
    Undated,
}

impl TaskDue {
    /// Parses the name of a filter.
    ///
    /// # Errors
    /// `Invalid` for another name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "overdue" => Ok(Self::Overdue),
            "today" => Ok(Self::Today),
            "week" => Ok(Self::Week),
            "some" => Ok(Self::Dated),
            "none" => Ok(Self::Undated),
            other => Err(Error::invalid(format!("there is no filter {other:?} of days"))
                .with_hint("give overdue, today, week, some or none")),
        }
    }
}

/// Which tasks are wanted.
#[derive(Debug, Clone, Default)]
pub struct TaskBoardRequest {
    /// Only open tasks, or only others.
    pub done: Option<bool>,
    /// Only tasks with this character between the brackets.
    pub status: Option<char>,
    /// Only tasks of notes in this folder or below it.
    pub folder: Option<String>,
    /// When they are due.
    pub due: Option<TaskDue>,
    /// A part of their text, ignoring case.
    pub text: Option<String>,
    /// The number of tasks to skip.
    pub skip: usize,
    /// The most tasks of the reply.
    pub limit: Option<usize>,
}

/// A task with the title of its note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardTask {
    /// The task.
    #[serde(flatten)]
    pub task: TaskItem,
    /// The title of its note.
    pub title: String,
}

/// A part of the tasks of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskBoard {
    /// The number of tasks that are wanted.
    pub total: usize,
    /// The number of all tasks that are open.
    pub open: usize,
    /// The number of all tasks that are not open.
    pub done: usize,
    /// The number of open tasks whose day is past.
    pub overdue: usize,
    /// The numbers of all tasks by the character between the brackets.
    pub statuses: BTreeMap<char, usize>,
    /// The numbers of open tasks by top folder; the root has an empty name.
    pub folders: BTreeMap<String, usize>,
    /// Today's day, with which those of tasks are compared.
    pub today: String,
    /// The tasks.
    pub tasks: Vec<BoardTask>,
}

impl Views<'_> {
    /// Selects a part of the tasks of all notes.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub fn task_board(&self, request: &TaskBoardRequest) -> Result<TaskBoard> {
        let all = Reads::of(self.core).tasks(&TasksRequest::default())?;
        let now = self.core.clock.now();
        // Days can have more or fewer hours than 24.
        let last = (1..WEEK).try_fold(now.date(), |day, _| day.tomorrow().ok());
        let (today, week_end) = (now.day(), last.unwrap_or_else(|| now.date()).to_string());
        let (mut open, mut done, mut overdue) = (0, 0, 0);
        let (mut statuses, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for task in &all {
            *statuses.entry(task.status).or_insert(0) += 1;
            if task.done {
                done += 1;
                continue;
            }
            open += 1;
            overdue += usize::from(task.due.as_ref().is_some_and(|due| *due < today));
            let folder = task.path.split_once('/').map_or("", |(folder, _)| folder);
            match folders.get_mut(folder) {
                Some(number) => *number += 1,
                None => drop(folders.insert(folder.to_owned(), 1)),
            }
        }
        let text = request.text.as_ref().map(|text| text.to_lowercase());
        let folder = request.folder.as_deref().map(|folder| folder.trim_matches('/'));
        let is_below = |task: &TaskItem| {
            folder
                .filter(|folder| !folder.is_empty())
                .is_none_or(|folder| task.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
        };
        let is_due = |task: &TaskItem| match (request.due, &task.due) {
            (None, _) | (Some(TaskDue::Dated), Some(_)) | (Some(TaskDue::Undated), None) => true,
            (Some(TaskDue::Overdue), Some(due)) => *due < today,
            (Some(TaskDue::Today), Some(due)) => *due == today,
            (Some(TaskDue::Week), Some(due)) => *due >= today && *due <= week_end,
            (Some(_), _) => false,
        };
        let mut wanted: Vec<&TaskItem> = all
            .iter()
            .filter(|task| request.done.is_none_or(|done| done == task.done))
            .filter(|task| request.status.is_none_or(|status| status == task.status))
            .filter(|task| is_below(task) && is_due(task))
            .filter(|task| text.as_ref().is_none_or(|text| task.text.to_lowercase().contains(text)))
            .collect();
        // The order by path and line stays among those that are alike.
        wanted.sort_by_key(|task| (task.done, task.due.is_none(), task.due.as_deref()));
        let limit = request.limit.unwrap_or(TASKS).min(MOST_TASKS);
        let shown = wanted.iter().skip(request.skip).take(limit).map(|task| (*task).clone());
        Ok(TaskBoard {
            total: wanted.len(),
            open,
            done,
            overdue,
            statuses,
            folders,
            today,
            tasks: self.titled_tasks(shown)?,
        })
    }

    /// Lists the open tasks that are due on a day, or, for today, on that day or before.
    ///
    /// # Errors
    /// `Corrupt` if the index cannot be read.
    pub(crate) fn tasks_due(&self, day: &str) -> Result<(usize, Vec<BoardTask>)> {
        let is_today = self.core.clock.now().day() == day;
        let is_due = |due: &String| due == day || is_today && due.as_str() < day;
        let open = TasksRequest { done: Some(false), ..TasksRequest::default() };
        let mut due = Reads::of(self.core).tasks(&open)?;
        due.retain(|task| task.due.as_ref().is_some_and(is_due));
        due.sort_by(|one, other| one.due.cmp(&other.due));
        Ok((due.len(), self.titled_tasks(due.into_iter().take(MOST_TASKS))?))
    }

    fn titled_tasks(&self, tasks: impl Iterator<Item = TaskItem>) -> Result<Vec<BoardTask>> {
        let catalog = self.core.index.catalog();
        let mut titles: BTreeMap<String, String> = BTreeMap::new();
        let mut found = Vec::new();
        for task in tasks {
            let title = match titles.get(&task.path) {
                Some(title) => title.clone(),
                None => {
                    let title = catalog.row_at(&task.path)?.map(|row| row.title).unwrap_or_default();
                    titles.insert(task.path.clone(), title.clone());
                    title
                }
            };
            found.push(BoardTask { task, title });
        }
        Ok(found)
    }
}
