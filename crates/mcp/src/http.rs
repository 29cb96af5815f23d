//! The MCP server over HTTP: the addresses of its vaults.

mod cors;
mod endpoint;
mod gate;
mod metrics;
pub(super) mod named;
mod portable_session;
mod rights;
mod sync;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use sidenote_base::error::{Error, Result};
pub(super) use sidenote_http::limits::BodyReservation;
use sidenote_http::shutdown;

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
    let gate = Gate::of(http)?;
    let mut router = Router::new();
    for (at, (path, server)) in servers.iter().enumerate() {
        tokio::spawn(server.clone().watch_other_writers());
        let mut routes = Router::new().route(path, any(handle_mcp));
        if at == 0 {
            // What is not a vault is refused as a vault is, so that only those who have the token learn the names.
            routes = routes.route(ANY_VAULT, any(handle_unknown_vault));
        }
        router = router.merge(routes.with_state(Endpoint::new(server, gate.clone())));
    }
    listen(&gate, http, router, on_listening).await
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
    let gate = Gate::of(http)?;
    let vaults = NamedVaults::new(source, sets, gate.clone(), http.login.clone());
    let warming = tokio::spawn(vaults.clone().warm_up());
    let served =
        listen(&gate, http, vaults.clone().router().merge(sync::router(vaults.clone())), on_listening).await;
    warming.abort();
    let ended = tokio::task::spawn_blocking(move || vaults.end()).await;
    ended.map_err(|error| Error::internal("the end of the calls was not awaited").with_source(error))?;
    served
}

/// Opens the address, and serves the routes of vaults and `/health` until the process is asked to end.
async fn listen(gate: &Gate, http: &Http, vaults: Router, on_listening: OnListening<'_>) -> Result<()> {
    let (listener, address) = sidenote_http::listen(http.address).await?;
    let shutdown = shutdown::requested()?;
    let router = vaults.merge(Router::new().route("/health", get(health)).with_state(gate.clone()));
    on_listening(address);
    // This ends streams.
    let end_streams = || gate.config.cancellation_token.cancel();
    sidenote_http::serve(listener, &router, &gate.admission, shutdown, end_streams).await;
    Ok(())
}

async fn handle_mcp(State(endpoint): State<Endpoint>, request: Request) -> Response {
    endpoint.gate.answer(request, |request| handle_authorized(&endpoint, request)).await
}

/// Answers a request for a vault that is not served.
async fn handle_unknown_vault(State(endpoint): State<Endpoint>, request: Request) -> Response {
    endpoint.gate.answer(request, |_| async { (StatusCode::NOT_FOUND, NO_VAULT).into_response() }).await
}

async fn health(State(gate): State<Gate>, request: Request) -> Response {
    if let Some(refusal) = gate.refuse_by_host_or_origin(request.uri(), request.headers()).await {
        return refusal;
    }
    let body = concat!("{\"status\":\"ok\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
