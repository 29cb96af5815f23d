//! `sidenote repair`: repairs links that are broken, or lead elsewhere than they meant, after files moved without sidenote.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sidenote_base::error::{Error, Result};

use super::report::{print_remarks, show_change};
use crate::cli::args::DryRunArgs;
use crate::cli::vault_paths::vault_paths;
use crate::cli::{CommandContext, output};
use crate::store::{Certainty, ChosenTarget, RepairItem, RepairReply, RepairRequest};

/// Repair links that are broken because files moved without sidenote.
///
/// After `git mv`, a rename in a file manager or a merge, links can lead to nothing, or to another file than they meant.
/// What each link meant is found out from the index, the journal and the history of git. Without --apply and --choose,
/// nothing is changed: the links are listed with the evidence, and a diff shows what --apply strong would do.
///
/// A repair is certain if each step of the file is recorded or kept its content, strong if its content is mostly the same
/// and nothing else comes near, and weak otherwise. A file that was deleted is never replaced by another one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote repair                        list what would follow, with a diff
  sidenote repair --apply certain        repair what is certain
  sidenote repair docs/ --apply strong   also what is very likely, in one folder
  sidenote repair --choose               ask for each other link")]
pub(in crate::cli) struct RepairArgs {
    /// Only links in these notes and folders: paths from the current folder, or else from the root of the vault.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Repair links of at least this certainty.
    #[arg(long, value_enum, value_name = "CERTAINTY")]
    apply: Option<LeastCertainty>,
    /// Ask for a target of each link whose repair is not applied.
    #[arg(long)]
    choose: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

/// The values of `--apply`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LeastCertainty {
    /// What is proven.
    Certain,
    /// What is proven, and what is very likely.
    Strong,
}

impl From<LeastCertainty> for Certainty {
    fn from(least: LeastCertainty) -> Self {
        match least {
            LeastCertainty::Certain => Self::Certain,
            LeastCertainty::Strong => Self::Strong,
        }
    }
}

pub(super) fn run(context: &CommandContext, args: RepairArgs) -> Result<()> {
    let paths = vault_paths(context, &args.paths)?;
    let store = context.fresh_store()?;
    let request = RepairRequest {
        paths: paths.unwrap_or_default(),
        apply: args.apply.map(Certainty::from),
        dry_run: args.dry_run.is_set(),
        ..RepairRequest::default()
    };
    let mut is_chosen = false;
    let reply = store.repairs().repair_choosing(&request, |links| {
        let chosen = if args.choose { choose(context, links, request.apply)? } else { Vec::new() };
        is_chosen = !chosen.is_empty();
        Ok(chosen)
    })?;
    let is_report = request.apply.is_none() && !is_chosen;
    if args.choose && is_report {
        context.out.message("nothing was chosen, so nothing is changed");
        return Ok(());
    }
    context.out.reply(&reply, |reply| show(reply, is_report))?;
    print_remarks(context, &reply.change);
    Ok(())
}

/// Asks for the targets of links that are not repaired by themselves.
fn choose(
    context: &CommandContext,
    links: &[RepairItem],
    apply: Option<Certainty>,
) -> Result<Vec<ChosenTarget>> {
    if context.out.is_json() || !std::io::stdin().is_terminal() {
        return Err(Error::invalid("--choose asks on a terminal, and there is none")
            .with_hint("run `sidenote repair --json`, which lists the candidates of each link"));
    }
    let is_open =
        |item: &&RepairItem| !item.evidence.is_empty() && (apply.is_none() || item.certainty < apply);
    let mut chosen = Vec::new();
    let mut lines = std::io::stdin().lock().lines();
    for item in links.iter().filter(is_open) {
        context.out.message(&headline(item));
        let mut targets: Vec<&str> = Vec::new();
        for evidence in &item.evidence {
            if !targets.contains(&evidence.to.as_str()) {
                targets.push(&evidence.to);
                let (to, detail) = (output::plain(&evidence.to), output::plain(&evidence.detail));
                context.out.message(&format!("  {}  {to}  ({detail})", targets.len()));
            }
        }
        context.out.message("number, or Enter to leave the link as it is:");
        let Some(line) = lines.next() else { break };
        let line = line.map_err(|error| Error::io("read", "standard input", error))?;
        let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(to) = number.and_then(|number| targets.get(number)) {
            chosen.push(ChosenTarget { path: item.path.clone(), span: item.span, to: (*to).to_owned() });
        }
    }
    Ok(chosen)
}

/// Formats the first line about a link.
fn headline(item: &RepairItem) -> String {
    let problem = if item.dead { "" } else { "  leads elsewhere" };
    format!("{}:{}  {}{problem}", output::plain(&item.path), item.line, output::plain(&item.link))
}

fn show(reply: &RepairReply, is_report: bool) -> String {
    let mut out = String::new();
    for item in &reply.links {
        out.push_str(&headline(item));
        out.push('\n');
        if let Some(new) = &item.new_link {
            let verb = if reply.change.applied { "became" } else { "becomes" };
            out.push_str(&format!("    {verb}  {}\n", output::plain(new)));
        }
        if let Some(anchor) = &item.dead_anchor {
            let to = item.to.as_deref().unwrap_or_default();
            out.push_str(&format!(
                "    still breaks: {} has no {}\n",
                output::plain(to),
                output::plain(anchor)
            ));
        }
        if let Some(by) = &item.deleted {
            let was = item.was.as_deref().unwrap_or_default();
            out.push_str(&format!(
                "    deleted  {} was deleted by {}\n",
                output::plain(was),
                output::plain(by)
            ));
        }
        for evidence in &item.evidence {
            let certainty = if item.to.is_some() { evidence.certainty } else { Certainty::Weak };
            out.push_str(&format!(
                "    {:7}  -> {}  ({}: {})\n",
                certainty.name(),
                output::plain(&evidence.to),
                evidence.kind.name(),
                output::plain(&evidence.detail)
            ));
        }
    }
    let notes = reply.change.plan.files.len();
    let (links, notes) = (output::count(reply.repaired, "link"), output::count(notes, "note"));
    if reply.change.applied {
        out.push_str(&show_change(&reply.change));
        out.push_str(&format!("{links} in {notes} repaired\n"));
    } else if reply.repaired > 0 {
        out.push_str(&show_change(&reply.change));
        out.push_str(&format!("{links} in {notes} would follow\n"));
    } else if !is_report && reply.links.iter().any(|item| item.new_link.is_none() && item.to.is_some()) {
        out.push_str("no link was repaired\n");
    } else if reply.links.iter().any(|item| !item.evidence.is_empty()) {
        out.push_str("no link is repaired by itself; `sidenote repair --choose` asks for each\n");
    } else {
        out.push_str("nothing to repair\n");
    }
    out.push_str(&summary(reply));
    out
}

/// Formats how many links of each certainty there are, and what is known of none.
fn summary(reply: &RepairReply) -> String {
    let mut counts: Vec<String> = Vec::new();
    for certainty in [Certainty::Certain, Certainty::Strong, Certainty::Weak] {
        let count = reply.links.iter().filter(|item| item.certainty == Some(certainty)).count();
        if count > 0 {
            counts.push(format!("{count} {}", certainty.name()));
        }
    }
    let deleted = reply.links.iter().filter(|item| item.deleted.is_some()).count();
    if deleted > 0 {
        counts.push(format!("{deleted} to deleted files"));
    }
    if reply.unexplained > 0 {
        counts.push(format!("{} without evidence", output::count(reply.unexplained, "broken link")));
    }
    if counts.is_empty() { String::new() } else { format!("found: {}\n", counts.join(", ")) }
}
