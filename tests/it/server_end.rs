//! Tests how servers end: with a sealed index after a change, and soon, whatever the client still reads.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::mcp_client::Client;
use crate::support::TestVault;

#[test]
fn fifty_servers_that_end_after_an_edit_leave_a_sealed_index() {
    let vault = TestVault::new(&[("Boat.md", "The boat leaks.\n"), ("River.md", "See [[Boat]].\n")]);
    let seal = vault.root().join(".sidenote/index/seal.json");
    let mut sealed = 0;
    for at in 0..50 {
        let mut client = Client::start(&vault, &[]);
        // Queries keep threads of the server busy until its end.
        client.text("search_notes", json!({ "query": "boat" }));
        client
            .text("edit_note", json!({ "note": "Boat", "action": "append", "text": format!("Line {at}.") }));
        client.finish();
        sealed += usize::from(seal.exists());
    }
    assert_eq!(sealed, 50);
}

/// Starts a server, sends it so many requests that read a note, and closes its input.
fn asked(vault: &TestVault, requests: usize) -> Child {
    vault.run(&["index"]);
    let mut server = vault
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let read = json!({ "name": "read_note", "arguments": { "notes": "Boat" } });
    let begin = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ];
    let calls = (1..=requests)
        .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": read }));
    for message in begin.into_iter().chain(calls) {
        writeln!(input, "{message}").unwrap();
    }
    server
}

#[test]
fn a_server_ends_soon_after_its_input_although_nobody_reads_its_answers() {
    let vault = TestVault::new(&[("Boat.md", &"The boat leaks.\n".repeat(1_000))]);
    // More than a pipe holds.
    let mut server = asked(&vault, 40);
    let unread = server.stdout.take().unwrap();
    let since = Instant::now();
    let status = server.wait().unwrap();
    // The server waits for two seconds at most, and a busy machine takes longer; the wait for a reader would not end at all.
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(status.success());
    drop(unread);
}

#[test]
fn answers_to_all_requests_are_written_before_the_end() {
    let vault = TestVault::new(&[("Boat.md", "The boat leaks.\n")]);
    let output = asked(&vault, 20).wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 21);
}
