//! Tests the toolset `rulebook` against its contract, word for word, over standard input and output.

use std::fs;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, journal_files, text_of, tree, uses};

const NOW_MS: i64 = 1_795_219_200_000;
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

fn start(vault: &TestVault) -> Client {
    Client::start(vault, &["--toolset", "rulebook"])
}

/// Calls a tool that must fail, and gives what it says, which is JSON as well.
fn error(client: &mut Client, tool: &str, arguments: Value) -> String {
    let told: Value = serde_json::from_str(&client.refusal(tool, arguments)).unwrap();
    assert_eq!((&told["success"], told.as_object().unwrap().len()), (&json!(false), 2), "{told}");
    told["error"].as_str().unwrap().to_owned()
}

fn save(client: &mut Client, kind: &str, title: &str, content: &str) -> String {
    let saved =
        client.json("rulebook_memory_save", json!({ "type": kind, "title": title, "content": content }));
    assert_eq!(saved["success"], true);
    saved["memory"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn all_toolsets_are_served_at_once() {
    let vault = TestVault::new(&[]);
    let mut client =
        Client::start(&vault, &["--toolset", "notes,mem,longterm,vector,tiered,rulebook,graph,memories"]);
    let list = client.request("tools/list", json!({}));
    let names: std::collections::BTreeSet<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), list["tools"].as_array().unwrap().len());
    client.finish();
}

#[test]
fn a_memory_is_saved_with_its_title() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let saved = client.text(
        "rulebook_memory_save",
        json!({
            "type": "decision", "title": "Files: plain", "tags": ["design", "#storage"],
            "content": "We chose files.\n\n<private>and the key 4711</private>They last.",
        }),
    );
    let id = serde_json::from_str::<Value>(&saved).unwrap()["memory"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        saved,
        format!(r#"{{"success":true,"memory":{{"id":"{id}","type":"decision","title":"Files: plain"}}}}"#)
    );
    assert_eq!(
        text_of(&vault, "Memories/Files plain.md"),
        format!(
            "---\nid: {id}\ntitle: \"Files: plain\"\ntags:\n  - design\n  - storage\noriginal_tags:\n  - design\n  - \"#storage\"\ntype: decision\ncreated_at: \"2026-11-21T00:00:00Z\"\n---\nWe chose files.\n\nThey last.\n"
        )
    );
    // An equal memory is saved too, with the same title.
    let again = client.json(
        "rulebook_memory_save",
        json!({ "type": "decision", "title": "Files: plain", "content": "We chose files.\n\nThey last." }),
    );
    assert_eq!(again["memory"]["title"], "Files: plain");
    assert_ne!(again["memory"]["id"], json!(id));
    let odd = client.json("rulebook_memory_save", json!({ "type": "x", "title": "???", "content": "odd" }));
    assert_eq!(odd["memory"]["title"], "???");
    let long = "long ".repeat(100);
    for _ in 0..2 {
        let saved =
            client.json("rulebook_memory_save", json!({ "type": "x", "title": long, "content": "text" }));
        assert_eq!(saved["memory"]["title"], long.trim());
    }
    let everything = tree(vault.root());
    assert!(everything.values().all(|bytes| !String::from_utf8_lossy(bytes).contains("4711")));
    let records = journal_files(vault.root());
    assert!(!records.is_empty());
    for file in records {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains("4711"), "{}", file.display());
    }
    for (arguments, says) in [
        (json!({ "title": "t", "content": "c" }), "type"),
        (json!({ "type": "x", "content": "c" }), "title"),
        (json!({ "type": "x", "title": "t" }), "content"),
        (json!({ "type": "x", "title": " ", "content": "c" }), "title is empty"),
        (json!({ "type": "x", "title": "t", "content": "<PRIVATE>c" }), "there is no text to keep"),
    ] {
        let error = error(&mut client, "rulebook_memory_save", arguments);
        assert!(error.contains(says), "{error}");
    }
    client.finish();
}

