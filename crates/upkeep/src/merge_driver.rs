//! The merge driver of git: merges three files that git names, and opens no vault (docs/spec/git.md 4).
//!
//! If a step of the better merge fails, the result is that of git without the driver.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Serialize;
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel::no_thread;
use sidenote_git::{ConflictMarkers, FileVersions, MergedFile, merge_file};
use sidenote_links::merge::{Markers, Merged, Versions, merge, merge_lines};

/// The time after which a note is merged line by line alone.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A merge that git asks for.
#[derive(Debug, Clone)]
pub struct MergeDriverRequest {
    /// The file with the common ancestor; it is empty if there is none.
    pub base: PathBuf,
    /// The file with the version of the current branch. It is replaced by the result.
    pub ours: PathBuf,
    /// The file with the version of the other branch.
    pub theirs: PathBuf,
    /// The path of the file in the repository.
    pub path: String,
    /// The markers around conflicts.
    pub markers: Markers,
    /// The time after which a note is merged line by line alone.
    pub time_limit: Duration,
}

/// The result of a merge that git asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeDriverReply {
    /// The path of the file in the repository.
    pub path: String,
    /// The number of conflicts in the result.
    pub conflicts: usize,
    /// Whether the file is binary. Its content is then that of the current branch.
    pub binary: bool,
}

/// Merges three versions of a file, and replaces the one of the current branch by the result.
///
/// # Errors
/// `Io` if a file cannot be read or written, or if git fails. The version of the current branch is unchanged then.
pub fn drive_merge(request: &MergeDriverRequest) -> Result<MergeDriverReply> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| Error::io("read", path, error));
    let (base, ours, theirs) = (read(&request.base)?, read(&request.ours)?, read(&request.theirs)?);
    let versions = FileVersions { base: &base, ours: &ours, theirs: &theirs };
    let merged = match merge_as_note(request, versions) {
        Some(merged) => MergedFile::Text(merged.text.into_bytes(), merged.conflicts),
        None => merge_plainly(versions, &request.markers)?,
    };
    let reply = |conflicts, binary| MergeDriverReply { path: request.path.clone(), conflicts, binary };
    match merged {
        MergedFile::Text(bytes, conflicts) => {
            if bytes != ours {
                AtomicFile::new(&request.ours)
                    .mode(0o600)
                    .write_bytes(&bytes)
                    .map_err(|error| Error::io("write", &request.ours, error))?;
            }
            Ok(reply(conflicts, false))
        }
        MergedFile::Binary => Ok(reply(1, true)),
    }
}

/// Merges the versions of a note. Returns `None` if they are none, if something fails, or if the time is over.
fn merge_as_note(request: &MergeDriverRequest, versions: FileVersions<'_>) -> Option<Merged> {
    let is_note = Path::new(&request.path).extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
    if !is_note || request.time_limit.is_zero() {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).ok().filter(|text| !text.contains('\0'));
    let (base, ours, theirs) = (text(versions.base)?, text(versions.ours)?, text(versions.theirs)?);
    let markers = request.markers.clone();
    let (sender, result) = channel();
    // A thread that takes too long ends with the process, which has nothing else to do.
    let started = std::thread::Builder::new().spawn(move || {
        let texts = Versions { base: &base, ours: &ours, theirs: &theirs };
        drop(sender.send(merge(texts, &|texts| merge_with_git(Path::new("."), texts, &markers))));
    });
    if let Err(error) = started {
        tracing::warn!("{}: {}; it is merged line by line", request.path, no_thread(error));
        return None;
    }
    match result.recv_timeout(request.time_limit) {
        Ok(Ok(merged)) => Some(merged),
        Ok(Err(error)) => {
            tracing::warn!("{}: {error}; it is merged line by line", request.path);
            None
        }
        Err(error) => {
            tracing::warn!("{}: the merge does not end ({error}); it is merged line by line", request.path);
            None
        }
    }
}

/// Merges as git does without the driver.
fn merge_plainly(versions: FileVersions<'_>, markers: &Markers) -> Result<MergedFile> {
    let merged = merge_file(Path::new("."), versions, markers_of(markers));
    let is_missing = matches!(&merged, Err(error) if error.kind() == ErrorKind::NotFound);
    let text = |bytes| std::str::from_utf8(bytes).ok();
    if is_missing
        && let (Some(base), Some(ours), Some(theirs)) =
            (text(versions.base), text(versions.ours), text(versions.theirs))
    {
        let merged = merge_lines(Versions { base, ours, theirs }, markers);
        return Ok(MergedFile::Text(merged.text.into_bytes(), merged.conflicts));
    }
    merged
}

/// Merges texts line by line with git in a folder, or without it where it is not installed.
///
/// # Errors
/// `Io` if git fails.
pub(crate) fn merge_with_git(folder: &Path, texts: Versions<'_>, markers: &Markers) -> Result<Merged> {
    let versions = FileVersions {
        base: texts.base.as_bytes(),
        ours: texts.ours.as_bytes(),
        theirs: texts.theirs.as_bytes(),
    };
    match merge_file(folder, versions, markers_of(markers)) {
        Ok(MergedFile::Text(bytes, conflicts)) => {
            let text = String::from_utf8(bytes)
                .map_err(|error| Error::internal("git merged texts to bytes").with_source(error))?;
            Ok(Merged { text, conflicts })
        }
        Ok(MergedFile::Binary) => Err(Error::invalid("git takes a version for a binary file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(merge_lines(texts, markers)),
        Err(error) => Err(error),
    }
}

fn markers_of(markers: &Markers) -> ConflictMarkers<'_> {
    let Markers { size, ours, base, theirs } = markers;
    ConflictMarkers { size: *size, ours, base, theirs }
}
