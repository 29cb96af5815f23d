//! Tests tags that Obsidian does not read: how they are stored, returned, found, renamed and removed.

use serde_json::{Value, json};
use sidenote::catalog::Filter;
use sidenote::markdown::tag_conversion::{StoredTags, sanitize};
use sidenote::store::{ListRequest, Operation, RenameKind, RenameRequest, SearchRequest};

use crate::mcp_client::Client;
use crate::support::{TestVault, found, json as told, run, stderr, text_of};

/// Tags of programs that are no Obsidian.
const FOREIGN: &[&str] = &["node.js", "c++", "c#", "v1.2", "2024", "user:alice", "AT&T", "two words", "!!"];

#[test]
fn an_invalid_tag_is_converted_to_one_that_obsidian_reads() {
    let cases = [
        ("node.js", Some("node-js")),
        ("c++", Some("c-plus-plus")),
        ("c#", Some("c-sharp")),
        ("v1.2", Some("v1-2")),
        ("2024", Some("_2024")),
        ("user:alice", Some("user-alice")),
        ("AT&T", Some("AT-and-T")),
        ("two words", Some("two-words")),
        ("a/b.c", Some("a/b-c")),
        ("#work", Some("work")),
        ("日本", Some("日本")),
        ("!!", None),
        (" ", None),
        ("-", Some("-")),
    ];
    for (given, expect) in cases {
        assert_eq!(sanitize(given).as_deref(), expect, "{given:?}");
    }
    assert_eq!(cases.len(), 14);
    let stored = StoredTags::of(&["work", "node.js", "node-js", " ", "work"]);
    assert_eq!(stored.tags, ["work", "node-js"]);
    assert_eq!(stored.originals, ["work", "node.js", "node-js"]);
    assert_eq!(
        StoredTags::of(&["a", "b"]),
        StoredTags { tags: vec!["a".into(), "b".into()], originals: vec![] }
    );
}

/// Saves a memory with foreign tags by one tool, and gives the tags that another tool returns.
fn check_toolset(toolset: &str, save: (&str, Value), read: impl Fn(&mut Client, &str) -> Value) {
    let vault = TestVault::new(&[]);
    let mut client = Client::start(&vault, &["--toolset", toolset]);
    let result = client.call(save.0, save.1);
    assert_ne!(result["isError"], true, "{toolset}: {result}");
    let text: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap_or_default();
    let places = [&text["id"], &text["memory"]["id"], &result["structuredContent"]["details"]["id"]];
    let id = places.iter().find_map(|id| id.as_str()).unwrap().to_owned();
    assert_eq!(read(&mut client, &id), json!(FOREIGN), "{toolset}");
    client.finish();
    let notes: Vec<String> =
        told(&vault, "2026-11-21", &["list"]).as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    for tag in FOREIGN.iter().filter(|tag| !tag.contains('!')) {
        let list = told(&vault, "2026-11-21", &["list", "--tag", tag]);
        assert_eq!(list.as_array().unwrap().len(), 1, "{toolset}: {tag}");
    }
    // Obsidian reads each of them.
    let path = told(&vault, "2026-11-21", &["list"])[0]["path"].as_str().unwrap().to_owned();
    let note = text_of(&vault, &path);
    for line in ["  - node-js\n", "  - c-plus-plus\n", "  - _2024\n", "original_tags:\n"] {
        assert!(note.contains(line), "{toolset}: {note}");
    }
}

#[test]
fn every_toolset_returns_tags_as_given() {
    check_toolset(
        "longterm",
        ("save_memory", json!({ "content": "Said by somebody", "tags": FOREIGN })),
        |client, _| client.json("get_all_memories", json!({}))["memories"][0]["tags"].clone(),
    );
    check_toolset(
        "mem",
        ("write_mem", json!({ "title": "One", "content": "Said by somebody", "tags": FOREIGN })),
        |client, id| client.json("read_mem", json!({ "identifier": id }))["metadata"]["tags"].clone(),
    );
    check_toolset(
        "tiered",
        ("memory_store", json!({ "text": "Said by somebody", "tags": FOREIGN })),
        |client, id| {
            let explained = client.call("memory_explain", json!({ "memoryId": id }));
            explained["structuredContent"]["details"]["tags"].clone()
        },
    );
    check_toolset(
        "rulebook",
        (
            "rulebook_memory_save",
            json!({ "type": "decision", "title": "One", "content": "Said by somebody", "tags": FOREIGN }),
        ),
        |client, id| {
            client.json("rulebook_memory_get", json!({ "ids": [id] }))["memories"][0]["tags"].clone()
        },
    );
}

#[test]
fn updates_searches_and_imports_keep_such_tags() {
    let vault = TestVault::new(&[]);
    let mut client = Client::start(&vault, &["--toolset", "longterm,mem"]);
    let saved = client.json("save_memory", json!({ "content": "About the server", "tags": ["node.js"] }));
    assert_eq!(saved["tags"], json!(["node.js"]));
    let found = client.json("search_by_tags", json!({ "tags": ["Node.js"] }));
    assert_eq!(found[0]["tags"], json!(["node.js"]));
    let found = client.json("search_mem", json!({ "query": "server", "tags": ["node.js"] }));
    assert_eq!(found["total"], 1);
    let updated = client.json("update_memory", json!({ "id": saved["id"], "tags": ["c++", "b", "a"] }));
    assert_eq!(updated["tags"], json!(["c++", "b", "a"]));
    let plain = client.json("update_memory", json!({ "id": saved["id"], "tags": ["b", "a"] }));
    assert_eq!(plain["tags"], json!(["b", "a"]));
    assert!(!text_of(&vault, "Memories/About the server.md").contains("original_tags"));
    client.finish();
    let import = r#"[{"content": "From elsewhere", "tags": ["node.js", 2024, "ok"]}]"#;
    vault.write("in.json", import);
    run(&vault, "2026-11-21", &["import", vault.root().join("in.json").to_str().unwrap()]);
    let note = text_of(&vault, "Memories/From elsewhere.md");
    assert!(
        note.contains(
            "tags:\n  - node-js\n  - _2024\n  - ok\noriginal_tags:\n  - node.js\n  - \"2024\"\n  - ok\n"
        ),
        "{note}"
    );
}

