//! `sidenote memory import`: creates notes from exported memories.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::other_database::is_database;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};
use crate::store::{GraphImportReply, ImportReply, ImportSource};

/// The name of the reference memory server of the Model Context Protocol as a source.
const SERVER_MEMORY: &str = "server-memory";

/// Import memories as notes.
///
/// The file is an export of sidenote, a JSON array, one JSON object a line, a table in CSV, or the SQLite database of
/// another memory server, which is only read. A memory has the field content or text, and optionally title, tags,
/// importance, type, created_at and others. Memories that exist already are skipped.
///
/// With the source server-memory, the file is that of the reference memory server of the Model Context Protocol. An entity
/// becomes a note, and what a note that is there already lacks is added to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote memory import memories.json --dry-run
  sidenote memory import server-memory memory.jsonl")]
pub(in crate::cli) struct ImportArgs {
    /// The file; - reads standard input. Before it, the program that wrote it may be named: server-memory.
    #[arg(value_name = "SOURCE|FILE", num_args = 1..=2, required = true)]
    words: Vec<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(in crate::cli) fn run(context: &CommandContext, args: &ImportArgs) -> Result<()> {
    let [.., file] = args.words.as_slice() else {
        return Err(Error::invalid("there is no file to import").with_hint("give the path of the file"));
    };
    let bytes = read_file(file)?;
    if let [source, _] = args.words.as_slice() {
        return import_from(context, args, (source, file), bytes);
    }
    let text;
    let source = if is_database(&bytes) {
        if is_stdin(file) {
            return Err(Error::invalid("standard input is a SQLite database")
                .with_hint("give the file of the database instead of -"));
        }
        ImportSource::Database(file)
    } else {
        text = text_in(bytes, file)?;
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

/// Imports the file of a named program.
fn import_from(
    context: &CommandContext,
    args: &ImportArgs,
    (source, file): (&Path, &Path),
    bytes: Vec<u8>,
) -> Result<()> {
    if source.as_os_str() != SERVER_MEMORY {
        return Err(Error::invalid(format!("{:?} is no source of an import", source.display()))
            .with_hint(format!("give the file alone, or {SERVER_MEMORY} and the file")));
    }
    let text = text_in(bytes, file)?;
    let reply = context.fresh_store()?.upkeep().import_graph(&text, args.dry_run.is_set())?;
    for notice in &reply.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    context.out.reply(&reply, |reply| graph_summary(reply, args.dry_run.is_set()))
}

fn text_in(bytes: Vec<u8>, file: &Path) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} is not UTF-8", name_of(file).display())))
}

/// Counts what was imported of a graph.
fn graph_summary(reply: &GraphImportReply, is_dry_run: bool) -> String {
    let verb = if is_dry_run { "would be imported" } else { "imported" };
    format!(
        "{} and {} read: {}, {} and {} {verb}, {} skipped\n",
        output::count(reply.entities, "entity"),
        output::count(reply.relations, "relation"),
        output::count(reply.imported.len(), "note"),
        output::count(reply.added_observations, "further observation"),
        output::count(reply.added_relations, "relation"),
        output::count(reply.skipped, "line"),
    )
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
