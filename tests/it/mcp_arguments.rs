//! Tests that arguments are taken as clients send them: each tool is called once as its schema says, and in forms that mean
//! the same, and answers the same.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::mcp_client::Client;
use crate::mcp_schemas::{SETS, listed};
use crate::support::TestVault;

const BOAT: &str = "550e8400-e29b-41d4-a716-446655440001";
const TEA: &str = "550e8400-e29b-41d4-a716-446655440003";

pub(crate) fn vault() -> TestVault {
    TestVault::new(&[
        (
            "Projects/Boat.md",
            "---\nid: 550e8400-e29b-41d4-a716-446655440001\ntags: [sport]\nstatus: active\ntype: fact\ncategory: work\ncreated: 2026-01-01\n---\n\
             # Boat\n\nThe boat leaks. See [[River]].\n\n## To do\n\n- [ ] oars\n",
        ),
        (
            "River.md",
            "---\nid: 550e8400-e29b-41d4-a716-446655440002\ncreated: 2026-01-02\n---\nThe level of the river is three metres.\n",
        ),
        (
            "Memories/Tea.md",
            "---\nid: 550e8400-e29b-41d4-a716-446655440003\ntype: preference\ntags: [tea]\ncreated: 2026-01-03\n---\nAnna prefers green tea.\n",
        ),
        ("Templates/Event.md", "---\ncreated: 2026-01-04\n---\nAn event.\n"),
    ])
}

