//! Standard output: replies for people or as JSON. Everything else goes to standard error. Control sequences in notes are
//! replaced before they reach a terminal.

use std::io::Write as _;

use console::style;
use serde::Serialize;
use sidenote_base::error::{Error, Result};
use sidenote_markdown::control::{picture, shown};
pub(crate) use sidenote_markdown::control::{plain, plain_lines};

use crate::cli::terminal;

/// How the process prints: as JSON or text, and with a pager or without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    use_pager: bool,
}

impl Output {
    /// Returns an output of JSON or text, without a pager.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, use_pager: false }
    }

    /// Sets whether text that is longer than the screen is shown in a pager.
    #[must_use]
    pub(crate) fn with_pager(self, use_pager: bool) -> Self {
        Self { use_pager, ..self }
    }

    /// Returns whether replies are printed as JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints a reply as JSON, or as the text that `show` returns.
    pub(crate) fn reply<T: Serialize>(self, reply: &T, show: impl FnOnce(&T) -> String) -> Result<()> {
        if self.json {
            return self.print_json(serde_json::to_string_pretty(reply));
        }
        let text = show(reply);
        if text.is_empty() {
            self.message("nothing found");
        }
        self.page(&text)
    }

    /// Prints JSON, unless it could not be written.
    fn print_json(self, text: serde_json::Result<String>) -> Result<()> {
        let text =
            text.map_err(|error| Error::internal("cannot write the reply as JSON").with_source(error))?;
        self.print(&format!("{text}\n"))
    }

    /// Prints text for people, in a pager if it is longer than the screen.
    fn page(self, text: &str) -> Result<()> {
        let text = &for_terminal(text, console::colors_enabled());
        if self.use_pager && terminal::overflows(text) && terminal::page(text) {
            return Ok(());
        }
        self.print(text)
    }

    /// Prints a reply as [`Output::reply`] does, but the text byte for byte unless it goes to a terminal.
    pub(crate) fn reply_exact<T: Serialize>(self, reply: &T, exact: impl FnOnce(&T) -> String) -> Result<()> {
        match self.json {
            true => self.print_json(serde_json::to_string_pretty(reply)),
            false if console::Term::stdout().is_term() => self.page(&exact(reply)),
            false => self.print(&exact(reply)),
        }
    }

    /// Prints text as it is, for programs: JSON, scripts, settings. A closed pipe is not an error.
    pub(crate) fn print(self, text: &str) -> Result<()> {
        self.print_until_closed(text).map(drop)
    }

    /// Prints text as it is. Returns false if the reader closed the pipe.
    pub(crate) fn print_until_closed(self, text: &str) -> Result<bool> {
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Error::io(WRITE_TO, STANDARD_OUTPUT, error)),
        }
    }

    /// Prints a message to standard error.
    pub(crate) fn message(self, text: &str) {
        write_error(&for_terminal(text, console::colors_enabled_stderr()));
    }

    /// Prints an error and its hint to standard error.
    pub(crate) fn print_error(self, error: &Error) {
        if self.json {
            let reply = serde_json::json!({
                "error": { "kind": error.kind().name(), "message": error.to_string(), "hint": error.hint() }
            });
            return write_error(&reply.to_string());
        }
        let error_hint = error.hint();
        let error = plain_lines(&error.to_string());
        self.message(&format!("{} {error}", style("error:").red().bold().for_stderr()));
        if let Some(hint) = error_hint {
            self.message(&format!("{} {}", style("hint:").cyan().for_stderr(), plain_lines(hint)));
        }
    }
}

/// What a failed write to standard output says.
const WRITE_TO: &str = "write to";
const STANDARD_OUTPUT: &str = "standard output";

/// Returns whether an error means that standard output cannot be written.
pub(crate) fn is_unwritable(error: &Error) -> bool {
    error.message().starts_with(&format!("cannot {WRITE_TO} {STANDARD_OUTPUT}"))
}

/// Writes a line to standard error.
fn write_error(line: &str) {
    // If standard error is closed, the message is lost.
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}

/// Highlights ranges of a text, which must not overlap, if colours are on.
pub(crate) fn highlight(text: &str, ranges: &[(usize, usize)]) -> String {
    let mut out = String::with_capacity(text.len() + ranges.len() * 8);
    let mut from = 0;
    for &(start, end) in ranges {
        if let (Some(before), Some(inside)) = (text.get(from..start), text.get(start..end)) {
            out.push_str(&plain_lines(before));
            out.push_str(&style(plain_lines(inside)).yellow().bold().to_string());
            from = end;
        }
    }
    out.push_str(&plain_lines(text.get(from..).unwrap_or("")));
    out
}

/// Replaces the control characters of a text, except for newlines, tabs, and our own colours if they are on.
fn for_terminal(text: &str, with_colours: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\x1b' if with_colours => style_sequence_length(rest),
            '\r' if rest.starts_with("\r\n") => Some(2),
            _ => None,
        };
        match (c, length) {
            ('\r', Some(_)) => out.push('\n'),
            (_, Some(length)) => out.push_str(rest.get(..length).unwrap_or("")),
            ('\n' | '\t', None) => out.push(c),
            (c, None) if c < ' ' => out.push(picture(c)),
            (c, None) => out.push(shown(c)),
        }
        rest = rest.get(length.unwrap_or(c.len_utf8())..).unwrap_or("");
    }
    out
}

/// Returns the length of the escape sequence at the beginning of a text, if [`style`] makes such sequences: one of eight
/// colours, bold, dim, underlined, or the end of a style.
fn style_sequence_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find('m').filter(|end| *end <= 2)?;
    let code: u8 = rest.get(..end)?.parse().ok()?;
    matches!(code, 0 | 1 | 2 | 4 | 22 | 24 | 30..=37 | 39 | 90..=97).then_some("\x1b[".len() + end + 1)
}

/// Formats a number with a noun, in the regular plural unless the number is 1.
pub(crate) fn count(number: usize, what: &str) -> String {
    let plural = match what.strip_suffix('y') {
        _ if number == 1 => return format!("1 {what}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        None if what.ends_with(['h', 's', 'x']) => format!("{what}es"),
        _ => format!("{what}s"),
    };
    format!("{number} {plural}")
}

/// Formats rows in aligned columns, two spaces apart. The last column is not padded.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| console::measure_text_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let before_last: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
    if let Some(room) = terminal::width().filter(|room| !terminal::has_room(before_last, *room)) {
        return rows.iter().map(|row| flowed(row, room)).collect();
    }
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        let mut start = 0;
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column + 1 == row.len() {
                line.push_str(&terminal::wrapped_cell(cell, start));
                break;
            }
            line.push_str(&console::pad_str(cell, *width, console::Alignment::Left, None));
            line.push_str("  ");
            start += width + 2;
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Formats a row that is too wide for columns: a cell that has no room begins a new line, which is indented.
fn flowed(row: &[String], room: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cell in row.iter().filter(|cell| !cell.is_empty()) {
        let taken = lines.last().map_or(0, |line| console::measure_text_width(line));
        match lines.last_mut() {
            Some(line) if taken + 2 + console::measure_text_width(cell) <= room => {
                line.push_str("  ");
                line.push_str(cell);
            }
            Some(_) => lines.push(format!("    {}", terminal::wrapped_cell(cell, 4))),
            None => lines.push(cell.clone()),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Formats a number of bytes with a binary unit, such as KiB.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// Standard error as the place of logs. A line that cannot be written, because the disk is full or nobody reads it, is lost, and
/// the program goes on.
pub(super) struct LogOutput;

impl std::io::Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        drop(std::io::stderr().lock().write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
