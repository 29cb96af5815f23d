//! Tests of proposals: making, listing, accepting, rejecting and editing them.

use std::fs;

use serde_json::{Value, json};
use sidenote::base::error::ErrorKind;
use sidenote::markdown::edit::{ChangeSet, Remark};
use sidenote::markdown::path::NotePath;
use sidenote::memory::left_out::left_out;
use sidenote::store::{
    ConsolidateRequest, EditRequest, NewRequest, NoteEdit, Operation, Proposal, ProposalKind, ProposalState,
    ProposalsRequest, Role, Store,
};

use crate::mcp_client::Client;
use crate::support::TestVault;

fn append(store: &Store, note: &str, text: &str) -> ChangeSet {
    let edit = NoteEdit::Append(text.to_owned(), None);
    let request = EditRequest { note: note.to_owned(), edit, expect: None };
    store.changes().plan(&Operation::Edit(request)).unwrap()
}

fn proposed(store: &Store, note: &str, text: &str) -> Proposal {
    store.proposals().propose(append(store, note, text), "The plan lacks it.", "codex").unwrap()
}

#[test]
fn a_proposal_changes_nothing_until_it_is_accepted_and_undo_takes_it_back() {
    let vault = TestVault::new(&[("Plan.md", "# Plan\n\nWe row.\n")]);
    let store = vault.store();
    let proposal = proposed(&store, "Plan", "We sail.");
    assert_eq!(vault.read("Plan.md"), "# Plan\n\nWe row.\n");
    assert_eq!((proposal.kind, proposal.state), (ProposalKind::Change, ProposalState::Waiting));
    assert!(proposal.diff.contains("+We sail."), "{}", proposal.diff);
    let reply = store.proposals().list(ProposalsRequest::default()).unwrap();
    assert_eq!((reply.waiting, reply.proposals[0].paths.as_slice()), (1, ["Plan.md".to_owned()].as_slice()));
    let dry = store.proposals().accept(&proposal.id, true).unwrap();
    assert!(!dry.change.applied && dry.change.diff.is_some());
    let done = store.proposals().accept(&proposal.id[..6], false).unwrap();
    assert!(done.change.applied);
    assert_eq!(vault.read("Plan.md"), "# Plan\n\nWe row.\n\nWe sail.\n");
    assert_eq!(store.proposals().waiting_count().unwrap(), 0);
    let decided = store.proposals().show(&proposal.id).unwrap().proposal;
    assert_eq!(decided.state, ProposalState::Accepted);
    assert_eq!(decided.decision.unwrap().operation, done.change.id);
    assert_eq!(store.proposals().accept(&proposal.id, false).unwrap_err().kind(), ErrorKind::Exists);
    store.changes().undo(1, false).unwrap();
    assert_eq!(vault.read("Plan.md"), "# Plan\n\nWe row.\n");
}

#[test]
fn a_proposal_is_refused_after_its_source_changed() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let proposal = proposed(&store, "Plan", "We sail.");
    vault.write("Plan.md", "We swim.\n");
    let error = store.proposals().accept(&proposal.id, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("Plan.md"), "{error}");
    assert_eq!(vault.read("Plan.md"), "We swim.\n");
    assert_eq!(store.proposals().show(&proposal.id).unwrap().changed, ["Plan.md"]);
    assert_eq!(store.proposals().show(&proposal.id).unwrap().proposal.state, ProposalState::Waiting);
}

#[test]
fn a_rejected_proposal_is_kept_and_the_same_change_waits_once() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let first = proposed(&store, "Plan", "We sail.");
    assert_eq!(proposed(&store, "Plan", "We sail.").id, first.id);
    assert_ne!(proposed(&store, "Plan", "We swim.").id, first.id);
    assert_eq!(store.proposals().waiting_count().unwrap(), 2);
    store.proposals().reject(&first.id).unwrap();
    assert_eq!(store.proposals().waiting_count().unwrap(), 1);
    assert_eq!(proposed(&store, "Plan", "We sail.").state, ProposalState::Rejected);
    assert_eq!(store.proposals().waiting_count().unwrap(), 1);
    let all = store.proposals().list(ProposalsRequest { all: true, kind: None }).unwrap();
    assert_eq!(all.proposals.len(), 2);
}

