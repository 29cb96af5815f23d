//! `sidenote memory import`: creates notes from exported memories.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sidenote_base::error::{Error, Result};

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};

/// Import memories as notes.
///
/// The file is an export of sidenote, a JSON array, or one JSON object a line. An object has the field content, and optionally title, tags, importance, type and created_at. Memories that exist
/// already are skipped.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// The file; - reads standard input.
    file: PathBuf,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(in crate::cli) fn run(context: &CommandContext, args: &ImportArgs) -> Result<()> {
    let text = read_file(&args.file)?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("import {bar:30} {pos}/{len}");
    bar.set_style(style.map_err(|error| {
        Error::internal("the template of the progress bar is invalid").with_source(error)
    })?);
    let report_progress = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let reply = context.fresh_store()?.upkeep().import(&text, args.dry_run.is_set(), &report_progress)?;
    bar.finish_and_clear();
    for notice in &reply.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    context.out.reply(&reply, |reply| {
        let verb = if args.dry_run.is_set() { "would be imported" } else { "imported" };
        let imported = output::count(reply.imported.len(), "note");
        format!("{imported} {verb}, {} skipped\n", reply.skipped)
    })
}

/// Reads a file as text, or standard input for `-`.
///
/// # Errors
/// `Io` if it cannot be read, `Invalid` if it is not UTF-8.
fn read_file(file: &Path) -> Result<String> {
    let is_stdin = file.as_os_str() == "-";
    let name = if is_stdin { Path::new("standard input") } else { file };
    let bytes = if is_stdin {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|error| Error::io("read", name, error))?;
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} is not UTF-8", name.display())))
}
