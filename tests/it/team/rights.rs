//! Tests login and rights at a server of a team: who may do what, who sees what, and what is recorded of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidenote::base::clock::{Clock, Timestamp};
use sidenote::share::{Database, members, team};
use sidenote::store::Role;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::serving::serve;
use super::sidenote;
use crate::http::{Reply, Server};
use crate::login::provider::{Answer, Provider};
use crate::login::token::Token;
use crate::login::wrong::wrong_tokens;
use crate::support::{env_number, say, stderr, stdout, until};

const URL: &str = "https://notes.example";
pub(super) const ALL: &str = "notes:read notes:write notes:admin";
/// A word of the vault that others must never see.
const SECRET: &str = "quetzalcoatlus";

/// A server at which people log in, with vaults of which each has a note.
pub(super) struct Team {
    pub(super) server: Server,
    provider: Provider,
    pub(super) cluster: Cluster,
    pub(super) home: TempDir,
    /// The settings of login.
    pub(super) login: String,
    /// The folder of another server.
    second: TempDir,
}

impl Team {
    pub(super) fn new(vaults: &[&str]) -> Self {
        Self::with(vaults, "")
    }

    fn with(vaults: &[&str], more: &str) -> Self {
        let (cluster, home, provider) = (Cluster::new(), TempDir::new().unwrap(), Provider::start());
        let database = Database::new(&cluster.app()).unwrap();
        for name in vaults {
            let folder = TempDir::new().unwrap();
            fs::write(folder.path().join("Plan.md"), format!("# Plan\n{SECRET} of {name}\n")).unwrap();
            team::create(&database, name, Some(folder.path()), 50_000_000, Clock::System.now(), false)
                .unwrap();
        }
        let login =
            format!("[login]\nissuer = {:?}\nurl = {URL:?}\naudiences = [\"team\"]\n{more}", provider.issuer);
        let server = serve(&cluster, home.path(), &login, &[]);
        Self { server, provider, cluster, home, login, second: TempDir::new().unwrap() }
    }

    /// Starts another server of the same vaults.
    pub(super) fn second_server(&self) -> Server {
        serve(&self.cluster, self.second.path(), &self.login, &[])
    }

    pub(super) fn grant(&self, vault: &str, who: &str, role: Option<Role>) {
        let owner = Database::new(&self.cluster.owner()).unwrap();
        members::set_role(&owner, vault, &self.who(who), role, Clock::System.now(), false).unwrap();
    }

    fn block(&self, who: &str, blocked: bool) {
        let owner = Database::new(&self.cluster.owner()).unwrap();
        let reply = members::set_blocked(&owner, &self.who(who), blocked, Clock::System.now(), false);
        assert!(reply.unwrap().applied);
    }

    fn who(&self, who: &str) -> String {
        if who.starts_with("group:") { who.to_owned() } else { format!("{}#{who}", self.provider.issuer) }
    }

    pub(super) fn token(&self, vault: &str, subject: &str, scope: &str) -> Token {
        Token::new(&self.provider.issuer, &format!("{URL}/v/{vault}/mcp"), subject, scope)
    }

    /// Sends a message with a token for the vault.
    pub(super) fn ask(&self, vault: &str, subject: &str, scope: &str, message: &Value) -> Reply {
        self.ask_with(vault, &self.token(vault, subject, scope).sign(), &[], message)
    }

    fn ask_with(&self, vault: &str, token: &str, more: &[&str], message: &Value) -> Reply {
        let token = format!("Authorization: Bearer {token}");
        self.server.post_to(&format!("/v/{vault}/mcp"), &[&[token.as_str()], more].concat(), message)
    }

    fn call(&self, vault: &str, subject: &str, scope: &str, tool: &str, arguments: Value) -> Reply {
        self.ask(vault, subject, scope, &call(tool, arguments))
    }

    fn config(&self) -> PathBuf {
        self.home.path().join("team.toml")
    }

    /// Runs a command of `sidenote team`.
    #[track_caller]
    pub(super) fn run(&self, args: &[&str], code: i32) -> String {
        let config = self.config();
        let done =
            sidenote(self.home.path(), &[&["team"], args, &["--config", config.to_str().unwrap()]].concat());
        assert_eq!(done.status.code(), Some(code), "{args:?}: {}{}", stdout(&done), stderr(&done));
        stdout(&done) + &stderr(&done)
    }