#[test]
fn a_damaged_proposal_is_named_and_the_others_are_read() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let proposal = proposed(&store, "Plan", "We sail.");
    let folder = vault.root().join(".sidenote/records/proposals");
    fs::write(folder.join("0000.json"), "{").unwrap();
    let reply = store.proposals().list(ProposalsRequest::default()).unwrap();
    assert_eq!((reply.waiting, reply.damaged.len()), (1, 1));
    assert!(reply.damaged[0].contains("0000.json"), "{:?}", reply.damaged);
    assert!(reply.damaged[0].contains("delete it"), "{:?}", reply.damaged);
    assert!(store.proposals().accept(&proposal.id, false).unwrap().change.applied);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_text_of_a_proposal_can_be_replaced_and_what_it_leaves_out_is_listed() {
    let vault = TestVault::new(&[("Plan.md", "We row to Bremen on 2026-03-04.\n")]);
    let store = vault.store();
    let proposal = proposed(&store, "Plan", "We sail.");
    let edited = store.proposals().edit(&proposal.id, None, "We sail to Bremen.\n", &[], false).unwrap();
    assert_eq!(edited.proposal.left_out, ["2026-03-04"]);
    assert!(edited.proposal.diff.contains("+We sail to Bremen."), "{}", edited.proposal.diff);
    store.proposals().accept(&proposal.id, false).unwrap();
    assert_eq!(vault.read("Plan.md"), "We sail to Bremen.\n");
    store.changes().undo(1, false).unwrap();
    assert_eq!(vault.read("Plan.md"), "We row to Bremen on 2026-03-04.\n");
}

#[test]
fn a_new_note_can_be_proposed() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let request =
        NewRequest { title: "Sail".to_owned(), content: "It is red.".to_owned(), ..NewRequest::default() };
    let plan = store.changes().plan(&Operation::New(request)).unwrap();
    let proposal = store.proposals().propose(plan, "It is missing.", "codex").unwrap();
    assert!(proposal.sources.is_empty());
    store.proposals().accept(&proposal.id, false).unwrap();
    assert!(vault.read("Sail.md").contains("It is red."));
}

#[test]
fn the_commands_list_show_accept_and_reject() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let (kept, gone) = {
        let store = vault.store();
        (proposed(&store, "Plan", "We sail.").id, proposed(&store, "Plan", "We swim.").id)
    };
    let json = |args: &[&str]| -> Value {
        let output = vault.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(json(&["proposals"])["waiting"], 2);
    assert_eq!(json(&["proposals", "show", &kept])["reason"], "The plan lacks it.");
    assert_eq!(json(&["proposals", "reject", &gone, "--dry-run"])["rejected"][0]["id"], gone.as_str());
    assert_eq!(json(&["proposals", "reject", &gone])["rejected"][0]["state"], "rejected");
    assert_eq!(
        json(&["proposals", "accept", "--all", "--dry-run"])["accepted"][0]["change"]["applied"],
        false
    );
    assert_eq!(vault.read("Plan.md"), "We row.\n");
    assert_eq!(json(&["proposals", "accept", &kept])["accepted"][0]["change"]["applied"], true);
    assert_eq!(vault.read("Plan.md"), "We row.\n\nWe sail.\n");
    assert_eq!(json(&["proposals", "list", "--decided"])["proposals"].as_array().unwrap().len(), 2);
    let unknown = vault.run(&["proposals", "show", "ffffffff"]);
    assert_eq!(unknown.status.code(), Some(3));
}

#[test]
fn what_a_result_has_is_not_left_out() {
    let sources =
        ["The staging server of Falcon runs on port 8080.", "Falcon moved to port 9090 on 2026-03-04."];
    let result = "Since 2026-03-04 Falcon's staging server runs on port 9090 (before: 8080).";
    assert!(left_out(&sources, result).is_empty());
}

