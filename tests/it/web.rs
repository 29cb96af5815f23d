//! Tests the server of the web page: who is let in, what it refuses, the built files, and the bytes of attachments. Requests
//! are written byte by byte to a process of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

#[cfg(unix)]
use crate::support::terminate;
use crate::support::{LIMIT, TestVault, stderr};

/// An address of any free port.
pub(crate) const ANY: [&str; 4] = ["web", "--addr", "127.0.0.1:0", "--no-open"];

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = bytes[end + 4..].to_vec();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = unchunked(&body);
        }
        Self { status, head, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| line.split(':').next().is_some_and(|own| own.eq_ignore_ascii_case(name));
        let line = self.head.lines().find(named)?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        whole.extend(&body[end + 2..end + 2 + length]);
        body = &body[end + 4 + length..];
    }
    whole
}

/// A server of its own, gone at the end of the test.
pub(crate) struct Page {
    pub(crate) child: Child,
    pub(crate) address: String,
    token: String,
    pub(crate) cookie: String,
}

impl Page {
    pub(crate) fn start(vault: &TestVault, args: &[&str]) -> Self {
        let mut page = Self::of(vault.command(&ANY).args(args));
        page.sign_in();
        page
    }

    /// Starts a server, and reads its address and token.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line
            .trim()
            .strip_prefix("http://")
            .and_then(|line| line.split_once("/?token="))
            .expect("an address");
        Self { child, address: address.to_owned(), token: token.to_owned(), cookie: String::new() }
    }

    pub(crate) fn sign_in(&mut self) {
        let reply = self.ask("GET", &format!("/?token={}", self.token), &[], "");
        assert_eq!(reply.status, 303, "{reply:?}");
        let cookie = reply.header("set-cookie").unwrap();
        self.cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends a request with these headers, and no others but its host and length.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Reply {
        let own = format!("Host: {}", self.address);
        let has_host = headers.iter().any(|header| header.starts_with("Host:"));
        let lines = headers.iter().copied().chain((!has_host).then_some(own.as_str()));
        let lines: String = lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let mut stream = self.connect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{lines}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The server may answer, and close, before all of it is there.
        drop(stream.write_all(body.as_bytes()));
        Reply::read(&mut stream)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[&self.cookie], "")
    }

    /// Reads an address of the API.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> Value {
        let reply = self.get(&format!("/api/v1/{path}"));
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        let headers = [self.cookie.as_str(), "Content-Type: application/json"];
        self.ask("POST", &format!("/api/v1/{path}"), &headers, &body.to_string())
    }

    /// Asks the server to end, and waits for the end.
    pub(crate) fn stop(mut self) {
        #[cfg(unix)]
        terminate(self.child.id());
        // No signal reaches a program without a console.
        #[cfg(windows)]
        self.child.kill().unwrap();
        let ended = self.child.wait().unwrap();
        assert!(ended.success() || cfg!(windows), "{ended}");
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // A failed test leaves no server running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn kind(reply: &Reply) -> String {
    reply.json()["error"]["kind"].as_str().unwrap().to_owned()
}

