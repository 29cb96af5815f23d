//! The child process that reads one attachment, which this program starts of itself.

use std::process::ExitCode;

use sidenote_attachments::{COMMAND, serve};

/// Reads an attachment if this process was started for that, and returns how it ends. Standard input has the file, and standard
/// output gets its text.
pub(super) fn serve_as_child() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|command| command != COMMAND) {
        return None;
    }
    let format = arguments.next().unwrap_or_default();
    let served =
        serve(&format.to_string_lossy(), &mut std::io::stdin().lock(), &mut std::io::stdout().lock());
    // The process that started this one says what it means for the file.
    Some(if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
