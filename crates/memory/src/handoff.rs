//! Handoffs: the state of a task as Markdown, for the agent that continues it (docs/spec/toolsets.md, `vector`).

use sidenote_base::clock::Timestamp;

/// The state of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handoff {
    /// The project.
    pub project: String,
    /// The git branch, if there is one.
    pub branch: Option<String>,
    /// A summary in a few sentences.
    pub summary: String,
    /// The finished items.
    pub completed: Vec<String>,
    /// The items in progress or waiting.
    pub in_progress: Vec<String>,
    /// The decisions.
    pub decisions: Vec<String>,
    /// The next steps.
    pub next: Vec<String>,
    /// The ids of related memories.
    pub memories: Vec<String>,
}

/// Formats a handoff as Markdown with the local date.
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
            // The further lines of an item are indented.
            text.push_str(&format!("- {}\n", item.trim().replace('\n', "\n  ")));
        }
    }
    text
}
