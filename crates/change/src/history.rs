//! Lists the operations of the journal, for one note or for all.

use sidenote_base::error::Result;
use sidenote_journal::Journal;
use sidenote_journal::event::Event;
use sidenote_journal::reader::{Events, ReadOrder};
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::lookup::Lookup;

use crate::{Changes, Planner};

impl Changes<'_> {
    /// Lists operations, the newest first: those of one note, under all its paths, or all. A deleted note is found by its
    /// path, its title or its file name.
    ///
    /// # Errors
    /// `NotFound` if no note has the name and the journal does not know it; `Exists` if several notes have the name.
    #[tracing::instrument(skip_all)]
    pub fn history(&self, note: Option<&str>) -> Result<Vec<Event>> {
        self.history_of(note, usize::MAX)
    }

    /// Lists the last `limit` operations, the newest first. Reads no more of the journal than these take.
    ///
    /// # Errors
    /// `NotFound` if no note has the name and the journal does not know the path; `Exists` if several notes have the
    /// name.
    #[tracing::instrument(skip_all)]
    pub fn history_of(&self, note: Option<&str>, limit: usize) -> Result<Vec<Event>> {
        let journal = Journal::open(&self.core.vault, &self.core.vault.records());
        let Some(name) = note else {
            let mut events = journal.events(ReadOrder::NewestFirst)?.of_changes();
            // Events without files are shown by the audit trail only.
            let is_change = |event: &Result<Event>| {
                event.as_ref().map_or(true, |event| {
                    !event.files.is_empty() || !event.folders.is_empty() || event.undoes.is_some()
                })
            };
            let all = events.by_ref().filter(is_change).take(limit).collect::<Result<Vec<_>>>()?;
            warn_of_damage(&events);
            return Ok(all);
        };
        let found = Lookup::of(self.core).find(name).map(|row| row.path);
        let given = [name.to_owned(), format!("{name}.md")];
        let paths = found.iter().cloned().chain(given.iter().filter_map(|path| NotePath::parse(path).ok()));
        for path in paths {
            let mut events = journal.history(&path)?;
            if !events.is_empty() {
                events.reverse();
                events.truncate(limit);
                return Ok(events);
            }
        }
        if found.is_err()
            && let Some(path) = self.deleted_path(name)?
        {
            let mut events = journal.history(&path)?;
            events.reverse();
            events.truncate(limit);
            return Ok(events);
        }
        found.map(|_| Vec::new())
    }

    /// Finds the path that a deleted note had, by its title, alias or id if it is in the trash, or else by its file name. Of
    /// several notes with the file name, that of the last event is given.
    pub fn deleted_path(&self, name: &str) -> Result<Option<NotePath>> {
        let name = Lookup::bare_name(name);
        let planner = Planner::of(self.core);
        if let Some(in_trash) = planner.answering_in_trash(name)
            && let Some(path) = planner.former_path(&in_trash)?
        {
            return Ok(Some(path));
        }
        let wanted = key(name.strip_suffix(".md").unwrap_or(name));
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            let places = event.files.iter().filter_map(|file| file.path.in_vault());
            if let Some(path) = places.into_iter().find(|path| key(path.stem()) == wanted) {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }
}

/// Logs how many lines of the journal could not be read and were skipped.
fn warn_of_damage(events: &Events) {
    if events.corrupt() > 0 {
        tracing::warn!("{} lines of the journal cannot be read and are left out", events.corrupt());
    }
}
