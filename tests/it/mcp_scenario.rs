//! Tests one scenario over MCP on a copy of the example vault: the calls of an agent in one day.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use similar::TextDiff;

use crate::mcp_client::Client;
use crate::support::{TestVault, json, path_from};

/// Gives the texts of all files outside of `.sidenote`, by path.
fn texts(vault: &TestVault) -> BTreeMap<String, String> {
    let texts = vault.contents().into_iter().filter_map(|(path, (bytes, _))| {
        let inside = path_from(vault.root(), &path);
        (!inside.starts_with(".home/")).then(|| (inside, String::from_utf8_lossy(&bytes).into_owned()))
    });
    texts.collect()
}

/// Writes what differs between two states of a vault as a person would read it.
fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> String {
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let empty = String::new();
    let mut out = String::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        if old != new {
            let what = match (old, new) {
                (None, _) => "new",
                (_, None) => "gone",
                _ => "changed",
            };
            out.push_str(&format!("=== {} ({what})\n", path));
            let diff = TextDiff::from_lines(old.unwrap_or(&empty), new.unwrap_or(&empty));
            out.push_str(&diff.unified_diff().context_radius(1).to_string());
        }
    }
    out
}

fn data(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments);
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"].clone()
}

fn paths(found: &Value) -> Vec<&str> {
    found["results"].as_array().unwrap().iter().map(|result| result["path"].as_str().unwrap()).collect()
}

