//! What every request passes before its vault is looked at: `Host`, `Origin` and the token; and the limits that all vaults of
//! a server share.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use sidenote_base::error::{Error, Result};
use sidenote_http::limits::{Admission, MAX_BODY};
use sidenote_http::token::{read_or_create, refuse_without_token};
use sidenote_language::graphemes::shortened;
use sidenote_markdown::control::plain;

use super::authorization::{Authorization, AuthorizationOptions};
use super::cors::{self, Cors, origin};
use crate::Server;
use crate::login::Login;

/// The origins of web pages of this machine, which are always allowed.
const LOOPBACK_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// The largest number of refused hosts that are logged: their names come from the clients.
const MAX_HOSTS: usize = 20;
/// The longest refused host that is logged, in characters.
const MAX_HOST: usize = 200;

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
    /// The authorization server of this program, where it has one. The token of `token_file` counts as well.
    pub authorization: Option<AuthorizationOptions>,
    /// The check of access tokens, where people log in. The token of `token_file` opens no vault then.
    pub login: Option<Arc<Login>>,
}

/// What all requests pass first, and the limits that all endpoints share.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) config: StreamableHttpServerConfig,
    /// Checks `Host` and `Origin`.
    probe: StreamableHttpService<Server, NeverSessionManager>,
    token: Option<blake3::Hash>,
    /// Whether people log in, so that no request without a token is authorized.
    has_login: bool,
    /// The authorization server of this program, if it has one.
    pub(super) authorization: Option<Arc<Authorization>>,
    cors: Cors,
    pub(super) admission: Admission,
    refused_hosts: Arc<Mutex<RefusedHosts>>,
}

/// The hosts whose requests were refused, each of which is logged once.
#[derive(Debug, Default)]
struct RefusedHosts(HashSet<String>);

impl RefusedHosts {
    /// Notes a refused host. Returns the line for the log, if there is something new to say.
    fn note(&mut self, host: &str) -> Option<String> {
        let host = shortened(&plain(host), MAX_HOST);
        if self.0.len() > MAX_HOSTS || self.0.contains(&host) {
            return None;
        }
        let is_last = self.0.len() == MAX_HOSTS;
        let told = if is_last {
            "requests for still other hosts are refused; no more of them are logged".to_owned()
        } else {
            format!(
                "requests for the host {host:?} are refused: a proxy must pass on the Host of the request (nginx: proxy_set_header Host $http_host), and other names of this server must be allowed when it is started"
            )
        };
        self.0.insert(host);
        Some(told)
    }
}

impl Gate {
    /// Prepares the checks of a server.
    ///
    /// # Errors
    /// `Invalid` if other machines can reach the address or other host names are allowed and there is no token, or if an
    /// origin or host name is invalid; `Io` if the token file cannot be read or created.
    pub(super) fn of(http: &Http, authorization: Option<Authorization>) -> Result<Self> {
        let token = http.token_file.as_deref().map(|file| read_or_create(file, true)).transpose()?;
        // The hash alone is kept in memory.
        let token = token.map(|token| blake3::hash(token.as_bytes()));
        let has_login = http.login.is_some() || authorization.is_some();
        if token.is_none() && !has_login {
            refuse_without_token(http.address)?;
        }
        if token.is_none() && !has_login && !http.hosts.is_empty() {
            return Err(Error::invalid("other host names are allowed, and there is no token")
                .with_hints("give --token-file FILE as well", ""));
        }
        let mut origins = http.origins.iter().map(|text| origin(text)).collect::<Result<Vec<String>>>()?;
        let cors = Cors::new(origins.clone());
        let mut hosts = http.hosts.iter().map(|text| parse_host(text)).collect::<Result<Vec<String>>>()?;
        hosts.extend(http.login.as_ref().and_then(|login| login.host()));
        if let Some(authorization) = &authorization {
            // The page of consent sends its form to the server itself.
            origins.push(origin(authorization.issuer())?);
            hosts.extend(authorization.host());
        }
        let config = transport_config(http, &origins, hosts);
        let stateless = config.clone().with_legacy_session_mode(false).with_json_response(true);
        let no_server = || Err(std::io::Error::other("a probe has no server"));
        let probe = StreamableHttpService::new(no_server, Arc::default(), stateless);
        let admission = Admission::default();
        let (refused_hosts, authorization) = (Arc::default(), authorization.map(Arc::new));
        Ok(Self { config, probe, token, has_login, authorization, cors, admission, refused_hosts })
    }

