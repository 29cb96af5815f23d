//! Tests vaults that are renamed and deleted while servers serve them and folders follow them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sidenote::store::Role;
use tempfile::TempDir;

use super::rights::{ALL, Team, list};
use super::serving::{call, post, serve, served};
use super::{Cluster, sidenote};
use crate::http::Server;
use crate::support::{clean_env, program, stderr, stdout, tree, until};

/// Runs a command of an operator.
#[track_caller]
fn operate(cluster: &Cluster, args: &[&str], code: i32) -> String {
    let home = TempDir::new().unwrap();
    let done = sidenote(home.path(), &[&["team"], args, &["--database", &cluster.owner()]].concat());
    assert_eq!(done.status.code(), Some(code), "{args:?}: {}{}", stdout(&done), stderr(&done));
    stdout(&done) + &stderr(&done)
}

fn sync(server: &Server, folder: &Path, vault: &str, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    let url = format!("http://{}/v/{vault}", server.address());
    clean_env(&mut command, &folder.join(".home")).args(["sync", &url, "--vault"]).arg(folder).args(args);
    command.output().unwrap()
}

/// Gives the files of a folder that a person has, without those of sidenote.
fn own_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = tree(folder).into_iter();
    files.filter(|(path, _)| path.ends_with(".md") && !path.starts_with('.')).collect()
}

