//! The reasons for which an access token is refused. They name no part of the token.

use jsonwebtoken::errors::{Error, ErrorKind};

/// The reason for which an access token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The token is longer than any that is accepted.
    TooLong,
    /// The token is no signed JWT, or a claim has a wrong form.
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
