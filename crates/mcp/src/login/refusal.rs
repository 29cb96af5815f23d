//! The reasons for which an access token is refused, with what was expected and what was found. The token itself is in none.

use std::fmt;
use std::time::Duration;

use jsonwebtoken::errors::{Error, ErrorKind};
use serde_json::{Map, Value};
use sidenote_base::clock::Timestamp;
use sidenote_language::graphemes::shortened;
use sidenote_markdown::control::plain;

/// The longest value of a token that is quoted, in characters.
const MAX_QUOTED: usize = 200;

/// A token that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reason.
    pub refusal: Refusal,
    /// What was expected and what was found; empty where the reason says it all. It quotes what the token says, which anybody
    /// may have written, in a form that fits one line of a log.
    pub details: String,
    /// The time after which the keys of the provider are read again, where one of them is missing.
    pub retry_after: Option<Duration>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, details: String::new(), retry_after: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.refusal.reason())?;
        if self.details.is_empty() { Ok(()) } else { write!(f, ": {}", self.details) }
    }
}

impl Refusal {
    /// Adds what was expected and what was found.
    pub(super) fn told(self, details: String) -> Refused {
        Refused { refusal: self, details, retry_after: None }
    }
}

/// Quotes a value of a token for the log.
pub(super) fn quoted(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    plain(&shortened(&value.to_string(), MAX_QUOTED))
}

/// Says when a token is valid, by a claim with a time, and what time it is.
pub(super) fn told_time(claims: &Map<String, Value>, claim: &str, now: u64) -> String {
    let shown = |seconds: i64| match seconds.checked_mul(1_000).map(Timestamp::from_millis) {
        Some(time) => time.rfc3339(),
        None => seconds.to_string(),
    };
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let Some(time) = claims.get(claim).and_then(Value::as_f64) else {
        return format!("{claim} is {}", quoted(claims.get(claim)));
    };
    let time = time as i64;
    let between = now.saturating_sub(time).unsigned_abs();
    let side = if time <= now { "ago" } else { "from now" };
    format!("{claim} is {}, {between} s {side}; the clock of this server says {}", shown(time), shown(now))
}

/// The reason for which an access token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The token is longer than any that is accepted.
    TooLong,
    /// The token is not a signed JWT, or a claim has a wrong form.
    Malformed,
    /// The algorithm is none of those that are allowed.
    Algorithm,
    /// The token is of another type than an access token.
    Type,
    /// The token needs an extension that is not known here.
    Critical,
    /// The token names no key.
    NoKeyId,
    /// The issuer has no such key for the algorithm.
    UnknownKey,
    /// The signature is not that of the key.
    Signature,
    /// The issuer is none that the operator trusts.
    Issuer,
    /// The token is for another service or vault.
    Audience,
    /// The token has no time of expiry.
    NoExpiry,
    /// The token has expired.
    Expired,
    /// The token is not valid yet.
    Early,
    /// The token names no subject, or one with control characters.
    Subject,
    /// The keys of the issuer cannot be read, so nothing is known about the token.
    NoKeys,
}

impl Refusal {
    /// Returns the reason as a clause for the log.
    pub fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "it is longer than 8 KB",
            Self::Malformed => "it is not a well-formed JWT",
            Self::Algorithm => "its algorithm is not one of login.algorithms",
            Self::Type => "its type is neither at+jwt nor JWT",
            Self::Critical => "it requires an extension that is not known",
            Self::NoKeyId => "it names no key",
            Self::UnknownKey => "its issuer has no such key for its algorithm",
            Self::Signature => "its signature is wrong",
            Self::Issuer => "its issuer is not login.issuer",
            Self::Audience => "its audience is neither this vault nor one of login.audiences",
            Self::NoExpiry => "it has no time of expiry",
            Self::Expired => "it has expired",
            Self::Early => "it is not valid yet",
            Self::Subject => "it names no subject",
            Self::NoKeys => "the keys of its issuer cannot be read",
        }
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::ExpiredSignature => Self::Expired,
            ErrorKind::ImmatureSignature => Self::Early,
            ErrorKind::InvalidAudience => Self::Audience,
            ErrorKind::InvalidIssuer => Self::Issuer,
            ErrorKind::MissingRequiredClaim(claim) if claim == "exp" => Self::NoExpiry,
            ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => Self::Audience,
            ErrorKind::InvalidSignature => Self::Signature,
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Self::Algorithm,
            _ => Self::Malformed,
        }
    }
}
