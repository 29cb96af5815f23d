//! The requests of a synchronisation to the service of a team: changes, contents, commits. Errors are worded for the person.

use std::time::Duration;

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::safe_open::MAX_IN_MEMORY;
use sidenote_config::Secret;
use sidenote_http_client::{Http, HttpError, Reply};
use sidenote_markdown::control::plain;
use sidenote_markdown::edit::ContentHash;
use sidenote_store::replication::protocol::{
    COMMIT_TYPE, Changes, CommitReply, CommitRequest, ConflictingFile,
};
use sidenote_vault::authority::SharedPosition;
use sidenote_vault::failpoint;

use crate::address::VaultAddress;
use crate::oauth::token_source::TokenSource;
use crate::refusal_text::said;

/// The longest list of changes in bytes.
const MAX_CHANGES: u64 = 512 << 20;
/// The most bytes of a content, unless the service takes larger files; never more than is held in memory.
const MAX_CONTENT: u64 = 256 << 20;
/// How often a request is repeated that the service asks to repeat.
const REPEATS: usize = 5;
/// The longest pause before a request is repeated.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// A vault of a service.
#[derive(Debug)]
pub(crate) struct Remote {
    http: Http,
    address: VaultAddress,
    token: TokenSource,
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
    /// Nothing was changed, because the vault would exceed a quota of its size.
    OverQuota(Error),
}

impl Remote {
    /// Names a vault by its address. Nothing is sent yet.
    pub(crate) fn new(address: VaultAddress, token: TokenSource) -> Self {
        Self { http: Http::default(), address, token }
    }

    /// Returns the address of the vault.
    pub(crate) fn url(&self) -> &str {
        self.address.url()
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
        self.blob(&format!("/blob/{hash}"), hash, largest)
    }

    /// Fetches contents that a file of the vault had; `None` if the vault does not have them any more.
    pub(crate) fn earlier_content(&self, hash: ContentHash, largest: u64) -> Result<Option<Vec<u8>>> {
        self.blob(&format!("/blob/{hash}?earlier=1"), hash, largest)
    }

    fn blob(&self, path: &str, hash: ContentHash, largest: u64) -> Result<Option<Vec<u8>>> {
        let reply = self.get(path, largest.clamp(MAX_CONTENT, MAX_IN_MEMORY))?;
        match reply.status {
            200 if ContentHash::of(&reply.body) == hash => Ok(Some(reply.body)),
            200 => Err(Error::new(ErrorKind::Io, "a content arrived with other bytes than were sent")
                .with_hint("try again")),
            // The next request for changes shows whether the vault is gone.
            404 => Ok(None),
            _ => Err(self.refusal(&reply)),
        }
    }

