//! `sidenote hook`: the hooks of coding agents. A hook never blocks its agent: on any error nothing is printed and the exit
//! code is 0.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use sidenote_base::error::Result;
use sidenote_config::AgentRule;

use super::CommandContext;
use super::hook_config::{self, HookConfigArgs};
use super::hook_input::{Dialect, HookInput};
use crate::store::agents::Agents;
use crate::store::{Open, RecallBudget, RecallReply, RecallRequest, Store, text_to_embed_for, xml_block};

/// Run a hook of a coding agent.
///
/// The JSON input of the hook is read from standard input. If the vault has no index yet, or on any error, nothing is printed and the exit code is 0. Cursor is known by its input and gets the JSON that it reads. With --json, what a hook says is printed as the JSON of `additionalContext`. `sidenote hook config CLIENT` prints the settings with which an agent runs the hooks.
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
    let input = HookInput::read(std::io::stdin())?;
    // What an agent does not give to its model is not recalled, because a recall counts as a use.
    if input.dialect() == Dialect::Windsurf && matches!(hook, Hook::Recall | Hook::SessionStart) {
        return Ok(String::new());
    }
    // Agents run in any folder: in one that is not a vault yet, nothing is created.
    let said = SaidForm {
        dialect: input.dialect(),
        event: input.event().to_owned(),
        is_json: context.out.is_json(),
    };
    // What was recalled is remembered for each conversation.
    let session = Some(input.session().to_owned()).filter(|_| hook == Hook::Recall);
    let agent = Some("hook".to_owned());
    let first_query = Some(input.prompt()).filter(|_| hook == Hook::Recall).and_then(text_to_embed_for);
    let open = Open { existing: true, agent, session, first_query, ..context.open.clone() };
    let agents = Agents::new(Store::open(open.clone())?, open, AgentRule::default())?.for_hooks();
    let store = agents.serve(agents.owner(), &input.agent_names())?;
    match hook {
        Hook::Recall => {
            // The line end counts, too.
            let form = said.clone();
            let request = RecallRequest {
                prompt: input.prompt().to_owned(),
                wait_limit: Some(SYNC_TIMEOUT),
                only_new: true,
                budget: Some(RecallBudget::new(BUDGET, move |reply| form.of(reply) + "\n")),
                ..RecallRequest::default()
            };
            Ok(said.of(&store.recalls().recall(&request)?))
        }
        Hook::SessionStart => {
            let reply = RecallReply { context: store.memories().context()?, ..RecallReply::default() };
            let form = said.clone();
            Ok(said.of(&RecallBudget::new(BUDGET, move |reply| form.of(reply) + "\n").fit(reply)))
        }
        Hook::Capture | Hook::SessionEnd => {
            let answers = input.answers(hook == Hook::SessionEnd)?;
            store.memory_writes().capture(&answers, input.session())?;
            Ok(String::new())
        }
    }
}

/// The form in which an agent reads what a hook says. Some read text after some events and JSON after others; with --json it is
/// JSON after all.
#[derive(Debug, Clone)]
struct SaidForm {
    dialect: Dialect,
    event: String,
    is_json: bool,
}

impl SaidForm {
    /// Returns the output for a recall; none if it is empty.
    fn of(&self, reply: &RecallReply) -> String {
        let block = xml_block(reply.context.as_ref(), &reply.memories);
        if block.is_empty() {
            return block;
        }
        match self.dialect {
            Dialect::Cursor => json!({ "continue": true, "additional_context": block }).to_string(),
            _ if self.is_json => {
                let output = json!({ "hookEventName": self.event, "additionalContext": block });
                json!({ "hookSpecificOutput": output }).to_string()
            }
            _ => block,
        }
    }
}