#[test]
fn an_agent_maintains_a_vault_over_mcp() {
    let vault = TestVault::example();
    let problems = json(&vault, "2026-11-21", &["check"]);
    let before = texts(&vault);
    let mut client =
        Client::of(vault.command(&["--session", "story", "mcp"]).env("SIDENOTE_EMBED_PROVIDER", "e5"));
    // Three notes.
    for (title, content) in [
        ("Keel repair", "# Keel repair\n\nThe keel bolts are to be drawn in March.\n"),
        ("Bolt supplier", "Halloran in Cork sells bronze keel bolts by post.\n"),
        ("Slipway booking", "The slipway is ours from 2 to 9 March.\n"),
    ] {
        let wrote = data(
            &mut client,
            "write_note",
            json!({ "title": title, "content": content, "folder": "Projects/Boat", "tags": ["boat"] }),
        );
        assert_eq!(wrote["path"], format!("Projects/Boat/{title}.md"));
    }
    // The same once more is refused, and nothing is written.
    let again = json!({ "title": "Again", "content": "The slipway is ours from 2 to 9 March." });
    assert!(client.refusal("write_note", again).contains("Slipway booking.md has exactly the same text"));
    // Two of them are linked, one is renamed; the link follows.
    data(&mut client, "link_notes", json!({ "a": "Keel repair", "b": "Bolt supplier" }));
    let moved = data(
        &mut client,
        "move_note",
        json!({ "from": "Bolt supplier", "to": "Projects/Boat/Halloran of Cork.md" }),
    );
    assert_eq!(moved["path"], "Projects/Boat/Halloran of Cork.md");
    // Search in each mode, once every passage has its vector.
    loop {
        let stats = data(&mut client, "session", json!({ "action": "stats" }));
        if stats["result"]["vault"]["pending"] == 0 {
            break;
        }
        std::thread::yield_now();
    }
    for mode in ["hybrid", "bm25", "vector"] {
        let query = json!({ "query": "bronze keel bolts", "mode": mode, "limit": 3 });
        let found = data(&mut client, "search_notes", query);
        assert_eq!((&found["mode"], paths(&found)[0]), (&json!(mode), "Projects/Boat/Halloran of Cork.md"));
    }
    // An edit of a note that changed since it was read is refused; with the present hash it is applied.
    let read = data(&mut client, "read_note", json!({ "notes": "Slipway booking" }));
    let stale = read["notes"][0]["hash"].clone();
    let path = vault.root().join("Projects/Boat/Slipway booking.md");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("2 to 9", "3 to 9")).unwrap();
    let edit = |hash: &Value| json!({ "note": "Slipway booking", "action": "append", "text": "- ask for the winch", "expected_hash": hash });
    assert!(client.refusal("edit_note", edit(&stale)).contains("changed: its hash is"));
    let read = data(&mut client, "read_note", json!({ "notes": "Slipway booking" }));
    data(&mut client, "edit_note", edit(&read["notes"][0]["hash"]));
    // Its weight.
    let set =
        data(&mut client, "set_memory", json!({ "note": "Keel repair", "pinned": true, "useful": true }));
    assert_eq!((&set["pinned"], &set["usefulness"]), (&json!(true), &json!(1)));
    data(&mut client, "session", json!({ "action": "context_set", "text": "The keel comes out in March." }));
    let recalled = data(&mut client, "recall", json!({ "prompt": "Which keel bolts do we need?" }));
    assert_eq!(recalled["context"]["text"], "The keel comes out in March.");
    let titles: Vec<&str> =
        recalled["memories"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect();
    assert!(titles.contains(&"Keel repair") && titles.contains(&"Halloran of Cork"), "{titles:?}");
    // A handoff, and back.
    data(
        &mut client,
        "session",
        json!({
            "action": "handoff_store", "project": "keel", "summary": "The slipway is booked.",
            "lists": { "next_steps": ["order the bolts"], "memory_ids": [set["id"]] }
        }),
    );
    let handoff = client.text("session", json!({ "action": "handoff_get", "project": "keel" }));
    assert!(handoff.starts_with("# Handoff - keel\n") && handoff.contains("- order the bolts"), "{handoff}");
    // A forgotten note is not found; a restored one is.
    let search = json!({ "query": "slipway winch", "mode": "bm25" });
    data(&mut client, "delete_note", json!({ "note": "Slipway booking", "how": "forget" }));
    assert!(
        !paths(&data(&mut client, "search_notes", search.clone()))
            .contains(&"Projects/Boat/Slipway booking.md")
    );
    data(&mut client, "delete_note", json!({ "note": "Slipway booking", "restore": true }));
    assert!(paths(&data(&mut client, "search_notes", search)).contains(&"Projects/Boat/Slipway booking.md"));
    let backup = data(&mut client, "session", json!({ "action": "backup" }));
    assert_eq!(backup["result"]["notes"], 59);
    // Removed, with the bullet that led to it; and taken back.
    let gone = data(&mut client, "delete_note", json!({ "note": "Halloran of Cork" }));
    assert_eq!((&gone["dangling"], gone["files"].as_array().unwrap().len()), (&Value::Null, 2), "{gone}");
    assert!(client.refusal("read_note", json!({ "notes": "Halloran of Cork" })).contains("no note is named"));
    data(&mut client, "session", json!({ "action": "undo" }));
    data(&mut client, "read_note", json!({ "notes": "Halloran of Cork" }));
    let trail = client.text("session", json!({ "action": "audit", "note": "Slipway booking" }));
    assert!(trail.contains("  new  ") && trail.contains("  append  "), "{trail}");
    client.finish();
    // What a person finds in Obsidian.
    assert_eq!(broken(&json(&vault, "2026-11-21", &["check"])), broken(&problems));
    let ids = without_ids(&difference(&before, &texts(&vault)));
    insta::assert_snapshot!("story", ids);
}

/// Lists what `check` finds broken; that a note is alone is no fault of it.
fn broken(check: &Value) -> Vec<Value> {
    let problems = check["problems"].as_array().unwrap().iter();
    problems.filter(|problem| problem["code"] != "orphan").cloned().collect()
}

/// Puts a word in the place of ids, which follow from place and time, and hold nothing for a reader.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let line = |line: &str| {
        line.split(' ').map(|word| if is_id(word) { "ID" } else { word }).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|part| line(part) + "\n").collect()
}