/// A valid call of each tool.
pub(crate) fn calls() -> Vec<(&'static str, Value)> {
    vec![
        (
            "search_notes",
            json!({ "query": "boat river", "mode": "bm25", "intent": "fact_check", "tags": ["sport"], "limit": 2, "explain": true, "include": ["archived"], "path": "Projects" }),
        ),
        ("read_note", json!({ "notes": ["River"], "first_line": 1, "last_line": 4 })),
        (
            "write_note",
            json!({ "title": "Regatta", "content": "We row.", "tags": ["sport"], "importance": 7, "metadata": { "status": "open" }, "folder": "Projects", "dry_run": false }),
        ),
        (
            "edit_note",
            json!({ "note": "Boat", "action": "replace_section", "heading": "To do", "text": "- [ ] sail" }),
        ),
        ("move_note", json!({ "from": "River", "to": "Projects/", "dry_run": true })),
        ("delete_note", json!({ "note": "River", "how": "trash", "unlink": true, "dry_run": true })),
        ("link_notes", json!({ "a": "River", "b": "Tea" })),
        ("explore_links", json!({ "note": "Boat", "what": "around", "depth": 2 })),
        ("list_notes", json!({ "folder": "Projects", "tags": ["sport"], "sort": "title", "limit": 5 })),
        ("set_memory", json!({ "note": "Tea", "pinned": true, "importance": 7, "useful": true })),
        ("recall", json!({ "prompt": "What does Anna drink?", "limit": 2, "budget": 900 })),
        (
            "session",
            json!({ "action": "handoff_store", "project": "boat", "summary": "Sewn.", "lists": { "completed": ["sail"] }, "ttl_hours": 2 }),
        ),
        ("read_session", json!({ "action": "context_get" })),
        (
            "edit_notes",
            json!({ "edits": [{ "note": "Boat", "action": "add_tags", "tags": ["lake"], "expected_replacements": 1 }], "dry_run": true }),
        ),
        ("rename_part", json!({ "kind": "tag", "old": "sport", "new": "games", "dry_run": true })),
        ("merge_notes", json!({ "from": "River", "into": "Boat", "dry_run": true })),
        ("extract_section", json!({ "note": "Boat", "section": "To do", "title": "Oars", "dry_run": true })),
        ("new_from_template", json!({ "title": "Race", "template": "Event", "dry_run": true })),
        ("outline_note", json!({ "note": "Boat" })),
        ("query_properties", json!({ "fields": ["status", "type"], "folder": "Projects", "limit": 3 })),
        ("check_vault", json!({ "codes": ["orphan"], "severity": "warning", "paths": ["Projects"] })),
        ("repair_links", json!({ "paths": ["Projects"], "apply": "certain", "dry_run": true })),
        (
            "write_mem",
            json!({ "title": "Race", "content": "At nine.", "tags": ["sport"], "category": "work" }),
        ),
        ("read_mem", json!({ "identifier": "Tea", "format": "plain" })),
        ("edit_mem", json!({ "id": TEA, "content": "Anna prefers tea.", "tags": ["anna"] })),
        ("search_mem", json!({ "query": "tea", "limit": 3, "tags": ["tea"] })),
        ("link_mem", json!({ "source_id": TEA, "target_id": BOAT, "link_text": "boat" })),
        ("unlink_mem", json!({ "source_id": TEA, "target_id": BOAT })),
        ("get_current_date", json!({ "format": "date_only" })),
        (
            "save_memory",
            json!({ "content": "Anna rows.", "metadata": { "project": "boat" }, "tags": ["anna"], "importance": 7, "memory_type": "fact" }),
        ),
        ("search_memory", json!({ "query": "Anna prefers green tea.", "limit": 2, "threshold": 0.2 })),
        ("get_all_memories", json!({ "limit": 2, "offset": 0 })),
        (
            "update_memory",
            json!({ "id": TEA, "importance": 8, "tags": ["anna"], "metadata": { "project": "x" } }),
        ),
        ("search_by_type", json!({ "memory_type": "preference", "limit": 2 })),
        ("search_by_tags", json!({ "tags": ["tea"], "limit": 2 })),
        ("search_by_date_range", json!({ "date_from": "2001-01-01", "date_to": "2099-01-01", "limit": 2 })),
        ("delete_memory", json!({ "id": TEA })),
        ("delete_all_memories", json!({})),
        ("memory_stats", json!({})),
        ("create_backup", json!({})),
        (
            "store_memories",
            json!({ "memories": [{ "content": "We deploy on Fridays.", "metadata": { "project": "web" } }] }),
        ),
        ("update_memories", json!({ "updates": [{ "id": TEA, "content": "Anna prefers tea." }] })),
        ("delete_memories", json!({ "ids": [TEA] })),
        (
            "search_memories",
            json!({ "query": "tea", "intent": "fact_check", "reason_for_search": "to plan", "limit": 2, "include_deleted": true }),
        ),
        ("get_memories", json!({ "ids": [TEA] })),
        ("report_memory_usefulness", json!({ "memory_id": TEA, "useful": true })),
        (
            "store_handoff",
            json!({ "project": "boat", "summary": "Sewn.", "next_steps": ["oars"], "metadata": { "project": "x" } }),
        ),
        ("get_handoff", json!({})),
        (
            "memory_store",
            json!({ "text": "The build needs Rust.", "type": "procedural", "importance": 0.7, "tier": "HOT", "pinned": true, "tags": ["build"] }),
        ),
        ("memory_recall", json!({ "query": "tea", "limit": 2, "tier": "HOT", "includeArchive": true })),
        ("memory_forget", json!({ "memoryId": TEA, "hard": false })),
        ("memory_restore", json!({ "memoryId": TEA })),
        ("memory_pin", json!({ "memoryId": TEA })),
        ("memory_unpin", json!({ "memoryId": TEA })),
        ("memory_explain", json!({ "memoryId": TEA, "query": "tea" })),
        ("memory_set_context", json!({ "text": "tables", "ttlHours": 3 })),
        ("memory_clear_context", json!({})),
        ("rulebook_memory_search", json!({ "query": "tea", "limit": 2, "mode": "bm25" })),
        ("rulebook_memory_timeline", json!({ "memoryId": TEA, "window": 1 })),
        ("rulebook_memory_get", json!({ "ids": [TEA] })),
        (
            "rulebook_memory_save",
            json!({ "type": "decision", "title": "Plain files", "content": "We chose files.", "tags": ["files"] }),
        ),
        ("rulebook_memory_stats", json!({})),
        ("rulebook_memory_cleanup", json!({ "force": false })),
    ]
}

