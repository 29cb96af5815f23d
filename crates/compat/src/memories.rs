//! The toolset `memories` (docs/spec/toolsets.md): the memory tool of the Claude API as one tool. Its arguments, and the lines of
//! `sidenote memory-tool`; the service `memory_tool` of the store does the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sidenote_base::error::{Error, Result};
use sidenote_mcp::tool::{Answer, Effect, Tool, to_json};
use sidenote_store::{MemoryCommand, Store};

#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CommandInput {
    View,
    Create,
    StrReplace,
    Insert,
    Delete,
    Rename,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct MemoryInput {
    /// What to do: view a file or folder, create a file, `str_replace` or insert text in it, delete it, or rename it.
    command: CommandInput,
    /// The path, which begins with /memories. All commands but rename need it.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// view: the first and last line of a file; -1 is its last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    view_range: Option<Vec<i64>>,
    /// create: the text of the new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-empty-counts" = true))]
    file_text: Option<String>,
    /// `str_replace`: the text to replace, which must occur once.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_str: Option<String>,
    /// `str_replace`: the new text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-empty-counts" = true))]
    new_str: Option<String>,
    /// insert: the line behind which the text is inserted; 0 is the beginning of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_line: Option<i64>,
    /// insert: the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-empty-counts" = true))]
    insert_text: Option<String>,
    /// rename: the present path.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_path: Option<String>,
    /// rename: the new path.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path: Option<String>,
}

/// Returns the tools of the toolset.
pub(crate) fn tools() -> Vec<Tool> {
    vec![Tool::new(
        "memory",
        Effect::Destructive,
        "Read and keep memories as files below /memories: view the folder before a task, and write down what later tasks need.",
        r#"{"command": "view", "path": "/memories"}"#,
        memory,
    )]
}

fn memory(store: &Store, input: MemoryInput) -> Result<Answer> {
    let command = parse(to_json(&input)?)?;
    store.memory_tool().run(None, command, false).map(Answer::text)
}

fn parse(command: Value) -> Result<MemoryCommand> {
    serde_json::from_value(command).map_err(|error| {
        Error::invalid(format!("this is no command of the memory tool: {error}")).with_hint(
            "Give the command and its arguments, such as {\"command\": \"view\", \"path\": \"/memories\"}",
        )
    })
}

/// Carries out a command, given as JSON, on the files of a folder, or of that of the settings. Returns `{"content": …}` or
/// `{"error": …}`.
pub fn answer_line(store: &Store, folder: Option<&str>, line: &str, dry_run: bool) -> Value {
    let command =
        serde_json::from_str(line).map_err(|error| Error::invalid(format!("this is no JSON: {error}")));
    match command.and_then(parse).and_then(|command| store.memory_tool().run(folder, command, dry_run)) {
        Ok(content) => json!({ "content": content }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}