#[test]
fn the_token_becomes_a_cookie_and_leaves_the_address() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    let reply = page.ask("GET", &format!("/note/A.md?x=1&token={}&y=%20z", page.token), &[], "");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/note/A.md?x=1&y=%20z")));
    let cookie = reply.header("set-cookie").unwrap();
    let port = page.address.rsplit(':').next().unwrap();
    assert!(cookie.starts_with(&format!("sidenote-{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=15552000; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&page.token));
    // What follows is an address of this server, whatever the path begins with.
    let elsewhere = page.ask("GET", &format!("//evil.example/?token={}", page.token), &[], "");
    assert_eq!(elsewhere.header("location"), Some("/evil.example/"));
    assert_eq!(page.get("/").status, 200);
    assert_eq!(page.get("/api/v1/session").status, 200);
}

#[test]
fn without_the_cookie_nothing_is_told() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    for headers in [vec![], vec!["Cookie: sidenote-1=x"], vec!["Cookie: other=1; x"]] {
        let reply = page.ask("GET", "/api/v1/session", &headers, "");
        assert_eq!((reply.status, kind(&reply).as_str()), (401, "unauthorized"));
        let reply = page.ask("GET", "/note/A.md", &headers, "");
        assert_eq!(reply.status, 401);
        assert!(reply.text().contains("Not signed in"));
        assert_eq!(page.ask("POST", "/api/v1/actions/pin", &headers, "{}").status, 401);
        assert_eq!(page.ask("GET", "/api/v1/events", &headers, "").status, 401);
        assert_eq!(page.ask("GET", "/api/v1/raw/A.md", &headers, "").status, 401);
    }
    assert_eq!(page.ask("GET", "/?token=wrong", &[], "").status, 401);
    // The cookie of another vault is another one.
    let other = TestVault::new(&[("A.md", "text")]);
    let other = Page::start(&other, &[]);
    let (_, value) = other.cookie.split_once('=').unwrap();
    let port = page.address.rsplit(':').next().unwrap();
    let reply = page.ask("GET", "/api/v1/session", &[&format!("Cookie: sidenote-{port}={value}")], "");
    assert_eq!(reply.status, 401);
}

#[test]
fn other_names_and_origins_are_refused() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    let port = page.address.rsplit(':').next().unwrap().to_owned();
    let (own, cookie) = (format!("Host: {}", page.address), page.cookie.as_str());
    for host in ["evil.example", "evil.example:80", "127.0.0.1:1", "localhost", "127.0.0.1.evil.example"] {
        for path in ["/", "/api/v1/session", "/assets/x.js"] {
            let reply = page.ask("GET", path, &[&format!("Host: {host}"), cookie], "");
            assert_eq!((reply.status, kind(&reply).as_str()), (403, "forbidden"), "{host} {path}");
        }
    }
    for host in [format!("localhost:{port}"), format!("LOCALHOST:{port}"), format!("[::1]:{port}")] {
        assert_eq!(
            page.ask("GET", "/api/v1/session", &[&format!("Host: {host}"), cookie], "").status,
            200,
            "{host}"
        );
    }
    let origins =
        ["null", "http://evil.example", "http://127.0.0.1:1", "http://localhost.evil.example", "file://"];
    for origin in origins {
        let header = format!("Origin: {origin}");
        let reply = page.ask("GET", "/api/v1/session", &[&own, cookie, &header], "");
        assert_eq!((reply.status, kind(&reply).as_str()), (403, "forbidden"), "{origin}");
        let headers = [&own, cookie, &header, "Content-Type: application/json"];
        assert_eq!(
            page.ask("POST", "/api/v1/actions/pin", &headers, "{\"name\":\"A\"}").status,
            403,
            "{origin}"
        );
    }
    let same = format!("Origin: http://{}", page.address);
    assert_eq!(page.ask("GET", "/api/v1/session", &[&own, cookie, &same], "").status, 200);
    for site in ["cross-site", "same-site"] {
        let header = format!("Sec-Fetch-Site: {site}");
        assert_eq!(page.ask("GET", "/api/v1/session", &[&own, cookie, &header], "").status, 403);
        // A link on another page leads to ours.
        assert_eq!(page.ask("GET", "/", &[&own, cookie, &header], "").status, 200);
    }
    assert_eq!(vault.read("A.md"), "text");
}

