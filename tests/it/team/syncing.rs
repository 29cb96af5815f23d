//! Tests `sidenote sync`: folders of people, a service, and what happens when they change at once, are killed or cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidenote::share::{Database, team};
use tempfile::TempDir;

use super::serving::{call, post, serve_at, served};
use super::{odd_vault, shared_tree, sidenote};
use crate::http::Server;
use crate::support::{
    TestVault, clean_env, env_number, files_below, program, say, set_mode, stderr, stdout, terminate, until,
    was_killed,
};

/// The time of conflict copies.
const NOW: &str = "2026-11-23T14:05:00Z";
/// What conflict copies of Anna are called.
const MARK: &str = "(conflict 2026-11-23 14.05 Anna)";

/// A person with a folder.
struct Person {
    vault: TestVault,
    name: &'static str,
}

impl Person {
    fn new(name: &'static str, files: &[(&str, &str)]) -> Self {
        Self { vault: TestVault::new(files), name }
    }

    fn command(&self, server: &Server, more: &[&str]) -> Command {
        let mut command = Command::new(program());
        let home = self.vault.root().join(".home");
        clean_env(&mut command, &home).env("SIDENOTE_NOW", NOW).env("TZ", "UTC");
        command
            .args(["sync", &url(server), "--name", self.name, "--vault"])
            .arg(self.vault.root())
            .args(more);
        command
    }

    fn run(&self, server: &Server, more: &[&str]) -> Output {
        self.command(server, more).output().unwrap()
    }

    /// Synchronises, and gives the reply.
    #[track_caller]
    fn sync(&self, server: &Server) -> Value {
        self.sync_with(server, &[])
    }

    #[track_caller]
    fn sync_with(&self, server: &Server, more: &[&str]) -> Value {
        let done = self.run(server, &[&["--json"], more].concat());
        let reply: Value = serde_json::from_str(&stdout(&done)).unwrap_or_default();
        let is_complete = reply["left_out"].as_array().is_none_or(Vec::is_empty);
        let code = if is_complete { 0 } else { 8 };
        assert_eq!(done.status.code(), Some(code), "{}: {}", self.name, stderr(&done));
        reply
    }

    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        shared_tree(self.vault.root())
    }

    fn has(&self, path: &str) -> bool {
        self.vault.root().join(path).exists()
    }
}

fn url(server: &Server) -> String {
    format!("http://{}/v/v", server.address())
}

