//! Tests reads and writes next to a process that keeps the index and is behind: every caller finds what it wrote.

use std::fs;
use std::sync::Barrier;

use serde_json::{Value, json};
use sidenote::store::{DeleteRequest, EditRequest, InsertRequest, MoveRequest, NoteEdit, Operation, Store};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as said, run, text_of};

/// A vault whose index this process keeps and does not update again.
fn stale_vault() -> (TestVault, Store) {
    let vault = TestVault::new(&[(".obsidian/app.json", "{}"), ("Start.md", "Water level.\n")]);
    let keeper = vault.store();
    (vault, keeper)
}

/// Gives the first UUID in a text.
fn id_in(text: &str) -> Option<&str> {
    let is_id = |part: &&str| part.len() == 36 && part.bytes().filter(|byte| *byte == b'-').count() == 4;
    text.split(|c: char| !c.is_ascii_hexdigit() && c != '-').find(is_id)
}

/// Calls tools in order, next to a process with a stale index. `ID` is replaced by the first id that an answer names; an
/// expectation that begins with `!` is that of an error.
#[track_caller]
fn check_calls(set: &str, calls: &[(&str, Value, &str)]) {
    let (vault, keeper) = stale_vault();
    let mut client = Client::start(&vault, &["--toolset", set]);
    let mut id = String::new();
    for (tool, arguments, expected) in calls {
        let arguments = arguments.to_string().replace("\"ID\"", &format!("\"{id}\""));
        let result = client.call(tool, serde_json::from_str(&arguments).unwrap());
        let (wanted, is_refused) = expected.strip_prefix('!').map_or((*expected, false), |text| (text, true));
        let text: String =
            result["content"].as_array().unwrap().iter().map(|part| part["text"].to_string()).collect();
        assert_eq!(result["isError"] == true, is_refused, "{set} {tool}: {result}");
        assert!(text.contains(wanted), "{set} {tool} does not say {wanted:?}: {result}");
        if id.is_empty() {
            id = id_in(&result.to_string()).unwrap_or_default().to_owned();
        }
    }
    client.finish();
    drop(keeper);
}

#[test]
fn notes_toolset_answers_with_its_own_writes() {
    check_calls(
        "notes",
        &[
            (
                "write_note",
                json!({ "title": "Heron", "content": "A heron stands in the reeds." }),
                "done: Heron.md",
            ),
            (
                "write_note",
                json!({ "title": "Bird", "content": "A heron stands in the reeds." }),
                "!exactly the same",
            ),
            ("edit_note", json!({ "note": "ID", "action": "append", "text": "It waits." }), "done: Heron.md"),
            (
                "edit_note",
                json!({ "note": "Heron", "action": "set", "key": "a", "value": 1 }),
                "done: Heron.md",
            ),
            ("set_memory", json!({ "note": "ID", "pinned": true }), "pinned"),
            (
                "move_note",
                json!({ "from": "Heron", "to": "Birds/Grey heron.md" }),
                "done: Birds/Grey heron.md",
            ),
            ("link_notes", json!({ "a": "Grey heron", "b": "Start" }), "Start.md"),
            ("read_note", json!({ "notes": "ID" }), "It waits."),
            ("search_notes", json!({ "query": "heron" }), "the index is behind"),
            (
                "session",
                json!({ "action": "handoff_store", "project": "boat", "summary": "Sewn." }),
                "Handoffs/boat.md",
            ),
            ("delete_note", json!({ "note": "ID", "how": "forget" }), "done: Birds/Grey heron.md"),
            ("delete_note", json!({ "note": "Grey heron" }), "done"),
        ],
    );
}

#[test]
fn mem_toolset_answers_with_its_own_writes() {
    check_calls(
        "mem",
        &[
            ("write_mem", json!({ "title": "Heron", "content": "It stands." }), "file_path"),
            ("write_mem", json!({ "title": "Reeds", "content": "They bend." }), "file_path"),
            ("read_mem", json!({ "identifier": "ID" }), "It stands."),
            ("read_mem", json!({ "identifier": "Reeds" }), "They bend."),
            ("edit_mem", json!({ "id": "ID", "title": "Grey heron" }), "success"),
            ("read_mem", json!({ "identifier": "Grey heron" }), "It stands."),
            ("search_mem", json!({ "query": "heron" }), "the index is behind"),
        ],
    );
}

#[test]
fn longterm_toolset_answers_with_its_own_writes() {
    check_calls(
        "longterm",
        &[
            ("save_memory", json!({ "content": "A heron stands in the reeds." }), "saved"),
            ("save_memory", json!({ "content": "A heron stands in the reeds." }), "!Duplicate content"),
            ("update_memory", json!({ "id": "ID", "content": "It flew." }), "updated"),
            ("update_memory", json!({ "id": "ID", "importance": 8 }), "It flew."),
            ("delete_memory", json!({ "id": "ID" }), "deleted successfully"),
        ],
    );
}

