//! `sidenote doctor`: examines installation, vault, index and settings of clients, and prints a line for each finding.

use clap::Args;
use console::style;
use sidenote_base::error::Result;

use super::terminal::wrapped_cell;
use super::{CommandContext, Outcome, client_check, output, reach_check};
use crate::store::{Diagnosis, Finding, Level};

/// Examine the installation, the vault, its index and the settings of MCP clients.
///
/// Each finding is one line with a level: ok, note, warning or problem. A second line says what to do. Nothing is written
/// and no network is used but for --reach; checksums of the whole index are compared. The exit code is 8 if a problem was found.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote doctor
  sidenote --vault ~/notes doctor
  sidenote doctor --reach https://notes.example/mcp
  sidenote doctor --json")]
pub(super) struct DoctorArgs {
    /// Also examine whether clients elsewhere can log in at this address of a server of `sidenote mcp --http --login`, such as
    /// https://notes.example/mcp. It is asked over the network.
    #[arg(long, value_name = "URL")]
    reach: Option<String>,
}

pub(super) fn run(context: &CommandContext, args: &DoctorArgs) -> Result<Outcome> {
    let mut diagnosis = Diagnosis::of(&context.open);
    for finding in client_check::findings() {
        diagnosis.add(finding);
    }
    if let Some(address) = &args.reach {
        for finding in reach_check::findings(address)? {
            diagnosis.add(finding);
        }
    }
    context.out.reply(&diagnosis, show)?;
    let has_problem = diagnosis.worst() == Level::Problem;
    Ok(if has_problem { Outcome::ProblemsFound } else { Outcome::Done })
}

/// Returns the name of a level, padded and coloured.
fn label(level: Level) -> String {
    match level {
        Level::Ok => style("ok     ").green(),
        Level::Note => style("note   ").cyan(),
        Level::Warning => style("warning").yellow(),
        Level::Problem => style("problem").red().bold(),
    }
    .to_string()
}

fn show(diagnosis: &Diagnosis) -> String {
    /// The width of a level and of the gaps beside a name.
    const AROUND: usize = 11;
    const ARROW: &str = "-> ";
    let width = diagnosis.findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let start = width + AROUND;
    let mut text = String::new();
    for Finding { check, level, state, advice } in &diagnosis.findings {
        let state = wrapped_cell(&output::plain(state), start);
        text.push_str(&format!("{}  {check:width$}  {state}\n", label(*level)));
        if let Some(advice) = advice {
            let advice = wrapped_cell(&output::plain(advice.for_person()), start + ARROW.len());
            text.push_str(&format!("{:start$}{ARROW}{advice}\n", ""));
        }
    }
    let count = |level: Level, what: &str| {
        let number = diagnosis.findings.iter().filter(|finding| finding.level == level).count();
        output::count(number, what)
    };
    text.push_str(&format!("{}, {}\n", count(Level::Problem, "problem"), count(Level::Warning, "warning")));
    text
}
