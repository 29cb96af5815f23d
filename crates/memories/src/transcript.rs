//! Transcripts of coding agents: one JSON object a line, whose fields differ between agents. Those of Claude Code, Codex and
//! Cursor are known.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_base::safe_open;

/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 16 << 20;
/// The length of the end of a transcript that is read, in bytes: a conversation of some weeks.
const MAX_TRANSCRIPT: u64 = 256 << 20;

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The person, or the result of a tool, which has no text.
    User,
    /// The agent.
    Assistant,
}

impl Speaker {
    /// Returns the name that transcripts give.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// Reads the name that transcripts give.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::User, Self::Assistant].into_iter().find(|known| known.name() == name)
    }
}

/// A message of a transcript.
#[derive(Debug, Clone)]
pub struct Message {
    /// Who says it.
    pub speaker: Speaker,
    /// Its text; empty for a use of a tool.
    pub text: String,
    /// When it was said, if the line tells.
    pub at: Option<Timestamp>,
    /// The folder in which the agent works, if the line tells.
    pub folder: Option<String>,
    /// The branch, if the line tells.
    pub branch: Option<String>,
    /// Whether an agent says it to an agent that it started.
    pub is_sidechain: bool,
}

/// Reads the messages of a transcript, the oldest first.
///
/// # Errors
/// `Invalid` if it is no regular file; `Io` if it cannot be read.
pub fn each_message(transcript: &Path, mut take: impl FnMut(Message)) -> Result<()> {
    let failed = |error| safe_open::failed("read", transcript, error);
    let mut file = safe_open::open_in_place(transcript).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    // The last messages are at the end.
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TRANSCRIPT))).map_err(failed)?;
    let mut reader = BufReader::new(file.take(MAX_TRANSCRIPT));
    let mut line = Vec::new();
    while next_line(&mut reader, &mut line).map_err(failed)? {
        // Other programs may write to the transcript; lines that are not JSON are skipped.
        if let Ok(line) = serde_json::from_slice::<Value>(&line)
            && let Some(message) = message_of(&line)
        {
            take(message);
        }
    }
    Ok(())
}

fn message_of(line: &Value) -> Option<Message> {
    // Codex has messages in a payload, and Claude Code and Cursor below this name.
    let message = line.get("message").or_else(|| line.get("payload")).unwrap_or(line);
    let roles = [message.get("role"), line.get("role"), line.get("type")];
    let speaker = Speaker::parse(roles.into_iter().flatten().find_map(Value::as_str)?)?;
    let said = |field: &str| line.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(Message {
        speaker,
        text: text_of(message.get("content").unwrap_or(&Value::Null)),
        at: line.get("timestamp").and_then(Value::as_str).and_then(Timestamp::parse),
        folder: said("cwd"),
        branch: said("gitBranch"),
        is_sidechain: line.get("isSidechain") == Some(&Value::Bool(true)),
    })
}

/// Reads the next line; an empty one in place of a line of more than [`MAX_LINE`]. Returns `false` at the end.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut is_too_long = false;
    loop {
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', line)?;
        let is_whole = line.ends_with(b"\n") || (read as u64) < MAX_LINE;
        is_too_long |= !is_whole;
        if is_too_long {
            line.clear();
        }
        if is_whole {
            return Ok(read > 0 || is_too_long);
        }
    }
}

/// Returns the text of a message, which is one text or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let is_text = |part: &&Value| {
                let kind = part.get("type").and_then(Value::as_str);
                matches!(kind, Some("text" | "input_text" | "output_text"))
            };
            let texts = parts.iter().filter(is_text);
            let texts: Vec<&str> = texts.filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n\n")
        }
        _ => String::new(),
    }
}
