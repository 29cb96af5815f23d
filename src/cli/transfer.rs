//! `sidenote memory export` and `sidenote memory import`.

use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::atomic_file::AtomicFile;
use crate::cli::change::Dry;
use crate::cli::{Session, output};
use crate::error::{Error, Result};
use crate::store::ExportForm;

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

/// Writes to standard output until the reader closes the pipe. What is written after that is discarded without an error.
struct StdoutUntilClosed(Option<std::io::StdoutLock<'static>>);

impl std::io::Write for StdoutUntilClosed {
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
        let stdout = StdoutUntilClosed(Some(std::io::stdout().lock()));
        let reply = store.upkeep().export(form, &mut BufWriter::new(stdout))?;
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
