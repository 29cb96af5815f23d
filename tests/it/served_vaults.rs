//! Tests several vaults behind one HTTP server: an endpoint for each, one token, and names that are refused.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::http::{Reply, SERVER, Server};
use crate::support::{TestVault, clean_env, program, stderr};

/// Makes a command that serves vaults under names. It is not started.
fn serve(home: &Path, vaults: &[(&str, &Path)], args: &[&str]) -> Command {
    let mut command = Command::new(program());
    clean_env(&mut command, home)
        .env("SIDENOTE_EMBED_PROVIDER", "none")
        .env("SIDENOTE_LOG", "sidenote=debug");
    for (name, folder) in vaults {
        command.arg("--vault").arg(format!("{name}={}", folder.display()));
    }
    command.args(["mcp", "--http", SERVER]).args(args);
    command
}

fn call(server: &Server, path: &str, headers: &[&str], tool: &str, arguments: &Value) -> Reply {
    let params = json!({ "name": tool, "arguments": arguments });
    server.post_to(
        path,
        headers,
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
    )
}

/// Searches through an endpoint, and gives the paths that it finds.
#[track_caller]
fn search(server: &Server, path: &str, headers: &[&str], query: &str) -> Vec<String> {
    let reply = call(server, path, headers, "search_notes", &json!({ "query": query }));
    assert_eq!(reply.status, 200, "{}", reply.text);
    let results = &reply.json()["result"]["structuredContent"]["results"];
    let results = results.as_array().unwrap_or_else(|| panic!("{}", reply.text));
    results.iter().map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_vault_has_an_endpoint_and_sees_its_own_notes_only() {
    let anna = TestVault::new(&[("Boat.md", "The boat needs paint."), ("Same.md", "Both have this.")]);
    let family = TestVault::new(&[("Garden.md", "The garden needs water."), ("Same.md", "Both have this.")]);
    let home = tempfile::tempdir().unwrap();
    let server =
        Server::of(&mut serve(home.path(), &[("anna", anna.root()), ("our-family_2", family.root())], &[]));
    let (one, other) = ("/v/anna/mcp", "/v/our-family_2/mcp");
    assert_eq!(search(&server, one, &[], "needs"), ["Boat.md"]);
    assert_eq!(search(&server, other, &[], "needs"), ["Garden.md"]);
    let wrote =
        call(&server, one, &[], "write_note", &json!({ "title": "Mast", "content": "The mast needs oil." }));
    assert_eq!(wrote.json()["result"]["isError"], false, "{}", wrote.text);
    assert!(anna.root().join("Mast.md").exists() && !family.root().join("Mast.md").exists());
    assert_eq!(search(&server, one, &[], "mast"), ["Mast.md"]);
    assert_eq!(search(&server, other, &[], "mast"), [""; 0]);
    // A session belongs to the endpoint at which it began.
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let begun = server.post_to(one, &[], &hello);
    let session = format!("Mcp-Session-Id: {}", begun.header("mcp-session-id").unwrap());
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(server.post_to(one, &[&session], &list).status, 200);
    assert_eq!(server.post_to(other, &[&session], &list).status, 404);
    for path in ["/v/anna", "/v/Anna/mcp", "/v/nobody/mcp", "/v/anna/mcp/x"] {
        assert_eq!(server.post_to(path, &[], &list).status, 404, "{path}");
    }
    assert_eq!(server.send("GET", "/health", &[], "").status, 200);
    server.stop();
}

#[test]
fn one_token_opens_all_vaults_and_names_are_not_told_without_it() {
    let (a, b) = (TestVault::new(&[("A.md", "alpha")]), TestVault::new(&[("B.md", "beta")]));
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("token");
    let args = ["--token-file", file.to_str().unwrap()];
    let server = Server::of(&mut serve(home.path(), &[("a", a.root()), ("b", b.root())], &args));
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for path in ["/v/a/mcp", "/v/b/mcp", "/v/nobody/mcp"] {
        assert_eq!(server.post_to(path, &[], &list).status, 401, "{path}");
        let foreign = server.post_to(path, &["Origin: https://evil.example"], &list);
        assert_eq!(foreign.status, 403, "{path}");
    }
    let token = std::fs::read_to_string(&file).unwrap();
    let token = format!("Authorization: Bearer {}", token.trim());
    assert_eq!(search(&server, "/v/a/mcp", &[&token], "alpha"), ["A.md"]);
    assert_eq!(search(&server, "/v/b/mcp", &[&token], "beta"), ["B.md"]);
    assert_eq!(server.post_to("/v/nobody/mcp", &[&token], &list).status, 404);
    server.stop();
}

#[test]
fn one_named_vault_is_served_at_its_name_and_a_folder_with_a_sign_is_a_folder() {
    let vault = TestVault::new(&[("a=b/A.md", "alpha"), ("B.md", "beta")]);
    let home = tempfile::tempdir().unwrap();
    let server = Server::of(&mut serve(home.path(), &[("a", vault.root())], &[]));
    assert_eq!(search(&server, "/v/a/mcp", &[], "beta"), ["B.md"]);
    server.stop();
    let mut command = Command::new(program());
    clean_env(&mut command, home.path()).env("SIDENOTE_EMBED_PROVIDER", "none");
    // As a name and a folder, this would be the folder b.
    command.current_dir(vault.root()).args(["--vault", "a=b", "mcp", "--http", SERVER]);
    let server = Server::of(&mut command);
    assert_eq!(search(&server, "/mcp", &[], "alpha"), ["A.md"]);
    server.stop();
}

#[test]
fn vaults_that_cannot_be_served_together_are_refused() {
    let (a, b) = (TestVault::new(&[("A.md", "alpha")]), TestVault::new(&[("B.md", "beta")]));
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (a.root().display().to_string(), b.root().display().to_string());
    let check = |args: &[&str], code: i32, said: &str| {
        let mut command = Command::new(program());
        let done = clean_env(&mut command, home.path()).args(args).output().unwrap();
        let error = stderr(&done);
        assert_eq!((done.status.code(), error.contains(said)), (Some(code), true), "{args:?}: {error}");
    };
    let (named_a, named_b) = (format!("a={a}"), format!("b={b}"));
    let both = ["--vault", &named_a, "--vault", &named_b];
    let http = ["mcp", "--http", SERVER];
    check(&[&both[..], &["search", "x"]].concat(), 2, "--vault is given more than once");
    check(&[&both[..], &["--index", &a], &http].concat(), 2, "cannot share the folder of an index");
    check(&[&both[..], &http, &["--notestore_path", &a]].concat(), 2, "--notestore_path is one vault");
    check(&[&["--vault", &named_a, "--vault", &b], &http[..]].concat(), 2, "does not begin with the name");
    let again = format!("c={a}");
    check(&[&["--vault", &named_a, "--vault", &again], &http[..]].concat(), 2, "under two names");
    let upper = format!("A={b}");
    check(&[&["--vault", &named_a, "--vault", &upper], &http[..]].concat(), 2, "two vaults have the name");
    for name in ["", "a/b", "..", "ä", "a b", &"n".repeat(65)] {
        let bad = format!("{name}={b}");
        check(
            &[&["--vault", &named_a, "--vault", &bad], &http[..]].concat(),
            2,
            "does not begin with the name",
        );
    }
    let missing = format!("c={a}/missing");
    check(&[&["--vault", &named_a, "--vault", &missing], &http[..]].concat(), 3, "missing");
}
