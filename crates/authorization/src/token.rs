//! Random tokens of 256 bits, their hashes at rest, and the check of PKCE.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sidenote_base::error::{Error, Result};

/// The bytes of a token, which nobody can guess.
const TOKEN_BYTES: usize = 32;
/// The characters of a SHA-256 in base64url, which a code challenge of the method S256 has (RFC 7636, 4.2).
const HASH_CHARACTERS: usize = 43;
/// The bounds of the length of a code verifier (RFC 7636, 4.1).
const VERIFIER_LENGTHS: std::ops::RangeInclusive<usize> = 43..=128;

/// The SHA-256 of a token, which alone is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct TokenHash(String);

impl TokenHash {
    /// Hashes a token.
    pub(crate) fn of(token: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(Sha256::digest(token.as_bytes())))
    }
}

/// Fills bytes with random numbers of the system.
///
/// # Errors
/// `Internal` if the system has none.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::internal(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

/// Returns a new random token, which begins with `prefix`, so that scanners for secrets know it.
///
/// # Errors
/// `Internal` if the system has no random numbers.
pub(crate) fn new_token(prefix: &str) -> Result<String> {
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random_bytes::<TOKEN_BYTES>()?)))
}

/// What separates the family of a refresh token from the rest: no character of base64url.
const FAMILY_END: char = '.';

/// Returns a new token of a family of tokens.
///
/// # Errors
/// `Internal` if the system has no random numbers.
pub(crate) fn next_of_family(family: &str) -> Result<String> {
    new_token(&format!("{family}{FAMILY_END}"))
}

/// Returns the family of a token, if it has one.
pub(crate) fn family_of(token: &str) -> Option<&str> {
    token.split_once(FAMILY_END).map(|(family, _)| family)
}

/// Returns a new id of 96 random bits, which is shown and typed.
///
/// # Errors
/// `Internal` if the system has no random numbers.
pub(crate) fn new_id() -> Result<String> {
    Ok(random_bytes::<12>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns whether a text is a code challenge of the method S256.
pub(crate) fn is_challenge(text: &str) -> bool {
    text.len() == HASH_CHARACTERS
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns whether a code verifier is the one of a challenge.
pub(crate) fn verifies(verifier: &str, challenge: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    VERIFIER_LENGTHS.contains(&verifier.len())
        && verifier.bytes().all(is_unreserved)
        && is_same(
            URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())).as_bytes(),
            challenge.as_bytes(),
        )
}

/// Compares secrets in a time that does not depend on where they differ.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    // Hashes are compared in constant time.
    blake3::hash(one) == blake3::hash(other)
}
