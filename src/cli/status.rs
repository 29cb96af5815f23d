//! `sidenote status`: the state of vault and index; and the hidden `sidenote dump`, which prints the whole index.

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_config::CommitPolicy;
use sidenote_index::silent;
use sidenote_links::dialect::LinkDialect;

use super::{CommandContext, output};
use crate::store::Status;
use crate::store::agents::{AgentSummary, summaries};

pub(super) fn run(context: &CommandContext) -> Result<()> {
    let store = context.store()?;
    let proposals = store.proposals().waiting_count()?;
    let reply = StatusReply { status: store.index().status()?, agents: summaries(&store)?, proposals };
    context.out.reply(&reply, show)
}

/// The reply of `status`.
#[derive(Debug, Serialize)]
struct StatusReply {
    #[serde(flatten)]
    status: Status,
    /// What agents may do, if it is limited: by each rule, and at the end for the agents that no rule names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<AgentSummary>,
    /// The number of proposals that wait, if some do.
    #[serde(skip_serializing_if = "is_zero")]
    proposals: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn show(reply: &StatusReply) -> String {
    let status = &reply.status;
    let counts = &status.counts;
    let stale = if status.stale {
        format!("out of date: {} changed", output::count(status.behind, "file"))
    } else {
        "up to date".to_owned()
    };
    let holder = status.locked_by.as_ref();
    let rows = [
        ("vault", status.vault.display().to_string()),
        (
            "notes",
            format!(
                "{} ({}, {}, {} excluded)",
                counts.notes,
                output::count(counts.canvases, "canvas"),
                output::count(counts.attachments, "other file"),
                counts.excluded
            ),
        ),
        (
            "attachments",
            match counts.attachments_waiting {
                0 => "all read".to_owned(),
                waiting => format!("{waiting} not read yet; `sidenote index` reads them"),
            },
        ),
        ("links", format!("{} ({} unresolved)", counts.links, counts.unresolved)),
        ("link dialect", dialects(status)),
        ("passages", counts.passages.to_string()),
        ("index", format!("{} ({})", status.index.display(), stale)),
        (
            "size",
            format!(
                "{} + {} of vectors",
                output::bytes(status.index_bytes.saturating_sub(status.vector_bytes)),
                output::bytes(status.vector_bytes)
            ),
        ),
        ("generation", status.generation.to_string()),
        (
            "embedder",
            match &status.former_embedder {
                Some(former) => {
                    format!("{} ({former} is used until its vectors are computed)", status.embedder)
                }
                None => status.embedder.clone(),
            },
        ),
        ("vectors", format!("{} ({} without one)", status.vectors, output::count(status.pending, "passage"))),
        (
            "lock",
            holder.map_or_else(
                || "free".to_owned(),
                |holder| format!("process {} ({})", holder.pid, holder.command),
            ),
        ),
    ];
    let commits = match status.commits {
        CommitPolicy::Off => None,
        CommitPolicy::Operation => Some("after each operation"),
        CommitPolicy::Session => Some("after each session"),
    };
    let commits = commits.map(|when| ("commits in git", when.to_owned()));
    let rows = rows.into_iter().chain(commits).map(|(name, value)| vec![name.to_owned(), value]);
    let waiting = match reply.proposals {
        0 => None,
        count => Some(vec!["proposals".to_owned(), format!("{count} waiting: sidenote proposals")]),
    };
    let agents = reply.agents.iter().map(|agent| {
        let name =
            agent.rule.as_ref().map_or("other agents".to_owned(), |rule| format!("agent {}", rule.name));
        vec![name, agent.text.clone()]
    });
    output::columns(&rows.chain(waiting).chain(agents).collect::<Vec<_>>())
}

/// Describes the link dialect of the vault and those of folders that have another one.
fn dialects(status: &Status) -> String {
    let Some((vault, folders)) = status.link_dialects.split_last() else {
        return "not known before the first index; run sidenote index".to_owned();
    };
    let counts = &status.dialect_counts;
    let leading = if counts.links == 0 {
        String::new()
    } else {
        let of = |dialect: LinkDialect| format!("{} by {dialect}", counts.of(dialect));
        let each: Vec<String> = LinkDialect::ALL.into_iter().map(of).collect();
        format!("; of {} links, so many lead to a file: {}", counts.links, each.join(", "))
    };
    let reason = if vault.reason.is_empty() { "the default" } else { &vault.reason };
    let mut text = format!("{} ({reason}{leading})", vault.dialect);
    for unit in folders {
        text.push_str(&format!("; {} in {} ({})", unit.dialect, unit.folder, unit.reason));
    }
    text
}

pub(super) fn dump(context: &CommandContext) -> Result<()> {
    let store = context.fresh_store()?;
    // The dump of the same files is the same, whatever was read before.
    store.index().read_attachments(&silent())?;
    let lines = store.index().dump()?;
    context.out.reply(&lines, |lines| lines.iter().map(|line| format!("{line}\n")).collect())
}
