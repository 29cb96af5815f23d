//! `sidenote memory consolidate`: makes proposals of what keeps memories from being useful.

use clap::Args;
use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_mcp::consolidation_prompt;

use crate::cli::args::DryRunArgs;
use crate::cli::{CommandContext, output};
use crate::store::{ConsolidateReply, ConsolidateRequest, ProposalItem, ProposalKind};

/// Find duplicates, replaced facts and other faults, and propose what to do.
///
/// No note is changed. Each finding becomes a proposal, which `sidenote proposals` lists and `proposals accept` applies.
/// What was proposed before does not come back unless a note of it changes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote memory consolidate
  sidenote memory consolidate --kind duplicate --kind superseded --dry-run
  sidenote memory consolidate --folder Memories --json
  claude -p \"$(sidenote memory consolidate --agent)\"")]
pub(in crate::cli) struct ConsolidateArgs {
    /// Only look for this kind: duplicate, superseded, contradiction, handoffs, stale, unclear, cluster, missing-link or
    /// dead-link.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only compare the notes of this folder.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,
    /// Print the prompt with which an agent that has the tool `proposals` words the merges that wait.
    #[arg(long, conflicts_with = "dry_run")]
    agent: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// What an agent is asked to do.
#[derive(Debug, Serialize)]
struct AgentReply {
    /// The prompt.
    prompt: String,
    /// The number of proposals that wait.
    waiting: usize,
}

pub(super) fn run(context: &CommandContext, args: ConsolidateArgs) -> Result<()> {
    let kinds = args.kind.iter().map(|name| ProposalKind::parse(name)).collect::<Result<Vec<_>>>()?;
    let request = ConsolidateRequest { kinds, folder: args.folder, dry_run: args.dry_run.is_set() };
    let store = context.fresh_store()?;
    let reply = store.proposals().consolidate(&request)?;
    if !context.out.is_json() {
        for notice in &reply.notices {
            context.out.message(&format!("notice: {}", output::plain(notice)));
        }
    }
    if args.agent {
        let reply = AgentReply { prompt: consolidation_prompt(&store)?, waiting: reply.waiting };
        return context.out.reply(&reply, |reply| reply.prompt.clone() + "\n");
    }
    context.out.reply(&reply, |reply| show(reply, request.dry_run))
}

fn show(reply: &ConsolidateReply, is_dry: bool) -> String {
    let row = |item: &ProposalItem| vec![item.id.clone(), item.kind.name().to_owned(), item.reason.clone()];
    let mut out = output::columns(&reply.proposals.iter().map(row).collect::<Vec<_>>());
    let verb = if is_dry { "would be new" } else { "new" };
    out.push_str(&format!(
        "{} compared: {} {verb}, {} known",
        output::count(reply.notes, "note"),
        output::count(reply.proposals.len(), "proposal"),
        reply.known
    ));
    if !reply.outdated.is_empty() {
        out.push_str(&format!(", {} outdated", reply.outdated.len()));
    }
    if reply.later > 0 {
        out.push_str(&format!(", {} after the decision of others", reply.later));
    }
    out + "\n"
}
