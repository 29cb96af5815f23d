//! Tests what an operator of a team sees: messages with what to do, the log of an outage, readiness, the audit, and vaults that
//! are restored and cleaned.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use sidenote::base::clock::Clock;
use sidenote::share::{Database, team};
use sidenote::store::{DeleteRequest, MoveRequest, Operation};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::proxy::Proxy;
use super::serving::{call, post, serve, serve_at, served};
use super::{Server, dump, note, rename, shared_tree, sidenote};
use crate::login::provider::{Answer, Provider};
use crate::support::{TestVault, clean_env, program, set_mode, stderr, stdout, tree, until};

/// A cluster with the settings of a team, and the commands of an operator.
struct Operator {
    cluster: Cluster,
    home: TempDir,
}

impl Operator {
    fn new() -> Self {
        Self::of(Cluster::new())
    }

    fn of(cluster: Cluster) -> Self {
        let operator = Self { cluster, home: TempDir::new().unwrap() };
        operator.configure(&operator.cluster.app());
        operator
    }

    fn configure(&self, address: &str) {
        let cache = self.home.path().join("cache");
        let text = format!("[team]\ndatabase = {address:?}\ncache = {:?}\n", cache.display().to_string());
        let config = self.home.path().join("team.toml");
        fs::write(&config, text).unwrap();
        set_mode(&config, 0o600);
    }

    /// Runs a command of `sidenote team`, and gives what it prints.
    #[track_caller]
    fn run(&self, args: &[&str], code: i32) -> String {
        let config = self.home.path().join("team.toml");
        let args = [&["team"], args, &["--config", config.to_str().unwrap()]].concat();
        let done = sidenote(self.home.path(), &args);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}{}", stdout(&done), stderr(&done));
        stdout(&done) + &stderr(&done)
    }
}