#[test]
fn what_is_no_json_changes_nothing() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    let cookie = page.cookie.as_str();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = [cookie, &format!("Content-Type: {kind}")];
        assert_eq!(page.ask("POST", "/api/v1/actions/pin", &headers, "{\"name\":\"A\"}").status, 415);
    }
    assert_eq!(page.ask("POST", "/api/v1/actions/pin", &[cookie], "{\"name\":\"A\"}").status, 415);
    let long = "x".repeat((4 << 20) + 1);
    assert_eq!(page.post("actions/pin", &json!({ "name": long })).status, 413);
    for (body, status) in [("{", 400), ("[]", 400), ("{\"nam\":\"A\"}", 400), ("{}", 400)] {
        let reply =
            page.ask("POST", "/api/v1/actions/pin", &[cookie, "Content-Type: application/json"], body);
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
    assert_eq!(page.post("actions/explode", &json!({})).status, 404);
    assert_eq!(page.get("/api/v1/actions/pin").status, 404);
    assert_eq!(page.ask("DELETE", "/api/v1/note?name=A", &[cookie], "").status, 405);
    assert_eq!(page.ask("POST", "/", &[cookie], "").status, 405);
    assert_eq!(page.get("/api/v1/nothing").status, 404);
    assert_eq!(page.get("/api/v2/session").status, 404);
    assert_eq!(vault.read("A.md"), "text");
}

#[test]
fn a_server_that_reads_refuses_each_change() {
    let vault = TestVault::new(&[("A.md", "- [ ] do it\n[[B]]\n"), ("Old.md", "text\n")]);
    vault.run(&["memory", "pin", "Old"]);
    let before = vault.contents();
    let page = Page::start(&vault, &["--read-only"]);
    assert_eq!(page.read("session")["read_only"], true);
    let actions = [
        "pin",
        "unpin",
        "archive",
        "forget",
        "restore",
        "restore-file",
        "vote",
        "undo",
        "redo",
        "fix",
        "repair",
        "set",
        "task",
    ];
    for action in actions {
        for dry_run in [false, true] {
            let body = json!({"name": "A", "useful": true, "id": "x", "line": 1, "property": "p", "dry_run": dry_run});
            let reply = page.post(&format!("actions/{action}"), &body);
            assert_eq!((reply.status, kind(&reply).as_str()), (403, "read-only"), "{action}");
        }
    }
    page.read("search?q=text");
    page.read("note?name=A");
    page.stop();
    let kept = |files: &std::collections::BTreeMap<std::path::PathBuf, (Vec<u8>, std::time::SystemTime)>| {
        let notes = files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "md"));
        notes.map(|(path, held)| (path.clone(), held.clone())).collect::<Vec<_>>()
    };
    assert_eq!(kept(&vault.contents()), kept(&before));
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let vault = TestVault::new(&[("A.md", "text"), ("x.png", "png")]);
    let page = Page::start(&vault, &[]);
    for path in
        ["/", "/search?q=a", "/assets/none.js", "/api/v1/session", "/api/v1/nothing", "/api/v1/raw/x.png"]
    {
        let reply = page.get(path);
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{path}");
    }
    let policy = page.get("/").header("content-security-policy").unwrap().to_owned();
    let part = |name: &str| {
        let parts = policy.split("; ").find_map(|part| part.strip_prefix(name)?.strip_prefix(' '));
        parts.unwrap_or_else(|| panic!("{name} in {policy}")).to_owned()
    };
    assert_eq!(part("default-src"), "'none'");
    assert_eq!(part("script-src"), "'self'");
    assert_eq!(part("connect-src"), "'self'");
    assert_eq!(part("img-src"), "'self' data:");
    assert_eq!(part("frame-ancestors"), "'none'");
    assert!(!policy.contains("unsafe-eval") && !policy.contains('*') && !policy.contains("http"), "{policy}");
}