/// The tools that need another call first, with that call.
fn first(tool: &str) -> Option<(&'static str, Value)> {
    match tool {
        "memory_restore" => Some(("memory_forget", json!({ "memoryId": TEA }))),
        "memory_unpin" => Some(("memory_pin", json!({ "memoryId": TEA }))),
        _ => None,
    }
}

/// The arguments of which an empty text is a value.
const EMPTY_MEANS: [&str; 6] = ["text", "value", "status", "embedding_text", "content", "category"];

/// Writes everything as text, words in capitals, and what is not given as `""`.
fn as_text(schema: &Value, value: &Value) -> Value {
    match value {
        Value::String(text) if schema.get("enum").is_some() => json!(text.to_uppercase().replace('_', "-")),
        Value::Bool(flag) => json!(if *flag { "True" } else { "False" }),
        Value::Number(number) => json!(format!(" {number} ")),
        Value::Array(_) | Value::Object(_) => json!(value.to_string()),
        Value::String(_) | Value::Null => value.clone(),
    }
}

/// Writes whole numbers with a fraction, truths as numbers, lists of one as that one, and what is not given as null.
fn as_others(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Number(number) if schema["type"] == "integer" => json!(number.as_f64()),
        Value::Bool(flag) => json!(i32::from(*flag)),
        Value::Array(items) => match items.as_slice() {
            [one] => one.clone(),
            _ => json!(items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(", ")),
        },
        other => other.clone(),
    }
}

/// Writes the arguments of a call in another form.
fn in_form(schema: &Value, arguments: &Value, form: fn(&Value, &Value) -> Value, absent: &Value) -> Value {
    let mut sent = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        match arguments.get(name) {
            Some(value) => {
                sent.insert(name.clone(), form(field, value));
            }
            None if absent != "" || !EMPTY_MEANS.contains(&name.as_str()) => {
                sent.insert(name.clone(), absent.clone());
            }
            None => {}
        }
    }
    Value::Object(sent)
}

/// Replaces words with digits, such as ids, hashes, times and scores, which differ from call to call.
fn masked(text: &str) -> String {
    let words = text.split_inclusive(|c: char| c.is_whitespace() || "\",()[]{}".contains(c));
    words
        .map(|word| if word.chars().any(|c| c.is_ascii_digit()) { "#" } else { word })
        .collect::<Vec<_>>()
        .join("")
}

#[test]
#[expect(clippy::type_complexity, reason = "a table of forms")]
fn every_tool_takes_arguments_as_clients_send_them() {
    let mut called = BTreeSet::new();
    for (tool, arguments) in calls() {
        let backups = tempfile::tempdir().unwrap();
        let mut answers = Vec::new();
        let forms: [(fn(&Value, &Value) -> Value, Value); 3] =
            [(|_, value| value.clone(), Value::Null), (as_text, json!("")), (as_others, Value::Null)];
        for (at, (form, absent)) in forms.into_iter().enumerate() {
            let vault = vault();
            let mut client = Client::of(
                vault
                    .command(&["mcp", "--toolset", &SETS.join(",")])
                    .env("MEMORY_BACKUP_PATH", backups.path().join(at.to_string())),
            );
            client.catch_up();
            let tools = listed(&mut client);
            let schema = &tools.iter().find(|listed| listed["name"] == tool).unwrap()["inputSchema"];
            if let Some((before, arguments)) = first(tool) {
                client.text(before, arguments);
            }
            let sent = if at == 0 { arguments.clone() } else { in_form(schema, &arguments, form, &absent) };
            let result = client.call(tool, sent.clone());
            assert_ne!(result["isError"], true, "{tool} {sent}: {result}");
            let said = result["content"].to_string().replace(vault.root().to_str().unwrap(), "");
            answers.push((masked(&said), sent));
            client.finish();
        }
        let (expected, _) = answers.remove(0);
        for (answer, sent) in answers {
            assert_eq!(answer, expected, "{tool} {sent}");
        }
        called.insert(tool);
    }
    assert_eq!(called.len(), 63);
}

