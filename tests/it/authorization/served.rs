//! The authorization server as the program serves it: the whole dance over HTTP, from the first call that is refused to one
//! that is answered, and the commands that show and revoke access.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{CHALLENGE, PASSPHRASE, REDIRECT, VERIFIER, encoded, parameter, ticket_of};
use crate::http::{Reply, SERVER, Server};
use crate::support::{TestVault, stderr, stdout};

const PUBLIC: &str = "https://notes.example";

fn form(fields: &[(&str, &str)]) -> String {
    encoded(&super::pairs(fields, &[]))
}

/// Runs a command with a text on standard input.
fn run_with_input(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn vault() -> TestVault {
    let vault = TestVault::new(&[("Plan.md", "The plan for high water.\n")]);
    let set = run_with_input(&mut vault.command(&["login", "passphrase"]), &format!("{PASSPHRASE}\n"));
    assert!(set.status.success(), "{}", stderr(&set));
    vault
}

fn serve(vault: &TestVault, args: &[&str]) -> Server {
    let arguments = [&["mcp", "--http", SERVER, "--login"], args].concat();
    Server::of(vault.command(&arguments).env("SIDENOTE_LOG", "sidenote=debug"))
}

/// Goes the whole way over HTTP as a client and its person do, and gives the reply with the tokens.
fn log_in(server: &Server, headers: &[&str], resource: &str, decision: &[(&str, &str)]) -> Value {
    let json_type = [headers, &["Content-Type: application/json"]].concat();
    let registered =
        server.send("POST", "/register", &json_type, json!({ "redirect_uris": [REDIRECT] }).to_string());
    assert_eq!(registered.status, 201, "{}", registered.text);
    let client = registered.json()["client_id"].as_str().unwrap().to_owned();
    let query = form(&[
        ("response_type", "code"),
        ("client_id", &client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("scope", "read write"),
        ("resource", resource),
    ]);
    let page = server.send("GET", &format!("/authorize?{query}"), headers, "");
    assert_eq!(page.status, 200, "{}", page.text);
    let cookie = page.header("set-cookie").unwrap().split(';').next().unwrap();
    let ticket = ticket_of(&page.text);
    let mut fields = vec![("ticket", ticket.as_str()), ("passphrase", PASSPHRASE), ("decision", "allow")];
    fields.extend(decision);
    let cookie = format!("Cookie: {cookie}");
    let form_type = "Content-Type: application/x-www-form-urlencoded";
    // A browser says where the form comes from.
    let origin = format!("Origin: {}", resource.strip_suffix("/mcp").unwrap());
    let consented = server.send(
        "POST",
        "/authorize",
        &[headers, &[&cookie, &origin, form_type, "Sec-Fetch-Site: same-origin"]].concat(),
        form(&fields),
    );
    assert_eq!(consented.status, 303, "{}", consented.text);
    let code = parameter(consented.header("location").unwrap(), "code").unwrap();
    let redeemed = server.send(
        "POST",
        "/token",
        &[headers, &[form_type]].concat(),
        form(&[
            ("grant_type", "authorization_code"),
            ("client_id", &client),
            ("code", &code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
            ("resource", resource),
        ]),
    );
    assert_eq!(redeemed.status, 200, "{}", redeemed.text);
    redeemed.json()
}

fn call(server: &Server, headers: &[&str], tool: &str, arguments: &Value) -> Reply {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    server.post_to("/mcp", headers, &message)
}

#[test]
fn a_client_finds_out_where_to_log_in_and_calls_tools() {
    let vault = vault();
    let server = serve(&vault, &[]);
    let address = format!("http://{}", server.address());
    let refused = call(&server, &[], "read_note", &json!({ "notes": "Plan" }));
    assert_eq!(refused.status, 401);
    let metadata = format!("{address}/.well-known/oauth-protected-resource/mcp");
    assert_eq!(
        refused.header("www-authenticate").unwrap(),
        format!("Bearer resource_metadata=\"{metadata}\", scope=\"read write\"")
    );
    let document = server.send("GET", "/.well-known/oauth-protected-resource/mcp", &[], "").json();
    let resource = document["resource"].as_str().unwrap();
    assert_eq!(resource, format!("{address}/mcp"));
    assert_eq!(document["authorization_servers"][0], json!(address));
    let tokens = log_in(&server, &[], resource, &[("write", "yes")]);
    let bearer = format!("Authorization: Bearer {}", tokens["access_token"].as_str().unwrap());
    let reply = call(&server, &[&bearer], "read_note", &json!({ "notes": "Plan" }));
    assert_eq!(reply.json()["result"]["structuredContent"]["notes"][0]["path"], "Plan.md");
    let written = json!({ "title": "New", "content": "Written from afar." });
    let reply = call(&server, &[&bearer], "write_note", &written);
    assert_eq!(reply.json()["result"]["isError"], json!(false), "{}", reply.text);
    assert_eq!(vault.read("New.md").trim_end(), "Written from afar.");
    // The journal says which client it was.
    let history = stdout(&vault.run(&["history", "--json"]));
    assert!(history.contains("a client without a name"), "{history}");

    let listed: Value = serde_json::from_str(&stdout(&vault.run(&["login", "list", "--json"]))).unwrap();
    assert_eq!((&listed[0]["resource"], &listed[0]["scopes"]), (&json!(resource), &json!(["read", "write"])));
    let revoked = vault.run(&["login", "revoke", listed[0]["id"].as_str().unwrap()]);
    assert!(stdout(&revoked).starts_with("access is taken back:\n"), "{}", stderr(&revoked));
    let refused = call(&server, &[&bearer], "read_note", &json!({ "notes": "Plan" }));
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer error=\"invalid_token\""));
    let log = stdout(&vault.run(&["login", "log"]));
    for event in ["passphrase-set", "registered", "consented", "granted", "revoked"] {
        assert!(log.contains(event), "{event}: {log}");
    }
    let log = server.stop();
    assert!(!log.contains(tokens["access_token"].as_str().unwrap()), "{log}");
}

#[test]
fn requests_without_a_length_are_answered() {
    let vault = vault();
    let server = serve(&vault, &[]);
    let send = |head: &str, body: &str| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let host = server.address();
        write!(stream, "{head} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{body}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    assert_eq!(send("GET /.well-known/oauth-authorization-server", "\r\n"), 200);
    assert_eq!(send("GET /authorize?client_id=x", "\r\n"), 400);
    let chunked = |body: &str| {
        let kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked";
        format!("{kind}\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
    };
    assert_eq!(send("POST /register", &chunked(&json!({ "redirect_uris": [REDIRECT] }).to_string())), 201);
    assert_eq!(send("POST /register", &chunked(&"x".repeat((64 << 10) + 1))), 413);
}

#[test]
fn strangers_take_no_memory_from_large_calls() {
    let vault = vault();
    let server = serve(&vault, &[]);
    let address = format!("http://{}", server.address());
    let tokens = log_in(&server, &[], &format!("{address}/mcp"), &[("write", "yes")]);
    let bearer = format!("Authorization: Bearer {}", tokens["access_token"].as_str().unwrap());
    // Bodies without a length that stay open, of which four would take all memory for larger requests.
    let part = "x".repeat((64 << 10) + 1);
    let open: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            let kind = "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked";
            let head = format!("POST /token HTTP/1.1\r\nHost: {}\r\n{kind}\r\n\r\n", server.address());
            write!(stream, "{head}{:x}\r\n{part}\r\n", part.len()).unwrap();
            let mut reply = [0; 12];
            stream.read_exact(&mut reply).unwrap();
            assert_eq!(&reply, b"HTTP/1.1 413");
            stream
        })
        .collect();
    let long = json!({ "title": "Long", "content": "word ".repeat(30_000) });
    let reply = call(&server, &[&bearer], "write_note", &long);
    assert_eq!(reply.json()["result"]["isError"], json!(false), "{}", reply.text);
    drop(open);
}

#[test]
fn doctor_says_why_clients_cannot_log_in() {
    let vault = vault();
    let open = Server::of(&mut vault.command(&["mcp", "--http", SERVER]));
    let right = serve(&vault, &[]);
    let elsewhere = serve(&vault, &["--public-url", PUBLIC]);
    let closed = "127.0.0.1:1";
    for (address, says) in [
        (
            format!("http://{}/mcp", right.address()),
            &["has an authorization server", "is an endpoint", "is refused"][..],
        ),
        (
            format!("http://{}", right.address()),
            &["has an authorization server", "is an endpoint", "is refused"],
        ),
        (format!("http://{}/v/x/mcp", right.address()), &["has an", "has no endpoint at", "is refused"]),
        (format!("http://{}", elsewhere.address()), &["says that its address is https://notes.example"]),
        (format!("http://{}", open.address()), &["does not exist"]),
        (format!("http://{closed}"), &["cannot be reached"]),
    ] {
        let reply = vault.run(&["doctor", "--reach", &address, "--json"]);
        let reply: Value = serde_json::from_str(&stdout(&reply)).unwrap();
        let found =
            reply["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "reach");
        let found: Vec<&str> = found.map(|finding| finding["state"].as_str().unwrap()).collect();
        assert_eq!(found.len(), says.len(), "{address}: {found:?}");
        assert!(found.iter().zip(says).all(|(state, part)| state.contains(part)), "{address}: {found:?}");
    }
    let refused = vault.run(&["doctor", "--reach", "http://notes.example"]);
    assert!(stderr(&refused).contains("https"), "{}", stderr(&refused));
}

#[test]
fn a_client_that_may_read_is_offered_no_tool_that_writes() {
    let vault = vault();
    let server = serve(&vault, &["--public-url", PUBLIC]);
    let host = "Host: notes.example";
    let tokens = log_in(&server, &[host], &format!("{PUBLIC}/mcp"), &[]);
    assert_eq!(tokens["scope"], "read");
    let bearer = format!("Authorization: Bearer {}", tokens["access_token"].as_str().unwrap());
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let tools = server.post_to("/mcp", &[host, &bearer], &list).json();
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "search_notes"));
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
    let refused = call(&server, &[host, &bearer], "write_note", &json!({ "title": "New", "content": "x" }));
    assert!(refused.text.contains("there is no tool"), "{}", refused.text);
    assert!(!vault.root().join("New.md").exists());
    // Another host is refused, and so is the form of another site.
    assert_eq!(server.send("GET", "/authorize", &["Host: evil.example"], "").status, 403);
    let form_type = "Content-Type: application/x-www-form-urlencoded";
    let foreign = ["Host: notes.example", "Origin: https://evil.example", form_type];
    assert_eq!(server.send("POST", "/authorize", &foreign, "ticket=x").status, 403);
    // Tokens count at one endpoint.
    assert_eq!(server.post_to("/v/other/mcp", &[host, &bearer], &list).status, 401);
    let large = "x".repeat((64 << 10) + 1);
    assert_eq!(server.send("POST", "/token", &[host, form_type], large).status, 413);
}

