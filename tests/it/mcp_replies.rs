//! Tests the replies of tools: their size, binary files, and the wording of errors.

use std::fs;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::{TestVault, journal_files, text_of};

/// No reply has more characters than this, neither as text nor as data.
const MOST: usize = 30_000;
const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Makes a vault in which everything is long: texts, lines, names, tags, properties, links, and lists of all of them.
fn long_vault() -> TestVault {
    let vault = TestVault::new(&[]);
    for at in 0..60 {
        let tags: Vec<String> = (0..20).map(|tag| format!("{}{tag}x{at}", "long".repeat(10))).collect();
        let links: String = (0..60).map(|to| format!("[[{} {to}]] ", "Memory of rowing".repeat(3))).collect();
        let head = format!(
            "---\nid: 550e8400-e29b-41d4-a716-4466554400{at:02}\ntype: fact\ntags: [{}]\nmetadata:\n  note: {}\nwide{at}: 1\n---\n",
            tags.join(", "),
            "m".repeat(3_000),
        );
        let text =
            format!("{head}Rowing {at}. {links}\n{}\n", "We row on the river. \"Quoted\"\n".repeat(500));
        vault.write(&format!("Memories/{} {at}.md", "Memory of rowing".repeat(3)), text);
    }
    vault.write("Line.md", format!("rowing {}", "é".repeat(400_000)));
    vault
        .write("Control.md", format!("---\ntype: handoff\nproject: boat\n---\n{}\n", "\u{1}".repeat(90_000)));
    vault
}

