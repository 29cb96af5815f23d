//! Tests quotas of vaults: nobody gets past them by whatever tool, and removing is always allowed.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use sidenote::store::Role;
use tempfile::TempDir;

use super::rights::{ALL, Team};
use super::serving::{call, post, serve, served};
use super::{Cluster, sidenote};
use crate::http::{Reply, Server};
use crate::support::{clean_env, program, stderr, stdout, until};

/// Runs a command of an operator.
#[track_caller]
fn operate(cluster: &Cluster, args: &[&str]) -> String {
    let home = TempDir::new().unwrap();
    let done = sidenote(home.path(), &[&["team"], args, &["--database", &cluster.owner()]].concat());
    assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    stdout(&done)
}

/// Reads a number of `/metrics`.
#[track_caller]
fn metric(server: &Server, name: &str) -> f64 {
    let text = server.send("GET", "/metrics", &[], "").text;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is missing in {text}")).parse().unwrap()
}

#[track_caller]
fn check_refused(server: &Server, tool: &str, arguments: &Value, said: &str) {
    let reply = post(server, "v", tool, arguments);
    assert_eq!(reply.json()["result"]["isError"], true, "{tool} {arguments}: {}", reply.text);
    assert!(
        reply.text.contains(said) && reply.text.contains("nothing was written"),
        "{tool}: {}",
        reply.text
    );
}