fn copies(home: &TempDir) -> usize {
    fs::read_dir(home.path().join("cache"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count()
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_renamed_vault_goes_on_under_its_new_name_and_clients_are_told() {
    let (cluster, home, server) = served(&["handbook", "other"], "", &["handbook", "other"]);
    let (second_home, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let second = serve(&cluster, second_home.path(), "", &[]);
    call(&server, "handbook", "write_note", &json!({ "title": "Plan", "content": "the plan" }));
    call(&second, "handbook", "read_note", &json!({ "notes": "Plan" }));
    assert!(sync(&server, folder.path(), "handbook", &[]).status.success());
    let files = own_files(folder.path());
    assert_eq!(files.len(), 1);
    operate(&cluster, &["quota", "handbook", "--notes", "100"], 0);
    assert!(operate(&cluster, &["rename", "handbook", "other"], 4).contains("already"));
    assert!(operate(&cluster, &["rename", "handbook", "no way"], 2).contains("letters, digits"));
    assert!(operate(&cluster, &["rename", "handbook", "manual", "--dry-run"], 0).contains("would be called"));
    call(&server, "handbook", "list_notes", &json!({}));
    operate(&cluster, &["rename", "handbook", "manual"], 0);
    for server in [&server, &second] {
        let told = post(server, "handbook", "list_notes", &json!({}));
        assert_eq!((told.status, told.header("location")), (308, Some("../manual/mcp")), "{}", told.text);
        assert!(told.text.contains("handbook is called manual now"), "{}", told.text);
        let blob = server.send("GET", "/v/handbook/changes?since=1&origin=x", &[], "");
        assert_eq!(blob.header("location"), Some("../manual/changes?since=1&origin=x"));
        let found = call(server, "manual", "search_notes", &json!({ "query": "plan" }));
        assert_eq!(found["results"][0]["path"], "Plan.md");
    }
    call(&server, "manual", "write_note", &json!({ "title": "Later", "content": "written later" }));
    call(&second, "manual", "read_note", &json!({ "notes": "Later" }));
    // Each has a copy: the other vault was opened at the start.
    assert_eq!(copies(&home), 2);
    // The folder is told, and goes on under the new name.
    let told = sync(&server, folder.path(), "handbook", &[]);
    let error = stderr(&told);
    assert_eq!(told.status.code(), Some(3), "{error}");
    assert!(error.contains("is called manual now") && error.contains("/v/manual`"), "{error}");
    assert_eq!(own_files(folder.path()), files);
    let done = sync(&server, folder.path(), "manual", &[]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(own_files(folder.path()).len(), 2);
    // Commands of an operator say it, too, and nobody else gets the former name.
    assert!(operate(&cluster, &["export", "handbook", "/nowhere/x"], 3).contains("is called manual now"));
    assert!(operate(&cluster, &["create", "handbook"], 4).contains("former name of the vault manual"));
    assert!(operate(&cluster, &["rename", "other", "handbook"], 4).contains("former name"));
    let listed = operate(&cluster, &["list"], 0);
    assert!(
        listed.contains("manual") && listed.contains("100 notes") && !listed.contains("handbook"),
        "{listed}"
    );
    assert!(operate(&cluster, &["audit", "manual"], 0).contains("handbook -> manual"));
    server.stop();
    // A server that was told to serve the former name serves the vault.
    let server = serve(&cluster, home.path(), "", &["handbook"]);
    call(&server, "manual", "read_note", &json!({ "notes": "Later" }));
    assert_eq!(post(&server, "other", "list_notes", &json!({})).status, 404);
    // A name that it had is free for itself.
    operate(&cluster, &["rename", "manual", "handbook"], 0);
    call(&server, "handbook", "read_note", &json!({ "notes": "Later" }));
    assert_eq!(post(&server, "manual", "list_notes", &json!({})).header("location"), Some("../handbook/mcp"));
    assert_eq!(copies(&home), 2);
    let log = server.stop();
    assert!(!log.contains("ERROR"), "{log}");
    second.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_deleted_vault_is_closed_at_once_and_can_be_brought_back_until_it_is_removed() {
    let (cluster, home, server) = served(&["handbook", "other"], "", &[]);
    let folder = TempDir::new().unwrap();
    call(&server, "handbook", "write_note", &json!({ "title": "Plan", "content": "the plan" }));
    assert!(sync(&server, folder.path(), "handbook", &[]).status.success());
    let files = own_files(folder.path());
    assert!(operate(&cluster, &["delete", "handbook", "--dry-run"], 0).contains("would be deleted"));
    assert!(operate(&cluster, &["delete", "handbook", "--now"], 2).contains("--yes"));
    call(&server, "handbook", "read_note", &json!({ "notes": "Plan" }));
    operate(&cluster, &["delete", "handbook"], 0);
    let told = post(&server, "handbook", "read_note", &json!({ "notes": "Plan" }));
    assert_eq!(told.status, 410, "{}", told.text);
    assert!(told.text.contains("handbook was deleted") && !told.text.contains("the plan"), "{}", told.text);
    let done = sync(&server, folder.path(), "handbook", &[]);
    let error = stderr(&done);
    assert_eq!(done.status.code(), Some(3), "{error}");
    assert!(error.contains("handbook was deleted") && error.contains("stays as it is"), "{error}");
    assert_eq!(own_files(folder.path()), files);
    assert!(!operate(&cluster, &["list"], 0).contains("handbook"));
    let listed: Value =
        serde_json::from_str(&operate(&cluster, &["list", "--deleted", "--json"], 0)).unwrap();
    let deleted = listed["vaults"].as_array().unwrap();
    assert_eq!((deleted.len(), &deleted[0]["name"]), (1, &json!("handbook")), "{listed}");
    assert!(deleted[0]["removable_at"].as_str() > deleted[0]["deleted_at"].as_str(), "{listed}");
    assert!(operate(&cluster, &["list", "--deleted"], 0).contains("kept until"));
    for command in [&["create", "handbook"][..], &["rename", "other", "handbook"]] {
        assert!(operate(&cluster, command, 4).contains("can still be brought back"));
    }
    assert!(operate(&cluster, &["export", "handbook", "/nowhere/x"], 3).contains("was deleted"));
    // It is kept for its time.
    assert!(operate(&cluster, &["clean", "handbook"], 2).contains("is kept until"));
    assert!(!operate(&cluster, &["clean"], 0).contains("handbook"));
    operate(&cluster, &["undelete", "handbook"], 0);
    call(&server, "handbook", "read_note", &json!({ "notes": "Plan" }));
    call(&server, "handbook", "write_note", &json!({ "title": "Later", "content": "written later" }));
    assert!(sync(&server, folder.path(), "handbook", &[]).status.success());
    assert_eq!(own_files(folder.path()).len(), 2);
    assert!(operate(&cluster, &["undelete", "handbook"], 3).contains("list --deleted"));
    let audit = operate(&cluster, &["audit", "handbook"], 0);
    assert!(audit.contains("delete-vault") && audit.contains("undelete-vault"), "{audit}");
    // When its time is over, it is removed with all that was of it.
    call(&server, "other", "write_note", &json!({ "title": "Other", "content": "other" }));
    operate(&cluster, &["delete", "handbook", "--days", "0"], 0);
    assert!(operate(&cluster, &["clean", "--dry-run"], 0).contains("handbook: the whole vault"));
    operate(&cluster, &["list", "--deleted"], 0);
    let removed = operate(&cluster, &["clean"], 0);
    assert!(
        removed.contains("handbook: the whole vault") && removed.contains("other: nothing to remove"),
        "{removed}"
    );
    assert_eq!(post(&server, "handbook", "read_note", &json!({ "notes": "Plan" })).status, 404);
    assert!(operate(&cluster, &["list", "--deleted"], 0).contains("no vault was deleted"));
    let dump = cluster.dump();
    assert!(!dump.contains("handbook"), "something is left");
    until("the copy is gone", || {
        call(&server, "other", "list_notes", &json!({}));
        copies(&home) == 1
    });
    // Its name is free again.
    operate(&cluster, &["create", "handbook"], 0);
    assert_eq!(call(&server, "handbook", "list_notes", &json!({}))["total"], 0);
    assert_eq!(copies(&home), 2);
    server.stop();
    operate(&cluster, &["delete", "handbook", "--now", "--yes"], 0);
    // A server that did not run removes its copy, too.
    let server = serve(&cluster, home.path(), "", &[]);
    until("the copy is gone", || copies(&home) == 1);
    assert_eq!(post(&server, "handbook", "list_notes", &json!({})).status, 404);
    server.stop();
    assert_eq!(own_files(folder.path()).len(), 2);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn only_who_has_a_role_is_told_what_became_of_a_vault() {
    let team = Team::new(&["a", "b"]);
    for vault in ["a", "b"] {
        team.grant(vault, "anna", Some(Role::Writer));
    }
    operate(&team.cluster, &["rename", "a", "new"], 0);
    operate(&team.cluster, &["delete", "b"], 0);
    let ask = |vault: &str, who: &str| {
        let reply = team.ask(vault, who, ALL, &list());
        (reply.status, reply.header("location").map(str::to_owned))
    };
    assert_eq!(ask("a", "anna"), (308, Some("../new/mcp".to_owned())));
    assert_eq!(ask("b", "anna"), (410, None));
    for vault in ["a", "b", "new"] {
        assert_eq!(ask(vault, "ben"), (404, None), "{vault}");
    }
    // Rights go along. The token is one for the new address.
    assert_eq!(ask("new", "anna"), (200, None));
    team.server.stop();
}
