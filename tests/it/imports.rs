//! Tests imports of memories from other programs: what every key becomes, what is left out, and databases.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as reply_of, run, stderr, text_of, tree};

const NOW: &str = "2026-11-21";

/// Imports a file of this name and text, and returns the reply.
fn import(vault: &TestVault, name: &str, text: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, text).unwrap();
    reply_of(vault, NOW, &["memory", "import", file.to_str().unwrap()])
}

fn note(vault: &TestVault, title: &str) -> String {
    text_of(vault, &format!("Memories/{title}.md"))
}

/// The importance of all memories by their title, as a list shows it.
fn importances(vault: &TestVault, now: &str) -> Vec<(String, f64)> {
    let list = reply_of(vault, now, &["memory", "list"]);
    let one = |memory: &Value| {
        (memory["title"].as_str().unwrap().to_owned(), memory["importance"].as_f64().unwrap())
    };
    let mut all: Vec<_> = list.as_array().unwrap().iter().map(one).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[test]
fn a_memory_that_was_deleted_or_forgotten_stays_forgotten() {
    let records = json!([
        { "content": "Deleted heron", "superseded_by": "DELETED" },
        { "content": "Hidden heron", "do_not_inject": 1 },
        { "content": "Forgotten heron", "forgotten": 1 },
        { "content": "Silent heron", "forgotten": "true" },
        { "content": "Older heron", "superseded_by": "550e8400-e29b-41d4-a716-446655440000" },
        { "content": "Live heron", "superseded_by": null, "do_not_inject": 0, "forgotten": false },
    ]);
    let table = "content,superseded_by,do_not_inject,forgotten\nDeleted heron,DELETED,,\nHidden heron,,1,\nForgotten heron,,,1\nSilent heron,,,true\nOlder heron,550e8400-e29b-41d4-a716-446655440000,,\nLive heron,,0,false\n";
    for (name, text) in [("in.json", records.to_string()), ("in.csv", table.to_owned())] {
        let vault = TestVault::new(&[]);
        let reply = import(&vault, name, &text);
        assert_eq!((&reply["total"], &reply["forgotten"]), (&json!(6), &json!(4)), "{reply}");
        for dead in ["Deleted", "Hidden", "Forgotten", "Silent"] {
            let text = note(&vault, &format!("{dead} heron"));
            assert!(text.contains("forgotten: true\n") && !text.contains("superseded_by"), "{text}");
        }
        assert!(note(&vault, "Older heron").contains("superseded_by: 550e8400-"), "{name}");
        let found = run(&vault, NOW, &["search", "heron", "--mode", "bm25"]);
        assert!(found.contains("Live heron") && !found.contains("Hidden"), "{found}");
    }
}

#[test]
fn every_key_comes_as_it_was() {
    let records = json!([{
        "id": "m-1", "content": "The heron nests.", "tags": "[\"a\",\"b c\"]", "memory_type": "fact",
        "importance": 6.5, "created_at": 1_700_000_000_123_i64, "updated_at": 1_700_000_100_456_i64, "pinned": 1,
        "usefulness": 2.0, "metadata": "{\"z\": 1, \"topic\": {\"deep\": true}}", "source": "chat", "category": "birds",
        "session_id": "s-1", "project": "/river", "tier": "ARCHIVE",
    }]);
    let mut table = csv::Writer::from_writer(Vec::new());
    let record = records[0].as_object().unwrap();
    table.write_record(record.keys()).unwrap();
    let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    table.write_record(record.values().map(cell)).unwrap();
    let table = String::from_utf8(table.into_inner().unwrap()).unwrap();
    for (name, text) in [("in.json", records.to_string()), ("in.csv", table)] {
        let vault = TestVault::new(&[]);
        import(&vault, name, &text);
        let text = note(&vault, "The heron nests");
        for line in [
            "id: m-1\n",
            "type: fact\n",
            "importance: 6.5\n",
            "created_at: \"2023-11-14T22:13:20.123Z\"\n",
            "updated_at: \"2023-11-14T22:15:00.456Z\"\n",
            "pinned: true\n",
            "usefulness: 2\n",
            "source: chat\n",
            "category: birds\n",
            "session: s-1\n",
            "project: /river\n",
            "tier: archive\n",
            "original_tags:\n  - a\n  - b c\n",
        ] {
            assert!(text.contains(line), "{name}: {line:?} is not in {text}");
        }
        let export = run(&vault, NOW, &["memory", "export", "--format", "jsonl"]);
        let record: Value = serde_json::from_str(&export).unwrap();
        assert_eq!(record["properties"]["metadata"], json!({ "z": 1, "topic": { "deep": true } }), "{name}");
    }
}

#[test]
fn times_of_a_table_are_seconds_milliseconds_or_dates() {
    let vault = TestVault::new(&[]);
    let table = "content,created_at\nSeconds,1700000000\nMilliseconds,1700000000123\nDate,2023-11-14\n";
    import(&vault, "in.csv", table);
    assert!(note(&vault, "Seconds").contains("\"2023-11-14T22:13:20Z\""));
    assert!(note(&vault, "Milliseconds").contains("\"2023-11-14T22:13:20.123Z\""));
    assert!(note(&vault, "Date").contains("2023-11-1"));
    let file = vault.root().join(".in.csv");
    for (cell, why) in [("2024", "is not a time"), ("soon", "is not a time"), ("-5", "is not a time")] {
        fs::write(&file, format!("content,created_at\nx,{cell}\n")).unwrap();
        let refused = vault.run(&["memory", "import", file.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2), "{cell}");
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    }
    fs::write(&file, "content,pinned\nx,maybe\n").unwrap();
    let refused = vault.run(&["memory", "import", file.to_str().unwrap()]);
    assert!(stderr(&refused).contains("its `pinned` \"maybe\" is neither true nor false"));
}

#[test]
fn an_importance_comes_in_its_own_scale_and_does_not_decay_twice() {
    // All are at most 1 and one is less: the scale is 0 to 1.
    let vault = TestVault::new(&[]);
    let records = json!([
        { "content": "High", "importance": 0.8, "created_at": "2026-01-01" },
        { "content": "Low", "importance": 0.1, "created_at": "2026-01-01" },
        { "content": "Top", "importance": 1, "created_at": "2026-01-01" },
    ]);
    import(&vault, "in.json", &records.to_string());
    let shown = importances(&vault, NOW);
    assert_eq!(shown, [("High".to_owned(), 8.0), ("Low".to_owned(), 1.8), ("Top".to_owned(), 10.0)]);
    // What was exported is what it was worth at last. From now on it decays.
    let vault = TestVault::new(&[]);
    let records = json!([{ "content": "Old news", "importance": 6, "created_at": "2026-01-01" }]);
    import(&vault, "in.json", &records.to_string());
    assert_eq!(importances(&vault, NOW)[0].1, 6.0);
    assert_eq!(importances(&vault, "2027-01-20")[0].1, 3.0);
    // Also what sidenote exported itself, where the frontmatter has the importance of the beginning.
    let vault = TestVault::new(&[(
        "Memories/Heron.md",
        "---\nimportance: 8\ncreated_at: 2026-01-01\n---\nThe heron nests.\n",
    )]);
    run(&vault, "2026-03-02", &["memory", "maintain", "--write-back"]);
    let at = "2026-04-16";
    let worth = importances(&vault, at);
    assert!(worth[0].1 > 1.5 && worth[0].1 < 4.0, "{worth:?}");
    let export = run(&vault, at, &["memory", "export"]);
    let other = TestVault::new(&[]);
    let file = other.root().join(".in.json");
    fs::write(&file, export).unwrap();
    run(&other, at, &["memory", "import", file.to_str().unwrap()]);
    assert_eq!(importances(&other, at), worth);
    assert_eq!(text_of(&other, "Memories/Heron.md"), text_of(&vault, "Memories/Heron.md"));
    // Beyond the scale, the limit is taken and told.
    let vault = TestVault::new(&[]);
    let reply = import(&vault, "in.json", r#"[{"content": "Huge", "importance": 14}]"#);
    assert_eq!(reply["notices"][0], "the importance 14 of memory 1 becomes 10");
}

#[test]
fn what_is_left_out_is_listed_and_totals_come_last() {
    let vault = TestVault::new(&[]);
    let records = json!([
        { "content": "One", "embedding": [0.5], "access_count": 3, "color": "" },
        { "content": "Two", "embedding": [0.5], "access_count": 0 },
        { "content": "One" }, { "content": " " },
    ]);
    let file = vault.root().join(".in.json");
    fs::write(&file, records.to_string()).unwrap();
    let done = vault.run(&["memory", "import", file.to_str().unwrap()]);
    assert_eq!(
        String::from_utf8(done.stdout.clone()).unwrap(),
        "left out: access_count of 1 memory\nleft out: embedding of 2 memories\n4 memories read: 2 notes imported, 2 skipped\n"
    );
    assert!(stderr(&done).contains("1 of the skipped memories have no text"), "{}", stderr(&done));
}

/// Makes a database at the path, and imports it. The database and its folder stay as they are.
fn import_database(vault: &TestVault, file: &Path, sql: &str) -> Value {
    let db = Connection::open(file).unwrap();
    db.execute_batch(sql).unwrap();
    db.close().unwrap();
    let before = tree(file.parent().unwrap());
    let reply = reply_of(vault, NOW, &["memory", "import", file.to_str().unwrap()]);
    assert_eq!(tree(file.parent().unwrap()), before);
    let again = reply_of(vault, NOW, &["memory", "import", file.to_str().unwrap()]);
    assert_eq!(again["imported"], json!([]), "{again}");
    reply
}

#[test]
fn the_database_of_the_longterm_server_is_read() {
    let (vault, folder) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    let reply = import_database(
        &vault,
        &folder.path().join("memories.db"),
        "CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT NOT NULL, content_hash TEXT NOT NULL,
             metadata TEXT NOT NULL DEFAULT '{}', embedding TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '[]',
             importance REAL NOT NULL DEFAULT 5.0, memory_type TEXT NOT NULL DEFAULT 'general', created_at TEXT NOT NULL,
             updated_at TEXT NOT NULL, last_accessed TEXT NOT NULL);
         INSERT INTO memories VALUES ('550e8400-e29b-41d4-a716-446655440000', 'Tea at five', 'abc', '{\"topic\": \"tea\"}',
             '[0.1, 0.2]', '[\"a.b\", \"two words\"]', 6.5, 'fact', '2026-01-02T03:04:05.678Z', '2026-02-02T03:04:05.678Z',
             '2026-02-02T03:04:05.678Z');",
    );
    assert_eq!(reply["left_out"], json!({ "content_hash": 1, "embedding": 1, "last_accessed": 1 }));
    let mut client = Client::of(vault.command(&["mcp", "--toolset", "longterm"]).env("SIDENOTE_NOW", NOW));
    let memory = client.json("get_all_memories", json!({}))["memories"][0].clone();
    client.finish();
    assert_eq!((&memory["tags"], &memory["importance"]), (&json!(["a.b", "two words"]), &json!(6.5)));
    assert_eq!((&memory["metadata"], &memory["memoryType"]), (&json!({ "topic": "tea" }), &json!("fact")));
    assert_eq!(memory["id"], "550e8400-e29b-41d4-a716-446655440000");
}

#[test]
fn the_database_of_the_tiered_server_is_read() {
    let (vault, folder) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    let reply = import_database(
        &vault,
        &folder.path().join("tram.db"),
        "CREATE TABLE memories (id TEXT PRIMARY KEY, text TEXT NOT NULL, importance REAL NOT NULL DEFAULT 0.5, category TEXT,
             created_at TEXT NOT NULL, tier TEXT NOT NULL DEFAULT 'HOT', memory_type TEXT NOT NULL DEFAULT 'factual',
             do_not_inject INTEGER NOT NULL DEFAULT 0, pinned INTEGER NOT NULL DEFAULT 0,
             use_count INTEGER NOT NULL DEFAULT 0, last_accessed_at TEXT NOT NULL, use_days TEXT NOT NULL DEFAULT '[]',
             source TEXT, parent_id TEXT);
         CREATE TABLE current_context (id TEXT PRIMARY KEY, text TEXT NOT NULL);
         CREATE TABLE memory_audit (id TEXT PRIMARY KEY);
         INSERT INTO current_context VALUES ('c', 'The work of today');
         INSERT INTO memories VALUES ('t-1', 'Always on', 1.0, 'rules', '2026-01-01T00:00:00.000Z', 'WARM', 'procedural', 0, 1,
             0, '2026-01-01T00:00:00.000Z', '[]', 'chat', NULL),
             ('t-2', 'Gone', 0.5, NULL, '2026-01-01T00:00:00.000Z', 'COLD', 'factual', 1, 0, 4,
             '2026-01-01T00:00:00.000Z', '[\"2026-01-01\"]', NULL, 't-1');",
    );
    assert_eq!(reply["forgotten"], 1);
    assert_eq!(
        reply["left_out"],
        json!({ "last_accessed_at": 2, "parent_id": 1, "use_count": 1, "use_days": 1 })
    );
    assert_eq!(reply["notices"], json!(["the table current_context with its 1 rows is not imported"]));
    let text = note(&vault, "Always on");
    for line in
        ["pinned: true\n", "importance: 10\n", "category: rules\n", "type: procedural\n", "source: chat\n"]
    {
        assert!(text.contains(line), "{text}");
    }
    assert!(note(&vault, "Gone").contains("forgotten: true\n"));
}

