//! `sidenote proposals`: lists, shows, accepts, rejects and edits changes that wait for a person.

use clap::{Args, Subcommand};
use serde::Serialize;
use sidenote_base::error::{Error, Result};

use super::args::{DryRunArgs, text_or_stdin};
use super::change::{coloured, print_remarks, show_change};
use super::{CommandContext, output};
use crate::store::{
    AcceptedProposals, ProposalItem, ProposalKind, ProposalReply, ProposalState, ProposalsReply,
    ProposalsRequest, RefusedProposal, Store,
};

/// List, show, accept and reject changes that wait for you.
///
/// A proposal is a planned change with a reason, which nothing applies but `proposals accept`. Agents make them with the
/// argument `propose`, and `memory consolidate` finds them. Without a command, those that wait are listed.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  sidenote proposals
  sidenote proposals show 3fa9
  sidenote proposals accept 3fa9 81c0
  sidenote proposals accept --all --kind duplicate --dry-run
  sidenote proposals reject 77aa"
)]
pub(super) struct ProposalsArgs {
    #[command(subcommand)]
    action: Option<ProposalsAction>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum ProposalsAction {
    List(ListArgs),
    /// Show a proposal: its reason, its sources and its diff.
    Show(ShowArgs),
    Accept(AcceptArgs),
    Reject(RejectArgs),
    Reopen(ReopenArgs),
    Edit(EditArgs),
}

/// List proposals, the oldest first.
#[derive(Debug, Args)]
struct ListArgs {
    /// Only those of this kind, such as duplicate.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Also list those that were accepted or rejected.
    #[arg(long)]
    decided: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The id of the proposal, or the beginning of it.
    id: String,
}

/// Apply proposals, each as one operation that undo takes back.
///
/// A proposal is refused if one of its sources changed since.
#[derive(Debug, Args)]
struct AcceptArgs {
    /// The ids of the proposals, or the beginnings of them.
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// Accept all that wait.
    #[arg(long)]
    all: bool,
    /// With --all, only those of this kind.
    #[arg(long, value_name = "KIND", requires = "all")]
    kind: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Reject proposals. They do not come back unless a source changes.
#[derive(Debug, Args)]
struct RejectArgs {
    /// The ids of the proposals, or the beginnings of them.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Let proposals that were rejected wait again.
#[derive(Debug, Args)]
struct ReopenArgs {
    /// The ids of the proposals, or the beginnings of them; `proposals --decided` lists them.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// Replace the text that a proposal gives to a file.
///
/// The numbers, names and dates of the sources that the new text leaves out are listed.
#[derive(Debug, Args)]
struct EditArgs {
    /// The id of the proposal, or the beginning of it.
    id: String,
    /// The whole new text of the file, properties included; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The path of the file, if the proposal writes several.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// The reply of `proposals reject`.
#[derive(Debug, Serialize)]
struct RejectReply {
    /// The proposals that were rejected, or would be.
    rejected: Vec<ProposalItem>,
    /// Those that were not, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<RefusedProposal>,
}

/// The reply of `proposals reopen`.
#[derive(Debug, Serialize)]
struct ReopenReply {
    /// The proposals that wait again, or would.
    reopened: Vec<ProposalItem>,
    /// Those that do not, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<RefusedProposal>,
}

pub(super) fn run(context: &CommandContext, args: &ProposalsArgs) -> Result<()> {
    match &args.action {
        None => list(context, &args.list),
        Some(ProposalsAction::List(args)) => list(context, args),
        Some(ProposalsAction::Show(args)) => {
            context.out.reply(&context.store()?.proposals().show(&args.id)?, show_proposal)
        }
        Some(ProposalsAction::Accept(args)) => accept(context, args),
        Some(ProposalsAction::Reject(args)) => reject(context, args),
        Some(ProposalsAction::Reopen(args)) => reopen(context, args),
        Some(ProposalsAction::Edit(args)) => {
            let (text, is_dry) = (text_or_stdin(&args.text)?, args.dry_run.is_set());
            let store = context.fresh_store()?;
            let reply = store.proposals().edit(&args.id, args.file.as_deref(), &text, &[], is_dry)?;
            context.out.reply(&reply, show_proposal)
        }
    }
}

fn kind_of(name: Option<&str>) -> Result<Option<ProposalKind>> {
    name.map(ProposalKind::parse).transpose()
}

fn list(context: &CommandContext, args: &ListArgs) -> Result<()> {
    let request = ProposalsRequest { kind: kind_of(args.kind.as_deref())?, all: args.decided };
    let reply = context.store()?.proposals().list(request)?;
    if !context.out.is_json() {
        reply.damaged.iter().for_each(|line| context.out.message(&format!("warning: {line}")));
    }
    context.out.reply(&reply, show_list)
}

fn show_list(reply: &ProposalsReply) -> String {
    if reply.proposals.is_empty() {
        return "no proposal waits\n".to_owned();
    }
    let row = |item: &ProposalItem| {
        let state = match item.state {
            ProposalState::Waiting if item.is_outdated() => "outdated",
            ProposalState::Waiting => "",
            ProposalState::Accepted | ProposalState::Rejected => item.state.name(),
        };
        vec![item.id.clone(), item.kind.name().to_owned(), state.to_owned(), item.reason.clone()]
    };
    let mut out = output::columns(&reply.proposals.iter().map(row).collect::<Vec<_>>());
    let listed = output::count(reply.proposals.len(), "proposal");
    out.push_str(&format!("{listed} listed, {} waiting\n", reply.waiting));
    out
}

/// Formats a proposal with its diff.
pub(super) fn show_proposal(reply: &ProposalReply) -> String {
    let proposal = &reply.proposal;
    let mut out = format!(
        "{}  {}  {}\n{}\nproposed by {} on {}\n",
        proposal.id,
        proposal.kind.name(),
        proposal.state.name(),
        output::plain(&proposal.reason),
        output::plain(&proposal.author),
        proposal.created.local_rfc3339()
    );
    for evidence in &proposal.evidence {
        out.push_str(&format!("\n{}\n", output::plain(&evidence.path)));
        for line in evidence.text.lines() {
            out.push_str(&format!("    {}\n", output::plain(line)));
        }
    }
    if !reply.changed.is_empty() {
        let changed = output::plain(&reply.changed.join(", "));
        out.push_str(&format!("\nchanged since, so that it cannot be accepted: {changed}\n"));
    }
    if !proposal.left_out.is_empty() {
        out.push_str(&format!("\nleft out: {}\n", output::plain(&proposal.left_out.join(", "))));
    }
    for remark in &proposal.plan.remarks {
        out.push_str(&format!("\n{}\n", output::plain(&remark.to_string())));
    }
    out.push('\n');
    out + &coloured(&proposal.diff)
}

fn accept(context: &CommandContext, args: &AcceptArgs) -> Result<()> {
    let kind = kind_of(args.kind.as_deref())?;
    let store = context.fresh_store()?;
    let is_dry = args.dry_run.is_set();
    let reply = match args.ids.as_slice() {
        [] => store.proposals().accept_all(kind, is_dry)?,
        [id] => {
            let accepted = vec![store.proposals().accept(id, is_dry)?];
            AcceptedProposals { accepted, ..AcceptedProposals::default() }
        }
        ids => accept_each(&store, ids, is_dry),
    };
    for accepted in &reply.accepted {
        print_remarks(context, &accepted.change);
    }
    context.out.reply(&reply, |reply| show_accepted(reply, is_dry))?;
    fail_if_refused(&reply.refused, "accepted")
}

/// Fails like the worst of several proposals that were refused, after all were reported.
fn fail_if_refused(refused: &[RefusedProposal], verb: &str) -> Result<()> {
    match refused.iter().map(|refused| refused.failure).max_by_key(|failure| super::exit_code(*failure)) {
        Some(failure) => {
            Err(Error::new(failure, format!("{} not {verb}", output::count(refused.len(), "proposal"))))
        }
        None => Ok(()),
    }
}

fn accept_each(store: &Store, ids: &[String], is_dry: bool) -> AcceptedProposals {
    let mut reply = AcceptedProposals::default();
    for id in ids {
        match store.proposals().accept(id, is_dry) {
            Ok(accepted) => reply.accepted.push(accepted),
            Err(error) => reply.refused.push(RefusedProposal::of(id.clone(), &error)),
        }
    }
    reply
}

fn show_accepted(reply: &AcceptedProposals, is_dry: bool) -> String {
    let mut out = String::new();
    for accepted in &reply.accepted {
        out.push_str(&show_change(&accepted.change));
    }
    for refused in &reply.refused {
        out.push_str(&format!("{} was not accepted: {}\n", refused.id, output::plain(&refused.reason)));
    }
    if !reply.contradictions.is_empty() {
        out.push_str(&format!(
            "left out, because you say which note holds: {}; --kind contradiction accepts them\n",
            output::count(reply.contradictions.len(), "contradiction")
        ));
    }
    let verb = if is_dry { "would be accepted" } else { "accepted" };
    out + &format!("{} {verb}\n", output::count(reply.accepted.len(), "proposal"))
}

fn reject(context: &CommandContext, args: &RejectArgs) -> Result<()> {
    let store = context.store()?;
    let (rejected, refused) = decide_each(&args.ids, |id| match args.dry_run.is_set() {
        true => store.proposals().show(id).map(|reply| ProposalItem::from(&reply.proposal)),
        false => store.proposals().reject(id),
    })?;
    let reply = RejectReply { rejected, refused };
    let would = if args.dry_run.is_set() { "would be " } else { "" };
    context.out.reply(&reply, |reply| {
        show_decided(reply.rejected.len(), &reply.refused, "rejected", &format!("{would}rejected"))
    })?;
    fail_if_refused(&reply.refused, "rejected")
}

fn reopen(context: &CommandContext, args: &ReopenArgs) -> Result<()> {
    let store = context.store()?;
    let (reopened, refused) = decide_each(&args.ids, |id| match args.dry_run.is_set() {
        true => store.proposals().rejected(id).map(|proposal| ProposalItem::from(&proposal)),
        false => store.proposals().reopen(id),
    })?;
    let reply = ReopenReply { reopened, refused };
    let verb = match (args.dry_run.is_set(), reply.reopened.len()) {
        (true, _) => "would wait again",
        (false, 1) => "waits again",
        (false, _) => "wait again",
    };
    context
        .out
        .reply(&reply, |reply| show_decided(reply.reopened.len(), &reply.refused, "reopened", verb))?;
    fail_if_refused(&reply.refused, "reopened")
}

/// Decides about proposals one after the other. One that is refused does not hinder the others, and fails if it is the only
/// one.
fn decide_each(
    ids: &[String],
    decide: impl Fn(&str) -> Result<ProposalItem>,
) -> Result<(Vec<ProposalItem>, Vec<RefusedProposal>)> {
    let (mut decided, mut refused) = (Vec::new(), Vec::new());
    for id in ids {
        match decide(id) {
            Ok(item) => decided.push(item),
            Err(error) if ids.len() == 1 => return Err(error),
            Err(error) => refused.push(RefusedProposal::of(id.clone(), &error)),
        }
    }
    Ok((decided, refused))
}

fn show_decided(decided: usize, refused: &[RefusedProposal], was_not: &str, verb: &str) -> String {
    let mut out = String::new();
    for refused in refused {
        out.push_str(&format!("{} was not {was_not}: {}\n", refused.id, output::plain(&refused.reason)));
    }
    out + &format!("{} {verb}\n", output::count(decided, "proposal"))
}