    /// Sends a commit. After an error it is not known whether it was carried out.
    pub(crate) fn commit(&self, request: &CommitRequest) -> Result<Committed> {
        let body = request.to_bytes()?;
        failpoint();
        let url = format!("{}/commit", self.url());
        let reply = self.repeat(|token| self.http.post(&url, token, COMMIT_TYPE, &body))?;
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
            413 if is_over_quota(&reply) => Ok(Committed::OverQuota(self.refusal(&reply))),
            400..=499 if !matches!(reply.status, 401 | 404 | 408 | 429) => {
                Ok(Committed::Refused(self.refusal(&reply)))
            }
            _ => Err(self.refusal(&reply)),
        }
    }

    fn get(&self, path: &str, max: u64) -> Result<Reply> {
        failpoint();
        let url = format!("{}{path}", self.url());
        self.repeat(|token| self.http.get(&url, token, max))
    }

    /// Sends a request, and repeats it while the service asks for that, or with a new token where the service does not accept
    /// the old one. All requests can be repeated: a commit has an id.
    fn repeat(&self, send: impl Fn(&Secret) -> Result<Reply, HttpError>) -> Result<Reply> {
        let mut repeated = 0;
        let mut is_first = true;
        let mut is_renewed = false;
        let mut token = self.token.current()?;
        loop {
            let reply = match send(&token) {
                // The service closes connections that were idle for a while.
                Err(HttpError::Broken(_)) if std::mem::take(&mut is_first) => continue,
                sent => sent.map_err(|error| self.unreachable(error))?,
            };
            if reply.status == 401
                && !std::mem::replace(&mut is_renewed, true)
                && let Some(renewed) = self.token.renewed(&token)?
            {
                token = renewed;
                continue;
            }
            match reply.retry_after {
                Some(pause) if matches!(reply.status, 429 | 503) && repeated < REPEATS => {
                    repeated += 1;
                    std::thread::sleep(pause.min(MAX_PAUSE));
                }
                _ => return Ok(reply),
            }
        }
    }

    fn unreachable(&self, error: HttpError) -> Error {
        let host = self.address.host();
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
        let host = self.address.host();
        let said = said(reply);
        match reply.status {
            401 if let Some(pause) = reply.retry_after => {
                let text = format!("{host} does not know the key of the token yet");
                Error::new(ErrorKind::Io, text).with_hint(format!(
                    "the identity provider has begun to use a new key; try again in {} s",
                    pause.as_secs()
                ))
            }
            401 => self.not_accepted(),
            403 => Error::invalid(format!("you may not do this in the vault{said}"))
                .with_hint(self.hint_for_rights(reply.challenge.as_deref().unwrap_or_default())),
            404 => Error::not_found(format!("{} is no vault, or you have no right to it", self.url()))
                .with_hint("check the name in the address; ask the operator of the service"),
            413 | 429 if is_over_quota(reply) => {
                let text = String::from_utf8_lossy(&reply.body);
                let error = Error::new(ErrorKind::Quota, plain(text.lines().next().unwrap_or_default()));
                match reply.retry_after {
                    Some(pause) => error.with_hint(format!("try again in {} s", pause.as_secs())),
                    None => error.with_hint("remove files, also those in the trash, or ask the operator of the service for a higher quota"),
                }
            }
            413 => Error::invalid(format!("{host} does not take so large a file{said}")),
            410 => Error::not_found(format!("{} is no vault any more{said}", self.url()))
                .with_hint("the folder stays as it is; stop synchronising it, or ask the operator of the service"),
            308 if let Some(url) = self.renamed_to(reply) => {
                Error::not_found(format!("{} has another address now{said}", self.url()))
                    .with_hint(format!("the folder stays as it is; go on with `sidenote sync {url}`, and log in there first if you log in"))
            }
            301..=308 => Error::invalid(format!("{host} names another address for the vault"))
                .with_hint("open the address in a browser, and use the one that it leads to"),
            400..=499 => Error::invalid(format!("{host} refuses the request{said}"))
                .with_hint("use the newest sidenote here and there"),
            status => Error::new(ErrorKind::Io, format!("{host} cannot answer now ({status}){said}"))
                .with_hint("try again; if it fails again, ask the operator of the service"),
        }
    }

    /// Returns the address of a vault that was renamed: the place that the answer names has the new name where this has the former.
    fn renamed_to(&self, reply: &Reply) -> Option<String> {
        let place = reply.location.as_deref()?;
        let name = place.strip_prefix("../")?.trim_start_matches("../").split('/').next()?;
        let (start, _) = self.url().rsplit_once('/')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        is_name.then(|| format!("{start}/{name}"))
    }

    /// Returns the error for a request whose token does not count.
    fn not_accepted(&self) -> Error {
        let (host, url) = (self.address.host(), self.url());
        match &self.token {
            TokenSource::None => Error::invalid(format!("{host} asks for a token")).with_hints(
                format!("run `sidenote login {url}`, or give --token-file FILE with the token that the operator of the service gave you"),
                "",
            ),
            TokenSource::File(_) => Error::invalid(format!("{host} does not accept the token"))
                .with_hint("the token may have expired or been replaced; ask the operator of the service"),
            TokenSource::Stored(_) => Error::invalid(format!("{host} does not accept your login any more"))
                .with_hint(format!("run `sidenote login {url}`")),
        }
    }

    /// Says what helps against a missing right: another login where the token allows too little, else a role.
    fn hint_for_rights(&self, challenge: &str) -> String {
        let lacks_scope = challenge.contains("insufficient_scope");
        match &self.token {
            TokenSource::Stored(_) if lacks_scope && challenge.contains("notes:admin") => {
                format!("run `sidenote login {} --admin`", self.url())
            }
            TokenSource::Stored(_) if lacks_scope => format!("run `sidenote login {}`", self.url()),
            _ => "ask an admin of the vault for the right".to_owned(),
        }
    }
}

/// Returns whether an answer refuses a change because it would exceed a quota.
fn is_over_quota(reply: &Reply) -> bool {
    reply.error_kind.as_deref() == Some(ErrorKind::Quota.name())
}
