//! The MCP server over HTTP: its endpoints, sessions, token and origins.
//!
//! Clients of the newest protocol, and single calls without a session, are answered statelessly; a client that sends
//! `initialize` and accepts streams gets a session (spec/security.md, HTTP).

mod cors;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::Server;
use cors::{Cors, origin};
use sidenote_foundation::error::{Error, Result};
pub(super) use sidenote_http::admission::BodyReservation;
use sidenote_http::admission::{Admission, MAX_BODY};
use sidenote_http::shutdown;
use sidenote_http::token::read_or_create;

/// The header by which a client names its session.
const SESSION_HEADER: &str = "mcp-session-id";
/// The value of `Accept` that rmcp requires: both content types of an answer.
const ACCEPT_ALL: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The path of every vault that could be served under a name.
const ANY_VAULT: &str = "/v/{name}/mcp";
/// The largest number of open sessions. When another one begins, the least recently used one is closed.
const MAX_SESSIONS: usize = 128;
/// The time without a request after which a session is closed.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4 * 3600);
/// The origins of web pages of this machine, which are always allowed.
const LOOPBACK_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// The settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct Http {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The file with the token that clients must send. It is created with a new token if it does not exist.
    pub token_file: Option<PathBuf>,
    /// The allowed origins of web pages besides those of this machine, such as `https://notes.example:8443`.
    pub origins: Vec<String>,
    /// The host names by which a tunnel or proxy forwards requests, such as `notes.example`.
    pub hosts: Vec<String>,
}

/// The answer to a client that accepts no content type of the answers.
const NOT_ACCEPTED: &str =
    "Not Acceptable: accept application/json; for GET, subscriptions and sessions, text/event-stream, too\n";

/// Marks a request whose client accepts a single JSON message as the answer, and no stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonOnly;

/// The endpoint of one vault: its two services, and the limits that all endpoints share.
#[derive(Clone)]
struct Endpoint {
    /// The service for clients with a session.
    sessions: StreamableHttpService<Server, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// The ids of the sessions, the least recently used first.
    order: Arc<Mutex<VecDeque<Arc<str>>>>,
    /// The service for all other clients.
    plain: StreamableHttpService<Server, NeverSessionManager>,
    token: Option<blake3::Hash>,
    cors: Cors,
    admission: Admission,
}

/// Serves until the process receives SIGTERM or SIGINT, each server at its path. `on_listening` is called with the address
/// once it is open.
///
/// # Errors
/// `Invalid` if other machines can reach the address or other host names are allowed and there is no token, or if an
/// origin or host name is invalid; `Io` if the address cannot be listened on, or the token file cannot be read or
/// created; `Internal` if the signal handlers cannot be installed.
pub(super) async fn serve(
    servers: &[(String, Server)],
    http: &Http,
    on_listening: impl FnOnce(SocketAddr),
) -> Result<()> {
    let token = http.token_file.as_deref().map(|file| read_or_create(file, true)).transpose()?;
    // The hash alone is kept in memory.
    let token = token.map(|token| blake3::hash(token.as_bytes()));
    if token.is_none() && !http.address.ip().is_loopback() {
        return Err(Error::invalid(format!(
            "other machines can reach {}, and there is no token",
            http.address
        ))
        .with_hints("give --token-file FILE, or listen on 127.0.0.1", ""));
    }
    if token.is_none() && !http.hosts.is_empty() {
        return Err(Error::invalid("other host names are allowed, and there is no token")
            .with_hints("give --token-file FILE as well", ""));
    }
    let origins = http.origins.iter().map(|text| origin(text)).collect::<Result<Vec<String>>>()?;
    let config = transport_config(http, &origins)?;
    let stop = config.cancellation_token.clone();
    let (listener, address) = sidenote_http::listen(http.address).await?;
    let shutdown = shutdown::requested()?;
    let followers = servers.iter().map(|(_, server)| server.follow_files());
    let _followers = followers.collect::<Result<Vec<_>>>()?;
    let (cors, admission) = (Cors::new(origins), Admission::default());
    let mut router = Router::new();
    for (at, (path, server)) in servers.iter().enumerate() {
        tokio::spawn(server.clone().watch_other_writers());
        let endpoint = Endpoint::new(server, config.clone(), token, cors.clone(), admission.clone());
        let mut routes = Router::new().route(path, any(handle_mcp));
        if at == 0 {
            // What is no vault is refused as a vault is, so that only those who have the token learn the names.
            routes = routes.route("/health", get(health)).route(ANY_VAULT, any(handle_unknown_vault));
        }
        router = router.merge(routes.with_state(endpoint));
    }
    on_listening(address);
    // This ends streams.
    sidenote_http::serve(listener, &router, &admission, shutdown, || stop.cancel()).await;
    Ok(())
}

