//! Tests sessions over several servers: a session goes on at a server that did not begin it, for its person alone.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sidenote::share::Database;
use sidenote::share::audit::{AuditRequest, audit};
use sidenote::store::Role;
use tempfile::TempDir;

use super::rights::{ALL, Team, call, hello, list};
use super::serving::{serve, served};
use crate::http::Server;

/// Begins a session of a vault, and gives its header.
fn begin(server: &Server, path: &str) -> String {
    let begun = server.post_to(path, &[], &hello());
    assert_eq!(begun.status, 200, "{}", begun.text);
    format!("Mcp-Session-Id: {}", begun.header("mcp-session-id").unwrap())
}

/// Gives the result of a call in a session, which is the last message of a stream.
#[track_caller]
fn result(server: &Server, session: &str, message: &Value) -> Value {
    let reply = server.post_to("/v/a/mcp", &[session], message);
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["result"].clone()
}

/// Sends a request in a session, and gives the first line of the answer.
fn status(address: &str, method: &str, session: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let accept = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
    let head = format!(
        "{method} /v/a/mcp HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nContent-Type: application/json\r\n\
        Content-Length: {}\r\nLast-Event-ID: 7/3\r\n{session}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_session_goes_on_at_every_server() {
    let (cluster, _home, one) = served(&["a"], "", &[]);
    let home = TempDir::new().unwrap();
    let other = serve(&cluster, home.path(), "", &[]);
    let session = begin(&one, "/v/a/mcp");
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(other.post_to("/v/a/mcp", &[&session], &told).status, 202);
    // Round robin, as a proxy does it that knows nothing of sessions.
    for round in 0..6 {
        let server = if round % 2 == 0 { &one } else { &other };
        let (title, content) = (format!("Note {round}"), format!("alpha word{round} of{round}"));
        let written =
            result(server, &session, &call("write_note", json!({ "title": title, "content": content })));
        assert_eq!(written["isError"], false, "{written}");
        let search = call("search_notes", json!({ "query": "alpha" }));
        let found = result(server, &session, &search)["structuredContent"]["results"].clone();
        assert_eq!(found.as_array().unwrap().len(), round + 1);
    }
    // The journal has one session and one client, whichever server was asked.
    let database = Database::new(&cluster.app()).unwrap();
    let events = audit(&database, "a", &AuditRequest::default()).unwrap();
    let signature = |name: &str| {
        let values = events.iter().map(|event| event.event.more[name].as_str().unwrap().to_owned());
        values.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!((events.len(), signature("session").len()), (6, 1));
    assert_eq!(signature("client"), ["t 1"]);
    // A call that is repeated at the other server is done once.
    let once = json!({ "title": "Once", "content": "beta", "operation_id": "once" });
    let first = result(&one, &session, &call("write_note", once.clone()));
    let again = result(&other, &session, &call("write_note", once));
    let operation = |result: &Value| result["structuredContent"]["operation"].clone();
    assert_eq!(operation(&again), operation(&first));
    // Many requests at a server that knows nothing of the session yet.
    let third_home = TempDir::new().unwrap();
    let third = serve(&cluster, third_home.path(), "", &[]);
    let (address, body) = (third.address(), list().to_string());
    assert_eq!(status(address, "GET", &session, ""), "HTTP/1.1 200 OK\r\n");
    std::thread::scope(|scope| {
        let asked = (0..8).map(|_| scope.spawn(|| status(address, "POST", &session, &body)));
        for asked in asked.collect::<Vec<_>>() {
            assert_eq!(asked.join().unwrap(), "HTTP/1.1 200 OK\r\n");
        }
    });
    assert_eq!(other.send("DELETE", "/v/a/mcp", &[&session], "").status, 204);
    assert_eq!(result(&one, &session, &list())["tools"].as_array().map(Vec::is_empty), Some(false));
    for server in [one, other, third] {
        server.stop();
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_session_goes_on_for_its_person_alone() {
    let team = Team::new(&["a"]);
    team.grant("a", "anna", Some(Role::Writer));
    team.grant("a", "bob", Some(Role::Reader));
    let begun = team.ask("a", "anna", ALL, &hello());
    let id = begun.header("mcp-session-id").unwrap().to_owned();
    let second = team.second_server();
    let status = |server: &Server, who: &str, id: &str| {
        let token = format!("Authorization: Bearer {}", team.token("a", who, ALL).sign());
        let session = format!("Mcp-Session-Id: {id}");
        server.post_to("/v/a/mcp", &[&token, &session], &list()).status
    };
    let decoded: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&id).unwrap()).unwrap();
    let with = |name: &str, value: Value| {
        let mut changed = decoded.clone();
        changed[name] = value;
        URL_SAFE_NO_PAD.encode(changed.to_string())
    };
    let cases = [
        ("of another person", "bob", id.clone()),
        ("with another owner", "anna", with("owner", json!("0"))),
        ("with a field too many", "anna", with("role", json!("admin"))),
        ("with a client of 2 KB", "anna", with("client", json!("x".repeat(2_000)))),
        ("of another server's form", "anna", "00000000-0000-4000-8000-000000000000".to_owned()),
    ];
    assert_eq!(cases.len(), 5);
    for server in [&team.server, &second] {
        for (what, who, id) in &cases {
            assert_eq!(status(server, who, id), 404, "{what}");
        }
        // Nobody has lost the session by these.
        assert_eq!(status(server, "anna", &id), 200);
    }
    // The right is that of the request, and not of the session.
    team.grant("a", "anna", None);
    assert_eq!(status(&second, "anna", &id), 404);
    second.stop();
    team.server.stop();
}