    pub(super) fn audit(&self, vault: &str, more: &[&str]) -> Vec<Value> {
        let text = self.run(&[&["audit", vault, "--json"], more].concat(), 0);
        serde_json::from_str(&text).unwrap()
    }
}

pub(super) fn call(tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

pub(super) fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })
}

pub(super) fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } })
}

fn tools(reply: &Reply) -> Vec<String> {
    let tools = reply.json()["result"]["tools"].clone();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn write(title: &str) -> Value {
    json!({ "title": title, "content": format!("{title} text") })
}

#[track_caller]
fn check_done(reply: &Reply) {
    assert_eq!((reply.status, &reply.json()["result"]["isError"]), (200, &json!(false)), "{}", reply.text);
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn who_has_no_token_is_told_where_to_get_one_and_nothing_else() {
    let team = Team::new(&["a"]);
    let ask = |path: &str| team.server.post_to(path, &[], &list());
    for (name, other) in [("a", "a"), ("missing", "missing"), ("..%2Fx", "..%2Fx")] {
        let reply = ask(&format!("/v/{name}/mcp"));
        let metadata = format!("{URL}/.well-known/oauth-protected-resource/v/{other}/mcp");
        let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"notes:read\"");
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some(challenge.as_str())));
        let path = metadata.strip_prefix(URL).unwrap();
        let document = team.server.send("GET", path, &[], "");
        assert_eq!(
            (document.status, document.json()),
            (
                200,
                json!({
                    "resource": format!("{URL}/v/{other}/mcp"),
                    "authorization_servers": [team.provider.issuer],
                    "scopes_supported": ["notes:read", "notes:write", "notes:admin"],
                    "bearer_methods_supported": ["header"],
                })
            )
        );
    }
    // Whoever reaches the server by its public name is answered, and nobody by another one.
    let path = "/.well-known/oauth-protected-resource/v/a/mcp";
    assert_eq!(team.server.send("GET", path, &["Host: notes.example"], "").status, 200);
    assert_eq!(team.server.send("GET", path, &["Host: other.example"], "").status, 403);
    assert_eq!(team.server.send("GET", "/health", &[], "").status, 200);
    assert_eq!(team.server.send("GET", "/metrics", &[], "").status, 401);
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn every_wrong_token_gets_401_and_one_reason_in_the_log() {
    let team = Team::new(&["a"]);
    team.grant("a", "anna", Some(Role::Admin));
    let right = team.token("a", "anna", ALL).sign();
    assert_eq!(team.ask_with("a", &right, &[], &list()).status, 200);
    let wrong = wrong_tokens(&team.provider.issuer, &format!("{URL}/v/a/mcp"));
    assert!(wrong.len() >= 50);
    for case in &wrong {
        let reply = team.ask_with("a", &case.token, &[], &list());
        let challenge = reply.header("www-authenticate").unwrap_or_default().to_owned();
        assert_eq!(
            (reply.status, challenge.contains("error=\"invalid_token\"")),
            (401, true),
            "{}",
            case.what
        );
        assert!(!reply.text.contains(SECRET), "{}", case.what);
    }
    for at in 0..1_000 {
        let token = team.token("a", "anna", ALL).header("kid", format!("unknown {at}")).sign();
        assert_eq!(team.ask_with("a", &token, &[], &list()).status, 401);
    }
    // A token in the address, or one of two, does not count.
    let (first, second) = (format!("Authorization: Bearer {right}"), "Authorization: Bearer x".to_owned());
    let path = format!("/v/a/mcp?access_token={right}");
    assert_eq!(team.server.post_to(&path, &[], &list()).status, 401);
    assert_eq!(team.server.post_to("/v/a/mcp", &[&first, &second], &list()).status, 401);
    assert_eq!(team.provider.take_asked().len(), 2, "a token had keys fetched");
    let log = team.server.stop();
    let reasons: Vec<&str> = log.lines().filter(|line| line.contains("an access token is refused")).collect();
    assert_eq!(reasons.len(), wrong.len() + 1_000);
    for (case, line) in wrong.iter().zip(reasons) {
        assert!(line.contains(case.refusal.reason()), "{}: {line}", case.what);
    }
    for token in wrong.iter().map(|case| case.token.as_str()).chain([right.as_str()]) {
        let is_logged = token.split('.').any(|part| part.len() > 8 && log.contains(part));
        assert!(!is_logged, "{token}");
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_right_is_the_lesser_of_role_and_scope() {
    let team = Team::new(&["a"]);
    team.grant("a", "rita", Some(Role::Reader));
    team.grant("a", "will", Some(Role::Writer));
    team.grant("a", "group:staff", Some(Role::Writer));
    let refused = |reply: &Reply, scope: &str| {
        let metadata = format!("{URL}/.well-known/oauth-protected-resource/v/a/mcp");
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
        );
        assert_eq!((reply.status, reply.header("www-authenticate")), (403, Some(challenge.as_str())));
    };
    // A reader is offered nothing that writes, whatever the scopes are.
    let offered = tools(&team.ask("a", "rita", ALL, &list()));
    assert!(offered.contains(&"search_notes".to_owned()), "{offered:?}");
    assert!(!offered.contains(&"write_note".to_owned()), "{offered:?}");
    let unknown = team.call("a", "rita", ALL, "no_such_tool", json!({}));
    let reply = team.call("a", "rita", ALL, "write_note", write("By Rita"));
    assert_eq!(reply.status, unknown.status);
    assert_eq!(
        reply.json()["error"],
        serde_json::from_str::<Value>(
            &unknown.json()["error"].to_string().replace("no_such_tool", "write_note")
        )
        .unwrap()
    );
    check_done(&team.call("a", "rita", "notes:read", "search_notes", json!({ "query": SECRET })));
    // A writer is offered everything, and asked for the scope that a call needs.
    assert!(tools(&team.ask("a", "will", "notes:read", &list())).contains(&"write_note".to_owned()));
    refused(&team.call("a", "will", "notes:read", "write_note", write("Too early")), "notes:write");
    check_done(&team.call("a", "will", "notes:read", "search_notes", json!({ "query": SECRET })));
    check_done(&team.call("a", "will", "notes:write", "write_note", write("By Will")));
    refused(&team.ask("a", "will", "openid", &list()), "notes:read");
    // A group gives a role, too.
    let token = team.token("a", "greta", ALL);
    assert_eq!(team.ask_with("a", &token.sign(), &[], &list()).status, 404);
    let token = token.claim("groups", json!(["other", "staff"])).sign();
    check_done(&team.ask_with("a", &token, &[], &call("write_note", write("By Greta"))));
    // Several calls in one message are no way around.
    let batch = json!([call("write_note", write("In a batch"))]);
    let reply = team.ask("a", "rita", ALL, &batch);
    assert!(!reply.text.contains("\"applied\":true"), "{}", reply.text);
    let found = team.call("a", "rita", ALL, "list_notes", json!({}));
    for (title, is_there) in
        [("By Will", true), ("By Greta", true), ("By Rita", false), ("In a batch", false)]
    {
        assert_eq!(found.text.contains(title), is_there, "{title}: {}", found.text);
    }
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_vault_without_a_role_is_as_one_that_does_not_exist() {
    let team = Team::new(&["a", "b"]);
    team.grant("b", "bob", Some(Role::Admin));
    assert_eq!(team.ask("b", "bob", ALL, &list()).status, 200);
    let there = team.ask("a", "bob", ALL, &list());
    let missing = team.ask("missing", "bob", ALL, &list());
    assert_eq!((there.status, &there.text), (404, &missing.text));
    assert_eq!(there.header_names(), missing.header_names());
    // A token for one vault is none for another one.
    let token = team.token("b", "bob", ALL).sign();
    assert_eq!(team.ask_with("a", &token, &[], &list()).status, 401);
    // A role counts from the next request on, and so does its end, and so does a block.
    team.grant("a", "bob", Some(Role::Reader));
    assert_eq!(team.ask("a", "bob", ALL, &list()).status, 200);
    team.grant("a", "bob", None);
    assert_eq!(team.ask("a", "bob", ALL, &list()).status, 404);
    team.block("bob", true);
    let blocked = team.ask("b", "bob", ALL, &list());
    assert_eq!((blocked.status, &blocked.text), (404, &missing.text));
    team.block("bob", false);
    assert_eq!(team.ask("b", "bob", ALL, &list()).status, 200);
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_session_belongs_to_its_person_and_a_stream_ends_with_the_right() {
    let team = Team::new(&["a"]);
    team.grant("a", "anna", Some(Role::Writer));
    team.grant("a", "bob", Some(Role::Writer));
    let begun = team.ask("a", "anna", ALL, &hello());
    let session = format!("Mcp-Session-Id: {}", begun.header("mcp-session-id").unwrap());
    let in_session = |subject: &str, session: &str| {
        team.ask_with("a", &team.token("a", subject, ALL).sign(), &[session], &list())
    };
    assert_eq!(in_session("anna", &session).status, 200);
    let other = in_session("bob", &session);
    let unknown = in_session("bob", "Mcp-Session-Id: 00000000-0000-4000-8000-000000000000");
    assert_eq!((other.status, &other.text), (404, &unknown.text));
    let bob = format!("Authorization: Bearer {}", team.token("a", "bob", ALL).sign());
    let stream = "Accept: text/event-stream";
    assert_eq!(team.server.send("DELETE", "/v/a/mcp", &[&bob, &session], "").status, 404);
    assert_eq!(team.server.send("GET", "/v/a/mcp", &[&bob, &session, stream], "").status, 404);
    assert_eq!(in_session("anna", &session).status, 200);
    // The stream ends within seconds after the block: `send` returns when the server closes it.
    let anna = format!("Authorization: Bearer {}", team.token("a", "anna", ALL).sign());
    let (owner, who, started) = (team.cluster.owner(), team.who("anna"), Instant::now());
    let blocked = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        let owner = Database::new(&owner).unwrap();
        members::set_blocked(&owner, &who, true, Clock::System.now(), false).unwrap();
    });
    assert_eq!(team.server.send("GET", "/v/a/mcp", &[&anna, &session, stream], "").status, 200);
    assert!((1..20).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    blocked.join().unwrap();
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn the_journal_says_who_did_what_with_which_tool() {
    let team = Team::new(&["a", "b"]);
    let owner = team.cluster.owner();
    let anna = team.who("anna");
    let as_owner = |args: &[&str]| team.run(&[args, &["--database", &owner]].concat(), 0);
    assert!(as_owner(&["grant", "a", &anna, "writer", "--dry-run"]).contains("would have writer"));
    assert_eq!(team.ask("a", "anna", ALL, &list()).status, 404);
    assert!(as_owner(&["grant", "a", &anna, "writer"]).contains("has writer in a, before: no role"));
    let reply: Value =
        serde_json::from_str(&as_owner(&["grant", "a", "group:staff", "reader", "--json"])).unwrap();
    assert_eq!(
        (&reply["role"], &reply["before"], &reply["applied"]),
        (&json!("reader"), &Value::Null, &json!(true))
    );
    // Servers may not grant, and mistakes are named.
    assert!(team.run(&["grant", "a", &anna, "admin"], 2).contains("--database"));
    assert!(team.run(&["grant", "a", "anna", "admin", "--database", &owner], 2).contains("ISSUER#SUBJECT"));
    assert!(
        team.run(&["grant", "a", "https://x.example#y", "admin", "--database", &owner], 2)
            .contains("login.issuer")
    );
    assert!(team.run(&["revoke", "a", "group:nobody", "--database", &owner], 3).contains("has no role"));
    check_done(&team.call("a", "anna", ALL, "write_note", write("By Anna")));
    let sign = json!({ "note": "By Anna", "edits": [{ "old": "text", "new": "words" }] });
    team.call("a", "anna", ALL, "edit_note", sign);
    assert_eq!(team.call("a", "anna", "notes:read", "write_note", write("No scope")).status, 403);
    let staff = team.token("a", "rita", ALL).claim("groups", json!(["staff"])).sign();
    team.ask_with("a", &staff, &[], &call("write_note", write("No role")));
    assert!(as_owner(&["block", &anna, "--dry-run"]).contains("would be blocked"));
    assert!(as_owner(&["block", &anna]).contains("is blocked now"));
    assert!(as_owner(&["block", &anna]).contains("is blocked already"));
    assert!(as_owner(&["unblock", &anna]).contains("is not blocked now"));
    as_owner(&["revoke", "a", "group:staff"]);
    let events = team.audit("a", &[]);
    let seen: Vec<String> = events
        .iter()
        .map(|event| {
            format!("{} {} {}", event["op"].as_str().unwrap(), event["caller"]["subject"], event["tool"])
        })
        .collect();
    let has = |line: &str| seen.iter().any(|seen| seen == line);
    for line in [
        "import-vault null null",
        "grant null null",
        "new \"anna\" \"write_note\"",
        "refused \"anna\" \"write_note\"",
        "refused \"rita\" \"write_note\"",
        "block null null",
        "unblock null null",
        "revoke null null",
    ] {
        assert!(has(line), "{line} in {seen:#?}");
    }
    let new = events.iter().find(|event| event["op"] == "new").unwrap();
    assert_eq!(
        new["caller"],
        json!({ "issuer": team.provider.issuer, "subject": "anna", "name": "anna@example.org", "client_id": "test-client" })
    );
    assert!(new["files"][0]["after"].is_string(), "{new}");
    let granted = events.iter().find(|event| event["op"] == "grant").unwrap();
    assert_eq!(
        (&granted["who"], &granted["role"], &granted["operator"]),
        (&json!(anna), &json!("writer"), &json!("postgres"))
    );
    // By person and by time; and nothing of another vault but blocks.
    assert!(
        team.audit("a", &["--who", "rita@example.org"])
            .iter()
            .all(|event| event["caller"]["subject"] == "rita")
    );
    for who in [anna.as_str(), "anna"] {
        assert_eq!(team.audit("a", &["--who", who]).iter().filter(|event| event["op"] == "grant").count(), 1);
    }
    assert_eq!(team.audit("a", &["--since", "2999-01-01"]).len(), 0);
    let times: Vec<String> =
        team.audit("a", &[]).iter().map(|event| event["at"].as_str().unwrap().to_owned()).collect();
    for since in [&times[0], &times[times.len() / 2], &times[times.len() - 1]] {
        // A whole second is written without its fraction, so texts have another order.
        let at = |time: &String| Timestamp::parse(time).unwrap();
        let newer = times.iter().filter(|time| at(time) >= at(since)).count();
        assert_eq!(team.audit("a", &["--since", since]).len(), newer, "since {since}");
    }
    assert!(!team.audit("b", &[]).iter().any(|event| event["op"] == "grant" || event["op"] == "new"));
    assert!(team.run(&["audit", "a"], 0).contains("anna@example.org"));
    // The database has the columns, so that it can be asked without a parser.
    let mut client = team.cluster.client();
    client
        .batch_execute(&format!("select set_config('sidenote.vault', '{}', false)", vault_id(&team, "a")))
        .unwrap();
    let row = client.query_one("select issuer, subject from sidenote.event where op = 'new'", &[]).unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), (team.provider.issuer.as_str(), "anna"));
    // Who read what is not recorded.
    team.call("a", "anna", ALL, "read_note", json!({ "note": "Plan" }));
    assert!(!team.audit("a", &[]).iter().any(|event| event["tool"] == "read_note"));
    assert!(history_of_copy(&team).contains("anna@example.org  write_note"));
    let told = team.call("a", "anna", ALL, "read_session", json!({ "action": "audit" })).text;
    assert!(told.contains("new  By Anna.md  by anna@example.org"), "{told}");
    team.server.stop();
}

fn vault_id(team: &Team, name: &str) -> String {
    Database::new(&team.cluster.app()).unwrap().vault_id(name).unwrap().to_string()
}

/// Gives what `sidenote history` says in the copy of the server.
fn history_of_copy(team: &Team) -> String {
    let copy: PathBuf = team.home.path().join("cache").join(vault_id(team, "a")).join("files");
    let done = sidenote(Path::new(team.home.path()), &["history", "--vault", copy.to_str().unwrap()]);
    assert!(done.status.success(), "{}", stderr(&done));
    stdout(&done)
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn reads_are_recorded_where_the_settings_say_so() {
    let team = Team::with(&["a"], "[audit]\nreads = true\n");
    team.grant("a", "anna", Some(Role::Reader));
    check_done(&team.call("a", "anna", ALL, "read_note", json!({ "note": "Plan" })));
    until("the read is recorded", || {
        team.audit("a", &["--who", "anna"]).iter().any(|event| event["tool"] == "read_note")
    });
    check_done(&team.call("a", "anna", ALL, "search_notes", json!({ "query": "hippogriff plan" })));
    std::thread::sleep(Duration::from_secs(2));
    assert!(!team.run(&["audit", "a", "--json"], 0).contains("hippogriff"), "a query was recorded");
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn rights_hold_for_a_while_without_the_database_and_new_ones_are_not_given() {
    let team = Team::new(&["a"]);
    team.grant("a", "anna", Some(Role::Reader));
    let search = call("search_notes", json!({ "query": SECRET }));
    check_done(&team.ask("a", "anna", ALL, &search));
    team.cluster.stop();
    let away = team.ask("a", "anna", ALL, &search);
    assert_eq!((away.status, &away.json()["result"]["structuredContent"]["stale"]), (200, &json!(true)));
    assert_eq!(team.ask("a", "bob", ALL, &search).status, 503);
    team.cluster.start();
    assert_eq!(team.ask("a", "bob", ALL, &search).status, 404);
    // Keys hold while the provider is away.
    team.provider.set(Answer::Nothing);
    check_done(&team.ask("a", "anna", ALL, &search));
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_forgotten_person_is_a_number_everywhere() {
    let team = Team::new(&["a", "b"]);
    for vault in ["a", "b"] {
        team.grant(vault, "anna", Some(Role::Writer));
        team.grant(vault, "bob", Some(Role::Writer));
        check_done(&team.call(vault, "anna", ALL, "write_note", write("By Anna")));
        check_done(&team.call(vault, "bob", ALL, "write_note", write("By Bob")));
    }
    // Who administers need be no superuser, which managed services do not give.
    let (owner, anna) = (team.cluster.administrator(), team.who("anna"));
    let as_owner = |args: &[&str]| team.run(&[args, &["--database", &owner]].concat(), 0);
    as_owner(&["grant", "a", "group:staff", "reader"]);
    as_owner(&["revoke", "a", "group:staff"]);
    as_owner(&["block", &anna]);
    let second = team.second_server();
    for vault in ["a", "b"] {
        let token = format!("Authorization: Bearer {}", team.token(vault, "bob", ALL).sign());
        let reply = second.post_to(&format!("/v/{vault}/mcp"), &[&token], &call("list_notes", json!({})));
        check_done(&reply);
    }
    second.stop();
    assert!(team.run(&["forget", "group:staff", "--database", &owner], 2).contains("is no person"));
    assert!(team.run(&["forget", &anna], 2).contains("--database"));
    let args = ["forget", &anna, "--database", &owner, "--json"];
    let would: Value = serde_json::from_str(&team.run(&[&args[..], &["--dry-run"]].concat(), 0)).unwrap();
    assert!(team.audit("a", &[]).iter().any(|event| event["caller"]["subject"] == "anna"));
    let done: Value = serde_json::from_str(&team.run(&args, 0)).unwrap();
    // In each vault a grant and a change, and a block.
    let expected = json!({ "replaced_by": "forgotten#1", "vaults": 2, "events": 5, "roles": 2, "blocked": true, "applied": true });
    assert_eq!(done, expected);
    assert_eq!((&would["events"], &would["roles"], &would["applied"]), (&json!(5), &json!(2), &json!(false)));
    for vault in ["a", "b"] {
        let audit = json!(team.audit(vault, &[])).to_string();
        assert!(!audit.contains("anna"), "{audit}");
        assert!(audit.contains(r#""subject":"1""#) && audit.contains("forgotten#1"), "{audit}");
        // The server has made its copy anew, with the notes of both.
        check_done(&team.call(vault, "bob", ALL, "search_notes", json!({ "query": "text" })));
        let found = team.call(vault, "bob", ALL, "list_notes", json!({})).text;
        assert!(found.contains("By Anna") && found.contains("By Bob"), "{found}");
        check_done(&team.call(vault, "bob", ALL, "write_note", write("Later")));
    }
    assert!(!history_of_copy(&team).contains("anna"), "the copy has the old journal");
    // No copy names the person, nor that of a server that did not run meanwhile and opens no vault.
    let names = ["anna@example.org", anna.as_str()];
    until("no copy names the person", || !is_named_below(&team.home.path().join("cache"), &names));
    let other = team.second.path().join("cache");
    assert!(is_named_below(&other, &names), "the second server had copies with the person");
    let second = team.second_server();
    until("no copy of the second server names the person", || !is_named_below(&other, &names));
    second.stop();
    let dump = team.cluster.dump();
    assert!(
        dump.contains("bob@example.org") && !dump.contains("anna@example.org"),
        "the database has the person"
    );
    // The block holds, and is listed by the number; a token that still counts opens nothing, though a group has a role.
    as_owner(&["grant", "a", "group:staff", "writer"]);
    let list_of_vaults = as_owner(&["list"]);
    assert!(list_of_vaults.contains("forgotten#1") && !list_of_vaults.contains("anna"), "{list_of_vaults}");
    let staff = |who: &str| team.token("a", who, ALL).claim("groups", json!(["staff"])).sign();
    let write_as = |who: &str| team.ask_with("a", &staff(who), &[], &call("write_note", write("After")));
    assert_eq!(write_as("anna").status, 404);
    check_done(&write_as("greta"));
    assert!(as_owner(&["block", &anna]).contains("is blocked already"));
    assert!(as_owner(&["unblock", &anna]).contains("is not blocked now"));
    assert!(!json!(team.audit("a", &[])).to_string().contains("anna"));
    assert_eq!(write_as("anna").status, 200);
    team.server.stop();
}

/// Says whether a file in a folder has one of some texts.
fn is_named_below(folder: &Path, texts: &[&str]) -> bool {
    // A server removes folders meanwhile.
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => is_named_below(&entry.path(), texts),
        _ => {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            texts.iter().any(|text| memchr::memmem::find(&bytes, text.as_bytes()).is_some())
        }
    })
}

/// A small random generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn ten_thousand_calls_with_tokens_of_other_vaults_leak_nothing() {
    let calls = env_number("SIDENOTE_TEST_CALLS", 10_000);
    let team = Team::new(&["a", "b"]);
    team.grant("a", "anna", Some(Role::Admin));
    team.grant("b", "bob", Some(Role::Admin));
    team.grant("b", "group:staff", Some(Role::Writer));
    let all_tools = tools(&team.ask("a", "anna", ALL, &list()));
    let begun = team.ask("a", "anna", ALL, &hello());
    let session = format!("Mcp-Session-Id: {}", begun.header("mcp-session-id").unwrap());
    let bob = |vault: &str| team.token(vault, "bob", ALL).claim("groups", json!(["staff"]));
    let tokens = [
        bob("b").sign(),
        bob("a").sign(),
        bob("a").claim("aud", "team").sign(),
        bob("a").claim("aud", json!([format!("{URL}/v/a/mcp"), format!("{URL}/v/b/mcp")])).sign(),
        bob("a").claim("groups", json!(["group:staff", "admin"])).sign(),
        team.token("a", "Anna", ALL).sign(),
        team.token("a", "anna ", ALL).sign(),
    ];
    let missing = team.ask_with("missing", &bob("missing").sign(), &[], &list()).text;
    let arguments = [
        json!({}),
        json!({ "query": SECRET }),
        json!({ "note": "Plan" }),
        json!({ "notes": ["Plan.md"] }),
        json!({ "title": "Plan", "content": SECRET, "operation_id": "x" }),
        json!({ "from": "Plan", "to": "b/Plan" }),
        json!({ "path": "../a/Plan.md", "note": "/v/a/Plan.md" }),
    ];
    let paths = [
        "/v/a/mcp",
        "/v/a/mcp/",
        "/v/b/../a/mcp",
        "/v/a%2Fmcp",
        "/v/%61/mcp",
        "/v/a/mcp?vault=b",
        "/v/A/mcp",
    ];
    let mut random = Random(20_261_126);
    let (mut seen, mut bytes) = (std::collections::BTreeMap::<u16, usize>::new(), 0);
    for at in 0..calls {
        let message = match random.below(8) {
            0 => list(),
            1 => hello(),
            2 => json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" }),
            3 => {
                json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "sidenote:///Plan.md" } })
            }
            _ => call(random.of(&all_tools).as_str(), random.of(&arguments).clone()),
        };
        let token = format!("Authorization: Bearer {}", random.of(&tokens));
        let method = *random.of(&["POST", "POST", "POST", "GET", "DELETE", "PUT"]);
        let headers =
            [token.as_str(), "Accept: application/json, text/event-stream", "Content-Type: application/json"];
        let with_session = [&headers[..], &[session.as_str(), "X-Vault: a"]].concat();
        let headers = if random.below(2) == 0 { &headers[..] } else { &with_session[..] };
        let path = *random.of(&paths);
        let reply = team.server.send(method, path, headers, message.to_string());
        assert!(
            [401, 404, 405].contains(&reply.status),
            "{at}: {method} {path}: {} {}",
            reply.status,
            reply.text
        );
        let is_known = reply.text.is_empty()
            || reply.text == missing
            || reply.text.contains("Log in: an MCP client does so by itself");
        assert!(is_known, "{at}: {method} {path}: {}", reply.text);
        *seen.entry(reply.status).or_default() += 1;
        bytes += reply.text.matches(SECRET).count();
    }
    assert_eq!(bytes, 0);
    assert!(seen.get(&404).is_some_and(|count| *count > calls / 10), "{seen:?}");
    assert!(seen.get(&401).is_some_and(|count| *count > calls / 20), "{seen:?}");
    say(&format!("{calls} calls: {seen:?}"));
    // The session that was tried is alive, and its owner sees the note.
    let token = team.token("a", "anna", ALL).sign();
    let reply = team.ask_with("a", &token, &[&session], &call("search_notes", json!({ "query": SECRET })));
    assert!(reply.text.contains("Plan.md"), "{}", reply.text);
    team.server.stop();
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_folder_is_synchronised_by_the_role_of_its_person() {
    let team = Team::new(&["a", "b"]);
    for (who, role) in [("reader", Role::Reader), ("writer", Role::Writer), ("admin", Role::Admin)] {
        team.grant("a", who, Some(role));
    }
    let ask = |method: &str, path: &str, who: &str, scope: &str, body: &str| {
        let token = format!("Authorization: Bearer {}", team.token("a", who, scope).sign());
        team.server.send(method, path, &[&token], body)
    };
    let commit = |path: &str, operation: &str| {
        let hash = blake3::hash(b"{}");
        let file = format!(r#"{{"path":"{path}","base":null,"content":["{hash}",2]}}"#);
        format!("{{\"operation\":\"{operation}\",\"files\":[{file}]}}\n{{}}")
    };
    let (note, settings) = ("New.md", ".obsidian/app.json");
    // The person, the scopes of the token, the file, and the status of the answer.
    let cases = [
        ("reader", ALL, note, 403),
        ("reader", "notes:read", note, 403),
        ("writer", "notes:read", note, 403),
        ("writer", ALL, settings, 403),
        ("admin", "notes:write", settings, 403),
        ("stranger", ALL, note, 404),
        ("writer", "notes:write", note, 200),
        ("admin", ALL, settings, 200),
    ];
    for (at, (who, scope, path, status)) in cases.into_iter().enumerate() {
        let reply = ask("POST", "/v/a/commit", who, scope, &commit(path, &format!("operation {at}")));
        assert_eq!(reply.status, status, "{who} with {scope} sends {path}: {}", reply.text);
    }
    for who in ["reader", "writer", "admin"] {
        let reply = ask("GET", "/v/a/changes", who, "notes:read", "");
        assert!(reply.status == 200 && reply.text.contains(note), "{who}: {}", reply.text);
        assert_eq!(ask("GET", "/v/b/changes", who, ALL, "").status, 401, "the token is for another vault");
    }
    assert_eq!(ask("GET", "/v/a/changes", "stranger", ALL, "").status, 404);
    assert_eq!(team.server.send("GET", "/v/a/changes", &[], "").status, 401);
    let audit = team.audit("a", &[]);
    let refused = |event: &&Value| event["op"] == "refused" && event["tool"] == "sync";
    assert_eq!(audit.iter().filter(refused).count(), 5, "{audit:?}");
    let by_person = |event: &&Value| event["op"] == "sync" && event["caller"]["subject"].is_string();
    assert_eq!(audit.iter().filter(by_person).count(), 2, "{audit:?}");
}
