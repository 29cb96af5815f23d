//! When notes were created that do not state it. The times of files that were copied to the vault together say nothing
//! about that, so these files of a batch are found here.

use std::collections::HashMap;
use std::time::Duration;

use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_catalog::{CatalogWriter, CreationSource, FileId, FileKind, FileRow, creation_of};
use sidenote_git::Repository;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;

use crate::diff::ChangedFile;
use crate::writer::read::birth_of;

/// The fewest notes that were copied together. A person does not write as many in a row, and an agent seldom does.
const MIN_COPIED: usize = 20;
/// The most time between the files of one copying, in milliseconds.
const MAX_GAP_MILLIS: i64 = 10_000;
/// The most time that git gets for the first commits. Git reads some 100,000 commits in it; without an answer the notes count as
/// copied.
const GIT_TIME: Duration = Duration::from_secs(5);

/// A new note that does not say when it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) file: FileId,
    pub(super) path: NotePath,
    /// The earliest time of its file.
    pub(super) at: Timestamp,
}

/// Keeps what is known of the creation of a note whose file changed, unless the note says more now, and lists a new note that
/// does not say it.
pub(super) fn note_creation(
    catalog: &CatalogWriter,
    file: &ChangedFile,
    row: &mut FileRow,
    arrivals: &mut Vec<Arrival>,
) -> Result<()> {
    let is_stated = |source| matches!(source, CreationSource::Property | CreationSource::Name);
    if row.kind == FileKind::Attachment || is_stated(row.time_sources.created) {
        return Ok(());
    }
    if file.is_new {
        arrivals.push(Arrival { file: row.id, path: row.path.clone(), at: row.created });
        return Ok(());
    }
    if let Some((created, source)) =
        creation_of(catalog.reader(), row.id)?.filter(|(_, source)| !is_stated(*source))
    {
        row.existed_at(Some(created));
        row.time_sources.created = source;
    }
    Ok(())
}

/// Asks git for the first commits of the new files of a batch that were copied to the vault together, as a clone of a repository
/// does it: the times of their files are those of the copying. This may take a moment, so nothing may be locked meanwhile.
pub(super) fn first_commits(vault: &Vault, files: &[ChangedFile]) -> HashMap<String, Timestamp> {
    let is_text = |path: &NotePath| FileKind::of(path) != FileKind::Attachment;
    let new = files.iter().filter(|file| file.is_new && is_text(&file.stat.path));
    let new: Vec<&ChangedFile> = new.collect();
    if new.len() < MIN_COPIED {
        return HashMap::new();
    }
    let untold = |error: Error| {
        tracing::debug!("git does not tell when the copied notes were created: {error}");
        HashMap::new()
    };
    // Most vaults are in no repository, and their files need not be looked at.
    let git = match Repository::discover(vault.root()) {
        Ok(Some(git)) => git,
        Ok(None) => return HashMap::new(),
        Err(error) => return untold(error),
    };
    let arrivals = new.into_iter().map(|file| {
        let path = file.stat.path.clone();
        let written = Timestamp::from_millis(file.stat.mtime_ns / 1_000_000);
        let at = birth_of(vault, &path).map_or(written, |born| born.min(written));
        Arrival { file: file.id, path, at }
    });
    let copied = copied_together(arrivals.collect());
    if copied.is_empty() {
        return HashMap::new();
    }
    let paths: Vec<&str> = copied.iter().map(|arrival| arrival.path.as_str()).collect();
    git.first_commits(&paths, GIT_TIME).unwrap_or_else(untold)
}

/// Sets when the notes were created that were copied to the vault together. `first` has the times of their first commits.
pub(super) fn date_copied(
    catalog: &CatalogWriter,
    first: &HashMap<String, Timestamp>,
    arrivals: Vec<Arrival>,
) -> Result<()> {
    for Arrival { file, path, at } in copied_together(arrivals) {
        match first.get(path.as_str()) {
            Some(&commit) => catalog.set_creation(file, commit.min(at), CreationSource::Git)?,
            None => catalog.set_creation(file, at, CreationSource::Copy)?,
        }
    }
    Ok(())
}

/// Returns the notes whose files appeared in a row of many, each shortly after the one before.
fn copied_together(mut arrivals: Vec<Arrival>) -> Vec<Arrival> {
    arrivals.sort_by_key(|arrival| arrival.at);
    let is_next = |one: &Arrival, other: &Arrival| other.at.millis() - one.at.millis() <= MAX_GAP_MILLIS;
    let runs = arrivals.chunk_by(is_next).filter(|run| run.len() >= MIN_COPIED);
    runs.flat_map(<[Arrival]>::to_vec).collect()
}
