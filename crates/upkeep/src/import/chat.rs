//! The text of a note of a conversation: a heading for each speaker, and below it what was said.

use serde_json::Value;
use sidenote_base::clock::Timestamp;

/// The level of the headings that name a speaker.
const LEVEL: usize = 2;
/// The lowest level of a heading in Markdown.
const LOWEST: usize = 6;
/// The end of the year 9999, in seconds.
const LATEST: f64 = 253_402_300_800.0;

/// The text of a conversation.
#[derive(Debug, Default)]
pub(super) struct ChatText {
    text: String,
    speaker: Option<&'static str>,
}

impl ChatText {
    /// Adds what a speaker said. Nothing is added for an empty text.
    pub(super) fn say(&mut self, speaker: &'static str, said: &str) {
        let said = below_headings(said);
        let said = said.trim_matches('\n').trim_end();
        if said.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        if self.speaker != Some(speaker) {
            self.text.push_str(&format!("{} {speaker}\n\n", "#".repeat(LEVEL)));
            self.speaker = Some(speaker);
        }
        self.text.push_str(said);
        self.text.push('\n');
    }

    /// Returns the text; nothing if nobody said anything.
    pub(super) fn finish(self) -> Option<String> {
        (!self.text.is_empty()).then_some(self.text)
    }
}

/// A block of code that is open.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// Reads the line that begins a block of code, in a list, too.
    fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = line.get(length..).unwrap_or("");
        (length >= 3 && (mark == '~' || !info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.chars().count() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// Moves the headings of a text below those that name the speakers, and closes a block of code that is left open: it would
/// take in what others say. Everything else is kept.
fn below_headings(text: &str) -> String {
    let mut lines = Vec::new();
    let mut fence: Option<Fence> = None;
    for line in text.lines() {
        match &fence {
            Some(open) if open.is_closed_by(line) => fence = None,
            Some(_) => {}
            None => {
                fence = Fence::opened_by(line);
                if let Some(lower) = lower_heading(line) {
                    lines.push(lower);
                    continue;
                }
            }
        }
        lines.push(line.to_owned());
    }
    if let Some(open) = fence {
        lines.push(open.mark.to_string().repeat(open.length));
    }
    lines.join("\n")
}

/// Returns a heading with a lower level; `None` for any other line.
fn lower_heading(line: &str) -> Option<String> {
    let heading = line.trim_start_matches(' ');
    let level = heading.chars().take_while(|c| *c == '#').count();
    let rest = heading.get(level..)?;
    let is_heading = line.len() - heading.len() < 4
        && (1..=LOWEST).contains(&level)
        && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| format!("{}{rest}", "#".repeat((level + LEVEL).min(LOWEST))))
}

/// Writes a text as a block of code.
pub(super) fn code_block(language: &str, code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let language: String = language
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '#' | '.' | '_'))
        .collect();
    format!("{fence}{language}\n{}\n{fence}", code.trim_end_matches('\n'))
}

/// Writes the name of a file that is not imported.
pub(super) fn file_line(what: &str, name: &str) -> String {
    let name: String = name.chars().map(|c| if c == '`' || c.is_control() { ' ' } else { c }).collect();
    format!("{what}: `{}`", name.trim())
}

/// Returns a text in one line, for a title.
pub(super) fn one_line(text: &str) -> String {
    /// The longest title, in characters: some lines on a screen.
    const LONGEST: usize = 200;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|c| !c.is_control());
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => line.get(..end).unwrap_or_default().trim_end().to_owned(),
        None => line,
    }
}

/// Reads a time: seconds since 1970, or a date as text.
pub(super) fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => {
            let seconds = number.as_f64().filter(|seconds| (0.0..LATEST).contains(seconds))?;
            Some(Timestamp::from_millis((seconds * 1000.0) as i64))
        }
        Value::String(text) => Timestamp::parse(text),
        _ => None,
    }
}