#[test]
fn numbers_dates_and_names_are_listed_once_in_their_order() {
    let cases: &[(&[&str], &str, &[&str])] = &[
        (
            &[
                "Anna owns Falcon since 2024-01-02. It costs 14 %.",
                "It was Anna who paid 14 euros to McDuff.",
            ],
            "Somebody owns it; 140 euros.",
            &["Falcon", "2024-01-02", "14", "Anna", "McDuff"],
        ),
        (&["Nobody knows.\nPerhaps later!"], "", &[]),
        (&["we met Perhaps"], "", &["Perhaps"]),
        (&["Release v1.10.2 at 14:30, load 95%"], "v1.10 at 14:00, 95%", &["v1.10.2", "14:30"]),
        (&["Встреча в Москве в 15:00"], "в 15:00 в Москве", &[]),
        (&["会議は15時に始まる"], "会議は16時に始まる", &["15"]),
    ];
    for (sources, result, missing) in cases {
        assert_eq!(left_out(sources, result), *missing, "{sources:?}");
    }
}

fn structured(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let reply = client.call(tool, arguments);
    assert_ne!(reply["isError"], true, "{tool}: {reply}");
    reply["structuredContent"].clone()
}

#[test]
fn an_agent_proposes_a_change_by_any_tool_that_edits_notes() {
    let vault = TestVault::new(&[("Boat.md", "We row on Tuesdays.\n"), ("River.md", "It is wide.\n")]);
    let before = (vault.read("Boat.md"), vault.read("River.md"));
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let calls = [
        (
            "edit_note",
            json!({ "note": "Boat", "action": "append", "text": "We sail.", "propose": "The plan lacks it." }),
        ),
        ("write_note", json!({ "title": "Sail", "content": "It is red.", "propose": true })),
        ("move_note", json!({ "from": "Boat", "to": "Ship", "propose": true })),
        ("delete_note", json!({ "note": "River", "propose": "true" })),
        ("link_notes", json!({ "a": "Boat", "b": "River", "propose": true })),
        ("merge_notes", json!({ "from": "River", "into": "Boat", "propose": true })),
    ];
    let mut ids = Vec::new();
    for (tool, arguments) in calls {
        let reply = structured(&mut client, tool, arguments.clone());
        assert_eq!(reply["applied"], false, "{tool}: {reply}");
        ids.push(reply["proposal"].as_str().unwrap().to_owned());
        assert_eq!(
            structured(&mut client, tool, arguments)["proposal"],
            ids.last().unwrap().as_str(),
            "{tool}"
        );
    }
    assert_eq!((vault.read("Boat.md"), vault.read("River.md")), before);
    assert!(!vault.root().join("Sail.md").exists());
    let date = structured(&mut client, "read_session", json!({ "action": "date" }));
    assert_eq!(date["proposals"], 6, "{date}");
    let refused = client.refusal("set_memory", json!({ "note": "Boat", "pinned": true, "propose": true }));
    assert!(refused.contains("propose"), "{refused}");
    let listed = structured(&mut client, "proposals", json!({ "action": "list" }));
    assert_eq!(listed["proposals"][0]["author"], "t 1", "{listed}");
    assert_eq!(listed["proposals"].as_array().unwrap().len(), 6);
    let shown = structured(&mut client, "proposals", json!({ "action": "show", "id": ids[0] }));
    assert_eq!(shown["reason"], "The plan lacks it.");
    client.finish();
    let store = vault.store();
    store.proposals().accept(&ids[0], false).unwrap();
    assert_eq!(vault.read("Boat.md"), "We row on Tuesdays.\n\nWe sail.\n");
    store.proposals().accept(&ids[1], false).unwrap();
    assert!(vault.read("Sail.md").contains("It is red."));
}

