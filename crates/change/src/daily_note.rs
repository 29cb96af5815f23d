//! The path of the daily note, by Obsidian's settings.

use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_markdown::date_format;
use sidenote_markdown::name_rules::NameRules;
use sidenote_markdown::path::NotePath;

use crate::Planner;
use crate::create::unsupported;

impl Planner<'_> {
    /// Returns the path of the daily note of the day that a time is in; without one, of today.
    ///
    /// # Errors
    /// `Invalid` if Obsidian's settings give an invalid path.
    pub fn daily_note(&self, day: Option<Timestamp>) -> Result<NotePath> {
        let daily = &self.core.vault.settings().daily_notes;
        let day = day.unwrap_or_else(|| self.core.clock.now());
        let name = date_format::format(&daily.format, day.local())
            .map_err(|unknown| unsupported("Obsidian's format of daily notes", unknown))?;
        let path = if daily.folder.is_empty() { name } else { format!("{}/{name}", daily.folder) };
        self.core.vault.new_path(&format!("{path}.md"), NameRules::default())
    }
}
