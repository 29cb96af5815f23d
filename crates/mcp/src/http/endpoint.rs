//! The endpoint of one vault: clients of the newest protocol, and single calls without a session, are answered statelessly; a
//! client that sends `initialize` and accepts streams gets a session (docs/spec/security.md, HTTP).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use serde::de::IgnoredAny;
use serde_json::json;

use super::gate::Gate;
use super::portable_session::{PortableSession, StateInId};
use super::rights::{Listening, Member, called_tool};
use super::stream_replay::StreamReplay;
use crate::Server;
use crate::protocol_errors::{MethodField, invalid_message, parse_error, removed_method};

/// The header by which a client names its session.
const SESSION_HEADER: &str = "mcp-session-id";
/// The header by which a client names the revision of the protocol.
const VERSION_HEADER: &str = "mcp-protocol-version";
/// The header by which a client names the last event that it has.
const LAST_EVENT_HEADER: &str = "last-event-id";
/// The value of `Accept` that rmcp requires: both content types of an answer.
const ACCEPT_ALL: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The largest number of open sessions. When another one begins, the least recently used one is closed.
const MAX_SESSIONS: usize = 128;
/// The time without a request after which a session is closed.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

/// The answer to a client that accepts no content type of the answers.
const NOT_ACCEPTED: &str =
    "Not Acceptable: accept application/json; for GET, subscriptions and sessions, text/event-stream, too\n";

/// The answer for a session that does not exist, as rmcp gives it.
const NO_SESSION: &str = "Not Found: Session not found";

/// Marks a request whose client accepts a single JSON message as the answer, and no stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonOnly;

/// A session of a client.
struct OpenSession {
    /// The id by which the client names it.
    id: Arc<str>,
    /// The id that it has in `sessions`.
    inner: Arc<str>,
    /// The person to whom it belongs, where people log in.
    owner: Option<String>,
}

/// The endpoint of one vault: its two services.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// The service for clients with a session.
    sessions: StreamableHttpService<Server, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// The sessions, the least recently used first.
    order: Arc<Mutex<VecDeque<OpenSession>>>,
    /// The service for all other clients.
    plain: StreamableHttpService<Server, NeverSessionManager>,
    server: Server,
    /// Whether sessions that other servers have begun go on here.
    is_portable: bool,
    pub(super) gate: Gate,
}

impl Endpoint {
    /// Creates the endpoint of a vault that this server alone serves: an unknown session is none.
    pub(super) fn new(server: &Server, gate: Gate) -> Self {
        Self::of(server, gate, false)
    }

    /// Creates the endpoint of a vault that several servers serve: a session goes on at each of them.
    pub(super) fn of_team(server: &Server, gate: Gate) -> Self {
        Self::of(server, gate, true)
    }

    fn of(server: &Server, gate: Gate, is_portable: bool) -> Self {
        let mut manager = LocalSessionManager::default().with_event_store(Arc::new(StreamReplay::default()));
        manager.session_config.keep_alive = Some(SESSION_TIMEOUT);
        let manager = Arc::new(manager);
        let (stateful, stateless) = (server.clone(), server.clone());
        let plain = gate.config.clone().with_legacy_session_mode(false).with_json_response(true);
        let mut with_sessions = gate.config.clone();
        if is_portable {
            with_sessions.session_store = Some(Arc::new(StateInId));
        }
        Self {
            sessions: StreamableHttpService::new(
                move || Ok(stateful.connection()),
                Arc::clone(&manager),
                with_sessions,
            ),
            manager,
            order: Arc::default(),
            plain: StreamableHttpService::new(move || Ok(stateless.connection()), Arc::default(), plain),
            server: server.clone(),
            is_portable,
            gate,
        }
    }