#[test]
fn vector_toolset_answers_with_its_own_writes() {
    check_calls(
        "vector",
        &[
            ("store_memories", json!({ "memories": [{ "content": "A heron stands." }] }), "stored with ID"),
            ("get_memories", json!({ "ids": ["ID"] }), "A heron stands."),
            ("update_memories", json!({ "updates": [{ "id": "ID", "content": "It flew." }] }), "updated"),
            ("report_memory_usefulness", json!({ "memory_id": "ID", "useful": true }), "score: 1"),
            ("store_handoff", json!({ "project": "boat", "summary": "Sewn." }), "Handoff stored"),
            ("delete_memories", json!({ "ids": ["ID"] }), "deleted"),
        ],
    );
}

#[test]
fn tiered_toolset_answers_with_its_own_writes() {
    check_calls(
        "tiered",
        &[
            ("memory_store", json!({ "text": "A heron stands in the reeds." }), "stored in tier"),
            ("memory_store", json!({ "text": "A heron stands in the reeds." }), "already exists"),
            ("memory_pin", json!({ "memoryId": "ID" }), "pinned"),
            ("memory_unpin", json!({ "memoryId": "ID" }), "unpinned"),
            ("memory_forget", json!({ "memoryId": "ID" }), "forgotten"),
            ("memory_restore", json!({ "memoryId": "ID" }), "restored"),
        ],
    );
}

#[test]
fn rulebook_toolset_answers_with_its_own_writes() {
    check_calls(
        "rulebook",
        &[
            (
                "rulebook_memory_save",
                json!({ "type": "decision", "title": "Heron", "content": "It stands." }),
                "success",
            ),
            ("rulebook_memory_get", json!({ "ids": ["ID"] }), "It stands."),
            ("rulebook_memory_timeline", json!({ "memoryId": "ID" }), "anchor"),
        ],
    );
}

#[test]
fn commands_answer_with_their_own_writes() {
    let (vault, keeper) = stale_vault();
    let saved = said(&vault, "2026-11-21", &["memory", "save", "A heron stands in the reeds."]);
    let id = saved["memory"]["id"].as_str().unwrap();
    let again = vault.run(&["memory", "save", "A heron stands in the reeds."]);
    assert_eq!(again.status.code(), Some(4), "{again:?}");
    run(&vault, "2026-11-21", &["append", id, "It waits."]);
    let path = saved["memory"]["path"].as_str().unwrap();
    assert!(text_of(&vault, path).contains("It waits."));
    drop(keeper);
}

#[test]
fn a_note_that_another_process_moves_during_a_call_is_followed() {
    let vault = TestVault::new(&[("a.md", "---\nid: heron-1\n---\nIt stands.\n"), ("b.md", "It bends.\n")]);
    let store = vault.store();
    let other = vault.open("none");
    let relocate = |store: &Store, from: &str, to: &str| {
        let request = MoveRequest { from: from.to_owned(), to: to.to_owned(), ..MoveRequest::default() };
        store.changes().change(&Operation::Move(request), false).unwrap();
    };
    let append = |store: &Store, note: &str| {
        let edit = NoteEdit::Append("More.".to_owned(), None);
        store
            .changes()
            .change(&Operation::Edit(EditRequest { note: note.to_owned(), edit, expect: None }), false)
    };
    // With an id of its own, and without.
    for (name, from, to) in [("heron-1", "a.md", "x/a2.md"), ("b", "b.md", "y/b2.md")] {
        let call = store.for_call(None);
        let found = call.lookup().find(name).unwrap().path.to_string();
        assert_eq!(found, from);
        relocate(&other, from, to);
        assert!(append(&call, &found).unwrap().applied);
        assert!(text_of(&vault, to).ends_with("More.\n"), "{to}");
        // Another call does not follow the move.
        assert!(append(&store.for_call(None), from).is_err());
    }
    let call = store.for_call(None);
    let found = call.lookup().find("heron-1").unwrap().path.to_string();
    relocate(&other, &found, "a.md");
    let request = DeleteRequest { note: found, ..DeleteRequest::default() };
    call.changes().change(&Operation::Delete(request), false).unwrap();
    assert!(!vault.root().join("a.md").exists());
}