/// Gives the files of the vault, as the way out of it writes them.
fn exported(home: &Path) -> BTreeMap<String, Vec<u8>> {
    let to = TempDir::new().unwrap();
    let folder = to.path().join("exported");
    let config = home.join("team.toml");
    let args = ["team", "export", "v", folder.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let done = sidenote(home, &args);
    assert!(done.status.success(), "{}", stderr(&done));
    shared_tree(&folder)
}

fn list(reply: &Value, key: &str) -> Vec<String> {
    reply[key].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn folders_and_vault_are_equal_byte_for_byte() {
    let (_cluster, home, server) = served(&["v"], "", &[]);
    let anna = Person { vault: odd_vault(), name: "Anna" };
    let ben = Person::new("Ben", &[]);
    anna.vault.write("Twin.md", "in upper case");
    anna.vault.write("twin.md", "in lower case");
    let sent = anna.sync_with(&server, &["--adopt"]);
    assert_eq!(list(&sent, "sent").len(), anna.tree().len() + 1, "{sent}");
    let fetched = ben.sync(&server);
    assert_eq!(list(&fetched, "fetched").len(), list(&sent, "sent").len());
    assert_eq!(ben.tree(), anna.tree());
    let settings = |person: &Person| fs::read(person.vault.root().join(".sidenote/config.toml")).unwrap();
    assert_eq!(settings(&ben), settings(&anna));
    assert!(!ben.has(".obsidian/workspace.json") && !ben.has(".hidden/x.md"));
    assert_eq!(exported(home.path()), anna.tree());
    // Nothing is done twice.
    for person in [&anna, &ben] {
        let again = person.sync(&server);
        assert_eq!((list(&again, "sent").len(), list(&again, "fetched").len()), (0, 0), "{again}");
    }
    // Edits, renames and removals go both ways, and folders that became empty go with them.
    fs::rename(ben.vault.root().join("a/b/c/deep.md"), ben.vault.root().join("a/Shallow.md")).unwrap();
    fs::remove_file(ben.vault.root().join("empty.md")).unwrap();
    fs::rename(ben.vault.root().join("Twin.md"), ben.vault.root().join("twIn.md")).unwrap();
    ben.vault.write("Plan.md", "# Plan\r\nNew.\r\n");
    let sent = ben.sync(&server);
    assert_eq!(list(&sent, "removed_there"), ["Twin.md", "a/b/c/deep.md", "empty.md"]);
    assert_eq!(list(&sent, "sent"), ["Plan.md", "a/Shallow.md", "twIn.md"]);
    call(&server, "v", "write_note", &json!({ "title": "By an agent", "content": "agentic" }));
    let fetched = anna.sync(&server);
    assert_eq!(list(&fetched, "removed_here"), ["Twin.md", "a/b/c/deep.md", "empty.md"]);
    assert!(!anna.has("a/b"));
    ben.sync(&server);
    assert_eq!((ben.tree(), exported(home.path())), (anna.tree(), anna.tree()));
    // A file takes the name of a folder, and a folder that of a file.
    fs::remove_dir_all(anna.vault.root().join("a")).unwrap();
    anna.vault.write("a", "a file now");
    fs::remove_file(anna.vault.root().join("bytes.md")).unwrap();
    anna.vault.write("bytes.md/inner.md", "in a folder now");
    anna.sync(&server);
    ben.sync(&server);
    assert_eq!((ben.tree(), exported(home.path())), (anna.tree(), anna.tree()));
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn what_both_sides_changed_is_kept_on_both_sides() {
    let (_cluster, home, server) = served(&["v"], "", &[]);
    let files = [("Both.md", "old"), ("Gone here.md", "old"), ("Gone there.md", "old"), ("Gone.md", "old")];
    let (anna, ben) = (Person::new("Anna", &files), Person::new("Ben", &[]));
    anna.sync_with(&server, &["--adopt"]);
    ben.sync(&server);
    ben.vault.write("Both.md", "of Ben");
    ben.vault.write("Gone here.md", "changed by Ben");
    ben.vault.remove("Gone there.md");
    ben.vault.remove("Gone.md");
    ben.vault.write("New.md", "new, of Ben");
    ben.vault.write("dir", "a file of Ben");
    ben.vault.write(".obsidian/app.json", "{\"ben\": 1}");
    ben.sync(&server);
    anna.vault.write("Both.md", "of Anna");
    anna.vault.remove("Gone here.md");
    anna.vault.write("Gone there.md", "changed by Anna");
    anna.vault.remove("Gone.md");
    anna.vault.write("New.md", "new, of Anna");
    anna.vault.write("dir/Note.md", "in a folder of Anna");
    anna.vault.write(".obsidian/app.json", "{\"anna\": 1}");
    // A dry run says the same, and does nothing.
    let before = anna.tree();
    let would = anna.sync_with(&server, &["--dry-run"]);
    assert_eq!((anna.tree(), &would["applied"]), (before, &json!(false)));
    let did = anna.sync(&server);
    assert_eq!(would["conflicts"], did["conflicts"]);
    let copy = |path: &str, copy: &str| json!({ "path": path, "copy": copy.replace("MARK", MARK) });
    let expected = json!([
        copy(".obsidian/app.json", ".obsidian/app MARK.json"),
        copy("Both.md", "Both MARK.md"),
        copy("New.md", "New MARK.md"),
        copy("dir/Note.md", "dir MARK/Note.md"),
    ]);
    assert_eq!(did["conflicts"], expected);
    ben.sync(&server);
    for person in [&anna, &ben] {
        let read = |path: &str| person.vault.read(&path.replace("MARK", MARK));
        assert_eq!((read("Both.md"), read("Both MARK.md")), ("of Ben".into(), "of Anna".into()));
        assert_eq!((read("New.md"), read("New MARK.md")), ("new, of Ben".into(), "new, of Anna".into()));
        assert_eq!(read("Gone here.md"), "changed by Ben");
        assert_eq!(read("Gone there.md"), "changed by Anna");
        assert_eq!(
            (read("dir"), read("dir MARK/Note.md")),
            ("a file of Ben".into(), "in a folder of Anna".into())
        );
        assert_eq!(read(".obsidian/app.json"), "{\"ben\": 1}");
        assert!(!person.has("Gone.md"));
    }
    // A conflict copy of settings stays where it was made.
    let aside = format!(".obsidian/app {MARK}.json");
    assert_eq!(anna.vault.read(&aside), "{\"anna\": 1}");
    let mut of_anna = anna.tree();
    of_anna.remove(&aside).unwrap();
    assert_eq!((ben.tree(), exported(home.path())), (of_anna.clone(), of_anna));
    // `conflicts` knows the copies.
    let listed = stdout(&anna.vault.run(&["conflicts", "--json"]));
    assert!(listed.contains(&format!("Both {MARK}.md")) && listed.contains("sidenote sync"), "{listed}");
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn the_first_time_a_folder_with_files_needs_a_choice() {
    let (_cluster, home, server) = served(&["v"], "", &[]);
    let first = Person::new("Ben", &[("Same.md", "same"), ("Other.md", "of the team")]);
    first.sync_with(&server, &["--adopt"]);
    let files = [("Same.md", "same"), ("Other.md", "of Anna"), ("Own.md", "own")];
    let anna = Person::new("Anna", &files);
    let before = anna.tree();
    let refused = anna.run(&server, &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let (shown, said) = (stdout(&refused), stderr(&refused));
    assert!(shown.contains("to the vault: Own.md") && shown.contains("conflict: Other.md"), "{shown}");
    assert!(said.contains("--adopt") && said.contains("--replace"), "{said}");
    assert_eq!((anna.tree(), exported(home.path())), (before.clone(), first.tree()));
    assert!(!anna.has(".sidenote/local/sync.json"));
    // A folder whose files the vault has as well needs none.
    let same = Person::new("Clara", &[("Same.md", "same")]);
    assert_eq!(list(&same.sync(&server), "fetched"), ["Other.md"]);
    let replaced = anna.sync_with(&server, &["--replace"]);
    assert_eq!(
        (list(&replaced, "removed_here"), list(&replaced, "fetched")),
        (vec!["Own.md".into()], vec!["Other.md".into()])
    );
    assert_eq!((anna.tree(), exported(home.path())), (first.tree(), first.tree()));
    // What was replaced can be had back, and is a change like any other then.
    let undone = anna.vault.run(&["undo"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(anna.tree(), before);
    let sent = anna.sync(&server);
    assert_eq!(list(&sent, "sent"), ["Other.md", "Own.md"]);
    let adopted = Person::new("Dora", &[("Other.md", "of Dora")]).sync_with(&server, &["--adopt"]);
    assert_eq!(adopted["conflicts"][0]["path"], "Other.md");
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn refusals_say_what_to_do() {
    let home = TempDir::new().unwrap();
    let token = home.path().join("token");
    let (_cluster, _home, server) =
        served(&["v"], "max_file_mb = 6\n", &["--token-file", token.to_str().unwrap()]);
    let anna = Person::new("Anna", &[]);
    let check = |args: &[&str], code: i32, said: &str| {
        let done = anna.run(&server, args);
        assert_eq!(done.status.code(), Some(code), "{}", stderr(&done));
        assert!(stderr(&done).contains(said), "{said:?} is not in {:?}", stderr(&done));
    };
    check(&[], 2, "give --token-file FILE");
    let wrong = home.path().join("wrong");
    fs::write(&wrong, "a wrong token of sixteen characters\n").unwrap();
    set_mode(&wrong, 0o600);
    check(&["--token-file", wrong.to_str().unwrap()], 2, "does not accept the token");
    set_mode(&wrong, 0o644);
    if cfg!(unix) {
        check(&["--token-file", wrong.to_str().unwrap()], 2, "chmod 600");
    }
    let with_token = ["--token-file", token.to_str().unwrap()];
    check(&[&with_token[..], &["--watch", "--dry-run"]].concat(), 2, "exclude each other");
    anna.sync_with(&server, &with_token);
    let at = |url: &str| {
        let mut command = Command::new(program());
        clean_env(&mut command, home.path()).args(["sync", url, "--vault"]).arg(anna.vault.root());
        let done = command.args(with_token).output().unwrap();
        (done.status.code(), stderr(&done))
    };
    let other = url(&server).replace("/v/v", "/v/nobody");
    assert_eq!(at(&other).0, Some(3), "{}", at(&other).1);
    let cases = [
        ("http://notes.example/v/x", "use https://"),
        ("notes.example", "write it as https://notes.example/v/NAME"),
        ("https://notes.example/", "write it as https://notes.example/v/NAME"),
        ("ftp://notes.example/v/x", "write it as https://notes.example/v/NAME"),
        ("https://anna@notes.example/v/x", "write it as https://notes.example/v/NAME"),
    ];
    assert_eq!(cases.len(), 5);
    for (url, said) in cases {
        let (code, error) = at(url);
        assert!(code == Some(2) && error.contains(said), "{url}: {error}");
    }
    let away = at("http://127.0.0.1:9/v/v");
    assert!(away.0 == Some(6) && away.1.contains("cannot be reached"), "{away:?}");
    // A file beyond the ordinary limit of requests is sent alone; one beyond the limit of the team stays here.
    anna.vault.write("large.bin", vec![7; 5_500_000]);
    anna.vault.write("huge.bin", vec![7; 6_500_000]);
    anna.vault.write("CON.md", "a device");
    anna.vault.write("small.md", "small");
    let sent = anna.sync_with(&server, &with_token);
    assert_eq!(list(&sent, "sent"), ["large.bin", "small.md"], "{sent}");
    let left: Vec<&str> =
        sent["left_out"].as_array().unwrap().iter().map(|l| l["path"].as_str().unwrap()).collect();
    assert_eq!(left, ["CON.md", "huge.bin"]);
    let ben = Person::new("Ben", &[]);
    ben.sync_with(&server, &with_token);
    assert_eq!(ben.tree()["large.bin"], anna.tree()["large.bin"]);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn the_addresses_refuse_what_is_no_commit() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    call(&server, "v", "write_note", &json!({ "title": "A", "content": "alpha" }));
    let hash = |text: &str| sidenote::markdown::edit::ContentHash::of(text.as_bytes()).to_string();
    let commit = |operation: &str, files: &str, contents: &str| {
        let body = format!("{{\"operation\":{operation:?},\"files\":{files}}}\n{contents}");
        let reply = server.send("POST", "/v/v/commit", &[], &body);
        (reply.status, reply.text)
    };
    let file = |path: &str, text: &str| {
        format!("[{{\"path\":{path:?},\"content\":[\"{}\",{}]}}]", hash(text), text.len())
    };
    let cases = [
        ("../x.md", 400),
        ("/x.md", 400),
        ("a/../../x.md", 400),
        (".sidenote/index/x", 400),
        (".sidenote/records/x.jsonl", 400),
        (".obsidian/plugins/x/main.js", 400),
        (".git/config", 400),
        ("a\\\\b.md", 400),
        ("c:x.md", 400),
        ("nul.md", 400),
        ("x//y.md", 400),
        ("ok.md", 200),
    ];
    assert_eq!(cases.len(), 12);
    for (path, status) in cases {
        let (got, text) = commit(&format!("of {path}"), &file(path, "x"), "x");
        assert_eq!(got, status, "{path}: {text}");
    }
    assert_eq!(commit("1", &file("short.md", "xyz"), "x").0, 400);
    assert_eq!(commit("2", &file("long.md", "x"), "xyz").0, 400);
    assert_eq!(commit("3", &file("wrong.md", "x"), "y").0, 400);
    assert_eq!(commit("4", "[]", "").0, 400);
    // All conflicting files are named, and nothing is changed.
    let two = format!(
        "[{{\"path\":\"A.md\"}},{{\"path\":\"B.md\",\"base\":\"{0}\",\"content\":[\"{0}\",1]}},{{\"path\":\"new.md\",\"content\":[\"{1}\",1]}}]",
        hash("b"),
        hash("n")
    );
    let two = two.replace(&format!("[\"{}\",1]", hash("b")), &format!("[\"{}\",1]", hash("c")));
    let (status, text) = commit("5", &two, "cn");
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, told["conflicts"].as_array().unwrap().len()), (409, 2), "{text}");
    let changes = server.send("GET", "/v/v/changes", &[], "").text;
    assert!(!changes.contains("new.md") && changes.contains("ok.md"), "{changes}");
    let head: Value =
        serde_json::from_str(changes.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    assert_eq!((head["is_full"].as_bool(), head["files"].as_u64()), (Some(true), Some(2)));
    // A content is given as long as a file has it.
    let blob = |text: &str| server.send("GET", &format!("/v/v/blob/{}", hash(text)), &[], "");
    assert_eq!((blob("x").status, blob("x").text.as_str(), blob("none").status), (200, "x", 404));
    assert_eq!(server.send("GET", "/v/v/blob/xyz", &[], "").status, 400);
    let removal = format!("[{{\"path\":\"ok.md\",\"base\":\"{}\"}}]", hash("x"));
    assert_eq!(commit("6", &removal, "").0, 200);
    assert_eq!(blob("x").status, 404);
    // The same operation again is done already, whatever the file has now.
    assert_eq!(commit("of ok.md", &file("ok.md", "x"), "x").0, 200);
    assert!(!server.send("GET", "/v/v/changes", &[], "").text.contains("ok.md"));
    // A folder that did not hear whether its commit was carried out asks.
    for (operation, is_done) in [("6", true), ("of%20ok.md", true), ("5", false), ("7", false)] {
        let changes = server.send("GET", &format!("/v/v/changes?operation={operation}"), &[], "").text;
        let head: Value =
            serde_json::from_str(changes.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
        assert_eq!(head["is_done"], is_done, "{operation}: {changes}");
    }
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_vault_that_went_back_loses_nothing_of_the_folders() {
    let (cluster, home, server) = served(&["v"], "", &[]);
    let anna = Person::new("Anna", &[("Kept.md", "one"), ("Removed later.md", "gone again")]);
    anna.sync_with(&server, &["--adopt"]);
    cluster.dump_and_restore("older");
    anna.vault.write("Kept.md", "two");
    anna.vault.write("New.md", "after the dump");
    anna.vault.remove("Removed later.md");
    anna.sync(&server);
    server.stop();
    // The service goes on with the older database.
    let older = TempDir::new().unwrap();
    let server = serve_at(&cluster.app_of("older"), older.path(), "", &[]);
    let back = anna.sync(&server);
    assert_eq!(list(&back, "sent"), [format!("Kept {MARK}.md"), "New.md".to_owned()], "{back}");
    assert_eq!(list(&back, "fetched"), ["Removed later.md"]);
    assert_eq!(
        (anna.vault.read("Kept.md"), anna.vault.read(&format!("Kept {MARK}.md"))),
        ("one".into(), "two".into())
    );
    assert_eq!(anna.tree(), exported(older.path()));
    drop(home);
    server.stop();
}

/// A running `sync --watch`, whose lines are read as they come.
struct Watching {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<Value>,
}

impl Watching {
    fn start(person: &Person, server: &Server) -> Self {
        let mut command = person.command(server, &["--watch", "--json", "--adopt"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                drop(sender.send(serde_json::from_str(&line).unwrap()));
            }
        });
        Self { child, lines }
    }

    /// Waits for a line about an event.
    #[track_caller]
    fn hear(&self, event: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(crate::support::LIMIT).expect(event);
            if line["event"] == event {
                return line;
            }
        }
    }

    /// Ends the process without a chance to clean up.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(mut self) {
        terminate(self.child.id());
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // A failed test leaves no process running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[cfg(unix)]
#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn watched_folders_follow_each_other_and_survive_the_loss_of_the_service() {
    let (cluster, home, server) = served(&["v"], "lock_s = 2\nstale_s = 0\n", &[]);
    let (anna, ben) = (Person::new("Anna", &[("Start.md", "start")]), Person::new("Ben", &[]));
    let of_anna = Watching::start(&anna, &server);
    of_anna.hear("synchronised");
    let of_ben = Watching::start(&ben, &server);
    of_ben.hear("synchronised");
    assert_eq!(ben.tree(), anna.tree());
    // Another process must not interfere.
    let refused = anna.run(&server, &[]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr(&refused));
    anna.vault.write("folder/By Anna.md", "from Anna");
    until("Ben has the note", || ben.has("folder/By Anna.md"));
    ben.vault.write("By Ben.md", "from Ben");
    call(&server, "v", "write_note", &json!({ "title": "By an agent", "content": "agentic" }));
    until("Anna has both", || anna.has("By Ben.md") && anna.has("By an agent.md"));
    until("Ben has the agent's", || ben.has("By an agent.md"));
    fs::remove_dir_all(anna.vault.root().join("folder")).unwrap();
    until("it is removed there", || !ben.has("folder"));
    cluster.stop();
    anna.vault.write("Offline.md", "written without the service");
    of_anna.hear("lost");
    of_ben.hear("lost");
    cluster.start();
    of_anna.hear("found");
    until("Ben has what was written meanwhile", || ben.has("Offline.md"));
    of_anna.stop();
    of_ben.stop();
    assert_eq!((ben.tree(), exported(home.path())), (anna.tree(), anna.tree()));
    server.stop();
}

#[cfg(unix)]
#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn what_is_left_out_is_told_once_while_watching() {
    let (_cluster, _home, server) = served(&["v"], "max_file_mb = 1\n", &[]);
    let anna = Person::new("Anna", &[("Start.md", "start")]);
    anna.vault.write("a:b.md", "a name that not every computer can have");
    let watching = Watching::start(&anna, &server);
    let left_out = |line: &Value| {
        let left_out = line["left_out"].as_array().unwrap().clone();
        left_out.iter().map(|left| left["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(left_out(&watching.hear("synchronised")), ["a:b.md"]);
    for at in 0..3 {
        anna.vault.write(&format!("Note {at}.md"), "more");
        let line = watching.hear("synchronised");
        assert_eq!((list(&line, "sent"), left_out(&line)), (vec![format!("Note {at}.md")], vec![]), "{line}");
    }
    // What is new is told.
    anna.vault.write("large.md", "x".repeat(1_100_000));
    assert_eq!(left_out(&watching.hear("synchronised")), ["large.md"]);
    watching.stop();
}

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.roll(items.len())) }
    }
}

/// What was written, and which lines somebody removed who had seen them.
#[derive(Default)]
struct Written {
    lines: BTreeSet<String>,
    removed: BTreeSet<String>,
    count: usize,
}

impl Written {
    fn line(&mut self, who: &str) -> String {
        self.count += 1;
        let line = format!("line {} of {who}.", self.count);
        self.lines.insert(line.clone());
        line
    }

    fn remove(&mut self, text: &str) {
        self.removed.extend(text.lines().map(str::to_owned));
    }

    /// Checks that each line is in some file, unless somebody removed it who had seen it.
    #[track_caller]
    fn check_none_lost(&self, tree: &BTreeMap<String, Vec<u8>>) {
        let texts: Vec<String> =
            tree.values().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).collect();
        let there: BTreeSet<&str> = texts.iter().flat_map(|text| text.lines()).collect();
        let is_lost = |line: &&String| !there.contains(line.as_str()) && !self.removed.contains(*line);
        let lost: Vec<&String> = self.lines.iter().filter(is_lost).collect();
        assert_eq!(lost, Vec::<&String>::new());
    }
}

/// Lists the notes of a folder.
fn notes(root: &Path) -> Vec<PathBuf> {
    let is_note = |file: &PathBuf| file.extension().is_some_and(|end| end == "md");
    files_below(root)
        .into_iter()
        .filter(|file| is_note(file) && !file.starts_with(root.join(".trash")))
        .collect()
}

/// Changes a folder at random.
fn disturb(person: &Person, dice: &mut Dice, written: &mut Written) {
    let root = person.vault.root();
    let present = notes(root);
    let names = ["Note", "note", "Plan", "\u{dc}ber", "U\u{308}ber", "x"];
    let folders = ["", "a/", "a/b/", "Plan/"];
    let new_path = |dice: &mut Dice| {
        let (folder, name) = (folders[dice.roll(folders.len())], names[dice.roll(names.len())]);
        root.join(format!("{folder}{name} {}.md", dice.roll(4)))
    };
    match (dice.roll(8), dice.pick(&present).cloned()) {
        (0..=2, _) | (_, None) => {
            let path = new_path(dice);
            let line = written.line(person.name);
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{before}{line}\n")).unwrap();
        }
        (3..=5, Some(path)) => {
            let line = written.line(person.name);
            let before = fs::read_to_string(&path).unwrap();
            fs::write(path, format!("{before}{line}\n")).unwrap();
        }
        (6, Some(path)) => {
            written.remove(&fs::read_to_string(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
        (_, Some(path)) => {
            let to = new_path(dice);
            if !to.exists() {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::rename(path, to).unwrap();
            }
        }
    }
}

/// Lets two people and an agent change one vault at random, kills synchronisations at random steps, and checks that folders
/// and vault are equal at the end and no line is lost.
fn check_soak(seed: u64, until_ended: impl Fn(usize) -> bool) {
    let (cluster, home, server) = served(&["v"], "", &[]);
    let mut dice = Dice(seed);
    let mut written = Written::default();
    let (anna, ben) = (Person::new("Anna", &[]), Person::new("Ben", &[]));
    let (mut kills, mut runs, mut conflicts, mut round) = (0, 0, 0, 0);
    while !until_ended(round) {
        round += 1;
        for _ in 0..dice.roll(4) {
            let person = if dice.roll(2) == 0 { &anna } else { &ben };
            disturb(person, &mut dice, &mut written);
        }
        if dice.roll(3) == 0 {
            let line = written.line("the agent");
            let title = format!("Note {}", dice.roll(1000) + 10);
            let note = json!({ "title": title, "content": line });
            if post(&server, "v", "write_note", &note).json()["result"]["isError"] != false {
                // There is a note of this name.
                written.lines.remove(&line);
            }
            let found = call(&server, "v", "search_notes", &json!({ "query": "line", "limit": 1 }));
            if let Some(note) = found["results"][0]["path"].as_str() {
                let line = written.line("the agent");
                let edit = json!({ "note": note, "action": "append", "text": line });
                call(&server, "v", "edit_note", &edit);
            }
        }
        for person in [&anna, &ben] {
            if dice.roll(3) == 0 {
                continue;
            }
            runs += 1;
            let mut command = person.command(&server, &["--json", "--adopt"]);
            if dice.roll(2) == 0 {
                command.env("SIDENOTE_FAILPOINT", (1 + dice.roll(60)).to_string());
            }
            let done = command.output().unwrap();
            if was_killed(done.status) {
                kills += 1;
                continue;
            }
            assert!(done.status.success(), "{}", stderr(&done));
            let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
            conflicts += reply["conflicts"].as_array().unwrap().len();
        }
    }
    for _ in 0..3 {
        anna.sync_with(&server, &["--adopt"]);
        ben.sync_with(&server, &["--adopt"]);
    }
    let tree = anna.tree();
    assert_eq!(ben.tree(), tree, "seed {seed}");
    assert_eq!(exported(home.path()), tree, "seed {seed}");
    let database = Database::new(&cluster.app()).unwrap();
    assert_eq!(team::check(&database, "v").unwrap().problems, [""; 0]);
    say(&format!(
        "seed {seed}: {round} rounds, {runs} runs, {kills} kills, {conflicts} conflict copies, {} lines, {} files",
        written.lines.len(),
        tree.len()
    ));
    written.check_none_lost(&tree);
    assert!(kills > 0 && conflicts > 0, "seed {seed}");
    server.stop();
}

/// Says how long random tests run: so many rounds, or until `SIDENOTE_TEST_SYNC_SECONDS` have passed.
fn ends_after(rounds: usize) -> impl Fn(usize) -> bool {
    let seconds = env_number("SIDENOTE_TEST_SYNC_SECONDS", 0);
    let end = Instant::now() + Duration::from_secs(u64::try_from(seconds).unwrap());
    move |round| if seconds == 0 { round >= rounds } else { Instant::now() >= end }
}

fn seed() -> u64 {
    u64::try_from(env_number("SIDENOTE_TEST_SEED", 20_261_123)).unwrap()
}

/// Changes notes of a person at random. Nobody else changes these, so no editor overwrites what it has not seen; new notes
/// can have a name that the other person gives, too.
fn disturb_own(person: &Person, dice: &mut Dice, written: &mut Written) {
    let root = person.vault.root();
    let own: Vec<PathBuf> =
        notes(root).into_iter().filter(|path| path.to_str().unwrap().contains(person.name)).collect();
    let own: Vec<&PathBuf> =
        own.iter().filter(|path| !path.to_str().unwrap().contains("(conflict")).collect();
    let line = written.line(person.name);
    match (dice.roll(5), dice.pick(&own)) {
        (0, Some(path)) => {
            written.lines.remove(&line);
            written.remove(&fs::read_to_string(path).unwrap());
            fs::remove_file(path).unwrap();
        }
        (1, Some(path)) => {
            written.lines.remove(&line);
            fs::create_dir_all(root.join("moved")).unwrap();
            fs::rename(path, root.join(format!("moved/{} {}.md", person.name, written.count))).unwrap();
        }
        (2, Some(path)) => {
            let text = fs::read_to_string(path).unwrap();
            person.vault.write(".new", format!("{text}{line}\n"));
            fs::rename(root.join(".new"), path).unwrap();
        }
        (choice, _) => {
            let name = if choice == 3 { "Both" } else { person.name };
            let path = root.join(format!("{name} {}.md", dice.roll(1_000)));
            person.vault.write(".new", format!("{line}\n"));
            // Another note of this name stays.
            if fs::hard_link(root.join(".new"), path).is_err() {
                written.lines.remove(&line);
            }
            person.vault.remove(".new");
        }
    }
}

#[cfg(unix)]
#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn watched_folders_lose_no_line_when_the_watching_processes_are_killed() {
    let is_over = ends_after(6);
    let (_cluster, home, server) = served(&["v"], "", &[]);
    let (mut dice, mut written) = (Dice(seed()), Written::default());
    let people = [Person::new("Anna", &[]), Person::new("Ben", &[])];
    let mut watching = [Watching::start(&people[0], &server), Watching::start(&people[1], &server)];
    let (mut round, mut kills) = (0, 0);
    while !is_over(round) {
        round += 1;
        for _ in 0..4 {
            disturb_own(&people[dice.roll(2)], &mut dice, &mut written);
        }
        // Both give a new note the same name.
        for person in &people {
            let line = written.line(person.name);
            person.vault.write(&format!("Round {round}.md"), line + "\n");
        }
        if round % 2 == 0 {
            let who = dice.roll(2);
            watching[who].kill();
            watching[who] = Watching::start(&people[who], &server);
            kills += 1;
        }
        let (from, to) = if dice.roll(2) == 0 { (0, 1) } else { (1, 0) };
        let mark = format!("Mark {round}.md");
        people[from].vault.write(&mark, written.line("the mark"));
        until("the other folder has the mark", || people[to].has(&mark));
    }
    let [anna, ben] = watching;
    anna.stop();
    ben.stop();
    for person in people.iter().chain(&people) {
        person.sync(&server);
    }
    let tree = people[0].tree();
    assert_eq!((people[1].tree(), exported(home.path())), (tree.clone(), tree.clone()));
    let conflicts = tree.keys().filter(|path| path.contains("(conflict")).count();
    say(&format!("{round} rounds, {kills} kills, {conflicts} conflict copies, {} files", tree.len()));
    written.check_none_lost(&tree);
    assert!(kills > 0 && conflicts > 0);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn random_changes_and_kills_lose_no_line() {
    check_soak(seed(), ends_after(40));
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_conflict_copy_is_merged_by_the_version_of_the_last_synchronisation() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    let text =
        |first: &str, last: &str| format!("# Plan\n\n{first}\n\nIn between.\n\nStill there.\n\n{last}\n");
    let (anna, ben) = (Person::new("Anna", &[("Plan.md", &text("one", "two"))]), Person::new("Ben", &[]));
    anna.sync_with(&server, &["--adopt"]);
    ben.sync(&server);
    // Several versions pass before the two meet, none of which a folder or the vault still has.
    for at in 0..3 {
        anna.vault.write("Plan.md", text(&format!("one {at}"), "two"));
        anna.sync(&server);
        ben.sync(&server);
    }
    ben.vault.write("Plan.md", text("one of Ben", "two"));
    ben.sync(&server);
    anna.vault.write("Plan.md", text("one 2", "two of Anna"));
    assert_eq!(list(&anna.sync(&server), "sent"), [format!("Plan {MARK}.md")]);
    let merge = |person: &Person| {
        let mut command = Command::new(program());
        clean_env(&mut command, &person.vault.root().join(".home")).env("SIDENOTE_EMBED_PROVIDER", "none");
        command.args(["conflicts", "merge", "Plan", "--vault"]).arg(person.vault.root()).output().unwrap()
    };
    // Where the copy was not made, nothing tells the common version, and the command says so.
    ben.sync(&server);
    let refused = merge(&ben);
    assert_eq!(refused.status.code(), Some(8), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("no common ancestor"), "{}", stderr(&refused));
    let merged = merge(&anna);
    assert_eq!(merged.status.code(), Some(0), "{}{}", stdout(&merged), stderr(&merged));
    assert!(stdout(&merged).contains("the last synchronisation"), "{}", stdout(&merged));
    assert_eq!(anna.tree()["Plan.md"], text("one of Ben", "two of Anna").into_bytes());
    assert!(!anna.has(&format!("Plan {MARK}.md")));
    anna.sync(&server);
    ben.sync(&server);
    assert_eq!(ben.tree(), anna.tree());
    assert_eq!(fs::read_dir(anna.vault.root().join(".sidenote/local/bases")).unwrap().count(), 0);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn links_that_a_removal_leaves_broken_are_named() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    let files = [
        ("Boat plan.md", "# Boat\n"),
        ("Other.md", "first line\nsee [[boat plan#Boat]] and [x](Boat%20plan.md), not [[Nowhere]]\n"),
        ("Apart.md", "The boat plan is a word here.\n"),
    ];
    let (anna, ben) = (Person::new("Anna", &files), Person::new("Ben", &[]));
    assert_eq!(anna.sync_with(&server, &["--adopt"])["broken_links"], json!([]));
    ben.sync(&server);
    fs::rename(ben.vault.root().join("Boat plan.md"), ben.vault.root().join("Ship plan.md")).unwrap();
    let broken = json!([
        { "path": "Other.md", "line": 2, "target": "Boat plan.md" },
        { "path": "Other.md", "line": 2, "target": "boat plan#Boat" },
    ]);
    let sorted = |reply: &Value| {
        let mut links = reply["broken_links"].as_array().unwrap().clone();
        links.sort_by_key(|link| link["target"].to_string());
        json!(links)
    };
    // Whoever removed the file is told, and whoever gets the removal.
    assert_eq!(sorted(&ben.sync(&server)), broken);
    let fetched = anna.run(&server, &[]);
    let told = stdout(&fetched);
    assert!(
        told.contains("broken link: Other.md:2 leads to Boat plan.md") && told.contains("`sidenote repair`"),
        "{told}"
    );
    assert_eq!(anna.sync(&server)["broken_links"], json!([]));
}
