//! `sidenote memory import`: creates notes from exported memories.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::other_database::is_database;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};
use crate::store::{ImportReply, ImportSource};

/// Import memories as notes.
///
/// The file is an export of sidenote, a JSON array, one JSON object a line, a table in CSV, or the SQLite database of
/// another memory server, which is only read. A memory has the field content or text, and optionally title, tags,
/// importance, type, created_at and others. Memories that exist already are skipped.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// The file; - reads standard input.
    file: PathBuf,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(in crate::cli) fn run(context: &CommandContext, args: &ImportArgs) -> Result<()> {
    let bytes = read_file(&args.file)?;
    let text;
    let source = if is_database(&bytes) {
        if is_stdin(&args.file) {
            return Err(Error::invalid("standard input is a SQLite database")
                .with_hint("give the file of the database instead of -"));
        }
        ImportSource::Database(&args.file)
    } else {
        text = String::from_utf8(bytes)
            .map_err(|_| Error::invalid(format!("{} is not UTF-8", name_of(&args.file).display())))?;
        ImportSource::Text(&text)
    };
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("import {bar:30} {pos}/{len}");
    bar.set_style(style.map_err(|error| {
        Error::internal("the template of the progress bar is invalid").with_source(error)
    })?);
    let report_progress = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let reply = context.fresh_store()?.upkeep().import(source, args.dry_run.is_set(), &report_progress)?;
    bar.finish_and_clear();
    for notice in &reply.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    context.out.reply(&reply, |reply| summary(reply, args.dry_run.is_set()))
}

/// Lists what is left out, and counts the memories.
fn summary(reply: &ImportReply, is_dry_run: bool) -> String {
    let mut text = String::new();
    for (key, count) in &reply.left_out {
        let memories = output::count(*count, "memory");
        text.push_str(&format!("left out: {key} of {memories}\n"));
    }
    let total = output::count(reply.total, "memory");
    let verb = if is_dry_run { "would be imported" } else { "imported" };
    let forgotten = match reply.forgotten {
        0 => String::new(),
        forgotten => format!(" ({forgotten} forgotten)"),
    };
    let imported = output::count(reply.imported.len(), "note");
    text.push_str(&format!("{total} read: {imported} {verb}{forgotten}, {} skipped\n", reply.skipped));
    text
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Returns the name of a file in messages.
fn name_of(file: &Path) -> &Path {
    if is_stdin(file) { Path::new("standard input") } else { file }
}

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// `Io` if it cannot be read.
fn read_file(file: &Path) -> Result<Vec<u8>> {
    let bytes = if is_stdin(file) {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    bytes.map_err(|error| Error::io("read", name_of(file), error))
}
