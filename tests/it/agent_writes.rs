//! Tests where an agent's notes go, what becomes of its metadata, and names that it gives to `move_note`.

use serde_json::json;

use crate::mcp_client::Client;
use crate::support::{TestVault, text_of};

#[test]
fn a_bare_name_renames_in_the_folder() {
    // The new place as it is given, and as it becomes.
    let cases = [
        ("Sprint", "Projects/Sprint.md"),
        ("Sprint.md", "Projects/Sprint.md"),
        ("Archive", "Archive/Plan.md"),
        ("Archive/", "Archive/Plan.md"),
        ("Archive/Sprint", "Archive/Sprint.md"),
        ("/Sprint", "Sprint.md"),
        ("/", "Plan.md"),
    ];
    for (to, expect) in cases {
        let vault = TestVault::new(&[("Projects/Plan.md", "plan\n"), ("Archive/Old.md", "[[Plan]]\n")]);
        let mut client = Client::start(&vault, &[]);
        let said = client.text("move_note", json!({ "from": "Plan", "to": to }));
        client.finish();
        assert!(said.contains(expect), "{to}: {said}");
        assert_eq!(text_of(&vault, expect), "plan\n", "{to}");
    }
    // A folder keeps its place, too.
    let vault = TestVault::new(&[("Work/Projects/Plan.md", "plan\n")]);
    let mut client = Client::start(&vault, &[]);
    client.text("move_note", json!({ "from": "Work/Projects", "to": "Plans" }));
    client.finish();
    assert_eq!(text_of(&vault, "Work/Plans/Plan.md"), "plan\n");
    assert_eq!(cases.len(), 7);
}

#[test]
fn metadata_becomes_properties() {
    let vault = TestVault::new(&[("Start.md", "Water.\n")]);
    let mut client = Client::start(&vault, &[]);
    let metadata =
        json!({ "status": "open", "year": 2026, "people": ["Ann", "Ben"], "tags": ["b"], "type": "fact" });
    client.text("write_note", json!({ "title": "W", "content": "w", "tags": ["a"], "metadata": metadata }));
    client.finish();
    let text = text_of(&vault, "W.md");
    for line in
        ["status: open\n", "year: 2026\n", "people:\n  - Ann\n  - Ben\n", "  - a\n  - b\n", "type: fact\n"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("metadata"), "{text}");
}

#[test]
fn a_reply_says_where_memories_go() {
    let vault = TestVault::new(&[("Memories/m.md", "A memory.\n")]);
    let mut client = Client::start(&vault, &[]);
    let cases = [
        (json!({ "title": "A", "content": "a", "type": "decision" }), true),
        (json!({ "title": "B", "content": "b", "importance": 7 }), true),
        (json!({ "title": "C", "content": "c" }), false),
        (json!({ "title": "D", "content": "d", "type": "fact", "folder": "Memories" }), false),
    ];
    for (arguments, is_told) in cases {
        let said = client.text("write_note", arguments.clone());
        assert_eq!(said.contains("memories are in Memories/"), is_told, "{arguments}: {said}");
    }
    client.finish();
}
