//! Tests the settings of a team's vaults: who changes them, which are refused, and vaults whose settings cannot be read.

use std::fs;

use serde_json::{Value, json};
use sidenote::share::Database;
use sidenote::store::Role;
use tempfile::TempDir;

use super::Server;
use super::cluster::Cluster;
use super::rights::{ALL, Team, call as message};
use super::serving::{call, post, serve, served};
use crate::http::Reply;
use crate::support::{SETTINGS, until};

const CONFIG: &str = ".sidenote/config.toml";
const APP: &str = ".obsidian/app.json";

/// Makes the body of a commit of one file. `base` is the content that the file has.
fn commit(path: &str, base: Option<&[u8]>, content: &[u8], operation: &str) -> Vec<u8> {
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let file = json!({ "path": path, "base": base.map(hash), "content": [hash(content), content.len()] });
    let head = json!({ "operation": operation, "files": [file] }).to_string();
    [head.as_bytes(), b"\n", content].concat()
}

/// A team with an admin and a writer, and settings of the vault that the admin has changed once.
struct WithSettings {
    team: Team,
}

impl WithSettings {
    fn new() -> Self {
        let team = Team::new(&["a"]);
        team.grant("a", "ada", Some(Role::Admin));
        team.grant("a", "will", Some(Role::Writer));
        let made = Self { team };
        let reply = made.commit(CONFIG, None, b"[memory]\nfolder = \"One\"\n");
        assert_eq!(reply.status, 200, "{}", reply.text);
        let reply =
            made.commit(CONFIG, Some(b"[memory]\nfolder = \"One\"\n"), b"[memory]\nfolder = \"Two\"\n");
        assert_eq!(reply.status, 200, "{}", reply.text);
        made
    }

    fn commit(&self, path: &str, base: Option<&[u8]>, content: &[u8]) -> Reply {
        let body = commit(path, base, content, &format!("{path} {}", blake3::hash(content).to_hex()));
        let token = format!("Authorization: Bearer {}", self.team.token("a", "ada", ALL).sign());
        self.team.server.send("POST", "/v/a/commit", &[&token], &body)
    }

    fn session(&self, who: &str, arguments: &Value) -> Value {
        self.team.ask("a", who, ALL, &message("session", arguments.clone())).json()["result"].clone()
    }

