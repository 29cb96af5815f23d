//! When notes were created that do not say it, and which of the new notes of a batch were copied to the vault together, so
//! that the times of their files tell nothing.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::git::Repository;
use crate::index::catalog::{CatalogWriter, CreationSource, FileId, FileKind, FileRow};
use crate::index::diff::ChangedFile;
use crate::text::path::NotePath;
use crate::vault::Vault;

/// The fewest notes that were copied together. A person does not write as many in a row, and an agent seldom does.
const MIN_COPIED: usize = 20;
/// The most time between the files of one copying, in milliseconds.
const MAX_GAP_MILLIS: i64 = 10_000;

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
    let is_stated =
        |row: &FileRow| matches!(row.time_sources.created, CreationSource::Property | CreationSource::Name);
    if row.kind == FileKind::Attachment || is_stated(row) {
        return Ok(());
    }
    if file.is_new {
        arrivals.push(Arrival { file: row.id, path: row.path.clone(), at: row.created });
        return Ok(());
    }
    let old = catalog.reader().rows(&[row.id])?.pop();
    if let Some(old) = old.filter(|old| !is_stated(old)) {
        row.existed_at(Some(old.created));
        row.time_sources.created = old.time_sources.created;
    }
    Ok(())
}

/// Finds when the notes were created that were copied to the vault together, as a clone of a repository does it. The times of
/// their files are those of the copying, so git is asked for their first commits.
pub(super) fn date_copied(catalog: &CatalogWriter, vault: &Vault, arrivals: Vec<Arrival>) -> Result<()> {
    let copied = copied_together(arrivals);
    if copied.is_empty() {
        return Ok(());
    }
    let repository = Repository::discover(vault.root());
    let first = repository.and_then(|found| found.map_or(Ok(HashMap::new()), |git| git.first_commits()));
    let first = first.unwrap_or_else(|error| {
        tracing::debug!("git does not tell when the copied notes were created: {error}");
        HashMap::new()
    });
    for Arrival { file, path, at } in copied {
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
