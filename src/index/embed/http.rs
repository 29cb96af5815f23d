//! Owns HTTP as a client: what is sent to an endpoint that the user named, and files that the user asked for. The only
//! ureq user.
//!
//! A key goes into one header of one request, and never along a redirect, into a message or into the log.

use std::io::{Read, Write};
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, Response};

use crate::config::Secret;

/// An answer longer than this is none of ours: 2,048 vectors of 4,096 numbers.
const LONGEST: u64 = 256 << 20;
/// A connection that is not there by then is given up.
const CONNECT: Duration = Duration::from_secs(10);
/// A download that is silent for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// What a server said.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// How long it asks to wait.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It took too long.
    TimedOut,
    /// Nobody is there, in the system's words.
    Unreachable(String),
    /// The address cannot be one.
    Address(String),
    /// What came was no HTTP, or ended in the middle.
    Broken(String),
    /// What came could not be kept.
    Kept(std::io::Error),
}

/// A client.
pub(super) struct Http {
    agent: Agent,
}

impl Default for Http {
    fn default() -> Self {
        let config = Agent::config_builder()
            // A status is for the caller to explain.
            .http_status_as_error(false)
            .user_agent(concat!("sidenote/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT))
            .build();
        Self { agent: config.new_agent() }
    }
}

impl Http {
    /// Sends JSON and waits for the answer, `limit` at most.
    pub(super) fn post_json(
        &self,
        url: &str,
        key: &Secret,
        body: &str,
        limit: Duration,
    ) -> Result<Reply, Trouble> {
        let request = self.agent.post(url).config();
        // Nothing is told where it leads on: the texts and the key are for the address that the user gave.
        let request = request.timeout_global(Some(limit)).max_redirects(0).max_redirects_will_error(false);
        let mut request = request.build().content_type("application/json");
        if !key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", key.reveal()));
        }
        read(request.send(body).map_err(trouble)?)
    }

    /// Writes a file from the web to `to`; gives the status, and how many bytes there were. `heard` hears how many have
    /// come, and of how many.
    pub(super) fn download(
        &self,
        url: &str,
        key: &Secret,
        to: &mut dyn Write,
        heard: &dyn Fn(u64, Option<u64>),
    ) -> Result<(u16, u64), Trouble> {
        let request = self.agent.get(url).config().timeout_per_read(Some(SILENCE)).max_redirects(5);
        let mut request = request.build();
        if !key.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", key.reveal()));
        }
        let mut response = request.call().map_err(trouble)?;
        let status = response.status().as_u16();
        if status != 200 {
            return Ok((status, 0));
        }
        let expected = response.body().content_length();
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 16];
        let mut count = 0;
        loop {
            let read = body.read(&mut buffer).map_err(|error| Trouble::Broken(error.to_string()))?;
            if read == 0 {
                break;
            }
            to.write_all(buffer.get(..read).unwrap_or_default()).map_err(Trouble::Kept)?;
            count += read as u64;
            heard(count, expected);
        }
        if expected.is_some_and(|expected| expected != count) {
            return Err(Trouble::Broken(format!("it ended after {count} bytes")));
        }
        Ok((status, count))
    }
}

fn read(mut response: Response<ureq::Body>) -> Result<Reply, Trouble> {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let body = response.body_mut().with_config().limit(LONGEST).read_to_vec().map_err(trouble)?;
    Ok(Reply { status, retry_after, body })
}

/// Reads how long to wait: milliseconds, as OpenAI gives them, or seconds, or a date (RFC 9110, 10.2.3).
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
                    (until - i128::from(crate::clock::wall_nanos())) as f64 / 1e9
                }
            }
        }
    };
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

fn trouble(error: ureq::Error) -> Trouble {
    use std::io::ErrorKind;
    match error {
        ureq::Error::Timeout(_) => Trouble::TimedOut,
        ureq::Error::Io(error) if error.kind() == ErrorKind::TimedOut => Trouble::TimedOut,
        ureq::Error::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::UnexpectedEof
            ) =>
        {
            Trouble::Broken(error.to_string())
        }
        ureq::Error::Io(error) => Trouble::Unreachable(error.to_string()),
        ureq::Error::HostNotFound => Trouble::Unreachable("there is no such host".to_owned()),
        ureq::Error::ConnectionFailed => Trouble::Unreachable("the connection failed".to_owned()),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            Trouble::Address("it is no address, or the key holds signs that no header may".to_owned())
        }
        other => Trouble::Broken(other.to_string()),
    }
}
