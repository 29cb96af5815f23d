//! Tests the server over HTTP (docs/spec/security.md, HTTP): access, refused requests, sessions and limits. Requests
//! are written byte by byte, since no client would send them.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

#[cfg(unix)]
use crate::git::git;
use crate::support::{LIMIT, TestVault, stderr};
#[cfg(unix)]
use crate::support::{mode_of, set_mode, terminate, until};

pub(crate) const SERVER: &str = "127.0.0.1:0";
const BOTH: &str = "Accept: application/json, text/event-stream";
const TYPE: &str = "Content-Type: application/json";
const LARGEST: usize = 4 << 20;

/// A server of its own, gone at the end of the test.
pub(crate) struct Server {
    child: Child,
    address: String,
    /// Gets what the server has logged when it ends. The log is read all the time, for a full pipe would block the server.
    log: Receiver<String>,
}

impl Server {
    fn start(vault: &TestVault, args: &[&str]) -> Self {
        let mut command = vault.command(&["mcp", "--http", SERVER]);
        Self::of(command.args(args).env("SIDENOTE_LOG", "sidenote=debug"))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server ended");
            if let Some((_, rest)) = line.split_once("serving at http://") {
                break rest.split_once('/').unwrap().0.to_owned();
            }
        };
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            log.read_to_string(&mut text).unwrap();
            drop(sender.send(text));
        });
        Self { child, address, log: ended }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request with these headers, and no others but its host and length.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Reply {
        let body = body.as_ref();
        let host = format!("Host: {}", self.address);
        let host = if headers.iter().any(|header| header.starts_with("Host:")) { "" } else { &host };
        let headers: String = [host]
            .iter()
            .chain(headers)
            .filter(|header| !header.is_empty())
            .map(|header| format!("{header}\r\n"))
            .collect();
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The server may answer, and close, before all of it is there.
        drop(stream.write_all(body));
        Reply::read(stream)
    }

    fn post(&self, headers: &[&str], message: &Value) -> Reply {
        self.post_to("/mcp", headers, message)
    }

    pub(crate) fn post_to(&self, path: &str, headers: &[&str], message: &Value) -> Reply {
        self.send("POST", path, &[&[BOTH, TYPE], headers].concat(), message.to_string())
    }

    /// Says hello and gives the session.
    fn hello(&self, headers: &[&str]) -> String {
        let reply = self.post(headers, &hello());
        assert_eq!(reply.status, 200, "{}", reply.text);
        let session = reply.header("mcp-session-id").unwrap();
        let session = format!("Mcp-Session-Id: {session}");
        let told = self.post(
            &[headers, &[&session]].concat(),
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        );
        assert_eq!(told.status, 202);
        session
    }

    /// Opens the stream of a session, and waits until it is open.
    fn listen(&self, session: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let host = &self.address;
        write!(stream, "GET /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n{session}\r\n\r\n")
            .unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        stream
    }

    fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// Asks the server to end, waits for the end, and gives what it logged.
    pub(crate) fn stop(mut self) -> String {
        #[cfg(unix)]
        terminate(self.child.id());
        // No signal reaches a program without a console.
        #[cfg(windows)]
        self.child.kill().unwrap();
        let log = self.log.recv_timeout(LIMIT).expect("the server does not end");
        let ended = self.child.wait().unwrap();
        assert!(ended.success() || cfg!(windows), "{ended}: {log}");
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failed test leaves no server running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Reply {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, text) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Self { status, headers, text: text.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Gives the names of the headers.
    pub(crate) fn header_names(&self) -> Vec<&str> {
        self.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Gives the answer, which is one message, or the last one of a stream.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let line = self.text.lines().rfind(|line| line.trim_start_matches("data: ").starts_with('{'));
        serde_json::from_str(line.unwrap_or(&self.text).trim_start_matches("data: ")).unwrap()
    }
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } })
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })
}

/// Makes a request of the newest protocol, and the headers that go with it.
fn modern(method: &str, name: &str, params: &Value) -> ([String; 3], Value) {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let version = "MCP-Protocol-Version: 2026-07-28".to_owned();
    let headers = [version, format!("Mcp-Method: {method}"), format!("Mcp-Name: {name}")];
    (headers, json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": params }))
}

/// Asks as clients of the newest protocol do.
#[track_caller]
fn ask(server: &Server, method: &str, name: &str, params: Value) -> Value {
    let (headers, message) = modern(method, name, &params);
    let headers: Vec<&str> =
        headers.iter().map(String::as_str).filter(|header| !header.ends_with(": ")).collect();
    let reply = server.post(&headers, &message);
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json")),
        "{}",
        reply.text
    );
    reply.json()["result"].clone()
}

