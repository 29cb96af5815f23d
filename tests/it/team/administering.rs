//! Tests the commands of an administrator of the database, who has no settings of a server, and what a server says of
//! requests and connections that are refused.

use std::fs;

use serde_json::{Value, json};
use sidenote::share::Database;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::rights::list;
use super::serving::{call, post, served};
use super::sidenote;
use crate::support::{TestVault, set_mode, stderr, stdout};

/// Runs a command of `sidenote team` on a database, without settings.
#[track_caller]
fn administer(home: &TempDir, address: &str, args: &[&str]) -> (String, String) {
    let done = sidenote(home.path(), &[&["team"], args, &["--database", address]].concat());
    assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    (stdout(&done), stderr(&done))
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn an_address_of_the_database_is_all_that_an_administrator_needs() {
    let (cluster, home) = (Cluster::bare(), TempDir::new().unwrap());
    let owner = cluster.owner();
    let vault = TestVault::new(&[("Plan.md", "# Plan\n")]);
    let (folder, copy) = (vault.root().to_str().unwrap(), home.path().join("copy"));
    let anna = "https://login.example#anna";
    let commands: [&[&str]; 14] = [
        &["init"],
        &["create", "handbook", "--from", folder],
        &["create", "empty"],
        &["check", "handbook"],
        &["grant", "handbook", anna, "writer"],
        &["grant", "handbook", "group:staff", "reader"],
        &["block", "group:former"],
        &["block", "group:other"],
        &["unblock", "group:other"],
        &["audit", "handbook"],
        &["export", "handbook", copy.to_str().unwrap()],
        &["restore", "handbook", copy.to_str().unwrap()],
        &["clean", "handbook"],
        &["forget", "https://login.example#nobody"],
    ];
    for command in commands {
        let (_, said) = administer(&home, &owner, command);
        // A person's issuer is compared with the settings where they are there.
        let names_person = command.contains(&anna);
        assert_eq!(said.contains("was not compared with login.issuer"), names_person, "{command:?}: {said}");
    }
    let (listed, _) = administer(&home, &owner, &["list"]);
    let expected = "\
empty         0 files 0 notes, 0 B, with earlier versions 0 B
              -       nobody has a role
handbook      1 file  1 note, 7 B, with earlier versions 7 B
              reader  group:staff
              writer  https://login.example#anna
in all vaults blocked group:former
";
    let spaced = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(spaced(&listed), spaced(expected), "{listed}");
    let (listed, _) = administer(&home, &owner, &["list", "--json"]);
    let roles = json!([{ "who": "group:staff", "role": "reader" }, { "who": anna, "role": "writer" }]);
    let quotas = json!({ "bytes": "default", "notes": "default", "changes": "default" });
    let vaults = json!([
        { "name": "empty", "roles": [], "files": 0, "notes": 0, "bytes": 0, "stored": 0, "quotas": quotas },
        { "name": "handbook", "roles": roles, "files": 1, "notes": 1, "bytes": 7, "stored": 7, "quotas": quotas },
    ]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed, json!({ "vaults": vaults, "blocked": ["group:former"] }));
    // The role of servers may not see all vaults.
    let done = sidenote(home.path(), &["team", "list", "--database", &cluster.app()]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn settings_without_a_cache_are_enough_but_for_a_server() {
    let (cluster, home) = (Cluster::new(), TempDir::new().unwrap());
    let config = home.path().join("team.toml");
    let run = |text: &str, args: &[&str]| {
        fs::write(&config, text).unwrap();
        set_mode(&config, 0o600);
        let done =
            sidenote(home.path(), &[&["team"], args, &["--config", config.to_str().unwrap()]].concat());
        (done.status.code(), stderr(&done))
    };
    let database = format!("[team]\ndatabase = {:?}\n", cluster.app());
    assert_eq!(run(&database, &["create", "v"]).0, Some(0));
    let cases: [(&str, &[&str], &str); 4] = [
        (&database, &["serve", "--http", "127.0.0.1:0"], "team.cache"),
        ("", &["check", "v"], "--database ADDRESS"),
        ("[team]\n", &["serve"], "team.database"),
        ("[login]\nissuer = \"https://a\"\n", &["check", "v"], "missing field `url`"),
    ];
    for (text, args, said) in cases {
        let (code, told) = run(text, args);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(said), "{said} is not in {told}");
    }
    let login = "[login]\nissuer = \"https://login.example\"\nurl = \"https://notes.example\"\n";
    let grant = ["grant", "v", "https://login.example/#anna", "reader", "--database", &cluster.owner()];
    let (code, told) = run(login, &grant);
    assert_eq!(code, Some(2));
    assert!(told.contains("https://login.example/ is not one of login.issuer"), "{told}");
}

#[test]
fn a_password_that_is_not_encoded_is_refused_and_not_shown() {
    let wrong = [
        "postgres://app:pa@ss@db.example/notes",
        "postgres://app:pa/ss@db.example/notes",
        "postgres://app:pa#ss@db.example/notes",
        "postgres://app:pa?ss@db.example/notes",
        "postgres://app:p@/a#ss@db.example:5432/notes",
    ];
    for address in wrong {
        let error = Database::new(address).unwrap_err();
        let told = format!("{error} {:?} {:?}", error.hint(), std::error::Error::source(&error));
        assert!(told.contains("%2F for /"), "{address}: {told}");
        assert!(!told.contains("ss@") && !told.contains("pa/") && !told.contains("pa?"), "{told}");
    }
    let right = [
        "postgres://app:pa%2Fss@db.example/notes",
        "postgres:///notes?host=/run/postgresql&port=5433",
        "postgres://app@/notes?host=/run/postgresql",
        "postgres://app@one.example:5432,two.example:5433/notes?target_session_attrs=read-write",
        "postgres://app@[::1]:5432/notes?sslmode=require",
    ];
    for address in right {
        assert!(Database::new(address).is_ok(), "{address}");
    }
    assert_eq!((wrong.len(), right.len()), (5, 5));
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_refused_host_is_logged_once_and_many_are_not() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    for _ in 0..3 {
        assert_eq!(server.post_to("/v/v/mcp", &["Host: team_servers"], &list()).status, 403);
    }
    // A foreign origin is no matter of the host.
    assert_eq!(server.post_to("/v/v/mcp", &["Origin: https://evil.example"], &list()).status, 403);
    for at in 0..40 {
        assert_eq!(server.send("GET", "/ready", &[&format!("Host: h{at}")], "").status, 403);
    }
    let log = server.stop();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(told.len(), 21, "{log}");
    assert!(told[0].contains("\"team_servers\"") && told[0].contains("proxy_set_header Host"), "{log}");
    assert!(told[20].contains("no more of them are logged"), "{log}");
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_database_that_refuses_connections_is_not_one_that_does_not_run() {
    let (cluster, _home, server) = served(&["v"], "lock_s = 2\n", &[]);
    call(&server, "v", "write_note", &json!({ "title": "Before", "content": "alpha" }));
    let mut client = postgres::Client::connect(&cluster.owner(), postgres::NoTls).unwrap();
    client
        .batch_execute(
            "alter role sidenote_app connection limit 0;
            select pg_terminate_backend(pid) from pg_stat_activity where usename = 'sidenote_app'",
        )
        .unwrap();
    for _ in 0..2 {
        let refused = post(&server, "v", "write_note", &json!({ "title": "Lost", "content": "beta" }));
        assert!(refused.text.contains("refuses the connection: too many connections"), "{}", refused.text);
    }
    client.batch_execute("alter role sidenote_app connection limit -1").unwrap();
    call(&server, "v", "write_note", &json!({ "title": "After", "content": "gamma" }));
    let log = server.stop();
    assert!(log.contains("raise max_connections"), "{log}");
    assert!(!log.contains("see whether PostgreSQL runs"), "{log}");
}
