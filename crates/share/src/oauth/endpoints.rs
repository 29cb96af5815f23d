//! Requests to the endpoints of an identity provider: registration, tokens and revocation. No token reaches a message.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_config::Secret;
use sidenote_http_client::{Http, Reply};
use sidenote_language::graphemes::shortened;
use sidenote_markdown::control::plain;

use crate::oauth::discovery::{MAX_DOCUMENT, ServerMetadata, network_error};

/// The time in which an endpoint must answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The longest token in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// The most characters of a provider's words that are shown.
const MAX_SHOWN: usize = 300;
/// What is not escaped in a form (RFC 3986, 2.3).
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The tokens that a provider gives.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    /// The refresh token; empty if there is none.
    pub(super) refresh: Secret,
    /// The seconds after which the access token expires, if the provider says it.
    pub(super) seconds: Option<i64>,
    /// The granted scopes, if the provider says them.
    pub(super) scope: Option<String>,
}

/// What a provider says about a request that it refuses (RFC 6749, 5.2).
#[derive(Debug, Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

/// Registers a public client, and returns its id (RFC 7591).
///
/// # Errors
/// `Invalid` if the provider refuses; `Io` if it cannot be reached.
pub(super) fn register(http: &Http, endpoint: &str, redirect: &str) -> Result<String> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
    }
    let metadata = json!({
        "client_name": "sidenote",
        "redirect_uris": [redirect],
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let body = metadata.to_string();
    let reply = http.exchange(endpoint, Some(("application/json", &body)), MAX_DOCUMENT, TIMEOUT);
    let reply = reply.map_err(|error| network_error(endpoint, error))?;
    if !matches!(reply.status, 200 | 201) {
        return Err(refusal("does not register this program", endpoint, &reply, &[])
            .with_hint("ask the operator of the service for a client id, and give it with --client-id"));
    }
    let registered = serde_json::from_slice::<Registered>(&reply.body).ok();
    let id = registered.map(|registered| registered.client_id).filter(|id| !id.is_empty());
    id.ok_or_else(|| Error::invalid(format!("{endpoint} answers a registration without a client id")))
}

/// Exchanges the code of an authorization for tokens.
///
/// # Errors
/// `Invalid` if the provider refuses the code; `Io` if it cannot be reached.
pub(super) fn exchange_code(
    http: &Http,
    endpoint: &str,
    code: &str,
    verifier: &str,
    (client_id, redirect, resource): (&str, &str, &str),
) -> Result<Tokens> {
    let form = form(&[
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect),
        ("client_id", client_id),
        ("code_verifier", verifier),
        ("resource", resource),
    ]);
    tokens(http, endpoint, &form, "does not accept the code of the login", &[code, verifier])
}

/// Exchanges a refresh token for new tokens.
///
/// # Errors
/// `Invalid` if the provider refuses the token; `Io` if it cannot be reached.
pub(super) fn refresh(
    http: &Http,
    endpoint: &str,
    token: &Secret,
    client_id: &str,
    resource: &str,
) -> Result<Tokens> {
    let form = form(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", token.reveal()),
        ("client_id", client_id),
        ("resource", resource),
    ]);
    tokens(http, endpoint, &form, "does not renew the login", &[token.reveal()])
}

/// Revokes a token (RFC 7009).
///
/// # Errors
/// `Invalid` if the provider refuses; `Io` if it cannot be reached.
pub(super) fn revoke(http: &Http, endpoint: &str, token: &Secret, kind: &str, client_id: &str) -> Result<()> {
    let form = form(&[("token", token.reveal()), ("token_type_hint", kind), ("client_id", client_id)]);
    let reply = post(http, endpoint, &form)?;
    match reply.status {
        200..=299 => Ok(()),
        _ => Err(refusal("does not revoke the token", endpoint, &reply, &[token.reveal()])),
    }
}

/// Makes the address to which the browser is sent.
pub(super) fn authorization_address(server: &ServerMetadata, parameters: &[(&str, &str)]) -> String {
    let endpoint = &server.authorization_endpoint;
    let sign = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{sign}{}", form(parameters))
}

/// Formats what a provider says, in one line without control characters.
pub(super) fn said(error: &str, description: &str) -> String {
    let text = if description.is_empty() { error.to_owned() } else { format!("{error}: {description}") };
    plain(&shortened(&text, MAX_SHOWN))
}

fn form(fields: &[(&str, &str)]) -> String {
    let pairs =
        fields.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, UNESCAPED)));
    pairs.collect::<Vec<String>>().join("&")
}

fn post(http: &Http, endpoint: &str, form: &str) -> Result<Reply> {
    let body = Some(("application/x-www-form-urlencoded", form));
    http.exchange(endpoint, body, MAX_DOCUMENT, TIMEOUT).map_err(|error| network_error(endpoint, error))
}

fn tokens(http: &Http, endpoint: &str, form: &str, refused: &str, secrets: &[&str]) -> Result<Tokens> {
    #[derive(Deserialize)]
    struct TokenReply {
        access_token: String,
        #[serde(default)]
        token_type: String,
        expires_in: Option<Value>,
        refresh_token: Option<String>,
        scope: Option<String>,
    }
    let reply = post(http, endpoint, form)?;
    if reply.status != 200 {
        return Err(refusal(refused, endpoint, &reply, secrets));
    }
    // The cause is left out, because it may quote the answer.
    let unusable = || Error::invalid(format!("{endpoint} answers without a token that can be used"));
    let given: TokenReply = serde_json::from_slice(&reply.body).map_err(|_| unusable())?;
    let is_usable =
        |token: &str| token.len() <= MAX_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
    let refresh = given.refresh_token.unwrap_or_default();
    let is_bearer = given.token_type.eq_ignore_ascii_case("bearer");
    if !is_bearer || given.access_token.is_empty() || !is_usable(&given.access_token) || !is_usable(&refresh)
    {
        return Err(unusable());
    }
    // Some providers give the number as a text.
    let seconds = given.expires_in.and_then(|value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    });
    Ok(Tokens { access: given.access_token.into(), refresh: refresh.into(), seconds, scope: given.scope })
}

/// Returns the error for an answer that refuses: `Invalid` if the request is at fault, `Io` if the provider is.
fn refusal(what: &str, endpoint: &str, reply: &Reply, secrets: &[&str]) -> Error {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let told: Refusal = serde_json::from_slice(&reply.body).unwrap_or_default();
    let mut text = said(&told.error, &told.error_description);
    if text.is_empty() || secrets.iter().any(|secret| !secret.is_empty() && text.contains(secret)) {
        text = format!("it answers {}", reply.status);
    }
    let kind = match reply.status {
        408 | 429 | 500.. => ErrorKind::Io,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, format!("{host} {what}: {text}"))
}
