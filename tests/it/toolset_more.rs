//! Tests the toolset `more`: batches of edits, renames across the vault, merging and splitting, outlines, properties,
//! checks.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};
use sidenote::markdown::body_edit::replace_pattern;
use sidenote::markdown::edit::{Edit, apply};
use sidenote::markdown::piece_table::PieceTable;
use sidenote::markdown::span::Span;

use crate::mcp_client::Client;
use crate::support::TestVault;

const BOAT: &str = "---\nstatus: active\nrating: 4\ntags: [sport]\n---\n# Boat\n\n## To do\n\n- [ ] oars\n- [x] rope ^rope\n\n## Repairs\n\nThe hull leaks. See [[River]].\n";

fn vault() -> TestVault {
    TestVault::new(&[
        ("Boat.md", BOAT),
        ("River.md", "---\nstatus: done\n---\nIt is 12 m wide, 3 m deep.\r\nSee [[Boat#Repairs]] #sport\r\n"),
        ("Templates/Event.md", "# {{title}}\n\nPlace:\n"),
        ("Plans/Trip.md", "---\nstatus: active\ndue: 2026-12-01\n---\n[Nowhere](Nowhere.md)\n"),
    ])
}

/// Calls one tool on a fresh vault and gives the vault and the whole result.
fn call(tool: &str, arguments: Value) -> (TestVault, Value) {
    let vault = vault();
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let reply = client.call(tool, arguments);
    client.finish();
    (vault, reply)
}

fn text_of(vault: &TestVault, path: &str) -> String {
    fs::read_to_string(vault.root().join(path)).unwrap()
}

#[track_caller]
fn check_refused(tool: &str, arguments: Value, expected: &str) {
    let (vault, reply) = call(tool, arguments);
    assert_eq!(reply["isError"], true, "{reply}");
    let said = reply["content"][0]["text"].as_str().unwrap();
    assert!(said.contains(expected), "{said}");
    assert_eq!(text_of(&vault, "Boat.md"), BOAT);
}