#[test]
fn the_databases_of_the_rulebook_and_vector_servers_are_read() {
    let (vault, folder) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    import_database(
        &vault,
        &folder.path().join("memory.db"),
        "CREATE TABLE memories (id TEXT PRIMARY KEY, type TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL,
             project TEXT NOT NULL DEFAULT '', tags TEXT NOT NULL DEFAULT '[]', session_id TEXT, created_at INTEGER NOT NULL,
             updated_at INTEGER NOT NULL, accessed_at INTEGER NOT NULL);
         CREATE VIRTUAL TABLE memory_fts USING fts5(title, content, type, content=memories, content_rowid=rowid);
         INSERT INTO memories VALUES ('r-1', 'decision', 'Rust it is', 'We chose Rust.', 'boat', '[\"lang\"]', 's-1',
             1700000000123, 1700000000123, 1700000000123);",
    );
    let text = note(&vault, "Rust it is");
    for line in
        ["id: r-1\n", "type: decision\n", "project: boat\n", "session: s-1\n", "  - lang\n", "20.123Z"]
    {
        assert!(text.contains(line), "{text}");
    }
    let reply = import_database(
        &vault,
        &folder.path().join("memories.db"),
        "PRAGMA journal_mode = WAL;
         CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT NOT NULL, metadata TEXT NOT NULL DEFAULT '{}',
             created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, superseded_by TEXT, usefulness REAL NOT NULL DEFAULT 0.0,
             access_count INTEGER NOT NULL DEFAULT 0, last_accessed INTEGER);
         CREATE TABLE memories_vec (id TEXT PRIMARY KEY, vector BLOB NOT NULL);
         CREATE TABLE conversation_history (id TEXT PRIMARY KEY);
         INSERT INTO conversation_history VALUES ('a'), ('b');
         INSERT INTO memories VALUES ('v-1', 'Voted up', '{\"type\": \"insight\"}', 1700000000123, 1700000000123, NULL, 3.0, 0, NULL),
             ('v-2', 'Voted out', '{}', 1700000000123, 1700000000123, 'DELETED', -1.0, 2, 1700000000123);",
    );
    assert_eq!(reply["notices"], json!(["the table conversation_history with its 2 rows is not imported"]));
    assert!(note(&vault, "Voted up").contains("usefulness: 3\n"));
    let text = note(&vault, "Voted out");
    assert!(text.contains("forgotten: true\n") && text.contains("usefulness: -1\n"), "{text}");
    // A log that was not written into the database yet is read, too.
    let file = folder.path().join("open.db");
    let db = Connection::open(&file).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL; CREATE TABLE memories (id TEXT, content TEXT); INSERT INTO memories VALUES ('w', 'In the log');",
    )
    .unwrap();
    let reply = reply_of(&vault, NOW, &["memory", "import", file.to_str().unwrap()]);
    assert_eq!(reply["imported"], json!(["Memories/In the log.md"]));
    drop(db);
}

#[test]
fn a_database_without_memories_is_refused() {
    let (vault, folder) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    let file = folder.path().join("other.db");
    let import = || stderr(&vault.run(&["memory", "import", file.to_str().unwrap()]));
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    assert!(import().contains("other.db has no table memories"), "{}", import());
    // A view is not read, since a schema could make it do anything.
    Connection::open(&file)
        .unwrap()
        .execute_batch("CREATE VIEW memories AS SELECT y AS content FROM x")
        .unwrap();
    assert!(import().contains("has no table memories"), "{}", import());
    fs::write(&file, b"SQLite format 3\0 and nothing of a database").unwrap();
    assert!(import().contains("cannot be read as a SQLite database"), "{}", import());
}