#[test]
fn a_tag_in_a_file_is_found_as_it_is_written() {
    let vault = TestVault::new(&[
        ("A.md", "---\ntags: [node.js, 2024, two words, ok]\n---\na\n"),
        ("B.md", "---\ntags: c++\n---\nb\n"),
        ("C.md", "---\ntags: a, b\n---\nno tags since 1.9\n"),
        ("D.md", "---\noriginal_tags: [gone.js]\ntags: [other]\n---\nits tag was taken away\n"),
    ]);
    let store = vault.store();
    let cases: &[(&str, &[&str])] = &[
        ("node.js", &["A.md"]),
        ("2024", &["A.md"]),
        ("two words", &["A.md"]),
        ("OK", &["A.md"]),
        ("c++", &["B.md"]),
        ("a, b", &[]),
        ("gone.js", &[]),
        ("node-js", &[]),
    ];
    for (tag, expect) in cases {
        let filter = Filter { tags: vec![(*tag).to_owned()], ..Filter::default() };
        let listed = store.reads().list(&ListRequest { filter, ..ListRequest::default() }).unwrap().notes;
        let paths: Vec<&str> = listed.iter().map(|note| note.path.as_str()).collect();
        assert_eq!(paths, *expect, "{tag}");
    }
    assert_eq!(cases.len(), 8);
    let query =
        |query: &str| found(&store, &SearchRequest { query: query.to_owned(), ..SearchRequest::default() });
    assert_eq!(query("tag:node.js"), ["A.md"]);
    assert_eq!(query("tag:#c++"), ["B.md"]);
}

#[test]
fn the_command_line_reports_converted_tags() {
    let vault = TestVault::new(&[]);
    let made = vault.run(&["new", "Server", "--tag", "node.js", "--tag", "#work"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(stderr(&made).contains("\"node.js\"; it is stored as \"node-js\""), "{}", stderr(&made));
    assert!(!stderr(&made).contains("work"), "{}", stderr(&made));
    let note = text_of(&vault, "Server.md");
    assert!(note.contains("tags:\n  - node-js\n  - work\noriginal_tags:\n  - node.js\n  - work\n"), "{note}");
    let tagged = vault.run(&["tag", "Server", "+c++", "-node.js"]);
    assert!(tagged.status.success(), "{}", stderr(&tagged));
    let note = text_of(&vault, "Server.md");
    assert!(note.contains("tags:\n  - work\n  - c-plus-plus\noriginal_tags:\n  - work\n  - c++\n"), "{note}");
    let saved = vault.run(&["memory", "save", "A memory of it", "--tags", "v1.2"]);
    assert!(saved.status.success() && stderr(&saved).contains("\"v1-2\""), "{}", stderr(&saved));
    let mut client = Client::start(&vault, &[]);
    let written = client.call("write_note", json!({ "title": "W", "content": "w", "tags": ["AT&T"] }));
    assert_ne!(written["isError"], true, "{written}");
    assert!(written["structuredContent"]["notices"][0].as_str().unwrap().contains("AT-and-T"), "{written}");
    client.finish();
}

/// Renames a tag in one note and compares its text.
#[track_caller]
fn check_rename(old: &str, new: &str, before: &str, after: &str) {
    let vault = TestVault::new(&[("N.md", before)]);
    let request = RenameRequest { kind: RenameKind::Tag, old: old.to_owned(), new: new.to_owned() };
    vault.store().changes().change(&Operation::RenameEverywhere(request), false).unwrap();
    assert_eq!(text_of(&vault, "N.md"), after);
}

#[test]
fn a_renamed_tag_occurs_once() {
    check_rename("old", "new", "---\ntags: [old, new]\n---\n#old\n", "---\ntags: [new]\n---\n#new\n");
    check_rename(
        "old",
        "new",
        "---\ntags:\n  - new\n  - x\n  - Old\n---\n",
        "---\ntags:\n  - new\n  - x\n---\n",
    );
    check_rename(
        "old",
        "new",
        "---\ntags: [old/a, new/a, same, same]\n---\n",
        "---\ntags: [new/a, same, same]\n---\n",
    );
    check_rename("node.js", "node", "---\ntags: [x, node.js]\n---\n", "---\ntags: [x, node]\n---\n");
    check_rename(
        "node.js",
        "node",
        "---\ntags: [node-js, x]\noriginal_tags: [node.js, x]\n---\n",
        "---\ntags: [node, x]\noriginal_tags: [x]\n---\n",
    );
}

#[test]
fn inspect_lists_each_tag_once() {
    let vault = TestVault::new(&[("N.md", "---\ntags: [Tag, v1.2]\n---\n#TAG and #tag and #other\n")]);
    let tags = told(&vault, "2026-11-21", &["inspect", "N"])["tags"].clone();
    assert_eq!(tags, json!(["Tag", "other", "v1.2"]));
}