#[test]
fn the_tools_are_listed_only_on_request() {
    let vault = vault();
    let names = |args: &[&str]| -> Vec<String> {
        let mut client = Client::start(&vault, args);
        let list = client.request("tools/list", json!({}));
        client.finish();
        let tools = list["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let more = [
        "edit_notes",
        "rename_part",
        "merge_notes",
        "extract_section",
        "new_from_template",
        "outline_note",
        "query_properties",
        "check_vault",
        "repair_links",
        "proposals",
    ];
    assert_eq!(names(&["--toolset", "more"]), more);
    assert_eq!(
        names(&["--toolset", "more", "--read-only"]),
        ["outline_note", "query_properties", "check_vault"]
    );
    assert!(!names(&[]).iter().any(|name| more.contains(&name.as_str())));
}

#[test]
fn a_batch_of_edits_is_one_operation() {
    let vault = vault();
    let river = text_of(&vault, "River.md");
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let edits = json!([
        { "note": "Boat", "action": "append", "text": "- [ ] sail", "heading": "To do" },
        { "note": "sidenote:///River.md", "action": "replace_pattern", "old": r"(\d+) m\b", "text": "$1 metres" },
        { "note": "Boat", "action": "replace", "old": "sail", "text": "new sail" },
        { "note": "Boat", "action": "insert_after_heading", "heading": "Repairs", "text": "Soon:" },
        { "note": "Boat", "action": "set", "key": "rating", "value": 5 },
        { "note": "Boat", "action": "add_tags", "tags": ["wood"] },
        { "note": "Boat", "action": "toggle_task", "task": "oars" },
        { "note": "Boat", "action": "toggle_task", "task": "rope", "status": "-" }
    ]);
    let dry = client.call("edit_notes", json!({ "edits": edits, "dry_run": true }));
    assert_eq!(dry["structuredContent"]["applied"], false);
    assert_eq!(text_of(&vault, "Boat.md"), BOAT);
    let reply = client.call("edit_notes", json!({ "edits": edits }));
    assert_eq!(reply["structuredContent"]["files"], json!(["Boat.md", "River.md"]));
    let expected = BOAT
        .replace("rating: 4", "rating: 5")
        .replace("[sport]", "[sport, wood]")
        .replace("[ ] oars", "[x] oars")
        .replace("[x] rope", "[-] rope")
        .replace("^rope\n", "^rope\n- [ ] new sail\n")
        .replace("## Repairs\n\n", "## Repairs\n\nSoon:\n\n");
    assert_eq!(text_of(&vault, "Boat.md"), expected);
    assert_eq!(text_of(&vault, "River.md"), river.replace("12 m", "12 metres").replace("3 m", "3 metres"));
    client.finish();
    assert!(vault.run(&["undo"]).status.success());
    assert_eq!((text_of(&vault, "Boat.md"), text_of(&vault, "River.md")), (BOAT.to_owned(), river));
}

#[test]
fn a_batch_with_one_wrong_edit_changes_nothing() {
    let good = json!({ "note": "Boat", "action": "append", "text": "more" });
    let cases = [
        (json!({ "note": "Boat", "action": "replace", "old": "absent", "text": "x" }), "edit 2 of 2: "),
        (json!({ "note": "Absent", "action": "append", "text": "x" }), "edit 2 of 2: "),
        (json!({ "note": "Boat", "action": "append" }), "edit 2 needs text"),
        (json!({ "note": "Boat", "action": "add_tags" }), "edit 2 needs tags"),
        (
            json!({ "note": "Boat", "action": "replace_pattern", "old": "(", "text": "" }),
            "is not a valid regular expression",
        ),
        (
            json!({ "note": "Boat", "action": "replace_pattern", "old": "o", "text": "", "expected_replacements": 1 }),
            "the pattern matches",
        ),
        (
            json!({ "note": "Boat", "action": "replace_pattern", "old": "a".repeat(1001), "text": "" }),
            "1001 bytes",
        ),
        (
            json!({ "note": "Boat", "action": "append", "text": "x", "expected_hash": "0".repeat(64) }),
            "Boat.md changed",
        ),
    ];
    assert_eq!(cases.len(), 8);
    for (wrong, expected) in cases {
        check_refused("edit_notes", json!({ "edits": [good, wrong] }), expected);
    }
    check_refused("edit_notes", json!({ "edits": [] }), "0 edits");
}

#[test]
fn a_tag_and_a_heading_are_renamed_with_their_links() {
    let (vault, reply) = call("rename_part", json!({ "kind": "tag", "old": "#sport", "new": "water/sport" }));
    assert_eq!(reply["structuredContent"]["applied"], true, "{reply}");
    assert!(text_of(&vault, "Boat.md").contains("tags: [water/sport]"));
    assert!(text_of(&vault, "River.md").contains("#water/sport\r\n"));
    let (vault, _) =
        call("rename_part", json!({ "kind": "heading", "note": "Boat", "old": "Repairs", "new": "Mending" }));
    assert!(text_of(&vault, "Boat.md").contains("## Mending\n"));
    assert!(text_of(&vault, "River.md").contains("[[Boat#Mending]]"));
    check_refused("rename_part", json!({ "kind": "block", "old": "rope", "new": "line" }), "needs the note");
    check_refused(
        "rename_part",
        json!({ "kind": "tag", "note": "Boat", "old": "a", "new": "b" }),
        "in all notes",
    );
}

#[test]
fn notes_are_merged_and_split() {
    let (vault, _) = call("merge_notes", json!({ "from": "River", "into": "Boat" }));
    assert!(text_of(&vault, "Boat.md").contains("It is 12 m wide"));
    assert!(vault.root().join(".trash/River.md").exists());
    let (vault, reply) =
        call("extract_section", json!({ "note": "Boat", "section": "Repairs", "title": "Boat repairs" }));
    assert!(text_of(&vault, "Boat repairs.md").contains("The hull leaks."), "{reply}");
    assert!(text_of(&vault, "Boat.md").contains("[[Boat repairs]]"));
    assert!(text_of(&vault, "River.md").contains("[[Boat repairs"));
}

#[test]
fn a_note_starts_from_a_template() {
    let arguments = json!({ "title": "Regatta", "template": "Event", "content": "On the lake." });
    let (vault, reply) = call("new_from_template", arguments);
    assert!(text_of(&vault, "Regatta.md").ends_with("# Regatta\n\nPlace:\nOn the lake.\n"), "{reply}");
    check_refused("new_from_template", json!({ "template": "Event" }), "needs a title");
    check_refused("new_from_template", json!({ "daily": true, "title": "x" }), "named by its date");
}

#[test]
fn an_outline_has_headings_blocks_and_tasks() {
    let (_, reply) = call("outline_note", json!({ "note": "Boat" }));
    insta::assert_snapshot!(reply["content"][0]["text"].as_str().unwrap(), @r"
    Boat.md
    6: # Boat
    8: ## To do
    13: ## Repairs
    11: ^ rope
    10: [ ] oars
    11: [x] rope ^rope
    ");
    assert_eq!(
        reply["structuredContent"]["headings"][2],
        json!({ "line": 13, "level": 2, "text": "Repairs" })
    );
}

#[test]
fn chosen_properties_are_listed() {
    let arguments = json!({ "fields": ["Status", "due", "tags"], "property": "status=active" });
    let (_, reply) = call("query_properties", arguments);
    let found = &reply["structuredContent"];
    assert_eq!(found["total"], 2);
    assert_eq!(found["notes"][0]["fields"], json!({ "Status": "active", "tags": ["sport"] }));
    assert_eq!(found["notes"][1]["fields"], json!({ "Status": "active", "due": "2026-12-01" }));
}

#[test]
fn problems_are_found_by_code_and_folder() {
    let (_, reply) = call("check_vault", json!({ "codes": ["broken-link"], "path": "Plans/" }));
    let found = &reply["structuredContent"];
    assert_eq!((&found["total"], &found["problems"][0]["path"]), (&json!(1), &json!("Plans/Trip.md")));
    check_refused(
        "check_vault",
        json!({ "codes": ["broken-link"], "path": "Plan" }),
        "no note or folder Plan",
    );
    let (_, reply) = call("check_vault", json!({ "paths": ["Plans", "Boat.md"], "severity": "error" }));
    let problems = reply["structuredContent"]["problems"].as_array().unwrap();
    assert!(problems.iter().all(|problem| problem["severity"] == "error"), "{problems:?}");
    assert!(
        problems.iter().any(|problem| problem["path"] == "Plans/Trip.md" && problem["target"].is_string())
    );
    check_refused("check_vault", json!({ "codes": ["nonsense"] }), "broken-link");
}

#[track_caller]
fn check_pattern(text: &str, pattern: &str, new: &str, expected: Result<&str, &str>) {
    let found = replace_pattern(text, pattern, new, None);
    let found = found.map(|edits| String::from_utf8(apply(text.as_bytes(), &edits).unwrap()).unwrap());
    assert_eq!(found.as_deref().map_err(|refusal| refusal.code), expected, "{pattern:?} in {text:?}");
}

#[test]
fn a_pattern_is_replaced_in_the_body() {
    let cases = [
        ("---\na: b\n---\nb b\n", "b", "c", Ok("---\na: b\n---\nc c\n")),
        ("one\r\ntwo\r\n", "one\ntwo", "three\nfour", Ok("three\r\nfour\r\n")),
        ("- a\n- b\n", "^- (?<item>.)$", "* ${item}", Ok("* a\n* b\n")),
        ("äö\n", ".", "x", Ok("xx\n")),
        ("ab\n", "x", "y", Err("text-not-found")),
        ("ab\n", "a{1000}{1000}{1000}", "y", Err("invalid-pattern")),
        ("a\n", "^", "---\nx: y\n---\n", Err("reparse-mismatch")),
    ];
    assert_eq!(cases.len(), 7);
    for (text, pattern, new, expected) in cases {
        check_pattern(text, pattern, new, expected);
    }
}

/// Makes edits that do not overlap, of a text of some length.
fn edits_of(len: usize) -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec((0..=len, 0..4usize, "[xyz]{0,3}"), 0..4).prop_map(move |wanted| {
        let mut end = 0;
        let mut edits = Vec::new();
        let mut wanted = wanted;
        wanted.sort();
        for (start, taken, text) in wanted {
            if start >= end && start <= len {
                let stop = (start + taken).min(len);
                edits.push(Edit::replace(Span::new(start, stop), text));
                end = stop + 1;
            }
        }
        edits
    })
}

proptest! {
    #[test]
    fn successive_edits_equal_their_sum(
        text in "[a-f]{0,30}",
        seeds in prop::collection::vec(edits_of(40), 0..5),
    ) {
        let mut table = PieceTable::new(&text);
        let mut by_hand = text.clone();
        for edits in seeds {
            let fitting: Vec<Edit> =
                edits.into_iter().filter(|edit| edit.span.end <= by_hand.len()).collect();
            by_hand = String::from_utf8(apply(by_hand.as_bytes(), &fitting).unwrap()).unwrap();
            table.apply(&fitting).unwrap();
        }
        prop_assert_eq!(table.text(), by_hand.clone());
        let sum = table.edits();
        prop_assert_eq!(apply(text.as_bytes(), &sum).unwrap(), by_hand.into_bytes());
    }
}

#[test]
fn a_piece_table_keeps_what_no_edit_touched() {
    let mut table = PieceTable::new("one two three");
    table.apply(&[Edit::replace(Span::new(0, 3), "1"), Edit::replace(Span::new(8, 13), "3")]).unwrap();
    table.apply(&[Edit::insert(1, "!")]).unwrap();
    let expected = [Edit::replace(Span::new(0, 3), "1!"), Edit::replace(Span::new(8, 13), "3")];
    assert_eq!(table.edits(), expected);
    let mut table = PieceTable::new("ä");
    assert!(table.apply(&[Edit::insert(1, "x")]).is_err());
    let mut table = PieceTable::new("abc");
    assert!(table.apply(&[Edit::remove(Span::new(0, 2)), Edit::remove(Span::new(1, 3))]).is_err());
    let mut table = PieceTable::new("abc");
    assert!(table.apply(&[Edit::remove(Span::new(2, 4))]).is_err());
}

#[test]
fn links_are_repaired_after_a_move_by_another_program() {
    let vault = vault();
    vault.write("Old/Place.md", "# Place\n\nA place with a text of its own.\n");
    vault.write("Way.md", "See [[Old/Place]].\n");
    assert!(vault.run(&["index"]).status.success());
    let mut client = Client::start(&vault, &["--toolset", "more"]);
    client.call("outline_note", json!({ "note": "Way" }));
    vault.rename("Old/Place.md", "New/Site.md");
    let reply = client.call("repair_links", json!({}));
    assert_eq!(reply["structuredContent"]["links"][0]["to"], "New/Site.md", "{reply}");
    let reply = client.call("repair_links", json!({ "apply": "certain", "paths": ["Way.md"] }));
    assert_eq!(reply["structuredContent"]["repaired"], 1, "{reply}");
    client.finish();
    assert_eq!(vault.read("Way.md"), "See [[Site]].\n");
}
