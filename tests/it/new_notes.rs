//! Tests new notes: frontmatter of the text and requested properties, ids, daily notes, and names made from a text.

use serde_json::json;
use sidenote::store::{MergeRequest, MoveRequest, Operation};

use crate::mcp_client::Client;
use crate::support::{TestVault, json as told, run, stderr, stdout, text_of};

const NOW: &str = "2026-11-21";

/// Makes a note by the command line, and gives its text and the notices.
fn made(vault: &TestVault, path: &str, args: &[&str]) -> (String, String) {
    let done = vault.run(&[&["new"], args].concat());
    assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    (text_of(vault, path), stderr(&done))
}

#[test]
fn frontmatter_of_the_text_is_merged_with_requested_properties() {
    let vault = TestVault::new(&[("T.md", "---\nid: of-the-template\ntags: [t]\n---\n# {{title}}\n")]);
    let content = "---\nid: mine\ntags: [z]\nstatus: draft\ncreated_at: 2020-01-01\n---\nText\n";
    let (note, said) = made(
        &vault,
        "A.md",
        &["A", "--content", content, "--tag", "y", "--tag", "Z", "--set", "status=done"],
    );
    assert_eq!(note, "---\nid: mine\ntags: [z, y]\nstatus: done\ncreated_at: 2020-01-01\n---\nText\n");
    assert!(said.contains("status is \"done\"; the text said \"draft\""), "{said}");
    // The id is taken now.
    let (note, said) = made(&vault, "B.md", &["B", "--content", "---\nid: mine\n---\nOther\n"]);
    assert!(!note.contains("mine") && said.contains("the text said \"mine\""), "{note}{said}");
    // A template and a text with a frontmatter each.
    let (note, _) = made(
        &vault,
        "C.md",
        &["C", "--template", "T", "--content", "---\ntags: [z]\nup: x\n---\nText\n", "--tag", "y"],
    );
    let id = vault.open("none").lookup().find("C.md").unwrap().note_id;
    assert_eq!(note, format!("---\nid: {id}\ntags: [t, z, y]\nup: x\n---\n# C\nText\n"));
    assert_ne!(id, "of-the-template");
    let (note, _) = made(&vault, "D.md", &["D", "--template", "T", "--set", "id=asked"]);
    assert_eq!(note, "---\nid: asked\ntags: [t]\n---\n# D\n");
    let mut client = Client::start(&vault, &[]);
    let arguments = json!({ "title": "W", "content": "---\ntags: [z]\n---\nw\n", "tags": ["y"] });
    client.call("write_note", arguments);
    client.finish();
    assert!(text_of(&vault, "W.md").contains("tags: [z, y]\n"), "{}", text_of(&vault, "W.md"));
}

#[test]
fn ids_are_given_to_plain_notes_and_memories() {
    let vault = TestVault::new(&[
        ("T.md", "from a template\n"),
        ("book/book.toml", ""),
        (".obsidian/app.json", "{}"),
    ]);
    let has_id = |path: &str, args: &[&str]| {
        let (note, _) = made(&vault, path, args);
        assert_eq!(note.contains("id: "), note.contains("created_at: "), "{note}");
        note.contains("id: ")
    };
    assert!(has_id("Plain.md", &["Plain"]));
    assert!(!has_id("2026-11-21.md", &["--daily", "--content", "today"]));
    assert!(!has_id("Made.md", &["Made", "--template", "T"]));
    assert!(!has_id("book/src/Page.md", &["Page", "--folder", "book/src"]));
    vault.write(".sidenote/config.toml", "[notes]\nids = \"never\"\n");
    assert!(!has_id("Never.md", &["Never", "--tag", "x"]));
    run(&vault, NOW, &["memory", "save", "InsertOutcome for long"]);
    assert!(text_of(&vault, "Memories/InsertOutcome for long.md").contains("id: "));
    vault.write(".sidenote/config.toml", "[notes]\nids = \"always\"\n");
    assert!(has_id("Again.md", &["Again", "--template", "T"]));
}

#[test]
fn ids_follow_the_link_dialect() {
    let markers = [
        ("x.txt", "", false, true),
        (".sidenote/config.toml", "[links]\ndialect = \"github\"\n", false, false),
        ("book.toml", "[book]\nsrc = \".\"\n", false, false),
        ("mkdocs.yml", "docs_dir: .\n", false, false),
        (".obsidian/app.json", "{}", true, true),
    ];
    for (marker, text, note, memory) in markers {
        let vault = TestVault::new(&[(marker, text)]);
        assert_eq!(made(&vault, "Plain.md", &["Plain"]).0.contains("id: "), note, "{marker}");
        run(&vault, NOW, &["memory", "save", "InsertOutcome for long"]);
        let saved = text_of(&vault, "Memories/InsertOutcome for long.md");
        assert_eq!(saved.contains("id: ") && saved.contains("created_at: "), memory, "{marker}: {saved}");
        run(&vault, NOW, &["memory", "recall", "InsertOutcome"]);
    }
}

