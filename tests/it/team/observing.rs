//! Tests what operators of a team see: counts of calls, tokens and turns, sizes, damage, and copies that somebody changed.

use std::fs;

use serde_json::{Value, json};
use sidenote::store::{ReadRequest, Store};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::rights::{ALL, Team};
use super::serving::{call, post, serve, served};
use super::{Server, create, note, sidenote};
use crate::http::Server as HttpServer;
use crate::login::token::Token;
use crate::support::{TestVault, set_mode, stderr, stdout};

/// Reads a number of `/metrics`; 0 if it is not there.
fn metric(server: &HttpServer, name: &str, headers: &[&str]) -> f64 {
    let text = server.send("GET", "/metrics", headers, "").text;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.map_or(0.0, |number| number.parse().unwrap())
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn failed_calls_count_as_failures_and_times_are_counted_by_tool() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    for at in 0..3 {
        call(
            &server,
            "v",
            "write_note",
            &json!({ "title": format!("Note {at}"), "content": format!("text {at}") }),
        );
    }
    for _ in 0..10 {
        let arguments = json!({ "note": "Missing", "action": "append", "text": "x" });
        let reply = post(&server, "v", "edit_note", &arguments);
        assert_eq!((reply.status, &reply.json()["result"]["isError"]), (200, &json!(true)), "{}", reply.text);
    }
    let metric = |name: &str| metric(&server, name, &[]);
    assert_eq!(metric("sidenote_tool_calls_total{tool=\"edit_note\",result=\"failed\"}"), 10.0);
    assert_eq!(metric("sidenote_tool_calls_total{tool=\"write_note\",result=\"done\"}"), 3.0);
    assert_eq!(metric("sidenote_tool_seconds_bucket{tool=\"write_note\",le=\"+Inf\"}"), 3.0);
    assert_eq!(metric("sidenote_tool_seconds_count{tool=\"write_note\"}"), 3.0);
    assert!(metric("sidenote_tool_seconds_sum{tool=\"write_note\"}") > 0.0);
    assert_eq!(metric("sidenote_database_up"), 1.0);
    assert!(metric("sidenote_turns_total") >= 3.0);
    assert_eq!((metric("sidenote_turns_missed_total"), metric("sidenote_conflicts_total")), (0.0, 0.0));
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn refused_tokens_and_calls_are_counted() {
    let team = Team::new(&["a"]);
    team.grant("a", "rita", Some(sidenote::store::Role::Reader));
    let (home, file) = (TempDir::new().unwrap(), team.home.path().join("token"));
    let server = serve(&team.cluster, home.path(), &team.login, &["--token-file", file.to_str().unwrap()]);
    let ask = |token: &Token, tool: &str| {
        let token = format!("Authorization: Bearer {}", token.sign());
        server.post_to("/v/a/mcp", &[&token], &super::rights::call(tool, json!({})))
    };
    for _ in 0..3 {
        assert_eq!(ask(&team.token("a", "rita", ALL).claim("exp", json!(1)), "list_notes").status, 401);
    }
    for _ in 0..15 {
        ask(&team.token("a", "rita", ALL), "write_note");
    }
    // The journal has enough of them to show what is tried, and cannot be filled by them.
    let refused = team.audit("a", &[]);
    assert_eq!(refused.iter().filter(|event| event["op"] == "refused").count(), 10);
    let operator = format!("Authorization: Bearer {}", fs::read_to_string(&file).unwrap().trim());
    let metric = |name: &str| metric(&server, name, &[&operator]);
    assert_eq!(metric("sidenote_refused_tokens_total{reason=\"it has expired\"}"), 3.0);
    assert_eq!(metric("sidenote_tool_calls_total{tool=\"write_note\",result=\"refused\"}"), 15.0);
    server.stop();
}

/// Reads the text of a note.
fn text(store: &Store, note: &str) -> String {
    let request = ReadRequest { note: note.to_owned(), ..ReadRequest::default() };
    let reply = store.reads().read(&request).unwrap();
    serde_json::to_value(&reply).unwrap().to_string()
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn what_was_changed_in_a_copy_is_served_to_nobody() {
    let cluster = Cluster::new();
    create(&cluster, None);
    let server = Server::new(&cluster);
    let store = server.store();
    note(&store, "Plan", "the true text");
    assert!(text(&store, "Plan").contains("the true text"));
    let file = server.files().join("Plan.md");
    let before = fs::read(&file).unwrap();
    fs::write(&file, "a forged text").unwrap();
    assert!(text(&store, "Plan").contains("the true text"));
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::remove_file(&file).unwrap();
    assert!(text(&store, "Plan").contains("the true text"));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn no_answer_names_a_folder_of_the_server() {
    let (_cluster, home, server) = served(&["v"], "", &["--toolset", "notes,longterm"]);
    call(&server, "v", "write_note", &json!({ "title": "Plan", "content": "the true text" }));
    // A folder with files is where the note should be, which no server can put right.
    let cache = home.path().join("cache");
    let copy = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("files"))
        .find(|path| path.exists());
    let copy = copy.unwrap();
    fs::remove_file(copy.join("Plan.md")).unwrap();
    fs::create_dir_all(copy.join("Plan.md/x.md")).unwrap();
    fs::write(copy.join("Plan.md/x.md/y.md"), "y").unwrap();
    let calls = [
        ("read_note", json!({ "notes": "Plan" })),
        ("edit_note", json!({ "note": "Plan", "action": "append", "text": "more" })),
        ("read_session", json!({ "action": "stats" })),
        ("memory_stats", json!({})),
    ];
    for (tool, arguments) in calls {
        let reply = post(&server, "v", tool, &arguments);
        assert!(!reply.text.contains(home.path().to_str().unwrap()), "{tool}: {}", reply.text);
    }
    let resource = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "sidenote:///Plan.md" } });
    let reply = server.post_to("/v/v/mcp", &[], &resource);
    assert!(!reply.text.contains(home.path().to_str().unwrap()), "{}", reply.text);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn damage_is_named_and_all_else_exported() {
    let cluster = Cluster::new();
    let vault = TestVault::new(&[("Good.md", "good\n"), ("Sub/Bad.md", "bad\n"), ("Twin.md", "bad\n")]);
    create(&cluster, Some(vault.root()));
    let server = Server::new(&cluster);
    let store = server.store();
    // The earlier version stays, which is more than what the two equal notes save.
    note(&store, "Long", &"a long text ".repeat(20));
    let edit = sidenote::store::NoteEdit::Append("more".to_owned(), None);
    let request = sidenote::store::EditRequest { note: "Long".to_owned(), edit, expect: None };
    store.changes().change(&sidenote::store::Operation::Edit(request), false).unwrap();
    let home = TempDir::new().unwrap();
    let config = home.path().join("team.toml");
    fs::write(&config, format!("[team]\ndatabase = {:?}\ncache = \"/nowhere\"\n", cluster.app())).unwrap();
    set_mode(&config, 0o600);
    let run = |args: &[&str], code: i32| {
        let done =
            sidenote(home.path(), &[&["team"], args, &["--config", config.to_str().unwrap()]].concat());
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}{}", stdout(&done), stderr(&done));
        stdout(&done) + &stderr(&done)
    };
    let owner = cluster.owner();
    let list: Value = serde_json::from_str(&run(&["list", "--json", "--database", &owner], 0)).unwrap();
    let size = &list["vaults"][0];
    assert!(size["files"].as_u64() >= Some(3) && size["stored"].as_u64() >= size["bytes"].as_u64(), "{list}");
    assert!(run(&["list", "--database", &owner], 0).contains("with earlier versions"));
    // Without a name, all vaults are checked and audited, which their owner may do.
    assert!(run(&["check", "--database", &owner], 0).contains("v: "));
    assert!(run(&["check"], 2).contains("does not own the tables"));
    let audit: Value = serde_json::from_str(&run(&["audit", "--json", "--database", &owner], 0)).unwrap();
    let events = audit.as_array().unwrap();
    assert!(events.len() >= 2 && events.iter().all(|event| event["vault"] == "v"), "{audit}");
    assert!(run(&["audit", "--database", &owner], 0).contains("  v  "));
    let mut client = postgres::Client::connect(&owner, postgres::NoTls).unwrap();
    let hash = blake3::hash(b"bad\n");
    client
        .execute("update sidenote.blob set bytes = 'damaged' where hash = $1", &[&hash.as_bytes().as_slice()])
        .unwrap();
    let problems = run(&["check", "v"], 8);
    assert!(
        problems.contains("Sub/Bad.md") && problems.contains("Twin.md") && !problems.contains("Good"),
        "{problems}"
    );
    let to = home.path().join("out/inner");
    let told = run(&["export", "v", to.to_str().unwrap()], 8);
    assert!(told.contains("Sub/Bad.md is damaged") && told.contains("Twin.md is damaged"), "{told}");
    assert!(to.join("Good.md").exists() && !to.join("Twin.md").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
