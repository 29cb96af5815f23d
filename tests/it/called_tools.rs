//! Tests what the journal and the page say of the calls of agents: which tool was called, and of which toolset.

use std::fs;

use serde_json::{Value, json};

use crate::http::{SERVER, Server};
use crate::mcp_client::Client;
use crate::support::{TestVault, clone_journal, json as printed, run};
use crate::web::Page;

/// Names who made the call of an event, and what was called, as `client tool toolset`.
fn said(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
    [field("client"), field("tool"), field("toolset")].join(" ")
}

/// Lists what the events of a vault say, with their operations, the oldest first.
fn history(vault: &TestVault) -> Vec<String> {
    let events = printed(vault, "2026-11-20", &["history", "-n", "100"]);
    let line = |event: &Value| format!("{} {}", event["op"].as_str().unwrap(), said(event));
    events.as_array().unwrap().iter().rev().map(line).collect()
}

#[test]
fn each_change_of_an_agent_names_its_tool_and_toolset() {
    let cases = [
        ("notes", "write_note", json!({ "title": "Heron", "content": "It stands." }), "new"),
        ("more", "rename_part", json!({ "kind": "tag", "old": "a", "new": "b" }), "rename-tag"),
        ("mem", "write_mem", json!({ "title": "Heron", "content": "It stands." }), "new"),
        ("longterm", "save_memory", json!({ "content": "It stands." }), "new"),
        ("vector", "store_memories", json!({ "memories": [{ "content": "It stands." }] }), "new"),
        ("tiered", "memory_store", json!({ "text": "It stands." }), "new"),
        (
            "rulebook",
            "rulebook_memory_save",
            json!({ "type": "fact", "title": "Heron", "content": "It stands." }),
            "new",
        ),
        (
            "graph",
            "create_entities",
            json!({ "entities": [{ "name": "Heron", "entityType": "bird", "observations": ["It stands."] }] }),
            "new",
        ),
        (
            "memories",
            "memory",
            json!({ "command": "create", "path": "/memories/Heron.md", "file_text": "It stands." }),
            "new",
        ),
    ];
    assert_eq!(cases.len(), 9, "each toolset has a case");
    for (set, tool, arguments, op) in cases {
        // An operation id changes nothing of it.
        for id in [None, Some("7f1c")] {
            let vault = TestVault::new(&[("Start.md", "Water level. #a\n")]);
            let mut client = Client::start(&vault, &["--toolset", set]);
            let mut arguments = arguments.clone();
            if let Some(id) = id {
                arguments["operation_id"] = json!(id);
            }
            client.text(tool, arguments);
            client.finish();
            assert_eq!(history(&vault), [format!("{op} t 1 {tool} {set}")], "{set}, {id:?}");
        }
    }
}

#[test]
fn a_call_over_http_names_its_tool_without_a_session() {
    let vault = TestVault::new(&[("Start.md", "Water level.\n")]);
    let server = Server::of(&mut vault.command(&["mcp", "--http", SERVER]));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "write_note", "arguments": { "title": "Heron", "content": "It stands." },
    } });
    let headers = ["Accept: application/json, text/event-stream", "Content-Type: application/json"];
    let reply = server.send("POST", "/mcp", &headers, call.to_string());
    assert_ne!(reply.json()["result"]["isError"], true, "{}", reply.text);
    server.stop();
    assert_eq!(history(&vault), ["new mcp write_note notes"]);
}

#[test]
fn a_use_names_the_tool_and_a_command_names_none() {
    let vault = TestVault::new(&[("Start.md", "Water level.\n"), ("Old.md", "Rain.\n")]);
    let mut client = Client::start(&vault, &["--toolset", "notes"]);
    client.text("read_note", json!({ "note": "Start" }));
    client.finish();
    run(&vault, "2026-11-20", &["set", "Start", "status", "open"]);
    let page = Page::start(&vault, &[]);
    let events = page.read("activity?all=1")["events"].as_array().unwrap().clone();
    let lines: Vec<String> = events.iter().map(|event| format!("{} {}", event["op"], said(event))).collect();
    assert!(lines.contains(&"\"use\" t 1 read_note notes".to_owned()), "{lines:?}");
    assert!(lines.contains(&"\"set\" - - -".to_owned()), "{lines:?}");
}

#[test]
fn lists_for_people_name_agent_and_tool() {
    let vault = TestVault::new(&[("Start.md", "Water level.\n")]);
    run(&vault, "2026-11-20", &["set", "Start", "status", "open"]);
    let by_hand = run(&vault, "2026-11-20", &["history"]);
    assert_eq!(by_hand.split_whitespace().count(), 4, "time, operation, note and id alone: {by_hand}");
    let mut client = Client::start(&vault, &["--toolset", "notes"]);
    client.text("edit_note", json!({ "note": "Start", "action": "append", "text": "It rises." }));
    client.finish();
    for args in [&["history"][..], &["memory", "audit"]] {
        let text = run(&vault, "2026-11-20", args);
        assert!(text.contains("t 1  edit_note (notes)"), "{args:?}: {text}");
        assert_eq!(text.matches("edit_note").count(), 1, "{args:?}: {text}");
    }
}

#[test]
fn uses_of_agents_are_compacted_and_shared_as_others_are() {
    let vault = TestVault::new(&[("heron.md", "---\ncreated_at: 2026-01-01\n---\nThe heron nests.\n")]);
    vault.write(".sidenote/config.toml", "[memory]\nuses = \"shared\"\n");
    for day in ["2026-02-01", "2026-02-02"] {
        let mut client = Client::of(vault.command(&["mcp"]).env("SIDENOTE_NOW", day));
        client.text("read_note", json!({ "note": "heron" }));
        client.finish();
    }
    let local = || fs::read_to_string(vault.root().join(".sidenote/local/2026-02.jsonl")).unwrap();
    assert_eq!(local().matches("\"op\":\"use\"").count(), 2);
    let before = printed(&vault, "2026-07-02", &["memory", "explain", "heron"]);
    // Events are only appended to the newest month, which stays as it is.
    run(&vault, "2026-07-01", &["memory", "recall", "heron"]);
    let reply = printed(&vault, "2026-07-01", &["memory", "maintain"]);
    assert_eq!(reply["compacted"], 1);
    assert_eq!(local().matches("\"op\":\"snapshot\"").count(), 1, "{}", local());
    assert!(!local().contains("read_note"), "only note, time and source are left: {}", local());
    let shared = fs::read_to_string(clone_journal(vault.root(), "2026-02")).unwrap();
    assert_eq!(shared.matches("\"op\":\"snapshot\"").count(), 1, "{shared}");
    assert!(!shared.contains("read_note"), "{shared}");
    let after = printed(&vault, "2026-07-02", &["memory", "explain", "heron"]);
    assert_eq!(before["days_used"], 2);
    assert_eq!(after["days_used"], 3, "no use was lost");
}
