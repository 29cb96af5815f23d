//! Tests the toolset `mem` against its contract (docs/spec/toolsets.md), through the program and a client.

use std::process::Command;

use serde_json::{Value, json};

use crate::contract_longterm::uses;
use crate::mcp_client::Client;
use crate::support::{TestVault, run, text_of};

const ABSENT: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Serves a plain vault.
fn start(vault: &TestVault) -> Client {
    Client::start(vault, &["--toolset", "mem"])
}

/// Serves a folder of memories, as the server does that the toolset is like.
fn start_flat(vault: &TestVault) -> Client {
    Client::start(vault, &["--notestore_path", vault.root().to_str().unwrap()])
}

fn write(client: &mut Client, title: &str, content: &str) -> (String, String) {
    let reply = client.json("write_mem", json!({ "title": title, "content": content, "category": "work" }));
    (text(&reply["id"]), text(&reply["file_path"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn a_memory_is_written_into_the_folder_of_memories() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let arguments = json!({ "title": "Boat: the race?", "content": "# Start\n\nAt **nine**.\n", "tags": ["sport", "on water"],
                            "category": "work" });
    let reply = client.json("write_mem", arguments);
    let keys: Vec<&String> = reply.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "file_path", "created_at"]);
    assert_eq!(reply["file_path"], "Memories/Boat the race.md");
    assert_eq!(reply["created_at"], "2026-11-21T00:00:00.000Z");
    let id = text(&reply["id"]);
    assert_eq!(
        text_of(&vault, "Memories/Boat the race.md"),
        format!(
            "---\nid: {id}\ntitle: \"Boat: the race?\"\ntags:\n  - sport\n  - on-water\noriginal_tags:\n  - sport\n  - on water\ncategory: work\ncreated_at: \"2026-11-21T00:00:00Z\"\nupdated_at: \"2026-11-21T00:00:00Z\"\n---\n# Start\n\nAt **nine**.\n"
        )
    );
    // What the text opens with is not the title.
    write(&mut client, "Second", "# Start\n\nAgain.");
    assert_eq!(client.json("read_mem", json!({ "identifier": "Second" }))["title"], "Second");
    client.finish();
}

#[test]
fn a_memory_is_written_flat_where_the_vault_has_the_memories_layout() {
    let vault = TestVault::new(&[]);
    let mut client = start_flat(&vault);
    let reply = client.json(
        "write_mem",
        json!({ "title": "Über Boats!", "content": "Text", "category": "Work Stuff", "tags": ["x"] }),
    );
    let id = text(&reply["id"]);
    let path = format!("work-stuff-uber-boats-{id}.md");
    // Clients of the other server open the file by this path.
    let root = sidenote::base::platform::canonicalize(vault.root()).unwrap();
    let whole = |path: &str| root.join(path).display().to_string();
    assert_eq!(reply["file_path"], whole(&path));
    assert_eq!(
        text_of(&vault, &path),
        format!(
            "---\nid: {id}\ntitle: Über Boats!\ntags:\n  - x\ncategory: Work Stuff\ncreated_at: \"2026-11-21T00:00:00Z\"\nupdated_at: \"2026-11-21T00:00:00Z\"\nlast_reviewed: \"2026-11-21T00:00:00Z\"\nlinks: []\n---\nText\n"
        )
    );
    let reply = client.json("write_mem", json!({ "title": "Plain", "content": "Text" }));
    assert_eq!(reply["file_path"], whole(&format!("plain-{}.md", reply["id"].as_str().unwrap())));
    client.finish();
}

#[test]
fn the_slug_in_a_file_name_finds_a_memory_whose_title_is_another() {
    const IDS: [&str; 2] = ["550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"];
    let note = |id: &str| format!("---\nid: {id}\ntitle: Another title {id}\ncategory: work\n---\nText\n");
    let vault = TestVault::new(&[
        (&format!("work-boat-race-{}.md", IDS[0]), &note(IDS[0])),
        #[cfg(unix)]
        (&format!("work|tea-time|{}.md", IDS[1]), &note(IDS[1])),
    ]);
    let mut client = start_flat(&vault);
    for slug in ["boat-race", "Boat race"] {
        assert_eq!(client.json("read_mem", json!({ "identifier": slug }))["id"], IDS[0], "{slug}");
    }
    #[cfg(unix)]
    assert_eq!(client.json("read_mem", json!({ "identifier": "tea-time" }))["id"], IDS[1]);
    assert!(client.refusal("read_mem", json!({ "identifier": "race" })).contains("Memory not found: race"));
    client.finish();
}

#[test]
fn memories_have_sources_an_abstract_and_a_template() {
    for start in [start, start_flat] {
        let vault = TestVault::new(&[]);
        let mut client = start(&vault);
        let id = text(
            &client.json(
                "write_mem",
                json!({ "title": "Tides", "content": "They turn.", "sources": ["https://example.org/tides"],
                    "abstract": " When tides turn. ", "template": { "status": "draft", "id": "mine" } }),
            )["id"],
        );
        let front = |client: &mut Client| {
            client.json("read_mem", json!({ "identifier": id, "format": "json" }))["frontmatter"].clone()
        };
        let properties = front(&mut client);
        assert_eq!(properties["sources"], json!(["https://example.org/tides"]));
        assert_eq!(
            (&properties["abstract"], &properties["status"]),
            (&json!("When tides turn."), &json!("draft"))
        );
        assert_eq!(properties["id"], id.as_str());
        client.json(
            "edit_mem",
            json!({ "id": id, "abstract": "Anew", "sources": ["a", "b"], "template": { "status": "done" } }),
        );
        let properties = front(&mut client);
        assert_eq!((&properties["abstract"], &properties["status"]), (&json!("Anew"), &json!("done")));
        assert_eq!(properties["sources"], json!(["a", "b"]));
        client.finish();
    }
}

#[test]
fn memories_are_listed_reviewed_and_counted() {
    let old = "---\nid: 550e8400-e29b-41d4-a716-446655440000\ntitle: Old\ncategory: work\ntags: [a]\ncreated_at: 2026-01-01T00:00:00Z\nlast_reviewed: 2026-02-01T00:00:00Z\n---\nOne two three [[New]]\n";
    let new = "---\nid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8\ntitle: New\ntags: [a, b]\nsources: [x]\nabstract: Y\ncreated_at: 2026-03-01T00:00:00Z\n---\nFour\n";
    let vault = TestVault::new(&[("Old.md", old), ("New.md", new)]);
    let mut client = start(&vault);
    let titles = |reply: &Value| -> Vec<String> {
        reply["memories"].as_array().unwrap().iter().map(|memory| text(&memory["title"])).collect()
    };
    let all = client.json("list_mems", json!({}));
    assert_eq!((titles(&all), &all["total"]), (vec!["New".to_owned(), "Old".to_owned()], &json!(2)));
    assert_eq!(all["memories"][0]["created_at"], "2026-03-01T00:00:00.000Z");
    assert_eq!(
        (&all["memories"][0]["sources"], &all["memories"][0]["abstract"]),
        (&json!(["x"]), &json!("Y"))
    );
    assert_eq!(titles(&client.json("list_mems", json!({ "category": "work" }))), ["Old"]);
    assert_eq!(titles(&client.json("list_mems", json!({ "tags": ["b"], "limit": 1 }))), ["New"]);
    assert_eq!(titles(&client.json("needs_review", json!({ "date": "2026-02-15" }))), ["Old"]);
    assert_eq!(titles(&client.json("needs_review", json!({ "date": "2026-04-01" }))), ["Old", "New"]);
    assert!(client.refusal("needs_review", json!({ "date": "soon" })).contains("is not a date"));
    let stats = client.json("get_mem_stats", json!({}));
    assert_eq!((&stats["total_memories"], &stats["average_tags_per_memory"]), (&json!(2), &json!(1.5)));
    assert_eq!(stats["average_links_per_memory"], 0.5);
    assert_eq!(stats["orphaned_memories"][0]["title"], "New");
    assert_eq!(stats["memories_without_sources"][0]["title"], "Old");
    assert_eq!((&stats["categories"]["work"], &stats["tags"]), (&json!(1), &json!({ "a": 2, "b": 1 })));
    client.finish();
}

#[test]
fn the_links_of_a_memory_are_put_in_order() {
    const IDS: [&str; 3] = [
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
        "33333333-3333-4333-8333-333333333333",
    ];
    let [one, two, three] = IDS.map(|id| format!("work-note-{id}.md"));
    let note = |id: &str, links: &str, rest: &str| {
        format!("---\nid: {id}\ntitle: Note {id}\ncategory: work\nlinks: [{links}]\n---\nText\n{rest}")
    };
    let vault = TestVault::new(&[
        // One names a note in its text, another by id alone, and one that is gone.
        (&one, &note(IDS[0], &format!("{}, {ABSENT}", IDS[1]), &format!("See [[work-note-{}]].\n", IDS[2]))),
        (&two, &note(IDS[1], "", "")),
        (&three, &note(IDS[2], "", "")),
    ]);
    let mut client = start_flat(&vault);
    let stats = client.json("get_mem_stats", json!({}));
    assert_eq!(stats["broken_links"][0]["broken_link_id"], ABSENT);
    assert_eq!(stats["unidirectional_links"][0]["unidirectional_link_id"], IDS[1]);
    let reply = client.json("fix_links", json!({ "memory_id": IDS[0] }));
    assert_eq!((&reply["success"], &reply["id"]), (&json!(true), &json!(IDS[0])));
    assert_eq!(reply["links"], json!([IDS[1], IDS[2]]));
    assert_eq!((&reply["recreated"], &reply["removed"]), (&json!([IDS[1]]), &json!([ABSENT])));
    assert_eq!((&reply["failed"], &reply["repaired"]), (&json!([]), &json!(0)));
    let said = reply["message"].as_str().unwrap();
    assert!(
        said.starts_with(&format!("Link structure fixed for memory \"Note {}\" (ID: {})", IDS[0], IDS[0]))
    );
    assert_eq!(
        text_of(&vault, &one),
        note(
            IDS[0],
            IDS[1],
            &format!(
                "See [[work-note-{}]].\n\n**Related Memories:**\n\n- [[work-note-{}]]\n",
                IDS[2], IDS[1]
            )
        )
    );
    assert_eq!(
        text_of(&vault, &two),
        note(IDS[1], IDS[0], &format!("\n**Related Memories:**\n\n- [[work-note-{}]]\n", IDS[0]))
    );
    assert_eq!(text_of(&vault, &three), note(IDS[2], "", ""), "a link in the text asks for no link back");
    let stats = client.json("get_mem_stats", json!({}));
    assert_eq!((&stats["broken_links"], &stats["unidirectional_links"]), (&json!([]), &json!([])));
    // Once more changes nothing.
    let again = client.json("fix_links", json!({ "memory_id": IDS[0] }));
    assert_eq!((&again["recreated"], &again["removed"]), (&json!([]), &json!([])));
    let said = client.refusal("fix_links", json!({ "memory_id": ABSENT }));
    assert!(said.starts_with(&format!("Memory not found: {ABSENT}")), "{said}");
    client.finish();
}

#[test]
fn a_fenced_agent_removes_no_id_that_it_does_not_see() {
    let open = "---\nid: 11111111-1111-4111-8111-111111111111\nlinks: [22222222-2222-4222-8222-222222222222]\n---\nText\n";
    let hidden = "---\nid: 22222222-2222-4222-8222-222222222222\n---\nText\n";
    let vault = TestVault::new(&[("Open/One.md", open), ("Hidden/Two.md", hidden)]);
    let mut client = Client::start(&vault, &["--toolset", "mem", "--read", "Open"]);
    let reply = client.json("fix_links", json!({ "memory_id": "11111111-1111-4111-8111-111111111111" }));
    assert_eq!((&reply["success"], &reply["removed"]), (&json!(false), &json!([])));
    assert_eq!(reply["failed"], json!(["22222222-2222-4222-8222-222222222222"]));
    assert_eq!(text_of(&vault, "Open/One.md"), open);
    client.finish();
}

#[test]
fn the_tools_that_tell_about_the_memories_answer() {
    let vault = TestVault::new(&[("One.md", "Text\n"), ("Old.md", "---\nforgotten: true\n---\nText\n")]);
    let mut client = start(&vault);
    assert_eq!(
        client.json("reindex_mems", json!({})),
        json!({ "success": true, "message": "Successfully reindexed 1 memories", "indexedCount": 1 })
    );
    assert!(client.text("get_usage_info", json!({})).contains("`fix_links`"));
    let search = client.json("get_flexsearch_config", json!({}));
    assert_eq!((&search["engine"], &search["model"]), (&json!("sidenote"), &json!("none")));
    assert_eq!(client.json("get_allowed_values", json!({}))["allowed_tags"], Value::Null);
    client.finish();
    // The user's own words come first, as in the other server.
    let vault = TestVault::new(&[("usage.md", "Write in German.\n")]);
    let mut client = start_flat(&vault);
    assert_eq!(client.text("get_usage_info", json!({})), "Write in German.\n");
    client.finish();
}

#[test]
fn memories_can_have_equal_titles() {
    for start in [start, start_flat] {
        let vault = TestVault::new(&[]);
        let mut client = start(&vault);
        let (one, other) = (write(&mut client, "Same", "Text"), write(&mut client, "Same", "Text"));
        assert!(one.0 != other.0 && one.1 != other.1, "{one:?} {other:?}");
        for (id, path) in [&one, &other] {
            let reply = client.json("read_mem", json!({ "identifier": id }));
            assert_eq!((&reply["id"], &reply["title"]), (&json!(id), &json!("Same")));
            assert_eq!(reply["metadata"]["file_path"], path.as_str());
        }
        let reply = client.json("read_mem", json!({ "identifier": "same" }));
        assert_eq!(reply["other_ids"].as_array().unwrap().len(), 1);
        // A name that is free again does not bring an id back.
        client.json("edit_mem", json!({ "id": one.0, "title": "Other" }));
        let third = write(&mut client, "Same", "Text");
        assert!(third.0 != one.0 && third.0 != other.0);
        client.finish();
    }
}

#[test]
fn a_memory_is_read_by_id_title_and_slug_in_three_formats() {
    for start in [start, start_flat] {
        let vault = TestVault::new(&[]);
        let mut client = start(&vault);
        let content = "# Head\n\nA **bold** [word](https://a.example) and `code`.\n\n- item";
        let arguments = json!({ "title": "Meeting with John", "content": content, "category": "work", "tags": ["b", "a"] });
        let id = text(&client.json("write_mem", arguments)["id"]);
        for name in [
            id.as_str(),
            "Meeting with John",
            "meeting WITH john",
            "meeting-with-john",
            "work-meeting-with-john",
        ] {
            let reply = client.json("read_mem", json!({ "identifier": name }));
            assert_eq!(reply["id"], id.as_str(), "{name}");
            assert_eq!(reply["content"], content);
            assert_eq!(reply.get("frontmatter"), None);
            let metadata = &reply["metadata"];
            assert_eq!(
                (&metadata["tags"], &metadata["category"], &metadata["links"]),
                (&json!(["b", "a"]), &json!("work"), &json!([]))
            );
            assert_eq!(
                (&metadata["created_at"], &metadata["updated_at"]),
                (&json!("2026-11-21T00:00:00.000Z"), &json!("2026-11-21T00:00:00.000Z"))
            );
        }
        assert_eq!(uses(&vault), 5);
        let reply = client.json("read_mem", json!({ "identifier": id, "format": "plain" }));
        assert_eq!(reply["content"], "Head\nA bold word and code.\nitem");
        let reply = client.json("read_mem", json!({ "identifier": id, "format": "json" }));
        assert_eq!((&reply["content"], &reply["frontmatter"]["id"]), (&json!(content), &json!(id)));
        let same = client.json("read_mem", json!({ "identifier": id, "format": "markdown" }));
        assert_eq!(same["content"], content);
        assert!(
            client
                .refusal("read_mem", json!({ "identifier": "Nobody" }))
                .starts_with("Memory not found: Nobody")
        );
        assert!(
            client
                .refusal("read_mem", json!({ "identifier": id, "format": "xml" }))
                .contains(r#"format is "xml"; expected markdown, plain, json"#)
        );
        assert!(client.refusal("read_mem", json!({})).contains("identifier is missing"));
        client.finish();
    }
}

#[test]
fn an_edit_changes_the_given_fields_and_rewrites_links() {
    let vault = TestVault::new(&[("Start.md", "See [[Boat race]] and [[Boat race|that]].\n")]);
    let mut client = start(&vault);
    let (id, _) = write(&mut client, "Boat race", "Old text.\n\nSecond [[Start]].");
    let reply = client.json(
        "edit_mem",
        json!({ "id": id, "title": "Dragon boats", "content": "New text.", "tags": ["x"] }),
    );
    assert_eq!(reply, json!({ "id": id, "updated_at": "2026-11-21T00:00:00.000Z", "success": true }));
    assert_eq!(text_of(&vault, "Start.md"), "See [[Dragon boats]] and [[Dragon boats|that]].\n");
    assert!(!vault.root().join("Memories/Boat race.md").exists());
    let note = text_of(&vault, "Memories/Dragon boats.md");
    assert!(note.ends_with("tags:\n  - x\n---\nNew text.\n"), "{note}");
    let reply = client.json("edit_mem", json!({ "id": "dragon-boats", "category": "play" }));
    assert_eq!(reply["success"], true);
    assert!(text_of(&vault, "Memories/Dragon boats.md").contains("category: play\n"));
    for (arguments, says) in [
        (json!({ "id": ABSENT, "title": "x" }), format!("Memory not found: {ABSENT}")),
        (json!({ "id": "Dragon", "title": "x" }), "Memory not found: Dragon".to_owned()),
        (json!({ "id": id, "content": " \n" }), "content is empty".to_owned()),
        (json!({ "id": id, "title": " " }), "title is empty".to_owned()),
        (json!({ "title": "x" }), "edit_mem: id is missing".to_owned()),
    ] {
        let said = client.refusal("edit_mem", arguments);
        assert!(said.starts_with(&says), "{said}");
    }
    client.finish();
    run(&vault, "2026-11-21", &["undo", "2"]);
    assert_eq!(text_of(&vault, "Start.md"), "See [[Boat race]] and [[Boat race|that]].\n");
}

#[test]
fn a_flat_file_is_named_by_title_and_category() {
    let vault = TestVault::new(&[]);
    let mut client = start_flat(&vault);
    let (one, path) = write(&mut client, "One", "First");
    let (two, other) = write(&mut client, "Two", "Second");
    client.json("link_mem", json!({ "source_id": two, "target_id": one }));
    client.finish();
    let mut command = vault.command(&["mcp", "--notestore_path"]);
    let mut client = Client::of(command.arg(vault.root()).env("SIDENOTE_NOW", "2026-11-25T10:00:00Z"));
    let reply = client.json("edit_mem", json!({ "id": one, "title": "New one" }));
    assert_eq!(reply["updated_at"], "2026-11-25T10:00:00.000Z");
    assert!(!vault.root().join(&path).exists());
    let note = text_of(&vault, &format!("work-new-one-{one}.md"));
    assert!(
        note.contains("title: New one\n") && note.contains("updated_at: \"2026-11-25T10:00:00Z\"\n"),
        "{note}"
    );
    assert!(note.contains("created_at: \"2026-11-21T00:00:00Z\"\n"));
    assert!(
        text_of(&vault, &other).ends_with(&format!("**Related Memories:**\n\n- [[work-new-one-{one}]]\n"))
    );
    client.json("edit_mem", json!({ "id": one, "category": "play", "content": "Changed" }));
    let note = text_of(&vault, &format!("play-new-one-{one}.md"));
    // What it is linked to is not lost with its text.
    assert!(
        note.ends_with(&format!("---\nChanged\n\n**Related Memories:**\n\n- [[work-two-{two}]]\n")),
        "{note}"
    );
    assert!(note.contains("category: play\n") && note.contains(&format!("links: [{two}]\n")), "{note}");
    client.finish();
}

#[test]
fn links_are_made_both_ways_and_removed() {
    for (start, is_flat) in [(start as fn(&TestVault) -> Client, false), (start_flat, true)] {
        let vault = TestVault::new(&[]);
        let mut client = start(&vault);
        let (one, path_one) = write(&mut client, "One", "First");
        let (two, path_two) = write(&mut client, "Two", "Second");
        let (before_one, before_two) = (text_of(&vault, &path_one), text_of(&vault, &path_two));
        let stem = |path: &str| path.rsplit('/').next().unwrap().trim_end_matches(".md").to_owned();
        let reply = client.json("link_mem", json!({ "source_id": one, "target_id": two }));
        let wikilink = if is_flat { format!("[[{}|Two]]", stem(&path_two)) } else { "[[Two]]".to_owned() };
        assert_eq!(
            reply,
            json!({ "success": true, "source_links": [two], "target_links": [one], "wikilink": wikilink })
        );
        let head = if is_flat { "**Related Memories:**" } else { "## Related" };
        assert!(
            text_of(&vault, &path_one).ends_with(&format!("First\n\n{head}\n\n- [[{}]]\n", stem(&path_two)))
        );
        assert!(
            text_of(&vault, &path_two).ends_with(&format!("Second\n\n{head}\n\n- [[{}]]\n", stem(&path_one)))
        );
        if is_flat {
            assert!(text_of(&vault, &path_one).contains(&format!("links: [{two}]\n")));
        }
        assert_eq!(client.json("read_mem", json!({ "identifier": one }))["metadata"]["links"], json!([two]));
        // Once more changes nothing.
        let linked = text_of(&vault, &path_one);
        assert_eq!(client.json("link_mem", json!({ "source_id": one, "target_id": two }))["success"], true);
        assert_eq!(text_of(&vault, &path_one), linked);
        let reply = client.json("unlink_mem", json!({ "source_id": two, "target_id": one }));
        assert_eq!(reply, json!({ "success": true, "source_links": [], "target_links": [] }));
        assert_eq!((text_of(&vault, &path_one), text_of(&vault, &path_two)), (before_one, before_two));
        let reply =
            client.json("link_mem", json!({ "source_id": one, "target_id": two, "link_text": "see also" }));
        assert_eq!(reply["wikilink"], format!("[[{}|see also]]", stem(&path_two)));
        assert!(text_of(&vault, &path_one).ends_with(&format!("- [[{}|see also]]\n", stem(&path_two))));
        for tool in ["link_mem", "unlink_mem"] {
            for (source, target) in [(one.as_str(), ABSENT), (ABSENT, two.as_str())] {
                let said = client.refusal(tool, json!({ "source_id": source, "target_id": target }));
                assert!(said.starts_with(&format!("Memory not found: {ABSENT}")), "{said}");
            }
            assert!(
                client
                    .refusal(tool, json!({ "source_id": one, "target_id": one }))
                    .contains("cannot be linked to itself")
            );
        }
        client.finish();
    }
}

#[test]
fn a_search_filters_and_counts_no_use() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    for (title, category, tags) in [
        ("Heron", "birds", json!(["a", "b"])),
        ("Egret", "birds", json!(["a"])),
        ("Weir", "water", json!([])),
    ] {
        let content = format!("{title} at the river, number one.");
        client.json(
            "write_mem",
            json!({ "title": title, "content": content, "category": category, "tags": tags }),
        );
    }
    let found = client.json("search_mem", json!({ "query": "river heron" }));
    assert_eq!((found["total"].as_u64(), found["results"].as_array().unwrap().len()), (Some(3), 3));
    let first = &found["results"][0];
    let keys: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "title", "score", "snippet"]);
    assert_eq!(
        (&first["title"], &first["snippet"]),
        (&json!("Heron"), &json!("Heron at the river, number one."))
    );
    for (arguments, count) in [
        (json!({ "query": "river", "category": "birds" }), 2),
        (json!({ "query": "river", "tags": ["a"] }), 2),
        (json!({ "query": "river", "tags": ["a", "b"] }), 1),
        (json!({ "query": "river", "limit": 1 }), 1),
        (json!({ "query": "quantum" }), 0),
    ] {
        let found = client.json("search_mem", arguments.clone());
        assert_eq!(found["results"].as_array().unwrap().len(), count, "{arguments}");
        assert_eq!(found["total"], count);
    }
    assert!(client.refusal("search_mem", json!({})).contains("query is missing"));
    assert_eq!(uses(&vault), 0);
    client.finish();
}

