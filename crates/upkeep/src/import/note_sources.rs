//! Imports that can be repeated: each reads the export of one program into a plan, which is applied as one operation.

use std::path::Path;

use sidenote_base::error::Result;
use sidenote_change::Changes;
use sidenote_change::move_files::{CapturedLinks, add_new};
use sidenote_markdown::edit::{ChangeSet, FileLocation};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::sync::IndexSync;

use super::imported_notes::{NoteImport, NoteSource, NotesImportReply, NotesImportRequest};
use super::{chatgpt, claude, claude_code, mem0, okf};
use crate::Upkeep;

impl Upkeep<'_> {
    /// Imports an export as notes, in one operation. Notes that a person edited are left.
    ///
    /// # Errors
    /// `Io` or `Invalid`, naming the place, if the export cannot be read; the errors of a change. Nothing is written then.
    #[tracing::instrument(skip_all)]
    pub fn import_notes(
        &self,
        source: NoteSource,
        path: &Path,
        request: &NotesImportRequest,
        told: &dyn Fn(u64, u64),
    ) -> Result<NotesImportReply> {
        IndexSync::of(self.core).refresh()?;
        let view = View::new(self.core)?;
        let mut import = NoteImport::begin(self, &view, source, request, told)?;
        match source {
            NoteSource::ChatGpt => chatgpt::read(path, &mut import),
            NoteSource::Claude => claude::read(path, &mut import),
            NoteSource::ClaudeCode => claude_code::read(path, &mut import),
            NoteSource::Mem0 => mem0::read(path, &mut import),
            NoteSource::Okf => okf::read(path, &mut import),
        }?;
        let (plan, mut reply) = import.finish();
        if request.dry_run {
            self.core.vault.check(&plan)?;
        } else if !plan.is_empty() {
            let change = Changes::of(self.core).apply_planned(|_| self.with_links(plan), false)?;
            reply.notices.extend(change.notices);
        }
        Ok(reply)
    }

    /// Adds to a plan what its new notes do to the links of others.
    fn with_links(&self, mut plan: ChangeSet) -> Result<ChangeSet> {
        let new: Vec<NotePath> = plan
            .files
            .iter()
            .filter(|file| file.from.is_none())
            .filter_map(|file| file.to.as_ref().and_then(FileLocation::in_vault).cloned())
            .collect();
        add_new(&View::new(self.core)?, &new, CapturedLinks::Refuse, &mut plan)?;
        Ok(plan)
    }
}