#[test]
fn an_agent_words_a_merge_and_keeps_every_fact() {
    let vault = TestVault::new(&[
        ("Memories/Oslo.md", "The staging server of Falcon is in Oslo.\n"),
        ("Memories/Staging.md", "The staging server of Falcon is in Oslo\n"),
    ]);
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let found = structured(&mut client, "proposals", json!({ "action": "consolidate", "kind": "duplicate" }));
    let id = found["proposals"][0]["id"].as_str().unwrap().to_owned();
    let prompt = client.request("prompts/get", json!({ "name": "consolidate" }));
    assert!(prompt["messages"][1]["content"]["text"].as_str().unwrap().contains(&id), "{prompt}");
    let file = structured(&mut client, "proposals", json!({ "action": "show", "id": id }))["plan"]["files"]
        [0]["to"]["vault"]
        .clone();
    let edit = |text: &str, left_out: &[&str]| json!({ "action": "edit", "id": id, "file": file, "text": text, "left_out": left_out });
    let refused = client.refusal("proposals", edit("The staging server is in Oslo.\n", &[]));
    assert!(refused.contains("Falcon"), "{refused}");
    structured(&mut client, "proposals", edit("The staging server is in Oslo.\n", &["falcon"]));
    let text = client.text("proposals", edit("Oslo has the staging server of Falcon.\n", &[]));
    assert!(text.contains("+Oslo has the staging server of Falcon."), "{text}");
    client.finish();
    let store = vault.store();
    store.proposals().accept(&id, false).unwrap();
    assert_eq!(vault.read(file.as_str().unwrap()), "Oslo has the staging server of Falcon.\n");
}

#[test]
fn a_week_is_reviewed() {
    let vault = TestVault::new(&[
        ("Memories/Old.md", "---\ntype: fact\ncreated_at: 2026-11-10\n---\nThe mast is tall.\n"),
        ("Memories/Used.md", "---\ntype: fact\ncreated_at: 2026-11-10\n---\nThe rope is blue.\n"),
    ]);
    let mut client = Client::start(&vault, &[]);
    structured(&mut client, "write_note", json!({ "title": "Sail", "content": "It is red." }));
    client.text("read_note", json!({ "notes": "Memories/Used.md" }));
    let prompt = client.request("prompts/get", json!({ "name": "review" }));
    let text = prompt["messages"][1]["content"]["text"].as_str().unwrap();
    assert!(text.contains("by t 1: 1 new"), "{text}");
    client.finish();
    let store = vault.store();
    proposed(&store, "Old", "It is wet.");
    drop(store);
    let output = vault.run(&["memory", "review", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["written"][0]["created"][0], "Sail.md", "{reply}");
    assert_eq!(reply["recalled"][0]["path"], "Memories/Used.md", "{reply}");
    assert_eq!(reply["waiting"], 1);
    let earlier = vault.run(&["memory", "review", "--week", "2026-01-07"]);
    let text = String::from_utf8(earlier.stdout).unwrap();
    assert!(text.starts_with("2026-01-05 to 2026-01-12\n") && text.contains("nothing"), "{text}");
}

#[test]
fn a_given_text_does_not_overwrite_a_file_that_changed_since() {
    let vault = TestVault::new(&[
        ("Memories/Oslo.md", "The staging server of Falcon is in Oslo.\n"),
        ("Memories/Staging.md", "The staging server of Falcon is in Oslo\n"),
        ("ref/Linker.md", "See [[Oslo]] and [[Staging]].\n"),
    ]);
    let store = vault.store();
    let request =
        ConsolidateRequest { kinds: vec![ProposalKind::Duplicate], ..ConsolidateRequest::default() };
    let found = store.proposals().consolidate(&request).unwrap().proposals;
    let id = found[0].id.clone();
    let edited =
        store.proposals().edit(&id, Some("ref/Linker.md"), "See [[Staging]].\n", &[], false).unwrap();
    assert_eq!(edited.proposal.replaced.len(), 1, "{:?}", edited.proposal);
    vault.write("ref/Linker.md", "See [[Oslo]] and [[Staging]], at 14:30.\n");
    assert_eq!(store.proposals().show(&id).unwrap().changed, ["ref/Linker.md"]);
    assert_eq!(store.proposals().accept(&id, false).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(vault.read("ref/Linker.md"), "See [[Oslo]] and [[Staging]], at 14:30.\n");
}

#[test]
fn a_shown_proposal_says_what_its_plan_remarks() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n"), ("Old.md", "See [[Plan]].\n")]);
    let id = {
        let store = vault.store();
        let mut plan = append(&store, "Plan", "We sail.");
        plan.remarks.push(Remark {
            code: "merge-id".to_owned(),
            path: NotePath::from_disk("Plan.md").unwrap(),
            line: 1,
            column: 1,
            message: "the id of the note is lost".to_owned(),
        });
        store.proposals().propose(plan, "The plan lacks it.", "codex").unwrap().id
    };
    let shown = String::from_utf8(vault.run(&["proposals", "show", &id]).stdout).unwrap();
    assert!(shown.contains("the id of the note is lost"), "{shown}");
}

#[test]
fn a_damaged_record_counts_as_decided_until_it_is_deleted() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let id = proposed(&store, "Plan", "We sail.").id;
    let path = vault.root().join(format!(".sidenote/records/proposals/{id}.json"));
    fs::write(&path, "{").unwrap();
    let again = store.proposals().propose(append(&store, "Plan", "We sail."), "The plan lacks it.", "codex");
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Exists);
    fs::remove_file(&path).unwrap();
    assert_eq!(proposed(&store, "Plan", "We sail.").id, id);
}

