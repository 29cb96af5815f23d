//! Finds free names in the trash of the vault, and plans the restoration of files from it.

use std::collections::BTreeSet;
use std::path::Path;

use sidenote_base::error::{Error, Result};
use sidenote_base::wording::Wording;
use sidenote_base::{platform, safe_open};
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation};
use sidenote_markdown::path::{NotePath, key};
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;

use crate::Planner;
use crate::move_files::captured_again;

impl Planner<'_> {
    /// Finds a free name in the trash that is not among `taken`, the names of the same operation (docs/spec/obsidian.md
    /// 1.7).
    pub fn free_in_trash(&self, path: &NotePath, taken: &BTreeSet<NotePath>) -> Result<NotePath> {
        let bin = self.core.vault.root().join(".trash");
        let (stem, extension) = match path.extension() {
            "" => (path.as_str(), String::new()),
            extension => {
                let stem = path.as_str().len() - extension.len() - 1;
                (path.as_str().get(..stem).unwrap_or(path.as_str()), format!(".{extension}"))
            }
        };
        let names = std::iter::once(path.as_str().to_owned())
            .chain((2..10_000).map(|number| format!("{stem} {number}{extension}")));
        let names = names.filter(|name| std::fs::symlink_metadata(bin.join(name)).is_err());
        let mut free =
            names.filter_map(|name| NotePath::from_disk(&name)).filter(|name| !taken.contains(name));
        free.next().ok_or_else(|| Error::invalid(format!("the trash has no free name for {path}")))
    }

    /// Plans the restoration of a file from the trash of the vault.
    ///
    /// No link is changed: those that the file captures are the ones that led to it before it was removed. A remark says so.
    ///
    /// # Errors
    /// `NotFound` if the trash has no such file; `Exists` if another file has its path now.
    pub(super) fn plan_restore(&self, view: &View<'_>, name: &str) -> Result<ChangeSet> {
        let mut plan = ChangeSet::new("restore");
        let wanted = name.trim_start_matches(".trash/");
        let is_there = |path: &NotePath| self.core.vault.open_trashed(path).is_ok();
        let given = [wanted.to_owned(), format!("{wanted}.md")];
        // The former path of a file identifies it first, then its path in the trash.
        let last = if wanted == name { self.thrown_away(&given, &is_there)? } else { None };
        let path = last.or_else(|| given.iter().filter_map(|path| NotePath::parse(path).ok()).find(is_there));
        let path = path.or_else(|| self.answering_in_trash(name)).ok_or_else(|| {
            Error::not_found(format!("the trash has no file {name:?}")).with_hint(
                Wording::new(
                    "give its path below .trash/, as `sidenote history` shows it, or its id",
                    "give its path below .trash/, or its id",
                )
                .with_tool("read_session", "read_session with the action audit shows it"),
            )
        })?;
        let from = FileLocation::Trash(path.clone());
        // The journal knows the former path, whatever the name in the trash.
        let to = self.former_path(&path)?.unwrap_or(path);
        self.refuse_taken(&to, None)?;
        plan.remarks.extend(captured_again(view, &to)?);
        let to = FileLocation::Vault(to);
        plan.files.push(FileChange { from: Some(from), to: Some(to), before: None, content: Content::Keep });
        Ok(plan)
    }

    /// Returns the path that a file had before it was moved to the trash, if the journal knows it.
    pub(super) fn former_path(&self, in_trash: &NotePath) -> Result<Option<NotePath>> {
        let place = FileLocation::Trash(in_trash.clone());
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            let deleted = event.files.iter().find(|file| file.to.as_ref() == Some(&place));
            if let Some(path) = deleted.and_then(|file| file.path.in_vault()) {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    /// Finds the file in the trash to which one of these paths was moved last.
    fn thrown_away(
        &self,
        paths: &[String],
        is_there: &dyn Fn(&NotePath) -> bool,
    ) -> Result<Option<NotePath>> {
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            let gone = event.files.iter().filter(|file| {
                paths.iter().any(|path| file.path.in_vault().is_some_and(|own| own.as_str() == path))
            });
            let places = gone.filter_map(|file| match &file.to {
                Some(FileLocation::Trash(place)) => Some(place.clone()),
                _ => None,
            });
            if let Some(place) = places.into_iter().find(|place| is_there(place)) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Finds the note in the trash with this id. Without one, finds the only note with this title.
    pub(super) fn answering_in_trash(&self, name: &str) -> Option<NotePath> {
        let bin = self.core.vault.root().join(".trash");
        // A symbolic link in the place of the trash is not followed.
        if safe_open::folder(self.core.vault.root(), Path::new(".trash")).is_err() {
            return None;
        }
        let files = walkdir::WalkDir::new(&bin).sort_by_file_name().into_iter().filter_map(|entry| {
            let entry = entry.ok().filter(|entry| entry.file_type().is_file())?;
            let inner = platform::slash_path(entry.path().strip_prefix(&bin).ok()?)?;
            NotePath::from_disk(&inner).filter(NotePath::is_note)
        });
        let wanted = key(name);
        let mut titled = Vec::new();
        for path in files {
            // A file that cannot be read does not match.
            let max = self.core.vault.max_file_size();
            let opened = self.core.vault.open_trashed(&path);
            let Ok(bytes) = opened.and_then(|file| safe_open::read_open(file, max)) else { continue };
            let source = Source::unplaced(path.clone(), &bytes);
            if source.own_id().is_some_and(|id| key(&id) == wanted) {
                return Some(path);
            }
            titled.extend(source.answers(&wanted).then_some(path));
        }
        if titled.len() == 1 { titled.pop() } else { None }
    }
}
