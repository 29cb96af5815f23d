//! Owns the text of a handoff: where a piece of work stands, for whoever takes it up (spec/toolsets.md, `vector`).

use crate::clock::Timestamp;

/// Where a piece of work stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handoff {
    /// What is worked on.
    pub project: String,
    /// The branch, where there is one.
    pub branch: Option<String>,
    /// In a few sentences.
    pub summary: String,
    /// What is done.
    pub completed: Vec<String>,
    /// What is begun, or waits for something.
    pub in_progress: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// What comes next.
    pub next: Vec<String>,
    /// Ids of memories that belong to it.
    pub memories: Vec<String>,
}

/// Writes a handoff as Markdown; the date is that of this machine's place.
pub fn markdown(handoff: &Handoff, now: Timestamp) -> String {
    let branch = handoff.branch.as_deref().filter(|branch| !branch.is_empty()).unwrap_or("unknown");
    let mut text = format!(
        "# Handoff - {}\n**Date:** {} | **Branch:** {branch}\n\n## Summary\n{}\n",
        handoff.project,
        now.local().strftime("%Y-%m-%d %H:%M"),
        handoff.summary.trim()
    );
    for (heading, items) in [
        ("Completed", &handoff.completed),
        ("In Progress / Blocked", &handoff.in_progress),
        ("Key Decisions", &handoff.decisions),
        ("Next Steps", &handoff.next),
        ("Memory IDs", &handoff.memories),
    ] {
        text.push_str(&format!("\n## {heading}\n"));
        if items.is_empty() {
            text.push_str("- (none)\n");
        }
        for item in items {
            // An item of several lines stays one item.
            text.push_str(&format!("- {}\n", item.trim().replace('\n', "\n  ")));
        }
    }
    text
}