fn check_length(result: &Value, called: &str) {
    let texts = result["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    let length: usize = texts.map(|text| text.chars().count()).sum();
    assert!(length <= MOST, "{called}: {length} characters of text");
    let data = result["structuredContent"].to_string().chars().count();
    assert!(data <= MOST, "{called}: {data} characters of data");
}

#[test]
fn replies_are_bounded_for_every_tool_and_limit() {
    let vault = long_vault();
    let mut client = Client::start(&vault, &["--toolset", "notes,mem,longterm,vector,tiered,rulebook"]);
    let ids: Vec<String> = (0..60).map(|at| format!("550e8400-e29b-41d4-a716-4466554400{at:02}")).collect();
    let names: Vec<String> = (0..60).map(|at| format!("{} {at}", "Memory of rowing".repeat(3))).collect();
    let long = "rowing ".repeat(5_000);
    let calls = [
        ("search_notes", json!({ "query": "rowing", "limit": 100, "detail": "full", "explain": true })),
        ("search_notes", json!({ "query": "rowing", "limit": 100, "intent": "explore", "explain": true })),
        ("read_note", json!({ "notes": names })),
        ("read_note", json!({ "notes": "Line" })),
        ("read_note", json!({ "notes": vec![long.clone(); 50] })),
        ("list_notes", json!({ "limit": 500 })),
        ("list_notes", json!({ "limit": 500, "tier": "HOT" })),
        ("list_notes", json!({ "what": "tags", "limit": 500 })),
        ("list_notes", json!({ "what": "properties", "limit": 500 })),
        ("list_notes", json!({ "around": names[30], "window": 100 })),
        ("explore_links", json!({ "note": names[0] })),
        ("explore_links", json!({ "note": names[0], "depth": 5 })),
        ("explore_links", json!({ "what": "unresolved" })),
        ("explore_links", json!({ "what": "orphans" })),
        ("recall", json!({ "prompt": "rowing", "limit": 50, "budget": 100_000_000 })),
        ("move_note", json!({ "from": names[0], "to": "Moved.md", "dry_run": true })),
        ("edit_note", json!({ "note": names[1], "action": "append", "text": long, "dry_run": true })),
        ("write_note", json!({ "title": "New", "content": "y\n".repeat(60_000), "dry_run": true })),
        ("session", json!({ "action": "context_set", "text": "z".repeat(90_000) })),
        (
            "session",
            json!({ "action": "handoff_store", "project": "boat", "summary": "s".repeat(90_000), "lists": { "memory_ids": ids } }),
        ),
        ("read_session", json!({ "action": "context_get" })),
        ("read_session", json!({ "action": "handoff_get" })),
        ("read_session", json!({ "action": "audit" })),
        ("read_session", json!({ "action": "stats" })),
        ("search_mem", json!({ "query": "rowing", "limit": 1_000_000 })),
        ("read_mem", json!({ "identifier": names[0] })),
        ("read_mem", json!({ "identifier": "Line", "format": "json" })),
        ("search_memory", json!({ "query": "rowing", "limit": 50, "threshold": 0 })),
        ("get_all_memories", json!({ "limit": 500 })),
        ("search_by_type", json!({ "memory_type": "fact", "limit": 50 })),
        ("search_by_tags", json!({ "tags": vec![format!("{}0x0", "long".repeat(10)); 500], "limit": 50 })),
        ("search_by_date_range", json!({ "date_from": "1999-01-01", "date_to": "2999-01-01", "limit": 50 })),
        (
            "search_memories",
            json!({ "query": "rowing", "intent": "explore", "reason_for_search": "r", "limit": 1_000_000 }),
        ),
        ("get_memories", json!({ "ids": ids })),
        (
            "update_memories",
            json!({ "updates": (0..500).map(|at| json!({ "id": format!("{at}{}", "x".repeat(200)), "content": "c" })).collect::<Vec<_>>() }),
        ),
        ("get_handoff", json!({})),
        ("memory_recall", json!({ "query": "rowing", "limit": 1_000_000 })),
        ("memory_explain", json!({ "memoryId": ids[0], "query": "rowing" })),
        ("memory_restore", json!({ "memoryId": "x".repeat(90_000) })),
        ("rulebook_memory_search", json!({ "query": "rowing", "limit": 1_000_000 })),
        ("rulebook_memory_timeline", json!({ "memoryId": ids[30], "window": 1_000_000 })),
        ("rulebook_memory_get", json!({ "ids": ids })),
    ];
    let mut called = 0;
    for (tool, arguments) in calls {
        let asked = arguments.to_string();
        let result = client.call(tool, arguments);
        check_length(&result, &format!("{tool} {}", asked.get(..asked.floor_char_boundary(200)).unwrap()));
        called += 1;
    }
    assert_eq!(called, 42);
    client.finish();
}

#[test]
fn pages_of_truncated_replies_lose_nothing() {
    let vault = long_vault();
    let mut client = Client::start(&vault, &["--toolset", "notes,longterm"]);
    client.catch_up();
    for (what, list, expected, least) in [("tags", "counts", 1_200, 2), ("notes", "notes", 62, 1)] {
        let (mut seen, mut cursor, mut pages) = (0, Value::Null, 0);
        while pages == 0 || !cursor.is_null() {
            let asked = json!({ "what": what, "limit": 500, "cursor": cursor });
            let page = client.call("list_notes", asked)["structuredContent"].clone();
            seen += page[list].as_array().unwrap().len();
            cursor = page["next_cursor"].clone();
            pages += 1;
            assert!(pages < 500, "pages go on for ever");
        }
        assert_eq!(seen, expected, "{what}");
        assert!(pages >= least, "{what}: {pages}");
    }
    let (mut offset, mut total) = (0, 1);
    while offset < total {
        let page = client.json("get_all_memories", json!({ "limit": 500, "offset": offset }));
        let returned = page["memories"].as_array().unwrap().len();
        assert_eq!(page["returned"], returned);
        assert!(returned > 0);
        (offset, total) = (offset + returned, usize::try_from(page["total"].as_u64().unwrap()).unwrap());
    }
    assert!(total >= 60, "{total}");
    client.finish();
}

#[test]
fn a_line_longer_than_a_reply_is_paged() {
    let vault = TestVault::new(&[]);
    let line: String = (0..30_000).map(|at| char::from(b'a' + u8::try_from(at % 26).unwrap())).collect();
    let text = format!("first\n{line}\n\"\u{1}\" last\n");
    vault.write("Long.md", &text);
    let mut client = Client::start(&vault, &[]);
    let (mut read, mut asked, mut parts) = (String::new(), json!({ "notes": "Long" }), 0);
    loop {
        let note = client.call("read_note", asked)["structuredContent"]["notes"][0].clone();
        read.push_str(note["text"].as_str().unwrap());
        parts += 1;
        assert!(parts < 10, "{note}");
        if note["next_line"].is_null() {
            break;
        }
        asked =
            json!({ "notes": "Long", "first_line": note["next_line"], "first_column": note["next_column"] });
    }
    assert_eq!(read, text);
    assert!(parts >= 3, "{parts}");
    client.finish();
}

#[test]
fn binary_files_are_shown_or_named() {
    let png = b"\x89PNG\r\n\x1a\n\0";
    let vault = TestVault::new(&[("Plan.md", "![[gauge.png]]\n"), ("Table.csv", "a,b\n1,2\n")]);
    vault.write("gauge.png", png);
    vault.write("Manual.pdf", b"%PDF-1.4 \xE2\0");
    vault.write("Latin.md", b"caf\xE9 au lait\nzwei\n");
    vault.write(
        "Wide.md",
        "\u{FEFF}Höhe\nzwei\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
    );
    let mut client = Client::start(&vault, &[]);
    let image = client.call("read_note", json!({ "notes": "[[gauge.png]]" }));
    assert_eq!(image["structuredContent"]["files"][0]["media_type"], "image/png");
    assert_eq!(image["content"][1]["type"], "image");
    assert_eq!(
        (&image["content"][1]["mimeType"], &image["content"][1]["data"]),
        (&json!("image/png"), &json!("iVBORw0KGgoA"))
    );
    let pdf = client.call("read_note", json!({ "notes": ["Manual.pdf", "Table.csv", "gauge.png"] }));
    let says = pdf["content"][0]["text"].as_str().unwrap();
    assert!(
        says.contains(
            "Manual.pdf: application/pdf, 11 bytes; read them as the resource sidenote:///Manual.pdf"
        ),
        "{says}"
    );
    assert!(says.contains("a,b\n1,2\n"), "{says}");
    assert_eq!(pdf["content"].as_array().unwrap().len(), 2, "one image beside the text");
    let latin = client.call("read_note", json!({ "notes": "Latin" }));
    let note = &latin["structuredContent"]["notes"][0];
    assert_eq!(note["text"], "caf\u{FFFD} au lait\nzwei\n");
    assert!(note["notices"][0].as_str().unwrap().contains("no UTF-8"), "{note}");
    assert!(latin["content"][0]["text"].as_str().unwrap().contains("notice: Latin.md holds bytes"));
    let wide =
        client.call("read_note", json!({ "notes": "Wide.md", "last_line": 1 }))["structuredContent"].clone();
    assert_eq!(wide["notes"][0]["text"], "Höhe\n");
    assert!(wide["notes"][0]["notices"][0].as_str().unwrap().contains("UTF-16"), "{wide}");
    client.finish();
    // The command line prints the same.
    let refused = vault.run(&["read", "gauge.png"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(crate::support::stderr(&refused).contains("gauge.png (image/png, 9 bytes) is not text"));
    let read = vault.run(&["read", "Latin"]);
    assert_eq!(crate::support::stdout(&read).trim_end(), "caf\u{FFFD} au lait\nzwei");
    assert!(crate::support::stderr(&read).contains("no UTF-8"));
}

#[test]
fn a_missing_note_does_not_fail_the_others() {
    let vault = TestVault::new(&[("Plan.md", "One\nTwo\n"), ("Über/Fluss.md", "Water.\n")]);
    let mut client = Client::start(&vault, &[]);
    let read =
        client.call("read_note", json!({ "notes": ["Nope", "Plan", "sidenote:///%C3%9Cber/Fluss.md"] }));
    let data = &read["structuredContent"];
    assert_ne!(read["isError"], true);
    assert_eq!(
        (&data["notes"][0]["path"], &data["notes"][1]["path"]),
        (&json!("Plan.md"), &json!("Über/Fluss.md"))
    );
    assert_eq!(data["errors"][0]["note"], "Nope");
    let says = read["content"][0]["text"].as_str().unwrap();
    assert!(says.contains("no note is named \"Nope\"") && says.contains("Water."), "{says}");
    // The text contains what the instructions ask for, too.
    let hash = data["notes"][0]["hash"].as_str().unwrap();
    assert!(says.contains(&format!("hash {hash}")), "{says}");
    let edited = client.text(
        "edit_note",
        json!({ "note": "sidenote:///Plan.md", "action": "append", "text": "Three", "expected_hash": hash }),
    );
    assert!(edited.contains("hash "), "{edited}");
    assert_eq!(text_of(&vault, "Plan.md"), "One\nTwo\n\nThree\n");
    let refusal = client.refusal("read_note", json!({ "notes": "Plan", "first_line": 900 }));
    assert!(refusal.contains("Plan.md has 4 lines, so there is no line 900"), "{refusal}");
    for notes in [json!("Nope"), json!(["Nope", "Neither"])] {
        client.refusal("read_note", json!({ "notes": notes }));
    }
    client.finish();
}

#[test]
fn replacing_a_section_keeps_one_heading_and_deletion_is_confirmed() {
    let vault = TestVault::new(&[
        ("Plan.md", "# Plan\n\n## Steps\n\nOld.\n\n## Rest\n\nStays.\n"),
        ("Other.md", "[[Plan]]\n"),
    ]);
    let mut client = Client::start(&vault, &[]);
    for (heading, text, whole) in [
        ("Steps", "## Steps\n\nNew.\n", "# Plan\n\n## Steps\n\nNew.\n\n## Rest\n\nStays.\n"),
        ("Steps", "\n## Steps\nNewer.", "# Plan\n\n## Steps\n\nNewer.\n\n## Rest\n\nStays.\n"),
        (
            "Steps",
            "### Steps\n\nDeeper.",
            "# Plan\n\n## Steps\n\n### Steps\n\nDeeper.\n\n## Rest\n\nStays.\n",
        ),
    ] {
        client.text(
            "edit_note",
            json!({ "note": "Plan", "action": "replace_section", "heading": heading, "text": text }),
        );
        assert_eq!(text_of(&vault, "Plan.md"), whole);
    }
    let before = vault.contents();
    let dry = client.text("delete_note", json!({ "note": "Other", "dry_run": true }));
    assert!(dry.contains("Other.md -> .trash/Other.md"), "{dry}");
    let dry = client.text("write_note", json!({ "title": "Third", "content": "Three.", "dry_run": true }));
    assert!(dry.contains("+Three."), "{dry}");
    let refusal = client.refusal("delete_note", json!({ "note": "Other", "how": "permanent" }));
    assert!(refusal.contains("is not deleted") && refusal.contains("confirm: true"), "{refusal}");
    assert_eq!(vault.contents().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    client.text("delete_note", json!({ "note": "Other", "how": "permanent", "confirm": true }));
    assert!(!vault.root().join("Other.md").exists());
    assert!(!fs::exists(vault.root().join(".trash/Other.md")).unwrap());
    client.finish();
}

#[test]
fn errors_use_the_terms_of_json_and_tools() {
    let vault = TestVault::new(&[("Plan.md", "Two.\n")]);
    let mut client = Client::start(&vault, &["--toolset", "notes,mem,longterm,vector,tiered,rulebook"]);
    let cases = [
        (
            "search_notes",
            json!({ "query": "x", "limit": "five" }),
            r#"limit is "five"; expected a non-negative integer"#,
        ),
        (
            "search_notes",
            json!({ "query": "x", "limit": -1 }),
            "limit is -1; expected a non-negative integer",
        ),
        (
            "search_notes",
            json!({ "query": "x", "limit": 1.5 }),
            "limit is 1.5; expected a non-negative integer",
        ),
        ("search_notes", json!({ "query": ["x", "y"] }), "query is an array; expected a string"),
        (
            "search_notes",
            json!({ "query": "x", "tags": [{ "a": 1 }] }),
            "tags[0] is an object; expected a string",
        ),
        (
            "search_notes",
            json!({ "query": "x", "include": ["all"] }),
            r#"include[0] is "all"; expected forgotten, archived"#,
        ),
        ("read_note", json!({ "notes": { "a": 5 } }), "notes is an object; expected an array"),
        (
            "write_note",
            json!({ "title": "x", "content": "y", "metadata": [] }),
            "metadata is an array; expected an object",
        ),
        (
            "session",
            json!({ "action": "handoff_store", "lists": { "completed": { "a": 1 } } }),
            "lists.completed is an object; expected an array",
        ),
        ("read_mem", json!({ "identifier": { "a": 1 } }), "identifier is an object; expected a string"),
        (
            "save_memory",
            json!({ "content": "x", "importance": "high" }),
            r#"importance is "high"; expected a number"#,
        ),
        ("store_memories", json!({ "memories": [{}] }), "memories[0].content is missing"),
        ("memory_store", json!({ "text": "x", "tags": { "a": 1 } }), "tags is an object; expected an array"),
        ("rulebook_memory_get", json!({ "ids": { "a": 1 } }), "; expected an array"),
    ];
    let mut told = 0;
    for (tool, arguments, says) in cases {
        let refusal = client.refusal(tool, arguments);
        assert!(refusal.contains(says), "{tool}: {refusal}");
        for word in [
            "expected struct",
            "expected u",
            "invalid type",
            "a sequence",
            "usize",
            "did not match any variant",
            "unknown variant",
        ] {
            assert!(!refusal.contains(word), "{tool}: {refusal}");
        }
        told += 1;
    }
    assert_eq!(told, 14);
    let cases = [
        ("read_note", json!({ "notes": "Zebra" }), "list_notes"),
        ("session", json!({ "action": "undo" }), "read_session"),
        (
            "edit_note",
            json!({ "note": "Plan", "action": "append", "text": "x", "expected_hash": "y" }),
            "read_note",
        ),
        ("delete_note", json!({ "note": "Zebra", "restore": true }), ""),
        ("read_mem", json!({ "identifier": "Zebra" }), "search_mem"),
        ("memory_pin", json!({ "memoryId": ID }), "Memory not found"),
    ];
    for (tool, arguments, names) in cases {
        let refusal = client.refusal(tool, arguments);
        assert!(refusal.contains(names), "{tool}: {refusal}");
        assert!(!refusal.contains("`sidenote") && !refusal.contains("run: sidenote"), "{tool}: {refusal}");
    }
    client.finish();
}

#[test]
fn reading_tools_are_separate_from_writing_tools() {
    let vault = TestVault::new(&[("Plan.md", "Two.\n")]);
    let mut client = Client::start(&vault, &[]);
    let tools = client.request("tools/list", json!({}))["tools"].clone();
    let hints = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["annotations"]["readOnlyHint"].clone()
    };
    assert_eq!((hints("session"), hints("read_session")), (json!(false), json!(true)));
    client.text("session", json!({ "action": "context_set", "text": "The new sail" }));
    // The reading actions are taken by both.
    for tool in ["session", "read_session"] {
        assert_eq!(client.text(tool, json!({ "action": "context_get" })), "The new sail");
        client.text(tool, json!({ "action": "audit", "note": "Plan" }));
        assert!(client.text(tool, json!({ "action": "stats" })).starts_with("notes: 1, "));
    }
    let refusal = client.refusal("read_session", json!({ "action": "undo" }));
    assert!(refusal.contains("expected handoff_get, context_get, audit, stats, date"), "{refusal}");
    // Without a model only words are searched, and the text says so.
    let found = client.text("search_notes", json!({ "query": "two", "mode": "hybrid" }));
    assert!(found.contains("notice: ") && found.contains("by words only"), "{found}");
    client.finish();
}

#[test]
fn messages_are_short_and_given_once() {
    let vault = TestVault::new(&[
        ("Plan.md", "---\nup: see [[River]] there\n---\nTwo.\n"),
        ("River.md", "It flows.\n"),
    ]);
    let mut client = Client::start(&vault, &["--toolset", "notes,more,tiered"]);
    let long = "x".repeat(90_000);
    let refusals = [
        ("read_note", json!({ "notes": long }), "list_notes"),
        ("move_note", json!({ "from": long, "to": "A.md" }), ""),
        ("merge_notes", json!({ "from": long, "into": "Plan" }), ""),
        ("memory_pin", json!({ "memoryId": long }), "Memory not found"),
        ("rename_part", json!({ "kind": "tag", "old": long, "new": "y" }), "list_notes with what"),
        ("rename_part", json!({ "kind": "property", "old": "none", "new": "y" }), "list_notes with what"),
    ];
    for (tool, arguments, names) in refusals {
        let refusal = client.refusal(tool, arguments);
        assert!(refusal.chars().count() < 1_500, "{tool}: {} characters", refusal.chars().count());
        assert!(refusal.contains(names) && !refusal.contains("sidenote "), "{tool}: {refusal}");
    }
    let found = client.text("search_notes", json!({ "query": "CS:GO two" }));
    assert_eq!(found.matches("is taken as plain words").count(), 1, "{found}");
    assert!(found.contains("character 1 of the query\n"), "{found}");
    let moved = client.text("move_note", json!({ "from": "River", "to": "Stream.md", "dry_run": true }));
    assert!(moved.contains("(partial-property)") && !moved.contains("--partial"), "{moved}");
    // A folder whose name is longer than any is not there, as any other.
    for (tool, folder) in
        [("list_notes", "Nope"), ("query_properties", "Nope"), ("query_properties", &long[..300])]
    {
        let arguments = match tool {
            "list_notes" => json!({ "folder": folder }),
            _ => json!({ "folder": folder, "fields": ["up"] }),
        };
        let told = client.text(tool, arguments);
        assert!(told.starts_with("0 notes\nnotice: there is no folder"), "{tool}: {told}");
    }
    client.finish();
}

#[test]
fn only_applied_calls_store_an_answer_and_it_is_no_event() {
    let vault = TestVault::new(&[("Plan.md", "A private line.\n")]);
    let mut client = Client::start(&vault, &[]);
    let mut arguments =
        json!({ "note": "Plan", "action": "append", "text": "x", "operation_id": "op-1", "dry_run": true });
    assert!(client.text("edit_note", arguments.clone()).contains("private line"));
    client.text("session", json!({ "action": "stats", "operation_id": "op-2" }));
    arguments["dry_run"] = json!(false);
    let done = client.call("edit_note", arguments.clone());
    assert_eq!(client.call("edit_note", arguments), done);
    let trail = client.call("read_session", json!({ "action": "audit" }));
    let events = trail["structuredContent"]["result"]["events"].as_array().unwrap();
    assert_eq!(events.iter().map(|event| &event["op"]).collect::<Vec<_>>(), ["append"]);
    client.finish();
    let journal: String =
        journal_files(vault.root()).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(journal.matches(r#""op":"answer""#).count(), 1, "{journal}");
    assert!(!journal.contains("private line"), "{journal}");
}