fn vault() -> TestVault {
    TestVault::new(&[
        ("Start.md", "---\ntags: [tour]\n---\n# Level\nWater level and [[Plan]].\n"),
        ("Plan.md", "The plan for high water.\n"),
        ("Über den Fluss.md", "A name to encode.\n"),
        ("Maps/gauge.png", "not an image"),
    ])
}

/// Reads a stream until a message with this method, and gives the message.
fn hear(stream: &mut impl std::io::BufRead, method: &str) -> Value {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        let message = line.strip_prefix("data: {").map(|rest| format!("{{{rest}"));
        let message: Option<Value> = message.map(|text| serde_json::from_str(&text).unwrap());
        if let Some(message) = message.filter(|message| message["method"] == method) {
            return message;
        }
    }
}

#[test]
fn a_session_starts_answers_and_ends() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let session = server.hello(&[]);
    let tools = server.post(&[&session], &list());
    assert_eq!(tools.header("content-type"), Some("text/event-stream"));
    assert!(!tools.json()["result"]["tools"].as_array().unwrap().is_empty());
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "search_notes", "arguments": { "query": "level" },
    } });
    assert_eq!(
        server.post(&[&session], &call).json()["result"]["structuredContent"]["results"][0]["path"],
        "Start.md"
    );
    assert_eq!(server.send("DELETE", "/mcp", &[&session], "").status, 204);
    assert_eq!(server.post(&[&session], &list()).status, 404);
    assert_eq!(server.post(&["Mcp-Session-Id: made-up"], &list()).status, 404);
}

#[test]
fn calls_without_a_session_are_answered_with_json() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "read_note", "arguments": { "notes": "Plan" },
    } });
    let reply = server.post(&[], &call);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.json()["result"]["structuredContent"]["notes"][0]["path"], "Plan.md");
    assert_eq!(reply.header("mcp-session-id"), None);
    let health = server.send("GET", "/health", &[], "");
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")));
    // There is no stream without a session.
    assert_eq!(server.send("GET", "/mcp", &["Accept: text/event-stream"], "").status, 405);
    assert_eq!(server.send("GET", "/", &[], "").status, 404);
}

#[test]
fn clients_of_the_newest_protocol_need_no_session() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let known = ask(&server, "server/discover", "", json!({}));
    assert!(known["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    let call = json!({ "name": "search_notes", "arguments": { "query": "level" } });
    let found = ask(&server, "tools/call", "search_notes", call);
    assert_eq!(found["structuredContent"]["results"][0]["path"], "Start.md");
    let resources = ask(&server, "resources/list", "", json!({}));
    let uris: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(
        uris,
        [
            "sidenote:///Maps/gauge.png",
            "sidenote:///Plan.md",
            "sidenote:///Start.md",
            "sidenote:///%C3%9Cber%20den%20Fluss.md"
        ]
    );
    let read = ask(&server, "resources/read", uris[3], json!({ "uri": uris[3] }));
    assert_eq!(read["contents"][0]["text"], "A name to encode.\n");
    let about = ask(&server, "resources/read", uris[0], json!({ "uri": uris[0] }));
    assert_eq!(about["contents"][0]["blob"], "bm90IGFuIGltYWdl");
    let templates = ask(&server, "resources/templates/list", "", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "sidenote:///{+path}");
    assert_eq!(ask(&server, "prompts/list", "", json!({}))["prompts"].as_array().unwrap().len(), 6);
    let prompt = json!({ "name": "link_suggestions", "arguments": { "note": "Plan" } });
    let prompt = ask(&server, "prompts/get", "link_suggestions", prompt);
    assert_eq!(prompt["messages"][1]["content"]["resource"]["uri"], "sidenote:///Plan.md");
    let begun = json!({
        "ref": { "type": "ref/prompt", "name": "link_suggestions" }, "argument": { "name": "note", "value": "Pl" },
    });
    assert_eq!(ask(&server, "completion/complete", "", begun)["completion"]["values"], json!(["Plan"]));
    // Methods that the revision removed are absent, whatever their params are; the error of an absent resource names it.
    for method in ["initialize", "ping", "resources/subscribe", "resources/unsubscribe"] {
        let valid = json!({
            "protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
            "uri": "sidenote:///Plan.md",
        });
        for params in [valid, json!({}), json!({ "uri": 3, "protocolVersion": [] }), json!(null), json!([1])]
        {
            let (headers, message) = if params.is_object() {
                modern(method, "", &params)
            } else {
                let (headers, message) = modern(method, "", &json!({}));
                (
                    headers,
                    json!({ "jsonrpc": "2.0", "id": message["id"], "method": method, "params": params }),
                )
            };
            let reply = server.post(&[&headers[0], &headers[1]], &message);
            let error = reply.json();
            assert_eq!(
                (reply.status, &error["error"]["code"], &error["id"]),
                (404, &json!(-32601), &json!(3)),
                "{message}"
            );
        }
    }
    let (headers, gone) =
        modern("resources/read", "sidenote:///Gone.md", &json!({ "uri": "sidenote:///Gone.md" }));
    let error = server.post(&headers.each_ref().map(String::as_str), &gone).json()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!("sidenote:///Gone.md")));
}

