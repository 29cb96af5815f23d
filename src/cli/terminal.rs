//! The terminal: its width, wrapping of text, colours, and the pager for long output.

use std::io::Write as _;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use console::Term;

/// Less room than this is not worth wrapping into.
const NARROWEST: usize = 20;

/// When colours are used.
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

/// Gives rows and columns of the terminal that standard output goes to; nothing where it is none.
fn size() -> Option<(usize, usize)> {
    let terminal = Term::stdout();
    let (rows, columns) = terminal.features().is_attended().then(|| terminal.size_checked())??;
    Some((rows.into(), columns.into()))
}

/// Gives the width of the terminal; nothing where standard output is none, and text is not wrapped.
pub(super) fn width() -> Option<usize> {
    size().map(|(_, columns)| columns)
}

/// Wraps one line at words to so many columns. Colours count nothing.
pub(super) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let wrapped = textwrap::wrap(line, columns.max(1));
    wrapped.into_iter().map(|line| line.into_owned()).collect()
}

/// Puts `indent` before a line, and before each of the lines that it is wrapped to on a terminal.
pub(super) fn indented(indent: &str, line: &str) -> String {
    let room = width().and_then(|width| width.checked_sub(indent.len())).filter(|room| *room >= NARROWEST);
    let lines = match room {
        Some(room) if console::measure_text_width(line) > room => wrap(line, room),
        _ => vec![line.to_owned()],
    };
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// Wraps the last cell of a row that begins at column `start`; its further lines begin there, too.
pub(super) fn wrapped_cell(cell: &str, start: usize) -> String {
    let room = width().and_then(|width| width.checked_sub(start)).filter(|room| *room >= NARROWEST);
    match room {
        Some(room) if console::measure_text_width(cell) > room => {
            wrap(cell, room).join(&format!("\n{}", " ".repeat(start)))
        }
        _ => cell.to_owned(),
    }
}

/// Says whether a text is longer than the terminal that it goes to.
pub(super) fn overflows(text: &str) -> bool {
    let Some((rows, columns)) = size() else { return false };
    let columns = columns.max(1);
    let mut taken = 0;
    text.lines().any(|line| {
        taken += console::measure_text_width(line).div_ceil(columns).max(1);
        // The prompt of the shell takes a row.
        taken >= rows
    })
}

/// Names the pager of the user's environment; nothing where that is empty, or `cat`.
fn pager() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok();
    let pager = set("SIDENOTE_PAGER").or_else(|| set("PAGER")).unwrap_or_else(|| "less".to_owned());
    Some(pager.trim().to_owned()).filter(|pager| !pager.is_empty() && pager != "cat")
}

/// Shows a text in the pager and waits until it is closed; says whether one could be started.
pub(super) fn page(text: &str) -> bool {
    let Some(pager) = pager() else { return false };
    let mut words = pager.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Ends at once where all fits, passes colours on, and leaves the text on the screen.
        command.env("LESS", "FRX");
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            tracing::debug!("{pager} cannot be started: {error}");
            return false;
        }
    };
    if let Some(mut input) = child.stdin.take()
        && let Err(error) = input.write_all(text.as_bytes())
    {
        // Whoever closes the pager has read enough.
        tracing::debug!("{pager} was closed: {error}");
    }
    if let Err(error) = child.wait() {
        tracing::debug!("{pager} was lost: {error}");
    }
    true
}
