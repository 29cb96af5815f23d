//! Tests how a server hears of what another one commits: by a notification at once, and by asking where none arrives.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sidenote::share::follow::Follower;

use super::cluster::Cluster;
use super::serving::{call, serve, served};
use super::{Server, check_whole, create, note};
use crate::support::{LIMIT, files_below, say, until};

/// The most milliseconds until a notification has arrived, on a machine that does other things. Asking takes ten seconds.
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
    let mut slowest = Duration::ZERO;
    for at in 0..20 {
        call(
            &one,
            "v",
            "write_note",
            &json!({ "title": format!("Note {at}"), "content": format!("alpha {at}") }),
        );
        let started = Instant::now();
        until("the other server has the note", || copied(&cache, &format!("Note {at}.md")).is_some());
        slowest = slowest.max(started.elapsed());
    }
    say(&format!("20 commits were followed, the slowest in {slowest:?}"));
    assert!(slowest < AT_ONCE, "{slowest:?}");
    // After an outage, too.
    cluster.stop();
    cluster.start();
    call(&one, "v", "write_note", &json!({ "title": "Again", "content": "after an outage" }));
    until("the other server has the note", || copied(&cache, "Again.md").is_some());
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
    call(&one, "v", "write_note", &json!({ "title": "News", "content": "alpha" }));
    let started = Instant::now();
    let mut line = String::new();
    while !line.contains("notifications/resources/list_changed") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
    }
    say(&format!("a subscriber was told after {:?}", started.elapsed()));
    assert!(started.elapsed() < AT_ONCE);
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
    let (one, second) = (Server::new(&cluster), "Second");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut follower = Follower::default();
            while !is_over.load(Ordering::Relaxed) {
                other.host.follow(&mut follower);
            }
        });
        note(&one.store(), second, "beta");
        let started = Instant::now();
        until("the other server has the note", || other.files().join("Second.md").exists());
        is_over.store(true, Ordering::Relaxed);
        say(&format!("found after {:?}", started.elapsed()));
    });
    check_whole(&cluster);
}
