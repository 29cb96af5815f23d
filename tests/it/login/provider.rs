//! An identity provider on this machine: its metadata and its keys over HTTP, and counts of what was asked for.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::token::key_set;

/// What the provider answers to requests for its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Keys,
    /// Closes the connection.
    Nothing,
    /// Redirects to the keys at another path.
    Redirect,
    /// A document that is longer than allowed.
    TooLong,
    /// Keys without that of the tests.
    OtherKeys,
}

struct State {
    answer: Answer,
    asked: Vec<String>,
}

/// A running provider. Its thread lives as long as the tests.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    state: Arc<Mutex<State>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { answer: Answer::Keys, asked: Vec::new() }));
        let provider = Self { issuer, state };
        let served = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                served.answer(stream);
            }
        });
        provider
    }

    /// Sets what is answered to requests for the keys from now on.
    pub(crate) fn set(&self, answer: Answer) {
        self.state.lock().unwrap().answer = answer;
    }

    /// Gives the paths that were asked for since the last call.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let Some(Ok(first)) = lines.next() else { return };
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let mut state = self.state.lock().unwrap();
        state.asked.push(path.clone());
        let answer = state.answer;
        drop(state);
        let (status, body) = match (path.as_str(), answer) {
            (_, Answer::Nothing) => return,
            ("/.well-known/openid-configuration", _) => {
                let keys = format!("{}/keys", self.issuer);
                ("200 OK", json!({ "issuer": self.issuer, "jwks_uri": keys }).to_string())
            }
            ("/keys", Answer::Redirect) => ("302 Found\r\nLocation: /moved", String::new()),
            ("/keys", Answer::TooLong) => ("200 OK", format!("{}{}", key_set(), " ".repeat(1 << 20))),
            ("/keys", Answer::OtherKeys) => {
                let mut keys = key_set();
                keys["keys"].as_array_mut().unwrap().remove(0);
                ("200 OK", keys.to_string())
            }
            ("/keys" | "/moved", _) => ("200 OK", key_set().to_string()),
            _ => ("404 Not Found", String::new()),
        };
        let length = body.len();
        // The client may be gone.
        drop(write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ));
    }
}
