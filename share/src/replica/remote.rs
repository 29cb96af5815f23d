//! The service of a team as a synchronisation asks it: what changed, contents, commits. Errors are in words of the person.

use std::time::Duration;

use sidenote_foundation::config::Secret;
use sidenote_foundation::error::{Error, ErrorKind, Result};
use sidenote_foundation::http_client::{Http, HttpError, Reply};
use sidenote_foundation::text::edit::ContentHash;
use sidenote_foundation::vault::authority::SharedPosition;
use sidenote_foundation::vault::failpoint;
use sidenote_store::replication::protocol::{
    COMMIT_TYPE, Changes, CommitReply, CommitRequest, ConflictingFile,
};

/// The longest list of changes in bytes.
const MAX_CHANGES: u64 = 512 << 20;
/// The most bytes of a content, unless the service takes larger files.
const MAX_CONTENT: u64 = 256 << 20;
/// How often a request is repeated that the service asks to repeat.
const REPEATS: usize = 5;
/// The longest pause before a request is repeated.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// A vault of a service.
#[derive(Debug)]
pub(crate) struct Remote {
    http: Http,
    /// The address of the vault, without a slash at its end.
    url: String,
    token: Secret,
}

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum Committed {
    /// It was carried out, unless the vault had it all already.
    Done {
        /// Whether a change was made.
        is_new: bool,
    },
    /// Nothing was changed, because these files are not as the commit expects them.
    Conflicts(Vec<ConflictingFile>),
    /// Nothing was changed, because the person may not do this.
    Forbidden(Error),
    /// Nothing was changed, because the service does not take a file.
    Refused(Error),
}

impl Remote {
    /// Names a vault by its address, which may end in `/mcp`. Nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid` if the address is not one of a vault, or would send the token unencrypted through a network.
    pub(crate) fn new(url: &str, token: Secret) -> Result<Self> {
        let hint = "write it as https://notes.example/v/NAME";
        let plain = url.trim().trim_end_matches('/');
        let plain = plain.strip_suffix("/mcp").unwrap_or(plain);
        let (scheme, rest) = plain
            .split_once("://")
            .ok_or_else(|| Error::invalid(format!("{url} is not the address of a vault")).with_hint(hint))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_vault = path.rsplit('/').nth(1) == Some("v") && !path.ends_with('/');
        if host.is_empty() || !is_vault || rest.contains(['?', '#', '@', ' ']) {
            return Err(Error::invalid(format!("{url} is not the address of a vault")).with_hint(hint));
        }
        match scheme {
            "https" => {}
            "http" if is_loopback(host) => {}
            "http" => {
                return Err(Error::invalid(format!(
                    "{url} would send notes unencrypted through the network"
                ))
                .with_hint("use https://"));
            }
            _ => return Err(Error::invalid(format!("{url} is not the address of a vault")).with_hint(hint)),
        }
        Ok(Self { http: Http::default(), url: plain.to_owned(), token })
    }

    /// Returns the address of the vault.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks for the changes after a position. With an operation, the answer says whether that commit was carried out.
    pub(crate) fn changes(&self, since: Option<&SharedPosition>, operation: Option<&str>) -> Result<Changes> {
        let mut parameters = Vec::new();
        if let Some(since) = since {
            parameters.push(format!("since={}", since.generation));
            parameters.push(format!("origin={}", since.origin));
            parameters.extend(since.event.iter().map(|event| format!("event={event}")));
        }
        parameters.extend(operation.map(|operation| format!("operation={operation}")));
        let reply = self.get(&format!("/changes?{}", parameters.join("&")), MAX_CHANGES)?;
        match reply.status {
            200 => Changes::parse(&reply.body),
            _ => Err(self.refusal(&reply)),
        }
    }

    /// Fetches contents by their hash; `None` if no file of the vault has them now.
    pub(crate) fn content(&self, hash: ContentHash, largest: u64) -> Result<Option<Vec<u8>>> {
        let reply = self.get(&format!("/blob/{hash}"), largest.max(MAX_CONTENT))?;
        match reply.status {
            200 if ContentHash::of(&reply.body) == hash => Ok(Some(reply.body)),
            200 => Err(Error::new(ErrorKind::Io, "a content arrived with other bytes than were sent")
                .with_hint("try again")),
            // Whether the vault is gone is told by the next question for changes.
            404 => Ok(None),
            _ => Err(self.refusal(&reply)),
        }
    }