    /// Refuses a call for which the person has the role and the token lacks the scope, so that the client asks for it. All
    /// other calls without the right are refused by the server.
    async fn refuse_by_scope(&self, member: &Member, message: &[u8]) -> Option<Response> {
        let tool = called_tool(message)?;
        let (tool, needed) = self.server.needed_role(&tool)?;
        let refusal = member.refuse_by_scope(needed)?;
        self.server.record_refusal(member, tool).await;
        Some(refusal)
    }

    /// Closes all sessions. A client that continues one must begin a new session.
    pub(super) async fn close_sessions(&self) {
        let open: Vec<_> = self.manager.sessions.read().await.keys().cloned().collect();
        for session in open {
            if let Err(error) = self.manager.close_session(&session).await {
                tracing::debug!("a session cannot be closed: {error}");
            }
        }
    }

    /// Finds the session that a request names, and marks it as the most recently used. Where sessions go on at other servers,
    /// one that another server has begun is found, too. Returns `None` if there is none that the person may use.
    async fn find_session(&self, id: &str, owner: Option<&str>) -> Option<Arc<str>> {
        {
            let open = self.manager.sessions.read().await;
            let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = order.iter().position(|known| *known.id == *id) {
                if order.get(at).is_some_and(|known| known.owner.as_deref() != owner) {
                    return None;
                }
                let known = order.remove(at)?;
                let inner = Arc::clone(&known.inner);
                if !self.is_portable || *inner == *id || open.contains_key(&inner) {
                    order.push_back(known);
                    return Some(inner);
                }
            }
        }
        PortableSession::of(id, owner).filter(|_| self.is_portable)?;
        let inner: Arc<str> = id.into();
        self.add_session(id, Arc::clone(&inner), owner.map(str::to_owned)).await;
        Some(inner)
    }

    /// Returns whether a session runs here.
    async fn is_open(&self, id: &str) -> bool {
        let open = self.manager.sessions.read().await;
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        order.iter().any(|known| *known.id == *id && open.contains_key(&known.inner))
    }

    /// Gives the session that a request begins an id by which other servers can go on with it.
    fn begin_session(
        &self,
        message: &[u8],
        owner: Option<&str>,
        parts: &mut Parts,
    ) -> Option<RequestSession> {
        let now = self.server.shared.store.now();
        let portable = PortableSession::begin(message, owner, now).filter(|_| self.is_portable)?;
        let session = RequestSession { id: portable.id()?, portable: Some(portable) };
        session.enter(None, parts);
        Some(session)
    }

