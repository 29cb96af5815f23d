//! `sidenote merge-driver`: merges three versions of a file for git. It opens no vault.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sidenote_base::error::Result;
use sidenote_links::merge::Markers;

use super::{CommandContext, Outcome, output};
use crate::store::{MERGE_TIME_LIMIT, MergeDriverRequest, drive_merge};

/// Merge three versions of a file for git, which calls this command.
///
/// `sidenote git init --driver --attributes` lets git call it. Properties of a note are merged by key, and its body as
/// git merges lines. If one side changed only the targets of links, these links are written into the text of the other
/// side. All other files, and notes that are not UTF-8, are merged as git does.
///
/// The result replaces OURS. The exit code is 0 if there is no conflict, and 1 if there are some. It is 129 after an error,
/// with which git stops the merge; OURS is unchanged then. The `--` before the files keeps a path that begins with a hyphen
/// from being read as an option.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  git config merge.sidenote.driver \"sidenote merge-driver -- %O %A %B %L %P\"
  echo '*.md merge=sidenote' >> .gitattributes")]
pub(super) struct MergeDriverArgs {
    /// The file with the common ancestor (%O).
    base: PathBuf,
    /// The file with the version of the current branch, which is replaced by the result (%A).
    ours: PathBuf,
    /// The file with the version of the other branch (%B).
    theirs: PathBuf,
    /// The size of the conflict markers (%L). Anything but a size means 7, as in git.
    #[arg(value_name = "SIZE", default_value = "7", allow_hyphen_values = true)]
    marker_size: String,
    /// The path of the file in the repository (%P). By it a note is recognised. Default: OURS.
    #[arg(value_name = "PATH")]
    path: Option<OsString>,
    /// The labels of the three versions in conflicts: of the ancestor, of ours and of theirs (%S %X %Y, from git 2.44 on).
    #[arg(value_name = "LABEL", num_args = 0..=3, allow_hyphen_values = true)]
    labels: Vec<OsString>,
}

/// The end of a merge driver that failed. Git then stops the merge, instead of taking the file for a conflict.
pub(super) const DRIVER_FAILED: u8 = 129;
/// The size of conflict markers where none is given.
const MARKER_SIZE: usize = 7;

pub(super) fn run(context: &CommandContext, args: MergeDriverArgs) -> Outcome {
    match merge(context, args) {
        Ok(conflicts) => Outcome::MergeDriver(u8::from(conflicts > 0)),
        Err(error) => {
            context.out.print_error(&error);
            Outcome::MergeDriver(DRIVER_FAILED)
        }
    }
}

/// Reads the size of conflict markers. Git passes the attribute `conflict-marker-size` as it is.
fn marker_size(text: &str) -> usize {
    let size = text.parse::<u16>().map_or(MARKER_SIZE, usize::from);
    if size == 0 { MARKER_SIZE } else { size }
}

fn merge(context: &CommandContext, args: MergeDriverArgs) -> Result<usize> {
    let mut labels = args.labels.iter().map(|label| label.to_string_lossy().into_owned());
    // Git before 2.44 passes the placeholders themselves.
    let mut label = |default: String| match labels.next() {
        Some(label) if !label.starts_with('%') && !label.is_empty() => label,
        _ => default,
    };
    let Markers { base, ours, theirs, .. } = Markers::default();
    let (base, ours, theirs) = (label(base), label(ours), label(theirs));
    let request = MergeDriverRequest {
        path: args
            .path
            .map_or_else(|| args.ours.display().to_string(), |path| path.to_string_lossy().into_owned()),
        base: args.base,
        ours: args.ours,
        theirs: args.theirs,
        markers: Markers { size: marker_size(&args.marker_size), ours, base, theirs },
        time_limit: MERGE_TIME_LIMIT,
    };
    let reply = drive_merge(&request)?;
    if reply.binary {
        let path = output::plain(&reply.path);
        context.out.message(&format!("warning: {path} is binary and was not merged"));
    }
    // Git shows the output of a driver, so nothing is printed without --json.
    if context.out.is_json() {
        context.out.reply(&reply, |_| String::new())?;
    }
    Ok(reply.conflicts)
}
