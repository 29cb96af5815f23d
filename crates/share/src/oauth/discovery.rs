//! Finding the identity provider of a vault: metadata of the vault (RFC 9728), and of the provider (RFC 8414, OpenID Connect
//! Discovery), in the order of the authorization specification of MCP.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_http_client::{Http, HttpError, Reply, is_secure};
use sidenote_language::graphemes::shortened;
use sidenote_markdown::control::plain;

use crate::address::{VaultAddress, split_origin};
use crate::refusal_text::said;

/// The largest document in bytes.
pub(super) const MAX_DOCUMENT: u64 = 1 << 20;
/// The time in which a document must arrive.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The most characters of a foreign text that are shown.
const MAX_SHOWN: usize = 200;

/// The metadata of a vault's endpoint.
#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
}

/// The metadata of an identity provider.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    /// Whether each answer to an authorization names the issuer (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(super) names_issuer: bool,
}

/// Finds the identity provider of a vault.
///
/// # Errors
/// `NotFound` if the vault or the provider has no metadata; `Invalid` if they do not fit each other; `Io` if they cannot be
/// fetched.
pub(super) fn discover(http: &Http, address: &VaultAddress) -> Result<ServerMetadata> {
    let issuer = issuer_of(http, address)?;
    let unusable = |what: &str| Error::invalid(format!("the identity provider {} {what}", shown(&issuer)));
    if !is_secure(&issuer) || issuer.contains('?') {
        return Err(unusable("has an address without https"));
    }
    let mut found: Option<(String, ServerMetadata)> = None;
    for place in metadata_addresses(&issuer) {
        if let Fetched::Document(metadata) = fetch(http, &place)? {
            found = Some((place, metadata));
            break;
        }
    }
    let (place, server) = found.ok_or_else(|| {
        Error::not_found(format!("the identity provider {} has no metadata", shown(&issuer)))
    })?;
    if server.issuer != issuer {
        let text = format!("{place} is the metadata of another issuer, {}", shown(&server.issuer));
        return Err(Error::invalid(text).with_hint("tell the operator of the service"));
    }
    let required = [Some(&server.authorization_endpoint), Some(&server.token_endpoint)];
    let optional = [server.registration_endpoint.as_ref(), server.revocation_endpoint.as_ref()];
    if !required.into_iter().chain(optional).flatten().all(|endpoint| is_secure(endpoint)) {
        return Err(unusable("names an endpoint without https"));
    }
    if !server.code_challenge_methods_supported.iter().any(|method| method == "S256") {
        return Err(unusable(
            "does not say that it supports PKCE with S256, without which a login is not safe",
        ));
    }
    Ok(server)
}

/// Asks the vault which identity provider it trusts.
fn issuer_of(http: &Http, address: &VaultAddress) -> Result<String> {
    let resource = address.resource();
    let reply = http.exchange(&resource, None, MAX_DOCUMENT, FETCH_TIMEOUT);
    let reply = reply.map_err(|error| network_error(&resource, error))?;
    let host = address.host();
    if matches!(reply.status, 301..=308) {
        return Err(Error::invalid(format!("{host} names another address for the vault"))
            .with_hint("open the address in a browser, and use the one that it leads to"));
    }
    let named = reply.challenge.as_deref().and_then(|challenge| parameter(challenge, "resource_metadata"));
    let is_named = named.is_some();
    let place = named.unwrap_or_else(|| address.metadata());
    if !is_secure(&place) {
        return Err(Error::invalid(format!("{host} has its metadata at an address without https")));
    }
    let metadata: ResourceMetadata = match fetch(http, &place)? {
        Fetched::Document(metadata) => metadata,
        Fetched::Missing(refused) if refused.status == 403 => {
            let text = format!("{host} refuses the request (403){}", said(&refused));
            return Err(Error::invalid(text).with_hint(
                "tell the operator of the service: its log, or that of the proxy, has the reason",
            ));
        }
        Fetched::Missing(missing) if is_named => {
            let text = format!(
                "{host} does not say which identity provider it trusts: {place} answers {}",
                missing.status
            );
            return Err(Error::not_found(text)
                .with_hint("tell the operator of the service: a proxy must pass on /.well-known/, too"));
        }
        Fetched::Missing(_) => {
            return Err(Error::not_found(format!("{host} has no login: it names no identity provider"))
                .with_hint(
                    "check the address; where the operator gave you a token, use `sidenote sync --token-file`",
                ));
        }
    };
    if metadata.resource != resource {
        let text = format!("{place} is the metadata of {}, not of {resource}", shown(&metadata.resource));
        return Err(
            Error::invalid(text).with_hint("use the address that the operator of the service gave you")
        );
    }
    metadata
        .authorization_servers
        .into_iter()
        .next()
        .ok_or_else(|| Error::not_found(format!("{place} names no identity provider")))
}

/// The answer of an address that may have metadata.
enum Fetched<T> {
    Document(T),
    /// There is none, or it is refused.
    Missing(Reply),
}

/// Fetches a document of metadata.
fn fetch<T: DeserializeOwned>(http: &Http, place: &str) -> Result<Fetched<T>> {
    let reply = http.exchange(place, None, MAX_DOCUMENT, FETCH_TIMEOUT);
    let reply = reply.map_err(|error| network_error(place, error))?;
    match reply.status {
        200 => serde_json::from_slice(&reply.body).map(Fetched::Document).map_err(|error| {
            Error::invalid(format!("{place} is not the metadata that it should be")).with_source(error)
        }),
        400..=499 => Ok(Fetched::Missing(reply)),
        301..=308 => Err(Error::invalid(format!("{place} leads to another address, which is not followed"))),
        status => Err(Error::new(ErrorKind::Io, format!("{place} cannot be fetched: it answers {status}"))),
    }
}

/// Lists the addresses at which a provider may have its metadata, in the order in which they are tried.
fn metadata_addresses(issuer: &str) -> Vec<String> {
    let base = issuer.trim_end_matches('/');
    let (origin, path) = split_origin(base);
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{base}/.well-known/openid-configuration"));
    }
    places
}

/// Returns a parameter of a challenge: `name="value"` or `name=value`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let starts = challenge.match_indices(name).map(|(at, _)| at);
    let mut values = starts.filter_map(|at| {
        let before = challenge.get(..at)?.chars().next_back();
        let value = challenge.get(at + name.len()..)?.strip_prefix('=')?;
        let is_name = before.is_none_or(|before| before == ' ' || before == ',');
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => value.split([',', ' ']).next(),
        };
        value.filter(|_| is_name).map(str::to_owned)
    });
    values.next()
}

/// Formats a foreign text for a message.
fn shown(text: &str) -> String {
    plain(&shortened(text, MAX_SHOWN))
}

/// Returns the error for an address that does not answer.
pub(super) fn network_error(address: &str, error: HttpError) -> Error {
    let failed = |why: String| Error::new(ErrorKind::Io, format!("{address} cannot be reached: {why}"));
    match error {
        HttpError::TimedOut => failed("it does not answer in time".to_owned()),
        HttpError::Unreachable(why) | HttpError::Broken(why) => failed(why),
        HttpError::Address(why) => Error::invalid(format!("{address} cannot be asked: {why}")),
        HttpError::Write(error) => failed(error.to_string()),
    }
    .with_hint("check the network and the address")
}
