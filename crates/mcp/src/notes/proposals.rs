//! The tool for proposals: an agent looks for faults of the memories, reads what waits for the user, and words it better.
//! Only the user accepts.

use schemars::JsonSchema;
use serde::Deserialize;
use sidenote_base::error::{Error, Result};
use sidenote_store::{ConsolidateRequest, ProposalItem, ProposalKind, ProposalsRequest, Store};

use crate::reply_limit::TARGET_LENGTH;
use crate::tool::{Answer, text_line};

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ProposalActionInput {
    List,
    Show,
    Edit,
    Consolidate,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ProposalsInput {
    action: ProposalActionInput,
    id: Option<String>,
    /// Such as duplicate or superseded
    kind: Option<String>,
    /// Of an edit, if the proposal writes several
    file: Option<String>,
    /// The whole new text of the file
    text: Option<String>,
    /// Numbers, names and dates that the text leaves out on purpose
    #[serde(default)]
    left_out: Vec<String>,
    #[serde(default)]
    dry_run: bool,
}

/// Lists or shows proposals, gives one another text, or looks for more.
pub(super) fn proposals(store: &Store, input: ProposalsInput) -> Result<Answer> {
    let kind = input.kind.as_deref().map(ProposalKind::parse).transpose()?;
    let id = || {
        input.id.as_deref().ok_or_else(|| {
            Error::invalid("proposals needs the id for this action")
                .with_hint("The action list gives the ids of those that wait")
        })
    };
    match input.action {
        ProposalActionInput::List => {
            let reply = store.proposals().list(ProposalsRequest { kind, all: false })?;
            let text = format!("{}{} wait for the user\n", lines(&reply.proposals), reply.waiting);
            Answer::text(text).with_structured(&reply)
        }
        ProposalActionInput::Show => {
            let reply = store.proposals().show(id()?)?;
            let mut text = text_line(&format!("{}: {}", reply.proposal.id, reply.proposal.reason));
            for evidence in &reply.proposal.evidence {
                text.push_str(&format!("\n{}:\n{}\n", evidence.path, evidence.text));
            }
            if !reply.changed.is_empty() {
                let changed = reply.changed.join(", ");
                text.push_str(&text_line(&format!(
                    "changed since, so that it cannot be accepted: {changed}"
                )));
            }
            for remark in &reply.proposal.plan.remarks {
                text.push_str(&text_line(&remark.to_string()));
            }
            text.push_str(&format!("\n{}", reply.proposal.diff));
            Answer::text(text).with_structured(&reply)
        }
        ProposalActionInput::Edit => {
            let new = input.text.as_deref().ok_or_else(|| {
                Error::invalid("proposals needs text for the action edit")
                    .with_hint("Give the whole new text of the file, properties included")
            })?;
            let file = input.file.as_deref();
            let reply = store.proposals().edit(id()?, file, new, &input.left_out, input.dry_run)?;
            let text =
                format!("the proposal {} has the new text:\n{}", reply.proposal.id, reply.proposal.diff);
            Answer::text(text).with_structured(&reply)
        }
        ProposalActionInput::Consolidate => {
            let request = ConsolidateRequest {
                kinds: kind.into_iter().collect(),
                folder: None,
                dry_run: input.dry_run,
            };
            let reply = store.proposals().consolidate(&request)?;
            let text = format!(
                "{}{} new, {} wait for the user\n",
                lines(&reply.proposals),
                reply.proposals.len(),
                reply.waiting
            );
            Answer::text(text).with_structured(&reply)
        }
    }
}

/// Formats proposals, one a line, as far as a reply has room.
fn lines(items: &[ProposalItem]) -> String {
    let mut text = String::new();
    for (at, item) in items.iter().enumerate() {
        let outdated = if item.is_outdated() { " (outdated: a source changed since)" } else { "" };
        let line = text_line(&format!("{}  {}  {}{outdated}", item.id, item.kind.name(), item.reason));
        if text.len() + line.len() > TARGET_LENGTH {
            text.push_str(&format!("and {} more\n", items.len() - at));
            break;
        }
        text.push_str(&line);
    }
    text
}
