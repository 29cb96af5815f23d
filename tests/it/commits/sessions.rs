//! Commits of MCP sessions, and their trailers and authors.

use serde_json::json;
use sidenote::base::clock::{Clock, Timestamp};
use sidenote::store::{EditRequest, NoteEdit, Open, Operation, Store};

use super::{git, last_commit, notes, status};
use crate::mcp_client::Client;
use crate::support::TestVault;

fn server(vault: &TestVault, policy: &str) -> Client {
    let mut command = vault.command(&["--session", "s-1", "mcp"]);
    command.env("SIDENOTE_GIT_COMMIT", policy).env("SIDENOTE_GIT_AUTHOR", "Robot <robot@example.org>");
    Client::of(&mut command)
}

#[test]
fn a_call_of_an_agent_is_committed_in_its_name() {
    let vault = notes();
    let mut client = server(&vault, "operation");
    client.call("edit_note", json!({ "note": "Log", "action": "append", "text": "More." }));
    client.call("write_note", json!({ "title": "Fresh", "content": "x" }));
    client.finish();
    let count = git(vault.root(), &["rev-list", "--count", "HEAD"]);
    let said = last_commit(&vault);
    assert!(said.contains("Robot <robot@example.org>"), "{count}{said}");
    assert!(said.contains("Sidenote-Session: s-1\nSidenote-Client: t 1\n"), "{said}");
    assert_eq!(status(&vault), "");
}

#[test]
fn a_refusal_is_in_the_answer_to_an_agent() {
    let vault = notes();
    vault.write(".git/MERGE_HEAD", super::head(&vault));
    let mut client = server(&vault, "operation");
    let answer = client.call("write_note", json!({ "title": "Fresh", "content": "x" }));
    let notices = answer["structuredContent"]["notices"].to_string();
    assert!(notices.contains("not committed to git: a merge is under way"), "{answer}");
    client.finish();
}

#[test]
fn a_session_is_one_commit() {
    let vault = notes();
    vault.write("Other.md", "Mine.\n");
    let before = super::head(&vault);
    let mut client = server(&vault, "session");
    client.call("write_note", json!({ "title": "Fresh", "content": "x" }));
    client.call("move_note", json!({ "from": "Fresh", "to": "Fresher" }));
    client.call("move_note", json!({ "from": "Guide", "to": "Handbook" }));
    assert_eq!(super::head(&vault), before);
    client.finish();
    insta::assert_snapshot!(last_commit(&vault), @r"
    Robot <robot@example.org>
    sidenote: 3 operations (5 files)

    - new Fresh.md
    - rename Fresh.md → Fresher.md
    - rename Guide.md → Handbook.md (3 links, 2 notes)

    Sidenote-Operation: ID
    Sidenote-Operation: ID
    Sidenote-Operation: ID
    Sidenote-Session: s-1
    Sidenote-Client: t 1


    A	Fresher.md
    D	Guide.md
    A	Handbook.md
    M	Log.md
    M	Plan.md
    ");
    assert_eq!(status(&vault), " M Other.md\n");
}

/// Opens a vault as the server does, with commits by session.
fn open(vault: &TestVault) -> Store {
    let set = |key: &'static str, value: &str| (key, value.to_owned(), "test");
    Store::open(Open {
        vault: Some(vault.root().to_owned()),
        flags: vec![set("embed.provider", "none"), set("git.commit", "session")],
        clock: Clock::Fixed(Timestamp::parse("2026-11-21T10:00").unwrap()),
        has_sessions: true,
        session: Some("s-1".to_owned()),
        ..Open::default()
    })
    .unwrap()
}

fn append(store: &Store, note: &str) -> Vec<String> {
    let edit =
        EditRequest { note: note.to_owned(), edit: NoteEdit::Append("More.".to_owned(), None), expect: None };
    store.changes().change(&Operation::Edit(edit), false).unwrap().notices
}

#[test]
fn a_quiet_session_is_committed_without_what_the_user_changed_meanwhile() {
    let vault = notes();
    let store = open(&vault);
    assert_eq!(append(&store, "Log"), Vec::<String>::new());
    assert_eq!(append(&store, "Log"), Vec::<String>::new());
    append(&store, "Plan");
    vault.write("Plan.md", "Mine.\n");
    let at = |time: &str| Timestamp::parse(&format!("2026-11-21T{time}")).unwrap();
    store.changes().end_quiet_sessions(at("10:09:59"));
    assert_eq!(git(vault.root(), &["rev-list", "--count", "HEAD"]), "1\n");
    store.changes().end_quiet_sessions(at("10:10"));
    assert_eq!(
        git(vault.root(), &["log", "-1", "--format=%s", "--name-only"]),
        "sidenote: 3 operations (1 file)\n\nLog.md\n"
    );
    let said = append(&store, "Other");
    assert_eq!(
        said,
        [
            "of earlier changes: not committed to git: Plan.md (it was changed since); the change stays in the files"
        ]
    );
    // An operation and its undo come to nothing.
    store.changes().undo(1, false).unwrap();
    store.changes().end_session();
    assert_eq!(git(vault.root(), &["rev-list", "--count", "HEAD"]), "2\n");
    assert_eq!(status(&vault), " M Plan.md\n");
}
