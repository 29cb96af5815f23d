//! The MCP server over HTTP: the addresses of its vaults.

mod authorization;
mod cors;
mod endpoint;
mod gate;
mod metrics;
pub(super) mod named;
mod portable_session;
mod rights;
mod stream_replay;
mod sync;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use sidenote_base::error::{Error, Result};
pub(super) use sidenote_http::limits::BodyReservation;
use sidenote_http::shutdown;
use tokio::net::TcpListener;

use self::authorization::Authorization;
pub use self::authorization::AuthorizationOptions;
pub(super) use self::endpoint::JsonOnly;
use self::endpoint::{Endpoint, handle_authorized};
use self::gate::Gate;
pub use self::gate::Http;
pub(super) use self::metrics::{CallResult, Metrics};
use self::named::{NamedVaults, VaultSource};
pub(super) use self::portable_session::SessionName;
pub(super) use self::rights::Member;
use self::rights::NO_VAULT;
use super::{OnListening, Server, Toolset};

/// The path of every vault that could be served under a name.
const ANY_VAULT: &str = "/v/{name}/mcp";

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
    on_listening: OnListening<'_>,
) -> Result<()> {
    let (mut listening, mut authorization) = (None, None);
    if let Some(options) = &http.authorization {
        // The port is part of the address at which clients log in.
        let opened = sidenote_http::listen(http.address).await?;
        let endpoints = servers.iter().map(|(path, server)| (path.as_str(), server));
        authorization = Some(Authorization::new(options, opened.1, endpoints)?);
        listening = Some(opened);
    }
    let gate = Gate::of(http, authorization)?;
    let mut router = Router::new();
    if gate.authorization.is_some() {
        let routes = authorization::paths()
            .iter()
            .fold(Router::new(), |routes, path| routes.route(path, any(handle_authorization)));
        router = router.merge(routes.with_state(gate.clone()));
    }
    for (at, (path, server)) in servers.iter().enumerate() {
        tokio::spawn(server.clone().watch_other_writers());
        let mut routes = Router::new().route(path, any(handle_mcp));
        if at == 0 {
            // What is not a vault is refused as a vault is, so that only those who have the token learn the names.
            routes = routes.route(ANY_VAULT, any(handle_unknown_vault));
        }
        router = router.merge(routes.with_state(Endpoint::new(server, gate.clone())));
    }
    let listening = match listening {
        Some(listening) => listening,
        None => sidenote_http::listen(http.address).await?,
    };
    serve_at(listening, &gate, router, on_listening).await
}

/// Serves like [`serve`], but opens each vault when a request names it.
///
/// # Errors
/// Those of [`serve`].
pub(super) async fn serve_named(
    source: Arc<dyn VaultSource>,
    sets: &[Toolset],
    http: &Http,
    on_listening: OnListening<'_>,
) -> Result<()> {
    let gate = Gate::of(http, None)?;
    let vaults = NamedVaults::new(source, sets, gate.clone(), http.login.clone());
    let warming = tokio::spawn(vaults.clone().warm_up());
    let router = vaults.clone().router().merge(sync::router(vaults.clone()));
    let served = match sidenote_http::listen(http.address).await {
        Ok(listening) => serve_at(listening, &gate, router, on_listening).await,
        Err(error) => Err(error),
    };
    warming.abort();
    let ended = tokio::task::spawn_blocking(move || vaults.end()).await;
    ended.map_err(|error| Error::internal("the end of the calls was not awaited").with_source(error))?;
    served
}

/// Serves the routes of vaults and `/health` at an address that is open until the process is asked to end.
async fn serve_at(
    (listener, address): (TcpListener, SocketAddr),
    gate: &Gate,
    vaults: Router,
    on_listening: OnListening<'_>,
) -> Result<()> {
    let shutdown = shutdown::requested()?;
    let router = vaults.merge(Router::new().route("/health", get(health)).with_state(gate.clone()));
    on_listening(address);
    // This ends streams.
    let end_streams = || gate.config.cancellation_token.cancel();
    sidenote_http::serve(listener, &router, &gate.admission, shutdown, end_streams).await;
    Ok(())
}

async fn handle_mcp(State(endpoint): State<Endpoint>, request: Request) -> Response {
    admit(&endpoint.gate, request, |request| handle_authorized(&endpoint, request)).await
}

/// Answers a request to a vault if its token counts: that of the server, or one that the authorization server issued.
async fn admit<F: Future<Output = Response>>(
    gate: &Gate,
    request: Request,
    handle: impl FnOnce(Request) -> F,
) -> Response {
    let Some(authorization) = gate.authorization.as_ref() else { return gate.answer(request, handle).await };
    let checked = |request: Request| async {
        if gate.has_token() && gate.is_authorized(request.headers()) {
            return handle(request).await;
        }
        authorization.answer(request, handle).await
    };
    gate.answer_without_token(request, checked).await
}

/// Answers at an address of the authorization server, for which no token is needed.
async fn handle_authorization(State(gate): State<Gate>, request: Request) -> Response {
    let answer = |request| async {
        match &gate.authorization {
            Some(server) => authorization::answer(server, &gate.admission, request).await,
            None => StatusCode::NOT_FOUND.into_response(),
        }
    };
    gate.answer_without_token(request, answer).await
}

/// Answers a request for a vault that is not served.
async fn handle_unknown_vault(State(endpoint): State<Endpoint>, request: Request) -> Response {
    admit(&endpoint.gate, request, |_| async { (StatusCode::NOT_FOUND, NO_VAULT).into_response() }).await
}

async fn health(State(gate): State<Gate>, request: Request) -> Response {
    if let Some(refusal) = gate.refuse_by_host_or_origin(request.uri(), request.headers()).await {
        return refusal;
    }
    let body = concat!("{\"status\":\"ok\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
