//! `sidenote memory maintain | cleanup | export | import`, `sidenote handoff`, `sidenote backup` and the way back.

use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::atomic_file::AtomicFile;
use crate::cli::change::{Dry, show_change, text_or_stdin};
use crate::cli::{Session, output};
use crate::error::{Error, Result};
use crate::store::{
    BackupItem, CleanupReply, ExportForm, Handoff, HandoffRequest, MaintainReply, MaintainRequest,
};

/// Write down which notes came into another tier, shorten the journal's old months, and make room where settings ask
/// for it. Done a short while ago, it does nothing. `watch` and `mcp` do this each six hours.
#[derive(Debug, Args)]
pub(super) struct MaintainArgs {
    /// Also write importance as it is now into the frontmatter of memories, and of notes that say one.
    #[arg(long)]
    write_back: bool,
    /// Although it was done less than six hours ago.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Move the least used memories to the trash where they take more room than they may (memory.max_bytes).
///
/// What is pinned, has a protected type or tag, or was made in this --session stays. `restore` brings a note back.
#[derive(Debug, Args)]
pub(super) struct CleanupArgs {
    /// Although there is room: 15 % of the memories.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    dry: Dry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Json,
    Jsonl,
    Csv,
}

/// Write all notes with what they are worth, for other programs.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The form.
    #[arg(long, value_enum, default_value_t = Form::Json)]
    format: Form,
    /// The file; standard output where none is given.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Make notes of memories: an export of sidenote, a JSON array or one object a line (content, and where there is
/// one title, tags, importance, type, created_at). What is there already is passed over.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file; - reads standard input.
    file: PathBuf,
    #[command(flatten)]
    dry: Dry,
}

/// Say where a piece of work stands, for whoever takes it up; one note for each project.
#[derive(Debug, Args)]
pub(super) struct HandoffArgs {
    #[command(subcommand)]
    command: HandoffCommand,
}

#[derive(Debug, Subcommand)]
enum HandoffCommand {
    Store(HandoffStoreArgs),
    Show(HandoffShowArgs),
}

/// Keep a handoff in place of the former one of its project; `sidenote undo` brings that one back.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  sidenote handoff store --project parser --completed \"tables\" \\
    --summary \"Tables parse, footnotes do not\" --next \"footnotes\"")]
struct HandoffStoreArgs {
    /// What is worked on.
    #[arg(long)]
    project: String,
    /// In a few sentences; - reads standard input.
    #[arg(long, allow_hyphen_values = true)]
    summary: String,
    /// The branch.
    #[arg(long)]
    branch: Option<String>,
    /// Something done; may be repeated, as those below.
    #[arg(long, value_name = "TEXT")]
    completed: Vec<String>,
    /// Something begun, or waiting.
    #[arg(long, value_name = "TEXT")]
    in_progress: Vec<String>,
    /// Something decided.
    #[arg(long, value_name = "TEXT")]
    decision: Vec<String>,
    /// Something to be done next.
    #[arg(long, value_name = "TEXT")]
    next: Vec<String>,
    /// A memory that belongs to it, by any of its names.
    #[arg(long, value_name = "NAME")]
    memory: Vec<String>,
    #[command(flatten)]
    dry: Dry,
}

/// Print the newest handoff, with the memories that it names.
#[derive(Debug, Args)]
struct HandoffShowArgs {
    /// That of this project.
    #[arg(long)]
    project: Option<String>,
}

/// Copy the vault and its journal into a folder of backups; the newest ten are kept.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// The folder, outside of the notes; .sidenote/backups where nothing is set.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    dry: Dry,
}

