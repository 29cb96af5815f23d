//! `sidenote open`: opens a note in Obsidian, or in the program that the system has for it.
//!
//! Programs are run here, by the pager of `cli/terminal` and by `cli/child`, and nowhere else.

use std::path::Path;
use std::process::Command;

use clap::{Args, ValueEnum};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::platform;

use super::args::DryRunArgs;
use super::{CommandContext, output};

/// Open a note in Obsidian or in the default application of the system.
///
/// The command does not wait. `edit` opens the note in $EDITOR and waits for it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote open \"Start here\"
  sidenote open Plan --with system
  sidenote open Plan --dry-run          print what would be opened")]
pub(super) struct OpenArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// The application. Default: Obsidian if the vault has a folder .obsidian/, or else that of the system.
    #[arg(long, value_enum)]
    with: Option<Opener>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Opener {
    /// Obsidian, by an obsidian:// URL.
    Obsidian,
    /// The default application of the system.
    System,
}

/// The characters that are not percent-encoded in a part of a URL.
const URL_COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The reply of `open`.
#[derive(Debug, Serialize)]
struct OpenReply {
    /// The note's path.
    path: String,
    /// What is opened: a URL of Obsidian, or the file.
    address: String,
    /// The program that opens it.
    program: String,
    /// Whether it was opened; with `--dry-run` it is not.
    opened: bool,
}

pub(super) fn run(context: &CommandContext, args: &OpenArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let path = store.lookup().find(&args.note)?.path.to_string();
    let file = store.root().join(&path);
    let has_obsidian = store.root().join(sidenote_vault::CONFIG_DIR).is_dir();
    let with = args.with.unwrap_or(if has_obsidian { Opener::Obsidian } else { Opener::System });
    let file =
        file.to_str().ok_or_else(|| Error::invalid(format!("the absolute path of {path} is not UTF-8")))?;
    let address = match with {
        Opener::Obsidian => format!("obsidian://open?path={}", utf8_percent_encode(file, URL_COMPONENT)),
        Opener::System => file.to_owned(),
    };
    let program = opener();
    if !args.dry_run.is_set() {
        run_with(&program, Path::new(&address)).map_err(|error| {
            error.with_hint(
                "set $SIDENOTE_OPENER to another program, or open the note in $EDITOR with `sidenote edit`",
            )
        })?;
    }
    let reply = OpenReply { path, address, program, opened: !args.dry_run.is_set() };
    context.out.reply(&reply, |reply| {
        let verb = if reply.opened { "opened" } else { "would open" };
        format!("{verb} {}\n", output::plain(&reply.address))
    })
}

/// Returns the program that opens URLs and files: `$SIDENOTE_OPENER`, or else that of the system.
pub(super) fn opener() -> String {
    let variable = std::env::var("SIDENOTE_OPENER").ok().filter(|command| !command.trim().is_empty());
    variable.unwrap_or_else(|| platform::OPENER.to_owned())
}

/// Runs a command line, split at spaces, with one more argument, and waits for it.
///
/// # Errors
/// `Io` if the command cannot be started or fails.
pub(super) fn run_with(command: &str, argument: &Path) -> Result<()> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = Command::new(program)
        .args(words)
        .arg(argument)
        .status()
        .map_err(|error| Error::io("run", program, error))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Io, format!("{program} failed: {status}")))
    }
}

/// Opens an address in the browser. The caller does not wait for that.
#[cfg(any(feature = "team", feature = "web"))]
pub(super) fn open_browser(out: output::Output, address: String) {
    let opened = std::thread::Builder::new().name("sidenote-open".to_owned()).spawn(move || {
        if let Err(error) = run_with(&opener(), Path::new(&address)) {
            out.message(&format!("notice: {error}; open the address above yourself"));
        }
    });
    if let Err(error) = opened {
        tracing::debug!("the browser is not opened: {error}");
    }
}
