//! The redirect at the end of a login: a listener on this machine that takes one request of the browser.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;
use sidenote_base::error::{Error, Result};

/// The path of the redirect.
const PATH: &str = "/callback";
/// The longest request in bytes.
const MAX_REQUEST: usize = 16 << 10;
/// How long a connection may take to send its request. A browser may open some that it does not use.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the wait for a connection pauses between two looks.
const PAUSE: Duration = Duration::from_millis(25);

const DONE: &str = "<!doctype html><meta charset=\"utf-8\"><title>sidenote</title>\
    <p>You are logged in. You can close this page.</p>";
const FAILED: &str = "<!doctype html><meta charset=\"utf-8\"><title>sidenote</title>\
    <p>The login failed. The terminal says why. You can close this page.</p>";

/// A listener for the browser, on a random port that only this machine can reach.
#[derive(Debug)]
pub(super) struct RedirectListener {
    listener: TcpListener,
    address: String,
}

/// The request of the browser, which waits for a page.
#[derive(Debug)]
pub(super) struct RedirectRequest {
    stream: TcpStream,
    parameters: Vec<(String, String)>,
}

impl RedirectListener {
    /// Starts to listen.
    ///
    /// # Errors
    /// `Io` if no port can be had.
    pub(super) fn start() -> Result<Self> {
        let failed = |error| Error::io("listen on", "127.0.0.1", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, address: format!("http://127.0.0.1:{port}{PATH}") })
    }

    /// Returns the address to which the provider redirects.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the redirect; `None` if `stop` was set or the time is over. Requests for anything else are answered with 404.
    ///
    /// # Errors
    /// `Io` if connections cannot be accepted.
    pub(super) fn wait(&self, stop: &AtomicBool, limit: Duration) -> Result<Option<RedirectRequest>> {
        let end = Instant::now() + limit;
        while !stop.load(Ordering::Relaxed) && Instant::now() < end {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Some(request) = receive(stream) {
                        return Ok(Some(request));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => return Err(Error::io("listen on", &self.address, error)),
            }
        }
        Ok(None)
    }
}

impl RedirectRequest {
    /// Returns the value of a parameter that is given once; `None` without it.
    ///
    /// # Errors
    /// `Invalid` if it is given several times.
    pub(super) fn parameter(&self, name: &str) -> Result<Option<&str>> {
        let mut values = self.parameters.iter().filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            (found, None) => Ok(found.map(|(_, value)| value.as_str())),
            _ => Err(Error::invalid(format!("the answer of the identity provider has {name} twice"))),
        }
    }

    /// Shows the person in the browser whether the login succeeded.
    pub(super) fn respond(mut self, is_done: bool) {
        respond(
            &mut self.stream,
            if is_done { "200 OK" } else { "400 Bad Request" },
            if is_done { DONE } else { FAILED },
        );
    }
}

/// Reads a request. Returns `None` if it is not the redirect; it is answered then.
fn receive(mut stream: TcpStream) -> Option<RedirectRequest> {
    let head = match read_head(&mut stream) {
        Ok(head) => head,
        Err(error) => {
            tracing::debug!("a connection of the browser ended: {error}");
            return None;
        }
    };
    let Some(query) = redirect_query(&head) else {
        respond(&mut stream, "404 Not Found", "");
        return None;
    };
    Some(RedirectRequest { stream, parameters: parameters(query) })
}

fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    // On some systems it has inherited this from the listener.
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let end = Instant::now() + REQUEST_TIMEOUT;
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = stream.read(&mut buffer)?;
        head.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if count == 0 || head.len() > MAX_REQUEST || Instant::now() > end {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    String::from_utf8(head).map_err(|_| ErrorKind::InvalidData.into())
}

/// Returns the query of a request for the path of the redirect.
fn redirect_query(head: &str) -> Option<&str> {
    let mut words = head.lines().next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_redirect =
        method == "GET" && path == PATH && version.starts_with("HTTP/1.") && words.next().is_none();
    is_redirect.then_some(query)
}

fn parameters(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Answers with a page that loads and runs nothing.
fn respond(stream: &mut TcpStream, status: &str, page: &str) {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    if let Err(error) = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()) {
        tracing::debug!("the browser did not take its page: {error}");
    }
}
