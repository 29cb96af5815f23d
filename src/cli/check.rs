//! `sidenote check`: finds the problems of a vault and prints them by kind.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use super::args::AtArgs;
use super::{CommandContext, Outcome, output};
use crate::error::Result;
use crate::store::{CheckReply, PROBLEM_CODES, ProblemCode, Severity};

/// Report problems of the vault, such as broken links.
///
/// Problems are broken and ambiguous links, names that differ only in case or accents, duplicate ids and notes, invalid
/// frontmatter, merge conflicts and more; --only lists all kinds. No note is changed. The exit code is 0 even if
/// problems are found; with --strict it is 8 if a problem of that severity or above is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote check
  sidenote check --only broken-link --only broken-subpath
  sidenote check --strict || echo \"the vault has errors\"
  sidenote check --strict=info --json
  sidenote check --at HEAD~1 --only broken-link")]
pub(super) struct CheckArgs {
    /// Update the index, instead of reporting that it is out of date.
    #[arg(long, conflicts_with = "at")]
    fix: bool,
    /// Show only problems with this code; may be repeated.
    #[arg(long, value_name = "CODE", value_parser = code_parser())]
    only: Vec<String>,
    /// Exit with 8 if a problem of this severity or above is found. Without a severity: error.
    #[arg(long, value_enum, value_name = "SEVERITY", num_args = 0..=1, require_equals = true,
          default_missing_value = "error")]
    strict: Option<SeverityArg>,
    #[command(flatten)]
    at: AtArgs,
}

/// The values of `--strict`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SeverityArg {
    /// Something is broken or lost.
    Error,
    /// Something is broken or may be misleading.
    Warning,
    /// Any problem.
    Info,
}

impl From<SeverityArg> for Severity {
    fn from(severity: SeverityArg) -> Self {
        match severity {
            SeverityArg::Error => Self::Error,
            SeverityArg::Warning => Self::Warning,
            SeverityArg::Info => Self::Info,
        }
    }
}

/// Returns a parser that accepts the known codes. `--help` lists them with their meanings.
fn code_parser() -> PossibleValuesParser {
    let value = |known: &ProblemCode| {
        PossibleValue::new(known.code).help(format!("{}: {}", known.severity.name(), known.meaning))
    };
    PossibleValuesParser::new(PROBLEM_CODES.iter().map(value))
}

pub(super) fn run(context: &CommandContext, args: &CheckArgs) -> Result<Outcome> {
    // Without --fix the index is compared with the files and not updated.
    let store = context.store_at(&args.at)?;
    let mut reply = store.upkeep().check(args.fix)?;
    if !args.only.is_empty() {
        reply.problems.retain(|problem| args.only.iter().any(|code| code == problem.code));
    }
    context.out.reply(&reply, show)?;
    let min_severity = args.strict.map(Severity::from);
    let is_found =
        min_severity.is_some_and(|min| reply.problems.iter().any(|problem| problem.severity >= min));
    Ok(if is_found { Outcome::ProblemsFound } else { Outcome::Done })
}

fn show(reply: &CheckReply) -> String {
    let mut text = String::new();
    for problem in &reply.problems {
        let line = if problem.line > 0 { format!(":{}", problem.line) } else { String::new() };
        let (path, message) = (output::plain(&problem.path), output::plain(&problem.message));
        text.push_str(&format!("{path}{line}  {}  {message}\n", problem.code));
    }
    let counts: Vec<String> = reply.counts.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let summary = if counts.is_empty() { "no problems".to_owned() } else { counts.join(", ") };
    let canvases = match reply.canvases {
        0 => String::new(),
        1 => ", 1 canvas".to_owned(),
        count => format!(", {count} canvases"),
    };
    text.push_str(&format!("{}{canvases}: {summary}\n", output::count(reply.notes, "note")));
    if !reply.fixed {
        text.push_str("another process writes the index and has not read every changed file yet\n");
    }
    text
}