#[test]
fn subscribers_of_both_protocol_revisions_are_notified_of_changes() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let session = server.hello(&[]);
    let subscribe = |uri: &str| json!({ "jsonrpc": "2.0", "id": 4, "method": "resources/subscribe", "params": { "uri": uri } });
    assert_eq!(server.post(&[&session], &subscribe("sidenote:///Plan.md")).json()["result"], json!({}));
    assert_eq!(
        server.post(&[&session], &subscribe("sidenote:///../etc/passwd")).json()["error"]["code"],
        -32602
    );
    let mut old = server.listen(&session);
    let wish = json!({ "notifications": {
        "resourcesListChanged": true, "resourceSubscriptions": ["sidenote:///Plan.md", "sidenote:///.git/config"],
    } });
    let (headers, listen) = modern("subscriptions/listen", "", &wish);
    let mut new = server.connect();
    let (body, host) = (listen.to_string(), &server.address);
    let length = body.len();
    let [version, method, _] = headers;
    write!(new, "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\n{version}\r\n{method}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut new = BufReader::new(new);
    let granted = hear(&mut new, "notifications/subscriptions/acknowledged");
    assert_eq!(granted["params"]["notifications"]["resourceSubscriptions"], json!(["sidenote:///Plan.md"]));
    // The first scan may be under way still, and would tell of the edit as of anything else.
    server.post(
        &[],
        &json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "list_notes" } }),
    );
    vault.write("Plan.md", "The plan for low water.\n");
    for stream in [&mut old, &mut new] {
        let told = hear(stream, "notifications/resources/updated");
        assert_eq!(told["params"]["uri"], "sidenote:///Plan.md");
    }
    // Subscribers are notified also when a search finds the edit before the watcher does.
    vault.write("Plan.md", "The plan for no water.\n");
    vault.write("Third.md", "One more.\n");
    let search = json!({ "name": "search_notes", "arguments": { "query": "plan" } });
    server.post(&[], &json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": search }));
    let mut told = Vec::new();
    while told.len() < 2 {
        let mut line = String::new();
        assert!(old.read_line(&mut line).unwrap() > 0);
        for method in ["resources/updated", "resources/list_changed"] {
            if line.contains(method) {
                told.push(method);
            }
        }
    }
    hear(&mut new, "notifications/resources/updated");
    let unsubscribe = json!({ "jsonrpc": "2.0", "id": 7, "method": "resources/unsubscribe", "params": { "uri": "sidenote:///Plan.md" } });
    assert_eq!(server.post(&[&session], &unsubscribe).json()["result"], json!({}));
}

#[test]
fn only_local_hosts_and_origins_are_accepted() {
    let vault = vault();
    let server = Server::start(
        &vault,
        &["--allow-origin", "https://notes.example", "--allow-origin", "app://obsidian.md"],
    );
    for host in ["evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "127.0.0.2", "evil.com:80"] {
        for message in [hello(), list()] {
            assert_eq!(server.post(&[&format!("Host: {host}")], &message).status, 403, "{host}");
        }
    }
    for host in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:1234"] {
        assert_eq!(server.post(&[&format!("Host: {host}")], &list()).status, 200, "{host}");
    }
    for origin in [
        "http://evil.com",
        "http://localhost.evil.com",
        "http://127.0.0.1.evil.com",
        "null",
        "localhost",
        "file://localhost",
        "http://notes.example",
        "https://notes.example:8443",
        "https://notes.example.evil.com",
    ] {
        for message in [hello(), list()] {
            assert_eq!(server.post(&[&format!("Origin: {origin}")], &message).status, 403, "{origin}");
        }
    }
    for origin in [
        "http://localhost:5173",
        "http://localhost",
        "https://localhost:1",
        "http://127.0.0.1:8080",
        "http://[::1]:3000",
        "https://notes.example",
        "https://notes.example:443",
        "app://obsidian.md",
    ] {
        assert_eq!(server.post(&[&format!("Origin: {origin}")], &list()).status, 200, "{origin}");
    }
    for origin in ["notes.example", "https://notes.example/path", "*", ""] {
        let refused = vault.run(&["mcp", "--http", SERVER, "--allow-origin", origin]);
        assert_eq!(refused.status.code(), Some(2), "{origin}");
        assert!(stderr(&refused).contains("is not an origin"), "{}", stderr(&refused));
    }
}

