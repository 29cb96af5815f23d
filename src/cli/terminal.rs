//! The terminal: its width, wrapping of text, colours, and the pager for long output.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use console::Term;
use sidenote_base::error::{Error, Result};

/// The width in columns below which text is not wrapped.
const MIN_WRAP_WIDTH: usize = 20;

/// The values of `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always, also into a pipe.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Turns colours on or off for the whole process.
    pub(super) fn apply(self) {
        if self != Self::Auto {
            console::set_colors_enabled(self == Self::Always);
            console::set_colors_enabled_stderr(self == Self::Always);
        }
    }
}

/// Returns the rows and columns of the terminal, if standard output is one.
fn size() -> Option<(usize, usize)> {
    let terminal = Term::stdout();
    let (rows, columns) = terminal.features().is_attended().then(|| terminal.size_checked())??;
    Some((rows.into(), columns.into()))
}

/// Returns the width of the terminal, if standard output is one. Otherwise text is not wrapped.
pub(super) fn width() -> Option<usize> {
    size().map(|(_, columns)| columns)
}

/// Returns whether a person can be asked something.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for a secret on standard error, and does not show what is typed.
///
/// # Errors
/// `Io` if the question cannot be written, or the answer not read.
pub(super) fn ask_secret(question: &str) -> Result<String> {
    let failed = |error| Error::io("ask on", "the terminal", error);
    let terminal = Term::stderr();
    terminal.write_str(question).map_err(failed)?;
    terminal.read_secure_line().map_err(failed)
}

/// Asks a question on standard error. Returns whether the answer is yes.
///
/// # Errors
/// `Io` if the question cannot be written, or the answer not read.
pub(super) fn ask(question: &str) -> Result<bool> {
    let failed = |error| Error::io("ask on", "the terminal", error);
    let mut stderr = std::io::stderr().lock();
    stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush()).map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Wraps a line at words to a width in columns. Colours take no columns.
pub(super) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let wrapped = textwrap::wrap(line, columns.max(1));
    wrapped.into_iter().map(|line| line.into_owned()).collect()
}

/// Indents a line, which is wrapped on a terminal.
pub(super) fn indented(indent: &str, line: &str) -> String {
    let room =
        width().and_then(|width| width.checked_sub(indent.len())).filter(|room| *room >= MIN_WRAP_WIDTH);
    let lines = match room {
        Some(room) if console::measure_text_width(line) > room => wrap(line, room),
        _ => vec![line.to_owned()],
    };
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// Returns whether a last column that begins at `start` has room for a few words.
pub(super) fn has_room(start: usize, columns: usize) -> bool {
    start + MIN_WRAP_WIDTH <= columns
}

/// Wraps the last cell of a row. Its further lines are indented to the column `start`, where the cell begins.
pub(super) fn wrapped_cell(cell: &str, start: usize) -> String {
    let room = width().and_then(|width| width.checked_sub(start)).filter(|room| *room >= MIN_WRAP_WIDTH);
    match room {
        Some(room) if console::measure_text_width(cell) > room => {
            wrap(cell, room).join(&format!("\n{}", " ".repeat(start)))
        }
        _ => cell.to_owned(),
    }
}

/// Returns whether standard output is a terminal with fewer rows than a text takes.
pub(super) fn overflows(text: &str) -> bool {
    let Some((rows, columns)) = size() else { return false };
    let columns = columns.max(1);
    let mut taken = 0;
    text.lines().any(|line| {
        taken += console::measure_text_width(line).div_ceil(columns).max(1);
        // The shell prompt takes one row.
        taken >= rows
    })
}

/// Returns the pager that the environment sets, or `less`; none if it is empty or `cat`.
fn pager() -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok();
    let pager = variable("SIDENOTE_PAGER").or_else(|| variable("PAGER")).unwrap_or_else(|| "less".to_owned());
    Some(pager.trim().to_owned()).filter(|pager| !pager.is_empty() && pager != "cat")
}

/// Shows a text in the pager and waits until it is closed. Returns false if there is no pager or it cannot be started.
pub(super) fn page(text: &str) -> bool {
    let Some(pager) = pager() else { return false };
    let mut words = pager.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // F: exit if the text fits on one screen. R: pass colours on. X: leave the text on the screen.
        command.env("LESS", "FRX");
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            tracing::debug!("cannot start the pager {pager}: {error}");
            return false;
        }
    };
    if let Some(mut input) = child.stdin.take()
        && let Err(error) = input.write_all(text.as_bytes())
    {
        // The user closed the pager before the end of the text.
        tracing::debug!("the pager {pager} was closed: {error}");
    }
    if let Err(error) = child.wait() {
        tracing::debug!("cannot wait for the pager {pager}: {error}");
    }
    true
}
