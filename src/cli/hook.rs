//! `sidenote hook`: the hooks of coding agents. A hook never blocks its agent: on any error nothing is printed and the exit
//! code is 0.

use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::CommandContext;
use crate::error::{Error, Result};
use crate::store::{Open, RecallRequest, ReplyForm, Store, fit_budget, xml_block};

/// Serve the hooks of a coding agent: reads the hook's JSON from standard input.
///
/// Where the vault has no index yet, and whatever else goes wrong, nothing is printed and the exit code is 0.
#[derive(Debug, Args)]
#[command(after_help = SETTINGS)]
pub(super) struct HookArgs {
    /// Which hook.
    #[arg(value_enum)]
    hook: Hook,
}

/// What an agent's settings hold. Short lines: help is wrapped at the width of the terminal, and JSON must not be.
const SETTINGS: &str = r#"In the settings of Claude Code (~/.claude/settings.json):
{
  "hooks": {
    "SessionStart": [{ "hooks": [{
      "type": "command",
      "command": "sidenote --vault ~/notes hook session-start"
    }] }],
    "UserPromptSubmit": [{ "hooks": [{
      "type": "command",
      "command": "sidenote --vault ~/notes hook recall"
    }] }],
    "Stop": [{ "hooks": [{
      "type": "command",
      "command": "sidenote --vault ~/notes hook capture"
    }] }],
    "SessionEnd": [{ "hooks": [{
      "type": "command",
      "command": "sidenote --vault ~/notes hook session-end"
    }] }]
  }
}"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hook {
    /// UserPromptSubmit: print the memories that help with the prompt.
    Recall,
    /// Stop: keep the best of what the agent answered since the last prompt.
    Capture,
    /// SessionStart: print what is being worked on.
    SessionStart,
    /// SessionEnd: keep the best of the whole conversation.
    SessionEnd,
}

/// So many tokens a recalled block takes at most.
const BUDGET: usize = 1500;
/// So long a prompt waits for a look at the files.
const PATIENCE: Duration = Duration::from_millis(150);
/// A hook's JSON is no longer than this.
const LONGEST: u64 = 16 << 20;

pub(super) fn run(context: &CommandContext, args: &HookArgs) {
    let served = catch_unwind(AssertUnwindSafe(|| serve(context, args.hook)));
    match served {
        Ok(Ok(block)) if !block.is_empty() => {
            if let Err(error) = context.out.print(&format!("{block}\n")) {
                tracing::debug!("{error}");
            }
        }
        Ok(Err(error)) => tracing::debug!("the hook did nothing: {error}"),
        // A panic has told of itself already.
        Ok(Ok(_)) | Err(_) => {}
    }
}

fn serve(context: &CommandContext, hook: Hook) -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| Error::io("read", "standard input", error))?;
    let input: Value = serde_json::from_str(&text)
        .map_err(|error| Error::invalid("the hook's input is no JSON").with_source(error))?;
    let given = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or("");
    // An agent runs anywhere: nothing is made in a folder that nobody made a vault of.
    let store = Store::open(Open { existing: true, ..context.open.clone() })?;
    match hook {
        Hook::Recall => {
            let request = RecallRequest {
                prompt: given("prompt").to_owned(),
                patience: Some(PATIENCE),
                budget: Some(BUDGET),
                ..RecallRequest::default()
            };
            let reply = store.recalls().recall(&request)?;
            Ok(xml_block(reply.context.as_ref(), &reply.memories))
        }
        Hook::SessionStart => {
            let (context, _) = fit_budget(BUDGET, ReplyForm::Block, store.memories().context()?, Vec::new());
            Ok(xml_block(context.as_ref(), &[]))
        }
        Hook::Capture | Hook::SessionEnd => {
            let answers = answers(Path::new(given("transcript_path")), hook == Hook::SessionEnd)?;
            store.memory_writes().capture(&answers, given("session_id"))?;
            Ok(String::new())
        }
    }
}

/// Reads what an agent said out of its transcript, one JSON object a line: since the last prompt, or in all.
fn answers(transcript: &Path, all: bool) -> Result<String> {
    let failed = |error| Error::io("read", transcript, error);
    let file = std::fs::File::open(transcript).map_err(failed)?;
    let mut said = String::new();
    for line in BufReader::new(file).split(b'\n') {
        // Other programs write there; a line that is none of ours is passed over.
        let Ok(line) = serde_json::from_slice::<Value>(&line.map_err(failed)?) else { continue };
        let message = line.get("message").unwrap_or(&line);
        let role = message.get("role").or_else(|| line.get("type")).and_then(Value::as_str).unwrap_or("");
        let text = words(message.get("content").unwrap_or(&Value::Null));
        match role {
            "assistant" => {
                said.push_str(&text);
                said.push_str("\n\n");
            }
            // What a tool gives back comes as the user's, too, and has no text.
            "user" if !all && !text.trim().is_empty() => said.clear(),
            _ => {}
        }
    }
    Ok(said)
}

/// Gives the text of a message, which is one text or a list of parts.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("text"));
            let texts: Vec<&str> = texts.filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n\n")
        }
        _ => String::new(),
    }
}
