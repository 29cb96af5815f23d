//! Git's merge of three files by lines: `git merge-file`.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use sidenote_base::error::{Error, ErrorKind, Result};

use crate::command::{GitOutput, USAGE, output};
use crate::temporary::TemporaryFolder;

/// The most conflicts that the exit code tells.
const MAX_CONFLICTS: i32 = 127;

/// The three versions of a file, as bytes.
#[derive(Debug, Clone, Copy)]
pub struct FileVersions<'b> {
    /// The common ancestor; empty if there is none.
    pub base: &'b [u8],
    /// The version of the side that merges.
    pub ours: &'b [u8],
    /// The version of the side that is merged.
    pub theirs: &'b [u8],
}

/// The markers around the conflicts of a merge.
#[derive(Debug, Clone, Copy)]
pub struct ConflictMarkers<'l> {
    /// The number of characters of a marker.
    pub size: usize,
    /// The label of the side that merges.
    pub ours: &'l str,
    /// The label of the common ancestor.
    pub base: &'l str,
    /// The label of the side that is merged.
    pub theirs: &'l str,
}

/// A file that git merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergedFile {
    /// The bytes, with both versions between markers where they conflict, and the number of conflicts: 127 if there are
    /// that many or more.
    Text(Vec<u8>, usize),
    /// A version is binary, and git does not merge it.
    Binary,
}

/// Merges three versions of a file line by line, as `git merge` does. The setting `merge.conflictStyle` of the repository
/// that `folder` is in counts. The folder need not be in one.
///
/// # Errors
/// `NotFound` if git is not installed; `Io` if it fails, or if the temporary files cannot be written.
pub fn merge_file(
    folder: &Path,
    versions: FileVersions<'_>,
    markers: ConflictMarkers<'_>,
) -> Result<MergedFile> {
    let temporary = TemporaryFolder::new()?;
    let ours = temporary.write("ours", versions.ours)?;
    let base = temporary.write("base", versions.base)?;
    let theirs = temporary.write("theirs", versions.theirs)?;
    let run = |algorithm: Option<&str>| -> Result<GitOutput> {
        let mut arguments: Vec<OsString> = ["merge-file", "-p"].map(Into::into).into();
        arguments.extend(algorithm.map(Into::into));
        arguments.push(format!("--marker-size={}", markers.size).into());
        for label in [markers.ours, markers.base, markers.theirs] {
            arguments.extend(["-L".into(), label.into()]);
        }
        arguments.extend([&ours, &base, &theirs].map(Into::into));
        let mut command = Command::new("git");
        command.current_dir(folder).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").args(arguments);
        output(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), None)
    };
    // `git merge` compares by histogram. `git merge-file` can do so from 2.44 on, with an option.
    let mut said = run(Some("--diff-algorithm=histogram"))?;
    if said.code == USAGE {
        said = run(None)?;
    }
    match usize::try_from(said.code) {
        Ok(conflicts) if said.code <= MAX_CONFLICTS => Ok(MergedFile::Text(said.stdout, conflicts)),
        _ if said.stderr.contains("binary") => Ok(MergedFile::Binary),
        _ => {
            let message = format!("git merge-file failed in {}: {}", folder.display(), said.stderr.trim());
            Err(Error::new(ErrorKind::Io, message))
        }
    }
}
