//! The MCP server over HTTP: its endpoint, sessions, token and origins.
//!
//! Clients of the newest protocol, and single calls without a session, are answered statelessly; a client that sends
//! `initialize` and accepts streams gets a session (spec/security.md, HTTP).

mod cors;
mod admission;

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
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
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use super::{Server, asked_to_end};
use crate::error::{Error, Result};
pub(super) use crate::mcp::http::admission::BodyReservation;
use crate::mcp::http::admission::{Admission, BODY_TIMEOUT, MAX_BODY};
use cors::{Cors, origin};

/// The header by which a client names its session.
const SESSION: &str = "mcp-session-id";
/// What a client accepts that takes whatever the answer is, as rmcp asks for.
const ANY_ANSWER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Told to connections beyond the limit.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
/// So many sessions are kept; of more, the one that was silent longest ends.
const MAX_SESSIONS: usize = 128;
/// A session that is silent so long ends.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4 * 3600);
/// Connections that are open at the end are given so long to get their answers.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// Where no connection can be taken, for want of open files, one is tried again after so long.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Web pages of this machine, which may reach us.
const LOOPBACK_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// Where and for whom to serve.
#[derive(Debug, Clone)]
pub struct Http {
    /// Where to listen.
    pub address: SocketAddr,
    /// The file that holds the token which callers must show; made where it is missing.
    pub token_file: Option<PathBuf>,
    /// Web pages that may reach us beside those of this machine, such as `https://notes.example:8443`.
    pub origins: Vec<String>,
    /// Names by which a tunnel or proxy reaches us, such as `notes.example`.
    pub hosts: Vec<String>,
}

/// Told to a client that accepts no kind of answer that there is.
const NOT_ACCEPTED: &str =
    "Not Acceptable: accept application/json; for GET, subscriptions and sessions, text/event-stream, too\n";

/// Marks a request whose client takes one JSON message as its answer, and no stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonOnly;

/// The endpoint `/mcp`: its two services and its limits.
#[derive(Clone)]
struct Endpoint {
    /// For clients that keep a session.
    sessions: StreamableHttpService<Server, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// Sessions, the one that was silent longest first.
    order: Arc<Mutex<VecDeque<Arc<str>>>>,
    /// For everybody else.
    plain: StreamableHttpService<Server, NeverSessionManager>,
    token: Option<blake3::Hash>,
    cors: Cors,
    intake: Admission,
}

/// Serves until the process is asked to end; `told` hears where.
pub(super) async fn serve(server: Server, http: &Http, told: impl FnOnce(SocketAddr)) -> Result<()> {
    let token = http.token_file.as_deref().map(token).transpose()?;
    if token.is_none() && !http.address.ip().is_loopback() {
        return Err(Error::invalid(format!(
            "{} can be reached by others, and there is no token",
            http.address
        ))
        .with_hints("give --token-file FILE, or listen at 127.0.0.1", ""));
    }
    if token.is_none() && !http.hosts.is_empty() {
        return Err(Error::invalid("other host names are allowed, and there is no token")
            .with_hints("give --token-file FILE as well", ""));
    }
    let origins = http.origins.iter().map(|text| origin(text)).collect::<Result<Vec<String>>>()?;
    let config = config(http, &origins)?;
    let stop = config.cancellation_token.clone();
    let unheard = |error| Error::io("listen at", http.address.to_string(), error);
    let listener = TcpListener::bind(http.address).await.map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;
    let end = asked_to_end()?;
    let _following = server.follow()?;
    tokio::spawn(server.clone().watch_other_writers());
    let endpoint = Endpoint::new(&server, config, token, Cors::new(origins));
    let intake = endpoint.intake.clone();
    let router = Router::new().route("/mcp", any(answer)).route("/health", get(health)).with_state(endpoint);
    told(address);
    let open = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, &router, &open, &intake) => {}
        () = end => {}
    }
    drop(listener);
    // Streams end by this; they would stay open for good.
    stop.cancel();
    if tokio::time::timeout(SHUTDOWN_GRACE, open.shutdown()).await.is_err() {
        tracing::debug!("connections that are open still are cut");
    }
    Ok(())
}

/// Takes connections, and serves each in a task of its own.
async fn accept(listener: &TcpListener, router: &Router, open: &GracefulShutdown, intake: &Admission) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(BODY_TIMEOUT);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection is not taken: {error}");
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let Some(place) = intake.connection() else {
            refuse(&stream);
            continue;
        };
        // Small answers must not wait until there are more of them (Nagle's algorithm).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("answers may wait: {error}");
        }
        let service = TowerToHyperService::new(router.clone());
        let served = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!("a connection broke off: {error}");
            }
            drop(place);
        });
    }
}

