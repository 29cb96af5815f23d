//! The blocking HTTP client for the services that the user configured or asked for. It is the only user of ureq.
//!
//! A key is sent in one header of one request. It is never sent to the target of a redirect, and appears in no message
//! and no log line.

mod authorities;
mod public;

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use sidenote_base::error::{Error, ErrorKind};
use sidenote_config::Secret;
use ureq::Agent;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

pub use self::authorities::authorities;
pub use self::public::{fetch_public_document, is_public};

/// The most bytes of a response body: more than 2,048 vectors of 4,096 numbers take.
const MAX_BODY: u64 = 256 << 20;
/// The timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for each read of a download.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The response of a server.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The time that the server asks to wait before a retry.
    pub retry_after: Option<Duration>,
    /// What the server says about how to log in (`WWW-Authenticate`).
    pub challenge: Option<String>,
    /// The kind of the error, as another sidenote names it.
    pub error_kind: Option<String>,
    /// Where the server says that the resource is (`Location`).
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why there is no response.
#[derive(Debug)]
pub enum HttpError {
    /// The request timed out.
    TimedOut,
    /// The server cannot be reached, for the reason that the system gives.
    Unreachable(String),
    /// The address or a header is invalid.
    Address(String),
    /// The response is not HTTP, or is incomplete.
    Broken(String),
    /// The response could not be written to its destination.
    Write(std::io::Error),
}

/// How long the answer to a request of files may take to begin.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// An HTTP client.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
}

impl Default for Http {
    fn default() -> Self {
        let config = Agent::config_builder()
            // The caller handles every status.
            .http_status_as_error(false)
            .user_agent(concat!("sidenote/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .tls_config(TlsConfig::builder().root_certs(trusted()).build())
            .build();
        Self { agent: config.new_agent() }
    }
}

/// Returns the authorities that are trusted, in the form that ureq takes. All clients share them.
fn trusted() -> RootCerts {
    static TRUSTED: OnceLock<Arc<Vec<Certificate<'static>>>> = OnceLock::new();
    let trusted = TRUSTED.get_or_init(|| Arc::new(authorities().map(Certificate::from_der).collect()));
    RootCerts::Specific(Arc::clone(trusted))
}

impl Http {
    /// Sends a GET request, and reads a response of at most `max` bytes. No redirect is followed.
    ///
    /// # Errors
    /// An error if there is no whole response. Every status is a response.
    pub fn get(&self, url: &str, key: &Secret, max: u64) -> Result<Reply, HttpError> {
        let request = self.agent.get(url).config().max_redirects(0).max_redirects_will_error(false);
        let request =
            request.timeout_recv_response(Some(ANSWER_TIMEOUT)).timeout_per_read(Some(READ_TIMEOUT));
        let mut request = request.build();
        if !key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", key.reveal()));
        }
        read(request.call().map_err(convert_error)?, max)
    }

    /// Sends a POST request with bytes of a media type. No redirect is followed.
    ///
    /// # Errors
    /// An error if there is no whole response. Every status is a response.
    pub fn post(&self, url: &str, key: &Secret, media_type: &str, body: &[u8]) -> Result<Reply, HttpError> {
        let request = self.agent.post(url).config().max_redirects(0).max_redirects_will_error(false);
        let request =
            request.timeout_recv_response(Some(ANSWER_TIMEOUT)).timeout_per_read(Some(READ_TIMEOUT));
        let mut request = request.build().content_type(media_type);
        if !key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", key.reveal()));
        }
        read(request.send(body).map_err(convert_error)?, MAX_BODY)
    }