/// Checks that a text has each of some parts exactly once.
#[track_caller]
fn check_says_once(text: &str, parts: &[&str]) {
    for part in parts {
        assert_eq!(text.matches(part).count(), 1, "{part:?} in {text}");
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn the_audit_names_all_files_of_a_change() {
    let operator = Operator::new();
    operator.run(&["create", "v"], 0);
    let server = Server::new(&operator.cluster);
    let store = server.store();
    note(&store, "Hub", "# Hub\n");
    note(&store, "First", "See [[Hub]].");
    note(&store, "Second", "See [[Hub]].");
    rename(&store, "Hub", "Centre");
    let audit = operator.run(&["audit", "v"], 0);
    let line = audit.lines().find(|line| line.contains("Centre.md")).unwrap();
    check_says_once(line, &["Hub.md -> Centre.md", "First.md", "Second.md"]);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_dry_run_without_the_right_is_refused_as_the_command_itself() {
    let operator = Operator::new();
    operator.run(&["create", "v"], 0);
    let folder = TempDir::new().unwrap();
    let folder = folder.path().to_str().unwrap();
    let owner = operator.cluster.owner();
    let commands: [&[&str]; 7] = [
        &["grant", "v", "group:staff", "reader"],
        &["revoke", "v", "group:staff"],
        &["block", "group:staff"],
        &["unblock", "group:staff"],
        &["forget", "https://login.example#1"],
        &["restore", "v", folder],
        &["clean", "v"],
    ];
    for command in commands {
        let with = |more: &[&str], code| operator.run(&[command, more].concat(), code);
        for dry_run in [&["--dry-run"][..], &[]] {
            let refused = with(dry_run, 2);
            check_says_once(&refused, &["the role sidenote_app may not", "give --database ADDRESS"]);
        }
        // Nobody has a role yet that could be withdrawn.
        let code = if command[0] == "revoke" { 3 } else { 0 };
        with(&["--dry-run", "--database", &owner], code);
    }
    let refused = operator.run(&["init", "--dry-run"], 6);
    check_says_once(&refused, &["may not create the roles and tables", "a role that can create roles"]);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn errors_of_the_database_say_the_cause_once_and_what_to_do() {
    let operator = Operator::of(Cluster::bare());
    let app = operator.cluster.owner();
    let socket = operator.cluster.socket();
    let socket = socket.parent().unwrap().to_str().unwrap().replace('/', "%2F");
    let proxy = Proxy::start(&operator.cluster.socket());
    let cases: [(String, &[&str]); 8] = [
        (app.clone(), &["schema \"sidenote\" does not exist", "run `sidenote team init`"]),
        (app.replace("/notes?", "/nowhere?"), &["database \"nowhere\" does not exist", "createdb"]),
        (app.replace("postgres@", "nobody@"), &["role \"nobody\" does not exist", "pg_hba.conf"]),
        (
            format!("postgres://x@/notes?host={socket}&port=1"),
            &["No such file or directory", "see whether PostgreSQL runs at the socket"],
        ),
        ("postgres://x@127.0.0.1:1/notes".to_owned(), &["Connection refused", "at 127.0.0.1 port 1"]),
        (
            format!("{}?sslmode=require", proxy.address("postgres", "notes")),
            &["server does not support TLS", "turn TLS on in PostgreSQL"],
        ),
        ("postgres://x@/notes?host".to_owned(), &["is not valid", "postgres://USER@HOST/NAME"]),
        (
            format!("postgres://x@/notes?host={socket}&sslmode=verify-full&sslrootcert=/nowhere/root.pem"),
            &["/nowhere/root.pem", "correct sslrootcert"],
        ),
    ];
    for (address, parts) in cases {
        operator.configure(&address);
        let config = operator.home.path().join("team.toml");
        let done =
            sidenote(operator.home.path(), &["team", "check", "v", "--config", config.to_str().unwrap()]);
        let said = stdout(&done) + &stderr(&done);
        assert!(!done.status.success(), "{said}");
        check_says_once(&said, parts);
        assert!(!said.contains("error connecting to server"), "{said}");
    }
    // The role of servers before it has any right.
    let owner = operator.cluster.owner();
    Database::new(&owner).unwrap().init(false).unwrap();
    let mut client = postgres::Client::connect(&owner, postgres::NoTls).unwrap();
    client.batch_execute("create role stranger login").unwrap();
    operator.configure(&owner.replace("postgres@", "stranger@"));
    check_says_once(
        &operator.run(&["check", "v"], 6),
        &["permission denied for schema sidenote", "connect as sidenote_app to serve"],
    );
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn what_is_missing_or_taken_is_named_with_what_to_do() {
    let (cluster, home, server) = served(&["v"], "", &[]);
    let operator = Operator::of(cluster);
    let missing = operator.home.path().join("missing");
    let missing = missing.to_str().unwrap();
    let address = server.address().to_owned();
    fs::write(operator.home.path().join("file"), "").unwrap();
    call(&server, "v", "write_note", &json!({ "title": "Kept", "content": "heron" }));
    let empty = operator.home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let (empty, owner) = (empty.to_str().unwrap(), operator.cluster.owner());
    let cases: [(&[&str], i32, &[&str]); 5] = [
        (&["serve", "--http", &address], 6, &["cannot listen on", "another process listens there"]),
        (&["create", "w", "--from", missing], 3, &["/missing", "hint: "]),
        (&["restore", "v", missing, "--database", &owner], 3, &["/missing", "hint: "]),
        (
            &["restore", "v", empty, "--database", &owner],
            2,
            &["/empty has no files of a vault", "team export"],
        ),
        (&["serve", "a b"], 2, &["cannot be the name of a vault", "letters, digits"]),
    ];
    for (args, code, parts) in cases {
        check_says_once(&operator.run(args, code), parts);
    }
    let config = operator.home.path().join("nowhere.toml");
    let done = sidenote(operator.home.path(), &["team", "check", "v", "--config", config.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(3));
    check_says_once(&stderr(&done), &["nowhere.toml", "name the file with --config FILE"]);
    // A second server with the cache of the first one.
    let config = home.path().join("team.toml");
    let done = sidenote(
        home.path(),
        &["team", "serve", "--http", "127.0.0.1:0", "--config", config.to_str().unwrap()],
    );
    assert_eq!(done.status.code(), Some(5), "{}", stderr(&done));
    check_says_once(&stderr(&done), &["another server uses the folder", "a folder of its own in team.cache"]);
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn an_outage_is_a_line_when_it_begins_and_one_when_it_ends() {
    let (cluster, _home, server) = served(&["a", "b", "closed"], "lock_s = 2\n", &[]);
    for name in ["a", "b"] {
        call(&server, name, "write_note", &json!({ "title": "Before", "content": "alpha" }));
    }
    cluster.stop();
    for _ in 0..3 {
        assert_eq!(server.send("GET", "/ready", &[], "").status, 503);
        for name in ["a", "b"] {
            call(&server, name, "search_notes", &json!({ "query": "alpha" }));
            call(&server, name, "read_note", &json!({ "note": "Before" }));
            let refused = post(&server, name, "write_note", &json!({ "title": "Lost", "content": "x" }));
            assert_eq!(refused.text.matches("error connecting").count(), 0, "{}", refused.text);
        }
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        assert_eq!(server.post_to("/v/closed/mcp", &[], &list).status, 503);
    }
    cluster.start();
    call(&server, "a", "write_note", &json!({ "title": "After", "content": "gamma" }));
    assert_eq!(server.send("GET", "/ready", &[], "").status, 200);
    let log = server.stop();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    check_says_once(lines[0], &["the database cannot be reached", "changes fail, and reads are answered"]);
    assert!(lines[1].contains("the database can be reached again"), "{log}");
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_server_without_the_keys_of_its_issuer_is_not_ready_and_says_so() {
    let (cluster, home, provider) = (Cluster::new(), TempDir::new().unwrap(), Provider::start());
    let login = format!("[login]\nissuer = {:?}\nurl = \"https://notes.example\"\n", provider.issuer);
    provider.set(Answer::Nothing);
    let server = serve(&cluster, home.path(), &login, &[]);
    for _ in 0..3 {
        let reply = server.send("GET", "/ready", &[], "");
        assert_eq!(reply.status, 503);
        check_says_once(&reply.text, &[&provider.issuer, "cannot be read"]);
    }
    // It is ready again as soon as the provider is back.
    provider.set(Answer::Keys);
    let back = std::time::Instant::now();
    until("the server is ready", || server.send("GET", "/ready", &[], "").status == 200);
    assert!(back.elapsed().as_secs() < 30, "{:?}", back.elapsed());
    let log = server.stop();
    assert_eq!(log.matches("nobody can log in").count(), 1, "{log}");
    let server = serve(&cluster, home.path(), &login, &[]);
    assert_eq!(server.send("GET", "/ready", &[], "").status, 200);
    // Keys that were read count on.
    provider.set(Answer::Nothing);
    assert_eq!(server.send("GET", "/ready", &[], "").status, 200);
    server.stop();
}

#[cfg(unix)]
#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_change_that_was_rolled_back_alarms_nobody() {
    use super::proxy::{Cut, Proxy};
    let (cluster, home) = (Cluster::new(), TempDir::new().unwrap());
    super::create(&cluster, None);
    let proxy = Proxy::start(&cluster.socket());
    let address = proxy.address("sidenote_app", "notes");
    let server = serve_at(&address, home.path(), "", &[]);
    call(&server, "v", "write_note", &json!({ "title": "Before", "content": "alpha" }));
    proxy.cut(Cut::Request);
    let refused = post(&server, "v", "write_note", &json!({ "title": "Lost", "content": "beta" }));
    assert_eq!((proxy.has_cut(), &refused.json()["result"]["isError"]), (true, &json!(true)));
    let mut log = server.stop();
    let server = serve_at(&address, home.path(), "", &[]);
    let found = call(&server, "v", "search_notes", &json!({ "query": "alpha" }));
    assert_eq!(found["results"][0]["path"], "Before.md");
    log += &server.stop();
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_vault_is_restored_from_a_folder_as_one_change() {
    let operator = Operator::new();
    let before = super::odd_vault();
    let owner = operator.cluster.owner();
    operator.run(&["create", "v", "--from", before.root().to_str().unwrap()], 0);
    let server = Server::new(&operator.cluster);
    let store = server.store();
    let copy = operator.home.path().join("copy");
    operator.run(&["export", "v", copy.to_str().unwrap()], 0);
    let expected = tree(&copy);
    note(&store, "Added", "It must go.");
    rename(&store, "Plan", "Schedule");
    let restore = |more: &[&str]| {
        let args = ["restore", "v", copy.to_str().unwrap(), "--database", &owner];
        operator.run(&[&args, more].concat(), 0)
    };
    check_says_once(
        &restore(&["--dry-run"]),
        &["written: Plan.md", "removed: Added.md", "nothing was changed"],
    );
    assert_eq!(super::paths(&store, "must go"), ["Added.md"]);
    check_says_once(&restore(&[]), &["written: Plan.md", "removed: Schedule.md", "v is restored"]);
    assert!(restore(&[]).contains("exactly the files of the folder already"));
    operator.run(&["check", "v"], 0);
    // The server that had it open, a new one and an export agree.
    assert_eq!(super::paths(&store, "must go"), [""; 0]);
    let again = operator.home.path().join("again");
    operator.run(&["export", "v", again.to_str().unwrap()], 0);
    assert_eq!(tree(&again), expected);
    assert_eq!(shared_tree(&server.files()), expected);
    assert_eq!(dump(&store), dump(&Server::new(&operator.cluster).store()));
    let audit: Vec<Value> = serde_json::from_str(&operator.run(&["audit", "v", "--json"], 0)).unwrap();
    let event = audit.last().unwrap();
    assert_eq!((&event["op"], &event["operator"]), (&json!("restore-vault"), &json!("postgres")));
    let files: Vec<&str> =
        event["files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str()).collect();
    assert!(["Added.md", "Plan.md", "Schedule.md"].iter().all(|path| files.contains(path)), "{files:?}");
    // A change like any other: it can be undone.
    store.index().refresh().unwrap();
    store.changes().undo(1, false).unwrap();
    assert_eq!(super::paths(&store, "must go"), ["Added.md"]);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn contents_that_only_old_changes_had_are_removed() {
    let operator = Operator::new();
    operator.run(&["create", "v"], 0);
    let owner = operator.cluster.owner();
    let server = Server::new(&operator.cluster);
    let store = server.store();
    for title in ["One", "Two"] {
        note(&store, title, &format!("{title} before."));
        rename(&store, title, &format!("{title} renamed"));
    }
    let request =
        MoveRequest { from: "One renamed".into(), to: "One".into(), in_place: true, ..Default::default() };
    store.changes().change(&Operation::Move(request), false).unwrap();
    let request = DeleteRequest { note: "Two renamed".to_owned(), permanent: true, ..Default::default() };
    store.changes().change(&Operation::Delete(request), false).unwrap();
    let mut client = postgres::Client::connect(&owner, postgres::NoTls).unwrap();
    let mut contents =
        || client.query_one("select count(*) from sidenote.blob", &[]).unwrap().get::<_, i64>(0);
    let all = contents();
    let mut other = postgres::Client::connect(&owner, postgres::NoTls).unwrap();
    let unneeded = "select count(*) from sidenote.blob b where not exists (select from sidenote.file f where f.hash = b.hash)";
    let unneeded = other.query_one(unneeded, &[]).unwrap().get::<_, i64>(0);
    assert!(unneeded > 0);
    let clean = |more: &[&str]| operator.run(&[&["clean", "v", "--database", &owner], more].concat(), 0);
    // The changes are of today, so their contents are needed.
    assert_eq!(clean(&["--dry-run"]), "v: nothing to remove\n");
    assert_eq!(clean(&[]), "v: nothing to remove\n");
    let would = clean(&["--days", "0", "--dry-run"]);
    assert!(
        would.contains(&format!("v: {unneeded} content")) && would.ends_with("would be removed\n"),
        "{would}"
    );
    assert_eq!(contents(), all);
    assert!(clean(&["--days", "0"]).contains(" removed; PostgreSQL uses the space again"));
    assert_eq!(contents(), all - unneeded);
    operator.run(&["check", "v"], 0);
    assert!(operator.run(&["audit", "v"], 0).contains("clean-vault"));
    // A new server can do without.
    let fresh = Server::new(&operator.cluster);
    assert_eq!(dump(&fresh.store()), dump(&store));
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_conflict_copy_names_the_account_where_no_variable_does() {
    let (_cluster, _home, server) = served(&["v"], "", &[]);
    let vault = TestVault::new(&[("Plan.md", "mine")]);
    call(&server, "v", "write_note", &json!({ "title": "Plan", "content": "theirs" }));
    let mut command = Command::new(program());
    let home = vault.root().join(".home");
    clean_env(&mut command, &home).args(["sync", &format!("http://{}/v/v", server.address())]);
    let done = command.arg("--vault").arg(vault.root()).arg("--adopt").output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    let copies: Vec<String> =
        tree(vault.root()).into_keys().filter(|path| path.contains("(conflict")).collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert!(!copies[0].contains("unnamed"), "{copies:?}");
    server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn an_answer_without_a_token_that_counts_says_what_to_do() {
    let (cluster, home, provider) = (Cluster::new(), TempDir::new().unwrap(), Provider::start());
    let database = Database::new(&cluster.app()).unwrap();
    team::create(&database, "a", None, 50_000_000, Clock::System.now(), false).unwrap();
    let login = format!("[login]\nissuer = {:?}\nurl = \"https://notes.example\"\n", provider.issuer);
    let server = serve(&cluster, home.path(), &login, &[]);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let endpoint = "https://notes.example/v/a/mcp";
    let token = |seconds: i64| {
        let now = crate::login::token::now();
        let token = crate::login::token::Token::new(&provider.issuer, endpoint, "anna", "notes:read");
        format!("Authorization: Bearer {}", token.claim("exp", now + seconds).sign())
    };
    let none = server.post_to("/v/a/mcp", &[], &list);
    assert_eq!(none.status, 401);
    check_says_once(
        &none.text,
        &["sidenote login https://notes.example/v/a`", "Authorization: Bearer TOKEN"],
    );
    assert!(none.text.contains(&provider.issuer), "{}", none.text);
    let old = server.post_to("/v/a/mcp", &[&token(-600)], &list);
    assert_eq!(old.status, 401);
    check_says_once(&old.text, &["it has expired", "sidenote login https://notes.example/v/a`"]);
    let metrics = server.send("GET", "/metrics", &[], "");
    assert_eq!((metrics.status, metrics.text.contains("starting the server with a token file")), (401, true));
    let log = server.stop();
    assert!(log.contains("it has expired: exp is 20"), "{log}");
}
