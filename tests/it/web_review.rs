//! Tests the proposals of the web page: what it lists and shows, decisions with what they were based on, and its event.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};
use sidenote::store::{EditRequest, NoteEdit, Operation, Store};

use crate::support::{TestVault, stdout};
use crate::web::Page;

/// Keeps an added line as a proposal, and returns its id.
fn proposed(store: &Store, note: &str, text: &str) -> String {
    let edit = NoteEdit::Append(text.to_owned(), None);
    let request = EditRequest { note: note.to_owned(), edit, expect: None };
    let plan = store.changes().plan(&Operation::Edit(request)).unwrap();
    store.proposals().propose(plan, "The plan lacks it.", "codex").unwrap().id
}

fn boats() -> TestVault {
    TestVault::new(&[("Boat.md", "We row.\r\nIt is red.\r\n"), ("River.md", "It is wide.\n")])
}

#[track_caller]
fn error_kind(page: &Page, action: &str, body: &Value) -> String {
    let reply = page.post(&format!("actions/{action}"), body);
    assert!(reply.status >= 400, "{action} {body}: {}", reply.text());
    reply.json()["error"]["kind"].as_str().unwrap().to_owned()
}

#[test]
fn a_proposal_is_listed_shown_accepted_and_undone() {
    let vault = boats();
    let id = proposed(&vault.store(), "Boat", "We sail.");
    let page = Page::start(&vault, &[]);
    let list = page.read("proposals");
    assert_eq!((&list["waiting"], &list["proposals"][0]["id"]), (&json!(1), &json!(id)));
    assert_eq!(list["proposals"][0]["paths"], json!(["Boat.md"]));
    let printed: Value = serde_json::from_str(&stdout(&vault.run(&["proposals", "--json"]))).unwrap();
    assert_eq!(list, printed);
    assert_eq!(page.read("proposals?kind=duplicate")["proposals"], json!([]));
    assert_eq!(page.get("/api/v1/proposals?kind=nothing").status, 400);
    assert_eq!(page.get("/api/v1/proposals/ffff").status, 404);
    let shown = page.read(&format!("proposals/{id}"));
    assert!(shown["diff"].as_str().unwrap().contains("+We sail."), "{shown}");
    assert_eq!(
        shown["files"],
        json!([{"path": "Boat.md", "text": "We row.\r\nIt is red.\r\n\r\nWe sail.\r\n"}])
    );
    let accept = json!({"id": id, "expect_hash": shown["expect_hash"]});
    let dry = page.post("actions/accept-proposal", &json!({"id": id, "dry_run": true})).json();
    assert_eq!((&dry["change"]["applied"], vault.read("Boat.md").contains("sail")), (&json!(false), false));
    let done = page.post("actions/accept-proposal", &accept).json();
    assert_eq!(done["change"]["applied"], true, "{done}");
    assert_eq!(vault.read("Boat.md"), "We row.\r\nIt is red.\r\n\r\nWe sail.\r\n");
    assert_eq!(error_kind(&page, "accept-proposal", &accept), "exists");
    let decided = page.read(&format!("proposals/{id}"));
    assert_eq!(decided["decision"]["operation"], done["change"]["id"]);
    assert_eq!((&decided["expect_hash"], &decided["files"]), (&Value::Null, &Value::Null));
    assert_eq!(page.read("proposals")["proposals"], json!([]));
    assert_eq!(page.read("proposals?decided=1")["proposals"][0]["state"], "accepted");
    let undone = page.post("actions/undo", &json!({"id": done["change"]["id"]}));
    assert_eq!(undone.status, 200, "{}", undone.text());
    assert_eq!(vault.read("Boat.md"), "We row.\r\nIt is red.\r\n");
}

#[test]
fn a_proposal_that_was_not_seen_as_it_is_is_not_accepted() {
    let vault = boats();
    let id = proposed(&vault.store(), "Boat", "We sail.");
    let page = Page::start(&vault, &[]);
    let seen = page.read(&format!("proposals/{id}"))["expect_hash"].clone();
    // Somebody words it differently.
    let text = "We row.\nIt is blue.\n";
    let edited = page.post("actions/edit-proposal", &json!({"id": id, "text": text})).json();
    assert!(edited["diff"].as_str().unwrap().contains("+It is blue."), "{edited}");
    let accept = |hash: &Value| json!({"id": id, "expect_hash": hash});
    assert_eq!(error_kind(&page, "accept-proposal", &accept(&seen)), "conflict");
    let seen = page.read(&format!("proposals/{id}"))["expect_hash"].clone();
    // A source changes.
    vault.write("Boat.md", "We swim.\n");
    assert_eq!(error_kind(&page, "accept-proposal", &accept(&seen)), "conflict");
    assert_eq!(vault.read("Boat.md"), "We swim.\n");
    assert_eq!(page.read("proposals")["proposals"][0]["changed"], json!(["Boat.md"]));
    let outdated = page.read(&format!("proposals/{id}"));
    assert_eq!((&outdated["changed"], &outdated["expect_hash"]), (&json!(["Boat.md"]), &Value::Null));
    // It changes back.
    vault.write("Boat.md", "We row.\r\nIt is red.\r\n");
    assert_eq!(page.read("proposals")["proposals"][0]["changed"], Value::Null);
    let done = page.post("actions/accept-proposal", &accept(&seen)).json();
    assert_eq!(done["change"]["applied"], true, "{done}");
    assert_eq!(vault.read("Boat.md"), "We row.\r\nIt is blue.\r\n", "each line keeps its end");
}