#[test]
fn malformed_requests_are_refused() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let body = list().to_string();
    let post = |headers: &[&str], body: &str| server.send("POST", "/mcp", headers, body).status;
    assert_eq!(post(&[BOTH, "Content-Type: text/plain"], &body), 415);
    assert_eq!(post(&[BOTH], &body), 415);
    assert_eq!(post(&["Accept: text/event-stream", TYPE], &body), 406);
    assert_eq!(post(&["Accept: application/json;q=0, text/event-stream", TYPE], &body), 406);
    assert_eq!(post(&["Accept: text/html", TYPE], &body), 406);
    let refused = server.send("POST", "/mcp", &["Accept: text/html", TYPE], &body).text;
    assert!(refused.contains("accept application/json;"), "{refused}");
    // A request that is nested too deep is answered with an error.
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{{"deep":{deep}}}}}"#);
    let refused = server.send("POST", "/mcp", &[BOTH, TYPE], &deep);
    assert_eq!(refused.status, 400);
    assert!(
        refused.text.contains("nests more than") && refused.text.contains("\"id\":9"),
        "{}",
        refused.text
    );
    assert_eq!(post(&[BOTH, "Content-Type: application/json; charset=utf-8"], &body), 200);
    for broken in ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "\u{feff}{}"] {
        let status = post(&[BOTH, TYPE], broken);
        assert!((400..500).contains(&status), "{broken}: {status}");
    }
    // The longest request is taken, and one byte more is not.
    let filled = |length: usize| format!("{body}{}", " ".repeat(length - body.len()));
    assert_eq!(post(&[BOTH, TYPE], &filled(LARGEST)), 200);
    assert_eq!(post(&[BOTH, TYPE], &filled(LARGEST + 1)), 413);
    let session = server.hello(&[]);
    assert_eq!(post(&[BOTH, TYPE, &session], &filled(LARGEST + 1)), 413);
}

#[test]
fn a_call_without_a_session_is_answered_as_json_whatever_else_is_accepted() {
    let vault = TestVault::new(&[]);
    let memories = vault.root().join("memories");
    let server = Server::start(&vault, &["--notestore_path", memories.to_str().unwrap()]);
    let call = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": 1 } });
        json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params })
    };
    let accepts: [&[&str]; 5] = [
        &["Accept: */*"],
        &["Accept: application/json"],
        &["Accept: application/*, text/html;q=0.5"],
        &["Accept: application/json", "Accept: text/html"],
        &[],
    ];
    let mut answered = 0;
    for (at, accept) in accepts.iter().enumerate() {
        let title = format!("Memory {at}");
        for message in [
            call("write_mem", json!({ "title": title, "content": "We row." })),
            call("read_mem", json!({ "identifier": title })),
            call("search_mem", json!({ "query": "row" })),
            call("get_current_date", json!({})),
            list(),
            hello(),
        ] {
            let reply = server.send("POST", "/mcp", &[*accept, &[TYPE]].concat(), message.to_string());
            assert_eq!(reply.status, 200, "{accept:?}: {}", reply.text);
            assert_eq!(reply.header("content-type"), Some("application/json"), "{accept:?}");
            let result = serde_json::from_str::<Value>(&reply.text).unwrap()["result"].clone();
            assert_ne!(result["isError"], true, "{result}");
            assert!(result.is_object(), "{}", reply.text);
            answered += 1;
        }
    }
    assert_eq!(answered, 30);
    // A client that accepts anything is answered in a session; a stream needs a client that accepts streams.
    let session = server.hello(&[]);
    let asked = server.send("POST", "/mcp", &["Accept: */*", TYPE, &session], list().to_string());
    assert_eq!(asked.status, 200);
    let (headers, listen) = modern("subscriptions/listen", "", &json!({ "notifications": {} }));
    let headers = ["Accept: application/json", TYPE, &headers[0], &headers[1]];
    assert_eq!(server.send("POST", "/mcp", &headers, listen.to_string()).status, 406);
}

