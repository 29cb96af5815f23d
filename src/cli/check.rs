//! `sidenote check`: finds the problems of a vault and prints them by kind.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use super::{CommandContext, Outcome, output};
use crate::error::Result;
use crate::store::{CheckReply, PROBLEM_CODES, ProblemCode, Severity};

/// Look for broken and ambiguous links, clashing names, duplicate ids and notes, broken frontmatter, leftovers of git.
///
/// Reads every note and changes none. The exit code is 0 whatever is found; with --strict it is 8 where a problem of
/// that severity or above is among those shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote check
  sidenote check --only broken-link --only broken-subpath
  sidenote check --strict || echo \"the vault has errors\"
  sidenote check --strict=info --json")]
pub(super) struct CheckArgs {
    /// Bring the index up to date: that it was behind the files is no problem then.
    #[arg(long)]
    fix: bool,
    /// Show problems of this code alone; may be repeated.
    #[arg(long, value_name = "CODE", value_parser = codes())]
    only: Vec<String>,
    /// Exit with 8 where a problem of this severity or above is found; error where no severity is given.
    #[arg(long, value_enum, value_name = "SEVERITY", num_args = 0..=1, require_equals = true,
          default_missing_value = "error")]
    strict: Option<SeverityArg>,
}

/// Severities as the flag spells them.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SeverityArg {
    /// Something is broken or lost.
    Error,
    /// Something may lead somebody astray, or is broken.
    Warning,
    /// Anything at all.
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

/// Accepts the codes that there are; `--help` lists them with what they mean.
fn codes() -> PossibleValuesParser {
    let value = |known: &ProblemCode| {
        PossibleValue::new(known.code).help(format!("{}: {}", known.severity.name(), known.meaning))
    };
    PossibleValuesParser::new(PROBLEM_CODES.iter().map(value))
}

pub(super) fn run(context: &CommandContext, args: &CheckArgs) -> Result<Outcome> {
    // Without --fix the index is compared, not brought up to date.
    let store = context.store()?;
    let mut reply = store.upkeep().check(args.fix)?;
    if !args.only.is_empty() {
        reply.problems.retain(|problem| args.only.iter().any(|code| code == problem.code));
    }
    context.out.reply(&reply, show)?;
    let least = args.strict.map(Severity::from);
    let is_found = least.is_some_and(|least| reply.problems.iter().any(|problem| problem.severity >= least));
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
    text.push_str(&format!("{}: {summary}\n", output::count(reply.notes, "note")));
    if !reply.fixed {
        text.push_str("another process keeps the index, and has not read every file yet\n");
    }
    text
}