#[test]
fn several_proposals_end_with_the_code_of_the_worst_failure() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let id = proposed(&vault.store(), "Plan", "We sail.").id;
    let code = |args: &[&str]| vault.run(args).status.code();
    assert_eq!(code(&["proposals", "reject", &id, "ffffffff", "--dry-run"]), Some(3));
    assert_eq!(code(&["proposals", "accept", &id, "ffffffff"]), Some(3));
    assert!(vault.read("Plan.md").contains("We sail."));
    for kind in ["missing-link", "duplicate", "dead-link"] {
        assert_eq!(code(&["memory", "consolidate", "--folder", "nope", "--kind", kind]), Some(3), "{kind}");
    }
    let refused = vault.run(&["memory", "consolidate", "--kind", "change"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("duplicate, superseded"));
}

#[test]
fn a_proposal_that_was_applied_before_the_program_ended_counts_as_accepted() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let id = proposed(&store, "Plan", "We sail.").id;
    store.proposals().accept(&id, false).unwrap();
    let path = vault.root().join(format!(".sidenote/records/proposals/{id}.json"));
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["state"] = json!("waiting");
    record.as_object_mut().unwrap().remove("decision");
    fs::write(&path, record.to_string()).unwrap();
    assert_eq!(store.proposals().show(&id).unwrap().proposal.state, ProposalState::Accepted);
    assert_eq!(store.proposals().waiting_count().unwrap(), 0);
}

#[test]
fn ids_and_times_of_properties_are_not_left_out() {
    let front = "---\nid: 7f3a\ncreated_at: 2026-01-02\nroom: 12\n---\n";
    let vault = TestVault::new(&[("Plan.md", &format!("{front}We row.\n"))]);
    let store = vault.store();
    let proposal = proposed(&store, "Plan", "We sail.");
    let edited = store.proposals().edit(&proposal.id, None, "We sail.\n", &[], false).unwrap();
    assert_eq!(edited.proposal.left_out, ["12"]);
}