#[test]
fn concurrent_saves_of_one_text_create_one_note() {
    let vault = TestVault::new(&[(".obsidian/app.json", "{}"), ("Start.md", "Water level.\n")]);
    let stores = [vault.store(), vault.open("none")];
    for round in 0..6 {
        let texts = [format!("Heron number {round} stands."), format!("Reed number {round} bends.")];
        let begin = Barrier::new(4);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let (store, texts, begin) = (stores[number % 2].for_call(None), &texts, &begin);
                scope.spawn(move || {
                    let request =
                        |text: &String| InsertRequest { text: text.clone(), ..InsertRequest::default() };
                    begin.wait();
                    store.memory_writes().insert_unless_duplicate(&request(&texts[0])).unwrap();
                    store.memory_writes().insert_unless_similar(&request(&texts[1])).unwrap();
                });
            }
        });
    }
    let notes = fs::read_dir(vault.root().join("Memories")).unwrap().count();
    assert_eq!(notes, 12, "each text is kept once");
}

#[test]
fn a_call_with_an_operation_id_is_applied_once() {
    let vault = TestVault::new(&[(".obsidian/app.json", "{}"), ("Start.md", "Water level.\n")]);
    let mut client = Client::start(&vault, &[]);
    let write = json!({ "title": "Heron", "content": "It stands.", "operation_id": "op-1" });
    let first = client.call("write_note", write.clone());
    assert_ne!(first["isError"], true, "{first}");
    assert_eq!(client.call("write_note", write.clone()), first);
    let append = json!({ "note": "Heron", "action": "append", "text": "More.", "operation_id": "op-2" });
    let appended = client.call("edit_note", append.clone());
    assert_eq!(client.call("edit_note", append.clone()), appended);
    assert_eq!(text_of(&vault, "Heron.md").matches("More.").count(), 1);
    // A name is of one call alone.
    let other = json!({ "note": "Heron", "action": "append", "text": "Less.", "operation_id": "op-2" });
    assert!(client.refusal("edit_note", other).contains("belongs to another call"));
    // One that failed may be tried again.
    let absent = json!({ "note": "Reeds", "action": "append", "text": "More.", "operation_id": "op-3" });
    client.refusal("edit_note", absent.clone());
    vault.write("Reeds.md", "They bend.\n");
    client.catch_up();
    assert_ne!(client.call("edit_note", absent)["isError"], true);
    // In the request's metadata, for clients that cannot add an argument.
    let beside = json!({ "name": "edit_note", "_meta": { "sidenote/operation_id": "op-4" },
        "arguments": { "note": "Reeds", "action": "append", "text": "Again." } });
    let done = client.request("tools/call", beside.clone());
    assert_eq!(client.request("tools/call", beside), done);
    assert_eq!(text_of(&vault, "Reeds.md").matches("Again.").count(), 1);
    client.finish();
    // Another process knows it, too; also where the first one ended before it answered.
    let month = vault.root().join(".sidenote/local/2026-11.jsonl");
    let mut client = Client::start(&vault, &[]);
    assert_eq!(client.call("edit_note", append.clone()), appended);
    let journal = fs::read_to_string(&month).unwrap();
    let lines = journal.lines().filter(|line| !line.contains(r#""op":"answer""#));
    fs::write(&month, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let again = client.call("edit_note", append);
    assert_eq!(again["structuredContent"]["path"], "Heron.md", "{again}");
    assert_eq!(text_of(&vault, "Heron.md").matches("More.").count(), 1);
    client.finish();
}

#[test]
fn every_tool_that_writes_takes_an_operation_id() {
    for set in ["mem", "longterm", "vector", "tiered", "rulebook", "graph", "memories"] {
        let vault = TestVault::new(&[(".obsidian/app.json", "{}"), ("Start.md", "Water level.\n")]);
        let mut client = Client::start(&vault, &["--toolset", set]);
        let (tool, arguments) = match set {
            "mem" => ("write_mem", json!({ "title": "Heron", "content": "It stands." })),
            "longterm" => ("save_memory", json!({ "content": "It stands." })),
            "vector" => ("store_memories", json!({ "memories": [{ "content": "It stands." }] })),
            "tiered" => ("memory_store", json!({ "text": "It stands." })),
            "memories" => (
                "memory",
                json!({ "command": "create", "path": "/memories/Heron.md", "file_text": "It stands." }),
            ),
            "graph" => (
                "create_entities",
                json!({ "entities": [{ "name": "Heron", "entityType": "bird", "observations": ["It stands."] }] }),
            ),
            _ => {
                ("rulebook_memory_save", json!({ "type": "fact", "title": "Heron", "content": "It stands." }))
            }
        };
        let mut arguments = arguments;
        arguments["operation_id"] = json!("op-1");
        let first = client.call(tool, arguments.clone());
        assert_ne!(first["isError"], true, "{first}");
        assert_eq!(client.call(tool, arguments), first, "{set}");
        client.finish();
        assert_eq!(fs::read_dir(vault.root().join("Memories")).unwrap().count(), 1, "{set}");
    }
}

#[test]
fn a_search_by_tier_or_intent_reports_a_stale_index() {
    let (vault, keeper) = stale_vault();
    vault.write("Late.md", "The water rises.\n");
    let mut client = Client::start(&vault, &["--toolset", "notes"]);
    let mut checked = 0;
    for arguments in [
        json!({ "query": "water" }),
        json!({ "query": "water", "intent": "explore" }),
        json!({ "query": "water", "tier": "HOT" }),
        json!({ "query": "water", "intent": "fact_check", "tier": "COLD" }),
    ] {
        let reply = client.call("search_notes", arguments.clone())["structuredContent"].take();
        assert_eq!(reply["stale"], true, "{arguments}: {reply}");
        assert_eq!(reply["mode"], "bm25", "{arguments}: {reply}");
        assert!(reply["notes"].to_string().contains("this searched by words only"), "{arguments}: {reply}");
        checked += 1;
    }
    assert_eq!(checked, 4);
    client.finish();
    drop(keeper);
}

#[test]
fn a_search_of_memories_reports_a_stale_index() {
    let (vault, keeper) = stale_vault();
    vault.write("Late.md", "The water rises.\n");
    let mut checked = 0;
    for args in [
        &["memory", "search", "water"][..],
        &["memory", "search", "water", "--intent", "explore"],
        &["memory", "search", "water", "--tier", "hot"],
    ] {
        let told = crate::support::stderr(&vault.run(args));
        assert!(told.contains("some files changed and are not in the index yet"), "{args:?}: {told}");
        assert!(told.contains("this searched by words only"), "{args:?}: {told}");
        checked += 1;
    }
    assert_eq!(checked, 3);
    drop(keeper);
}

#[test]
fn a_path_filter_applies_to_a_search_with_an_intent() {
    let vault = TestVault::new(&[("Birds/Heron.md", "Water and reeds.\n"), ("Boat.md", "Water.\n")]);
    let mut client = Client::start(&vault, &["--toolset", "notes"]);
    let arguments = json!({ "query": "water", "intent": "explore", "path": "Birds" });
    let reply = client.call("search_notes", arguments);
    let paths: Vec<&Value> = reply["structuredContent"]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| &found["path"])
        .collect();
    assert_eq!(paths, ["Birds/Heron.md"]);
    client.finish();
}

/// Moves a note in a process that only reads the index, after `outside` changed files, and checks who links to it then.
#[track_caller]
fn check_follow(files: &[(&str, &str)], outside: fn(&TestVault), from: &str, to: &str, linked: &str) {
    let vault = TestVault::new(&[files, &[(".obsidian/app.json", "{}")]].concat());
    let keeper = vault.store();
    outside(&vault);
    let reader = vault.open("none");
    let request = MoveRequest { from: from.to_owned(), to: to.to_owned(), ..MoveRequest::default() };
    assert!(reader.changes().change(&Operation::Move(request), false).unwrap().applied);
    assert_eq!(vault.read("List.md"), linked);
    drop(keeper);
}

/// The index says that the links mean another note, which is gone.
#[test]
fn links_follow_the_note_that_they_mean_now() {
    let files = [("A/Heron.md", "One.\n"), ("B/Heron.md", "Two.\n"), ("List.md", "See [[Heron]].\n")];
    let check = |outside| check_follow(&files, outside, "B/Heron.md", "B/Egret.md", "See [[Egret]].\n");
    check(|vault| vault.remove("A/Heron.md"));
    check(|vault| vault.rename("A/Heron.md", "B/Heron.md"));
}

/// What is moved outside is indexed nowhere yet, and the index knows its links by another path or by none.
#[test]
fn links_follow_a_note_that_was_moved_before_the_index_knows_where() {
    let moved = |from: &str, to: &str| {
        let request = MoveRequest { from: from.to_owned(), to: to.to_owned(), ..MoveRequest::default() };
        Operation::Move(request)
    };
    let vault = TestVault::new(&[
        (".obsidian/app.json", "{}"),
        ("A/Heron.md", "# Reeds\n"),
        ("List.md", "See [[Heron#Reeds]] and [[Late]].\n"),
    ]);
    let keeper = vault.store();
    vault.rename("A/Heron.md", "B/Heron.md");
    vault.write("B/Late.md", "It came late.\n");
    let reader = vault.open("none");
    assert!(reader.changes().change(&moved("B/Heron.md", "B/Egret.md"), false).unwrap().applied);
    assert!(reader.changes().change(&moved("B/Late.md", "B/Later.md"), false).unwrap().applied);
    assert_eq!(vault.read("List.md"), "See [[Egret#Reeds]] and [[Later]].\n");
    let renamed = vault.run(&["rename-heading", "B/Egret.md", "Reeds", "Reed bed"]);
    assert!(renamed.status.success(), "{renamed:?}");
    assert_eq!(vault.read("List.md"), "See [[Egret#Reed bed]] and [[Later]].\n");
    drop(keeper);
}