    /// Gives the hash of a file of the vault.
    fn hash(&self, path: &str) -> Option<String> {
        let token = format!("Authorization: Bearer {}", self.team.token("a", "ada", ALL).sign());
        let text = self.team.server.send("GET", "/v/a/changes", &[&token], "").text;
        let line = text.lines().find(|line| line.contains(&format!("{path:?}")))?.to_owned();
        Some(serde_json::from_str::<Value>(&line).unwrap().to_string())
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn an_undo_is_no_way_around_the_right_to_settings() {
    let vault = WithSettings::new();
    let team = &vault.team;
    let before = vault.hash(CONFIG);
    let refused = |arguments: Value| {
        let reply = vault.session("will", &arguments);
        let text = reply["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert!(
            reply["isError"] == true && text.contains(CONFIG) && text.contains("the role admin"),
            "{arguments}: {reply}"
        );
        assert_eq!(vault.hash(CONFIG), before, "{arguments}");
    };
    let audit = team.audit("a", &[]);
    let changes: Vec<&str> = audit
        .iter()
        .filter(|event| event["op"] == "sync")
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    assert_eq!(changes.len(), 2);
    refused(json!({ "action": "undo", "operation": changes[1] }));
    refused(json!({ "action": "undo" }));
    // What is a writer's own is undone; what comes before it is not.
    let wrote =
        team.ask("a", "will", ALL, &message("write_note", json!({ "title": "Own", "content": "own text" })));
    assert_eq!(wrote.json()["result"]["isError"], false, "{}", wrote.text);
    let own = vault.session("will", &json!({ "action": "undo" }));
    assert_eq!(own["isError"], false, "{own}");
    // The admin undoes the change, and a writer does not redo it.
    let undone = vault.session("ada", &json!({ "action": "undo", "operation": changes[1] }));
    assert_eq!(undone["isError"], false, "{undone}");
    let after = vault.hash(CONFIG);
    assert_ne!(after, before);
    let redo = vault.session("will", &json!({ "action": "redo" }));
    assert_eq!((&redo["isError"], vault.hash(CONFIG)), (&json!(true), after), "{redo}");
    let redo = vault.session("ada", &json!({ "action": "redo" }));
    assert_eq!((&redo["isError"], vault.hash(CONFIG)), (&json!(false), before), "{redo}");
    let refusals = team.audit("a", &["--who", "will@example.org"]);
    let refusals = refusals.iter().filter(|event| event["op"] == "refused" && event["tool"] == "session");
    assert_eq!(refusals.count(), 3);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn settings_that_no_server_could_read_are_refused() {
    let vault = WithSettings::new();
    let present = b"[memory]\nfolder = \"Two\"\n";
    let bad: [(&str, &[u8], &str); 8] = [
        (CONFIG, b"[serch]\nlimit = 1\n", "serch"),
        (CONFIG, b"[memory\n", "not valid TOML"),
        (CONFIG, b"[memory]\nfolder = 3\n", "memory.folder"),
        (CONFIG, b"[undo]\ndays = 3\n", "undo.days"),
        (CONFIG, b"[types.x]\nhalf_life_days = 0\nfloor = 1\n", "types"),
        (CONFIG, b"\xff\xfe", "not UTF-8"),
        (APP, b"{\"useMarkdownLinks\": tr", "not valid JSON"),
        (APP, b"[]", "not a JSON object"),
    ];
    let before = (vault.hash(CONFIG), vault.hash(APP));
    for (path, content, why) in bad {
        let base = (path == CONFIG).then_some(&present[..]);
        let reply = vault.commit(path, base, content);
        let is_said = reply.text.contains(path) && reply.text.contains(why);
        assert_eq!((reply.status, is_said), (400, true), "{why}: {}", reply.text);
        assert!(!reply.text.contains(vault.team.home.path().to_str().unwrap()), "{}", reply.text);
    }
    assert_eq!((vault.hash(CONFIG), vault.hash(APP)), before);
    // What Obsidian itself leaves is taken.
    let mut base: Option<&[u8]> = None;
    for content in [&b""[..], b"\xef\xbb\xbf{}", b"{\"newLinkFormat\": \"odd\"}"] {
        assert_eq!(vault.commit(APP, base, content).status, 200);
        base = Some(content);
    }
    // Nor does an operator store them.
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join(".sidenote")).unwrap();
    fs::write(folder.path().join(CONFIG), "[serch]\nlimit = 1\n").unwrap();
    let from = folder.path().to_str().unwrap();
    for dry_run in [&["--dry-run"][..], &[]] {
        let refused = vault.team.run(&[&["create", "b", "--from", from], dry_run].concat(), 2);
        assert!(refused.contains("serch"), "{refused}");
        let owner = vault.team.cluster.owner();
        let refused = vault.team.run(&[&["restore", "a", from, "--database", &owner], dry_run].concat(), 2);
        assert!(refused.contains("serch"), "{refused}");
    }
    assert_eq!(vault.hash(CONFIG), before.0);
}

/// Stores settings as a server did that had no check, or one with other settings.
fn store_unchecked(cluster: &Cluster, content: &[u8]) {
    let mut client = postgres::Client::connect(&cluster.owner(), postgres::NoTls).unwrap();
    let id = Database::new(&cluster.app()).unwrap().vault_id("v").unwrap().to_string();
    client.batch_execute(&format!("select set_config('sidenote.vault', '{id}', false)")).unwrap();
    let row = client.query_one("select line, id from sidenote.event order by gen desc limit 1", &[]).unwrap();
    let (line, event): (String, String) = (row.get(0), row.get(1));
    let file = serde_json::from_str::<Value>(&line).unwrap()["files"][0].clone();
    let hash = blake3::hash(content);
    // The id has the time of the event before, and another end.
    let end = if event.ends_with('0') { "1" } else { "0" };
    let new = format!("{}{end}", &event[..event.len() - 1]);
    let (before, after) = (file["before"].as_str().unwrap(), file["after"].as_str().unwrap());
    let line = line.replace(&event, &new).replace(after, &hash.to_hex()).replace(before, after);
    let bytes = hash.as_bytes().as_slice();
    client
        .execute(
            "insert into sidenote.blob select id, $1, $2 from sidenote.vault where head > 0",
            &[&bytes, &content],
        )
        .unwrap();
    client
        .execute("update sidenote.file set hash = $1, gen = gen + 1 where path = $2", &[&bytes, &CONFIG])
        .unwrap();
    client
        .execute(
            "insert into sidenote.event (vault, gen, id, at, op, line) select id, head + 1, $1, now(), 'sync', $2
            from sidenote.vault where head > 0",
            &[&new, &line],
        )
        .unwrap();
    client.execute("update sidenote.vault set head = head + 1 where head > 0", &[]).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_vault_with_bad_settings_is_served_with_the_last_good_ones() {
    let (cluster, _home, server) = served(&["v"], "", &[]);
    let (one, two, bad) =
        (&b"[memory]\nfolder = \"One\"\n"[..], &b"[memory]\nfolder = \"Two\"\n"[..], b"[serch]\nlimit = 1\n");
    let send = |server: &crate::http::Server, base: Option<&[u8]>, content: &[u8]| {
        // What was sent once is sent again as another operation.
        let operation = blake3::hash(&[base.unwrap_or_default(), content].concat()).to_hex();
        let body = commit(CONFIG, base, content, &operation);
        let reply = server.send("POST", "/v/v/commit", &[], &body);
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    send(&server, None, one);
    send(&server, Some(one), two);
    assert_eq!(server.send("GET", "/ready", &[], "").text, "ready\n");
    server.stop();
    store_unchecked(&cluster, bad);
    // A server with an empty cache finds them in the history of the vault.
    let fresh = Server::new(&cluster);
    assert_eq!(fresh.store().config().memory.folder, "Two");
    assert!(fresh.store().has_earlier_settings());
    let home = TempDir::new().unwrap();
    let server = serve(&cluster, home.path(), "warm = [\"v\"]\n", &[]);
    call(&server, "v", "write_note", &json!({ "title": "Note", "content": "text of a note" }));
    let ready = server.send("GET", "/ready", &[], "");
    assert_eq!(ready.status, 200);
    assert!(
        ready.text.contains("settings that cannot be read") && ready.text.contains(": 1;"),
        "{}",
        ready.text
    );
    let metrics = server.send("GET", "/metrics", &[], "").text;
    assert!(metrics.contains("\nsidenote_vaults_earlier_settings 1\n"), "{metrics}");
    // The repair is an ordinary change.
    send(&server, Some(bad), one);
    let log = server.stop();
    let told = log.lines().find(|line| line.contains("serch")).unwrap_or_default();
    assert!(told.contains(CONFIG) && told.contains("the last settings that can be read"), "{log}");
    let repaired = Server::new(&cluster);
    assert_eq!(repaired.store().config().memory.folder, "One");
    assert!(!repaired.store().has_earlier_settings());
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_server_that_can_open_no_vault_is_not_ready() {
    let (cluster, home, server) = served(&["v"], "", &[]);
    server.stop();
    // The settings of the server's own user are wrong, which no earlier ones of a vault cure.
    let folder = home.path().join(SETTINGS.trim_start_matches(".home/")).join("sidenote");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[serch]\nlimit = 1\n").unwrap();
    let server = serve(&cluster, home.path(), "warm = [\"v\"]\n", &[]);
    until("the vault was tried", || {
        server.send("GET", "/ready", &[], "").text
            == "vaults that cannot be opened: 1; the log of the server says why\n"
    });
    assert_eq!(server.send("GET", "/ready", &[], "").status, 503);
    assert_eq!(post(&server, "v", "list_notes", &json!({})).status, 503);
    let metrics = server.send("GET", "/metrics", &[], "").text;
    assert!(metrics.contains("\nsidenote_vaults_failing 1\n"), "{metrics}");
    assert!(server.stop().contains("serch"));
}