#[test]
fn an_outdated_proposal_is_marked_wherever_it_is_listed() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n"), ("River.md", "It is wide.\n")]);
    let (outdated, fresh, rejected) = {
        let store = vault.store();
        let reject = proposed(&store, "Plan", "We swim.").id;
        store.proposals().reject(&reject).unwrap();
        (proposed(&store, "Plan", "We sail.").id, proposed(&store, "River", "It is deep.").id, reject)
    };
    vault.write("Plan.md", "We row no more.\n");
    let output = vault.run(&["proposals", "list", "--decided", "--json"]);
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let marked = |id: &str| {
        let items = reply["proposals"].as_array().unwrap();
        items.iter().find(|item| item["id"] == id).unwrap()["changed"].clone()
    };
    assert_eq!(marked(&outdated), json!(["Plan.md"]));
    assert_eq!((marked(&fresh), marked(&rejected)), (Value::Null, Value::Null));
    let text = String::from_utf8(vault.run(&["proposals"]).stdout).unwrap();
    let line = |id: &str| text.lines().find(|line| line.starts_with(id)).unwrap().to_owned();
    assert!(line(&outdated).contains("outdated"), "{text}");
    assert!(!line(&fresh).contains("outdated"), "{text}");
    let week = String::from_utf8(vault.run(&["memory", "review"]).stdout).unwrap();
    assert!(week.contains("outdated"), "{week}");
    let mut client = Client::start(&vault, &["--toolset", "notes,more"]);
    let text = client.text("proposals", json!({ "action": "list" }));
    assert!(text.contains("(outdated: a source changed since)"), "{text}");
    let listed = structured(&mut client, "proposals", json!({ "action": "list" }));
    let items = listed["proposals"].as_array().unwrap();
    let item = items.iter().find(|item| item["id"] == outdated.as_str()).unwrap();
    assert_eq!(item["changed"], json!(["Plan.md"]), "{listed}");
    client.finish();
}

#[test]
fn a_rejected_proposal_is_reopened_and_an_accepted_one_is_not() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let id = proposed(&vault.store(), "Plan", "We sail.").id;
    let code = |args: &[&str]| vault.run(args).status.code();
    assert_ne!(code(&["proposals", "reopen", &id]), Some(0), "it waits");
    assert_eq!(code(&["proposals", "reject", &id]), Some(0));
    let dry = vault.run(&["proposals", "reopen", &id, "--dry-run"]);
    assert_eq!(String::from_utf8_lossy(&dry.stdout), "1 proposal would wait again\n");
    assert_eq!(vault.store().proposals().waiting_count().unwrap(), 0);
    let done = vault.run(&["proposals", "reopen", &id]);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "1 proposal waits again\n");
    let again = vault.store().proposals().show(&id).unwrap().proposal;
    assert_eq!((again.state, again.decision), (ProposalState::Waiting, None));
    assert_eq!(code(&["proposals", "accept", &id]), Some(0));
    let refused = vault.run(&["proposals", "reopen", &id]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("accepted already"));
}

#[test]
fn a_reader_decides_nothing() {
    let vault = TestVault::new(&[("Plan.md", "We row.\n")]);
    let store = vault.store();
    let (first, second) = (proposed(&store, "Plan", "We sail.").id, proposed(&store, "Plan", "We swim.").id);
    store.proposals().reject(&second).unwrap();
    let reader = store.limited_to(Role::Reader);
    let proposals = reader.proposals();
    assert_eq!(proposals.list(ProposalsRequest::default()).unwrap().waiting, 1);
    let refusals = [
        proposals.accept(&first, false).unwrap_err(),
        proposals.reject(&first).unwrap_err(),
        proposals.edit(&first, None, "We fly.\n", &[], false).unwrap_err(),
        proposals.reopen(&second).unwrap_err(),
    ];
    for error in refusals {
        assert!(error.message().contains("role"), "{error}");
    }
    let shown = proposals.outlook(&first).unwrap();
    assert!(shown.obstacle.unwrap().contains("role"));
    let kept = store.proposals().show(&first).unwrap().proposal;
    assert!(kept.texts.is_empty() && kept.state == ProposalState::Waiting, "{kept:?}");
    assert_eq!(vault.read("Plan.md"), "We row.\n");
}

#[test]
fn a_person_who_gives_the_whole_text_keeps_private_passages() {
    let private = "We row. <private>The key is below the mat.</private>\n";
    let vault = TestVault::new(&[("Plan.md", private)]);
    let store = vault.store();
    let id = proposed(&store, "Plan", "We sail.").id;
    let text = format!("{private}We sail on Tuesdays.\n");
    store.proposals().edit(&id, None, &text, &[], false).unwrap();
    store.proposals().accept(&id, false).unwrap();
    assert_eq!(vault.read("Plan.md"), text);
}
