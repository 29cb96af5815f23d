//! Tests a server that opens the vaults of a team by demand.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sidenote::base::clock::Clock;
use sidenote::share::{Database, team};
use tempfile::TempDir;

use super::cluster::Cluster;
use crate::http::{Reply, SERVER, Server};
use crate::support::{clean_env, program, set_mode};

/// Starts `team serve` with settings of the table `[team]`.
pub(super) fn serve(cluster: &Cluster, home: &Path, more: &str, args: &[&str]) -> Server {
    serve_at(&cluster.app(), home, more, args)
}

/// Starts `team serve` on the database with an address.
pub(super) fn serve_at(database: &str, home: &Path, more: &str, args: &[&str]) -> Server {
    serve_on(database, home, SERVER, more, args)
}

/// Starts `team serve` on the database with an address, to listen on another one.
pub(super) fn serve_on(database: &str, home: &Path, address: &str, more: &str, args: &[&str]) -> Server {
    let config = home.join("team.toml");
    let cache = home.join("cache");
    fs::write(
        &config,
        format!("[team]\ndatabase = {database:?}\ncache = {:?}\n{more}", cache.display().to_string()),
    )
    .unwrap();
    set_mode(&config, 0o600);
    let mut command = Command::new(program());
    clean_env(&mut command, home).env("SIDENOTE_EMBED_PROVIDER", "none");
    command.args(["team", "serve", "--http", address, "--config"]).arg(&config).args(args);
    Server::of(&mut command)
}

/// Makes a cluster with empty vaults, and serves it with settings of the table `[team]`.
pub(super) fn served(vaults: &[&str], more: &str, args: &[&str]) -> (Cluster, TempDir, Server) {
    let (cluster, home) = (Cluster::new(), TempDir::new().unwrap());
    let database = Database::new(&cluster.app()).unwrap();
    for name in vaults {
        team::create(&database, name, None, 50_000_000, Clock::System.now(), false).unwrap();
    }
    let server = serve(&cluster, home.path(), more, args);
    (cluster, home, server)
}

pub(super) fn post(server: &Server, vault: &str, tool: &str, arguments: &Value) -> Reply {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    server.post_to(&format!("/v/{vault}/mcp"), &[], &message)
}

#[track_caller]
pub(super) fn call(server: &Server, vault: &str, tool: &str, arguments: &Value) -> Value {
    let reply = post(server, vault, tool, arguments);
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.json()["result"]["isError"], false, "{}", reply.text);
    reply.json()["result"]["structuredContent"].clone()
}

fn found(server: &Server, vault: &str, query: &str) -> Vec<String> {
    let results = call(server, vault, "search_notes", &json!({ "query": query }))["results"].clone();
    results.as_array().unwrap().iter().map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

/// Reads a number of `/metrics`.
#[track_caller]
fn metric(server: &Server, name: &str) -> f64 {
    let text = server.send("GET", "/metrics", &[], "").text;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is missing in {text}")).parse().unwrap()
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn vaults_are_opened_by_demand_and_closed_for_others() {
    let names = ["a", "b", "c"];
    let (_cluster, _home, server) = served(&names, "open = 1\nwarm = [\"a\"]\n", &[]);
    for round in 0..3 {
        for name in names {
            let (title, word) = (format!("Note {round}"), format!("{name}word{round}"));
            call(&server, name, "write_note", &json!({ "title": title, "content": word }));
        }
    }
    // Each vault was closed for the others, and has what was written.
    for name in names {
        for round in 0..3 {
            assert_eq!(found(&server, name, &format!("{name}word{round}")), [format!("Note {round}.md")]);
            assert_eq!(found(&server, name, &format!("xword{round}")), [""; 0]);
        }
    }
    assert_eq!(metric(&server, "sidenote_vaults_open"), 1.0);
    assert!(metric(&server, "sidenote_vaults_closed_total") >= 8.0);
    assert!(metric(&server, "sidenote_requests_total{status=\"2xx\"}") >= 27.0);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for path in ["/v/nobody/mcp", "/v/a%2Fb/mcp", "/v/..%2F..%2Fx/mcp"] {
        assert_eq!(server.post_to(path, &[], &list).status, 404, "{path}");
    }
    assert_eq!(server.send("GET", "/ready", &[], "").status, 200);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_session_of_a_vault_that_was_closed_goes_on() {
    let (_cluster, _home, server) = served(&["a", "b"], "open = 1\n", &[]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let begun = server.post_to("/v/a/mcp", &[], &hello);
    let session = format!("Mcp-Session-Id: {}", begun.header("mcp-session-id").unwrap());
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(server.post_to("/v/a/mcp", &[&session], &list).status, 200);
    call(&server, "b", "write_note", &json!({ "title": "B", "content": "beta" }));
    assert_eq!(server.post_to("/v/a/mcp", &[&session], &list).status, 200);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn only_the_named_vaults_are_served() {
    let (_cluster, _home, server) = served(&["a", "b"], "", &["a"]);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(server.post_to("/v/a/mcp", &[], &list).status, 200);
    assert_eq!(server.post_to("/v/b/mcp", &[], &list).status, 404);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn reads_go_on_marked_while_the_database_is_away_and_writes_fail() {
    let (cluster, _home, server) = served(&["a", "b"], "lock_s = 2\n", &[]);
    call(&server, "a", "write_note", &json!({ "title": "Before", "content": "alpha" }));
    assert_eq!(call(&server, "a", "search_notes", &json!({ "query": "alpha" }))["stale"], false);
    cluster.stop();
    assert_eq!(server.send("GET", "/ready", &[], "").status, 503);
    assert_eq!(server.send("GET", "/health", &[], "").status, 200);
    let away = call(&server, "a", "search_notes", &json!({ "query": "alpha" }));
    assert_eq!((&away["stale"], &away["results"][0]["path"]), (&json!(true), &json!("Before.md")));
    let read = post(&server, "a", "read_note", &json!({ "note": "Before" }));
    assert!(read.text.contains("the database of the team cannot be reached"), "{}", read.text);
    let started = std::time::Instant::now();
    let refused = post(&server, "a", "write_note", &json!({ "title": "Lost", "content": "beta" }));
    assert_eq!(refused.json()["result"]["isError"], true, "{}", refused.text);
    assert!(refused.text.contains("cannot be reached"), "{}", refused.text);
    assert!(started.elapsed().as_secs() <= 4, "{:?}", started.elapsed());
    // A vault that is not open needs the database.
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(server.post_to("/v/b/mcp", &[], &list).status, 503);
    cluster.start();
    assert_eq!(call(&server, "a", "search_notes", &json!({ "query": "alpha" }))["stale"], false);
    call(&server, "a", "write_note", &json!({ "title": "After", "content": "gamma" }));
    assert_eq!(found(&server, "a", "beta"), [""; 0]);
    assert_eq!(found(&server, "a", "gamma"), ["After.md"]);
    assert_eq!(server.post_to("/v/b/mcp", &[], &list).status, 200);
    assert_eq!(server.send("GET", "/ready", &[], "").status, 200);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn after_a_while_without_the_database_reads_fail_as_well() {
    let (cluster, _home, server) = served(&["a"], "stale_s = 0\n", &[]);
    call(&server, "a", "write_note", &json!({ "title": "Before", "content": "alpha" }));
    cluster.stop();
    let refused = post(&server, "a", "search_notes", &json!({ "query": "alpha" }));
    assert_eq!(refused.json()["result"]["isError"], true, "{}", refused.text);
    server.stop();
}