fn transport_config(http: &Http, allowed: &[String]) -> Result<StreamableHttpServerConfig> {
    let mut origins = LOOPBACK_ORIGINS.map(str::to_owned).to_vec();
    origins.extend_from_slice(allowed);
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(MAX_BODY)
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let ip = http.address.ip();
    if !ip.is_loopback() && http.hosts.is_empty() {
        // The names of this machine in the network are unknown; the token protects the server.
        return Ok(config.disable_allowed_hosts());
    }
    let mut hosts = vec!["localhost".to_owned(), ip.to_string(), "127.0.0.1".to_owned(), "::1".to_owned()];
    for text in &http.hosts {
        hosts.push(parse_host(text)?);
    }
    Ok(config.with_allowed_hosts(hosts))
}

/// Parses a host name. With a port, only that port is allowed.
///
/// # Errors
/// `Invalid` if the text is not a host name, with or without a port.
fn parse_host(text: &str) -> Result<String> {
    let bad_request = || {
        Error::invalid(format!("{text:?} is not a host name"))
            .with_hint("write it without http:// and path: notes.example, or notes.example:8443")
    };
    let authority: Authority = text.parse().map_err(|_| bad_request())?;
    let is_name = !authority.host().is_empty() && !text.contains(['@', '*', '/']);
    if is_name { Ok(text.to_lowercase()) } else { Err(bad_request()) }
}

impl Endpoint {
    fn new(
        server: &Server,
        config: StreamableHttpServerConfig,
        token: Option<blake3::Hash>,
        cors: Cors,
        admission: Admission,
    ) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SESSION_TIMEOUT);
        let manager = Arc::new(manager);
        let (stateful, stateless) = (server.clone(), server.clone());
        let plain = config.clone().with_legacy_session_mode(false).with_json_response(true);
        Self {
            sessions: StreamableHttpService::new(
                move || Ok(stateful.connection()),
                Arc::clone(&manager),
                config,
            ),
            manager,
            order: Arc::default(),
            plain: StreamableHttpService::new(move || Ok(stateless.connection()), Arc::default(), plain),
            token,
            cors,
            admission,
        }
    }

    /// Refuses a request whose `Host` or `Origin` is not allowed, before its body is read.
    async fn refuse_by_host_or_origin(&self, uri: &axum::http::Uri, headers: &HeaderMap) -> Option<Response> {
        let mut probe = Request::new(Body::empty());
        *probe.uri_mut() = uri.clone();
        *probe.headers_mut() = headers.clone();
        // The service checks `Host` and `Origin` first. It answers a request without a body with 405 if both are allowed.
        let response = self.plain.handle(probe).await;
        let is_refused = matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST);
        is_refused.then(|| response.map(Body::new))
    }

    /// Refuses a request that has not the right token, if one is required.
    fn refuse_without_token(&self, headers: &HeaderMap) -> Option<Response> {
        if self.is_authorized(headers) {
            return None;
        }
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"sidenote\"")];
        let text = "send the token: Authorization: Bearer TOKEN\n";
        Some((StatusCode::UNAUTHORIZED, challenge, text).into_response())
    }

    /// Returns whether a request has the right token, or no token is required.
    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let credentials = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let credentials = credentials
            .and_then(|credentials| credentials.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        // Hashes are compared in constant time.
        credentials.is_some_and(|(_, given)| blake3::hash(given.trim().as_bytes()) == *token)
    }

    /// Marks a session as the most recently used, and closes the least recently used one if there are too many.
    async fn touch_session(&self, session: &str, is_new: bool) {
        let open = self.manager.sessions.read().await;
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match order.iter().position(|known| **known == *session) {
            Some(at) => {
                let session = order.remove(at);
                order.extend(session);
            }
            None if is_new => order.push_back(session.into()),
            None => return,
        }
        if order.len() > MAX_SESSIONS {
            // Sessions that their clients have closed do not count.
            order.retain(|session| open.contains_key(session));
        }
        if order.len() > MAX_SESSIONS
            && let Some(oldest) = order.pop_front()
        {
            let manager = Arc::clone(&self.manager);
            // Closing may wait for a client that does not read, so it runs in a task of its own.
            tokio::spawn(async move {
                if let Err(error) = manager.close_session(&oldest).await {
                    tracing::debug!("a session cannot be closed: {error}");
                }
            });
        }
    }
}

/// The only field that is read of a message here.
#[derive(Deserialize)]
struct MethodField {
    method: Option<String>,
}

/// The content types that a client accepts.
struct AcceptHeader {
    json: bool,
    stream: bool,
    /// Whether it names `text/event-stream`, and does not only match it by a wildcard.
    names_stream: bool,
}

