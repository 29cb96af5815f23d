//! Tests limits of the service for folders of people: large uploads, and synchronisations that lose most of the files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sidenote::store::Role;
use tempfile::TempDir;

use super::rights::{ALL, Team};
use super::serving::{call, served};
use crate::http::Server;
use crate::support::{clean_env, program, stderr, stdout};

/// Makes the body of a commit of a new file.
fn commit(path: &str, content: &[u8]) -> Vec<u8> {
    let hash = blake3::hash(content).to_hex().to_string();
    let file = json!({ "path": path, "base": null, "content": [hash, content.len()] });
    let head = json!({ "operation": format!("op {path}"), "files": [file] }).to_string();
    [head.as_bytes(), b"\n", content].concat()
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_large_upload_that_stalls_holds_up_nobody_else() {
    let team = Team::new(&["a", "b"]);
    for vault in ["a", "b"] {
        for who in ["anna", "ben"] {
            team.grant(vault, who, Some(Role::Writer));
        }
    }
    let token =
        |vault: &str, who: &str| format!("Authorization: Bearer {}", team.token(vault, who, ALL).sign());
    // Anna announces 40 MB for the vault a, and sends a few bytes.
    let mut stalled = TcpStream::connect(team.server.address()).unwrap();
    let head = format!(
        "POST /v/a/commit HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Length: 40000000\r\n\r\n{{\"operation\"",
        team.server.address(),
        token("a", "anna")
    );
    stalled.write_all(head.as_bytes()).unwrap();
    let large = vec![b'x'; 6_000_000];
    for (vault, who) in [("a", "ben"), ("b", "anna"), ("b", "ben")] {
        let body = commit(&format!("of {who}.bin"), &large);
        let reply = team.server.send("POST", &format!("/v/{vault}/commit"), &[&token(vault, who)], &body);
        assert_eq!(reply.status, 200, "{vault} {who}: {}", reply.text);
    }
    // A second one of the same person and vault waits, and is asked to come again.
    let reply = team.server.send("POST", "/v/a/commit", &[&token("a", "anna")], commit("x.bin", &large));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.text);
    drop(stalled);
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn large_uploads_of_all_senders_share_a_limit_of_bytes() {
    let (_cluster, _home, server) = served(&["a", "b", "c"], "max_file_mb = 200\n", &[]);
    let announce = |vault: &str| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = format!(
            "POST /v/{vault}/commit HTTP/1.1\r\nHost: {}\r\nContent-Length: 150000000\r\n\r\n",
            server.address()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    // Each takes more than half of the memory. One of them waits for the other, and is asked to come again.
    let mut streams = [announce("a"), announce("b")];
    let answer = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut bytes = [0; 1_000];
        let count = stream.read(&mut bytes).unwrap_or_default();
        String::from_utf8_lossy(&bytes[..count]).to_lowercase()
    };
    let answers: Vec<String> = streams.iter_mut().map(answer).collect();
    // The other one has no answer yet, since its bytes may still come, or none came in time.
    let is_refused = |text: &&String| text.starts_with("http/1.1 503") && text.contains("retry-after: 1");
    assert_eq!(answers.iter().filter(is_refused).count(), 1, "{answers:?}");
    let reply = server.send("POST", "/v/c/commit", &[], commit("x.bin", &vec![b'x'; 6_000_000]));
    assert_eq!(reply.status, 200, "{}", reply.text);
    drop(streams);
    server.stop();
}

/// A folder with many notes that was synchronised, and what it does next.
struct Folder {
    root: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    fn run(&self, server: &Server, args: &[&str]) -> (Option<i32>, Value, String) {
        let mut command = Command::new(program());
        let home = self.root.path().join(".home");
        clean_env(&mut command, &home);
        let url = format!("http://{}/v/v", server.address());
        let done = command
            .args(["sync", &url, "--json", "--vault"])
            .arg(self.root.path())
            .args(args)
            .output()
            .unwrap();
        (done.status.code(), serde_json::from_str(&stdout(&done)).unwrap_or_default(), stderr(&done))
    }

    #[track_caller]
    fn sync(&self, server: &Server, args: &[&str]) -> Value {
        let (code, reply, error) = self.run(server, args);
        assert_eq!(code, Some(0), "{error}");
        reply
    }

    #[track_caller]
    fn check_refused(&self, server: &Server, removed: &str, count: usize) {
        let before = self.notes();
        for dry_run in [true, false] {
            let (code, reply, error) = self.run(server, if dry_run { &["--dry-run"] } else { &[] });
            assert_eq!(reply[removed].as_array().map(Vec::len), Some(count), "{reply}");
            assert_eq!(
                (&reply["applied"], &reply["loses_most"], &reply["needs_choice"]),
                (&json!(false), &json!(true), &json!(true))
            );
            assert_eq!(
                (code, error.contains("--remove-many")),
                (Some(if dry_run { 0 } else { 2 }), !dry_run),
                "{error}"
            );
        }
        assert_eq!(self.notes(), before);
    }

    fn notes(&self) -> BTreeMap<String, String> {
        let names = fs::read_dir(self.root.path()).unwrap().map(|entry| entry.unwrap().path());
        let notes = names.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        notes.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
    }

    fn remove_notes(&self) {
        self.notes().keys().for_each(|name| fs::remove_file(self.root.path().join(name)).unwrap());
    }

    fn undo(&self) {
        let mut command = Command::new(program());
        let done = clean_env(&mut command, &self.root.path().join(".home"))
            .args(["undo", "--vault"])
            .arg(self.root.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn most_files_are_removed_only_when_a_person_says_so_and_undo_takes_it_back() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    let (anna, ben) = (Folder::new(), Folder::new());
    for at in 0..40 {
        fs::write(anna.root.path().join(format!("Note {at}.md")), format!("text of note {at}\n")).unwrap();
    }
    anna.sync(&server, &["--adopt"]);
    ben.sync(&server, &[]);
    call(&server, "v", "write_note", &json!({ "title": "Later", "content": "by an agent" }));
    let all = anna.notes();
    // Moved files are not lost.
    fs::create_dir(ben.root.path().join("Sub")).unwrap();
    for name in ben.notes().keys() {
        fs::rename(ben.root.path().join(name), ben.root.path().join("Sub").join(name)).unwrap();
    }
    assert_eq!(ben.sync(&server, &[])["loses_most"], false);
    assert_eq!(anna.sync(&server, &[])["loses_most"], false);
    for name in all.keys() {
        fs::rename(ben.root.path().join("Sub").join(name), ben.root.path().join(name)).unwrap();
    }
    ben.sync(&server, &[]);
    anna.sync(&server, &[]);
    let all = anna.notes();
    assert_eq!(all.len(), 41);
    // A state without its files: a folder that is not mounted, or came without them.
    anna.remove_notes();
    anna.check_refused(&server, "removed_there", 41);
    assert_eq!(ben.sync(&server, &[])["removed_here"], json!([]));
    let removed = anna.sync(&server, &["--remove-many"]);
    assert_eq!(
        (removed["removed_there"].as_array().unwrap().len(), &removed["loses_most"]),
        (41, &json!(true))
    );
    // The other folder is asked, too.
    ben.check_refused(&server, "removed_here", 41);
    ben.sync(&server, &["--remove-many"]);
    assert_eq!(ben.notes(), BTreeMap::new());
    // Each folder takes it back, and the vault has the files again.
    anna.undo();
    assert_eq!(anna.notes(), all);
    assert_eq!(anna.sync(&server, &[])["sent"].as_array().unwrap().len(), 41);
    ben.undo();
    assert_eq!(ben.notes(), all);
    let again = ben.sync(&server, &[]);
    assert_eq!(
        (&again["sent"], &again["fetched"], &again["conflicts"]),
        (&json!([]), &json!([]), &json!([]))
    );
    // A few are removed without a word.
    for at in 0..10 {
        fs::remove_file(ben.root.path().join(format!("Note {at}.md"))).unwrap();
    }
    assert_eq!(ben.sync(&server, &[])["loses_most"], false);
    server.stop();
}
