//! `sidenote memory import`: creates notes from exported conversations and memories.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sidenote_base::error::{Error, Result};
use sidenote_catalog::other_database::is_database;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};
use crate::store::{
    GraphImportReply, ImportReply, ImportSource, NoteSource, NotesImportReply, NotesImportRequest,
};

/// The name of the reference memory server of the Model Context Protocol as a source.
const SERVER_MEMORY: &str = "server-memory";
/// The sources whose files need no name, because they show what they are.
const UNNAMED: [&str; 6] = ["jsonl", "csv", "longterm", "vector", "tram", "rulebook"];

/// Import conversations and memories of other programs as notes.
///
/// Of an export of ChatGPT or Claude, each conversation, document and remembered fact becomes a note; the export is a ZIP
/// archive, its folder, or a file of it. Of Claude Code, the files of a project's memory become notes. Notes know what they were
/// made of: the same export again changes nothing, a longer one adds what is new, and a note whose text you edited is left.
/// An import is one operation, which undo takes back.
///
/// A file without a source is an export of sidenote, a JSON array, one JSON object a line, a table in CSV, or the SQLite
/// database of another memory server, which is only read. A memory has the field content or text, and optionally title,
/// tags, importance, type, created_at and others. Memories that exist already are skipped.
///
/// With the source server-memory, the file is that of the reference memory server of the Model Context Protocol. An entity
/// becomes a note, and what a note that is there already lacks is added to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote import chatgpt ~/Downloads/export.zip --dry-run
  sidenote import claude ~/Downloads/data-2026.zip --into Conversations
  sidenote import claude-code ~/.claude/projects/-home-me-app --sessions
  sidenote memory import memories.json
  sidenote memory import server-memory memory.jsonl")]
pub(in crate::cli) struct ImportArgs {
    /// The file or folder; - reads a file from standard input. Before it, the program that wrote it: chatgpt, claude,
    /// claude-code, mem0, okf (Open Knowledge Format) or server-memory. The files of other programs need none.
    #[arg(value_name = "SOURCE|FILE", num_args = 1..=2, required = true, value_hint = clap::ValueHint::AnyPath)]
    words: Vec<PathBuf>,
    /// The folder of the new notes. Default: ChatGPT, Claude, Claude Code with the name of the project, or the folder of memories
    /// for mem0, and for okf the name of the bundle. What Claude remembers goes into the folder of memories.
    #[arg(long, value_name = "FOLDER")]
    into: Option<String>,
    /// With claude-code: also make a note of what each session says that is worth keeping.
    #[arg(long)]
    sessions: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(in crate::cli) fn run(context: &CommandContext, args: &ImportArgs) -> Result<()> {
    let [named @ .., file] = args.words.as_slice() else {
        return Err(Error::invalid("there is no file to import").with_hint("give the path of the file"));
    };
    let named = named.first().map(|name| name.to_string_lossy());
    let source = named.as_deref().and_then(NoteSource::parse);
    if args.sessions && source != Some(NoteSource::ClaudeCode) {
        return Err(Error::invalid("--sessions is for claude-code alone").with_hint("leave --sessions out"));
    }
    if let Some(source) = source {
        return import_notes(context, args, source, file);
    }
    if args.into.is_some() {
        return Err(Error::invalid("--into is for chatgpt, claude, claude-code, mem0 and okf alone")
            .with_hint("leave --into out; memories go into memory.folder"));
    }
    match named.as_deref() {
        None => import_memories(context, args, file),
        Some(name) if UNNAMED.contains(&name) => import_memories(context, args, file),
        Some(SERVER_MEMORY) => import_graph(context, args, file),
        Some(name) => {
            let known = NoteSource::ALL.map(NoteSource::name);
            let known: Vec<&str> = known.into_iter().chain([SERVER_MEMORY]).chain(UNNAMED).collect();
            Err(Error::invalid(format!("{name:?} is no source of an import"))
                .with_hint(format!("give the file alone, or one of {} before it", known.join(", "))))
        }
    }
}

/// Imports an export as notes that know where they came from.
fn import_notes(context: &CommandContext, args: &ImportArgs, source: NoteSource, path: &Path) -> Result<()> {
    if is_stdin(path) {
        return Err(Error::invalid(format!("{} needs a file or folder", source.name()))
            .with_hint("give its path instead of -"));
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style("read {bar:30} {bytes}/{total_bytes}")?);
    let report_progress = |done: u64, total: u64| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let request = NotesImportRequest {
        into: args.into.clone(),
        sessions: args.sessions,
        dry_run: args.dry_run.is_set(),
    };
    let reply = context.fresh_store()?.upkeep().import_notes(source, path, &request, &report_progress);
    bar.finish_and_clear();
    let reply = reply?;
    for notice in &reply.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    context.out.reply(&reply, |reply| notes_summary(reply, args))
}

/// Lists the notes that are left and what is left out, and counts the others.
fn notes_summary(reply: &NotesImportReply, args: &ImportArgs) -> String {
    let mut text = String::new();
    for path in &reply.edited {
        text.push_str(&format!("edited by hand, left as it is: {}\n", output::plain(path)));
    }
    for (what, count) in &reply.left_out {
        text.push_str(&format!("left out: {}\n", output::count(*count, &output::plain(what))));
    }
    if reply.left_out.contains_key("session") {
        text.push_str("--sessions imports what the sessions say in short\n");
    }
    let would = if args.dry_run.is_set() { "would be " } else { "" };
    text.push_str(&format!(
        "{} read: {} {would}imported, {} {would}updated, {} unchanged, {} left\n",
        output::count(reply.total, "item"),
        output::count(reply.imported.len(), "note"),
        reply.updated.len(),
        reply.unchanged,
        reply.edited.len(),
    ));
    text
}

fn style(template: &str) -> Result<ProgressStyle> {
    ProgressStyle::with_template(template)
        .map_err(|error| Error::internal("the template of the progress bar is invalid").with_source(error))
}

/// Imports a file that shows what it is.
fn import_memories(context: &CommandContext, args: &ImportArgs, file: &Path) -> Result<()> {
    let bytes = read_file(file)?;
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
    bar.set_style(style("import {bar:30} {pos}/{len}")?);
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

/// Imports the file of the reference memory server.
fn import_graph(context: &CommandContext, args: &ImportArgs, file: &Path) -> Result<()> {
    let text = text_in(read_file(file)?, file)?;
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
