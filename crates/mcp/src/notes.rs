//! Our toolset `notes` (docs/spec/toolsets.md): about a dozen tools with short descriptions. `Store` does the work.

mod change;
pub(super) mod connector;
mod find;
mod graph;
mod memory;
mod named_lines;
mod proposals;
pub(super) mod toolset_more;

use super::tool::{Effect, Tool};
use crate::reply_limit::TARGET_LENGTH;

/// Returns the tools of the toolset.
#[expect(clippy::too_many_lines, reason = "a table with one entry for each tool")]
pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "search_notes",
            Effect::ReadOnly,
            "Search by words and meaning; gives passages with path and lines for read_note.",
            r#"{"query": "dragon boat", "limit": 5}"#,
            find::search,
        )
        .with_structured_output()
        .with_aliases(&[("q", "query"), ("text", "query")])
        .strict(),
        Tool::new(
            "read_note",
            Effect::ReadOnly,
            "Read notes, a section or lines, with links both ways and hash.",
            r#"{"notes": "Projects/Boat.md"}"#,
            find::read,
        )
        .with_structured_output()
        .with_aliases(&[("note", "notes"), ("path", "notes"), ("identifier", "notes"), ("id", "notes")])
        .strict(),
        Tool::new(
            "write_note",
            Effect::Additive,
            "Create a note; refuses exact duplicates, links near ones.",
            r#"{"title": "Dragon boat", "content": "We row on Tuesdays.", "tags": ["sport"]}"#,
            change::write,
        )
        .with_structured_output()
        .with_aliases(&[
            ("text", "content"),
            ("body", "content"),
            // A title can be a path. Beside a title, a path is the folder.
            ("path", "title"),
            ("name", "title"),
            ("properties", "metadata"),
            ("frontmatter", "metadata"),
        ])
        .proposable()
        .strict(),
        Tool::new(
            "edit_note",
            Effect::Destructive,
            "Edit a note's text, a section or frontmatter.",
            r#"{"note": "Boat", "action": "replace", "old": "Tuesdays", "text": "Mondays"}"#,
            change::edit,
        )
        .with_structured_output()
        .with_aliases(&[
            ("path", "note"),
            ("id", "note"),
            ("content", "text"),
            ("new", "text"),
            ("replacement", "text"),
            ("find", "old"),
        ])
        .proposable()
        .strict(),
        Tool::new(
            "move_note",
            Effect::Destructive,
            "Rename or move a note or folder; all links follow.",
            r#"{"from": "Boat", "to": "Projects/Dragon boat.md"}"#,
            change::move_note,
        )
        .with_structured_output()
        .with_aliases(&[("note", "from"), ("path", "from"), ("new_path", "to")])
        .proposable()
        .strict(),
        Tool::new(
            "delete_note",
            Effect::Destructive,
            "Trash (default), forget, remove or restore a note.",
            r#"{"note": "Boat", "how": "forget"}"#,
            change::delete,
        )
        .with_structured_output()
        .with_aliases(&[("path", "note"), ("id", "note"), ("mode", "how")])
        .proposable()
        .strict(),
        Tool::new(
            "link_notes",
            Effect::IdempotentDestructive,
            "Link or unlink two notes, both ways.",
            r#"{"a": "Boat", "b": "River"}"#,
            change::link,
        )
        .with_structured_output()
        .with_aliases(&[("from", "a"), ("source", "a"), ("to", "b"), ("target", "b")])
        .proposable()
        .strict(),
        Tool::new(
            "explore_links",
            Effect::ReadOnly,
            "Links, relations or notes around a note, a path; unresolved, orphans.",
            r#"{"note": "Boat", "depth": 2}"#,
            graph::explore,
        )
        .with_structured_output()
        .with_aliases(&[("path", "note"), ("from", "note")])
        .strict(),
        Tool::new(
            "list_notes",
            Effect::ReadOnly,
            "List notes, those around one in time, or all tags or properties.",
            r##"{"folder": "Projects", "tags": ["#open"]}"##,
            find::list,
        )
        .with_structured_output()
        .strict(),
        Tool::new(
            "set_memory",
            Effect::Destructive,
            "Pin, rate, archive, type, vote for or review a note.",
            r#"{"note": "Boat", "pinned": true}"#,
            memory::set,
        )
        .with_structured_output()
        .with_aliases(&[("path", "note"), ("id", "note"), ("memory_type", "type")])
        .strict(),
        Tool::new(
            "recall",
            Effect::ReadOnly,
            "What the notes hold that helps with a prompt. Call it first.",
            r#"{"prompt": "When do we row?"}"#,
            memory::recall,
        )
        .with_structured_output()
        .with_aliases(&[("query", "prompt"), ("text", "prompt")])
        .strict(),
        Tool::new(
            "session",
            Effect::Destructive,
            "Store a handoff, set or clear the active context, undo, back up.",
            r#"{"action": "handoff_store", "project": "boat", "summary": "The sail is sewn."}"#,
            memory::session,
        )
        .with_structured_output()
        .with_aliases(&[("context", "text"), ("steps", "count")])
        .strict(),
        Tool::new(
            "read_session",
            Effect::ReadOnly,
            "Last handoff, active context, audit trail, statistics, date.",
            r#"{"action": "handoff_get", "project": "boat"}"#,
            memory::read_session,
        )
        .with_structured_output()
        .strict(),
    ]
}