#[test]
fn a_rejected_proposal_can_wait_again() {
    let vault = boats();
    let id = proposed(&vault.store(), "Boat", "We sail.");
    let page = Page::start(&vault, &[]);
    let body = json!({"id": id});
    assert_eq!(error_kind(&page, "reopen-proposal", &body), "exists");
    assert_eq!(page.post("actions/reject-proposal", &body).json()["state"], "rejected");
    assert_eq!(page.read("proposals")["waiting"], 0);
    assert_eq!(error_kind(&page, "reject-proposal", &body), "exists");
    assert_eq!(page.post("actions/reopen-proposal", &body).json()["state"], "waiting");
    assert_eq!(page.read("proposals")["waiting"], 1);
    for action in ["accept-proposal", "reject-proposal", "reopen-proposal", "edit-proposal"] {
        assert_eq!(error_kind(&page, action, &json!({})), "invalid", "{action}");
        assert_eq!(error_kind(&page, action, &json!({"id": "ffff", "text": ""})), "not-found", "{action}");
        assert_eq!(error_kind(&page, action, &json!({"id": id, "more": 1})), "invalid", "{action}");
    }
    page.stop();
    let page = Page::start(&vault, &["--read-only"]);
    assert_eq!(page.read(&format!("proposals/{id}"))["id"], id.as_str());
    for action in ["accept-proposal", "reject-proposal", "reopen-proposal", "edit-proposal", "consolidate"] {
        assert_eq!(error_kind(&page, action, &body), "read-only", "{action}");
    }
    assert_eq!(vault.read("Boat.md"), "We row.\r\nIt is red.\r\n");
}

#[test]
fn a_proposal_whose_place_is_taken_says_so() {
    let vault = boats();
    let id = {
        let store = vault.store();
        let request = sidenote::store::NewRequest { title: "Sail".to_owned(), ..Default::default() };
        let plan = store.changes().plan(&Operation::New(request)).unwrap();
        store.proposals().propose(plan, "It is missing.", "codex").unwrap().id
    };
    let page = Page::start(&vault, &[]);
    assert_eq!(page.read(&format!("proposals/{id}"))["obstacle"], Value::Null);
    vault.write("Sail.md", "It is here.\n");
    let shown = page.read(&format!("proposals/{id}"));
    assert!(shown["obstacle"].as_str().unwrap().contains("Sail.md"), "{shown}");
    assert_eq!(shown["expect_hash"], Value::Null);
    assert_eq!(vault.read("Sail.md"), "It is here.\n");
}

#[test]
fn a_consolidation_of_the_page_proposes_and_changes_nothing() {
    let oslo = "The staging server of Falcon is in Oslo.\n";
    let vault = TestVault::new(&[("Memories/Oslo.md", oslo), ("Memories/Staging.md", oslo)]);
    let page = Page::start(&vault, &[]);
    let dry = page.post("actions/consolidate", &json!({"kinds": ["duplicate"], "dry_run": true})).json();
    assert_eq!((&dry["counts"]["duplicate"], &page.read("proposals")["waiting"]), (&json!(1), &json!(0)));
    assert_eq!(error_kind(&page, "consolidate", &json!({"kinds": ["nothing"]})), "invalid");
    let found = page.post("actions/consolidate", &json!({"kinds": ["duplicate"]})).json();
    let id = found["proposals"][0]["id"].as_str().unwrap();
    assert_eq!(page.read("proposals")["proposals"], found["proposals"]);
    assert_eq!(
        (vault.read("Memories/Oslo.md").as_str(), vault.read("Memories/Staging.md").as_str()),
        (oslo, oslo)
    );
    // The plan of a merge is that of now: another note links to a source since.
    vault.write("Link.md", "See [[Oslo]] and [[Staging]].\n");
    let shown = page.read(&format!("proposals/{id}"));
    assert!(shown["diff"].as_str().unwrap().contains("Link.md"), "{shown}");
    let accept = json!({"id": id, "expect_hash": shown["expect_hash"]});
    assert_eq!(page.post("actions/accept-proposal", &accept).json()["change"]["applied"], true);
    let review = page.read("review");
    assert_eq!((&review["waiting"], &review["written"][0]["by"]), (&json!(0), &json!("you")));
    let printed: Value = serde_json::from_str(&stdout(&vault.run(&["memory", "review", "--json"]))).unwrap();
    assert_eq!(review["written"], printed["written"]);
    let earlier = page.read("review?week=2026-01-07");
    assert_eq!(earlier["written"], json!([]));
    assert_eq!(page.get("/api/v1/review?week=lately").status, 400);
}

#[test]
fn a_proposal_that_another_process_decides_sends_an_event() {
    let vault = boats();
    let id = {
        let store = vault.store();
        proposed(&store, "River", "It is deep.");
        proposed(&store, "Boat", "We sail.")
    };
    let page = Page::start(&vault, &[]);
    let mut stream = page.connect();
    let (host, cookie) = (&page.address, &page.cookie);
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = |name: &str| -> Value {
        let wanted = format!("event: {name}");
        assert!(lines.by_ref().any(|line| line == wanted), "the stream ended before {name}");
        let data = lines.by_ref().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
        serde_json::from_str(&data).unwrap()
    };
    assert_eq!(next("hello")["proposals"], 2);
    assert!(vault.run(&["proposals", "reject", &id]).status.success());
    while next("proposals")["waiting"] != 1 {}
    assert!(vault.run(&["proposals", "reopen", &id]).status.success());
    while next("proposals")["waiting"] != 2 {}
    page.stop();
}