#[test]
fn common_names_of_arguments_are_taken() {
    let cases = [
        (
            "search_notes",
            json!({ "q": "boat", "max_results": 1, "tag": "sport", "folder": "Projects" }),
            "Boat",
        ),
        ("read_note", json!({ "path": "Boat", "heading": "To do" }), "oars"),
        ("read_note", json!({ "note": "Projects/Boat.md:8-10" }), "Projects/Boat.md:8-10"),
        ("list_notes", json!({ "path": "Projects", "note_type": "FACT" }), "Boat"),
        ("explore_links", json!({ "note": "River", "what": "backlinks" }), "linked from Projects/Boat.md"),
        ("explore_links", json!({ "what": "orphan" }), "Memories/Tea.md"),
        (
            "edit_note",
            json!({ "path": "Boat", "action": "replace", "old_string": "leaks", "new_string": "floats" }),
            "done",
        ),
        ("edit_note", json!({ "note": "Boat", "action": "set", "property": "rating", "value": 5 }), "done"),
        (
            "edit_note",
            json!({ "note": "Boat", "action": "replace", "find": "leaks", "replacement": "floats" }),
            "done",
        ),
        (
            "write_note",
            json!({ "path": "Logs/Trip.md", "body": "We went.", "frontmatter": { "status": "x" } }),
            "done: Logs/Trip.md",
        ),
        (
            "session",
            json!({ "action": "store-handoff", "project": "boat", "summary": "Sewn." }),
            "the handoff is in",
        ),
        (
            "write_note",
            json!({ "path": "/Logs/Trip.md", "name": "Trip", "title": "Trip", "content": "We went." }),
            "",
        ),
        (
            "edit_notes",
            json!({ "edits": { "path": "River", "action": "append", "content": "More." } }),
            "done",
        ),
        ("merge_notes", json!({ "source": "Tea", "to": "River", "dry_run": "true" }), "Tea"),
    ];
    let mut taken = 0;
    for (tool, mut arguments, says) in cases {
        let vault = vault();
        let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
        if arguments.get("name").is_some() {
            assert!(client.refusal(tool, arguments.clone()).contains("has no argument \"name\""));
            arguments.as_object_mut().unwrap().remove("name");
        }
        let text = client.text(tool, arguments.clone());
        assert!(text.contains(says), "{tool} {arguments}: {text}");
        if tool == "write_note" {
            assert!(vault.root().join("Logs/Trip.md").exists(), "{text}");
        }
        client.finish();
        taken += 1;
    }
    assert_eq!(taken, 14);
}

#[test]
fn values_of_properties_keep_their_kinds() {
    let vault = vault();
    let mut client = Client::start(&vault, &[]);
    for (key, value, line) in [
        ("number", json!(5), "number: 5\n"),
        ("text", json!("5"), "text: 5\n"),
        ("quoted", json!("\"5\""), "quoted: \"5\"\n"),
        ("version", json!("1.10"), "version: \"1.10\"\n"),
        ("flag", json!(true), "flag: true\n"),
        ("list", json!(["a", "b"]), "list:"),
        ("other", json!("[\"a\", \"b\"]"), "other:"),
        ("words", json!("a, b"), "words: a, b\n"),
        ("empty", json!(""), "empty: \"\"\n"),
    ] {
        client.text("edit_note", json!({ "note": "River", "action": "set", "key": key, "value": value }));
        let text = std::fs::read_to_string(vault.root().join("River.md")).unwrap();
        assert!(text.contains(line), "{key}: {text}");
    }
    let text = std::fs::read_to_string(vault.root().join("River.md")).unwrap();
    let of = |key: &str| -> Vec<String> {
        let mut lines = text.lines().skip_while(|line| !line.starts_with(key));
        let first = lines.next().unwrap_or_default().split_once(':').map_or("", |(_, rest)| rest).to_owned();
        let items = lines.take_while(|line| line.starts_with(' ')).map(str::to_owned);
        std::iter::once(first).chain(items).collect()
    };
    assert_eq!(of("list"), of("other"));
    client.finish();
}