#[test]
fn a_search_gives_one_line_for_each_memory() {
    let vault = TestVault::new(&[("Notes/Own.md", "---\ncreated: 2020-01-01\n---\nstorage of boats\n")]);
    let mut client = start(&vault);
    let id = save(&mut client, "decision", "Storage", "Plain files for storage.");
    let other = save(&mut client, "bugfix", "Crash", "Storage was full. Storage storage.");
    let found = client.json("rulebook_memory_search", json!({ "query": "storage" }));
    assert_eq!((&found["success"], &found["total"]), (&json!(true), &json!(3)));
    let results = found["results"].as_array().unwrap();
    let first = results.iter().find(|result| result["id"] == json!(id)).unwrap();
    assert_eq!(
        first,
        &json!({ "id": id, "title": "Storage", "type": "decision", "score": first["score"], "matchType": "bm25", "createdAt": NOW_MS })
    );
    let own = results.iter().find(|result| result["title"] == "Own").unwrap();
    assert_eq!((&own["type"], &own["createdAt"]), (&json!("general"), &json!(1_577_836_800_000_i64)));
    let scores: Vec<f64> = results.iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
    let of_type = client.json("rulebook_memory_search", json!({ "query": "storage", "type": "bugfix" }));
    assert_eq!((&of_type["results"][0]["id"], &of_type["total"]), (&json!(other), &json!(1)));
    let one =
        client.json("rulebook_memory_search", json!({ "query": "storage", "limit": 1, "mode": "bm25" }));
    assert_eq!(one["total"], 1);
    // Without a model meaning finds nothing.
    let vector =
        client.text("rulebook_memory_search", json!({ "query": "keeping storage", "mode": "vector" }));
    let nothing = r#"{"success":true,"results":[],"total":0,"notices":["no embedding model is set, so a search by meaning finds nothing"]}"#;
    assert_eq!(vector, nothing);
    for (arguments, says) in [
        (json!({}), "query"),
        (json!({ "query": "x", "mode": "fuzzy" }), r#"mode is "fuzzy"; expected bm25, vector, hybrid"#),
    ] {
        let error = error(&mut client, "rulebook_memory_search", arguments);
        assert!(error.contains(says) && error.contains("A valid call: {"), "{error}");
    }
    // Twenty where nothing is said.
    for at in 0..21 {
        save(&mut client, "change", &format!("Case {at}"), "dunlin");
    }
    assert_eq!(client.json("rulebook_memory_search", json!({ "query": "dunlin" }))["total"], 20);
    assert_eq!(client.json("rulebook_memory_search", json!({ "query": "dunlin", "limit": 30 }))["total"], 21);
    client.finish();
    assert_eq!((uses(&vault, &id), uses(&vault, &other)), (0, 0));
}

#[test]
fn both_lists_find_by_words_and_meaning() {
    let vault = TestVault::new(&[
        ("Boats.md", "The harbour is full of boats.\n"),
        ("Tax.md", "Forms for the tax office.\n"),
    ]);
    let indexed = vault.command(&["index"]).env("SIDENOTE_EMBED_PROVIDER", "e5").output().unwrap();
    assert!(indexed.status.success());
    let mut client =
        Client::of(vault.command(&["mcp", "--toolset", "rulebook"]).env("SIDENOTE_EMBED_PROVIDER", "e5"));
    let both = client.json("rulebook_memory_search", json!({ "query": "harbour boats" }));
    assert_eq!(
        (&both["results"][0]["title"], &both["results"][0]["matchType"]),
        (&json!("Boats"), &json!("both"))
    );
    let near = client.json("rulebook_memory_search", json!({ "query": "ships", "mode": "vector" }));
    assert_eq!(
        (&near["results"][0]["title"], &near["results"][0]["matchType"]),
        (&json!("Boats"), &json!("vector"))
    );
    client.finish();
}

#[test]
fn a_timeline_goes_both_ways() {
    let days = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-03", "2026-01-05"];
    let files: Vec<(String, String)> = days
        .iter()
        .enumerate()
        .map(|(at, day)| (format!("N{at}.md"), format!("---\nid: {at}{at}{at}{at}{at}{at}{at}{at}-0000-4000-8000-000000000000\ntype: change\ncreated: {day}\n---\ntext {at}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let vault = TestVault::new(&files);
    let mut client = start(&vault);
    let id = "22222222-0000-4000-8000-000000000000";
    let told = client.json("rulebook_memory_timeline", json!({ "memoryId": id, "window": 1 }));
    let day = 86_400_000_i64;
    let entry = |at: usize, created: i64, position: &str, distance: i64| {
        json!({
            "id": format!("{}-0000-4000-8000-000000000000", at.to_string().repeat(8)), "title": format!("N{at}"), "type": "change",
            "createdAt": created, "position": position, "distanceFromAnchor": distance,
        })
    };
    let first = 1_767_225_600_000_i64;
    assert_eq!(
        told,
        json!({ "success": true, "timeline": [
            entry(1, first + day, "before", day), entry(2, first + 2 * day, "anchor", 0), entry(3, first + 2 * day, "after", 0),
        ] })
    );
    let whole = client.json("rulebook_memory_timeline", json!({ "memoryId": id }));
    assert_eq!(whole["timeline"].as_array().unwrap().len(), 5);
    let alone = client.json("rulebook_memory_timeline", json!({ "memoryId": id, "window": 0 }));
    assert_eq!(alone["timeline"].as_array().unwrap().len(), 1);
    let all = client.json("rulebook_memory_timeline", json!({ "memoryId": id, "window": u64::MAX }));
    assert_eq!(all["timeline"].as_array().unwrap().len(), 5);
    for name in ["99999999-0000-4000-8000-000000000000", "N2"] {
        let error = error(&mut client, "rulebook_memory_timeline", json!({ "memoryId": name }));
        assert_eq!(error, format!("Memory not found: {name}"));
    }
    client.finish();
}

#[test]
fn reading_a_memory_counts_as_a_use() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let one = save(&mut client, "feature", "One", "first\n\nsecond");
    let other = save(&mut client, "change", "Two", "third");
    let got = client.json("rulebook_memory_get", json!({ "ids": [other, NOBODY, one, "One"] }));
    assert_eq!(got["success"], true);
    let memories = got["memories"].as_array().unwrap();
    assert_eq!(memories.len(), 2);
    assert_eq!((&memories[0]["id"], &memories[1]["id"]), (&json!(other), &json!(one)));
    let memory = &memories[1];
    assert_eq!(
        (&memory["type"], &memory["title"], &memory["content"]),
        (&json!("feature"), &json!("One"), &json!("first\n\nsecond"))
    );
    assert_eq!((&memory["tags"], &memory["createdAt"]), (&json!([]), &json!(NOW_MS)));
    assert!(memory["updatedAt"].as_i64().unwrap() > 0);
    assert_eq!(client.text("rulebook_memory_get", json!({ "ids": [] })), r#"{"success":true,"memories":[]}"#);
    assert!(error(&mut client, "rulebook_memory_get", json!({})).contains("ids"));
    client.finish();
    assert_eq!((uses(&vault, &one), uses(&vault, &other)), (1, 1));
}

#[test]
fn stats_report_sizes_and_counts() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let none = client.json("rulebook_memory_stats", json!({}));
    assert_eq!(
        none["stats"],
        json!({
            "dbSizeBytes": 0, "memoryCount": 0, "sessionCount": 0, "oldestMemory": null, "newestMemory": null,
            "maxSizeBytes": 524_288_000, "usagePercent": 0.0, "indexHealth": "good",
        })
    );
    save(&mut client, "change", "One", "text");
    client.finish();
    vault.write("Old.md", "---\ncreated: 2020-01-01\n---\nold\n");
    let mut client = start(&vault);
    save(&mut client, "change", "Two", "text");
    let told = client.json("rulebook_memory_stats", json!({}));
    let stats = &told["stats"];
    let bytes: usize =
        ["One", "Two"].iter().map(|name| text_of(&vault, &format!("Memories/{name}.md")).len()).sum();
    assert_eq!(
        (&stats["dbSizeBytes"], &stats["memoryCount"], &stats["sessionCount"]),
        (&json!(bytes), &json!(3), &json!(2))
    );
    assert_eq!(
        (&stats["oldestMemory"], &stats["newestMemory"]),
        (&json!(1_577_836_800_000_i64), &json!(NOW_MS))
    );
    assert_eq!(stats["indexHealth"], "good");
    for (name, value) in stats.as_object().unwrap() {
        assert_eq!(&told[name], value);
    }
    client.finish();
}

#[test]
fn cleanup_evicts_memories_alone() {
    let vault = TestVault::new(&[("Notes/Own.md", "a person's own note\n")]);
    let mut client = start(&vault);
    for at in 0..7 {
        save(&mut client, "change", &format!("Memory {at}"), "text");
    }
    let none = client.text("rulebook_memory_cleanup", json!({ "force": true }));
    // What this session made stays.
    assert_eq!(none, r#"{"success":true,"evictedCount":0,"freedBytes":0}"#);
    client.finish();
    let mut client = start(&vault);
    assert_eq!(client.json("rulebook_memory_cleanup", json!({}))["evictedCount"], 0);
    let bytes = text_of(&vault, "Memories/Memory 0.md").len();
    let told = client.json("rulebook_memory_cleanup", json!({ "force": true }));
    assert_eq!(told, json!({ "success": true, "evictedCount": 1, "freedBytes": bytes }));
    assert!(vault.root().join(".trash/Memories/Memory 0.md").exists());
    assert!(vault.root().join("Notes/Own.md").exists());
    client.finish();
}

#[test]
fn memory_can_be_turned_off() {
    let vault = TestVault::new(&[("Note.md", "text\n")]);
    let mut client = start(&vault);
    let calls = [
        ("rulebook_memory_search", json!({ "query": "text" })),
        ("rulebook_memory_timeline", json!({ "memoryId": NOBODY })),
        ("rulebook_memory_get", json!({ "ids": [] })),
        ("rulebook_memory_save", json!({ "type": "x", "title": "t", "content": "c" })),
        ("rulebook_memory_stats", json!({})),
        ("rulebook_memory_cleanup", json!({ "force": true })),
    ];
    vault.write(".rulebook", r#"{"version": "5", "memory": {"enabled": false, "dbPath": "x"}}"#);
    let off =
        r#"{"success":false,"error":"Memory system is not enabled. Set memory.enabled=true in .rulebook"}"#;
    for (tool, arguments) in &calls {
        assert_eq!(client.refusal(tool, arguments.clone()), off);
    }
    // It is looked up at each call, and says nothing else.
    for text in [
        r#"{"memory": {"enabled": true}}"#,
        r#"{"memory": false}"#,
        r#"{"memory": {"enabled": "no"}}"#,
        "[]",
        "no JSON",
        "",
    ] {
        vault.write(".rulebook", text);
        assert_eq!(client.json("rulebook_memory_search", json!({ "query": "text" }))["total"], 1, "{text}");
    }
    vault.remove(".rulebook");
    fs::create_dir(vault.root().join(".rulebook")).unwrap();
    assert_eq!(client.json("rulebook_memory_search", json!({ "query": "text" }))["total"], 1);
    client.finish();
    // By settings, too; and no file turns on what they turn off.
    fs::remove_dir(vault.root().join(".rulebook")).unwrap();
    vault.write(".rulebook", r#"{"memory": {"enabled": true}}"#);
    vault.write(".sidenote/config.toml", "[memory]\nenabled = false\n");
    let mut client = start(&vault);
    for (tool, arguments) in &calls {
        assert_eq!(client.refusal(tool, arguments.clone()), off);
    }
    client.finish();
    let names: Vec<String> = tree(vault.root()).into_keys().collect();
    assert_eq!(names, [".rulebook", "Note.md"]);
}