    /// Sends a commit. After an error it is not known whether it was carried out.
    pub(crate) fn commit(&self, request: &CommitRequest) -> Result<Committed> {
        let body = request.to_bytes()?;
        failpoint();
        let url = format!("{}/commit", self.url);
        let reply = self.repeat(|| self.http.post(&url, &self.token, COMMIT_TYPE, &body))?;
        failpoint();
        match reply.status {
            200 => match serde_json::from_slice::<CommitReply>(&reply.body) {
                Ok(told) => Ok(Committed::Done { is_new: told.id.is_some() }),
                Err(error) => Err(Error::corrupt("the answer to a commit cannot be read").with_source(error)),
            },
            403 => Ok(Committed::Forbidden(self.refusal(&reply))),
            409 => match serde_json::from_slice::<CommitReply>(&reply.body) {
                Ok(told) if !told.conflicts.is_empty() => Ok(Committed::Conflicts(told.conflicts)),
                _ => Err(Error::corrupt("the service names no file of a conflict")),
            },
            400..=499 if !matches!(reply.status, 401 | 404 | 408 | 429) => {
                Ok(Committed::Refused(self.refusal(&reply)))
            }
            _ => Err(self.refusal(&reply)),
        }
    }

    fn get(&self, path: &str, max: u64) -> Result<Reply> {
        failpoint();
        let url = format!("{}{path}", self.url);
        self.repeat(|| self.http.get(&url, &self.token, max))
    }

    /// Sends a request, and repeats it while the service asks for that. All requests can be repeated: a commit has an id.
    fn repeat(&self, send: impl Fn() -> Result<Reply, HttpError>) -> Result<Reply> {
        let mut repeated = 0;
        let mut is_first = true;
        loop {
            let reply = match send() {
                // The service closes connections that were idle for a while.
                Err(HttpError::Broken(_)) if std::mem::take(&mut is_first) => continue,
                sent => sent.map_err(|error| self.unreachable(error))?,
            };
            match reply.retry_after {
                Some(pause) if matches!(reply.status, 429 | 503) && repeated < REPEATS => {
                    repeated += 1;
                    std::thread::sleep(pause.min(MAX_PAUSE));
                }
                _ => return Ok(reply),
            }
        }
    }

    /// Returns the host of the service, as messages show it.
    fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split_once('/').map_or(rest, |(host, _)| host)
    }

    fn unreachable(&self, error: HttpError) -> Error {
        let host = self.host();
        let io = |text: String| Error::new(ErrorKind::Io, text);
        match error {
            HttpError::TimedOut => io(format!("the service at {host} does not answer"))
                .with_hint("try again; if it fails again, ask its operator"),
            HttpError::Unreachable(why) => io(format!("the service at {host} cannot be reached: {why}"))
                .with_hint("check the network and the address"),
            HttpError::Address(why) => Error::invalid(why),
            HttpError::Broken(why) => {
                io(format!("the connection to {host} broke: {why}")).with_hint("try again")
            }
            HttpError::Write(error) => Error::io("write", "an answer", error),
        }
    }

    /// Returns the error for an answer that refuses.
    fn refusal(&self, reply: &Reply) -> Error {
        let host = self.host();
        let said = String::from_utf8_lossy(&reply.body);
        let said = said.lines().next().unwrap_or_default().chars().take(300).collect::<String>();
        match reply.status {
            401 if self.token.is_empty() => Error::invalid(format!("{host} asks for a token")).with_hints(
                "give --token-file FILE with the token that the operator of the service gave you",
                "",
            ),
            401 => Error::invalid(format!("{host} does not accept the token"))
                .with_hint("the token may have expired or been replaced; ask the operator of the service"),
            403 => Error::invalid(format!("you may not do this in the vault: {said}"))
                .with_hint("ask an admin of the vault for the right"),
            404 => Error::not_found(format!("{} is no vault, or you have no right to it", self.url))
                .with_hint("check the name in the address; ask the operator of the service"),
            413 => Error::invalid(format!("{host} does not take so large a file: {said}")),
            301..=308 => Error::invalid(format!("{host} names another address for the vault"))
                .with_hint("open the address in a browser, and use the one that it leads to"),
            400..=499 => Error::invalid(format!("{host} refuses the request: {said}"))
                .with_hint("use the newest sidenote here and there"),
            status => Error::new(ErrorKind::Io, format!("{host} cannot answer now ({status}): {said}"))
                .with_hint("try again; if it fails again, ask the operator of the service"),
        }
    }
}

/// Says whether a host, which may have a port, is this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, _)) => inner,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
