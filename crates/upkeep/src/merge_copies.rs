//! Merges conflict copies of synchronisation programs into their notes (docs/spec/git.md 4).
//!
//! The common ancestor is looked for in git, among the before-images and in the backups. Without one, nothing is merged.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::Filter;
use sidenote_change::move_files::add_edits;
use sidenote_change::operation::ChangeReply;
use sidenote_change::{Changes, Planner};
use sidenote_git::{CommittedFile, Repository};
use sidenote_journal::event_id::id_millis;
use sidenote_links::merge::{Lineage, Markers, Versions, first_conflict, has_every_line, merge};
use sidenote_markdown::edit::{ChangeSet, Content, FileChange, FileLocation, Remark, single_edit};
use sidenote_markdown::line::{Lines, with_line_ends_of};
use sidenote_markdown::path::NotePath;
use sidenote_markdown::unified_diff::unified_diff;
use sidenote_open_vault::Core;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::source::Source;
use sidenote_vault::undo_log::UndoLog;
use sidenote_vault::{backup_folder, merge_base};

use crate::Upkeep;
use crate::compared_text::ComparedText;
use crate::conflicts::{ConflictCopies, ConflictCopy};
use crate::merge_driver::merge_with_git;

/// The most commits of a note in which the common ancestor is looked for.
const MAX_COMMITS: usize = 100;

/// Conflict copies to merge.
#[derive(Debug, Clone, Default)]
pub struct MergeCopiesRequest {
    /// The note whose copies are merged, or one copy, by any of its names.
    pub note: String,
}

/// What became of a conflict copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergedCopy {
    /// The path of the copy.
    pub copy: NotePath,
    /// The origin of the common ancestor, such as a commit; `None` if there is none, and nothing was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The number of conflicts that the copy brings into the note.
    pub conflicts: usize,
    /// Whether the copy goes to the trash, because the note has every line of it that the common ancestor lacks.
    pub trashed: bool,
    /// The difference between the note and the copy, where nothing was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// The result of merging conflict copies.
#[derive(Debug, Clone, Serialize)]
pub struct MergeCopiesReply {
    /// The note.
    pub note: NotePath,
    /// Its copies, by path.
    pub copies: Vec<MergedCopy>,
    /// The change.
    #[serde(flatten)]
    pub change: ChangeReply,
}

/// An earlier version of a note.
#[derive(Debug, Clone)]
struct EarlierVersion {
    text: String,
    origin: String,
    /// A time at which the note was so.
    at: Timestamp,
}

impl Upkeep<'_> {
    /// Merges the conflict copies of a note into it, or one copy, as one operation. A copy goes to the trash if the note
    /// then has every line of it that the common ancestor lacks. Without a common ancestor, a copy is compared only.
    ///
    /// # Errors
    /// `NotFound` if no note has the name or it has no copies; `Exists` if several notes have it; `Invalid` if a file is
    /// not UTF-8 or a symbolic link; and the errors of [`Changes::change`].
    pub fn merge_copies(&self, request: &MergeCopiesRequest, dry_run: bool) -> Result<MergeCopiesReply> {
        let mut done = None;
        let change = Changes::of(self.core).apply_planned(
            |_| {
                let view = View::new(self.core)?;
                let (note, copies, plan) = CopyMerge { core: self.core }.plan(&view, request)?;
                done = Some((note, copies));
                Ok(plan)
            },
            dry_run,
        )?;
        let (note, copies) = done.ok_or_else(|| Error::internal("the merge of copies has no plan"))?;
        Ok(MergeCopiesReply { note, copies, change })
    }
}

/// The planning of a merge of conflict copies.
struct CopyMerge<'a> {
    core: &'a Core,
}