#[test]
fn allowed_origins_get_cors_headers() {
    let vault = vault();
    let file = vault.root().join(".token");
    let allowed = ["--allow-origin", "https://notes.example", "--token-file", file.to_str().unwrap()];
    let server = Server::start(&vault, &allowed);
    let token = format!("Authorization: Bearer {}", fs::read_to_string(&file).unwrap().trim());
    let page = "Origin: https://notes.example";
    let asks = "Access-Control-Request-Method: POST";
    // The browser asks without the token, and names headers that are not ours, too.
    let wants = "Access-Control-Request-Headers: authorization, Content-Type,mcp-protocol-version, x-other";
    let told = server.send("OPTIONS", "/mcp", &[page, asks, wants], "");
    assert_eq!((told.status, told.text.as_str()), (204, ""));
    for (name, value) in [
        ("access-control-allow-origin", "https://notes.example"),
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", "authorization, content-type, mcp-protocol-version"),
        ("vary", "Origin"),
    ] {
        assert_eq!(told.header(name), Some(value), "{name}");
    }
    // A refusal is read as well as an answer.
    let (refused, answered) = (server.post(&[page], &list()), server.post(&[page, &token], &list()));
    assert_eq!((refused.status, answered.status), (401, 200));
    for reply in [&refused, &answered] {
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://notes.example"));
        assert!(reply.header("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
    }
    // Other origins get no headers; local pages may call, and may not read.
    for (origin, status) in [
        ("http://localhost:5173", 401),
        ("http://notes.example", 403),
        ("https://notes.example:8443", 403),
        ("https://notes.example.evil.com", 403),
        ("null", 403),
    ] {
        let origin = format!("Origin: {origin}");
        for reply in [server.post(&[&origin], &list()), server.send("OPTIONS", "/mcp", &[&origin, asks], "")]
        {
            assert_eq!(reply.status, status, "{origin}");
            assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{origin}");
        }
    }
}

#[test]
fn an_allowed_host_name_needs_the_token() {
    let vault = vault();
    let file = vault.root().join(".token");
    let path = file.to_str().unwrap();
    let refused = vault.run(&["mcp", "--http", SERVER, "--allow-host", "notes.example"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--token-file"), "{}", stderr(&refused));
    for name in ["https://notes.example", "notes.example/mcp", "*", "*.example", "", "a@b"] {
        let args = ["mcp", "--http", SERVER, "--token-file", path, "--allow-host", name];
        let refused = vault.run(&args);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(stderr(&refused).contains("is not a host name"), "{}", stderr(&refused));
    }
    let hosts = ["--token-file", path, "--allow-host", "notes.example", "--allow-host", "Other.example:8443"];
    let server = Server::start(&vault, &hosts);
    let token = format!("Authorization: Bearer {}", fs::read_to_string(&file).unwrap().trim());
    for (host, status) in [
        ("notes.example", 200),
        ("NOTES.example:443", 200),
        ("other.example:8443", 200),
        ("127.0.0.1", 200),
        ("other.example:80", 403),
        ("notes.example.evil.com", 403),
        ("evil.com", 403),
    ] {
        let host = format!("Host: {host}");
        assert_eq!(server.post(&[&host, &token], &list()).status, status, "{host}");
        assert_ne!(server.post(&[&host], &list()).status, 200, "{host}");
    }
}

#[test]
fn invalid_json_and_invalid_params_are_reported() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let session = server.hello(&[]);
    for broken in ["{", "", "{\"jsonrpc\":\"2.0\",", "nul"] {
        for headers in [&[BOTH, TYPE][..], &[BOTH, TYPE, &session]] {
            let reply = server.send("POST", "/mcp", headers, broken);
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32700)), "{broken:?}");
        }
    }
    for params in
        [json!({}), json!({ "name": 5 }), json!({ "name": "read_note", "arguments": "x" }), json!([1])]
    {
        let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
        for headers in [&[][..], &[session.as_str()]] {
            let error = server.post(headers, &call).json()["error"].clone();
            assert_eq!(error["code"], -32602, "{params}: {error}");
            assert!(error["message"].as_str().unwrap().contains("Valid params"), "{error}");
        }
    }
}