/// Sends a commit of one new file, as a synchronised folder does.
fn commit(server: &Server, path: &str, content: &[u8], headers: &[&str]) -> Reply {
    let hash = blake3::hash(content).to_hex().to_string();
    let file = json!({ "path": path, "base": null, "content": [hash, content.len()] });
    let head = json!({ "operation": format!("op {path}"), "files": [file] }).to_string();
    server.send("POST", "/v/v/commit", headers, [head.as_bytes(), b"\n", content].concat())
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn no_tool_gets_past_a_quota_of_size_and_removing_is_always_allowed() {
    let (cluster, _home, server) = served(&["v"], "", &[]);
    for at in 0..3 {
        let content = format!("text of note {at} ").repeat(20);
        call(&server, "v", "write_note", &json!({ "title": format!("Note {at}"), "content": content }));
    }
    let shown: Value =
        serde_json::from_str(&operate(&cluster, &["quota", "v", "--notes", "3", "--json"])).unwrap();
    assert_eq!((&shown["usage"]["notes"], &shown["quotas"]["notes"]), (&json!(3), &json!(3)), "{shown}");
    assert_eq!((&shown["quotas"]["bytes"], &shown["applied"]), (&json!("default"), &json!(true)));
    let new = json!({ "title": "Note 3", "content": "one too many" });
    check_refused(&server, "write_note", &new, "3 notes, and would have 4 of its quota of 3");
    for _ in 0..14 {
        check_refused(&server, "write_note", &new, "quota of 3");
    }
    // The journal is not filled by them.
    let mut client = postgres::Client::connect(&cluster.owner(), postgres::NoTls).unwrap();
    let recorded = "select count(*) from sidenote.deed where line like '%\"refused\"%quota of 3%'";
    until("the refused calls are stored", || client.query_one(recorded, &[]).unwrap().get::<_, i64>(0) == 10);
    let reply = commit(&server, "Sent.md", b"sent", &[]);
    assert_eq!((reply.status, reply.header("sidenote-error")), (413, Some("quota")), "{}", reply.text);
    assert!(reply.text.contains("quota of 3"), "{}", reply.text);
    // Other files are no notes, and changes of notes make none more.
    assert_eq!(commit(&server, "picture.png", b"png", &[]).status, 200);
    call(&server, "v", "edit_note", &json!({ "note": "Note 0", "action": "append", "text": "more" }));
    call(&server, "v", "move_note", &json!({ "from": "Note 0", "to": "Sub/Note 0" }));
    // What is removed makes place. To take that back, or to do something again, is a change like any other.
    call(&server, "v", "delete_note", &json!({ "note": "Note 2" }));
    call(&server, "v", "write_note", &new);
    call(&server, "v", "session", &json!({ "action": "undo" }));
    operate(&cluster, &["quota", "v", "--notes", "2"]);
    check_refused(
        &server,
        "session",
        &json!({ "action": "redo" }),
        "2 notes, and would have 3 of its quota of 2",
    );
    check_refused(&server, "session", &json!({ "action": "undo" }), "quota of 2");
    // Bytes count with the trash.
    let shown: Value = serde_json::from_str(&operate(&cluster, &["quota", "v", "--json"])).unwrap();
    let bytes = shown["usage"]["bytes"].as_u64().unwrap();
    assert!(bytes > 900, "{shown}");
    operate(&cluster, &["quota", "v", "--notes", "none", "--size-mb", "0"]);
    check_refused(
        &server,
        "edit_note",
        &json!({ "note": "Note 1", "action": "append", "text": "x" }),
        "its quota of 0 bytes",
    );
    check_refused(
        &server,
        "write_note",
        &json!({ "title": "Large", "content": "y" }),
        "its quota of 0 bytes",
    );
    call(
        &server,
        "v",
        "edit_note",
        &json!({ "note": "Note 1", "action": "replace", "old": "text of note 1 ", "text": "", "expected_replacements": 20 }),
    );
    call(&server, "v", "delete_note", &json!({ "note": "Note 1", "how": "permanent", "confirm": true }));
    let shown: Value = serde_json::from_str(&operate(&cluster, &["quota", "v", "--json"])).unwrap();
    assert!(shown["usage"]["bytes"].as_u64().unwrap() < bytes, "{shown}");
    // Operators see it.
    assert_eq!(metric(&server, "sidenote_quota_refusals_total{quota=\"notes\"}"), 18.0);
    assert_eq!(metric(&server, "sidenote_quota_refusals_total{quota=\"bytes\"}"), 2.0);
    assert_eq!(metric(&server, "sidenote_vault_bytes_quota{vault=\"v\"}"), 0.0);
    assert_eq!(metric(&server, "sidenote_tool_calls_total{tool=\"write_note\",result=\"failed\"}"), 16.0);
    assert!(metric(&server, "sidenote_vault_notes{vault=\"v\"}") >= 1.0);
    let list = operate(&cluster, &["list"]);
    assert!(list.contains("0 B, notes without limit, changes by default"), "{list}");
    let audit: Value = serde_json::from_str(&operate(&cluster, &["audit", "v", "--json"])).unwrap();
    let events = audit.as_array().unwrap();
    let refused = events.iter().filter(|event| event["op"] == "refused");
    let reasons: Vec<&str> = refused.filter_map(|event| event["reason"].as_str()).collect();
    assert_eq!(events.iter().filter(|event| event["op"] == "set-quota").count(), 3);
    // Nobody logs in here, so a refused call names nobody, and the audit of persons has none.
    assert!(reasons.iter().all(|reason| reason.contains("quota")), "{audit}");
    // The sums are those of the files.
    assert!(operate(&cluster, &["check", "v"]).contains("as they should be"));
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_person_who_changes_too_often_waits_and_others_do_not() {
    let team = Team::new(&["v"]);
    for who in ["anna", "ben"] {
        team.grant("v", who, Some(Role::Writer));
    }
    operate(&team.cluster, &["quota", "v", "--changes", "3"]);
    let ask = |who: &str, tool: &str, arguments: Value| {
        team.ask("v", who, ALL, &super::rights::call(tool, arguments))
    };
    let write = |who: &str, at: usize| {
        ask(
            who,
            "write_note",
            json!({ "title": format!("{who} {at}"), "content": format!("words of {who} {at}") }),
        )
    };
    for at in 0..3 {
        let reply = write("anna", at);
        assert_eq!(reply.json()["result"]["isError"], false, "{}", reply.text);
    }
    for _ in 0..15 {
        let refused = write("anna", 4);
        assert_eq!(refused.json()["result"]["isError"], true, "{}", refused.text);
        assert!(refused.text.contains("3 changes of this vault within a minute"), "{}", refused.text);
        assert!(refused.text.to_lowercase().contains("try again in"), "{}", refused.text);
    }
    // By whatever way, but for removing.
    let token = format!("Authorization: Bearer {}", team.token("v", "anna", ALL).sign());
    let sent = commit(&team.server, "Sent.md", b"sent", &[&token]);
    assert_eq!(sent.status, 429, "{}", sent.text);
    let wait: u64 = sent.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let undone = ask("anna", "session", json!({ "action": "undo" }));
    let removes = undone.json()["result"]["isError"] == false;
    assert!(removes, "the undo of a new note removes it: {}", undone.text);
    let deleted = ask("anna", "delete_note", json!({ "note": "anna 0" }));
    assert_eq!(deleted.json()["result"]["isError"], false, "{}", deleted.text);
    let other = write("ben", 0);
    assert_eq!(other.json()["result"]["isError"], false, "{}", other.text);
    // Ten of them are in the journal, each with its reason.
    let audit = team.audit("v", &[]);
    let refused: Vec<&Value> = audit.iter().filter(|event| event["op"] == "refused").collect();
    assert_eq!(refused.len(), 10);
    assert!(refused.iter().all(|event| event["reason"].as_str().unwrap().contains("within a minute")));
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_synchronised_folder_names_what_does_not_fit_and_still_removes() {
    let (cluster, home, server) = served(&["v"], "", &[]);
    let folder = TempDir::new().unwrap();
    let sync = |args: &[&str]| {
        let mut command = Command::new(program());
        let url = format!("http://{}/v/v", server.address());
        let done = clean_env(&mut command, &folder.path().join(".home"))
            .args(["sync", &url, "--json", "--vault"])
            .arg(folder.path())
            .args(args)
            .output()
            .unwrap();
        let reply: Value = serde_json::from_str(&stdout(&done)).unwrap_or_default();
        (done.status.code(), reply, stderr(&done))
    };
    for at in 0..4 {
        fs::write(folder.path().join(format!("Note {at}.md")), format!("text of {at}\n")).unwrap();
    }
    assert_eq!(sync(&["--adopt"]).0, Some(0));
    operate(&cluster, &["quota", "v", "--notes", "4"]);
    for at in 4..40 {
        fs::write(folder.path().join(format!("Note {at}.md")), format!("text of {at}\n")).unwrap();
    }
    fs::remove_file(folder.path().join("Note 0.md")).unwrap();
    let (code, reply, error) = sync(&[]);
    assert_eq!((code, &reply["removed_there"]), (Some(8), &json!(["Note 0.md"])), "{error}");
    let left = reply["left_out"].as_array().unwrap();
    assert_eq!(left.len(), 36, "{reply}");
    assert!(left[0]["reason"].as_str().unwrap().contains("quota of 4"), "{reply}");
    // No file was tried by itself.
    assert!(metric(&server, "sidenote_quota_refusals_total{quota=\"notes\"}") <= 4.0);
    operate(&cluster, &["quota", "v", "--notes", "default"]);
    let (code, reply, error) = sync(&[]);
    assert_eq!((code, reply["sent"].as_array().map(Vec::len)), (Some(0), Some(36)), "{error}");
    // A note that has another name is not removed without it, changed or not, and neither is one that nothing tells from it.
    fs::create_dir(folder.path().join("sub")).unwrap();
    let lines: String = (0..40).map(|line| format!("line {line} of a long note\n")).collect();
    fs::write(folder.path().join("Long.md"), &lines).unwrap();
    assert_eq!(sync(&[]).0, Some(0));
    operate(&cluster, &["quota", "v", "--notes", "40"]);
    let rename = |from: &str, to: &str| fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
    rename("Note 1.md", "Renamed.md");
    rename("Note 2.md", "sub/Note 2.md");
    fs::write(folder.path().join("sub/Note 2.md"), "another text\n").unwrap();
    rename("Long.md", "Longer.md");
    fs::write(folder.path().join("Longer.md"), lines.clone() + "one more\n").unwrap();
    fs::write(folder.path().join("New.md"), "a new note\n").unwrap();
    fs::remove_file(folder.path().join("Note 3.md")).unwrap();
    let (code, reply, error) = sync(&[]);
    // The pure rename fits, and what is gone for good makes room.
    assert_eq!(code, Some(8), "{reply} {error}");
    let removed = &reply["removed_there"];
    assert_eq!(removed, &json!(["Note 1.md", "Note 3.md"]), "{reply}");
    let kept: Vec<&str> = reply["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|file| file["reason"].as_str().unwrap().contains("it stays in the vault"))
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(kept, ["Long.md", "Note 2.md"], "{reply}");
    operate(&cluster, &["quota", "v", "--notes", "default"]);
    let (code, reply, error) = sync(&[]);
    assert_eq!(code, Some(0), "{reply} {error}");
    assert_eq!(reply["removed_there"], json!(["Long.md", "Note 2.md"]), "{reply}");
    server.stop();
    // A default of the server counts where none is set, and not where none is wanted.
    let settings = "[quota]\nnotes = 39\n";
    let server = serve(&cluster, home.path(), settings, &[]);
    check_refused(&server, "write_note", &json!({ "title": "More", "content": "x" }), "quota of 39");
    operate(&cluster, &["quota", "v", "--notes", "none"]);
    call(&server, "v", "write_note", &json!({ "title": "More", "content": "x" }));
    server.stop();
}