    /// Answers a request: refuses it, or has it handled.
    pub(super) async fn answer<F: Future<Output = Response>>(
        &self,
        request: Request,
        handle: impl FnOnce(Request) -> F,
    ) -> Response {
        let checked = |request: Request| async {
            match self.refuse_without_token(request.headers()) {
                Some(refusal) => refusal,
                None => handle(request).await,
            }
        };
        self.answer_without_token(request, checked).await
    }

    /// Answers a request that needs no token, or whose handler checks it.
    pub(super) async fn answer_without_token<F: Future<Output = Response>>(
        &self,
        request: Request,
        handle: impl FnOnce(Request) -> F,
    ) -> Response {
        if let Some(refusal) = self.refuse_by_host_or_origin(request.uri(), request.headers()).await {
            return refusal;
        }
        let origin = self.cors.origin(request.headers());
        // A preflight request has no token.
        let response = if origin.is_some() && cors::is_preflight(request.method(), request.headers()) {
            cors::preflight(request.headers())
        } else {
            handle(request).await
        };
        match origin {
            Some(origin) => cors::allow_origin(response, origin),
            None => response,
        }
    }

    /// Refuses a request whose `Host` or `Origin` is not allowed, before its body is read.
    pub(super) async fn refuse_by_host_or_origin(
        &self,
        uri: &axum::http::Uri,
        headers: &HeaderMap,
    ) -> Option<Response> {
        let mut probe = Request::new(Body::empty());
        *probe.uri_mut() = uri.clone();
        *probe.headers_mut() = headers.clone();
        // The service checks `Host` and `Origin` first. It answers a request without a body with 405 if both are allowed.
        let response = self.probe.handle(probe).await;
        let is_refused = matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST);
        if !is_refused {
            return None;
        }
        if self.refuses_host(uri, headers).await {
            let host = headers.get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()));
            let mut refused = self.refused_hosts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(told) = refused.note(&host.unwrap_or_default()) {
                tracing::warn!("{told}");
            }
        }
        Some(response.map(Body::new))
    }

    /// Returns whether a request is refused for its `Host` alone, whatever its `Origin` is.
    async fn refuses_host(&self, uri: &axum::http::Uri, headers: &HeaderMap) -> bool {
        let mut probe = Request::new(Body::empty());
        *probe.uri_mut() = uri.clone();
        *probe.headers_mut() = headers.clone();
        probe.headers_mut().remove(header::ORIGIN);
        let response = self.probe.handle(probe).await;
        matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST)
    }

    /// Refuses a request that does not have the right token, if one is required.
    fn refuse_without_token(&self, headers: &HeaderMap) -> Option<Response> {
        if self.is_authorized(headers) {
            return None;
        }
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"sidenote\"")];
        let text = match &self.token {
            Some(_) => {
                "send the token of this server, which its operator has in the token file: Authorization: Bearer TOKEN\n"
            }
            None => {
                "this address is closed: the operator opens it by starting the server with a token file\n"
            }
        };
        Some((StatusCode::UNAUTHORIZED, challenge, text).into_response())
    }

    /// Returns whether there is a token of the server.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns whether a request has the right token, or no token is required.
    pub(super) fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return !self.has_login };
        let credentials = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let credentials = credentials
            .and_then(|credentials| credentials.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        // Hashes are compared in constant time.
        credentials.is_some_and(|(_, given)| blake3::hash(given.trim().as_bytes()) == *token)
    }
}

fn transport_config(http: &Http, allowed: &[String], others: Vec<String>) -> StreamableHttpServerConfig {
    let mut origins = LOOPBACK_ORIGINS.map(str::to_owned).to_vec();
    origins.extend_from_slice(allowed);
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(MAX_BODY)
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let ip = http.address.ip();
    if !ip.is_loopback() && http.hosts.is_empty() {
        // The names of this machine in the network are unknown; the token protects the server.
        return config.disable_allowed_hosts();
    }
    let mut hosts = vec!["localhost".to_owned(), ip.to_string(), "127.0.0.1".to_owned(), "::1".to_owned()];
    hosts.extend(others);
    config.with_allowed_hosts(hosts)
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