    /// Sends a POST request with a JSON body, and waits at most `limit` for the response.
    ///
    /// # Errors
    /// An error if there is no whole response. Every status is a response.
    pub fn post_json(
        &self,
        url: &str,
        key: &Secret,
        body: &str,
        limit: Duration,
    ) -> Result<Reply, HttpError> {
        let request = self.agent.post(url).config();
        // Redirects are not followed: the texts and the key are meant for the configured address only.
        let request = request.timeout_global(Some(limit)).max_redirects(0).max_redirects_will_error(false);
        let mut request = request.build().content_type("application/json");
        if !key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", key.reveal()));
        }
        read(request.send(body).map_err(convert_error)?, MAX_BODY)
    }

    /// Sends a request without a key, which must be answered within `limit`: POST with a body of a media type, or else GET. No
    /// redirect is followed.
    ///
    /// # Errors
    /// An error if there is no whole response of at most `max` bytes. Every status is a response.
    pub fn exchange(
        &self,
        url: &str,
        body: Option<(&str, &str)>,
        max: u64,
        limit: Duration,
    ) -> Result<Reply, HttpError> {
        let accepted = ("Accept", "application/json");
        let sent = match body {
            None => {
                let request = self.agent.get(url).config().timeout_global(Some(limit));
                let request = request.max_redirects(0).max_redirects_will_error(false).build();
                request.header(accepted.0, accepted.1).call()
            }
            Some((media_type, body)) => {
                let request = self.agent.post(url).config().timeout_global(Some(limit));
                let request = request.max_redirects(0).max_redirects_will_error(false).build();
                request.header(accepted.0, accepted.1).content_type(media_type).send(body)
            }
        };
        read(sent.map_err(convert_error)?, max)
    }

    /// Downloads a file to `to`, and returns the status and the number of bytes. `progress` is called with the number
    /// of bytes so far, and the total if it is known.
    ///
    /// # Errors
    /// An error if there is no whole response, or if it cannot be written.
    pub fn download(
        &self,
        url: &str,
        key: &Secret,
        to: &mut dyn Write,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<(u16, u64), HttpError> {
        let request = self.agent.get(url).config().timeout_per_read(Some(READ_TIMEOUT)).max_redirects(5);
        let mut request = request.build();
        if !key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", key.reveal()));
        }
        let mut response = request.call().map_err(convert_error)?;
        let status = response.status().as_u16();
        if status != 200 {
            return Ok((status, 0));
        }
        let expected = response.body().content_length();
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 16];
        let (mut count, mut pace) = (0, Pace::start());
        loop {
            let read = pace.read(&mut body, &mut buffer)?;
            if read == 0 {
                break;
            }
            to.write_all(buffer.get(..read).unwrap_or_default()).map_err(HttpError::Write)?;
            count += read as u64;
            progress(count, expected);
        }
        if expected.is_some_and(|expected| expected != count) {
            return Err(HttpError::Broken(format!("the response ended after {count} bytes")));
        }
        Ok((status, count))
    }
}

/// Fetches a document of at most `max` bytes within `limit`. Redirects are not followed, and any status but 200 is an error.
///
/// # Errors
/// `NotFound` if the server has no such document; `Io` if it cannot be fetched, or is longer.
pub fn fetch_document(url: &str, max: u64, limit: Duration) -> Result<Vec<u8>, Error> {
    fetch_with(&Http::default().agent, url, max, limit)
}

/// Fetches a document by an agent.
fn fetch_with(agent: &Agent, url: &str, max: u64, limit: Duration) -> Result<Vec<u8>, Error> {
    let failed = |why: String| Error::new(ErrorKind::Io, format!("{url} cannot be fetched: {why}"));
    let request = agent.get(url).config().timeout_global(Some(limit));
    let request = request.max_redirects(0).max_redirects_will_error(false).build();
    let response = request.header("Accept", "application/json").call();
    let reply = response.map_err(convert_error).and_then(|response| read(response, max));
    match reply {
        Ok(Reply { status: 200, body, .. }) => Ok(body),
        Ok(Reply { status: 404, .. }) => Err(Error::not_found(format!("{url} does not exist"))),
        Ok(Reply { status, .. }) => Err(failed(format!("the server answers {status}"))),
        Err(HttpError::TimedOut) => Err(failed(format!("it takes longer than {} s", limit.as_secs()))),
        Err(HttpError::Unreachable(why) | HttpError::Address(why) | HttpError::Broken(why)) => {
            Err(failed(why))
        }
        Err(HttpError::Write(error)) => Err(failed(error.to_string())),
    }
}