#[test]
fn the_default_limit_is_ten() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    for number in 0..12 {
        write(&mut client, &format!("Note {number}"), "About rivers");
    }
    assert_eq!(client.json("search_mem", json!({ "query": "rivers" }))["total"], 10);
    assert_eq!(client.json("search_mem", json!({ "query": "rivers", "limit": 12 }))["total"], 12);
    client.finish();
}

#[test]
fn the_date_is_given_in_four_formats() {
    let vault = TestVault::new(&[]);
    let mut command = vault.command(&["mcp", "--toolset", "mem"]);
    let mut client = Client::of(command.env("SIDENOTE_NOW", "2026-11-21T14:05:06Z").env("TZ", "UTC"));
    let iso = json!({ "date": "2026-11-21T14:05:06.000Z", "timezone": "UTC" });
    assert_eq!(client.json("get_current_date", json!({})), iso);
    for (format, date) in [
        ("iso", json!("2026-11-21T14:05:06.000Z")),
        ("locale", json!("11/21/2026, 2:05:06 PM")),
        ("timestamp", json!(1_795_269_906_000_i64)),
        ("date_only", json!("2026-11-21")),
    ] {
        assert_eq!(client.json("get_current_date", json!({ "format": format }))["date"], date);
    }
    assert!(
        client
            .refusal("get_current_date", json!({ "format": "week" }))
            .contains(r#"format is "week"; expected iso, "#)
    );
    client.finish();
}

#[test]
fn an_index_folder_inside_the_vault_is_not_indexed() {
    let vault = TestVault::new(&[("memories/Note.md", "A kingfisher.\n")]);
    let run_in = |args: &[&str]| {
        let command = vault.command(&[]);
        let mut fresh = Command::new(command.get_program());
        for (name, value) in command.get_envs() {
            fresh.env(name, value.unwrap());
        }
        fresh.current_dir(vault.root()).args(args);
        fresh
    };
    let mut client =
        Client::of(&mut run_in(&["mcp", "--toolset", "mem,notes", "--notestore_path", "--index_path"]));
    assert!(vault.root().join("memories/index/catalog.db").exists());
    assert!(!vault.root().join("memories/.sidenote/index").exists());
    write(&mut client, "Second", "Another kingfisher.");
    vault.write("memories/index/stray.md", "A stray kingfisher.");
    vault.write("memories/Third.md", "A third kingfisher.");
    client.catch_up();
    let found = client.json("search_mem", json!({ "query": "kingfisher" }));
    assert_eq!(found["total"], 3, "{found}");
    let list = client.call("list_notes", json!({}));
    assert_eq!(list["structuredContent"]["total"], 3);
    let files = client.request("resources/list", json!({}));
    assert!(!files.to_string().contains("index/"), "{files}");
    client.finish();
    let same = run_in(&["--vault", "memories", "--index", "memories"]).arg("status").output().unwrap();
    assert!(String::from_utf8(same.stderr).unwrap().contains("is the vault itself"));
}

#[test]
fn empty_values_are_an_error() {
    let vault = TestVault::new(&[]);
    let mut client = start(&vault);
    let cases = [
        ("write_mem", json!({ "title": "x", "content": " " }), "content is empty"),
        ("search_mem", json!({ "query": "" }), "query is empty"),
        ("search_mem", json!({ "query": " \n" }), "query is empty"),
        ("search_mem", json!({ "query": "x", "limit": 0 }), "limit is 0"),
    ];
    for (tool, arguments, says) in cases.clone() {
        let said = client.refusal(tool, arguments);
        assert!(said.starts_with(says), "{said}");
    }
    assert_eq!(cases.len(), 4);
    // Where two memories have one title, the reply names both.
    let (one, other) = (write(&mut client, "Same", "a"), write(&mut client, "Same", "b"));
    let said = client.refusal("edit_mem", json!({ "id": "same", "category": "x" }));
    assert!(said.contains(&one.0) && said.contains(&other.0), "{said}");
    client.finish();
}
