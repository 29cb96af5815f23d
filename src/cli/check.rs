//! `sidenote check`: what is wrong with a vault, by kind of problem.

use clap::Args;

use super::{Session, output};
use crate::error::Result;
use crate::store::CheckReply;

/// Look for broken and ambiguous links, clashing names, duplicate ids and notes, broken frontmatter, leftovers of git.
///
/// Reads every note and changes none.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Mend the index: that it was behind the files is no problem then.
    #[arg(long)]
    fix: bool,
    /// Show problems of this code alone; may be repeated.
    #[arg(long, value_name = "CODE")]
    only: Vec<String>,
}

pub(super) fn run(session: &Session, args: &CheckArgs) -> Result<()> {
    // Without --fix the index is compared, not mended.
    let store = session.store()?;
    let mut reply = store.check(args.fix)?;
    if !args.only.is_empty() {
        reply.problems.retain(|problem| args.only.iter().any(|code| code == problem.code));
    }
    session.out.reply(&reply, show)
}

fn show(reply: &CheckReply) -> String {
    let mut text = String::new();
    for problem in &reply.problems {
        let line = if problem.line > 0 { format!(":{}", problem.line) } else { String::new() };
        let (path, message) = (output::plain(&problem.path), output::plain(&problem.message));
        text.push_str(&format!("{path}{line}  {}  {message}\n", problem.code));
    }
    let counts: Vec<String> = reply.counts.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let summary = if counts.is_empty() { "nothing to complain of".to_owned() } else { counts.join(", ") };
    text.push_str(&format!("{} notes: {summary}\n", reply.notes));
    if !reply.fixed {
        text.push_str("another process keeps the index, and has not read every file yet\n");
    }
    text
}
