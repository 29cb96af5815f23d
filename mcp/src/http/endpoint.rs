//! The endpoint of one vault: clients of the newest protocol, and single calls without a session, are answered statelessly; a
//! client that sends `initialize` and accepts streams gets a session (spec/security.md, HTTP).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::gate::Gate;
use super::rights::{Listening, Member, called_tool};
use crate::{Server, invalid_message, parse_error};

/// The header by which a client names its session.
const SESSION_HEADER: &str = "mcp-session-id";
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
    id: Arc<str>,
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
    pub(super) gate: Gate,
}

impl Endpoint {
    pub(super) fn new(server: &Server, gate: Gate) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SESSION_TIMEOUT);
        let manager = Arc::new(manager);
        let (stateful, stateless) = (server.clone(), server.clone());
        let plain = gate.config.clone().with_legacy_session_mode(false).with_json_response(true);
        Self {
            sessions: StreamableHttpService::new(
                move || Ok(stateful.connection()),
                Arc::clone(&manager),
                gate.config.clone(),
            ),
            manager,
            order: Arc::default(),
            plain: StreamableHttpService::new(move || Ok(stateless.connection()), Arc::default(), plain),
            server: server.clone(),
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

    /// Closes all sessions. A client that goes on with one begins anew.
    pub(super) async fn close_sessions(&self) {
        let open: Vec<_> = self.manager.sessions.read().await.keys().cloned().collect();
        for session in open {
            if let Err(error) = self.manager.close_session(&session).await {
                tracing::debug!("a session cannot be closed: {error}");
            }
        }
    }

    /// Marks a session as the most recently used. Returns whether it is one of this person.
    fn touch_session(&self, session: &str, owner: Option<&str>) -> bool {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = order.iter().position(|known| *known.id == *session) else { return false };
        if order.get(at).is_some_and(|known| known.owner.as_deref() != owner) {
            return false;
        }
        let session = order.remove(at);
        order.extend(session);
        true
    }

    /// Notes a session that has begun, and closes the least recently used one if there are too many.
    async fn add_session(&self, session: &str, owner: Option<String>) {
        let open = self.manager.sessions.read().await;
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if !order.iter().any(|known| *known.id == *session) {
            order.push_back(OpenSession { id: session.into(), owner });
        }
        if order.len() > MAX_SESSIONS {
            // Sessions that their clients have closed do not count.
            order.retain(|session| open.contains_key(&session.id));
        }
        if order.len() > MAX_SESSIONS
            && let Some(oldest) = order.pop_front()
        {
            let manager = Arc::clone(&self.manager);
            // Closing may wait for a client that does not read, so it runs in a task of its own.
            tokio::spawn(async move {
                if let Err(error) = manager.close_session(&oldest.id).await {
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

/// Handles a request that passed the gate.
pub(super) async fn handle_authorized(endpoint: &Endpoint, request: Request) -> Response {
    let session =
        request.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let member = request.extensions().get::<Member>().cloned();
    let owner = member.as_ref().map(|member| member.caller.who());
    if let Some(session) = &session
        && !endpoint.touch_session(session, owner.as_deref())
        && owner.is_some()
    {
        // The same answer as for one that does not exist.
        return (StatusCode::NOT_FOUND, NO_SESSION).into_response();
    }
    let (mut parts, body) = request.into_parts();
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
    let closes_session = parts.method == Method::DELETE;
    let message = bytes.clone();
    let response = endpoint.sessions.handle(Request::from_parts(parts, Body::from(bytes))).await;
    let mut response = correct_error(response.map(Body::new), is_json, &message);
    if closes_session && response.status() == StatusCode::ACCEPTED {
        // The Python client takes any other status for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    if let Some(session) = response.headers().get(SESSION_HEADER).and_then(|value| value.to_str().ok()) {
        endpoint.add_session(session, owner).await;
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
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, kind, format!("{body}\n")).into_response()
}
