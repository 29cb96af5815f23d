//! `sidenote hook`: the hooks of coding agents. A hook never blocks its agent: on any error nothing is printed and the exit
//! code is 0.

use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::CommandContext;
use super::hook_config::{self, HookConfigArgs};
use crate::error::{Error, Result};
use crate::store::{Open, RecallRequest, ReplyForm, Store, fit_budget, xml_block};

/// Run a hook of a coding agent.
///
/// The JSON input of the hook is read from standard input. If the vault has no index yet, or on any error, nothing is printed and the exit code is 0. With --json, what a hook says is printed as the JSON of `additionalContext`. `sidenote hook config CLIENT` prints the settings with which an agent runs the hooks.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = SETTINGS)]
pub(super) struct HookArgs {
    #[command(subcommand)]
    action: Option<HookAction>,
    /// The hook.
    #[arg(value_enum, required = true)]
    hook: Option<Hook>,
}

#[derive(Debug, Subcommand)]
enum HookAction {
    /// Print the settings with which a coding agent runs the hooks, or write them.
    Config(HookConfigArgs),
}

/// The settings of an agent. Lines are short, because help is wrapped at the width of the terminal and JSON must not be.
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
    /// UserPromptSubmit: print the memories that are relevant to the prompt.
    Recall,
    /// Stop: save the most important statements of the answer to the last prompt.
    Capture,
    /// SessionStart: print the work context.
    SessionStart,
    /// SessionEnd: save the most important statements of the whole conversation.
    SessionEnd,
}

/// The maximum size of a recalled block, in tokens.
const BUDGET: usize = 1500;
/// The maximum time that a prompt waits for an update of the index.
const SYNC_TIMEOUT: Duration = Duration::from_millis(150);
/// The maximum length of the JSON input, in bytes.
const MAX_INPUT_BYTES: u64 = 16 << 20;

pub(super) fn run(context: &CommandContext, args: &HookArgs) -> Result<()> {
    match (&args.action, args.hook) {
        (Some(HookAction::Config(args)), _) => return hook_config::run(context, args),
        (None, Some(hook)) => run_hook(context, hook),
        // The parser requires one of the two.
        (None, None) => {}
    }
    Ok(())
}

/// Runs a hook. Whatever fails is logged only.
fn run_hook(context: &CommandContext, hook: Hook) {
    let result = catch_unwind(AssertUnwindSafe(|| serve(context, hook)));
    match result {
        Ok(Ok(block)) if !block.is_empty() => {
            if let Err(error) = context.out.print(&format!("{block}\n")) {
                tracing::debug!("{error}");
            }
        }
        Ok(Err(error)) => tracing::debug!("the hook did nothing: {error}"),
        // The panic handler has printed the panic already.
        Ok(Ok(_)) | Err(_) => {}
    }
}

fn serve(context: &CommandContext, hook: Hook) -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text);
    read.map_err(|error| Error::io("read", "standard input", error))?;
    let input: Value = serde_json::from_str(&text)
        .map_err(|error| Error::invalid("the input of the hook is not JSON").with_source(error))?;
    let field = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or("");
    // The agent reads plain text after some events and JSON after others; with --json it is JSON after all.
    let block = |block: String| {
        if !context.out.is_json() || block.is_empty() {
            return block;
        }
        let output = json!({ "hookEventName": field("hook_event_name"), "additionalContext": block });
        json!({ "hookSpecificOutput": output }).to_string()
    };
    // Agents run in any folder: in one that is not a vault yet, nothing is created.
    let store = Store::open(Open { existing: true, ..context.open.clone() })?;
    match hook {
        Hook::Recall => {
            let request = RecallRequest {
                prompt: field("prompt").to_owned(),
                patience: Some(SYNC_TIMEOUT),
                budget: Some(BUDGET),
                ..RecallRequest::default()
            };
            let reply = store.recalls().recall(&request)?;
            Ok(block(xml_block(reply.context.as_ref(), &reply.memories)))
        }
        Hook::SessionStart => {
            let (work_context, _) =
                fit_budget(BUDGET, ReplyForm::Block, store.memories().context()?, Vec::new());
            Ok(block(xml_block(work_context.as_ref(), &[])))
        }
        Hook::Capture | Hook::SessionEnd => {
            let read = answers(Path::new(field("transcript_path")), hook == Hook::SessionEnd);
            // Codex and Gemini CLI have transcripts of another form, and say the last answer in the input.
            let last = [field("last_assistant_message"), field("prompt_response")];
            let last = last.into_iter().find(|text| !text.is_empty());
            let answers = match (read, last) {
                (Ok(text), _) if !text.trim().is_empty() => text,
                (_, Some(last)) => last.to_owned(),
                (read, None) => read?,
            };
            store.memory_writes().capture(&answers, field("session_id"))?;
            Ok(String::new())
        }
    }
}

/// Reads the answers of an agent from its transcript, one JSON object a line: those since the last prompt, or all.
fn answers(transcript: &Path, all: bool) -> Result<String> {
    let failed = |error| Error::io("read", transcript, error);
    let file = std::fs::File::open(transcript).map_err(failed)?;
    let mut answers = String::new();
    for line in BufReader::new(file).split(b'\n') {
        // Other programs may write to the transcript; lines that are not JSON are skipped.
        let Ok(line) = serde_json::from_slice::<Value>(&line.map_err(failed)?) else { continue };
        let message = line.get("message").unwrap_or(&line);
        let role = message.get("role").or_else(|| line.get("type")).and_then(Value::as_str).unwrap_or("");
        let text = text_of(message.get("content").unwrap_or(&Value::Null));
        match role {
            "assistant" => {
                answers.push_str(&text);
                answers.push_str("\n\n");
            }
            // The result of a tool has the role of the user, too, but no text.
            "user" if !all && !text.trim().is_empty() => answers.clear(),
            _ => {}
        }
    }
    Ok(answers)
}

/// Returns the text of a message, which is one text or a list of parts.
fn text_of(content: &Value) -> String {
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
