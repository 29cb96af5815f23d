//! Starts and ends servers: over standard input and output, and over HTTP.

use std::sync::Arc;
use std::time::Instant;

use rmcp::ServiceExt as _;
use rmcp::service::{QuitReason, ServerInitializeError};
use sidenote_base::error::{Error, Result};
use sidenote_http::{runtime, shutdown};
use sidenote_store::agents::Agents;

use crate::http::named::VaultSource;
use crate::http::{self, Http};
use crate::server_end::end_within;
use crate::vaults::NamedVault;
use crate::{ANSWER_LIMIT, END_LIMIT, OnListening, Server, Toolset, stdio};

/// Serves one client over standard input and output until it closes them, or the process receives SIGTERM or SIGINT.
/// Running calls are completed. Several vaults have a name each; the first answers what names none.
///
/// # Errors
/// `Internal` if the async runtime cannot start; `Invalid` if two tools have the same name, if there is no vault, or if the
/// first message of the client is not one of MCP.
pub fn serve_stdio(vaults: Vec<(String, Agents)>, sets: &[Toolset]) -> Result<()> {
    let runtime = runtime()?;
    let vaults = named(vaults, sets)?;
    let server =
        Server::of_several(vaults.clone()).ok_or_else(|| Error::invalid("there is no vault to serve"))?;
    let (transport, input_ended) = stdio::Stdio::new();
    // The first scan runs during the handshake.
    let followers = vaults.iter().map(|vault| vault.server.follow_files()).collect::<Result<Vec<_>>>()?;
    let servers: Vec<Server> = vaults.into_iter().map(|vault| vault.server).collect();
    let watched = servers.clone();
    let (began, served) = runtime.block_on(async move {
        watched.into_iter().for_each(|server| drop(tokio::spawn(server.watch_other_writers())));
        let shutdown = match shutdown::requested() {
            Ok(shutdown) => shutdown,
            Err(error) => return (Instant::now(), Err(error)),
        };
        tokio::pin!(shutdown);
        let running = tokio::select! {
            running = server.serve(transport) => match running {
                Ok(running) => running,
                // A client may close the connection before its first message.
                Err(ServerInitializeError::ConnectionClosed(_)) => return (Instant::now(), Ok(())),
                Err(error) => {
                    let error = Error::invalid("the client does not speak MCP").with_source(error);
                    return (Instant::now(), Err(error));
                }
            },
            () = &mut shutdown => return (Instant::now(), Ok(())),
        };
        let waiting = running.waiting();
        tokio::pin!(waiting);
        let (began, stopped) = tokio::select! {
            ended_at = input_ended => {
                let answered = tokio::time::timeout(ANSWER_LIMIT, &mut waiting).await;
                let answered = answered.unwrap_or_else(|_| {
                    tracing::warn!("the client closed the input, and answers that it did not get are dropped");
                    Ok(QuitReason::Closed)
                });
                (ended_at.unwrap_or_else(|_| Instant::now()), answered)
            }
            stopped = &mut waiting => (Instant::now(), stopped),
            () = &mut shutdown => (Instant::now(), Ok(QuitReason::Cancelled)),
        };
        let served = stopped.map(drop);
        (began, served.map_err(|error| Error::internal("the server stopped").with_source(error)))
    });
    let ending = servers.into_iter().zip(followers.into_iter().map(Some));
    end_within(ending, END_LIMIT.saturating_sub(began.elapsed()));
    // Reading standard input and writing standard output can block, and cannot be cancelled.
    runtime.shutdown_background();
    served
}

/// Serves clients over HTTP until the process receives SIGTERM or SIGINT, at `/mcp`. Several vaults have a name each: all are
/// served at `/mcp`, and each at `/v/NAME/mcp`. `on_listening` is called with the address once it is open. Running calls are
/// completed.
///
/// # Errors
/// `Invalid` if other machines can reach the address and there is no token, if an origin or host name is invalid, or if
/// two tools have the same name; `Io` if the address cannot be listened on, or the token file cannot be read or
/// created; `Internal` if the async runtime cannot start.
pub fn serve_http(
    vaults: Vec<(String, Agents)>,
    sets: &[Toolset],
    http: &Http,
    on_listening: OnListening<'_>,
) -> Result<()> {
    let runtime = runtime()?;
    let vaults = named(vaults, sets)?;
    let mut served: Vec<(String, Server)> = Vec::new();
    if vaults.iter().all(|vault| !vault.name.is_empty()) {
        served.extend(vaults.iter().map(|vault| (format!("/v/{}/mcp", vault.name), vault.server.clone())));
    }
    let all =
        Server::of_several(vaults.clone()).ok_or_else(|| Error::invalid("there is no vault to serve"))?;
    if served.len() != 1 {
        served.push(("/mcp".to_owned(), all));
    }
    let servers: Vec<Server> = vaults.into_iter().map(|vault| vault.server).collect();
    let followers = servers.iter().map(Server::follow_files).collect::<Result<Vec<_>>>()?;
    let ended = runtime.block_on(http::serve(&served, http, on_listening));
    end_within(servers.into_iter().zip(followers.into_iter().map(Some)), END_LIMIT);
    runtime.shutdown_background();
    ended
}

/// Serves vaults over HTTP like [`serve_http`], each at `/v/NAME/mcp`. A vault is opened when a request names it, and closed
/// when others need its place. `/ready` and `/metrics` are for those who operate the server.
///
/// # Errors
/// Those of [`serve_http`].
pub fn serve_named(
    source: Arc<dyn VaultSource>,
    sets: &[Toolset],
    http: &Http,
    on_listening: OnListening<'_>,
) -> Result<()> {
    let runtime = runtime()?;
    let served = runtime.block_on(http::serve_named(source, sets, http, on_listening));
    runtime.shutdown_background();
    served
}

/// Makes the server of each vault.
fn named(vaults: Vec<(String, Agents)>, sets: &[Toolset]) -> Result<Vec<NamedVault>> {
    let servers = vaults.into_iter().map(|(name, agents)| {
        let server = Server::new(agents.owner().clone(), Some(agents), sets)?;
        Ok(NamedVault { name, server })
    });
    servers.collect()
}
