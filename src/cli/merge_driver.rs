//! `sidenote merge-driver`: merges three versions of a file for git. It opens no vault.

use std::path::PathBuf;

use clap::Args;

use super::{CommandContext, Outcome, output};
use crate::error::Result;
use crate::store::{MERGE_TIME_LIMIT, MergeDriverRequest, drive_merge};
use crate::text::merge::Markers;

/// Merge three versions of a file for git, which calls this command.
///
/// `sidenote git init --driver --attributes` lets git call it. Properties of a note are merged by key, and its body as git
/// merges lines. Where one side changed nothing but where links lead, these links are written into the text of the other
/// side. All other files, and notes that are not UTF-8, are merged as git does.
///
/// The result replaces OURS. The exit code is 0 if there is no conflict, and 1 if there are some. It is 129 after an error,
/// with which git stops the merge; OURS is unchanged then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  git config merge.sidenote.driver \"sidenote merge-driver %O %A %B %L %P\"
  echo '*.md merge=sidenote' >> .gitattributes")]
pub(super) struct MergeDriverArgs {
    /// The file with the common ancestor (%O).
    base: PathBuf,
    /// The file with the version of the current branch, which is replaced by the result (%A).
    ours: PathBuf,
    /// The file with the version of the other branch (%B).
    theirs: PathBuf,
    /// The size of the conflict markers (%L).
    #[arg(value_name = "SIZE", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    marker_size: u16,
    /// The path of the file in the repository (%P). By it a note is recognised. Default: OURS.
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// The labels of the three versions in conflicts: of the ancestor, of ours and of theirs (%S %X %Y, from git 2.44 on).
    #[arg(value_name = "LABEL", num_args = 0..=3, allow_hyphen_values = true)]
    labels: Vec<String>,
}

/// The end of a merge driver that failed. Git then stops the merge, instead of taking the file for a conflict.
const DRIVER_FAILED: u8 = 129;

pub(super) fn run(context: &CommandContext, args: MergeDriverArgs) -> Outcome {
    match merge(context, args) {
        Ok(conflicts) => Outcome::MergeDriver(u8::from(conflicts > 0)),
        Err(error) => {
            context.out.print_error(&error);
            Outcome::MergeDriver(DRIVER_FAILED)
        }
    }
}

fn merge(context: &CommandContext, args: MergeDriverArgs) -> Result<usize> {
    let mut labels = args.labels.into_iter();
    // Git before 2.44 passes the placeholders themselves.
    let mut label = |default: String| match labels.next() {
        Some(label) if !label.starts_with('%') && !label.is_empty() => label,
        _ => default,
    };
    let Markers { base, ours, theirs, .. } = Markers::default();
    let (base, ours, theirs) = (label(base), label(ours), label(theirs));
    let request = MergeDriverRequest {
        path: args.path.unwrap_or_else(|| args.ours.display().to_string()),
        base: args.base,
        ours: args.ours,
        theirs: args.theirs,
        markers: Markers { size: usize::from(args.marker_size), ours, base, theirs },
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
