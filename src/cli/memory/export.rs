//! `sidenote memory export`: writes all notes with their memory state for other programs.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sidenote_base::atomic_file::AtomicFile;
use sidenote_base::error::{Error, Result};

use crate::cli::{CommandContext, output};
use crate::store::ExportForm;

/// Export all notes with their importance, tier and uses.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    /// The format.
    #[arg(long, value_enum, default_value_t = ExportFormat::Json)]
    format: ExportFormat,
    /// The output file. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// One JSON object with an array of memories.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// A table with a header row.
    Csv,
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

pub(in crate::cli) fn run(context: &CommandContext, args: &ExportArgs) -> Result<()> {
    let form = match args.format {
        ExportFormat::Json => ExportForm::Json,
        ExportFormat::Jsonl => ExportForm::Jsonl,
        ExportFormat::Csv => ExportForm::Csv,
    };
    let store = context.fresh_store()?;
    let Some(path) = &args.output else {
        let stdout = StdoutUntilClosed(Some(std::io::stdout().lock()));
        let reply = store.upkeep().export(form, &mut BufWriter::new(stdout))?;
        warn_of_left_out(&reply.left_out);
        return Ok(());
    };
    let failed = |error| Error::io("write", path, error);
    let reply = AtomicFile::new(path).write(failed, |file| {
        let mut out = BufWriter::new(file);
        let reply = store.upkeep().export(form, &mut out)?;
        out.flush().map_err(failed)?;
        Ok(reply)
    })?;
    warn_of_left_out(&reply.left_out);
    context.out.message(&format!("{} written to {}", output::count(reply.exported, "note"), path.display()));
    Ok(())
}

fn warn_of_left_out(paths: &[String]) {
    for path in paths {
        tracing::warn!("{path} cannot be read and is not exported");
    }
}
