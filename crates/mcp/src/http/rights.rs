//! Who may do what in a vault: the access token of each request, the role of its person, and what a call needs.
//!
//! A vault that does not exist is answered as one in which the person has no role.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;
use sidenote_base::error::{Error, Result};
use sidenote_http::reply_body::ending_body;
use sidenote_store::{Caller, Role};

use super::metrics::Metrics;
use crate::login::{Identity, Login, Refusal, SCOPES};

/// The answer for a vault that does not exist, or that nobody may know of.
pub(super) const NO_VAULT: &str = "there is no vault of this name\n";
/// The interval at which the rights to an open stream are checked again.
const RECHECK: Duration = Duration::from_secs(5);

/// The person of a request, who has a role in its vault.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) caller: Caller,
    /// The role that the person has.
    pub(crate) role: Role,
    /// The role that the scopes of the token allow at most.
    allowed: Role,
    /// Whether the journal also records what the person read.
    pub(crate) records_reads: bool,
    /// The address of the metadata of the vault's endpoint.
    metadata: Arc<str>,
}

impl Member {
    /// Makes the holder of a token of the program's own authorization server a member. What the token does not allow is not
    /// offered either: the person decided it at the page of consent.
    pub(super) fn of_holder(caller: Caller, right: Role, metadata: String) -> Self {
        Self { caller, role: right, allowed: right, records_reads: false, metadata: metadata.into() }
    }

    /// Returns what the person may do with this token.
    pub(crate) fn right(&self) -> Role {
        self.role.min(self.allowed)
    }

    /// Returns the answer to a call for which the person has the role and the token lacks the scope, if that is so.
    pub(super) fn refuse_by_scope(&self, needed: Role) -> Option<Response> {
        (self.role >= needed && self.allowed < needed).then(|| insufficient_scope(&self.metadata, needed))
    }
}

/// Marks the answer to a client that listens for as long as it likes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listening;

/// What became of a vault that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultState {
    /// It has the name.
    Present,
    /// It has another name now.
    Renamed(String),
    /// It was deleted, and can still be brought back.
    Deleted,
}

/// Returns the role that a person has in a vault under any of these names, and the state of the vault. It may block.
type RoleLookup = dyn Fn(&str, &[String]) -> Result<Option<(Role, VaultState)>> + Send + Sync;

/// Admits requests to vaults by access tokens and roles.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) login: Arc<Login>,
    pub(super) role: Arc<RoleLookup>,
    /// Says whether roles are known to be out of reach, which was logged when it began.
    pub(super) is_away: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(super) metrics: Arc<Metrics>,
}