#[test]
fn an_existing_daily_note_is_appended_to() {
    let vault = TestVault::new(&[]);
    let daily = |args: &[&str]| {
        let done = vault.run(&[&["new", "--daily"], args].concat());
        assert!(done.status.success(), "{}", stderr(&done));
        stdout(&done)
    };
    assert_eq!(daily(&["--content", "one"]), "2026-11-21.md\n");
    assert_eq!(daily(&[]), "2026-11-21.md\n");
    assert_eq!(text_of(&vault, "2026-11-21.md"), "one\n");
    assert_eq!(daily(&["--content", "two", "--tag", "x"]), "2026-11-21.md\n");
    assert_eq!(text_of(&vault, "2026-11-21.md"), "---\ntags:\n  - x\n---\none\n\ntwo\n");
    assert_eq!(daily(&["--tag", "x"]), "2026-11-21.md\n");
    run(&vault, NOW, &["undo", "1"]);
    assert_eq!(text_of(&vault, "2026-11-21.md"), "one\n");
}

/// Merges `From.md` into `Into.md`, and compares the properties and the notices.
#[track_caller]
fn check_merge(from: &str, into: &str, expect: &str, says: &[&str]) {
    let front = |text: &str| format!("---\n{text}---\nbody\n");
    let vault = TestVault::new(&[("From.md", &front(from)), ("Into.md", &front(into))]);
    let request =
        MergeRequest { from: vec!["From".to_owned()], into: "Into".to_owned(), ..MergeRequest::default() };
    let done = vault.store().changes().change(&Operation::Merge(request), false).unwrap();
    assert_eq!(text_of(&vault, "Into.md"), format!("---\n{expect}---\nbody\n\nbody\n"));
    let remarks: Vec<String> = done.plan.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(remarks.len(), says.len(), "{remarks:?}");
    for (remark, says) in remarks.iter().zip(says) {
        assert!(remark.contains(says), "{remark}");
    }
}

#[test]
fn a_merge_reports_every_property_that_it_drops() {
    check_merge(
        "up: \"[[x]]\"\n",
        "up: \"[[y]]\"\n",
        "up:\n  - \"[[y]]\"\n  - \"[[x]]\"\n",
        &["up is a list now"],
    );
    check_merge("rating: 5\n", "rating: 3\n", "rating: 3\nmerged_rating: 5\n", &["kept as merged_rating"]);
    check_merge("tags: [A, b]\n", "tags: [a]\n", "tags: [a, b]\n", &[]);
    check_merge("aliases: One\n", "aliases: [Two]\n", "aliases: [Two, One]\n", &[]);
    check_merge(
        "id: a\ntype: fact\n",
        "id: b\n",
        "id: b\ntype: fact\n",
        &["the id \"a\" of From.md is removed"],
    );
    check_merge("type: fact\n", "type: task\n", "type: task\nmerged_type: fact\n", &["merged_type"]);
    check_merge(
        "created_at: \"2026-01-01T00:00:00Z\"\n",
        "created_at: \"2026-02-01T00:00:00Z\"\n",
        "created_at: \"2026-01-01T00:00:00Z\"\n",
        &["is removed"],
    );
    check_merge("same: 1\nempty:\nnew: x\n", "same: 1\nempty: y\n", "same: 1\nempty: y\nnew: x\n", &[]);
    check_merge("full: x\n", "full:\n", "full: x\n", &[]);
}