#[test]
fn a_server_with_login_needs_a_passphrase_and_a_public_address() {
    let bare = TestVault::new(&[("Plan.md", "x\n")]);
    let refused = bare.command(&["mcp", "--http", SERVER, "--login"]).stdin(Stdio::null()).output().unwrap();
    assert!(stderr(&refused).contains("sidenote login passphrase"), "{}", stderr(&refused));
    let short = run_with_input(&mut bare.command(&["login", "passphrase"]), "short\n");
    assert!(stderr(&short).contains("less than 12 characters"), "{}", stderr(&short));
    let planned =
        run_with_input(&mut bare.command(&["login", "passphrase", "--dry-run"]), &format!("{PASSPHRASE}\n"));
    assert_eq!(stdout(&planned), "the passphrase would be set\n");
    assert_eq!(stdout(&bare.run(&["login", "list"])), "no client has access\n");

    let vault = vault();
    for (args, says) in [
        (&["--http", "0.0.0.0:0", "--login"][..], "--public-url"),
        (&["--http", SERVER, "--login", "--public-url", "http://notes.example"], "https"),
        (&["--login"], "--http"),
        (&["--http", SERVER, "--public-url", PUBLIC], "--login"),
    ] {
        let arguments = [&["mcp"], args].concat();
        let refused = vault.command(&arguments).stdin(Stdio::null()).output().unwrap();
        assert!(
            !refused.status.success() && stderr(&refused).contains(says),
            "{args:?}: {}",
            stderr(&refused)
        );
    }
}
