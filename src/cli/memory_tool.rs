//! `sidenote memory-tool`: the memory tool of the Claude API, over lines of JSON.

use std::io::BufRead as _;
use std::path::Path;

use clap::Args;
use sidenote_base::error::{Error, Result};

use super::CommandContext;
use super::args::DryRunArgs;
use crate::compat::answer_line;

/// Answer commands of the memory tool of the Claude API, one a line as JSON.
///
/// Each line of standard input is the input of the tool `memory_20250818`, such as {"command": "view", "path":
/// "/memories"}. The answer is a line {"content": TEXT} or {"error": TEXT}. The paths below /memories are the files of the
/// folder of memories; a file may be of any type of text, and what is deleted goes to the trash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote --vault ~/notes memory-tool
  sidenote memory-tool --folder Agents/Claude < commands.jsonl")]
pub(super) struct MemoryToolArgs {
    /// The folder that is /memories. Default: memory.folder.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &MemoryToolArgs) -> Result<()> {
    let store = context.store()?;
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.map_err(|error| Error::io("read", Path::new("standard input"), error))?;
        // What is not UTF-8 is no command, and the next line may be one.
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            continue;
        }
        let answer = answer_line(&store, args.folder.as_deref(), &line, args.dry_run.is_set());
        if !context.out.print_until_closed(&format!("{answer}\n"))? {
            break;
        }
    }
    Ok(())
}