#[test]
fn updating_the_text_of_a_memory_renames_it() {
    let secret = "The door code is 4711";
    let vault = TestVault::new(&[("Start.md", "See [[The door code is 4711]].\n")]);
    let mut client = Client::start(&vault, &["--toolset", "longterm,vector,mem,rulebook,notes"]);
    let id = client.json("save_memory", json!({ "content": secret }))["id"].clone();
    let updated =
        client.json("update_memory", json!({ "id": id, "content": "The door code is known to Ann" }));
    assert_eq!(updated["id"], id);
    let path = "Memories/The door code is known to Ann.md";
    assert!(text_of(&vault, path).ends_with("---\nThe door code is known to Ann\n"));
    assert!(!vault.root().join("Memories/The door code is 4711.md").exists());
    assert_eq!(text_of(&vault, "Start.md"), "See [[The door code is known to Ann]].\n");
    // By every toolset that changes a text.
    let update = json!({ "updates": [{ "id": id, "content": "Ask: Bob" }] });
    client.text("update_memories", update);
    assert!(text_of(&vault, "Memories/Ask Bob.md").contains("title: \"Ask: Bob\"\n"));
    client.json("edit_mem", json!({ "id": id, "content": "Ask Carl of 0815" }));
    assert!(!text_of(&vault, "Memories/Ask Carl of 0815.md").contains("title:"));
    let edit = json!({ "note": id, "action": "replace", "old": " of 0815", "text": "" });
    let edited = client.call("edit_note", edit);
    assert_eq!(edited["structuredContent"]["path"], "Memories/Ask Carl.md", "{edited}");
    assert_eq!(text_of(&vault, "Start.md"), "See [[Ask Carl]].\n");
    // A title that was given stays.
    let given =
        client.json("write_mem", json!({ "title": "Boat race", "content": "Boat race" }))["id"].clone();
    client.json("edit_mem", json!({ "id": given, "content": "At nine" }));
    assert!(text_of(&vault, "Memories/Boat race.md").ends_with("At nine\n"));
    let named = json!({ "type": "fact", "title": "Oars", "content": "# Oars\n\nTwo" });
    let named = client.json("rulebook_memory_save", named)["memory"]["id"].clone();
    client.text("update_memories", json!({ "updates": [{ "id": named, "content": "Three" }] }));
    assert!(text_of(&vault, "Memories/Oars.md").ends_with("Three\n"));
    client.finish();
    run(&vault, NOW, &["memory", "save", "Antenna", "--title", "Antenna"]);
    assert_eq!(told(&vault, NOW, &["inspect", "Memories/Antenna.md"])["frontmatter"]["title"], "Antenna");
}

#[test]
fn updating_a_note_that_is_no_memory_keeps_its_name() {
    let vault = TestVault::new(&[(
        "Shopping.md",
        "---\nid: 11111111-1111-4111-8111-111111111111\n---\n# Shopping\n",
    )]);
    let mut client = Client::start(&vault, &["--toolset", "longterm"]);
    client.json("update_memory", json!({ "id": "11111111-1111-4111-8111-111111111111", "content": "Milk" }));
    client.finish();
    assert!(text_of(&vault, "Shopping.md").ends_with("Milk\n"));
}

#[test]
fn a_link_with_a_changed_target_is_reported() {
    let vault = TestVault::new(&[
        ("A/Boat.md", "one\n"),
        ("B/Boat.md", "other\n"),
        ("N.md", "- see [[A/Boat]] and\n- text [[Boat]] here\n"),
    ]);
    let done = vault.run(&["delete", "A/Boat.md"]);
    let said = stderr(&done);
    assert!(said.contains("N.md:1:7: now broken: [[A/Boat]] (dangling)"), "{said}");
    assert!(said.contains("N.md:2:8: leads to B/Boat.md now: [[Boat]] (leads-elsewhere)"), "{said}");
    let vault = TestVault::new(&[("A.md", "x [[B]]\n"), ("B.md", "b\n")]);
    let done = vault.run(&["unlink", "A", "B"]);
    assert!(stderr(&done).contains("A.md:1:3: the text links to it"), "{}", stderr(&done));
}

#[test]
fn a_reply_says_where_links_resolve_now() {
    let vault = TestVault::new(&[
        ("A/Boat.md", "one\n"),
        ("B/Boat.md", "other\n"),
        ("N.md", "see [[A/Boat]]\n"),
        ("O.md", "see [[Boat]]\n"),
    ]);
    let mut client = Client::start(&vault, &[]);
    let gone = client.call("delete_note", json!({ "note": "A/Boat.md" }));
    let reply = &gone["structuredContent"];
    assert_eq!(reply["dangling"], json!(["N.md:1"]), "{gone}");
    assert!(reply["notices"].to_string().contains("O.md:1:5: leads to B/Boat.md now"), "{gone}");
    client.finish();
}

#[test]
fn a_move_reports_notes_that_are_too_large_to_read() {
    let long = format!("[[Boat]]\n{}", "x".repeat(3000));
    let vault = TestVault::new(&[("Boat.md", "b\n"), ("Long.md", &long), ("Other.md", &"y".repeat(3000))]);
    let store = vault.open_set(&[("embed.provider", "none"), ("vault.max_file_bytes", "2000")]);
    let request = MoveRequest { from: "Boat".to_owned(), to: "Ship".to_owned(), ..MoveRequest::default() };
    let plan = store.changes().plan(&Operation::Move(request)).unwrap();
    let remarks: Vec<String> = plan.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].starts_with("Long.md:1:1: ") && remarks[0].contains("max_file_bytes"), "{remarks:?}");
}

/// Editors and git take a file with a NUL character for a binary one.
#[test]
fn no_text_with_a_nul_character_is_written() {
    let vault = TestVault::new(&[("a.md", "# A\n")]);
    let mut child = vault
        .command(&["append", "a", "-"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"one\0two\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("NUL character"), "{}", stderr(&output));
    assert_eq!(vault.read("a.md"), "# A\n");
}