impl AcceptHeader {
    fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self { json: false, stream: false, names_stream: false };
        let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut is_given = false;
        for range in given.flat_map(|value| value.split(',')) {
            is_given = true;
            let mut parts = range.split(';').map(|part| part.trim().to_lowercase());
            let kind = parts.next().unwrap_or_default();
            let is_refused = parts.any(|part| {
                let weight = part.strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
                weight.is_some_and(|weight| weight <= 0.0)
            });
            if is_refused {
                continue;
            }
            accepts.json |= matches!(kind.as_str(), "application/json" | "application/*" | "*/*");
            accepts.stream |= matches!(kind.as_str(), "text/event-stream" | "text/*" | "*/*");
            accepts.names_stream |= kind == "text/event-stream";
        }
        if !is_given {
            (accepts.json, accepts.stream) = (true, true);
        }
        accepts
    }
}

async fn handle_mcp(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if let Some(refusal) = endpoint.refuse_by_host_or_origin(request.uri(), request.headers()).await {
        return refusal;
    }
    let Some(origin) = endpoint.cors.origin(request.headers()) else {
        return handle_authorized(&endpoint, request).await;
    };
    // A preflight request has no token.
    let response = if cors::is_preflight(request.method(), request.headers()) {
        cors::preflight(request.headers())
    } else {
        handle_authorized(&endpoint, request).await
    };
    cors::allow_origin(response, origin)
}

async fn handle_authorized(endpoint: &Endpoint, request: Request) -> Response {
    if let Some(refusal) = endpoint.refuse_without_token(request.headers()) {
        return refusal;
    }
    let session =
        request.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(session) = &session {
        endpoint.touch_session(session, false).await;
    }
    let (mut parts, body) = request.into_parts();
    let (bytes, reserved) = match endpoint.admission.read(&parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    // The memory of the body is released when the call has ended.
    if let Some(reserved) = reserved {
        parts.extensions.insert(reserved);
    }
    let is_json = parts.method == Method::POST && is_json(&parts.headers);
    if is_json && let Err(error) = serde_json::from_slice::<IgnoredAny>(&bytes) {
        let text = format!("the request is not valid JSON: {error}");
        return bad_request(&ErrorData::new(ErrorCode::PARSE_ERROR, text, None), None);
    }
    let method = serde_json::from_slice::<MethodField>(&bytes).ok().and_then(|field| field.method);
    let accepts = AcceptHeader::of(&parts.headers);
    let begins_session = method.as_deref() == Some("initialize") && (accepts.names_stream || !accepts.json);
    if session.is_none() && !begins_session {
        let listens = method.as_deref() == Some("subscriptions/listen");
        if accepts.json && (accepts.stream || !listens) {
            accept_all(&mut parts);
            if !accepts.names_stream && !listens {
                parts.extensions.insert(JsonOnly);
            }
        }
        let message = bytes.clone();
        let response = endpoint.plain.handle(Request::from_parts(parts, Body::from(bytes))).await;
        return correct_error(response.map(Body::new), is_json, &message);
    }
    if parts.method == Method::POST && accepts.json && accepts.stream {
        accept_all(&mut parts);
    }
    let closes_session = parts.method == Method::DELETE;
    let message = bytes.clone();
    let response = endpoint.sessions.handle(Request::from_parts(parts, Body::from(bytes))).await;
    let mut response = correct_error(response.map(Body::new), is_json, &message);
    if closes_session && response.status() == StatusCode::ACCEPTED {
        // The Python client takes any other status for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    if let Some(session) = response.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok()) {
        endpoint.touch_session(session, true).await;
    }
    response
}

/// Replaces two error responses of rmcp: an invalid message is not an unsupported media type, and the text about accepted
/// content types asks for more than is required here.
fn correct_error(response: Response, is_json: bool, message: &[u8]) -> Response {
    if response.status() == StatusCode::NOT_ACCEPTABLE {
        return (StatusCode::NOT_ACCEPTABLE, NOT_ACCEPTED).into_response();
    }
    if !is_json || response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    let (error, id) = match serde_json::from_slice(message) {
        Ok(message) => super::invalid_message(&message),
        Err(error) => super::parse_error(message, &error),
    };
    bad_request(&error, id)
}

/// Sets `Accept` to JSON and streams by name, which rmcp requires.
fn accept_all(parts: &mut Parts) {
    parts.headers.insert(header::ACCEPT, ACCEPT_ALL);
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Answers an invalid message.
fn bad_request(error: &ErrorData, id: Option<RequestId>) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, kind, format!("{body}\n")).into_response()
}

/// Answers a request for a vault that is not served.
async fn handle_unknown_vault(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if let Some(refusal) = endpoint.refuse_by_host_or_origin(request.uri(), request.headers()).await {
        return refusal;
    }
    endpoint
        .refuse_without_token(request.headers())
        .unwrap_or_else(|| (StatusCode::NOT_FOUND, "there is no vault of this name\n").into_response())
}

async fn health(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if let Some(refusal) = endpoint.refuse_by_host_or_origin(request.uri(), request.headers()).await {
        return refusal;
    }
    let body = concat!("{\"status\":\"ok\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
