//! What a proposal would do to the files as they are now, for a person who looks at it before a decision.

use serde::Serialize;
use sidenote_base::error::Result;
use sidenote_base::wording::Wording;
use sidenote_change::Changes;

use crate::Proposals;
use crate::decide::{ProposalReply, written_files};

/// The text that a file would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposedText {
    /// The path of the file.
    pub path: String,
    /// The whole text, properties included.
    pub text: String,
}

/// A proposal with what it would do now.
#[derive(Debug, Clone, Serialize)]
pub struct ProposalOutlook {
    /// The proposal. While it can be accepted, its plan and its diff are those that would be applied.
    #[serde(flatten)]
    pub reply: ProposalReply,
    /// The texts that it would give to files. There is none if it cannot be accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ProposedText>,
    /// Why its plan cannot be applied although no source changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

impl Proposals<'_> {
    /// Plans a proposal that waits on the files as they are now. One that was decided or is outdated is shown as it was.
    ///
    /// # Errors
    /// `NotFound` if there is no such proposal; `Exists` if several begin so; `Io` if a file cannot be read.
    #[tracing::instrument(skip_all)]
    pub fn outlook(&self, id: &str) -> Result<ProposalOutlook> {
        let mut outlook = ProposalOutlook { reply: self.show(id)?, files: Vec::new(), obstacle: None };
        let reply = &mut outlook.reply;
        if !reply.proposal.is_waiting() || !reply.changed.is_empty() {
            return Ok(outlook);
        }
        match Changes::of(self.core).apply_planned(|_| self.plan_again(&reply.proposal), true) {
            Ok(checked) => {
                for (path, file) in written_files(&checked.plan) {
                    if let Some(text) = self.text_after(file)? {
                        outlook.files.push(ProposedText { path: path.to_string(), text });
                    }
                }
                (reply.proposal.plan, reply.proposal.diff) = (checked.plan, checked.diff.unwrap_or_default());
            }
            Err(error) => {
                let hint = error.wording().map(Wording::for_page).filter(|hint| !hint.is_empty());
                outlook.obstacle =
                    Some(hint.map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}")));
            }
        }
        Ok(outlook)
    }
}
