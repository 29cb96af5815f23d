//! `sidenote git`: prepares the git repository of a vault.

use clap::{Args, Subcommand};
use sidenote_base::error::Result;
use sidenote_vault::Vault;

use super::{CommandContext, output};
use crate::store::{
    Baseline, CheckReply, CheckRequest, GitInitReply, GitInitRequest, GitInitState, Store, prepare_repository,
};

/// Prepare the git repository that the vault is in.
#[derive(Debug, Args)]
pub(super) struct GitArgs {
    #[command(subcommand)]
    command: GitCommand,
}

#[derive(Debug, Subcommand)]
enum GitCommand {
    Init(GitInitArgs),
}

/// Write the ignore files of .sidenote/, and what else is asked for.
///
/// Lines and settings are added, and none is replaced. Where something else is set already, it is left as it is, and the
/// lines to add by hand are printed. A second run changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote git init --attributes --driver
  sidenote git init --attributes --driver --hook --dry-run")]
struct GitInitArgs {
    /// Add lines to .gitattributes: notes are merged by the driver, the journal by lines. Without the driver, git merges
    /// notes as before.
    #[arg(long)]
    attributes: bool,
    /// Set the merge driver in the settings of this clone (merge.sidenote).
    #[arg(long)]
    driver: bool,
    /// Add a pre-commit hook that refuses new errors in what a commit changes. The problems of today are recorded in
    /// .sidenote/check-baseline.json, and pass. An existing hook is left as it is.
    #[arg(long)]
    hook: bool,
    /// Write nothing; print what would be added.
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(context: &CommandContext, args: GitArgs) -> Result<()> {
    let GitCommand::Init(args) = args.command;
    let root = context.location()?.root;
    let GitInitArgs { attributes, driver, hook, dry_run } = args;
    let vault = Vault::open(&root)?;
    let problems = |check: CheckReply| Baseline::of(&check.problems);
    let check = || Store::check_without_index(&context.open, &CheckRequest::default()).map(problems);
    let hook = hook.then(check).transpose()?;
    let request = GitInitRequest { attributes, driver, hook, dry_run };
    let reply = prepare_repository(&vault, &request)?;
    context.out.reply(&reply, |reply| show(reply, dry_run))
}

fn show(reply: &GitInitReply, dry_run: bool) -> String {
    let mut text = String::new();
    for step in &reply.steps {
        let word = match step.state {
            GitInitState::Add if dry_run => "would add to",
            GitInitState::Add => "added to",
            GitInitState::Present => "present in",
            GitInitState::Left => "left",
        };
        let reason = step.reason.as_deref().map(|reason| format!(" ({})", output::plain(reason)));
        text.push_str(&format!("{word} {}{}:\n", output::plain(&step.target), reason.unwrap_or_default()));
        for line in &step.lines {
            text.push_str(&format!("  {}\n", output::plain(line)));
        }
    }
    text
}