impl Access {
    /// Checks the token of a request, and the role of its person in the vault. Also returns the state of the vault.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(super) async fn admit(
        &self,
        vault: &str,
        headers: &HeaderMap,
    ) -> Result<(Identity, Member, VaultState), Response> {
        let metadata: Arc<str> = self.login.metadata_address(vault).into();
        let Some(token) = bearer_token(headers) else {
            return Err(unauthorized(&metadata, "", &self.how_to_log_in(vault)));
        };
        let identity = match self.login.check(token, vault).await {
            Ok(identity) => identity,
            Err(refused) => {
                tracing::warn!("an access token is refused: {refused}");
                self.metrics.count_refused_token(refused.refusal.reason());
                return Err(match refused.refusal {
                    Refusal::NoKeys => {
                        unavailable("the identity provider cannot be reached now; try again in a minute\n")
                    }
                    refusal => {
                        let text = format!(
                            "the access token does not count: {}.\n{}",
                            for_caller(refusal),
                            self.how_to_log_in(vault)
                        );
                        let response = unauthorized(&metadata, "error=\"invalid_token\", ", &text);
                        to_be_repeated(response, refused.retry_after)
                    }
                });
            }
        };
        let Some(allowed) = identity.allowed else {
            return Err(insufficient_scope(&metadata, Role::Reader));
        };
        let (role, state) = match self.role(vault, &identity).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                tracing::warn!("{} has no role in a vault {vault:?}", identity.caller.who());
                return Err((StatusCode::NOT_FOUND, NO_VAULT).into_response());
            }
            Err(error) => {
                if (self.is_away)() {
                    tracing::debug!("the rights of a person cannot be read: {error}");
                } else {
                    tracing::warn!("the rights of a person cannot be read: {error}");
                }
                return Err(unavailable("rights cannot be checked now; try again in a moment\n"));
            }
        };
        let (caller, records_reads) = (identity.caller.clone(), self.login.records_reads);
        Ok((identity, Member { caller, role, allowed, records_reads, metadata }, state))
    }

    /// Says to somebody without a token that counts what to do.
    fn how_to_log_in(&self, vault: &str) -> String {
        let endpoint = self.login.resource(vault);
        let folder = endpoint.strip_suffix("/mcp").unwrap_or(&endpoint);
        format!(
            "Log in: an MCP client does so by itself if it has the address {endpoint}; for a folder, run `sidenote login {folder}`. \
            A program sends the header Authorization: Bearer TOKEN with an access token of {} for {endpoint}.\n",
            self.login.issuers().collect::<Vec<_>>().join(" or ")
        )
    }

    async fn role(&self, vault: &str, identity: &Identity) -> Result<Option<(Role, VaultState)>> {
        let (role, vault, names) = (Arc::clone(&self.role), vault.to_owned(), identity.names.clone());
        let asked = tokio::task::spawn_blocking(move || role(&vault, &names)).await;
        asked.map_err(|error| Error::internal("the reading of rights ended").with_source(error))?
    }

    /// Lets a stream of events end when the person loses the role or the vault its name, or, unless it is the answer to one call, when the token
    /// expires. A call that has begun is answered.
    pub(super) fn limit_stream(
        &self,
        vault: &str,
        identity: Identity,
        method: &Method,
        response: Response,
    ) -> Response {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return response;
        }
        let expires = *method == Method::GET || response.extensions().get::<Listening>().is_some();
        let (access, vault) = (self.clone(), vault.to_owned());
        let ended = async move {
            loop {
                let left = identity.remaining();
                if expires && left.is_zero() {
                    return;
                }
                tokio::time::sleep(if expires { left.min(RECHECK) } else { RECHECK }).await;
                let found = access.role(&vault, &identity).await;
                if found.is_ok_and(|found| found.is_none_or(|(_, state)| state != VaultState::Present)) {
                    return;
                }
            }
        };
        response.map(|body: Body| ending_body(body, ended))
    }

    /// Returns the metadata of the endpoint of a vault, which need not exist (RFC 9728).
    pub(super) fn metadata(&self, vault: &str) -> Response {
        let scopes: Vec<&str> = SCOPES.iter().map(|(scope, _)| *scope).collect();
        let issuers: Vec<&str> = self.login.issuers().collect();
        let document = json!({
            "resource": self.login.resource(vault),
            "authorization_servers": issuers,
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
        });
        ([(header::CONTENT_TYPE, "application/json")], format!("{document}\n")).into_response()
    }
}

/// Returns the token of a request that has exactly one.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(credentials), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = credentials.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

fn scope_of(role: Role) -> &'static str {
    SCOPES.iter().find(|(_, known)| *known == role).map_or("notes:read", |(scope, _)| scope)
}

/// Says to the holder of a token why it does not count, where that helps and tells nothing about the service.
fn for_caller(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Expired => "it has expired",
        Refusal::Early => "it is not valid yet",
        Refusal::Audience => "it is for another address",
        Refusal::Issuer => "it is of another identity provider",
        Refusal::UnknownKey => {
            "the service does not know its key; where the identity provider has just begun to use a new one, try again in a minute"
        }
        _ => "the operator of the service finds the reason in the log",
    }
}

/// Refuses a request that has no access token that counts. `text` says what to do.
fn unauthorized(metadata: &str, error: &str, text: &str) -> Response {
    let scope = scope_of(Role::Reader);
    let challenge = format!("Bearer {error}resource_metadata=\"{metadata}\", scope=\"{scope}\"");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], text.to_owned()).into_response()
}

/// Says when a request may be answered otherwise, if that is known.
fn to_be_repeated(mut response: Response, after: Option<Duration>) -> Response {
    let seconds = after.map(|after| HeaderValue::from(after.as_secs() + 1));
    response.headers_mut().extend(seconds.map(|seconds| (header::RETRY_AFTER, seconds)));
    response
}

fn insufficient_scope(metadata: &str, needed: Role) -> Response {
    let scope = scope_of(needed);
    let challenge =
        format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\"");
    let text = format!("the access token lacks the scope {scope}; log in again and ask for it\n");
    (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, challenge)], text).into_response()
}

fn unavailable(text: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], text).into_response()
}

/// The fields that are read of a message to see which tool it calls.
#[derive(Deserialize)]
struct CallFields {
    method: String,
    params: Option<NameField>,
}

/// The name of the tool that is called.
#[derive(Deserialize)]
struct NameField {
    name: String,
}

/// Returns the name of the tool that a message calls.
pub(super) fn called_tool(message: &[u8]) -> Option<String> {
    let fields = serde_json::from_slice::<CallFields>(message).ok()?;
    fields.params.filter(|_| fields.method == "tools/call").map(|params| params.name)
}
