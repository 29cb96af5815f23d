//! What the HTTP servers share: connections within limits, request bodies, tokens, streamed answers, signals. What a
//! server answers is decided in its own crate.

pub mod limits;
pub mod reply_body;
mod connections;
pub mod shutdown;
pub mod token;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use sidenote_base::error::{Error, Result};
use tokio::net::{TcpListener, TcpStream};

use crate::connections::Connections;
use crate::limits::{Admission, BODY_TIMEOUT};

/// The answer to connections beyond the limit.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
/// The time that open connections have at shutdown to receive their answers.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// The time that a connection has to close after it was asked to.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// The delay before the next attempt after a connection could not be accepted, for example because too many files are open.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The address of the other end of a connection, which each of its requests has as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Creates the runtime of a server.
///
/// # Errors
/// `Internal` if its threads cannot be started.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Error::internal("cannot start the async runtime").with_source(error))
}

/// Opens an address, and returns it with the port that it got.
///
/// # Errors
/// `Io` if the address cannot be listened on.
pub async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let failed = |error: std::io::Error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "another process listens there: stop it, or name another port",
            ErrorKind::AddrNotAvailable => {
                "this machine does not have that address: use 127.0.0.1, or 0.0.0.0 for all of its addresses"
            }
            ErrorKind::PermissionDenied => {
                "the system reserves this port: name another one above 1023, or run as a user that may use this one"
            }
            _ => return Error::io("listen on", address.to_string(), error),
        };
        Error::io("listen on", address.to_string(), error).with_hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Serves connections until `ended` completes. `on_end` is called then, so that streams end, which would otherwise stay
/// open.
pub async fn serve(
    listener: TcpListener,
    router: &Router,
    admission: &Admission,
    ended: impl Future<Output = ()>,
    on_end: impl FnOnce(),
) {
    let connections = GracefulShutdown::new();
    tokio::select! {
        () = accept_connections(&listener, router, &connections, admission) => {}
        () = ended => {}
    }
    drop(listener);
    on_end();
    if tokio::time::timeout(SHUTDOWN_GRACE, connections.shutdown()).await.is_err() {
        tracing::debug!("connections that are still open are closed");
    }
}

/// Accepts connections, and serves each in a task of its own.
async fn accept_connections(
    listener: &TcpListener,
    router: &Router,
    connections: &GracefulShutdown,
    admission: &Admission,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(BODY_TIMEOUT);
    let open = Arc::new(Connections::default());
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok((stream, peer)) => (stream, PeerAddress(peer.ip())),
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let is_free = async || admission.connection_within(CLOSE_TIMEOUT).await;
        let permit = match admission.connection() {
            // A client that does not send its request keeps others out no longer than until there are too many.
            None if open.close_longest_waiting() => is_free().await,
            permit => permit,
        };
        let Some(permit) = permit else {
            refuse_connection(&stream);
            continue;
        };
        // Nagle's algorithm would delay small answers.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("TCP_NODELAY cannot be set, so answers may be delayed: {error}");
        }
        let connection = open.add();
        let (router, tracked) = (TowerToHyperService::new(router.clone()), Arc::clone(&connection));
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let tracked = Arc::clone(&tracked);
            let answer = router.call(tracked.requested(request));
            async move { answer.await.map(|answer| tracked.answered(answer)) }
        });
        let served = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            tokio::select! {
                ended = served => if let Err(error) = ended {
                    tracing::debug!("a connection ended with an error: {error}");
                },
                () = connection.closed() => {
                    tracing::debug!("a connection is closed: its client sends no request, and there are too many");
                }
            }
            drop(permit);
        });
    }
}

/// Refuses a connection because there are too many.
fn refuse_connection(stream: &TcpStream) {
    tracing::warn!("a connection is refused: there are too many");
    if let Err(error) = stream.try_write(TOO_MANY_CONNECTIONS) {
        tracing::debug!("the refusal of a connection cannot be sent: {error}");
    }
}
