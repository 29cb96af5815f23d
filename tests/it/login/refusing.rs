//! Tests what a person is told by servers and proxies that refuse every request.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{clean_env, program, set_mode, stderr};

/// Starts a server that gives every request the same answer, and returns its host. `HOST` in
/// the head is replaced by it. It ends with the process.
fn answering(head: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let head = head.replace("HOST", &host);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = BufReader::new(stream.try_clone().unwrap());
            let head_lines = request.lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            assert!(head_lines.count() > 0);
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    host
}

#[test]
fn a_refusal_is_told_with_its_reason_and_what_helps() {
    let html = "<html>\n<head><title>502 Bad Gateway</title></head>\n";
    let named = "401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"http://HOST/metadata\"";
    let unknown_key = "401 Unauthorized\r\nRetry-After: 40";
    let cases = [
        // What is asked, the answer, what is said, and what is not.
        (
            "login",
            "403 Forbidden",
            "Forbidden: Host header is not allowed",
            "(403): Forbidden: Host",
            "no login",
        ),
        ("login", "404 Not Found", "", "names no identity provider", "/.well-known/"),
        ("login", "401 Unauthorized", "", "use `sidenote sync --token-file`", "/.well-known/"),
        ("login", named, "", "a proxy must pass on /.well-known/, too", "has no login"),
        ("sync", "502 Bad Gateway", html, "cannot answer now (502)\n", "html"),
        ("sync", "500 Internal Server Error", "out of memory", "now (500): out of memory", "html"),
        ("sync", unknown_key, "the access token does not count", "try again in 40 s", "sidenote login"),
        ("sync", "401 Unauthorized", "", "does not accept the token", "try again"),
    ];
    assert_eq!(cases.len(), 8);
    for (command, head, body, said, not_said) in cases {
        let home = TempDir::new().unwrap();
        let (token, folder) = (home.path().join("token"), home.path().join("folder"));
        fs::write(&token, "a token of sixteen characters\n").unwrap();
        set_mode(&token, 0o600);
        fs::create_dir(&folder).unwrap();
        let url = format!("http://{}/v/v", answering(head, body));
        let mut asked = Command::new(program());
        clean_env(&mut asked, home.path()).args([command, &url]);
        match command {
            "sync" => asked.arg("--vault").arg(&folder).arg("--token-file").arg(&token),
            _ => asked.arg("--no-browser"),
        };
        let done = asked.output().unwrap();
        let told = stderr(&done);
        assert!(!done.status.success(), "{command}: {head}");
        assert!(told.contains(said), "{said:?} is not in {told}");
        assert!(!told.contains(not_said), "{not_said:?} is in {told}");
    }
}