impl CopyMerge<'_> {
    fn plan(
        &self,
        view: &View<'_>,
        request: &MergeCopiesRequest,
    ) -> Result<(NotePath, Vec<MergedCopy>, ChangeSet)> {
        let (note, copies) = self.copies_of(view, &view.find(&request.note)?)?;
        let source = view.source(&note)?;
        let mut plan = ChangeSet::new("merge-copy");
        let (mut text, mut merged, mut trash) = (source.text.clone(), Vec::new(), BTreeSet::new());
        let earlier = self.earlier_versions(&note, &mut plan)?;
        for copy in copies {
            let copy = view.source(&copy.copy)?;
            for source in [&source, &copy] {
                if let Some(refusal) = source.refusal() {
                    return Err(Error::invalid(refusal.to_string()));
                }
            }
            let (result, outcome, base) = match self.recorded_base(&copy.path)? {
                Some(base) => {
                    let (result, outcome) = self.merge_copy(&text, &copy, Some(&base))?;
                    (result, outcome, Some(base))
                }
                None => {
                    let possible = possible_versions(&earlier, self.written(&copy.path));
                    let (result, outcome, base) = self.merge_with_ancestor(&text, &copy, possible)?;
                    (result, outcome, base.cloned())
                }
            };
            text = result;
            merged.push((copy, base, outcome));
        }
        let edits = single_edit(&source.text, &text).into_iter().collect();
        add_edits(&mut plan, &source, None, edits, Vec::new());
        let mut outcomes = Vec::new();
        for (copy, base, mut outcome) in merged {
            let base = base.as_ref().map_or("", |base| base.text.as_str());
            let theirs = with_line_ends_of(&copy.text, &text);
            outcome.trashed = outcome.base.is_some() && has_every_line(&theirs, base, &text);
            if outcome.trashed {
                let place = Planner::of(self.core).free_in_trash(&copy.path, &trash)?;
                trash.insert(place.clone());
                plan.files.push(FileChange {
                    from: Some(FileLocation::Vault(copy.path.clone())),
                    to: Some(FileLocation::Trash(place)),
                    before: Some(copy.hash),
                    content: Content::Keep,
                });
            }
            plan.remarks.extend(remark_on(&copy.path, (&note, &text), &outcome));
            outcomes.push(outcome);
        }
        Ok((note, outcomes, plan))
    }

    /// Finds the copies of a note, or the note of a copy.
    fn copies_of(&self, view: &View<'_>, named: &NotePath) -> Result<(NotePath, Vec<ConflictCopy>)> {
        let rows = self.core.index.catalog().select(&Filter::default())?;
        let paths = rows.iter().map(|row| &row.path);
        let known = ConflictCopies::of(paths, |path| ComparedText::read(&self.core.vault, path));
        if let Some(copy) = known.copy_at(named) {
            if !copy.exists || !view.is_there(&copy.note)? {
                return Err(Error::not_found(format!(
                    "{} is not there, of which {named} is a copy",
                    copy.note
                ))
                .with_hint("move the copy to that name, or delete it"));
            }
            return Ok((copy.note.clone(), vec![copy]));
        }
        let copies = known.find().into_iter().filter(|copy| copy.note == *named);
        let there = copies
            .filter_map(|copy| view.is_there(&copy.copy).map(|there| there.then_some(copy)).transpose());
        let copies = there.collect::<Result<Vec<_>>>()?;
        if copies.is_empty() {
            return Err(Error::not_found(format!("{named} has no conflict copies")).with_hints(
                "`sidenote conflicts` lists the copies that there are",
                "no copy has to be merged",
            ));
        }
        Ok((named.clone(), copies))
    }

    /// Returns when a file was last written, where the system tells.
    fn written(&self, path: &NotePath) -> Option<Timestamp> {
        let modified =
            self.core.vault.disk_path(path).symlink_metadata().and_then(|file| file.modified()).ok()?;
        let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
    }

    /// Merges one copy into a text with the version that it comes from. If an older version may be the right one as
    /// well, and the merge would leave out lines of the note, the older version is used, so that the lines stay or
    /// become a conflict.
    fn merge_with_ancestor<'v>(
        &self,
        text: &str,
        copy: &Source,
        versions: &'v [EarlierVersion],
    ) -> Result<(String, MergedCopy, Option<&'v EarlierVersion>)> {
        let theirs = with_line_ends_of(&copy.text, text);
        let texts: Vec<Cow<'_, str>> =
            versions.iter().map(|version| with_line_ends_of(&version.text, text)).collect();
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        let lineage = Lineage { versions: &texts, note: text, copy: &theirs };
        let mut at = lineage.nearest();
        loop {
            let base = at.and_then(|at| versions.get(at));
            let (result, outcome) = self.merge_copy(text, copy, base)?;
            match at.and_then(|at| lineage.older_than_lost_lines(at, &result)) {
                Some(older) => at = Some(older),
                None => return Ok((result, outcome, base)),
            }
        }
    }

    /// Merges one copy into a text. Returns the new text and the result for the copy.
    fn merge_copy(
        &self,
        text: &str,
        copy: &Source,
        base: Option<&EarlierVersion>,
    ) -> Result<(String, MergedCopy)> {
        let mut outcome = MergedCopy {
            copy: copy.path.clone(),
            base: None,
            conflicts: 0,
            trashed: false,
            difference: None,
        };
        let theirs = with_line_ends_of(&copy.text, text);
        if theirs == text {
            outcome.base = Some("the note itself, which is the same".to_owned());
            return Ok((text.to_owned(), outcome));
        }
        let Some(base) = base else {
            outcome.difference = Some(unified_diff(("the note", text), (copy.path.as_str(), &copy.text)));
            return Ok((text.to_owned(), outcome));
        };
        let name = copy.path.name().to_owned();
        let markers =
            Markers { ours: "the note".to_owned(), base: base.origin.clone(), theirs: name, size: 7 };
        let ancestor = with_line_ends_of(&base.text, text);
        let texts = Versions { base: &ancestor, ours: text, theirs: &theirs };
        let result = merge(texts, &|texts| merge_with_git(self.core.vault.root(), texts, &markers))?;
        outcome.base = Some(base.origin.clone());
        outcome.conflicts = result.conflicts;
        Ok((result.text, outcome))
    }

    /// Lists earlier versions of a note from git, the before-images and the backups, the oldest first. A source that cannot
    /// be read is a remark.
    fn earlier_versions(&self, note: &NotePath, plan: &mut ChangeSet) -> Result<Vec<EarlierVersion>> {
        let sources = [
            ("git", self.versions_in_git(note)),
            ("the before-images", self.versions_in_undo_log(note)),
            ("the backups", self.versions_in_backups(note)),
        ];
        let mut versions = Vec::new();
        for (name, found) in sources {
            match found {
                Ok(found) => versions.extend(found),
                Err(error) => plan.remarks.push(Remark {
                    code: "no-base".to_owned(),
                    path: note.clone(),
                    line: 1,
                    column: 1,
                    message: format!("{name} was not searched for a common ancestor: {error}"),
                }),
            }
        }
        versions.sort_by_key(|version| version.at);
        versions.dedup_by(|later, version| later.text == version.text);
        Ok(versions)
    }

    /// Returns the common version that `sync` kept when it made a copy. It is certain, so no other one is looked for.
    fn recorded_base(&self, copy: &NotePath) -> Result<Option<EarlierVersion>> {
        let bytes = merge_base::find(&self.core.vault, copy)?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let at = self.written(copy).unwrap_or_default();
        Ok(text.map(|text| EarlierVersion { text, origin: "the last synchronisation".to_owned(), at }))
    }

    fn versions_in_git(&self, note: &NotePath) -> Result<Vec<EarlierVersion>> {
        let Some(repository) = Repository::discover(self.core.vault.root())? else { return Ok(Vec::new()) };
        let versions = repository.versions(note.as_str(), MAX_COMMITS)?;
        let version = |found: CommittedFile| {
            let origin = format!("commit {}", found.commit.short());
            let at = Timestamp::from_millis(found.committed_at.saturating_mul(1000));
            Some(EarlierVersion { text: String::from_utf8(found.bytes).ok()?, origin, at })
        };
        Ok(versions.into_iter().rev().filter_map(version).collect())
    }

    fn versions_in_undo_log(&self, note: &NotePath) -> Result<Vec<EarlierVersion>> {
        let kept = UndoLog::open(&self.core.vault.records())?;
        let place = FileLocation::Vault(note.clone());
        let mut versions = Vec::new();
        for id in kept.ids()? {
            let has_note = kept.applied(&id)?.files.iter().any(|file| file.from.as_ref() == Some(&place));
            if !has_note {
                continue;
            }
            let files = kept.record(&id)?.files.into_iter();
            let images =
                files.filter(|file| file.from.as_ref() == Some(&place)).filter_map(|file| file.image);
            let at = Timestamp::from_millis(id_millis(&id).unwrap_or_default());
            versions.extend(images.filter_map(|bytes| {
                let origin = format!("operation {id}");
                Some(EarlierVersion { text: String::from_utf8(bytes).ok()?, origin, at })
            }));
        }
        Ok(versions)
    }

    fn versions_in_backups(&self, note: &NotePath) -> Result<Vec<EarlierVersion>> {
        let folder = Upkeep::of(self.core).backup_folder(None);
        let mut versions = Vec::new();
        for (path, manifest) in backup_folder::list(&folder, self.core.vault.root())?.into_iter().rev() {
            let Some((_, file)) = manifest.of_vault().find(|(path, _)| *path == note.as_str()) else {
                continue;
            };
            let bytes = backup_folder::read(&path, &format!("notes/{note}"), file)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let at = Timestamp::parse(&manifest.at).unwrap_or_default();
            let version = String::from_utf8(bytes).ok().map(|text| EarlierVersion { text, origin: name, at });
            versions.extend(version);
        }
        Ok(versions)
    }
}

/// Returns the versions that a copy can come from: those that were not written after it. The time of a version is not
/// known, except that it is later than that of the version before.
fn possible_versions(versions: &[EarlierVersion], written: Option<Timestamp>) -> &[EarlierVersion] {
    let Some(written) = written else { return versions };
    let older = versions.partition_point(|version| version.at <= written);
    versions.get(..=older).unwrap_or(versions)
}

/// Returns a remark on a copy that stays, or that brought conflicts.
fn remark_on(copy: &NotePath, (note, text): (&NotePath, &str), outcome: &MergedCopy) -> Option<Remark> {
    let mut line = 1;
    let (code, path, message) = if outcome.base.is_none() {
        let message = format!("there is no common ancestor with {note}; compare the two and edit the note");
        ("no-base", copy, message)
    } else if outcome.conflicts > 0 {
        line = first_conflict(text).map_or(1, |marks| Lines::new(text).of(marks.start));
        ("conflict-markers", note, format!("{copy} conflicts with the note; choose between the markers"))
    } else if !outcome.trashed {
        ("copy-stays", copy, format!("{note} lacks lines of it, so it was left as it is"))
    } else {
        return None;
    };
    Some(Remark { code: code.to_owned(), path: path.clone(), line, column: 1, message })
}