/// Begins a request of `length` bytes and sends only a part of it.
fn begin(server: &Server, length: usize, part: usize) -> TcpStream {
    let mut stream = server.connect();
    let host = &server.address;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\nContent-Length: {length}\r\n\r\n"
    )
    .unwrap();
    stream.write_all(&vec![b' '; part]).unwrap();
    stream
}

#[test]
fn large_requests_in_flight_share_a_limit_that_is_released() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let body = list().to_string();
    let large = format!("{body}{}", " ".repeat(1 << 20));
    let large = || server.send("POST", "/mcp", &[BOTH, TYPE], &large).status;
    assert_eq!(large(), 200);
    let begun: Vec<TcpStream> = (0..4).map(|_| begin(&server, LARGEST, 1000)).collect();
    // The server may not have looked at all of them yet.
    assert!((0..20).any(|_| large() == 503), "large requests are not bounded");
    // Any number of small requests is accepted, and so are unfinished ones.
    let small: Vec<TcpStream> = (0..100).map(|_| begin(&server, 60_000, 50_000)).collect();
    for _ in 0..20 {
        assert_eq!(server.post(&[], &list()).status, 200);
    }
    drop((begun, small));
    assert!((0..20).any(|_| large() == 200), "the room does not come back");
    assert_eq!(large(), 200);
}

