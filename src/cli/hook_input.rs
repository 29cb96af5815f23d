//! What a coding agent says to a hook: one JSON object on standard input, whose fields differ between agents, and the
//! transcript that it names. What a hook does with it is not known here.

use std::io::Read;
use std::path::Path;

use serde_json::Value;
use sidenote_base::error::{Error, Result};

use crate::store::agents::AgentNames;
use crate::store::transcript::{self, Speaker};

/// The maximum length of the JSON input, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// How an agent reads what a hook says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Claude Code, Codex, Gemini CLI and VS Code: text, or JSON with `additionalContext`.
    Common,
    /// Cursor: JSON with `additional_context`.
    Cursor,
    /// Windsurf: it gives the model nothing that a hook prints.
    Windsurf,
}

/// The JSON input of a hook.
pub(super) struct HookInput {
    value: Value,
}

impl HookInput {
    /// Reads the input.
    ///
    /// # Errors
    /// `Io` if it cannot be read, and `Invalid` if it is not JSON.
    pub(super) fn read(from: impl Read) -> Result<Self> {
        let mut text = String::new();
        let read = from.take(MAX_BYTES).read_to_string(&mut text);
        read.map_err(|error| Error::io("read", "standard input", error))?;
        let value = serde_json::from_str(&text)
            .map_err(|error| Error::invalid("the input of the hook is not JSON").with_source(error))?;
        Ok(Self { value })
    }

    /// Returns the dialect of the agent, which is known by a field that no other agent sends.
    pub(super) fn dialect(&self) -> Dialect {
        let has = |field: &str| self.value.get(field).is_some();
        match () {
            () if has("cursor_version") => Dialect::Cursor,
            () if has("agent_action_name") => Dialect::Windsurf,
            () => Dialect::Common,
        }
    }

    /// Returns the names by which rules can know the agent: those that it gives an MCP server. Agents of one dialect cannot be
    /// told apart.
    pub(super) fn agent_names(&self) -> AgentNames {
        let agents: &[&[&str]] = match self.dialect() {
            Dialect::Cursor => &[&["cursor", "cursor-vscode"]],
            Dialect::Windsurf => &[&["windsurf", "windsurf-client"]],
            Dialect::Common => &[
                &["claude-code"],
                &["codex", "codex-mcp-client"],
                &["gemini-cli", "gemini-cli-mcp-client"],
                &["Visual Studio Code"],
            ],
        };
        agents.iter().map(|names| names.iter().map(ToString::to_string).collect()).collect()
    }

    /// Returns the name of the event, as the agent spells it.
    pub(super) fn event(&self) -> &str {
        self.first(&["/hook_event_name", "/hookEventName", "/agent_action_name"])
    }

    /// Returns the text of the prompt, or nothing.
    pub(super) fn prompt(&self) -> &str {
        self.first(&["/prompt", "/tool_info/user_prompt"])
    }

    /// Returns the id of the conversation, or nothing.
    pub(super) fn session(&self) -> &str {
        self.first(&["/session_id", "/conversation_id", "/trajectory_id", "/sessionId"])
    }

    /// Returns what the agent answered to the last prompt, or in the whole conversation: the text of its transcript, and
    /// the last answer that the input says, if the transcript does not have it.
    ///
    /// # Errors
    /// `Io` if the input says no answer and the transcript cannot be read.
    pub(super) fn answers(&self, all: bool) -> Result<String> {
        // A transcript can be written with a delay, have a form that is not known, or be switched off.
        let read = answers_in(Path::new(self.first(&["/transcript_path"])), all);
        let last = self.last_answer();
        if last.trim().is_empty() {
            return read;
        }
        match read {
            Ok(text) if text.contains(last.trim()) => Ok(text),
            Ok(text) => Ok(format!("{text}{last}")),
            Err(_) => Ok(last.to_owned()),
        }
    }

    /// Returns the last answer, if the input says it.
    fn last_answer(&self) -> &str {
        // The events of Cursor have a text each, and only that of this event is an answer.
        let of_cursor: &[&str] = if self.event() == "afterAgentResponse" { &["/text"] } else { &[] };
        self.first(
            &[&["/last_assistant_message", "/prompt_response", "/tool_info/response"], of_cursor].concat(),
        )
    }

    /// Returns the first text at one of these JSON pointers that is not empty, or nothing.
    fn first(&self, pointers: &[&str]) -> &str {
        let texts = pointers.iter().filter_map(|pointer| self.value.pointer(pointer)?.as_str());
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or("")
    }
}

/// Reads the answers of an agent from its transcript: those since the last prompt, or all.
fn answers_in(path: &Path, all: bool) -> Result<String> {
    let mut answers = String::new();
    transcript::each_message(path, |message| match message.speaker {
        Speaker::Assistant => {
            answers.push_str(&message.text);
            answers.push_str("\n\n");
        }
        // The result of a tool has the role of the user, too, but no text.
        Speaker::User if !all && !message.text.trim().is_empty() => answers.clear(),
        Speaker::User => {}
    })?;
    Ok(answers)
}