/// Tells a client that there are too many connections.
fn refuse(stream: &TcpStream) {
    tracing::warn!("a connection is refused: there are too many");
    if let Err(error) = stream.try_write(TOO_MANY_CONNECTIONS) {
        tracing::debug!("a client is not told that it is refused: {error}");
    }
}

fn config(http: &Http, allowed: &[String]) -> Result<StreamableHttpServerConfig> {
    let mut origins = LOOPBACK_ORIGINS.map(str::to_owned).to_vec();
    origins.extend_from_slice(allowed);
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(MAX_BODY)
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let ip = http.address.ip();
    if !ip.is_loopback() && http.hosts.is_empty() {
        // By which names others reach us is not known here; who has the token may.
        return Ok(config.disable_allowed_hosts());
    }
    let mut hosts = vec!["localhost".to_owned(), ip.to_string(), "127.0.0.1".to_owned(), "::1".to_owned()];
    for text in &http.hosts {
        hosts.push(host(text)?);
    }
    Ok(config.with_allowed_hosts(hosts))
}

/// Reads the name of a host, with a port where only that one is meant.
fn host(text: &str) -> Result<String> {
    let wrong = || {
        Error::invalid(format!("{text:?} is no name of a host"))
            .with_hint("write it without http:// and path: notes.example, or notes.example:8443")
    };
    let authority: Authority = text.parse().map_err(|_| wrong())?;
    let is_name = !authority.host().is_empty() && !text.contains(['@', '*', '/']);
    if is_name { Ok(text.to_lowercase()) } else { Err(wrong()) }
}

impl Endpoint {
    fn new(
        server: &Server,
        config: StreamableHttpServerConfig,
        token: Option<blake3::Hash>,
        cors: Cors,
    ) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SESSION_TIMEOUT);
        let manager = Arc::new(manager);
        let (kept, single) = (server.clone(), server.clone());
        let plain = config.clone().with_legacy_session_mode(false).with_json_response(true);
        Self {
            sessions: StreamableHttpService::new(move || Ok(kept.connection()), Arc::clone(&manager), config),
            manager,
            order: Arc::default(),
            plain: StreamableHttpService::new(move || Ok(single.connection()), Arc::default(), plain),
            token,
            cors,
            intake: Admission::default(),
        }
    }

    /// Refuses a request whose Host or Origin may not reach us, before anything of its body is read.
    async fn refuse_foreign(&self, uri: &axum::http::Uri, headers: &HeaderMap) -> Option<Response> {
        let mut asked = Request::new(Body::empty());
        *asked.uri_mut() = uri.clone();
        *asked.headers_mut() = headers.clone();
        // The service looks at Host and Origin before anything else, and answers this with 405 otherwise.
        let looked_at = self.plain.handle(asked).await;
        let is_refused = matches!(looked_at.status(), StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST);
        is_refused.then(|| looked_at.map(Body::new))
    }

    /// Says whether a caller shows the token, where there is one.
    fn lets_in(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown
            .and_then(|shown| shown.split_once(' '))
            .filter(|(way, _)| way.eq_ignore_ascii_case("bearer"));
        // Hashes are compared in constant time.
        shown.is_some_and(|(_, shown)| blake3::hash(shown.trim().as_bytes()) == *token)
    }

    /// Puts a session behind all others, and ends the one that was silent longest where there are too many.
    async fn heard(&self, session: &str, is_new: bool) {
        let kept = self.manager.sessions.read().await;
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
            // Those that their clients ended take no place.
            order.retain(|session| kept.contains_key(session));
        }
        if order.len() > MAX_SESSIONS
            && let Some(oldest) = order.pop_front()
        {
            let manager = Arc::clone(&self.manager);
            // Its client may not read any more, and nobody else waits for that.
            tokio::spawn(async move {
                if let Err(error) = manager.close_session(&oldest).await {
                    tracing::debug!("a session does not end: {error}");
                }
            });
        }
    }
}

/// The field of a message that tells its kind.
#[derive(Deserialize)]
struct MethodField {
    method: Option<String>,
}

/// The content types that a client accepts.
struct AcceptHeader {
    json: bool,
    stream: bool,
    /// Whether it names streams, and not only takes anything.
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

async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if let Some(refusal) = endpoint.refuse_foreign(request.uri(), request.headers()).await {
        return refusal;
    }
    let Some(origin) = endpoint.cors.origin(request.headers()) else {
        return handle(&endpoint, request).await;
    };
    // A browser shows no token when it asks.
    let response = if cors::is_preflight(request.method(), request.headers()) {
        cors::preflight(request.headers())
    } else {
        handle(&endpoint, request).await
    };
    cors::share(response, origin)
}

