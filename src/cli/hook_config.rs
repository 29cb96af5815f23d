//! Settings by which coding agents run our hooks, printed or merged into the settings file of an agent.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::CommandContext;
use super::args::SettingsFileArgs;
use super::clients::{home_folder, merge_into_file, pretty};
use super::settings_json::SettingsJson;
use crate::error::{Error, Result};
use crate::platform::POSIX_SHELL;

/// A coding agent that runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Agent {
    /// Claude Code: ~/.claude/settings.json.
    ClaudeCode,
    /// Codex: ~/.codex/hooks.json.
    Codex,
    /// Gemini CLI: ~/.gemini/settings.json.
    Gemini,
}

#[derive(Debug, Args)]
pub(super) struct HookConfigArgs {
    /// The coding agent.
    client: Agent,
    #[command(flatten)]
    settings: SettingsFileArgs,
}

impl Agent {
    /// Returns the events of the agent, each with our hook for it.
    fn hooks(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ClaudeCode => &[
                ("SessionStart", "session-start"),
                ("UserPromptSubmit", "recall"),
                ("Stop", "capture"),
                ("SessionEnd", "session-end"),
            ],
            // The end of a session is no event of Codex, and that of Gemini CLI does not say what was answered.
            Self::Codex => {
                &[("SessionStart", "session-start"), ("UserPromptSubmit", "recall"), ("Stop", "capture")]
            }
            Self::Gemini => {
                &[("SessionStart", "session-start"), ("BeforeAgent", "recall"), ("AfterAgent", "capture")]
            }
        }
    }

    /// Returns the flags after the name of a hook. Gemini CLI reads nothing but JSON.
    fn flags(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex => "",
            Self::Gemini => " --json",
        }
    }

    /// Returns the path of the settings file of the agent.
    fn file(self) -> Result<PathBuf> {
        let (folder, file) = match self {
            Self::ClaudeCode => (".claude", "settings.json"),
            Self::Codex => (".codex", "hooks.json"),
            Self::Gemini => (".gemini", "settings.json"),
        };
        Ok(home_folder()?.join(folder).join(file))
    }

    /// Merges our hooks into the text of a settings file. `program` is the program with the vault, for a shell.
    fn merged(self, text: &str, file: &Path, program: &str) -> Result<String> {
        let command = |hook: &str| format!("{program} hook {hook}{}", self.flags());
        if text.trim().is_empty() {
            let entries: Map<String, Value> = self
                .hooks()
                .iter()
                .map(|(event, hook)| {
                    let handler = json!({ "type": "command", "command": command(hook) });
                    ((*event).to_owned(), json!([{ "hooks": [handler] }]))
                })
                .collect();
            return pretty(&json!({ "hooks": entries }));
        }
        let settings = SettingsJson::parse(text, file)?;
        for (event, hook) in self.hooks() {
            // A hook of another vault, or of a program in another folder, is replaced.
            let is_ours = |found: &str| {
                let found = found.trim_end().trim_end_matches(" --json");
                found.contains("sidenote") && found.ends_with(&format!(" hook {hook}"))
            };
            settings.set_hook(event, &command(hook), is_ours)?;
        }
        Ok(settings.text())
    }
}

/// Prints or writes the settings of an agent.
pub(super) fn run(context: &CommandContext, args: &HookConfigArgs) -> Result<()> {
    let program = std::env::current_exe().map_err(|error| Error::io("find", "this program", error))?;
    let vault = super::mcp::absolute_vault(context)?;
    let mut line = vec![shell_word(&program.display().to_string())];
    if let Some(index) = &context.open.index {
        let index = std::path::absolute(index).map_err(|error| Error::io("find", index, error))?;
        line.extend(["--index".to_owned(), shell_word(&index.display().to_string())]);
    }
    line.extend(["--vault".to_owned(), shell_word(&vault.display().to_string())]);
    let line = line.join(" ");
    if !args.settings.write {
        return context.out.print(&args.client.merged("", Path::new("the snippet"), &line)?);
    }
    let file = match &args.settings.file {
        Some(file) => file.clone(),
        None => args.client.file()?,
    };
    let reply =
        merge_into_file(file, args.settings.dry_run, |text, file| args.client.merged(text, file, &line))?;
    context.out.reply(&reply, |reply| reply.to_string())
}

/// Quotes a word for the shell with which agents start hooks.
fn shell_word(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c) || (!POSIX_SHELL && c == '\\');
    match word {
        _ if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        _ if !POSIX_SHELL => format!("\"{word}\""),
        _ => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
