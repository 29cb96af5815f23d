//! What a plan may do: the role that its files need, and settings of a shared vault that all its servers can read.
//!
//! Every change passes this check with the files of its plan, so that an undo, for example, cannot do what its caller may not do.

use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_config::{Config, VAULT_FILE};
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation, apply};
use sidenote_markdown::path::SETTINGS_FILES;
use sidenote_open_vault::caller::Role;
use sidenote_open_vault::idempotency::Calls;
use sidenote_vault::authority::authority_of;
use sidenote_vault::obsidian::check_settings;

use crate::Changes;

impl Changes<'_> {
    /// Refuses a plan that changes files for which the call lacks the right, and records the refusal. Also refuses a
    /// plan that would leave a shared vault with settings that cannot be read.
    ///
    /// # Errors
    /// `Invalid` with the file and the reason.
    pub(crate) fn check_permission(&self, plan: &ChangeSet) -> Result<()> {
        let settings = plan.files.iter().filter(|file| file.places().any(is_settings));
        let needed = match (settings.clone().next(), plan.is_empty()) {
            (Some(_), _) => Role::Admin,
            (None, false) => Role::Writer,
            (None, true) => Role::Reader,
        };
        if self.core.right < needed {
            self.record_refusal(None);
            return Err(self.lacks(needed, settings.clone().flat_map(FileChange::places).next()));
        }
        if authority_of(&self.core.vault).is_shared() {
            settings.into_iter().try_for_each(|file| self.check_settings(file))?;
        }
        Ok(())
    }

    /// Records that a change was refused. A failure is logged.
    pub(crate) fn record_refusal(&self, reason: Option<&str>) {
        if let Err(error) = Calls::of(self.core).record_refusal(reason) {
            tracing::warn!("a refused change is not recorded: {error}");
        }
    }

    fn lacks(&self, needed: Role, settings: Option<&FileLocation>) -> Error {
        let what = settings.map_or_else(|| "a change".to_owned(), |path| format!("a change of {path}"));
        Error::invalid(format!(
            "{what} needs the role {needed}, and this call has the right of the role {}; nothing was changed",
            self.core.right
        ))
        .with_hint("ask somebody who has that role in the vault")
    }

    /// Checks the new content of a file with settings.
    fn check_settings(&self, file: &FileChange) -> Result<()> {
        let Some(FileLocation::Settings(path)) = &file.to else { return Ok(()) };
        let bytes = match &file.content {
            Content::Keep => return Ok(()),
            Content::Whole(bytes) => bytes.clone(),
            Content::Edits(edits) => {
                let root = self.core.vault.root();
                let old = safe_open::read(root, path.as_str(), self.core.vault.max_file_size())
                    .map_err(|error| safe_open::failed("read", &root.join(path.as_str()), error))?;
                apply(&old, edits)?
            }
        };
        let checked = match path.as_str() {
            VAULT_FILE => Config::check_vault_file(&bytes),
            // A conflict copy is read by people alone.
            name if !SETTINGS_FILES.contains(&name) => Ok(()),
            name => check_settings(&bytes).map_err(|why| Error::invalid(format!("{name} {why}"))),
        };
        checked.map_err(|error| error.of("these settings cannot be read, and nothing was changed"))
    }
}

fn is_settings(place: &FileLocation) -> bool {
    matches!(place, FileLocation::Settings(_))
}