/// List backups, the newest first.
#[derive(Debug, Args)]
pub(super) struct BackupsArgs {
    /// Their folder.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Bring a backup back: into this vault, where notes that are gone or different get the bytes that they had and what
/// came since stays; or with --to as a vault of its own.
#[derive(Debug, Args)]
pub(super) struct RestoreBackupArgs {
    /// Its name, or its folder.
    backup: String,
    /// A folder that is empty or not there yet.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// The folder of backups.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    dry: Dry,
}

pub(super) fn maintain(session: &Session, args: &MaintainArgs) -> Result<()> {
    let request = MaintainRequest {
        write_back: args.write_back,
        force: args.force,
        dry_run: args.dry.is_set(),
        quiet: false,
    };
    session.out.reply(&session.fresh_store()?.maintenance().maintain(request)?, show_maintained)
}

fn show_maintained(reply: &MaintainReply) -> String {
    let mut out = String::new();
    if reply.ran {
        let rows = reply.tiers.iter().map(|change| {
            vec![change.from.to_string(), "→".to_owned(), change.to.to_string(), change.path.clone()]
        });
        out.push_str(&output::columns(&rows.collect::<Vec<_>>()));
        out.push_str(&format!("{} came into another tier\n", output::count(reply.tiers.len(), "note")));
    } else if let Some(last) = reply.last {
        out.push_str(&format!("tiers were looked at {}; --force does it again\n", last.rfc3339()));
    }
    if reply.compacted > 0 {
        out.push_str(&format!(
            "{} of the journal written shorter\n",
            output::count(reply.compacted, "month")
        ));
    }
    if let Some(change) = &reply.change {
        out.push_str(&show_change(change));
    }
    out + &reply.evicted.as_ref().map(show_cleaned).unwrap_or_default()
}

pub(super) fn cleanup(session: &Session, args: &CleanupArgs) -> Result<()> {
    session
        .out
        .reply(&session.fresh_store()?.maintenance().cleanup(args.force, args.dry.is_set())?, show_cleaned)
}

fn show_cleaned(reply: &CleanupReply) -> String {
    let paths: String = reply.evicted.iter().map(|path| format!("{}\n", output::plain(path))).collect();
    format!(
        "{paths}{} to the trash, {}; memories had {} of {}\n{}",
        output::count(reply.evicted_count, "note"),
        output::bytes(reply.freed_bytes),
        output::bytes(reply.bytes),
        output::bytes(reply.max_bytes),
        match reply.operations {
            0 => String::new(),
            count => format!("`sidenote undo {count}` brings them all back\n"),
        }
    )
}

/// Standard output for as long as somebody reads it; a reader that closed its end has heard enough.
struct Heard(Option<std::io::StdoutLock<'static>>);

impl std::io::Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.as_mut().map(|out| out.write(bytes)) {
            Some(Err(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(bytes.len())
            }
            Some(written) => written,
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self.0.as_mut().map(std::io::Write::flush) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

pub(super) fn export(session: &Session, args: &ExportArgs) -> Result<()> {
    let form = match args.format {
        Form::Json => ExportForm::Json,
        Form::Jsonl => ExportForm::Jsonl,
        Form::Csv => ExportForm::Csv,
    };
    let store = session.fresh_store()?;
    let Some(path) = &args.output else {
        let reply =
            store.upkeep().export(form, &mut BufWriter::new(Heard(Some(std::io::stdout().lock()))))?;
        warn_unread(&reply.left_out);
        return Ok(());
    };
    let failed = |error| Error::io("write", path, error);
    let reply = AtomicFile::new(path).write(failed, |file| {
        let mut out = BufWriter::new(file);
        let reply = store.upkeep().export(form, &mut out)?;
        out.flush().map_err(failed)?;
        Ok(reply)
    })?;
    warn_unread(&reply.left_out);
    session.out.say(&format!("{} written to {}", output::count(reply.exported, "note"), path.display()));
    Ok(())
}

fn warn_unread(left_out: &[String]) {
    for path in left_out {
        tracing::warn!("{path} cannot be read, so it is left out");
    }
}

pub(super) fn import(session: &Session, args: &ImportArgs) -> Result<()> {
    let mut bytes = Vec::new();
    let name = if args.file.as_os_str() == "-" { Path::new("standard input") } else { &args.file };
    if args.file.as_os_str() == "-" {
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map_err(|error| Error::io("read", "standard input", error))?;
    } else {
        bytes = std::fs::read(&args.file).map_err(|error| Error::io("read", &args.file, error))?;
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} is not UTF-8", name.display())))?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("import {bar:30} {pos}/{len}");
    bar.set_style(style.map_err(|error| Error::internal("a bar has no style").with_source(error))?);
    let told = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let reply = session.fresh_store()?.upkeep().import(&text, args.dry.is_set(), &told)?;
    bar.finish_and_clear();
    for notice in &reply.notices {
        session.out.say(&format!("notice: {notice}"));
    }
    session.out.reply(&reply, |reply| {
        let verb = if args.dry.is_set() { "would be made" } else { "made" };
        let made = output::count(reply.imported.len(), "note");
        format!("{made} {verb}, {} there already\n", reply.skipped)
    })
}

pub(super) fn handoff(session: &Session, args: HandoffArgs) -> Result<()> {
    match args.command {
        HandoffCommand::Store(args) => {
            let handoff = Handoff {
                project: args.project,
                branch: args.branch,
                summary: text_or_stdin(&args.summary)?,
                completed: args.completed,
                in_progress: args.in_progress,
                decisions: args.decision,
                next: args.next,
                memories: args.memory,
            };
            let request = HandoffRequest { handoff, ..HandoffRequest::default() };
            let reply = session.fresh_store()?.handoffs().store_handoff(&request, args.dry.is_set())?;
            session.out.reply(&reply, |reply| show_change(&reply.change))
        }
        HandoffCommand::Show(args) => {
            let reply = session.fresh_store()?.handoffs().handoff(args.project.as_deref())?;
            session.out.reply(&reply, |reply| output::plain_lines(&reply.with_memories()))
        }
    }
}

pub(super) fn backup(session: &Session, args: &BackupArgs) -> Result<()> {
    let store = session.fresh_store()?;
    if args.dry.is_set() {
        let folder = store.upkeep().backup_folder(args.dir.as_deref());
        let status = store.index().status()?;
        let reply = serde_json::json!({ "folder": folder, "notes": status.counts.notes });
        return session.out.reply(&reply, |_| {
            let notes = output::count(status.counts.notes, "note");
            format!("{notes} would be copied to {}\n", folder.display())
        });
    }
    let item = store.upkeep().backup(args.dir.as_deref())?;
    for path in &item.left_out {
        session.out.say(&format!("notice: {} is not in the backup", output::plain(path)));
    }
    session.out.reply(&item, |item| format!("{}\n", item.path.display()))
}

pub(super) fn backups(session: &Session, args: &BackupsArgs) -> Result<()> {
    let items = session.store()?.upkeep().backups(args.dir.as_deref())?;
    session.out.reply(&items, |items| {
        let row = |item: &BackupItem| {
            vec![
                item.name.clone(),
                item.at.clone(),
                output::count(item.notes, "note"),
                output::count(item.files, "file"),
                output::bytes(item.bytes),
            ]
        };
        output::columns(&items.iter().map(row).collect::<Vec<_>>())
    })
}

pub(super) fn restore_backup(session: &Session, args: &RestoreBackupArgs) -> Result<()> {
    let store = session.fresh_store()?;
    let (dir, to) = (args.dir.as_deref(), args.to.as_deref());
    let reply = store.upkeep().restore_backup(&args.backup, dir, to, args.dry.is_set())?;
    session.out.reply(&reply, |reply| match (&reply.to, &reply.change) {
        (Some(to), _) => format!("{}: {}\n", to.display(), output::count(reply.backup.files, "file")),
        (None, Some(change)) => show_change(change),
        (None, None) => String::new(),
    })
}
