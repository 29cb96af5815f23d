//! Opens the vault of a commit: its files, its settings and an index of them, all in the user's cache.

use sidenote_base::error::Result;
use sidenote_vault::revision_files::RevisionFiles;

use crate::Open;
use crate::revision::Revisions;

/// What the settings below have as their origin.
const ORIGIN: &str = "at";

/// Returns the options for opening the vault of a revision, and the files that they name.
///
/// # Errors
/// `NotFound` if the vault is in no git repository, or the repository has no such revision; `Io` if the cache cannot be
/// written; those of running git.
pub(crate) fn open_at(open: &Open, revision: &str) -> Result<(Open, RevisionFiles)> {
    let revisions = Revisions::open(open)?;
    let named = revisions.repository.named_commit(revision, open.clock.now())?;
    let commit = revisions.repository.describe(&named.id)?;
    let config = &revisions.config.vault;
    let files =
        RevisionFiles::open(&revisions.repository, &commit, &config.config_dir, config.max_file_bytes)?;
    // A commit is searched by words: vectors of old texts would take longer to make than they are of use.
    let settings = [("search.mode", "bm25"), ("embed.provider", "none"), ("rerank.model", "")];
    let mut flags = open.flags.clone();
    flags.extend(settings.map(|(key, value)| (key, value.to_owned(), ORIGIN)));
    let at = Open {
        vault: Some(files.root().to_owned()),
        index: Some(files.index()),
        read_only: true,
        existing: false,
        fill: false,
        // The files of other kinds have their lengths alone.
        reader: None,
        at: None,
        flags,
        ..open.clone()
    };
    Ok((at, files))
}