#[test]
fn toolsets_of_other_servers_name_what_they_ignore() {
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "longterm,vector,tiered,mem"]);
    let cases = [
        (
            "memory_store",
            json!({ "text": "A fact of its own.", "type": "bogus" }),
            "there is no type \"bogus\"",
        ),
        (
            "memory_store",
            json!({ "text": "Another one entirely.", "importance": 9999 }),
            "importance is 9999, so 1 is taken",
        ),
        (
            "memory_recall",
            json!({ "query": "fact", "limits": 3 }),
            "no argument \"limits\", so it was ignored; did you mean \"limit\"?",
        ),
        ("save_memory", json!({ "content": "Saved.", "tag": ["a"] }), "did you mean \"tags\"?"),
        (
            "search_memories",
            json!({ "query": "tea", "intent": "explore", "reason_for_search": "r", "unknown": 1 }),
            "\"unknown\", so it was ignored",
        ),
        (
            "store_memories",
            json!({ "memories": [{ "content": "Deep.", "importance": 3 }] }),
            "\"memories[0].importance\", so it was ignored",
        ),
    ];
    for (tool, arguments, says) in cases {
        let result = client.call(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool}: {result}");
        // The reply of the original server stays as it is.
        let blocks = result["content"].as_array().unwrap();
        assert!(!blocks[0]["text"].as_str().unwrap().contains(says), "{result}");
        let notices: Vec<&str> = blocks[1..].iter().map(|block| block["text"].as_str().unwrap()).collect();
        assert!(notices.join("\n").contains(says), "{tool} {arguments}: {result}");
    }
    for (tool, arguments, says) in [
        (
            "memory_store",
            json!({ "text": "Something third.", "tier": "LUKEWARM" }),
            "there is no tier \"LUKEWARM\"",
        ),
        (
            "save_memory",
            json!({ "content": "x", "importance": 9999 }),
            "importance is 9999. Give a number from 1 to 10",
        ),
        (
            "save_memory",
            json!({ "content": "x", "memory_type": "bogus" }),
            "memory_type is \"bogus\"; expected general",
        ),
        ("read_mem", json!({ "identifier": "Tea", "format": "xml" }), "format is \"xml\"; expected markdown"),
    ] {
        let said = client.refusal(tool, arguments);
        assert!(said.contains(says), "{tool}: {said}");
    }
    // A vote names a memory as a search shows it.
    assert!(
        client
            .text("report_memory_usefulness", json!({ "memory_id": "Tea", "useful": "yes" }))
            .contains("useful")
    );
    client.finish();
}

#[test]
fn texts_hold_what_the_next_call_needs() {
    let vault = vault();
    let mut client = Client::start(&vault, &[]);
    assert!(
        client.text("move_note", json!({ "from": "Projects", "to": "Work" })).contains("Projects/ -> Work/")
    );
    client.text("read_note", json!({ "notes": "River" }));
    client.text("set_memory", json!({ "note": "Tea", "useful": true }));
    client.text("write_note", json!({ "title": "Log", "content": "It rained." }));
    let trail = client.call("read_session", json!({ "action": "audit" }));
    let events = trail["structuredContent"]["result"]["events"].as_array().unwrap();
    let text = trail["content"][0]["text"].as_str().unwrap();
    let line = |op: &str| text.lines().find(|line| line.contains(&format!("  {op}  "))).unwrap();
    assert!(line("rename").contains("Projects/ -> Work/"), "{text}");
    assert!(line("use").ends_with("River.md") && line("vote").ends_with("Memories/Tea.md"), "{text}");
    let id = events.iter().find(|event| event["op"] == "new").unwrap()["id"].as_str().unwrap();
    assert!(line("new").starts_with(id), "{text}");
    let undone = client.text("session", json!({ "action": "undo", "operation": id }));
    assert!(undone.contains("Log.md"), "{undone}");
    for arguments in [json!({ "sort": "updated" }), json!({ "updated_after": "30d" })] {
        let listed = client.text("list_notes", arguments);
        assert!(listed.lines().skip(1).all(|line| line.contains("  updated 20")), "{listed}");
    }
    assert!(client.text("list_notes", json!({ "created_before": "2001-01-01" })).starts_with("0 notes"));
    client.finish();
}