fn read(mut response: Response<ureq::Body>, max: u64) -> Result<Reply, HttpError> {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let challenges = response.headers().get_all("www-authenticate").into_iter();
    let challenges: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
    let challenge = Some(challenges.join(", ")).filter(|challenge| !challenge.is_empty());
    let text =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (error_kind, location) = (text("sidenote-error"), text("location"));
    let mut reader = response.body_mut().with_config().limit(max).reader();
    let mut pace = Pace::start();
    let (mut body, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = pace.read(&mut reader, &mut buffer)?;
        if count == 0 {
            return Ok(Reply { status, retry_after, challenge, error_kind, location, body });
        }
        body.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
}

/// Returns whether this many bytes of a body arrived too slowly in this time: after a minute, at less than a tenth of
/// the rate of a slow mobile network.
pub fn is_too_slow(elapsed: Duration, received: u64) -> bool {
    /// The lowest rate, in bytes a second.
    const LOWEST: u64 = 4096;
    elapsed.saturating_sub(READ_TIMEOUT).as_secs().saturating_mul(LOWEST) > received
}

/// The pace at which the body of an answer arrives. A server that sends a byte now and then would hold its client for ever.
struct Pace {
    since: Instant,
    received: u64,
}

impl Pace {
    fn start() -> Self {
        Self { since: Instant::now(), received: 0 }
    }

    /// Reads the next part of a body; 0 bytes at its end.
    fn read(&mut self, body: &mut impl Read, buffer: &mut [u8]) -> Result<usize, HttpError> {
        if is_too_slow(self.since.elapsed(), self.received) {
            return Err(HttpError::TimedOut);
        }
        let count = body.read(buffer).map_err(|error| convert_error(ureq::Error::from(error)))?;
        self.received += count as u64;
        Ok(count)
    }
}

/// Reads the time to wait from the headers: milliseconds as OpenAI gives them, or seconds, or a date (RFC 9110,
/// 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = match text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        Some(milliseconds) => milliseconds / 1000.0,
        None => {
            let text = text("retry-after")?;
            match text.parse::<f64>() {
                Ok(seconds) => seconds,
                Err(_) => {
                    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_nanosecond();
                    (until - i128::from(sidenote_base::clock::wall_nanos())) as f64 / 1e9
                }
            }
        }
    };
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

/// Classifies an error of ureq.
fn convert_error(error: ureq::Error) -> HttpError {
    use std::io::ErrorKind;
    match error {
        ureq::Error::Timeout(_) => HttpError::TimedOut,
        ureq::Error::Io(error) if error.kind() == ErrorKind::TimedOut => HttpError::TimedOut,
        ureq::Error::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::UnexpectedEof
            ) =>
        {
            HttpError::Broken(error.to_string())
        }
        ureq::Error::Io(error) => HttpError::Unreachable(error.to_string()),
        ureq::Error::HostNotFound => HttpError::Unreachable("the host does not exist".to_owned()),
        ureq::Error::ConnectionFailed => HttpError::Unreachable("the connection failed".to_owned()),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => HttpError::Address(
            "the address is invalid, or the key contains characters that are not allowed in a header"
                .to_owned(),
        ),
        other => HttpError::Broken(other.to_string()),
    }
}

/// Returns whether requests to an address are safe from others on the way: it has `https`, or is on this machine.
pub fn is_secure(address: &str) -> bool {
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic()) && !address.contains(['\\', '#']);
    let Some((scheme, rest)) = address.split_once("://").filter(|_| is_plain) else { return false };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    match scheme {
        _ if host.is_empty() || host.contains('@') => false,
        "https" => true,
        "http" => is_loopback(host),
        _ => false,
    }
}

/// Says whether the host of an address, which may have a port, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, _)) => inner,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    is_loopback_name(name)
}

/// Says whether a name of a host, or an IP address, is this machine.
pub fn is_loopback_name(name: &str) -> bool {
    name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