#[test]
fn attachments_are_shown_or_saved_and_run_nothing() {
    let page_text = "<script>alert(1)</script>";
    let vault = TestVault::new(&[
        ("A.md", "text"),
        ("files/pic one.png", "0123456789"),
        ("drawing.svg", "<svg onload='alert(1)'/>"),
        ("evil.html", page_text),
        ("paper.pdf", "%PDF-1.4"),
        ("clip.mp4", "movie"),
        ("odd\"name;.zip", "zip"),
        (".obsidian/app.json", "{}"),
    ]);
    let page = Page::start(&vault, &[]);
    let raw = |path: &str| page.get(&format!("/api/v1/raw/{path}"));
    let picture = raw("files/pic%20one.png");
    assert_eq!((picture.status, picture.text()), (200, "0123456789"));
    assert_eq!(picture.header("content-type"), Some("image/png"));
    assert_eq!(picture.header("content-disposition"), None);
    let drawing = raw("drawing.svg");
    assert_eq!(drawing.header("content-type"), Some("image/svg+xml"));
    assert!(drawing.header("content-security-policy").unwrap().contains("sandbox"));
    for path in ["evil.html", "A.md", "odd%22name%3B.zip"] {
        let reply = raw(path);
        assert_eq!(reply.header("content-type"), Some("application/octet-stream"), "{path}");
        assert!(
            reply.header("content-disposition").unwrap().starts_with("attachment; filename*=UTF-8''"),
            "{path}"
        );
        assert!(reply.header("content-security-policy").unwrap().contains("sandbox"), "{path}");
    }
    for (path, kind) in [("paper.pdf", "application/pdf"), ("clip.mp4", "video/mp4")] {
        assert_eq!(
            (raw(path).header("content-type"), raw(path).header("content-disposition")),
            (Some(kind), None)
        );
    }
    for path in [
        ".obsidian/app.json",
        "../etc/passwd",
        "%2e%2e/secret",
        "files/..%2f..%2fsecret",
        "%00",
        "none.png",
        "files",
        "",
        ".sidenote/index/catalog.db",
        "%ff",
    ] {
        let reply = raw(path);
        assert!(matches!(reply.status, 400 | 404), "{path}: {}", reply.status);
    }
    let part = |range: &str| {
        let header = format!("Range: {range}");
        let reply = page.ask("GET", "/api/v1/raw/files/pic%20one.png", &[&page.cookie, &header], "");
        (reply.status, reply.header("content-range").map(str::to_owned), reply.text().to_owned())
    };
    assert_eq!(part("bytes=2-4"), (206, Some("bytes 2-4/10".to_owned()), "234".to_owned()));
    assert_eq!(part("bytes=7-"), (206, Some("bytes 7-9/10".to_owned()), "789".to_owned()));
    assert_eq!(part("bytes=-3"), (206, Some("bytes 7-9/10".to_owned()), "789".to_owned()));
    assert_eq!(part("bytes=20-").0, 416);
}

#[test]
fn a_page_stays_signed_in_when_the_server_is_back() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let page = Page::start(&vault, &[]);
    let (address, cookie) = (page.address.clone(), page.cookie.clone());
    page.stop();
    let args = ["web", "--addr", address.as_str(), "--no-open"];
    let again = Page::of(&mut vault.command(&args));
    assert_eq!(again.ask("GET", "/api/v1/session", &[&cookie], "").status, 200);
}

#[test]
fn an_address_that_others_reach_needs_a_token_file() {
    let vault = TestVault::new(&[("A.md", "text")]);
    let refused = vault.run(&["web", "--addr", "0.0.0.0:0", "--no-open"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--token-file"), "{}", stderr(&refused));
    let file = vault.root().join(".home/token");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let args = ["web", "--addr", "0.0.0.0:0", "--no-open", "--token-file", file.to_str().unwrap()];
    let mut page = Page::of(&mut vault.command(&args));
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), page.token);
    page.sign_in();
    // The names of this machine in the network are not known.
    let reply = page.ask("GET", "/api/v1/session", &["Host: notes.example", &page.cookie], "");
    assert_eq!(reply.status, 200);
    let reply =
        page.ask("GET", "/api/v1/session", &["Host: notes.example", &page.cookie, "Origin: http://x"], "");
    assert_eq!(reply.status, 403);
}