async fn handle(endpoint: &Endpoint, request: Request) -> Response {
    if !endpoint.lets_in(request.headers()) {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"sidenote\"")];
        return (StatusCode::UNAUTHORIZED, challenge, "show the token: Authorization: Bearer TOKEN\n")
            .into_response();
    }
    let session = request.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(session) = &session {
        endpoint.heard(session, false).await;
    }
    let (mut parts, body) = request.into_parts();
    let (bytes, reserved) = match endpoint.intake.read(&parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    // What the body takes is given back when the call has ended.
    if let Some(reserved) = reserved {
        parts.extensions.insert(reserved);
    }
    let is_json = parts.method == Method::POST && is_json(&parts.headers);
    if is_json && let Err(error) = serde_json::from_slice::<IgnoredAny>(&bytes) {
        let text = format!("the request is no JSON: {error}");
        return wrong(&ErrorData::new(ErrorCode::PARSE_ERROR, text, None), None);
    }
    let method = serde_json::from_slice::<MethodField>(&bytes).ok().and_then(|peek| peek.method);
    let accepts = AcceptHeader::of(&parts.headers);
    let says_hello = method.as_deref() == Some("initialize") && (accepts.names_stream || !accepts.json);
    if session.is_none() && !says_hello {
        let listens = method.as_deref() == Some("subscriptions/listen");
        if accepts.json && (accepts.stream || !listens) {
            take_any(&mut parts);
            if !accepts.names_stream && !listens {
                parts.extensions.insert(JsonOnly);
            }
        }
        let kept = bytes.clone();
        let response = endpoint.plain.handle(Request::from_parts(parts, Body::from(bytes))).await;
        return told(response.map(Body::new), is_json, &kept);
    }
    if parts.method == Method::POST && accepts.json && accepts.stream {
        take_any(&mut parts);
    }
    let ends = parts.method == Method::DELETE;
    let kept = bytes.clone();
    let response = endpoint.sessions.handle(Request::from_parts(parts, Body::from(bytes))).await;
    let mut response = told(response.map(Body::new), is_json, &kept);
    if ends && response.status() == StatusCode::ACCEPTED {
        // The Python client takes anything else for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    if let Some(session) = response.headers().get(SESSION).and_then(|value| value.to_str().ok()) {
        endpoint.heard(session, true).await;
    }
    response
}

/// Gives a response, but a better one where rmcp cannot read a message, which it takes for a wrong media type, and where
/// it wants more to be accepted than is needed here.
fn told(response: Response, is_json: bool, message: &[u8]) -> Response {
    if response.status() == StatusCode::NOT_ACCEPTABLE {
        return (StatusCode::NOT_ACCEPTABLE, NOT_ACCEPTED).into_response();
    }
    if !is_json || response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    let (error, id) = match serde_json::from_slice(message) {
        Ok(message) => super::misread(&message),
        Err(error) => super::unread(message, &error),
    };
    wrong(&error, id)
}

/// Says to rmcp that the client takes JSON and streams, which it wants to be named.
fn take_any(parts: &mut Parts) {
    parts.headers.insert(header::ACCEPT, ANY_ANSWER);
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Answers what is no message.
fn wrong(error: &ErrorData, id: Option<RequestId>) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, kind, format!("{body}\n")).into_response()
}

async fn health(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if let Some(refusal) = endpoint.refuse_foreign(request.uri(), request.headers()).await {
        return refusal;
    }
    let body = concat!("{\"status\":\"ok\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Reads the token, or makes one where the file is missing. Only its hash stays in memory.
///
/// # Errors
/// `Invalid` where others may read the file, or nothing is in it; `Io` where it cannot be read or made.
fn token(path: &Path) -> Result<blake3::Hash> {
    let failed = |error| Error::io("read the token in", path, error);
    if !path.exists() {
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        #[expect(clippy::disallowed_methods, reason = "the file that the user names")]
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let written = made.and_then(|mut file| file.write_all(format!("{token}\n").as_bytes()));
        written.map_err(|error| Error::io("make a token in", path, error))?;
        tracing::warn!("a new token is in {}", path.display());
    }
    let found = std::fs::metadata(path).map_err(failed)?;
    if found.mode() & 0o077 != 0 {
        return Err(Error::invalid(format!("others may read the token in {}", path.display()))
            .with_hint(format!("run: chmod 600 {}", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let token = text.trim();
    if token.len() < 16 {
        return Err(Error::invalid(format!("the token in {} has less than 16 characters", path.display()))
            .with_hint("remove the file, and a new one is made"));
    }
    Ok(blake3::hash(token.as_bytes()))
}