#[test]
fn beyond_the_limit_the_connection_that_waits_longest_is_closed() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let host = &server.address;
    // None of these has sent a whole request: nothing, a part of a head, or a part of a body.
    let begun = [
        String::new(),
        "POST /mcp HT".to_owned(),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\nContent-Length: 99\r\n\r\n{{"),
    ];
    let mut silent: Vec<TcpStream> = Vec::new();
    for begun in begun.iter().cycle().take(512) {
        let mut stream = server.connect();
        stream.write_all(begun.as_bytes()).unwrap();
        silent.push(stream);
    }
    for at in 0..20 {
        assert_eq!(server.post(&[], &list()).status, 200, "request {at}");
    }
    // Those that came first are gone, and the last one still may finish its request.
    let mut told = Vec::new();
    silent[0].read_to_end(&mut told).unwrap();
    assert!(told.is_empty(), "{told:?}");
    let last = silent.last_mut().unwrap();
    last.write_all(b"P /health HTTP/1.1\r\n").unwrap();
    last.set_nonblocking(true).unwrap();
    assert!(last.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
}

#[test]
fn subscriptions_are_limited_and_name_files() {
    let names: Vec<String> = (0..260).map(|at| format!("N{at:03}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let vault = TestVault::new(&files);
    let server = Server::start(&vault, &[]);
    let session = server.hello(&[]);
    let ask = |method: &str, uri: &str| {
        let method = format!("resources/{method}");
        let message = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": { "uri": uri } });
        server.post(&[&session], &message).json()
    };
    let uris: Vec<String> = names.iter().map(|name| format!("sidenote:///{name}")).collect();
    assert_eq!(ask("subscribe", "sidenote:///Gone.md")["error"]["code"], -32002);
    let long = format!("sidenote:///{}N000.md", "%2E/".repeat(2_000));
    assert_eq!(ask("subscribe", &long)["error"]["code"], -32602);
    for uri in &uris[..256] {
        assert_eq!(ask("subscribe", uri)["result"], json!({}), "{uri}");
    }
    let error = ask("subscribe", &uris[256])["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("at most 256 subscriptions"), "{error}");
    // One that is there already takes no more room, and one that goes gives it back.
    assert_eq!(ask("subscribe", &uris[0])["result"], json!({}));
    assert_eq!(ask("unsubscribe", &uris[0])["result"], json!({}));
    assert_eq!(ask("subscribe", &uris[256])["result"], json!({}));
    let mut wanted = vec!["sidenote:///Gone.md".to_owned()];
    wanted.extend(uris.iter().cloned());
    let wish = json!({ "notifications": { "resourceSubscriptions": wanted } });
    let (headers, listen) = modern("subscriptions/listen", "", &wish);
    let mut stream = server.connect();
    let (body, host) = (listen.to_string(), &server.address);
    let [version, method, _] = headers;
    let length = body.len();
    write!(stream, "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\n{version}\r\n{method}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let granted = hear(&mut BufReader::new(stream), "notifications/subscriptions/acknowledged");
    assert_eq!(granted["params"]["notifications"]["resourceSubscriptions"], json!(uris[..256]));
}

#[test]
fn headers_that_contradict_the_body_are_refused() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let call = json!({ "name": "search_notes", "arguments": { "query": "x" } });
    let (right, message) = modern("tools/call", "search_notes", &call);
    let [version, method, name] = right.each_ref().map(String::as_str);
    assert_eq!(server.post(&[version, method, name], &message).status, 200);
    for wrong in [
        [version, "Mcp-Method: tools/list", name],
        [version, method, "Mcp-Name: delete_note"],
        [version, method, ""],
        [version, "", name],
        ["MCP-Protocol-Version: 2025-11-25", method, name],
        ["MCP-Protocol-Version: 1999-01-01", method, name],
        ["", method, name],
    ] {
        let headers: Vec<&str> = wrong.into_iter().filter(|header| !header.is_empty()).collect();
        assert_eq!(server.post(&headers, &message).status, 400, "{wrong:?}");
    }
    assert_eq!(server.post(&["MCP-Protocol-Version: 2025-06-18"], &hello()).status, 400);
    assert_eq!(server.post(&["MCP-Protocol-Version: 1999-01-01"], &list()).status, 400);
}

#[test]
fn requests_without_the_token_are_refused() {
    let vault = vault();
    let file = vault.root().join(".token");
    let path = file.to_str().unwrap();
    let mut command = vault.command(&["mcp", "--http", SERVER, "--token-file", path]);
    let server = Server::of(command.env("SIDENOTE_LOG", "trace,rmcp=trace,hyper=trace"));
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert!(token.len() >= 32);
    #[cfg(unix)]
    assert_eq!(mode_of(&file), 0o600);
    let bearer = format!("Authorization: Bearer {token}");
    let session = server.hello(&[&bearer]);
    for shown in [
        "X-Nothing: x".to_owned(),
        "Authorization: Bearer wrong".to_owned(),
        format!("Authorization: Bearer {token}x"),
        format!("Authorization: Bearer {}", &token[1..]),
        format!("Authorization: Basic {token}"),
        format!("Authorization: {token}"),
        "Authorization: Bearer ".to_owned(),
    ] {
        // A session is no token.
        for headers in [[shown.as_str(), "X-Session: none"], [shown.as_str(), session.as_str()]] {
            let reply = server.post(&headers, &list());
            assert_eq!(reply.status, 401, "{shown}");
            assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"), "{shown}");
            assert!(!reply.text.contains(&token));
        }
    }
    let in_address = server.send("POST", &format!("/mcp?token={token}"), &[BOTH, TYPE], list().to_string());
    assert_eq!(in_address.status, 401);
    assert_eq!(server.send("GET", "/mcp", &["Accept: text/event-stream", &session], "").status, 401);
    assert_eq!(server.send("DELETE", "/mcp", &[&session], "").status, 401);
    assert_eq!(server.post(&[&format!("authorization: bearer {token}"), &session], &list()).status, 200);
    assert_eq!(server.post(&[&bearer], &list()).status, 200);
    let log = server.stop();
    assert!(!log.is_empty() && !log.contains(&token), "the log holds the token");
}

#[cfg(unix)]
#[test]
fn a_token_file_that_is_readable_by_others_or_too_short_is_refused() {
    let vault = vault();
    let file = vault.root().join("token");
    let path = file.to_str().unwrap();
    let refused = |says: &str| {
        let output = vault.run(&["mcp", "--http", SERVER, "--token-file", path]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    };
    fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    for mode in [0o644, 0o640, 0o602] {
        set_mode(&file, mode);
        refused("other users can read the token");
    }
    set_mode(&file, 0o600);
    fs::write(&file, "short\n").unwrap();
    refused("less than 16 characters");
}

#[test]
fn listening_beyond_loopback_requires_a_token() {
    let vault = vault();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = vault.run(&["mcp", "--http", address]);
        assert_eq!(refused.status.code(), Some(2), "{address}");
        assert!(stderr(&refused).contains("there is no token"), "{}", stderr(&refused));
    }
    let file = vault.root().join(".token");
    let mut command = vault.command(&["mcp", "--http", "0.0.0.0:0", "--token-file"]);
    let mut server = Server::of(command.arg(&file));
    server.address = server.address.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(server.post(&["Host: notes.example"], &list()).status, 401);
    let token = fs::read_to_string(&file).unwrap();
    let bearer = format!("Authorization: Bearer {}", token.trim());
    assert_eq!(server.post(&[&bearer, "Host: notes.example"], &list()).status, 200);
    assert_eq!(server.post(&[&bearer, "Origin: http://evil.com"], &list()).status, 403);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it reads the memory of the server from /proc")]
fn old_sessions_are_evicted_and_memory_stays_bounded() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let kept = server.hello(&[]);
    let ended: Vec<String> = (0..200).map(|_| server.hello(&[])).collect();
    // The first one was silent longest, and had to go.
    assert_eq!(server.post(&[&kept], &list()).status, 404);
    let before = server.memory();
    let mut stream = server.connect();
    let body = hello().to_string();
    let (host, length) = (&server.address, body.len());
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3_000 {
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        // The answer is a stream of chunks, of which the last one is empty.
        while line != "0\r\n" {
            line.clear();
            assert!(answers.read_line(&mut line).unwrap() > 0);
        }
        answers.read_line(&mut line).unwrap();
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 20 << 20, "{} kB more", grown >> 10);
    assert_eq!(server.post(&[&ended[199]], &list()).status, 404);
}

#[test]
fn ended_sessions_do_not_evict_others() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let kept = server.hello(&[]);
    for _ in 0..300 {
        let session = server.hello(&[]);
        assert_eq!(server.send("DELETE", "/mcp", &[&session], "").status, 204);
    }
    assert_eq!(server.post(&[&kept], &list()).status, 200);
}

#[test]
fn slow_and_silent_clients_do_not_block_others() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let session = server.hello(&[]);
    let host = &server.address;
    let begun = [
        String::new(),
        "POST /mcp HT".to_owned(),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n"),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\nContent-Length: 100\r\n\r\n{{\"json"
        ),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\n{session}\r\nContent-Length: 100\r\n\r\n{{"
        ),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{BOTH}\r\n{TYPE}\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{{"
        ),
    ];
    let silent: Vec<TcpStream> = begun
        .iter()
        .cycle()
        .take(300)
        .map(|begun| {
            let mut stream = server.connect();
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    // The test does not read these.
    let streams: Vec<BufReader<TcpStream>> = (0..20).map(|_| server.listen(&server.hello(&[]))).collect();
    for _ in 0..20 {
        assert_eq!(server.post(&[], &list()).status, 200);
        assert_eq!(server.post(&[&session], &list()).status, 200);
    }
    // The answers came while the silent clients were still connected.
    let is_open = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    let open = silent.iter().filter(|stream| is_open(stream)).count();
    assert_eq!(open, 300);
    // The end waits for none of them.
    server.stop();
    drop((silent, streams));
}

#[test]
#[cfg_attr(windows, ignore = "no signal reaches a program without a console")]
fn shutdown_closes_open_streams() {
    let vault = vault();
    let server = Server::start(&vault, &[]);
    let mut stream = server.listen(&server.hello(&[]));
    let log = server.stop();
    // The stream was ended, not cut at the end of a grace period.
    assert!(!log.contains("connections that are open still are cut"), "{log}");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
    // One that is asked at once has heard it, too.
    Server::start(&vault, &[]).stop();
}

/// Each session of a client is one commit when it ends, and those that are open are committed when the server ends.
#[cfg(unix)]
#[test]
fn a_session_is_one_commit() {
    let vault = crate::commits::notes();
    let mut command = vault.command(&["mcp", "--http", SERVER]);
    let server =
        Server::of(command.env("SIDENOTE_GIT_COMMIT", "session").env("SIDENOTE_LOG", "sidenote=debug"));
    let write = |session: &str, title: &str| {
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "write_note", "arguments": { "title": title, "content": title },
        } });
        let reply = server.post(&[session], &call).json();
        assert_eq!(reply["result"]["isError"], json!(false), "{reply}");
    };
    let (first, second) = (server.hello(&[]), server.hello(&[]));
    write(&first, "One");
    write(&second, "Two");
    write(&first, "Three");
    assert_eq!(git(vault.root(), &["rev-list", "--count", "HEAD"]), "1\n");
    assert_eq!(server.send("DELETE", "/mcp", &[&first], "").status, 204);
    until("the session is committed", || git(vault.root(), &["rev-list", "--count", "HEAD"]) == "2\n");
    let names = || git(vault.root(), &["show", "--format=%s", "--name-only", "HEAD"]);
    assert_eq!(names(), "sidenote: 2 operations (2 files)\n\nOne.md\nThree.md\n");
    server.stop();
    assert_eq!(names(), "sidenote: new Two.md\n\nTwo.md\n");
    assert_eq!(git(vault.root(), &["status", "--porcelain"]), "");
}
