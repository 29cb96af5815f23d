//! Settings by which coding agents run our hooks, printed or merged into the settings file of an agent.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use sidenote_base::error::{Error, Result};
use sidenote_base::platform::Shell;

use super::CommandContext;
use super::args::SettingsFileArgs;
use super::clients::{home_folder, merge_into_file, pretty};
use super::settings_json::{HookShape, SettingsJson};

/// A coding agent that runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Agent {
    /// Claude Code: ~/.claude/settings.json.
    ClaudeCode,
    /// Codex: ~/.codex/hooks.json.
    Codex,
    /// Gemini CLI: ~/.gemini/settings.json.
    Gemini,
    /// Cursor: ~/.cursor/hooks.json.
    Cursor,
    /// Windsurf: ~/.codeium/windsurf/hooks.json.
    Windsurf,
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
            Self::ClaudeCode | Self::Codex => &[
                ("SessionStart", "session-start"),
                ("UserPromptSubmit", "recall"),
                ("Stop", "capture"),
                ("SessionEnd", "session-end"),
            ],
            // The end of a session of Gemini CLI does not say what was answered.
            Self::Gemini => {
                &[("SessionStart", "session-start"), ("BeforeAgent", "recall"), ("AfterAgent", "capture")]
            }
            Self::Cursor => &[
                ("sessionStart", "session-start"),
                ("beforeSubmitPrompt", "recall"),
                ("afterAgentResponse", "capture"),
                ("sessionEnd", "session-end"),
            ],
            // No event of Windsurf adds text to a conversation.
            Self::Windsurf => &[("post_cascade_response", "capture")],
        }
    }

    /// Returns how the settings of the agent list hooks.
    fn shape(self) -> HookShape {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => HookShape::Grouped,
            Self::Cursor | Self::Windsurf => HookShape::Flat,
        }
    }

    /// Returns the version of the format that the settings of the agent have to name.
    fn version(self) -> Option<u32> {
        (self == Self::Cursor).then_some(1)
    }

    /// Returns the flags after the name of a hook. Gemini CLI reads only JSON.
    fn flags(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Cursor | Self::Windsurf => "",
            Self::Gemini => " --json",
        }
    }

    /// Returns the path of the settings file of the agent.
    fn file(self) -> Result<PathBuf> {
        let (folder, file) = match self {
            Self::ClaudeCode => (Path::new(".claude").to_owned(), "settings.json"),
            Self::Codex => (Path::new(".codex").to_owned(), "hooks.json"),
            Self::Gemini => (Path::new(".gemini").to_owned(), "settings.json"),
            Self::Cursor => (Path::new(".cursor").to_owned(), "hooks.json"),
            Self::Windsurf => (Path::new(".codeium").join("windsurf"), "hooks.json"),
        };
        Ok(home_folder()?.join(folder).join(file))
    }

    /// Returns the shell with which the agent starts a hook.
    fn shell(self) -> Shell {
        match (self, Shell::SYSTEM) {
            // Cursor uses PowerShell on Windows.
            (Self::Cursor, Shell::Cmd) => Shell::PowerShell,
            (_, shell) => shell,
        }
    }

    /// Merges our hooks into the text of a settings file. `program` is the program with the vault, for a shell.
    fn merged(self, text: &str, file: &Path, program: &str) -> Result<String> {
        let command = |hook: &str| format!("{program} hook {hook}{}", self.flags());
        if text.trim().is_empty() {
            let entries: Map<String, Value> = self
                .hooks()
                .iter()
                .map(|(event, hook)| ((*event).to_owned(), json!([self.shape().entry(&command(hook))])))
                .collect();
            return pretty(&match self.version() {
                Some(version) => json!({ "version": version, "hooks": entries }),
                None => json!({ "hooks": entries }),
            });
        }
        let settings = SettingsJson::parse(text, file)?;
        if let Some(version) = self.version() {
            settings.set_missing("version", &json!(version))?;
        }
        for (event, hook) in self.hooks() {
            // A hook of another vault, or of a program in another folder, is replaced.
            let is_ours = |found: &str| {
                let found = found.trim_end().trim_end_matches(" --json");
                found.contains("sidenote") && found.ends_with(&format!(" hook {hook}"))
            };
            settings.set_hook(self.shape(), event, &command(hook), is_ours)?;
        }
        Ok(settings.text())
    }
}

/// Prints or writes the settings of an agent.
pub(super) fn run(context: &CommandContext, args: &HookConfigArgs) -> Result<()> {
    let program = std::env::current_exe().map_err(|error| Error::io("find", "this program", error))?;
    let vault = super::mcp::absolute_vault(context)?;
    let mut words = vec![program.display().to_string()];
    if let Some(index) = &context.open.index {
        let index = std::path::absolute(index).map_err(|error| Error::io("find", index, error))?;
        words.extend(["--index".to_owned(), index.display().to_string()]);
    }
    words.extend(["--vault".to_owned(), vault.display().to_string()]);
    let line = args.client.shell().line(&words);
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