    /// Notes a session that has begun, and closes the least recently used one if there are too many.
    async fn add_session(&self, id: &str, inner: Arc<str>, owner: Option<String>) {
        let open = self.manager.sessions.read().await;
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if !order.iter().any(|known| *known.id == *id) {
            order.push_back(OpenSession { id: id.into(), inner, owner });
        }
        if order.len() > MAX_SESSIONS {
            // Sessions that their clients have closed do not count.
            order.retain(|session| open.contains_key(&session.inner) || *session.id == *id);
        }
        if order.len() > MAX_SESSIONS
            && let Some(oldest) = order.pop_front()
        {
            let manager = Arc::clone(&self.manager);
            // Closing may wait for a client that does not read, so it runs in a task of its own.
            tokio::spawn(async move {
                if let Err(error) = manager.close_session(&oldest.inner).await {
                    tracing::debug!("a session cannot be closed: {error}");
                }
            });
        }
    }
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

/// The session of a request.
struct RequestSession {
    /// The id by which the client names it.
    id: String,
    /// What the id says, where sessions go on at other servers.
    portable: Option<PortableSession>,
}

impl RequestSession {
    /// Prepares a request for rmcp: names the session as it does, and tells the server the name of it in the journal.
    fn enter(&self, inner: Option<&str>, parts: &mut Parts) {
        if let Some(portable) = &self.portable {
            parts.extensions.insert(portable.name(&self.id));
        }
        if let Some(inner) = inner.and_then(|inner| HeaderValue::from_str(inner).ok()) {
            parts.headers.insert(SESSION_HEADER, inner);
        }
    }
}

/// Finds the session that a request names, and prepares the request for rmcp.
///
/// # Errors
/// The response for a session that does not exist, or is another person's.
async fn enter_session(
    endpoint: &Endpoint,
    parts: &mut Parts,
    owner: Option<&str>,
) -> Result<Option<RequestSession>, Response> {
    let given = parts.headers.get(SESSION_HEADER).and_then(|value| value.to_str().ok());
    let Some(id) = given.map(str::to_owned) else { return Ok(None) };
    let portable = endpoint.is_portable.then(|| PortableSession::of(&id, owner)).flatten();
    let was_open = endpoint.is_open(&id).await;
    if portable.is_some() && !was_open {
        if parts.method == Method::DELETE {
            // The server that has the session closes it when nobody uses it any more.
            return Err(StatusCode::NO_CONTENT.into_response());
        }
        // The events before were those of another server.
        parts.headers.remove(LAST_EVENT_HEADER);
    }
    let inner = endpoint.find_session(&id, owner).await;
    if inner.is_none() && owner.is_some() {
        // The same answer as for one that does not exist.
        return Err((StatusCode::NOT_FOUND, NO_SESSION).into_response());
    }
    let session = RequestSession { id, portable };
    session.enter(inner.as_deref(), parts);
    Ok(Some(session))
}

/// Handles a request that passed the gate.
pub(super) async fn handle_authorized(endpoint: &Endpoint, request: Request) -> Response {
    let member = request.extensions().get::<Member>().cloned();
    let owner = member.as_ref().map(|member| member.caller.who());
    let (mut parts, body) = request.into_parts();
    let session = match enter_session(endpoint, &mut parts, owner.as_deref()).await {
        Ok(session) => session,
        Err(refusal) => return refusal,
    };
    let (bytes, reserved) = match endpoint.gate.admission.read(&parts.headers, body).await {
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
    if let Some(member) = &member
        && let Some(refusal) = endpoint.refuse_by_scope(member, &bytes).await
    {
        return refusal;
    }
    let revision = parts.headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    if is_json && let Some((error, id)) = removed_method(&bytes, revision) {
        return error_response(StatusCode::NOT_FOUND, &error, id);
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
        let mut response = correct_error(response.map(Body::new), is_json, &message);
        if listens {
            response.extensions_mut().insert(Listening);
        }
        return response;
    }
    if parts.method == Method::POST && accepts.json && accepts.stream {
        accept_all(&mut parts);
    }
    let session = session.or_else(|| endpoint.begin_session(&bytes, owner.as_deref(), &mut parts));
    handle_in_session(endpoint, session, owner, parts, bytes, is_json).await
}

/// Has rmcp answer a request that names a session or begins one.
async fn handle_in_session(
    endpoint: &Endpoint,
    session: Option<RequestSession>,
    owner: Option<String>,
    parts: Parts,
    bytes: Bytes,
    is_json: bool,
) -> Response {
    let closes_session = parts.method == Method::DELETE;
    let message = bytes.clone();
    let response = endpoint.sessions.handle(Request::from_parts(parts, Body::from(bytes))).await;
    let mut response = correct_error(response.map(Body::new), is_json, &message);
    if closes_session && response.status() == StatusCode::ACCEPTED {
        // The Python client takes any other status for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let inner = response.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok());
    if let Some(inner) = inner.map(Arc::<str>::from) {
        let id = session.map_or_else(|| inner.to_string(), |session| session.id);
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION_HEADER, value);
        }
        endpoint.add_session(&id, inner, owner).await;
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
        Ok(message) => invalid_message(&message),
        Err(error) => parse_error(message, &error),
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
    error_response(StatusCode::BAD_REQUEST, error, id)
}

fn error_response(status: StatusCode, error: &ErrorData, id: Option<RequestId>) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, format!("{body}\n")).into_response()
}
