//! Tests how a server hears of what another one commits: by a notification at once, and by asking where none arrives.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use sidenote::share::follow::Follower;

use super::cluster::Cluster;
use super::serving::{call, serve, served};
use super::{Server, check_whole, create, note};
use crate::support::{LIMIT, files_below, say, until};

/// The longest time until a notification has arrived, on a machine that does other things. A server asks every ten seconds:
/// of two commits, the second written when the first has arrived, at most one is found in this time by asking.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Finds a note in the only copy of a cache.
fn copied(cache: &Path, name: &str) -> Option<PathBuf> {
    let is_copy = |file: &PathBuf| {
        file.file_name().is_some_and(|own| own == name)
            && file.parent().is_some_and(|folder| folder.ends_with("files"))
    };
    files_below(cache).into_iter().find(is_copy)
}

/// Opens the stream of a session of the vault.
fn listen(server: &crate::http::Server) -> BufReader<TcpStream> {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let begun = server.post_to("/v/v/mcp", &[], &hello);
    let session = format!("Mcp-Session-Id: {}", begun.header("mcp-session-id").unwrap());
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(server.post_to("/v/v/mcp", &[&session], &told).status, 202);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let host = server.address();
    let head =
        format!("GET /v/v/mcp HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n{session}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    stream
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_server_follows_the_commit_of_another_one_at_once() {
    let (cluster, _home, one) = served(&["v"], "", &[]);
    let home = tempfile::tempdir().unwrap();
    let other = serve(&cluster, home.path(), "", &[]);
    let cache = home.path().join("cache");
    // Vaults that are open are followed.
    call(&other, "v", "search_notes", &json!({ "query": "alpha" }));
    let follows = |title: &str| {
        call(&one, "v", "write_note", &json!({ "title": title, "content": format!("alpha {title}") }));
        let started = Instant::now();
        until("the other server has the note", || copied(&cache, &format!("{title}.md")).is_some());
        started.elapsed()
    };
    let slowest = |name: &str| (0..20).map(|at| follows(&format!("{name} {at}"))).max().unwrap();
    let before = slowest("Note");
    // After an outage, too, as soon as the server listens again.
    cluster.stop();
    cluster.start();
    follows("Again");
    let after = slowest("Later");
    say(&format!("40 commits were followed, the slowest in {before:?}, and {after:?} after an outage"));
    assert!(before.max(after) < AT_ONCE, "{before:?}, {after:?}");
    one.stop();
    other.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_subscriber_is_told_of_what_another_server_writes() {
    let (cluster, _home, one) = served(&["v"], "", &[]);
    let home = tempfile::tempdir().unwrap();
    let other = serve(&cluster, home.path(), "", &[]);
    let mut stream = listen(&other);
    for at in 0..3 {
        call(
            &one,
            "v",
            "write_note",
            &json!({ "title": format!("News {at}"), "content": format!("alpha {at}") }),
        );
        let started = Instant::now();
        let mut line = String::new();
        while !line.contains("notifications/resources/list_changed") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        say(&format!("a subscriber was told after {:?}", started.elapsed()));
        assert!(started.elapsed() < AT_ONCE);
    }
    one.stop();
    other.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_commit_without_a_notification_is_found_by_asking() {
    let cluster = Cluster::new();
    create(&cluster, None);
    let (one, other) = (Server::new(&cluster), Server::new(&cluster));
    note(&one.store(), "First", "alpha");
    other.store();
    // As a pooler does that passes on no notifications.
    let mut client = postgres::Client::connect(&cluster.owner(), postgres::NoTls).unwrap();
    client
        .batch_execute(
            "create function public.pg_notify(text, text) returns void language sql return null;
            alter role sidenote_app set search_path = public, pg_catalog",
        )
        .unwrap();
    let one = Server::new(&cluster);
    let mut follower = Follower::default();
    let mut follows = |title: &str| {
        note(&one.store(), title, title);
        let started = Instant::now();
        until("the other server has the note", || {
            other.host.follow(&mut follower);
            other.files().join(format!("{title}.md")).exists()
        });
        started.elapsed()
    };
    // A server asks when it begins to listen, and after that at intervals.
    let (first, second) = (follows("Second"), follows("Third"));
    say(&format!("found after {first:?} and {second:?}"));
    assert!(second > AT_ONCE, "found after {second:?}, so a notification has arrived");
    check_whole(&cluster);
}
