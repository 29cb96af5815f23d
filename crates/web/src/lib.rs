//! The web page of a vault: its server, access control, the API, events, and the built files of the page. Every reply
//! is one of `Store`, and every change is a plan of it; docs/dev/web.md is the contract with the page. It does no work
//! on notes, and knows nothing of `mcp`.

mod access;
mod actions;
mod api;
mod assets;
mod events;
mod files;
mod params;
mod read;
mod reply;
mod reply_cache;
mod review;
mod sanitize;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use assets::Asset;
use axum::Router;
use axum::routing::any;
use sidenote_base::error::Result;
use sidenote_http::limits::Admission;
use sidenote_http::{runtime, shutdown, token};
use sidenote_store::Store;

use crate::access::Access;
use crate::api::Api;
use crate::events::Events;

/// The time that the end of the server waits for the writer of the index.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The settings of the server.
#[derive(Debug, Clone)]
pub struct Web {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Whether another free port is taken if that of the address is in use.
    pub may_move: bool,
    /// The file with the token of the first address. It is created with a new token if it does not exist.
    pub token_file: Option<PathBuf>,
    /// The folder in which the secret of the cookie is kept, so that pages stay signed in after a restart.
    pub secret_folder: Option<PathBuf>,
    /// The built files of the page.
    pub assets: &'static [Asset],
}

/// Called with the first address of a server once it is open. It is not a type parameter, so that the server is compiled once.
pub type OnListening<'a> = &'a mut dyn FnMut(&str);

/// Serves the page until the process receives SIGTERM or SIGINT. `on_listening` is called with the first address, which has
/// the token, once it is open.
///
/// # Errors
/// `Invalid` if other machines can reach the address and there is no token file; `Io` if the address cannot be listened on,
/// or the token file cannot be read or created; `Internal` if the async runtime cannot start.
pub fn serve(store: Store, web: &Web, on_listening: OnListening<'_>) -> Result<()> {
    let token = match &web.token_file {
        Some(file) => token::read_or_create(file, true)?,
        None => {
            token::refuse_without_token(web.address)?;
            token::new_token()
        }
    };
    let runtime = runtime()?;
    let served = runtime.block_on(serve_until_shutdown(store.clone(), web, &token, on_listening));
    store.changes().end_all_sessions();
    if !store.close(END_LIMIT) {
        tracing::warn!("the index is still being written, so the next command checks it");
    }
    // A call that runs too long is not waited for; a change that it makes is completed by the next command.
    runtime.shutdown_background();
    served
}

async fn serve_until_shutdown(
    store: Store,
    web: &Web,
    token: &str,
    on_listening: OnListening<'_>,
) -> Result<()> {
    let moved = SocketAddr::new(web.address.ip(), 0);
    let (listener, address) = match sidenote_http::listen(web.address).await {
        Err(error) if web.may_move && web.address.port() != 0 => {
            tracing::info!("{error}; another port is taken");
            sidenote_http::listen(moved).await?
        }
        opened => opened?,
    };
    let ended = shutdown::requested()?;
    let events = Events::new();
    events.listen_to(&store);
    let _follower = store.upkeep().follow(|_| {})?;
    let access = Access::new(address, web, token, store.root());
    let watching = tokio::spawn(events.clone().watch(store.clone()));
    let api = Api::new(store, access, events.clone(), web.assets);
    let router = Router::new().fallback(any(api::handle)).with_state(Arc::new(api));
    let host = if address.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    } else {
        address
    };
    on_listening(&format!("http://{host}/?token={token}"));
    sidenote_http::serve(listener, &router, &Admission::default(), ended, || events.close()).await;
    watching.abort();
    Ok(())
}
