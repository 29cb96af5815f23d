//! Owns the server over HTTP: who may reach it, how it is listened at, and what it forgets.
//!
//! Clients of the newest protocol, and single calls without a session, are answered at once and statelessly; a client
//! that says `initialize` gets a session (spec/security.md, HTTP).

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::net::TcpListener;
use uuid::Uuid;

use super::{Server, asked_to_end};
use crate::error::{Error, Result};

/// The header by which a client names its session.
const SESSION: &str = "mcp-session-id";
/// A request has no more bytes than this.
const LARGEST: usize = 4 << 20;
/// A request that takes longer to arrive is given up, and so is a connection that is silent so long.
const ARRIVAL: Duration = Duration::from_secs(30);
/// So many sessions are kept; of more, the one that was silent longest ends.
const MOST_SESSIONS: usize = 128;
/// A session that is silent so long ends.
const SILENCE: Duration = Duration::from_secs(4 * 3600);
/// Connections that are open at the end are given so long to get their answers.
const FAREWELL: Duration = Duration::from_secs(1);
/// Where no connection can be taken, for want of open files, one is tried again after so long.
const PAUSE: Duration = Duration::from_millis(100);
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
}

/// What answers a request.
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
}

/// Serves until the process is asked to end; `told` hears where.
pub(super) async fn serve(server: Server, http: &Http, told: impl FnOnce(SocketAddr)) -> Result<()> {
    let token = http.token_file.as_deref().map(token).transpose()?;
    if token.is_none() && !http.address.ip().is_loopback() {
        return Err(Error::invalid(format!(
            "{} can be reached by others, and there is no token",
            http.address
        ))
        .with_hint("give --token-file FILE, or listen at 127.0.0.1"));
    }
    let config = config(http)?;
    let stop = config.cancellation_token.clone();
    let unheard = |error| Error::io("listen at", http.address.to_string(), error);
    let listener = TcpListener::bind(http.address).await.map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;
    let end = asked_to_end()?;
    let _following = server.follow()?;
    tokio::spawn(server.clone().hear_others());
    let endpoint = Endpoint::new(&server, config, token);
    let router = Router::new().route("/mcp", any(answer)).route("/health", get(health)).with_state(endpoint);
    told(address);
    let open = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, &router, &open) => {}
        () = end => {}
    }
    drop(listener);
    // Streams end by this; they would stay open for good.
    stop.cancel();
    if tokio::time::timeout(FAREWELL, open.shutdown()).await.is_err() {
        tracing::debug!("connections that are open still are cut");
    }
    Ok(())
}

/// Takes connections, and serves each in a task of its own.
async fn accept(listener: &TcpListener, router: &Router, open: &GracefulShutdown) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(ARRIVAL);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection is not taken: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
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
        });
    }
}

fn config(http: &Http) -> Result<StreamableHttpServerConfig> {
    let mut origins = LOOPBACK_ORIGINS.map(str::to_owned).to_vec();
    for text in &http.origins {
        origins.push(origin(text)?);
    }
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(LARGEST)
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let ip = http.address.ip();
    Ok(if ip.is_loopback() {
        config.with_allowed_hosts([
            "localhost".to_owned(),
            ip.to_string(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ])
    } else {
        // By which names others reach us is not known here; who has the token may.
        config.disable_allowed_hosts()
    })
}

/// Reads the origin of web pages: scheme, host and port, and no more.
fn origin(text: &str) -> Result<String> {
    let wrong = || {
        Error::invalid(format!("{text:?} is no origin of web pages"))
            .with_hint("write it as browsers do: https://notes.example:8443")
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else { return Err(wrong()) };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong());
    }
    Ok(match (uri.port_u16(), scheme) {
        (Some(port), _) => format!("{scheme}://{host}:{port}"),
        // Without a port an origin would stand for every port of that host.
        (None, "https") => format!("{scheme}://{host}:443"),
        (None, "http") => format!("{scheme}://{host}:80"),
        (None, _) => format!("{scheme}://{host}"),
    })
}

impl Endpoint {
    fn new(server: &Server, config: StreamableHttpServerConfig, token: Option<blake3::Hash>) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SILENCE);
        let manager = Arc::new(manager);
        let (kept, single) = (server.clone(), server.clone());
        let plain = config.clone().with_legacy_session_mode(false).with_json_response(true);
        Self {
            sessions: StreamableHttpService::new(move || Ok(kept.connection()), Arc::clone(&manager), config),
            manager,
            order: Arc::default(),
            plain: StreamableHttpService::new(move || Ok(single.connection()), Arc::default(), plain),
            token,
        }
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
        if order.len() > MOST_SESSIONS {
            // Those that their clients ended take no place.
            order.retain(|session| kept.contains_key(session));
        }
        if order.len() > MOST_SESSIONS
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

/// The one field that tells which service a message is for.
#[derive(Deserialize)]
struct Peek {
    method: String,
}

async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if !endpoint.lets_in(request.headers()) {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"sidenote\"")];
        return (StatusCode::UNAUTHORIZED, challenge, "show the token: Authorization: Bearer TOKEN\n")
            .into_response();
    }
    let session = request.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(session) = &session {
        endpoint.heard(session, false).await;
    }
    let (parts, body) = request.into_parts();
    let bytes = match tokio::time::timeout(ARRIVAL, to_bytes(body, LARGEST)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            let text = format!("the request is longer than {LARGEST} bytes, or broke off: {error}\n");
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
        Err(_) => return (StatusCode::REQUEST_TIMEOUT, "the request did not arrive\n").into_response(),
    };
    let says_hello = serde_json::from_slice::<Peek>(&bytes).is_ok_and(|peek| peek.method == "initialize");
    let request = Request::from_parts(parts, Body::from(bytes));
    if session.is_none() && !says_hello {
        return endpoint.plain.handle(request).await.map(Body::new);
    }
    let ends = request.method() == Method::DELETE;
    let mut response = endpoint.sessions.handle(request).await.map(Body::new);
    if ends && response.status() == StatusCode::ACCEPTED {
        // The Python client takes anything else for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    if let Some(session) = response.headers().get(SESSION).and_then(|value| value.to_str().ok()) {
        endpoint.heard(session, true).await;
    }
    response
}

async fn health(State(endpoint): State<Endpoint>, request: Request) -> Response {
    // The service looks at Host and Origin before anything else, here as there.
    let looked_at = endpoint.plain.handle(request.map(|_| Body::empty())).await;
    if looked_at.status() == StatusCode::FORBIDDEN {
        return looked_at.map(Body::new);
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
